//! What is measured of a server, each in turns so that whatever else the
//! machine does meets all subjects alike.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::figures::Figures;
use crate::load::Load;
use crate::peer::Peer;
use crate::process::{self, Program, Server, Subject};

/// Rounds of each measurement. The least counts.
const ROUNDS: usize = 4;

/// Rounds at a fixed rate.
const RATE_ROUNDS: usize = 5;

/// Streams of a chat, on one connection.
const CHATS: usize = 64;
const CHAT_MESSAGES: usize = 500;

/// Connections that memory is measured over.
const CONNECTIONS: usize = 2_000;
const CALLS_BEFORE_IDLE: usize = 100;

/// For a server to give back what it holds of a connection that went idle.
const SETTLE: Duration = Duration::from_millis(500);

/// One figure of each server that gives one; what fails is said, and has none.
fn rounds<'a>(
    servers: impl IntoIterator<Item = &'a Server> + Clone,
    rounds: usize,
    measure: &mut dyn FnMut(&Server) -> Result<f64, String>,
) -> Figures {
    let mut figures = Figures::default();
    for _ in 0..rounds {
        for server in servers.clone() {
            match measure(server) {
                Ok(value) => figures.add(server.subject.name, value),
                Err(error) => eprintln!("compare: {error}"),
            }
        }
    }
    figures
}

/// Nanoseconds of CPU time that one of `parts` of each request takes.
pub fn cpu<'a>(
    servers: impl IntoIterator<Item = &'a Server> + Clone,
    load: &Load,
    parts: usize,
) -> Figures {
    let warm_up = load.with_requests((load.requests / 10).max(16));
    // What fails here fails below, where it is said.
    for server in servers.clone() {
        let _ = warm_up.run(server);
    }
    rounds(servers, ROUNDS, &mut |server| {
        let before = server.cpu_time()?;
        load.run(server)?;
        let took = server.cpu_time()?.saturating_sub(before);
        Ok(took.as_nanos() as f64 / (load.requests * parts) as f64)
    })
}

/// Nanoseconds of CPU time that one message takes which is echoed on a stream.
pub fn chat(servers: &[Server]) -> Figures {
    rounds(servers, ROUNDS, &mut |server| {
        let failed = |error| format!("{}: {error}", server.subject.name);
        let mut peer = Peer::connect(server.address).map_err(failed)?;
        let before = server.cpu_time()?;
        peer.chat(CHATS, CHAT_MESSAGES).map_err(failed)?;
        let took = server.cpu_time()?.saturating_sub(before);
        Ok(took.as_nanos() as f64 / (CHATS * CHAT_MESSAGES) as f64)
    })
}

/// Nanoseconds from a call to the end of its answer, with no other under way.
pub fn one_call(servers: &[Server]) -> Figures {
    rounds(servers, ROUNDS, &mut |server| {
        let failed = |error| format!("{}: {error}", server.subject.name);
        let mut peer = Peer::connect(server.address).map_err(failed)?;
        peer.call_many(100).map_err(failed)?;
        let median = peer.median_call(1_000).map_err(failed)?;
        Ok(median.as_nanos() as f64)
    })
}

/// Microseconds that answers take at a fixed rate of requests: p50, p99, p99.9.
/// A round in which the load itself fell behind does not count, and leaves the others.
pub fn at_rate(servers: &[Server], load: &Load, per_second: usize) -> [Figures; 3] {
    let mut all: [Figures; 3] = Default::default();
    for server in servers.iter().cycle().take(servers.len() * RATE_ROUNDS) {
        match load.run_at(server, per_second) {
            Ok(times) => {
                for (figures, part) in all.iter_mut().zip([0.5, 0.99, 0.999]) {
                    let at = (times.len() as f64 * part) as usize;
                    figures.add(server.subject.name, times[at.min(times.len() - 1)] as f64);
                }
            }
            Err(error) => eprintln!("compare: {}: {error}", server.subject.name),
        }
    }
    all
}

/// Bytes that an idle connection takes, and then an open stream on it.
pub fn memory(subjects: &[Subject], folder: &Path) -> (Figures, Figures) {
    let (mut idle, mut open) = (Figures::default(), Figures::default());
    for subject in subjects {
        match memory_of(*subject, folder) {
            Ok((of_idle, of_open)) => {
                idle.add(subject.name, of_idle);
                open.add(subject.name, of_open);
            }
            Err(error) => eprintln!("compare: {}: {error}", subject.name),
        }
    }
    (idle, open)
}

fn memory_of(subject: Subject, folder: &Path) -> Result<(f64, f64), String> {
    let failed = |error: std::io::Error| error.to_string();
    let server = Server::start(subject, folder)?;
    let mut peers = Vec::with_capacity(CONNECTIONS + 1);
    let mut first = Peer::connect(server.address).map_err(failed)?;
    first.call_many(CALLS_BEFORE_IDLE).map_err(failed)?;
    first.open_stream().map_err(failed)?;
    thread::sleep(SETTLE);
    let before = server.memory()?;
    for _ in 0..CONNECTIONS {
        let mut peer = Peer::connect(server.address).map_err(failed)?;
        peer.call_many(CALLS_BEFORE_IDLE).map_err(failed)?;
        peers.push(peer);
    }
    thread::sleep(SETTLE);
    let idle = server.memory()?;
    for peer in &mut peers {
        peer.open_stream().map_err(failed)?;
    }
    thread::sleep(SETTLE);
    let open = server.memory()?;
    let each = CONNECTIONS as f64;
    Ok(((idle - before) / each, (open - idle) / each))
}

/// System calls that write to a socket, an answer, under load. tokio sends to
/// sockets and wakes its threads by `write`, which therefore counts only for
/// those who write to sockets so.
pub fn writes(servers: &[Server], load: &Load) -> Figures {
    rounds(servers, 1, &mut |server| {
        load.with_requests(100).run(server)?;
        let mut strace = Command::new("strace")
            .args(["-f", "-c", "-U", "calls,name"])
            .args(["-e", "trace=write,writev,sendto,sendmsg", "-p"])
            .arg(server.pid().to_string())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("strace: {error}"))?;
        let mut said = BufReader::new(strace.stderr.take().ok_or("strace says nothing")?);
        let mut line = String::new();
        said.read_line(&mut line)
            .map_err(|error| format!("strace: {error}"))?;
        if !line.contains("attached") {
            return Err(format!("strace: {}", line.trim()));
        }
        let loaded = load.run(server);
        // An interrupt lets it go of the server and print what it counted.
        let stopped = Command::new("kill")
            .args(["-INT", &strace.id().to_string()])
            .status();
        stopped.map_err(|error| format!("kill: {error}"))?;
        let mut table = String::new();
        said.read_to_string(&mut table)
            .map_err(|error| format!("strace: {error}"))?;
        let _ = strace.wait();
        loaded?;
        let writes_plainly = matches!(server.subject.program, Program::Go | Program::Nghttpd);
        Ok(count(&table, writes_plainly) as f64 / load.requests as f64)
    })
}

/// The calls in strace's table of calls and names.
fn count(table: &str, with_plain: bool) -> u64 {
    let mut calls = 0;
    for line in table.lines() {
        let mut words = line.split_whitespace();
        let (number, name) = (words.next(), words.next());
        let counts = match name {
            Some("writev" | "sendto" | "sendmsg") => true,
            Some("write") => with_plain,
            _ => false,
        };
        if counts {
            calls += number.and_then(|number| number.parse().ok()).unwrap_or(0);
        }
    }
    calls
}

/// Instructions in user space that one request takes, by callgrind: a server is
/// asked N and 2N times, and the difference is what its start does not explain.
pub fn instructions(subjects: &[Subject], load: &Load) -> Figures {
    let mut figures = Figures::default();
    for subject in subjects {
        match instructions_of(*subject, load) {
            Ok(value) => figures.add(subject.name, value),
            Err(error) => eprintln!("compare: {}: {error}", subject.name),
        }
    }
    figures
}

fn instructions_of(subject: Subject, load: &Load) -> Result<f64, String> {
    let total = |requests: usize| -> Result<f64, String> {
        let server = Server::start_counted(subject)?;
        load.with_requests(requests).run(&server)?;
        collected(&server.finish()?)
    };
    let (once, twice) = (total(load.requests)?, total(2 * load.requests)?);
    Ok((twice - once) / load.requests as f64)
}

/// Instructions in user space that a call takes its client, counted as a server's are.
pub fn client_instructions(server: &Server, clients: &[&'static str], calls: usize) -> Figures {
    let mut figures = Figures::default();
    for client in clients {
        let total = |calls: usize| -> Result<f64, String> {
            let output = Command::new("valgrind")
                .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
                .arg(process::own_program()?)
                .args(["call", client, &server.address.to_string()])
                .arg(calls.to_string())
                .output()
                .map_err(|error| format!("valgrind: {error}"))?;
            collected(&String::from_utf8_lossy(&output.stderr))
        };
        match total(calls).and_then(|once| Ok((total(2 * calls)? - once) / calls as f64)) {
            Ok(value) => figures.add(client, value),
            Err(error) => eprintln!("compare: client {client}: {error}"),
        }
    }
    figures
}

/// The number in what callgrind says at its end: `==123== Collected : 456`.
fn collected(report: &str) -> Result<f64, String> {
    let number = report
        .split_once("Collected :")
        .and_then(|(_, rest)| rest.split_whitespace().next())
        .and_then(|number| number.parse().ok());
    number.ok_or_else(|| "valgrind counted nothing".to_owned())
}

/// Nanoseconds of CPU time that a call takes its client.
pub fn clients(server: &Server, clients: &[&'static str], calls: usize) -> Figures {
    let mut figures = Figures::default();
    for _ in 0..ROUNDS {
        for client in clients {
            match client_of(server, client, calls) {
                Ok(value) => figures.add(client, value),
                Err(error) => eprintln!("compare: client {client}: {error}"),
            }
        }
    }
    figures
}

fn client_of(server: &Server, client: &str, calls: usize) -> Result<f64, String> {
    let output = Command::new(process::own_program()?)
        .args(["call", client, &server.address.to_string()])
        .arg(calls.to_string())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let nanos = text.trim().parse();
    nanos.map_err(|_| "it did not end well".to_owned())
}
