//! Bytes that are no request, or not yet one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;

use crate::arena::Arena;
use crate::wire::http1;
use crate::wire::http2::{self, DATA, END_HEADERS, END_STREAM, HEADERS, PREFACE, frame, settings};
use crate::wire::messages::{CHAT, COLLECT, DIALECTS, ECHO, echo};

/// How long the victim may take to end a connection whose peer has ended its half.
const PATIENCE: Duration = Duration::from_secs(8);
const AT_ONCE: u64 = 16;
const RANDOM_BYTES_MAX: usize = 4096;

pub(super) async fn random(arena: Arena) -> Result<String, String> {
    arena
        .on_connections(AT_ONCE, |arena, number| async move {
            let mut dice = arena.dice(number);
            let mut bytes = match number % 4 {
                0 => Vec::new(),
                1 => [PREFACE, &settings(&[])].concat(),
                2 => http1::head(ECHO, &[("content-type", "application/proto")]).into_bytes(),
                _ => {
                    let block = http2::post(CHAT, "application/grpc", &[]);
                    let head = frame(HEADERS, END_HEADERS, 1, &block);
                    [PREFACE, &settings(&[]), &head].concat()
                }
            };
            let random = dice.below(RANDOM_BYTES_MAX);
            if number.is_multiple_of(2) {
                bytes.extend(dice.bytes(random));
            } else {
                // Frames of random kinds with random payloads.
                while bytes.len() < random {
                    let (kind, flags) = (dice.below(11) as u8, dice.roll() as u8);
                    let (stream, length) = (dice.below(5) as u32, dice.below(64));
                    bytes.extend(frame(kind, flags, stream, &dice.bytes(length)));
                }
            }
            arena.exchange(&bytes, PATIENCE).await;
            arena.add(1);
        })
        .await;
    Ok(format!("{} connections", arena.counted()))
}

/// Good requests of HTTP/1.1 and HTTP/2 in each protocol.
fn good_requests() -> Vec<Vec<u8>> {
    let json = br#"{"message":"hi"}"#;
    let mut requests = vec![
        http1::post_of(ECHO, "application/json", json),
        http1::post_of(ECHO, "application/quill+json", json),
        format!(
            "GET {ECHO}?connect=v1&encoding=json&message=%7B%22message%22%3A%22hi%22%7D \
             HTTP/1.1\r\nhost: victim\r\nconnection: close\r\n\r\n"
        )
        .into_bytes(),
    ];
    for dialect in DIALECTS {
        let message = echo(b"hi");
        let mut body = (dialect.wrap)(dialect.plain, &message);
        body.extend(dialect.end);
        if dialect.name != "grpc" {
            requests.push(http1::post_of(COLLECT, dialect.content_type, &body));
            let mut chunked = http1::head(COLLECT, &[("content-type", dialect.content_type)]);
            chunked.push_str("connection: close\r\ntransfer-encoding: chunked\r\n\r\n");
            chunked.push_str(&format!("{:x}\r\n", body.len()));
            let end = &b"\r\n0\r\n\r\n"[..];
            requests.push([chunked.as_bytes(), &body, end].concat());
        }
        let block = http2::post(CHAT, dialect.content_type, &[("x-a", "1")]);
        let frames = [
            PREFACE,
            &settings(&[]),
            &frame(HEADERS, END_HEADERS, 1, &block),
            &frame(DATA, END_STREAM, 1, &body),
        ];
        requests.push(frames.concat());
    }
    requests
}

pub(super) async fn prefixes(arena: Arena) -> Result<String, String> {
    let requests = Arc::new(good_requests());
    let cuts: Vec<(usize, usize)> = requests
        .iter()
        .enumerate()
        .flat_map(|(index, request)| (0..=request.len()).map(move |cut| (index, cut)))
        .collect();
    let (cuts, next) = (Arc::new(cuts), Arc::new(AtomicUsize::new(0)));
    let mut tasks = JoinSet::new();
    for _ in 0..AT_ONCE {
        let (arena, requests) = (arena.clone(), Arc::clone(&requests));
        let (cuts, next) = (Arc::clone(&cuts), Arc::clone(&next));
        tasks.spawn(async move {
            let mut held = None;
            while let Some((index, cut)) = cuts.get(next.fetch_add(1, Ordering::Relaxed)) {
                let request = &requests[*index];
                let whole = *cut == request.len();
                let (ended, answer) = if whole && !request.starts_with(PREFACE) {
                    arena.ask(request, PATIENCE).await
                } else {
                    arena.exchange(&request[..*cut], PATIENCE).await
                };
                if !ended || whole && answer.is_empty() {
                    held = Some((*index, *cut, ended));
                }
                arena.add(1);
            }
            held
        });
    }
    let mut held = None;
    while let Some(ended) = tasks.join_next().await {
        held = held.or(ended.ok().flatten());
    }
    match held {
        None => Ok(format!(
            "{} prefixes of {} requests",
            arena.counted(),
            requests.len()
        )),
        Some((index, cut, ended)) => Err(format!(
            "request {index} cut at {cut}: {}",
            if ended {
                "no answer"
            } else {
                "the connection was held open"
            }
        )),
    }
}
