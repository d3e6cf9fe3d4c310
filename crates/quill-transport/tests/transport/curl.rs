//! A client that is not ours, where the machine has it.

use quill_transport::ServerOptions;
use tokio::process::Command;

use crate::support::*;

/// What curl prints; `None` without curl, or without HTTP/2 in it.
async fn curl(arguments: &[&str]) -> Option<String> {
    let version = Command::new("curl").arg("--version").output().await.ok()?;
    if !String::from_utf8_lossy(&version.stdout).contains("HTTP2") {
        return None;
    }
    let output = Command::new("curl")
        .args(["-sS", "--max-time", "20"])
        .args(arguments)
        .output();
    let output = soon(output).await.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[tokio::test]
async fn curl_speaks_both_versions_on_one_port() {
    let running = start(&Shared::default(), ServerOptions::default()).await;
    let url = format!("{}/head?x=1", url(&running));
    for (option, version) in [
        ("--http1.1", "Http1"),
        ("--http1.0", "Http1"),
        ("--http2-prior-knowledge", "Http2"),
    ] {
        let Some(said) = curl(&[option, &url]).await else {
            return;
        };
        let address = running.local_addr().unwrap();
        let expected = format!("Get /head?x=1 {address} {version} address=true");
        assert!(said.starts_with(&expected), "{said}");
    }
}

#[tokio::test]
async fn curl_uploads_and_reads_back() {
    let running = start(&Shared::default(), ServerOptions::default()).await;
    let path = std::env::temp_dir().join(format!("quill-curl-{}", std::process::id()));
    std::fs::write(&path, "x".repeat(300_000)).unwrap();
    let data = format!("@{}", path.display());
    for option in ["--http1.1", "--http2-prior-knowledge"] {
        let url = format!("{}/echo", url(&running));
        let arguments = [option, "--data-binary", &data, &url];
        if let Some(said) = curl(&arguments).await {
            assert_eq!(said.len(), 300_000);
        }
        // The answer to a body that was refused arrives too.
        let url = url.replace("/echo", "/refuse");
        let arguments = [option, "-H", "expect:", "-d", "small", &url];
        if let Some(said) = curl(&arguments).await {
            assert_eq!(said, "no such path");
        }
    }
    std::fs::remove_file(path).unwrap();
}
