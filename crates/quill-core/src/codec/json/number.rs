//! Numbers in quotes. ProtoJSON takes them wherever it takes numbers; what stands
//! in the quotes is a number as JSON itself has it (RFC 8259, section 6): no `+`,
//! no leading zeros, digits on both sides of the point, no other words.

/// The largest that a whole number without quotes may be which came in as a
/// double: from 2^52 on, a double has no place for a fraction that was written.
const WHOLE_DOUBLE_MAX: f64 = 4_503_599_627_370_495.0;

/// The integer that `text` writes, if it is one of `T`: `1e2` and `100.0` are.
pub(super) fn integer<T: TryFrom<i128>>(text: &str) -> Option<T> {
    if !is_number(text) {
        return None;
    }
    if let Ok(value) = text.parse::<i128>() {
        return T::try_from(value).ok();
    }
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let (is_negative, whole) = match whole.strip_prefix('-') {
        Some(whole) => (true, whole),
        None => (false, whole),
    };
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return T::try_from(0).ok();
    }
    // The last digit is none of zero: what is left of a fraction is no integer.
    let zeros = i64::try_from(digits.len() - significant.len()).ok()?;
    let places = i64::try_from(fraction.len()).ok()?;
    let power = exponent.parse::<i64>().ok()?;
    let power = power.checked_add(zeros)?.checked_sub(places)?;
    let power = 10_i128.checked_pow(u32::try_from(power).ok()?)?;
    let value = significant.parse::<i128>().ok()?.checked_mul(power)?;
    T::try_from(if is_negative { -value } else { value }).ok()
}

/// The integer that was written without quotes, with a point or an exponent.
pub(super) fn whole<T: TryFrom<i128>>(value: f64) -> Option<T> {
    let is_whole = value.abs() <= WHOLE_DOUBLE_MAX && value.fract() == 0.0;
    #[allow(clippy::cast_possible_truncation, reason = "it is whole and small")]
    let value = is_whole.then_some(value as i128);
    value.and_then(|value| T::try_from(value).ok())
}

/// The double that `text` writes: a finite number, or one of three words.
pub(super) fn double(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ if is_number(text) => text.parse().ok().filter(|value: &f64| value.is_finite()),
        _ => None,
    }
}

/// The float that `text` writes, as [`double`].
pub(super) fn float(text: &str) -> Option<f32> {
    match text {
        "NaN" => Some(f32::NAN),
        "Infinity" => Some(f32::INFINITY),
        "-Infinity" => Some(f32::NEG_INFINITY),
        _ if is_number(text) => text.parse().ok().filter(|value: &f32| value.is_finite()),
        _ => None,
    }
}

/// The float for a number without quotes, unless it is beyond all floats.
pub(super) fn narrow(value: f64) -> Option<f32> {
    #[allow(clippy::cast_possible_truncation, reason = "to the nearest float")]
    let narrow = value as f32;
    (narrow.is_finite() || !value.is_finite()).then_some(narrow)
}

/// Whether `text` is a number as JSON has it.
pub(super) fn is_number(text: &str) -> bool {
    let (whole, rest) = digits(text.strip_prefix('-').unwrap_or(text));
    if whole.is_empty() || (whole.len() > 1 && whole.starts_with('0')) {
        return false;
    }
    let rest = match rest.strip_prefix('.').map(digits) {
        Some(("", _)) => return false,
        Some((_, rest)) => rest,
        None => rest,
    };
    match rest.strip_prefix(['e', 'E']) {
        Some(exponent) => {
            let (exponent, rest) = digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent));
            !exponent.is_empty() && rest.is_empty()
        }
        None => rest.is_empty(),
    }
}

/// The digits that `text` starts with, and the rest.
fn digits(text: &str) -> (&str, &str) {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    text.split_at_checked(end).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_number_is_one_of_json() {
        for text in ["0", "-0", "10", "1.0", "0.5e-3", "1E+400", "-1e0"] {
            assert!(is_number(text), "{text}");
            assert!(serde_json::from_str::<serde_json::Number>(text).is_ok() || text == "1E+400");
        }
        for text in [
            "", "-", "+1", "01", "-01", "1.", ".5", "1e", "1e+", "e1", " 1", "1 ", "1_0", "0x1",
            "nan", "inf", "1.0.0", "1e1e1", "١",
        ] {
            assert!(!is_number(text), "{text}");
            assert!(integer::<i64>(text).is_none(), "{text}");
            assert!(double(text).is_none() && float(text).is_none(), "{text}");
        }
    }

    #[test]
    fn whole_numbers_are_integers_however_they_are_written() {
        for (text, value) in [
            ("1e2", Some(100)),
            ("100.000", Some(100)),
            ("-1.5e1", Some(-15)),
            ("2147483647.0", Some(i32::MAX)),
            ("-2147483648", Some(i32::MIN)),
            ("0.0e1000000000000000000000", Some(0)),
            ("1.5", None),
            ("1e-1", None),
            ("2147483648", None),
            ("1e1000000000", None),
            ("1e99999999999999999999", None),
        ] {
            assert_eq!(integer::<i32>(text), value, "{text}");
        }
        assert_eq!(integer(&u64::MAX.to_string()), Some(u64::MAX));
        assert_eq!(whole::<i32>(-0.0), Some(0));
        assert_eq!(whole::<i64>(4_503_599_627_370_496.0), None);
        assert_eq!(whole::<i64>(f64::NAN), None);
    }

    #[test]
    fn what_is_beyond_all_floats_is_none() {
        assert_eq!((double("1e309"), double("1e308")), (None, Some(1e308)));
        assert_eq!((float("3.5e38"), narrow(3.5e38)), (None, None));
        assert_eq!(float("3.4028235e38"), Some(f32::MAX));
        assert_eq!(narrow(f64::INFINITY), Some(f32::INFINITY));
    }

    proptest! {
        #[test]
        fn every_integer_comes_back(value: i64, zeros in 0_usize..20) {
            prop_assert_eq!(integer(&value.to_string()), Some(value));
            let pointed = format!("{value}.{}", "0".repeat(zeros + 1));
            prop_assert_eq!(integer(&pointed), Some(value));
            let shifted = format!("{value}{}e-{zeros}", "0".repeat(zeros));
            let expected = if value == 0 && zeros > 0 { None } else { Some(value) };
            prop_assert_eq!(integer(&shifted), expected);
        }

        #[test]
        fn every_double_comes_back(bits: u64) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            for text in [format!("{value:e}"), format!("{value:?}")] {
                prop_assert_eq!(double(&text).map(f64::to_bits), Some(bits), "{}", text);
            }
        }

        #[test]
        fn what_json_takes_is_what_is_taken(text in "-?[0-9]{0,3}(\\.[0-9]{0,3})?([eE][+-]?[0-9]{0,2})?") {
            prop_assert_eq!(is_number(&text), serde_json::from_str::<f64>(&text).is_ok());
        }
    }
}
