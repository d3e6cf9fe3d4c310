//! Quill's middleware beside plain code that does the same, in one run:
//! `compare/run middleware`.

mod plain;
mod work;

use std::process::ExitCode;
use std::time::Duration;

use compare_report::{
    Arguments, Contest, Goal, Report, allocations_per_turn, counted, instructions_per_turn,
};

use self::work::{Doer, WORKS, compressing};

const ROUNDS: u32 = 60;
const ROUND_TIME: Duration = Duration::from_millis(4);
const COUNTED: u64 = 2000;
const LEVELS: [u8; 6] = [1, 3, 6, 9, 15, 22];

/// The rows this comparison owes.
const OWED: [&str; 6] = [
    "auth_valid",
    "auth_invalid",
    "rate_limit",
    "metrics_record",
    "full_stack",
    "stack_allocs",
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

/// What valgrind runs: `NAME TURNS`, and nothing else.
fn count(mut arguments: impl Iterator<Item = String>) -> Result<ExitCode, String> {
    let name = arguments.next().ok_or("count needs a NAME")?;
    let mut doer = doer(&name).ok_or(format!("no work {name:?}"))?;
    let turns = arguments.next().and_then(|turns| turns.parse().ok());
    let turns = turns.ok_or("count needs a number of TURNS")?;
    counted(&mut doer, turns);
    Ok(ExitCode::SUCCESS)
}

fn doer(name: &str) -> Option<Doer> {
    let plain = name.strip_prefix("plain_");
    let wanted = plain.unwrap_or(name);
    let (_, ours, theirs) = WORKS.iter().find(|(name, ..)| *name == wanted)?;
    Some(if plain.is_some() { theirs() } else { ours() })
}

/// Nanoseconds of one piece of work on both sides.
struct Taken {
    name: &'static str,
    quill: f64,
    plain: f64,
}

fn compare(arguments: &Arguments) -> ExitCode {
    let mut report = Report::new("middleware", &OWED);
    let taken = measure();
    for taken in &taken {
        let Taken { name, quill, plain } = taken;
        let time = ("time", "ns");
        match *name {
            "auth_valid" => report.figure(
                name,
                "quill",
                time,
                *quill,
                Goal::AtMost(25.0),
                taken.figures(),
            ),
            "auth_invalid" => report.figure(
                name,
                "quill",
                time,
                *quill,
                Goal::AtMost(100.0),
                taken.figures(),
            ),
            "rate_limit" => report.ratio(
                name,
                "quill / plain",
                "time",
                quill / plain,
                Goal::AtMost(0.333),
                taken.figures(),
            ),
            "metrics_record" => report.figure(
                name,
                "quill",
                time,
                *quill,
                Goal::AtMost(2.0),
                taken.figures(),
            ),
            "full_stack" => report.figure(
                name,
                "quill",
                time,
                *quill,
                Goal::AtMost(100.0),
                taken.figures(),
            ),
            _ => {}
        }
    }
    let allocations = |name| allocations_per_turn(name, COUNTED).unwrap_or(f64::NAN);
    report.figure(
        "stack_allocs",
        "quill",
        ("allocations", "a call"),
        allocations("full_stack"),
        Goal::AtMost(0.0),
        format!("plain {:.1}", allocations("plain_full_stack")),
    );
    let exit = report.finish(arguments);
    if let Some(taken) = taken.iter().find(|taken| taken.name == "full_stack_zstd") {
        println!(
            "The stack with an answer of 1 KB compressed: {}.",
            taken.figures()
        );
    }
    println!("zstd on 10 KB of text, Quill / plain: {}.\n", levels());
    println!("{PUBLISHED_FIGURES}");
    exit
}

/// What another framework publishes of the same works, from another machine.
const PUBLISHED_FIGURES: &str = "\
For orientation, what another framework publishes, from another machine: \
a limit 52 ns, a valid key 25.8 ns, an invalid one 22.6 ns, a count 2.0 ns, \
the stack 80-100 ns without compression and 10-12 us with it.";

fn measure() -> Vec<Taken> {
    let mut contest = Contest::new(ROUNDS, ROUND_TIME);
    for (name, ours, theirs) in WORKS {
        contest.enter(name, ours());
        contest.enter(name, theirs());
    }
    let times = contest.run();
    let pairs = times.chunks_exact(2).filter_map(|pair| match pair {
        [(name, quill), (_, plain)] => Some(Taken {
            name,
            quill: *quill,
            plain: *plain,
        }),
        _ => None,
    });
    pairs.collect()
}

impl Taken {
    fn figures(&self) -> String {
        let Self { name, quill, plain } = self;
        let ours = instructions(name);
        let theirs = instructions(&format!("plain_{name}"));
        format!("{quill:.1} ns{ours}; plain {plain:.1} ns{theirs}")
    }
}

fn instructions(name: &str) -> String {
    match instructions_per_turn(name, COUNTED) {
        Some(count) => format!(", {count:.0} instructions"),
        None => String::new(),
    }
}

fn levels() -> String {
    let levels = LEVELS.map(|level| {
        let (quill, plain) = compressing(level);
        let mut contest = Contest::new(10, Duration::from_millis(20));
        contest.enter("quill", quill);
        contest.enter("plain", plain);
        let times: Vec<f64> = contest.run().into_iter().map(|(_, time)| time).collect();
        let (quill, plain) = (times[0] / 1e3, times[1] / 1e3);
        format!(
            "level {level} {:.2} ({quill:.1} us, {plain:.1} us)",
            quill / plain
        )
    });
    levels.join(", ")
}
