//! `quill demo`: example services to call.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use quill::{Cors, ServeError, Server, ServerConfig, shutdown_signal};
use quill_health::Status;

use crate::args::DemoArgs;
use crate::demo::proto::{data, echo};
use crate::demo::{Data, Echo};
use crate::failure::Failure;

/// Calls that are under way when the demo is asked to end get this long.
const DRAIN_LIMIT: Duration = Duration::from_secs(3);

pub(crate) async fn run(args: DemoArgs) -> Result<(), Failure> {
    let (health, reporter) = quill_health::reporter();
    for service in [echo::echo_service::NAME, data::data_service::NAME] {
        reporter.set(service, Status::Serving);
    }
    let reflection = quill_reflection::server(echo::FILE_DESCRIPTOR_SET)
        .with_descriptor_set(data::FILE_DESCRIPTOR_SET)
        .with_descriptor_set(quill_health::proto::FILE_DESCRIPTOR_SET);
    let config = args
        .config
        .as_deref()
        .map_or_else(|| ServerConfig::parse("", ""), ServerConfig::load);
    let config = config.map_err(|error| Failure::input(error.to_string()))?;
    let mut builder = Server::builder()
        .drain_limit(DRAIN_LIMIT)
        .configure(&config)
        .map_err(|error| Failure::input(error.to_string()))?;
    if let Some(timeout) = args.receive_timeout {
        builder = builder.receive_timeout(timeout);
    }
    if !args.cors_origins.is_empty() {
        builder = builder.cors(Cors::origins(&args.cors_origins));
    }
    let builder = builder
        .service(echo::EchoServer::new(Echo))
        .service(data::DataServer::new(Data))
        .service(health)
        .service(reflection);
    if args.check_config {
        return builder.check().map_err(|error| not_served(&error));
    }
    let listen = args.listen.as_deref().unwrap_or(config.listen());
    let server = builder
        .bind(listen)
        .await
        .map_err(|error| not_served(&error))?;
    // Whoever sees the port may send a signal at once: it must be heard by then.
    let signal = shutdown_signal();
    let running = server.start();
    match running.local_addr() {
        Some(address) => {
            if let Some(file) = &args.port_file {
                write_port(file, address)?;
            }
            greet(reachable(address));
        }
        None => print(&format!(
            "Serving Quill, gRPC, gRPC-Web and Connect on {listen}\n"
        )),
    }
    signal.await;
    running.shutdown().await;
    Ok(())
}

fn not_served(error: &ServeError) -> Failure {
    if error.is_setting() {
        return Failure::input(error.to_string());
    }
    let failure = Failure::network(error.to_string());
    if error.is_address_in_use() {
        return failure
            .with_hint("choose another address with --listen, such as --listen 127.0.0.1:0");
    }
    failure
}

/// Writes the port in one piece: whoever waits for the file never reads half of it.
fn write_port(file: &Path, address: SocketAddr) -> Result<(), Failure> {
    let mut partial = file.as_os_str().to_owned();
    partial.push(".partial");
    std::fs::write(&partial, format!("{}\n", address.port()))
        .and_then(|()| std::fs::rename(&partial, file))
        .map_err(|error| Failure::input(format!("--port-file {}: {error}", file.display())))
}

/// An address of this machine for one that means all of them.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

fn greet(address: SocketAddr) {
    let quill = std::env::current_exe().map_or_else(
        |_| "quill".to_owned(),
        |path| quoted(&path.display().to_string()),
    );
    print(&format!(
        "Serving Quill, gRPC, gRPC-Web and Connect on http://{address}

Try, in another terminal:

  curl -d '{{\"message\":\"hi\"}}' -H 'content-type: application/json' \\
    http://{address}/echo.v1.EchoService/Echo

  {quill} call http://{address}/echo.v1.EchoService/Echo --input '{{\"message\":\"hi\"}}'

  {quill} call http://{address}/echo.v1.EchoService/Expand --protocol grpc \\
    --input '{{\"message\":\"hi\",\"count\":3,\"interval_ms\":500}}'

  grpcurl -plaintext {address} list

  grpcurl -plaintext -d '{{\"message\":\"hi\"}}' {address} echo.v1.EchoService/Echo

Ctrl-C ends it.
"
    ));
}

/// A word of a shell's command line.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:\\".contains(c);
    if word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn print(text: &str) {
    // A demo whose output nobody reads serves all the same.
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
