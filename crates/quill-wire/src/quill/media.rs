//! What a body is: its shape, and the content type that says so.

use quill_core::{Format, Method};

use crate::protocol::{Call, Side};

/// How the messages of one half lie in its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// The one message, with nothing around it.
    Bare,
    /// Frames.
    Framed,
}

/// A content type of this protocol or of its dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Media {
    /// What the type says of the body; the dialect's types say nothing.
    pub(super) shape: Option<Shape>,
    pub(super) format: Format,
}

impl Media {
    pub(super) const fn is_dialect(self) -> bool {
        self.shape.is_none()
    }

    /// The name of the type, as it is written.
    pub(super) const fn name(self) -> &'static str {
        match (self.shape, self.format) {
            (Some(Shape::Bare), Format::Proto) => "application/quill+proto",
            (Some(Shape::Bare), Format::Json) => "application/quill+json",
            (Some(Shape::Framed), Format::Proto) => "application/quill-stream+proto",
            (Some(Shape::Framed), Format::Json) => "application/quill-stream+json",
            (None, Format::Proto) => "application/proto",
            (None, Format::Json) => "application/json",
        }
    }

    /// The type of this name, which has no parameters any more.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        [Some(Shape::Bare), Some(Shape::Framed), None]
            .into_iter()
            .flat_map(|shape| [Format::Proto, Format::Json].map(|format| Media { shape, format }))
            .find(|media| media.name().eq_ignore_ascii_case(name))
    }

    /// The type of the body that `side` sends in this call.
    pub(super) fn of(call: &Call, side: Side) -> Self {
        Media {
            shape: (!call.marks.is_dialect)
                .then(|| shape(&call.method, side, call.credits.is_some())),
            format: call.format,
        }
    }
}

/// The shape of what `side` sends: frames where it streams, and everywhere once
/// the client has sent `quill-credits`.
pub(super) fn shape(method: &Method, side: Side, credits: bool) -> Shape {
    let streams = match side {
        Side::Client => method.kind().client_streams(),
        Side::Server => method.kind().server_streams(),
    };
    if streams || credits {
        Shape::Framed
    } else {
        Shape::Bare
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_types_go_both_ways() {
        for shape in [Some(Shape::Bare), Some(Shape::Framed), None] {
            for format in [Format::Proto, Format::Json] {
                let media = Media { shape, format };
                assert_eq!(Media::from_name(media.name()), Some(media));
                let upper = media.name().to_ascii_uppercase();
                assert_eq!(Media::from_name(&upper), Some(media));
            }
        }
        for other in [
            "",
            "application/quill",
            "application/quill+xml",
            "text/json",
        ] {
            assert_eq!(Media::from_name(other), None);
        }
    }
}
