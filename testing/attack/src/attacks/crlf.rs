//! Line ends where none may be.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quill_h2::hpack::{Decoder, Field, Sink};

use crate::arena::Arena;
use crate::wire::http1::{self, status};
use crate::wire::http2::{self, DATA, END_STREAM, HEADERS, Http2, field, frame};
use crate::wire::messages::{ECHO, bytes_field, envelope, number_field};

const PATIENCE: Duration = Duration::from_secs(8);
/// What an error message tries to become: the end of its line, and more lines.
const SMUGGLED: &[u8] = b"a\r\ngrpc-status: 0\r\nx-evil: 1\r\n\r\n{}\n\r\0";
/// What no answer may hold: a line of that.
const LINES: [&[u8]; 2] = [b"\ngrpc-status: 0", b"\nx-evil"];
/// The error that is asked for.
const NOT_FOUND: u64 = 5;

fn holds(haystack: &[u8], needle: &[u8]) -> bool {
    haystack
        .windows(needle.len())
        .any(|window| window == needle)
}

/// A message that asks for an error with line ends in it.
fn asking() -> Vec<u8> {
    [number_field(3, NOT_FOUND), bytes_field(4, SMUGGLED)].concat()
}

/// Requests whose errors have line ends in their messages.
fn failing() -> Vec<Vec<u8>> {
    let request = asking();
    let web = ["application/grpc-web+proto", "application/grpc-web"];
    let mut requests: Vec<Vec<u8>> = web
        .iter()
        .map(|content_type| http1::post_of(ECHO, content_type, &envelope(0, &request)))
        .collect();
    for content_type in ["application/proto", "application/quill+proto"] {
        requests.push(http1::post_of(ECHO, content_type, &request));
    }
    requests
}

/// Heads that HTTP/1.1 forbids, and what may be answered.
fn broken_heads() -> Vec<Vec<u8>> {
    let with = |line: &str| {
        let head = http1::head(ECHO, &[("content-type", "application/json")]);
        format!("{head}connection: close\r\n{line}content-length: 2\r\n\r\n{{}}").into_bytes()
    };
    vec![
        with("x-a: 1\rx-evil: 1\r\n"),
        with("x-a: 1\0\r\n"),
        with("x-a: 1\r\n folded\r\n"),
        with("x-a\r\n"),
        with("x a: 1\r\n"),
        with("content-length: 3\r\n"),
        with("transfer-encoding: chunked\r\n"),
    ]
}

pub(super) async fn smuggle(arena: Arena) -> Result<String, String> {
    let mut sent = 0;
    while sent == 0 || !arena.is_over() {
        for (index, request) in failing().iter().enumerate() {
            let (ended, answer) = arena.ask(request, PATIENCE).await;
            if !ended || answer.is_empty() {
                return Err(format!("error {index} has no answer"));
            }
            if let Some(line) = LINES.iter().find(|line| holds(&answer, line)) {
                let line = line.escape_ascii();
                return Err(format!("error {index} smuggled {line:?} into its answer"));
            }
            sent += 1;
        }
        for (index, request) in broken_heads().iter().enumerate() {
            let (ended, answer) = arena.ask(request, PATIENCE).await;
            if !ended || status(&answer) == Some(200) {
                let status = status(&answer);
                return Err(format!("broken head {index}: ended {ended}, {status:?}"));
            }
            sent += 1;
        }
        in_text(&arena).await?;
        in_trailers(&arena).await?;
        sent += 2 + in_http2(&arena).await?;
    }
    Ok(format!("{sent} requests"))
}

/// The same in fields of HTTP/2, where nothing but the reader's care keeps them out.
async fn in_http2(arena: &Arena) -> Result<u64, String> {
    let wrong: [(&str, &[u8]); 6] = [
        ("x-a", b"1\r\nx-evil: 1"),
        ("x-a", b"1\0"),
        ("x-a\r\nx-evil", b"1"),
        ("x-a: 1", b"1"),
        ("X-Upper", b"1"),
        ("connection", b"x-a"),
    ];
    let mut sent = 0;
    for (name, value) in wrong {
        let mut connection = Http2::open(arena, &[]).await.map_err(|e| e.to_string())?;
        let mut block = http2::post(ECHO, "application/proto", &[]);
        block.extend(field(name, value));
        let _ = connection.head(1, END_STREAM, &block).await;
        let (ended, data) = connection.answer(1, PATIENCE).await;
        if !ended || LINES.iter().any(|line| holds(&data, line)) {
            return Err(format!(
                "field {name:?}: ended {ended}, {:?}",
                data.escape_ascii().to_string()
            ));
        }
        sent += 1;
    }
    Ok(sent)
}

/// The trailers in the body of gRPC-Web text.
async fn in_text(arena: &Arena) -> Result<(), String> {
    let text = STANDARD.encode(envelope(0, &asking()));
    let request = http1::post_of(ECHO, "application/grpc-web-text+proto", text.as_bytes());
    let (ended, answer) = arena.ask(&request, PATIENCE).await;
    let body = answer.windows(4).position(|end| end == b"\r\n\r\n");
    let body = body.map_or(&[][..], |head| &answer[head + 4..]);
    // An answer may be chunked, whose lines are no base64.
    let lines = body.split(|byte| *byte == b'\n');
    let groups = lines.flat_map(|line| line.trim_ascii().chunks_exact(4));
    let bytes: Vec<u8> = groups
        .filter_map(|group| STANDARD.decode(group).ok())
        .flatten()
        .collect();
    let has_status = holds(&bytes, b"grpc-status: 5") || holds(&bytes, b"grpc-status:5");
    if ended && has_status && !LINES.iter().any(|line| holds(&bytes, line)) {
        return Ok(());
    }
    let bytes = bytes.escape_ascii();
    Err(format!("gRPC-Web text: ended {ended}, {bytes}"))
}

#[derive(Default)]
struct List(Vec<(Vec<u8>, Vec<u8>)>);

impl Sink for List {
    fn field(&mut self, field: Field<'_>) {
        self.0.push((field.name.to_vec(), field.value.to_vec()));
    }
}

/// The trailers of gRPC.
async fn in_trailers(arena: &Arena) -> Result<(), String> {
    let error = |error: std::io::Error| error.to_string();
    let mut connection = Http2::open(arena, &[]).await.map_err(error)?;
    let block = http2::post(ECHO, "application/grpc+proto", &[]);
    connection.head(1, 0, &block).await.map_err(error)?;
    let request = frame(DATA, END_STREAM, 1, &envelope(0, &asking()));
    connection.send(&request).await.map_err(error)?;
    let mut list = List::default();
    let mut decoder = Decoder::new(4096);
    loop {
        let next = tokio::time::timeout(PATIENCE, connection.next()).await;
        let (kind, flags, _, payload) = next.map_err(|e| e.to_string())?.map_err(error)?;
        if kind == HEADERS {
            let decoded = decoder.decode(&payload, 1 << 16, &mut list);
            let _ = decoded.map_err(|error| error.to_string())?;
            if flags & END_STREAM != 0 {
                break;
            }
        }
    }
    let statuses = list.0.iter().filter(|(name, _)| name == b"grpc-status");
    let statuses: Vec<&[u8]> = statuses.map(|(_, value)| &value[..]).collect();
    let is_line_end = |byte: &u8| b"\r\n\0".contains(byte);
    let mut bytes = list
        .0
        .iter()
        .flat_map(|(name, value)| name.iter().chain(value));
    if statuses == [b"5"] && !bytes.any(is_line_end) {
        return Ok(());
    }
    Err(format!("trailers of gRPC: {:?}", list.0))
}
