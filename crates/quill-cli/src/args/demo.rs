//! What `quill demo` takes.

use std::path::PathBuf;
use std::time::Duration;

use super::time::time;

const EXAMPLES: &str = "\
Examples:
  quill demo
  quill demo --listen 127.0.0.1:0 --port-file port     a free port, written to a file
  quill demo --listen unix:/tmp/demo.sock              a Unix socket
  quill demo --cors-origin http://localhost:3000       for a page that npm serves
  quill demo --config server.yaml                      with settings from a file
  quill demo --config server.yaml --check-config       only tells whether it would start";

/// Serves `echo.v1.EchoService` and `data.v1.DataService`, with health and
/// reflection, in every protocol on one port, until Ctrl-C.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DemoArgs {
    /// Address to listen on; port 0 takes a free one [default: 127.0.0.1:8080]
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    pub(crate) listen: Option<String>,
    /// Take the server's settings from this YAML file, and from variables QUILL_SERVER_*
    /// which win over it; what is said here wins over both
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Check the settings, without an address, and end: 0 if they are good, else 2
    #[arg(long, requires = "config")]
    pub(crate) check_config: bool,
    /// Write the port to this file once connections are accepted
    #[arg(long, value_name = "FILE")]
    pub(crate) port_file: Option<PathBuf>,
    /// Let a page of this origin call the demo from a browser; repeatable
    #[arg(long = "cors-origin", value_name = "ORIGIN")]
    pub(crate) cors_origins: Vec<String>,
    /// End calls whose caller stops half-way and sends nothing for so long [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) receive_timeout: Option<Duration>,
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
