//! How the demo starts and ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Demo, quill, run, scratch, wait, wait_for};

#[test]
fn a_signal_ends_it_within_five_seconds_whatever_streams_are_open() {
    for signal in ["-INT", "-TERM"] {
        let mut demo = Demo::start();
        let mut call = demo
            .call("echo.v1.EchoService/Expand")
            .args(["--input", r#"{"message":"a","interval_ms":50}"#])
            .command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut answers = BufReader::new(call.stdout.take().unwrap()).lines();
        answers.next().unwrap().unwrap();
        let asked = Instant::now();
        let pid = demo.child.id().to_string();
        assert!(
            Command::new("kill")
                .args([signal, &pid])
                .status()
                .unwrap()
                .success()
        );
        let reading = std::thread::spawn(move || answers.count());
        let status = wait(&mut demo.child);
        let took = asked.elapsed();
        assert_eq!(status.code(), Some(0), "{signal}");
        assert!(took < Duration::from_secs(5), "{signal}: {took:?}");
        reading.join().unwrap();
        // The open stream was cut, and its caller knows.
        assert!(matches!(wait(&mut call).code(), Some(3 | 4)), "{signal}");
    }
}

#[test]
fn a_signal_right_after_the_start_is_heard() {
    for _ in 0..5 {
        let mut demo = Demo::start();
        let pid = demo.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &pid])
                .status()
                .unwrap()
                .success()
        );
        assert_eq!(wait(&mut demo.child).code(), Some(0));
    }
}

#[test]
fn a_busy_port_is_told_with_the_way_out() {
    let busy = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = busy.local_addr().unwrap().to_string();
    let mut command = quill();
    command.args(["demo", "--listen", &address]);
    let ran = run(command, b"");
    let error = ran.error(3);
    assert!(error.contains(&address), "{error}");
    assert!(error.contains("in use"), "{error}");
    assert!(error.contains("--listen"), "{error}");
}

#[test]
fn what_is_no_address_is_bad_input() {
    for bad in ["8080", "localhost", ":8080", "127.0.0.1:http"] {
        let mut command = quill();
        command.args(["demo", "--listen", bad]);
        let ended = run(command, b"");
        let error = ended.error(2);
        assert!(error.contains("host:port"), "{bad}: {error}");
    }
}

#[test]
fn a_port_file_that_cant_be_written_is_told() {
    let mut command = quill();
    command.args([
        "demo",
        "--listen",
        "127.0.0.1:0",
        "--port-file",
        "/no/such/folder/port",
    ]);
    let ran = run(command, b"");
    assert!(ran.error(2).contains("/no/such/folder/port"));
}

#[test]
fn the_commands_it_prints_work_as_pasted() {
    let port_file = scratch("port");
    let mut demo = quill()
        .args(["demo", "--listen", "127.0.0.1:0", "--port-file"])
        .arg(&port_file)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("the port file", || std::fs::read_to_string(&port_file).ok());
    let mut stdout = demo.stdout.take().unwrap();
    let mut printed = String::new();
    let mut buffer = [0; 4096];
    while !printed.contains("Ctrl-C ends it.") {
        let read = stdout.read(&mut buffer).unwrap();
        assert!(read > 0, "{printed}");
        printed.push_str(&String::from_utf8_lossy(&buffer[..read]));
    }
    let joined = printed.replace("\\\n", " ");
    let commands: Vec<_> = joined
        .lines()
        .filter(|line| line.starts_with("  "))
        .collect();
    assert!(commands.len() >= 5, "{printed}");
    for line in commands {
        let program = line.split_whitespace().next().unwrap();
        if !program.contains('/') && crate::support::external(program).is_none() {
            continue;
        }
        let mut shell = Command::new("sh");
        shell.args(["-c", line]);
        let ran = run(shell, b"");
        assert_eq!(ran.code, Some(0), "{line}: {ran:?}");
        assert!(
            ran.stdout.contains("hi") || ran.stdout.contains("echo.v1.EchoService"),
            "{line}"
        );
    }
    demo.kill().unwrap();
    demo.wait().unwrap();
}

#[test]
fn pages_of_the_named_origins_may_call() {
    let demo = Demo::start_with(&[
        "--cors-origin",
        "http://localhost:3000",
        "--cors-origin",
        "https://app.example",
    ]);
    for (origin, status) in [
        ("http://localhost:3000", "204"),
        ("https://app.example", "204"),
        ("https://other.example", "403"),
    ] {
        let mut socket = std::net::TcpStream::connect(&demo.address).unwrap();
        let preflight = format!(
            "OPTIONS /echo.v1.EchoService/Echo HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\
             origin: {origin}\r\naccess-control-request-method: POST\r\n\r\n"
        );
        socket.write_all(preflight.as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        assert!(answer.contains(status), "{origin}: {answer}");
        let allowed = format!("access-control-allow-origin: {origin}");
        assert_eq!(answer.contains(&allowed), status == "204", "{answer}");
    }
    let mut command = quill();
    command.args(["demo", "--listen", "127.0.0.1:0", "--cors-origin", "*"]);
    let ran = run(command, b"");
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("https://app.example"), "{}", ran.stderr);
}
