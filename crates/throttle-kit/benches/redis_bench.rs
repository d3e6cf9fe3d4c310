//! Checks against a real Redis that the bench starts: what travelling together
//! saves, and what leases save.

#[path = "../tests/redis_server/mod.rs"]
mod redis_server;

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput};
use redis_server::{Server, is_available};
use throttle_kit::{Quota, RateLimiter, RedisBackend};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

const QUOTA: Quota = Quota::per_second(1_000_000);

/// Well over what a reply takes while the machine is busy with something else.
const REPLY_TIMEOUT: Duration = Duration::from_secs(30);

fn limiter(server: &Server, lease: Option<u32>) -> RateLimiter<RedisBackend> {
    let mut builder = RedisBackend::single(server.url()).timeout(REPLY_TIMEOUT);
    if let Some(cells) = lease {
        builder = builder.lease(cells, Duration::from_secs(1));
    }
    let backend = builder.build().expect("an address of our own");
    RateLimiter::new(QUOTA, backend)
}

/// `keys` tasks check a key each, `ROUNDS` times.
async fn batched(limiter: &RateLimiter<RedisBackend>, keys: u32) {
    let mut set = JoinSet::new();
    for key in 0..keys {
        let limiter = limiter.clone();
        set.spawn(async move {
            for _ in 0..ROUNDS {
                assert!(!limiter.check(&key).await.is_degraded());
            }
        });
    }
    set.join_all().await;
}

/// The same work with a call of the same script for each check, all of them
/// pipelined on one connection, as a plain client would do it.
async fn single(connection: &redis::aio::MultiplexedConnection, keys: u32) {
    let script = redis::Script::new(include_str!("../src/store/redis/script.lua"));
    let hash: std::sync::Arc<str> = script.get_hash().into();
    let packed = packed_check();
    let mut set = JoinSet::new();
    for key in 0..keys {
        let (mut connection, hash, packed) = (connection.clone(), hash.clone(), packed.clone());
        set.spawn(async move {
            let name = format!("single:{key}");
            for _ in 0..ROUNDS {
                let mut call = redis::cmd("EVALSHA");
                call.arg(&*hash).arg(1).arg(&name).arg("each").arg(&packed);
                let reply: Vec<i64> = call.query_async(&mut connection).await.expect("a reply");
                assert_eq!(reply.len(), 3);
            }
        });
    }
    set.join_all().await;
}

/// A check of one cell that costs 1 us of a window of a second.
fn packed_check() -> Vec<u8> {
    let mut packed = vec![0];
    for number in [1.0_f64, 0.0, 1e6, 0.0] {
        packed.extend_from_slice(&number.to_be_bytes());
    }
    packed
}

const ROUNDS: u32 = 10;

fn bench(criterion: &mut Criterion, server: &Server) {
    let runtime = Runtime::new().expect("a runtime");
    let plain = limiter(server, None);
    runtime
        .block_on(plain.backend().ready())
        .expect("the server answers");
    let connection = runtime
        .block_on(async {
            let client = redis::Client::open(server.url())?;
            let config = redis::AsyncConnectionConfig::new()
                .set_connection_timeout(Some(REPLY_TIMEOUT))
                .set_response_timeout(Some(REPLY_TIMEOUT));
            client
                .get_multiplexed_async_connection_with_config(&config)
                .await
        })
        .expect("a connection");

    let mut group = criterion.benchmark_group("redis_check");
    group.sample_size(20);
    for keys in [1, 64, 256] {
        group.throughput(Throughput::Elements(u64::from(keys * ROUNDS)));
        group.bench_function(BenchmarkId::new("batched", keys), |bencher| {
            bencher.iter(|| runtime.block_on(batched(&plain, keys)));
        });
        group.bench_function(BenchmarkId::new("single", keys), |bencher| {
            bencher.iter(|| runtime.block_on(single(&connection, keys)));
        });
    }
    group.throughput(Throughput::Elements(1000));
    for (name, lease) in [("leased_100", Some(100)), ("unleased", None)] {
        let limiter = limiter(server, lease).with_namespace(name);
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                runtime.block_on(async {
                    for _ in 0..1000 {
                        assert!(!limiter.check("hot").await.is_degraded());
                    }
                });
            });
        });
    }
    group.finish();
}

fn main() {
    if !is_available("redis-server") {
        return;
    }
    let server = Server::start();
    let mut criterion = Criterion::default().configure_from_args();
    bench(&mut criterion, &server);
    criterion.final_summary();
}
