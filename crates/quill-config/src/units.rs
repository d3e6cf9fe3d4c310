//! Times and sizes, as they are written in settings.

use std::fmt;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};

/// No time is longer: what lies so far ahead can be added to any clock.
const TIME_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);
const TIME_FORM: &str =
    "a time above 0 and up to 365d, with its unit: 500ms, 1.5s, 30s, 5m, 2h, 1d";
const SIZE_FORM: &str = "a size with its unit: 512B, 64KiB, 4MiB, 1GiB (or kB, MB, GB)";

/// A time above 0 with a unit, up to 365 days: `500ms`, `1.5s`, `30s`, `5m`, `2h`, `1d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time(Duration);

impl Time {
    /// As the standard library has it.
    #[must_use]
    pub const fn duration(self) -> Duration {
        self.0
    }

    fn parse(text: &str) -> Option<Self> {
        let (number, unit) = number_and_unit(text)?;
        let seconds = match unit {
            "us" => 0.000_001,
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return None,
        };
        let time = Duration::try_from_secs_f64(number * seconds).ok()?;
        (!time.is_zero() && time <= TIME_MAX).then_some(Self(time))
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text {
            form: TIME_FORM,
            parse: Self::parse,
        })
    }
}

/// A number of bytes with a unit: `512B`, `64KiB`, `4MiB`, `1GiB`, or by the thousand
/// `kB`, `MB`, `GB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(u64);

impl Size {
    /// The number of bytes.
    #[must_use]
    pub fn bytes(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    /// The number of bytes for a setting of 32 bits, whose own bound refuses what is
    /// larger than that.
    #[must_use]
    pub fn bytes_u32(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }

    fn parse(text: &str) -> Option<Self> {
        let (number, unit) = number_and_unit(text)?;
        let bytes = match unit {
            "B" => 1_u64,
            "kB" => 1000,
            "MB" => 1_000_000,
            "GB" => 1_000_000_000,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            _ => return None,
        };
        let bytes = number * bytes as f64;
        // Beyond 2^53 a float no longer has every number.
        let is_whole = bytes.fract() == 0.0 && bytes <= (1_u64 << 53) as f64;
        is_whole.then_some(Self(bytes as u64))
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text {
            form: SIZE_FORM,
            parse: Self::parse,
        })
    }
}

/// A value, or `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrOff<T> {
    /// `off`
    Off,
    /// Any other value.
    On(T),
}

impl<T> OrOff<T> {
    /// `None` where it is off.
    pub fn value(self) -> Option<T> {
        match self {
            Self::Off => None,
            Self::On(value) => Some(value),
        }
    }
}

impl<'de> Deserialize<'de> for OrOff<Time> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let parse = |text: &str| match text {
            "off" => Some(Self::Off),
            text => Time::parse(text).map(Self::On),
        };
        deserializer.deserialize_str(Text {
            form: "off, or a time above 0 and up to 365d, with its unit: 500ms, 1.5s, 30s, 5m, 2h, 1d",
            parse,
        })
    }
}

/// A number without sign, and what follows it.
fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let unit = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(unit);
    Some((number.parse().ok()?, unit.trim_start_matches(' ')))
}

/// Reads a text of one form.
struct Text<F> {
    form: &'static str,
    parse: F,
}

impl<T, F: Fn(&str) -> Option<T>> Visitor<'_> for Text<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.form)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit_and_bounds() {
        for (text, ms) in [
            ("500ms", 500),
            ("1.5s", 1500),
            ("2 m", 120_000),
            ("1d", 86_400_000),
        ] {
            assert_eq!(
                Time::parse(text),
                Some(Time(Duration::from_millis(ms))),
                "{text}"
            );
        }
        for text in [
            "", "5", "s", "-5s", "0s", "366d", "1.1.1s", "1w", "1e3s", "infs",
        ] {
            assert_eq!(Time::parse(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_have_a_unit_and_are_whole() {
        for (text, bytes) in [
            ("0B", 0),
            ("512B", 512),
            ("4MiB", 4 << 20),
            ("1.5 KiB", 1536),
            ("2kB", 2000),
            ("3GB", 3_000_000_000),
        ] {
            assert_eq!(Size::parse(text), Some(Size(bytes)), "{text}");
        }
        for text in ["", "4", "MiB", "-1B", "0.5B", "4mib", "99999999GiB"] {
            assert_eq!(Size::parse(text), None, "{text}");
        }
    }
}
