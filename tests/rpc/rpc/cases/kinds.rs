//! A service that sends every kind of field there and back.

use std::sync::Once;

use buffa::Message as _;
use buffa::type_registry::{TypeRegistry, set_type_registry};
use quill::{Error, Request, Response};

use crate::probe::proto::{
    Encoded, Endless, EndlessServer, EndlessService, Kinds, KindsServer, KindsService,
};
use crate::probe::{Served, serve_with};

struct Echo;

impl KindsService for Echo {
    async fn echo(&self, request: Request<Kinds>) -> Result<Response<Kinds>, Error> {
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

/// Lets JSON write the message in an `Any` by its type.
fn register_types() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let mut types = TypeRegistry::new();
        crate::probe::proto::register_types(&mut types);
        quill::types::register_wkt_types(&mut types);
        set_type_registry(types);
    });
}

pub(super) async fn serve_kinds() -> Served {
    register_types();
    serve_with(|builder| {
        builder
            .service(KindsServer::new(Echo))
            .service(EndlessServer::new(Echo))
    })
    .await
}
