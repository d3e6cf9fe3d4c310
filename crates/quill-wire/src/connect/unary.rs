//! Connect unary.
use crate::out::Out;
use crate::protocol::{Call, Decode, Encode, Event, Refusal, Side, Wire, WireOptions};
use crate::wire::Opened;
use bytes::Bytes;
use quill_core::{Error, Headers, Metadata, Method, Outgoing, RequestHead, ResponseHead};
use std::sync::Arc;

pub(crate) fn open(
    _: Wire,
    _: &RequestHead,
    _: Arc<Method>,
    _: Arc<WireOptions>,
) -> Result<Opened, Refusal> {
    Err(Refusal::MediaType)
}
pub(crate) fn request(call: &Call) -> RequestHead {
    RequestHead::post(call.method.path())
}
pub(crate) fn unary_request(
    call: &Call,
    _: &dyn Outgoing,
    _: &mut Out,
) -> Result<RequestHead, Error> {
    Ok(request(call))
}

#[derive(Debug)]
pub(crate) struct UnaryEncoder;
impl UnaryEncoder {
    pub(crate) fn new(_: &Call, _: Side) -> Self {
        Self
    }
}
impl Encode for UnaryEncoder {
    fn unary(&mut self, _: Result<&dyn Outgoing, &Error>, _: &Metadata, _: &Metadata, _: &mut Out) {
    }
    fn head(&mut self, _: &Metadata, _: &mut Out) {}
    fn message(&mut self, _: &dyn Outgoing, _: &mut Out) -> Result<(), Error> {
        Ok(())
    }
    fn end(&mut self, _: Result<(), &Error>, _: &Metadata, _: &mut Out) {}
}
#[derive(Debug)]
pub(crate) struct UnaryDecoder;
impl UnaryDecoder {
    pub(crate) fn new(_: &Call, _: Side) -> Self {
        Self
    }
}
impl Decode for UnaryDecoder {
    fn head(&mut self, _: &ResponseHead) -> Result<Metadata, Error> {
        Ok(Metadata::new())
    }
    fn feed(&mut self, _: Bytes) {}
    fn finish(&mut self, _: Option<&Headers>) {}
    fn next(&mut self) -> Result<Option<Event>, Error> {
        Ok(None)
    }
    fn held_bytes(&self) -> usize {
        0
    }
}
