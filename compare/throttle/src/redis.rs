//! Checks through a Redis server that is started here, and ended.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use compare_report::Contest;
use throttle_kit::{Quota, RateLimiter, RedisBackend};
use throttle_kit_registry as registry;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

/// Keys that are checked at once, each by a task.
pub const AT_ONCE: u64 = 64;
/// Cells that a lease takes.
const LEASE: u32 = 100;
const RATE: u32 = 1000;
/// What no measurement reaches.
const BURST: u32 = 100_000_000;

/// Nanoseconds of a check.
#[derive(Debug, Clone, Copy)]
pub struct Checks {
    /// Many at once: theirs, each a call; ours, together in calls.
    pub at_once_registry: f64,
    pub at_once_ours: f64,
    /// One after the other, on one key: theirs, ours, ours with leases.
    pub single_registry: f64,
    pub single_ours: f64,
    pub leased: f64,
}

/// Measures them, if there is a server to start.
pub fn checks() -> Result<Checks, String> {
    let server = Server::start()?;
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let theirs = runtime
        .block_on(registry::RedisBackend::connect(&server.url()))
        .map_err(|error| error.to_string())?;
    let quota = registry::Quota::per_second(RATE).allow_burst(BURST);
    let theirs = registry::RateLimiter::new(quota, theirs);
    let ours = limiter(&runtime, &server, None)?;
    let leased = limiter(&runtime, &server, Some(LEASE))?.with_namespace("leased");
    let mut contest = Contest::new(15, Duration::from_millis(40));
    contest.enter("at once, registry", |turns| {
        runtime.block_on(each_key(turns, |key, turns| {
            let limiter = theirs.clone();
            async move {
                for _ in 0..turns {
                    assert!(limiter.check(&key).await.allowed);
                }
            }
        }));
    });
    contest.enter("at once, ours", |turns| {
        runtime.block_on(each_key(turns, |key, turns| {
            let limiter = ours.clone();
            async move {
                for _ in 0..turns {
                    assert!(is_good(limiter.check(key.as_str()).await));
                }
            }
        }));
    });
    contest.enter("single, registry", |turns| {
        runtime.block_on(async {
            for _ in 0..turns {
                assert!(theirs.check("hot").await.allowed);
            }
        });
    });
    for (name, limiter) in [("single, ours", &ours), ("leased", &leased)] {
        contest.enter(name, |turns| {
            runtime.block_on(async {
                for _ in 0..turns {
                    assert!(is_good(limiter.check("hot").await));
                }
            });
        });
    }
    let times = contest.run();
    let [
        at_once_registry,
        at_once_ours,
        single_registry,
        single_ours,
        leased,
    ] = std::array::from_fn(|index| times.get(index).map_or(f64::NAN, |(_, time)| *time));
    Ok(Checks {
        at_once_registry: at_once_registry / AT_ONCE as f64,
        at_once_ours: at_once_ours / AT_ONCE as f64,
        single_registry,
        single_ours,
        leased,
    })
}

/// Redis answered, and let it pass.
fn is_good(decision: throttle_kit::Decision) -> bool {
    decision.is_allowed() && !decision.is_degraded()
}

fn limiter(
    runtime: &Runtime,
    server: &Server,
    lease: Option<u32>,
) -> Result<RateLimiter<RedisBackend>, String> {
    let mut builder = RedisBackend::single(server.url()).timeout(Duration::from_secs(10));
    if let Some(cells) = lease {
        builder = builder.lease(cells, Duration::from_secs(1));
    }
    let backend = builder.build().map_err(|error| error.to_string())?;
    runtime
        .block_on(backend.ready())
        .map_err(|error| error.to_string())?;
    Ok(RateLimiter::new(
        Quota::per_second(RATE).allow_burst(BURST),
        backend,
    ))
}

async fn each_key<F>(turns: u64, work: impl Fn(String, u64) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for key in 0..AT_ONCE {
        tasks.spawn(work(format!("user:{key:08}"), turns));
    }
    tasks.join_all().await;
}

/// A server on loopback that keeps nothing.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    #[expect(clippy::disallowed_methods, reason = "waits for another program")]
    fn start() -> Result<Self, String> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .and_then(|listener| listener.local_addr())
            .map_err(|error| error.to_string())?
            .port();
        let child = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("redis-server cannot be started: {error}"))?;
        let server = Self { child, port };
        let start = Instant::now();
        while !server.answers() {
            if start.elapsed() > Duration::from_secs(20) {
                return Err("redis-server does not answer".to_owned());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    fn answers(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)) else {
            return false;
        };
        let mut reply = [0; 5];
        stream.write_all(b"PING\r\n").is_ok()
            && stream.read_exact(&mut reply).is_ok()
            && &reply == b"+PONG"
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
