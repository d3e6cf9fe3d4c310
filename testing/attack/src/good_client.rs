//! The client that does nothing wrong, and must be served all the while.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quill::{ClientBuilder, Protocol, QuillClient};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::victim::Victim;

/// Longest time that a call of a good client may take, on a busy machine.
pub(crate) const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
/// When it is given up.
const GIVEN_UP: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(20);

/// How its calls went.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    pub(crate) count: u64,
    pub(crate) slowest: Duration,
    /// The first few failures.
    pub(crate) failures: Vec<String>,
}

impl Calls {
    fn note(&mut self, what: &str, time: Duration, outcome: Result<(), String>) {
        self.count += 1;
        self.slowest = self.slowest.max(time);
        let failure = match outcome {
            Err(error) => format!("a good call {what} failed: {error}"),
            Ok(()) if time > ANSWER_TIME_MAX => {
                format!("a good call {what} took {time:.1?}")
            }
            Ok(()) => return,
        };
        if self.failures.len() < 3 {
            self.failures.push(failure);
        }
    }
}

/// A good client at work.
pub(crate) struct GoodClient {
    calls: Arc<Mutex<Calls>>,
    task: JoinHandle<()>,
}

/// Its clients.
#[derive(Clone)]
struct Clients {
    /// Two that keep their connections.
    http2: QuillClient,
    http1: QuillClient,
    /// What makes a client with a connection of its own.
    fresh: ClientBuilder,
}

impl Clients {
    fn of(victim: &Victim) -> Result<Self, String> {
        let mut builder = QuillClient::builder().base_url(victim.url());
        if let Some(tls) = &victim.tls {
            builder = builder.tls(tls.clone());
        }
        let build = |builder: ClientBuilder| builder.build().map_err(|e| e.to_string());
        Ok(Self {
            http2: build(builder.clone().protocol(Protocol::Grpc))?,
            http1: build(builder.clone().protocol(Protocol::Connect).http1())?,
            fresh: builder,
        })
    }

    async fn call_on_old(&self, calls: &Mutex<Calls>) {
        timed("on an old HTTP/2 connection", calls, ask(&self.http2)).await;
        timed("on an old HTTP/1.1 connection", calls, ask(&self.http1)).await;
    }

    async fn call_on_new(&self, calls: &Mutex<Calls>) {
        let call = async {
            let client = self.fresh.clone().build().map_err(|e| e.to_string())?;
            ask(&client).await
        };
        timed("on a new connection", calls, call).await;
    }
}

impl GoodClient {
    /// Makes its connections and some calls; then it goes on by itself.
    pub(crate) async fn start(victim: &Victim) -> Result<Self, String> {
        let clients = Clients::of(victim)?;
        let calls = Arc::new(Mutex::new(Calls::default()));
        for _ in 0..20 {
            clients.call_on_old(&calls).await;
            clients.call_on_new(&calls).await;
        }
        if let Some(failure) = lock(&calls).failures.first() {
            return Err(format!("before the attack {failure}"));
        }
        let shared = Arc::clone(&calls);
        let task = tokio::spawn(async move {
            loop {
                clients.call_on_old(&shared).await;
                clients.call_on_new(&shared).await;
                sleep(PAUSE).await;
            }
        });
        Ok(Self { calls, task })
    }

    /// Stops it; how its calls went.
    pub(crate) async fn stop(self) -> Calls {
        self.task.abort();
        let _ = self.task.await;
        lock(&self.calls).clone()
    }
}

/// Whether a client with a new connection is served.
pub(crate) async fn is_served(victim: &Victim) -> Result<(), String> {
    let calls = Mutex::new(Calls::default());
    Clients::of(victim)?.call_on_new(&calls).await;
    match lock(&calls).failures.first() {
        None => Ok(()),
        Some(failure) => Err(format!("after the attack {failure}")),
    }
}

async fn ask(client: &QuillClient) -> Result<(), String> {
    let answer = client.call("grpc.health.v1.Health", "Check", "").await;
    match answer {
        Ok(answer) if answer[..] == [0x08, 0x01] => Ok(()),
        Ok(answer) => Err(format!("the answer is {answer:?}")),
        Err(error) => Err(error.to_string()),
    }
}

async fn timed(what: &str, calls: &Mutex<Calls>, call: impl Future<Output = Result<(), String>>) {
    let begun = Instant::now();
    let outcome = timeout(GIVEN_UP, call).await;
    let outcome = outcome.unwrap_or_else(|_| Err("there is no answer".to_owned()));
    lock(calls).note(what, begun.elapsed(), outcome);
}

fn lock(calls: &Mutex<Calls>) -> std::sync::MutexGuard<'_, Calls> {
    calls.lock().unwrap_or_else(PoisonError::into_inner)
}
