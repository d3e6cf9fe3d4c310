//! The service itself.

use std::sync::Arc;

use futures_util::stream;
use quill_core::{BuffaCodec, Error, Method, Request, Response, Streaming};
use quill_server::codegen::Stream;
use quill_server::{Routes, Service};

use crate::answer::{Sent, answer};
use crate::catalog::{Catalog, DescriptorSetError, Shared};
use crate::proto::v1::{ServerReflectionRequest, ServerReflectionResponse};
use crate::proto::{v1, v1alpha};

/// The reflection service, to be added to a server: `grpc.reflection.v1` and
/// `v1alpha` at once.
#[derive(Debug)]
#[must_use]
pub struct ReflectionServer(Result<Catalog, DescriptorSetError>);

/// A reflection service that describes itself and what is in `set`, a
/// serialized `google.protobuf.FileDescriptorSet` with its imports: the
/// `FILE_DESCRIPTOR_SET` of a generated package. A set that can't be used shows
/// in [`error`](ReflectionServer::error) and at each call.
pub fn server(set: &[u8]) -> ReflectionServer {
    ReflectionServer(Ok(Catalog::default()))
        .with_descriptor_set(v1::FILE_DESCRIPTOR_SET)
        .with_descriptor_set(v1alpha::FILE_DESCRIPTOR_SET)
        .with_descriptor_set(set)
}

impl ReflectionServer {
    /// Describes what is in this descriptor set too. Files that are there
    /// already, by name, are left out.
    pub fn with_descriptor_set(self, set: &[u8]) -> Self {
        Self(self.0.and_then(|mut catalog| {
            catalog.add(set)?;
            Ok(catalog)
        }))
    }

    /// Why a descriptor set can't be used; `None` when all can.
    #[must_use]
    pub fn error(&self) -> Option<&DescriptorSetError> {
        self.0.as_ref().err()
    }
}

impl Service for ReflectionServer {
    fn name(&self) -> &str {
        v1::server_reflection::NAME
    }

    fn routes(self, routes: &mut Routes) {
        let catalog: Shared = Arc::new(self.0);
        add(
            routes,
            &v1::server_reflection::SERVER_REFLECTION_INFO,
            &catalog,
        );
        add(routes, &v1alpha::SERVER_REFLECTION_INFO, &catalog);
    }
}

fn add(routes: &mut Routes, method: &Method, catalog: &Shared) {
    let catalog = Arc::clone(catalog);
    routes.bidi_streaming(method, BuffaCodec, BuffaCodec, move |request| {
        std::future::ready(info(Arc::clone(&catalog), request))
    });
}

/// One answer is made at a time, when the one before it is taken.
fn info(
    catalog: Shared,
    request: Request<Streaming<ServerReflectionRequest>>,
) -> Result<Response<impl Stream<Item = Result<ServerReflectionResponse, Error>>>, Error> {
    if let Err(error) = &*catalog {
        return Err(Error::internal(error.to_string()));
    }
    let state = (catalog, request.into_inner(), Sent::default());
    let answers = stream::try_unfold(state, |(catalog, mut requests, mut sent)| async move {
        let Ok(known) = &*catalog else {
            return Ok(None);
        };
        let Some(request) = requests.message().await? else {
            return Ok(None);
        };
        let response = answer(known, &mut sent, request);
        Ok(Some((response, (catalog, requests, sent))))
    });
    Ok(Response::new(answers))
}
