//! The vocabulary of Quill: what a call is, whatever protocol carries it.
//!
//! Nothing here knows a socket, a runtime or a protocol's name. A handler and a
//! caller speak in [`Request`], [`Response`] and [`Streaming`]; a failure is an
//! [`Error`] with a [`Code`]; a message becomes bytes by a [`Codec`].

pub mod codec;
pub mod compression;
pub mod frame;
pub mod metadata;
pub mod trace;
pub mod varint;

mod budget;
mod call;
mod cancellation;
mod code;
mod context;
mod deadline;
mod draining;
mod error;
mod extensions;
mod fields;
mod head;
mod held_stream;
mod method;
mod request_info;
mod retry_info;
mod streaming;
mod streaming_request;

pub use budget::{Budget, Held, OverBudget};
pub use call::{
    Inbound, Incoming, MessageEncoding, MessageSink, Outbound, Peer, Reply, Request, RequestParts,
    Response,
};
pub use cancellation::{Cancellation, Cancelled};
pub use code::Code;
#[cfg(feature = "buffa")]
#[doc(hidden)]
pub use codec::json;
#[cfg(feature = "buffa")]
pub use codec::{BuffaCodec, BuffaViewCodec, HoldsAny, register_types};
pub use codec::{Codec, CodecError, DecodeLimits, Encodable, Format, Outgoing, RawCodec};
pub use context::{CallContext, Scoped};
pub use deadline::Deadline;
pub use draining::Draining;
pub use error::{BoxError, Detail, Error, ErrorDetail, Pushback};
pub use extensions::Extensions;
pub use head::{
    ForbiddenByte, Headers, HttpMethod, HttpVersion, RequestHead, ResponseHead, SharedHead,
};
pub use held_stream::{HeldStream, Outlet};
pub use metadata::{Metadata, MetadataError};
pub use method::{Idempotency, Method, MethodKind};
pub use streaming::Streaming;
pub use streaming_request::IntoStreamingRequest;
