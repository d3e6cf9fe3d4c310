//! Limits on calls, and what a refused caller is told.

use std::time::Duration;

use futures_util::stream;
use quill::metrics::MetricsCollector;
use quill::rate_limit::{ClientIpConfig, IpNet, RateLimitLayer};
use quill::{Code, Error, Protocol, Request};

use crate::peer::{Http1, envelope, head, http2, send};
use crate::probe::{PROTOCOLS, ProbeClient, ProbeRequest, Served, say, serve_with};

/// So slow that nothing comes back while a test runs.
const SLOW: f64 = 0.01;

async fn limited(layer: RateLimitLayer) -> Served {
    serve_with(|builder| builder.layer(layer)).await
}

fn assert_refused(error: &Error, protocol: Protocol) {
    assert_eq!(error.code(), Code::ResourceExhausted, "{protocol:?}");
    let delay = error.retry_after().expect("when to come back");
    let longest = Duration::from_secs(100);
    assert!(
        delay > Duration::from_secs(50) && delay <= longest,
        "{delay:?}"
    );
}

#[tokio::test]
async fn calls_of_every_kind_are_limited_in_every_protocol() {
    for protocol in PROTOCOLS {
        let served = limited(RateLimitLayer::new(SLOW, 4.0)).await;
        let client = served.client(protocol);
        client.one(say("x")).await.unwrap();
        client.up(stream::iter([say("x")])).await.unwrap();
        let request = || ProbeRequest {
            count: 1,
            ..say("x")
        };
        let mut answers = client.down(request()).await.unwrap().into_inner();
        while answers.message().await.unwrap().is_some() {}
        let both = client.both(stream::iter([say("x")])).await;
        let mut answers = both.unwrap().into_inner();
        while answers.message().await.unwrap().is_some() {}

        assert_refused(&client.one(say("x")).await.unwrap_err(), protocol);
        let refused = client.up(stream::iter([say("x")])).await;
        assert_refused(&refused.unwrap_err(), protocol);
        let refused = match client.down(request()).await {
            Ok(answers) => answers.into_inner().message().await.unwrap_err(),
            Err(error) => error,
        };
        assert_refused(&refused, protocol);
        let refused = match client.both(stream::iter([say("x")])).await {
            Ok(answers) => answers.into_inner().message().await.unwrap_err(),
            Err(error) => error,
        };
        assert_refused(&refused, protocol);
    }
}

#[tokio::test]
async fn a_refusal_says_when_to_come_back_as_its_protocol_does() {
    const PATH: &str = "/probe.v1.ProbeService/One";
    let served = limited(RateLimitLayer::new(SLOW, 1.0)).await;
    served.client(Protocol::Grpc).one(say("x")).await.unwrap();

    let mut plain = Http1::connect(&served.url).await;
    for fields in [
        &[
            ("content-type", "application/json"),
            ("connect-protocol-version", "1"),
        ][..],
        &[("content-type", "application/json")][..],
    ] {
        let answer = plain.post(PATH, fields, "{}").await;
        assert_eq!(answer.status, 429, "{answer:?}");
        let seconds: u64 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!((50..=100).contains(&seconds), "{seconds}");
    }

    let channel = http2(&served.url);
    let asked = head(
        PATH,
        &[("content-type", "application/grpc"), ("te", "trailers")],
    );
    let answer = send(&channel, asked, envelope(0, b"")).await;
    assert_eq!(answer.grpc_status(), Some("8"));
    let pushback = answer.header("grpc-retry-pushback-ms").unwrap();
    let millis: u64 = pushback.parse().unwrap();
    assert!((50_000..=100_000).contains(&millis), "{millis}");

    let asked = [("content-type", "application/grpc-web")];
    let answer = plain.post(PATH, &asked, envelope(0, b"")).await;
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    assert!(text.contains("grpc-retry-pushback-ms:"), "{text}");
}

/// A caller that says it is a proxy for this client.
async fn one_for(client: &ProbeClient, forwarded: &str) -> Result<(), Error> {
    let request = Request::new(say("x")).with_metadata("x-forwarded-for", forwarded)?;
    client.one(request).await.map(drop)
}

#[tokio::test]
async fn each_client_has_a_budget_and_proxies_are_believed_where_they_are_trusted() {
    let trusting = ClientIpConfig {
        trusted_proxies: vec![IpNet::parse("127.0.0.0/8").unwrap()],
        ..ClientIpConfig::default()
    };
    for protocol in PROTOCOLS {
        let layer = RateLimitLayer::new(SLOW, 1.0).per_client(trusting.clone());
        let served = limited(layer).await;
        let client = served.client(protocol);
        one_for(&client, "203.0.113.1").await.unwrap();
        one_for(&client, "203.0.113.2").await.unwrap();
        one_for(&client, "2001:db8::1").await.unwrap();
        for known in ["203.0.113.1", "9.9.9.9, 203.0.113.2", "2001:db8::2"] {
            let error = one_for(&client, known).await.unwrap_err();
            assert_refused(&error, protocol);
        }

        let layer = RateLimitLayer::new(SLOW, 1.0).per_client(ClientIpConfig::default());
        let served = limited(layer).await;
        let client = served.client(protocol);
        one_for(&client, "203.0.113.1").await.unwrap();
        one_for(&client, "203.0.113.2").await.unwrap_err();
    }
}

#[tokio::test]
async fn methods_keys_and_costs_are_told_apart() {
    let up = || stream::iter([say("x")]);
    let served = limited(RateLimitLayer::new(SLOW, 1.0).per_method()).await;
    let client = served.client(Protocol::Quill);
    client.one(say("x")).await.unwrap();
    client.up(up()).await.unwrap();
    client.one(say("x")).await.unwrap_err();

    let layer = RateLimitLayer::new(SLOW, 1.0).method("/probe.v1.ProbeService/One", SLOW, 2.0);
    let served = limited(layer).await;
    let client = served.client(Protocol::Quill);
    client.one(say("x")).await.unwrap();
    client.one(say("x")).await.unwrap();
    client.one(say("x")).await.unwrap_err();
    client.up(up()).await.unwrap();
    client.up(up()).await.unwrap_err();

    let tenant =
        |request: &quill::RequestParts| request.metadata.get("x-tenant").map(str::to_owned);
    let cost = |request: &quill::RequestParts| {
        let cost = request.metadata.get("x-cost").unwrap_or("1");
        cost.parse().unwrap_or(1)
    };
    let layer = RateLimitLayer::new(SLOW, 3.0).per_key(tenant).cost(cost);
    let served = limited(layer).await;
    let client = served.client(Protocol::Quill);
    let of = |tenant: &str, cost: &str| {
        let request = Request::new(say("x")).with_metadata("x-tenant", tenant);
        let request = request.unwrap().with_metadata("x-cost", cost).unwrap();
        client.one(request)
    };
    of("a", "2").await.unwrap();
    of("a", "2").await.unwrap_err();
    of("a", "1").await.unwrap();
    of("a", "0").await.unwrap();
    of("b", "3").await.unwrap();
    let never = of("c", "4").await.unwrap_err();
    assert_eq!(never.code(), Code::ResourceExhausted);
    assert_eq!(never.retry_after(), None, "waiting does not help");
    for _ in 0..5 {
        client
            .one(say("x"))
            .await
            .expect("without a key, without a limit");
    }
}

#[tokio::test]
async fn decisions_are_counted_and_clones_share_the_budget() {
    let metrics = MetricsCollector::new();
    let layer = RateLimitLayer::new(SLOW, 3.0)
        .named("all \"calls\"")
        .metrics(&metrics);
    let served = [limited(layer.clone()).await, limited(layer).await];
    for call in 0..5 {
        let answer = served[call % 2]
            .client(Protocol::Connect)
            .one(say("x"))
            .await;
        assert_eq!(answer.is_ok(), call < 3, "{call}");
    }
    let text = metrics.prometheus();
    let name = "quill_server_rate_limit_decisions_total{limiter=\"all \\\"calls\\\"\",outcome=";
    for line in ["\"allowed\"} 3", "\"refused\"} 2"] {
        assert!(text.contains(&format!("{name}{line}\n")), "{text}");
    }
}

#[tokio::test]
async fn what_cannot_be_lets_nothing_pass_or_is_told() {
    assert!(RateLimitLayer::try_new(f64::NAN, 1.0).is_err());
    let served = limited(RateLimitLayer::new(0.0, 1.0)).await;
    let error = served
        .client(Protocol::Grpc)
        .one(say("x"))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted);
}

mod redis {
    use std::process::{Child, Command, Stdio};
    use std::time::Duration;

    use quill::rate_limit::{ClientIpConfig, RateLimitLayer, RedisBackend};
    use quill::{Protocol, ServerConfig};

    use super::{SLOW, limited};
    use crate::external;
    use crate::probe::{say, serve_with};

    /// A server of its own, ended with the test.
    struct Redis(Child, String);

    impl Redis {
        fn start() -> Option<Self> {
            let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let port = free.local_addr().unwrap().port();
            drop(free);
            let mut server = Command::new("redis-server");
            server.args(["--port", &port.to_string(), "--bind", "127.0.0.1"]);
            server.args(["--save", "", "--appendonly", "no"]);
            let child = external::start(server.stdout(Stdio::null()))?;
            Some(Self(child, format!("redis://127.0.0.1:{port}")))
        }
    }

    impl Drop for Redis {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// Two servers whose settings are a file's.
    #[tokio::test]
    async fn servers_share_budgets_by_configuration() {
        let Some(redis) = Redis::start() else { return };
        let backend = RedisBackend::single(&*redis.1).build().unwrap();
        for _ in 0..500 {
            if backend.ready().await.is_ok() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let url = &redis.1;
        let yaml = format!(
            "redis: {{url: '{url}', timeout: 5s, when_down: closed}}\n\
             rate_limits: [{{name: a, rate: {SLOW}, burst: 3, per: [client], shared: true}}]\n"
        );
        let config = ServerConfig::parse("a.yaml", &yaml).unwrap();
        let serve = || serve_with(|builder| builder.configure(&config).unwrap());
        let served = [serve().await, serve().await];
        for call in 0..5 {
            let client = served[call % 2].client(Protocol::Grpc);
            let answer = client.one(say("x")).await;
            assert_eq!(answer.is_ok(), call < 3, "{call}: {answer:?}");
        }
    }

    #[tokio::test]
    async fn servers_share_budgets_through_redis() {
        let Some(redis) = Redis::start() else { return };
        let backend = || {
            let builder = RedisBackend::single(&*redis.1);
            builder.timeout(Duration::from_secs(5)).build().unwrap()
        };
        let layer = || {
            RateLimitLayer::new(SLOW, 3.0)
                .per_client(ClientIpConfig::default())
                .with_backend(backend())
        };
        for _ in 0..500 {
            if backend().ready().await.is_ok() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let served = [limited(layer()).await, limited(layer()).await];
        for call in 0..5 {
            let client = served[call % 2].client(Protocol::Grpc);
            let answer = client.one(say("x")).await;
            assert_eq!(answer.is_ok(), call < 3, "{call}: {answer:?}");
        }
        // All together, in the same store and under another name.
        let layer = || {
            RateLimitLayer::new(SLOW, 1.0)
                .named("together")
                .with_backend(backend())
        };
        let served = [limited(layer()).await, limited(layer()).await];
        served[0]
            .client(Protocol::Quill)
            .one(say("x"))
            .await
            .unwrap();
        let refused = served[1].client(Protocol::Quill).one(say("x")).await;
        super::assert_refused(&refused.unwrap_err(), Protocol::Quill);
    }
}
