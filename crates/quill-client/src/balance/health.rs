//! Asking servers whether they are healthy, by the standard health service.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quill_core::{Code, Error, Method, MethodKind, RawCodec, Request, varint};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::keeper::Event;
use super::kept::Failure;
use crate::client::QuillClient;
use crate::layers::Layers;
use crate::token::Tokens;

/// Every server of gRPC's health service has it, whatever protocol carries it.
static CHECK: Method = Method::new("/grpc.health.v1.Health/Check", MethodKind::Unary);

/// Field 1 of a request: the service's name.
const TAG_SERVICE: u8 = 0x0a;
/// Field 1 of an answer, and its value for a service that takes calls.
const SERVING: [u8; 2] = [0x08, 1];

/// Asks each server regularly whether it takes calls (`grpc.health.v1`), and
/// lets none go to those that don't say so. A server without that service counts
/// as healthy. The client's tokens and metadata go with each check.
#[derive(Clone, Debug)]
#[must_use]
pub struct HealthCheck {
    service: String,
    interval: Duration,
    timeout: Duration,
    /// What is around a check: the client's tokens.
    layers: Layers,
}

impl HealthCheck {
    /// Asks for this service by its full name; for the server as a whole where
    /// it is empty. Every 5 s, within a second.
    pub fn of(service: impl Into<String>) -> Self {
        Self {
            service: service.into(),
            interval: Duration::from_secs(5),
            timeout: Duration::from_secs(1),
            layers: Layers::default(),
        }
    }

    /// How often to ask; 5 s unless set.
    pub fn every(mut self, interval: Duration) -> Self {
        self.interval = interval.max(super::INTERVAL_MIN);
        self
    }

    /// How long an answer may take; a second unless set.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Has each check carry a token.
    pub(super) fn carry(&mut self, tokens: Option<Tokens>) {
        self.layers.tokens = tokens;
    }

    /// Asks the server of `client` until it is told to stop.
    pub(super) fn start(
        &self,
        id: u64,
        client: &QuillClient,
        tell: mpsc::Sender<Event>,
    ) -> Checking {
        let check = self.clone();
        let client = client.in_binary().through(&self.layers);
        let asking = tokio::spawn(async move {
            loop {
                let health = check.ask(&client).await;
                if tell.send(Event::Health(id, health)).await.is_err() {
                    return;
                }
                tokio::time::sleep(check.interval).await;
            }
        });
        Checking(asking.abort_handle())
    }

    async fn ask(&self, client: &QuillClient) -> Result<(), Failure> {
        let request = Request::new(self.request()).with_timeout(self.timeout);
        let answer = client.unary(&CHECK, RawCodec, RawCodec, request).await;
        read(answer.map(quill_core::Response::into_inner))
    }

    fn request(&self) -> Bytes {
        if self.service.is_empty() {
            return Bytes::new();
        }
        let name = self.service.as_bytes();
        let mut length = [0; varint::BYTES_MAX];
        let digits = varint::encode(u32::try_from(name.len()).unwrap_or(u32::MAX), &mut length);
        let length = length.get(..digits).unwrap_or_default();
        Bytes::from([&[TAG_SERVICE], length, name].concat())
    }
}

/// What an answer says; the error is why no calls are to go there.
fn read(answer: Result<Bytes, Error>) -> Result<(), Failure> {
    match answer {
        Ok(answer) if answer.as_ref() == SERVING => Ok(()),
        Ok(_) => Err(Failure::NotServing),
        Err(error) if error.code() == Code::Unimplemented => Ok(()),
        Err(error) => Err(Failure::Unchecked(Arc::new(error))),
    }
}

/// The asking of one server; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Checking(AbortHandle);

impl Drop for Checking {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_name_the_service() {
        assert_eq!(HealthCheck::of("").request(), "");
        assert_eq!(HealthCheck::of("a.B").request(), "\x0a\x03a.B");
        let long = HealthCheck::of("x".repeat(300)).request();
        assert_eq!(&long[..3], [TAG_SERVICE, 0xac, 0x02]);
    }

    #[test]
    fn only_one_answer_is_a_good_one() {
        let answer = |bytes: &'static [u8]| read(Ok(Bytes::from_static(bytes)));
        assert!(answer(&[8, 1]).is_ok());
        for other in [&[][..], &[8, 2], &[8, 3]] {
            let failure = answer(other).unwrap_err().to_string();
            assert!(failure.contains("takes no calls"), "{failure}");
        }
        assert!(read(Err(Error::unimplemented("no such service"))).is_ok());
        let failure = read(Err(Error::unauthenticated("who?"))).unwrap_err();
        let error = failure.to_error();
        assert_eq!(error.code(), Code::Unavailable);
        assert!(error.message().contains("who?"), "{error}");
    }
}
