//! Message credits: how many messages each side may still send
//! (docs/protocol.md, "Credits").

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use quill_core::{Error, HttpVersion};

use super::timeout::digits;

pub(super) const CREDITS: &str = "quill-credits";

/// What a side grants when nobody set it, the least a server grants, and so
/// what a client may send before it knows the server's grant.
pub(crate) const CREDITS_DEFAULT: u32 = 16;

/// The credits of one call. A clone belongs to another call: it starts with
/// what was granted at once, and shares no account.
#[derive(Debug)]
pub(crate) struct Credits {
    /// What this side grants at once.
    window: u32,
    /// None where credits were asked for and have no effect (HTTP/1.1).
    ledger: Option<Arc<Ledger>>,
    /// What the other side granted, as this one starts.
    send_at_start: u32,
}

impl Credits {
    /// A client that grants `window` messages.
    pub(crate) fn of_client(window: u32) -> Self {
        Self::new(window.max(1), CREDITS_DEFAULT, HttpVersion::Http2)
    }

    /// A server that was granted `granted` messages; it grants 16 or more.
    pub(super) fn of_server(window: Option<u32>, granted: u32, version: HttpVersion) -> Self {
        let window = window.unwrap_or(CREDITS_DEFAULT).max(CREDITS_DEFAULT);
        Self::new(window, granted, version)
    }

    fn new(window: u32, send_at_start: u32, version: HttpVersion) -> Self {
        // The halves of an HTTP/1.1 exchange do not overlap: no grant could arrive.
        let works = version != HttpVersion::Http1;
        Self {
            window,
            ledger: works.then(|| Arc::new(Ledger::new(send_at_start, window))),
            send_at_start,
        }
    }

    /// What this side grants at once.
    pub(crate) fn window(&self) -> u32 {
        self.window
    }

    /// Whether grants have an effect.
    pub(super) fn works(&self) -> bool {
        self.ledger.is_some()
    }

    pub(super) fn ledger(&self) -> Option<Arc<Ledger>> {
        self.ledger.clone()
    }
}

impl Clone for Credits {
    fn clone(&self) -> Self {
        let ledger = Ledger::new(self.send_at_start, self.window);
        Self {
            window: self.window,
            ledger: self.ledger.as_ref().map(|_| Arc::new(ledger)),
            send_at_start: self.send_at_start,
        }
    }
}

/// The value of `quill-credits`: 1 to 10 digits, at least 1; more than 32 bits
/// hold is as much as they hold.
pub(super) fn decode(value: &[u8]) -> Option<u32> {
    let granted = digits(value).filter(|granted| *granted > 0)?;
    Some(u32::try_from(granted).unwrap_or(u32::MAX))
}

pub(super) fn malformed() -> Error {
    Error::invalid_argument("quill-credits must be a number of messages, 1 to 10 ASCII digits")
}

/// Both accounts of a call, shared by its encoder and its decoder: what one of
/// them grants is what the other may receive.
#[derive(Debug)]
pub(super) struct Ledger {
    /// Messages that we may still send.
    send: AtomicU32,
    /// Messages that the peer may still send.
    receive: AtomicU32,
    /// Counts what moves the call on and the peer's bytes do not show.
    progress: AtomicU32,
    /// The answer came without credits.
    off: AtomicBool,
}

// Relaxed throughout: the two users are tasks of one call, each account has one
// writer in each direction, and no other memory hangs on the numbers.
impl Ledger {
    fn new(send: u32, receive: u32) -> Self {
        Self {
            send: AtomicU32::new(send),
            receive: AtomicU32::new(receive),
            progress: AtomicU32::new(0),
            off: AtomicBool::new(false),
        }
    }

    /// Client: the server answered with this grant, or with none.
    pub(super) fn answered(&self, granted: Option<u32>) {
        match granted {
            // Those sent before count against it.
            Some(granted) => self.credited(granted.saturating_sub(CREDITS_DEFAULT)),
            None => self.off.store(true, Relaxed),
        }
    }

    pub(super) fn is_off(&self) -> bool {
        self.off.load(Relaxed)
    }

    pub(super) fn may_send(&self) -> bool {
        self.is_off() || self.send.load(Relaxed) > 0
    }

    /// A message was sent.
    pub(super) fn sent(&self) {
        let _ = self
            .send
            .fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        self.progress.fetch_add(1, Relaxed);
    }

    /// The peer granted us more.
    pub(super) fn credited(&self, messages: u32) {
        add(&self.send, messages);
    }

    /// We granted the peer more.
    pub(super) fn granted(&self, messages: u32) {
        add(&self.receive, messages);
        self.progress.fetch_add(1, Relaxed);
    }

    /// A message came; false where none was granted.
    pub(super) fn received(&self) -> bool {
        self.is_off()
            || self
                .receive
                .fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1))
                .is_ok()
    }

    pub(super) fn progress(&self) -> u32 {
        self.progress.load(Relaxed)
    }
}

fn add(account: &AtomicU32, messages: u32) {
    let _ = account.fetch_update(Relaxed, Relaxed, |left| Some(left.saturating_add(messages)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_a_number_from_one_on() {
        assert_eq!(decode(b"1"), Some(1));
        assert_eq!(decode(b"4294967295"), Some(u32::MAX));
        assert_eq!(decode(b"9999999999"), Some(u32::MAX));
        for value in ["", "0", "-1", "+1", "x", "1 ", "12345678901"] {
            assert_eq!(decode(value.as_bytes()), None, "{value:?}");
        }
    }

    #[test]
    fn credit_saturates() {
        let ledger = Ledger::new(u32::MAX - 1, 1);
        ledger.credited(u32::MAX);
        ledger.sent();
        assert_eq!(ledger.send.load(Relaxed), u32::MAX - 1);
        ledger.granted(u32::MAX);
        assert!(ledger.received());
        assert_eq!(ledger.receive.load(Relaxed), u32::MAX - 1);
    }

    #[test]
    fn what_a_client_sends_early_counts_against_the_grant() {
        let client = Credits::of_client(4);
        let ledger = client.ledger().unwrap();
        for _ in 0..CREDITS_DEFAULT {
            assert!(ledger.may_send());
            ledger.sent();
        }
        assert!(!ledger.may_send());
        ledger.answered(Some(CREDITS_DEFAULT + 1));
        assert!(ledger.may_send());
        ledger.sent();
        assert!(!ledger.may_send());
    }

    #[test]
    fn a_cloned_call_has_its_own_accounts() {
        let one = Credits::of_client(4);
        let other = one.clone();
        one.ledger().unwrap().answered(None);
        assert!(!other.ledger().unwrap().is_off());
    }

    #[test]
    fn http1_has_no_accounts() {
        let server = Credits::of_server(None, 4, HttpVersion::Http1);
        assert!(server.ledger().is_none());
        assert!(!server.works());
    }
}
