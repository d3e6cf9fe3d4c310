//! Games with the windows of HTTP/2.

use std::time::Duration;

use tokio::time::sleep;

use crate::arena::{Arena, discard};
use crate::wire::http2::{
    self, DATA, END_STREAM, Http2, INITIAL_WINDOW_SIZE, frame, window_update,
};
use crate::wire::messages::{CHAT, EXPAND, echo, endless, envelope};

const CONNECTIONS: u64 = 4;
/// As many streams as a peer may have open.
const STREAMS: u32 = 250;
const MESSAGE_BYTES: usize = 60_000;
/// Streams whose windows together are the connection's.
const DRIBBLES: u32 = 60;
const DRIBBLE_MESSAGES: usize = 20;
const WINDOW_BYTES: usize = 65_535;

/// Asks for endless answers on so many streams.
async fn ask(connection: &mut Http2, streams: u32) -> std::io::Result<()> {
    let block = http2::post(EXPAND, "application/grpc+proto", &[]);
    let request = envelope(0, &endless(MESSAGE_BYTES));
    // What the connection's first window lets through is enough: large messages
    // on one stream, small ones on the others.
    let small = envelope(0, &endless(100));
    for n in 0..streams {
        let stream = n * 2 + 1;
        connection.head(stream, 0, &block).await?;
        let body = if n == 0 { &request } else { &small };
        for (piece, bytes) in body.chunks(16_000).enumerate() {
            let is_last = (piece + 1) * 16_000 >= body.len();
            let flags = if is_last { END_STREAM } else { 0 };
            connection.send(&frame(DATA, flags, stream, bytes)).await?;
        }
    }
    Ok(())
}

pub(super) async fn zero(arena: Arena) -> Result<String, String> {
    arena
        .on_connections(CONNECTIONS, |arena, _| async move {
            let Ok(mut connection) = Http2::open(&arena, &[(INITIAL_WINDOW_SIZE, 0)]).await else {
                return;
            };
            if ask(&mut connection, STREAMS).await.is_ok() {
                arena.add(u64::from(STREAMS));
                // The heads come; nothing else may.
                discard(&mut connection.read).await;
            }
        })
        .await;
    Ok(format!("{} streams", arena.counted()))
}

pub(super) async fn dribble(arena: Arena) -> Result<String, String> {
    arena
        .on_connections(CONNECTIONS, |arena, _| async move {
            let _ = dribble_on(&arena).await;
        })
        .await;
    Ok(format!("{} bytes", arena.counted()))
}

/// Echoes that can't leave, and so requests that nobody reads: each byte in a frame of
/// its own, as many as the windows allow.
async fn dribble_on(arena: &Arena) -> std::io::Result<()> {
    let mut connection = Http2::open(arena, &[(INITIAL_WINDOW_SIZE, 0)]).await?;
    let block = http2::post(CHAT, "application/grpc+proto", &[]);
    let messages = envelope(0, &echo(b"x")).repeat(DRIBBLE_MESSAGES);
    let streams = (0..DRIBBLES).map(|n| n * 2 + 1);
    for stream in streams.clone() {
        connection.head(stream, 0, &block).await?;
    }
    for _ in 0..WINDOW_BYTES / messages.len() {
        for stream in streams.clone() {
            let bytes = messages.iter();
            let frames: Vec<u8> = bytes
                .flat_map(|byte| frame(DATA, 0, stream, &[*byte]))
                .collect();
            connection.send(&frames).await?;
            arena.add(messages.len() as u64);
        }
    }
    discard(&mut connection.read).await;
    Ok(())
}

pub(super) async fn increments(arena: Arena) -> Result<String, String> {
    arena
        .on_connections(CONNECTIONS, |arena, number| async move {
            let Ok(mut connection) = Http2::open(&arena, &[(INITIAL_WINDOW_SIZE, 0)]).await else {
                return;
            };
            if ask(&mut connection, 20).await.is_err() {
                return;
            }
            let streams = 0..20_u32;
            match number % 4 {
                0 => {
                    let _ = connection.send(&window_update(0, 0)).await;
                    discard(&mut connection.read).await;
                    arena.add(1);
                }
                1 => {
                    let twice = window_update(0, 0x7fff_ffff).repeat(2);
                    let _ = connection.send(&twice).await;
                    discard(&mut connection.read).await;
                    arena.add(2);
                }
                2 => {
                    let wrong = streams
                        .flat_map(|n| window_update(n * 2 + 1, 0))
                        .collect::<Vec<_>>();
                    let _ = connection.send(&wrong).await;
                    sleep(Duration::from_millis(50)).await;
                    arena.add(20);
                }
                _ => {
                    let bytes: Vec<u8> =
                        streams.flat_map(|n| window_update(n * 2 + 1, 1)).collect();
                    connection.flood(&arena, |_| bytes.clone()).await;
                }
            }
        })
        .await;
    Ok(format!(
        "{} increments and batches of them",
        arena.counted()
    ))
}
