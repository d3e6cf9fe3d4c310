//! Every protocol x every kind, over HTTP/2 and HTTP/1.1, binary and JSON.

use std::time::Duration;

use futures_util::stream;
use quill::{Code, Format, Protocol, Request};

use crate::probe::{PROTOCOLS, ProbeClient, ProbeRequest, Served, assert_rich, ending, say, serve};

#[derive(Clone, Copy, Debug)]
struct Way {
    protocol: Protocol,
    format: Format,
    http1: bool,
    compress: bool,
}

fn ways() -> Vec<Way> {
    let mut ways = Vec::new();
    for protocol in PROTOCOLS {
        for format in [Format::Proto, Format::Json] {
            for http1 in [false, true] {
                // gRPC is HTTP/2 alone.
                if http1 && protocol == Protocol::Grpc {
                    continue;
                }
                ways.push(Way {
                    protocol,
                    format,
                    http1,
                    compress: http1,
                });
            }
        }
    }
    ways
}

fn client(served: &Served, way: Way) -> ProbeClient {
    let mut builder = served
        .builder(way.protocol)
        .format(way.format)
        .enable_compression(way.compress);
    if way.http1 {
        builder = builder.http1();
    }
    ProbeClient::new(builder.build().expect("a client"))
}

#[tokio::test]
async fn unary_calls_carry_messages_and_metadata() {
    let served = serve().await;
    for way in ways() {
        let client = client(&served, way);
        let text = "hi ü".repeat(1000);
        let mut request = Request::new(say(&text))
            .with_metadata("x-echo", "7")
            .unwrap();
        request
            .metadata_mut()
            .insert_bin("x-echo-bin", [0, 255, 10])
            .unwrap();
        let response = client
            .one(request)
            .await
            .unwrap_or_else(|e| panic!("{way:?}: {e:?}"));
        assert_eq!(response.message().text, text, "{way:?}");
        assert_eq!(response.metadata().get("x-echo"), Some("7"), "{way:?}");
        assert_eq!(
            response.metadata().get_bin("x-echo-bin"),
            Some(&[0, 255, 10][..]),
            "{way:?}"
        );
        assert_eq!(response.trailers().get("x-trailer"), Some("7"), "{way:?}");
    }
}

#[tokio::test]
async fn server_streams_carry_messages_and_trailers() {
    let served = serve().await;
    for way in ways() {
        let client = client(&served, way);
        let request = ProbeRequest {
            count: 100,
            ..say("x")
        };
        let mut answers = client.down(request).await.unwrap().into_inner();
        let mut count = 0;
        while let Some(answer) = answers
            .message()
            .await
            .unwrap_or_else(|e| panic!("{way:?}: {e:?}"))
        {
            assert_eq!(answer.number, count, "{way:?}");
            count += 1;
        }
        assert_eq!(count, 100, "{way:?}");
        assert_eq!(answers.trailers().get("x-trailer"), Some("down"), "{way:?}");
    }
}

#[tokio::test]
async fn client_streams_carry_messages() {
    let served = serve().await;
    for way in ways() {
        let client = client(&served, way);
        let messages = stream::iter((0..100).map(|n| say(&n.to_string())));
        let answer = client
            .up(messages)
            .await
            .unwrap_or_else(|e| panic!("{way:?}: {e:?}"));
        assert_eq!(answer.message().number, 100, "{way:?}");
        assert_eq!(answer.message().text, "99", "{way:?}");
    }
}

#[tokio::test]
async fn bidi_streams_overlap_on_http2_and_follow_each_other_on_http1() {
    let served = serve().await;
    for way in ways() {
        let client = client(&served, way);
        if way.http1 {
            let messages = stream::iter((0..10).map(|n| say(&n.to_string())));
            let mut answers = client.both(messages).await.unwrap().into_inner();
            for n in 0..10 {
                let answer = answers
                    .message()
                    .await
                    .unwrap_or_else(|e| panic!("{way:?}: {e:?}"));
                assert_eq!(answer.unwrap().text, n.to_string(), "{way:?}");
            }
            assert!(answers.message().await.unwrap().is_none());
            continue;
        }
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        let messages = stream::unfold(receiver, |mut receiver| async move {
            receiver.recv().await.map(|message| (message, receiver))
        });
        let mut answers = client.both(messages).await.unwrap().into_inner();
        for n in 0..10 {
            sender.send(say(&n.to_string())).await.unwrap();
            let answer = tokio::time::timeout(Duration::from_secs(10), answers.message())
                .await
                .unwrap_or_else(|_| panic!("{way:?} hangs at {n}"))
                .unwrap_or_else(|e| panic!("{way:?}: {e:?}"));
            assert_eq!(answer.unwrap().text, n.to_string(), "{way:?}");
        }
        drop(sender);
        assert!(answers.message().await.unwrap().is_none());
    }
}

#[tokio::test]
async fn errors_cross_whole_in_every_kind() {
    let served = serve().await;
    for way in ways() {
        let client = client(&served, way);
        let error = client.one(ending("error")).await.unwrap_err();
        assert_rich(&error, way.protocol);
        let error = client
            .up(stream::iter([ending("error")]))
            .await
            .unwrap_err();
        assert_rich(&error, way.protocol);
        for count in [1, 3] {
            let request = ProbeRequest {
                count,
                ..ending("error")
            };
            let mut answers = client.down(request).await.unwrap().into_inner();
            for _ in 0..count {
                assert!(answers.message().await.unwrap().is_some(), "{way:?}");
            }
            assert_rich(&answers.message().await.unwrap_err(), way.protocol);
            assert!(answers.message().await.unwrap().is_none(), "{way:?}");
        }
        let mut answers = client
            .both(stream::iter([ending("error")]))
            .await
            .unwrap()
            .into_inner();
        assert_rich(&answers.message().await.unwrap_err(), way.protocol);
    }
}

#[tokio::test]
async fn a_panic_is_internal_and_the_server_lives() {
    let served = serve().await;
    for protocol in PROTOCOLS {
        let client = served.client(protocol);
        let error = client.one(ending("panic")).await.unwrap_err();
        assert_eq!(error.code(), Code::Internal, "{protocol:?}");
        let request = ProbeRequest {
            count: 1,
            ..ending("panic")
        };
        let mut answers = client.down(request).await.unwrap().into_inner();
        assert!(answers.message().await.unwrap().is_some());
        assert_eq!(
            answers.message().await.unwrap_err().code(),
            Code::Internal,
            "{protocol:?}"
        );
        assert_eq!(
            client.one(say("alive")).await.unwrap().message().text,
            "alive"
        );
    }
}

#[tokio::test]
async fn an_unknown_method_is_unimplemented() {
    let served = serve().await;
    for protocol in PROTOCOLS {
        let client = served.builder(protocol).build().unwrap();
        let error = client
            .call("probe.v1.ProbeService", "Nope", "")
            .await
            .unwrap_err();
        assert_eq!(error.code(), Code::Unimplemented, "{protocol:?}: {error}");
    }
}
