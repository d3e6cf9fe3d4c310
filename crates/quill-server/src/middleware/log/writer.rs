//! Who writes the lines.

use std::fmt;
use std::io::{BufWriter, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::oneshot;

use super::line::{Format, lost};

/// How long a flush waits for a writer that is stuck.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// Where lines are written.
pub(super) type Sink = Box<dyn Write + Send>;

/// Hands lines to a thread that writes them, and never waits for it. The thread
/// begins with the first line and ends with the last clone of this.
#[derive(Clone)]
pub(super) struct Writer(Arc<Shared>);

struct Shared {
    /// Until the thread has it.
    sink: Mutex<Option<Sink>>,
    /// `None` where no thread could be had.
    orders: OnceLock<Option<Sender<Order>>>,
    backlog: Arc<Backlog>,
}

/// What has not been written.
#[derive(Default)]
struct Backlog {
    /// Bytes of the lines that wait.
    bytes: AtomicUsize,
    /// Lines that will not be.
    lost: AtomicU64,
}

enum Order {
    Line(String),
    Flush(oneshot::Sender<()>),
}

impl Writer {
    pub(super) fn new(sink: Sink) -> Self {
        Self(Arc::new(Shared {
            sink: Mutex::new(Some(sink)),
            orders: OnceLock::new(),
            backlog: Arc::default(),
        }))
    }

    /// Has a line written, unless more than so many bytes would wait then.
    pub(super) fn write(&self, line: String, format: Format, bytes_max: usize) {
        let backlog = &self.0.backlog;
        let bytes = line.len();
        let waiting = backlog.bytes.fetch_add(bytes, Ordering::Relaxed);
        let is_sent = waiting.saturating_add(bytes) <= bytes_max
            && self
                .orders(format)
                .is_some_and(|orders| orders.send(Order::Line(line)).is_ok());
        if !is_sent {
            backlog.bytes.fetch_sub(bytes, Ordering::Relaxed);
            backlog.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lines that were dropped: they came faster than they were written, or could
    /// not be.
    pub(super) fn lost(&self) -> u64 {
        self.0.backlog.lost.load(Ordering::Relaxed)
    }

    /// Resolves once the lines so far are written, or the writer is stuck.
    pub(super) async fn flush(&self) {
        let Some(Some(orders)) = self.0.orders.get() else {
            return;
        };
        let (done, written) = oneshot::channel();
        if orders.send(Order::Flush(done)).is_ok() {
            let _ = tokio::time::timeout(FLUSH_TIMEOUT, written).await;
        }
    }

    fn orders(&self, format: Format) -> Option<&Sender<Order>> {
        let orders = self.0.orders.get_or_init(|| {
            let sink = self.0.sink.lock();
            let sink = sink.unwrap_or_else(PoisonError::into_inner).take()?;
            #[expect(clippy::disallowed_methods, reason = "its bytes are bounded")]
            let (orders, received) = mpsc::channel();
            let work = Work {
                out: BufWriter::new(sink),
                format,
                backlog: Arc::clone(&self.0.backlog),
                told: 0,
            };
            let thread = std::thread::Builder::new().name("quill-log".to_owned());
            thread.spawn(move || work.run(&received)).ok()?;
            Some(orders)
        });
        orders.as_ref()
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("lost", &self.lost())
            .finish_non_exhaustive()
    }
}

/// Most lines that are written before it is told how many were lost.
const TURN_MAX: usize = 1024;

/// What the thread does.
struct Work {
    out: BufWriter<Sink>,
    format: Format,
    backlog: Arc<Backlog>,
    /// How many lost lines the others say.
    told: u64,
}

impl Work {
    fn run(mut self, orders: &Receiver<Order>) {
        while let Ok(first) = orders.recv() {
            self.obey(first);
            // What is there already is written in one go, up to a number: under lasting
            // overload there is always more.
            for next in orders.try_iter().take(TURN_MAX) {
                self.obey(next);
            }
            self.tell_lost();
            let _ = self.out.flush();
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Line(line) => {
                if self.out.write_all(line.as_bytes()).is_err() {
                    self.backlog.lost.fetch_add(1, Ordering::Relaxed);
                }
                self.backlog.bytes.fetch_sub(line.len(), Ordering::Relaxed);
            }
            Order::Flush(done) => {
                self.tell_lost();
                let _ = self.out.flush();
                let _ = done.send(());
            }
        }
    }

    /// Says in the log that lines are missing.
    fn tell_lost(&mut self) {
        let lines = self.backlog.lost.load(Ordering::Relaxed);
        let untold = lines.saturating_sub(self.told);
        if untold > 0 {
            let line = lost(self.format, SystemTime::now(), untold);
            if self.out.write_all(line.as_bytes()).is_ok() {
                self.told = lines;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::mpsc::SyncSender;

    /// Hands each write on, and waits until it is taken.
    struct Slow(SyncSender<String>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            self.0.send(text).map_err(|_| io::ErrorKind::BrokenPipe)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_slow_sink_costs_lines_and_nobody_waits() {
        let (sink, taken) = mpsc::sync_channel(0);
        let writer = Writer::new(Box::new(Slow(sink)));
        let line = || "x".repeat(9_999) + "\n";
        // One is being written, of which the thread alone decides when it begins.
        for _ in 0..100 {
            writer.write(line(), Format::Text, 50_000);
        }
        assert!(writer.lost() >= 94, "{}", writer.lost());
        let lost = writer.lost();
        drop(writer);
        let text: String = taken.iter().collect();
        let kept = text.lines().filter(|line| line.starts_with('x')).count() as u64;
        assert_eq!(kept + lost, 100);
        let told = text.lines().filter(|line| line.contains("lost_lines="));
        let told: u64 = told
            .map(|line| line.rsplit('=').next().unwrap().parse::<u64>().unwrap())
            .sum();
        assert_eq!(told, lost);
    }

    #[test]
    fn lost_lines_are_told_while_more_come() {
        let (sink, taken) = mpsc::sync_channel(usize::from(u16::MAX));
        #[expect(clippy::disallowed_methods, reason = "it is filled before it is read")]
        let (orders, received) = mpsc::channel();
        let backlog = Arc::new(Backlog::default());
        backlog.lost.store(1, Ordering::Relaxed);
        for _ in 0..3 * TURN_MAX {
            orders.send(Order::Line(String::new())).unwrap();
        }
        orders.send(Order::Line("last\n".to_owned())).unwrap();
        drop(orders);
        let work = Work {
            out: BufWriter::new(Box::new(Slow(sink))),
            format: Format::Text,
            backlog: Arc::clone(&backlog),
            told: 0,
        };
        backlog.bytes.store(5, Ordering::Relaxed);
        work.run(&received);
        let text: String = taken.iter().collect();
        let told = text.find("lost_lines=1").expect("it is told");
        assert!(told < text.find("last").expect("it is there"), "{text}");
    }

    #[tokio::test]
    async fn a_flush_waits_for_what_was_written_before() {
        let (sink, taken) = mpsc::sync_channel(1000);
        let writer = Writer::new(Box::new(Slow(sink)));
        writer.flush().await;
        for _ in 0..10 {
            writer.write("line\n".to_owned(), Format::Text, usize::MAX);
        }
        writer.flush().await;
        assert_eq!(taken.try_iter().collect::<String>(), "line\n".repeat(10));
    }

    #[tokio::test]
    async fn a_broken_sink_loses_lines() {
        let (sink, taken) = mpsc::sync_channel(0);
        drop(taken);
        let writer = Writer::new(Box::new(Slow(sink)));
        writer.write("x".repeat(20_000), Format::Text, usize::MAX);
        writer.flush().await;
        assert_eq!(writer.lost(), 1);
    }
}
