//! Figures for people.

/// `1,234,567`
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A time that is given in microseconds: `87µs`, `1.25ms`, `3.2s`.
pub(crate) fn micros(micros: f64) -> String {
    let (value, unit) = match micros {
        m if m < 999.5 => (m, "µs"),
        m if m < 999_500.0 => (m / 1e3, "ms"),
        m => (m / 1e6, "s"),
    };
    let decimals = match value {
        v if unit == "µs" || v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}{unit}")
}

/// `512 B`, `1.5 kB`, `2.3 GB`
pub(crate) fn bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = "B";
    for larger in ["kB", "MB", "GB", "TB"] {
        if value < 999.5 {
            break;
        }
        value /= 1000.0;
        unit = larger;
    }
    let decimals = usize::from(unit != "B" && value < 99.95);
    format!("{value:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_or_so_and_a_unit() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(count(number), text);
        }
        for (time, text) in [
            (0.0, "0µs"),
            (87.4, "87µs"),
            (999.6, "1.00ms"),
            (1250.0, "1.25ms"),
            (12_340.0, "12.3ms"),
            (123_400.0, "123ms"),
            (999_600.0, "1.00s"),
            (3_600_000_000.0, "3600s"),
        ] {
            assert_eq!(micros(time), text);
        }
        for (number, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1500, "1.5 kB"),
            (2_345_678_901, "2.3 GB"),
        ] {
            assert_eq!(bytes(number), text);
        }
    }
}
