//! The media types of gRPC and gRPC-Web.

use quill_core::{Format, Headers};

use crate::negotiate;
use crate::protocol::Wire;

pub(super) const CONTENT_TYPE: &str = "content-type";

const GRPC: &str = "application/grpc";
const WEB: &str = "application/grpc-web";
const WEB_TEXT: &str = "application/grpc-web-text";

/// What is written for a call. A type without a suffix means protobuf; in
/// gRPC-Web, proxies and browsers' clients go by the suffix.
pub(super) fn of(wire: Wire, format: Format) -> &'static str {
    match (wire, format) {
        (Wire::GrpcWeb { text: false }, Format::Proto) => "application/grpc-web+proto",
        (Wire::GrpcWeb { text: false }, Format::Json) => "application/grpc-web+json",
        (Wire::GrpcWeb { text: true }, Format::Proto) => "application/grpc-web-text+proto",
        (Wire::GrpcWeb { text: true }, Format::Json) => "application/grpc-web-text+json",
        (_, Format::Proto) => GRPC,
        (_, Format::Json) => "application/grpc+json",
    }
}

/// What is written for a call, as the only field of a head; that of most calls costs
/// nothing.
pub(super) fn field(wire: Wire, format: Format) -> Headers {
    if (wire, format) == (Wire::Grpc, Format::Proto) {
        return Headers::constant(&[(CONTENT_TYPE, GRPC)]);
    }
    let mut headers = Headers::new();
    headers.append(CONTENT_TYPE, of(wire, format));
    headers
}

/// A content type of this family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ContentType {
    pub(super) wire: Wire,
    /// `None` for a suffix that is neither `+proto` nor `+json`.
    pub(super) format: Option<Format>,
}

/// Undoes [`of`], in any case and whatever the parameters; `None` for the types
/// of other protocols.
pub(super) fn read(headers: &Headers) -> Option<ContentType> {
    let media_type = negotiate::media_type(headers);
    let (base, suffix) = match media_type.split_once('+') {
        Some((base, suffix)) => (base, Some(suffix)),
        None => (media_type, None),
    };
    let bases = [
        (GRPC, Wire::Grpc),
        (WEB, Wire::GrpcWeb { text: false }),
        (WEB_TEXT, Wire::GrpcWeb { text: true }),
    ];
    let (_, wire) = bases
        .into_iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(base))?;
    let format = match suffix {
        None => Some(Format::Proto),
        Some(suffix) => [Format::Proto, Format::Json]
            .into_iter()
            .find(|format| format.name().eq_ignore_ascii_case(suffix)),
    };
    Some(ContentType { wire, format })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(value: &str) -> Option<ContentType> {
        let mut headers = Headers::new();
        headers.append(CONTENT_TYPE, value);
        read(&headers)
    }

    #[test]
    fn types_go_both_ways() {
        for wire in [
            Wire::Grpc,
            Wire::GrpcWeb { text: false },
            Wire::GrpcWeb { text: true },
        ] {
            for format in [Format::Proto, Format::Json] {
                let format_read = Some(format);
                let expected = ContentType {
                    wire,
                    format: format_read,
                };
                assert_eq!(read_text(of(wire, format)), Some(expected));
            }
        }
    }

    #[test]
    fn case_parameters_and_suffixes_are_read() {
        let grpc = |format| {
            Some(ContentType {
                wire: Wire::Grpc,
                format,
            })
        };
        assert_eq!(
            read_text("Application/GRPC+Proto; charset=utf-8"),
            grpc(Some(Format::Proto))
        );
        assert_eq!(read_text("application/grpc"), grpc(Some(Format::Proto)));
        assert_eq!(read_text("application/grpc+foo"), grpc(None));
        for other in ["", "image/jpeg", "application/grpcfoo", "application/json"] {
            assert_eq!(read_text(other), None);
        }
    }
}
