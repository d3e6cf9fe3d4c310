//! A client's TLS.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};

use super::pem::{self, Identity, Pem};
use super::{ALPN_HTTP1, ALPN_HTTP2, TlsError};

/// A client's TLS: whom it trusts, and the identity it shows if asked.
///
/// A server's certificate is always verified; there is no way to switch that
/// off. To reach a server with a certificate of one's own making, trust it:
/// [`ClientTlsBuilder::ca_file`].
#[derive(Clone)]
pub struct ClientTls {
    pub(crate) http2: Arc<ClientConfig>,
    pub(crate) http1: Arc<ClientConfig>,
    pub(crate) server_name: Option<ServerName<'static>>,
}

impl ClientTls {
    /// Starts with the public authorities of the Mozilla list.
    pub fn builder() -> ClientTlsBuilder {
        ClientTlsBuilder {
            public_authorities: true,
            authorities: Vec::new(),
            identity: None,
            server_name: None,
        }
    }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls")
            .field("server_name", &self.server_name)
            .finish_non_exhaustive()
    }
}

/// Builds a [`ClientTls`].
#[derive(Clone, Debug)]
#[must_use]
pub struct ClientTlsBuilder {
    public_authorities: bool,
    authorities: Vec<Pem>,
    identity: Option<Identity>,
    server_name: Option<String>,
}

impl ClientTlsBuilder {
    /// Trusts the authorities (or the self-signed certificate) in this PEM file too.
    pub fn ca_file(mut self, path: impl AsRef<Path>) -> Self {
        self.authorities.push(Pem::file(path));
        self
    }

    /// Trusts the authorities (or the self-signed certificate) in this PEM text too.
    pub fn ca_pem(mut self, text: impl AsRef<[u8]>) -> Self {
        self.authorities.push(Pem::text(text));
        self
    }

    /// Trusts only the authorities that were given here, not the public ones.
    pub fn without_public_authorities(mut self) -> Self {
        self.public_authorities = false;
        self
    }

    /// The certificate chain (own certificate first) and the key to show a
    /// server that asks (mTLS), in PEM files.
    pub fn identity_files(mut self, chain: impl AsRef<Path>, key: impl AsRef<Path>) -> Self {
        let (chain, key) = (Pem::file(chain), Pem::file(key));
        self.identity = Some(Identity { chain, key });
        self
    }

    /// The certificate chain (own certificate first) and the key to show a
    /// server that asks (mTLS), as PEM text.
    pub fn identity_pem(mut self, chain: impl AsRef<[u8]>, key: impl AsRef<[u8]>) -> Self {
        let (chain, key) = (Pem::text(chain), Pem::text(key));
        self.identity = Some(Identity { chain, key });
        self
    }

    /// The name that the server's certificate must be for, in place of the URL's host.
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }

    /// Reads and checks everything.
    ///
    /// # Errors
    /// A file can't be read or used, no authority is trusted, or the server
    /// name is none.
    pub fn build(self) -> Result<ClientTls, TlsError> {
        let mut store = RootCertStore::empty();
        if self.public_authorities {
            store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        } else if self.authorities.is_empty() {
            return Err(TlsError::new(
                "a client without the public authorities must be given one: ca_file or ca_pem",
            ));
        }
        let roots = pem::roots(store, &self.authorities)?;
        let builder = ClientConfig::builder_with_provider(super::provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::caused("no TLS version can be used", error))?
            .with_root_certificates(roots);
        let config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let (chain, key) = identity.load()?;
                builder
                    .with_client_auth_cert(chain, key)
                    .map_err(|error| identity.refused(error))?
            }
        };
        let server_name =
            match self.server_name {
                None => None,
                Some(name) => Some(ServerName::try_from(name.clone()).map_err(|error| {
                    TlsError::caused(format!("{name:?} is no server name"), error)
                })?),
            };
        let offering = |protocols: &[&[u8]]| {
            let mut config = config.clone();
            config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
            Arc::new(config)
        };
        Ok(ClientTls {
            http2: offering(&[ALPN_HTTP2, ALPN_HTTP1]),
            http1: offering(&[ALPN_HTTP1]),
            server_name,
        })
    }
}
