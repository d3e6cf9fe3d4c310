//! Messages flow as they come, in both directions.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::{Demo, wait, wait_for};

#[test]
fn a_conversation_goes_back_and_forth() {
    let demo = Demo::start();
    for protocol in ["quill", "grpc", "connect"] {
        let mut call = demo
            .call("echo.v1.EchoService/Chat")
            .args(["--protocol", protocol, "--input", "-"])
            .command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = call.stdin.take().unwrap();
        let mut answers = BufReader::new(call.stdout.take().unwrap()).lines();
        for n in 0..3 {
            writeln!(stdin, "{{\"message\":\"{n}\"}}").unwrap();
            let answer = answers.next().unwrap().unwrap();
            assert_eq!(answer, format!("{{\"message\":\"{n}\"}}"), "{protocol}");
        }
        drop(stdin);
        assert!(answers.next().is_none());
        assert_eq!(wait(&mut call).code(), Some(0), "{protocol}");
    }
}

#[test]
fn standard_input_is_read_no_faster_than_the_server_takes_it() {
    const OFFERED: usize = 64 * 1024 * 1024;
    // Connection and stream windows, pipes and what is read ahead, with room.
    const TAKEN_MAX: usize = 16 * 1024 * 1024;
    let demo = Demo::start();
    let mut call = demo
        .call("echo.v1.EchoService/Collect")
        .args(["--protocol", "grpc", "--input", "-"])
        .command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = call.stdin.take().unwrap();
    let taken = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&taken);
    let writer = std::thread::spawn(move || {
        // The server waits an hour over the first message.
        let mut line = "{\"delay_ms\":3600000}\n".to_owned();
        while counter.load(Ordering::Relaxed) < OFFERED {
            if stdin.write_all(line.as_bytes()).is_err() {
                return;
            }
            counter.fetch_add(line.len(), Ordering::Relaxed);
            line = format!("{{\"message\":\"{}\"}}\n", "a".repeat(16 * 1024));
        }
    });
    // It has come to rest when nothing moves for two seconds.
    let (mut last, mut since) = (0, Instant::now());
    wait_for("the command to stop reading", || {
        let now = taken.load(Ordering::Relaxed);
        if now != last {
            (last, since) = (now, Instant::now());
        }
        (now >= OFFERED || now > 0 && since.elapsed() > Duration::from_secs(2)).then_some(())
    });
    call.kill().unwrap();
    call.wait().unwrap();
    writer.join().unwrap();
    assert!(last < TAKEN_MAX, "{last} bytes were read ahead");
}

#[test]
fn a_reader_that_has_enough_ends_the_call_quietly() {
    let demo = Demo::start();
    let mut call = demo
        .call("echo.v1.EchoService/Expand")
        .args(["--input", r#"{"message":"on and on"}"#])
        .command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut answers = BufReader::new(call.stdout.take().unwrap()).lines();
    for _ in 0..3 {
        assert_eq!(
            answers.next().unwrap().unwrap(),
            r#"{"message":"on and on"}"#
        );
    }
    drop(answers);
    assert_eq!(wait(&mut call).code(), Some(0));
    let mut stderr = String::new();
    std::io::Read::read_to_string(&mut call.stderr.take().unwrap(), &mut stderr).unwrap();
    assert_eq!(stderr, "");
}
