//! What a server with TLS and its clients need of each other.

use std::path::Path;

use quill::tls::{ClientTls, ServerTls};

const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "key.pem";

/// Writes a certificate for this machine and its key.
pub(crate) fn write_identity(folder: &Path) -> Result<(), String> {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let identity = rcgen::generate_simple_self_signed(names).map_err(|e| e.to_string())?;
    std::fs::write(folder.join(CERTIFICATE), identity.cert.pem())
        .and_then(|()| std::fs::write(folder.join(KEY), identity.signing_key.serialize_pem()))
        .map_err(|error| format!("{}: {error}", folder.display()))
}

/// What the server presents.
pub(crate) fn identity(folder: &Path) -> Result<ServerTls, String> {
    let files = (folder.join(CERTIFICATE), folder.join(KEY));
    let tls = ServerTls::builder().identity_files(files.0, files.1);
    tls.build().map_err(|error| error.to_string())
}

/// What a client needs to trust that certificate.
pub(crate) fn trust(folder: &Path) -> Result<ClientTls, String> {
    let tls = ClientTls::builder()
        .ca_file(folder.join(CERTIFICATE))
        .without_public_authorities();
    tls.build().map_err(|error| error.to_string())
}
