//! The server: one request says how to serve, then it serves until SIGTERM.

use std::error::Error;

use quill::tls::ServerTls;
use quill::{Encoding, Server, shutdown_signal};

use crate::pipe;
use crate::proto::{ConformanceServer, ServerCompatRequest, ServerCompatResponse};
use crate::service::Conformance;

const HOST: &str = "127.0.0.1";

pub(crate) async fn run() -> Result<(), Box<dyn Error>> {
    let request: ServerCompatRequest = pipe::read(&mut tokio::io::stdin())
        .await?
        .ok_or("standard input holds no ServerCompatRequest")?;
    let mut builder = Server::builder()
        .service(ConformanceServer::new(Conformance))
        .encodings(Encoding::ALL.iter().copied())
        // Also the short messages of the suite are to be compressed.
        .compress_bytes_min(0);
    if request.message_receive_limit > 0 {
        builder = builder.receive_bytes_max(request.message_receive_limit as usize);
    }
    if request.use_tls {
        builder = builder.tls(tls(&request)?);
    }
    let server = builder.bind(&format!("{HOST}:0")).await?.start();
    let address = server.local_addr().ok_or("the server has no address")?;
    let response = ServerCompatResponse {
        host: HOST.to_owned(),
        port: address.port().into(),
        pem_cert: request.server_creds.cert.clone(),
        ..Default::default()
    };
    pipe::write(&response, &mut tokio::io::stdout()).await?;
    shutdown_signal().await;
    server.shutdown().await;
    Ok(())
}

fn tls(request: &ServerCompatRequest) -> Result<ServerTls, Box<dyn Error>> {
    let identity = request
        .server_creds
        .as_option()
        .ok_or("TLS is asked for, but there are no server_creds")?;
    let mut tls = ServerTls::builder().identity_pem(&identity.cert, &identity.key);
    if !request.client_tls_cert.is_empty() {
        tls = tls.client_ca_pem(&request.client_tls_cert);
    }
    Ok(tls.build()?)
}
