//! Which traces are recorded.

/// Which traces are recorded: what the caller decided, and of those that begin
/// here a share.
///
/// A share is chosen by the trace's name, so that all who use the same share of a
/// trace without a decision come to the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// Names whose low 63 bits are below this are chosen.
    below: u64,
    follows_caller: bool,
}

/// One more than the largest number of 63 bits.
const ALL: u64 = 1 << 63;

impl Sampling {
    /// All traces that begin here.
    #[must_use]
    pub const fn always() -> Self {
        Self {
            below: ALL,
            follows_caller: true,
        }
    }

    /// None that begins here.
    #[must_use]
    pub const fn never() -> Self {
        Self {
            below: 0,
            follows_caller: true,
        }
    }

    /// This share of the traces that begin here: 0.0 is none, 1.0 all, and what is
    /// outside of that is as the nearer of them; not a number is none.
    #[must_use]
    pub fn ratio(ratio: f64) -> Self {
        // The conversion saturates, and makes 0 of what is no number.
        let below = (ratio.clamp(0.0, 1.0) * ALL as f64) as u64;
        Self {
            below,
            follows_caller: true,
        }
    }

    /// Decides anew on each call, whatever its caller decided: for servers whose
    /// callers are not trusted with how much is recorded.
    #[must_use]
    pub const fn ignoring_callers(mut self) -> Self {
        self.follows_caller = false;
        self
    }

    /// Whether a call of the trace with this low half is recorded.
    pub(super) fn decide(self, low: u64, caller: Option<bool>) -> bool {
        match caller.filter(|_| self.follows_caller) {
            Some(decided) => decided,
            None => low & (ALL - 1) < self.below,
        }
    }
}

/// [`always`](Sampling::always).
impl Default for Sampling {
    fn default() -> Self {
        Self::always()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_that_share() {
        let chosen = |sampling: Sampling| {
            let step = u64::MAX / 1000;
            (0..1000)
                .filter(|n| sampling.decide(n * step, None))
                .count()
        };
        assert_eq!(chosen(Sampling::always()), 1000);
        assert_eq!(chosen(Sampling::never()), 0);
        for (ratio, expected) in [(-1.0, 0), (0.0, 0), (0.25, 250), (1.0, 1000), (7.0, 1000)] {
            let share = chosen(Sampling::ratio(ratio));
            assert!(share.abs_diff(expected) <= 2, "{ratio}: {share}");
        }
        assert_eq!(chosen(Sampling::ratio(f64::NAN)), 0);
    }

    #[test]
    fn the_caller_decides_unless_it_is_not_asked() {
        let never = Sampling::never();
        assert!(never.decide(0, Some(true)));
        assert!(!Sampling::always().decide(0, Some(false)));
        assert!(!never.ignoring_callers().decide(0, Some(true)));
        assert!(Sampling::always().ignoring_callers().decide(0, Some(false)));
    }
}
