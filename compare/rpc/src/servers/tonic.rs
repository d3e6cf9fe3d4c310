//! tonic, as its generator and its defaults have it.

use std::iter;
use std::pin::Pin;

use futures_util::stream::{self, Stream, StreamExt};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Identity, Server, ServerTlsConfig};
use tonic::{Request, Response, Status, Streaming};

use super::guarded::Guarded;
use super::{EXPANDED, Served};
use crate::generated::tonic::echo_server::{Echo, EchoServer};
use crate::generated::tonic::{Payload, Records, Sum};

struct Service;

type Payloads = Pin<Box<dyn Stream<Item = Result<Payload, Status>> + Send>>;

#[tonic::async_trait]
impl Echo for Service {
    type ExpandStream = Payloads;
    type ChatStream = Payloads;

    async fn unary(&self, request: Request<Payload>) -> Result<Response<Payload>, Status> {
        Ok(Response::new(request.into_inner()))
    }

    async fn expand(&self, request: Request<Payload>) -> Result<Response<Payloads>, Status> {
        let payloads = iter::repeat_n(request.into_inner(), EXPANDED);
        Ok(Response::new(Box::pin(stream::iter(payloads.map(Ok)))))
    }

    async fn collect(
        &self,
        request: Request<Streaming<Payload>>,
    ) -> Result<Response<Payload>, Status> {
        let mut payloads = request.into_inner();
        let mut last = Payload::default();
        while let Some(payload) = payloads.message().await? {
            last = payload;
        }
        Ok(Response::new(last))
    }

    async fn chat(
        &self,
        request: Request<Streaming<Payload>>,
    ) -> Result<Response<Payloads>, Status> {
        Ok(Response::new(request.into_inner().boxed()))
    }

    async fn digest(&self, request: Request<Records>) -> Result<Response<Sum>, Status> {
        let records = request.into_inner().records;
        let texts = records.iter().map(|record| record.text.len() as u64);
        Ok(Response::new(Sum { bytes: texts.sum() }))
    }

    async fn skim(&self, request: Request<Records>) -> Result<Response<Sum>, Status> {
        self.digest(request).await
    }
}

pub(super) async fn serve(listener: TcpListener) -> Served {
    Server::builder()
        .add_service(EchoServer::new(Service))
        .serve_with_incoming(incoming(listener))
        .await?;
    Ok(())
}

pub(super) async fn serve_tls(listener: TcpListener) -> Served {
    let (chain, key) = super::identity()?;
    let tls = ServerTlsConfig::new().identity(Identity::from_pem(chain, key));
    Server::builder()
        .tls_config(tls)?
        .add_service(EchoServer::new(Service))
        .serve_with_incoming(incoming(listener))
        .await?;
    Ok(())
}

pub(super) async fn serve_guarded(listener: TcpListener) -> Served {
    Server::builder()
        .layer(Guarded::layer())
        .add_service(EchoServer::new(Service))
        .serve_with_incoming(incoming(listener))
        .await?;
    Ok(())
}

/// What a server that binds for itself does to its sockets by default.
fn incoming(listener: TcpListener) -> impl Stream<Item = std::io::Result<tokio::net::TcpStream>> {
    TcpListenerStream::new(listener).map(|accepted| {
        let socket = accepted?;
        socket.set_nodelay(true)?;
        Ok(socket)
    })
}
