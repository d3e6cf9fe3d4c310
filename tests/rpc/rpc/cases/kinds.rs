//! A service that sends every kind of field there and back.

use buffa::Message as _;
use quill::{Error, Request, Response};

use crate::probe::proto::{
    Encoded, Endless, EndlessServer, EndlessService, Holder, Kinds, KindsServer, KindsService,
};
use crate::probe::{Served, serve_with};

struct Echo;

impl KindsService for Echo {
    async fn echo(&self, request: Request<Kinds>) -> Result<Response<Kinds>, Error> {
        Ok(request.into_inner().into())
    }

    async fn hold(&self, request: Request<Holder>) -> Result<Response<Holder>, Error> {
        Ok(request.into_inner().into())
    }

    async fn print(&self, request: Request<Encoded>) -> Result<Response<Kinds>, Error> {
        Kinds::decode_from_slice(&request.message().kinds)
            .map(Response::new)
            .map_err(|error| Error::invalid_argument(error.to_string()))
    }
}

impl EndlessService for Echo {
    async fn echo(&self, request: Request<Endless>) -> Result<Response<Endless>, Error> {
        Ok(request.into_inner().into())
    }
}

pub(super) async fn serve_kinds() -> Served {
    serve_with(|builder| {
        builder
            .service(KindsServer::new(Echo))
            .service(EndlessServer::new(Echo))
    })
    .await
}
