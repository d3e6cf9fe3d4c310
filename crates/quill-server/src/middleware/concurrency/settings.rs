//! What a limit is told.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quill_core::RequestParts;

use super::adaptive::AdaptiveLimit;
use super::limiter::Limiter;
use super::queue::{Priority, QueueLimits};
use crate::middleware::metrics::MetricsCollector;
use crate::middleware::naming::Named;

/// The standard health service: who asks it wants to know how the server is, above all
/// when it is not well.
const HEALTH: &str = "grpc.health.v1.Health";
const RETRY_AFTER_DEFAULT: Duration = Duration::from_millis(500);
/// The most that is told: half as much again can still be reckoned.
pub(super) const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) type Rank = Arc<dyn Fn(&RequestParts) -> Priority + Send + Sync>;

/// How many calls may be under way.
#[derive(Clone, Copy, Debug)]
pub(super) enum Most {
    Fixed(usize),
    Adaptive(AdaptiveLimit),
}

/// What a limit is told.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) name: String,
    pub(super) most: Most,
    pub(super) is_per_method: bool,
    /// By path.
    pub(super) methods: HashMap<String, Most>,
    pub(super) exempt: Vec<Named>,
    pub(super) queue: QueueLimits,
    pub(super) rank: Option<Rank>,
    pub(super) retry_after: Duration,
    pub(super) metrics: Option<MetricsCollector>,
}

impl Settings {
    pub(super) fn new(most: Most) -> Self {
        Self {
            name: "calls".to_owned(),
            most,
            is_per_method: false,
            methods: HashMap::new(),
            exempt: Vec::new(),
            queue: QueueLimits {
                length: 0,
                wait: Duration::ZERO,
            },
            rank: None,
            retry_after: RETRY_AFTER_DEFAULT,
            metrics: None,
        }
    }
}

/// The limits of a layer: one, and those of methods that have their own.
pub(super) struct Limits {
    pub(super) settings: Settings,
    all: Arc<Limiter>,
    /// By path. A server has so many methods and no more.
    methods: Mutex<HashMap<String, Arc<Limiter>>>,
}

impl Limits {
    pub(super) fn new(settings: Settings) -> Self {
        let own = settings.methods.iter();
        let own = own.map(|(path, most)| (path.clone(), limiter(&settings, *most, path)));
        Self {
            all: limiter(&settings, settings.most, ""),
            methods: Mutex::new(own.collect()),
            settings,
        }
    }

    /// The limit of a call; `None` where it has none.
    pub(super) fn of(&self, request: &RequestParts) -> Option<Arc<Limiter>> {
        let Some(method) = request.method.as_deref() else {
            return Some(Arc::clone(&self.all));
        };
        let is_exempt = |name: &Named| name.is_of(method);
        if method.service() == HEALTH || self.settings.exempt.iter().any(is_exempt) {
            return None;
        }
        if !self.settings.is_per_method && self.settings.methods.is_empty() {
            return Some(Arc::clone(&self.all));
        }
        let mut methods = self.methods.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = methods.get(method.path()) {
            return Some(Arc::clone(own));
        }
        if !self.settings.is_per_method {
            return Some(Arc::clone(&self.all));
        }
        let own = limiter(&self.settings, self.settings.most, method.path());
        methods.insert(method.path().to_owned(), Arc::clone(&own));
        Some(own)
    }

    pub(super) fn priority(&self, request: &RequestParts) -> Priority {
        // Without ranks all may use all.
        let rank = self.settings.rank.as_ref();
        rank.map_or(Priority::High, |rank| rank(request))
    }
}

fn limiter(settings: &Settings, most: Most, method: &str) -> Arc<Limiter> {
    let metrics = settings.metrics.as_ref();
    let counts = metrics.map(|metrics| metrics.concurrency(&settings.name, method));
    Arc::new(Limiter::new(
        most,
        settings.queue,
        settings.retry_after,
        counts,
    ))
}
