//! What the command says when something is wrong, and how it ends.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use crate::support::{Call, Demo, PROTOCOLS, pause_for, quill, run};

const ECHO: &str = "echo.v1.EchoService/Echo";

#[test]
fn a_servers_error_is_told_in_full_in_every_protocol() {
    let demo = Demo::start();
    for protocol in PROTOCOLS {
        let ran = demo
            .call(ECHO)
            .args(["--protocol", protocol])
            .input(r#"{"error_code":5,"error_message":"no user 7 ü"}"#)
            .run();
        let error = ran.error(4);
        assert!(
            error.starts_with("quill: not_found: no user 7 ü"),
            "{protocol}: {error}"
        );
        assert_eq!(ran.stdout, "");
    }
}

#[test]
fn what_came_before_a_streams_error_is_printed() {
    let demo = Demo::start();
    for protocol in PROTOCOLS {
        let ran = demo
            .call("echo.v1.EchoService/Expand")
            .args(["--protocol", protocol])
            .input(r#"{"message":"a","error_code":8,"error_after":2}"#)
            .run();
        let error = ran.error(4);
        assert!(
            error.starts_with("quill: resource_exhausted"),
            "{protocol}: {error}"
        );
        assert_eq!(ran.stdout, "{\"message\":\"a\"}\n".repeat(2), "{protocol}");
    }
}

#[test]
fn bad_json_names_the_message_and_the_fields_path() {
    let demo = Demo::start();
    for (input, said) in [
        (r#"{"delay_ms":"x"}"#, "\"delay_ms\""),
        (r#"{"delayMs":-1}"#, "\"delayMs\""),
        (r#"{"nope":1}"#, "unknown field \"nope\""),
        (r#"{"message":"a""#, "EOF"),
        ("[]", "echo.v1.EchoRequest"),
        ("nonsense", "message 1"),
    ] {
        let error = demo.call(ECHO).input(input).run();
        let error = error.error(2);
        assert!(error.contains(said), "{input}: {error}");
        assert!(
            error.contains("message 1 (echo.v1.EchoRequest)"),
            "{input}: {error}"
        );
    }
}

#[test]
fn bad_json_in_the_midst_of_a_stream_gives_the_call_up() {
    let demo = Demo::start();
    let ran = demo
        .call("echo.v1.EchoService/Collect")
        .stdin("{\"message\":\"a\"}\n{\"message\":1}\n")
        .run();
    assert!(
        ran.error(2)
            .contains("message 2 (echo.v1.EchoRequest): field \"message\"")
    );
    assert_eq!(ran.stdout, "");
}

#[test]
fn a_method_that_takes_one_message_takes_one() {
    let demo = Demo::start();
    let none = demo.call(ECHO).input("").run();
    assert!(none.error(2).contains("holds no message"));
    let two = demo.call(ECHO).input("{} {}").run();
    assert!(two.error(2).contains("several messages"));
}

#[test]
fn unknown_names_are_answered_with_the_known_ones() {
    let demo = Demo::start();
    let ran = demo.call("echo.v1.EchoService/Ecco").run();
    let error = ran.error(2);
    assert!(
        error.contains("no method Ecco; it has Echo, Expand, Collect, Chat"),
        "{error}"
    );
    let ran = demo.call("echo.v1.Ecco/Echo").run();
    let error = ran.error(2);
    for name in [
        "no service echo.v1.Ecco",
        "echo.v1.EchoService",
        "data.v1.DataService",
    ] {
        assert!(error.contains(name), "{error}");
    }
}

#[test]
fn a_server_that_is_not_there_is_a_matter_of_the_network() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    for protocol in PROTOCOLS {
        let ran = Call::new(&format!("http://{address}/{ECHO}"))
            .args(["--protocol", protocol])
            .run();
        let error = ran.error(3);
        assert!(error.contains(&address.to_string()), "{protocol}: {error}");
    }
    let ran = Call::new(&format!("http://no-such-host.invalid/{ECHO}")).run();
    assert!(ran.error(3).contains("no-such-host.invalid"));
}

#[test]
fn a_server_of_another_protocol_is_told_with_what_to_do() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let _ = socket.read(&mut [0; 1024]);
            let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
        }
    });
    for protocol in PROTOCOLS {
        let ran = Call::new(&format!("http://{address}/{ECHO}"))
            .args(["--protocol", protocol])
            .run();
        let error = ran.error(3);
        assert!(error.contains("HTTP/2"), "{error}");
        assert!(error.contains("--http1"), "{error}");
    }
    // And TLS, where nobody speaks it.
    let ran = Call::new(&format!("https://{address}/{ECHO}")).run();
    assert!(ran.error(3).contains("TLS handshake"), "{ran:?}");
}

#[test]
fn finding_the_schema_takes_nothing_from_the_time_of_the_call() {
    let demo = Demo::start();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = demo.address.clone();
    std::thread::spawn(move || {
        // The first connection, which reflection needs, takes longer to come
        // about than the call is given.
        let (inside, _) = listener.accept().unwrap();
        pause_for(Duration::from_secs(2));
        let outside = TcpStream::connect(server).unwrap();
        let (mut from, mut to) = (inside.try_clone().unwrap(), outside.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut from, &mut to));
        let (mut from, mut to) = (outside, inside);
        let _ = std::io::copy(&mut from, &mut to);
    });
    let ran = Call::new(&format!("http://{address}/{ECHO}"))
        .args(["--timeout", "1s"])
        .input(r#"{"message":"hi"}"#)
        .run();
    assert_eq!(ran.lines(), [r#"{"message":"hi"}"#]);
}

#[test]
fn the_deadline_ends_a_call() {
    let demo = Demo::start();
    for protocol in PROTOCOLS {
        let ran = demo
            .call(ECHO)
            .args(["--protocol", protocol, "--timeout", "1s"])
            .input(r#"{"delay_ms":600000}"#)
            .run();
        assert!(
            ran.error(3).contains("deadline_exceeded"),
            "{protocol}: {ran:?}"
        );
    }
}

#[test]
fn arguments_that_make_no_sense_are_bad_input() {
    for (args, said) in [
        (&["call"][..], "URL/package.Service/Method"),
        (&["call", "127.0.0.1/a.B/C"], "a scheme is missing"),
        (&["call", "http://h"], "URL/package.Service/Method"),
        (
            &["call", "http://h/a.B/C", "--protocol", "soap"],
            "grpc-web-text",
        ),
        (&["call", "http://h/a.B/C", "--timeout", "5"], "500ms"),
        (
            &["call", "http://h/a.B/C", "--header", "x"],
            "'name: value'",
        ),
        (
            &["call", "http://h/a.B/C", "--header", "grpc-x: 1"],
            "grpc-x",
        ),
        (&["call", "http://h/a.B/C", "--cert", "x.pem"], "--key"),
        (
            &["call", "https://h/a.B/C", "--cacert", "no-such.pem"],
            "no-such.pem",
        ),
        (&["call", "http://h/a.B/C", "--import-path", "x"], "--proto"),
    ] {
        let mut command = quill();
        command.args(args);
        let ran = run(command, b"");
        assert!(ran.error(2).contains(said), "{args:?}: {ran:?}");
    }
}

#[test]
fn help_shows_examples() {
    for subcommand in ["call", "demo", "bench", "completions", "man"] {
        let mut command = quill();
        command.args([subcommand, "--help"]);
        let ran = run(command, b"");
        assert!(ran.lines().contains(&"Examples:"), "{ran:?}");
    }
}
