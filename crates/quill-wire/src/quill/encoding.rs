//! Which compression a head names, for bare bodies and for frames.

use quill_core::compression::Encoding;
use quill_core::{Error, Headers};

use super::media::Shape;
use crate::negotiate::{choose_encoding, encoding_list};

/// Of a bare body, as HTTP has it.
pub(super) const CONTENT: &str = "content-encoding";
pub(super) const ACCEPT: &str = "accept-encoding";
/// Of the messages in frames that have the COMPRESSED flag.
pub(super) const FRAMES: &str = "quill-encoding";
pub(super) const ACCEPT_FRAMES: &str = "quill-accept-encoding";

/// The header that names the encoding of a body of this shape.
pub(super) const fn header(shape: Shape) -> &'static str {
    match shape {
        Shape::Bare => CONTENT,
        Shape::Framed => FRAMES,
    }
}

/// The header that offers encodings for a body of this shape.
pub(super) const fn accept_header(shape: Shape) -> &'static str {
    match shape {
        Shape::Bare => ACCEPT,
        Shape::Framed => ACCEPT_FRAMES,
    }
}

/// The encoding that `name` names, if it is one of `accepted`.
///
/// # Errors
/// `unimplemented`, naming those that are accepted.
pub(super) fn accepted(
    header: &str,
    name: Option<&[u8]>,
    accepted: &[Encoding],
) -> Result<Encoding, Error> {
    let Some(name) = name else {
        return Ok(Encoding::Identity);
    };
    let text = String::from_utf8_lossy(name).trim().to_ascii_lowercase();
    match Encoding::from_name(&text) {
        Some(Encoding::Identity) => Ok(Encoding::Identity),
        Some(encoding) if accepted.contains(&encoding) => Ok(encoding),
        _ => Err(Error::unimplemented(format!(
            "{header} {text:?} is not supported; supported are: {}",
            listed(accepted)
        ))),
    }
}

fn listed(accepted: &[Encoding]) -> String {
    match encoding_list(accepted).as_str() {
        "" => "identity".to_owned(),
        list => format!("{list},identity"),
    }
}

/// The encoding of an answer: the first one offered that we have, if we
/// compress at all.
pub(super) fn chosen(offered: Option<&[u8]>, allowed: &[Encoding], compress: bool) -> Encoding {
    match offered.and_then(|offered| std::str::from_utf8(offered).ok()) {
        Some(offered) if compress => choose_encoding(offered, allowed),
        _ => Encoding::Identity,
    }
}

/// Client: offers what the answer, of this shape, may be compressed with.
pub(super) fn put_offer(shape: Shape, accepted: &[Encoding], headers: &mut Headers) {
    let list = encoding_list(accepted);
    if !list.is_empty() {
        headers.append(accept_header(shape), list);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quill_core::Code;

    #[test]
    fn an_encoding_we_do_not_accept_is_named_with_those_we_do() {
        let both = [Encoding::Zstd, Encoding::Gzip];
        assert_eq!(accepted(CONTENT, None, &both).unwrap(), Encoding::Identity);
        assert_eq!(
            accepted(CONTENT, Some(b"GZIP"), &both).unwrap(),
            Encoding::Gzip
        );
        let error = accepted(FRAMES, Some(b"x-foo"), &both).unwrap_err();
        assert_eq!(error.code(), Code::Unimplemented);
        assert!(error.message().contains("zstd,gzip,identity"), "{error}");
        let error = accepted(FRAMES, Some(b"gzip"), &[]).unwrap_err();
        assert!(error.message().ends_with("identity"), "{error}");
    }
}
