//! What every call carries.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use futures_util::future::join_all;
use quill::client::{Token, Tokens};
use quill::{Code, Error, Idempotency, Request};
use quill_tests_resilience::FlakyRequest;

use crate::peers::{builder, client, closed_url, failing, serve, ways};
use crate::services::{Count, ending, request, through};

/// Tokens `t1`, `t2` and so on, and how many were fetched.
fn counted(life: Option<Duration>) -> (Tokens, Arc<AtomicU32>) {
    let fetched = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&fetched);
    let tokens = Tokens::new(move || {
        let number = count.fetch_add(1, Ordering::SeqCst) + 1;
        async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let token = Token::bearer(format_args!("t{number}"));
            Ok(life.map_or(token.clone(), |life| token.expires_in(life)))
        }
    });
    (tokens, fetched)
}

#[tokio::test]
async fn calls_carry_a_token_and_metadata_unless_they_have_their_own() {
    let served = serve().await;
    for way in ways() {
        let (tokens, fetched) = counted(None);
        let client = client(
            way.builder(&served.url)
                .tokens(tokens)
                .metadata("x-tenant", "7"),
        );
        let answers = join_all((0..20).map(|_| client.get(failing("x", 0)))).await;
        for answer in answers {
            let answer = answer.unwrap().into_inner();
            let carried = (answer.authorization.as_str(), answer.tenant.as_str());
            assert_eq!(carried, ("Bearer t1", "7"), "{way:?}");
        }
        assert_eq!(
            fetched.load(Ordering::SeqCst),
            1,
            "{way:?}: one fetch for all"
        );
        let own = Request::new(failing("x", 0)).with_metadata("authorization", "Basic eA==");
        let own = own
            .and_then(|own| own.with_metadata("x-tenant", "8"))
            .unwrap();
        let answer = client.get(own).await.unwrap().into_inner();
        assert_eq!(
            (answer.authorization.as_str(), answer.tenant.as_str()),
            ("Basic eA==", "8")
        );
        // What the server refuses is not shown to it again, but where it refuses all.
        let refused = FlakyRequest {
            code: 16,
            ..failing(format!("{way:?}"), 1)
        };
        let error = client.get(refused).await.unwrap_err();
        assert_eq!(error.code(), Code::Unauthenticated, "{way:?}");
        let answer = client.get(failing("x", 0)).await.unwrap().into_inner();
        assert_eq!(answer.authorization, "Bearer t2", "{way:?}");
    }
}

#[tokio::test]
async fn a_token_is_renewed_before_it_expires_while_calls_go_on() {
    let served = serve().await;
    // Due for renewal as soon as it is there, and good for an hour all the same.
    let fetched = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&fetched);
    let tokens = Tokens::new(move || {
        let number = count.fetch_add(1, Ordering::SeqCst) + 1;
        let life = if number == 1 {
            Duration::from_millis(200)
        } else {
            Duration::from_secs(3600)
        };
        async move { Ok(Token::bearer(format_args!("t{number}")).expires_in(life)) }
    });
    let client = client(builder(&served.url).tokens(tokens));
    let mut last = String::new();
    for _ in 0..100 {
        last = client
            .get(failing("x", 0))
            .await
            .unwrap()
            .into_inner()
            .authorization;
        if last == "Bearer t2" {
            break;
        }
        assert_eq!(last, "Bearer t1");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(
        (last.as_str(), fetched.load(Ordering::SeqCst)),
        ("Bearer t2", 2)
    );
}

#[tokio::test]
async fn without_a_token_no_call_is_made() {
    let served = serve().await;
    let none = Tokens::new(|| async { Err(Error::unavailable("the issuer is away")) });
    let error = client(builder(&served.url).tokens(none))
        .get(failing("x", 0))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::Unavailable);
    assert!(error.message().contains("the issuer is away"), "{error}");
    assert!(!error.maybe_processed());
    let panics = Tokens::new(|| async { panic!("asked to") });
    let error = client(builder(&served.url).tokens(panics))
        .get(failing("x", 0))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::Internal, "{error}");
    let broken = Tokens::new(|| async { Ok(Token::bearer("a\nb")) });
    let error = client(builder(&served.url).tokens(broken))
        .get(failing("x", 0))
        .await
        .unwrap_err();
    assert!(!error.to_string().contains("a\nb"), "{error}");
    assert_eq!(served.flaky.ids(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_issuer_that_fails_is_not_asked_for_each_call() {
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    let tokens = Tokens::new(move || {
        let number = count.fetch_add(1, Ordering::SeqCst) + 1;
        async move {
            match number {
                3 => Ok(Token::bearer("t3")),
                _ => Err(Error::unavailable(format!("failure {number}"))),
            }
        }
    });
    let called = Count::default();
    let service = ending(&called, |_| async { Ok(()) });
    let call = || through(&tokens, service.clone(), request(Idempotency::Unknown));
    for number in [1, 2] {
        for _ in 0..50 {
            let error = call().await.unwrap_err();
            assert_eq!(error.code(), Code::Unavailable);
            assert!(error.message().contains(&format!("failure {number}")));
            assert!(!error.maybe_processed());
        }
        assert_eq!(asked.load(Ordering::SeqCst), number);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    for _ in 0..50 {
        call().await.unwrap();
    }
    assert_eq!((asked.load(Ordering::SeqCst), called.get()), (3, 50));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_all_tokens_is_not_brought_one_for_each_call() {
    let (tokens, fetched) = counted(None);
    let called = Count::default();
    let service = ending(&called, |_| async { Err(Error::unauthenticated("no")) });
    let call = || through(&tokens, service.clone(), request(Idempotency::Unknown));
    for number in [2, 3] {
        for _ in 0..50 {
            let error = call().await.unwrap_err();
            assert_eq!(error.message(), "no", "the server itself says so");
        }
        assert_eq!(fetched.load(Ordering::SeqCst), number);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(called.get(), 100);
}

/// Tells when it is dropped.
struct Tell(mpsc::SyncSender<()>);

impl Drop for Tell {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[test]
fn a_runtime_that_shuts_down_takes_no_call_with_it() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    let (begin, begun) = mpsc::sync_channel(1);
    let (close, closed) = mpsc::sync_channel(1);
    let (end, ended) = mpsc::sync_channel(1);
    let idle = Tell(close);
    runtime.spawn(async move {
        let _idle = idle;
        std::future::pending::<()>().await;
    });
    runtime.spawn(async move {
        let _ = begin.send(());
        // From here on the runtime takes no more tasks.
        let _ = closed.recv();
        let (tokens, _) = counted(None);
        let service = ending(&Count::default(), |_| async { Ok(()) });
        let called = through(&tokens, service, request(Idempotency::Unknown)).await;
        let _ = end.send(called.map_err(|error| error.code()));
    });
    begun.recv().unwrap();
    runtime.shutdown_background();
    let called = ended.recv_timeout(Duration::from_secs(30));
    assert_eq!(called.expect("it ends"), Err(Code::Internal));
}

#[tokio::test]
async fn metadata_that_is_none_shows_when_the_client_is_built() {
    let built = builder(&closed_url()).metadata("content-type", "x").build();
    let error = built.unwrap_err();
    assert!(error.to_string().contains("content-type"), "{error}");
}
