//! TLS, on rustls with ring: identities, trust and certificates that can be
//! replaced while a server runs.

mod client;
mod pem;
mod server;

pub use client::{ClientTls, ClientTlsBuilder};
pub use server::{ClientAuth, ServerTls, ServerTlsBuilder};

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;

/// The protocols a TLS handshake offers, best first.
pub(crate) const ALPN_HTTP2: &[u8] = b"h2";
pub(crate) const ALPN_HTTP1: &[u8] = b"http/1.1";

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Keys, certificates or settings that TLS can't use, in a sentence.
#[derive(Debug)]
pub struct TlsError {
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl TlsError {
    fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            source: None,
        }
    }

    fn caused(
        message: impl Into<String>,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self {
            message: message.into(),
            source: Some(source.into()),
        }
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Some(source) => write!(f, "{}: {source}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl StdError for TlsError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.source {
            Some(source) => Some(source.as_ref()),
            None => None,
        }
    }
}
