//! One thread of a load, with connections of its own.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use quill::{ClientBuilder, ConnectError, QuillClient};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::call::BenchCall;
use super::pace::Pace;
use super::recorder::Recorder;
use crate::client;
use crate::failure::Failure;

/// A thread that makes calls. Nothing is shared with another one while they are
/// under way, so that it costs little more than the calls themselves.
pub(super) struct Shard {
    phases: mpsc::Sender<(Phase, oneshot::Sender<Instant>)>,
}

/// What a shard is made of.
#[derive(Clone)]
pub(super) struct ShardPlan {
    pub(super) call: Arc<BenchCall>,
    pub(super) builder: ClientBuilder,
    /// Connections, one a client.
    pub(super) connections: usize,
    /// Calls at a time.
    pub(super) concurrency: usize,
}

/// A time under load.
#[derive(Clone)]
pub(super) struct Phase {
    /// When no further calls begin, unless there is a pace.
    pub(super) end: Instant,
    pub(super) pace: Option<Arc<Pace>>,
    pub(super) recorder: Arc<Mutex<Recorder>>,
    pub(super) stop: watch::Receiver<Stop>,
}

/// Whether calls under way are still waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// They are.
    NotYet,
    /// They are not, and that is nobody's fault.
    Asked,
    /// They are not, after long enough: they count as unfinished.
    GivenUp,
}

impl Shard {
    /// Starts the thread, and waits for its connections.
    pub(super) async fn start(plan: ShardPlan) -> Result<Self, Failure> {
        let (phases, commands) = mpsc::channel(1);
        let (tell, connected) = oneshot::channel();
        thread::Builder::new()
            .name("bench".to_owned())
            .spawn(move || serve(&plan, commands, tell))
            .map_err(|error| Failure::network(format!("no thread: {error}")))?;
        match connected.await {
            Ok(Ok(())) => Ok(Self { phases }),
            Ok(Err(failure)) => Err(failure),
            Err(_) => Err(Failure::network("a thread ended by itself")),
        }
    }

    /// Begins a time under load; tells when its last call has ended.
    pub(super) async fn begin(&self, phase: Phase) -> oneshot::Receiver<Instant> {
        let (tell, ended) = oneshot::channel();
        // A thread that is gone drops its end, which is told that way.
        let _ = self.phases.send((phase, tell)).await;
        ended
    }
}

fn serve(
    plan: &ShardPlan,
    mut phases: mpsc::Receiver<(Phase, oneshot::Sender<Instant>)>,
    connected: oneshot::Sender<Result<(), Failure>>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = connected.send(Err(Failure::network(format!("no runtime: {error}"))));
            return;
        }
    };
    runtime.block_on(async {
        let clients = match connect(plan).await {
            Ok(clients) => clients,
            Err(failure) => {
                let _ = connected.send(Err(failure));
                return;
            }
        };
        let _ = connected.send(Ok(()));
        while let Some((phase, ended)) = phases.recv().await {
            plan.run(&clients, &phase).await;
            let _ = ended.send(Instant::now());
        }
    });
}

async fn connect(plan: &ShardPlan) -> Result<Vec<QuillClient>, Failure> {
    let mut clients = Vec::with_capacity(plan.connections);
    for _ in 0..plan.connections {
        let client = client::build(plan.builder.clone())?;
        let ready: Result<(), ConnectError> = client.ready().await;
        ready.map_err(|error| Failure::network(error.to_string()))?;
        clients.push(client);
    }
    Ok(clients)
}

impl ShardPlan {
    async fn run(&self, clients: &[QuillClient], phase: &Phase) {
        let mut workers = JoinSet::new();
        for (number, client) in (0..self.concurrency).zip(clients.iter().cycle()) {
            let worker = Worker {
                call: Arc::clone(&self.call),
                client: client.clone(),
                phase: phase.clone(),
            };
            workers.spawn(worker.work(number as u64, self.concurrency as u64));
        }
        let mut stop = phase.stop.clone();
        tokio::select! {
            () = async { while workers.join_next().await.is_some() {} } => {}
            _ = stop.wait_for(|stop| *stop != Stop::NotYet) => {}
        }
        workers.shutdown().await;
        if let Some(pace) = &phase.pace
            && phase.is_given_up()
        {
            let now = Instant::now();
            for due in pace.overdue(now) {
                phase.recorded(|recorder| recorder.give_up(now - due.at));
            }
        }
    }
}

impl Phase {
    fn recorded(&self, record: impl FnOnce(&mut Recorder)) {
        record(&mut self.recorder.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn is_given_up(&self) -> bool {
        *self.stop.borrow() == Stop::GivenUp
    }
}

/// Makes one call after the other.
struct Worker {
    call: Arc<BenchCall>,
    client: QuillClient,
    phase: Phase,
}

impl Worker {
    async fn work(self, first: u64, step: u64) {
        if let Some(pace) = &self.phase.pace {
            while let Some(due) = pace.next().await {
                self.measure(due.number, due.at).await;
            }
            return;
        }
        let mut number = first;
        let mut now = Instant::now();
        while now < self.phase.end {
            now = self.measure(number, now).await;
            number += step;
        }
    }

    /// Makes a call that counts from `since`; when it ended.
    async fn measure(&self, number: u64, since: Instant) -> Instant {
        let mut under_way = UnderWay {
            phase: &self.phase,
            since: Some(since),
        };
        let outcome = self.call.make(&self.client, number).await;
        under_way.since = None;
        let now = Instant::now();
        let latency = now.saturating_duration_since(since);
        self.phase
            .recorded(|recorder| recorder.record(outcome, latency));
        now
    }
}

/// A call that is dropped before its end counts, if the run has given it up.
struct UnderWay<'a> {
    phase: &'a Phase,
    since: Option<Instant>,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if let Some(since) = self.since
            && self.phase.is_given_up()
        {
            self.phase
                .recorded(|recorder| recorder.give_up(since.elapsed()));
        }
    }
}
