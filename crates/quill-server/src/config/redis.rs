//! The Redis in which servers share their rate limits.

use std::path::PathBuf;

use quill_config::{ConfigError, Read, Time};
use serde::Deserialize;

use super::Settings;
use crate::middleware::rate_limit::RateLimitLayer;

/// Where it is, and what holds while it is away. Addresses with a password are in
/// files.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Redis {
    url: Option<String>,
    url_file: Option<PathBuf>,
    cluster: Vec<String>,
    sentinels: Vec<String>,
    service: Option<String>,
    login_file: Option<PathBuf>,
    prefix: Option<String>,
    timeout: Option<Time>,
    when_down: Option<WhenDown>,
    lease_calls: Option<u32>,
    lease_time: Option<Time>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WhenDown {
    Local,
    Open,
    Closed,
}

#[cfg(feature = "redis")]
pub(super) use with_redis::Store;
#[cfg(not(feature = "redis"))]
pub(super) use without_redis::Store;

impl Redis {
    /// Refuses addresses with a password, which `url_file` and `login_file` are for.
    pub(super) fn check_logins(&self, read: &Read<Settings>) -> Result<(), ConfigError> {
        if let Some(url) = &self.url {
            read.without_login("redis.url", url)?;
        }
        for (name, nodes) in [("cluster", &self.cluster), ("sentinels", &self.sentinels)] {
            for (index, node) in nodes.iter().enumerate() {
                read.without_login(&format!("redis.{name}[{index}]"), node)?;
            }
        }
        Ok(())
    }
}

#[cfg(feature = "redis")]
mod with_redis {
    use std::path::Path;

    use throttle_kit::RedisBackend;
    use throttle_kit::store::redis::RedisBuilder;

    use super::{ConfigError, RateLimitLayer, Read, Redis, Settings, Time, WhenDown};
    use crate::config::secret;

    /// The backend of limits that are shared.
    pub(crate) struct Store(RedisBackend);

    /// One server, a Cluster, or what sentinels know.
    fn whom(redis: &Redis, read: &Read<Settings>) -> Result<RedisBuilder, ConfigError> {
        let (cluster, sentinels) = (&redis.cluster, &redis.sentinels);
        let ways = [
            redis.url.is_some(),
            redis.url_file.is_some(),
            !cluster.is_empty(),
            !sentinels.is_empty(),
        ];
        if ways.iter().filter(|way| **way).count() != 1 {
            let wrong = "set one of url, url_file, cluster, or sentinels with service";
            return Err(read.error("redis", wrong));
        }
        if let Some(url) = &redis.url {
            return Ok(RedisBackend::single(url));
        }
        if let Some(path) = &redis.url_file {
            return Ok(RedisBackend::single(address("url_file", path, read)?));
        }
        if !cluster.is_empty() {
            return Ok(RedisBackend::cluster(cluster));
        }
        match &redis.service {
            Some(service) => Ok(RedisBackend::sentinel(sentinels, service)),
            None => Err(read.error("redis.service", "it is missing: sentinels need it")),
        }
    }

    /// The address that a file holds.
    fn address(key: &str, path: &Path, read: &Read<Settings>) -> Result<String, ConfigError> {
        let wrong = |error: &str| read.error(&format!("redis.{key}"), error);
        let address = secret(&read.path(path)).map_err(|error| wrong(&error))?;
        String::from_utf8(address).map_err(|_| wrong("the file holds no text"))
    }

    impl Store {
        pub(crate) fn open(redis: &Redis, read: &Read<Settings>) -> Result<Self, ConfigError> {
            let mut builder = whom(redis, read)?;
            if let Some(path) = &redis.login_file {
                builder = builder.login_from(address("login_file", path, read)?);
            }
            if let Some(prefix) = &redis.prefix {
                builder = builder.prefix(prefix);
            }
            if let Some(timeout) = redis.timeout {
                builder = builder.timeout(timeout.duration());
            }
            builder = match redis.when_down {
                None => builder,
                Some(WhenDown::Local) => builder.when_down(throttle_kit::WhenDown::Local),
                Some(WhenDown::Open) => builder.when_down(throttle_kit::WhenDown::Open),
                Some(WhenDown::Closed) => builder.when_down(throttle_kit::WhenDown::Closed),
            };
            builder = match (redis.lease_calls, redis.lease_time.map(Time::duration)) {
                (Some(calls), Some(time)) => builder.lease(calls, time),
                (None, None) => builder,
                _ => {
                    return Err(read.error("redis", "lease_calls and lease_time are set together"));
                }
            };
            let backend = builder.build();
            backend
                .map(Self)
                .map_err(|error| read.error("redis", error))
        }

        /// Keeps the budgets of a limit here.
        pub(crate) fn hold(&self, layer: RateLimitLayer) -> RateLimitLayer {
            layer.with_backend(self.0.clone())
        }
    }
}

#[cfg(not(feature = "redis"))]
mod without_redis {
    use super::{ConfigError, RateLimitLayer, Read, Redis, Settings};

    /// There is none in this program.
    pub(crate) enum Store {}

    impl Store {
        pub(crate) fn open(_: &Redis, read: &Read<Settings>) -> Result<Self, ConfigError> {
            Err(read.error("redis", "this program was built without the feature redis"))
        }

        pub(crate) fn hold(&self, _: RateLimitLayer) -> RateLimitLayer {
            match *self {}
        }
    }
}
