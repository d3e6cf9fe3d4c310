//! Prism: which profile of HTTP a call runs on (docs/protocol.md, "Prism").

use quill_core::{Headers, HttpVersion};

pub(super) const PREFER: &str = "prefer";
pub(super) const SELECTED_PRISM: &str = "selected-prism";

/// The profile of this call's connection, where the caller asked for one: the
/// answer's `selected-prism`.
pub(super) fn selected(request: &Headers, version: HttpVersion) -> Option<&'static str> {
    request
        .all(PREFER)
        .any(asks)
        .then(|| prism_profile(version))
}

/// Whether a `prefer` value holds the preference `prism` (RFC 7240: names are
/// case-insensitive; bare profile names after it belong to it).
fn asks(value: &[u8]) -> bool {
    value.split(|byte| *byte == b',').any(|preference| {
        let name = preference.split(|byte| *byte == b'=').next();
        preference.contains(&b'=')
            && name.is_some_and(|name| name.trim_ascii().eq_ignore_ascii_case(b"prism"))
    })
}

/// The name of Prism's profile for this version of HTTP: `hyper`, `turbo` or `classic`.
#[must_use]
pub const fn prism_profile(version: HttpVersion) -> &'static str {
    match version {
        HttpVersion::Http3 => "hyper",
        HttpVersion::Http2 => "turbo",
        _ => "classic",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(prefer: &str, version: HttpVersion) -> Option<&'static str> {
        let mut headers = Headers::new();
        headers.append("prefer", prefer);
        selected(&headers, version)
    }

    #[test]
    fn the_profile_is_that_of_the_connection() {
        let asked = "prism=hyper,turbo,classic";
        assert_eq!(answer(asked, HttpVersion::Http1), Some("classic"));
        assert_eq!(answer(asked, HttpVersion::Http2), Some("turbo"));
        assert_eq!(answer(asked, HttpVersion::Http3), Some("hyper"));
        assert_eq!(
            answer("respond-async, Prism = turbo", HttpVersion::Http2),
            Some("turbo")
        );
    }

    #[test]
    fn nobody_asked() {
        for prefer in ["respond-async", "turbo", "prism", "x-prism=turbo"] {
            assert_eq!(answer(prefer, HttpVersion::Http2), None, "{prefer}");
        }
        assert_eq!(selected(&Headers::new(), HttpVersion::Http2), None);
    }
}
