//! `quill call` against servers and descriptor sets that mean it harm.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::call_answers::{Answer, Asked, Case, Then, cases, descriptor_sets};
use crate::arena::Arena;
use crate::victim::{Process, memory};

/// What the command is told for the call, and when it must have ended: finding the
/// schema has 30 s of its own, the type of an error's detail 5 s.
const TIMEOUT: &str = "3s";
const ENDS_WITHIN: Duration = Duration::from_secs(40);
const AT_ONCE: usize = 2;
const LOOK: Duration = Duration::from_millis(2);
const METHOD: &str = "a.B/C";
const HEAD_BYTES_MAX: usize = 64 * 1024;

pub(super) async fn hostile(arena: Arena) -> Result<String, String> {
    let at_once = Arc::new(Semaphore::new(AT_ONCE));
    let mut tasks = JoinSet::new();
    let mut count = 0;
    for case in cases(&mut arena.dice(1)) {
        let (arena, at_once) = (arena.clone(), Arc::clone(&at_once));
        tasks.spawn(async move {
            let _permit = at_once.acquire().await;
            answered(&arena, &case).await
        });
        count += 1;
    }
    for (number, (name, set, must_fail)) in
        descriptor_sets(&mut arena.dice(2)).into_iter().enumerate()
    {
        let (arena, at_once) = (arena.clone(), Arc::clone(&at_once));
        let file = arena.folder.join(format!("set-{number}"));
        std::fs::write(&file, set).map_err(|error| error.to_string())?;
        tasks.spawn(async move {
            let _permit = at_once.acquire().await;
            read_set(&arena, name, &file, must_fail).await
        });
        count += 1;
    }
    let mut findings = Vec::new();
    while let Some(outcome) = tasks.join_next().await {
        findings.extend(outcome.map_err(|error| error.to_string())?.err());
    }
    if findings.is_empty() {
        return Ok(format!("{count} commands"));
    }
    Err(findings.join("; "))
}

async fn answered(arena: &Arena, case: &Case) -> Result<(), String> {
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .map_err(|e| e.to_string())?;
    let address = listener.local_addr().map_err(|e| e.to_string())?;
    let url = format!("http://{address}/{METHOD}");
    let arguments = ["--http1", "--protocol", case.protocol]
        .map(str::to_owned)
        .to_vec();
    tokio::select! {
        () = serve(listener, case) => Err(format!("{}: the false server ended", case.name)),
        outcome = run(arena, case.name, &url, arguments, case.must_fail) => outcome,
    }
}

/// The port is nobody's: what matters is read before.
async fn read_set(arena: &Arena, name: &str, file: &Path, must_fail: bool) -> Result<(), String> {
    let url = format!("http://127.0.0.1:1/{METHOD}");
    let arguments = vec!["--descriptor-set".to_owned(), file.display().to_string()];
    run(arena, name, &url, arguments, must_fail).await
}

/// Runs the command to its end, and watches it.
async fn run(
    arena: &Arena,
    name: &str,
    url: &str,
    arguments: Vec<String>,
    must_fail: bool,
) -> Result<(), String> {
    let mut command = Command::new(&arena.program);
    command
        .args(["call", url, "--timeout", TIMEOUT, "--input", "{}"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut process = Process::spawn(&mut command)?;
    let begun = Instant::now();
    let mut peak = 0;
    let status = loop {
        peak = peak.max(memory(process.pid).peak);
        match process.status() {
            Some(status) => break status,
            None if begun.elapsed() < ENDS_WITHIN => sleep(LOOK).await,
            None => return Err(format!("{name}: it does not end")),
        }
    };
    arena.note_peak(peak);
    match status.code() {
        Some(2..=4) => Ok(()),
        Some(0) if !must_fail => Ok(()),
        _ => Err(format!(
            "{name}: it ended with {status}, {} MiB at most",
            peak >> 10
        )),
    }
}

async fn serve(listener: TcpListener, case: &Case) {
    let answer = &case.answer;
    let mut asked_before = 0;
    let mut open = Vec::new();
    while let Ok((socket, _)) = listener.accept().await {
        // One connection after another: the command has one at a time.
        let served = serve_connection(socket, answer, &mut asked_before);
        if let Ok(Ok(Some(socket))) = timeout(ENDS_WITHIN, served).await {
            open.push(socket);
        }
    }
}

/// Answers requests until the peer ends; the socket where it is to stay open.
async fn serve_connection(
    mut socket: TcpStream,
    answer: &(dyn Fn(&Asked) -> Answer + Send + Sync),
    asked_before: &mut usize,
) -> std::io::Result<Option<TcpStream>> {
    loop {
        let Some((path, body)) = read_request(&mut socket).await? else {
            return Ok(None);
        };
        let questions = count_envelopes(&body);
        let asked = Asked {
            path,
            questions,
            asked_before: *asked_before,
        };
        *asked_before += questions;
        let answer = answer(&asked);
        socket.write_all(&answer.bytes).await?;
        match answer.then {
            Then::Go => {}
            Then::Close => return Ok(None),
            Then::Hold => return Ok(Some(socket)),
            Then::Repeat(bytes) => loop {
                socket.write_all(&bytes).await?;
            },
        }
    }
}

/// The path and the body, without chunks; `None` at the end of the connection.
async fn read_request(socket: &mut TcpStream) -> std::io::Result<Option<(String, Vec<u8>)>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if socket.read(&mut byte).await? == 0 || head.len() > HEAD_BYTES_MAX {
            return Ok(None);
        }
        head.extend(byte);
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut body = Vec::new();
    if let Some(length) = length {
        body.resize(length.trim().parse().unwrap_or_default(), 0);
        socket.read_exact(&mut body).await?;
    } else {
        loop {
            let mut line = Vec::new();
            while !line.ends_with(b"\r\n") {
                line.push(socket.read_u8().await?);
            }
            let text = String::from_utf8_lossy(&line);
            let size = usize::from_str_radix(text.trim(), 16).unwrap_or_default();
            let mut chunk = vec![0; size + 2];
            socket.read_exact(&mut chunk).await?;
            if size == 0 {
                break;
            }
            body.extend(&chunk[..size]);
        }
    }
    Ok(Some((path, body)))
}

fn count_envelopes(mut body: &[u8]) -> usize {
    let mut count = 0;
    while let [_, a, b, c, d, rest @ ..] = body {
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        body = rest.get(length..).unwrap_or_default();
        count += 1;
    }
    count
}
