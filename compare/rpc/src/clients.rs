//! One client a subject: what a call costs who makes it.

use std::future::Future;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};

use crate::generated;
use crate::process;

/// Calls under way at a time, on one connection.
const IN_FLIGHT: usize = 64;
const PAYLOAD: [u8; 100] = [b'a'; 100];

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Makes `calls` calls as `subject`, on a current-thread runtime, and prints
/// the nanoseconds of CPU time that one took.
pub fn call(subject: &str, address: &str, calls: usize) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("no runtime: {error}"))?;
    let url = format!("http://{address}");
    let called = runtime.block_on(async {
        match subject {
            "tonic" => tonic(url, calls).await,
            "connectrpc" => connectrpc(&url, calls).await,
            "quill" => quill(url, calls).await,
            _ => Err(format!("no client {subject:?}").into()),
        }
    });
    let nanos = called.map_err(|error| format!("client {subject}: {error}"))?;
    println!("{nanos}");
    Ok(())
}

async fn tonic(url: String, calls: usize) -> Result<f64, Failure> {
    use generated::tonic::{Payload, echo_client::EchoClient};
    let client = EchoClient::connect(url).await?;
    let once = || {
        let mut client = client.clone();
        async move {
            let data = PAYLOAD.to_vec();
            let answer = client.unary(Payload { data }).await?.into_inner();
            check(&answer.data)
        }
    };
    many(once, calls).await
}

async fn connectrpc(url: &str, calls: usize) -> Result<f64, Failure> {
    use connectrpc::client::{ClientConfig, Http2Connection};
    use generated::connectrpc::echo::v1::{EchoClient, Payload};
    let config = ClientConfig::new(url.parse()?).with_protocol(connectrpc::Protocol::Grpc);
    let connection = Http2Connection::connect_plaintext(url.parse()?)
        .await?
        .shared(IN_FLIGHT);
    let client = EchoClient::new(connection, config);
    let once = || {
        let client = client.clone();
        async move {
            let payload = Payload {
                data: PAYLOAD.to_vec(),
                ..Default::default()
            };
            let answer = client.unary(payload).await?;
            check(answer.view().data)
        }
    };
    many(once, calls).await
}

async fn quill(url: String, calls: usize) -> Result<f64, Failure> {
    use generated::quill::{EchoClient, Payload};
    let client = ::quill::QuillClient::builder()
        .base_url(url)
        .protocol(::quill::Protocol::Grpc)
        .build()?;
    let client = EchoClient::new(client);
    let once = || {
        let client = client.clone();
        async move {
            let payload = Payload {
                data: PAYLOAD.to_vec(),
                ..Default::default()
            };
            let answer = client.unary(payload).await?.into_inner();
            check(&answer.data)
        }
    };
    many(once, calls).await
}

fn check(answer: &[u8]) -> Result<(), Failure> {
    if answer != PAYLOAD {
        return Err("not what was asked".into());
    }
    Ok(())
}

/// The CPU time of one call, when the first ones are over.
async fn many<F>(once: impl Fn() -> F, calls: usize) -> Result<f64, Failure>
where
    F: Future<Output = Result<(), Failure>>,
{
    run(&once, IN_FLIGHT * 4).await?;
    let before = own_time()?;
    run(&once, calls).await?;
    let took = own_time()?.saturating_sub(before);
    Ok(took.as_nanos() as f64 / calls as f64)
}

async fn run<F>(once: &impl Fn() -> F, calls: usize) -> Result<(), Failure>
where
    F: Future<Output = Result<(), Failure>>,
{
    let mut under_way = FuturesUnordered::new();
    for _ in 0..calls {
        if under_way.len() == IN_FLIGHT {
            under_way.next().await.transpose()?;
        }
        under_way.push(once());
    }
    while let Some(done) = under_way.next().await {
        done?;
    }
    Ok(())
}

fn own_time() -> Result<Duration, Failure> {
    Ok(process::cpu_time(std::process::id())?)
}
