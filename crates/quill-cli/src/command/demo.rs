//! `quill demo`: example services to call.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use quill::{Server, shutdown_signal};

use crate::args::DemoArgs;
use crate::demo::proto::{data, echo};
use crate::demo::{Data, Echo};
use crate::exit::Failure;

/// Calls that are under way when the demo is asked to end get this long.
const DRAIN_LIMIT: Duration = Duration::from_secs(3);

pub(crate) async fn run(args: DemoArgs) -> Result<(), Failure> {
    let descriptors = [echo::FILE_DESCRIPTOR_SET, data::FILE_DESCRIPTOR_SET];
    let server = Server::builder()
        .service(echo::EchoServer::new(Echo))
        .service(data::DataServer::new(Data))
        .service(quill_health::server())
        .drain_limit(DRAIN_LIMIT)
        .bind(&args.listen)
        .await
        .map_err(|error| {
            let hint = if error.is_address_in_use() {
                "; choose another address with --listen, such as --listen 127.0.0.1:0"
            } else {
                ""
            };
            Failure::network(format!("{error}{hint}"))
        })?;
    let _ = descriptors;
    let running = server.start();
    if let Some(address) = running.local_addr() {
        if let Some(file) = &args.port_file {
            write_port(file, address)?;
        }
        greet(address);
    }
    shutdown_signal().await;
    running.shutdown().await;
    Ok(())
}

/// Writes the port in one piece: whoever waits for the file never reads half of it.
fn write_port(file: &Path, address: SocketAddr) -> Result<(), Failure> {
    let partial = file.with_extension("partial");
    std::fs::write(&partial, format!("{}\n", address.port()))
        .and_then(|()| std::fs::rename(&partial, file))
        .map_err(|error| Failure::input(format!("--port-file {}: {error}", file.display())))
}

#[expect(clippy::print_stdout, reason = "this is the command's own output")]
fn greet(address: SocketAddr) {
    let quill = std::env::current_exe()
        .map_or_else(|_| "quill".to_owned(), |path| path.display().to_string());
    println!(
        "Serving Quill, gRPC, gRPC-Web and Connect on http://{address}

Try, in another terminal:

  curl -d '{{\"message\":\"hi\"}}' -H 'content-type: application/json' \\
    http://{address}/echo.v1.EchoService/Echo

  grpcurl -plaintext -d '{{\"message\":\"hi\",\"count\":3}}' \\
    {address} echo.v1.EchoService/Expand

  {quill} call http://{address}/echo.v1.EchoService/Echo --input '{{\"message\":\"hi\"}}'

Ctrl-C ends it."
    );
}
