//! A service that sends every kind of field there and back.

use quill::{Error, Request, Response};

use crate::probe::proto::{
    Endless, EndlessServer, EndlessService, Kinds, KindsServer, KindsService,
};
use crate::probe::{Served, serve_with};

struct Echo;

impl KindsService for Echo {
    async fn echo(&self, request: Request<Kinds>) -> Result<Response<Kinds>, Error> {
        Ok(request.into_inner().into())
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
