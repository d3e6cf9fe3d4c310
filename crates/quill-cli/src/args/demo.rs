//! What `quill demo` takes.

use std::path::PathBuf;
use std::time::Duration;

use super::time::time;

const EXAMPLES: &str = "\
Examples:
  quill demo
  quill demo --listen 127.0.0.1:0 --port-file port     a free port, written to a file
  quill demo --listen unix:/tmp/demo.sock              a Unix socket
  quill demo --cors-origin http://localhost:3000       for a page that npm serves";

/// Serves `echo.v1.EchoService` and `data.v1.DataService`, with health and
/// reflection, in every protocol on one port, until Ctrl-C.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DemoArgs {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080", value_parser = address)]
    pub(crate) listen: String,
    /// Write the port to this file once connections are accepted
    #[arg(long, value_name = "FILE")]
    pub(crate) port_file: Option<PathBuf>,
    /// Let a page of this origin call the demo from a browser; repeatable
    #[arg(long = "cors-origin", value_name = "ORIGIN")]
    pub(crate) cors_origins: Vec<String>,
    /// End calls whose caller stops half-way and sends nothing for so long
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time)]
    pub(crate) receive_timeout: Duration,
}

/// Whether the machine has the address, binding tells.
fn address(text: &str) -> Result<String, String> {
    let has_port = |text: &str| {
        text.rsplit_once(':')
            .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
    };
    if text.starts_with("unix:") || has_port(text) {
        return Ok(text.to_owned());
    }
    Err("write host:port, such as 127.0.0.1:8080, or unix:/path".to_owned())
}
