//! A moment as text.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// A moment in UTC, to the millisecond: `2026-01-31T23:59:59.999Z` (RFC 3339).
pub(super) struct Timestamp(pub(super) SystemTime);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = self.0.duration_since(UNIX_EPOCH).unwrap_or_default();
        let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
        let (year, month, day) = date(days);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
            second / 3600,
            second / 60 % 60,
            second % 60,
            since.subsec_millis()
        )
    }
}

/// Year, month and day of so many days after the first of January 1970, in the
/// Gregorian calendar, which repeats every 400 years.
fn date(days: u64) -> (u64, u64, u64) {
    // Years that begin in March have their odd day at the end, and 1970-01-01 is
    // 719,468 days after the year 0 began so.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // Of every five months from March on, 153 days.
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (era * 400 + year + later, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn moments_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.007Z"),
            (951_782_399, "2000-02-28T23:59:59.007Z"),
            (951_782_400, "2000-02-29T00:00:00.007Z"),
            (951_868_800, "2000-03-01T00:00:00.007Z"),
            (1_735_689_599, "2024-12-31T23:59:59.007Z"),
            (1_735_689_600, "2025-01-01T00:00:00.007Z"),
            (4_107_542_400, "2100-03-01T00:00:00.007Z"),
        ] {
            let moment = UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(7);
            assert_eq!(Timestamp(moment).to_string(), text);
        }
        let before = UNIX_EPOCH - Duration::from_secs(1);
        assert!(
            Timestamp(before)
                .to_string()
                .starts_with("1970-01-01T00:00:00")
        );
    }
}
