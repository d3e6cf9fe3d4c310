//! Load, and what is told of it.

use std::path::PathBuf;
use std::process::Command;

use quill::{Error, Method, MethodKind, RawCodec, Request, Response, Routes, Server, Service};
use serde_json::Value as Json;

use crate::shop::{Serving, Shop};
use crate::support::{Demo, PROTOCOLS, Ran, quill, run, scratch};

const ECHO: &str = "echo.v1.EchoService/Echo";

/// `quill bench` of a method of the demo: few calls, for a moment, unless the
/// arguments say otherwise.
fn bench(demo: &Demo, method: &str, args: &[&str]) -> Ran {
    let mut command = quill();
    command.arg("bench").arg(demo.url(method)).args(args);
    for (flag, value) in [("-c", "4"), ("-d", "0.3"), ("-o", "json")] {
        if !args.contains(&flag) {
            command.args([flag, value]);
        }
    }
    run(command, b"")
}

/// The benchmarks of a JSON document, which is all there is on standard output.
#[track_caller]
fn benchmarks(ran: &Ran) -> Vec<Json> {
    let document: Json =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|e| panic!("{e}: {ran:?}"));
    document["benchmarks"].as_array().unwrap().clone()
}

#[track_caller]
fn only(ran: &Ran) -> Json {
    let mut all = benchmarks(ran);
    assert_eq!(all.len(), 1, "{ran:?}");
    all.remove(0)
}

/// A folder with this `benchmarks.yaml`.
fn folder(yaml: &str) -> PathBuf {
    let file = scratch("benchmarks.yaml");
    std::fs::write(&file, yaml).unwrap();
    file.parent().unwrap().to_owned()
}

fn bench_in(folder: &PathBuf, args: &[&str]) -> Ran {
    let mut command = quill();
    command.arg("bench").args(args).current_dir(folder);
    run(command, b"")
}

/// A benchmark of `Echo`, with more keys.
fn entry(demo: &Demo, more: &str) -> String {
    let address = &demo.address;
    format!(
        "benchmarks:\n  - {{name: echo, url: 'http://{address}', service: echo.v1.EchoService, \
         method: Echo, {more}}}\n"
    )
}

#[test]
fn the_benchmarks_of_a_file_run_in_its_order() {
    let demo = Demo::start();
    let yaml = r#"
benchmarks:
  - name: "Echo Service - Unary"
    url: "http://localhost:8080"
    service: "echo.v1.EchoService"
    method: "Echo"
    payload:
      message: "Hello, World!"

  - name: "Large Payload"
    url: "http://localhost:8080"
    service: "data.v1.DataService"
    method: "Process"
    payload:
      data: "..." # Large payload
"#;
    let folder = folder(&yaml.replace("localhost:8080", &demo.address));
    let ran = bench_in(&folder, &["-d", "0.3", "-o", "json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let all = benchmarks(&ran);
    let names: Vec<_> = all
        .iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["Echo Service - Unary", "Large Payload"]);
    for row in &all {
        let requests = row["requests"].as_u64().unwrap();
        assert!(requests >= 50, "{row}");
        assert_eq!(row["errors"], 0, "{row}");
        assert_eq!(row["target_rps"], Json::Null, "{row}");
        assert_eq!(row["by_status"]["ok"]["requests"], requests, "{row}");
        assert!(row["rps"].as_f64().unwrap() > 0.0, "{row}");
        let figures = ["min", "p50", "p90", "p95", "p99", "p999", "max"];
        let figures = figures.map(|name| row["latency"][name].as_u64().unwrap());
        assert!(figures[0] > 0 && figures.is_sorted(), "{row}");
        assert!(row["latency"]["mean"].as_f64().unwrap() > 0.0, "{row}");
    }
    // Echo repeats its 15 bytes: a tag, a length, and 13 letters.
    let requests = all[0]["requests"].as_u64().unwrap();
    assert_eq!(all[0]["bytes_sent"], requests * 15);
    assert_eq!(all[0]["bytes_received"], requests * 15);
    // Progress is for another reader.
    assert!(
        ran.stderr
            .contains("1/2 Echo Service - Unary: 50 at a time"),
        "{ran:?}"
    );
}

#[test]
fn every_kind_is_loaded_in_every_protocol() {
    let demo = Demo::start();
    for protocol in PROTOCOLS {
        for (method, input, messages) in [
            ("Echo", r#"{"message":"hi"}"#, 1),
            ("Expand", r#"{"message":"hi","count":3}"#, 3),
            ("Collect", r#"{"message":"a"}{"message":"b"}"#, 1),
            ("Chat", r#"{"message":"a"}{"message":"b"}"#, 2),
        ] {
            let method = format!("echo.v1.EchoService/{method}");
            let ran = bench(&demo, &method, &["--protocol", protocol, "-i", input]);
            assert_eq!(ran.code, Some(0), "{protocol}: {ran:?}");
            let row = only(&ran);
            let requests = row["requests"].as_u64().unwrap();
            assert!(requests > 0, "{protocol}: {row}");
            assert_eq!(row["errors"], 0, "{protocol}: {row}");
            assert_eq!(
                row["messages_received"],
                requests * messages,
                "{protocol}: {row}"
            );
            assert_eq!(row["protocol"], protocol);
        }
    }
}

#[test]
fn payloads_may_be_files_and_lists() {
    let demo = Demo::start();
    let address = &demo.address;
    let folder = folder(&format!(
        "benchmarks:\n\
         - {{url: 'http://{address}', service: echo.v1.EchoService, method: Collect, payload: '@many.json'}}\n\
         - {{url: 'http://{address}', service: echo.v1.EchoService, method: Chat, payload: [{{message: a}}, {{}}]}}\n\
         - {{url: 'http://{address}', service: data.v1.DataService, method: Process, payload: '@large.json'}}\n"
    ));
    std::fs::write(
        folder.join("many.json"),
        "{\"message\":\"a\"}\n".repeat(100),
    )
    .unwrap();
    let large = format!("{{\"data\":\"{}\"}}", "x".repeat(100_000));
    std::fs::write(folder.join("large.json"), large).unwrap();
    // From elsewhere: files lie beside the one that names them.
    let mut command = quill();
    command.args(["bench", "-c", "2", "-d", "0.3", "-o", "json", "--file"]);
    command.arg(folder.join("benchmarks.yaml"));
    let ran = run(command, b"");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let all = benchmarks(&ran);
    for (row, bytes, messages) in [(&all[0], 300, 1), (&all[1], 3, 2), (&all[2], 100_004, 1)] {
        let requests = row["requests"].as_u64().unwrap();
        assert_eq!(row["errors"], 0, "{row}");
        assert_eq!(row["bytes_sent"], requests * bytes, "{row}");
        assert_eq!(row["messages_received"], requests * messages, "{row}");
    }
}

#[test]
fn a_rate_is_kept_and_is_that_of_all_together() {
    let demo = Demo::start();
    let ran = bench(
        &demo,
        ECHO,
        &["-r", "100", "-c", "50", "-d", "2", "--warm-up", "0.2"],
    );
    let row = only(&ran);
    assert_eq!(row["requests"], 200, "{row}");
    assert_eq!(row["errors"], 0, "{row}");
    assert_eq!(row["target_rps"], 100.0);
    let rps = row["rps"].as_f64().unwrap();
    assert!((rps - 100.0).abs() < 20.0, "{row}");
}

/// Answers with who calls.
struct Who;

impl Service for Who {
    fn name(&self) -> &str {
        "who.v1.Who"
    }

    fn routes(self, routes: &mut Routes) {
        let method = Method::named("who.v1.Who", "Am", MethodKind::Unary);
        routes.unary(
            &method,
            RawCodec,
            RawCodec,
            |request: Request<bytes::Bytes>| {
                let values = request.metadata().all("authorization");
                let values: Vec<_> = values.map(String::from_utf8_lossy).collect();
                let error = Error::not_found(format!("[{}]", values.join("|")));
                std::future::ready(Err::<Response<bytes::Bytes>, _>(error))
            },
        );
    }
}

#[test]
fn a_token_is_for_servers_that_the_user_names() {
    let who = Serving::start(Server::builder().service(Who));
    let url = &who.url;
    let folder = |keys: &str| {
        folder(&format!(
            "benchmarks:\n  - {{service: who.v1.Who, method: Am, {keys}}}\n"
        ))
    };
    let named = folder(&format!("url: '{url}'"));
    let unnamed = folder("timeout: 5s");
    let own = folder(&format!("url: '{url}', metadata: {{authorization: file}}"));
    let other = format!("--url={}", url.replace("127.0.0.1", "localhost"));
    let same = format!("--url={url}/");
    let target = format!("{url}/who.v1.Who/Am");
    let header = "-Hauthorization: header".to_owned();
    for (folder, args, sent) in [
        (&named, &[][..], "[]"),
        (&named, &[&other], "[]"),
        (&named, &[&same], "[Bearer t0ken]"),
        (&named, &[&header], "[header]"),
        (&unnamed, &[&same], "[Bearer t0ken]"),
        (&unnamed, &[&target], "[Bearer t0ken]"),
        (&own, &[], "[file]"),
        (&own, &[&same], "[file]"),
        (&own, &[&header], "[file]"),
    ] {
        let mut command = quill();
        command.args(["bench", "-c", "1", "-d", "0.1"]).args(args);
        command.env("QUILL_TOKEN", "t0ken").current_dir(folder);
        let ran = run(command, b"");
        assert!(ran.error(4).contains(sent), "{args:?}: {ran:?}");
        let is_told = ran.stderr.contains("the token is not sent to");
        assert_eq!(is_told, sent == "[]", "{args:?}: {ran:?}");
    }
}

#[test]
fn a_method_without_a_schema_is_sent_json() {
    // It has no reflection, and repeats its input's bytes.
    let shop = Serving::start(Server::builder().service(Shop));
    let folder = folder(&format!(
        "benchmarks:\n  - {{url: '{}', service: shop.v1.Shop, method: Place, payload: {{a: 1}}}}\n",
        shop.url
    ));
    let ran = bench_in(&folder, &["-c", "2", "-d", "0.3", "-o", "json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let row = only(&ran);
    let requests = row["requests"].as_u64().unwrap();
    assert_eq!(row["format"], "json");
    assert_eq!(row["errors"], 0, "{row}");
    assert_eq!(
        row["bytes_received"],
        requests * r#"{"a":1}"#.len() as u64,
        "{row}"
    );
}

#[test]
fn connections_that_end_while_idle_fail_no_call() {
    let age = std::time::Duration::from_millis(100);
    let builder = Server::builder().max_connection_age(age).service(Shop);
    let shop = Serving::start(builder);
    let mut command = quill();
    command.args(["bench", &format!("{}/shop.v1.Shop/Place", shop.url)]);
    command.args(["-i", "{}", "-r", "20", "-c", "20", "--connections", "20"]);
    command.args(["-d", "2", "-o", "json"]);
    let ran = run(command, b"");
    let row = only(&ran);
    assert_eq!(
        (&row["requests"], &row["errors"]),
        (&40.into(), &0.into()),
        "{row}"
    );
}

#[test]
fn errors_are_told_by_status() {
    let demo = Demo::start();
    let input = r#"{"message":"hi"} {"error_code":5,"error_message":"no user 7"}"#;
    let ran = bench(&demo, ECHO, &["-i", input]);
    // Half of them were answered.
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let row = only(&ran);
    let of = |status: &str| row["by_status"][status]["requests"].as_u64().unwrap();
    assert_eq!(row["errors"], of("not_found"), "{row}");
    assert_eq!(row["requests"], of("ok") + of("not_found"), "{row}");
    assert!(of("ok") > 0 && of("not_found") > 0, "{row}");
    assert_eq!(row["by_status"]["not_found"]["message"], "no user 7");
    // All of them fail, and the text says why.
    let mut command = quill();
    command.args(["bench", &demo.url(ECHO), "-d", "0.2"]);
    command.args(["-i", r#"{"error_code":5,"error_message":"no user 7"}"#]);
    let ran = run(command, b"");
    assert!(ran.error(4).contains("not_found: no user 7"), "{ran:?}");
    assert!(
        ran.stdout.contains("not_found") && ran.stdout.contains("no user 7"),
        "{ran:?}"
    );
}

#[test]
fn calls_that_take_too_long_count() {
    let demo = Demo::start();
    let slow = r#"{"delay_ms":600000}"#;
    let ran = bench(&demo, ECHO, &["-i", slow, "--timeout", "100ms"]);
    let row = only(&ran);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    let late = &row["by_status"]["deadline_exceeded"];
    assert!(late["requests"].as_u64().unwrap() >= 4, "{row}");
    assert!(late["latency"]["min"].as_u64().unwrap() >= 99_000, "{row}");
    // Without a limit of their own they are given up with the run, each of
    // them, and those that could not even begin.
    let ran = bench(
        &demo,
        ECHO,
        &["-i", slow, "-r", "100", "-d", "1", "--grace", "1s"],
    );
    let row = only(&ran);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert_eq!(row["requests"], 100, "{row}");
    assert_eq!(row["by_status"]["unfinished"]["requests"], 100, "{row}");
    assert!(row["latency"]["min"].as_u64().unwrap() >= 900_000, "{row}");
    assert!(
        row["latency"]["p50"].as_u64().unwrap() >= 1_400_000,
        "{row}"
    );
    assert!(ran.error(4).contains("did not answer in time"), "{ran:?}");
}

#[test]
fn budgets_fail_a_run_that_exceeds_them() {
    let demo = Demo::start();
    for (more, code) in [
        ("p99: 1h", 0),
        ("budgets: {p50: 1h, max: 1h, errors: 0}", 0),
        ("p99: 1us", 1),
        ("budgets: {p50: 1us}", 1),
        ("payload: [{}, {error_code: 8}], p99: 1h", 1),
        ("payload: [{}, {error_code: 8}], p99: 1h, errors: 60%", 0),
    ] {
        let folder = folder(&entry(&demo, more));
        let ran = bench_in(&folder, &["-c", "4", "-d", "0.2"]);
        assert_eq!(ran.code, Some(code), "{more}: {ran:?}");
        assert!(ran.stdout.contains("requests"), "{ran:?}");
        assert_eq!(ran.stderr.contains("budget"), code == 1, "{more}: {ran:?}");
    }
}

#[test]
fn a_baseline_fails_a_run_that_is_slower() {
    let demo = Demo::start();
    let ran = bench(&demo, ECHO, &[]);
    let measured: Json = serde_json::from_str(&ran.stdout).unwrap();
    for (factor, code) in [(100.0, 0), (0.01, 1)] {
        let mut earlier = measured.clone();
        let row = &mut earlier["benchmarks"][0];
        row["rps"] = (row["rps"].as_f64().unwrap() / factor).into();
        for name in ["p50", "p99"] {
            let micros = row["latency"][name].as_f64().unwrap() * factor;
            row["latency"][name] = (micros as u64).max(1).into();
        }
        let file = scratch("baseline.json");
        std::fs::write(&file, earlier.to_string()).unwrap();
        let ran = bench(&demo, ECHO, &["--baseline", file.to_str().unwrap()]);
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert_eq!(ran.stderr.contains("REGRESSION"), code == 1, "{ran:?}");
        assert!(ran.stderr.contains("p99"), "{ran:?}");
        let ran = bench(
            &demo,
            ECHO,
            &[
                "--baseline",
                file.to_str().unwrap(),
                "--regression-max",
                "1000000",
            ],
        );
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let file = scratch("baseline.json");
    std::fs::write(&file, "{\"benchmarks\":[]}").unwrap();
    let ran = bench(&demo, ECHO, &["--baseline", file.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("not in the baseline"), "{ran:?}");
    std::fs::write(&file, "what?").unwrap();
    let ran = bench(&demo, ECHO, &["--baseline", file.to_str().unwrap()]);
    assert!(ran.error(2).contains("-o json"), "{ran:?}");
}

#[test]
fn results_have_five_forms() {
    let demo = Demo::start();
    let folder = folder(&entry(&demo, "payload: {message: hi}").replace("echo,", "'a, |b| <c>',"));
    let forms = ["text", "json", "csv", "markdown", "html"];
    let [text, json, csv, markdown, html] = forms.map(|form| {
        let ran = bench_in(&folder, &["-c", "4", "-d", "0.3", "-o", form]);
        assert_eq!(ran.code, Some(0), "{form}: {ran:?}");
        ran.stdout
    });
    assert!(
        text.contains("p99.9 ") && text.contains("a, |b| <c>"),
        "{text}"
    );
    assert!(json.contains("\"a, |b| <c>\""), "{json}");
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!(lines.len(), 2, "{csv}");
    assert!(lines[0].starts_with("name,url,"), "{csv}");
    assert!(lines[1].starts_with("\"a, |b| <c>\",http"), "{csv}");
    let lines: Vec<_> = markdown.lines().collect();
    assert_eq!(lines.len(), 3, "{markdown}");
    assert!(lines[2].starts_with("| a, \\|b\\| \\<c> |"), "{markdown}");
    assert!(
        html.contains("a, |b| &lt;c&gt;") && !html.contains("<c>"),
        "{html}"
    );
    assert_eq!(html.matches("<svg ").count(), 3, "{html}");
    for elsewhere in [
        "<script", "<link", "<img", "src=", "href=", "@import", "url(",
    ] {
        assert!(!html.contains(elsewhere), "{elsewhere}");
    }
    assert!(!html.contains("NaN"), "{html}");
}

#[test]
fn what_is_wrong_is_found_before_any_load() {
    let demo = Demo::start();
    let empty = scratch("nothing").parent().unwrap().to_owned();
    let ran = bench_in(&empty, &[]);
    assert!(ran.error(2).contains("benchmarks.yaml"), "{ran:?}");
    for (more, said) in [
        ("payload: {nope: 1}", "unknown field \"nope\""),
        ("payload: '@none.json'", "none.json"),
        ("payload: []", "holds no message"),
        ("p42: 1s", "p42"),
        ("protocol: soap", "grpc-web-text"),
    ] {
        let ran = bench_in(&folder(&entry(&demo, more)), &[]);
        assert!(ran.error(2).contains(said), "{more}: {ran:?}");
        assert_eq!(ran.stdout, "", "{more}");
    }
    let ran = bench(&demo, "echo.v1.EchoService/Ecco", &[]);
    assert!(ran.error(2).contains("no method Ecco"), "{ran:?}");
    for (args, said) in [
        (&["-r", "0"][..], "0.001"),
        (&["-d", "0"], "number"),
        (&["-c", "0"], "1..=100000"),
        (&["--file", "x"], "cannot be used with"),
    ] {
        let ran = bench(&demo, ECHO, args);
        assert!(ran.error(2).contains(said), "{args:?}: {ran:?}");
    }
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let mut command: Command = quill();
    command.args(["bench", &format!("http://{address}/{ECHO}")]);
    let ran = run(command, b"");
    assert!(ran.error(3).contains(&address.to_string()), "{ran:?}");
}

#[test]
fn the_list_may_come_on_standard_input() {
    let demo = Demo::start();
    let mut command = quill();
    command.args(["bench", "-f", "-", "-c", "2", "-d", "0.2", "-o", "json"]);
    let ran = run(command, entry(&demo, "payload: {message: hi}").as_bytes());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(only(&ran)["name"], "echo");
    let mut command = quill();
    command.args(["bench", "-f", "-"]);
    let ran = run(command, b"benchmarks:\n");
    assert!(
        ran.error(2).contains("standard input: it lists no"),
        "{ran:?}"
    );
}

#[test]
fn connections_are_a_choice() {
    let demo = Demo::start();
    for (args, connections) in [
        (&["-c", "8", "--connections", "3", "--threads", "2"][..], 3),
        (&["-c", "2", "--connections", "50"], 2),
        (&["-c", "8", "--http1"], 8),
        (&["-c", "250", "--threads", "1"], 3),
    ] {
        let ran = bench(&demo, ECHO, args);
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
        let row = only(&ran);
        assert_eq!(row["errors"], 0, "{args:?}: {row}");
        assert_eq!(row["connections"], connections, "{args:?}: {row}");
    }
}

#[cfg(unix)]
mod signals {
    use std::io::{BufRead, BufReader, Read};
    use std::process::Stdio;
    use std::time::Duration;

    use super::{Command, Demo, ECHO, Ran, bench, only, quill};
    use crate::support::{pause_for, wait};

    fn signal(name: &str, pid: u32) {
        let mut kill = Command::new("kill");
        let status = kill.args([name, &pid.to_string()]).status().unwrap();
        assert!(status.success());
    }

    #[test]
    fn a_stall_of_the_server_is_seen_by_every_request_that_was_due() {
        let demo = Demo::start();
        let pid = demo.child.id();
        let freezing = std::thread::spawn(move || {
            pause_for(Duration::from_secs(2));
            signal("-STOP", pid);
            pause_for(Duration::from_secs(6));
            signal("-CONT", pid);
        });
        let ran = bench(&demo, ECHO, &["-c", "50", "-r", "500", "-d", "10"]);
        freezing.join().unwrap();
        let row = only(&ran);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(row["requests"], 5000, "{row}");
        assert_eq!(row["errors"], 0, "{row}");
        // 3,000 of the 5,000 were due in the stall and waited 3 s on average, so
        // the middle one of all waited one.
        assert!(row["latency"]["p50"].as_u64().unwrap() > 800_000, "{row}");
        assert!(row["latency"]["p90"].as_u64().unwrap() > 4_500_000, "{row}");
        assert!(row["latency"]["max"].as_u64().unwrap() > 5_500_000, "{row}");
    }

    #[test]
    fn ctrl_c_before_the_measurement_says_that_nothing_was_measured() {
        let demo = Demo::start();
        let mut child = quill()
            .args(["bench", &demo.url(ECHO), "-d", "600", "-o", "json"])
            .args(["--warm-up", "600"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut begun = String::new();
        stderr.read_line(&mut begun).unwrap();
        pause_for(Duration::from_secs(1));
        signal("-INT", child.id());
        let mut rest = String::new();
        stderr.read_to_string(&mut rest).unwrap();
        assert_eq!(wait(&mut child).code(), Some(0));
        assert!(rest.contains("nothing was measured"), "{rest}");
    }

    #[test]
    fn a_server_that_comes_back_is_loaded_on() {
        let mut demo = Demo::start();
        let pid = demo.child.id();
        let address = demo.address.clone();
        let mut child = quill()
            .args([
                "bench",
                &demo.url(ECHO),
                "-d",
                "4",
                "-r",
                "100",
                "-o",
                "json",
            ])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        pause_for(Duration::from_secs(1));
        signal("-TERM", pid);
        wait(&mut demo.child);
        let mut again = quill()
            .args(["demo", "--listen", &address])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdout = String::new();
        let mut output = child.stdout.take().unwrap();
        output.read_to_string(&mut stdout).unwrap();
        let code = wait(&mut child).code();
        again.kill().unwrap();
        again.wait().unwrap();
        let ran = Ran {
            code,
            stdout,
            stderr: String::new(),
        };
        let row = only(&ran);
        assert_eq!(
            (ran.code, &row["requests"]),
            (Some(0), &400.into()),
            "{row}"
        );
        // What was due while nobody listened failed, and nothing else did.
        let failed = row["errors"].as_u64().unwrap();
        assert!(failed < 200, "{row}");
        let refused = row["by_status"].get("unavailable");
        let refused = refused.map_or(0, |status| status["requests"].as_u64().unwrap());
        assert_eq!(failed, refused, "{row}");
    }

    #[test]
    fn ctrl_c_prints_what_was_measured_so_far() {
        let demo = Demo::start();
        for args in [&[][..], &["-r", "200"]] {
            let mut child = quill()
                .args(["bench", &demo.url(ECHO), "-d", "600", "-o", "json"])
                .args(args)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let mut stderr = BufReader::new(child.stderr.take().unwrap());
            let mut begun = String::new();
            stderr.read_line(&mut begun).unwrap();
            assert!(begun.contains("600 s"), "{begun}");
            pause_for(Duration::from_secs(1));
            signal("-INT", child.id());
            let (mut stdout, mut rest) = (String::new(), String::new());
            child
                .stdout
                .take()
                .unwrap()
                .read_to_string(&mut stdout)
                .unwrap();
            stderr.read_to_string(&mut rest).unwrap();
            let ran = Ran {
                code: wait(&mut child).code(),
                stdout,
                stderr: rest,
            };
            assert_eq!(ran.code, Some(0), "{ran:?}");
            let row = only(&ran);
            assert!(row["requests"].as_u64().unwrap() > 50, "{row}");
            assert_eq!(row["errors"], 0, "{row}");
            assert_eq!(row["interrupted"], true, "{row}");
            assert!(row["seconds"].as_f64().unwrap() < 60.0, "{row}");
            assert!(ran.stderr.contains("interrupted"), "{ran:?}");
        }
    }
}
