//! The connections to one endpoint, shared by all who call it.

use std::fmt;
use std::sync::{Arc, Weak};

use hyper::client::conn::http1;
use quill_core::{HttpVersion, RequestHead, ResponseHead};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::connection::{self, Failed};
use super::endpoint::Endpoint;
use super::options::ClientOptions;
use super::pool::{Held, Pool};
use super::request_body::{Handle, RequestBody, Source};
use super::tap::StreamSlot;
use crate::body::{Body, RecvBody, Tie};
use crate::bounds::OptionsError;
use crate::error::{TransportError, TransportErrorKind};
use crate::tls::ClientTls;

/// The connections to one endpoint: on HTTP/2 one that all exchanges share, and
/// further ones when its streams are used up; a small pool on HTTP/1.1. Made
/// when first needed, and again when lost. Clones share them.
#[derive(Clone)]
pub struct Channel(Arc<Pool>);

/// Room for one exchange on a connection that is there: what version of HTTP
/// it speaks is known before the request is written.
pub struct Lease {
    pool: Arc<Pool>,
    version: HttpVersion,
    /// `None` once it is in use.
    held: Option<Held>,
}

impl Channel {
    /// A channel to this endpoint; connects when it is first used. Only an
    /// `https` endpoint needs TLS.
    ///
    /// # Errors
    /// An option is out of its bounds, or TLS is missing.
    pub fn new(
        endpoint: Endpoint,
        options: ClientOptions,
        tls: Option<ClientTls>,
    ) -> Result<Self, OptionsError> {
        options.check()?;
        if endpoint.is_secure() && tls.is_none() {
            let allowed = "settings of TLS, which an https URL needs";
            return Err(OptionsError::new("tls", &"none", allowed));
        }
        Ok(Self(Arc::new(Pool::new(endpoint, options, tls))))
    }

    /// Where it leads.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.0.endpoint
    }

    /// Makes a connection now, if there is none, so that a mistake in the
    /// address shows at once.
    ///
    /// # Errors
    /// No connection can be made.
    pub async fn connect(&self) -> Result<(), TransportError> {
        self.lease(None).await.map(drop)
    }

    /// Whether there is a connection that takes exchanges, as far as that is
    /// known; on HTTP/1.1, which has one for each exchange, always.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.0.is_connected()
    }

    /// Waits for room for one exchange, on a connection that is there or made
    /// for it. Where a server's limit on streams and
    /// [`ClientOptions::http2_connections_max`] leave no room, that lasts until
    /// another exchange ends, or the deadline passes.
    ///
    /// # Errors
    /// No connection can be made; or the deadline passed
    /// ([`TransportErrorKind::Timeout`]), with what was waited for.
    pub async fn lease(&self, deadline: Option<Instant>) -> Result<Lease, TransportError> {
        match self.0.free_stream() {
            Some(held) => Ok(Lease::new(Arc::clone(&self.0), held)),
            None => Box::pin(Lease::of(Arc::clone(&self.0), false, deadline)).await,
        }
    }

    /// Sends a request, whatever version of HTTP it leaves on: a
    /// [`lease`](Self::lease), and [`Lease::send`] on it.
    ///
    /// # Errors
    /// Those of both.
    pub async fn send(
        &self,
        head: RequestHead,
        body: impl Body + 'static,
    ) -> Result<(ResponseHead, RecvBody), TransportError> {
        self.lease(None).await?.send(head, body).await
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel")
            .field("endpoint", &self.0.endpoint)
            .finish_non_exhaustive()
    }
}

impl Lease {
    async fn of(
        pool: Arc<Pool>,
        fresh: bool,
        deadline: Option<Instant>,
    ) -> Result<Self, TransportError> {
        let held = pool.hold(fresh, deadline).await?;
        Ok(Self::new(pool, held))
    }

    fn new(pool: Arc<Pool>, held: Held) -> Self {
        let version = match held {
            Held::Http1(..) => HttpVersion::Http1,
            Held::Http2(..) => HttpVersion::Http2,
        };
        Self {
            pool,
            version,
            held: Some(held),
        }
    }

    /// The version of HTTP that the request will leave on.
    #[must_use]
    pub fn version(&self) -> HttpVersion {
        self.version
    }

    /// Sends a request; resolves with the answer's head, which may come before
    /// the request's body has been sent. An authority that is empty becomes
    /// the endpoint's; the target is put behind the endpoint's prefix.
    ///
    /// Dropping the future, or the answer's body before its end, resets the
    /// exchange; what is left of the request's body is then dropped too. A
    /// request that the server has surely not begun to handle, as on a
    /// connection that it was closing, is sent once more on a new connection,
    /// provided no more than 64 KiB of its body had left and that connection
    /// speaks the same version of HTTP.
    ///
    /// # Errors
    /// The exchange failed before the head.
    pub fn send(
        self,
        mut head: RequestHead,
        body: impl Body + 'static,
    ) -> impl Future<Output = Result<(ResponseHead, RecvBody), TransportError>> + Send + 'static
    {
        let endpoint = &self.pool.endpoint;
        endpoint.complete(&mut head);
        head.version = self.version;
        let source = Source::new(head, body);
        async move {
            let (pool, version) = (Arc::clone(&self.pool), self.version);
            match self.exchange(source).await {
                Ok(answer) => Ok(answer),
                Err(failed) => Box::pin(send_again(pool, version, failed)).await,
            }
        }
    }

    async fn exchange(mut self, source: Source) -> Result<(ResponseHead, RecvBody), Failed> {
        let pool = &self.pool;
        let (head, body, tie) = match self.held.take() {
            Some(Held::Http2(mut connection, slot)) => {
                let sent = connection.send(&pool.endpoint, source).await;
                let (head, body, handle) = sent.inspect_err(|failed| {
                    // A reset ends one stream, a head that can't be sent nothing,
                    // anything else the connection.
                    use TransportErrorKind::{Reset, Url};
                    if !matches!(failed.error.kind(), Reset(_) | Url) {
                        pool.forget(&connection);
                    }
                })?;
                let tie = AnswerTie {
                    handle,
                    slot: Some(slot),
                    http1: None,
                };
                (head, body, tie)
            }
            Some(Held::Http1(mut sender, permit)) => {
                let sent = Box::pin(connection::send_http1(&mut sender, source)).await;
                let (head, body, handle) = sent?;
                let http1 = Some(Http1Tie {
                    sender,
                    pool: Arc::downgrade(pool),
                    has_ended: false,
                    _permit: permit,
                });
                let tie = AnswerTie {
                    handle,
                    slot: None,
                    http1,
                };
                (head, body, tie)
            }
            None => {
                let message = "the lease was used before";
                let error = TransportError::new(TransportErrorKind::Canceled, message);
                return Err(Failed::for_good(error));
            }
        };
        Ok((head, body.tied(Box::new(tie))))
    }
}

/// Sends a request once more that was surely not handled.
async fn send_again(
    pool: Arc<Pool>,
    version: HttpVersion,
    failed: Failed,
) -> Result<(ResponseHead, RecvBody), TransportError> {
    let Some(source) = failed.source else {
        return Err(told(failed.error));
    };
    tracing::debug!(error = %failed.error, "a request is sent once more");
    let lease = Lease::of(pool, true, None).await?;
    if lease.version != version {
        return Err(told(failed.error));
    }
    let second = lease.exchange(source).await;
    second.map_err(|failed| told(failed.error))
}

impl Drop for Lease {
    /// A connection that was not used is kept for another exchange.
    fn drop(&mut self) {
        if let Some(Held::Http1(sender, _)) = self.held.take() {
            self.pool.give_back(sender);
        }
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("endpoint", &self.pool.endpoint)
            .field("version", &self.version())
            .finish_non_exhaustive()
    }
}

/// Says of a request that left and surely was not handled that it may be made
/// again.
fn told(error: TransportError) -> TransportError {
    if error.maybe_processed() || error.kind() == TransportErrorKind::Url {
        return error;
    }
    error.within("the request was not processed and may be made again")
}

/// What an answer's body holds on to.
struct AnswerTie {
    handle: Handle,
    /// The stream's place on its connection.
    slot: Option<StreamSlot>,
    http1: Option<Http1Tie>,
}

struct Http1Tie {
    sender: http1::SendRequest<RequestBody>,
    pool: Weak<Pool>,
    has_ended: bool,
    _permit: OwnedSemaphorePermit,
}

impl Tie for AnswerTie {
    fn ended(&mut self) {
        if let Some(http1) = &mut self.http1 {
            http1.has_ended = true;
        }
        // Both bodies are done: the connection is free already.
        if self.handle.is_ended() {
            self.free();
        }
    }
}

impl AnswerTie {
    fn free(&mut self) {
        self.slot = None;
        if let Some(http1) = self.http1.take()
            && http1.has_ended
            && let Some(pool) = http1.pool.upgrade()
        {
            pool.give_back(http1.sender);
        }
    }
}

impl Drop for AnswerTie {
    fn drop(&mut self) {
        if self.handle.is_ended() {
            self.free();
        }
        self.handle.call_off();
    }
}
