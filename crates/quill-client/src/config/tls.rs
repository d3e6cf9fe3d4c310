//! Whom a client trusts, and the certificate it shows.

use std::path::PathBuf;

use quill_config::{ConfigError, Read};
use quill_transport::tls::ClientTls;
use serde::Deserialize;

use super::Settings;

/// Files in PEM, and names.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Tls {
    ca: Option<PathBuf>,
    without_public_authorities: bool,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    server_name: Option<String>,
}

impl Tls {
    pub(super) fn build(&self, read: &Read<Settings>) -> Result<ClientTls, ConfigError> {
        let mut tls = ClientTls::builder();
        if let Some(authorities) = &self.ca {
            tls = tls.ca_file(read.path(authorities));
        }
        if self.without_public_authorities {
            tls = tls.without_public_authorities();
        }
        tls = match (&self.certificate, &self.key) {
            (Some(chain), Some(key)) => tls.identity_files(read.path(chain), read.path(key)),
            (None, None) => tls,
            _ => return Err(read.error("tls", "certificate and key are set together")),
        };
        if let Some(name) = &self.server_name {
            tls = tls.server_name(name);
        }
        tls.build().map_err(|error| read.error("tls", error))
    }
}
