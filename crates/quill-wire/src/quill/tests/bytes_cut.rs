//! Bytes cut anywhere mean the same.

use super::*;
use crate::quill::frames::frame;
use proptest::prelude::*;
use quill_core::frame::Flags;

fn pieces<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    places.sort_unstable();
    let mut pieces = Vec::new();
    let mut from = 0;
    for place in places {
        pieces.push(&bytes[from..place]);
        from = place;
    }
    pieces.push(&bytes[from..]);
    pieces
}

/// One frame, legal or not, well filled or not.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let gzip = {
        let mut bytes = bytes::BytesMut::new();
        let encoding = quill_core::compression::Encoding::Gzip;
        quill_core::compression::compress(encoding, 1, b"squeezed", &mut bytes).unwrap();
        bytes.to_vec()
    };
    let small = prop::collection::vec(any::<u8>(), 0..30);
    prop_oneof![
        6 => small.clone().prop_map(|p| frame(Flags::DATA, &p)),
        2 => Just(frame(Flags::COMPRESSED, &gzip)),
        1 => small.clone().prop_map(|p| frame(Flags::COMPRESSED, &p)),
        1 => small.clone().prop_map(|p| frame(Flags::DATA_END, &p)),
        1 => Just(frame(Flags::END_STREAM, b"")),
        1 => Just(frame(Flags::CANCEL, b"")),
        2 => (1_u8..128).prop_map(|n| frame(Flags::CREDIT, &[n])),
        1 => Just(frame(Flags::METADATA, b"\x01a\x011\x05b-bin\x01\xff")),
        1 => Just(frame(Flags::PROBLEM, br#"{"code":"aborted","detail":"x"}"#)),
        1 => small,
    ]
}

proptest! {
    #[test]
    fn frames_mean_the_same_however_they_are_cut(
        frames in prop::collection::vec(any_frame(), 0..8),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        credits: bool,
        is_finished: bool,
    ) {
        let bytes = frames.concat();
        let mut fields = vec![("quill-encoding", "gzip")];
        if credits {
            fields.push(("quill-credits", "5"));
        }
        let kind = MethodKind::BidiStreaming;
        let request = post("application/quill-stream+proto", &fields);
        let whole = read(&mut open(&request, kind).decoder(Side::Server), &[&bytes], is_finished);
        let cut = pieces(&bytes, &cuts);
        let other = read(&mut open(&request, kind).decoder(Side::Server), &cut, is_finished);
        prop_assert_eq!(&whole, &other);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        let other = read(&mut open(&request, kind).decoder(Side::Server), &single, is_finished);
        prop_assert_eq!(&whole, &other);

        let call = outgoing(kind, WireOptions { credits: credits.then_some(5), ..options() });
        if credits {
            fields[1] = ("quill-credits", "16");
        }
        let head = answer_head("application/quill-stream+proto", &fields);
        let client = |pieces: &[&[u8]]| {
            let call = call.clone();
            let mut decoder = call.decoder(Side::Client);
            decoder.head(&head).unwrap();
            read(&mut decoder, pieces, is_finished)
        };
        prop_assert_eq!(client(&[&bytes]), client(&cut));
        prop_assert_eq!(client(&[&bytes]), client(&single));
    }

    #[test]
    fn bare_bodies_mean_the_same_however_they_are_cut(
        body in prop::collection::vec(any::<u8>(), 0..60),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        status in prop::sample::select(vec![200_u16, 404, 500]),
        is_json: bool,
    ) {
        let cut = pieces(&body, &cuts);
        let request = post("application/quill+proto", &[]);
        let server = |pieces: &[&[u8]]| {
            let small = WireOptions { receive_bytes_max: 50, ..options() };
            let (call, _) = open_with(&request, method(MethodKind::Unary), small).unwrap();
            read(&mut call.decoder(Side::Server), pieces, true)
        };
        prop_assert_eq!(server(&[&body]), server(&cut));

        let call = outgoing(MethodKind::Unary, options());
        let content_type = if is_json { "application/problem+json" } else { "application/quill+proto" };
        let mut head = answer_head(content_type, &[]);
        head.status = status;
        let client = |pieces: &[&[u8]]| {
            let mut decoder = call.decoder(Side::Client);
            decoder.head(&head).unwrap();
            read(&mut decoder, pieces, true)
        };
        prop_assert_eq!(client(&[&body]), client(&cut));
    }

    #[test]
    fn what_is_held_is_bounded_by_what_was_fed(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8),
    ) {
        for kind in [MethodKind::Unary, MethodKind::BidiStreaming] {
            let head = outgoing(kind, options()).request();
            let mut decoder = open(&head, kind).decoder(Side::Server);
            let mut fed = 0;
            for piece in &pieces {
                fed += piece.len();
                decoder.feed(Bytes::copy_from_slice(piece));
                while let Ok(Some(_)) = decoder.next() {}
                decoder.hold();
                prop_assert!(decoder.held_bytes() <= (2 * fed).max(4096));
            }
        }
    }
}
