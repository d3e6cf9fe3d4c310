//! From a request to the key that it is limited by.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::{Extensions, HeaderMap, HeaderName, Method, Request, Uri};

use crate::client_ip::{ClientIpConfig, IPV6_PREFIX_DEFAULT, resolve_client_identity};
use crate::key::{Key, KeyBuf, Kind};

/// What of a request can be looked at: all but its body.
#[derive(Debug, Clone, Copy)]
pub struct RequestHead<'a> {
    /// The method.
    pub method: &'a Method,
    /// The target.
    pub uri: &'a Uri,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// What the server and other layers left.
    pub extensions: &'a Extensions,
}

impl<'a> RequestHead<'a> {
    /// The head of a request.
    #[must_use]
    pub fn of<B>(request: &'a Request<B>) -> Self {
        Self {
            method: request.method(),
            uri: request.uri(),
            headers: request.headers(),
            extensions: request.extensions(),
        }
    }

    /// The address at the other end of the connection, if the server left it.
    #[must_use]
    pub fn peer(&self) -> Option<IpAddr> {
        #[cfg(feature = "axum")]
        if let Some(info) = self
            .extensions
            .get::<axum::extract::ConnectInfo<SocketAddr>>()
        {
            return Some(info.0.ip());
        }
        let peer = self.extensions.get::<PeerAddr>().map(|peer| peer.0);
        peer.or_else(|| self.extensions.get::<SocketAddr>().copied())
            .map(|peer| peer.ip())
    }
}

/// The address at the other end of a connection, as a request extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerAddr(pub SocketAddr);

/// A key that was copied, of whatever kind.
#[derive(Debug, Clone)]
pub struct OwnedKey {
    pub(super) kind: Kind,
    pub(super) bytes: KeyBuf,
}

impl OwnedKey {
    /// A copy of `key`: without an allocation up to [`KeyBuf::INLINE`] bytes.
    #[must_use]
    pub fn new<K: Key + ?Sized>(key: &K) -> Self {
        Self {
            kind: K::KIND,
            bytes: key.bytes().as_ref().into(),
        }
    }
}

type KeyFn = dyn Fn(&RequestHead<'_>) -> Option<OwnedKey> + Send + Sync;

/// Where the key of a request comes from.
#[derive(Clone)]
pub struct RequestKey(pub(super) Source);

#[derive(Clone)]
pub(super) enum Source {
    ClientIp {
        config: ClientIpConfig,
        ipv6_prefix: u8,
    },
    Header(HeaderName),
    /// The server's to provide; missing is its fault.
    Extension(Arc<KeyFn>),
    /// Of the request; missing is the client's fault.
    Function(Arc<KeyFn>),
}

impl RequestKey {
    /// The client's address, found by the rules of
    /// [`client_ip`](crate::client_ip); IPv6 addresses by their /64.
    #[must_use]
    pub const fn client_ip(config: ClientIpConfig) -> Self {
        Self(Source::ClientIp {
            config,
            ipv6_prefix: IPV6_PREFIX_DEFAULT,
        })
    }

    /// The value of a header, byte for byte. A request with several lines of
    /// it has no key: which of them counts is for each layer to guess, and a
    /// client whose real one is read elsewhere could make up the other.
    ///
    /// A client chooses what it sends: check the value before this layer (an
    /// API key that exists), or every made-up value has a budget of its own.
    ///
    /// # Panics
    ///
    /// If `name` is no header name in lower case.
    #[must_use]
    pub const fn header(name: &'static str) -> Self {
        Self(Source::Header(HeaderName::from_static(name)))
    }

    /// A value that another layer left in the request's extensions: who it is
    /// that was authenticated, say.
    #[must_use]
    pub fn extension<K: Key + Send + Sync + 'static>() -> Self {
        Self(Source::Extension(Arc::new(|head| {
            head.extensions.get::<K>().map(OwnedKey::new)
        })))
    }

    /// Whatever `key` makes of a request; `None` if it has no key.
    #[must_use]
    pub fn function(
        key: impl Fn(&RequestHead<'_>) -> Option<OwnedKey> + Send + Sync + 'static,
    ) -> Self {
        Self(Source::Function(Arc::new(key)))
    }

    /// How many bits of an IPv6 address make a client, 64 unless set. For other
    /// keys this changes nothing.
    #[must_use]
    pub const fn with_ipv6_prefix(mut self, bits: u8) -> Self {
        if let Source::ClientIp { ipv6_prefix, .. } = &mut self.0 {
            *ipv6_prefix = bits;
        }
        self
    }

    /// Calls `use_key` with the request's key, if it has one.
    pub(super) fn with<R>(
        &self,
        head: &RequestHead<'_>,
        use_key: impl FnOnce(Kind, &[u8]) -> R,
    ) -> Option<R> {
        match &self.0 {
            Source::ClientIp {
                config,
                ipv6_prefix,
            } => {
                let client = resolve_client_identity(head.headers, head.peer(), config).ok()?;
                let ip = client.group(*ipv6_prefix);
                Some(use_key(IpAddr::KIND, ip.bytes().as_ref()))
            }
            Source::Header(name) => {
                let mut lines = head.headers.get_all(name).into_iter();
                let value = lines.next().filter(|_| lines.next().is_none())?;
                Some(use_key(Kind::Bytes, value.as_bytes()))
            }
            Source::Extension(key) | Source::Function(key) => {
                let key = key(head)?;
                Some(use_key(key.kind, key.bytes.as_ref()))
            }
        }
    }

    /// Whether a request without a key is the client's doing.
    pub(super) const fn is_clients(&self) -> bool {
        matches!(self.0, Source::Header(_) | Source::Function(_))
    }
}

impl Default for RequestKey {
    fn default() -> Self {
        Self::client_ip(ClientIpConfig::default())
    }
}

impl fmt::Debug for RequestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::ClientIp { config, .. } => f.debug_tuple("ClientIp").field(config).finish(),
            Source::Header(name) => f.debug_tuple("Header").field(name).finish(),
            Source::Extension(_) => f.write_str("Extension"),
            Source::Function(_) => f.write_str("Function"),
        }
    }
}
