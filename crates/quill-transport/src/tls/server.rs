//! A server's TLS.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use super::pem::{self, Identity, Pem};
use super::{ALPN_HTTP1, ALPN_HTTP2, TlsError};
use crate::server::HttpVersions;

/// Whether callers must show a certificate of their own (mTLS).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    /// A caller without a certificate is refused in the handshake.
    Required,
    /// A caller may have none; one that it shows must be valid.
    Optional,
}

/// A server's TLS: its identity, whom it trusts, and how to read them again.
/// Clones share one state.
#[derive(Clone)]
pub struct ServerTls(Arc<Shared>);

struct Shared {
    source: ServerTlsBuilder,
    current: RwLock<Arc<Configs>>,
}

/// The same settings with the protocols that a server may offer.
struct Configs {
    all: Arc<ServerConfig>,
    http1: Arc<ServerConfig>,
    http2: Arc<ServerConfig>,
}

impl ServerTls {
    /// Starts with nothing; an identity is needed.
    pub fn builder() -> ServerTlsBuilder {
        ServerTlsBuilder {
            identity: None,
            client_authorities: Vec::new(),
            client_auth: ClientAuth::Required,
        }
    }

    /// Reads the PEM files again. Connections made from now on see what they
    /// hold, open ones keep what they have.
    ///
    /// # Errors
    /// A file can't be read or used; what was in use stays in use.
    pub fn reload(&self) -> Result<(), TlsError> {
        let configs = Arc::new(self.0.source.load()?);
        *self
            .0
            .current
            .write()
            .unwrap_or_else(PoisonError::into_inner) = configs;
        Ok(())
    }

    /// Looks every `interval` whether a file has changed, and reloads then.
    /// Never ends; an error is logged and what was in use stays in use.
    pub async fn watch(&self, interval: Duration) {
        let mut seen = self.0.source.modified();
        loop {
            tokio::time::sleep(interval).await;
            let now = self.0.source.modified();
            if now == seen {
                continue;
            }
            match self.reload() {
                Ok(()) => {
                    tracing::info!("TLS certificates were reloaded");
                    seen = now;
                }
                // Files are often replaced one after the other; the next look
                // finds them whole.
                Err(error) => tracing::warn!(%error, "TLS certificates were not reloaded"),
            }
        }
    }

    pub(crate) fn config(&self, versions: HttpVersions) -> Arc<ServerConfig> {
        let current = self
            .0
            .current
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        match versions {
            HttpVersions::All => current.all.clone(),
            HttpVersions::Http1 => current.http1.clone(),
            HttpVersions::Http2 => current.http2.clone(),
        }
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ServerTls").field(&self.0.source).finish()
    }
}

/// Builds a [`ServerTls`].
#[derive(Clone, Debug)]
#[must_use]
pub struct ServerTlsBuilder {
    identity: Option<Identity>,
    client_authorities: Vec<Pem>,
    client_auth: ClientAuth,
}

impl ServerTlsBuilder {
    /// The certificate chain (own certificate first) and the key, in PEM files.
    pub fn identity_files(mut self, chain: impl AsRef<Path>, key: impl AsRef<Path>) -> Self {
        let (chain, key) = (Pem::file(chain), Pem::file(key));
        self.identity = Some(Identity { chain, key });
        self
    }

    /// The certificate chain (own certificate first) and the key, as PEM text.
    pub fn identity_pem(mut self, chain: impl AsRef<[u8]>, key: impl AsRef<[u8]>) -> Self {
        let (chain, key) = (Pem::text(chain), Pem::text(key));
        self.identity = Some(Identity { chain, key });
        self
    }

    /// Asks callers for a certificate issued by an authority in this PEM file.
    pub fn client_ca_file(mut self, path: impl AsRef<Path>) -> Self {
        self.client_authorities.push(Pem::file(path));
        self
    }

    /// Asks callers for a certificate issued by an authority in this PEM text.
    pub fn client_ca_pem(mut self, text: impl AsRef<[u8]>) -> Self {
        self.client_authorities.push(Pem::text(text));
        self
    }

    /// Whether a caller without a certificate is refused, once authorities are
    /// given; required unless said otherwise.
    pub fn client_auth(mut self, auth: ClientAuth) -> Self {
        self.client_auth = auth;
        self
    }

    /// Reads and checks everything.
    ///
    /// # Errors
    /// There is no identity, or a file can't be read or used.
    pub fn build(self) -> Result<ServerTls, TlsError> {
        let configs = Arc::new(self.load()?);
        Ok(ServerTls(Arc::new(Shared {
            source: self,
            current: RwLock::new(configs),
        })))
    }

    fn load(&self) -> Result<Configs, TlsError> {
        let identity = self.identity.as_ref().ok_or_else(|| {
            TlsError::new(
                "a server's TLS needs a certificate and its key: identity_files or identity_pem",
            )
        })?;
        let builder = ServerConfig::builder_with_provider(super::provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::caused("no TLS version can be used", error))?;
        let builder = if self.client_authorities.is_empty() {
            builder.with_no_client_auth()
        } else {
            let roots = pem::roots(RootCertStore::empty(), &self.client_authorities)?;
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, super::provider());
            let verifier = match self.client_auth {
                ClientAuth::Required => verifier,
                ClientAuth::Optional => verifier.allow_unauthenticated(),
            };
            let verifier = verifier
                .build()
                .map_err(|error| TlsError::caused("the client authorities can't be used", error))?;
            builder.with_client_cert_verifier(verifier)
        };
        let (chain, key) = identity.load()?;
        let config = builder
            .with_single_cert(chain, key)
            .map_err(|error| identity.refused(error))?;
        let offering = |protocols: &[&[u8]]| {
            let mut config = config.clone();
            config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
            Arc::new(config)
        };
        Ok(Configs {
            all: offering(&[ALPN_HTTP2, ALPN_HTTP1]),
            http1: offering(&[ALPN_HTTP1]),
            http2: offering(&[ALPN_HTTP2]),
        })
    }

    fn modified(&self) -> Vec<Option<SystemTime>> {
        let identity = self.identity.iter().flat_map(|i| [&i.chain, &i.key]);
        identity
            .chain(&self.client_authorities)
            .map(Pem::modified)
            .collect()
    }
}
