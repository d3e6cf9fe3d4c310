//! Instructions that a call takes its client, with a limit: a gRPC call of 100 bytes each
//! way, of which 64 are under way on one connection.
//!
//! `cargo bench -p quill-client --bench iai_call`

use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;

use buffa_types::google::protobuf::StringValue;
use callgrind_gate::{Case, counted, gate};
use futures_util::stream::{FuturesUnordered, StreamExt};
use quill_client::QuillClient;
use quill_core::{BuffaCodec, Error, Method, MethodKind, Request, Response};
use quill_server::{Routes, Server, Service};
use quill_wire::Protocol;
use tokio::runtime::{Builder, Runtime};

static ECHO: Method = Method::new("/measure.v1.Echo/Echo", MethodKind::Unary);

/// Calls that are under way together.
const IN_FLIGHT: u64 = 64;

/// A message of 100 bytes, but for its field's head.
const TEXT_BYTES: usize = 98;

const CASES: &[Case] = &[Case {
    name: "call_100b",
    limit: 32_000,
    run: call,
}];

fn main() -> ExitCode {
    gate("iai_call", 20 * IN_FLIGHT, CASES)
}

struct Echo;

impl Service for Echo {
    fn name(&self) -> &str {
        "measure.v1.Echo"
    }

    fn routes(self, routes: &mut Routes) {
        let echo =
            |request: Request<StringValue>| async { Ok(Response::new(request.into_inner())) };
        routes.unary(&ECHO, BuffaCodec, BuffaCodec, echo);
    }
}

/// `n` calls, counted.
fn call(n: u64) {
    let client = QuillClient::builder()
        .base_url(format!("http://{}", serve()))
        .protocol(Protocol::Grpc)
        .build()
        .expect("a client");
    let runtime = runtime();
    let call_all = |calls| runtime.block_on(call_all(&client, calls)).expect("answers");
    call_all(4 * IN_FLIGHT);
    counted(|| call_all(n));
}

async fn call_all(client: &QuillClient, calls: u64) -> Result<(), Error> {
    let mut under_way = FuturesUnordered::new();
    for _ in 0..calls {
        if under_way.len() as u64 == IN_FLIGHT {
            under_way.next().await.transpose()?;
        }
        under_way.push(async {
            let message = StringValue {
                value: "x".repeat(TEXT_BYTES),
                ..StringValue::default()
            };
            let request = Request::new(message);
            let response: Response<StringValue> =
                client.unary(&ECHO, BuffaCodec, BuffaCodec, request).await?;
            assert_eq!(response.message().value.len(), TEXT_BYTES);
            Ok::<(), Error>(())
        });
    }
    while let Some(done) = under_way.next().await {
        done?;
    }
    Ok(())
}

/// Serves on a thread of its own, which is not counted; the address.
fn serve() -> String {
    let (tell, address) = mpsc::sync_channel(1);
    thread::spawn(move || {
        runtime().block_on(async {
            let server = Server::builder().service(Echo).bind("127.0.0.1:0").await;
            let server = server.expect("a server");
            let address = server.local_addr().expect("an address");
            tell.send(address.to_string()).expect("a client");
            let served = server.serve_until(std::future::pending()).await;
            served.expect("a server that goes on");
        });
    });
    address.recv().expect("a server")
}

fn runtime() -> Runtime {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime")
}
