//! The names of encodings in gRPC's header fields.

use std::borrow::Cow;

use quill_core::compression::Encoding;

use crate::negotiate;

pub(super) const ENCODING: &str = "grpc-encoding";
pub(super) const ACCEPT_ENCODING: &str = "grpc-accept-encoding";

/// The value of `grpc-accept-encoding`; `None` when nothing but identity is taken.
pub(super) fn accept_list(accept: &[Encoding]) -> Option<Cow<'static, str>> {
    Some(Cow::Borrowed(match accept {
        [] | [Encoding::Identity] => return None,
        [Encoding::Zstd, Encoding::Gzip] => "zstd,gzip",
        [Encoding::Gzip] => "gzip",
        [Encoding::Zstd] => "zstd",
        others => return Some(Cow::Owned(negotiate::encoding_list(others))),
    }))
}

/// The encoding of `grpc-encoding`, where we take it.
pub(super) fn accepted(name: &[u8], accept: &[Encoding]) -> Option<Encoding> {
    let encoding = Encoding::from_name(std::str::from_utf8(name).ok()?)?;
    (encoding == Encoding::Identity || accept.contains(&encoding)).then_some(encoding)
}

/// What a refusal says about an encoding that we don't take.
pub(super) fn refusal(name: &[u8], accept: &[Encoding]) -> String {
    format!(
        "grpc-encoding {:?} is not supported here: {}",
        name.escape_ascii().to_string(),
        accept_list(accept).map_or(Cow::Borrowed("only identity is"), |list| Cow::Owned(
            format!("only identity,{list} are")
        ))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_name_what_is_taken() {
        use Encoding::{Gzip, Identity, Zstd};
        for (accept, list) in [
            (&[][..], None),
            (&[Identity], None),
            (&[Gzip], Some("gzip")),
            (&[Zstd, Gzip], Some("zstd,gzip")),
            (&[Gzip, Zstd], Some("gzip,zstd")),
            (&[Identity, Gzip], Some("gzip")),
        ] {
            assert_eq!(accept_list(accept).as_deref(), list);
        }
        assert_eq!(accepted(b"gzip", &[Zstd]), None);
        assert_eq!(accepted(b"identity", &[]), Some(Identity));
        assert_eq!(accepted(b"zstd", &[Zstd]), Some(Zstd));
        assert_eq!(
            refusal(b"x-foo", &[Zstd, Gzip]),
            "grpc-encoding \"x-foo\" is not supported here: only identity,zstd,gzip are"
        );
    }
}
