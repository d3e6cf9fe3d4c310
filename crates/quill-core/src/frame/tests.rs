use super::*;
use proptest::prelude::*;

/// Everything a decoder says about bytes that arrive in these chunks.
#[derive(Debug, PartialEq)]
struct Heard {
    frames: Vec<Frame>,
    end: Result<(), FrameError>,
}

fn hear<'a>(payload_bytes_max: usize, chunks: impl IntoIterator<Item = &'a [u8]>) -> Heard {
    let mut decoder = FrameDecoder::new(payload_bytes_max);
    let mut frames = Vec::new();
    for chunk in chunks {
        let mut input = Bytes::copy_from_slice(chunk);
        loop {
            match decoder.decode(&mut input) {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => {
                    let more = decoder.decode(&mut Bytes::from_static(b"\x00\x01"));
                    assert_eq!(more, Err(error), "an error is final");
                    assert_eq!(decoder.held_bytes(), 0, "nothing is held after an error");
                    return Heard {
                        frames,
                        end: Err(error),
                    };
                }
            }
        }
        let header_and_payload = FrameHeader::BYTES_MAX + payload_bytes_max;
        assert!(
            decoder.held_bytes() < header_and_payload,
            "holds less than one frame"
        );
    }
    Heard {
        frames,
        end: decoder.finish(),
    }
}

fn error_of(bytes: &[u8]) -> FrameError {
    hear(FRAME_BYTES_MAX, [bytes])
        .end
        .expect_err("bytes that must be refused")
}

fn encoded(frames: &[Frame]) -> Vec<u8> {
    let mut written = Vec::new();
    let mut out = BytesMut::new();
    for frame in frames {
        let by_reference = frame.encode(&mut out);
        written.extend_from_slice(&out);
        written.extend_from_slice(by_reference.map_or(&[][..], |payload| payload));
        out.clear();
    }
    written
}

fn data(payload: &[u8]) -> Frame {
    Frame::new(Flags::DATA, Bytes::copy_from_slice(payload)).unwrap()
}

#[test]
fn every_kind_of_frame_travels_as_the_protocol_says() {
    let table: [(Frame, &[u8]); 9] = [
        (data(b"hi"), b"\x02\x01hi"),
        (
            Frame::new(Flags::DATA_END, Bytes::from_static(b"hi")).unwrap(),
            b"\x02\x03hi",
        ),
        (
            Frame::new(Flags::COMPRESSED, Bytes::new()).unwrap(),
            b"\x00\x41",
        ),
        (
            Frame::new(Flags::COMPRESSED_END, Bytes::from_static(b"z")).unwrap(),
            b"\x01\x43z",
        ),
        (Frame::end_stream(), b"\x00\x02"),
        (
            Frame::new(Flags::PROBLEM, Bytes::from_static(b"{}")).unwrap(),
            b"\x02\x12{}",
        ),
        (Frame::cancel(), b"\x00\x04"),
        (
            Frame::credit(NonZeroU32::new(300).unwrap()),
            b"\x02\x08\xac\x02",
        ),
        (
            Frame::new(Flags::METADATA, Bytes::from_static(b"\x01a\x01b")).unwrap(),
            b"\x04\x20\x01a\x01b",
        ),
    ];
    for (frame, bytes) in table {
        assert_eq!(encoded(std::slice::from_ref(&frame)), bytes, "{frame:?}");
        let heard = hear(FRAME_BYTES_MAX, [bytes]);
        assert_eq!(heard.frames, [frame]);
    }
}

#[test]
fn a_payload_is_copied_up_to_512_bytes_and_shared_beyond() {
    let mut out = BytesMut::new();
    assert_eq!(data(&[7; COPY_BYTES_MAX]).encode(&mut out), None);
    assert_eq!(out.len(), 3 + COPY_BYTES_MAX);

    out.clear();
    let payload = Bytes::from(vec![7; COPY_BYTES_MAX + 1]);
    let frame = Frame::new(Flags::DATA, payload.clone()).unwrap();
    let shared = frame.encode(&mut out).unwrap();
    assert_eq!(out, &b"\x81\x04\x01"[..]);
    assert_eq!(shared.as_ptr(), payload.as_ptr());
}

#[test]
fn a_whole_frame_shares_the_memory_of_its_input() {
    let bytes = Bytes::from(encoded(&[data(&[7; 100_000]), data(b"next")]));
    let mut input = bytes.clone();
    let mut decoder = FrameDecoder::default();
    let first = decoder.decode(&mut input).unwrap().unwrap().into_payload();
    assert_eq!(first.as_ptr(), bytes[4..].as_ptr());
    assert_eq!(input.len(), 6);
    let second = decoder.decode(&mut input).unwrap().unwrap().into_payload();
    assert_eq!(second.as_ptr(), bytes[100_006..].as_ptr());
    assert_eq!(decoder.held_bytes(), 0);
}

#[test]
fn a_payload_that_starts_its_own_input_is_shared_too() {
    let payload = Bytes::from(vec![7; 100_000]);
    let mut header = BytesMut::new();
    let frame = Frame::new(Flags::DATA, payload.clone()).unwrap();
    assert!(frame.encode(&mut header).is_some());
    let mut decoder = FrameDecoder::default();
    assert_eq!(decoder.decode(&mut header.freeze()), Ok(None));
    let frame = decoder.decode(&mut frame.into_payload()).unwrap().unwrap();
    assert_eq!(frame.payload().as_ptr(), payload.as_ptr());
}

#[test]
fn every_illegal_flags_byte_is_named() {
    for bits in (0..=u8::MAX).filter(|bits| Flags::from_bits(*bits).is_none()) {
        let error = error_of(&[0, bits]);
        assert_eq!(error, FrameError::Flags { bits });
        assert_eq!(error.kind(), FrameErrorKind::Malformed);
        assert!(
            error.to_string().contains(&format!("0x{bits:02x}")),
            "{error}"
        );
        assert!(error.to_string().contains("DATA|END_STREAM"), "{error}");
    }
}

#[test]
fn a_broken_length_is_refused_at_its_first_wrong_byte() {
    use crate::varint::VarintError::{Overlong, TooLong};
    for bytes in [&[0x80, 0x00][..], &[0x81, 0x80, 0x00, 0x01]] {
        assert_eq!(error_of(bytes), FrameError::Length(Overlong));
    }
    // A parser that takes these for unfinished ones buffers for ever.
    for bytes in [&[0x80; 5][..], &[0x80; 10], &[0xff, 0xff, 0xff, 0xff, 0x1f]] {
        assert_eq!(error_of(bytes), FrameError::Length(TooLong));
    }
}

#[test]
fn the_size_limit_is_exact_and_read_from_the_header() {
    let at_limit = hear(10, [&b"\x0a\x030123456789"[..]]);
    assert_eq!((at_limit.frames.len(), at_limit.end), (1, Ok(())));

    let over = FrameError::TooLarge {
        payload_bytes: 11,
        payload_bytes_max: 10,
    };
    assert_eq!(hear(10, [&b"\x0b\x01"[..]]).end, Err(over));
    assert_eq!(over.kind(), FrameErrorKind::TooMuch);
    assert_eq!(
        over.to_string(),
        "frame of 11 bytes; at most 10 are allowed"
    );

    let lie = error_of(b"\xff\xff\xff\xff\x0f\x01");
    assert_eq!(
        lie,
        FrameError::TooLarge {
            payload_bytes: u32::MAX.into(),
            payload_bytes_max: 4 << 20
        }
    );
}

#[test]
fn an_announced_length_reserves_nothing() {
    let mut decoder = FrameDecoder::default();
    // 4 MiB to come, 5 bytes of them here.
    let mut input = Bytes::from_static(b"\x80\x80\x80\x02\x01hello");
    assert_eq!(decoder.decode(&mut input), Ok(None));
    assert!((5..=4096).contains(&decoder.held_bytes()));
    assert_eq!(decoder.finish(), Err(FrameError::Truncated));
}

#[test]
fn a_frame_in_many_chunks_takes_no_more_memory_than_the_frame() {
    let payload = vec![9; 1_000_000];
    let bytes = encoded(&[data(&payload)]);
    let mut decoder = FrameDecoder::default();
    let mut frame = None;
    for chunk in bytes.chunks(1000) {
        frame = decoder.decode(&mut Bytes::copy_from_slice(chunk)).unwrap();
        assert!(decoder.held_bytes() <= payload.len());
    }
    assert_eq!(frame.unwrap().payload(), &payload);
    assert_eq!(decoder.held_bytes(), 0);
}

#[test]
fn control_frames_must_fit_their_payloads() {
    let flags = Flags::END_STREAM;
    assert_eq!(
        error_of(b"\x01\x02x"),
        FrameError::NotEmpty {
            flags,
            payload_bytes: 1
        }
    );
    let flags = Flags::CANCEL;
    assert_eq!(
        error_of(b"\x02\x04"),
        FrameError::NotEmpty {
            flags,
            payload_bytes: 2
        }
    );
    assert_eq!(error_of(b"\x01\x08\x00"), FrameError::CreditOfZero);
    for credit in [
        &b"\x00\x08"[..],
        b"\x06\x08",
        b"\x02\x08\x01\x01",
        b"\x01\x08\x80",
        b"\x02\x08\x81\x00",
    ] {
        assert_eq!(error_of(credit), FrameError::Credit, "{credit:02x?}");
    }
    for (flags, payload) in [
        (Flags::CREDIT, &b"\x00"[..]),
        (Flags::CANCEL, b"x"),
        (Flags::END_STREAM, b"x"),
    ] {
        assert!(Frame::new(flags, Bytes::from_static(payload)).is_err());
    }
}

#[test]
fn credits_are_read_from_credit_frames_only() {
    let all = NonZeroU32::new(u32::MAX).unwrap();
    let heard = hear(
        FRAME_BYTES_MAX,
        [&encoded(&[Frame::credit(all), data(b"\x05")])[..]],
    );
    let credits: Vec<_> = heard.frames.iter().map(Frame::credits).collect();
    assert_eq!(credits, [Some(all), None]);
}

#[test]
fn only_credit_and_cancel_follow_the_end() {
    for end in [&b"\x00\x02"[..], b"\x01\x03x", b"\x01\x43x", b"\x02\x12{}"] {
        for (late, flags) in [
            (&b"\x01\x01x"[..], Flags::DATA),
            (b"\x00\x01", Flags::DATA),
            (b"\x00\x02", Flags::END_STREAM),
            (b"\x02\x12{}", Flags::PROBLEM),
            (b"\x00\x20", Flags::METADATA),
        ] {
            assert_eq!(
                error_of(&[end, late].concat()),
                FrameError::AfterEnd { flags }
            );
        }
        let allowed = hear(
            FRAME_BYTES_MAX,
            [&[end, b"\x01\x08\x05\x00\x04"].concat()[..]],
        );
        assert_eq!(allowed.end, Ok(()));
        assert_eq!(allowed.frames.len(), 3);
    }
}

#[test]
fn nothing_after_cancel_is_read() {
    let heard = hear(
        FRAME_BYTES_MAX,
        [&b"\x00\x04\xff\xff\xff\xff\xff\xff"[..], b"more"],
    );
    assert_eq!(
        heard,
        Heard {
            frames: vec![Frame::cancel()],
            end: Ok(())
        }
    );
}

#[test]
fn bytes_that_stop_early_are_no_clean_end() {
    assert_eq!(error_of(b""), FrameError::NoEnd);
    assert_eq!(error_of(b"\x01\x01x"), FrameError::NoEnd);
    assert_eq!(error_of(b"\x01\x01x\x80"), FrameError::Truncated);
    assert_eq!(error_of(b"\x00\x02\x01"), FrameError::Truncated);
    assert_eq!(error_of(b"\x05\x03hell"), FrameError::Truncated);
    assert_eq!(FrameError::NoEnd.kind(), FrameErrorKind::Incomplete);
}

#[test]
fn metadata_is_counted_over_the_stream() {
    let half = Frame::new(
        Flags::METADATA,
        Bytes::from(vec![0; METADATA_BYTES_MAX / 2]),
    )
    .unwrap();
    let mut bytes = encoded(&[half.clone(), half]);
    assert_eq!(hear(FRAME_BYTES_MAX, [&bytes[..]]).frames.len(), 2);
    bytes.extend(b"\x01\x20x");
    assert_eq!(error_of(&bytes), FrameError::MetadataTooLarge);
    let block = Bytes::from(vec![0; METADATA_BYTES_MAX + 1]);
    assert_eq!(
        Frame::new(Flags::METADATA, block),
        Err(FrameError::MetadataTooLarge)
    );
}

#[test]
fn frames_without_progress_are_a_flood() {
    for idle in [&b"\x01\x08\x01"[..], b"\x00\x20", b"\x00\x01"] {
        let most = idle.repeat(IDLE_FRAMES_MAX as usize);
        assert_eq!(
            hear(FRAME_BYTES_MAX, [&most[..]]).end,
            Err(FrameError::NoEnd)
        );
        assert_eq!(error_of(&[&most[..], idle].concat()), FrameError::Flood);
        // A message between them is progress.
        let fed = [&most[..], b"\x01\x01x", &most].concat();
        assert_eq!(error_of(&fed), FrameError::NoEnd);

        let mut decoder = FrameDecoder::default();
        for _ in 0..3 * IDLE_FRAMES_MAX {
            decoder
                .decode(&mut Bytes::from_static(idle))
                .unwrap()
                .unwrap();
            decoder.progressed();
        }
    }
}

fn frames() -> impl Strategy<Value = Vec<Frame>> {
    let payload = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        prop::collection::vec(any::<u8>(), 120..140),
        Just(vec![5; 20_000]),
    ];
    let message = (any::<bool>(), payload.clone())
        .prop_map(|(compressed, bytes)| Frame::new(Flags::data(compressed, false), bytes.into()));
    let control = prop_oneof![
        (1..u32::MAX).prop_map(|n| Frame::credit(NonZeroU32::new(n).unwrap())),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| Frame::new(
            Flags::METADATA,
            bytes.into()
        )
        .unwrap()),
    ];
    let end = prop_oneof![
        Just(Frame::end_stream()),
        payload.prop_map(|bytes| Frame::new(Flags::PROBLEM, bytes.into()).unwrap()),
        Just(Frame::cancel()),
    ];
    let middle = prop_oneof![3 => message.prop_map(Result::unwrap), 1 => control];
    (prop::collection::vec(middle, 0..8), end).prop_map(|(mut frames, end)| {
        frames.push(end);
        frames
    })
}

/// The pieces of `bytes` between the cuts.
fn pieces<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    at.push(bytes.len());
    at.sort_unstable();
    let mut from = 0;
    at.into_iter()
        .map(|to| &bytes[std::mem::replace(&mut from, to)..to])
        .collect()
}

proptest! {
    #[test]
    fn frames_survive_the_round_trip(frames in frames(), cuts: Vec<prop::sample::Index>) {
        let bytes = encoded(&frames);
        let heard = hear(20_000, pieces(&bytes, &cuts));
        prop_assert_eq!(heard, Heard { frames, end: Ok(()) });
    }

    #[test]
    fn a_cut_at_every_place_changes_nothing(frames in frames()) {
        let bytes = encoded(&frames);
        prop_assume!(bytes.len() < 2000);
        let whole = hear(FRAME_BYTES_MAX, [&bytes[..]]);
        for at in 0..=bytes.len() {
            prop_assert_eq!(&hear(FRAME_BYTES_MAX, [&bytes[..at], &bytes[at..]]), &whole);
        }
        prop_assert_eq!(&hear(FRAME_BYTES_MAX, bytes.chunks(1)), &whole);
    }

    /// Bytes that are nearly frames: small numbers, so that lengths often fit.
    #[test]
    fn hostile_bytes_are_heard_the_same_however_cut(
        bytes in prop::collection::vec(prop_oneof![4 => 0u8..10, 1 => any::<u8>()], 0..200),
        cuts: Vec<prop::sample::Index>,
    ) {
        let whole = hear(100, [&bytes[..]]);
        prop_assert_eq!(&hear(100, pieces(&bytes, &cuts)), &whole);
        prop_assert_eq!(&hear(100, bytes.chunks(1)), &whole);
    }
}
