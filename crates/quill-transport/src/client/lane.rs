//! Very many exchanges on one connection, made in the connection's own task.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use quill_core::{Headers, HttpVersion, RequestHead, ResponseHead};
use quill_h2::{Connection, ErrorCode, Event, Key, OpenError, Sent};
use tokio::time::{Instant, timeout};

use super::dial::{dial, took_too_long};
use super::endpoint::Endpoint;
use super::multiplexed;
use super::options::ClientOptions;
use crate::error::{TransportError, TransportErrorKind};
use crate::fields;
use crate::h2::{EVENTS_MAX, Link, ROUNDS_MAX, reset_error};
use crate::io::Io;
use crate::tls::ClientTls;

/// A request whose body is there as a whole, to be sent any number of times: clones
/// share both parts.
#[derive(Clone, Debug)]
pub struct LaneRequest {
    head: Arc<RequestHead>,
    body: Bytes,
}

impl LaneRequest {
    /// A request to this endpoint, whose authority and prefix it gets as
    /// [`Lease::send`](super::Lease::send) says.
    ///
    /// # Errors
    /// Its head can't be sent.
    pub fn new(
        endpoint: &Endpoint,
        mut head: RequestHead,
        body: Bytes,
    ) -> Result<Self, TransportError> {
        endpoint.complete(&mut head);
        head.version = HttpVersion::Http2;
        fields::check_request(&head)?;
        let head = Arc::new(head);
        Ok(Self { head, body })
    }

    /// Keeps the head of `other` in place of its own, if they are equal: of many
    /// requests most have the same.
    pub fn share_head(&mut self, other: &Self) {
        if self.head == other.head {
            self.head = Arc::clone(&other.head);
        }
    }
}

/// What came on an exchange of a [`Lane`].
#[derive(Debug)]
pub enum Part {
    /// The answer's head; no interim one.
    Head(ResponseHead),
    /// Bytes of its body.
    Data(Bytes),
    /// Its end, with trailers if there were any. Nothing follows.
    End(Option<Headers>),
    /// It broke. Nothing follows.
    Failed(TransportError),
}

/// Who makes the exchanges of a [`Lane`], each in one of its places, and reads what
/// comes. All of it is done in the lane's task, so nothing here may block.
pub trait Caller {
    /// Begins an exchange in this place, which is free: true when it did, and
    /// [`request`](Self::request) then gives what is to be sent; false when none will
    /// follow in this run.
    fn poll_begin(&mut self, place: usize, cx: &mut Context<'_>) -> Poll<bool>;

    /// The request of the exchange in this place; `None` gives it up.
    fn request(&self, place: usize) -> Option<&LaneRequest>;

    /// Takes what came; whether the exchange goes on. If not, it is reset unless it has
    /// ended, and the place is free.
    fn take(&mut self, place: usize, part: Part) -> bool;

    /// A place whose exchange has taken too long, one at a time: it is reset, and the
    /// place is free.
    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<usize>;

    /// The connection takes no further exchanges: none is begun until this run ends,
    /// which it does with those that are under way. Told in each turn.
    fn stand_still(&mut self) {}
}

/// One HTTP/2 connection that makes exchanges one after the other in a number of
/// places, without a task, a queue or a wake-up for each: for who makes very many and
/// looks at each of them, such as a load generator. Everybody else has a
/// [`Channel`](super::Channel).
pub struct Lane {
    link: Link<Io>,
    scheme: &'static str,
    places: Vec<Place>,
    /// The places of the engine's streams, by their slots.
    streams: Vec<usize>,
    free: Vec<usize>,
    /// Places whose exchanges wait for a stream.
    waiting: VecDeque<usize>,
    /// Places whose bodies wait for their turn to be sent.
    unsent: VecDeque<usize>,
    /// The connection takes no further exchanges.
    is_closing: bool,
}

/// A place: free, waiting for a stream, or with one.
#[derive(Default)]
struct Place {
    stream: Option<Key>,
    /// What is still to be sent.
    rest: Bytes,
}

impl Lane {
    /// Connects, and waits for the server's settings; `None` when the server chose
    /// HTTP/1.1 in the TLS handshake. Of `options`, those for pings do not apply: who
    /// makes exchanges all the time notices silence.
    ///
    /// # Errors
    /// No connection can be made, or it speaks no HTTP/2.
    pub async fn connect(
        endpoint: &Endpoint,
        options: &ClientOptions,
        tls: Option<&ClientTls>,
        places: usize,
    ) -> Result<Option<Self>, TransportError> {
        let limit = options.connect_timeout;
        let connecting = async {
            let dialed = dial(endpoint, options, tls).await?;
            if dialed.version == HttpVersion::Http1 {
                return Ok(None);
            }
            let engine = Connection::client(multiplexed::config(options));
            let waiting_bytes_max = options.http2_send_buffer_bytes_max;
            let mut lane = Self {
                link: Link::new(engine, dialed.io, Bytes::new(), waiting_bytes_max),
                scheme: endpoint.scheme(),
                places: std::iter::repeat_with(Place::default)
                    .take(places)
                    .collect(),
                streams: Vec::new(),
                free: (0..places).rev().collect(),
                waiting: VecDeque::new(),
                unsent: VecDeque::new(),
                is_closing: false,
            };
            let greeted = poll_fn(|cx| lane.poll(&mut Nobody, cx)).await;
            greeted.map_err(|error| multiplexed::unbegun(endpoint, Some(error.into())))?;
            Ok(Some(lane))
        };
        timeout(limit, connecting)
            .await
            .unwrap_or_else(|_| Err(took_too_long(endpoint, limit)))
    }

    /// Makes exchanges until the caller has no more and the last has ended. May be
    /// called again then.
    ///
    /// # Errors
    /// The connection has ended. What was under way has failed; of that, what the
    /// server surely did not begin with says so
    /// ([`TransportError::maybe_processed`]).
    pub async fn run(&mut self, caller: &mut impl Caller) -> Result<(), TransportError> {
        let ended = poll_fn(|cx| self.poll(caller, cx)).await;
        if let Err(error) = &ended {
            for place in std::mem::take(&mut self.waiting) {
                let _ = caller.take(place, Part::Failed(error.clone().unprocessed()));
            }
            for place in 0..self.places.len() {
                if self
                    .places
                    .get(place)
                    .is_some_and(|place| place.stream.is_some())
                {
                    let _ = caller.take(place, Part::Failed(error.clone()));
                }
            }
        }
        ended
    }

    /// Says goodbye, as far as the socket takes it at once.
    pub async fn close(mut self) {
        self.link.engine.goaway(ErrorCode::NO_ERROR);
        // Who does not read it has the end of the connection to see.
        let _ = poll_fn(|cx| Poll::Ready(self.link.write(cx))).await;
    }

    fn poll(
        &mut self,
        caller: &mut impl Caller,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), TransportError>> {
        let mut input = self.link.begin();
        let polled = self.turn(&mut input, caller, cx);
        self.link.end(input);
        polled
    }

    /// One turn: reads, begins, sends, writes.
    fn turn(
        &mut self,
        input: &mut BytesMut,
        caller: &mut impl Caller,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), TransportError>> {
        let mut events = 0;
        for _ in 0..ROUNDS_MAX {
            if events > EVENTS_MAX {
                break;
            }
            let read = self.read(input, caller, cx)?;
            events += read.unwrap_or_default();
            while let Poll::Ready(place) = caller.poll_late(cx) {
                self.reset(place);
            }
            let is_done = self.begin(caller, cx);
            if self.is_closing {
                caller.stand_still();
            }
            self.send();
            let is_written = self.link.write(cx).map_err(|error| broken(&error))?;
            if self.link.read_ended {
                return Poll::Ready(Err(closed("the server closed the connection")));
            }
            let engine = &self.link.engine;
            if engine.streams_open() == 0 {
                if self.is_closing {
                    let message = "the connection takes no more requests";
                    return Poll::Ready(Err(closed(message)));
                }
                if is_done && engine.is_greeted() && self.waiting.is_empty() {
                    return Poll::Ready(Ok(()));
                }
            }
            let may_send = is_written && !self.unsent.is_empty();
            if read.is_none() && !may_send && !self.link.owes_read() {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Reads once and hands on what came; how many events that were, if something did.
    fn read(
        &mut self,
        input: &mut BytesMut,
        caller: &mut impl Caller,
        cx: &mut Context<'_>,
    ) -> Result<Option<usize>, TransportError> {
        if !self.link.read(input, cx).map_err(|error| broken(&error))? {
            return Ok(None);
        }
        self.link.engine.advance(Instant::now().into_std());
        let mut events = 0;
        while let Some(event) = self.link.engine.receive(input) {
            self.take(event, caller)?;
            events += 1;
        }
        Ok(Some(events))
    }

    fn take(&mut self, event: Event, caller: &mut impl Caller) -> Result<(), TransportError> {
        match event {
            Event::Response { key, head, end, .. } => {
                self.give(key, Part::Head(head), caller);
                if end {
                    self.give(key, Part::End(None), caller);
                }
            }
            Event::Data { key, data, end } => {
                let bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
                self.link.engine.release(key, bytes);
                self.give(key, Part::Data(data), caller);
                if end {
                    self.give(key, Part::End(None), caller);
                }
            }
            Event::Trailers { key, trailers } => {
                self.give(key, Part::End(Some(trailers)), caller);
            }
            Event::Reset { key, code, fault } => {
                let error = reset_error(code, fault.is_none());
                // RFC 9113, section 8.7: a refused stream was not processed.
                let refused = code == ErrorCode::REFUSED_STREAM && fault.is_none();
                let error = if refused { error.unprocessed() } else { error };
                self.give(key, Part::Failed(error), caller);
            }
            Event::Writable(Some(key)) => self.unsent.extend(self.place_of(key)),
            Event::Writable(None) => {
                let is_unsent = |place: &usize| {
                    let place = self.places.get(*place);
                    place.is_some_and(|place| place.stream.is_some() && !place.rest.is_empty())
                };
                self.unsent = (0..self.places.len()).filter(is_unsent).collect();
            }
            Event::GoAway { last, code } => {
                self.is_closing = true;
                let message = format!("the peer is closing the connection: {code}");
                let error = closed(message).unprocessed();
                for place in 0..self.places.len() {
                    let stream = self.places.get(place).and_then(|place| place.stream);
                    if let Some(key) = stream.filter(|key| key.id() > last) {
                        self.give(key, Part::Failed(error.clone()), caller);
                    }
                }
            }
            Event::Failed(error) => {
                let message = format!("the peer broke the rules of HTTP/2: {error}");
                return Err(TransportError::new(TransportErrorKind::Protocol, message));
            }
            _ => {}
        }
        Ok(())
    }

    /// Hands on what came on a stream.
    fn give(&mut self, key: Key, part: Part, caller: &mut impl Caller) {
        let Some(place) = self.place_of(key) else {
            return;
        };
        let is_last = matches!(part, Part::End(_) | Part::Failed(_));
        let goes_on = caller.take(place, part);
        if is_last || !goes_on {
            self.reset(place);
        }
    }

    fn place_of(&self, key: Key) -> Option<usize> {
        let place = *self.streams.get(key.slot())?;
        (self.places.get(place)?.stream == Some(key)).then_some(place)
    }

    /// Frees a place; its stream is reset if it is still there.
    fn reset(&mut self, index: usize) {
        let Some(place) = self.places.get_mut(index) else {
            return;
        };
        match std::mem::take(place).stream {
            Some(stream) => self.link.engine.reset(stream, ErrorCode::CANCEL),
            None => self.waiting.retain(|waiting| *waiting != index),
        }
        self.free.push(index);
    }

    /// Begins exchanges in the places that are free; whether none will follow.
    fn begin(&mut self, caller: &mut impl Caller, cx: &mut Context<'_>) -> bool {
        while !self.is_closing {
            let place = match self.waiting.front() {
                Some(place) => *place,
                None => {
                    let Some(place) = self.free.last().copied() else {
                        return false;
                    };
                    match caller.poll_begin(place, cx) {
                        Poll::Ready(true) => {}
                        Poll::Ready(false) => return true,
                        Poll::Pending => return false,
                    }
                    self.free.pop();
                    self.waiting.push_back(place);
                    place
                }
            };
            match caller.request(place) {
                Some(request) if self.open(place, request) => {}
                Some(_) => break,
                None => self.reset(place),
            }
        }
        false
    }

    /// Opens a stream for the exchange that has waited longest; whether there was one
    /// to be had.
    fn open(&mut self, index: usize, request: &LaneRequest) -> bool {
        let LaneRequest { head, body } = request;
        let mut digits = [0; 20];
        let length = fields::decimal(body.len() as u64, &mut digits);
        let length = [("content-length", length)];
        let is_empty = body.is_empty();
        let more = if is_empty { &[][..] } else { &length[..] };
        let key = match self.link.engine.open(self.scheme, head, more, is_empty) {
            Ok(key) => key,
            Err(error) => {
                self.is_closing |= error == OpenError::Closing;
                return false;
            }
        };
        self.waiting.pop_front();
        let slot = key.slot();
        if self.streams.len() <= slot {
            self.streams.resize(slot + 1, usize::MAX);
        }
        if let (Some(stream), Some(place)) =
            (self.streams.get_mut(slot), self.places.get_mut(index))
        {
            *stream = index;
            place.stream = Some(key);
            place.rest = body.clone();
        }
        if !is_empty {
            self.send_of(index);
        }
        true
    }

    /// Sends what waits for its turn, while there is room for it.
    fn send(&mut self) {
        for _ in 0..self.unsent.len() {
            if self.link.room() == 0 {
                return;
            }
            if let Some(place) = self.unsent.pop_front() {
                self.send_of(place);
            }
        }
    }

    fn send_of(&mut self, index: usize) {
        let room = self.link.room();
        let Some(place) = self.places.get_mut(index) else {
            return;
        };
        let Some(stream) = place.stream.filter(|_| !place.rest.is_empty()) else {
            return;
        };
        let engine = &mut self.link.engine;
        match engine.send_data(stream, &mut place.rest, true, room) {
            Sent::Full => self.unsent.push_back(index),
            // The engine tells when a window opens.
            Sent::All | Sent::StreamBlocked | Sent::ConnectionBlocked => {}
        }
    }
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane")
            .field("places", &self.places.len())
            .field("open", &self.link.engine.streams_open())
            .finish_non_exhaustive()
    }
}

/// Who only waits for the server's settings.
struct Nobody;

impl Caller for Nobody {
    fn poll_begin(&mut self, _: usize, _: &mut Context<'_>) -> Poll<bool> {
        Poll::Ready(false)
    }

    fn request(&self, _: usize) -> Option<&LaneRequest> {
        None
    }

    fn take(&mut self, _: usize, _: Part) -> bool {
        false
    }

    fn poll_late(&mut self, _: &mut Context<'_>) -> Poll<usize> {
        Poll::Pending
    }
}

fn broken(error: &io::Error) -> TransportError {
    closed(format!("the connection failed: {error}"))
}

fn closed(message: impl Into<String>) -> TransportError {
    TransportError::new(TransportErrorKind::Closed, message)
}
