//! Bodies read at every cut, and fields from text.

use bytes::Bytes;
use quill_core::{Headers, MethodKind};
use quill_wire::{Decode, Decoder, Event};

/// The kinds of method, for two bits of input.
pub const KINDS: [MethodKind; 4] = [
    MethodKind::Unary,
    MethodKind::ClientStreaming,
    MethodKind::ServerStreaming,
    MethodKind::BidiStreaming,
];

/// Reads `bytes` as a body in one piece, and in pieces of `piece_bytes`: they
/// must mean the same, and no more be held than was fed.
pub fn read_at_every_cut(
    decoder: impl Fn() -> Option<Decoder>,
    bytes: &[u8],
    piece_bytes: u8,
    trailers: Option<&Headers>,
) {
    let pieces: Vec<&[u8]> = bytes.chunks(usize::from(piece_bytes).max(1)).collect();
    let read = |pieces: &[&[u8]]| decoder().map(|decoder| read(decoder, pieces, trailers));
    assert_eq!(read(&[bytes]), read(&pieces));
}

/// What the pieces mean, up to the first refusal.
fn read(mut decoder: Decoder, pieces: &[&[u8]], trailers: Option<&Headers>) -> Vec<String> {
    let mut seen = Vec::new();
    let mut fed = 0;
    for piece in pieces {
        fed += piece.len();
        decoder.feed(Bytes::copy_from_slice(piece));
        if !drain(&mut decoder, &mut seen) {
            return seen;
        }
        assert!(decoder.held_bytes() <= fed);
    }
    decoder.finish(trailers.cloned());
    drain(&mut decoder, &mut seen);
    seen
}

/// Collects events; false after a refusal.
fn drain(decoder: &mut Decoder, seen: &mut Vec<String>) -> bool {
    loop {
        match decoder.next() {
            Ok(None) => return true,
            Ok(Some(Event::End(Ok(trailers)))) => seen.push(format!("end {trailers:?}")),
            Ok(Some(Event::End(Err(error)))) => seen.push(format!("failed {error:?}")),
            Ok(Some(event)) => seen.push(format!("{event:?}")),
            Err(error) => {
                seen.push(format!("refused {error}"));
                return false;
            }
        }
    }
}

/// Lines of `name: value` as fields.
pub fn put_lines(text: &[u8], fields: &mut Headers) {
    for line in text.split(|byte| *byte == b'\n') {
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = line.split_at(colon.unwrap_or(line.len()));
        let name = String::from_utf8_lossy(name);
        fields.append(&name, value.get(1..).unwrap_or_default().trim_ascii());
    }
}
