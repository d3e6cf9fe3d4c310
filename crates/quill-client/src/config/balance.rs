//! Several servers.

use quill_config::Time;
use serde::Deserialize;

use crate::backoff::Backoff;
use crate::balance::{Balance, HealthCheck, Outliers};

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
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pauses {
    initial: Time,
    max: Time,
    multiplier: Option<f64>,
}

impl Pauses {
    pub(super) fn backoff(self) -> Backoff {
        let backoff = Backoff::new(self.initial.duration(), self.max.duration());
        match self.multiplier {
            Some(multiplier) => backoff.multiplier(multiplier),
            None => backoff,
        }
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
    fn outliers(self) -> Outliers {
        let mut outliers = Outliers::new();
        if let Some(failures) = self.in_a_row {
            outliers = outliers.in_a_row(failures);
        }
        if self.percent.is_some() || self.calls_min.is_some() {
            outliers = outliers.percent(
                self.percent.unwrap_or(PERCENT_DEFAULT),
                self.calls_min.unwrap_or(CALLS_MIN_DEFAULT),
            );
        }
        if let Some(interval) = self.interval {
            outliers = outliers.interval(interval.duration());
        }
        if let Some(time) = self.time {
            outliers = outliers.time(time.duration());
        }
        if let Some(percent) = self.ejected_percent_max {
            outliers = outliers.ejected_percent_max(percent);
        }
        outliers
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
    fn check(&self) -> HealthCheck {
        let mut check = HealthCheck::of(&self.service);
        if let Some(interval) = self.every {
            check = check.every(interval.duration());
        }
        if let Some(timeout) = self.timeout {
            check = check.timeout(timeout.duration());
        }
        check
    }
}

impl BalanceSection {
    pub(super) fn balance(&self) -> Balance {
        let mut balance = match self.policy {
            Some(Policy::LeastLoaded) | None => Balance::least_loaded(),
            Some(Policy::RoundRobin) => Balance::round_robin(),
            Some(Policy::PickFirst) => Balance::pick_first(),
        };
        if let Some(interval) = self.resolve_every {
            balance = balance.resolve_every(interval.duration());
        }
        if let Some(pauses) = self.reconnect {
            balance = balance.reconnect(pauses.backoff());
        }
        if self.wait_for_ready {
            balance = balance.wait_for_ready();
        }
        if let Some(eject) = self.eject {
            balance = balance.eject(eject.outliers());
        }
        match &self.check_health {
            Some(health) => balance.check_health(health.check()),
            None => balance,
        }
    }
}
