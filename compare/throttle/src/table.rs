//! The measurements, and the rows that they fill.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use compare_report::{
    Arguments, Contest, Goal, Report, allocations_per_turn, can_count, instructions_per_turn,
};

use crate::fill::{self, Filled};
use crate::keyed::{Governor, Ours, Registry};
use crate::redis::{self, AT_ONCE};
use crate::threads::{Shared, two_threads};
use crate::works::{DIRECT, FRESH, IDENTITY, LAYER, WARM, work};

const ROUNDS: u32 = 60;
const ROUND_TIME: Duration = Duration::from_millis(4);
const COUNTED: u64 = 5000;

/// The rows this comparison owes.
const OWED: [&str; 23] = [
    "warm_ns_tk",
    "warm_ns_gov",
    "warm_instr_tk",
    "warm_instr_gov",
    "bytes_per_key_10m_tk",
    "bytes_per_key_10m_gov",
    "random_10m_tk",
    "random_10m_gov",
    "insert_10m_tk",
    "insert_10m_gov",
    "threads2_same_tk",
    "threads2_same_gov",
    "threads2_different_tk",
    "threads2_different_gov",
    "tower_headers_tk",
    "tower_headers_gov",
    "xff_v4_tk",
    "xff_v4_gov",
    "redis_batched",
    "redis_leased",
    "flood_rss",
    "insert_worst_batch",
    "direct_instr",
];

const TK: &str = "ours / throttle-kit 2.1.2";
const GOV: &str = "ours / governor";

/// Figures by the names of the works; what was not measured is not a number.
#[derive(Default)]
struct Figures(BTreeMap<&'static str, f64>);

impl Figures {
    fn of(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(f64::NAN)
    }

    fn times(names: &[&'static str]) -> Self {
        let mut contest = Contest::new(ROUNDS, ROUND_TIME);
        for name in names {
            if let Some(work) = work(name) {
                contest.enter(name, work);
            }
        }
        Self(contest.run().into_iter().collect())
    }

    fn counts(names: &[&'static str], count: fn(&str, u64) -> Option<f64>) -> Self {
        let counted = |name: &&'static str| Some((*name, count(name, COUNTED)?));
        Self(names.iter().filter_map(counted).collect())
    }
}

pub fn compare(arguments: &Arguments) -> ExitCode {
    let mut report = Report::new("throttle", &OWED);
    if !can_count() {
        eprintln!("compare: no valgrind, so no rows of instructions and no allocations");
    }
    let mut notes = vec![
        checks(&mut report),
        layer(&mut report),
        identity(&mut report),
        threads(&mut report),
    ];
    notes.extend(direct(&mut report));
    // What cannot be measured is said at once; its rows are missing at the end.
    for measured in [redis(&mut report), keys(&mut report), flood(&mut report)] {
        match measured {
            Ok(note) => notes.push(note),
            Err(error) => eprintln!("compare: {error}"),
        }
    }
    let exit = report.finish(arguments);
    println!("Without a goal:\n");
    for note in notes.iter().filter(|note| !note.is_empty()) {
        println!("- {note}");
    }
    exit
}

/// A row against each of the two peers.
struct Pair {
    ids: [&'static str; 2],
    metric: &'static str,
    goals: [Goal; 2],
}

impl Pair {
    /// `ours` for each peer, and the peers' own.
    fn add(&self, report: &mut Report, ours: [f64; 2], theirs: [f64; 2], unit: &str) {
        for (index, subject) in [TK, GOV].into_iter().enumerate() {
            let (ours, theirs, goal) = (ours[index], theirs[index], self.goals[index]);
            // Throughput is the inverse of time.
            let value = match goal {
                Goal::AtMost(_) | Goal::None => ours / theirs,
                Goal::AtLeast(_) => theirs / ours,
            };
            if value.is_finite() {
                let detail = format!("{ours:.1} / {theirs:.1} {unit}");
                report.ratio(self.ids[index], subject, self.metric, value, goal, detail);
            }
        }
    }
}

fn checks(report: &mut Report) -> String {
    let times = Figures::times(&WARM);
    let instructions = Figures::counts(&WARM, instructions_per_turn);
    let counted: Vec<&str> = WARM.into_iter().chain(FRESH).collect();
    let allocations = Figures::counts(&counted, allocations_per_turn);
    let time = Pair {
        ids: ["warm_ns_tk", "warm_ns_gov"],
        metric: "time of a warm check",
        goals: [Goal::AtMost(0.25), Goal::AtMost(0.5)],
    };
    let instruction = Pair {
        ids: ["warm_instr_tk", "warm_instr_gov"],
        metric: "instructions of a warm check",
        goals: [Goal::AtMost(0.2), Goal::AtMost(0.27)],
    };
    // Async against async, and sync against sync.
    for (pair, figures, unit) in [
        (&time, &times, "ns"),
        (&instruction, &instructions, "instructions"),
    ] {
        let ours = [figures.of("warm_ours_async"), figures.of("warm_ours")];
        let theirs = [figures.of("warm_tk"), figures.of("warm_gov")];
        pair.add(report, ours, theirs, unit);
    }
    let of = |name| allocations.of(name);
    format!(
        "allocations of a check, warm / fresh: ours {:.2} / {:.2}, throttle-kit 2.1.2 {:.2} / \
         {:.2}, governor {:.2} / {:.2}",
        of("warm_ours"),
        of("fresh_ours"),
        of("warm_tk"),
        of("fresh_tk"),
        of("warm_gov"),
        of("fresh_gov"),
    )
}

fn layer(report: &mut Report) -> String {
    let times = Figures::times(&LAYER);
    let instructions = Figures::counts(&LAYER, instructions_per_turn);
    let allocations = Figures::counts(&LAYER, allocations_per_turn);
    // Making the request and the answer is nobody's.
    let over = |figures: &Figures, name| figures.of(name) - figures.of("tower_bare");
    let pair = Pair {
        ids: ["tower_headers_tk", "tower_headers_gov"],
        metric: "time of the layer with headers",
        goals: [Goal::AtMost(0.35), Goal::AtMost(0.75)],
    };
    let ours = over(&times, "tower_ours");
    let theirs = [over(&times, "tower_tk"), over(&times, "tower_gov")];
    pair.add(report, [ours; 2], theirs, "ns");
    let of = |name| {
        format!(
            "{:.0} / {:.2}",
            over(&instructions, name),
            over(&allocations, name)
        )
    };
    format!(
        "instructions / allocations of the layer: ours {} (3 headers), throttle-kit 2.1.2 {} \
         (3 headers), tower_governor {} (2 headers); a request and an answer without it {:.0} ns",
        of("tower_ours"),
        of("tower_tk"),
        of("tower_gov"),
        times.of("tower_bare")
    )
}

fn identity(report: &mut Report) -> String {
    let times = Figures::times(&IDENTITY);
    let instructions = Figures::counts(&IDENTITY, instructions_per_turn);
    let pair = Pair {
        ids: ["xff_v4_tk", "xff_v4_gov"],
        metric: "time of X-Forwarded-For, v4",
        goals: [Goal::AtMost(0.55), Goal::AtMost(0.8)],
    };
    let ours = times.of("xff_ours");
    let theirs = [times.of("xff_tk"), times.of("xff_gov")];
    pair.add(report, [ours; 2], theirs, "ns");
    format!(
        "instructions of X-Forwarded-For: ours {:.0}, throttle-kit 2.1.2 {:.0}, SmartIp {:.0}",
        instructions.of("xff_ours"),
        instructions.of("xff_tk"),
        instructions.of("xff_gov")
    )
}

fn threads(report: &mut Report) -> String {
    let same = Pair {
        ids: ["threads2_same_tk", "threads2_same_gov"],
        metric: "throughput of two threads, one key",
        goals: [Goal::AtLeast(2.0), Goal::AtLeast(2.5)],
    };
    let different = Pair {
        ids: ["threads2_different_tk", "threads2_different_gov"],
        metric: "throughput of two threads, 1000 keys each",
        goals: [Goal::AtLeast(4.0), Goal::AtLeast(2.0)],
    };
    for (pair, shared) in [(same, Shared::Same), (different, Shared::Different)] {
        let mut contest = Contest::new(2 * ROUNDS, ROUND_TIME);
        contest.enter("ours", two_threads::<Ours>(shared));
        contest.enter("tk", two_threads::<Registry>(shared));
        contest.enter("gov", two_threads::<Governor>(shared));
        let times = Figures(contest.run().into_iter().collect());
        // A turn is a check on each thread.
        let each = |name| times.of(name) / 2.0;
        let theirs = [each("tk"), each("gov")];
        pair.add(report, [each("ours"); 2], theirs, "ns a check");
    }
    String::new()
}

fn direct(report: &mut Report) -> Option<String> {
    let times = Figures::times(&DIRECT);
    let instructions = Figures::counts(&DIRECT, instructions_per_turn);
    let (ours, governor) = (
        instructions.of("direct_ours"),
        instructions.of("direct_gov"),
    );
    if (ours / governor).is_finite() {
        let detail = format!("{ours:.1} / {governor:.1} instructions");
        let metric = "instructions of a check without a key";
        let goal = Goal::AtMost(1.0);
        report.ratio("direct_instr", GOV, metric, ours / governor, goal, detail);
    }
    let of = |name| {
        format!(
            "{:.1} ns, {:.0} instructions",
            times.of(name),
            instructions.of(name)
        )
    };
    Some(format!(
        "a check without a key: ours {}; governor {}; ratelimit {}; leaky-bucket {}",
        of("direct_ours"),
        of("direct_gov"),
        of("direct_ratelimit"),
        of("direct_leaky_bucket")
    ))
}

fn redis(report: &mut Report) -> Result<String, String> {
    let checks = redis::checks()?;
    let times = |theirs: f64, ours: f64| format!("{ours:.0} / {theirs:.0} ns a check");
    let (theirs, ours) = (checks.at_once_registry, checks.at_once_ours);
    report.ratio(
        "redis_batched",
        TK,
        "throughput over Redis, 64 keys at once",
        theirs / ours,
        Goal::AtLeast(2.0),
        times(theirs, ours),
    );
    let (theirs, ours) = (checks.single_registry, checks.leased);
    report.ratio(
        "redis_leased",
        TK,
        "throughput over Redis, leases of 100",
        theirs / ours,
        Goal::AtLeast(10.0),
        times(theirs, ours),
    );
    Ok(format!(
        "over Redis one check after the other: ours {:.0} ns, throttle-kit 2.1.2 {:.0} ns; \
         {AT_ONCE} at once are one task each on one thread",
        checks.single_ours, checks.single_registry
    ))
}

/// One of the figures of a filled limiter.
type Figure = fn(&Filled) -> f64;

fn keys(report: &mut Report) -> Result<String, String> {
    let small = fill::fill_in_turns(1_000_000, 3)?;
    let large = fill::fill_in_turns(10_000_000, 2)?;
    let rows: [(Pair, Figure, &str); 3] = [
        (
            Pair {
                ids: ["bytes_per_key_10m_tk", "bytes_per_key_10m_gov"],
                metric: "memory of a key at 10M",
                goals: [Goal::AtMost(0.27); 2],
            },
            |filled| filled.key_bytes,
            "bytes",
        ),
        (
            Pair {
                ids: ["random_10m_tk", "random_10m_gov"],
                metric: "time of a check at random at 10M",
                goals: [Goal::AtMost(0.15); 2],
            },
            |filled| filled.random_ns,
            "ns",
        ),
        (
            Pair {
                ids: ["insert_10m_tk", "insert_10m_gov"],
                metric: "time of an insert at 10M",
                goals: [Goal::AtMost(0.2); 2],
            },
            |filled| filled.insert_ns,
            "ns",
        ),
    ];
    for (pair, figure, unit) in rows {
        let [ours, registry, governor] = [0, 1, 2].map(|index| figure(&large[index]));
        pair.add(report, [ours; 2], [registry, governor], unit);
    }
    let [ours, registry, governor] = &large;
    report.figure(
        "insert_worst_batch",
        "ours",
        ("longest 4096 inserts on the way to 10M", "ms"),
        ours.worst_batch_ms,
        Goal::AtMost(5.0),
        format!(
            "throttle-kit 2.1.2 {:.1}, governor {:.1} ms",
            registry.worst_batch_ms, governor.worst_batch_ms
        ),
    );
    let of = |filled: &Filled| {
        let Filled {
            key_bytes,
            insert_ns,
            random_ns,
            ..
        } = filled;
        format!("{key_bytes:.1} bytes, {insert_ns:.0} ns, {random_ns:.0} ns")
    };
    let lost = ours.lost_permille;
    let [ours, registry, governor] = &small;
    Ok(format!(
        "memory of a key, insert, check at random at 1M: ours {}; throttle-kit 2.1.2 {}; \
         governor {}; keys that owe and were forgotten on the way to what the table was made \
         for: {:.2} of 1000 at 1M, {lost:.2} at 10M",
        of(ours),
        of(registry),
        of(governor),
        ours.lost_permille
    ))
}

fn flood(report: &mut Report) -> Result<String, String> {
    let grown = fill::flood_growth()? / f64::from(1 << 20);
    report.figure(
        "flood_rss",
        "ours",
        ("growth under a flood of 10M keys", "MiB"),
        grown,
        Goal::AtMost(2.0),
        "1000 live keys, none forgotten".to_owned(),
    );
    Ok(String::new())
}
