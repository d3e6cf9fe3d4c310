//! HPACK with itself: whatever fields are sent over whatever tables, they arrive; and
//! whatever bytes arrive, the decoder stays within its bounds.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use quill_h2::hpack::{Decoder, Encoder, Error, Field, Memo, Sink};

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// A name, a value, and whether it is sensitive.
type Flagged = (Vec<u8>, Vec<u8>, bool);

const LIST_BYTES_MAX: usize = 64 * 1024;

#[derive(Default)]
struct List {
    fields: Fields,
    never_indexed: Vec<bool>,
}

impl Sink for List {
    fn field(&mut self, field: Field<'_>) {
        self.fields.push((field.name.into(), field.value.into()));
        self.never_indexed.push(field.never_indexed);
    }
}

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<List, Error> {
    let mut list = List::default();
    let decoded = decoder.decode(block, LIST_BYTES_MAX, &mut list)?;
    assert!(!decoded.is_too_large());
    Ok(list)
}

/// Names that the static table has, that repeat, and any.
fn name() -> impl Strategy<Value = Vec<u8>> {
    const KNOWN: [&str; 9] = [
        ":status",
        ":path",
        ":method",
        "content-type",
        "date",
        "te",
        "grpc-status",
        "x-a",
        "",
    ];
    prop_oneof![
        4 => select(&KNOWN[..]).prop_map(|name| name.as_bytes().to_vec()),
        1 => vec(b'a'..=b'z', 0..40),
        1 => vec(any::<u8>(), 0..20),
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    const KNOWN: [&str; 7] = ["200", "POST", "/", "application/grpc", "0", "", "trailers"];
    prop_oneof![
        4 => select(&KNOWN[..]).prop_map(|value| value.as_bytes().to_vec()),
        2 => (0..30_u32).prop_map(|number| number.to_string().into_bytes()),
        1 => vec(b' '..=b'~', 0..200),
        1 => vec(any::<u8>(), 0..2000),
    ]
}

/// A block, and the sizes of table that are announced before it.
fn block() -> impl Strategy<Value = (Vec<u32>, Vec<Flagged>)> {
    let size = prop_oneof![Just(0), 0..300_u32, Just(4096), 0..10_000_u32];
    let field = (name(), value(), prop::bool::weighted(0.1));
    let sizes = prop_oneof![4 => Just(Vec::new()), 1 => vec(size, 1..4)];
    (sizes, vec(field, 0..8))
}

proptest! {
    #[test]
    fn fields_arrive_as_they_were_sent(blocks in vec(block(), 1..40)) {
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::default());
        for (sizes, fields) in blocks {
            for size in sizes {
                encoder.set_table_bytes_max(size);
                decoder.set_table_bytes_max(size);
            }
            // What stands before is not the encoder's.
            let mut out = b"frame".to_vec();
            for (name, value, sensitive) in &fields {
                encoder.field(name, value, *sensitive, &mut out);
            }
            // A reduction waits for a field to be said with.
            if fields.is_empty() {
                encoder.field(b":status", b"200", false, &mut out);
            }
            let list = decode(&mut decoder, &out[5..]).expect("a valid block");
            if fields.is_empty() {
                continue;
            }
            let sent: Fields = fields.iter().map(|(n, v, _)| (n.clone(), v.clone())).collect();
            prop_assert_eq!(list.fields, sent);
            let flags = list.never_indexed.iter().zip(&fields);
            for (never_indexed, (_, _, sensitive)) in flags {
                prop_assert!(*never_indexed || !sensitive);
            }
        }
    }

    /// A block cut short, or with bytes changed, is decoded or refused; and what was
    /// remembered of a block is what decoding it again would give.
    #[test]
    fn broken_blocks_are_bounded(
        blocks in vec(vec((name(), value()), 0..8), 1..10),
        cut in any::<Option<Index>>(),
        changes in vec((any::<Index>(), any::<u8>()), 0..4),
    ) {
        let mut encoder = Encoder::new();
        let (mut decoder, mut twin) = (Decoder::new(300), Decoder::new(300));
        encoder.set_table_bytes_max(300);
        let mut memo = Memo::new();
        for fields in blocks {
            let mut out = Vec::new();
            for (name, value) in &fields {
                encoder.field(name, value, false, &mut out);
            }
            if let Some(cut) = cut {
                out.truncate(cut.index(out.len() + 1));
            }
            for (at, byte) in &changes {
                if !out.is_empty() {
                    let at = at.index(out.len());
                    out[at] = *byte;
                }
            }
            let expected = decode(&mut twin, &out);
            if let Some(recalled) = memo.recall(&decoder, &out, LIST_BYTES_MAX) {
                prop_assert_eq!(Ok(recalled), expected.as_ref().map(|list| &list.fields));
                continue;
            }
            let mut list = List::default();
            let Ok(decoded) = decoder.decode(&out, LIST_BYTES_MAX, &mut list) else {
                prop_assert!(expected.is_err());
                return Ok(());
            };
            prop_assert_eq!(&list.fields, &expected.expect("the same verdict").fields);
            memo.remember(&decoded, || list.fields);
        }
    }

    #[test]
    fn any_bytes_are_bounded(blocks in vec(vec(any::<u8>(), 0..300), 1..6), bound in 0..2000_usize) {
        let mut decoder = Decoder::default();
        for block in blocks {
            let mut list = List::default();
            let Ok(decoded) = decoder.decode(&block, bound, &mut list) else {
                break;
            };
            let bytes = list.fields.iter().map(|(n, v)| n.len() + v.len() + 32).sum::<usize>();
            prop_assert!(bytes <= bound);
            prop_assert_eq!(decoded.is_too_large(), bytes < decoded.list_bytes());
            prop_assert!(decoded.list_bytes() / 16 <= bound);
        }
    }
}
