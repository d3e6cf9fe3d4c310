//! Instructions that the heads of a call take, by callgrind: the same on every machine,
//! so a limit on them can gate a change.
//!
//! `cargo bench -p quill-h2 --bench iai_hpack`
//!
//! Each case runs N and 2N times under `valgrind --tool=callgrind`, which counts inside
//! of `repeat` only; the difference is what N cost. Above its limit the bench fails.
//! Without valgrind, or with flags that are another harness's, it says so and does
//! nothing.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod heads;

use std::hint::black_box;
use std::process::{Command, ExitCode};

use heads::{
    Count, Fields, LIST_BYTES_MAX, REQUEST, REQUEST_WITH_METADATA, RESPONSE, TRAILERS, encode,
};
use quill_h2::hpack::{Decoder, Encoder, Memo};

/// Iterations of the shorter run.
const N: u64 = 20_000;

/// A hot path: its name, the most instructions it may take, and itself.
struct Case {
    name: &'static str,
    limit: u64,
    run: fn(u64),
}

const CASES: &[Case] = &[
    Case {
        name: "decode_request_first",
        limit: 4_050,
        run: |n| decode_first(n, REQUEST),
    },
    Case {
        name: "decode_request_repeat",
        limit: 525,
        run: |n| decode_repeat(n, REQUEST),
    },
    Case {
        name: "decode_request_with_metadata_repeat",
        limit: 800,
        run: |n| decode_repeat(n, REQUEST_WITH_METADATA),
    },
    Case {
        name: "recall_request",
        limit: 60,
        run: recall,
    },
    Case {
        name: "encode_response_first",
        limit: 2_650,
        run: encode_first,
    },
    Case {
        name: "encode_response_repeat",
        limit: 700,
        run: |n| encode_repeat(n, &[RESPONSE, TRAILERS].concat()),
    },
    Case {
        name: "encode_request_repeat",
        limit: 1_650,
        run: |n| encode_repeat(n, REQUEST),
    },
    Case {
        name: "encode_request_with_metadata_repeat",
        limit: 2_450,
        run: |n| encode_repeat(n, REQUEST_WITH_METADATA),
    },
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| arg != "--bench")
        .collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        [] => gate(),
        ["--run", name, n] => run(name, n),
        _ => {
            println!("iai_hpack: takes no flags (given {args:?}), so nothing is measured");
            ExitCode::SUCCESS
        }
    }
}

/// One run, for callgrind to count.
fn run(name: &str, n: &str) -> ExitCode {
    let case = CASES.iter().find(|case| case.name == name);
    let (Some(case), Ok(n)) = (case, n.parse()) else {
        eprintln!("iai_hpack: no case {name:?}, or {n:?} is no number");
        return ExitCode::FAILURE;
    };
    (case.run)(n);
    ExitCode::SUCCESS
}

fn gate() -> ExitCode {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("iai_hpack: valgrind is not installed, so nothing is measured");
        return ExitCode::SUCCESS;
    }
    let mut failed = false;
    for case in CASES {
        match instructions(case) {
            Ok(count) => {
                let above = count > case.limit;
                let verdict = if above { "ABOVE ITS LIMIT" } else { "ok" };
                println!("{:36} {count:6} of {:6}  {verdict}", case.name, case.limit);
                failed |= above;
            }
            Err(error) => {
                println!("{:36} could not be measured: {error}", case.name);
                failed = true;
            }
        }
    }
    match failed {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}

/// Instructions of one iteration.
fn instructions(case: &Case) -> Result<u64, String> {
    let once = collected(case.name, N)?;
    let twice = collected(case.name, 2 * N)?;
    Ok(twice.saturating_sub(once) / N)
}

/// All instructions of a run of `n` iterations.
fn collected(name: &str, n: u64) -> Result<u64, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args([
            "--collect-atstart=no",
            "--toggle-collect=*iai_hpack*repeat_n*",
        ])
        .arg(this)
        .args(["--run", name, &n.to_string()])
        .output()
        .map_err(|error| error.to_string())?;
    let report = String::from_utf8_lossy(&output.stderr);
    report
        .lines()
        .find_map(|line| line.split_once("Collected : "))
        .and_then(|(_, count)| count.trim().parse().ok())
        .ok_or_else(|| format!("callgrind said: {report}"))
}

/// What is counted.
#[inline(never)]
fn repeat_n(n: u64, mut run: impl FnMut()) {
    for _ in 0..n {
        run();
    }
}

fn decode_first(n: u64, fields: &Fields) {
    let block = encode(&mut Encoder::new(), fields);
    repeat_n(n, || {
        let (mut decoder, mut count) = (Decoder::default(), Count(0));
        let decoded = decoder.decode(black_box(&block), LIST_BYTES_MAX, &mut count);
        black_box((decoded.is_ok(), count.0));
    });
}

/// A decoder that saw the fields before, and a block of them.
fn warm(fields: &Fields) -> (Decoder, Vec<u8>) {
    let (mut encoder, mut decoder) = (Encoder::new(), Decoder::default());
    for _ in 0..2 {
        let block = encode(&mut encoder, fields);
        let decoded = decoder.decode(&block, LIST_BYTES_MAX, &mut Count(0));
        assert!(decoded.is_ok());
    }
    (decoder, encode(&mut encoder, fields))
}

fn decode_repeat(n: u64, fields: &Fields) {
    let (mut decoder, block) = warm(fields);
    let mut count = Count(0);
    repeat_n(n, || {
        let decoded = decoder.decode(black_box(&block), LIST_BYTES_MAX, &mut count);
        assert!(black_box(decoded.is_ok()));
    });
}

fn recall(n: u64) {
    let (mut decoder, block) = warm(REQUEST);
    let mut memo = Memo::new();
    let decoded = decoder.decode(&block, LIST_BYTES_MAX, &mut Count(0));
    memo.remember(&decoded.expect("a valid block"), || 7);
    repeat_n(n, || {
        let recalled = memo.recall(black_box(&decoder), black_box(&block), LIST_BYTES_MAX);
        assert!(black_box(recalled).is_some());
    });
}

fn encode_first(n: u64) {
    let mut out = Vec::with_capacity(4096);
    repeat_n(n, || {
        out.clear();
        let mut encoder = Encoder::new();
        for (name, value) in RESPONSE.iter().chain(TRAILERS) {
            encoder.field(black_box(name), black_box(value), false, &mut out);
        }
        black_box(&out);
    });
}

fn encode_repeat(n: u64, fields: &Fields) {
    let (mut encoder, mut out) = (Encoder::new(), Vec::with_capacity(4096));
    for _ in 0..2 {
        encode(&mut encoder, fields);
    }
    repeat_n(n, || {
        out.clear();
        for (name, value) in fields {
            encoder.field(black_box(name), black_box(value), false, &mut out);
        }
        black_box(&out);
    });
}
