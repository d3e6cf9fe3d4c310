//! What `quill call` takes.

use super::client::ClientArgs;
use super::schema::SchemaArgs;

const EXAMPLES: &str = "\
Examples:
  quill call http://127.0.0.1:8080/echo.v1.EchoService/Echo --input '{\"message\":\"hi\"}'
  quill call http://127.0.0.1:8080/echo.v1.EchoService/Chat --input - < messages.jsonl
  quill call https://api.example.com/shop.v1.Orders/Get --protocol grpc \\
      --proto protos/ --header 'authorization: Bearer ...' --timeout 2s --input @order.json
  quill call unix:/run/app.sock/echo.v1.EchoService/Echo --input '{}'

What there is to call:
  quill call http://127.0.0.1:8080 --list
  quill call http://127.0.0.1:8080/echo.v1.EchoService --describe
  quill call http://127.0.0.1:8080/echo.v1.EchoService/Echo --template
  quill call --list --proto protos/

With QUILL_URL=http://127.0.0.1:8080 in the environment:
  quill call echo.v1.EchoService/Echo --input '{\"message\":\"hi\"}'

The schema comes from the server by reflection, unless --descriptor-set or
--proto gives it. Messages of a stream are JSON values one after another.
Answers go to standard output, one message a line; errors to standard error.

Exit codes:
  0  the call succeeded
  2  bad input: arguments, schema or JSON
  3  network: the server can't be reached, the connection broke, or the
     time given by --timeout is over
  4  the server answered with an error";

/// Calls a method: JSON in, JSON out, one message a line.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(group = clap::ArgGroup::new("question").args(["list", "describe", "template"]))]
pub(crate) struct CallArgs {
    /// The server and the method: http://host:port/package.Service/Method
    /// (https://..., unix:/path/of/socket/...)
    #[arg(value_name = "URL/package.Service/Method")]
    #[arg(required_unless_present_any = ["list", "describe"])]
    pub(crate) target: Option<String>,
    /// The message or messages: JSON, @file, or - for standard input, which is
    /// sent as it comes [default: one empty message, or none for a stream]
    #[arg(long, short, value_name = "JSON|@FILE|-", allow_hyphen_values = true)]
    #[arg(conflicts_with = "question")]
    pub(crate) input: Option<String>,
    /// Show fields that are zero or empty too
    #[arg(long)]
    pub(crate) emit_defaults: bool,
    /// Make the call so often, one after the other, until one fails
    #[arg(
        long,
        value_name = "TIMES",
        default_value_t = 1,
        conflicts_with = "question"
    )]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) repeat: u64,
    /// Show protocol, metadata and times on standard error
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// List the services of a URL, or the methods of URL/package.Service
    #[arg(long)]
    pub(crate) list: bool,
    /// Show what URL/package.Symbol is: a service, method, message or enum; all
    /// services of a URL alone
    #[arg(long)]
    pub(crate) describe: bool,
    /// Show a message that the method takes, to be filled in
    #[arg(long)]
    pub(crate) template: bool,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    #[command(flatten)]
    pub(crate) schema: SchemaArgs,
}
