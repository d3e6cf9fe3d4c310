//! What can be said on the command line.

mod call;
mod compat;
mod demo;

use clap::{Parser, Subcommand};

pub(crate) use call::{CallArgs, SchemaArgs, TlsArgs, header, protocol};
pub(crate) use compat::{BreakFormat, CompatArgs};
pub(crate) use demo::DemoArgs;

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
    /// Call a method of a server, with JSON in and out
    Call(Box<CallArgs>),
    /// Find what breaks between two schemas
    Compat(Box<CompatArgs>),
}
