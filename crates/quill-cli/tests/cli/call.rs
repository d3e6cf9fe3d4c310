//! All kinds of calls, in all protocols.

use crate::support::{Demo, PROTOCOLS, scratch};

const ECHO: &str = "echo.v1.EchoService/Echo";
const EXPAND: &str = "echo.v1.EchoService/Expand";
const COLLECT: &str = "echo.v1.EchoService/Collect";
const CHAT: &str = "echo.v1.EchoService/Chat";

#[test]
fn every_kind_works_in_every_protocol() {
    let demo = Demo::start();
    for protocol in PROTOCOLS {
        let call = |method| demo.call(method).args(["--protocol", protocol]);
        let ran = call(ECHO).input(r#"{"message":"hi"}"#).run();
        assert_eq!(ran.lines(), [r#"{"message":"hi"}"#], "{protocol}");
        let ran = call(EXPAND).input(r#"{"message":"a","count":3}"#).run();
        assert_eq!(ran.lines(), [r#"{"message":"a"}"#; 3], "{protocol}");
        let ran = call(COLLECT)
            .input(r#"{"message":"ä"}{"message":"b"} {}"#)
            .run();
        assert_eq!(
            ran.lines(),
            [r#"{"count":3,"totalBytes":"3"}"#],
            "{protocol}"
        );
        let ran = call(CHAT)
            .stdin("{\"message\":\"a\"}\n{\"message\":\"b\"}\n")
            .run();
        assert_eq!(
            ran.lines(),
            [r#"{"message":"a"}"#, r#"{"message":"b"}"#],
            "{protocol}"
        );
    }
}

#[test]
fn quill_is_the_default_protocol_and_the_empty_message_the_default_input() {
    let demo = Demo::start();
    assert_eq!(demo.call(ECHO).run().lines(), ["{}"]);
    assert_eq!(demo.call(COLLECT).run().lines(), ["{}"]);
    let process = demo.call("data.v1.DataService/Process");
    assert_eq!(
        process.input(r#"{"data":"abc"}"#).run().lines(),
        [r#"{"bytes":"3"}"#]
    );
    let batch = demo.call("data.v1.DataService/ProcessBatch");
    let ran = batch.input(r#"{"data":"abc"}{"data":"de"}"#).run();
    assert_eq!(ran.lines(), [r#"{"count":2,"bytes":"5"}"#]);
}

#[test]
fn http1_carries_all_that_needs_no_two_halves_at_once() {
    let demo = Demo::start();
    for protocol in ["quill", "grpc-web", "connect"] {
        let call = |method| demo.call(method).args(["--http1", "--protocol", protocol]);
        let ran = call(ECHO).input(r#"{"message":"hi"}"#).run();
        assert_eq!(ran.lines(), [r#"{"message":"hi"}"#], "{protocol}");
        let ran = call(EXPAND).input(r#"{"message":"a","count":2}"#).run();
        assert_eq!(ran.lines(), [r#"{"message":"a"}"#; 2], "{protocol}");
        let ran = call(COLLECT)
            .input(r#"{"message":"a"}{"message":"b"}"#)
            .run();
        assert_eq!(
            ran.lines(),
            [r#"{"count":2,"totalBytes":"2"}"#],
            "{protocol}"
        );
    }
}

#[test]
fn health_is_served_and_described() {
    let demo = Demo::start();
    for service in ["", "echo.v1.EchoService", "data.v1.DataService"] {
        let input = format!(r#"{{"service":"{service}"}}"#);
        let ran = demo.call("grpc.health.v1.Health/Check").input(&input).run();
        assert_eq!(ran.lines(), [r#"{"status":"SERVING"}"#], "{service:?}");
    }
}

#[test]
fn input_comes_from_a_file_too() {
    let demo = Demo::start();
    let file = scratch("messages.json");
    std::fs::write(&file, "{\n  \"message\": \"from a file\"\n}\n").unwrap();
    let ran = demo.call(ECHO).input(&format!("@{}", file.display())).run();
    assert_eq!(ran.lines(), [r#"{"message":"from a file"}"#]);
}

#[test]
fn large_messages_travel_compressed() {
    let demo = Demo::start();
    let message = format!("{{\"message\":\"{}\"}}", "a".repeat(100_000));
    for protocol in ["quill", "grpc", "connect"] {
        let call = demo.call(ECHO).args(["--compress", "--protocol", protocol]);
        assert_eq!(call.stdin(&message).run().lines(), [&message], "{protocol}");
    }
}

#[test]
fn metadata_is_shown_when_asked_for() {
    let demo = Demo::start();
    let call = demo
        .call(ECHO)
        .args(["-v", "--header", "x-id: 7", "--timeout", "30s"]);
    assert_eq!(call.run().lines(), ["{}"]);
}

#[cfg(unix)]
#[test]
fn a_unix_socket_works_like_a_port() {
    use std::process::Stdio;

    use crate::support::{Call, quill, wait_for};
    // Not in the target folder: a socket's path holds about a hundred bytes.
    let socket = std::env::temp_dir().join(format!("quill-cli-{}.sock", std::process::id()));
    let address = format!("unix:{}", socket.display());
    let mut demo = quill()
        .args(["demo", "--listen", &address])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("the socket", || socket.exists().then_some(()));
    let ran = Call::new(&format!("{address}/{ECHO}"))
        .input(r#"{"message":"hi"}"#)
        .run();
    demo.kill().unwrap();
    demo.wait().unwrap();
    let _ = std::fs::remove_file(&socket);
    assert_eq!(ran.lines(), [r#"{"message":"hi"}"#]);
}

#[test]
fn fields_at_their_defaults_are_shown_where_that_is_asked_for() {
    let demo = Demo::start();
    let full = |method| demo.call(method).args(["--emit-defaults"]);
    assert_eq!(full(ECHO).run().lines(), [r#"{"message":""}"#]);
    let ran = full(COLLECT).input("").run();
    assert_eq!(ran.lines(), [r#"{"count":0,"totalBytes":"0"}"#]);
}
