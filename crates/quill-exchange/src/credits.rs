//! Credits of one call, shared by its two halves.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use quill_core::{Error, Held, Metadata};
use quill_wire::Event;

use crate::receive::{Receiver, exhausted, gave_up, no_end};

/// The sending half looks for credit behind messages that the application has
/// not taken while these are fewer bytes. A count alone would not bound them: a
/// few bytes of compressed messages make many.
const AHEAD_BYTES_MAX: usize = 1024 * 1024;

/// The credits of a call and the half that brings them in.
///
/// Credit for what we send arrives among the peer's messages, and credit for
/// what the peer sends leaves among ours. So both halves hold this: the
/// application reads messages from it and so makes room for more; the sending
/// half, when it may not send, reads it too, to find credit. Messages found
/// that way wait here: never more than the peer was granted, nor more than one
/// beyond 1 MiB.
#[derive(Clone)]
pub struct Credits(Arc<Mutex<State>>);

struct State {
    receiver: Option<Receiver>,
    waiting: VecDeque<Bytes>,
    waiting_bytes: usize,
    /// Bytes of a message that was taken, and waits for the end of its half.
    kept_bytes: usize,
    /// The messages that wait, within the call's budget.
    held: Option<Held>,
    /// How the peer's messages ended; credit may still follow.
    outcome: Option<Result<Metadata, Error>>,
    /// Nothing at all follows any more.
    closed: bool,
    canceled: bool,
    /// The peer broke the protocol or a limit: the call ends with this, also when
    /// its messages had ended well.
    broken: Option<Error>,
    /// How many messages the peer may have under way towards us.
    window: u32,
    /// Messages taken by the application that the peer was not yet told of.
    taken: u32,
    /// Credit that came in for our sending half.
    received: u32,
    waiters: Arc<Waiters>,
    /// Wakes all of `waiters`.
    waker: Waker,
}

/// Who waits for what comes in. The transport keeps one waker, and only what
/// comes shows whose it is: so it is given one that wakes both. With the waker
/// of whoever looked last, an application that has turned to something else
/// would leave the sending half asleep over its credit, and the other way round.
#[derive(Default)]
struct Waiters(Mutex<Wakers>);

#[derive(Default)]
struct Wakers {
    application: Option<Waker>,
    sender: Option<Waker>,
}

/// What the sending half has to do about credit.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Dues {
    /// Grant the peer this many messages more.
    pub(crate) grant: u32,
    /// We may send this many messages more.
    pub(crate) received: u32,
    /// The peer gave the call up.
    pub(crate) canceled: bool,
    /// No credit can come in any more.
    pub(crate) closed: bool,
}

impl Credits {
    /// Credits of a call whose peer was granted `window` messages. The receiving
    /// half may come later, with [`attach`](Self::attach).
    #[must_use]
    pub fn new(window: u32, receiver: Option<Receiver>) -> Self {
        let waiters = Arc::new(Waiters::default());
        Self(Arc::new(Mutex::new(State {
            held: receiver.as_ref().and_then(Receiver::share),
            receiver,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            kept_bytes: 0,
            outcome: None,
            closed: false,
            canceled: false,
            broken: None,
            window: window.max(1),
            taken: 0,
            received: 0,
            waker: Waker::from(Arc::clone(&waiters)),
            waiters,
        })))
    }

    /// Sets the receiving half.
    pub fn attach(&self, receiver: Receiver) {
        let mut state = self.lock();
        state.held = receiver.share();
        state.receiver = Some(receiver);
        state.waiters.wake_all();
    }

    /// The next message for the application; `Ok(None)` at the good end.
    pub(crate) fn poll_message(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Error>>> {
        let mut state = self.lock();
        while state.waiting.is_empty() && state.outcome.is_none() {
            keep(&mut state.waiters.lock().application, cx);
            if state.poll_receiver().is_pending() {
                return Poll::Pending;
            }
        }
        // There may be more to grant, or room to look for credit again.
        state.waiters.wake_sender();
        if let Some(message) = state.waiting.pop_front() {
            state.waiting_bytes = state.waiting_bytes.saturating_sub(message.len());
            state.hold_waiting();
            state.taken = state.taken.saturating_add(1);
            return Poll::Ready(Some(Ok(message)));
        }
        match &mut state.outcome {
            Some(Err(_)) => {
                let failed = state.outcome.replace(Ok(Metadata::new()));
                Poll::Ready(failed.and_then(Result::err).map(Err))
            }
            _ => Poll::Ready(None),
        }
    }

    /// Counts a message that was taken but waits for the end of its half, of so
    /// many bytes; 0 once it is used.
    pub(crate) fn keep(&self, bytes: usize) {
        let mut state = self.lock();
        state.kept_bytes = bytes;
        state.hold_waiting();
    }

    pub(crate) fn take_trailers(&self) -> Metadata {
        match &mut self.lock().outcome {
            Some(Ok(trailers)) => std::mem::take(trailers),
            _ => Metadata::new(),
        }
    }

    /// What the sending half has to do; `Pending` while that is nothing. Grants
    /// come half a window at a time, so that most messages cost no frame.
    ///
    /// # Errors
    /// Once: what the peer broke; the call is over.
    pub(crate) fn poll_dues(&self, cx: &mut Context<'_>) -> Poll<Result<Dues, Error>> {
        let mut state = self.lock();
        loop {
            if let Some(error) = state.broken.take() {
                return Poll::Ready(Err(error));
            }
            let mut dues = Dues {
                grant: 0,
                received: std::mem::take(&mut state.received),
                canceled: state.canceled,
                closed: state.closed,
            };
            if state.taken >= state.window.div_ceil(2) && state.outcome.is_none() {
                dues.grant = std::mem::take(&mut state.taken);
            }
            if dues != Dues::default() {
                return Poll::Ready(Ok(dues));
            }
            keep(&mut state.waiters.lock().sender, cx);
            let full = state.waiting.len() >= state.window as usize
                || state.waiting_bytes >= AHEAD_BYTES_MAX;
            if full || state.poll_receiver().is_pending() {
                return Poll::Pending;
            }
            state.hold_waiting();
            state.waiters.wake_application();
        }
    }

    /// Whether the peer has sent its last message.
    pub(crate) fn messages_ended(&self) -> bool {
        self.lock().outcome.is_some()
    }

    /// The sending half is over and will not look for credit any more.
    pub(crate) fn sender_done(&self) {
        let state = self.lock();
        state.waiters.lock().sender = None;
        state.waiters.wake_application();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes one event of the receiving half.
    fn poll_receiver(&mut self) -> Poll<()> {
        let Some(receiver) = &mut self.receiver else {
            return Poll::Pending;
        };
        let mut cx = Context::from_waker(&self.waker);
        match std::task::ready!(receiver.poll_event(&mut cx)) {
            Ok(Some(Event::Message(message))) => {
                self.waiting_bytes = self.waiting_bytes.saturating_add(message.len());
                self.waiting.push_back(message);
            }
            Ok(Some(Event::Credit(more))) => {
                self.received = self.received.saturating_add(more);
                self.waiters.wake_sender();
            }
            Ok(Some(Event::Cancel)) => {
                self.canceled = true;
                self.close(Err(gave_up()));
            }
            Ok(Some(Event::End(Ok(trailers)))) => {
                self.outcome = Some(Ok(trailers));
                self.waiters.wake_sender();
            }
            Ok(Some(Event::End(Err(error)))) => self.close(Err(error)),
            Err(error) => self.break_off(error),
            Ok(None) => self.close(Err(no_end())),
        }
        Poll::Ready(())
    }

    /// Counts the messages that wait. Without the budget for them they are
    /// dropped, and the call with them.
    fn hold_waiting(&mut self) {
        let Some(held) = &mut self.held else { return };
        if let Err(over) = held.set(self.waiting_bytes.saturating_add(self.kept_bytes)) {
            self.waiting = VecDeque::new();
            self.waiting_bytes = 0;
            self.held = None;
            self.outcome = None;
            self.break_off(exhausted(over));
        }
    }

    /// Ends the call for both its halves: the application reads why, and the
    /// sending half says it to the peer.
    fn break_off(&mut self, error: Error) {
        self.broken = Some(Error::new(error.code(), error.message().to_owned()));
        self.close(Err(error));
    }

    /// Nothing follows; `outcome` counts unless the messages had ended before.
    fn close(&mut self, outcome: Result<Metadata, Error>) {
        self.closed = true;
        self.receiver = None;
        self.outcome.get_or_insert(outcome);
        self.waiters.wake_all();
    }
}

impl fmt::Debug for Credits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("Credits")
            .field("window", &state.window)
            .field("waiting", &state.waiting.len())
            .finish_non_exhaustive()
    }
}

fn keep(slot: &mut Option<Waker>, cx: &Context<'_>) {
    match slot {
        Some(waker) => waker.clone_from(cx.waker()),
        None => *slot = Some(cx.waker().clone()),
    }
}

impl Waiters {
    fn lock(&self) -> MutexGuard<'_, Wakers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_sender(&self) {
        let sender = self.lock().sender.take();
        sender.into_iter().for_each(Waker::wake);
    }

    fn wake_application(&self) {
        let application = self.lock().application.take();
        application.into_iter().for_each(Waker::wake);
    }

    fn wake_all(&self) {
        self.wake_sender();
        self.wake_application();
    }
}

impl Wake for Waiters {
    fn wake(self: Arc<Self>) {
        self.wake_all();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_all();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::atomic::{AtomicBool, Ordering};

    use quill_core::{Code, Format, Method, MethodKind, ResponseHead};
    use quill_transport::{Body, Chunk, RecvBody, TransportError};
    use quill_wire::{Call, Decode, Side, Wire, WireOptions};

    use super::*;

    const WINDOW: u32 = 16;

    /// A body that is fed, and keeps the last waker alone, as transports do.
    #[derive(Clone, Default)]
    struct Fed(Arc<Mutex<(VecDeque<Bytes>, Option<Waker>)>>);

    impl Fed {
        fn feed(&self, bytes: impl Into<Bytes>) {
            let mut fed = self.0.lock().unwrap();
            fed.0.push_back(bytes.into());
            if let Some(waker) = fed.1.take() {
                waker.wake();
            }
        }
    }

    impl Body for Fed {
        fn poll_chunk(
            self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Chunk, TransportError>>> {
            let mut fed = self.0.lock().unwrap();
            match fed.0.pop_front() {
                Some(bytes) => Poll::Ready(Some(Ok(Chunk::Data(bytes)))),
                None => {
                    fed.1 = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        }
    }

    #[derive(Default)]
    struct Flag(AtomicBool);

    impl Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    impl Flag {
        fn was_woken(&self) -> bool {
            self.0.swap(false, Ordering::SeqCst)
        }
    }

    /// A client's half of a call, its answer begun.
    fn credits(body: Fed) -> Credits {
        let mut options = WireOptions::default();
        options.credits = Some(WINDOW);
        let method = Arc::new(Method::new("/a.B/C", MethodKind::BidiStreaming));
        let call = Call::outgoing(Wire::Quill, method, Format::Proto, Arc::new(options));
        let mut decoder = call.decoder(Side::Client);
        let mut head = ResponseHead::new(200);
        for (name, value) in [
            ("content-type", "application/quill-stream+proto"),
            ("quill-credits", "16"),
        ] {
            head.headers.append(name, value);
        }
        decoder.head(&head).unwrap();
        let receiver = Receiver::new(decoder, RecvBody::new(body), Side::Client);
        Credits::new(WINDOW, Some(receiver))
    }

    /// A DATA frame of `payload_bytes`.
    fn data(payload_bytes: u32) -> Vec<u8> {
        let mut frame = Vec::new();
        let mut rest = payload_bytes;
        while rest >= 0x80 {
            frame.push((rest & 0x7f) as u8 | 0x80);
            rest >>= 7;
        }
        frame.extend([rest as u8, 0x01]);
        frame.resize(frame.len() + payload_bytes as usize, 0);
        frame
    }

    #[test]
    fn what_is_broken_after_the_last_message_ends_the_call() {
        let broken: [(&[u8], _); 2] = [
            // A message after END_STREAM, and CREDIT without end.
            (&[1, 0x01, 7], Code::Internal),
            (&[1, 0x08, 1].repeat(2000), Code::ResourceExhausted),
        ];
        for (bytes, code) in broken {
            let body = Fed::default();
            let credits = credits(body.clone());
            let mut cx = Context::from_waker(Waker::noop());
            body.feed(&[0, 0x02][..]);
            assert!(matches!(credits.poll_message(&mut cx), Poll::Ready(None)));
            body.feed(bytes.to_vec());
            let error = loop {
                match credits.poll_dues(&mut cx) {
                    Poll::Ready(Ok(_)) => {}
                    Poll::Ready(Err(error)) => break error,
                    Poll::Pending => panic!("nothing was wrong"),
                }
            };
            assert_eq!(error.code(), code, "{error}");
        }
    }

    #[test]
    fn what_comes_in_wakes_whom_it_is_for_whoever_looked_last() {
        let body = Fed::default();
        let credits = credits(body.clone());
        let (application, sender) = (Arc::new(Flag::default()), Arc::new(Flag::default()));
        let wakers = [&application, &sender].map(|flag| Waker::from(Arc::clone(flag)));
        let [mut for_application, mut for_sender] = wakers.each_ref().map(Context::from_waker);

        assert!(credits.poll_dues(&mut for_sender).is_pending());
        assert!(credits.poll_message(&mut for_application).is_pending());
        // The application turns to something else; credit must not wait for it.
        body.feed(&[1, 0x08, 3][..]);
        assert!(sender.was_woken());
        let Poll::Ready(Ok(dues)) = credits.poll_dues(&mut for_sender) else {
            panic!("credit has come");
        };
        assert_eq!(dues.received, 3);

        assert!(credits.poll_message(&mut for_application).is_pending());
        assert!(credits.poll_dues(&mut for_sender).is_pending());
        application.was_woken();
        // The sending half waits for room; a message must not wait for that.
        body.feed(data(1));
        assert!(application.was_woken());
        assert!(credits.poll_message(&mut for_application).is_ready());
    }

    #[test]
    fn what_is_read_ahead_is_bounded_in_bytes() {
        let body = Fed::default();
        let credits = credits(body.clone());
        for _ in 0..WINDOW {
            body.feed(data(600 * 1024));
        }
        body.feed(&[1, 0x08, 3][..]);
        let flag = Arc::new(Flag::default());
        let waker = Waker::from(Arc::clone(&flag));
        let mut cx = Context::from_waker(&waker);
        assert!(credits.poll_dues(&mut cx).is_pending());
        assert_eq!(credits.lock().waiting.len(), 2);
        let mut received = 0;
        for _ in 0..WINDOW {
            assert!(credits.poll_message(&mut cx).is_ready());
            assert!(flag.was_woken());
            while let Poll::Ready(dues) = credits.poll_dues(&mut cx) {
                received += dues.unwrap().received;
            }
        }
        assert_eq!(received, 3);
        assert_eq!(credits.lock().waiting_bytes, 0);
    }
}
