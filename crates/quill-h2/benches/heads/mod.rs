//! The heads of a usual call, and a sink that looks at the fields and keeps none.

use quill_h2::hpack::{Encoder, Field, Sink};

pub(crate) const LIST_BYTES_MAX: usize = 16 * 1024;

pub(crate) type Fields = [(&'static [u8], &'static [u8])];

pub(crate) const REQUEST: &Fields = &[
    (b":method", b"POST"),
    (b":scheme", b"http"),
    (b":path", b"/greet.v1.GreetService/Greet"),
    (b":authority", b"127.0.0.1:8080"),
    (b"te", b"trailers"),
    (b"content-type", b"application/grpc"),
    (b"user-agent", b"grpc-go/1.80.0"),
    (b"grpc-accept-encoding", b"gzip"),
];

pub(crate) const REQUEST_WITH_METADATA: &Fields = &[
    (b":method", b"POST"),
    (b":scheme", b"http"),
    (b":path", b"/greet.v1.GreetService/Greet"),
    (b":authority", b"127.0.0.1:8080"),
    (b"te", b"trailers"),
    (b"content-type", b"application/grpc"),
    (b"user-agent", b"grpc-go/1.80.0"),
    (b"grpc-accept-encoding", b"gzip"),
    (b"grpc-timeout", b"999872u"),
    (b"authorization", b"Bearer 0123456789abcdef0123456789abcdef"),
    (
        b"traceparent",
        b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    ),
];

pub(crate) const RESPONSE: &Fields = &[
    (b":status", b"200"),
    (b"content-type", b"application/grpc"),
    (b"date", b"Mon, 21 Oct 2013 20:13:21 GMT"),
];

pub(crate) const TRAILERS: &Fields = &[(b"grpc-status", b"0")];

/// The bytes of the fields so far.
pub(crate) struct Count(pub(crate) usize);

impl Sink for Count {
    fn field(&mut self, field: Field<'_>) {
        self.0 += field.name.len() + field.value.len();
    }
}

pub(crate) fn encode(encoder: &mut Encoder, fields: &Fields) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        encoder.field(name, value, false, &mut block);
    }
    block
}
