//! Random extra waiting, so that those who were refused together do not all
//! come back together.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How much longer than necessary to wait: a uniformly random span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Jitter {
    min: Duration,
    spread: Duration,
}

impl Jitter {
    /// Not longer than necessary.
    pub const NONE: Self = Self {
        min: Duration::ZERO,
        spread: Duration::ZERO,
    };

    /// Up to `max` longer.
    #[must_use]
    pub const fn up_to(max: Duration) -> Self {
        Self {
            min: Duration::ZERO,
            spread: max,
        }
    }

    /// At least `min` and up to `min + spread` longer.
    #[must_use]
    pub const fn between(min: Duration, spread: Duration) -> Self {
        Self { min, spread }
    }

    /// Draws one.
    pub(crate) fn draw(self) -> Duration {
        if self.spread.is_zero() {
            return self.min;
        }
        // Not a secret: it only has to differ between waiters and processes.
        static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        static DRAWN: AtomicU64 = AtomicU64::new(0);
        let random = SEED.hash_one(DRAWN.fetch_add(1, Ordering::Relaxed));
        let spread = self.spread.as_nanos();
        let extra = spread.saturating_mul(u128::from(random)) >> 64;
        let extra = Duration::from_nanos(u64::try_from(extra).unwrap_or(u64::MAX));
        self.min.saturating_add(extra)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_lie_between_and_differ() {
        let (min, spread) = (Duration::from_millis(5), Duration::from_millis(10));
        let draws: Vec<_> = (0..1000)
            .map(|_| Jitter::between(min, spread).draw())
            .collect();
        assert!(
            draws
                .iter()
                .all(|draw| *draw >= min && *draw <= min + spread)
        );
        assert!(draws.iter().any(|draw| *draw < min + spread / 4));
        assert!(draws.iter().any(|draw| *draw > min + spread * 3 / 4));
        assert_eq!(Jitter::NONE.draw(), Duration::ZERO);
        let _ = Jitter::between(Duration::MAX, Duration::MAX).draw();
    }
}
