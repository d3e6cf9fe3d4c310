//! Quill's frames beside frames that copy, in one run: `compare/run frames`.

mod copying;
mod work;

use std::process::ExitCode;
use std::time::Duration;

use compare_report::{Arguments, Contest, Goal, Report, counted, instructions_per_turn};

use self::work::{Side, Work};

const ROUNDS: u32 = 40;
const ROUND_TIME: Duration = Duration::from_millis(5);

/// The rows this comparison owes.
const OWED: [&str; 5] = [
    "encode_100b",
    "decode_100b",
    "encode_1mb",
    "decode_1mb",
    "roundtrip_1kb",
];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).peekable();
    let done = if arguments.next_if_eq("count").is_some() {
        count(arguments)
    } else {
        Arguments::parse(arguments).map(|arguments| compare(&arguments))
    };
    done.unwrap_or_else(|error| {
        eprintln!("compare: {error}");
        ExitCode::from(2)
    })
}

/// What callgrind runs: `NAME TURNS`, and nothing else.
fn count(mut arguments: impl Iterator<Item = String>) -> Result<ExitCode, String> {
    let name = arguments.next().ok_or("count needs a NAME")?;
    let work = Work::ALL.iter().find(|work| name == work.name);
    let (work, side) = match (work, name.strip_prefix("copying_")) {
        (Some(work), _) => (work, Side::Quill),
        (None, Some(name)) => {
            let work = Work::ALL.iter().find(|work| name == work.name);
            (work.ok_or(format!("no work {name:?}"))?, Side::Copying)
        }
        (None, None) => return Err(format!("no work {name:?}")),
    };
    let turns = arguments.next().and_then(|turns| turns.parse().ok());
    let turns = turns.ok_or("count needs a number of TURNS")?;
    counted(&mut work.doer(side), turns);
    Ok(ExitCode::SUCCESS)
}

/// What one piece of work takes on both sides.
struct Taken {
    quill: f64,
    copying: f64,
    figures: String,
}

fn compare(arguments: &Arguments) -> ExitCode {
    let mut report = Report::new("frames", &OWED);
    let [
        encode_100b,
        encode_1kb,
        encode_1mb,
        decode_100b,
        decode_1kb,
        decode_1mb,
        roundtrip_1kb,
    ] = measure();
    let against = "quill / copying";
    let size = "quill 1 MB / quill 100 B";
    let ratio = |taken: &Taken| taken.quill / taken.copying;
    let rows = [
        (
            "encode_100b",
            against,
            ratio(&encode_100b),
            0.25,
            &encode_100b,
        ),
        (
            "decode_100b",
            against,
            ratio(&decode_100b),
            0.667,
            &decode_100b,
        ),
        (
            "encode_1mb",
            size,
            encode_1mb.quill / encode_100b.quill,
            2.0,
            &encode_1mb,
        ),
        (
            "decode_1mb",
            size,
            decode_1mb.quill / decode_100b.quill,
            2.0,
            &decode_1mb,
        ),
        // No bound of its own was set; it has to reach what decoding has to.
        (
            "roundtrip_1kb",
            against,
            ratio(&roundtrip_1kb),
            0.667,
            &roundtrip_1kb,
        ),
    ];
    for (id, subject, value, bound, taken) in rows {
        report.ratio(
            id,
            subject,
            "time",
            value,
            Goal::AtMost(bound),
            taken.figures.clone(),
        );
    }
    let exit = report.finish(arguments);
    println!(
        "Without a goal: encode_1kb {}; decode_1kb {}.\n",
        encode_1kb.figures, decode_1kb.figures
    );
    println!("{PUBLISHED_FIGURES}");
    exit
}

/// What another framework publishes of the same works, from another machine.
const PUBLISHED_FIGURES: &str = "\
For orientation, what another framework publishes, from another machine: \
encode 62.5 ns (100 B), 76.5 ns (1 KB), 17.5 us (1 MB); \
decode 40.2 ns, 94.0 ns, 41.8 us; \
round trip 117 ns (100 B), 176 ns (1 KB), 539 ns (10 KB).";

fn measure() -> [Taken; 7] {
    let mut contest = Contest::new(ROUNDS, ROUND_TIME);
    for work in Work::ALL {
        contest.enter(work.name, work.doer(Side::Quill));
        contest.enter(work.name, work.doer(Side::Copying));
    }
    let times = contest.run();
    let mut pairs = times.chunks_exact(2);
    Work::ALL.map(|work| {
        let (quill, copying) = match pairs.next() {
            Some([(_, quill), (_, copying)]) => (*quill, *copying),
            _ => (f64::NAN, f64::NAN),
        };
        let figures = format!("{}; copying {}", figure(work.name, quill), {
            figure(&format!("copying_{}", work.name), copying)
        });
        Taken {
            quill,
            copying,
            figures,
        }
    })
}

fn figure(name: &str, time: f64) -> String {
    // Copying 1 MB a thousand times under callgrind takes minutes.
    let turns = if name.ends_with("1mb") { 50 } else { 1000 };
    match instructions_per_turn(name, turns) {
        Some(instructions) => format!("{time:.1} ns, {instructions:.0} instructions"),
        None => format!("{time:.1} ns"),
    }
}
