//! Heads: too large, too many, too slow, or larger than they look.

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::arena::{Arena, discard};
use crate::wire::http1::{self, status};
use crate::wire::http2::{
    self, CONTINUATION, END_HEADERS, END_STREAM, HEADERS, Http2, PREFACE, field, frame, integer,
};
use crate::wire::messages::{CHAT, COLLECT, ECHO, number_field, quill};

const CONNECTIONS: u64 = 4;
const FIELDS: usize = 100_000;
const SLOW_CONNECTIONS: usize = 200;
/// `header_read_timeout`, and what a busy machine may be late.
const HEAD_TIME_MAX: Duration = Duration::from_millis(14_500);
const PATIENCE: Duration = Duration::from_secs(10);

/// A header block in as many frames as it needs.
fn blocks(stream: u32, block: &[u8]) -> Vec<u8> {
    let mut frames = Vec::new();
    let pieces: Vec<&[u8]> = block.chunks(16_000).collect();
    for (n, piece) in pieces.iter().enumerate() {
        let kind = if n == 0 { HEADERS } else { CONTINUATION };
        let last = if n + 1 == pieces.len() {
            END_HEADERS
        } else {
            0
        };
        let end = if n == 0 { END_STREAM } else { 0 };
        frames.extend(frame(kind, last | end, stream, piece));
    }
    frames
}

/// A block that is more than it looks.
fn bomb(kind: u64) -> Vec<u8> {
    let mut block = http2::post(ECHO, "application/grpc+proto", &[]);
    match kind {
        0 => {
            // An entry of the dynamic table, and thousands of references to it.
            block.push(0x40);
            integer(0, 7, 1, &mut block);
            block.push(b'a');
            integer(0, 7, 3900, &mut block);
            block.extend([b'x'; 3900]);
            block.extend([0xbe; 16_000]);
        }
        // An integer that goes on and on.
        1 => block.extend([&[0x7f][..], &[0xff; 8000]].concat()),
        // Table sizes, again and again.
        2 => block.extend([0x3f, 0xe1, 0x1f, 0x20].repeat(4000)),
        // Huffman codes of five bits, and then the end's code, which is none.
        _ => {
            block.extend([0x00, 0x01, b'a']);
            integer(0x80, 7, 8000, &mut block);
            block.extend([0; 7990]);
            block.extend([0xff; 10]);
        }
    }
    block
}

pub(super) async fn hpack(arena: Arena) -> Result<String, String> {
    arena
        .on_connections(CONNECTIONS, |arena, number| async move {
            let Ok(connection) = Http2::open(&arena, &[(http2::HEADER_TABLE_SIZE, u32::MAX)]).await
            else {
                return;
            };
            let block = bomb(number % 4);
            connection
                .flood(&arena, |n| blocks((n * 2 + 1) as u32, &block))
                .await;
        })
        .await;
    Ok(format!("{} blocks", arena.counted()))
}

/// Requests with very many fields, and the statuses that they may get.
fn crowded() -> Vec<(Vec<u8>, &'static [u16])> {
    let lines = "x-a: 1\r\n".repeat(FIELDS);
    let head = http1::head(ECHO, &[("content-type", "application/json")]);
    let head = format!("{head}connection: close\r\n{lines}content-length: 2\r\n\r\n{{}}");
    let query = "&a=1".repeat(FIELDS);
    let get = format!(
        "GET {ECHO}?connect=v1&encoding=json&message=%7B%7D{query} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
    );
    let unknown: Vec<String> = (0..FIELDS).map(|n| format!("\"f{n}\":{n}")).collect();
    let json = format!("{{{}}}", unknown.join(","));
    let objects = format!("{{\"a\":[{}]}}", vec!["{}"; FIELDS * 4].join(","));
    let proto: Vec<u8> = (0..FIELDS as u64)
        .flat_map(|n| number_field(n % 1000 + 100, n))
        .collect();
    let pair = [&[1, b'a', 1, b'1'][..]; FIELDS].concat();
    let frames = [quill(0x20, &pair), quill(0x02, &[])].concat();
    vec![
        (head.into_bytes(), &[400, 431]),
        (get.into_bytes(), &[400, 414, 431]),
        (
            http1::post_of(ECHO, "application/json", json.as_bytes()),
            &[200, 400],
        ),
        (
            http1::post_of(ECHO, "application/json", objects.as_bytes()),
            &[200, 400, 429],
        ),
        (
            http1::post_of(ECHO, "application/proto", &proto),
            &[400, 429],
        ),
        (
            http1::post_of(COLLECT, "application/quill-stream+proto", &frames),
            &[400, 429],
        ),
    ]
}

pub(super) async fn many_fields(arena: Arena) -> Result<String, String> {
    let mut sent = 0;
    let crowded = crowded();
    while sent == 0 || !arena.is_over() {
        for (index, (request, allowed)) in crowded.iter().enumerate() {
            // Half of them are refused while they are being sent.
            let (ended, answer) = arena.ask(request, PATIENCE).await;
            let refused =
                answer.is_empty() || status(&answer).is_some_and(|s| allowed.contains(&s));
            if !ended || !refused {
                return Err(format!(
                    "request {index}: ended {ended}, {:?}",
                    status(&answer)
                ));
            }
            sent += 1;
        }
        let mut connection = Http2::open(&arena, &[]).await.map_err(|e| e.to_string())?;
        let mut block = http2::post(CHAT, "application/grpc+proto", &[]);
        for _ in 0..FIELDS {
            block.extend(field("x-a", b"1"));
        }
        let _ = connection.send(&blocks(1, &block)).await;
        connection.answer(1, PATIENCE).await;
        sent += 1;
    }
    Ok(format!("{sent} requests of {FIELDS} fields"))
}

pub(super) async fn slow(arena: Arena) -> Result<String, String> {
    let mut tasks = JoinSet::new();
    for number in 0..SLOW_CONNECTIONS {
        let arena = arena.clone();
        tasks.spawn(async move {
            let socket = arena.connect().await.ok()?;
            let begun = Instant::now();
            let (mut read, mut write) = socket.into_split();
            let endless = format!("{}x-slow: ", http1::head(ECHO, &[]));
            let bytes = if number % 2 == 0 {
                endless.into_bytes()
            } else {
                PREFACE.to_vec()
            };
            let trickle = async {
                // All of a preface would be a good beginning.
                let last = bytes.len() - 1;
                for byte in bytes.iter().take(last).chain(std::iter::repeat(&b'a')) {
                    if write.write_all(&[*byte]).await.is_err() {
                        return;
                    }
                    sleep(Duration::from_millis(400)).await;
                }
            };
            tokio::select! {
                () = trickle => {}
                _ = discard(&mut read) => {}
            }
            Some(begun.elapsed())
        });
    }
    let mut closed = 0;
    let mut slowest = Duration::ZERO;
    while let Some(ended) = tasks.join_next().await {
        if let Ok(Some(time)) = ended {
            closed += 1;
            slowest = slowest.max(time);
        }
    }
    if closed < SLOW_CONNECTIONS || slowest > HEAD_TIME_MAX {
        return Err(format!(
            "{closed} of {SLOW_CONNECTIONS} slow heads were ended, the last after {slowest:.1?}"
        ));
    }
    Ok(format!(
        "{closed} connections, each ended within {slowest:.1?}"
    ))
}
