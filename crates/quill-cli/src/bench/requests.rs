//! The requests of a benchmark, encoded before the first call.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use quill::{Error, Format, HttpVersion, Metadata, MethodKind, Protocol, RawCodec, TransportError};
use quill_core::{Encodable, RequestHead};
use quill_transport::tls::ClientTls;
use quill_transport::{Endpoint, LaneRequest};
use quill_wire::{Call, Decoder, Encode, Out, Side, WireOptions};

use super::call::BenchCall;

/// What is sent on the lanes to one server, again and again.
pub(crate) struct Requests {
    pub(super) endpoint: Endpoint,
    pub(super) tls: Option<ClientTls>,
    call: Call,
    requests: Vec<Encoded>,
}

/// A request, and the bytes of its messages before compression.
pub(super) struct Encoded {
    pub(super) request: LaneRequest,
    pub(super) message_bytes: u64,
}

impl Requests {
    /// Encodes what `call` sends: a request for each of its messages, or one with all
    /// of them for a method that takes a stream.
    ///
    /// # Errors
    /// A message is over the limit, or the head can't be sent.
    pub(crate) fn encode(
        call: &BenchCall,
        protocol: Protocol,
        format: Format,
        options: WireOptions,
        endpoint: Endpoint,
        tls: Option<ClientTls>,
    ) -> Result<Self, Error> {
        let method = Arc::new(call.method.clone());
        let wire = protocol.wire(method.kind());
        let mut outgoing = Call::outgoing(wire, method, format, Arc::new(options));
        outgoing.metadata = call.metadata.clone();
        outgoing.timeout = call.timeout;
        outgoing.leaves_on(HttpVersion::Http2)?;
        let mut all = Self {
            endpoint,
            tls,
            call: outgoing,
            requests: Vec::new(),
        };
        if call.method.kind().client_streams() {
            let (head, body) = all.stream(&call.messages)?;
            all.push(head, body, call.messages.iter().map(Bytes::len).sum())?;
        } else {
            for message in call.messages.iter() {
                let mut out = Out::new();
                let head = all.call.unary_request(&raw(message), &mut out)?;
                all.push(head, whole(&mut out), message.len())?;
            }
        }
        Ok(all)
    }

    fn stream(&self, messages: &[Bytes]) -> Result<(RequestHead, Bytes), Error> {
        let mut out = Out::new();
        let mut encoder = self.call.encoder(Side::Client);
        for message in messages {
            encoder.message(&raw(message), &mut out)?;
        }
        encoder.end(Ok(()), &Metadata::new(), &mut out);
        Ok((self.call.request(), whole(&mut out)))
    }

    fn push(&mut self, head: RequestHead, body: Bytes, message_bytes: usize) -> Result<(), Error> {
        let invalid = |error: TransportError| Error::invalid_argument(error.to_string());
        let mut request = LaneRequest::new(&self.endpoint, head, body).map_err(invalid)?;
        if let Some(last) = self.requests.last() {
            request.share_head(&last.request);
        }
        self.requests.push(Encoded {
            request,
            message_bytes: message_bytes as u64,
        });
        Ok(())
    }

    /// The request of call `number`: each in its turn.
    pub(super) fn of_call(&self, number: u64) -> Option<&Encoded> {
        let count = self.requests.len().max(1) as u64;
        let index = usize::try_from(number % count).unwrap_or_default();
        self.requests.get(index)
    }

    /// What reads an answer.
    pub(super) fn decoder(&self) -> Decoder {
        self.call.decoder(Side::Client)
    }

    pub(super) fn kind(&self) -> MethodKind {
        self.call.method.kind()
    }

    pub(super) fn answer_bytes_max(&self) -> usize {
        self.call.options.receive_bytes_max
    }
}

fn raw(message: &Bytes) -> Encodable<Bytes, RawCodec> {
    Encodable {
        message: message.clone(),
        codec: RawCodec,
    }
}

/// All that an encoder wrote, in one piece.
fn whole(out: &mut Out) -> Bytes {
    if let Some(whole) = out.take_whole() {
        return whole;
    }
    let mut all = BytesMut::with_capacity(out.body_bytes());
    while let Some(chunk) = out.take_chunk() {
        all.extend_from_slice(&chunk);
    }
    all.freeze()
}
