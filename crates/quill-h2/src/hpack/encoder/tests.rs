use super::*;
use crate::hpack::{Decoder, Field, Sink};

/// The fields of a block, a line each; `!` stands before one that is never indexed.
struct Lines(Vec<String>);

impl Sink for Lines {
    fn field(&mut self, field: Field<'_>) {
        let mark = if field.never_indexed { "!" } else { "" };
        let [name, value] = [field.name, field.value].map(|text| text.escape_ascii());
        self.0.push(format!("{mark}{name}: {value}"));
    }
}

/// An encoder, and the decoder at the other end.
struct Ends(Encoder, Decoder);

impl Ends {
    fn new() -> Self {
        Self(Encoder::new(), Decoder::default())
    }

    /// Sends a block, checks what arrives, and returns its bytes.
    fn send(&mut self, fields: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        for (name, value) in fields {
            let sensitive = name.starts_with('!');
            let name = name.trim_start_matches('!').as_bytes();
            self.0.field(name, value.as_bytes(), sensitive, &mut block);
        }
        let mut lines = Lines(Vec::new());
        let decoded = self.1.decode(&block, 100_000, &mut lines);
        let _ = decoded.expect("a valid block");
        let sent: Vec<_> = fields.iter().map(|(n, v)| format!("{n}: {v}")).collect();
        assert_eq!(lines.0, sent);
        block
    }
}

#[test]
fn a_repeated_head_takes_a_byte_a_field() {
    let head = [
        (":status", "200"),
        ("content-type", "application/grpc"),
        ("grpc-encoding", "gzip"),
        ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
    ];
    let mut ends = Ends::new();
    let first = ends.send(&head);
    let second = ends.send(&head);
    assert!(first.len() > second.len(), "{first:x?} {second:x?}");
    assert_eq!(ends.send(&head).len(), head.len());
    assert_eq!(
        ends.send(&[("grpc-status", "0")])[..],
        b"\x40\x88\x9a\xca\xc8\xb2\x12\x34\xda\x8f\x010"[..]
    );
    assert_eq!(ends.send(&[("grpc-status", "0")]), [0xbe]);
}

#[test]
fn a_value_of_one_use_pushes_nothing_out() {
    let mut ends = Ends::new();
    let mut lens = Vec::new();
    for call in 0..1000 {
        let timeout = format!("{}u", 100_000 + call);
        let length = (1000 + call).to_string();
        let block = ends.send(&[("grpc-timeout", &timeout), ("content-length", &length)]);
        lens.push(block.len());
    }
    // The index of the name in two bytes and eight; that of the other in two, and five.
    // Rarely a value has the mark of the one before it, and is taken for it.
    let usual = lens[1..].iter().filter(|&&len| len == 9 + 8).count();
    assert!(usual > 990, "{lens:?}");
    let insertions = ends.0.table.churn().insertions;
    assert!(insertions < 10, "{insertions}");
}

#[test]
fn secrets_are_in_no_table() {
    let mut ends = Ends::new();
    let secrets = [
        ("authorization", "Bearer abc"),
        ("cookie", "short"),
        ("set-cookie", "a=b"),
        ("proxy-authorization", "Basic abc"),
        ("x-api-key", "abc"),
    ];
    for _ in 0..3 {
        let mut block = Vec::new();
        for (name, value) in secrets {
            let (name, value) = (name.as_bytes(), value.as_bytes());
            ends.0.field(name, value, name == b"x-api-key", &mut block);
        }
        let mut lines = Lines(Vec::new());
        let decoded = ends.1.decode(&block, 100_000, &mut lines);
        let _ = decoded.expect("a valid block");
        assert!(
            lines.0.iter().all(|line| line.starts_with('!')),
            "{:?}",
            lines.0
        );
        assert_eq!(lines.0.len(), secrets.len());
    }
    assert_eq!(ends.0.table.len(), 0);
    // What is sensitive now may be in the table from before, and stays out of this block.
    ends.send(&[("x-id", "7")]);
    assert_ne!(ends.send(&[("!x-id", "7")]), [0xbe]);
    // Even where the static table has it.
    assert_ne!(ends.send(&[("!:method", "GET")]), [0x82]);
}

#[test]
fn a_long_cookie_is_indexed() {
    let mut ends = Ends::new();
    let cookie = [("cookie", "session=0123456789abcdef")];
    ends.send(&cookie);
    ends.send(&cookie);
    assert_eq!(ends.send(&cookie), [0xbe]);
}

/// RFC 7541, 4.2.
#[test]
fn size_updates_come_first_the_least_before_the_last() {
    let mut ends = Ends::new();
    ends.send(&[("a", "b")]);
    ends.0.set_table_bytes_max(0);
    ends.0.set_table_bytes_max(100);
    ends.1.set_table_bytes_max(0);
    ends.1.set_table_bytes_max(100);
    let block = ends.send(&[("a", "b")]);
    assert_eq!(block[..3], [0x20, 0x3f, 0x45]);
    // Nothing changed, nothing is said.
    ends.0.set_table_bytes_max(100);
    assert_eq!(ends.send(&[(":status", "200")]), [0x88]);
    ends.0.set_table_bytes_max(0);
    ends.1.set_table_bytes_max(0);
    assert_eq!(ends.send(&[(":status", "200")]), [0x20, 0x88]);
    let literal = ends.send(&[("a", "b")]);
    assert_eq!(ends.send(&[("a", "b")]), literal);
}

#[test]
fn the_table_stays_at_its_bound_when_the_peer_allows_more() {
    let mut ends = Ends::new();
    ends.0.set_table_bytes_max(u32::MAX);
    assert_eq!(ends.send(&[(":status", "200")]), [0x88]);
    assert_eq!(ends.0.table.size_max(), 4096);
}

#[test]
fn a_large_field_pushes_nothing_out() {
    let mut ends = Ends::new();
    let large = "v".repeat(5000);
    ends.send(&[("a", "b")]);
    for _ in 0..3 {
        ends.send(&[("x-large", &large), ("a", "b")]);
    }
    assert_eq!(ends.0.table.len(), 1);
}

/// More insertions than the numbers of 16 bits can tell apart.
#[test]
fn numbers_of_insertions_wrap() {
    let mut ends = Ends::new();
    for name in 0..70_000 {
        ends.send(&[(&format!("x-{name}"), "1")]);
    }
    let last = ("x-69999", "1");
    assert_eq!(ends.send(&[last]), [0xbe]);
}

#[test]
fn what_the_table_has_is_found_again_after_a_rest() {
    let mut ends = Ends::new();
    let fields = [("x-a", "1"), ("content-type", "application/x"), ("te", "t")];
    for _ in 0..2 {
        ends.send(&fields);
    }
    let short = ends.send(&fields);
    assert_eq!(short.len(), fields.len());
    ends.0.release_scratch();
    assert_eq!(ends.send(&fields), short);
}
