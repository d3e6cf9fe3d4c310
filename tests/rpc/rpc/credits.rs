//! Back-pressure: a stalled consumer stops the maker of messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use quill::{Protocol, QuillClient};

use crate::probe::{ProbeClient, ProbeRequest, Served, eventually, say, serve_with};

/// How long the consumer stalls.
const STALL: Duration = Duration::from_secs(5);
const OFFERED: u32 = 1_000_000;
const MESSAGE_BYTES: u32 = 1024;
/// What a client grants here; a server grants 16.
const CREDITS: u32 = 8;
const SERVER_CREDITS: u32 = 16;

/// What the transport's windows and buffers can hold of messages this size,
/// generously: a stream's window on both sides and what hyper buffers.
const WINDOW_MESSAGES: u32 = (2 * 1024 * 1024 + 512 * 1024) / MESSAGE_BYTES;

/// A server whose messages take the bytes that they have: compressed, a window
/// would hold many more of them.
async fn serve() -> Served {
    serve_with(|builder| builder.enable_compression(false)).await
}

/// A call that hangs fails the test that made it.
async fn in_time<T>(what: &str, call: impl Future<Output = T>) -> T {
    match tokio::time::timeout(Duration::from_secs(30), call).await {
        Ok(done) => done,
        Err(_) => panic!("{what} hangs"),
    }
}

fn credited(served: &Served) -> ProbeClient {
    let client: QuillClient = served
        .builder(Protocol::Quill)
        .credits(CREDITS)
        .build()
        .expect("a client");
    ProbeClient::new(client)
}

/// A million messages, and how many of them were made.
fn offered() -> (
    impl futures_util::Stream<Item = ProbeRequest> + Send + 'static,
    Arc<AtomicU32>,
) {
    let made = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&made);
    let text = "x".repeat(MESSAGE_BYTES as usize);
    let messages = stream::iter(0..OFFERED).map(move |n| {
        counter.fetch_add(1, Ordering::SeqCst);
        ProbeRequest {
            text: text.clone(),
            ending: if n == 0 {
                "stall".into()
            } else {
                String::new()
            },
            ..Default::default()
        }
    });
    (messages, made)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stalled_reader_of_a_server_stream_stops_its_maker() {
    for (credits, most) in [(true, CREDITS + 1), (false, WINDOW_MESSAGES)] {
        let served = serve().await;
        let client = if credits {
            credited(&served)
        } else {
            served.client(Protocol::Quill)
        };
        let request = ProbeRequest {
            count: OFFERED,
            pad_bytes: MESSAGE_BYTES,
            ..say("")
        };
        let mut answers = client.down(request).await.unwrap().into_inner();
        tokio::time::sleep(STALL).await;
        let made = served.seen.made.load(Ordering::SeqCst);
        assert!(made <= most, "credits {credits}: {made} messages were made");
        assert!(made > 0, "nothing came at all");
        for n in 0..100 {
            assert_eq!(answers.message().await.unwrap().unwrap().number, n);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stalled_handler_of_a_client_stream_stops_its_maker() {
    for (credits, most) in [(true, SERVER_CREDITS + 1), (false, WINDOW_MESSAGES)] {
        let served = serve().await;
        let client = if credits {
            credited(&served)
        } else {
            served.client(Protocol::Quill)
        };
        let (messages, made) = offered();
        let call = tokio::spawn(async move { client.up(messages).await });
        eventually("the first messages are made", || {
            made.load(Ordering::SeqCst) > 0
        })
        .await;
        tokio::time::sleep(STALL).await;
        let made = made.load(Ordering::SeqCst);
        assert!(made <= most, "credits {credits}: {made} messages were made");
        call.abort();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stalled_reader_of_a_bidi_stream_stops_both_makers() {
    for (credits, most_up, most_down) in [
        (true, SERVER_CREDITS + CREDITS + 2, CREDITS + 1),
        (false, 2 * WINDOW_MESSAGES, WINDOW_MESSAGES),
    ] {
        let served = serve().await;
        let client = if credits {
            credited(&served)
        } else {
            served.client(Protocol::Quill)
        };
        let (messages, made) = offered();
        let messages = messages.map(|message| ProbeRequest {
            ending: String::new(),
            ..message
        });
        let answers = client.both(messages).await.unwrap().into_inner();
        tokio::time::sleep(STALL).await;
        let down = served.seen.made.load(Ordering::SeqCst);
        let up = made.load(Ordering::SeqCst);
        assert!(
            down <= most_down,
            "credits {credits}: {down} answers were made"
        );
        assert!(up <= most_up, "credits {credits}: {up} requests were made");
        assert!(up > 0 && down > 0);
        drop(answers);
    }
}

#[tokio::test]
async fn with_credits_every_kind_of_call_still_works() {
    let served = serve().await;
    let client = credited(&served);
    let one = in_time("unary", client.one(say("x"))).await;
    assert_eq!(one.unwrap().message().text, "x");
    let messages = stream::iter((0..1000).map(|n| say(&n.to_string())));
    let up = in_time("client stream", client.up(messages)).await;
    assert_eq!(up.unwrap().message().number, 1000);
    let request = ProbeRequest {
        count: 1000,
        ..say("x")
    };
    let down = in_time("server stream", client.down(request)).await;
    let mut answers = down.unwrap().into_inner();
    for n in 0..1000 {
        let answer = in_time("server stream", answers.message()).await;
        assert_eq!(answer.unwrap().unwrap().number, n);
    }
    assert!(
        in_time("its end", answers.message())
            .await
            .unwrap()
            .is_none()
    );
    let messages = stream::iter((0..1000).map(|n| say(&n.to_string())));
    let both = in_time("bidi", client.both(messages)).await;
    let mut answers = both.unwrap().into_inner();
    for n in 0..1000 {
        let answer = in_time("bidi", answers.message()).await;
        assert_eq!(answer.unwrap().unwrap().text, n.to_string());
    }
    assert!(
        in_time("its end", answers.message())
            .await
            .unwrap()
            .is_none()
    );
}

#[tokio::test]
async fn a_flood_after_the_last_message_ends_the_call() {
    let served = serve().await;
    let channel = crate::peer::http2(&served.url);
    let hang = [6, 0x01, 0x12, 4, b'h', b'a', b'n', b'g'];
    let last = [0, 0x02];
    for (after, code) in [
        ([1, 0x08, 1].repeat(2000), "resource_exhausted"),
        (vec![1, 0x01, 7], "invalid_argument"),
    ] {
        let fields = [
            ("content-type", "application/quill-stream+proto"),
            ("quill-credits", "16"),
        ];
        let head = crate::peer::head("/probe.v1.ProbeService/Both", &fields);
        let body = [&hang[..], &last, &after].concat();
        // Its own half stays open, as a caller's does that grants more.
        let body = crate::budgets::Unfinished::new(body, 0);
        let answer = crate::peer::soon(crate::peer::exchange(&channel, head, body)).await;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(text.contains(code), "{text}");
    }
}
