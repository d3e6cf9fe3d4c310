//! curl against the demo.

use crate::support::{Demo, Ran, external, run};

const JSON: [&str; 2] = ["-H", "content-type: application/json"];

fn curl(args: &[&str]) -> Option<Ran> {
    let mut command = external("curl")?;
    command
        .args(["-sS", "-w", "\n%{http_code} %{content_type}"])
        .args(args);
    Some(run(command, b""))
}

#[test]
fn json_is_posted() {
    let demo = Demo::start();
    let url = demo.url("echo.v1.EchoService/Echo");
    let Some(ran) = curl(&[JSON[0], JSON[1], "-d", r#"{"message":"hi"}"#, &url]) else {
        return;
    };
    assert_eq!(ran.lines(), [r#"{"message":"hi"}"#, "200 application/json"]);
}

#[test]
fn a_method_without_side_effects_is_got() {
    let demo = Demo::start();
    let url = demo.url("echo.v1.EchoService/Echo");
    let query = "?connect=v1&encoding=json&message=%7B%22message%22%3A%22hi%22%7D";
    let Some(ran) = curl(&[&format!("{url}{query}")]) else {
        return;
    };
    assert_eq!(ran.lines(), [r#"{"message":"hi"}"#, "200 application/json"]);
}

#[test]
fn an_error_is_connects_json() {
    let demo = Demo::start();
    let url = demo.url("echo.v1.EchoService/Echo");
    let body = r#"{"error_code":5,"error_message":"no user 7"}"#;
    let Some(ran) = curl(&[JSON[0], JSON[1], "-d", body, &url]) else {
        return;
    };
    assert_eq!(
        ran.lines(),
        [
            r#"{"code":"not_found","message":"no user 7"}"#,
            "404 application/json"
        ]
    );
}

#[test]
fn an_error_is_a_problem_document_for_who_asks_for_one() {
    let demo = Demo::start();
    let url = demo.url("echo.v1.EchoService/Echo");
    let body = r#"{"error_code":5,"error_message":"no user 7"}"#;
    let accept = "accept: application/problem+json";
    let Some(ran) = curl(&[JSON[0], JSON[1], "-H", accept, "-d", body, &url]) else {
        return;
    };
    let lines = ran.lines();
    assert_eq!(lines.last(), Some(&"404 application/problem+json"));
    let problem = lines.concat();
    for member in [
        r#""type":"https://quill.dev/errors/not-found""#,
        r#""status":404"#,
        r#""detail":"no user 7""#,
        r#""code":"not_found""#,
    ] {
        assert!(problem.contains(member), "{problem}");
    }
}

#[test]
fn an_unknown_path_is_not_found() {
    let demo = Demo::start();
    let url = demo.url("echo.v1.EchoService/Ecco");
    let Some(ran) = curl(&[JSON[0], JSON[1], "-d", "{}", &url]) else {
        return;
    };
    assert!(ran.lines().last().unwrap().starts_with("404"), "{ran:?}");
}
