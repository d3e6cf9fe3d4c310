//! Calls of every kind and end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use quill::client::{
    Backoff, Balance, CircuitBreaker, Hedge, Outliers, Quota, RateLimit, RetryPolicy, Token, Tokens,
};
use quill::{Code, Error, Protocol, QuillClient, Request};
use quill_tests_resilience::{FlakyClient, FlakyRequest};
use tokio::sync::mpsc;

use crate::servers::Servers;

/// After so many calls a client is made for one call alone.
const FRESH_EVERY: u64 = 500;
/// After so many calls a server is restarted.
const RESTART_EVERY: u64 = 20_000;

/// Calls to make, by clients in every protocol.
pub(crate) struct Load {
    calls: u64,
    next: Arc<AtomicU64>,
    clients: Arc<Vec<FlakyClient>>,
    servers: Arc<Servers>,
}

impl Load {
    pub(crate) fn new(calls: u64, servers: &Arc<Servers>) -> Result<Self, String> {
        let ways = Protocol::ALL
            .into_iter()
            .flat_map(|p| [(p, false), (p, true)]);
        let ways = ways.filter(|(protocol, http1)| !(*http1 && *protocol == Protocol::Grpc));
        let clients = ways.map(|(protocol, http1)| client(servers, protocol, http1));
        Ok(Self {
            calls,
            next: Arc::default(),
            clients: Arc::new(clients.collect::<Result<_, _>>()?),
            servers: Arc::clone(servers),
        })
    }

    /// Makes the calls, so many at a time; `look` is told how many were made.
    pub(crate) async fn run(
        &self,
        callers: usize,
        mut look: impl FnMut(u64),
    ) -> Result<(), String> {
        let (tell, mut told) = mpsc::channel(callers.max(1));
        for _ in 0..callers {
            let tell = tell.clone();
            let (calls, next) = (self.calls, Arc::clone(&self.next));
            let (clients, servers) = (Arc::clone(&self.clients), Arc::clone(&self.servers));
            tokio::spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= calls {
                        return;
                    }
                    let made = make(number, &clients, &servers).await;
                    if tell.send(made).await.is_err() {
                        return;
                    }
                }
            });
        }
        drop(tell);
        let mut made = 0;
        while let Some(call) = told.recv().await {
            call?;
            made += 1;
            look(made);
        }
        Ok(())
    }
}

/// A client with every layer there is.
fn client(servers: &Servers, protocol: Protocol, http1: bool) -> Result<FlakyClient, String> {
    let reconnect = Backoff::new(Duration::from_millis(5), Duration::from_millis(100));
    let outliers = Outliers::new().time(Duration::from_millis(100));
    let tokens = Tokens::new(|| async {
        Ok(Token::bearer("a-token").expires_in(Duration::from_millis(500)))
    });
    let builder = QuillClient::builder()
        .endpoints(&servers.urls)
        .protocol(protocol)
        .balance(Balance::least_loaded().reconnect(reconnect).eject(outliers))
        .retry(RetryPolicy::new().backoff(Backoff::new(
            Duration::from_millis(1),
            Duration::from_millis(50),
        )))
        .hedge(Hedge::after(Duration::from_secs(2)))
        .circuit_breaker(CircuitBreaker::new().failure_ratio(1.0))
        .rate_limit(RateLimit::new(Quota::per_second(1_000_000)))
        .tokens(tokens)
        .metadata("x-tenant", "7");
    let builder = if http1 { builder.http1() } else { builder };
    let client = builder.build().map_err(|error| error.to_string())?;
    Ok(FlakyClient::new(client))
}

/// Makes one call, and sees that it ends as it must.
async fn make(number: u64, clients: &[FlakyClient], servers: &Servers) -> Result<(), String> {
    if number % RESTART_EVERY == RESTART_EVERY - 1 {
        servers.restart().await?;
    }
    if number % FRESH_EVERY == FRESH_EVERY - 1 {
        let fresh = client(servers, Protocol::Grpc, false)?;
        return ended(fresh.get(request("fresh", number)).await);
    }
    let client = &clients[(number % clients.len() as u64) as usize];
    let round = number / clients.len() as u64;
    match round % 8 {
        0..=2 => ended(client.get(request("get", number)).await),
        3 => {
            let list = FlakyRequest {
                count: 3,
                ..request("list", number)
            };
            // It ends early now and then, as when a server is restarted.
            if let Ok(answers) = client.list(list).await {
                let mut answers = answers.into_inner();
                while let Some(Ok(_)) = answers.next().await {}
            }
            Ok(())
        }
        4 => ended(
            client
                .load(stream::iter(vec![request("load", number); 3]))
                .await,
        ),
        5 => {
            let chat = client
                .chat(stream::iter(vec![request("chat", number); 3]))
                .await;
            if let Ok(answers) = chat {
                // The rest is given up.
                let _ = answers.into_inner().next().await;
            }
            Ok(())
        }
        6 => {
            let failing = FlakyRequest {
                failures: u32::MAX,
                code: 3,
                ..request("failing", number)
            };
            match client.get(failing).await {
                Err(error) if error.code() == Code::InvalidArgument => Ok(()),
                Err(error) => Err(wrong(number, &error)),
                Ok(_) => Err(format!("call {number}: it had to fail")),
            }
        }
        _ => {
            let slow = FlakyRequest {
                delay_ms: 50,
                slow: u32::MAX,
                ..request("slow", number)
            };
            let hasty = Request::new(slow).with_timeout(Duration::from_millis(2));
            // Given up by its deadline, most often.
            let _ = client.set(hasty).await;
            Ok(())
        }
    }
}

/// A request; ids are few, since servers count the runs of each.
fn request(id: &str, number: u64) -> FlakyRequest {
    FlakyRequest {
        id: format!("{id} {}", number % 10),
        pad: vec![7; (number % 2000) as usize],
        ..Default::default()
    }
}

fn ended<T>(answer: Result<T, Error>) -> Result<(), String> {
    answer.map(drop).map_err(|error| error.to_string())
}

fn wrong(number: u64, error: &Error) -> String {
    format!("call {number} must not end with {error:?}")
}
