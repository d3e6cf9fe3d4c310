//! Messages, and what each protocol wraps them in.

pub(crate) const ECHO: &str = "/echo.v1.EchoService/Echo";
pub(crate) const EXPAND: &str = "/echo.v1.EchoService/Expand";
pub(crate) const COLLECT: &str = "/echo.v1.EchoService/Collect";
pub(crate) const CHAT: &str = "/echo.v1.EchoService/Chat";

/// A method of each shape in a protocol: its content type for streams, and how
/// one message is written in a stream's body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dialect {
    pub(crate) name: &'static str,
    pub(crate) content_type: &'static str,
    /// The field that names the encoding of compressed messages.
    pub(crate) encoding: &'static str,
    pub(crate) wrap: fn(u8, &[u8]) -> Vec<u8>,
    /// The flag of a compressed message.
    pub(crate) compressed: u8,
    /// What stands before a message that is not compressed.
    pub(crate) plain: u8,
    /// The end of a request's messages.
    pub(crate) end: &'static [u8],
}

/// Every protocol's streams, in protobuf. gRPC needs HTTP/2.
pub(crate) const DIALECTS: [Dialect; 4] = [
    Dialect {
        name: "quill",
        content_type: "application/quill-stream+proto",
        encoding: "quill-encoding",
        wrap: quill,
        compressed: 0x41,
        plain: 0x01,
        end: &[0x00, 0x02],
    },
    Dialect {
        name: "grpc",
        content_type: "application/grpc+proto",
        encoding: "grpc-encoding",
        wrap: envelope,
        compressed: 1,
        plain: 0,
        end: &[],
    },
    Dialect {
        name: "grpc-web",
        content_type: "application/grpc-web+proto",
        encoding: "grpc-encoding",
        wrap: envelope,
        compressed: 1,
        plain: 0,
        end: &[],
    },
    Dialect {
        name: "connect",
        content_type: "application/connect+proto",
        encoding: "connect-content-encoding",
        wrap: envelope,
        compressed: 1,
        plain: 0,
        end: &[],
    },
];

/// A message of gRPC, gRPC-Web and Connect's streams.
pub(crate) fn envelope(flags: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&[flags], &length[..], payload].concat()
}

/// A frame of Quill.
pub(crate) fn quill(flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = varint(payload.len() as u64);
    frame.push(flags);
    frame.extend(payload);
    frame
}

pub(crate) fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 128 {
        bytes.push(value as u8 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A protobuf field of bytes, text or a message.
pub(crate) fn bytes_field(number: u64, bytes: &[u8]) -> Vec<u8> {
    let mut field = varint(number << 3 | 2);
    field.extend(varint(bytes.len() as u64));
    field.extend(bytes);
    field
}

/// A protobuf field of a number.
pub(crate) fn number_field(number: u64, value: u64) -> Vec<u8> {
    [varint(number << 3), varint(value)].concat()
}

/// `ExpandRequest` for an endless stream of this message.
pub(crate) fn endless(message_bytes: usize) -> Vec<u8> {
    bytes_field(1, &vec![b'x'; message_bytes])
}

/// `EchoRequest`.
pub(crate) fn echo(message: &[u8]) -> Vec<u8> {
    bytes_field(1, message)
}
