//! Credits of one call, shared by its two halves.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use quill_core::{Error, Metadata};
use quill_wire::Event;

use crate::receive::{Receiver, gave_up, no_end};

/// The credits of a call and the half that brings them in.
///
/// Credit for what we send arrives among the peer's messages, and credit for
/// what the peer sends leaves among ours. So both halves hold this: the
/// application reads messages from it and so makes room for more; the sending
/// half, when it may not send, reads it too, to find credit. Messages found
/// that way wait here, never more than the peer was granted.
#[derive(Clone)]
pub struct Credits(Arc<Mutex<State>>);

struct State {
    receiver: Option<Receiver>,
    waiting: VecDeque<Bytes>,
    /// How the peer's messages ended; credit may still follow.
    outcome: Option<Result<Metadata, Error>>,
    /// Nothing at all follows any more.
    closed: bool,
    canceled: bool,
    /// How many messages the peer may have under way towards us.
    window: u32,
    /// Messages taken by the application that the peer was not yet told of.
    taken: u32,
    /// Credit that came in for our sending half.
    received: u32,
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
        Self(Arc::new(Mutex::new(State {
            receiver,
            waiting: VecDeque::new(),
            outcome: None,
            closed: false,
            canceled: false,
            window: window.max(1),
            taken: 0,
            received: 0,
            application: None,
            sender: None,
        })))
    }

    /// Sets the receiving half.
    pub fn attach(&self, receiver: Receiver) {
        let mut state = self.lock();
        state.receiver = Some(receiver);
        wake(&mut state.sender);
        wake(&mut state.application);
    }

    /// The next message for the application; `Ok(None)` at the good end.
    pub(crate) fn poll_message(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Error>>> {
        let mut state = self.lock();
        while state.waiting.is_empty() && state.outcome.is_none() {
            if state.poll_receiver(cx).is_pending() {
                keep(&mut state.application, cx);
                return Poll::Pending;
            }
        }
        // The transport now knows our waker, not the sender's: it must look again.
        wake(&mut state.sender);
        if let Some(message) = state.waiting.pop_front() {
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

    pub(crate) fn take_trailers(&self) -> Metadata {
        match &mut self.lock().outcome {
            Some(Ok(trailers)) => std::mem::take(trailers),
            _ => Metadata::new(),
        }
    }

    /// What the sending half has to do; `Pending` while that is nothing. Grants
    /// come half a window at a time, so that most messages cost no frame.
    pub(crate) fn poll_dues(&self, cx: &mut Context<'_>) -> Poll<Dues> {
        let mut state = self.lock();
        loop {
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
                return Poll::Ready(dues);
            }
            let full = state.waiting.len() >= state.window as usize;
            if full || state.poll_receiver(cx).is_pending() {
                keep(&mut state.sender, cx);
                return Poll::Pending;
            }
            wake(&mut state.application);
        }
    }

    /// Whether the peer has sent its last message.
    pub(crate) fn messages_ended(&self) -> bool {
        self.lock().outcome.is_some()
    }

    /// The sending half is over and will not look for credit any more.
    pub(crate) fn sender_done(&self) {
        let mut state = self.lock();
        state.sender = None;
        wake(&mut state.application);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes one event of the receiving half.
    fn poll_receiver(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(receiver) = &mut self.receiver else {
            return Poll::Pending;
        };
        match std::task::ready!(receiver.poll_event(cx)) {
            Ok(Some(Event::Message(message))) => self.waiting.push_back(message),
            Ok(Some(Event::Credit(more))) => {
                self.received = self.received.saturating_add(more);
                wake(&mut self.sender);
            }
            Ok(Some(Event::Cancel)) => {
                self.canceled = true;
                self.close(Err(gave_up()));
            }
            Ok(Some(Event::End(Ok(trailers)))) => {
                self.outcome = Some(Ok(trailers));
                wake(&mut self.sender);
            }
            Ok(Some(Event::End(Err(error)))) | Err(error) => self.close(Err(error)),
            Ok(None) => self.close(Err(no_end())),
        }
        Poll::Ready(())
    }

    /// Nothing follows; `outcome` counts unless the messages had ended before.
    fn close(&mut self, outcome: Result<Metadata, Error>) {
        self.closed = true;
        self.receiver = None;
        self.outcome.get_or_insert(outcome);
        wake(&mut self.sender);
        wake(&mut self.application);
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

fn wake(slot: &mut Option<Waker>) {
    if let Some(waker) = slot.take() {
        waker.wake();
    }
}
