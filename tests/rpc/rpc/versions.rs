//! The version of HTTP that a call leaves on, where the server chooses it, and
//! how a call waits for its place on a connection.

use std::time::Duration;

use futures_util::stream;
use quill::tls::{ClientTls, ServerTls};
use quill::{
    ClientOptions, Code, HttpVersions, Protocol, QuillClient, Request, Server, ServerOptions,
};
use rcgen::generate_simple_self_signed;

use crate::probe::{
    PROTOCOLS, Probe, ProbeClient, ProbeRequest, ProbeServer, ending, eventually, say, serve_with,
};

async fn in_time<T>(what: &str, call: impl Future<Output = T>) -> T {
    match tokio::time::timeout(Duration::from_secs(30), call).await {
        Ok(done) => done,
        Err(_) => panic!("{what} hangs"),
    }
}

/// A server with a certificate that speaks HTTP/1.1 alone, and how to reach it.
async fn serve_http1_over_tls() -> (quill::RunningServer, quill::ClientBuilder) {
    let certified = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = certified.cert.pem();
    let tls = ServerTls::builder()
        .identity_pem(&certificate, certified.signing_key.serialize_pem())
        .build()
        .unwrap();
    let mut options = ServerOptions::default();
    options.versions = HttpVersions::Http1;
    let server = Server::builder()
        .service(ProbeServer::new(Probe::default()))
        .transport(options)
        .tls(tls)
        .bind("127.0.0.1:0")
        .await
        .unwrap()
        .start();
    let trust = ClientTls::builder().ca_pem(&certificate).build().unwrap();
    let port = server.local_addr().unwrap().port();
    let builder = QuillClient::builder()
        .base_url(format!("https://localhost:{port}"))
        .tls(trust);
    (server, builder)
}

#[tokio::test]
async fn a_server_that_chooses_http1_gets_calls_of_every_kind_and_no_credits() {
    let (_server, builder) = serve_http1_over_tls().await;
    for protocol in PROTOCOLS {
        if protocol == Protocol::Grpc {
            continue;
        }
        for credits in [false, true] {
            let mut builder = builder.clone().protocol(protocol);
            if credits {
                builder = builder.credits(8);
            }
            let client = ProbeClient::new(builder.build().unwrap());
            let way = format!("{protocol:?}, credits {credits}");
            let messages = || stream::iter((0..100).map(|n| say(&n.to_string())));

            let up = in_time(&way, client.up(messages())).await;
            let up = up.unwrap_or_else(|error| panic!("{way}: {error:?}"));
            assert_eq!(up.message().number, 100, "{way}");

            let both = in_time(&way, client.both(messages())).await;
            let mut answers = both.unwrap().into_inner();
            for n in 0..100 {
                let answer = in_time(&way, answers.message()).await.unwrap().unwrap();
                assert_eq!(answer.text, n.to_string(), "{way}");
            }
            assert!(in_time(&way, answers.message()).await.unwrap().is_none());

            let request = ProbeRequest {
                count: 100,
                ..say("x")
            };
            let down = in_time(&way, client.down(request)).await;
            let mut answers = down.unwrap().into_inner();
            let mut count = 0;
            while in_time(&way, answers.message()).await.unwrap().is_some() {
                count += 1;
            }
            assert_eq!(count, 100, "{way}");
        }
    }
}

#[tokio::test]
async fn a_protocol_that_needs_http2_says_so_where_the_server_has_none() {
    let (_server, builder) = serve_http1_over_tls().await;
    let builder = builder.protocol(Protocol::Grpc);
    let client = ProbeClient::new(builder.clone().build().unwrap());
    let error = in_time("the call", client.one(say("x"))).await.unwrap_err();
    assert_eq!(error.code(), Code::Unimplemented);
    assert!(error.message().contains("HTTP/2 alone"), "{error}");
    // Where no server has a say, it shows before any call.
    let error = builder.http1().build().unwrap_err();
    assert!(error.to_string().contains("HTTP/2 alone"), "{error}");
}

#[tokio::test]
async fn a_call_that_waits_for_a_stream_says_so_at_its_deadline() {
    let mut options = ServerOptions::default();
    options.http2_streams_max = 1;
    let served = serve_with(|builder| builder.transport(options)).await;
    let mut options = ClientOptions::default();
    options.http2_connections_max = 1;
    let builder = served.builder(Protocol::Quill).transport(options);
    let client = ProbeClient::new(builder.build().unwrap());
    let first = client.clone();
    let hanging = tokio::spawn(async move { first.one(ending("hang")).await.map(|_| ()) });
    eventually("the first call holds the only stream", || {
        served
            .seen
            .hanging
            .load(std::sync::atomic::Ordering::SeqCst)
    })
    .await;
    let request = Request::new(say("x")).with_timeout(Duration::from_millis(50));
    let error = in_time("the second call", client.one(request)).await;
    let error = error.unwrap_err();
    assert_eq!(error.code(), Code::DeadlineExceeded);
    let told = error.message();
    assert!(told.contains("http2_connections_max is 1"), "{told}");
    hanging.abort();
    let answer = in_time("the third call", client.one(say("y"))).await;
    assert_eq!(answer.unwrap().message().text, "y");
}
