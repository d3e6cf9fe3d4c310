//! What can be said on the command line.

mod bench;
mod call;
mod client;
mod compat;
mod demo;
mod explain;
mod generate;
mod schema;
mod shell;
mod time;

use clap::{Parser, Subcommand};

pub(crate) use bench::{BaselineArgs, BenchArgs, LoadArgs, ReportFormat, percent};
pub(crate) use call::CallArgs;
pub(crate) use client::{ClientArgs, TlsArgs, header, metadata, protocol};
pub(crate) use compat::{BreakFormat, CompatArgs};
pub(crate) use demo::DemoArgs;
pub(crate) use explain::{ExplainArgs, Payload};
pub(crate) use generate::GenerateArgs;
pub(crate) use schema::SchemaArgs;
pub(crate) use shell::{CompletionsArgs, ManArgs};
pub(crate) use time::time;

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
    /// Load servers, and measure rate and latency
    Bench(Box<BenchArgs>),
    /// Find what breaks between two schemas
    Compat(Box<CompatArgs>),
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Write manual pages
    Man(ManArgs),
    /// Show what bytes are: messages, and what carries them
    Explain(Box<ExplainArgs>),
    /// Generate messages, servers and clients
    #[command(name = "gen")]
    Generate(Box<GenerateArgs>),
}
