//! Bounds on JSON, checked before anything is made of it.

use super::{CodecError, DecodeLimits};

/// What a message's memory is taken to be where only its braces are seen.
const OBJECT_BYTES: usize = 256;

/// Most objects and lists within each other, serde_json's own limit.
const LEVELS_MAX: usize = 128;

/// Holds the depth and the number of a text's objects within the limits, and
/// says how many levels of objects and lists a parser will meet, at most.
///
/// The message's types are not known here: an object counts as [`OBJECT_BYTES`]
/// towards `element_bytes_max`, so that a list of `{}` does not become a
/// hundredfold of its bytes. Text that is no JSON is left to the parser.
pub(super) fn check(text: &[u8], limits: &DecodeLimits) -> Result<usize, CodecError> {
    let objects_max = (limits.element_bytes_max / OBJECT_BYTES).max(1);
    let mut depth: u32 = 0;
    let mut objects = 0;
    let mut level: usize = 0;
    let mut levels = 0;
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'[' => {
                level = level.saturating_add(1);
                levels = levels.max(level);
            }
            b'}' | b']' => level = level.saturating_sub(1),
            _ => {}
        }
        match byte {
            b'"' => skip_string(&mut bytes),
            b'{' => {
                depth = depth.saturating_add(1);
                objects += 1;
            }
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > limits.depth_max {
            return Err(CodecError::new(format!(
                "the JSON message nests deeper than {} objects",
                limits.depth_max
            )));
        }
        if objects > objects_max {
            return Err(CodecError::new(format!(
                "the JSON message holds more than {objects_max} objects"
            )));
        }
    }
    Ok(levels.min(LEVELS_MAX))
}

/// Goes on behind the quote that ends a string.
fn skip_string(bytes: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(depth_max: u32, element_bytes_max: usize) -> DecodeLimits {
        DecodeLimits {
            depth_max,
            element_bytes_max,
            ..DecodeLimits::default()
        }
    }

    #[test]
    fn numbers_are_read_as_the_nearest_double() {
        // Without a feature of serde_json's the last bit is off, and a number that
        // was written does not come back.
        for text in [
            "44444444444444444444444444444444444444444444444440",
            "9.5e-310",
        ] {
            let read: f64 = serde_json::from_str(text).unwrap();
            assert_eq!(read.to_bits(), text.parse::<f64>().unwrap().to_bits());
        }
    }

    #[test]
    fn depth_is_that_of_objects_open_at_once() {
        let two = limits(2, usize::MAX);
        for text in [
            "{}",
            r#"{"a":{}}"#,
            r#"{"a":{},"b":{},"c":[[[{}]]]}"#,
            r#"{"a":"{{{{\"{{{","b":{}}"#,
            r#"{"\\":{}}"#,
            "}}}}{{",
        ] {
            assert!(check(text.as_bytes(), &two).is_ok(), "{text}");
        }
        for text in [
            r#"{"a":{"b":{}}}"#,
            r#"{"a":[{"b":[{"#,
            r#"{"\\":{"\"":{}}}"#,
            "{{{",
        ] {
            assert!(check(text.as_bytes(), &two).is_err(), "{text}");
        }
    }

    #[test]
    fn levels_are_those_of_objects_and_lists() {
        for (text, levels) in [
            ("1", 0),
            ("{}", 1),
            (r#"{"a":[{}],"b":{},"c":"[[[["}"#, 3),
            ("[[[]]]", 3),
        ] {
            let found = check(text.as_bytes(), &DecodeLimits::default()).unwrap();
            assert_eq!(found, levels, "{text}");
        }
        let deep = "[".repeat(100_000);
        let found = check(deep.as_bytes(), &DecodeLimits::default()).unwrap();
        assert_eq!(found, LEVELS_MAX);
    }

    #[test]
    fn objects_are_counted_wherever_they_are() {
        let ten = limits(100, 10 * OBJECT_BYTES);
        let list = |count: usize| format!("[{}]", vec!["{}"; count].join(","));
        assert!(check(list(10).as_bytes(), &ten).is_ok());
        let error = check(list(11).as_bytes(), &ten).unwrap_err();
        assert!(error.to_string().contains("10 objects"), "{error}");
        // One message is never too many.
        assert!(check(b"{}", &limits(1, 0)).is_ok());
    }
}
