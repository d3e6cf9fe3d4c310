//! What `quill call` takes.

use std::path::PathBuf;
use std::time::Duration;

use quill::{Metadata, Protocol};

const EXAMPLES: &str = "\
Examples:
  quill call http://127.0.0.1:8080/echo.v1.EchoService/Echo --input '{\"message\":\"hi\"}'
  quill call http://127.0.0.1:8080/echo.v1.EchoService/Chat --input - < messages.jsonl
  quill call https://api.example.com/shop.v1.Orders/Get --protocol grpc \\
      --proto protos/ --header 'authorization: Bearer ...' --timeout 2s --input @order.json
  quill call unix:/run/app.sock/echo.v1.EchoService/Echo --input '{}'

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
pub(crate) struct CallArgs {
    /// The server and the method: http://host:port/package.Service/Method
    /// (https://..., unix:/path/of/socket/...)
    #[arg(value_name = "URL/package.Service/Method")]
    pub(crate) target: String,
    /// The message or messages: JSON, @file, or - for standard input, which is
    /// sent as it comes [default: one empty message, or none for a stream]
    #[arg(long, short, value_name = "JSON|@FILE|-", allow_hyphen_values = true)]
    pub(crate) input: Option<String>,
    /// The protocol to speak: quill, grpc, grpc-web, grpc-web-text or connect
    #[arg(long, short, default_value = "quill", value_parser = protocol, value_name = "PROTOCOL")]
    pub(crate) protocol: Protocol,
    /// Metadata to send, as 'name: value'; names in -bin take base64. May be
    /// given several times
    #[arg(long, short = 'H', value_name = "NAME: VALUE", value_parser = header)]
    pub(crate) header: Vec<Metadata>,
    /// How long the call may take, once its schema is known: 5s, 500ms, 1m
    #[arg(long, short, value_name = "TIME", value_parser = time)]
    pub(crate) timeout: Option<Duration>,
    /// Compress requests of 1024 bytes and more
    #[arg(long)]
    pub(crate) compress: bool,
    /// Most bytes of one message, in either direction
    #[arg(long, value_name = "BYTES", default_value_t = 4 * 1024 * 1024)]
    pub(crate) message_bytes_max: usize,
    /// Show fields that are zero or empty too
    #[arg(long)]
    pub(crate) emit_defaults: bool,
    /// Show the answer's metadata on standard error
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Speak HTTP/1.1, for servers and proxies without HTTP/2
    #[arg(long)]
    pub(crate) http1: bool,
    #[command(flatten)]
    pub(crate) schema: SchemaArgs,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
}

/// Where the schema comes from.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Schema")]
pub(crate) struct SchemaArgs {
    /// A descriptor set that protoc (with --include_imports) or buf build
    /// wrote; may be given several times
    #[arg(long, value_name = "FILE", conflicts_with = "proto")]
    pub(crate) descriptor_set: Vec<PathBuf>,
    /// A .proto file, or a folder of them; may be given several times
    #[arg(long, value_name = "FILE|FOLDER")]
    pub(crate) proto: Vec<PathBuf>,
    /// A folder in which --proto files and their imports are looked for; may
    /// be given several times [default: the folders given as --proto, and
    /// those of the files]
    #[arg(long, value_name = "FOLDER", requires = "proto")]
    pub(crate) import_path: Vec<PathBuf>,
}

/// Whom to trust, and who to be.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "TLS")]
pub(crate) struct TlsArgs {
    /// Trust the authorities in this PEM file, in place of the public ones
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
    /// The certificate to show the server (PEM, own certificate first)
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,
    /// The key of that certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// The name that the server's certificate must be for, in place of the URL's
    #[arg(long, value_name = "NAME")]
    pub(crate) server_name: Option<String>,
}

fn protocol(text: &str) -> Result<Protocol, String> {
    Protocol::from_name(text).ok_or_else(|| {
        let names = Protocol::ALL.map(Protocol::name).join(", ");
        format!("there are {names}")
    })
}

fn header(text: &str) -> Result<Metadata, String> {
    let (name, value) = text
        .split_once(':')
        .ok_or("write it as 'name: value', with a colon")?;
    let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
    let mut metadata = Metadata::new();
    let added = if name.ends_with("-bin") {
        use base64::Engine as _;
        use base64::engine::DecodePaddingMode::Indifferent;
        use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
        let config = GeneralPurposeConfig::new().with_decode_padding_mode(Indifferent);
        let bytes = GeneralPurpose::new(&base64::alphabet::STANDARD, config)
            .decode(value)
            .map_err(|error| format!("the value of a -bin name is base64: {error}"))?;
        metadata.append_bin(&name, bytes)
    } else {
        metadata.append(&name, value)
    };
    added.map_err(|error| error.to_string())?;
    Ok(metadata)
}

/// A time over 0 with its unit.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    let wrong = || "write a number above 0 and a unit: 500ms, 5s, 1m, 1h".to_owned();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(digits.ok_or_else(wrong)?);
    let seconds_of_unit = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    match Duration::try_from_secs_f64(number * seconds_of_unit) {
        Ok(time) if !time.is_zero() => Ok(time),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_number_and_a_unit() {
        assert_eq!(time("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(time("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(time("2m"), Ok(Duration::from_secs(120)));
        for bad in [
            "",
            "5",
            "s",
            "-5s",
            "5 s",
            "0s",
            "1d",
            "1.1.1s",
            "99999999999999999999999h",
        ] {
            assert!(time(bad).unwrap_err().contains("500ms"), "{bad}");
        }
    }

    #[test]
    fn headers_are_a_name_and_a_value() {
        let metadata = header("X-Id:  7 ").unwrap();
        assert_eq!(metadata.get("x-id"), Some("7"));
        let metadata = header("trace-bin: AP8").unwrap();
        assert_eq!(metadata.get_bin("trace-bin"), Some(&[0, 255][..]));
        assert!(header("no colon").unwrap_err().contains("'name: value'"));
        assert!(header("a-bin: %").unwrap_err().contains("base64"));
        assert!(header("content-length: 7").is_err());
    }
}
