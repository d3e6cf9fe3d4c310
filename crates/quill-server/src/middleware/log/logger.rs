//! The logger and its settings.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quill_core::Metadata;

use super::fields::ShownFields;
use super::line::{Format, Line};
use super::writer::Writer;

const QUEUE_BYTES_MAX_DEFAULT: usize = 1024 * 1024;

/// Writes a line for each call that ends, and each request that becomes none.
///
/// ```
/// use quill_server::Server;
/// use quill_server::log::RequestLogger;
///
/// let builder = Server::builder().request_logger(
///     RequestLogger::json().sample(0.01).metadata(["user-agent"]),
/// );
/// ```
///
/// A line has the time at which the call began, its method, code, duration,
/// protocol, peer, identity, trace, messages and bytes, and of a call that failed
/// what its caller was told and what it was not. Clones share what they write to.
#[derive(Clone)]
pub struct RequestLogger(Option<Settings>);

#[derive(Clone)]
struct Settings {
    format: Format,
    writer: Writer,
    fields: ShownFields,
    /// Of the calls that end well, those are written whose number is below this.
    below: u64,
    queue_bytes_max: usize,
    numbers: Arc<AtomicU64>,
}

impl RequestLogger {
    /// JSON, an object a line, to standard output.
    #[must_use]
    pub fn json() -> Self {
        Self::new(Format::Json)
    }

    /// `key=value`, to standard output.
    #[must_use]
    pub fn text() -> Self {
        Self::new(Format::Text)
    }

    /// Writes nothing, and costs nothing: for a setting that says so.
    #[must_use]
    pub fn disabled() -> Self {
        Self(None)
    }

    fn new(format: Format) -> Self {
        Self(Some(Settings {
            format,
            writer: Writer::new(Box::new(io::stdout())),
            fields: ShownFields::default(),
            below: u64::MAX,
            queue_bytes_max: QUEUE_BYTES_MAX_DEFAULT,
            numbers: Arc::default(),
        }))
    }

    fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        if let Some(settings) = &mut self.0 {
            change(settings);
        }
        self
    }

    /// Writes to this instead, from a thread of the logger's own.
    #[must_use]
    pub fn to(self, sink: impl Write + Send + 'static) -> Self {
        self.with(|settings| settings.writer = Writer::new(Box::new(sink)))
    }

    /// Writes this share of the calls that end well, 0.0 to 1.0; all unless set.
    /// Calls that fail are always written.
    #[must_use]
    pub fn sample(self, share: f64) -> Self {
        // The conversion saturates, and makes 0 of what is no number.
        let below = (share.clamp(0.0, 1.0) * u64::MAX as f64) as u64;
        self.with(|settings| settings.below = below)
    }

    /// Shows the request's metadata of these names; none unless set. The values of
    /// secrets are not shown: of what ends in `-bin`, and what has `auth`, `cookie`,
    /// `-key`, `apikey`, `token`, `secret`, `password`, `passwd`, `session`, `credential`
    /// or `signature` in its name. A secret under another name wants
    /// [`redact`](Self::redact).
    #[must_use]
    pub fn metadata<N: AsRef<str>>(self, names: impl IntoIterator<Item = N>) -> Self {
        self.with(|settings| {
            let names = names.into_iter();
            names.for_each(|name| settings.fields.show(name.as_ref()));
        })
    }

    /// Shows all of the request's metadata, up to 32 names, but the values of
    /// secrets, as [`metadata`](Self::metadata) tells them.
    #[must_use]
    pub fn all_metadata(self) -> Self {
        self.with(|settings| settings.fields.all())
    }

    /// Does not show the values of these names either.
    #[must_use]
    pub fn redact<N: AsRef<str>>(self, names: impl IntoIterator<Item = N>) -> Self {
        self.with(|settings| {
            let names = names.into_iter();
            names.for_each(|name| settings.fields.redact(name.as_ref()));
        })
    }

    /// Most bytes of lines that wait to be written; 1 MiB unless set. Lines over it
    /// are dropped, counted, and their number is in the log.
    #[must_use]
    pub fn queue_bytes_max(self, bytes: usize) -> Self {
        self.with(|settings| settings.queue_bytes_max = bytes)
    }

    /// Lines that were dropped, since they came faster than they were written or
    /// could not be.
    #[must_use]
    pub fn lost_lines(&self) -> u64 {
        self.0.as_ref().map_or(0, |settings| settings.writer.lost())
    }

    /// Resolves once the lines so far are written; after five seconds at most. A
    /// server that drains does it.
    pub async fn flush(&self) {
        if let Some(settings) = &self.0 {
            settings.writer.flush().await;
        }
    }

    pub(crate) fn is_disabled(&self) -> bool {
        self.0.is_none()
    }

    /// Whether lines show metadata.
    pub(crate) fn shows_metadata(&self) -> bool {
        let settings = self.0.as_ref();
        settings.is_some_and(|settings| !settings.fields.is_empty())
    }

    /// Writes the line of a call, with what is shown of its metadata.
    pub(crate) fn log<'a>(&self, mut line: Line<'a>, metadata: Option<&'a Metadata>) {
        let Some(settings) = &self.0 else {
            return;
        };
        if line.failure.is_none() && !settings.draws() {
            return;
        }
        if let Some(metadata) = metadata {
            line.metadata = settings.fields.of(metadata);
        }
        let text = line.write(settings.format);
        let (format, most) = (settings.format, settings.queue_bytes_max);
        settings.writer.write(text, format, most);
    }
}

/// Steps by the golden ratio fill any range evenly: so many of each thousand calls
/// are below any bound, and no two neighbours are.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Settings {
    /// Whether the next call that ended well is written.
    fn draws(&self) -> bool {
        self.below == u64::MAX || self.numbers.fetch_add(STEP, Ordering::Relaxed) < self.below
    }
}

impl fmt::Debug for RequestLogger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("RequestLogger(disabled)"),
            Some(settings) => f
                .debug_struct("RequestLogger")
                .field("format", &settings.format)
                .field("writer", &settings.writer)
                .field("fields", &settings.fields)
                .finish_non_exhaustive(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_that_share_and_none_is_none() {
        let drawn = |share: f64| {
            let logger = RequestLogger::json().sample(share);
            let settings = logger.0.unwrap();
            (0..1000).filter(|_| settings.draws()).count()
        };
        assert_eq!(drawn(1.0), 1000);
        assert_eq!(drawn(7.0), 1000);
        assert_eq!(drawn(0.0), 0);
        assert_eq!(drawn(f64::NAN), 0);
        assert!(drawn(0.25).abs_diff(250) <= 2, "{}", drawn(0.25));
    }

    #[tokio::test]
    async fn a_disabled_one_stays_that_way() {
        let logger = RequestLogger::disabled().all_metadata().sample(1.0);
        assert!(logger.is_disabled() && !logger.shows_metadata());
        assert_eq!(logger.lost_lines(), 0);
        logger.flush().await;
    }
}
