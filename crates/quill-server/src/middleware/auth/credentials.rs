//! Where credentials are in a request.

use quill_core::{Error, RequestParts};

/// Longest credentials that are looked at, in bytes.
const BYTES_MAX: usize = 8 * 1024;

/// What a request brings under a header.
pub(super) enum Brought<'a> {
    Nothing,
    Credentials(&'a str),
    /// Something that can't be credentials.
    Malformed(Error),
}

/// The one value of a header. Of two, nobody could say which one counts.
pub(super) fn header<'a>(request: &'a RequestParts, name: &'a str) -> Brought<'a> {
    let mut values = request.metadata.all(name);
    let value = match (values.next(), values.next()) {
        (None, _) => return Brought::Nothing,
        (Some(value), None) => value,
        (Some(_), Some(_)) => return malformed("credentials come twice"),
    };
    if value.len() > BYTES_MAX {
        return malformed("credentials are longer than 8 KiB");
    }
    match std::str::from_utf8(value) {
        Ok(value) => Brought::Credentials(value),
        Err(_) => malformed("credentials are no text"),
    }
}

/// The credentials of `authorization` under a scheme, in any case (RFC 9110,
/// section 11.4); those of other schemes are not ours.
pub(super) fn authorization<'a>(request: &'a RequestParts, scheme: &str) -> Brought<'a> {
    let value = match header(request, "authorization") {
        Brought::Credentials(value) => value,
        other => return other,
    };
    match value.split_once(' ') {
        Some((other, credentials)) if other.eq_ignore_ascii_case(scheme) => {
            Brought::Credentials(credentials.trim_matches(' '))
        }
        _ => Brought::Nothing,
    }
}

fn malformed(why: &'static str) -> Brought<'static> {
    Brought::Malformed(Error::unauthenticated(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(values: &[&str], scheme: &str) -> Option<Result<String, ()>> {
        let mut request = RequestParts::default();
        for value in values {
            request.metadata.append("authorization", value).unwrap();
        }
        match authorization(&request, scheme) {
            Brought::Nothing => None,
            Brought::Credentials(text) => Some(Ok(text.to_owned())),
            Brought::Malformed(_) => Some(Err(())),
        }
    }

    #[test]
    fn schemes_have_any_case_and_others_are_not_ours() {
        for value in ["Bearer abc", "bearer abc", "BEARER  abc"] {
            assert_eq!(found(&[value], "Bearer"), Some(Ok("abc".to_owned())));
        }
        for value in ["Basic abc", "Bearerabc", "abc", "Bearer"] {
            assert_eq!(found(&[value], "Bearer"), None, "{value}");
        }
        assert_eq!(found(&[], "Bearer"), None);
    }

    #[test]
    fn two_are_as_bad_as_one_without_end() {
        assert_eq!(found(&["Bearer a", "Bearer b"], "Bearer"), Some(Err(())));
        let long = format!("Bearer {}", "a".repeat(BYTES_MAX));
        assert_eq!(found(&[&long], "Bearer"), Some(Err(())));
    }
}
