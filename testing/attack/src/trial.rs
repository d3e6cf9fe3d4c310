//! An attack on a server of its own: two rounds, and what they left.

use std::path::PathBuf;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::arena::Arena;
use crate::args::Args;
use crate::attack::{Against, Attack, Pace};
use crate::attacks;
use crate::good_client::{GoodClient, is_served};
use crate::victim::{Victim, raise_descriptors};

/// What a second identical attack may add to what is resident.
const GROWTH_KIB_MAX: i64 = 8 * 1024;
/// How long freed memory may take to go back to the system.
const REST_TIME_MAX: Duration = Duration::from_secs(5);
/// How long descriptors may take to come back to what they were.
const SETTLE_TIME_MAX: Duration = Duration::from_secs(5);
/// What one attack takes beside its own time: start, settle, end.
const OVERHEAD: Duration = Duration::from_millis(1200);
/// A round's share of the time, at least and at most.
const ROUND: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(250)..=Duration::from_secs(30);
/// A round that does not end by itself long after its time is cut.
const ROUND_GRACE: Duration = Duration::from_secs(30);
/// An idle server takes less of a processor than this, in ticks of 10 ms.
const QUIET_TICKS_MAX: u64 = 10;
const QUIET_TIME: Duration = Duration::from_millis(300);

/// What every trial has in common.
#[derive(Clone, Debug)]
struct Setting {
    seed: u64,
    rounds: u32,
    program: PathBuf,
    folder: PathBuf,
}

/// How one attack was borne.
#[derive(Debug, Default)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) sent: String,
    /// KiB resident: at most, and after each round.
    pub(crate) peak: u64,
    pub(crate) after: Vec<u64>,
    pub(crate) descriptors_before: usize,
    pub(crate) descriptors_after: usize,
    pub(crate) calls: u64,
    pub(crate) slowest: Duration,
    pub(crate) findings: Vec<String>,
}

impl Row {
    /// The most that was resident after a round beyond what was after the first,
    /// in KiB.
    pub(crate) fn growth(&self) -> i64 {
        let Some((first, others)) = self.after.split_first() else {
            return 0;
        };
        let most = others.iter().max().unwrap_or(first);
        most.cast_signed() - first.cast_signed()
    }
}

impl Setting {
    fn arena(&self, address: std::net::SocketAddr, time: Duration) -> Arena {
        Arena::new(
            address,
            time,
            self.seed,
            self.program.clone(),
            self.folder.clone(),
        )
    }
}

/// Runs the attacks that the arguments choose; a row for each, in their order.
pub(crate) async fn run_all(args: &Args) -> Result<Vec<Row>, String> {
    let program = args.program()?;
    let descriptors = raise_descriptors();
    crate::print(&format!(
        "this process may have {descriptors} descriptors\n"
    ));
    let is_chosen = |attack: &&Attack| {
        args.only.is_empty()
            || args
                .only
                .iter()
                .any(|name| attack.name.contains(name.as_str()))
    };
    let chosen: Vec<Attack> = attacks::ALL.iter().filter(is_chosen).copied().collect();
    if chosen.is_empty() {
        return Err("there is no such attack; --list names them".to_owned());
    }
    let folder = std::env::temp_dir().join(format!("quill-attack-{}", std::process::id()));
    let round = share(&chosen, args.rounds, Duration::from_secs(args.seconds));

    let setting = Setting {
        seed: args.seed,
        rounds: args.rounds,
        program,
        folder: folder.clone(),
    };

    let mut patient = JoinSet::new();
    for (place, attack) in chosen.iter().enumerate() {
        if let Pace::Patient(seconds) = attack.pace {
            let trial = trial(*attack, Duration::from_secs(seconds), setting.clone());
            patient.spawn(async move { (place, trial.await) });
        }
    }
    let mut rows = Vec::new();
    for (place, attack) in chosen.iter().enumerate() {
        if attack.pace == Pace::Busy {
            rows.push((place, trial(*attack, round, setting.clone()).await));
        }
    }
    while let Some(row) = patient.join_next().await {
        rows.push(row.map_err(|error| error.to_string())?);
    }
    let _ = std::fs::remove_dir_all(&folder);
    rows.sort_by_key(|(place, _)| *place);
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

/// How long one round of a busy attack may take.
fn share(attacks: &[Attack], rounds: u32, total: Duration) -> Duration {
    let busy = attacks.iter().filter(|attack| attack.pace == Pace::Busy);
    let busy = u32::try_from(busy.count()).unwrap_or(u32::MAX).max(1);
    let left = total.saturating_sub(OVERHEAD * busy);
    (left / rounds.saturating_mul(busy)).clamp(*ROUND.start(), *ROUND.end())
}

async fn trial(attack: Attack, time: Duration, mut setting: Setting) -> Row {
    setting.folder.push(attack.name);
    let mut row = Row {
        name: attack.name,
        ..Row::default()
    };
    let outcome = if attack.against == Against::Call {
        attack_call(&attack, time, &setting, &mut row).await
    } else {
        attack_server(&attack, time, &setting, &mut row).await
    };
    row.findings.extend(outcome.err());
    if row.peak > attack.memory_mib_max * 1024 {
        row.findings.push(format!(
            "memory came to {} MiB, and {} are the bound",
            row.peak / 1024,
            attack.memory_mib_max
        ));
    }
    let verdict = if row.findings.is_empty() {
        "borne"
    } else {
        "FAILED"
    };
    crate::print(&format!("{:<22} {verdict}  {}\n", row.name, row.sent));
    row
}

async fn attack_server(
    attack: &Attack,
    time: Duration,
    setting: &Setting,
    row: &mut Row,
) -> Result<(), String> {
    let victim = Victim::start(attack.against, &setting.program, &setting.folder).await?;
    let arena = || setting.arena(victim.address, time);
    let client = GoodClient::start(&victim).await?;
    row.descriptors_before = victim.descriptors();
    let before = victim.memory().resident;
    for _ in 0..setting.rounds {
        let fought = tokio::time::timeout(time + ROUND_GRACE, (attack.round)(arena())).await;
        match fought {
            Ok(Ok(sent)) => row.sent = sent,
            Ok(Err(finding)) => row.findings.push(finding),
            Err(_) => row.findings.push("the attack does not end".to_owned()),
        }
        row.descriptors_after = settle(&victim, row.descriptors_before).await;
        let rest = *row.after.first().unwrap_or(&before);
        row.after.push(rested(&victim, rest).await);
    }
    let calls = client.stop().await;
    (row.calls, row.slowest) = (calls.count, calls.slowest);
    row.findings.extend(calls.failures);
    row.findings.extend(is_served(&victim).await.err());
    if row.descriptors_after > row.descriptors_before {
        row.findings.push("descriptors were left open".to_owned());
    }
    let growth = row.growth();
    if growth > GROWTH_KIB_MAX {
        row.findings
            .push(format!("a round added {growth} KiB to the first"));
    }
    row.findings.extend(busy_for_nobody(&victim).await);
    row.peak = victim.memory().peak;
    row.findings.extend(victim.stop().await);
    Ok(())
}

/// The attack watches the commands that it starts; its memory is theirs.
async fn attack_call(
    attack: &Attack,
    time: Duration,
    setting: &Setting,
    row: &mut Row,
) -> Result<(), String> {
    std::fs::create_dir_all(&setting.folder).map_err(|error| error.to_string())?;
    let nowhere = (std::net::Ipv4Addr::LOCALHOST, 0).into();
    let arena = setting.arena(nowhere, time);
    let outcome = (attack.round)(arena.clone()).await;
    row.peak = arena.peak_kib();
    row.sent = outcome?;
    Ok(())
}

/// Waits until the victim's descriptors are as many as before; how many they are.
async fn settle(victim: &Victim, before: usize) -> usize {
    let given_up = Instant::now() + SETTLE_TIME_MAX;
    loop {
        let now = victim.descriptors();
        if now <= before || Instant::now() > given_up {
            sleep(Duration::from_millis(100)).await;
            return now;
        }
        sleep(Duration::from_millis(10)).await;
    }
}

/// What is resident once freed memory went back to the system, which is a little late:
/// waits for as much as `rest`, or half of what may be added to it.
async fn rested(victim: &Victim, rest: u64) -> u64 {
    let given_up = Instant::now() + REST_TIME_MAX;
    loop {
        let now = victim.memory().resident;
        let added = now.cast_signed() - rest.cast_signed();
        if added <= GROWTH_KIB_MAX / 2 || Instant::now() > given_up {
            return now;
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// Nobody asks anything any more: whether the victim works all the same.
async fn busy_for_nobody(victim: &Victim) -> Option<String> {
    let mut ticks = 0;
    // What was under way may end first.
    for _ in 0..10 {
        let before = victim.ticks();
        sleep(QUIET_TIME).await;
        ticks = victim.ticks() - before;
        if ticks <= QUIET_TICKS_MAX {
            return None;
        }
    }
    Some(format!(
        "it works for nobody: {ticks}0 ms in {QUIET_TIME:?}"
    ))
}
