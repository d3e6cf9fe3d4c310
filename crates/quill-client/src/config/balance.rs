//! Several servers.

use quill_config::{ConfigError, Read, Time};
use serde::Deserialize;

use super::Settings;

use crate::backoff::Backoff;
use crate::balance::{
    Balance, HealthCheck, INTERVAL_MIN, Outliers, RECONNECT_DEFAULT, RESOLVE_PAUSE,
};

/// As [`Balance`] has it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct BalanceSection {
    policy: Option<Policy>,
    resolve_every: Option<Time>,
    reconnect: Option<Pauses>,
    wait_for_ready: bool,
    eject: Option<Eject>,
    check_health: Option<Health>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Policy {
    LeastLoaded,
    RoundRobin,
    PickFirst,
}

/// As [`Backoff`] has it.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Pauses {
    initial: Option<Time>,
    max: Option<Time>,
    multiplier: Option<f64>,
}

impl Pauses {
    /// `at` is its key; what is not said is as `unsaid` has it.
    pub(super) fn backoff(
        self,
        at: &str,
        unsaid: Backoff,
        read: &Read<Settings>,
    ) -> Result<Backoff, ConfigError> {
        let max = self.max.map_or(unsaid.max, Time::duration);
        let initial = self.initial.map(Time::duration);
        let initial = read.bounded(&format!("{at}.initial"), initial, ..=max)?;
        let backoff = Backoff::new(initial.unwrap_or(unsaid.initial.min(max)), max);
        let multiplier = read.bounded(&format!("{at}.multiplier"), self.multiplier, 1.0..)?;
        Ok(backoff.multiplier(multiplier.unwrap_or(unsaid.multiplier)))
    }
}

/// As [`Outliers`] has it.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Eject {
    in_a_row: Option<u32>,
    percent: Option<u32>,
    calls_min: Option<u32>,
    interval: Option<Time>,
    time: Option<Time>,
    ejected_percent_max: Option<usize>,
}

/// What `percent` and `calls_min` are where only one of them is said.
const PERCENT_DEFAULT: u32 = 85;
const CALLS_MIN_DEFAULT: u32 = 10;

impl Eject {
    fn outliers(self, read: &Read<Settings>) -> Result<Outliers, ConfigError> {
        let mut outliers = Outliers::new();
        let in_a_row = read.bounded("balance.eject.in_a_row", self.in_a_row, 1..)?;
        if let Some(failures) = in_a_row {
            outliers = outliers.in_a_row(failures);
        }
        let percent = read.bounded("balance.eject.percent", self.percent, 1..=100)?;
        let calls_min = read.bounded("balance.eject.calls_min", self.calls_min, 1..)?;
        if percent.is_some() || calls_min.is_some() {
            outliers = outliers.percent(
                percent.unwrap_or(PERCENT_DEFAULT),
                calls_min.unwrap_or(CALLS_MIN_DEFAULT),
            );
        }
        let interval = self.interval.map(Time::duration);
        if let Some(interval) = read.bounded("balance.eject.interval", interval, INTERVAL_MIN..)? {
            outliers = outliers.interval(interval);
        }
        if let Some(time) = self.time {
            outliers = outliers.time(time.duration());
        }
        let percent = self.ejected_percent_max;
        if let Some(percent) = read.bounded("balance.eject.ejected_percent_max", percent, ..=100)? {
            outliers = outliers.ejected_percent_max(percent);
        }
        Ok(outliers)
    }
}

/// As [`HealthCheck`] has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Health {
    service: String,
    every: Option<Time>,
    timeout: Option<Time>,
}

impl Health {
    fn check(&self, read: &Read<Settings>) -> Result<HealthCheck, ConfigError> {
        let mut check = HealthCheck::of(&self.service);
        let interval = self.every.map(Time::duration);
        if let Some(interval) =
            read.bounded("balance.check_health.every", interval, INTERVAL_MIN..)?
        {
            check = check.every(interval);
        }
        if let Some(timeout) = self.timeout {
            check = check.timeout(timeout.duration());
        }
        Ok(check)
    }
}

impl BalanceSection {
    pub(super) fn balance(&self, read: &Read<Settings>) -> Result<Balance, ConfigError> {
        let mut balance = match self.policy {
            Some(Policy::LeastLoaded) | None => Balance::least_loaded(),
            Some(Policy::RoundRobin) => Balance::round_robin(),
            Some(Policy::PickFirst) => Balance::pick_first(),
        };
        let interval = self.resolve_every.map(Time::duration);
        if let Some(interval) = read.bounded("balance.resolve_every", interval, RESOLVE_PAUSE..)? {
            balance = balance.resolve_every(interval);
        }
        if let Some(pauses) = self.reconnect {
            balance =
                balance.reconnect(pauses.backoff("balance.reconnect", RECONNECT_DEFAULT, read)?);
        }
        if self.wait_for_ready {
            balance = balance.wait_for_ready();
        }
        if let Some(eject) = self.eject {
            balance = balance.eject(eject.outliers(read)?);
        }
        Ok(match &self.check_health {
            Some(health) => balance.check_health(health.check(read)?),
            None => balance,
        })
    }
}
