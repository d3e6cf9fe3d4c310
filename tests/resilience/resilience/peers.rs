//! Servers under test, and clients of theirs.

use std::time::Duration;

use quill::{ClientBuilder, Protocol, QuillClient, RunningServer};
use quill_tests_resilience::{Flaky, FlakyClient, FlakyRequest};

/// A way to make calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) protocol: Protocol,
    pub(crate) http1: bool,
}

/// Every protocol over every version of HTTP that it has.
pub(crate) fn ways() -> Vec<Way> {
    let protocols = Protocol::ALL.into_iter();
    let all = protocols.flat_map(|protocol| [false, true].map(|http1| Way { protocol, http1 }));
    all.filter(|way| !(way.http1 && way.protocol == Protocol::Grpc))
        .collect()
}

/// A server in this process.
pub(crate) struct Served {
    pub(crate) flaky: Flaky,
    pub(crate) url: String,
    pub(crate) server: RunningServer,
}

pub(crate) async fn serve() -> Served {
    serve_named("").await
}

pub(crate) async fn serve_named(name: &str) -> Served {
    let flaky = Flaky::named(name);
    let server = flaky.serve("127.0.0.1:0").await.expect("it binds");
    let address = server.local_addr().expect("a TCP socket");
    Served {
        flaky,
        url: format!("http://{address}"),
        server,
    }
}

impl Way {
    pub(crate) fn builder(self, url: &str) -> ClientBuilder {
        let builder = QuillClient::builder().base_url(url).protocol(self.protocol);
        if self.http1 { builder.http1() } else { builder }
    }
}

/// A builder of clients, for tests that are about one protocol.
pub(crate) fn builder(url: &str) -> ClientBuilder {
    QuillClient::builder().base_url(url)
}

pub(crate) fn client(builder: ClientBuilder) -> FlakyClient {
    FlakyClient::new(builder.build().expect("a client"))
}

/// A request that fails so often.
pub(crate) fn failing(id: impl Into<String>, failures: u32) -> FlakyRequest {
    FlakyRequest {
        id: id.into(),
        failures,
        ..Default::default()
    }
}

/// An address at which nobody listens.
pub(crate) fn closed_url() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("it binds");
    format!("http://{}", listener.local_addr().expect("its address"))
}

/// Waits until something holds; at most a few seconds.
pub(crate) async fn eventually(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..1000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never came true: {what}");
}
