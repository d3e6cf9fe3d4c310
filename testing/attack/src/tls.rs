//! The server with TLS that is attacked.

use std::path::Path;

use quill::Server;
use quill::tls::{ClientTls, ServerTls};

const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "key.pem";
pub(crate) const PORT: &str = "port";

/// Writes a certificate for this machine and its key.
pub(crate) fn write_identity(folder: &Path) -> Result<(), String> {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let identity = rcgen::generate_simple_self_signed(names).map_err(|e| e.to_string())?;
    std::fs::write(folder.join(CERTIFICATE), identity.cert.pem())
        .and_then(|()| std::fs::write(folder.join(KEY), identity.signing_key.serialize_pem()))
        .map_err(|error| format!("{}: {error}", folder.display()))
}

/// What a client needs to trust that certificate.
pub(crate) fn trust(folder: &Path) -> Result<ClientTls, String> {
    let tls = ClientTls::builder()
        .ca_file(folder.join(CERTIFICATE))
        .without_public_authorities();
    tls.build().map_err(|error| error.to_string())
}

/// Serves the health service until the process is asked to end.
pub(crate) async fn serve(folder: &Path) -> Result<(), String> {
    let tls = ServerTls::builder()
        .identity_files(folder.join(CERTIFICATE), folder.join(KEY))
        .build()
        .map_err(|error| error.to_string())?;
    let server = Server::builder()
        .service(quill_health::server())
        .tls(tls)
        .drain_limit(crate::victim::DRAIN_LIMIT)
        .bind("127.0.0.1:0")
        .await
        .map_err(|error| error.to_string())?;
    let port = server.local_addr().map_or(0, |address| address.port());
    let partial = folder.join("port.partial");
    std::fs::write(&partial, format!("{port}\n"))
        .and_then(|()| std::fs::rename(&partial, folder.join(PORT)))
        .map_err(|error| format!("{}: {error}", folder.display()))?;
    let served = server.serve_until(quill::shutdown_signal()).await;
    served.map_err(|error| error.to_string())
}
