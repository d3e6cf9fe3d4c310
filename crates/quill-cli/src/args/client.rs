//! How a server is called, in whatever command calls one.

use std::path::PathBuf;
use std::time::Duration;

use quill::{Metadata, Protocol};

use super::time::time;

/// How a server is called.
#[derive(Debug, clap::Args)]
pub(crate) struct ClientArgs {
    /// The server, where what is called does not begin with a URL
    #[arg(long, value_name = "URL", env = "QUILL_URL")]
    pub(crate) url: Option<String>,
    /// The protocol to speak: quill, grpc, grpc-web, grpc-web-text or connect
    #[arg(long, short, default_value = "quill", value_parser = protocol, value_name = "PROTOCOL")]
    pub(crate) protocol: Protocol,
    /// Metadata to send, as 'name: value'; names in -bin take base64. May be
    /// given several times
    #[arg(long, short = 'H', value_name = "NAME: VALUE", value_parser = header)]
    pub(crate) header: Vec<Metadata>,
    /// Sent as 'authorization: Bearer TOKEN'; by bench only to servers that the command
    /// line or QUILL_URL names
    #[arg(
        long,
        value_name = "TOKEN",
        env = "QUILL_TOKEN",
        hide_env_values = true
    )]
    pub(crate) token: Option<String>,
    /// How long a call may take, once its schema is known: 5s, 500ms, 1m
    #[arg(long, short, value_name = "TIME", env = "QUILL_TIMEOUT", value_parser = time)]
    pub(crate) timeout: Option<Duration>,
    /// Compress requests of 1024 bytes and more
    #[arg(long)]
    pub(crate) compress: bool,
    /// Most bytes of one message, in either direction
    #[arg(long, value_name = "BYTES", default_value_t = 4 * 1024 * 1024)]
    pub(crate) message_bytes_max: usize,
    /// Speak HTTP/1.1, for servers and proxies without HTTP/2
    #[arg(long)]
    pub(crate) http1: bool,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
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

/// The error says which names there are.
pub(crate) fn protocol(text: &str) -> Result<Protocol, String> {
    Protocol::from_name(text).ok_or_else(|| {
        let names = Protocol::ALL.map(Protocol::name).join(", ");
        format!("there are {names}")
    })
}

pub(crate) fn header(text: &str) -> Result<Metadata, String> {
    let (name, value) = text
        .split_once(':')
        .ok_or("write it as 'name: value', with a colon")?;
    metadata(name.trim(), value.trim())
}

/// One piece of metadata; the value of a name in `-bin` is base64.
pub(crate) fn metadata(name: &str, value: &str) -> Result<Metadata, String> {
    let name = name.to_ascii_lowercase();
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

#[cfg(test)]
mod tests {
    use super::*;

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
