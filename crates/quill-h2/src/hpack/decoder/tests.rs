use super::*;

/// The fields of a block, a line each; `!` stands before one that is never indexed.
#[derive(Default)]
struct Lines(Vec<String>);

impl Sink for Lines {
    fn field(&mut self, field: Field<'_>) {
        let mark = if field.never_indexed { "!" } else { "" };
        let [name, value] = [field.name, field.value].map(|text| text.escape_ascii());
        self.0.push(format!("{mark}{name}: {value}"));
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex
        .chars()
        .filter_map(|digit| digit.to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<String>, Error> {
    let mut lines = Lines::default();
    let decoded = decoder.decode(block, 10_000, &mut lines)?;
    assert!(!decoded.is_too_large());
    Ok(lines.0)
}

fn table(decoder: &Decoder) -> Vec<String> {
    (0..decoder.table.len())
        .map(|index| decoder.table.field(index).expect("an entry"))
        .map(|(name, value)| format!("{}: {}", name.escape_ascii(), value.escape_ascii()))
        .collect()
}

/// One after the other: a block, its fields, the table behind it with the newest first.
fn check(table_bytes_max: u32, blocks: &[(&str, &str, &str)]) {
    let mut decoder = Decoder::new(table_bytes_max);
    let lines = |text: &str| -> Vec<String> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.map(str::to_owned).collect()
    };
    for (block, fields, after) in blocks {
        assert_eq!(decode(&mut decoder, &bytes(block)), Ok(lines(fields)));
        assert_eq!(table(&decoder), lines(after));
    }
}

/// RFC 7541, C.2.
#[test]
fn representations() {
    check(
        4096,
        &[(
            "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
            "custom-key: custom-header",
            "custom-key: custom-header",
        )],
    );
    let path = "040c 2f73 616d 706c 652f 7061 7468";
    check(4096, &[(path, ":path: /sample/path", "")]);
    let password = "1008 7061 7373 776f 7264 0673 6563 7265 74";
    check(4096, &[(password, "!password: secret", "")]);
    check(4096, &[("82", ":method: GET", "")]);
}

const REQUEST: &str = ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com";

/// RFC 7541, C.3 and C.4: the same requests, without and with Huffman coding.
#[test]
fn requests() {
    for [first, second, third] in [
        [
            "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
            "8286 84be 5808 6e6f 2d63 6163 6865",
            "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
        ],
        [
            "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
            "8286 84be 5886 a8eb 1064 9cbf",
            "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
        ],
    ] {
        check(
            4096,
            &[
                (first, REQUEST, ":authority: www.example.com"),
                (
                    second,
                    &format!("{REQUEST}\ncache-control: no-cache"),
                    "cache-control: no-cache\n:authority: www.example.com",
                ),
                (
                    third,
                    ":method: GET\n:scheme: https\n:path: /index.html\n\
                     :authority: www.example.com\ncustom-key: custom-value",
                    "custom-key: custom-value\ncache-control: no-cache\n\
                     :authority: www.example.com",
                ),
            ],
        );
    }
}

/// RFC 7541, C.5 and C.6: the same responses, without and with Huffman coding, and a
/// table so small that fields are pushed out.
#[test]
fn responses_with_eviction() {
    for [first, second, third] in [
        [
            "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 \
             2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 \
             6c65 2e63 6f6d",
            "4803 3330 37c1 c0bf",
            "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d \
             54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 \
             5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e \
             3d31",
        ],
        [
            "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 \
             2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
            "4883 640e ffc1 c0bf",
            "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab \
             77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f \
             9587 3160 65c0 03ed 4ee5 b106 3d50 07",
        ],
    ] {
        let common = "cache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT\n\
                      location: https://www.example.com";
        let cookie = "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";
        let later = "date: Mon, 21 Oct 2013 20:13:22 GMT";
        check(
            256,
            &[
                (
                    first,
                    &format!(":status: 302\n{common}"),
                    "location: https://www.example.com\n\
                     date: Mon, 21 Oct 2013 20:13:21 GMT\n\
                     cache-control: private\n:status: 302",
                ),
                (
                    second,
                    &format!(":status: 307\n{common}"),
                    ":status: 307\nlocation: https://www.example.com\n\
                     date: Mon, 21 Oct 2013 20:13:21 GMT\ncache-control: private",
                ),
                (
                    third,
                    &format!(
                        ":status: 200\ncache-control: private\n{later}\n\
                         location: https://www.example.com\ncontent-encoding: gzip\n{cookie}"
                    ),
                    &format!("{cookie}\ncontent-encoding: gzip\n{later}"),
                ),
            ],
        );
    }
}

#[test]
fn what_ends_early_is_an_error() {
    for block in [
        "ff", "40", "4001", "400161", "40016102", "40016181", "04", "3f", "7f80",
    ] {
        let mut decoder = Decoder::default();
        let decoded = decode(&mut decoder, &bytes(block));
        assert_eq!(decoded, Err(Error::Truncated), "{block}");
    }
}

/// RFC 7541, 2.3.3 and 6.1.
#[test]
fn indexes_have_to_be_in_a_table() {
    for (block, index) in [("80", 0), ("be", 62), ("7e00", 62), ("0f7000", 127)] {
        let decoded = decode(&mut Decoder::default(), &bytes(block));
        assert_eq!(decoded, Err(Error::IndexUnknown(index)), "{block}");
    }
}

#[test]
fn huffman_strings_are_checked() {
    // Padding of 8 bits behind "1"; EOS.
    let decoded = decode(&mut Decoder::default(), &bytes("0001 61 82 0fff"));
    assert_eq!(decoded, Err(Error::HuffmanPadding));
    let decoded = decode(&mut Decoder::default(), &bytes("0084 ffffffff 00"));
    assert_eq!(decoded, Err(Error::HuffmanEos));
}

/// RFC 7541, 4.2 and 6.3.
#[test]
fn size_updates_stand_first_and_stay_within_what_was_announced() {
    let mut decoder = Decoder::new(100);
    assert_eq!(
        decode(&mut decoder, &bytes("20 3f45 82")).map(|f| f.len()),
        Ok(1)
    );
    let too_large = Error::SizeUpdateTooLarge {
        asked: 101,
        allowed: 100,
    };
    assert_eq!(
        decode(&mut Decoder::new(100), &bytes("3f46")),
        Err(too_large)
    );
    let late = decode(&mut Decoder::new(100), &bytes("82 20"));
    assert_eq!(late, Err(Error::SizeUpdateLate));
}

#[test]
fn a_reduction_has_to_be_acknowledged() {
    let update_to_60 = bytes("3f1d 82");
    let update_to_61 = bytes("3f1e 82");
    let plain = bytes("82");
    let reduced = |sizes: &[u32]| {
        let mut decoder = Decoder::new(100);
        for &size in sizes {
            decoder.set_table_bytes_max(size);
        }
        decoder
    };
    let missing = Err(Error::SizeUpdateMissing);
    assert_eq!(decode(&mut reduced(&[60]), &plain), missing);
    assert_eq!(decode(&mut reduced(&[60]), &[]), missing);
    assert!(decode(&mut reduced(&[60]), &update_to_60).is_ok());
    assert!(decode(&mut reduced(&[60]), &update_to_61).is_err());
    // The least counts, also when more was allowed again.
    assert!(decode(&mut reduced(&[60, 100]), &update_to_61).is_err());
    assert!(decode(&mut reduced(&[60, 100]), &bytes("3f1d 3f45 82")).is_ok());
    // Nothing is owed by a peer that uses no more than that.
    assert!(decode(&mut reduced(&[100]), &plain).is_ok());
    assert!(decode(&mut reduced(&[200]), &plain).is_ok());
    let mut small = Decoder::new(100);
    assert!(decode(&mut small, &update_to_60).is_ok());
    small.set_table_bytes_max(80);
    assert!(decode(&mut small, &plain).is_ok());
    // A table that may grow does so with the peer's word.
    let mut grown = reduced(&[200]);
    assert!(decode(&mut grown, &bytes("3fa901 82")).is_ok());
    assert_eq!(grown.table.size_max(), 200);
}

#[test]
fn a_list_above_its_bound_is_decoded_for_the_table() {
    let mut decoder = Decoder::default();
    let mut lines = Lines::default();
    let block = bytes("82 400161 0162 400163 0164");
    let list_bytes = (42 + 34 + 34, 42 + 34);
    let decoded = decoder.decode(&block, list_bytes.1, &mut lines);
    let decoded = decoded.expect("a valid block");
    assert!(decoded.is_too_large());
    assert_eq!(decoded.list_bytes(), list_bytes.0);
    assert_eq!(lines.0, [":method: GET", "a: b"]);
    assert_eq!(table(&decoder), ["c: d", "a: b"]);
    assert_eq!(
        decode(&mut decoder, &bytes("be bf")),
        Ok(vec!["c: d".into(), "a: b".into()])
    );
}

/// A field that no longer fits does not let a shorter one behind it through: what the
/// sink has seen is the list's beginning.
#[test]
fn nothing_follows_what_was_left_out() {
    let mut lines = Lines::default();
    let block = bytes("0001 61 05 6262626262 82");
    let decoded = Decoder::default().decode(&block, 37, &mut lines);
    assert!(decoded.expect("a valid block").is_too_large());
    assert_eq!(lines.0, [""; 0]);
}

#[test]
fn an_endless_list_ends_the_connection() {
    let mut decoder = Decoder::default();
    let mut block = bytes("40 01 61 7f a11e");
    block.extend([b'v'; 4000]);
    let _ = decode(&mut decoder, &block).expect("a valid block");
    // 4 kB of list for each byte.
    let bomb = decoder.decode(&[0xbe; 16_000], 16_384, &mut Lines::default());
    let error = bomb.map(|_| ()).expect_err("64 MB");
    assert_eq!(error, Error::ListEndless);
    assert!(error.is_flood());
}

#[test]
fn churn_is_counted() {
    let mut decoder = Decoder::new(70);
    let _ = decode(&mut decoder, &bytes("400161 0162 400163 0164 400165 0166"));
    let churn = decoder.churn();
    assert_eq!((churn.insertions, churn.evictions), (3, 1));
}
