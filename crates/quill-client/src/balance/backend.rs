//! One server among several.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use quill_core::Error;
use quill_transport::Endpoint;
use tokio::sync::mpsc;

use super::keeper::Event;
use super::outlier::Record;
use crate::breaker::FAULTS;
use crate::client::QuillClient;
use crate::messages::Watch;

/// A server, and the client of it alone.
pub(super) struct Backend {
    pub(super) id: u64,
    pub(super) endpoint: Endpoint,
    pub(super) client: QuillClient,
    pub(super) record: Record,
    /// Failures in a row that are to be told; `None` where nobody wants to know.
    pub(super) in_a_row: Option<u32>,
    under_way: AtomicUsize,
    /// The keeper was told that its connection is lost.
    is_told: AtomicBool,
    tell: mpsc::Sender<Event>,
}

impl Backend {
    pub(super) fn new(
        id: u64,
        endpoint: Endpoint,
        client: QuillClient,
        in_a_row: Option<u32>,
        tell: mpsc::Sender<Event>,
    ) -> Self {
        Self {
            id,
            endpoint,
            client,
            record: Record::default(),
            in_a_row,
            under_way: AtomicUsize::new(0),
            is_told: AtomicBool::new(false),
            tell,
        }
    }

    /// Whether a call would find a connection. Else the keeper is told, once.
    pub(super) fn is_connected(&self) -> bool {
        let channel = self.client.channel();
        let is_connected = channel.is_ok_and(quill_transport::Channel::is_connected);
        if !is_connected
            && !self.is_told.swap(true, Ordering::AcqRel)
            && self.tell.try_send(Event::Lost(self.id)).is_err()
        {
            // There was no room: another call tells.
            self.heard();
        }
        is_connected
    }

    /// The keeper has taken note of what it was told.
    pub(super) fn heard(&self) {
        self.is_told.store(false, Ordering::Release);
    }

    /// Calls that are under way.
    pub(super) fn load(&self) -> usize {
        self.under_way.load(Ordering::Relaxed)
    }

    /// Tells the keeper what a call met with. When it has so much to hear that
    /// there is no room, another call will meet with the same.
    pub(super) fn tell(&self, event: Event) {
        let _ = self.tell.try_send(event);
    }
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backend")
            .field("endpoint", &self.endpoint)
            .field("address", &self.endpoint.address())
            .field("load", &self.load())
            .finish_non_exhaustive()
    }
}

/// A call that is under way at a server.
pub(super) struct Use(Arc<Backend>);

impl Use {
    pub(super) fn of(backend: Arc<Backend>) -> Self {
        backend.under_way.fetch_add(1, Ordering::Relaxed);
        Self(backend)
    }
}

impl Watch for Use {
    fn end(&mut self, result: Result<(), &Error>) {
        let backend = &self.0;
        let Some(limit) = backend.in_a_row else {
            return;
        };
        let failed = result.is_err_and(|error| FAULTS.contains(&error.code()));
        let in_a_row = backend.record.note(failed);
        // Again and again, should there have been no room to tell.
        if failed && in_a_row.is_multiple_of(limit) {
            backend.tell(Event::Suspect(backend.id));
        }
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told_again_where_there_was_no_room() {
        let (tell, mut told) = mpsc::channel(1);
        let url = "http://localhost:1";
        let endpoint = Endpoint::parse(url).unwrap();
        let client = QuillClient::new(url);
        let backend = Arc::new(Backend::new(7, endpoint, client, Some(3), tell));
        let error = Error::unavailable("down");
        let fail = |times| {
            for _ in 0..times {
                Use::of(Arc::clone(&backend)).end(Err(&error));
            }
        };
        backend.tell(Event::Lost(7));
        fail(3);
        assert!(matches!(told.try_recv(), Ok(Event::Lost(7))));
        told.try_recv().unwrap_err();
        fail(2);
        told.try_recv().unwrap_err();
        fail(1);
        assert!(matches!(told.try_recv(), Ok(Event::Suspect(7))));
        Use::of(backend).end(Ok(()));
        told.try_recv().unwrap_err();
    }
}
