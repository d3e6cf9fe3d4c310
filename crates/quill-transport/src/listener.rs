//! Where a server listens.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::net::SocketAddr;
#[cfg(unix)]
use std::path::{Path, PathBuf};
use std::task::{Context, Poll};

#[cfg(unix)]
use tokio::net::UnixListener;
use tokio::net::{TcpListener, TcpSocket, lookup_host};

use crate::io::Socket;

/// Connections that the kernel keeps for a server that has not accepted them yet.
const BACKLOG: u32 = 1024;

/// Bound sockets, TCP or Unix, that a server accepts connections from.
///
/// Addresses are written `host:port` (port 0 takes a free one) or, on Unix,
/// `unix:/path/of/socket`.
#[derive(Debug)]
pub struct Listener {
    sockets: Vec<Bound>,
}

#[derive(Debug)]
enum Bound {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(UnixListener, SocketFile),
}

impl Listener {
    /// Binds one address. A name with several addresses is bound on all of
    /// them that this machine has, each on the same port.
    ///
    /// # Errors
    /// The address can't be read, resolved or bound.
    pub async fn bind(address: &str) -> Result<Self, BindError> {
        Self::bind_all(&[address]).await
    }

    /// Binds several addresses, for one server.
    ///
    /// # Errors
    /// One of them can't be read, resolved or bound, or there is none.
    pub async fn bind_all<A: AsRef<str>>(addresses: &[A]) -> Result<Self, BindError> {
        let mut sockets = Vec::with_capacity(addresses.len());
        for address in addresses {
            let address = address.as_ref();
            match address.strip_prefix("unix:") {
                Some(path) => sockets.push(bind_unix(address, path).await?),
                None => {
                    let mut of_name = Vec::new();
                    bind_name(address, bind_tcp, &mut of_name).await?;
                    sockets.extend(of_name.into_iter().map(Bound::Tcp));
                }
            }
        }
        if sockets.is_empty() {
            let none = io::Error::new(io::ErrorKind::InvalidInput, "no address was given");
            return Err(BindError::new("nothing", none));
        }
        Ok(Self { sockets })
    }

    /// Takes a socket that is listening already, as one that a supervisor
    /// handed over.
    ///
    /// # Errors
    /// The socket can't be made non-blocking, or there is no tokio runtime.
    pub fn from_std(listener: std::net::TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let sockets = vec![Bound::Tcp(TcpListener::from_std(listener)?)];
        Ok(Self { sockets })
    }

    /// The addresses of the TCP sockets, with the ports they got.
    #[must_use]
    pub fn local_addresses(&self) -> Vec<SocketAddr> {
        self.sockets
            .iter()
            .filter_map(|socket| match socket {
                Bound::Tcp(listener) => listener.local_addr().ok(),
                #[cfg(unix)]
                Bound::Unix(..) => None,
            })
            .collect()
    }

    /// The address of the first TCP socket; `None` with Unix sockets alone.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.local_addresses().first().copied()
    }

    /// The paths of the Unix sockets.
    #[cfg(unix)]
    #[must_use]
    pub fn paths(&self) -> Vec<&Path> {
        self.sockets
            .iter()
            .filter_map(|socket| match socket {
                Bound::Tcp(_) => None,
                Bound::Unix(_, file) => Some(file.0.as_path()),
            })
            .collect()
    }

    /// The next connection, of any of the sockets, beginning with the one
    /// whose `turn` it is, so that no busy socket keeps the others waiting.
    pub(crate) fn poll_accept(
        &self,
        turn: usize,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Socket>> {
        let count = self.sockets.len().max(1);
        for socket in self.sockets.iter().cycle().skip(turn % count).take(count) {
            let accepted = match socket {
                Bound::Tcp(listener) => listener
                    .poll_accept(cx)
                    .map_ok(|(stream, _)| Socket::Tcp(stream)),
                #[cfg(unix)]
                Bound::Unix(listener, _) => listener
                    .poll_accept(cx)
                    .map_ok(|(stream, _)| Socket::Unix(stream)),
            };
            if accepted.is_ready() {
                return accepted;
            }
        }
        Poll::Pending
    }
}

/// Sockets that no runtime knows yet.
pub(crate) struct ShareableListener(Vec<std::net::TcpListener>);

impl ShareableListener {
    /// Binds an address so many times; the kernel spreads connections over them.
    pub(crate) async fn bind(address: &str, count: usize) -> Result<Vec<Self>, BindError> {
        if address.starts_with("unix:") {
            let error = io::Error::new(
                io::ErrorKind::Unsupported,
                "a Unix socket can't be shared by several listeners",
            );
            return Err(BindError::new(address, error));
        }
        let mut sockets = Vec::new();
        bind_name(address, bind_shared_tcp, &mut sockets).await?;
        let mut all = Vec::with_capacity(count);
        for _ in 1..count {
            let mut same = Vec::with_capacity(sockets.len());
            for socket in &sockets {
                let again = socket.local_addr().and_then(bind_shared_tcp);
                same.push(again.map_err(|error| BindError::new(address, error))?);
            }
            all.push(same);
        }
        all.push(sockets);
        let unregistered = |sockets: Vec<TcpListener>| {
            let sockets = sockets.into_iter().map(TcpListener::into_std);
            let sockets: io::Result<_> = sockets.collect();
            sockets.map(Self)
        };
        let all: io::Result<_> = all.into_iter().map(unregistered).collect();
        all.map_err(|error| BindError::new(address, error))
    }

    /// Makes them the sockets of the current runtime.
    pub(crate) fn register(self) -> io::Result<Listener> {
        let sockets = self.0.into_iter();
        let sockets = sockets.map(|socket| TcpListener::from_std(socket).map(Bound::Tcp));
        Ok(Listener {
            sockets: sockets.collect::<io::Result<_>>()?,
        })
    }
}

async fn bind_name(
    address: &str,
    bind: fn(SocketAddr) -> io::Result<TcpListener>,
    sockets: &mut Vec<TcpListener>,
) -> Result<(), BindError> {
    let resolved = lookup_host(address)
        .await
        .map_err(|error| BindError::new(address, error))?;
    let mut port = 0;
    let mut bound = 0;
    let mut failed = None;
    for mut candidate in resolved {
        if candidate.port() == 0 {
            candidate.set_port(port);
        }
        match bind(candidate) {
            Ok(listener) => {
                port = listener.local_addr().map_or(0, |local| local.port());
                sockets.push(listener);
                bound += 1;
            }
            // A name may have addresses of a family this machine lacks.
            Err(error) if is_foreign(&error) => failed = Some(error),
            Err(error) => return Err(BindError::new(address, error)),
        }
    }
    if bound > 0 {
        return Ok(());
    }
    let none = || io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    Err(BindError::new(address, failed.unwrap_or_else(none)))
}

fn is_foreign(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::AddrNotAvailable | io::ErrorKind::Unsupported
    )
}

fn bind_tcp(address: SocketAddr) -> io::Result<TcpListener> {
    listen(new_socket(address)?, address)
}

/// As [`bind_tcp`], where others may be bound to the same address.
#[cfg(unix)]
fn bind_shared_tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = new_socket(address)?;
    socket.set_reuseport(true)?;
    listen(socket, address)
}

#[cfg(not(unix))]
fn bind_shared_tcp(_: SocketAddr) -> io::Result<TcpListener> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "this system can't share a port among several listeners",
    ))
}

fn new_socket(address: SocketAddr) -> io::Result<TcpSocket> {
    match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }
}

fn listen(socket: TcpSocket, address: SocketAddr) -> io::Result<TcpListener> {
    // On Windows the option would let two servers share a port.
    #[cfg(not(windows))]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

#[cfg(unix)]
async fn bind_unix(address: &str, path: &str) -> Result<Bound, BindError> {
    let path = Path::new(path);
    let bound = match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_stale(path).await => {
            std::fs::remove_file(path).and_then(|()| UnixListener::bind(path))
        }
        bound => bound,
    };
    let listener = bound.map_err(|error| BindError::new(address, error))?;
    Ok(Bound::Unix(listener, SocketFile(path.to_owned())))
}

#[cfg(not(unix))]
async fn bind_unix(address: &str, _: &str) -> Result<Bound, BindError> {
    let error = io::Error::new(
        io::ErrorKind::Unsupported,
        "this system has no Unix sockets; give host:port",
    );
    Err(BindError::new(address, error))
}

/// Whether a socket's file was left by a server that is gone.
#[cfg(unix)]
async fn is_stale(path: &Path) -> bool {
    tokio::net::UnixStream::connect(path)
        .await
        .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// A Unix socket's file, removed when the server no longer listens.
#[cfg(unix)]
#[derive(Debug)]
struct SocketFile(PathBuf);

#[cfg(unix)]
impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// An address that a server can't listen on.
#[derive(Debug)]
pub struct BindError {
    address: String,
    source: io::Error,
}

impl BindError {
    pub(crate) fn new(address: &str, source: io::Error) -> Self {
        Self {
            address: address.to_owned(),
            source,
        }
    }

    /// The address, as it was given.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Whether another process listens there.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        self.source.kind() == io::ErrorKind::AddrInUse
    }
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "can't listen on {}: ", self.address)?;
        let is_path = self.address.starts_with("unix:");
        match self.source.kind() {
            io::ErrorKind::AddrInUse if is_path => f.write_str(
                "another process listens there, or the file is no socket; stop it, or give another path",
            ),
            io::ErrorKind::AddrInUse => f.write_str(
                "the address is in use; stop the process that listens there, or give another port (port 0 takes a free one)",
            ),
            io::ErrorKind::PermissionDenied if is_path => {
                f.write_str("no permission to create the socket's file")
            }
            io::ErrorKind::PermissionDenied => f.write_str(
                "no permission; ports under 1024 need privileges, give a higher one",
            ),
            io::ErrorKind::AddrNotAvailable => {
                f.write_str("this machine has no such address; 0.0.0.0 or [::] takes all it has")
            }
            _ => write!(f, "{}; give host:port or unix:/path", self.source),
        }
    }
}

impl StdError for BindError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_port_in_use_is_told_with_what_to_do() {
        let first = Listener::bind("127.0.0.1:0").await.unwrap();
        let address = first.local_addr().unwrap().to_string();
        let error = Listener::bind(&address).await.unwrap_err();
        assert!(error.is_in_use());
        let text = error.to_string();
        assert!(text.starts_with(&format!("can't listen on {address}: the address is in use")));
        assert!(text.contains("port 0"));
    }

    #[tokio::test]
    async fn what_is_no_address_is_told() {
        for bad in ["", "127.0.0.1", "127.0.0.1:99999", "no such host:80"] {
            let error = Listener::bind(bad).await.unwrap_err();
            assert_eq!(error.address(), bad);
            assert!(!error.is_in_use());
        }
        let none: [&str; 0] = [];
        assert!(Listener::bind_all(&none).await.is_err());
    }

    #[tokio::test]
    async fn several_addresses_are_bound_for_one_server() {
        let listener = Listener::bind_all(&["127.0.0.1:0", "127.0.0.1:0"])
            .await
            .unwrap();
        let addresses = listener.local_addresses();
        assert_eq!(addresses.len(), 2);
        assert_ne!(addresses[0].port(), addresses[1].port());
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_stale_socket_file_is_replaced_and_a_live_one_is_not() {
        let path = std::env::temp_dir().join(format!("quill-listener-{}", std::process::id()));
        let address = format!("unix:{}", path.display());
        let _ = std::fs::remove_file(&path);
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let live = Listener::bind(&address).await.unwrap();
        assert!(Listener::bind(&address).await.unwrap_err().is_in_use());
        drop(live);
        assert!(!path.exists());
    }
}
