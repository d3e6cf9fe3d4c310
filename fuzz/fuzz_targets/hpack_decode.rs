//! Any header blocks, a length before each: decoded within their bounds or refused. What
//! was decoded arrives the same when it is encoded again, and a block whose meaning was
//! remembered means what decoding it says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quill_h2::hpack::{Decoder, Encoder, Error, Field, Memo, Sink};

const LIST_BYTES_MAX: usize = 4000;

#[derive(Clone, Debug, Default, PartialEq)]
struct List(Vec<(Vec<u8>, Vec<u8>, bool)>);

impl Sink for List {
    fn field(&mut self, field: Field<'_>) {
        let Field {
            name,
            value,
            never_indexed,
        } = field;
        self.0.push((name.into(), value.into(), never_indexed));
    }
}

fuzz_target!(|input: &[u8]| {
    let (mut decoder, mut twin) = (Decoder::new(1000), Decoder::new(1000));
    let (mut encoder, mut peer) = (Encoder::new(), Decoder::default());
    let mut memo = Memo::new();
    let mut rest = input;
    while let Some((&len, tail)) = rest.split_first() {
        let (block, tail) = tail.split_at(tail.len().min(usize::from(len)));
        rest = tail;
        // Now and then the table's bound changes, as SETTINGS do it.
        if len % 16 == 15 {
            let size = u32::from(len) * 4;
            decoder.set_table_bytes_max(size);
            twin.set_table_bytes_max(size);
            encoder.set_table_bytes_max(size);
            peer.set_table_bytes_max(size);
        }
        let mut list = List::default();
        let Some(is_too_large) = decoded(&mut twin, block, &mut list) else {
            assert!(memo.recall(&decoder, block, LIST_BYTES_MAX).is_none());
            assert!(decoded(&mut decoder, block, &mut List::default()).is_none());
            return;
        };
        if let Some(recalled) = memo.recall(&decoder, block, LIST_BYTES_MAX) {
            assert_eq!((recalled, is_too_large), (&list, false));
        } else {
            let mut again = List::default();
            let result = decoder.decode(block, LIST_BYTES_MAX, &mut again);
            memo.remember(&result.expect("as the twin says"), || again.clone());
            assert_eq!(again, list);
        }
        round_trip(&mut encoder, &mut peer, &list);
    }
});

/// Whether the list was too large; none when the block is broken.
fn decoded(decoder: &mut Decoder, block: &[u8], list: &mut List) -> Option<bool> {
    let result: Result<_, Error> = decoder.decode(block, LIST_BYTES_MAX, list);
    let decoded = result.ok()?;
    let bytes = |(name, value, _): &(Vec<u8>, Vec<u8>, bool)| name.len() + value.len() + 32;
    let bytes: usize = list.0.iter().map(bytes).sum();
    assert!(bytes <= LIST_BYTES_MAX);
    assert_eq!(decoded.is_too_large(), bytes < decoded.list_bytes());
    Some(decoded.is_too_large())
}

fn round_trip(encoder: &mut Encoder, peer: &mut Decoder, list: &List) {
    let mut block = Vec::new();
    for (name, value, never_indexed) in &list.0 {
        encoder.field(name, value, *never_indexed, &mut block);
    }
    if block.is_empty() {
        // A size update that is owed goes with a field.
        encoder.field(b":status", b"200", false, &mut block);
    }
    let mut arrived = List::default();
    let result = peer.decode(&block, LIST_BYTES_MAX, &mut arrived);
    assert!(!result.expect("what we encode is valid").is_too_large());
    if list.0.is_empty() {
        return;
    }
    assert_eq!(arrived.0.len(), list.0.len());
    for (arrived, sent) in arrived.0.iter().zip(&list.0) {
        assert_eq!((&arrived.0, &arrived.1), (&sent.0, &sent.1));
        assert!(arrived.2 || !sent.2);
    }
}
