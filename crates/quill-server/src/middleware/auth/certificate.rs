//! Callers by the certificates of their connections.

use std::collections::HashMap;

use quill_core::{Error, RequestParts};
use ring::digest::{SHA256, digest};
use rustls_pki_types::CertificateDer;
use webpki::EndEntityCert;

use super::authenticator::{Authenticator, Verdict};
use super::identity::Identity;

/// Knows callers by the certificate with which they opened their connection (mTLS).
///
/// TLS has checked by then that an authority the server trusts for clients issued
/// it, and that the caller holds its key. The name is the certificate's first URI
/// (`spiffe://…`), else its first DNS name, else `sha256:` and the hexadecimal
/// SHA-256 of it. Either all names are let in, or those that are listed.
///
/// ```
/// use quill_server::auth::{AuthLayer, CertificateValidator, Identity};
///
/// let certificates = CertificateValidator::any()
///     .named("spiffe://example.org/billing", Identity::new("billing").with_scopes(["pay"]))
///     .only_named();
/// let layer = AuthLayer::new(certificates);
/// ```
#[derive(Debug)]
pub struct CertificateValidator {
    named: HashMap<String, Identity>,
    only_named: bool,
}

impl CertificateValidator {
    /// Lets in whoever has a certificate that TLS took; the name is the identity.
    #[must_use]
    pub fn any() -> Self {
        Self {
            named: HashMap::new(),
            only_named: false,
        }
    }

    /// Says who the holder of this name is.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>, identity: Identity) -> Self {
        self.named.insert(name.into(), identity);
        self
    }

    /// Lets in nobody but the names that were given.
    #[must_use]
    pub fn only_named(mut self) -> Self {
        self.only_named = true;
        self
    }
}

impl Authenticator for CertificateValidator {
    fn authenticate(&self, request: &RequestParts) -> Verdict {
        let peer = request.peer.as_ref();
        let Some(der) = peer.and_then(|peer| peer.certificates().first()) else {
            return Verdict::NoCredentials;
        };
        let name = name(der);
        match self.named.get(&name) {
            Some(identity) => Verdict::Known(identity.clone()),
            None if self.only_named => Verdict::Refused(Error::unauthenticated(
                "the certificate of this connection has no name that is let in",
            )),
            None => Verdict::Known(Identity::new(name)),
        }
    }
}

fn name(der: &[u8]) -> String {
    let certificate = CertificateDer::from(der);
    let parsed = EndEntityCert::try_from(&certificate).ok();
    let name = parsed.as_ref().and_then(|certificate| {
        let uri = certificate.valid_uri_names().next();
        uri.or_else(|| certificate.valid_dns_names().next())
    });
    name.map_or_else(|| fingerprint(der), str::to_owned)
}

fn fingerprint(der: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = "sha256:".to_owned();
    for byte in digest(&SHA256, der).as_ref() {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use quill_core::{HttpVersion, Peer};

    use super::*;

    fn with(names: &[&str], uri: Option<&str>) -> RequestParts {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = rcgen::CertificateParams::new(names).unwrap();
        if let Some(uri) = uri {
            let uri = rcgen::SanType::URI(uri.try_into().unwrap());
            params.subject_alt_names.push(uri);
        }
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let der = bytes::Bytes::copy_from_slice(certificate.der());
        let mut request = RequestParts::default();
        request.peer = Some(Peer::secure(None, HttpVersion::Http2, vec![der]));
        request
    }

    fn subject(validator: &CertificateValidator, request: &RequestParts) -> Option<String> {
        match validator.authenticate(request) {
            Verdict::Known(identity) => Some(identity.subject().to_owned()),
            Verdict::NoCredentials => None,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_name_is_a_uri_before_a_host_before_a_fingerprint() {
        let any = CertificateValidator::any();
        let both = with(&["a.example"], Some("spiffe://example/b"));
        assert_eq!(subject(&any, &both).as_deref(), Some("spiffe://example/b"));
        let host = with(&["a.example", "b.example"], None);
        assert_eq!(subject(&any, &host).as_deref(), Some("a.example"));
        let none = subject(&any, &with(&[], None)).unwrap();
        assert!(none.starts_with("sha256:") && none.len() == 71, "{none}");
        assert_eq!(subject(&any, &RequestParts::default()), None);
    }

    #[test]
    fn a_list_keeps_others_out() {
        let listed = CertificateValidator::any()
            .named("a.example", Identity::new("a"))
            .only_named();
        assert_eq!(
            subject(&listed, &with(&["a.example"], None)).as_deref(),
            Some("a")
        );
        let other = listed.authenticate(&with(&["b.example"], None));
        assert!(matches!(other, Verdict::Refused(_)), "{other:?}");
    }
}
