//! Bytes that mean no good.

use proptest::prelude::*;
use quill_explain::{Container, View};

use crate::shown::ORDER;
use crate::{explained, options, order};

const CONTAINERS: [Option<Container>; 5] = [
    None,
    Some(Container::Message),
    Some(Container::Quill),
    Some(Container::Envelopes),
    Some(Container::Json),
];

#[test]
fn depth_has_a_limit() {
    // Messages in messages, groups in groups, and what the schema nests.
    let mut nested = Vec::new();
    for _ in 0..2000 {
        let length = nested.len();
        let mut outer = vec![0x62];
        buffa::encoding::encode_varint(length as u64, &mut outer);
        outer.append(&mut nested);
        nested = outer;
    }
    let groups = vec![0x0b; 100_000];
    for bytes in [&nested, &groups] {
        for schema in [None, Some(order())] {
            let options = options(|o| {
                o.schema = schema;
                o.container = Some(Container::Message);
            });
            let (text, summary) = explained(bytes, &options);
            assert!(text.contains("nests deeper than 100"), "{summary:?}");
            assert!(text.len() < 100_000);
        }
    }
}

#[test]
fn a_length_takes_no_memory() {
    for bytes in [
        &b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"[..],
        b"\x00\xff\xff\xff\xff",
        b"\xff\xff\xff\xff\x0f\x01",
    ] {
        for container in CONTAINERS {
            for view in [View::Dump, View::Json] {
                let schema = Some(order());
                let options = options(|o| {
                    o.container = container;
                    o.view = view;
                    o.schema = schema;
                });
                explained(bytes, &options);
            }
        }
    }
}

#[test]
fn cut_anywhere_it_ends() {
    for end in 0..ORDER.len() {
        explained(&ORDER[..end], &options(|_| {}));
        let schema = Some(order());
        explained(&ORDER[..end], &options(|o| o.schema = schema));
    }
}

proptest! {
    #[test]
    fn any_bytes_are_explained(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        container in 0..CONTAINERS.len(),
        typed: bool,
        json: bool,
    ) {
        let schema = typed.then(order);
        let options = options(|o| {
            o.container = CONTAINERS[container];
            o.schema = schema;
            o.view = if json { View::Json } else { View::Dump };
        });
        let (text, summary) = explained(&bytes, &options);
        prop_assert!(!text.contains(|c: char| c.is_control() && c != '\n'));
        prop_assert_eq!(summary.first_fault.is_some(), summary.faults > 0);
    }

    /// Changed a little, so that more of it is read.
    #[test]
    fn damaged_messages_are_explained(
        places in proptest::collection::vec((0..ORDER.len(), any::<u8>()), 1..4),
        typed: bool,
    ) {
        let mut bytes = ORDER.to_vec();
        for (place, byte) in places {
            bytes[place] = byte;
        }
        let schema = typed.then(order);
        explained(&bytes, &options(|o| o.schema = schema));
    }
}
