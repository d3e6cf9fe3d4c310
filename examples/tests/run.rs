//! Every example runs to its end: each checks itself what it shows.

use std::process::Command;

fn runs(path: &str) {
    let output = Command::new(path).output().expect("it starts");
    assert!(
        output.status.success(),
        "{path}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(!output.stdout.is_empty(), "{path} says what happened");
}

#[test]
fn hello() {
    runs(env!("CARGO_BIN_EXE_hello"));
}

#[test]
fn streams() {
    runs(env!("CARGO_BIN_EXE_streams"));
}

#[test]
fn errors() {
    runs(env!("CARGO_BIN_EXE_errors"));
}

#[test]
fn middleware() {
    runs(env!("CARGO_BIN_EXE_middleware"));
}

#[test]
fn in_axum() {
    runs(env!("CARGO_BIN_EXE_in_axum"));
}

#[test]
fn tls() {
    runs(env!("CARGO_BIN_EXE_tls"));
}
