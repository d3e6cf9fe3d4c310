//! A client's settings.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use quill_core::compression::Encoding;
use quill_core::trace::Tracer;
use quill_core::{
    BoxError, DecodeLimits, Format, HttpVersion, Metadata, MetadataError, MethodKind,
};
use quill_transport::tls::ClientTls;
use quill_transport::{Channel, ClientOptions, Endpoint};
use quill_wire::{Protocol, WireOptions};
use tower_layer::Layer;

use crate::balance::{Balance, Balancer, Source};
use crate::breaker::CircuitBreaker;
use crate::client::{QuillClient, Settings};
use crate::error::ConnectError;
use crate::hedge::Hedge;
use crate::layers::{Layers, OwnLayer};
use crate::rate_limit::RateLimit;
use crate::retry::{RetryLayer, RetryPolicy};
use crate::stack::{CallService, Calls};
use crate::token::Tokens;
use crate::trace::Traces;

/// Where a client calls when nothing else was said.
const BASE_URL_DEFAULT: &str = "http://localhost:8080";
const COMPRESSION_LEVELS: std::ops::RangeInclusive<u8> = 1..=22;

/// The settings of a [`QuillClient`].
///
/// ```no_run
/// use std::time::Duration;
/// use quill_client::QuillClient;
///
/// let client = QuillClient::builder()
///     .base_url("http://localhost:8080")
///     .enable_compression(true)
///     .compression_level(3)
///     .timeout(Duration::from_secs(5))
///     .build()?;
/// # Ok::<(), quill_client::ConnectError>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct ClientBuilder {
    urls: Vec<String>,
    source: Option<Source>,
    balance: Option<Balance>,
    protocol: Protocol,
    format: Format,
    timeout: Option<Duration>,
    options: WireOptions,
    transport: ClientOptions,
    http1: bool,
    connect_timeout: Option<Duration>,
    tls: Option<ClientTls>,
    layers: Layers,
    metadata: Metadata,
    invalid_metadata: Option<MetadataError>,
}

impl ClientBuilder {
    pub(crate) fn new() -> Self {
        let mut options = WireOptions::default();
        options.compress = false;
        Self {
            urls: vec![BASE_URL_DEFAULT.to_owned()],
            source: None,
            balance: None,
            protocol: Protocol::default(),
            format: Format::Proto,
            timeout: None,
            options,
            transport: ClientOptions::default(),
            http1: false,
            connect_timeout: None,
            tls: None,
            layers: Layers::default(),
            metadata: Metadata::new(),
            invalid_metadata: None,
        }
    }

    /// The server: `http://host:port` (HTTP/2 without TLS), `https://host`
    /// (TLS, HTTP/2 where the server has it), `unix:/path`. A path in it goes
    /// before the methods' own. `http://localhost:8080` unless set.
    ///
    /// Several servers stand with commas between them, before the path if there
    /// is one (`http://a:1,b:2/api`).
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.urls = vec![url.into()];
        self.source = None;
        self
    }

    /// Several servers, each by its URL, in place of one: calls are spread over
    /// them, by [`balance`](Self::balance).
    pub fn endpoints<U: AsRef<str>>(mut self, urls: impl IntoIterator<Item = U>) -> Self {
        let urls = urls.into_iter();
        self.urls = urls.map(|url| url.as_ref().to_owned()).collect();
        self.source = None;
        self
    }

    /// The servers as `source` names them, by their URLs, whenever it is asked:
    /// at first, every so often ([`Balance::resolve_every`]) and when a server is
    /// lost.
    pub fn endpoints_from<F, T>(mut self, source: F) -> Self
    where
        F: Fn() -> T + Send + Sync + 'static,
        T: Future<Output = Result<Vec<String>, BoxError>> + Send + 'static,
    {
        self.source = Some(Source::asked(source));
        self
    }

    /// How calls are spread over several servers, or the several addresses of
    /// one: [`Balance::least_loaded`] unless set where there are several URLs. A
    /// client of one URL connects to one of its addresses unless this is set.
    pub fn balance(mut self, balance: Balance) -> Self {
        self.balance = Some(balance);
        self
    }

    /// The protocol to speak; Quill's own unless set.
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// How messages are written; protobuf's binary format unless set.
    pub fn format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// Speaks HTTP/1.1, for servers or proxies that have no HTTP/2. Streams
    /// both ways at once are not possible then, and gRPC is not at all.
    pub fn http1(mut self) -> Self {
        self.http1 = true;
        self
    }

    /// Compresses requests of 1024 bytes and more; off unless set. Answers are
    /// accepted compressed in any case.
    pub fn enable_compression(mut self, enabled: bool) -> Self {
        self.options.compress = enabled;
        self
    }

    /// How hard to compress, 1 (fastest) to 22; 3 unless set. gzip and deflate
    /// stop at 9, br at 11; snappy has no levels.
    pub fn compression_level(mut self, level: u8) -> Self {
        self.options.compression_level = level;
        self
    }

    /// The encodings that answers may have, the preferred first: zstd and gzip
    /// unless said otherwise. Requests use the first, where
    /// [`enable_compression`](Self::enable_compression) asks for one.
    pub fn encodings(mut self, encodings: impl IntoIterator<Item = Encoding>) -> Self {
        self.options.accept = encodings.into_iter().collect();
        self
    }

    /// Messages of fewer bytes are sent as they are; 1 KiB by default.
    pub fn compress_bytes_min(mut self, bytes: usize) -> Self {
        self.options.compress_bytes_min = bytes;
        self
    }

    /// How long a call may take when it says nothing itself; no limit unless set.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// How long making a connection may take; 10 s unless set.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = Some(timeout);
        self
    }

    /// Most bytes of a received message; 4 MiB unless set.
    pub fn receive_bytes_max(mut self, bytes: usize) -> Self {
        self.options.receive_bytes_max = bytes;
        self
    }

    /// Most bytes of a sent message; 4 MiB unless set.
    pub fn send_bytes_max(mut self, bytes: usize) -> Self {
        self.options.send_bytes_max = bytes;
        self
    }

    /// Bounds on decoding an answer.
    pub fn decode_limits(mut self, limits: DecodeLimits) -> Self {
        self.options.decode = limits;
        self
    }

    /// Asks for message credits, and grants the server this many messages at
    /// once (Quill's protocol over HTTP/2; a connection that turns out to speak
    /// HTTP/1.1 goes without): a slow reader then holds back
    /// the maker of the messages, not only its bytes. Off unless set.
    pub fn credits(mut self, messages: u32) -> Self {
        self.options.credits = Some(messages.max(1));
        self
    }

    /// Calls methods without side effects by GET, where the protocol can, so
    /// that answers may be cached; off unless set.
    pub fn use_get(mut self, enabled: bool) -> Self {
        self.options.use_get = enabled;
        self
    }

    /// Settings of TLS: trusted roots, the client's own certificate.
    pub fn tls(mut self, tls: ClientTls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// All settings of the connections. [`http1`](Self::http1) and
    /// [`connect_timeout`](Self::connect_timeout) hold over theirs, whichever
    /// was said first.
    pub fn transport(mut self, options: ClientOptions) -> Self {
        self.transport = options;
        self
    }

    /// Makes calls again that failed, where that is safe, by a
    /// [`RetryPolicy`](crate::RetryPolicy) for all methods or a
    /// [`RetryLayer`] that tells some apart; nothing is retried unless set, but
    /// what a connection that was closing has not taken.
    pub fn retry(mut self, retry: impl Into<RetryLayer>) -> Self {
        self.layers.retry = Some(retry.into());
        self
    }

    /// Makes a second attempt of unary calls whose answers are late, where their
    /// methods may be repeated; off unless set. An attempt that is retried may
    /// be hedged.
    pub fn hedge(mut self, hedge: Hedge) -> Self {
        self.layers.hedge = Some(hedge);
        self
    }

    /// Stops to call the server while it fails; off unless set. It counts each
    /// attempt.
    pub fn circuit_breaker(mut self, breaker: CircuitBreaker) -> Self {
        self.layers.breaker = Some(breaker);
        self
    }

    /// Holds calls back to a rate; off unless set. Each attempt counts.
    pub fn rate_limit(mut self, limit: RateLimit) -> Self {
        self.layers.rate_limit = Some(limit);
        self
    }

    /// Gives each call a token in its `authorization`; none unless set.
    pub fn tokens(mut self, tokens: Tokens) -> Self {
        self.layers.tokens = Some(tokens);
        self
    }

    /// Gives each call its place in a trace, below that of the handler it is made
    /// in or of the `traceparent` it has, and tells the server; off unless set,
    /// and then calls carry on the trace of the handler they are made in. A call
    /// is one span, around all layers, however often it is retried.
    pub fn tracer(mut self, tracer: impl Into<Tracer>) -> Self {
        self.layers.traces = Some(Traces::new(tracer.into()));
        self
    }

    /// Gives each call this metadata, unless it has some of that name. May be
    /// said for several names, and several times for one. What can't be
    /// metadata errs when the client is built.
    pub fn metadata(mut self, name: &str, value: &str) -> Self {
        let appended = self.metadata.append(name, value);
        self.invalid_metadata = self.invalid_metadata.or(appended.err());
        self
    }

    /// Puts a tower layer around all calls: its service takes
    /// `Request<Messages>` and gives `Response<Answer>`. The layer added first
    /// is the outermost, and all are outside of those that have a method of
    /// their own here, so that they see each call once, however often it is
    /// retried. An error of a layer becomes the call's; those of tower's
    /// `timeout` and `load_shed` become `deadline_exceeded` and
    /// `resource_exhausted`.
    pub fn layer<T>(mut self, layer: T) -> Self
    where
        T: Layer<CallService> + Send + Sync + 'static,
        T::Service: Calls,
    {
        self.layers.own.push(OwnLayer::new(layer));
        self
    }

    /// The client. Nothing is connected before its first call.
    ///
    /// # Errors
    /// A URL that can't be used, a compression level that does not exist,
    /// metadata that is none, a protocol that does not work over HTTP/1.1 where no
    /// other is allowed.
    pub fn build(self) -> Result<QuillClient, ConnectError> {
        let level = self.options.compression_level;
        if !COMPRESSION_LEVELS.contains(&level) {
            return Err(ConnectError::setting(format!(
                "compression level {level} does not exist: use 1 (fastest) to 22"
            )));
        }
        if let Some(error) = &self.invalid_metadata {
            return Err(ConnectError::setting(error.to_string()));
        }
        let transport = self.transport_options();
        if transport.http1 {
            let wire = self.protocol.wire(MethodKind::Unary);
            wire.works_over(HttpVersion::Http1)
                .map_err(|error| ConnectError::setting(error.message()))?;
        }
        let mut layers = self.layers.clone();
        Ok(match self.servers()? {
            Servers::One(endpoint) => {
                if let Some(traces) = &mut layers.traces {
                    traces.lead_to(endpoint.authority());
                }
                let channel = self.channel(endpoint)?;
                QuillClient::make(self.into_settings(), Ok(channel)).through(&layers)
            }
            Servers::Several(source) => self.balanced(source, transport)?,
        })
    }

    /// The client; what is wrong with its URL shows at the calls.
    pub(crate) fn build_lazily(self) -> QuillClient {
        let settings = self.clone().into_settings();
        let built = self.build();
        built.unwrap_or_else(|error| QuillClient::make(settings, Err(error)))
    }

    fn servers(&self) -> Result<Servers, ConnectError> {
        let source = match &self.source {
            Some(source) => source.clone(),
            None => Source::Urls(Source::read(&self.urls)?),
        };
        Ok(match source {
            Source::Urls(mut urls) if urls.len() == 1 && self.balance.is_none() => {
                Servers::One(urls.remove(0))
            }
            source => Servers::Several(source),
        })
    }

    fn channel(&self, endpoint: Endpoint) -> Result<Channel, ConnectError> {
        let tls = self.tls_where(endpoint.is_secure())?;
        Ok(Channel::new(endpoint, self.transport_options(), tls)?)
    }

    fn balanced(
        self,
        source: Source,
        transport: ClientOptions,
    ) -> Result<QuillClient, ConnectError> {
        transport.check()?;
        let tls = self.tls_where(match &source {
            Source::Urls(urls) => urls.iter().any(Endpoint::is_secure),
            // It may name some at any time.
            Source::Asked(_) => true,
        })?;
        let balance = self.balance.clone().unwrap_or_else(Balance::least_loaded);
        let mut layers = self.layers.clone();
        // What one server did not take is for another.
        let retry = layers.retry.take();
        layers.retry = retry.or_else(|| Some(RetryPolicy::transparent().into()));
        let settings = self.into_settings();
        let tokens = layers.tokens.clone();
        let balancer = Balancer::new(balance, source, settings.clone(), tokens, transport, tls);
        Ok(QuillClient::balanced(settings, balancer, &layers))
    }

    /// Settings of TLS, where some are needed.
    fn tls_where(&self, is_needed: bool) -> Result<Option<ClientTls>, ConnectError> {
        Ok(match &self.tls {
            _ if !is_needed => None,
            Some(tls) => Some(tls.clone()),
            None => Some(ClientTls::builder().build()?),
        })
    }

    fn transport_options(&self) -> ClientOptions {
        let mut options = self.transport.clone();
        options.http1 |= self.http1;
        if let Some(timeout) = self.connect_timeout {
            options.connect_timeout = timeout;
        }
        options
    }

    fn into_settings(self) -> Settings {
        Settings {
            protocol: self.protocol,
            format: self.format,
            timeout: self.timeout,
            options: Arc::new(self.options),
            metadata: Arc::new(self.metadata),
        }
    }
}

impl fmt::Debug for ClientBuilder {
    /// Without the metadata of its calls, in which there may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("urls", &self.urls)
            .field("protocol", &self.protocol)
            .field("format", &self.format)
            .field("timeout", &self.timeout)
            .field("balance", &self.balance)
            .field("layers", &self.layers)
            .finish_non_exhaustive()
    }
}

/// What a client is to call.
enum Servers {
    One(Endpoint),
    Several(Source),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_the_connections_holds_in_any_order() {
        let limit = Duration::from_secs(7);
        let mut options = ClientOptions::default();
        options.headers_bytes_max = 4096;
        let new = ClientBuilder::new;
        for builder in [
            new()
                .http1()
                .connect_timeout(limit)
                .transport(options.clone()),
            new().transport(options).connect_timeout(limit).http1(),
        ] {
            let options = builder.transport_options();
            assert!(options.http1);
            assert_eq!(options.connect_timeout, limit);
            assert_eq!(options.headers_bytes_max, 4096);
        }
    }
}
