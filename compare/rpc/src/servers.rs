//! One server a subject, all with the service of `proto/echo.proto`.

mod connectrpc;
mod guarded;
mod hyper;
mod quill;
mod tonic;

pub use self::guarded::KEY;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::process;
use std::thread;

use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

/// What `Expand` answers each request with.
const EXPANDED: usize = 500;

type Served = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Serves as `subject` on a runtime of that kind until standard input ends, so
/// that no server outlives who started it. Prints the address first.
pub fn serve(subject: &str, runtime: &str) -> Result<(), String> {
    thread::spawn(|| {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        process::exit(0);
    });
    let runtime = runtime_of(runtime)?;
    let served = runtime.block_on(async {
        match subject {
            "tonic" => tonic::serve(listener().await?).await,
            "tonic-tls" => tonic::serve_tls(listener().await?).await,
            "tonic-guarded" => tonic::serve_guarded(listener().await?).await,
            "connectrpc" => connectrpc::serve(listener().await?).await,
            "hyper" => hyper::serve(listener().await?).await,
            "hyper-tls" => hyper::serve_tls(listener().await?).await,
            "quill" => quill::serve(::quill::Http2Engine::Quill).await,
            "quill-tls" => quill::serve_tls().await,
            "quill-guarded" => quill::serve_guarded().await,
            "quill-on-hyper" => quill::serve(::quill::Http2Engine::Hyper).await,
            _ => Err(format!("no subject {subject:?}").into()),
        }
    });
    served.map_err(|error| format!("{subject}: {error}"))
}

/// Two workers, also where the process is held to one core: a runtime with a
/// single worker would not be what the name says.
fn runtime_of(kind: &str) -> Result<Runtime, String> {
    let mut builder = match kind {
        "ct" => Builder::new_current_thread(),
        "mt" => Builder::new_multi_thread(),
        _ => return Err(format!("no runtime {kind:?}; allowed: ct, mt")),
    };
    let built = builder.worker_threads(2).enable_all().build();
    built.map_err(|error| format!("no runtime: {error}"))
}

/// A certificate that nobody checks, and its key.
fn identity() -> Result<(String, String), rcgen::Error> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    Ok((made.cert.pem(), made.signing_key.serialize_pem()))
}

async fn listener() -> io::Result<TcpListener> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    announce(listener.local_addr()?)?;
    Ok(listener)
}

fn announce(address: SocketAddr) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{address}")?;
    out.flush()
}
