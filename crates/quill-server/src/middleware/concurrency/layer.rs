//! The layer and its settings.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use quill_core::RequestParts;
use tower_layer::Layer;

use super::adaptive::AdaptiveLimit;
use super::queue::{Priority, QueueLimits};
use super::service::ConcurrencyLimitService;
use super::settings::{Limits, Most, RETRY_AFTER_MAX, Settings};
use crate::middleware::metrics::MetricsCollector;
use crate::middleware::naming::{self, Named, method_path};

/// Limits how many calls are under way at once, and sheds what comes beyond that.
///
/// A call counts from its first message, or from its head if it sends a stream, until its
/// answer has ended. Clones, and the services they make, share the limit.
///
/// ```
/// use std::time::Duration;
/// use quill_server::Server;
/// use quill_server::concurrency::{AdaptiveLimit, ConcurrencyLimitLayer};
///
/// let builder = Server::builder()
///     .layer(ConcurrencyLimitLayer::new(1000).queue(100, Duration::from_millis(50)));
/// // Or as many as the server turns out to cope with.
/// let builder = Server::builder()
///     .layer(ConcurrencyLimitLayer::adaptive(AdaptiveLimit::default()));
/// ```
#[derive(Clone)]
pub struct ConcurrencyLimitLayer {
    settings: Settings,
    /// Made once the settings are known; of clones, once.
    limits: Arc<OnceLock<Arc<Limits>>>,
}

impl ConcurrencyLimitLayer {
    /// Lets `most` calls be under way at once; 0 lets none pass.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self::of(Most::Fixed(most))
    }

    /// Lets as many calls be under way as do not slow each other down.
    #[must_use]
    pub fn adaptive(limit: AdaptiveLimit) -> Self {
        Self::of(Most::Adaptive(limit))
    }

    fn of(most: Most) -> Self {
        Self {
            settings: Settings::new(most),
            limits: Arc::default(),
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        // Not that of clones which were told otherwise.
        self.limits = Arc::default();
        self
    }

    /// Gives each method a limit of its own, in place of one for all together.
    #[must_use]
    pub fn per_method(self) -> Self {
        self.with(|settings| settings.is_per_method = true)
    }

    /// Gives one method, by its path (`/package.Service/Method`), a limit of its own in
    /// place of the others'. A server without such a method is not built.
    #[must_use]
    pub fn method(self, path: impl Into<String>, most: usize) -> Self {
        let path = method_path(&path.into());
        self.with(|settings| {
            settings.methods.insert(path, Most::Fixed(most));
        })
    }

    /// Neither limits nor counts the calls of a method (`/package.Service/Method`), or of
    /// all methods of a service (`/package.Service/*`); the standard health service is
    /// exempt anyway. A server without it is not built.
    #[must_use]
    pub fn exempt(self, path: &str) -> Self {
        self.with(|settings| settings.exempt.push(Named::read(path)))
    }

    /// Lets `length` calls of each limit wait until others have ended, each for
    /// `wait_max` and never past its deadline; none unless set. When the queue has not
    /// been empty for that long, there is more work than gets done, and calls may wait
    /// for a twentieth of it only (as CoDel has it): a queue is for bursts.
    #[must_use]
    pub fn queue(self, length: usize, wait_max: Duration) -> Self {
        self.with(|settings| {
            settings.queue = QueueLimits {
                length,
                wait: wait_max,
            }
        })
    }

    /// Ranks calls: those of [`Priority::Low`] may use half of the limit, those of
    /// [`Priority::Normal`] nine tenths, and in the queue the higher go first, in place
    /// of lower ones where it is full. Without ranks all calls may use all of it.
    #[must_use]
    pub fn priority(
        self,
        rank: impl Fn(&RequestParts) -> Priority + Send + Sync + 'static,
    ) -> Self {
        self.with(|settings| settings.rank = Some(Arc::new(rank)))
    }

    /// When those who are refused are told to come back: between half and one and a half
    /// of this, at random, so that they do not all come at once. 500 ms unless set, a day at most.
    #[must_use]
    pub fn retry_after(self, time: Duration) -> Self {
        self.with(|settings| settings.retry_after = time.min(RETRY_AFTER_MAX))
    }

    /// Names the limit in metrics; `calls` unless set.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        self.with(|settings| settings.name = name.into())
    }

    /// Shows the limit, what is under way and waits, what was refused and how long calls
    /// waited in `metrics`.
    #[must_use]
    pub fn metrics(self, metrics: &MetricsCollector) -> Self {
        self.with(|settings| settings.metrics = Some(metrics.clone()))
    }
}

impl<S> Layer<S> for ConcurrencyLimitLayer {
    type Service = ConcurrencyLimitService<S>;

    fn layer(&self, inner: S) -> ConcurrencyLimitService<S> {
        let methods = self.settings.methods.keys().cloned().map(Named::Method);
        let exempt = self.settings.exempt.iter().cloned();
        naming::check("ConcurrencyLimitLayer", methods.chain(exempt));
        let limits = || Arc::new(Limits::new(self.settings.clone()));
        ConcurrencyLimitService::new(inner, Arc::clone(self.limits.get_or_init(limits)))
    }
}

impl fmt::Debug for ConcurrencyLimitLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConcurrencyLimitLayer")
            .field("name", &self.settings.name)
            .field("most", &self.settings.most)
            .finish_non_exhaustive()
    }
}
