//! Quill, as its generator and its defaults have it.

use std::iter;

use futures_util::stream::{self, Stream, StreamExt};
use quill::tls::ServerTls;
use quill::{Error, Http2Engine, Request, Response, Server, ServerOptions, Streaming};

use super::guarded::Guarded;
use super::{Served, announce};
use crate::generated::quill::{Echo, EchoServer, Payload, Records, RecordsOwnedView, Sum};

struct Service;

impl Echo for Service {
    async fn unary(&self, request: Request<Payload>) -> Result<Response<Payload>, Error> {
        Ok(request.into_inner().into())
    }

    async fn expand(
        &self,
        request: Request<Payload>,
    ) -> Result<Response<impl Stream<Item = Result<Payload, Error>> + Send>, Error> {
        let payloads = iter::repeat_n(request.into_inner(), super::EXPANDED);
        Ok(stream::iter(payloads).map(Ok).into())
    }

    async fn collect(
        &self,
        request: Request<Streaming<Payload>>,
    ) -> Result<Response<Payload>, Error> {
        let mut payloads = request.into_inner();
        let mut last = Payload::default();
        while let Some(payload) = payloads.message().await? {
            last = payload;
        }
        Ok(last.into())
    }

    async fn chat(
        &self,
        request: Request<Streaming<Payload>>,
    ) -> Result<Response<impl Stream<Item = Result<Payload, Error>> + Send>, Error> {
        Ok(request.into_inner().into())
    }

    async fn digest(&self, request: Request<Records>) -> Result<Response<Sum>, Error> {
        let records = request.into_inner().records;
        let texts = records.iter().map(|record| record.text.len() as u64);
        Ok(sum(texts).into())
    }

    async fn skim(&self, request: Request<RecordsOwnedView>) -> Result<Response<Sum>, Error> {
        let records = request.into_inner();
        let texts = records
            .records()
            .iter()
            .map(|record| record.text.len() as u64);
        Ok(sum(texts).into())
    }
}

fn sum(texts: impl Iterator<Item = u64>) -> Sum {
    Sum {
        bytes: texts.sum(),
        ..Default::default()
    }
}

pub(super) async fn serve(http2_engine: Http2Engine) -> Served {
    let mut options = ServerOptions::default();
    options.http2_engine = http2_engine;
    let server = Server::builder()
        .service(EchoServer::new(Service))
        .transport(options)
        .bind("127.0.0.1:0")
        .await?;
    announce(server.local_addr().ok_or("no TCP socket")?)?;
    server.serve_until(std::future::pending()).await?;
    Ok(())
}

pub(super) async fn serve_tls() -> Served {
    let (chain, key) = super::identity()?;
    let tls = ServerTls::builder().identity_pem(chain, key).build()?;
    let server = Server::builder()
        .service(EchoServer::new(Service))
        .tls(tls)
        .bind("127.0.0.1:0")
        .await?;
    announce(server.local_addr().ok_or("no TCP socket")?)?;
    server.serve_until(std::future::pending()).await?;
    Ok(())
}

pub(super) async fn serve_guarded() -> Served {
    let server = Server::builder()
        .service(EchoServer::new(Service))
        .layer(Guarded::layer())
        .bind("127.0.0.1:0")
        .await?;
    announce(server.local_addr().ok_or("no TCP socket")?)?;
    server.serve_until(std::future::pending()).await?;
    Ok(())
}
