//! Bodies: larger than they look, deeper than they should be, slower than they need.

use std::io::Write as _;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::arena::{Arena, discard};
use crate::wire::http1::{self, status};
use crate::wire::http2::{self, DATA, END_STREAM, Http2, frame};
use crate::wire::messages::{COLLECT, DIALECTS, Dialect, ECHO, bytes_field, echo};

const BOMB_BYTES: usize = 64 * 1024 * 1024;
const DEPTH: usize = 100_000;
const SLOW_CONNECTIONS: usize = 200;
/// Calls that stop half-way must have ended by then: 2 s are the server's patience.
const STALLED_TIME_MAX: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(10);
const ENCODINGS: [&str; 2] = ["gzip", "zstd"];

/// A message of zeros, compressed.
fn bomb(encoding: &str) -> Result<Vec<u8>, String> {
    // A string field that claims all of it, so that it might even be decoded.
    let mut message = echo(&[]);
    message.truncate(1);
    message.extend(crate::wire::messages::varint(BOMB_BYTES as u64));
    message.resize(message.len() + BOMB_BYTES, 0);
    if encoding == "zstd" {
        return zstd::bulk::compress(&message, 3).map_err(|error| error.to_string());
    }
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(&message)
        .and_then(|()| gzip.finish())
        .map_err(|error| error.to_string())
}

pub(super) async fn bombs(arena: Arena) -> Result<String, String> {
    let bombs = tokio::task::spawn_blocking(|| {
        let all: Result<Vec<_>, String> = ENCODINGS
            .iter()
            .map(|name| Ok((*name, bomb(name)?)))
            .collect();
        all
    });
    let bombs = bombs.await.map_err(|error| error.to_string())??;
    let mut sent = 0_u64;
    while sent == 0 || !arena.is_over() {
        let mut tasks = JoinSet::new();
        for (encoding, bomb) in &bombs {
            for content_type in ["application/proto", "application/quill+proto"] {
                let fields = [
                    ("content-type", content_type),
                    ("content-encoding", encoding),
                ];
                let request = http1::post(ECHO, &fields, bomb);
                let arena = arena.clone();
                tasks.spawn(async move {
                    let (ended, answer) = arena.ask(&request, PATIENCE).await;
                    let refused = matches!(status(&answer), Some(400 | 429));
                    let what = || format!("{content_type}: ended {ended}, {:?}", status(&answer));
                    if ended && refused {
                        Ok(())
                    } else {
                        Err(what())
                    }
                });
            }
            for dialect in DIALECTS {
                let (arena, bomb, encoding) = (arena.clone(), bomb.clone(), *encoding);
                tasks.spawn(async move { in_stream(&arena, dialect, encoding, &bomb).await });
            }
        }
        while let Some(refused) = tasks.join_next().await {
            refused.map_err(|error| error.to_string())??;
            sent += 1;
        }
    }
    Ok(format!("{sent} bombs of {} MiB", BOMB_BYTES >> 20))
}

/// A bomb as a message of a stream on HTTP/2: the stream must end.
async fn in_stream(
    arena: &Arena,
    dialect: Dialect,
    encoding: &str,
    bomb: &[u8],
) -> Result<(), String> {
    let mut connection = Http2::open(arena, &[]).await.map_err(|e| e.to_string())?;
    let block = http2::post(
        COLLECT,
        dialect.content_type,
        &[(dialect.encoding, encoding)],
    );
    let mut body = (dialect.wrap)(dialect.compressed, bomb);
    body.extend(dialect.end);
    let sent = async {
        connection.head(1, 0, &block).await?;
        // A stream's first window holds all of it.
        for piece in body.chunks(16_000).take(64) {
            connection.send(&frame(DATA, 0, 1, piece)).await?;
        }
        std::io::Result::Ok(())
    };
    let _ = sent.await;
    match connection.answer(1, PATIENCE).await {
        (true, _) => Ok(()),
        (false, _) => Err(format!("{} took a bomb of {encoding}", dialect.name)),
    }
}

/// Bodies that nest, and whether a good server may take them.
fn nested() -> Vec<(&'static str, Vec<u8>, &'static [u16])> {
    let json = "application/json";
    let proto = "application/proto";
    let lists = [b"{\"message\":".to_vec(), vec![b'['; DEPTH]].concat();
    let closed = [lists.clone(), vec![b']'; DEPTH], b"}".to_vec()].concat();
    let unknown = "{\"x\":".repeat(DEPTH).into_bytes();
    // Groups of a field that the schema does not know, without an end.
    let groups = vec![0x7b; DEPTH * 10];
    let ended = [vec![0x7b; DEPTH], vec![0x7c; DEPTH]].concat();
    let mut messages = Vec::new();
    for _ in 0..1000 {
        messages = bytes_field(15, &messages);
    }
    vec![
        (json, lists, &[400]),
        (json, closed, &[400]),
        (json, unknown, &[400]),
        (json, vec![b'{'; 4_000_000], &[400]),
        (json, vec![b'['; 4_000_000], &[400]),
        (proto, groups, &[400]),
        (proto, ended, &[400]),
        (proto, messages, &[200]),
    ]
}

pub(super) async fn nesting(arena: Arena) -> Result<String, String> {
    let bodies = nested();
    let mut sent = 0;
    while sent == 0 || !arena.is_over() {
        for (index, (content_type, body, allowed)) in bodies.iter().enumerate() {
            let request = http1::post_of(ECHO, content_type, body);
            let (ended, answer) = arena.ask(&request, PATIENCE).await;
            let allowed = status(&answer).is_some_and(|status| allowed.contains(&status));
            if !ended || !allowed {
                let status = status(&answer);
                return Err(format!(
                    "nest {index} ({content_type}): ended {ended}, {status:?}"
                ));
            }
            sent += 1;
        }
    }
    Ok(format!("{sent} requests, {DEPTH} deep and more"))
}

pub(super) async fn slow(arena: Arena) -> Result<String, String> {
    let mut tasks = JoinSet::new();
    for number in 0..SLOW_CONNECTIONS {
        let arena = arena.clone();
        let dialect = DIALECTS[number % DIALECTS.len()];
        tasks.spawn(async move {
            let ends = arena.clone();
            ends.until_the_end(trickle(arena, dialect)).await;
        });
    }
    while tasks.join_next().await.is_some() {}
    Ok(format!(
        "{SLOW_CONNECTIONS} bodies, {} bytes",
        arena.counted()
    ))
}

/// A body of which a byte comes now and then.
async fn trickle(arena: Arena, dialect: Dialect) {
    let message = (dialect.wrap)(dialect.plain, &echo(&[b'x'; 1000]));
    let pause = Duration::from_millis(300);
    if dialect.name == "grpc" {
        let Ok(mut connection) = Http2::open(&arena, &[]).await else {
            return;
        };
        let block = http2::post(COLLECT, dialect.content_type, &[]);
        let _ = connection.head(1, 0, &block).await;
        for byte in &message {
            if connection.send(&frame(DATA, 0, 1, &[*byte])).await.is_err() {
                return;
            }
            arena.add(1);
            sleep(pause).await;
        }
        let _ = connection.send(&frame(DATA, END_STREAM, 1, &[])).await;
        return;
    }
    let Ok(socket) = arena.connect().await else {
        return;
    };
    let (mut read, mut write) = socket.into_split();
    let head = http1::head(COLLECT, &[("content-type", dialect.content_type)]);
    let head = format!("{head}content-length: {}\r\n\r\n", message.len());
    let writing = async {
        let _ = write.write_all(head.as_bytes()).await;
        for byte in &message {
            if write.write_all(&[*byte]).await.is_err() {
                return;
            }
            arena.add(1);
            sleep(pause).await;
        }
    };
    tokio::select! {
        () = writing => {}
        _ = discard(&mut read) => {}
    }
}

/// Bodies that stop in the middle of a message: each is answered, on connections that
/// stay open.
pub(super) async fn stalled(arena: Arena) -> Result<String, String> {
    let mut tasks = JoinSet::new();
    for number in 0..SLOW_CONNECTIONS {
        let arena = arena.clone();
        tasks.spawn(async move { stall(&arena, DIALECTS[number % DIALECTS.len()]).await });
    }
    let mut slowest = Duration::ZERO;
    while let Some(ended) = tasks.join_next().await {
        slowest = slowest.max(ended.map_err(|error| error.to_string())??);
    }
    Ok(format!(
        "{SLOW_CONNECTIONS} bodies, each ended within {slowest:.1?}"
    ))
}

/// How long half a message was waited for.
async fn stall(arena: &Arena, dialect: Dialect) -> Result<Duration, String> {
    let message = (dialect.wrap)(dialect.plain, &echo(&[b'x'; 1000]));
    let half = &message[..500];
    let begun = Instant::now();
    let ended = if dialect.name == "grpc" {
        let opened = Http2::open(arena, &[]).await;
        let mut connection = opened.map_err(|error| error.to_string())?;
        let block = http2::post(COLLECT, dialect.content_type, &[]);
        let _ = connection.head(1, 0, &block).await;
        let _ = connection.send(&frame(DATA, 0, 1, half)).await;
        connection.answer(1, STALLED_TIME_MAX).await.0
    } else {
        let head = http1::head(COLLECT, &[("content-type", dialect.content_type)]);
        let head = format!("{head}content-length: {}\r\n\r\n", message.len());
        let request = [head.as_bytes(), half].concat();
        arena.ask(&request, STALLED_TIME_MAX).await.0
    };
    if ended {
        Ok(begun.elapsed())
    } else {
        Err(format!("half a body of {} is waited for", dialect.name))
    }
}
