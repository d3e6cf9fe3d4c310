//! Quill: a protobuf-first RPC framework.
//!
//! Write a `.proto` and a handler once; every caller works on one port: Quill's
//! own framed streams, gRPC, gRPC-Web and Connect, over HTTP/1.1 and HTTP/2.
//!
//! `quill-codegen` turns the `.proto` into messages, a trait to implement, a
//! server and a client, in `build.rs`; [`include_proto!`] brings them in.

pub use futures_core::Stream;
pub use quill_core::compression::Encoding;
pub use quill_core::{
    BuffaCodec, BuffaViewCodec, CallContext, Cancellation, Code, Codec, CodecError, Deadline,
    DecodeLimits, Detail, Error, ErrorDetail, Extensions, Format, HttpVersion, Idempotency,
    Incoming, Metadata, MetadataError, Method, MethodKind, Peer, RawCodec, Reply, Request,
    Response, Streaming,
};
pub use quill_wire::Protocol;

#[cfg(feature = "client")]
pub use quill_client::{ClientBuilder, ConnectError, QuillClient};
#[cfg(feature = "server")]
pub use quill_server::{
    BoundServer, Handler, Routes, RpcLayers, RunningServer, ServeError, Server, ServerBuilder,
    Service, shutdown_signal,
};

/// TLS for both sides.
pub mod tls {
    pub use quill_transport::tls::*;
}

/// Well-known types of protobuf, such as `Timestamp`.
pub mod types {
    pub use buffa_types::*;
}

/// Brings in what `quill-codegen` generated for a package:
/// `quill::include_proto!("echo.v1");`. Use it once a module.
#[macro_export]
macro_rules! include_proto {
    ($package:literal) => {
        include!(concat!(env!("OUT_DIR"), "/", $package, ".rs"));
    };
}

/// What generated code names. Not for use by hand: it changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use buffa;
    pub use buffa_types;
    pub use futures_core::Stream;
    #[cfg(feature = "client")]
    pub use quill_client::{ConnectError, QuillClient};
    pub use quill_core::*;
    #[cfg(feature = "server")]
    pub use quill_server::{Routes, Service};
    pub use serde;
}
