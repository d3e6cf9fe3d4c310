//! What options may be set to.

use std::error::Error as StdError;
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The longest time that can be set: timers stay far from their end.
const DURATION_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// SETTINGS_MAX_FRAME_SIZE may be 2^14 to 2^24-1 (RFC 9113, section 6.5.2).
pub(crate) const FRAME_BYTES: RangeInclusive<u32> = 16_384..=16_777_215;

/// Windows end at 2^31-1 (RFC 9113, section 6.9.1).
pub(crate) const WINDOW_BYTES: RangeInclusive<u32> = 1..=2_147_483_647;

/// The connection's window starts at 65,535 and can't be shrunk (RFC 9113, section 6.9.2).
pub(crate) const CONNECTION_WINDOW_BYTES: RangeInclusive<u32> = 65_535..=2_147_483_647;

/// Windows of a connection whose options say that they follow what is measured.
pub(crate) const ADAPTIVE_WINDOW_BYTES: u32 = 16 * 1024 * 1024;

/// What speaks HTTP/2 on a server's or a client's connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Http2Engine {
    /// Quill's own engine.
    #[default]
    Quill,
    /// Hyper, to compare, and to fall back on.
    Hyper,
}

pub(crate) fn within<T: Copy + PartialOrd + fmt::Display>(
    option: &'static str,
    value: T,
    bounds: RangeInclusive<T>,
) -> Result<(), OptionsError> {
    if bounds.contains(&value) {
        return Ok(());
    }
    let allowed = format!("{} to {}", bounds.start(), bounds.end());
    Err(OptionsError::new(option, &value, allowed))
}

pub(crate) fn at_least_one(option: &'static str, value: usize) -> Result<(), OptionsError> {
    if value == 0 {
        return Err(OptionsError::new(option, &value, "1 or more"));
    }
    Ok(())
}

pub(crate) fn time(option: &'static str, value: Option<Duration>) -> Result<(), OptionsError> {
    let Some(value) = value else { return Ok(()) };
    if value.is_zero() || value > DURATION_MAX {
        let value = format!("{value:?}");
        return Err(OptionsError::new(
            option,
            &value,
            "over 0 and up to 365 days",
        ));
    }
    Ok(())
}

/// A time that is not shorter than this.
pub(crate) fn time_from(
    option: &'static str,
    value: Option<Duration>,
    least: Duration,
) -> Result<(), OptionsError> {
    match value {
        Some(value) if value < least || value > DURATION_MAX => {
            let value = format!("{value:?}");
            let allowed = format!("{least:?} and up to 365 days");
            Err(OptionsError::new(option, &value, allowed))
        }
        _ => Ok(()),
    }
}

/// An option that is out of its bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionsError {
    option: &'static str,
    value: String,
    allowed: String,
}

impl OptionsError {
    pub(crate) fn new(
        option: &'static str,
        value: &impl fmt::Display,
        allowed: impl Into<String>,
    ) -> Self {
        Self {
            option,
            value: value.to_string(),
            allowed: allowed.into(),
        }
    }

    /// The option's name.
    #[must_use]
    pub fn option(&self) -> &'static str {
        self.option
    }
}

impl fmt::Display for OptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            option,
            value,
            allowed,
        } = self;
        write!(f, "{option} can't be {value}: allowed is {allowed}")
    }
}

impl StdError for OptionsError {}
