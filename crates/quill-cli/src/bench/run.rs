//! The run of one benchmark.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use quill::{ClientBuilder, ClientOptions, Format, Protocol};
use tokio::sync::{oneshot, watch};
use tokio::time::{interval, sleep_until};

use super::call::BenchCall;
use super::latency::histogram;
use super::load::Load;
use super::measurement::{Collected, Measurement};
use super::pace::{Pace, Pacer, Schedule};
use super::progress::Progress;
use super::recorder::Recorder;
use super::requests::Requests;
use super::shard::{Phase, Shard, ShardPlan, Stop};
use crate::failure::Failure;
use crate::target::Target;

/// How often what the threads recorded is looked at.
const TICK: Duration = Duration::from_millis(200);
/// What the server may send on a connection before it is read; it always is.
const CONNECTION_WINDOW_BYTES: u32 = 64 * 1024 * 1024;

/// All about a benchmark that is ready to run.
pub(crate) struct Prepared {
    pub(crate) name: String,
    pub(crate) target: Target,
    pub(crate) protocol: Protocol,
    pub(crate) format: Format,
    pub(crate) http1: bool,
    pub(crate) call: Arc<BenchCall>,
    pub(crate) builder: ClientBuilder,
    /// For lanes, where calls can be made on them.
    pub(crate) requests: Option<Arc<Requests>>,
}

/// Runs a benchmark, until its end or until `interrupted` turns true; `None` when that
/// was before anything was measured.
///
/// # Errors
/// The server can't be reached.
pub(crate) async fn run(
    prepared: &Prepared,
    load: &Load,
    progress: &mut Progress,
    interrupted: &mut watch::Receiver<bool>,
) -> Result<Option<Measurement>, Failure> {
    let starting = (0..load.threads).map(|thread| Shard::start(plan(prepared, load, thread)));
    let shards: Result<Vec<Shard>, _> = join_all(starting).await.into_iter().collect();
    let shards = shards?;
    if let Some(warm_up) = load.warm_up {
        let warmed = drive(&shards, load, warm_up, None, interrupted).await;
        if warmed.is_interrupted {
            progress.end();
            return Ok(None);
        }
    }
    let driven = drive(&shards, load, load.duration, Some(progress), interrupted).await;
    progress.end();
    let (tallies, traffic, intervals) = driven.collected.into_parts();
    let mut latencies = histogram();
    for (_, tally) in &tallies {
        // All histograms have the same bounds.
        let _ = latencies.add(&tally.latencies);
    }
    let Target {
        base_url,
        service,
        method,
    } = &prepared.target;
    Ok(Some(Measurement {
        name: prepared.name.clone(),
        url: base_url.clone(),
        method: format!("{service}/{method}"),
        protocol: prepared.protocol,
        format: prepared.format,
        http1: prepared.http1,
        load: load.clone(),
        elapsed: driven.elapsed,
        is_interrupted: driven.is_interrupted,
        latencies,
        tallies,
        traffic,
        intervals,
    }))
}

fn plan(prepared: &Prepared, load: &Load, thread: usize) -> ShardPlan {
    let connections = load.share(load.connections, thread);
    let concurrency = load.share(load.concurrency, thread);
    let calls = concurrency.div_ceil(connections.max(1));
    let mut options = ClientOptions::default();
    options.http2_connections_max = 1;
    options.http2_streams_max = u32::try_from(calls).unwrap_or(u32::MAX).max(1);
    options.http2_connection_window_bytes = Some(CONNECTION_WINDOW_BYTES);
    options.http1_connections_max = calls.max(1);
    options.http1_idle_connections_max = calls.max(1);
    ShardPlan {
        call: Arc::clone(&prepared.call),
        builder: prepared.builder.clone().transport(options.clone()),
        requests: prepared.requests.clone(),
        options,
        connections,
        concurrency,
    }
}

/// A time under load, driven to its end.
struct Driven {
    collected: Collected,
    elapsed: Duration,
    is_interrupted: bool,
}

async fn drive(
    shards: &[Shard],
    load: &Load,
    duration: Duration,
    mut progress: Option<&mut Progress>,
    interrupted: &mut watch::Receiver<bool>,
) -> Driven {
    let start = Instant::now();
    let (stop, stopped) = watch::channel(Stop::NotYet);
    let recorders: Vec<_> = shards.iter().map(|_| recorder()).collect();
    let (paces, _pacer) = paces(load, start, duration);
    let mut ended = Vec::new();
    for (index, (shard, recorder)) in shards.iter().zip(&recorders).enumerate() {
        let phase = Phase {
            end: start + duration,
            pace: paces.get(index).cloned(),
            recorder: Arc::clone(recorder),
            stop: stopped.clone(),
        };
        ended.push(shard.begin(phase).await);
    }
    let mut collected = Collected::new(duration);
    let mut all_ended = std::pin::pin!(last(ended));
    let mut ticks = interval(TICK.min(duration));
    ticks.tick().await;
    let mut give_up = std::pin::pin!(sleep_until((start + duration + load.grace).into()));
    let mut is_stopping = false;
    let mut is_interrupted = false;
    let end = loop {
        tokio::select! {
            end = &mut all_ended => break end,
            _ = ticks.tick() => {
                collected.take(recorders.iter().map(locked), start.elapsed());
                if let Some(progress) = &mut progress {
                    progress.show(start.elapsed(), duration, &collected.latest);
                }
            }
            () = &mut give_up, if !is_stopping => {
                is_stopping = true;
                let _ = stop.send(Stop::GivenUp);
            }
            Ok(_) = interrupted.wait_for(|is_asked| *is_asked), if !is_stopping => {
                (is_stopping, is_interrupted) = (true, true);
                let _ = stop.send(Stop::Asked);
            }
        }
    };
    let took = end.unwrap_or_else(Instant::now) - start;
    let elapsed = if is_interrupted {
        took
    } else {
        took.max(duration)
    };
    collected.take(recorders.iter().map(locked), elapsed);
    Driven {
        collected,
        elapsed,
        is_interrupted,
    }
}

/// A pace for each thread, and what drives them, where a rate is asked for.
fn paces(load: &Load, start: Instant, duration: Duration) -> (Vec<Arc<Pace>>, Option<Pacer>) {
    let (Some(rate), Some(total)) = (load.rate, load.requests_due(duration)) else {
        return (Vec::new(), None);
    };
    let schedule = Schedule { start, rate, total };
    let pace = |thread| Arc::new(Pace::new(schedule, thread, load.threads));
    let paces: Vec<_> = (0..load.threads).map(pace).collect();
    let pacer = Pacer::start(schedule, paces.clone(), load.concurrency);
    (paces, Some(pacer))
}

/// When the last of them ended.
async fn last(ended: Vec<oneshot::Receiver<Instant>>) -> Option<Instant> {
    let ends = join_all(ended).await;
    ends.into_iter().filter_map(Result::ok).max()
}

fn recorder() -> Arc<Mutex<Recorder>> {
    Arc::new(Mutex::new(Recorder::new()))
}

fn locked(recorder: &Arc<Mutex<Recorder>>) -> MutexGuard<'_, Recorder> {
    recorder.lock().unwrap_or_else(PoisonError::into_inner)
}
