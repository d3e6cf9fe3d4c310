//! How many connections an address may have, and how old they become.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::stream;
use quill::metrics::MetricsCollector;
use quill::{Code, Error, Protocol};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::peer::{Http1, soon};
use crate::probe::{PROTOCOLS, ProbeClient, eventually, say, serve_with};

const ONE: &str = "/probe.v1.ProbeService/One";

fn figure(metrics: &MetricsCollector, name: &str) -> u64 {
    let text = metrics.prometheus();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.expect("the figure").trim().parse().expect("a number")
}

#[tokio::test]
async fn an_address_has_so_many_connections_and_others_are_closed() {
    let metrics = MetricsCollector::new();
    let served = serve_with(|builder| builder.connections_per_ip_max(2).metrics(&metrics)).await;
    let refused = || figure(&metrics, "quill_server_refused_connections_total ");
    let json = [("content-type", "application/json")];
    let mut first = Http1::connect(&served.url).await;
    let mut second = Http1::connect(&served.url).await;
    for connection in [&mut first, &mut second] {
        assert_eq!(connection.post(ONE, &json, "{}").await.status, 200);
    }
    let address = served.url.strip_prefix("http://").unwrap();
    let mut third = TcpStream::connect(address).await.unwrap();
    let mut bytes = Vec::new();
    // Whether by FIN or RST: nothing comes, and it is over.
    let _ = soon(third.read_to_end(&mut bytes)).await;
    assert!(bytes.is_empty());
    assert_eq!(refused(), 1);
    for protocol in PROTOCOLS {
        let before = refused();
        let error = served.client(protocol).one(say("x")).await.unwrap_err();
        assert_eq!(error.code(), Code::Unavailable, "{protocol:?}: {error}");
        assert!(refused() > before, "{protocol:?}");
    }
    assert_eq!(first.post(ONE, &json, "{}").await.status, 200);
    drop(second);
    eventually("it is gone", || {
        figure(&metrics, "quill_server_open_connections ") == 1
    })
    .await;
    served.client(Protocol::Grpc).one(say("x")).await.unwrap();
}

#[tokio::test]
async fn old_connections_are_left_and_no_call_is_lost() {
    for http1 in [false, true] {
        for protocol in PROTOCOLS {
            if http1 && protocol == Protocol::Grpc {
                continue;
            }
            let metrics = MetricsCollector::new();
            let age = Duration::from_millis(50);
            let served =
                serve_with(|builder| builder.max_connection_age(age).metrics(&metrics)).await;
            let builder = served.builder(protocol);
            let builder = if http1 { builder.http1() } else { builder };
            let client = ProbeClient::new(builder.build().unwrap());
            soon(async {
                while figure(&metrics, "quill_server_aged_connections_total ") < 3 {
                    let answer = client.one(say("x")).await;
                    assert!(answer.is_ok(), "{protocol:?}, http1 {http1}: {answer:?}");
                }
            })
            .await;
        }
    }
}

#[tokio::test]
async fn http1_says_that_it_closes() {
    let age = Duration::from_millis(50);
    let served = serve_with(|builder| builder.max_connection_age(age)).await;
    let mut connection = Http1::connect(&served.url).await;
    // A call that is under way when the connection gets too old.
    let hanging = format!(
        "POST /probe.v1.ProbeService/Up HTTP/1.1\r\nhost: a\r\ncontent-type: {}\r\n\
         transfer-encoding: chunked\r\n\r\n",
        "application/connect+json"
    );
    connection.write(hanging).await;
    tokio::time::sleep(2 * age).await;
    connection.write("7\r\n\0\0\0\0\x02{}\r\n0\r\n\r\n").await;
    let answer = connection.answer().await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("connection"), Some("close"), "{answer:?}");
    assert!(soon(connection.read_answer()).await.is_none(), "it is over");
}

/// Makes a call that goes on until it is told not to.
async fn go_on(
    client: ProbeClient,
    protocol: Protocol,
    until: Arc<AtomicBool>,
) -> Result<(), Error> {
    let messages = stream::unfold(until, |until| async move {
        tokio::time::sleep(Duration::from_millis(5)).await;
        (!until.load(Ordering::SeqCst)).then(|| (say("x"), until))
    });
    match protocol {
        Protocol::GrpcWeb | Protocol::GrpcWebText => client.up(messages).await.map(drop),
        _ => {
            let mut answers = client.both(messages).await?.into_inner();
            while answers.message().await?.is_some() {}
            Ok(())
        }
    }
}

#[tokio::test]
async fn open_streams_outlive_the_age_and_not_the_grace() {
    let age = Duration::from_millis(50);
    for protocol in PROTOCOLS {
        for grace in [None, Some(age)] {
            let metrics = MetricsCollector::new();
            let served = serve_with(|builder| {
                let builder = builder.max_connection_age(age).metrics(&metrics);
                match grace {
                    Some(grace) => builder.max_connection_age_grace(grace),
                    None => builder,
                }
            })
            .await;
            let client = served.client(protocol);
            let ended = Arc::new(AtomicBool::new(false));
            let until = Arc::clone(&ended);
            let calling = tokio::spawn(go_on(client, protocol, until));
            eventually("it is too old", || {
                figure(&metrics, "quill_server_aged_connections_total ") >= 1
            })
            .await;
            if grace.is_none() {
                // Twice the age later it still goes on.
                tokio::time::sleep(2 * age).await;
                assert!(!calling.is_finished(), "{protocol:?}");
                ended.store(true, Ordering::SeqCst);
                soon(calling).await.unwrap().unwrap();
            } else {
                let error = soon(calling).await.unwrap().unwrap_err();
                assert_eq!(error.code(), Code::Unavailable, "{protocol:?}: {error}");
            }
        }
    }
}

#[tokio::test]
async fn lines_for_connections_are_checked_and_are_for_our_own_server() {
    let wrong = quill::Server::builder().connections_per_ip_max(0);
    let error = wrong.bind("127.0.0.1:0").await.unwrap_err();
    assert!(
        error.to_string().contains("connections_per_ip_max"),
        "{error}"
    );
    let mounted = quill::Server::builder().max_connection_idle(Duration::from_secs(1));
    assert!(mounted.into_http_service().is_err());
}
