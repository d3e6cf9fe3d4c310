//! The crate connectrpc, as its generator and its defaults have it.

use std::iter;
use std::sync::Arc;

use connectrpc::{
    Encodable, InboundStream, RequestContext, Response, Router, Server, ServiceRequest,
    ServiceResult, ServiceStream,
};
use futures_util::stream::{self, StreamExt};
use tokio::net::TcpListener;

use super::{EXPANDED, Served};
use crate::generated::connectrpc::echo::v1::{Echo, EchoExt, Payload, Records, Sum};

struct Service;

// As its guide writes handlers: with the type that is answered.
#[allow(refining_impl_trait)]
impl Echo for Service {
    async fn unary(
        &self,
        _: RequestContext,
        request: ServiceRequest<'_, Payload>,
    ) -> ServiceResult<Payload> {
        Response::ok(request.to_owned_message())
    }

    async fn expand(
        &self,
        _: RequestContext,
        request: ServiceRequest<'_, Payload>,
    ) -> ServiceResult<ServiceStream<impl Encodable<Payload> + Send + use<>>> {
        let payloads = iter::repeat_n(request.to_owned_message(), EXPANDED);
        Response::stream_ok(stream::iter(payloads).map(Ok))
    }

    async fn collect(
        &self,
        _: RequestContext,
        mut payloads: InboundStream<Payload>,
    ) -> ServiceResult<Payload> {
        let mut last = Payload::default();
        while let Some(payload) = payloads.next().await {
            last = payload?.to_owned_message();
        }
        Response::ok(last)
    }

    async fn chat(
        &self,
        _: RequestContext,
        payloads: InboundStream<Payload>,
    ) -> ServiceResult<ServiceStream<impl Encodable<Payload> + Send + use<>>> {
        Response::stream_ok(payloads.map(|payload| Ok(payload?.to_owned_message())))
    }

    async fn digest(
        &self,
        _: RequestContext,
        request: ServiceRequest<'_, Records>,
    ) -> ServiceResult<Sum> {
        let records = request.to_owned_message().records;
        let texts = records.iter().map(|record| record.text.len() as u64);
        Response::ok(sum(texts))
    }

    async fn skim(
        &self,
        _: RequestContext,
        request: ServiceRequest<'_, Records>,
    ) -> ServiceResult<Sum> {
        let texts = request
            .records
            .iter()
            .map(|record| record.text.len() as u64);
        Response::ok(sum(texts))
    }
}

fn sum(texts: impl Iterator<Item = u64>) -> Sum {
    Sum {
        bytes: texts.sum(),
        ..Default::default()
    }
}

pub(super) async fn serve(listener: TcpListener) -> Served {
    let router = Arc::new(Service).register(Router::new());
    Server::from_listener(listener).serve(router).await
}
