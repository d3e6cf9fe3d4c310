//! A proxy of bytes that stands between a client and its server, and gets in
//! the way as it is told.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What becomes of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// They go through.
    Pass,
    /// They are taken and go nowhere; connections stay open.
    Swallow,
    /// Each piece waits this long.
    Slow(Duration),
    /// One connection is cut before the next byte of an answer; then all pass.
    Cut,
}

/// A proxy; it ends when this is dropped.
pub(crate) struct Proxy {
    pub(crate) url: String,
    mode: Arc<watch::Sender<Mode>>,
    task: tokio::task::JoinHandle<()>,
}

impl Proxy {
    /// Stands before the server at `url`.
    pub(crate) async fn before(url: &str) -> Self {
        let server = url.strip_prefix("http://").expect("a plain URL").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("it binds");
        let url = format!("http://{}", listener.local_addr().expect("its address"));
        let mode = Arc::new(watch::Sender::new(Mode::Pass));
        let modes = Arc::clone(&mode);
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(carry(client, server.clone(), Arc::clone(&modes)));
            }
        });
        Self { url, mode, task }
    }

    pub(crate) fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn carry(client: TcpStream, server: String, mode: Arc<watch::Sender<Mode>>) {
    let Ok(server) = TcpStream::connect(server).await else {
        return;
    };
    let (client_in, client_out) = client.into_split();
    let (server_in, server_out) = server.into_split();
    tokio::select! {
        () = pump(client_in, server_out, mode.clone(), false) => {}
        () = pump(server_in, client_out, mode, true) => {}
    }
}

async fn pump(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mode: Arc<watch::Sender<Mode>>,
    is_answer: bool,
) {
    let mut bytes = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        let now = *mode.borrow();
        match now {
            Mode::Pass => {}
            Mode::Swallow => continue,
            Mode::Slow(delay) => tokio::time::sleep(delay).await,
            Mode::Cut if is_answer => {
                mode.send_replace(Mode::Pass);
                return;
            }
            Mode::Cut => {}
        }
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
