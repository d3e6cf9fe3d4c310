//! The lines of a dump, and JSON.

use bytes::BytesMut;
use quill_core::compression::{Encoding, compress};
use quill_explain::{Container, Form, View};

use crate::{explained, lines, options, order};

/// An order with a field of every kind, and two that the schema does not have.
pub(crate) const ORDER: &[u8] = b"\x0a\x02ab\x10\x96\x01\x1a\x03\x01\x02\x03\
    \x22\x0e\x0a\x01a\x12\x09\x0a\x02s1\x15\x00\x00\xc0\x3f\
    \x2a\x04\x0a\x02s2\x30\x01\x39\x00\x00\x00\x00\x00\x00\xf8\x3f\
    \x40\x03\x4a\x02\xff\xfe\x55\x07\x00\x00\x00\x58\x01\xf8\x06\x05\x82\x07\x02ab";

#[test]
fn fields_have_names_and_values() {
    let schema = order();
    let (text, summary) = explained(ORDER, &options(|o| o.schema = Some(schema)));
    assert_eq!(summary.faults, 0, "{text}");
    let expected = [
        r#"00000000 1:LEN     id = "ab""#,
        "00000004 2:VARINT  count = 150",
        "00000007 3:LEN     sizes = [1, 2, 3]",
        "0000000c 4:LEN     items = entry {",
        r#"0000000e   1:LEN     key = "a""#,
        "00000011   2:LEN     value = shop.v1.Item {",
        r#"00000013     1:LEN     sku = "s1""#,
        "00000017     2:I32     price = 1.5",
        "0000001c   }",
        "0000001c }",
        "0000001c 5:LEN     first = shop.v1.Item {",
        r#"0000001e   1:LEN     sku = "s2""#,
        "00000022 }",
        "00000022 6:VARINT  status = STATUS_OPEN (1)",
        "00000024 7:I64     weight = 1.5",
        "0000002d 8:VARINT  balance = -2",
        "0000002f 9:LEN     blob = 2 bytes: ff fe",
        "00000033 10:I32    code = 7",
        "00000038 11:VARINT gift = true",
        "0000003a 111:VARINT (unknown) = 5",
        r#"0000003d 112:LEN   (unknown) = "ab""#,
    ];
    assert_eq!(lines(&text), expected);
    assert!(
        text.starts_with("00000000  0a 02 61 62                 1:LEN"),
        "{text}"
    );
}

#[test]
fn without_a_schema_fields_are_guessed() {
    let (text, _) = explained(ORDER, &options(|_| {}));
    let lines = lines(&text);
    for line in [
        r#"00000000 1:LEN     "ab""#,
        "00000007 3:LEN     3 bytes: 01 02 03",
        "0000000c 4:LEN     message? {",
        "00000011   2:LEN     message? {",
        "00000017     2:I32     1069547520 (float 1.5)",
        "00000024 7:I64     4609434218613702656 (double 1.5)",
    ] {
        assert!(lines.iter().any(|l| l == line), "{line}: {lines:#?}");
    }
}

#[test]
fn a_message_is_json_too() {
    let schema = order();
    let options = options(|o| {
        o.schema = Some(schema);
        o.view = View::Json;
    });
    let (json, _) = explained(b"\x0a\x02hi\x10\x96\x01", &options);
    assert_eq!(json, "{\"id\":\"hi\",\"count\":150}\n");
    // Of a stream the messages alone.
    let stream = b"\x04\x01\x0a\x02hi\x06\x20\x03x-a\x011\x00\x02";
    let (json, summary) = explained(stream, &options);
    assert_eq!((&json[..], summary.messages), ("{\"id\":\"hi\"}\n", 1));
    let (json, summary) = explained(b"\x0a\x05hi", &options);
    assert_eq!(json, "");
    assert!(
        summary
            .first_fault
            .unwrap()
            .contains("no valid shop.v1.Order")
    );
}

#[test]
fn what_carries_messages_is_shown() {
    for (bytes, said) in [
        (
            &b"\x04\x01\x0a\x02hi\x06\x20\x03x-a\x011\x02\x08\xac\x02\x00\x02"[..],
            &[
                "00000000 frame of Quill, DATA, 4 bytes",
                "00000002 1:LEN     \"hi\"",
                "00000006 frame of Quill, METADATA, 6 bytes",
                "00000008   x-a: 1",
                "0000000e frame of Quill, CREDIT, 2 bytes",
                "00000010   300 more messages are taken",
                "00000012 frame of Quill, END_STREAM, 0 bytes",
            ][..],
        ),
        (
            b"\x00\x00\x00\x00\x04\x0a\x02hi\x80\x00\x00\x00\x21grpc-status: 5\r\ngrpc-message: \x1b\r\n",
            &[
                "00000000 envelope of gRPC, gRPC-Web or Connect, 4 bytes",
                "00000005 1:LEN     \"hi\"",
                "00000009 trailers of gRPC-Web, 33 bytes",
                "0000000e   grpc-status: 5",
                "0000000e   grpc-message: \\u{1b}",
            ],
        ),
        (
            b"\x02\x00\x00\x00\x20{\"error\":{\"code\":\"unavailable\"}}",
            &[
                "00000000 end of a stream of Connect, 32 bytes",
                "00000005   {",
                "00000005     \"error\": {",
                "00000005       \"code\": \"unavailable\"",
                "00000005     }",
                "00000005   }",
            ],
        ),
        (
            b"{\"title\":\"Gone\",\"status\":410}",
            &[
                "00000000 problem details (application/problem+json)",
                "00000000   {",
                "00000000     \"status\": 410,",
                "00000000     \"title\": \"Gone\"",
                "00000000   }",
            ],
        ),
        (
            b"{\"code\":\"internal\"}",
            &[
                "00000000 error of Connect (application/json)",
                "00000000   {",
                "00000000     \"code\": \"internal\"",
                "00000000   }",
            ],
        ),
    ] {
        let (text, summary) = explained(bytes, &options(|_| {}));
        assert_eq!(lines(&text), said);
        assert_eq!(summary.faults, 0);
    }
}

#[test]
fn compressed_messages_are_decompressed() {
    let message = b"\x0a\x20aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    for encoding in [Encoding::Gzip, Encoding::Zstd] {
        let mut packed = BytesMut::new();
        compress(encoding, 3, message, &mut packed).unwrap();
        let length = u32::try_from(packed.len()).unwrap().to_be_bytes();
        let envelope = [&[1][..], &length, &packed].concat();
        for given in [None, Some(encoding)] {
            let (text, summary) = explained(&envelope, &options(|o| o.encoding = given));
            assert!(text.contains("decompressed, 34 bytes"), "{text}");
            assert!(text.contains("1:LEN     \"aaaa"), "{text}");
            assert_eq!(summary.faults, 0);
        }
        // As a whole, as a unary call of Connect has it.
        let (text, _) = explained(&packed, &options(|_| {}));
        let title = format!("body compressed with {}", encoding.name());
        assert!(text.contains(&title) && text.contains("\"aaaa"), "{text}");
        let (text, summary) = explained(&envelope[..envelope.len() - 1], &options(|_| {}));
        assert_eq!(summary.faults, 2, "{text}");
    }
    let (text, summary) = explained(b"\x01\x00\x00\x00\x01\x07", &options(|_| {}));
    assert!(text.contains("--encoding"), "{text}");
    assert_eq!(summary.faults, 1);
}

#[test]
fn what_is_wrong_is_said_where_it_is() {
    for (bytes, container, said) in [
        (
            &b"\x0a\x05hi"[..],
            Container::Message,
            "3 bytes are missing",
        ),
        (
            b"\x08",
            Container::Message,
            "00000001 !! a number that is cut off",
        ),
        (
            b"\x07\x01",
            Container::Message,
            "00000000 !! no tag: field 0, wire type 7",
        ),
        (b"\x0b\x08\x01", Container::Message, "group 1 does not end"),
        (
            b"\x0c",
            Container::Message,
            "the end of group 1, which did not begin",
        ),
        (
            b"\x0d\x01",
            Container::Message,
            "a number of 4 bytes that is cut off",
        ),
        (b"\x05\xff", Container::Quill, "no frame of Quill"),
        (
            b"\x00\x00\x00",
            Container::Envelopes,
            "an envelope's header that is cut off",
        ),
        (
            b"\x09\x00\x00\x00\x00",
            Container::Envelopes,
            "no envelope: flags 0x09",
        ),
        (
            b"\x00\xff\xff\xff\xff\x08",
            Container::Envelopes,
            "bytes of a payload are missing",
        ),
        (b"{", Container::Json, "no JSON"),
    ] {
        let (text, summary) = explained(bytes, &options(|o| o.container = Some(container)));
        assert!(
            lines(&text).iter().any(|line| line.contains(said)),
            "{said}: {text}"
        );
        assert!(summary.faults > 0);
    }
    // The message after a broken one is read all the same.
    let stream = b"\x00\x00\x00\x00\x01\x07\x00\x00\x00\x00\x02\x08\x01";
    let (text, summary) = explained(stream, &options(|_| {}));
    assert!(text.ends_with("1:VARINT  1\n"), "{text}");
    assert_eq!((summary.messages, summary.faults), (2, 1));
}

#[test]
fn long_values_are_cut() {
    let text = "ü".repeat(500);
    let message = [b"\x0a\xe8\x07".as_slice(), text.as_bytes()].concat();
    let (dump, _) = explained(&message, &options(|_| {}));
    assert!(
        dump.contains("ü\".. (1000 bytes)") && dump.len() < 300,
        "{dump}"
    );
}

#[test]
fn text_forms_lead_to_bytes() {
    use std::io::Read as _;
    let web = "AAAAAAQKAmhpgAAAABBncnBjLXN0YXR1czogMA0K";
    let mut bytes = Vec::new();
    let form = Form::recognise(web.as_bytes());
    form.read(web.as_bytes()).read_to_end(&mut bytes).unwrap();
    let (text, _) = explained(&bytes, &options(|_| {}));
    assert!(text.contains("grpc-status: 0"), "{text}");
}
