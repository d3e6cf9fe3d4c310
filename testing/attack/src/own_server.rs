//! Servers that are attacked and that `quill demo` is not.

use std::path::Path;

use quill::{Server, ServerBuilder};

use crate::attack::ADDRESS_CONNECTIONS;
use crate::tls;

/// The file that a server writes its port to.
pub(crate) const PORT: &str = "port";

/// Serves with TLS until the process is asked to end.
pub(crate) async fn with_tls(folder: &Path) -> Result<(), String> {
    let tls = tls::identity(folder)?;
    serve(Server::builder().tls(tls), folder).await
}

/// Serves with a limit on the connections of an address.
pub(crate) async fn of_addresses(folder: &Path) -> Result<(), String> {
    let builder = Server::builder().connections_per_ip_max(ADDRESS_CONNECTIONS);
    serve(builder, folder).await
}

async fn serve(builder: ServerBuilder, folder: &Path) -> Result<(), String> {
    let server = builder
        .service(quill_health::server())
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
