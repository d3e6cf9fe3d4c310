//! What `quill explain` takes.

use std::path::PathBuf;

use quill::{Metadata, Protocol};
use quill_explain::{Container, Form};

use super::{SchemaArgs, TlsArgs, header, protocol};

const EXAMPLES: &str = "\
Examples:
  quill explain 0a0568656c6c6f                        guessed, without a schema
  quill explain CgVoZWxsbw== --proto api --type api.v1.Greeting
  quill explain @body.bin --descriptor-set api.binpb --type api.v1.Greeting --json
  curl -s ... | quill explain --server http://127.0.0.1:8080 --type echo.v1.EchoResponse
  quill explain @stream.bin --encoding br             compressed messages
  quill explain --proto api --list-types

Hexadecimal digits and base64 are recognised, and so are Quill's frames, the
envelopes of gRPC, gRPC-Web and Connect with trailers and ends of streams,
problem details, and bodies compressed with gzip or zstd. --form and --as say it
where it is recognised wrongly. Input is read as it comes and may be of any size.

Exit codes:
  0  all of it was explained
  2  bad input: arguments, schema, or bytes that are wrong (marked with !!)
  3  network: the server can't be reached
  4  the server answered with an error";

/// Shows what bytes are: messages, and what carries them.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// The bytes as hexadecimal digits or base64, @file, or - for standard input
    #[arg(
        value_name = "HEX|BASE64|@FILE|-",
        default_value = "-",
        allow_hyphen_values = true
    )]
    pub(crate) payload: String,
    /// The type of the messages
    #[arg(long = "type", value_name = "NAME")]
    pub(crate) message_type: Option<String>,
    /// Show the messages alone, as JSON, one a line
    #[arg(long, requires = "message_type")]
    pub(crate) json: bool,
    /// Show the names of the types that there are
    #[arg(long)]
    pub(crate) list_types: bool,
    /// How the bytes are written: binary, hex or base64 [default: recognised]
    #[arg(long, value_name = "FORM", value_parser = form)]
    pub(crate) form: Option<Form>,
    /// What they are: message, quill, envelopes or json [default: recognised]
    #[arg(long = "as", value_name = "WHAT", value_parser = container)]
    pub(crate) container: Option<Container>,
    /// What compressed messages are compressed with, such as gzip or zstd
    /// [default: recognised for these two]
    #[arg(long, value_name = "ENCODING")]
    pub(crate) encoding: Option<String>,
    /// Most bytes of a message that is compressed, or shown as JSON
    #[arg(long, value_name = "BYTES", default_value_t = 64 * 1024 * 1024)]
    pub(crate) message_bytes_max: usize,
    #[command(flatten)]
    pub(crate) schema: SchemaArgs,
    /// Take the schema from this server, by reflection
    #[arg(long, value_name = "URL", conflicts_with_all = ["proto", "descriptor_set"])]
    pub(crate) server: Option<String>,
    /// The protocol to ask the server with
    #[arg(long, short, default_value = "quill", value_parser = protocol, value_name = "PROTOCOL")]
    pub(crate) protocol: Protocol,
    /// Metadata to ask the server with, as 'name: value'
    #[arg(long, short = 'H', value_name = "NAME: VALUE", value_parser = header)]
    pub(crate) header: Vec<Metadata>,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
}

/// Where the bytes are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Payload {
    Stdin,
    File(PathBuf),
    Text(String),
}

impl ExplainArgs {
    pub(crate) fn payload(&self) -> Payload {
        match self.payload.strip_prefix('@') {
            Some(path) => Payload::File(path.into()),
            None if self.payload == "-" => Payload::Stdin,
            None => Payload::Text(self.payload.clone()),
        }
    }
}

fn form(text: &str) -> Result<Form, String> {
    match text {
        "binary" => Ok(Form::Binary),
        "hex" => Ok(Form::Hex),
        "base64" => Ok(Form::Base64),
        _ => Err("there are binary, hex and base64".to_owned()),
    }
}

fn container(text: &str) -> Result<Container, String> {
    match text {
        "message" => Ok(Container::Message),
        "quill" => Ok(Container::Quill),
        "envelopes" => Ok(Container::Envelopes),
        "json" => Ok(Container::Json),
        _ => Err("there are message, quill, envelopes and json".to_owned()),
    }
}
