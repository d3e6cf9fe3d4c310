//! Clients of streams that read slowly, not at all, or are gone.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::arena::Arena;
use crate::wire::http1;
use crate::wire::http2::{self, DATA, END_STREAM, Http2, frame};
use crate::wire::messages::{CHAT, DIALECTS, ECHO, EXPAND, echo, endless};

const SLOW_CONNECTIONS: usize = 100;
const CONNECTIONS: u64 = 8;
const MESSAGE_BYTES: usize = 15_000;

/// An endless answer by HTTP/1.1.
fn endless_request(content_type: &str, wrapped: &[u8]) -> Vec<u8> {
    http1::post_of(EXPAND, content_type, wrapped)
}

pub(super) async fn slow_readers(arena: Arena) -> Result<String, String> {
    let mut tasks = JoinSet::new();
    for _ in 0..SLOW_CONNECTIONS {
        let arena = arena.clone();
        tasks.spawn(async move {
            let read = read_slowly(arena.clone());
            arena.until_the_end(read).await;
        });
    }
    while tasks.join_next().await.is_some() {}
    Ok(format!(
        "{SLOW_CONNECTIONS} connections read {} bytes",
        arena.counted()
    ))
}

async fn read_slowly(arena: Arena) -> std::io::Result<()> {
    // The kernel's own buffers are not what is attacked.
    let socket = tokio::net::TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(4096)?;
    let mut socket = socket.connect(arena.address).await?;
    let message = (DIALECTS[3].wrap)(0, &endless(MESSAGE_BYTES * 4));
    let request = endless_request(DIALECTS[3].content_type, &message);
    socket.write_all(&request).await?;
    let mut scratch = [0; 100];
    loop {
        let count = socket.read(&mut scratch).await?;
        if count == 0 {
            return Ok(());
        }
        arena.add(count as u64);
        sleep(Duration::from_millis(50)).await;
    }
}

pub(super) async fn stopped_readers(arena: Arena) -> Result<String, String> {
    arena
        .on_connections(CONNECTIONS, |arena, number| async move {
            if number.is_multiple_of(2) {
                let Ok(mut connection) = Http2::open_wide(&arena).await else {
                    return;
                };
                let block = http2::post(CHAT, "application/grpc+proto", &[]);
                if connection.head(1, 0, &block).await.is_err() {
                    return;
                }
                let message = (DIALECTS[1].wrap)(0, &echo(&[b'x'; MESSAGE_BYTES]));
                // The first window of a stream is 1 MiB: what is over it is wrong, and
                // the echoes of what fits have nobody to read them.
                let piece = frame(DATA, 0, 1, &message);
                for _ in 0..60 {
                    if connection.send(&piece).await.is_err() {
                        return;
                    }
                    arena.add(1);
                }
                sleep(Duration::from_secs(3600)).await;
            } else {
                let Ok(mut socket) = arena.connect().await else {
                    return;
                };
                let body = echo(&[b'x'; MESSAGE_BYTES]);
                let request = http1::post_of(ECHO, "application/proto", &body);
                while socket.write_all(&request).await.is_ok() {
                    arena.add(1);
                }
            }
        })
        .await;
    Ok(format!("{} messages that nobody reads", arena.counted()))
}

pub(super) async fn vanish(arena: Arena) -> Result<String, String> {
    arena
        .on_connections(16, |arena, number| async move {
            let _ = start_and_vanish(&arena, number).await;
            arena.add(1);
        })
        .await;
    Ok(format!("{} clients vanished", arena.counted()))
}

/// What is unread when the socket is dropped makes it a reset.
async fn start_and_vanish(arena: &Arena, number: u64) -> std::io::Result<()> {
    let dialect = DIALECTS[(number % 4) as usize];
    let message = (dialect.wrap)(dialect.plain, &endless(MESSAGE_BYTES));
    let is_http2 = dialect.name == "grpc" || number % 8 < 4;
    let mut scratch = vec![0; 40_000];
    if is_http2 {
        let mut connection = Http2::open_wide(arena).await?;
        let block = http2::post(EXPAND, dialect.content_type, &[]);
        for stream in [1, 3, 5] {
            connection.head(stream, 0, &block).await?;
            let mut body = message.clone();
            if dialect.name != "quill" {
                body.extend(dialect.end);
            }
            // One is answered, one is cut inside of its request, one has begun.
            match stream {
                1 => {
                    connection
                        .send(&frame(DATA, END_STREAM, stream, &body))
                        .await?;
                }
                3 => {
                    connection
                        .send(&frame(DATA, 0, stream, &body[..body.len() / 2]))
                        .await?;
                }
                _ => {}
            }
        }
        connection.read.read_exact(&mut scratch).await?;
        return Ok(());
    }
    let mut socket = arena.connect().await?;
    let request = endless_request(dialect.content_type, &message);
    if number.is_multiple_of(3) {
        return socket.write_all(&request[..request.len() / 2]).await;
    }
    socket.write_all(&request).await?;
    socket.read_exact(&mut scratch).await?;
    Ok(())
}
