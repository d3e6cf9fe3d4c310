//! One connection of a server, from its socket to its end.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioIo, TokioTimer};
use quill_core::{Budget, HttpVersion, Peer};
use quill_h2::PREFACE;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;

use super::activity::{Activity, Due, Limits, Watched};
use super::age::{Age, Aged};
use super::counts::ConnectionCounts;
use super::delivery::Exchanges;
use super::h2::Session;
use super::options::{HttpVersions, ServerOptions};
use super::per_ip::Place;
use super::responder::Responder;
use crate::body::LINGER_TIMEOUT;
use crate::bounds::Http2Engine;
use crate::exchange::Service;
use crate::h2::GOODBYE_TIMEOUT;
use crate::io::{Io, Socket};
use crate::tls::{ALPN_HTTP1, ALPN_HTTP2, ServerTls};

/// What is still read of a request on HTTP/1.1 once the connection closes. A
/// peer that has more on its way than fits the sockets' buffers loses the answer.
const LINGER_BYTES_MAX: usize = 256 * 1024;

/// What an HTTP/1.1 connection buffers each way, as long as no larger head is
/// allowed: beside the piece that is being written, that is what a peer that
/// does not read makes it hold.
const HTTP1_BUFFER_BYTES: usize = 64 * 1024;

/// What every connection of a server shares, and what one does.
#[derive(Clone)]
pub(super) struct Connection<S> {
    pub(super) service: S,
    pub(super) tls: Option<ServerTls>,
    pub(super) options: Arc<ServerOptions>,
    /// The same, for the HTTP/2 engine.
    pub(super) http2: Arc<quill_h2::Config>,
    pub(super) budget: Option<Budget>,
    pub(super) connection_bytes_max: usize,
    pub(super) drain: watch::Receiver<bool>,
    /// `None` where nobody counts.
    pub(super) counts: Option<ConnectionCounts>,
    /// This connection's own.
    pub(super) activity: Arc<Activity>,
    /// Its place among those of its address, where these are counted.
    pub(super) place: Option<Arc<Place>>,
}

/// A connection that is ready for HTTP.
struct Opened {
    /// What was read to tell the version of HTTP.
    ahead: Bytes,
    io: Io,
    peer: Peer,
}

impl<S: Service> Connection<S> {
    /// Serves one connection to its end.
    pub(super) async fn serve(mut self: Box<Self>, socket: Socket) {
        let _place = self.place.take();
        let _counted = self.counts.as_ref().map(ConnectionCounts::count);
        let mut drain = self.drain.clone();
        let opened = tokio::select! {
            opened = Box::pin(self.open(socket)) => opened,
            // No request has come: there is nothing to finish.
            _ = drain.wait_for(|draining| *draining) => return,
        };
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => {
                tracing::debug!(%error, "a connection could not be opened");
                return;
            }
        };
        self.activity.opened();
        // Each in a box, so that a connection takes the room of its own version alone.
        match opened.peer.version() {
            HttpVersion::Http1 => Box::pin(self.serve_http1(opened)).await,
            _ => match self.options.http2_engine {
                Http2Engine::Quill => {
                    let (mut session, drain) = (*self).into_session(opened);
                    if session.run(drain).await {
                        let mut io = (*session).into_io();
                        let _ = Box::pin(timeout(LINGER_TIMEOUT, linger(&mut io))).await;
                    }
                }
                Http2Engine::Hyper => Box::pin(self.serve_hyper_http2(opened)).await,
            },
        }
    }

    /// The TLS handshake, if any, and the version of HTTP.
    async fn open(&self, socket: Socket) -> io::Result<Opened> {
        let address = socket.peer_address();
        if let Socket::Tcp(stream) = &socket {
            stream.set_nodelay(true)?;
        }
        let Some(tls) = &self.tls else {
            let mut io = Io::Plain(socket);
            let (version, ahead) = self.recognise(&mut io).await?;
            let peer = Peer::new(address, version);
            return Ok(Opened { ahead, io, peer });
        };
        let config = tls.config(self.options.versions);
        let handshake = TlsAcceptor::from(config).accept(socket);
        let stream = timeout(self.options.handshake_timeout, handshake)
            .await
            .map_err(|_| {
                io::Error::new(io::ErrorKind::TimedOut, "the TLS handshake took too long")
            })??;
        let (_, session) = stream.get_ref();
        let certificates = session.peer_certificates().unwrap_or_default();
        let certificates = certificates
            .iter()
            .map(|der| Bytes::copy_from_slice(der))
            .collect();
        let agreed = match session.alpn_protocol() {
            Some(ALPN_HTTP2) => Some(HttpVersion::Http2),
            Some(ALPN_HTTP1) => Some(HttpVersion::Http1),
            _ => None,
        };
        let mut io = Io::Server(Box::new(stream));
        let (version, ahead) = match agreed {
            Some(version) => (version, Bytes::new()),
            None => self.recognise(&mut io).await?,
        };
        let peer = Peer::secure(address, version, certificates);
        Ok(Opened { ahead, io, peer })
    }

    /// Tells the version by the first bytes, and gives back what it read of them.
    async fn recognise(&self, io: &mut Io) -> io::Result<(HttpVersion, Bytes)> {
        match self.options.versions {
            HttpVersions::Http1 => return Ok((HttpVersion::Http1, Bytes::new())),
            HttpVersions::Http2 => return Ok((HttpVersion::Http2, Bytes::new())),
            HttpVersions::All => {}
        }
        let mut ahead = BytesMut::with_capacity(PREFACE.len());
        let read = async {
            while ahead.len() < PREFACE.len() && PREFACE.starts_with(&ahead) {
                let mut limited = (&mut *io).take((PREFACE.len() - ahead.len()) as u64);
                if limited.read_buf(&mut ahead).await? == 0 {
                    break;
                }
            }
            io::Result::Ok(())
        };
        timeout(self.options.header_read_timeout, read)
            .await
            .map_err(|_| {
                io::Error::new(io::ErrorKind::TimedOut, "the first bytes took too long")
            })??;
        let version = if ahead[..] == PREFACE[..] {
            HttpVersion::Http2
        } else {
            HttpVersion::Http1
        };
        Ok((version, ahead.freeze()))
    }

    async fn serve_http1(self: Box<Self>, opened: Opened) {
        let activity = self.activity.clone();
        let io = Watched::new(opened.ahead, opened.io, activity.clone());
        let responder = self.responder(opened.peer);
        let head_bytes_max = self.options.headers_bytes_max as usize;
        let mut connection = http1::Builder::new()
            .max_buf_size(HTTP1_BUFFER_BYTES.max(head_bytes_max))
            .timer(TokioTimer::new())
            // Idle connections and slow heads are told apart by the driver.
            .header_read_timeout(None)
            .max_header_size(head_bytes_max)
            .serve_connection(TokioIo::new(io), responder);
        let driver = Driver {
            activity,
            limits: Limits {
                head: Some(self.options.header_read_timeout),
                idle: self.options.http1_idle_timeout,
                write: self.options.write_timeout,
            },
            drain: self.drain,
            age: Age::new(&self.options),
            counts: self.counts,
        };
        if driver.run(&mut connection).await.is_break() {
            return;
        }
        let mut io = connection.into_parts().io.into_inner();
        let _ = timeout(LINGER_TIMEOUT, linger(&mut io)).await;
    }

    /// The connection on the engine of quill-h2, and what tells it of the drain. It has
    /// a place of its own, so that it is never moved.
    fn into_session(self, opened: Opened) -> (Box<Session<S>>, watch::Receiver<bool>) {
        let budget = self.connection_budget();
        let Self {
            service,
            options,
            http2,
            drain,
            activity,
            counts,
            ..
        } = self;
        let Opened { ahead, io, peer } = opened;
        let caller = (peer, budget, activity);
        let session = Session::new(io, ahead, service, caller, (options, http2, counts));
        (Box::new(session), drain)
    }

    async fn serve_hyper_http2(self: Box<Self>, opened: Opened) {
        let activity = self.activity.clone();
        let responder = self.responder(opened.peer);
        let io = Watched::new(opened.ahead, opened.io, activity.clone());
        let options = &self.options;
        let mut builder = http2::Builder::new(Exchanges::new(options.write_timeout));
        builder
            .timer(TokioTimer::new())
            .max_concurrent_streams(options.http2_streams_max)
            .max_header_list_size(options.headers_bytes_max)
            .max_frame_size(options.http2_frame_bytes_max)
            .max_send_buf_size(options.http2_send_buffer_bytes_max)
            .initial_stream_window_size(options.http2_stream_window_bytes)
            .initial_connection_window_size(options.http2_connection_window_bytes)
            .keep_alive_interval(options.http2_ping_interval)
            .keep_alive_timeout(options.http2_ping_timeout)
            .max_pending_accept_reset_streams(options.http2_pending_resets_max)
            .max_local_error_reset_streams(options.http2_local_resets_max);
        if options.http2_adaptive_window {
            builder.adaptive_window(true);
        }
        let mut connection = builder.serve_connection(TokioIo::new(io), responder);
        let driver = Driver {
            activity,
            limits: Limits {
                head: None,
                idle: options.http2_idle_timeout,
                write: options.write_timeout,
            },
            drain: self.drain,
            age: Age::new(&self.options),
            counts: self.counts,
        };
        let _ = driver.run(&mut connection).await;
    }

    /// What the unfinished messages of one connection may hold.
    fn connection_budget(&self) -> Option<Budget> {
        let within = |budget: &Budget| {
            budget.child(super::CONNECTION_HELD_BYTES_MAX, self.connection_bytes_max)
        };
        self.budget.as_ref().map(within)
    }

    fn responder(&self, peer: Peer) -> Responder<S> {
        Responder {
            budget: self.connection_budget(),
            service: self.service.clone(),
            piece_bytes_max: match peer.version() {
                HttpVersion::Http1 => usize::MAX,
                _ => self.options.http2_send_buffer_bytes_max,
            },
            peer,
            activity: self.activity.clone(),
        }
    }
}

/// Reads what the peer is still sending, to its end or the bound, so that the
/// answer is not lost in a TCP reset.
async fn linger(io: &mut (impl AsyncReadExt + AsyncWriteExt + Unpin)) {
    if io.shutdown().await.is_err() {
        return;
    }
    let mut left = LINGER_BYTES_MAX;
    let mut scratch = vec![0; 8 * 1024];
    while let Ok(count @ 1..) = io.read(&mut scratch).await {
        left = left.saturating_sub(count);
        if left == 0 {
            return;
        }
    }
}

/// What hyper's two kinds of connection have in common.
trait HttpConnection: Future<Output = hyper::Result<()>> + Unpin {
    fn finish(self: Pin<&mut Self>);

    /// Takes no new exchanges, without losing one that is on its way.
    fn leave(self: Pin<&mut Self>, activity: &Activity);
}

impl<S: Service> HttpConnection for http1::Connection<TokioIo<Watched<Io>>, Responder<S>> {
    fn finish(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }

    fn leave(self: Pin<&mut Self>, activity: &Activity) {
        // A connection at rest would be closed at once, maybe under a request.
        activity.leave();
    }
}

impl<S: Service> HttpConnection
    for http2::Connection<TokioIo<Watched<Io>>, Responder<S>, Exchanges>
{
    fn finish(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }

    fn leave(self: Pin<&mut Self>, _: &Activity) {
        self.graceful_shutdown();
    }
}

/// Runs a connection, and ends it when the server drains or nothing happens on it.
struct Driver {
    activity: Arc<Activity>,
    limits: Limits,
    drain: watch::Receiver<bool>,
    /// `None` where it may become as old as it likes.
    age: Option<Age>,
    counts: Option<ConnectionCounts>,
}

impl Driver {
    /// Breaks when the connection was given up rather than brought to an end.
    async fn run(mut self, connection: &mut impl HttpConnection) -> std::ops::ControlFlow<()> {
        use std::ops::ControlFlow::{Break, Continue};

        let mut drain = self.drain.clone();
        let mut drain = pin!(drain.wait_for(|draining| *draining));
        let mut timer = pin!(sleep_until(Instant::now()));
        let mut goodbye = None;
        let mut finishing = false;
        poll_fn(|cx| {
            if !finishing && drain.as_mut().poll(cx).is_ready() {
                finishing = true;
                Pin::new(&mut *connection).finish();
            }
            match self.poll_age(cx) {
                Poll::Ready(Aged::Leave) if !finishing => {
                    if let Some(counts) = &self.counts {
                        counts.note_aged();
                    }
                    Pin::new(&mut *connection).leave(&self.activity);
                }
                Poll::Ready(Aged::Cut) => return Poll::Ready(Break(())),
                Poll::Ready(Aged::Leave) | Poll::Pending => {}
            }
            match Pin::new(&mut *connection).poll(cx) {
                Poll::Ready(Ok(())) => return Poll::Ready(Continue(())),
                Poll::Ready(Err(error)) => {
                    tracing::debug!(error = %crate::hyper_error::chain(&error), "a connection failed");
                    return Poll::Ready(Continue(()));
                }
                Poll::Pending => {}
            }
            match self.poll_due(timer.as_mut(), goodbye, cx) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Due::Exchange(_)) if goodbye.is_none() => {
                    finishing = true;
                    goodbye = Some(Instant::now() + GOODBYE_TIMEOUT);
                    Pin::new(&mut *connection).finish();
                    // The connection must see that it is to finish.
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
                Poll::Ready(_) => Poll::Ready(Break(())),
            }
        })
        .await
    }

    fn poll_age(&mut self, cx: &mut Context<'_>) -> Poll<Aged> {
        let Some(age) = &mut self.age else {
            return Poll::Pending;
        };
        age.poll(cx)
    }

    /// What is overdue. While an exchange is open, looks again from time to
    /// time: exchanges of HTTP/2 end in other tasks, which do not wake this one.
    fn poll_due(
        &mut self,
        mut timer: Pin<&mut Sleep>,
        goodbye: Option<Instant>,
        cx: &mut Context<'_>,
    ) -> Poll<Due> {
        loop {
            let due = self.activity.due(&self.limits);
            let at = match (due, goodbye, self.limits.idle) {
                (Due::Head(at) | Due::Write(at), _, _) => at,
                (Due::Exchange(_), Some(at), _) | (Due::Exchange(at), None, _) => at,
                (Due::Never, _, Some(idle)) => Instant::now() + idle,
                (Due::Never, _, None) => return Poll::Pending,
            };
            if due != Due::Never && at <= Instant::now() {
                return Poll::Ready(due);
            }
            // An open exchange moves the timer only once that has run out.
            let keep = due == Due::Never && !timer.is_elapsed();
            if !keep && timer.deadline() != at {
                timer.as_mut().reset(at);
            }
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }
}
