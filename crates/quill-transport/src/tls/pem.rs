//! PEM: where it comes from and what is in it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use rustls::RootCertStore;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::TlsError;

/// PEM text, or the file it is read from each time.
#[derive(Clone, Debug)]
pub(super) enum Pem {
    File(PathBuf),
    Text(Bytes),
}

impl Pem {
    pub(super) fn file(path: impl AsRef<Path>) -> Self {
        Self::File(path.as_ref().to_owned())
    }

    pub(super) fn text(text: impl AsRef<[u8]>) -> Self {
        Self::Text(Bytes::copy_from_slice(text.as_ref()))
    }

    fn read(&self) -> Result<Bytes, TlsError> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::File(path) => std::fs::read(path)
                .map(Bytes::from)
                .map_err(|error| TlsError::caused(format!("can't read {}", path.display()), error)),
        }
    }

    /// What to call it in an error.
    fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Text(_) => "the PEM text".to_owned(),
        }
    }

    /// The certificates in it, at least one.
    pub(super) fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let text = self.read()?;
        let certificates: Vec<_> = CertificateDer::pem_slice_iter(&text)
            .collect::<Result<_, _>>()
            .map_err(|error| self.broken(error))?;
        if certificates.is_empty() {
            let name = self.name();
            return Err(TlsError::new(format!(
                "{name} holds no certificate (a PEM section \"CERTIFICATE\")"
            )));
        }
        Ok(certificates)
    }

    /// The private key in it.
    fn private_key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        PrivateKeyDer::from_pem_slice(&self.read()?).map_err(|error| match error {
            pem::Error::NoItemsFound => TlsError::new(format!(
                "{} holds no private key (a PEM section \"PRIVATE KEY\", unencrypted)",
                self.name()
            )),
            error => self.broken(error),
        })
    }

    fn broken(&self, error: pem::Error) -> TlsError {
        TlsError::caused(format!("{} is no valid PEM", self.name()), error)
    }

    /// When the file last changed; `None` for text, or a file that is gone.
    pub(super) fn modified(&self) -> Option<std::time::SystemTime> {
        match self {
            Self::File(path) => std::fs::metadata(path).and_then(|m| m.modified()).ok(),
            Self::Text(_) => None,
        }
    }
}

/// A certificate chain, the own certificate first, and its key.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) chain: Pem,
    pub(super) key: Pem,
}

impl Identity {
    pub(super) fn load(
        &self,
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
        Ok((self.chain.certificates()?, self.key.private_key()?))
    }

    /// A rustls refusal of the pair, with its names.
    pub(super) fn refused(&self, error: rustls::Error) -> TlsError {
        let (chain, key) = (self.chain.name(), self.key.name());
        TlsError::caused(
            format!("the certificate of {chain} and the key of {key} can't be used together"),
            error,
        )
    }
}

/// A store of these authorities.
pub(super) fn roots(
    mut store: RootCertStore,
    authorities: &[Pem],
) -> Result<Arc<RootCertStore>, TlsError> {
    for pem in authorities {
        for certificate in pem.certificates()? {
            store.add(certificate).map_err(|error| {
                let name = pem.name();
                TlsError::caused(
                    format!("{name} holds a certificate that can't be trusted"),
                    error,
                )
            })?;
        }
    }
    Ok(Arc::new(store))
}
