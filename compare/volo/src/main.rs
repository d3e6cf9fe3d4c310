//! volo-grpc, as its generator and its defaults have it, for `compare/run rpc`.
//!
//! A program of its own: where it can't be built, the others are still compared.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::{iter, process, thread};

use futures_util::stream::{self, StreamExt};
use volo::net::incoming::DefaultIncoming;
use volo_grpc::server::{Server, ServiceBuilder};
use volo_grpc::{BoxStream, RecvStream, Request, Response, Status};

use crate::generated::{Echo, EchoServer, Payload, Records, Sum};

#[allow(warnings, clippy::all)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/volo_echo.rs"));
    pub use volo_echo::echo::v1::*;
}

/// What `Expand` answers each request with.
const EXPANDED: usize = 500;

type Payloads = BoxStream<'static, Result<Payload, Status>>;

struct Service;

impl Echo for Service {
    async fn unary(&self, request: Request<Payload>) -> Result<Response<Payload>, Status> {
        Ok(Response::new(request.into_inner()))
    }

    async fn expand(&self, request: Request<Payload>) -> Result<Response<Payloads>, Status> {
        let payloads = iter::repeat_n(request.into_inner(), EXPANDED);
        Ok(Response::new(stream::iter(payloads.map(Ok)).boxed()))
    }

    async fn collect(
        &self,
        request: Request<RecvStream<Payload>>,
    ) -> Result<Response<Payload>, Status> {
        let mut payloads = request.into_inner();
        let mut last = Payload::default();
        while let Some(payload) = payloads.next().await {
            last = payload?;
        }
        Ok(Response::new(last))
    }

    async fn chat(
        &self,
        request: Request<RecvStream<Payload>>,
    ) -> Result<Response<Payloads>, Status> {
        Ok(Response::new(request.into_inner().boxed()))
    }

    async fn digest(&self, request: Request<Records>) -> Result<Response<Sum>, Status> {
        let records = request.into_inner().records;
        let texts = records.iter().map(|record| record.text.len() as u64);
        let bytes = texts.sum();
        Ok(Response::new(Sum {
            bytes,
            ..Default::default()
        }))
    }

    async fn skim(&self, request: Request<Records>) -> Result<Response<Sum>, Status> {
        self.digest(request).await
    }
}

/// Serves on a current-thread runtime until standard input ends. Prints the
/// address first.
fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    thread::spawn(|| {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        process::exit(0);
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let any: SocketAddr = ([127, 0, 0, 1], 0).into();
        let listener = tokio::net::TcpListener::bind(any).await?;
        let mut out = io::stdout().lock();
        writeln!(out, "{}", listener.local_addr()?)?;
        out.flush()?;
        drop(out);
        Server::new()
            .add_service(ServiceBuilder::new(EchoServer::new(Service)).build())
            .run(DefaultIncoming::from(listener))
            .await
    })
}
