//! What a call costs the generator of load: `quill bench` beside h2load, and ghz
//! where it is installed: `compare/run generators`. The server is `quill demo` on a
//! core of its own; every generator has the other core, 8 connections and 128 calls at
//! a time.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use compare_report::{Arguments, Goal, Report};
use serde_json::Value as Json;

const SERVER_CORE: &str = "0";
const LOAD_CORE: &str = "1";
const ROUNDS: usize = 5;
const H2LOAD_CALLS: u32 = 400_000;
const GHZ_CALLS: u32 = 20_000;
const METHOD: &str = "echo.v1.EchoService/Echo";
const MESSAGE_BYTES: usize = 100;
/// What the kernel counts processor time in, for programs.
const TICKS_PER_SECOND: f64 = 100.0;

fn main() -> ExitCode {
    let run = Arguments::parse(env::args().skip(1)).and_then(|arguments| {
        let report = compare()?;
        Ok(report.finish(&arguments))
    });
    run.unwrap_or_else(|error| {
        eprintln!("compare: {error}");
        ExitCode::FAILURE
    })
}

/// Ends with it.
struct Demo(Child);

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn compare() -> Result<Report, String> {
    let quill = env::var("QUILL").map_err(|_| "QUILL names no program; use compare/run")?;
    let folder = env::temp_dir().join(format!("compare-generators-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let compared = rounds(&quill, &folder);
    let _ = fs::remove_dir_all(&folder);
    compared
}

fn rounds(quill: &str, folder: &Path) -> Result<Report, String> {
    let demo = ["demo", "--listen", "127.0.0.1:0"];
    let mut demo = pinned(SERVER_CORE, quill)
        .args(demo)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map(Demo)
        .map_err(|error| format!("{quill}: {error}"))?;
    let address = address(&mut demo.0)?;
    let body = folder.join("body");
    fs::write(&body, framed()).map_err(|error| error.to_string())?;
    let has_ghz = Command::new("ghz").arg("-v").output().is_ok();
    let (mut bench, mut h2load, mut ghz) = (f64::MAX, f64::MAX, f64::MAX);
    for _ in 0..ROUNDS {
        h2load = h2load.min(by_h2load(&address, &body)?);
        bench = bench.min(by_bench(quill, &address)?);
        if has_ghz {
            ghz = ghz.min(by_ghz(&address)?);
        }
    }
    let mut report = Report::new("generators", &["bench_cpu"]);
    let micros = |seconds: f64| format!("{:.2} µs", seconds * 1e6);
    report.ratio(
        "bench_cpu",
        "quill bench",
        "CPU time a call, of h2load's",
        bench / h2load,
        Goal::AtMost(1.5),
        format!("{} and {}", micros(bench), micros(h2load)),
    );
    if has_ghz {
        report.ratio(
            "ghz_cpu",
            "ghz",
            "CPU time a call, of h2load's",
            ghz / h2load,
            Goal::None,
            micros(ghz),
        );
    }
    Ok(report)
}

/// Seconds of CPU time that h2load takes for a call.
fn by_h2load(address: &str, body: &Path) -> Result<f64, String> {
    let mut command = pinned(LOAD_CORE, "h2load");
    command
        .args(["-c8", "-m16", "-n", &H2LOAD_CALLS.to_string(), "-d"])
        .arg(body)
        .args(["-H", "content-type: application/grpc"])
        .args(["-H", "te: trailers"])
        .arg(format!("http://{address}/{METHOD}"));
    let (seconds, said) = timed(command)?;
    if !said.contains(&format!("{H2LOAD_CALLS} succeeded")) {
        return Err(format!("h2load: not every call succeeded:\n{said}"));
    }
    // To h2load that is HTTP's status, which errors of gRPC have too: those have no body.
    let expected = u64::from(H2LOAD_CALLS) * (5 + MESSAGE_BYTES as u64);
    if data_bytes(&said).is_none_or(|bytes| bytes < expected) {
        return Err(format!(
            "h2load: the answers are under {expected} B:\n{said}"
        ));
    }
    Ok(seconds / f64::from(H2LOAD_CALLS))
}

/// What h2load counted in DATA frames: `traffic: 3MB (3000000) total, ..., 2MB (2000000)
/// data`.
fn data_bytes(said: &str) -> Option<u64> {
    let traffic = said.lines().find(|line| line.starts_with("traffic:"))?;
    let before = traffic.trim_end().strip_suffix(") data")?;
    before.rsplit_once('(')?.1.parse().ok()
}

/// Seconds of CPU time that `quill bench` takes for a call.
fn by_bench(quill: &str, address: &str) -> Result<f64, String> {
    let mut command = pinned(LOAD_CORE, quill);
    let load = ["-c128", "--connections", "8", "--threads", "1", "-d4"];
    command
        .args(["bench", &format!("http://{address}/{METHOD}")])
        .args(["-pgrpc", "-ojson", "--input", &json()])
        .args(load);
    let (seconds, said) = timed(command)?;
    let said: Json = serde_json::from_str(&said).map_err(|error| format!("{error}: {said}"))?;
    let row = &said["benchmarks"][0];
    match (row["requests"].as_f64(), row["errors"].as_u64()) {
        (Some(calls), Some(0)) if calls > 0.0 => Ok(seconds / calls),
        _ => Err(format!("quill bench: not every call succeeded: {row}")),
    }
}

/// Seconds of CPU time that ghz takes for a call.
fn by_ghz(address: &str) -> Result<f64, String> {
    let mut command = pinned(LOAD_CORE, "ghz");
    command
        .args(["--insecure", "--call", METHOD, "-d", &json(), "-c128"])
        .args(["--connections=8", "--cpus=1", "-Ojson"])
        .args(["-n", &GHZ_CALLS.to_string(), address]);
    let (seconds, said) = timed(command)?;
    let said: Json = serde_json::from_str(&said).map_err(|error| format!("{error}: {said}"))?;
    match said["statusCodeDistribution"]["OK"].as_u64() {
        Some(calls) if calls == u64::from(GHZ_CALLS) => Ok(seconds / f64::from(GHZ_CALLS)),
        _ => Err("ghz: not every call succeeded".to_owned()),
    }
}

fn pinned(core: &str, program: &str) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", core, program]);
    command
}

/// Runs a program; the seconds of CPU time that it took, and what it said.
fn timed(mut command: Command) -> Result<(f64, String), String> {
    let before = childrens_seconds()?;
    let ran = command
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    if !ran.status.success() {
        let said = String::from_utf8_lossy(&ran.stderr);
        return Err(format!("{command:?} failed: {said}"));
    }
    Ok((childrens_seconds()? - before, said))
}

/// CPU time of children that have ended, in user and kernel mode (proc(5): `cutime`
/// and `cstime`, behind the name in parentheses).
fn childrens_seconds() -> Result<f64, String> {
    let stat = fs::read_to_string("/proc/self/stat").map_err(|error| error.to_string())?;
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks = fields.split_whitespace().skip(13).take(2);
    let ticks: Option<Vec<f64>> = ticks.map(|field| field.parse().ok()).collect();
    match ticks.as_deref() {
        Some([user, kernel]) => Ok((user + kernel) / TICKS_PER_SECOND),
        _ => Err("/proc/self/stat has no times".to_owned()),
    }
}

/// The address that the demo's first words name.
fn address(demo: &mut Child) -> Result<String, String> {
    let out = demo.stdout.take().ok_or("the demo has no output")?;
    let mut lines = BufReader::new(out).lines().map_while(Result::ok);
    let named = lines.find_map(|line| {
        let (_, after) = line.split_once("http://")?;
        let end = after.find(|c: char| !c.is_ascii_digit() && !".:".contains(c));
        Some(after[..end.unwrap_or(after.len())].to_owned())
    });
    // Who writes on would find nobody who reads.
    std::thread::spawn(move || lines.for_each(drop));
    named.ok_or_else(|| "the demo did not start".to_owned())
}

fn json() -> String {
    format!("{{\"message\":\"{}\"}}", "x".repeat(MESSAGE_BYTES - 2))
}

/// The same message as gRPC's body: its head, then the field's tag and length.
fn framed() -> Vec<u8> {
    let text = MESSAGE_BYTES - 2;
    let mut body = vec![0, 0, 0, 0, MESSAGE_BYTES as u8, 0x0a, text as u8];
    body.extend(std::iter::repeat_n(b'x', text));
    body
}
