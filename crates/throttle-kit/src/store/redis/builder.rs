//! How a [`RedisBackend`] is set up.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::cluster::ClusterClient;
use redis::sentinel::{SentinelClient, SentinelNodeConnectionInfo, SentinelServerType};
use redis::{Client, IntoConnectionInfo};

use super::error::RedisStoreError;
use super::lane::Lane;
use super::lease::Leases;
use super::link::{CONNECT_TIMEOUT, Link, Target};
use super::{RedisBackend, Shared};
use crate::store::WhenDown;
use crate::store::when_down::Fallback;

/// The settings of a [`RedisBackend`]; started by [`RedisBackend::single`],
/// [`sentinel`](RedisBackend::sentinel) or [`cluster`](RedisBackend::cluster).
#[derive(Clone)]
#[must_use = "nothing is built before `build`"]
pub struct RedisBuilder {
    whom: Whom,
    prefix: String,
    timeout: Duration,
    when_down: WhenDown,
    lease: Option<(u32, Duration)>,
    batch_max: usize,
    waiting_max: usize,
}

#[derive(Clone)]
enum Whom {
    Single(String),
    Sentinel {
        sentinels: Vec<String>,
        service: String,
        login: Option<String>,
    },
    Cluster(Vec<String>),
}

impl RedisBuilder {
    fn new(whom: Whom) -> Self {
        Self {
            whom,
            prefix: "throttle:".to_owned(),
            timeout: Duration::from_millis(100),
            when_down: WhenDown::default(),
            lease: None,
            batch_max: 128,
            waiting_max: 65_536,
        }
    }

    pub(super) fn single(url: String) -> Self {
        Self::new(Whom::Single(url))
    }

    pub(super) fn sentinel(sentinels: Vec<String>, service: String) -> Self {
        Self::new(Whom::Sentinel {
            sentinels,
            service,
            login: None,
        })
    }

    pub(super) fn cluster(nodes: Vec<String>) -> Self {
        Self::new(Whom::Cluster(nodes))
    }

    /// What every key in Redis begins with; `throttle:` unless set. Backends
    /// with different prefixes share nothing. On a Cluster a `{tag}` in it puts
    /// all keys into one slot.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// How long a check waits for its answer, connecting included, before the
    /// policy answers; 100 ms unless set. At least 1 ms. A connection that takes
    /// longer to make, up to a second, is there for later checks.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// What to answer while Redis cannot be asked; [`WhenDown::Local`] unless set.
    pub const fn when_down(mut self, policy: WhenDown) -> Self {
        self.when_down = policy;
        self
    }

    /// Takes `cells` of a key at a time (at most half of its burst) and hands
    /// them out in this process, for at most `held_max`; off unless set.
    ///
    /// See [leases](super#leases) for what this saves and what it costs.
    pub const fn lease(mut self, cells: u32, held_max: Duration) -> Self {
        self.lease = Some((cells, held_max));
        self
    }

    /// The most checks in one call of the script; 128 unless set, 1 to 4096.
    /// Redis serves nobody else meanwhile, which takes it 2 to 4 us a check.
    pub const fn batch_max(mut self, checks: usize) -> Self {
        self.batch_max = checks;
        self
    }

    /// The most checks that wait for an answer (on a Cluster, of each of 64
    /// ranges of slots); the policy answers those beyond. 65,536 unless set.
    pub const fn waiting_max(mut self, checks: usize) -> Self {
        self.waiting_max = checks;
        self
    }

    /// For Sentinel: a `redis://user:password@any/db` whose login and database
    /// are used with the servers that the sentinels name.
    pub fn login_from(mut self, url: impl Into<String>) -> Self {
        if let Whom::Sentinel { login, .. } = &mut self.whom {
            *login = Some(url.into());
        }
        self
    }

    /// Builds the backend. Nothing is connected yet: that happens at the first
    /// check, so that a service starts while its Redis is down. See
    /// [`RedisBackend::ready`] to wait for it.
    ///
    /// # Errors
    ///
    /// [`RedisStoreError::Config`] for an address or a setting that makes no sense.
    pub fn build(self) -> Result<RedisBackend, RedisStoreError> {
        let config = |what: &str| Err(RedisStoreError::Config(what.to_owned()));
        if self.timeout < Duration::from_millis(1) {
            return config("the timeout must be at least 1 ms");
        }
        if !(1..=4096).contains(&self.batch_max) {
            return config("batch_max must be 1 to 4096");
        }
        if self.waiting_max == 0 {
            return config("waiting_max must be at least 1");
        }
        if matches!(self.lease, Some((cells, held)) if cells < 2 || held.is_zero()) {
            return config("a lease needs at least 2 cells and a time above 0");
        }
        let target = self.target().map_err(|error| {
            RedisStoreError::Config(format!("the address of redis makes no sense: {error}"))
        })?;
        Ok(RedisBackend(Arc::new(Shared {
            is_cluster: matches!(target, Target::Cluster(_)),
            link: Link::new(target, self.timeout),
            lanes: std::array::from_fn(|_| Lane::default()),
            leases: self.lease.map(|(cells, held)| Leases::new(cells, held)),
            fallback: Fallback::new("redis", self.when_down),
            started: Instant::now(),
            prefix: self.prefix,
            timeout: self.timeout,
            batch_max: self.batch_max,
            waiting_max: self.waiting_max,
        })))
    }

    fn target(&self) -> redis::RedisResult<Target> {
        Ok(match &self.whom {
            Whom::Single(url) => Target::Single(Client::open(url.as_str())?),
            Whom::Sentinel {
                sentinels,
                service,
                login,
            } => {
                let mut node = SentinelNodeConnectionInfo::default();
                if let Some(url) = login {
                    let info = url.as_str().into_connection_info()?;
                    node = node.set_redis_connection_info(info.redis_settings().clone());
                }
                Target::Sentinel(Box::new(SentinelClient::build(
                    sentinels.iter().map(String::as_str).collect(),
                    service.clone(),
                    Some(node),
                    SentinelServerType::Master,
                )?))
            }
            Whom::Cluster(nodes) => Target::Cluster(Box::new(
                ClusterClient::builder(nodes.iter().map(String::as_str))
                    .connection_timeout(self.timeout.max(CONNECT_TIMEOUT))
                    .response_timeout(self.timeout)
                    .build()?,
            )),
        })
    }
}

impl fmt::Debug for RedisBuilder {
    // Without the addresses: they may hold passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisBuilder")
            .field("prefix", &self.prefix)
            .field("timeout", &self.timeout)
            .field("when_down", &self.when_down)
            .field("lease", &self.lease)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_is_an_error_that_says_so() {
        let single = || RedisBackend::single("redis://127.0.0.1:1");
        for (builder, expected) in [
            (RedisBackend::single("http://example"), "address"),
            (RedisBackend::cluster(["redis://[::1"]), "address"),
            (RedisBackend::sentinel(Vec::<String>::new(), "x"), "address"),
            (single().timeout(Duration::ZERO), "timeout"),
            (single().batch_max(0), "batch_max"),
            (single().batch_max(5000), "batch_max"),
            (single().waiting_max(0), "waiting_max"),
            (single().lease(1, Duration::from_secs(1)), "lease"),
            (single().lease(10, Duration::ZERO), "lease"),
        ] {
            let error = builder.build().unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn passwords_are_not_shown() {
        let builder = RedisBackend::single("redis://ann:secret@127.0.0.1:1");
        assert!(!format!("{builder:?}").contains("secret"));
        assert!(!format!("{:?}", builder.build().unwrap()).contains("secret"));
    }
}
