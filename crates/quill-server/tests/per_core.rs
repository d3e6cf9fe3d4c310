//! A server with a runtime for each core.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use buffa_types::google::protobuf::StringValue;
use quill_core::{BuffaCodec, Error, Method, MethodKind, Request, Response};
use quill_server::{Routes, RunningServer, Server, ServerBuilder, Service};
use quill_transport::Listener;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// Answers with the name of its thread, once it may.
struct Cores {
    arrived: mpsc::Sender<()>,
    may_answer: watch::Receiver<bool>,
}

impl Service for Cores {
    fn name(&self) -> &str {
        "cores.v1.Cores"
    }

    fn routes(self, routes: &mut Routes) {
        let method = Method::new("/cores.v1.Cores/Name", MethodKind::Unary);
        let name = move |_: Request<StringValue>| {
            let (arrived, mut may_answer) = (self.arrived.clone(), self.may_answer.clone());
            async move {
                let _ = arrived.send(()).await;
                let waited = may_answer.wait_for(|may| *may).await;
                waited.map_err(|_| Error::internal("nobody lets this go on"))?;
                let thread = std::thread::current();
                let name = StringValue {
                    value: thread.name().unwrap_or_default().to_owned(),
                    ..StringValue::default()
                };
                Ok(Response::new(name))
            }
        };
        routes.unary(&method, BuffaCodec, BuffaCodec, name);
    }
}

/// A server on three cores, and as many calls on connections of their own.
struct Called {
    server: RunningServer,
    address: SocketAddr,
    calls: JoinSet<String>,
    release: watch::Sender<bool>,
}

/// Enough that the kernel gives some to each core.
const CALLS: usize = 60;

async fn called(builder: ServerBuilder) -> Called {
    let (arrived, mut arrivals) = mpsc::channel(CALLS);
    let (release, may_answer) = watch::channel(false);
    let service = Cores {
        arrived,
        may_answer,
    };
    let server = builder.service(service).per_core(3).bind("127.0.0.1:0");
    let server = server.await.unwrap().start();
    let address = server.local_addr().unwrap();
    let mut calls = JoinSet::new();
    for _ in 0..CALLS {
        calls.spawn(call(address));
    }
    for _ in 0..CALLS {
        arrivals.recv().await.unwrap();
    }
    Called {
        server,
        address,
        calls,
        release,
    }
}

/// What comes back on a connection that calls once.
async fn call(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = "POST /cores.v1.Cores/Name HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
        content-type: application/json\r\ncontent-length: 2\r\n\r\n\"\"";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    answer
}

#[tokio::test]
async fn every_core_accepts_and_a_drain_lets_all_of_them_finish() {
    let called = called(Server::builder()).await;
    let shutdown = tokio::spawn(called.server.shutdown());
    // The sockets are closed before anything is waited for.
    while TcpStream::connect(called.address).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    called.release.send_replace(true);
    let answers = called.calls.join_all().await;
    let bodies = answers.iter().map(|answer| {
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer.rsplit("\r\n").next().unwrap()
    });
    let names = ["\"quill-core-0\"", "\"quill-core-1\"", "\"quill-core-2\""];
    assert_eq!(bodies.collect::<BTreeSet<_>>(), BTreeSet::from(names));
    assert_eq!(shutdown.await.unwrap().cut_connections, 0);
}

#[tokio::test]
async fn what_is_left_at_the_drain_limit_is_cut_on_every_core() {
    let builder = Server::builder().drain_limit(Duration::from_millis(50));
    let called = called(builder).await;
    let drained = called.server.shutdown().await;
    assert_eq!(drained.cut_connections, CALLS);
    for answer in called.calls.join_all().await {
        assert_eq!(answer, "");
    }
}

#[tokio::test]
async fn a_server_that_is_dropped_cuts_all_cores() {
    let called = called(Server::builder()).await;
    drop(called.server);
    for answer in called.calls.join_all().await {
        assert_eq!(answer, "");
    }
}

#[tokio::test]
async fn only_tcp_sockets_of_its_own_can_be_shared() {
    let bound = Server::builder().per_core(2).bind("unix:/tmp/no").await;
    let error = bound.unwrap_err().to_string();
    assert!(error.contains("a Unix socket can't be shared"), "{error}");
    let listener = Listener::bind("127.0.0.1:0").await.unwrap();
    let error = Server::builder().per_core(2).listen(listener).unwrap_err();
    assert!(error.is_setting(), "{error}");
    // An unused server leaves nothing behind that would keep its port.
    let server = Server::builder().per_core(2).bind("127.0.0.1:0").await;
    let server = server.unwrap();
    let address = server.local_addr().unwrap();
    drop(server);
    assert!(TcpStream::connect(address).await.is_err());
}
