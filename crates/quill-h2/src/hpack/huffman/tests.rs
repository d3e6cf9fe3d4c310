use super::*;

fn encoded(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode(text, &mut out);
    assert_eq!(out.len(), encoded_len(text));
    out
}

fn decoded(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let mut out = vec![0; decoded_len_max(bytes.len())];
    let len = decode(bytes, &mut out)?;
    out.truncate(len);
    Ok(out)
}

/// Every code of a complete prefix code is used: with EOS the shares add up to one.
#[test]
fn the_code_is_complete() {
    let share = |bits: u32| 1_u64 << (30 - bits);
    let octets: u64 = CODES.iter().map(|symbol| share(symbol.bits)).sum();
    assert_eq!(octets + share(30), 1 << 30);
    assert!(CODES.iter().all(|symbol| symbol.bits != 0));
}

/// Lines of RFC 7541, Appendix B, from each group of lengths.
#[test]
fn codes_of_the_rfc() {
    for (octet, code, bits) in [
        (b'0', 0x0, 5),
        (b' ', 0x14, 6),
        (b':', 0x5c, 7),
        (b'&', 0xf8, 8),
        (b'!', 0x3f8, 10),
        (b'|', 0x7fc, 11),
        (b'#', 0xffa, 12),
        (0, 0x1ff8, 13),
        (b'~', 0x1ffd, 13),
        (b'^', 0x3ffc, 14),
        (b'{', 0x7ffe, 15),
        (b'\\', 0x7fff0, 19),
        (128, 0xfffe6, 20),
        (230, 0x1f_ffe8, 21),
        (129, 0x3f_ffd2, 22),
        (1, 0x7f_ffd8, 23),
        (9, 0xff_ffea, 24),
        (207, 0x1ff_ffed, 25),
        (255, 0x3ff_ffee, 26),
        (254, 0x7ff_fff0, 27),
        (249, 0xfff_fffe, 28),
        (10, 0x3fff_fffc, 30),
        (22, 0x3fff_fffe, 30),
    ] {
        let symbol = CODES[usize::from(octet)];
        assert_eq!((symbol.code, symbol.bits), (code, bits), "{octet}");
    }
}

#[test]
fn there_and_back() {
    let all: Vec<u8> = (0..=255).collect();
    assert_eq!(decoded(&encoded(&all)), Ok(all.clone()));
    for octet in 0..=255 {
        for len in 0..24 {
            let text = vec![octet; len];
            assert_eq!(decoded(&encoded(&text)), Ok(text));
        }
    }
    let text = b"/greet.v1.GreetService/Greet?deadline=20ms&user-agent=x~y";
    for end in 0..text.len() {
        assert_eq!(decoded(&encoded(&text[..end])), Ok(text[..end].to_vec()));
    }
}

#[test]
fn padding_is_at_most_seven_ones() {
    // "1" is 00001; the last three bits pad.
    assert_eq!(decoded(&[0b0000_1111]), Ok(b"1".to_vec()));
    assert_eq!(decoded(&[0b0000_1110]), Err(Error::HuffmanPadding));
    assert_eq!(decoded(&[0b0000_1011]), Err(Error::HuffmanPadding));
    assert_eq!(decoded(&[0b0000_1111, 0xff]), Err(Error::HuffmanPadding));
    assert_eq!(decoded(&[0xff]), Err(Error::HuffmanPadding));
    // 7 bits of it are allowed: "!" has 10 bits, ":" 7, and ends with a zero.
    let seven = encoded(b"!:");
    assert_eq!(seven.last(), Some(&0b0111_1111));
    assert_eq!(decoded(&seven), Ok(b"!:".to_vec()));
    // A code cut short.
    let long = encoded(&[10]);
    for end in 1..long.len() {
        assert_eq!(decoded(&long[..end]), Err(Error::HuffmanPadding));
    }
}

#[test]
fn eos_is_an_error_wherever_it_stands() {
    assert_eq!(decoded(&[0xff; 4]), Err(Error::HuffmanEos));
    let mut inside = encoded(b"&");
    inside.extend([0xff, 0xff, 0xff, 0xfc, 0x0f, 0xff, 0xff]);
    assert_eq!(decoded(&inside), Err(Error::HuffmanEos));
}
