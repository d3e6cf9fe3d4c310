//! Where an attack takes place, and until when.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::dice::Dice;

/// What one round of an attack knows.
#[derive(Clone, Debug)]
pub(crate) struct Arena {
    /// Where the victim listens.
    pub(crate) address: SocketAddr,
    /// When an attack that could go on for ever stops.
    pub(crate) ends: Instant,
    pub(crate) seed: u64,
    /// The `quill` that is attacked.
    pub(crate) program: PathBuf,
    /// For files of the attack.
    pub(crate) folder: PathBuf,
    count: Arc<AtomicU64>,
    peak_kib: Arc<AtomicU64>,
}

impl Arena {
    pub(crate) fn new(
        address: SocketAddr,
        time: Duration,
        seed: u64,
        program: PathBuf,
        folder: PathBuf,
    ) -> Self {
        Self {
            address,
            ends: Instant::now() + time,
            seed,
            program,
            folder,
            count: Arc::default(),
            peak_kib: Arc::default(),
        }
    }

    pub(crate) fn dice(&self, which: u64) -> Dice {
        Dice::new(self.seed ^ which.wrapping_mul(0x1_0000_0001))
    }

    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.ends
    }

    /// Counts what was sent.
    pub(crate) fn add(&self, count: u64) {
        self.count.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn counted(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// The future's outcome, if it comes before the attack's end.
    pub(crate) async fn until_the_end<F: Future>(&self, future: F) -> Option<F::Output> {
        timeout_at(self.ends, future).await.ok()
    }

    /// Notes what a process that the attack started has had resident at most.
    pub(crate) fn note_peak(&self, kib: u64) {
        self.peak_kib.fetch_max(kib, Ordering::Relaxed);
    }

    pub(crate) fn peak_kib(&self) -> u64 {
        self.peak_kib.load(Ordering::Relaxed)
    }

    pub(crate) async fn connect(&self) -> io::Result<TcpStream> {
        let socket = TcpStream::connect(self.address).await?;
        socket.set_nodelay(true)?;
        Ok(socket)
    }

    /// Runs `attack` on so many connections at once, again and again, until the
    /// end of the attack's time; each gets a number of its own.
    pub(crate) async fn on_connections<F, R>(&self, connections: u64, attack: F)
    where
        F: Fn(Arena, u64) -> R + Clone + Send + Sync + 'static,
        R: Future<Output = ()> + Send,
    {
        let mut tasks = JoinSet::new();
        for first in 0..connections {
            let (arena, attack) = (self.clone(), attack.clone());
            tasks.spawn(async move {
                let mut number = first;
                while !arena.is_over() {
                    let once = attack(arena.clone(), number);
                    if arena.until_the_end(once).await.is_none() {
                        break;
                    }
                    number += connections;
                    tokio::task::yield_now().await;
                }
            });
        }
        while tasks.join_next().await.is_some() {}
    }

    /// Sends bytes on a connection of their own, ends this half, and reads what
    /// comes until the victim ends its half, for at most `patience`. Whether
    /// that came, and what was read (its first 64 KiB).
    pub(crate) async fn exchange(&self, bytes: &[u8], patience: Duration) -> (bool, Vec<u8>) {
        self.converse(bytes, patience, true).await
    }

    /// As [`exchange`](Self::exchange) of a request that says `connection:
    /// close`, and keeps this half open: on HTTP/1.1 its end would give the call up.
    pub(crate) async fn ask(&self, bytes: &[u8], patience: Duration) -> (bool, Vec<u8>) {
        self.converse(bytes, patience, false).await
    }

    async fn converse(&self, bytes: &[u8], patience: Duration, ends: bool) -> (bool, Vec<u8>) {
        let mut answer = Vec::new();
        let exchange = async {
            let mut socket = self.connect().await?;
            let (mut read, mut write) = socket.split();
            let writing = async {
                write.write_all(bytes).await?;
                if ends {
                    write.shutdown().await?;
                }
                io::Result::Ok(())
            };
            let mut limited = (&mut read).take(64 * 1024);
            // What is refused may be answered while it is being sent.
            let (_, read) = tokio::join!(writing, limited.read_to_end(&mut answer));
            read
        };
        // A reset is an end, too.
        let ended = tokio::time::timeout(patience, exchange).await.is_ok();
        (ended, answer)
    }
}

/// Reads and forgets, until the end of the stream; how many bytes.
pub(crate) async fn discard(socket: &mut (impl AsyncReadExt + Unpin)) -> u64 {
    let mut scratch = vec![0; 16 * 1024];
    let mut total = 0;
    while let Ok(count @ 1..) = socket.read(&mut scratch).await {
        total += count as u64;
    }
    total
}
