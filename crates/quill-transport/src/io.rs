//! The byte streams that HTTP is spoken on.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;

/// A connected socket.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

impl Socket {
    /// The peer's address, where it has one.
    pub(crate) fn peer_address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(stream) => stream.peer_addr().ok(),
            #[cfg(unix)]
            Self::Unix(_) => None,
        }
    }
}

/// A byte stream: a socket, or TLS on one. One type, so that HTTP is compiled once.
#[derive(Debug)]
pub(crate) enum Io {
    Plain(Socket),
    Server(Box<tokio_rustls::server::TlsStream<Socket>>),
    Client(Box<tokio_rustls::client::TlsStream<Socket>>),
}

macro_rules! socket {
    ($self:ident, $method:ident($($argument:expr),*)) => {
        match $self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).$method($($argument),*),
            #[cfg(unix)]
            Socket::Unix(stream) => Pin::new(stream).$method($($argument),*),
        }
    };
}

macro_rules! io {
    ($self:ident, $method:ident($($argument:expr),*)) => {
        match $self.get_mut() {
            Io::Plain(stream) => Pin::new(stream).$method($($argument),*),
            Io::Server(stream) => Pin::new(stream).$method($($argument),*),
            Io::Client(stream) => Pin::new(stream).$method($($argument),*),
        }
    };
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        socket!(self, poll_read(cx, buf))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        socket!(self, poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        socket!(self, poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        socket!(self, poll_shutdown(cx))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        socket!(self, poll_write_vectored(cx, bufs))
    }
}

impl AsyncRead for Io {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        io!(self, poll_read(cx, buf))
    }
}

impl AsyncWrite for Io {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        io!(self, poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        io!(self, poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        io!(self, poll_shutdown(cx))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        io!(self, poll_write_vectored(cx, bufs))
    }
}
