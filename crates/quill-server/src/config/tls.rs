//! TLS: files, and how they are read again.

use std::path::PathBuf;

use quill_config::{ConfigError, OrOff, Read, Time};
use quill_transport::tls::{ClientAuth, ServerTls};
use serde::Deserialize;

use super::Settings;
use crate::builder::ServerBuilder;

/// The server's certificate, and whom it trusts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    client_ca: Option<PathBuf>,
    client_auth: Option<WhichClients>,
    reload_every: Option<OrOff<Time>>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WhichClients {
    Required,
    Optional,
}

impl Tls {
    pub(super) fn apply<L>(
        &self,
        builder: ServerBuilder<L>,
        read: &Read<Settings>,
    ) -> Result<ServerBuilder<L>, ConfigError> {
        let mut tls =
            ServerTls::builder().identity_files(read.path(&self.certificate), read.path(&self.key));
        if let Some(authorities) = &self.client_ca {
            tls = tls.client_ca_file(read.path(authorities));
        } else if self.client_auth.is_some() {
            let wrong = "it asks callers for certificates, and needs client_ca to check them";
            return Err(read.error("tls.client_auth", wrong));
        }
        tls = match self.client_auth {
            Some(WhichClients::Optional) => tls.client_auth(ClientAuth::Optional),
            Some(WhichClients::Required) | None => tls,
        };
        let tls = tls.build().map_err(|error| read.error("tls", error))?;
        let builder = builder.tls(tls);
        Ok(match self.reload_every {
            None => builder.tls_reload_every(RELOAD_DEFAULT),
            Some(OrOff::On(interval)) => builder.tls_reload_every(interval.duration()),
            Some(OrOff::Off) => builder,
        })
    }
}

/// Certificates are renewed days before they end.
const RELOAD_DEFAULT: std::time::Duration = std::time::Duration::from_secs(60);
