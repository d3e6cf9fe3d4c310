//! How calls are spread.

use std::time::Duration;

use super::health::HealthCheck;
use super::outlier::Outliers;
use crate::backoff::Backoff;

const RESOLVE_INTERVAL_DEFAULT: Duration = Duration::from_secs(30);
pub(crate) const RECONNECT_DEFAULT: Backoff =
    Backoff::new(Duration::from_millis(100), Duration::from_secs(30));

/// How a client spreads its calls over the servers that it knows, and what it
/// does with those that fail.
///
/// Each address of each of the client's URLs is a server of its own, with
/// connections of its own: they are made beforehand, and made again when lost,
/// after longer and longer times while that fails. A call goes to one that is
/// connected; while there is none yet it waits, and once all have failed it fails
/// at once, unless it is to [wait](Self::wait_for_ready).
///
/// ```
/// use std::time::Duration;
/// use quill_client::{Balance, Outliers, QuillClient};
///
/// let client = QuillClient::builder()
///     .base_url("http://10.0.0.1:8080,10.0.0.2:8080")
///     .balance(Balance::least_loaded().eject(Outliers::new()))
///     .build()?;
/// # Ok::<(), quill_client::ConnectError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Balance {
    pub(super) policy: Policy,
    pub(super) resolve_interval: Duration,
    pub(super) reconnect: Backoff,
    pub(super) waits: bool,
    pub(super) outliers: Option<Outliers>,
    pub(super) health: Option<HealthCheck>,
}

/// Which of the servers that are connected a call goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    PickFirst,
    RoundRobin,
    LeastLoaded,
}

impl Balance {
    /// All calls go to one server: the first, in the order of the URLs, that can
    /// be connected. The next is tried when it is lost.
    pub fn pick_first() -> Self {
        Self::new(Policy::PickFirst)
    }

    /// The servers take turns.
    pub fn round_robin() -> Self {
        Self::new(Policy::RoundRobin)
    }

    /// Of two servers that are drawn, a call goes to the one with fewer calls
    /// under way: a slow one so gets fewer, without all calls going to the fastest
    /// at once.
    pub fn least_loaded() -> Self {
        Self::new(Policy::LeastLoaded)
    }

    fn new(policy: Policy) -> Self {
        Self {
            policy,
            resolve_interval: RESOLVE_INTERVAL_DEFAULT,
            reconnect: RECONNECT_DEFAULT,
            waits: false,
            outliers: None,
            health: None,
        }
    }

    /// How often the servers' names are looked up, or the source of URLs asked;
    /// 30 s unless set, one second at least. They are also when a server is lost.
    pub fn resolve_every(mut self, interval: Duration) -> Self {
        self.resolve_interval = interval.max(super::keeper::RESOLVE_PAUSE);
        self
    }

    /// How long to wait between attempts to connect to a server that fail; 100 ms
    /// up to 30 s unless set.
    pub fn reconnect(mut self, backoff: Backoff) -> Self {
        self.reconnect = backoff;
        self
    }

    /// Calls wait until a server can be called, to their deadline, rather than to
    /// fail with `unavailable` while all servers are away; off unless set.
    pub fn wait_for_ready(mut self) -> Self {
        self.waits = true;
        self
    }

    /// Lets no calls go to servers whose calls fail; off unless set.
    pub fn eject(mut self, outliers: Outliers) -> Self {
        self.outliers = Some(outliers);
        self
    }

    /// Lets calls go to servers alone that say they are healthy; off unless set.
    pub fn check_health(mut self, check: HealthCheck) -> Self {
        self.health = Some(check);
        self
    }
}
