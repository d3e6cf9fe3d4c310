use super::*;
use proptest::prelude::*;

/// All that compress.
fn compressing() -> impl Iterator<Item = Encoding> {
    let all = Encoding::ALL.iter().copied();
    all.filter(|encoding| *encoding != Encoding::Identity)
}

/// Those in which one whole may follow another.
const JOINING: &[&str] = &["gzip", "zstd", "snappy"];

/// Those that say where their data ends, and have levels.
const ENDING: &[&str] = &["br", "deflate", "gzip", "zstd"];

fn compressing_of(names: &[&str]) -> impl Iterator<Item = Encoding> {
    compressing().filter(|encoding| names.contains(&encoding.name()))
}

fn compressed(encoding: Encoding, input: &[u8]) -> Vec<u8> {
    compressed_at(3, encoding, input)
}

fn compressed_at(level: u8, encoding: Encoding, input: &[u8]) -> Vec<u8> {
    let mut out = BytesMut::from(&b"before"[..]);
    compress(encoding, level, input, &mut out).unwrap();
    out.strip_prefix(b"before").unwrap().to_vec()
}

#[test]
fn names_are_the_registered_ones() {
    for encoding in Encoding::ALL {
        assert_eq!(Encoding::from_name(encoding.name()), Some(*encoding));
    }
    assert_eq!(Encoding::from_name("identity"), Some(Encoding::Identity));
    for name in ["", "x-foo", "gzip ", "zstandard"] {
        assert_eq!(Encoding::from_name(name), None, "{name:?}");
    }
    let unknown = "x-foo".parse::<Encoding>().unwrap_err().to_string();
    let (wrong, allowed) = unknown.split_once(": allowed are ").unwrap();
    assert_eq!(wrong, "\"x-foo\" is no encoding of this program");
    let names: Vec<_> = Encoding::ALL.iter().map(|known| known.name()).collect();
    assert_eq!(allowed.split(", ").collect::<Vec<_>>(), names);
}

/// All of what comes out of `input`, and that memory followed it.
fn decompressed(
    encoding: Encoding,
    input: &[u8],
    bytes_max: usize,
) -> Result<Vec<u8>, CompressionError> {
    let mut decompressor = Decompressor::new(encoding, bytes_max);
    let mut out = Vec::new();
    let done = decompressor
        .push(input, &mut out)
        .and_then(|()| decompressor.finish());
    assert!(
        out.capacity() <= bytes_max + decompressor::CHUNK_BYTES,
        "{}",
        out.capacity()
    );
    let done = done.map(|()| out);
    assert_eq!(decompress(encoding, input, bytes_max).map(Vec::from), done);
    done
}

#[test]
fn every_level_compresses() {
    let input: Vec<u8> = (0..6_000u32)
        .flat_map(|n| (n * n / 1000).to_le_bytes())
        .collect();
    for encoding in compressing_of(ENDING) {
        let mut lens = Vec::new();
        for level in [1, 3, 6, 9, 15, 22] {
            let small = compressed_at(level, encoding, &input);
            assert_eq!(decompressed(encoding, &small, input.len()).unwrap(), input);
            lens.push(small.len());
        }
        for (beyond, level) in [(0, 1), (255, 22)] {
            let small = compressed_at(beyond, encoding, &input);
            assert_eq!(small, compressed_at(level, encoding, &input));
        }
        assert!(lens[5] < lens[0], "{} {lens:?}", encoding.name());
    }
}

#[test]
fn nothing_is_the_empty_message_and_so_is_compressed_nothing() {
    for encoding in Encoding::ALL {
        assert_eq!(decompressed(*encoding, b"", 0).unwrap(), b"");
        assert_eq!(
            decompressed(*encoding, &compressed(*encoding, b""), 0).unwrap(),
            b""
        );
    }
}

#[test]
fn the_bound_is_exact() {
    for encoding in Encoding::ALL {
        for len in [1, 100, 4096, 100_000] {
            let small = compressed(*encoding, &vec![7; len]);
            assert_eq!(decompressed(*encoding, &small, len).unwrap().len(), len);
            let error = CompressionError::TooLarge(len - 1);
            assert_eq!(decompressed(*encoding, &small, len - 1), Err(error));
        }
    }
}

#[test]
fn a_bomb_takes_no_more_memory_than_the_bound() {
    let bomb = vec![0; 16 << 20];
    for encoding in compressing() {
        let small = compressed(encoding, &bomb);
        // Snappy makes a twentieth at best.
        assert!(small.len() < 1_000_000, "{}", encoding.name());
        // The bound on memory is in `decompressed`.
        let error = CompressionError::TooLarge(1 << 20);
        assert_eq!(decompressed(encoding, &small, 1 << 20), Err(error));
        if !JOINING.contains(&encoding.name()) {
            continue;
        }
        // Many messages that are small each.
        let many = compressed(encoding, &[0; 1000]).repeat(2000);
        assert_eq!(decompressed(encoding, &many, 1 << 20), Err(error));
    }
}

#[test]
fn members_and_frames_may_follow_each_other() {
    for encoding in compressing_of(JOINING) {
        let parts = [&b"hello "[..], b"", b"world"].map(|part| compressed(encoding, part));
        assert_eq!(
            decompressed(encoding, &parts.concat(), 11).unwrap(),
            b"hello world"
        );
    }
}

#[test]
fn what_is_cut_off_is_missed_and_what_is_added_is_noticed() {
    for encoding in compressing_of(ENDING) {
        let whole = compressed(encoding, b"hello hello hello hello");
        for len in 1..whole.len() {
            let error = decompressed(encoding, &whole[..len], 100);
            assert_eq!(
                error,
                Err(CompressionError::Truncated),
                "{} {len}",
                encoding.name()
            );
        }
        for junk in [&b"junk"[..], b"\0", b"\0\0\0\0\0\0\0\0"] {
            let error = decompressed(encoding, &[&whole, junk].concat(), 100);
            assert_eq!(
                error,
                Err(CompressionError::TrailingBytes),
                "{}",
                encoding.name()
            );
        }
    }
}

#[test]
fn bytes_of_another_kind_are_corrupt() {
    for encoding in compressing() {
        for bytes in [&b"plain text, not compressed"[..], &[0; 100], &[0xff; 100]] {
            let error = decompressed(encoding, bytes, 100);
            assert!(
                matches!(error, Err(CompressionError::Corrupt(_))),
                "{error:?}"
            );
        }
    }
}

#[cfg(feature = "br")]
#[test]
fn a_brotli_window_has_16_mib_at_most() {
    // The extension's large windows: WBITS 0x11, then 30 bits of window.
    let error = decompressed(Encoding::Br, &[0x11, 0x1e, 0x03, 0, 0, 0, 0, 0], 100);
    assert!(
        matches!(error, Err(CompressionError::Corrupt(_))),
        "{error:?}"
    );
}

#[cfg(feature = "deflate")]
#[test]
fn deflate_is_zlib_with_its_checksum() {
    let whole = compressed(Encoding::Deflate, b"hello");
    assert_eq!(whole[0] & 0x0f, 8, "CM of RFC 1950");
    for from_end in 1..=4 {
        let mut wrong = whole.clone();
        let at = wrong.len() - from_end;
        wrong[at] ^= 1;
        let error = decompressed(Encoding::Deflate, &wrong, 5);
        assert!(
            matches!(error, Err(CompressionError::Corrupt(_))),
            "{from_end} {error:?}"
        );
    }
    // Bare deflate, and a header that wants a dictionary.
    let bare = &whole[2..whole.len() - 4];
    for bytes in [bare, &[0x78, 0xbb, 0, 0, 0, 1, 3, 0]] {
        let error = decompressed(Encoding::Deflate, bytes, 5);
        assert!(
            matches!(error, Err(CompressionError::Corrupt(_))),
            "{error:?}"
        );
    }
}

#[cfg(feature = "snappy")]
mod snappy {
    use super::*;

    const IDENTIFIER: &[u8] = b"\xff\x06\0\0sNaPpY";

    fn is_corrupt(bytes: &[u8]) -> bool {
        matches!(
            decompressed(Encoding::Snappy, bytes, 100),
            Err(CompressionError::Corrupt(_))
        )
    }

    #[test]
    fn the_bytes_are_those_of_the_library() {
        use std::io::Read as _;
        for message in [vec![], b"hello".to_vec(), vec![7; 200_000]] {
            let ours = compressed(Encoding::Snappy, &message);
            let mut read = Vec::new();
            let mut reader = snap::read::FrameDecoder::new(&ours[..]);
            reader.read_to_end(&mut read).unwrap();
            assert_eq!(read, message);
            let mut theirs = Vec::new();
            let mut reader = snap::read::FrameEncoder::new(&message[..]);
            reader.read_to_end(&mut theirs).unwrap();
            let back = decompressed(Encoding::Snappy, &theirs, message.len());
            assert_eq!(back.unwrap(), message);
        }
    }

    #[test]
    fn what_is_cut_off_inside_a_chunk_is_missed() {
        let whole = compressed(Encoding::Snappy, b"hello hello");
        for len in 1..whole.len() {
            let cut = decompressed(Encoding::Snappy, &whole[..len], 100);
            if len == IDENTIFIER.len() {
                assert_eq!(cut.unwrap(), b"", "the format can't tell");
            } else {
                assert_eq!(cut, Err(CompressionError::Truncated), "{len}");
            }
        }
    }

    #[test]
    fn chunks_have_their_rules() {
        let whole = compressed(Encoding::Snappy, b"hello");
        let chunk = &whole[IDENTIFIER.len()..];
        assert!(is_corrupt(chunk), "no identifier");
        assert!(is_corrupt(b"\xff\x06\0\0SnApPy"));
        assert!(is_corrupt(b"\xff\x05\0\0sNaPp"));
        let mut wrong = whole.clone();
        wrong[IDENTIFIER.len() + 4] ^= 1;
        assert!(is_corrupt(&wrong), "checksum");
        assert!(is_corrupt(&[IDENTIFIER, b"\x01\x03\0\0abc"].concat()));
        assert!(is_corrupt(&[IDENTIFIER, b"\x01\xff\xff\xff"].concat()));
        // A chunk that says it holds 4 GiB.
        let lie = b"\x00\x0a\0\0crc4\xff\xff\xff\xff\x0f\0";
        assert!(is_corrupt(&[IDENTIFIER, lie].concat()));
        // Padding and what may be skipped is, and what may not is refused.
        let skipped = [
            IDENTIFIER,
            b"\xfe\x02\0\0ab\x80\0\0\0",
            chunk,
            IDENTIFIER,
            chunk,
        ];
        let out = decompressed(Encoding::Snappy, &skipped.concat(), 100);
        assert_eq!(out.unwrap(), b"hellohello");
        let unknown = decompressed(Encoding::Snappy, &[&whole[..], b"\x02\0\0\0"].concat(), 9);
        assert_eq!(unknown, Err(CompressionError::TrailingBytes));
    }

    #[test]
    fn many_small_chunks_cost_no_more_than_a_large_one() {
        let mut stream = IDENTIFIER.to_vec();
        let one = compressed(Encoding::Snappy, b"a");
        let count = 300_000;
        for _ in 0..count {
            stream.extend_from_slice(&one[IDENTIFIER.len()..]);
        }
        let out = decompressed(Encoding::Snappy, &stream, count).unwrap();
        assert_eq!(out.len(), count);
    }
}

#[cfg(feature = "gzip")]
#[test]
fn a_gzip_header_may_have_every_field() {
    let plain = compressed(Encoding::Gzip, b"hello");
    let all: &[u8] = b"\x1f\x8b\x08\x1e\x01\x02\x03\x04\x00\x03\x03\x00abcname\0comment\0\x12\x34";
    assert_eq!(
        decompressed(Encoding::Gzip, &[all, &plain[10..]].concat(), 5).unwrap(),
        b"hello"
    );
    let empty_extra: &[u8] = b"\x1f\x8b\x08\x04\0\0\0\0\0\x03\x00\x00";
    let bytes = [empty_extra, &plain[10..]].concat();
    assert_eq!(decompressed(Encoding::Gzip, &bytes, 5).unwrap(), b"hello");

    for (at, byte) in [(0, 0x1e), (1, 0x8c), (2, 7), (3, 0x20), (3, 0x80)] {
        let mut wrong = plain.clone();
        wrong[at] = byte;
        let error = decompressed(Encoding::Gzip, &wrong, 5);
        assert!(
            matches!(error, Err(CompressionError::Corrupt(_))),
            "{at} {error:?}"
        );
    }
}

#[cfg(feature = "gzip")]
#[test]
fn a_gzip_trailer_is_checked() {
    let whole = compressed(Encoding::Gzip, b"hello");
    for from_end in 1..=8 {
        let mut wrong = whole.clone();
        let at = wrong.len() - from_end;
        wrong[at] ^= 1;
        let error = decompressed(Encoding::Gzip, &wrong, 5);
        assert!(
            matches!(error, Err(CompressionError::Corrupt(_))),
            "{from_end} {error:?}"
        );
    }
}

#[cfg(feature = "zstd")]
#[test]
fn a_zstd_frame_header_cannot_make_us_reserve() {
    // A window of 3.75 TiB, then one of 16 MiB, each with an empty last block.
    for window in [0xff, 14 << 3] {
        let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, window, 0x01, 0x00, 0x00];
        let error = CompressionError::WindowTooLarge(8 << 20);
        assert_eq!(decompressed(Encoding::Zstd, &frame, 100), Err(error));
    }
    // 8 MiB are granted.
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 13 << 3, 0x01, 0x00, 0x00];
    assert_eq!(decompressed(Encoding::Zstd, &frame, 100).unwrap(), b"");
    // A content of 1 TiB is too large before anything is decoded.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0xe0];
    frame.extend((1u64 << 40).to_le_bytes());
    let error = CompressionError::TooLarge(4096);
    assert_eq!(decompressed(Encoding::Zstd, &frame, 4096), Err(error));
}

#[cfg(feature = "zstd")]
#[test]
fn what_zstd_writes_needs_no_window_beyond_8_mib() {
    // Level 20 has windows of 32 MiB where the input is as large.
    let input = vec![0; 9 << 20];
    let out = compressed_at(20, Encoding::Zstd, &input);
    // In pieces, since a whole frame is decoded in place, without a window.
    let mut decompressor = Decompressor::new(Encoding::Zstd, input.len());
    let mut back = Vec::new();
    for piece in out.chunks(10) {
        decompressor.push(piece, &mut back).unwrap();
    }
    decompressor.finish().unwrap();
    assert!(back == input);
}

proptest! {
    #[test]
    fn messages_survive_the_round_trip(
        seed: Vec<u8>,
        repeat in 0usize..40,
        level in 1u8..10,
        piece_bytes in 1usize..50,
    ) {
        let message = seed.repeat(repeat);
        for encoding in Encoding::ALL {
            let small = compressed_at(level, *encoding, &message);
            prop_assert_eq!(&decompressed(*encoding, &small, message.len()).unwrap(), &message);

            let mut decompressor = Decompressor::new(*encoding, message.len());
            let mut out = Vec::new();
            for piece in small.chunks(piece_bytes) {
                decompressor.push(piece, &mut out).unwrap();
            }
            prop_assert_eq!(decompressor.finish(), Ok(()));
            prop_assert_eq!(&out, &message);
        }
    }

    #[test]
    fn any_bytes_are_decompressed_or_refused(
        bytes: Vec<u8>,
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        piece_bytes in 1usize..50,
    ) {
        for encoding in Encoding::ALL {
            // Junk, and nearly right data: in one piece as in many.
            let mut broken = compressed(*encoding, &bytes.repeat(3));
            for (at, byte) in &flips {
                let at = at.index(broken.len().max(1));
                if let Some(slot) = broken.get_mut(at) {
                    *slot = *byte;
                }
            }
            for data in [&bytes, &broken] {
                let whole = decompressed(*encoding, data, 300);
                let mut decompressor = Decompressor::new(*encoding, 300);
                let mut out = Vec::new();
                let pushed = data
                    .chunks(piece_bytes)
                    .try_for_each(|piece| decompressor.push(piece, &mut out))
                    .and_then(|()| decompressor.finish());
                prop_assert_eq!(pushed.is_ok(), whole.is_ok());
                if let Ok(whole) = whole {
                    prop_assert_eq!(out, whole);
                }
            }
        }
    }
}

#[cfg(feature = "zstd")]
#[test]
fn a_zstd_frame_that_is_shorter_than_it_says_is_refused_however_it_is_cut() {
    // It says 255 bytes, and its one block has none (found by fuzzing).
    let short = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 0xff, 0x01, 0x00, 0x00];
    let with_dictionary = [0x28, 0xb5, 0x2f, 0xfd, 0x21, 0x00, 0xff, 0x01, 0x00, 0x00];
    for frame in [&short[..], &with_dictionary[..]] {
        for piece_bytes in 1..=frame.len() {
            let mut decompressor = Decompressor::new(Encoding::Zstd, 1000);
            let mut out = Vec::new();
            let done = frame
                .chunks(piece_bytes)
                .try_for_each(|piece| decompressor.push(piece, &mut out))
                .and_then(|()| decompressor.finish());
            assert!(done.is_err(), "{frame:x?} in pieces of {piece_bytes}");
        }
    }
    // A skippable frame, a frame of nothing that says so, and one that says nothing.
    let skipped = [0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 1, 2];
    let empty = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x00, 0x01, 0x00, 0x00];
    let silent = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x00, 0x01, 0x00, 0x00];
    let frames = [&skipped[..], &empty, &silent, &skipped].concat();
    assert_eq!(decompressed(Encoding::Zstd, &frames, 10).unwrap(), b"");
}
