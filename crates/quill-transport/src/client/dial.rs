//! From an endpoint to a connected byte stream.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use quill_core::HttpVersion;
use rustls::pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_rustls::TlsConnector;

use super::endpoint::{Endpoint, Place};
use super::options::ClientOptions;
use crate::error::{TransportError, TransportErrorKind};
use crate::hyper_error::chain;
use crate::io::{Io, Socket};
use crate::tls::{ALPN_HTTP2, ClientTls};

/// The time between two probes of a peer that does not answer them.
#[cfg(any(target_os = "linux", target_os = "macos", windows))]
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// A connected byte stream and the version of HTTP to speak on it.
pub(super) struct Dialed {
    pub(super) io: Io,
    pub(super) version: HttpVersion,
}

/// Connects: every address of the name is tried, and the first that answers taken.
pub(super) async fn dial(
    endpoint: &Endpoint,
    options: &ClientOptions,
    tls: Option<&ClientTls>,
) -> Result<Dialed, TransportError> {
    let plain = if options.http1 {
        HttpVersion::Http1
    } else {
        HttpVersion::Http2
    };
    let (socket, host) = match &endpoint.place {
        Place::Unix(path) => (connect_unix(endpoint, path).await?, "localhost"),
        Place::Tcp { host, port } => {
            let addresses = match endpoint.address {
                Some(address) => vec![address],
                None => resolve(endpoint, host, *port).await?,
            };
            (
                connect_any(endpoint, options, addresses).await?,
                host.as_str(),
            )
        }
    };
    let Some(tls) = tls.filter(|_| endpoint.is_secure()) else {
        let io = Io::Plain(socket);
        return Ok(Dialed { io, version: plain });
    };
    secure(endpoint, options, tls, socket, host).await
}

/// The error of a connection that was not made in its time.
pub(super) fn took_too_long(endpoint: &Endpoint, limit: Duration) -> TransportError {
    let message = format!("connecting to {endpoint} took longer than {limit:?}");
    TransportError::new(TransportErrorKind::Timeout, message).unprocessed()
}

/// TLS on a connected socket; the handshake chooses the version of HTTP.
async fn secure(
    endpoint: &Endpoint,
    options: &ClientOptions,
    tls: &ClientTls,
    socket: Socket,
    host: &str,
) -> Result<Dialed, TransportError> {
    let name = match &tls.server_name {
        Some(name) => name.clone(),
        None => ServerName::try_from(host.to_owned()).map_err(|error| {
            let message = format!("{host:?} is no name that a certificate can be for");
            TransportError::new(TransportErrorKind::Url, message)
                .unprocessed()
                .with_source(error)
        })?,
    };
    let config = if options.http1 {
        &tls.http1
    } else {
        &tls.http2
    };
    let stream = TlsConnector::from(config.clone())
        .connect(name, socket)
        .await
        .map_err(|error| {
            let cause = if is_answered_without_tls(&error) {
                "what listens there does not speak TLS; http:// is for servers without".to_owned()
            } else {
                chain(&error)
            };
            let message = format!("the TLS handshake with {endpoint} failed: {cause}");
            TransportError::new(TransportErrorKind::Tls, message)
                .unprocessed()
                .with_source(error)
        })?;
    // A server without ALPN speaks HTTP/1.1 (RFC 9113, section 3.2 asks for "h2").
    let version = match stream.get_ref().1.alpn_protocol() {
        Some(ALPN_HTTP2) => HttpVersion::Http2,
        _ => HttpVersion::Http1,
    };
    let io = Io::Client(Box::new(stream));
    Ok(Dialed { io, version })
}

/// Whether a handshake failed because the peer's bytes are no record of TLS.
fn is_answered_without_tls(error: &io::Error) -> bool {
    let cause = error
        .get_ref()
        .and_then(|cause| cause.downcast_ref::<rustls::Error>());
    let not_a_record = rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType);
    cause == Some(&not_a_record)
}

#[cfg(unix)]
async fn connect_unix(
    endpoint: &Endpoint,
    path: &std::path::Path,
) -> Result<Socket, TransportError> {
    let stream = tokio::net::UnixStream::connect(path).await;
    stream.map(Socket::Unix).map_err(|error| {
        let message = format!("can't connect to {endpoint}: {error}");
        TransportError::new(TransportErrorKind::Connect, message)
            .unprocessed()
            .with_source(error)
    })
}

#[cfg(not(unix))]
async fn connect_unix(endpoint: &Endpoint, _: &std::path::Path) -> Result<Socket, TransportError> {
    let message = format!("can't connect to {endpoint}: this system has no Unix sockets");
    Err(TransportError::new(TransportErrorKind::Connect, message).unprocessed())
}

impl Endpoint {
    /// An endpoint for each address that its host has now, all with the same name
    /// towards the server; a Unix socket has none but itself.
    ///
    /// # Errors
    /// [`TransportErrorKind::Resolve`]: the name has no address, or it can't be
    /// found out.
    pub async fn resolve(&self) -> Result<Vec<Self>, TransportError> {
        let Place::Tcp { host, port } = &self.place else {
            return Ok(vec![self.clone()]);
        };
        let addresses = resolve(self, host, *port).await?;
        let at = |address| {
            let mut endpoint = self.clone();
            endpoint.address = Some(address);
            endpoint
        };
        Ok(addresses.into_iter().map(at).collect())
    }
}

async fn resolve(
    endpoint: &Endpoint,
    host: &str,
    port: u16,
) -> Result<Vec<SocketAddr>, TransportError> {
    let failed = |why: String| {
        let message = format!(
            "can't find the address of {host:?} in {endpoint}: {why}; check the name and the network"
        );
        TransportError::new(TransportErrorKind::Resolve, message).unprocessed()
    };
    let addresses: Vec<_> = lookup_host((host, port))
        .await
        .map_err(|error| failed(error.to_string()).with_source(error))?
        .collect();
    if addresses.is_empty() {
        return Err(failed("the name has none".to_owned()));
    }
    Ok(interleave(addresses))
}

/// Families in turns, beginning with that of the first (RFC 8305, section 4),
/// so that a family without a route costs one delay.
fn interleave(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let count = addresses.len();
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) = addresses
        .into_iter()
        .partition(|address| address.is_ipv6() == first_is_v6);
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut ordered = Vec::with_capacity(count);
    while ordered.len() < count {
        ordered.extend(first.next());
        ordered.extend(second.next());
    }
    ordered
}

/// Tries the addresses one after the other, the next one as soon as the last
/// has failed or kept silent for a while; the first connection wins.
async fn connect_any(
    endpoint: &Endpoint,
    options: &ClientOptions,
    addresses: Vec<SocketAddr>,
) -> Result<Socket, TransportError> {
    let mut waiting = addresses.into_iter();
    let mut attempts = JoinSet::new();
    let mut failures: Vec<(SocketAddr, io::Error)> = Vec::new();
    loop {
        match waiting.next() {
            Some(address) => {
                attempts.spawn(async move { (address, TcpStream::connect(address).await) });
            }
            None if attempts.is_empty() => return Err(unreachable_error(endpoint, failures)),
            None => {}
        }
        let next = Instant::now() + options.attempt_delay;
        let has_next = waiting.len() > 0;
        let ended = tokio::select! {
            ended = attempts.join_next() => ended,
            () = sleep_until(next), if has_next => continue,
        };
        match ended {
            Some(Ok((_, Ok(stream)))) => {
                prepare(&stream, options);
                return Ok(Socket::Tcp(stream));
            }
            Some(Ok((address, Err(error)))) => failures.push((address, error)),
            Some(Err(error)) => tracing::debug!(%error, "an attempt to connect was lost"),
            None => {}
        }
    }
}

/// Sets what a socket is better with; it works without, too.
fn prepare(stream: &TcpStream, options: &ClientOptions) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
    let Some(silence) = options.tcp_keepalive else {
        return;
    };
    let keepalive = TcpKeepalive::new().with_time(silence);
    // Elsewhere the system's own interval holds.
    #[cfg(any(target_os = "linux", target_os = "macos", windows))]
    let keepalive = keepalive.with_interval(KEEPALIVE_INTERVAL.min(silence));
    if let Err(error) = SockRef::from(stream).set_tcp_keepalive(&keepalive) {
        tracing::debug!(%error, "SO_KEEPALIVE could not be set");
    }
}

fn unreachable_error(
    endpoint: &Endpoint,
    failures: Vec<(SocketAddr, io::Error)>,
) -> TransportError {
    let tried: Vec<_> = failures
        .iter()
        .map(|(address, error)| format!("{address}: {error}"))
        .collect();
    let is_refused =
        |(_, error): &(SocketAddr, io::Error)| error.kind() == io::ErrorKind::ConnectionRefused;
    let hint = if failures.iter().any(is_refused) {
        ": no server listens there; is it running, and on this port?"
    } else {
        ""
    };
    let message = format!("can't connect to {endpoint} ({}){hint}", tried.join("; "));
    let error = TransportError::new(TransportErrorKind::Connect, message).unprocessed();
    match failures.into_iter().next_back() {
        Some((_, cause)) => error.with_source(cause),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::{TcpListener, TcpSocket, TcpStream};

    #[tokio::test]
    async fn an_endpoint_is_resolved_to_one_for_each_address() {
        let endpoint = Endpoint::parse("https://127.0.0.1:8443/api").unwrap();
        let resolved = endpoint.resolve().await.unwrap();
        let addresses: Vec<_> = resolved.iter().map(Endpoint::address).collect();
        assert_eq!(addresses, ["127.0.0.1:8443".parse().ok()]);
        assert_eq!(resolved[0].to_string(), endpoint.to_string());
        assert_ne!(resolved[0], endpoint);
        let socket = Endpoint::parse("unix:/a").unwrap();
        assert_eq!(socket.resolve().await.unwrap(), [socket]);
    }

    #[test]
    fn families_take_turns() {
        let read = |text: &str| text.parse::<SocketAddr>().unwrap();
        let (a, b, c) = (read("[::1]:1"), read("[::2]:1"), read("[::3]:1"));
        let (x, y) = (read("1.1.1.1:1"), read("2.2.2.2:1"));
        assert_eq!(interleave(vec![a, b, c, x, y]), [a, x, b, y, c]);
        assert_eq!(interleave(vec![x, y, a]), [x, a, y]);
        assert_eq!(interleave(vec![]), []);
    }

    /// An address on this machine that answers nobody, for as long as what comes
    /// with it lives: nobody accepts there, and all places to wait are taken.
    async fn silent_peer() -> (SocketAddr, (TcpListener, Vec<TcpStream>)) {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(1).unwrap();
        let address = listener.local_addr().unwrap();
        let mut waiting = Vec::new();
        loop {
            let connecting = TcpStream::connect(address);
            match tokio::time::timeout(Duration::from_millis(200), connecting).await {
                Ok(connected) => waiting.push(connected.unwrap()),
                Err(_) => return (address, (listener, waiting)),
            }
            assert!(waiting.len() < 16, "the queue of a listener has no end");
        }
    }

    #[tokio::test]
    async fn addresses_that_fail_or_keep_silent_give_way_to_the_next() {
        let endpoint = Endpoint::parse("http://a.example").unwrap();
        let options = ClientOptions {
            attempt_delay: std::time::Duration::from_millis(20),
            ..ClientOptions::default()
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let good = listener.local_addr().unwrap();
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let refused = closed.local_addr().unwrap();
        drop(closed);
        let (silent, _full) = silent_peer().await;
        let addresses = vec![silent, refused, good];
        let connected = connect_any(&endpoint, &options, addresses).await.unwrap();
        assert_eq!(connected.peer_address(), Some(good));
        let Socket::Tcp(stream) = &connected else {
            panic!("an address of TCP");
        };
        assert!(SockRef::from(stream).keepalive().unwrap());

        let error = connect_any(&endpoint, &options, vec![refused, refused]).await;
        let error = error.unwrap_err();
        assert_eq!(error.kind(), TransportErrorKind::Connect);
        assert_eq!(error.to_string().matches(&refused.to_string()).count(), 2);
    }
}
