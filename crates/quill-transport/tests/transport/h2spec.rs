//! The HTTP/2 conformance suite h2spec, where the machine has it.

use quill_transport::{HttpServer, HttpVersions, Listener, ServerOptions};
use tokio::process::Command;

use crate::support::*;

/// Runs the whole suite against an address, its strict cases included.
async fn hold(port: u16, more: &[&str]) {
    let output = Command::new("h2spec")
        .args(["--strict", "--path", "/head", "--port", &port.to_string()])
        .args(more)
        .output()
        .await;
    let output = match output {
        Ok(output) => output,
        Err(_) if std::env::var_os("REQUIRE_EXTERNAL").is_some_and(|value| value == "1") => {
            panic!("h2spec is not installed, and REQUIRE_EXTERNAL=1")
        }
        Err(_) => return,
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let summary = "146 tests, 146 passed, 0 skipped, 0 failed";
    assert!(text.contains(summary), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_of_h2spec_passes() {
    let mut options = ServerOptions::default();
    // On a port that speaks both versions, what is no preface is answered in HTTP/1.1.
    options.versions = HttpVersions::Http2;
    let running = start(&Shared::default(), options).await;
    hold(running.local_addr().unwrap().port(), &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_of_h2spec_passes_over_tls() {
    let listener = Listener::bind("127.0.0.1:0").await.unwrap();
    let server = HttpServer::new(listener).with_tls(crate::tls::untrusted());
    let running = server.start(Shared::default());
    hold(
        running.local_addr().unwrap().port(),
        &["--tls", "--insecure"],
    )
    .await;
}
