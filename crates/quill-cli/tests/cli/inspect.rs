//! What there is to call, and how a call is narrated.

use std::process::Command;

use crate::shop::{Behaviour, Serving, Shop, protos};
use crate::support::{Call, Demo, Ran, quill, run, scratch};

const ECHO: &str = "echo.v1.EchoService/Echo";

fn call(args: &[&str]) -> Ran {
    let mut command = quill();
    command.arg("call").args(args);
    run(command, b"")
}

#[test]
fn services_and_methods_are_listed() {
    let demo = Demo::start();
    let ran = call(&[&demo.url(""), "--list"]);
    let services = ran.lines();
    for service in [
        "echo.v1.EchoService",
        "data.v1.DataService",
        "grpc.health.v1.Health",
    ] {
        assert!(services.contains(&service), "{ran:?}");
    }
    let ran = call(&[&demo.url("echo.v1.EchoService"), "--list"]);
    let methods = ["Echo", "Expand", "Collect", "Chat"];
    let methods = methods.map(|name| format!("echo.v1.EchoService/{name}"));
    assert_eq!(ran.lines(), methods);
    // Each can be called as it is listed.
    for method in methods.iter().take(1) {
        assert_eq!(call(&[&demo.url(method)]).lines(), ["{}"]);
    }
    let ran = call(&[&demo.url("echo.v1.Ecco"), "--list"]);
    assert!(ran.error(2).contains("data.v1.DataService"), "{ran:?}");
}

#[test]
fn the_older_reflection_and_files_are_asked_alike() {
    let shop = Serving::start(
        quill::Server::builder()
            .service(Shop)
            .service(Behaviour::Older),
    );
    let folder = protos();
    let folder = folder.to_str().unwrap();
    let by_files = call(&["shop.v1.Shop", "--describe", "--proto", folder]);
    let by_reflection = call(&[&format!("{}/shop.v1.Shop", shop.url), "--describe"]);
    assert_eq!(by_files.lines(), by_reflection.lines());
    assert!(by_files.stdout.contains("rpc Place("), "{by_files:?}");
    let ran = call(&["--list", "--proto", folder]);
    assert!(ran.lines().contains(&"shop.v1.Shop"), "{ran:?}");
    let shop = Serving::shop();
    let ran = call(&[&shop.url, "--list"]);
    assert!(ran.error(4).contains("--proto"), "{ran:?}");
}

#[test]
fn what_a_server_says_drives_no_terminal_and_no_workflow() {
    let server = Serving::start(quill::Server::builder().service(Behaviour::Hostile));
    let mut explain = quill();
    explain.args(["explain", "0a00", "--list-types", "--server", &server.url]);
    let mut compat = quill();
    compat.args(["compat", "--against", &server.url, &server.url]);
    let hostile = call(&[&server.url, "--list"]);
    assert_eq!(
        hostile.lines(),
        [r"\u{3a}:error::driven", r"\u{1b}[2J\n::error::driven"]
    );
    let described = call(&[&format!("{}/a.M", server.url), "--describe"]);
    assert_eq!(
        described.lines()[0],
        r"// a.M, in a.proto\u{1b}[2J\n::error::driven"
    );
    for ran in [
        hostile,
        described,
        call(&[&format!("{}/a.B", server.url), "--describe"]),
        call(&[&server.url, "--describe"]),
        run(explain, b""),
        run(compat, b""),
    ] {
        for text in [&ran.stdout, &ran.stderr] {
            let is_command = |line: &str| line.trim_start().starts_with("::");
            assert!(!text.lines().any(is_command), "{ran:?}");
            assert!(!text.contains('\u{1b}'), "{ran:?}");
        }
    }
}

#[test]
fn symbols_are_described_in_the_words_of_their_file() {
    let demo = Demo::start();
    for (symbol, said) in [
        (
            "echo.v1.EchoService",
            "service EchoService {\n  rpc Echo(echo.v1.EchoRequest) returns (echo.v1.EchoResponse);\n",
        ),
        (
            "echo.v1.EchoService/Chat",
            "rpc Chat(stream echo.v1.EchoRequest) returns (stream echo.v1.EchoResponse);\n",
        ),
        (
            "echo.v1.CollectResponse",
            "// echo.v1.CollectResponse, in echo/v1/echo.proto\nmessage CollectResponse {\n  \
             uint32 count = 1;\n  uint64 total_bytes = 2;\n}\n",
        ),
        (
            "grpc.health.v1.HealthCheckResponse.ServingStatus",
            "enum ServingStatus {\n  UNKNOWN = 0;\n  SERVING = 1;\n",
        ),
    ] {
        let ran = call(&[&demo.url(symbol), "--describe"]);
        ran.lines();
        assert!(ran.stdout.contains(said), "{symbol}: {}", ran.stdout);
    }
    let ran = call(&[&demo.url(""), "--describe"]);
    ran.lines();
    assert!(ran.stdout.contains("service DataService {"), "{ran:?}");
    let ran = call(&[&demo.url("echo.v1.Nothing"), "--describe"]);
    assert!(ran.error(2).contains("echo.v1.Nothing"), "{ran:?}");
}

#[test]
fn a_description_is_a_schema_again() {
    let file = scratch("all.proto");
    let source = r#"syntax = "proto3";
package a.v1;
message All {
  message Inner {
    enum Kind {
      NONE = 0;
      SOME = -1;
    }
    Kind kind = 1;
  }
  optional int32 maybe = 1;
  repeated a.v1.All.Inner many = 2;
  map<string, a.v1.All.Inner> by_name = 3;
  oneof choice {
    bytes left = 4;
    a.v1.All right = 5;
  }
  double last = 6;
}
"#;
    std::fs::write(&file, source).unwrap();
    let ran = call(&["a.v1.All", "--describe", "--proto", file.to_str().unwrap()]);
    ran.lines();
    let described: Vec<_> = ran.stdout.lines().skip(1).map(str::trim).collect();
    let mut declared: Vec<_> = source.lines().skip(2).map(str::trim).collect();
    // Types that lie in a file are named in full.
    for line in &mut declared {
        if *line == "Kind kind = 1;" {
            *line = "a.v1.All.Inner.Kind kind = 1;";
        }
    }
    assert_eq!(described, declared);
}

#[test]
fn a_template_can_be_sent_as_it_is() {
    let demo = Demo::start();
    let ran = call(&[&demo.url("echo.v1.EchoService/Expand"), "--template"]);
    let template: serde_json::Value = serde_json::from_str(&ran.lines().join("")).unwrap();
    let names: Vec<_> = template.as_object().unwrap().keys().collect();
    let fields = ["count", "errorAfter", "errorCode", "intervalMs", "message"];
    assert_eq!(names.len(), fields.len(), "{template}");
    assert!(
        fields.iter().all(|name| template.get(name).is_some()),
        "{template}"
    );
    // Lists, maps, messages and Any, in a server that repeats its bytes.
    let shop = Serving::shop();
    let folder = protos();
    let schema = ["--proto", folder.to_str().unwrap()];
    let target = format!("{}/shop.v1.Shop/Place", shop.url);
    let ran = call(&[&[target.as_str(), "--template"][..], &schema].concat());
    let template = ran.lines().join("");
    let ran = call(&[&[target.as_str(), "--input", &template][..], &schema].concat());
    assert_eq!(ran.code, Some(0), "{template}: {ran:?}");
}

#[test]
fn a_call_can_be_repeated() {
    let demo = Demo::start();
    let ran = demo
        .call(ECHO)
        .args(["--repeat", "3"])
        .input("{\"message\":\"a\"}")
        .run();
    assert_eq!(ran.lines(), [r#"{"message":"a"}"#; 3]);
    let file = scratch("two.json");
    std::fs::write(&file, "{}{}").unwrap();
    let ran = demo
        .call("echo.v1.EchoService/Collect")
        .args(["--repeat", "2"])
        .input(&format!("@{}", file.display()))
        .run();
    assert_eq!(ran.lines(), [r#"{"count":2}"#; 2]);
    let ran = demo.call(ECHO).args(["--repeat", "2"]).stdin("{}").run();
    assert!(ran.error(2).contains("--repeat"), "{ran:?}");
    // The first that fails is the last.
    let failing = demo
        .call(ECHO)
        .args(["--repeat", "3"])
        .input("{\"error_code\":5}")
        .run();
    assert_eq!(failing.error(4).matches("not_found").count(), 1);
}

#[test]
fn the_environment_says_what_the_arguments_leave_out() {
    let demo = Demo::start();
    let mut command: Command = quill();
    command.env("QUILL_URL", format!("http://{}/", demo.address));
    command
        .env("QUILL_TOKEN", "s3cret")
        .env("QUILL_TIMEOUT", "200ms");
    command.args(["call", ECHO, "-v", "--input", r#"{"delay_ms":600000}"#]);
    let ran = run(command, b"");
    assert!(ran.error(3).contains("deadline_exceeded"), "{ran:?}");
    assert!(
        ran.stderr.contains("authorization: (13 bytes, not shown)"),
        "{ran:?}"
    );
    assert!(!ran.stderr.contains("s3cret"), "{ran:?}");
    let mut command: Command = quill();
    command.env("QUILL_URL", format!("http://{}", demo.address));
    command.args(["call", "--list"]);
    assert!(run(command, b"").lines().contains(&"echo.v1.EchoService"));
    // What is said holds over it.
    let mut command: Command = quill();
    command
        .env("QUILL_URL", "http://no-such-host.invalid")
        .env("QUILL_TIMEOUT", "1ms");
    command.args(["call", &demo.url(ECHO), "--timeout", "60s"]);
    assert_eq!(run(command, b"").lines(), ["{}"]);
    let mut command: Command = quill();
    command
        .args(["call", "--help"])
        .env("QUILL_TOKEN", "s3cret");
    let ran = run(command, b"");
    assert!(ran.stdout.contains("QUILL_TOKEN") && !ran.stdout.contains("s3cret"));
}

#[test]
fn a_call_to_several_servers_is_narrated_too() {
    let (one, two) = (Demo::start(), Demo::start());
    let servers = format!("http://{},{}", one.address, two.address);
    let call = Call::new(&format!("{servers}/echo.v1.EchoService/Echo"));
    let ran = call.args(["-v"]).input("{}").run();
    assert_eq!(ran.lines(), ["{}"]);
    let said = format!("* quill to {servers}\n");
    assert!(ran.stderr.contains(&said), "{ran:?}");
}

#[test]
fn a_call_is_narrated_when_asked_for() {
    let demo = Demo::start();
    let call = demo.call("echo.v1.EchoService/Expand").args([
        "-v",
        "-H",
        "x-id: 7",
        "-H",
        "x-api-key: s3cret",
    ]);
    let ran = call.input(r#"{"message":"a","count":2}"#).run();
    assert_eq!(ran.lines().len(), 2);
    for said in [
        "* quill over HTTP/2 (Prism profile turbo) to http://",
        "* echo.v1.EchoService/Expand, server streaming, schema in ",
        "request x-id: 7",
        "request x-api-key: (6 bytes, not shown)",
        "* first message after ",
        "* 2 messages in ",
    ] {
        assert!(ran.stderr.contains(said), "{said}: {ran:?}");
    }
    // Not on a terminal, so not in colour.
    assert!(!ran.stdout.contains('\u{1b}'), "{ran:?}");
}

#[test]
fn colour_is_for_terminals() {
    // util-linux's, which makes a terminal of its own.
    let Some(mut script) = crate::support::external("script") else {
        return;
    };
    let demo = Demo::start();
    let line = format!(
        "{} call {} --input '{{\"message\":\"a\"}}'",
        env!("CARGO_BIN_EXE_quill"),
        demo.url(ECHO)
    );
    script
        .args(["-qec", &line, "/dev/null"])
        .env("TERM", "xterm")
        .env_remove("NO_COLOR");
    let ran = run(script, b"");
    assert!(ran.stdout.contains("\u{1b}[34m\"message\""), "{ran:?}");
    let mut script = Command::new("script");
    script
        .args(["-qec", &line, "/dev/null"])
        .env("TERM", "xterm")
        .env("NO_COLOR", "1");
    let ran = run(script, b"");
    assert!(ran.stdout.contains(r#"{"message":"a"}"#), "{ran:?}");
}

#[test]
fn shells_and_manuals_are_told() {
    for shell in ["bash", "zsh", "fish"] {
        let mut command = quill();
        command.args(["completions", shell]);
        let ran = run(command, b"");
        for word in ["bench", "call", "concurrency"] {
            assert!(ran.lines().join("\n").contains(word), "{shell}: {word}");
        }
        let Some(mut checked) = crate::support::external(shell) else {
            continue;
        };
        let file = scratch("completions");
        std::fs::write(&file, &ran.stdout).unwrap();
        checked.arg("-n").arg(&file);
        let ran = run(checked, b"");
        assert_eq!(ran.code, Some(0), "{shell}: {ran:?}");
    }
    let folder = scratch("man1").join("new");
    let mut command = quill();
    command.arg("man").arg(&folder);
    run(command, b"").lines();
    for (page, said) in [
        ("quill.1", "quill\\-bench(1)"),
        ("quill-bench.1", "benchmarks.yaml"),
        ("quill-call.1", "Exit codes"),
        ("quill-demo.1", "cors\\-origin"),
    ] {
        let text = std::fs::read_to_string(folder.join(page)).unwrap();
        assert!(text.contains(said), "{page}: {text}");
    }
    let mut command = quill();
    command.args(["man", "/dev/null/x"]);
    assert!(run(command, b"").error(2).contains("/dev/null/x"));
}
