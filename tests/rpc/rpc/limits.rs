//! Sizes, both ways.

use futures_util::stream;
use quill::{Code, Encoding, Protocol};

use crate::probe::{PROTOCOLS, ProbeClient, ProbeRequest, say, serve, serve_with};

#[tokio::test]
async fn a_message_over_the_servers_limit_is_refused_in_every_kind() {
    let served = serve_with(|builder| builder.receive_bytes_max(1000)).await;
    for protocol in PROTOCOLS {
        let client = served.client(protocol);
        assert!(
            client.one(say(&"x".repeat(900))).await.is_ok(),
            "{protocol:?}"
        );
        let large = say(&"x".repeat(100_000));
        let error = client.one(large.clone()).await.unwrap_err();
        assert_eq!(
            error.code(),
            Code::ResourceExhausted,
            "{protocol:?}: {error}"
        );
        let error = client.up(stream::iter([large.clone()])).await.unwrap_err();
        assert_eq!(
            error.code(),
            Code::ResourceExhausted,
            "{protocol:?}: {error}"
        );
        assert_eq!(client.one(say("on")).await.unwrap().message().text, "on");
    }
}

#[tokio::test]
async fn a_message_over_the_clients_limit_is_refused_in_every_kind() {
    let served = serve().await;
    for protocol in PROTOCOLS {
        let builder = served.builder(protocol).receive_bytes_max(1000);
        let client = ProbeClient::new(builder.build().unwrap());
        let large = ProbeRequest {
            pad_bytes: 100_000,
            count: 1,
            ..say("x")
        };
        let error = client.one(large.clone()).await.unwrap_err();
        assert_eq!(
            error.code(),
            Code::ResourceExhausted,
            "{protocol:?}: {error}"
        );
        let mut answers = client.down(large).await.unwrap().into_inner();
        let error = answers.message().await.unwrap_err();
        assert_eq!(
            error.code(),
            Code::ResourceExhausted,
            "{protocol:?}: {error}"
        );
    }
}

#[tokio::test]
async fn a_compressed_bomb_is_bounded_by_what_comes_out_in_every_encoding() {
    let compressing = || {
        let all = Encoding::ALL.iter().copied();
        all.filter(|encoding| *encoding != Encoding::Identity)
    };
    assert_eq!(compressing().count(), 5, "the features of this crate");
    let served =
        serve_with(|builder| builder.receive_bytes_max(100_000).encodings(compressing())).await;
    let bomb = say(&"x".repeat(1_000_000));
    for encoding in compressing() {
        for protocol in PROTOCOLS {
            let what = format!("{} in {protocol:?}", encoding.name());
            let builder = served.builder(protocol).enable_compression(true);
            let client = ProbeClient::new(builder.encodings([encoding]).build().unwrap());
            let unary = client.one(bomb.clone()).await.unwrap_err();
            let stream = client.up(stream::iter([bomb.clone()])).await.unwrap_err();
            for error in [unary, stream] {
                assert_eq!(error.code(), Code::ResourceExhausted, "{what}: {error}");
                let is_bomb = error.message().contains("once decompressed");
                assert!(is_bomb, "{what}: {error}");
            }
            let fine = client.one(say(&"x".repeat(50_000))).await.expect(&what);
            assert_eq!(fine.message().text.len(), 50_000, "{what}");
        }
    }
}

#[tokio::test]
async fn a_message_that_is_too_large_to_send_never_leaves() {
    let served = serve().await;
    let builder = served.builder(Protocol::Grpc).send_bytes_max(100);
    let client = ProbeClient::new(builder.build().unwrap());
    let error = client.one(say(&"x".repeat(101))).await.unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted);
    assert_eq!(
        served.seen.made.load(std::sync::atomic::Ordering::SeqCst),
        0
    );
}

#[tokio::test]
async fn a_message_of_a_stream_that_is_too_large_to_send_says_so() {
    let served = serve().await;
    for protocol in PROTOCOLS {
        let builder = served.builder(protocol).send_bytes_max(100);
        let client = ProbeClient::new(builder.build().unwrap());
        let messages = [say("x"), say(&"x".repeat(101))];
        let error = client.up(stream::iter(messages)).await.unwrap_err();
        assert_eq!(
            error.code(),
            Code::ResourceExhausted,
            "{protocol:?}: {error}"
        );
    }
}
