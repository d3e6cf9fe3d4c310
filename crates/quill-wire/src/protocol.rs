//! The seam between the protocols and everything else.
//!
//! A server's path: [`Wire::recognise`] the head, find the method, [`Wire::open`]
//! a [`Call`], feed its [`Decoder`](crate::Decoder), run the handler, write through its
//! [`Encoder`](crate::Encoder). A client's path: make a [`Call`], send its
//! [`request`](Call::request), write through the encoder, feed the decoder.
//! Neither names a protocol.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quill_core::compression::Encoding;
use quill_core::{
    DecodeLimits, Error, Format, HttpVersion, Metadata, Method, MethodKind, Outgoing, ResponseHead,
};

use crate::out::Out;
use crate::quill::{Credits, Marks};

/// How a call is written on the wire. A closed set: a new protocol is a new
/// variant and a new file beside the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wire {
    /// Quill's own protocol, bare or framed.
    Quill,
    /// Quill's own protocol, unary without side effects, by GET.
    QuillGet,
    /// HTTP that is no known protocol; only ever refused, or left to a fallback.
    PlainHttp,
    /// gRPC over HTTP/2.
    Grpc,
    /// gRPC-Web, in binary or in base64 text.
    GrpcWeb {
        /// Whether bodies are base64 (`application/grpc-web-text`).
        text: bool,
    },
    /// Connect, unary, by POST.
    ConnectUnary,
    /// Connect, unary without side effects, by GET.
    ConnectGet,
    /// Connect, with a stream on at least one side.
    ConnectStream,
}

/// The protocols a caller chooses from, whatever the kind of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Protocol {
    /// Quill's own protocol.
    #[default]
    Quill,
    /// gRPC.
    Grpc,
    /// gRPC-Web, in binary.
    GrpcWeb,
    /// gRPC-Web, in base64 text.
    GrpcWebText,
    /// Connect.
    Connect,
}

impl Protocol {
    /// Every protocol.
    pub const ALL: [Protocol; 5] = [
        Protocol::Quill,
        Protocol::Grpc,
        Protocol::GrpcWeb,
        Protocol::GrpcWebText,
        Protocol::Connect,
    ];

    /// Its name on a command line: `quill`, `grpc`, `grpc-web`, `grpc-web-text`, `connect`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Protocol::Quill => "quill",
            Protocol::Grpc => "grpc",
            Protocol::GrpcWeb => "grpc-web",
            Protocol::GrpcWebText => "grpc-web-text",
            Protocol::Connect => "connect",
        }
    }

    /// The protocol of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|protocol| protocol.name() == name)
    }

    /// How a call of this kind is written in it.
    #[must_use]
    pub fn wire(self, kind: MethodKind) -> Wire {
        match self {
            Protocol::Quill => Wire::Quill,
            Protocol::Grpc => Wire::Grpc,
            Protocol::GrpcWeb => Wire::GrpcWeb { text: false },
            Protocol::GrpcWebText => Wire::GrpcWeb { text: true },
            Protocol::Connect if kind == MethodKind::Unary => Wire::ConnectUnary,
            Protocol::Connect => Wire::ConnectStream,
        }
    }
}

impl Wire {
    /// The name of its protocol, as [`Protocol::name`] has it; `http` for what is none.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Wire::Quill | Wire::QuillGet => "quill",
            Wire::PlainHttp => "http",
            Wire::Grpc => "grpc",
            Wire::GrpcWeb { text: false } => "grpc-web",
            Wire::GrpcWeb { text: true } => "grpc-web-text",
            Wire::ConnectUnary | Wire::ConnectGet | Wire::ConnectStream => "connect",
        }
    }

    /// Whether calls can be made in it over this version of HTTP.
    ///
    /// # Errors
    /// They can't; with what to do in place of that.
    pub fn works_over(self, version: HttpVersion) -> Result<(), Error> {
        if self == Wire::Grpc && version == HttpVersion::Http1 {
            return Err(Error::unimplemented(
                "gRPC works over HTTP/2 alone, and this connection is HTTP/1.1: use another protocol, such as gRPC-Web",
            ));
        }
        Ok(())
    }
}

/// Which end of a call a decoder or encoder works for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Reads answers, writes requests.
    Client,
    /// Reads requests, writes answers.
    Server,
}

/// What a side allows and prefers, for all its calls.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WireOptions {
    /// Most bytes of a received message, after decompression; 4 MiB by default.
    pub receive_bytes_max: usize,
    /// Most bytes of a sent message, before compression; 4 MiB by default.
    pub send_bytes_max: usize,
    /// Encodings a peer may use towards us, the preferred one first.
    pub accept: Vec<Encoding>,
    /// Whether we compress what we send, where the peer accepts it. A client
    /// that does uses the first encoding of `accept` that is no identity.
    pub compress: bool,
    /// Compression level, 1 (fastest) to 22; gzip and deflate stop at 9, br at
    /// 11, snappy has none. 3 by default.
    pub compression_level: u8,
    /// Messages under this many bytes are never compressed; 1024 by default.
    pub compress_bytes_min: usize,
    /// Message credits: what this side grants the other at once; a client with
    /// `None` does not ask for credits, a server answers those who do with 16.
    pub credits: Option<u32>,
    /// Whether a client calls methods without side effects by GET where it can.
    pub use_get: bool,
    /// Bounds on decoding a message.
    pub decode: DecodeLimits,
}

impl Default for WireOptions {
    fn default() -> Self {
        Self {
            receive_bytes_max: 4 * 1024 * 1024,
            send_bytes_max: 4 * 1024 * 1024,
            accept: vec![Encoding::Zstd, Encoding::Gzip],
            compress: true,
            compression_level: 3,
            compress_bytes_min: 1024,
            credits: None,
            use_get: false,
            decode: DecodeLimits::default(),
        }
    }
}

/// One call: which method, in which protocol, format and encodings.
#[derive(Clone, Debug)]
pub struct Call {
    /// The protocol.
    pub wire: Wire,
    /// The method called.
    pub method: Arc<Method>,
    /// How messages are written.
    pub format: Format,
    /// The request's metadata.
    pub metadata: Metadata,
    /// How long the caller gives the call.
    pub timeout: Option<Duration>,
    /// How many attempts of the call were made before this one; 0 where the
    /// protocol does not carry it.
    pub previous_attempts: u32,
    /// The encoding of compressed messages that we receive. A client learns it
    /// from the answer's head.
    pub receive: Encoding,
    /// The encoding that we may compress sent messages with.
    pub send: Encoding,
    /// What this side allows and prefers.
    pub options: Arc<WireOptions>,
    /// The version of HTTP below.
    pub version: HttpVersion,
    /// The message of a call whose request has no body (GET).
    pub(crate) inline_body: Option<Bytes>,
    /// Message credits; `None` when they were not asked for.
    pub(crate) credits: Option<Credits>,
    /// What Quill's own protocol keeps of a request's head.
    pub(crate) marks: Marks,
}

impl Call {
    /// A call to be made by a client.
    #[must_use]
    pub fn outgoing(
        wire: Wire,
        method: Arc<Method>,
        format: Format,
        options: Arc<WireOptions>,
    ) -> Self {
        let send = if options.compress {
            let mut candidates = options.accept.iter().copied();
            candidates
                .find(|encoding| *encoding != Encoding::Identity)
                .unwrap_or(Encoding::Identity)
        } else {
            Encoding::Identity
        };
        Self {
            wire,
            format,
            metadata: Metadata::new(),
            timeout: None,
            previous_attempts: 0,
            receive: Encoding::Identity,
            send,
            // Credits do nothing for a single message each way.
            credits: options
                .credits
                .filter(|_| wire == Wire::Quill && method.kind() != MethodKind::Unary)
                .map(Credits::of_client),
            method,
            options,
            version: HttpVersion::Http2,
            inline_body: None,
            marks: Marks::default(),
        }
    }

    /// How many messages this side grants the other at once, when message
    /// credits are on. A server then answers its head before its handler is done.
    #[must_use]
    pub fn credits(&self) -> Option<u32> {
        self.credits.as_ref().map(Credits::window)
    }

    /// Client: the version of HTTP that the call leaves on. Over HTTP/1.1, whose
    /// halves do not overlap, it asks for no credits.
    ///
    /// # Errors
    /// The protocol does not work over it.
    pub fn leaves_on(&mut self, version: HttpVersion) -> Result<(), Error> {
        self.wire.works_over(version)?;
        self.version = version;
        if version == HttpVersion::Http1 {
            self.credits = None;
        }
        Ok(())
    }
}

/// Why a request is refused before it becomes a call. Each protocol has its
/// own way to say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no method at this path.
    UnknownPath,
    /// The path is not in its canonical form.
    PathNotCanonical,
    /// The HTTP method is wrong; the value of `allow`.
    HttpMethod(&'static str),
    /// The content type is none of ours, or wrong for the method.
    MediaType,
    /// The protocol can't work over this version of HTTP.
    HttpVersion,
}

/// What a decoder found in the bytes.
#[derive(Debug)]
pub enum Event {
    /// A message, decompressed.
    Message(Bytes),
    /// The peer may be sent this many messages more.
    Credit(u32),
    /// The peer gave the call up.
    Cancel,
    /// The peer's half has ended: well, with trailing metadata; or, at a client,
    /// with the error that the server answered, which holds the leading and the
    /// trailing metadata. Nothing follows but credit.
    End(Result<Metadata, Error>),
}

/// Writes one side's half of a call.
pub trait Encode: Send {
    /// Server: the whole answer of a call with one answer message (status,
    /// encoding and length are known together), or a failure before any head.
    fn unary(
        &mut self,
        result: Result<&dyn Outgoing, &Error>,
        head: &Metadata,
        trailers: &Metadata,
        out: &mut Out,
    );

    /// Server: the answer's head, with leading metadata.
    fn head(&mut self, metadata: &Metadata, out: &mut Out);

    /// One message.
    ///
    /// # Errors
    /// A message that can't be encoded (`internal`) or is over the limit
    /// (`resource_exhausted`); nothing of it was written.
    fn message(&mut self, message: &dyn Outgoing, out: &mut Out) -> Result<(), Error>;

    /// The end of this half. A server that wrote no head yet and fails writes
    /// one that carries the failure; one that succeeds writes an empty head.
    /// A client can only end well, or give up (any error).
    fn end(&mut self, result: Result<(), &Error>, trailers: &Metadata, out: &mut Out);

    /// Grants the peer `messages` more messages; nothing where the protocol has
    /// no credits.
    fn grant(&mut self, messages: u32, out: &mut Out) {
        let _ = (messages, out);
    }

    /// The peer granted us `messages` more ([`Event::Credit`]).
    fn credited(&mut self, messages: u32) {
        let _ = messages;
    }

    /// Whether a message may be sent now; true where the protocol has no credits.
    fn may_send(&self) -> bool {
        true
    }
}

/// Reads one side's half of a call, however its bytes are cut.
pub trait Decode: Send {
    /// Client: the answer's head. Returns its leading metadata; a head that is
    /// all there is counts as the trailers, too.
    ///
    /// # Errors
    /// An answer that is none of this protocol.
    fn head(&mut self, head: &ResponseHead) -> Result<Metadata, Error>;

    /// More bytes of the body.
    fn feed(&mut self, bytes: Bytes);

    /// The body has ended, with these trailers.
    fn finish(&mut self, trailers: Option<quill_core::Headers>);

    /// The next event; `None` when more bytes are needed, or after the end.
    ///
    /// # Errors
    /// Bytes that break the protocol or a limit. The call is over then.
    fn next(&mut self) -> Result<Option<Event>, Error>;

    /// Lets messages share the memory of what was fed, however small a part of it they
    /// are: for who keeps nothing of them.
    fn share_memory(&mut self) {}

    /// Puts what waits for more bytes into memory of its own: it keeps whole buffers
    /// alive that it came in. To be called when there are no more for now.
    fn hold(&mut self);

    /// Memory that is held until it makes a message, in bytes: once it is put into its
    /// own, no more than the message has, and less than twice what has come. 0 where
    /// the peer may stop for as long as it likes.
    fn held_bytes(&self) -> usize;
}
