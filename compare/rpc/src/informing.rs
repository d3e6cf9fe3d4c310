//! Rows that no goal decides: over TLS, in Quill's other protocols, with messages
//! that take decoding, on two cores.

use std::path::Path;

use compare_report::{Goal, Report, can_count};

use crate::figures::Figures;
use crate::load::{Form, Load};
use crate::measure;
use crate::process::{Program, Server, Subject};
use crate::table::{EXPANDED, MICROSECOND, stage};

pub const OWED: [&str; 12] = [
    "unary_100b_tls",
    "unary_10kb_tls",
    "decode_50_owned",
    "decode_50_view",
    "two_cores",
    "client_instr",
    "connect_unary_100b",
    "grpc_web_unary_100b",
    "zstd_unary_10kb",
    "quill_server_stream",
    "quill_client_stream",
    "quill_server_stream_credits",
];

const fn subject(name: &'static str, server: &'static str, runtime: &'static str) -> Subject {
    let program = Program::Own(server, runtime);
    Subject { name, program }
}

const SECURE: [Subject; 3] = [
    subject("quill", "quill-tls", "ct"),
    subject("tonic", "tonic-tls", "ct"),
    subject("hyper + prost", "hyper-tls", "ct"),
];

/// Measures them all; `servers` are those that speak gRPC.
pub fn measure(report: &mut Report, servers: &[Server], folder: &Path) -> Result<(), String> {
    stage("TLS");
    over_tls(report, folder)?;
    stage("decoding");
    decoding(report, servers, folder)?;
    stage("two cores");
    two_cores(report, servers, folder)?;
    stage("Quill's protocols");
    protocols(report, servers, folder)?;
    stage("instructions of clients");
    client_instructions(report, servers);
    Ok(())
}

/// A row of a ratio that informs.
fn row(
    report: &mut Report,
    id: &'static str,
    (subject, metric): (&'static str, &'static str),
    ratio: f64,
    detail: String,
) {
    report.ratio(id, subject, metric, ratio, Goal::None, detail);
}

fn over_tls(report: &mut Report, folder: &Path) -> Result<(), String> {
    let servers: Result<Vec<Server>, String> = SECURE
        .iter()
        .map(|subject| Server::start(*subject, folder))
        .collect();
    let servers = servers?;
    let sizes = [
        ("unary_100b_tls", 100, 8_000),
        ("unary_10kb_tls", 10_000, 2_000),
    ];
    for (id, bytes, requests) in sizes {
        let load = Load::unary(folder, Form::Grpc, bytes, requests)?.over_tls();
        let figures = measure::cpu(&servers, &load, 1);
        let what = ("quill", "CPU per call over TLS, of tonic's");
        let detail = figures.text(MICROSECOND, "us");
        row(report, id, what, figures.ratio("quill", "tonic"), detail);
    }
    Ok(())
}

fn decoding(report: &mut Report, servers: &[Server], folder: &Path) -> Result<(), String> {
    // grpc-go serves payloads alone, without generated code.
    let decodes = |server: &&Server| {
        let name = server.subject.name;
        ["quill", "tonic", "connectrpc", "hyper + prost"].contains(&name)
    };
    let methods = [
        ("decode_50_owned", "/echo.v1.Echo/Digest", "owned"),
        ("decode_50_view", "/echo.v1.Echo/Skim", "views"),
    ];
    for (id, method, how) in methods {
        let load = Load::records(folder, method, 2_000)?;
        let figures = measure::cpu(servers.iter().filter(decodes), &load, 1);
        let what = ("quill", "CPU per call with 50 log records, of tonic's");
        let detail = format!("{how}: {}", figures.text(MICROSECOND, "us"));
        row(report, id, what, figures.ratio("quill", "tonic"), detail);
    }
    Ok(())
}

/// What a call costs more when two cores work on the same server: nothing is
/// shared between them where the ratio is 1.
fn two_cores(report: &mut Report, servers: &[Server], folder: &Path) -> Result<(), String> {
    let load = Load::unary(folder, Form::Grpc, 100, 16_000)?;
    let mut figures = Figures::default();
    let pairs = [
        ("quill mt", "quill", "quill on two cores"),
        ("tonic mt", "tonic", "tonic on two cores"),
    ];
    for (name, server, on_both) in pairs {
        let alone = servers.iter().filter(|server| server.subject.name == name);
        figures.add(name, measure::cpu(alone, &load, 1).of(name));
        let both = Server::start_on_both(subject(on_both, server, "mt"), folder)?;
        figures.add(on_both, measure::cpu([&both], &load, 1).of(on_both));
    }
    let ratio = figures.ratio("quill on two cores", "quill mt");
    let what = ("quill mt", "CPU per call on two cores, of that on one");
    let detail = figures.text(MICROSECOND, "us");
    row(report, "two_cores", what, ratio, detail);
    Ok(())
}

/// The same work of our server in other protocols, of what it takes in gRPC.
fn protocols(report: &mut Report, servers: &[Server], folder: &Path) -> Result<(), String> {
    let unary = |form, bytes| Load::unary(folder, form, bytes, 8_000);
    let small = (unary(Form::Grpc, 100)?, 1);
    let large = (unary(Form::Grpc, 10_000)?, 1);
    let expand = (Load::server_stream(folder, EXPANDED, 256)?, EXPANDED);
    let collect = (Load::client_stream(folder, EXPANDED, 256)?, EXPANDED);
    let works = [
        ("connect_unary_100b", unary(Form::Connect, 100)?, &small),
        ("grpc_web_unary_100b", unary(Form::GrpcWeb, 100)?, &small),
        ("zstd_unary_10kb", unary(Form::GrpcZstd, 10_000)?, &large),
        (
            "quill_server_stream",
            Load::quill_server_stream(folder, 256, false)?,
            &expand,
        ),
        (
            "quill_server_stream_credits",
            Load::quill_server_stream(folder, 256, true)?,
            &expand,
        ),
        (
            "quill_client_stream",
            Load::quill_client_stream(folder, EXPANDED, 256)?,
            &collect,
        ),
    ];
    let ours = || {
        servers
            .iter()
            .filter(|server| server.subject.name == "quill")
    };
    for (id, load, (plain, parts)) in works {
        let mut figures = Figures::default();
        for (name, load) in [("so", &load), ("gRPC", plain)].repeat(2) {
            figures.add(name, measure::cpu(ours(), load, *parts).of("quill"));
        }
        let what = ("quill", "CPU per call or message, of plain gRPC's");
        let detail = figures.text(1.0, "ns");
        row(report, id, what, figures.ratio("so", "gRPC"), detail);
    }
    Ok(())
}

fn client_instructions(report: &mut Report, servers: &[Server]) {
    let server = servers
        .iter()
        .find(|server| server.subject.name == "hyper + prost");
    let Some(server) = server.filter(|_| can_count()) else {
        return;
    };
    let figures = measure::client_instructions(server, &["quill", "tonic", "connectrpc"], 2_000);
    let what = ("quill", "instructions of the client per call, of tonic's");
    let detail = figures.text(1e3, "k");
    row(
        report,
        "client_instr",
        what,
        figures.ratio("quill", "tonic"),
        detail,
    );
}
