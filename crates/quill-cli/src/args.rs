//! What can be said on the command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Protobuf services from the command line: Quill's, and any gRPC, gRPC-Web or
/// Connect server's.
#[derive(Debug, Parser)]
#[command(name = "quill", version, about)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve example services in every protocol on one port
    Demo(DemoArgs),
}

/// Serves `echo.v1.EchoService` and `data.v1.DataService`, with health and
/// reflection, in every protocol on one port, until Ctrl-C.
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080")]
    pub(crate) listen: String,
    /// Write the port to this file once connections are accepted
    #[arg(long, value_name = "FILE")]
    pub(crate) port_file: Option<PathBuf>,
}
