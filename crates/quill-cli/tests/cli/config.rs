//! The demo with settings of a file and the environment.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use rcgen::generate_simple_self_signed;

use crate::support::{Call, Demo, quill, run, scratch, wait_for};

const ECHO: &str = "echo.v1.EchoService/Echo";
/// Of `s3cret-key`.
const KEYS: &str = "keys:
  - sha256: 817b823905cc7853f381992575a9041fcdb17fc70e776707abfb4d7c59ecbf3f
    subject: ann
    scopes: [echo]
";

fn written(name: &str, text: &str) -> PathBuf {
    let path = scratch(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn demo(config: &Path, args: &[&str]) -> Demo {
    let mut all = vec!["--config", config.to_str().unwrap()];
    all.extend(args);
    Demo::start_with(&all)
}

/// What the check of a file says, and its exit code.
fn check(config: &Path, variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let mut command = quill();
    command
        .args(["demo", "--check-config", "--config"])
        .arg(config);
    command.envs(variables.iter().copied());
    let ran = run(command, b"");
    (ran.code, ran.stderr)
}

fn page(address: &str) -> Option<String> {
    let mut curl = std::process::Command::new("curl");
    curl.args([
        "-s",
        "--max-time",
        "5",
        &format!("http://{address}/metrics"),
    ]);
    let output = curl.stderr(Stdio::null()).output().unwrap();
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn free_address() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

#[test]
fn authentication_limits_and_metrics_are_a_file() {
    let keys = written("keys.yaml", KEYS);
    let metrics = free_address();
    let config = keys.with_file_name("server.yaml");
    let text = format!(
        "metrics: {{listen: '{metrics}'}}
messages: {{receive_bytes_max: 1KiB}}
auth:
  api_keys: {{file: keys.yaml}}
  # Where the command finds the schema.
  public: [/grpc.reflection.v1.ServerReflection/*]
  scopes: {{/echo.v1.EchoService/*: [echo]}}
rate_limits:
  - name: callers
    rate: 1000
    burst: 1000
    per: [identity]
    methods: {{/echo.v1.EchoService/Echo: {{rate: 0.001, burst: 2}}}}
"
    );
    std::fs::write(&config, text).unwrap();
    let demo = demo(&config, &[]);
    let call = || demo.call(ECHO).input(r#"{"message":"a"}"#);
    let with_key = || call().args(["-H", "x-api-key: s3cret-key"]);
    assert!(call().run().error(4).contains("unauthenticated"));
    for _ in 0..2 {
        assert_eq!(with_key().run().lines(), [r#"{"message":"a"}"#]);
    }
    let refused = with_key().run();
    assert!(refused.error(4).contains("rate limit"), "{refused:?}");
    let long = demo.call(ECHO).args(["-H", "x-api-key: s3cret-key"]);
    let long = long
        .input(&format!(r#"{{"message":"{}"}}"#, "a".repeat(2000)))
        .run();
    assert!(long.error(4).contains("over the receive limit"), "{long:?}");
    let page = page(&metrics).unwrap();
    for line in [
        "quill_server_rate_limit_decisions_total{limiter=\"callers\",outcome=\"refused\"} 1\n",
        "method=\"Echo\",kind=\"unary\",code=\"unauthenticated\"} 1\n",
    ] {
        assert!(page.contains(line), "{line}: {page}");
    }
}

#[test]
fn a_variable_wins_over_the_file_and_an_option_over_both() {
    let config = written(
        "server.yaml",
        "listen: 127.0.0.1:1\ncalls: {timeout_max: 1h}\n",
    );
    // The file's address can't be bound, and the option of `Demo` stands in its place.
    let demo = demo(&config, &[]);
    let call = demo.call(ECHO).input(r#"{"message":"a"}"#).run();
    assert_eq!(call.lines(), [r#"{"message":"a"}"#]);
    let port_file = config.with_file_name("port");
    let mut child = quill()
        .args(["demo", "--config"])
        .arg(&config)
        .arg("--port-file")
        .arg(&port_file)
        .env("QUILL_SERVER_LISTEN", "127.0.0.1:0")
        .env("QUILL_SERVER_CALLS__TIMEOUT_MAX", "10ms")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let port = wait_for("the port", || std::fs::read_to_string(&port_file).ok());
    let url = format!("http://127.0.0.1:{}/{ECHO}", port.trim());
    let slow = Call::new(&url)
        .input(r#"{"message":"a","delay_ms":60000}"#)
        .run();
    assert!(slow.error(4).contains("deadline_exceeded"), "{slow:?}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_check_says_what_is_wrong_and_where() {
    let good = written(
        "good.yaml",
        "listen: 127.0.0.1:1\ntransport: {http1_idle_timeout: off}\n",
    );
    assert_eq!(check(&good, &[]), (Some(0), String::new()));
    for (text, expected) in [
        (
            "listne: a",
            ":1: listne: there is no such key; did you mean listen?",
        ),
        (
            "listen: here",
            ":1: listen: \"here\" can't be used: allowed is host:port, or unix:/path",
        ),
        (
            "\ntransport:\n  http2_frame_bytes_max: 1KiB",
            ":3: transport.http2_frame_bytes_max: http2_frame_bytes_max can't be 1024: allowed is 16384 to 16777215",
        ),
        (
            "compression:\n  level: 23",
            ":2: compression.level: 23 can't be used",
        ),
        ("tls: {certificate: no.pem, key: no.key}", ":1: tls: "),
        ("auth: {}", ":1: auth: it knows no credentials"),
        ("auth: {api_keys: {file: no.yaml}}", "no.yaml: No such file"),
        (
            "rate_limits:\n- {name: a, rate: 0, burst: 1}",
            ":2: rate_limits[0].rate: ",
        ),
        (
            "rate_limits:\n- {name: a, rate: 1, burst: 1, shared: true}",
            ":2: rate_limits[0].shared: it needs a redis section",
        ),
        ("redis: {url: 'redis://ann:s3cret@a'}", ":1: redis.url: "),
        (
            "rate_limits:\n- {name: a, rate: 1, burst: 1, methods: {/no.Such/Method: {rate: 1, burst: 1}}}",
            "/no.Such/Method, and there is no such method",
        ),
        ("cors: {origins: ['*']}", ":1: cors: "),
        (
            "concurrency_limits: [{name: a}]",
            ":1: concurrency_limits[0]: set one of most and adaptive",
        ),
    ] {
        let path = written("server.yaml", text);
        let (code, told) = check(&path, &[]);
        assert_eq!(code, Some(2), "{text}: {told}");
        assert!(told.contains(expected), "{text}: {told}");
        assert!(!told.contains("s3cret"), "{told}");
    }
    let (code, told) = check(&good, &[("QUILL_SERVER_COMPRESSION__LEVEL", "fast")]);
    assert_eq!(code, Some(2));
    let expected = "QUILL_SERVER_COMPRESSION__LEVEL: compression.level: \"fast\" can't be used";
    assert!(told.contains(expected), "{told}");
}

#[test]
fn new_certificates_are_taken_while_it_serves() {
    let config = written(
        "server.yaml",
        "tls: {certificate: server.pem, key: server.key, reload_every: 20ms}\n",
    );
    let renew = || {
        let made = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (chain, key) = (
            config.with_file_name("server.pem"),
            config.with_file_name("server.key"),
        );
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        std::fs::write(chain, made.cert.pem()).unwrap();
        written("ca.pem", &made.cert.pem())
    };
    let old = renew();
    let demo = demo(&config, &[]);
    let call = |authority: &Path| {
        let url = demo.url(ECHO).replace("http://", "https://");
        let call = Call::new(&url).input(r#"{"message":"a"}"#);
        let ca = ["--cacert".as_ref(), authority.as_os_str()];
        let named = call.args(ca).args(["--server-name", "localhost"]);
        named.run().code == Some(0)
    };
    assert!(call(&old));
    let new = renew();
    wait_for("the new certificate", || call(&new).then_some(()));
    assert!(!call(&old));
}
