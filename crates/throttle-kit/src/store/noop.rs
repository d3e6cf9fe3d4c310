//! No limit at all.

use crate::backend::{Operation, SyncBackend};
use crate::decision::Decision;
use crate::key::KeyRef;
use crate::quota::Quota;

/// Allows everything and keeps nothing: for tests, and to switch a limit off.
///
/// Every decision shows a whole budget. Even a quota that denies all, and more
/// cells than the burst, are allowed.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoopBackend;

impl SyncBackend for NoopBackend {
    fn apply_now(&self, _: KeyRef<'_>, quota: &Quota, n: u32, operation: Operation) -> Decision {
        let cost = if operation == Operation::Check { n } else { 0 };
        Decision::allowed(quota, 0, cost)
    }
}
