//! What is compared, and against what.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use compare_report::{Arguments, Goal, Report, can_count};

use crate::figures::Figures;
use crate::informing;
use crate::load::{Form, Load};
use crate::measure;
use crate::plot::Plot;
use crate::process::{self, Program, Server, Subject};

const OWED: [&str; 21] = [
    "unary_100b_ct",
    "unary_100b_mt",
    "unary_1kb",
    "unary_10kb",
    "unary_1mb",
    "instr_100b",
    "instr_100b_full",
    "writes_100b",
    "writes_1kb",
    "mt_over_ct",
    "server_stream",
    "client_stream",
    "bidi_64",
    "p50_10k",
    "p99_10k",
    "idle_connection",
    "open_stream",
    "client_call",
    "http1_unary",
    "one_call",
    "quill_unary_100b",
];

const fn own(name: &'static str, server: &'static str, runtime: &'static str) -> Subject {
    let program = Program::Own(server, runtime);
    Subject { name, program }
}

const QUILL: Subject = own("quill", "quill", "ct");
const QUILL_MT: Subject = own("quill mt", "quill", "mt");
const QUILL_ON_HYPER: Subject = own("quill (hyper)", "quill-on-hyper", "ct");
const TONIC: Subject = own("tonic", "tonic", "ct");
const TONIC_MT: Subject = own("tonic mt", "tonic", "mt");
const CONNECTRPC: Subject = own("connectrpc", "connectrpc", "ct");
const HYPER: Subject = own("hyper + prost", "hyper", "ct");
const QUILL_GUARDED: Subject = own("quill", "quill-guarded", "ct");
const TONIC_GUARDED: Subject = own("tonic", "tonic-guarded", "ct");
const GRPC_GO: Subject = Subject {
    name: "grpc-go",
    program: Program::Go,
};
const VOLO: Subject = Subject {
    name: "volo-grpc",
    program: Program::Volo,
};
const NGHTTPD: Subject = Subject {
    name: "nghttpd, a file",
    program: Program::Nghttpd,
};

/// All that speak gRPC.
const GRPC: [Subject; 9] = [
    QUILL,
    QUILL_MT,
    QUILL_ON_HYPER,
    TONIC,
    TONIC_MT,
    CONNECTRPC,
    HYPER,
    GRPC_GO,
    VOLO,
];

/// What the servers' `Expand` answers with.
pub const EXPANDED: usize = 500;

pub const MICROSECOND: f64 = 1e3;

/// Measures everything, prints the table, and draws the plot beside the builds.
pub fn compare(arguments: &Arguments) -> Result<ExitCode, String> {
    process::move_to_load_core()?;
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Folder::create()?;
    let subjects = subjects(manifest, &folder.0);
    let owed = [&OWED[..], &informing::OWED].concat();
    let mut report = Report::new("rpc", &owed);
    let plot = measure_all(&mut report, &subjects, &folder.0)?;
    let file = manifest.with_file_name("target").join("rpc.svg");
    match fs::write(&file, plot.to_string()) {
        Ok(()) => eprintln!("compare: the plot is {}", file.display()),
        Err(error) => eprintln!("compare: {}: {error}", file.display()),
    }
    Ok(report.finish(arguments))
}

/// Files of this run, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn create() -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("compare-rpc-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Those that can be built here. What is left out is said.
fn subjects(manifest: &Path, folder: &Path) -> Vec<Subject> {
    let mut subjects = GRPC.to_vec();
    let mut go = Command::new("go");
    go.args(["build", "-o"])
        .arg(folder.join("grpc-go"))
        .arg(".")
        .current_dir(manifest.join("go"));
    let mut volo = Command::new("cargo");
    volo.args(["build", "--quiet", "--release", "-p", "compare-volo"])
        .current_dir(manifest);
    let builds = [
        (GRPC_GO, &mut go, "needs Go"),
        (VOLO, &mut volo, "has a build of its own, which failed"),
    ];
    for (built, command, why) in builds {
        let status = command.status();
        if !status.is_ok_and(|status| status.success()) {
            eprintln!("compare: without {}, which {why}", built.name);
            subjects.retain(|subject| subject.name != built.name);
        }
    }
    subjects
}

fn measure_all(report: &mut Report, subjects: &[Subject], folder: &Path) -> Result<Plot, String> {
    let mut servers = Vec::with_capacity(subjects.len());
    for subject in subjects {
        servers.push(Server::start(*subject, folder)?);
    }
    let mut plot = Plot::default();
    stage("unary calls");
    unary(report, &mut plot, &mut servers, folder)?;
    stage("streams");
    streams(report, &servers, folder)?;
    stage("writes");
    writes(report, &servers, folder)?;
    stage("other protocols");
    other_protocols(report, &servers, folder)?;
    stage("latency");
    latency(report, &servers, folder)?;
    stage("clients");
    clients(report, &servers);
    informing::measure(report, &servers, folder)?;
    drop(servers);
    stage("memory");
    let subjects: Vec<Subject> = subjects
        .iter()
        .copied()
        .filter(|subject| ![QUILL_MT.name, TONIC_MT.name].contains(&subject.name))
        .collect();
    memory(report, &subjects, folder);
    stage("instructions");
    instructions(report, folder)?;
    Ok(plot)
}

/// Says what is under way: all of it takes minutes.
pub fn stage(name: &str) {
    eprintln!("compare: {name}");
}

fn unary(
    report: &mut Report,
    plot: &mut Plot,
    servers: &mut Vec<Server>,
    folder: &Path,
) -> Result<(), String> {
    match Server::start(NGHTTPD, folder) {
        Ok(server) => servers.push(server),
        Err(error) => eprintln!("compare: without nghttpd: {error}"),
    }
    let load = |bytes, requests| Load::unary(folder, Form::Grpc, bytes, requests);
    let small = measure::cpu(&*servers, &load(100, 16_000)?, 1);
    let metric = "CPU per call, of tonic's";
    let row = |figures: &Figures| figures.text(MICROSECOND, "us");
    plot.add("100 B", &small);
    let ratio = small.ratio("quill", "tonic");
    let goal = Goal::AtMost(0.25);
    report.ratio("unary_100b_ct", "quill", metric, ratio, goal, row(&small));
    let ratio = small.ratio("quill mt", "tonic mt");
    let goal = Goal::AtMost(0.167);
    let detail = "as above".to_owned();
    report.ratio(
        "unary_100b_mt",
        "quill mt",
        "CPU per call, of tonic mt's",
        ratio,
        goal,
        detail,
    );
    let ratio = small.ratio("quill mt", "quill");
    let goal = Goal::AtMost(1.1);
    let detail = "as above".to_owned();
    report.ratio(
        "mt_over_ct",
        "quill mt",
        "CPU per call, of quill's",
        ratio,
        goal,
        detail,
    );
    let larger = [
        ("unary_1kb", "1 KB", 1_000, 8_000, 0.167),
        ("unary_10kb", "10 KB", 10_000, 4_000, 0.333),
        ("unary_1mb", "1 MB", 1_000_000, 128, 0.8),
    ];
    for (id, name, bytes, requests, goal) in larger {
        let figures = measure::cpu(&*servers, &load(bytes, requests)?, 1);
        plot.add(name, &figures);
        let ratio = figures.ratio("quill", "tonic");
        report.ratio(
            id,
            "quill",
            metric,
            ratio,
            Goal::AtMost(goal),
            row(&figures),
        );
    }
    servers.retain(|server| server.subject.name != NGHTTPD.name);
    Ok(())
}

fn streams(report: &mut Report, servers: &[Server], folder: &Path) -> Result<(), String> {
    let metric = "CPU per message, of tonic's";
    let load = Load::server_stream(folder, EXPANDED, 512)?;
    let figures = measure::cpu(servers, &load, EXPANDED);
    let (ratio, detail) = (figures.ratio("quill", "tonic"), figures.text(1.0, "ns"));
    let goal = Goal::AtMost(0.667);
    report.ratio("server_stream", "quill", metric, ratio, goal, detail);

    let load = Load::client_stream(folder, EXPANDED, 512)?;
    let figures = measure::cpu(servers, &load, EXPANDED);
    let (ratio, detail) = (figures.ratio("quill", "tonic"), figures.text(1.0, "ns"));
    report.ratio(
        "client_stream",
        "quill",
        metric,
        ratio,
        Goal::AtMost(0.75),
        detail,
    );

    let figures = measure::chat(servers);
    let (ratio, detail) = (
        figures.ratio("quill", "tonic"),
        figures.text(MICROSECOND, "us"),
    );
    report.ratio("bidi_64", "quill", metric, ratio, Goal::AtMost(0.5), detail);
    Ok(())
}

fn writes(report: &mut Report, servers: &[Server], folder: &Path) -> Result<(), String> {
    for (id, bytes) in [("writes_100b", 100), ("writes_1kb", 1_000)] {
        let load = Load::unary(folder, Form::Grpc, bytes, 4_000)?;
        let figures = measure::writes(servers, &load);
        let worse = match (figures.of("quill"), figures.of("quill mt")) {
            (ct, mt) if ct.is_nan() || mt.is_nan() => f64::NAN,
            (ct, mt) => ct.max(mt),
        };
        let metric = ("writes per answer, ct or mt", "calls");
        let detail = figures.text(1.0, "");
        report.figure(id, "quill", metric, worse, Goal::AtMost(0.1), detail);
    }
    Ok(())
}

fn other_protocols(report: &mut Report, servers: &[Server], folder: &Path) -> Result<(), String> {
    let speak_http1 = |server: &&Server| {
        let subjects = [QUILL, CONNECTRPC, HYPER];
        subjects
            .iter()
            .any(|subject| subject.name == server.subject.name)
    };
    let load = Load::unary(folder, Form::ConnectHttp1, 100, 8_000)?;
    let figures = measure::cpu(servers.iter().filter(speak_http1), &load, 1);
    // Both goals in one: 1.15 of hyper's, and 1/1.2 of connectrpc's.
    let by_connectrpc = figures.ratio("connectrpc", "hyper + prost") / 1.2;
    let goal = Goal::AtMost((by_connectrpc.min(1.15) * 1e3).round() / 1e3);
    let ratio = figures.ratio("quill", "hyper + prost");
    let detail = figures.text(MICROSECOND, "us");
    let metric = "CPU per call over HTTP/1.1, of hyper's";
    report.ratio("http1_unary", "quill", metric, ratio, goal, detail);

    let ours = || {
        servers
            .iter()
            .filter(|server| server.subject.name == "quill")
    };
    let mut figures = Figures::default();
    for (name, form) in [("quill", Form::Quill), ("gRPC", Form::Grpc)].repeat(3) {
        let load = Load::unary(folder, form, 100, 8_000)?;
        figures.add(name, measure::cpu(ours(), &load, 1).of("quill"));
    }
    let (ratio, detail) = (
        figures.ratio("quill", "gRPC"),
        figures.text(MICROSECOND, "us"),
    );
    let metric = "CPU per call in Quill's protocol, of gRPC's";
    report.ratio(
        "quill_unary_100b",
        "quill",
        metric,
        ratio,
        Goal::AtMost(1.0),
        detail,
    );
    Ok(())
}

fn latency(report: &mut Report, servers: &[Server], folder: &Path) -> Result<(), String> {
    let load = Load::unary(folder, Form::Grpc, 100, 10_000)?;
    let [p50, p99, p999] = measure::at_rate(servers, &load, 10_000);
    let goal = Goal::AtMost(0.4);
    let (ratio, detail) = (p50.ratio("quill", "tonic"), p50.text(1.0, "us"));
    report.ratio(
        "p50_10k",
        "quill",
        "p50 at 10,000/s, of tonic's",
        ratio,
        goal,
        detail,
    );
    let ratio = p99.ratio("quill", "tonic");
    let detail = format!("{}. p99.9: {}", p99.text(1.0, "us"), p999.text(1.0, "us"));
    report.ratio(
        "p99_10k",
        "quill",
        "p99 at 10,000/s, of tonic's",
        ratio,
        goal,
        detail,
    );

    let figures = measure::one_call(servers);
    let (ratio, detail) = (
        figures.ratio("quill", "tonic"),
        figures.text(MICROSECOND, "us"),
    );
    let goal = Goal::AtMost(0.682);
    let metric = "time of one call at a time, of tonic's";
    report.ratio("one_call", "quill", metric, ratio, goal, detail);
    Ok(())
}

fn clients(report: &mut Report, servers: &[Server]) {
    let server = servers
        .iter()
        .find(|server| server.subject.name == HYPER.name);
    let Some(server) = server else { return };
    let figures = measure::clients(server, &["quill", "tonic", "connectrpc"], 10_000);
    let (ratio, detail) = (
        figures.ratio("quill", "tonic"),
        figures.text(MICROSECOND, "us"),
    );
    let metric = "CPU of the client per call, of tonic's";
    let goal = Goal::AtMost(0.333);
    report.ratio("client_call", "quill", metric, ratio, goal, detail);
}

fn memory(report: &mut Report, subjects: &[Subject], folder: &Path) {
    let (idle, open) = measure::memory(subjects, folder);
    let rows = [
        (
            "idle_connection",
            "memory of an idle connection",
            &idle,
            2.0,
        ),
        ("open_stream", "memory of an open stream", &open, 1.0),
    ];
    for (id, metric, figures, goal) in rows {
        let value = figures.of("quill") / 1e3;
        let detail = figures.text(1e3, "kB");
        report.figure(
            id,
            "quill",
            (metric, "kB"),
            value,
            Goal::AtMost(goal),
            detail,
        );
    }
}

fn instructions(report: &mut Report, folder: &Path) -> Result<(), String> {
    if !can_count() {
        eprintln!("compare: without instructions, which need valgrind");
        return Ok(());
    }
    let load = Load::unary(folder, Form::Grpc, 100, 2_000)?;
    let subjects = [QUILL, QUILL_MT, QUILL_ON_HYPER, TONIC, CONNECTRPC, HYPER];
    let figures = measure::instructions(&subjects, &load);
    let (value, detail) = (figures.of("quill"), figures.text(1e3, "k"));
    let metric = ("instructions per call", "");
    report.figure(
        "instr_100b",
        "quill",
        metric,
        value,
        Goal::AtMost(8_000.0),
        detail,
    );

    let load = load.with_metadata();
    let figures = measure::instructions(&[QUILL_GUARDED, TONIC_GUARDED], &load);
    let (value, detail) = (figures.of("quill"), figures.text(1e3, "k"));
    let metric = ("instructions per call, with metadata and layers", "");
    // Both goals in one: 11,000, and a quarter of tonic's.
    let goal = Goal::AtMost((figures.of("tonic") / 4.0).min(11_000.0).round());
    report.figure("instr_100b_full", "quill", metric, value, goal, detail);
    Ok(())
}
