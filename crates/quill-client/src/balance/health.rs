//! Asking servers whether they are healthy, by the standard health service.

use std::time::Duration;

use bytes::Bytes;
use quill_core::{Code, Error, Method, MethodKind, RawCodec, Request, varint};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::keeper::Event;
use crate::client::QuillClient;

/// Every server of gRPC's health service has it, whatever protocol carries it.
static CHECK: Method = Method::new("/grpc.health.v1.Health/Check", MethodKind::Unary);

/// Field 1 of a request: the service's name.
const TAG_SERVICE: u8 = 0x0a;
/// Field 1 of an answer, and its value for a service that takes calls.
const SERVING: [u8; 2] = [0x08, 1];

/// Asks each server regularly whether it takes calls (`grpc.health.v1`), and
/// lets none go to those that don't say so. A server without that service counts
/// as healthy.
#[derive(Clone, Debug)]
#[must_use]
pub struct HealthCheck {
    service: String,
    interval: Duration,
    timeout: Duration,
}

impl HealthCheck {
    /// Asks for this service by its full name; for the server as a whole where
    /// it is empty. Every 5 s, within a second.
    pub fn of(service: impl Into<String>) -> Self {
        Self {
            service: service.into(),
            interval: Duration::from_secs(5),
            timeout: Duration::from_secs(1),
        }
    }

    /// How often to ask; 5 s unless set.
    pub fn every(mut self, interval: Duration) -> Self {
        self.interval = interval.max(Duration::from_millis(10));
        self
    }

    /// How long an answer may take; a second unless set.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Asks one server until it is told to stop.
    pub(super) fn start(
        &self,
        id: u64,
        client: QuillClient,
        tell: mpsc::Sender<Event>,
    ) -> Checking {
        let check = self.clone();
        let asking = tokio::spawn(async move {
            loop {
                let is_serving = check.ask(&client).await;
                if tell.send(Event::Health(id, is_serving)).await.is_err() {
                    return;
                }
                tokio::time::sleep(check.interval).await;
            }
        });
        Checking(asking.abort_handle())
    }

    async fn ask(&self, client: &QuillClient) -> bool {
        let request = Request::new(self.request()).with_timeout(self.timeout);
        let answer = client.unary(&CHECK, RawCodec, RawCodec, request).await;
        is_serving(answer.map(quill_core::Response::into_inner))
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

fn is_serving(answer: Result<Bytes, Error>) -> bool {
    match answer {
        Ok(answer) => answer.as_ref() == SERVING,
        Err(error) => error.code() == Code::Unimplemented,
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
        let answer = |bytes: &'static [u8]| is_serving(Ok(Bytes::from_static(bytes)));
        assert!(answer(&[8, 1]));
        assert!(!answer(&[]) && !answer(&[8, 2]) && !answer(&[8, 3]));
        assert!(is_serving(Err(Error::unimplemented("no such service"))));
        assert!(!is_serving(Err(Error::unavailable("down"))));
    }
}
