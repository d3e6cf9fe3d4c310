//! Times as they are written on a command line and in files.

use std::time::Duration;

/// No time is longer: what lies so far ahead can be added to any clock.
const TIME_MAX: Duration = Duration::from_secs(8760 * 3600);

/// A number above 0 with a unit, up to a year: `500ms`, `1.5s`, `2m`, `1h`.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let wrong = || "write a number above 0 and a unit: 500ms, 5s, 1m, 1h".to_owned();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(digits.ok_or_else(wrong)?);
    let seconds_of_unit = match unit {
        "us" | "µs" => 0.000_001,
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let seconds = number * seconds_of_unit;
    if seconds > TIME_MAX.as_secs_f64() {
        return Err("the longest time is a year: 8760h".to_owned());
    }
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if !time.is_zero() => Ok(time),
        _ => Err(wrong()),
    }
}

/// Seconds without a unit, or a time with one.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    if text.ends_with(|c: char| c.is_ascii_digit()) {
        return time(&format!("{text}s"));
    }
    time(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_number_and_a_unit() {
        assert_eq!(time("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(time("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(time("2m"), Ok(Duration::from_secs(120)));
        for bad in ["", "5", "s", "-5s", "5 s", "0s", "1d", "1.1.1s"] {
            assert!(time(bad).unwrap_err().contains("500ms"), "{bad}");
        }
    }

    #[test]
    fn no_time_is_longer_than_a_year() {
        assert_eq!(time("8760h"), Ok(TIME_MAX));
        for long in ["8761h", "31536001s", "99999999999999999999999h"] {
            assert!(time(long).unwrap_err().contains("8760h"), "{long}");
        }
        assert!(
            seconds("9999999999999999999")
                .unwrap_err()
                .contains("8760h")
        );
    }

    #[test]
    fn seconds_need_no_unit() {
        assert_eq!(seconds("60"), Ok(Duration::from_secs(60)));
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(seconds("2m"), Ok(Duration::from_secs(120)));
        for bad in ["", "0", "-1", "x"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
