//! Large messages of which the last byte never comes, many at a time.

use std::io;

use tokio::io::AsyncWriteExt;

use crate::arena::{Arena, discard};
use crate::wire::http1;
use crate::wire::http2::{
    self, DATA, HEADERS, Http2, INITIAL_WINDOW_SIZE, RST_STREAM, SETTINGS, WINDOW_UPDATE, frame,
};
use crate::wire::messages::{COLLECT, DIALECTS, Dialect};

/// Connections of HTTP/2, then of HTTP/1.1.
const CONNECTIONS: u64 = 2;
const HTTP1_CONNECTIONS: u64 = 100;
const STREAMS: usize = 250;
const MESSAGE_BYTES: usize = 4 * 1024 * 1024;
const PIECE_BYTES: usize = 16_000;

pub(super) async fn messages(arena: Arena) -> Result<String, String> {
    let on_http1 = arena.on_connections(HTTP1_CONNECTIONS, |arena, number| async move {
        let _ = on_http1(&arena, DIALECTS[[0, 2, 3][(number % 3) as usize]]).await;
    });
    let on_http2 = arena.on_connections(CONNECTIONS, |arena, number| async move {
        let _ = on_http2(&arena, DIALECTS[(number % 4) as usize]).await;
    });
    tokio::join!(on_http1, on_http2);
    Ok(format!(
        "{} MiB of unfinished messages",
        arena.counted() >> 20
    ))
}

/// What begins a message of the largest size.
fn beginning(dialect: Dialect) -> Vec<u8> {
    let message = (dialect.wrap)(dialect.plain, &vec![b'x'; MESSAGE_BYTES]);
    message[..message.len() - 1].to_vec()
}

async fn on_http1(arena: &Arena, dialect: Dialect) -> io::Result<()> {
    let mut socket = arena.connect().await?;
    let message = beginning(dialect);
    let head = http1::head(COLLECT, &[("content-type", dialect.content_type)]);
    let head = format!("{head}content-length: {}\r\n\r\n", message.len() + 1);
    socket.write_all(head.as_bytes()).await?;
    for piece in message.chunks(PIECE_BYTES) {
        socket.write_all(piece).await?;
        arena.add(piece.len() as u64);
    }
    discard(&mut socket).await;
    Ok(())
}

/// How much a stream has sent, and may send.
#[derive(Clone, Copy, Debug)]
struct Progress {
    sent: usize,
    window: i64,
    is_open: bool,
}

async fn on_http2(arena: &Arena, dialect: Dialect) -> io::Result<()> {
    let mut connection = Http2::open(arena, &[]).await?;
    let message = beginning(dialect);
    let mut first_window = 65_535_i64;
    loop {
        let (kind, flags, _, payload) = connection.next().await?;
        if kind == SETTINGS && flags & 1 == 0 {
            for value in payload.chunks_exact(6) {
                if u16::from_be_bytes([value[0], value[1]]) == INITIAL_WINDOW_SIZE {
                    let window = u32::from_be_bytes([value[2], value[3], value[4], value[5]]);
                    first_window = i64::from(window);
                }
            }
            connection.send(&frame(SETTINGS, 1, 0, &[])).await?;
            break;
        }
    }
    let mut streams = vec![
        Progress {
            sent: 0,
            window: first_window,
            is_open: true
        };
        STREAMS
    ];
    let block = http2::post(COLLECT, dialect.content_type, &[]);
    for n in 0..STREAMS {
        connection.head((n * 2 + 1) as u32, 0, &block).await?;
    }
    let mut window = 65_535_i64;
    loop {
        for (n, stream) in streams.iter_mut().enumerate() {
            let end = message.len().min(stream.sent + PIECE_BYTES);
            let piece = &message[stream.sent..end];
            let count = piece.len() as i64;
            if !stream.is_open || count == 0 || count > window || count > stream.window {
                continue;
            }
            connection
                .send(&frame(DATA, 0, (n * 2 + 1) as u32, piece))
                .await?;
            stream.sent = end;
            stream.window -= count;
            window -= count;
            arena.add(count as u64);
        }
        wait_for_room(&mut connection, &mut streams, &mut window).await?;
    }
}

/// Reads one frame, and notes what it allows or ends.
async fn wait_for_room(
    connection: &mut Http2,
    streams: &mut [Progress],
    window: &mut i64,
) -> io::Result<()> {
    let (kind, flags, stream, payload) = connection.next().await?;
    let index = (stream as usize).saturating_sub(1) / 2;
    match (kind, <[u8; 4]>::try_from(&payload[..])) {
        (WINDOW_UPDATE, Ok(bytes)) => {
            let increment = i64::from(u32::from_be_bytes(bytes));
            if stream == 0 {
                *window += increment;
            } else if let Some(progress) = streams.get_mut(index) {
                progress.window += increment;
            }
        }
        (RST_STREAM | HEADERS | DATA, _) => {
            let ends = kind == RST_STREAM || flags & http2::END_STREAM != 0;
            if let Some(progress) = streams.get_mut(index).filter(|_| ends) {
                progress.is_open = false;
            }
        }
        _ => {}
    }
    Ok(())
}
