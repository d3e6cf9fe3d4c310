//! One thread of a load, with connections of its own.

use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::thread;
use std::time::Instant;

use quill::{
    ClientBuilder, ClientOptions, ConnectError, QuillClient, TransportError, TransportErrorKind,
};
use quill_transport::Lane;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::call::BenchCall;
use super::caller::LaneCaller;
use super::pace::Pace;
use super::recorder::Recorder;
use super::requests::Requests;
use super::worker::Worker;
use crate::client;
use crate::failure::Failure;

/// A thread that makes calls. Nothing is shared with another one while they are
/// under way, so that it costs little more than the calls themselves.
pub(super) struct Shard {
    phases: mpsc::Sender<(Phase, oneshot::Sender<Instant>)>,
}

/// What a shard is made of.
pub(super) struct ShardPlan {
    pub(super) call: Arc<BenchCall>,
    pub(super) builder: ClientBuilder,
    /// What lanes send, where calls can be made on lanes.
    pub(super) requests: Option<Arc<Requests>>,
    pub(super) options: ClientOptions,
    /// Connections: lanes, or one a client.
    pub(super) connections: usize,
    /// Calls at a time.
    pub(super) concurrency: usize,
}

/// What calls are made on. A call takes a fraction on a lane of what it takes a client,
/// which speaks HTTP/1.1, and to several servers, too.
enum Lines {
    Lanes(Arc<Requests>, Vec<Option<Lane>>),
    Clients(Vec<QuillClient>),
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
            .spawn(move || serve(&Arc::new(plan), commands, tell))
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
    plan: &Arc<ShardPlan>,
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
        let mut lines = match plan.connect().await {
            Ok(lines) => lines,
            Err(failure) => {
                let _ = connected.send(Err(failure));
                return;
            }
        };
        let _ = connected.send(Ok(()));
        while let Some((phase, ended)) = phases.recv().await {
            plan.run(&mut lines, &phase).await;
            let _ = ended.send(Instant::now());
        }
        lines.close().await;
    });
}

impl Lines {
    async fn close(self) {
        if let Self::Lanes(_, lanes) = self {
            for lane in lanes.into_iter().flatten() {
                lane.close().await;
            }
        }
    }
}

impl ShardPlan {
    /// Connects; by lanes, unless the server speaks HTTP/1.1.
    async fn connect(&self) -> Result<Lines, Failure> {
        let Some(requests) = &self.requests else {
            return self.clients().await;
        };
        let mut lanes = Vec::with_capacity(self.connections);
        for index in 0..self.connections {
            let lane = self.lane(requests, index).await;
            match lane.map_err(|error| Failure::network(error.to_string()))? {
                Some(lane) => lanes.push(Some(lane)),
                None => return self.clients().await,
            }
        }
        Ok(Lines::Lanes(Arc::clone(requests), lanes))
    }

    async fn clients(&self) -> Result<Lines, Failure> {
        let mut clients = Vec::with_capacity(self.connections);
        for _ in 0..self.connections {
            let client = client::build(self.builder.clone())?;
            let ready: Result<(), ConnectError> = client.ready().await;
            ready.map_err(|error| Failure::network(error.to_string()))?;
            clients.push(client);
        }
        Ok(Lines::Clients(clients))
    }

    async fn lane(
        &self,
        requests: &Requests,
        index: usize,
    ) -> Result<Option<Lane>, TransportError> {
        let Requests { endpoint, tls, .. } = requests;
        Lane::connect(endpoint, &self.options, tls.as_ref(), self.places(index)).await
    }

    /// Calls at a time on one of the connections.
    fn places(&self, index: usize) -> usize {
        let more = usize::from(index < self.concurrency % self.connections);
        self.concurrency / self.connections + more
    }

    async fn run(self: &Arc<Self>, lines: &mut Lines, phase: &Phase) {
        match lines {
            Lines::Clients(clients) => self.run_clients(clients, phase).await,
            Lines::Lanes(requests, lanes) => self.run_lanes(requests, lanes, phase).await,
        }
        if let Some(pace) = &phase.pace
            && phase.is_given_up()
        {
            let now = Instant::now();
            for due in pace.overdue(now) {
                phase.recorded(|recorder| recorder.give_up(now - due.at));
            }
        }
    }

    async fn run_clients(&self, clients: &[QuillClient], phase: &Phase) {
        let mut workers = JoinSet::new();
        for (number, client) in (0..self.concurrency).zip(clients.iter().cycle()) {
            let worker = Worker {
                call: Arc::clone(&self.call),
                client: client.clone(),
                phase: phase.clone(),
            };
            workers.spawn(worker.work(number as u64, self.concurrency as u64));
        }
        phase
            .until_stopped(async { while workers.join_next().await.is_some() {} })
            .await;
        workers.shutdown().await;
    }

    /// A lane that is not given back, since the run was stopped, is connected anew in
    /// the next.
    async fn run_lanes(
        self: &Arc<Self>,
        requests: &Arc<Requests>,
        lanes: &mut [Option<Lane>],
        phase: &Phase,
    ) {
        let mut running = JoinSet::new();
        for (index, lane) in lanes.iter_mut().enumerate() {
            let places = self.places(index);
            let caller = LaneCaller::new(
                Arc::clone(requests),
                phase.clone(),
                places,
                (index, self.connections),
                self.call.timeout,
            );
            let (plan, lane) = (Arc::clone(self), lane.take());
            running.spawn(async move { (index, plan.drive(index, lane, caller).await) });
        }
        phase
            .until_stopped(async {
                while let Some(ended) = running.join_next().await {
                    if let Ok((index, ended)) = ended
                        && let Some(lane) = lanes.get_mut(index)
                    {
                        *lane = ended;
                    }
                }
            })
            .await;
        running.shutdown().await;
    }

    /// Makes calls until there are no more, on one connection after the other where
    /// they end.
    async fn drive(
        &self,
        index: usize,
        lane: Option<Lane>,
        mut caller: LaneCaller,
    ) -> Option<Lane> {
        let requests = Arc::clone(&caller.requests);
        // That it ended while nobody called is no call's fault.
        if let Some(mut lane) = lane
            && lane.run(&mut caller).await.is_ok()
        {
            return Some(lane);
        }
        while poll_fn(|cx| caller.poll_wanted(cx)).await {
            let begun = caller.begun;
            let error = match self.lane(&requests, index).await {
                Ok(Some(mut lane)) => {
                    caller.connected();
                    match lane.run(&mut caller).await {
                        Ok(()) => return Some(lane),
                        Err(_) if caller.begun > begun => continue,
                        Err(error) => error,
                    }
                }
                Ok(None) => {
                    let message = "the server speaks HTTP/1.1 now";
                    TransportError::new(TransportErrorKind::HttpVersion, message).unprocessed()
                }
                Err(error) => error,
            };
            poll_fn(|cx| {
                caller.refuse(&error, cx);
                Poll::Ready(())
            })
            .await;
        }
        None
    }
}

impl Phase {
    pub(super) fn recorded(&self, record: impl FnOnce(&mut Recorder)) {
        record(&mut self.recorder.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn is_given_up(&self) -> bool {
        *self.stop.borrow() == Stop::GivenUp
    }

    /// Runs `work` to its end, or until nobody waits for it.
    async fn until_stopped(&self, work: impl Future<Output = ()>) {
        let mut stop = self.stop.clone();
        tokio::select! {
            () = work => {}
            _ = stop.wait_for(|stop| *stop != Stop::NotYet) => {}
        }
    }
}
