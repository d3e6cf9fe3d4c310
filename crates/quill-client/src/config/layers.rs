//! Retries, hedging, circuit breaker, rate limit, tokens.

use std::ops::Bound;
use std::path::PathBuf;
use std::time::Duration;

use quill_config::{ConfigError, Read, Size, Time};
use quill_core::{Code, Error};
use serde::Deserialize;
use throttle_kit::Quota;

use super::Settings;
use super::balance::Pauses;
use crate::breaker::CircuitBreaker;
use crate::builder::ClientBuilder;
use crate::hedge::Hedge;
use crate::rate_limit::RateLimit;
use crate::retry::{
    BACKOFF_DEFAULT, RATIO_DEFAULT, RetryBudget, RetryLayer, RetryPolicy, TOKENS_DEFAULT,
    TOKENS_MAX,
};
use crate::token::{Token, Tokens};

/// As [`RetryPolicy`] and [`RetryLayer`] have it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Retry {
    attempts_max: Option<u32>,
    backoff: Option<Pauses>,
    codes: Vec<String>,
    budget: Option<Budget>,
    buffer_bytes_max: Option<Size>,
}

/// As [`RetryBudget`] has it.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Budget {
    tokens_max: Option<u32>,
    ratio: Option<f64>,
}

/// As [`Hedge`] has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HedgeSection {
    after: Time,
    attempts_max: Option<usize>,
    #[serde(default)]
    codes: Vec<String>,
}

/// As [`CircuitBreaker`] has it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Breaker {
    failure_ratio: Option<f64>,
    calls_min: Option<u32>,
    window: Option<Time>,
    open_for: Option<Time>,
    failure_codes: Vec<String>,
}

/// As [`RateLimit`] has it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rate {
    per_second: u32,
    burst: Option<u32>,
    wait_max: Option<Time>,
}

/// How old a token may become before its file is read again.
const TOKEN_AGE_MAX: Duration = Duration::from_secs(60);
/// Most bytes of a token.
const TOKEN_BYTES_MAX: usize = 64 * 1024;

/// Tokens of a file that somebody else keeps fresh.
pub(super) fn tokens(path: PathBuf) -> Tokens {
    Tokens::new(move || {
        // Files of tokens are small, and on a disk of this machine.
        let token = token(&path);
        async move { token.map(|token| Token::bearer(token).expires_in(TOKEN_AGE_MAX)) }
    })
}

fn token(path: &std::path::Path) -> Result<String, Error> {
    let wrong = |what: &dyn std::fmt::Display| {
        Error::unauthenticated(format!("token_file {}: {what}", path.display()))
    };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    let token = text.trim();
    let is_token = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    if token.len() > TOKEN_BYTES_MAX || !is_token {
        return Err(wrong(&"allowed is a token of one line, up to 64 KiB"));
    }
    Ok(token.to_owned())
}

fn codes(names: &[String], key: &str, read: &Read<Settings>) -> Result<Vec<Code>, ConfigError> {
    let named = names.iter().map(|name| {
        Code::from_name(name).ok_or_else(|| {
            let all: Vec<_> = Code::ALL.iter().map(|code| code.name()).collect();
            read.error(
                key,
                format!("{name:?} is no code: allowed are {}", all.join(", ")),
            )
        })
    });
    named.collect()
}

impl Retry {
    fn layer(&self, read: &Read<Settings>) -> Result<RetryLayer, ConfigError> {
        let mut policy = RetryPolicy::new();
        let attempts = read.bounded("retry.attempts_max", self.attempts_max, 1..)?;
        if let Some(attempts) = attempts {
            policy = policy.attempts_max(attempts);
        }
        if let Some(pauses) = self.backoff {
            policy = policy.backoff(pauses.backoff("retry.backoff", BACKOFF_DEFAULT, read)?);
        }
        if !self.codes.is_empty() {
            policy = policy.codes(codes(&self.codes, "retry.codes", read)?);
        }
        let mut layer = RetryLayer::new(policy);
        if let Some(budget) = self.budget {
            layer = layer.budget(budget.budget(read)?);
        }
        Ok(match self.buffer_bytes_max {
            Some(size) => layer.buffer_bytes_max(size.bytes()),
            None => layer,
        })
    }
}

impl Budget {
    fn budget(self, read: &Read<Settings>) -> Result<RetryBudget, ConfigError> {
        let tokens = read.bounded("retry.budget.tokens_max", self.tokens_max, 1..=TOKENS_MAX)?;
        let ratio = read.bounded("retry.budget.ratio", self.ratio, 0.001..=1.0)?;
        Ok(RetryBudget::new(
            tokens.unwrap_or(TOKENS_DEFAULT),
            ratio.unwrap_or(RATIO_DEFAULT),
        ))
    }
}

impl HedgeSection {
    fn hedge(&self, read: &Read<Settings>) -> Result<Hedge, ConfigError> {
        let mut hedge = Hedge::after(self.after.duration());
        let attempts = read.bounded("hedge.attempts_max", self.attempts_max, 1..=5)?;
        if let Some(attempts) = attempts {
            hedge = hedge.attempts_max(attempts);
        }
        Ok(match self.codes.is_empty() {
            true => hedge,
            false => hedge.codes(codes(&self.codes, "hedge.codes", read)?),
        })
    }
}

impl Breaker {
    fn breaker(&self, read: &Read<Settings>) -> Result<CircuitBreaker, ConfigError> {
        let mut breaker = CircuitBreaker::new();
        let above_none = (Bound::Excluded(0.0), Bound::Included(1.0));
        let ratio = read.bounded(
            "circuit_breaker.failure_ratio",
            self.failure_ratio,
            above_none,
        )?;
        if let Some(ratio) = ratio {
            breaker = breaker.failure_ratio(ratio);
        }
        let calls = read.bounded("circuit_breaker.calls_min", self.calls_min, 1..)?;
        if let Some(calls) = calls {
            breaker = breaker.calls_min(calls);
        }
        if let Some(window) = self.window {
            breaker = breaker.window(window.duration());
        }
        if let Some(time) = self.open_for {
            breaker = breaker.open_for(time.duration());
        }
        Ok(match self.failure_codes.is_empty() {
            true => breaker,
            false => {
                let named = codes(&self.failure_codes, "circuit_breaker.failure_codes", read)?;
                breaker.failure_codes(named)
            }
        })
    }
}

impl Rate {
    fn limit(self, read: &Read<Settings>) -> Result<RateLimit, ConfigError> {
        let second = Duration::from_secs(1);
        let burst = self.burst.unwrap_or(self.per_second);
        let quota = Quota::try_new(self.per_second, second, burst);
        let limit = RateLimit::new(quota.map_err(|error| read.error("rate_limit", error))?);
        Ok(match self.wait_max {
            Some(wait) => limit.wait_max(wait.duration()),
            None => limit,
        })
    }
}

impl Settings {
    pub(super) fn layers(
        &self,
        mut builder: ClientBuilder,
        read: &Read<Self>,
    ) -> Result<ClientBuilder, ConfigError> {
        if let Some(retry) = &self.retry {
            builder = builder.retry(retry.layer(read)?);
        }
        if let Some(hedge) = &self.hedge {
            builder = builder.hedge(hedge.hedge(read)?);
        }
        if let Some(breaker) = &self.circuit_breaker {
            builder = builder.circuit_breaker(breaker.breaker(read)?);
        }
        if let Some(rate) = self.rate_limit {
            builder = builder.rate_limit(rate.limit(read)?);
        }
        Ok(builder)
    }
}
