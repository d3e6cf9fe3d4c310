//! The server: serves until SIGTERM.

use std::error::Error;
use std::io::Write as _;

use quill::{Server, shutdown_signal};

use crate::load::{Load, LoadReports};
use crate::proto::grpc::testing::TestServer;
use crate::proto::xds::service::orca::v3::OpenRcaServer;
use crate::service::Test;

pub(crate) async fn run() -> Result<(), Box<dyn Error>> {
    let load = Load::default();
    let server = Server::builder()
        .service(TestServer::new(Test::new(load.clone())))
        .service(OpenRcaServer::new(LoadReports(load)))
        .bind("127.0.0.1:0")
        .await?
        .start();
    let address = server.local_addr().ok_or("the server has no address")?;
    let mut out = std::io::stdout();
    writeln!(out, "{}", address.port())?;
    out.flush()?;
    shutdown_signal().await;
    server.shutdown().await;
    Ok(())
}
