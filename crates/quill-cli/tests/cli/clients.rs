//! Clients of others against the demo.

use std::process::Command;

use crate::support::{Demo, Ran, external, run};

fn grpcurl(demo: &Demo, before: &[&str], after: &[&str]) -> Option<Ran> {
    let mut command = external("grpcurl")?;
    command
        .arg("-plaintext")
        .args(before)
        .arg(&demo.address)
        .args(after);
    Some(run(command, b""))
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}

#[test]
fn grpcurl_lists_and_describes() {
    let demo = Demo::start();
    let Some(ran) = grpcurl(&demo, &[], &["list"]) else {
        return;
    };
    assert_eq!(
        ran.lines(),
        [
            "data.v1.DataService",
            "echo.v1.EchoService",
            "grpc.health.v1.Health",
            "grpc.reflection.v1.ServerReflection",
            "grpc.reflection.v1alpha.ServerReflection",
        ]
    );
    let ran = grpcurl(&demo, &[], &["list", "echo.v1.EchoService"]).unwrap();
    assert_eq!(ran.lines().len(), 4, "{ran:?}");
    for (symbol, said) in [
        (
            "echo.v1.EchoService",
            "rpc Chat ( stream .echo.v1.EchoRequest )",
        ),
        ("echo.v1.ExpandRequest", "uint32 interval_ms = 3"),
        (
            "grpc.health.v1.HealthCheckResponse.ServingStatus",
            "SERVICE_UNKNOWN = 3",
        ),
        (
            "grpc.reflection.v1alpha.ServerReflection",
            "ServerReflectionInfo",
        ),
    ] {
        let ran = grpcurl(&demo, &[], &["describe", symbol]).unwrap();
        assert!(ran.lines().join("\n").contains(said), "{symbol}: {ran:?}");
    }
}

#[test]
fn grpcurl_makes_every_kind_of_call() {
    let demo = Demo::start();
    for (method, input, output) in [
        ("Echo", r#"{"message":"hi"}"#, r#"{"message":"hi"}"#),
        (
            "Expand",
            r#"{"message":"a","count":2}"#,
            r#"{"message":"a"}{"message":"a"}"#,
        ),
        (
            "Collect",
            r#"{"message":"a"}{"message":"b"}"#,
            r#"{"count":2,"totalBytes":"2"}"#,
        ),
        (
            "Chat",
            r#"{"message":"a"}{"message":"b"}"#,
            r#"{"message":"a"}{"message":"b"}"#,
        ),
    ] {
        let name = format!("echo.v1.EchoService/{method}");
        let Some(ran) = grpcurl(&demo, &["-d", input], &[&name]) else {
            return;
        };
        ran.lines();
        assert_eq!(squeezed(&ran.stdout), output, "{method}");
    }
    let failing = r#"{"error_code":5,"error_message":"no user 7"}"#;
    let ran = grpcurl(&demo, &["-d", failing], &["echo.v1.EchoService/Echo"]).unwrap();
    assert_eq!(ran.code, Some(64 + 5), "{ran:?}");
    assert!(ran.stderr.contains("no user 7"));
}

#[test]
fn buf_curl_calls_in_its_three_protocols() {
    let demo = Demo::start();
    for protocol in ["grpc", "grpcweb", "connect"] {
        for (method, input, output) in [
            ("Echo", r#"{"message":"hi"}"#, r#"{"message":"hi"}"#),
            (
                "Expand",
                r#"{"message":"a","count":2}"#,
                r#"{"message":"a"}{"message":"a"}"#,
            ),
            (
                "Collect",
                r#"{"message":"a"}{"message":"b"}"#,
                r#"{"count":2,"totalBytes":"2"}"#,
            ),
            (
                "Chat",
                r#"{"message":"a"}{"message":"b"}"#,
                r#"{"message":"a"}{"message":"b"}"#,
            ),
        ] {
            let Some(mut command) = external("buf") else {
                return;
            };
            let url = demo.url(&format!("echo.v1.EchoService/{method}"));
            command.args(["curl", "--http2-prior-knowledge", "--protocol", protocol]);
            command.args(["-d", input, &url]);
            let ran = run(command, b"");
            ran.lines();
            assert_eq!(squeezed(&ran.stdout), output, "{protocol} {method}");
        }
    }
}

#[test]
fn grpc_health_probe_is_satisfied() {
    let demo = Demo::start();
    let Some(probe) = external("grpc-health-probe") else {
        return;
    };
    let mut command: Command = probe;
    command.args(["-addr", &demo.address, "-service", "echo.v1.EchoService"]);
    let ran = run(command, b"");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        format!("{}{}", ran.stdout, ran.stderr).contains("SERVING"),
        "{ran:?}"
    );
}
