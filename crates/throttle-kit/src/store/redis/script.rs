//! The script, and what goes into it and comes out of it.

use std::sync::LazyLock;

use redis::{Cmd, Script};

use super::error::RedisStoreError;
use crate::backend::Operation;
use crate::decision::Decision;
use crate::quota::{Quota, Scale};

static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(SOURCE));
const SOURCE: &str = include_str!("script.lua");

/// Parts of a microsecond in which the script counts what is left of it:
/// 1/2048 ns, the finest unit of a quota, so that nothing is ever rounded.
const WHOLE: u128 = 2_048_000;

/// Integers in the reply for each operation.
const REPLY_LEN: usize = 3;

/// How the operations of a call belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Not at all.
    Each,
    /// All are charged, or none.
    All,
}

/// One operation on one key, as the script takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) key: Vec<u8>,
    pub(super) what: What,
    cost: Span,
    window: Span,
}

/// What to do with the cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Apply(Operation),
    /// Take this much time's worth of cells, or if that does not fit the cost.
    Lease(Span),
}

impl Request {
    pub(super) fn new(key: Vec<u8>, quota: &Quota, n: u32, operation: Operation) -> Self {
        Self {
            key,
            what: What::Apply(operation),
            cost: cost(quota, n),
            window: Span::of(quota, quota.window_units().into()),
        }
    }

    /// A check of `n` cells that takes `cells` if so many are there.
    pub(super) fn lease(key: Vec<u8>, quota: &Quota, n: u32, cells: u32) -> Self {
        let what = What::Lease(cost(quota, cells));
        Self {
            what,
            ..Self::new(key, quota, n, Operation::Check)
        }
    }

    fn pack(&self) -> Vec<u8> {
        let (code, lease) = match self.what {
            What::Apply(Operation::Check) => (0, None),
            What::Apply(Operation::Peek) => (1, None),
            What::Apply(Operation::Reset) => (2, None),
            What::Apply(Operation::Refund(_)) => (3, None),
            What::Lease(span) => (4, Some(span)),
        };
        let mut out = Vec::with_capacity(49);
        out.push(code);
        for span in [Some(self.cost), Some(self.window), lease]
            .into_iter()
            .flatten()
        {
            // Whole numbers below 2^53: exact as doubles.
            out.extend_from_slice(&(span.us as f64).to_be_bytes());
            out.extend_from_slice(&f64::from(span.rest).to_be_bytes());
        }
        out
    }
}

/// The time that `n` cells cost; more than the window if they never fit.
fn cost(quota: &Quota, n: u32) -> Span {
    if quota.fits(n) {
        Span::of(quota, u128::from(n) * u128::from(quota.interval_units()))
    } else {
        let window = Span::of(quota, quota.window_units().into());
        Span {
            us: window.us + 1,
            rest: window.rest,
        }
    }
}

/// A time: microseconds, and 2,048,000ths of one. At most 2^61 ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    us: u64,
    rest: u32,
}

impl Span {
    /// From units of the quota's state word.
    fn of(quota: &Quota, units: u128) -> Self {
        let parts = units << finer(quota);
        Self {
            us: (parts / WHOLE) as u64,
            rest: (parts % WHOLE) as u32,
        }
    }

    /// As units of the quota's state word, rounded up, at most its window.
    fn units(self, quota: &Quota) -> u64 {
        let parts = u128::from(self.us) * WHOLE + u128::from(self.rest);
        let units = parts.div_ceil(1 << finer(quota));
        u64::try_from(units)
            .unwrap_or(u64::MAX)
            .min(quota.window_units())
    }
}

/// By how many bits the script's unit is finer than the quota's.
fn finer(quota: &Quota) -> u32 {
    Scale::Fine as u32 - quota.scale() as u32
}

/// What the script said of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: Status,
    debt: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Refused,
    Allowed,
    Leased,
}

impl Answer {
    pub(super) fn decision(&self, quota: &Quota, n: u32, operation: Operation) -> Decision {
        let debt = self.debt_units(quota);
        let cost = if operation == Operation::Check { n } else { 0 };
        match self.status {
            Status::Refused => Decision::refused(quota, debt, n),
            Status::Allowed | Status::Leased => Decision::allowed(quota, debt, cost),
        }
    }

    pub(super) fn debt_units(&self, quota: &Quota) -> u64 {
        self.debt.units(quota)
    }
}

/// The call of the script by its hash.
pub(super) fn by_hash(mode: Mode, requests: &[Request]) -> Cmd {
    call("EVALSHA", SCRIPT.get_hash(), mode, requests)
}

/// The call with its source, for a server that does not know the hash: one
/// that was restarted or flushed. It knows the hash from then on.
pub(super) fn by_source(mode: Mode, requests: &[Request]) -> Cmd {
    call("EVAL", SOURCE, mode, requests)
}

fn call(command: &str, script: &str, mode: Mode, requests: &[Request]) -> Cmd {
    let mut cmd = redis::cmd(command);
    cmd.arg(script).arg(requests.len());
    for request in requests {
        cmd.arg(request.key.as_slice());
    }
    cmd.arg(match mode {
        Mode::Each => "each",
        Mode::All => "all",
    });
    for request in requests {
        cmd.arg(request.pack());
    }
    cmd
}

/// Reads the reply to a call of `len` operations.
pub(super) fn answers(
    reply: &[i64],
    len: usize,
) -> Result<Vec<Result<Answer, RedisStoreError>>, RedisStoreError> {
    let (answers, rest) = reply.as_chunks::<REPLY_LEN>();
    if answers.len() != len || !rest.is_empty() {
        return Err(RedisStoreError::Reply(format!(
            "{} integers for {len} operations, {REPLY_LEN} each are due",
            reply.len()
        )));
    }
    Ok(answers.iter().map(answer).collect())
}

fn answer(&[status, us, rest]: &[i64; REPLY_LEN]) -> Result<Answer, RedisStoreError> {
    let status = match status {
        -1 => return Err(RedisStoreError::ForeignKey),
        0 => Status::Refused,
        1 => Status::Allowed,
        2 => Status::Leased,
        _ => return Err(RedisStoreError::Reply(format!("status {status}"))),
    };
    match (u64::try_from(us), u32::try_from(rest)) {
        (Ok(us), Ok(rest)) => Ok(Answer {
            status,
            debt: Span { us, rest },
        }),
        _ => Err(RedisStoreError::Reply(format!("debt {us}:{rest}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn spans_are_exact(n in 1_u32.., micros in 1_u64..100_000_000_000, burst in 1_u32..1_000_000, k in 1_u32..) {
            let quota = Quota::new(n, Duration::from_micros(micros), burst);
            let k = k % burst.max(1);
            let units = u128::from(k) * u128::from(quota.interval_units());
            if !quota.denies_all() {
                let span = Span::of(&quota, units);
                prop_assert_eq!(u128::from(span.units(&quota)), units);
                prop_assert!(span.us < 1 << 53);
            }
        }

        #[test]
        fn any_reply_is_read(reply in prop::collection::vec(any::<i64>(), 0..9), len in 0_usize..4) {
            let quota = Quota::per_second(70_000);
            for answer in answers(&reply, len).into_iter().flatten().flatten() {
                let _ = answer.decision(&quota, 1, Operation::Check).remaining();
            }
        }
    }

    #[test]
    fn what_never_fits_costs_more_than_the_window() {
        for (quota, n) in [
            (Quota::per_second(10), 11),
            (Quota::DENY_ALL, 0),
            (
                Quota::new(1, Duration::from_secs(2_000_000_000), 1),
                u32::MAX,
            ),
        ] {
            let request = Request::new(Vec::new(), &quota, n, Operation::Check);
            assert!(request.cost.us > request.window.us, "{quota:?}");
        }
    }

    #[test]
    fn replies_of_a_wrong_shape_are_errors() {
        assert!(answers(&[1, 0], 1).is_err());
        assert!(answers(&[1, 0, 0], 2).is_err());
        let mixed = answers(&[-1, 0, 0, 7, 0, 0, 1, -5, 0, 2, 5, 6], 4).unwrap();
        assert!(matches!(mixed[0], Err(RedisStoreError::ForeignKey)));
        assert!(matches!(mixed[1], Err(RedisStoreError::Reply(_))));
        assert!(matches!(mixed[2], Err(RedisStoreError::Reply(_))));
        let leased = mixed[3].clone().unwrap();
        assert_eq!(leased.status, Status::Leased);
        assert_eq!(leased.debt, Span { us: 5, rest: 6 });
    }
}
