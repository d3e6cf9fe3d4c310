//! Messages in what carries them.

use std::io::{Read, Write};
use std::sync::Arc;

use buffa::DecodeOptions;
use buffa_descriptor::DynamicMessage;
use quill_core::compression::{Encoding, decompress};
use quill_core::frame::{FrameHeader, FrameKind, MetadataBlock};

use crate::container::{
    Container, ENVELOPE_COMPRESSED, ENVELOPE_END, ENVELOPE_HEADER_BYTES, ENVELOPE_TRAILERS,
    encoding_of,
};
use crate::document;
use crate::failed::Failed;
use crate::harmless::harmless_json;
use crate::lines::{Lines, Raw};
use crate::message::{Dump, Scope};
use crate::options::{Options, View};
use crate::shape::Shape;
use crate::window::Window;

/// Bytes from which it is recognised what they are.
const RECOGNISED_BYTES: usize = 64 * 1024;
/// Bytes of a document or of trailers, at most.
const TEXT_BYTES_MAX: u64 = 1024 * 1024;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Messages that were there.
    pub messages: u64,
    /// Places at which the bytes are wrong.
    pub faults: u64,
    /// The first of them: where it is, and what is wrong.
    pub first_fault: Option<String>,
}

/// Reads bytes, and writes what they are: a line for each field and for all that
/// is around messages, or the messages alone as JSON.
///
/// What is wrong with the bytes is written where it is (`!!`), and counted; reading
/// goes on where the next message is known to begin.
///
/// # Errors
/// The input can't be read, or the text not be written.
pub fn explain(
    input: &mut dyn Read,
    out: &mut dyn Write,
    options: &Options,
) -> Result<Summary, Failed> {
    let mut lines = Lines {
        out,
        is_silent: options.view == View::Json,
        faults: 0,
        first_fault: None,
    };
    let mut carried = Carried {
        options,
        lines: &mut lines,
        messages: 0,
    };
    let mut window = Window::new(input);
    let container = match options.container {
        Some(container) => container,
        None => {
            let start = window.peek(RECOGNISED_BYTES)?;
            Container::recognise(start, start.len() < RECOGNISED_BYTES)
        }
    };
    carried.all(&mut window, container)?;
    let messages = carried.messages;
    Ok(Summary {
        messages,
        faults: lines.faults,
        first_fault: lines.first_fault,
    })
}

struct Carried<'a, 'out> {
    options: &'a Options,
    lines: &'a mut Lines<'out>,
    messages: u64,
}

impl Carried<'_, '_> {
    fn all(&mut self, window: &mut Window<'_>, container: Container) -> Result<(), Failed> {
        match container {
            Container::Message => self.message(window, None, false),
            Container::Quill => self.quill_frames(window),
            Container::Envelopes => self.envelopes(window),
            Container::Json => self.document(window, None, None),
            Container::Compressed(encoding) => {
                let text = format!("body compressed with {}", encoding.name());
                self.lines
                    .note(window.offset(), 0, format_args!("{text}"))?;
                let Some(bytes) = self.decompressed(window, None, Some(encoding))? else {
                    return Ok(());
                };
                let container = match Container::recognise(&bytes, true) {
                    // A body is not compressed twice.
                    Container::Compressed(_) => Container::Message,
                    container => container,
                };
                self.all(&mut Window::new(&mut &bytes[..]), container)
            }
        }
    }

    fn quill_frames(&mut self, window: &mut Window<'_>) -> Result<(), Failed> {
        loop {
            let offset = window.offset();
            let start = window.peek(FrameHeader::BYTES_MAX)?;
            if start.is_empty() {
                return Ok(());
            }
            let (header, length) = match FrameHeader::decode(start) {
                Ok(Some(header)) => header,
                Ok(None) => {
                    return self
                        .lines
                        .fault(offset, 0, "a frame's header that is cut off");
                }
                Err(error) => {
                    let what = format!("no frame of Quill: {error}");
                    return self.lines.fault(offset, 0, &what);
                }
            };
            let raw = Raw::of(start.get(..length).unwrap_or_default());
            window.advance(length);
            let payload = u64::from(header.payload_bytes);
            let flags = header.flags;
            let end = window.offset().saturating_add(payload);
            let text = format!("frame of Quill, {flags:?}, {payload} bytes");
            self.lines.put(offset, &raw, 0, format_args!("{text}"))?;
            match flags.kind() {
                FrameKind::Data => self.message(window, Some(end), flags.is_compressed())?,
                FrameKind::Problem => self.document(window, Some(end), None)?,
                FrameKind::Metadata => self.metadata(window, end)?,
                FrameKind::Credit => self.credit(window, end)?,
                FrameKind::EndStream | FrameKind::Cancel => {}
            }
            if !self.reach(window, end)? {
                return Ok(());
            }
        }
    }

    fn envelopes(&mut self, window: &mut Window<'_>) -> Result<(), Failed> {
        loop {
            let offset = window.offset();
            let start = window.peek(ENVELOPE_HEADER_BYTES)?;
            let (flags, length) = match start {
                [] => return Ok(()),
                [flags, a, b, c, d] => (*flags, u32::from_be_bytes([*a, *b, *c, *d])),
                _ => {
                    return self
                        .lines
                        .fault(offset, 0, "an envelope's header that is cut off");
                }
            };
            let raw = Raw::of(start);
            let is_compressed = flags & ENVELOPE_COMPRESSED != 0;
            let what = match flags & !ENVELOPE_COMPRESSED {
                0 => "envelope of gRPC, gRPC-Web or Connect",
                ENVELOPE_END => "end of a stream of Connect",
                ENVELOPE_TRAILERS => "trailers of gRPC-Web",
                _ => {
                    let what = format!("no envelope: flags {flags:#04x}");
                    return self.lines.fault(offset, 0, &what);
                }
            };
            window.advance(ENVELOPE_HEADER_BYTES);
            let end = window.offset().saturating_add(length.into());
            let compressed = if is_compressed { ", compressed" } else { "" };
            let text = format!("{what}, {length} bytes{compressed}");
            self.lines.put(offset, &raw, 0, format_args!("{text}"))?;
            match flags & !ENVELOPE_COMPRESSED {
                0 => self.message(window, Some(end), is_compressed)?,
                ENVELOPE_END => {
                    let encoding = is_compressed.then_some(self.options.encoding);
                    self.document(window, Some(end), encoding)?;
                }
                _ => self.trailers(window, end, is_compressed)?,
            }
            if !self.reach(window, end)? {
                return Ok(());
            }
        }
    }

    /// Moves behind a payload; `false` when the input ends in it.
    fn reach(&mut self, window: &mut Window<'_>, end: u64) -> Result<bool, Failed> {
        window.skip_to(end)?;
        let missing = end.saturating_sub(window.offset());
        if missing > 0 {
            let what = format!("the input ends, and {missing} bytes of a payload are missing");
            self.lines.fault(window.offset(), 0, &what)?;
        }
        Ok(missing == 0)
    }

    /// One message, up to `end` or that of the input.
    fn message(
        &mut self,
        window: &mut Window<'_>,
        end: Option<u64>,
        is_compressed: bool,
    ) -> Result<(), Failed> {
        self.messages = self.messages.saturating_add(1);
        if is_compressed {
            let Some(bytes) = self.decompressed(window, end, self.options.encoding)? else {
                return Ok(());
            };
            let count = bytes.len();
            let text = format!("decompressed, {count} bytes, with offsets of their own");
            self.lines
                .note(window.offset(), 1, format_args!("{text}"))?;
            let length = u64::try_from(count).unwrap_or(u64::MAX);
            return self.plain(&mut Window::new(&mut &bytes[..]), Some(length));
        }
        self.plain(window, end)
    }

    fn plain(&mut self, window: &mut Window<'_>, end: Option<u64>) -> Result<(), Failed> {
        if self.options.view == View::Json {
            return self.json(window, end);
        }
        let schema = self.options.schema.as_ref();
        let shape = schema.map_or(Shape::Unknown, |schema| Shape::Message(schema.message));
        let mut dump = Dump {
            pool: schema.map(|schema| &schema.pool),
            lines: self.lines,
        };
        dump.message(window, Scope::message(shape, end))
    }

    /// A message as a line of JSON.
    fn json(&mut self, window: &mut Window<'_>, end: Option<u64>) -> Result<(), Failed> {
        let offset = window.offset();
        let Some(schema) = &self.options.schema else {
            return self
                .lines
                .fault(offset, 0, "JSON needs the type of the messages");
        };
        let Some(bytes) = self.held(window, end, self.options.message_bytes_max as u64)? else {
            return Ok(());
        };
        let message = DynamicMessage::decode_with_options(
            Arc::clone(&schema.pool),
            schema.message,
            &bytes,
            &DecodeOptions::new(),
        );
        let json = message
            .map_err(|error| error.to_string())
            .and_then(|message| serde_json::to_string(&message).map_err(|error| error.to_string()));
        match json {
            Ok(json) => writeln!(self.lines.out, "{}", harmless_json(json)).map_err(Failed::Write),
            Err(error) => {
                let name = schema.pool.message(schema.message).full_name();
                self.lines
                    .fault(offset, 0, &format!("no valid {name}: {error}"))
            }
        }
    }

    /// The bytes up to a place or the input's end; `None`, with a line about it,
    /// when they are more than may be held.
    fn held(
        &mut self,
        window: &mut Window<'_>,
        end: Option<u64>,
        bytes_max: u64,
    ) -> Result<Option<Vec<u8>>, Failed> {
        let offset = window.offset();
        let length = end.map_or(u64::MAX, |end| end.saturating_sub(offset));
        let wanted = length.min(bytes_max.saturating_add(1));
        let bytes = window
            .peek(usize::try_from(wanted).unwrap_or(usize::MAX))?
            .to_vec();
        if bytes.len() as u64 > bytes_max {
            let what = format!("more than {bytes_max} bytes have to be held as a whole");
            self.lines.fault(offset, 0, &what)?;
            match end {
                Some(end) => window.skip_to(end)?,
                None => window.skip(u64::MAX).map(|_| ())?,
            }
            return Ok(None);
        }
        window.advance(bytes.len());
        Ok(Some(bytes))
    }

    fn decompressed(
        &mut self,
        window: &mut Window<'_>,
        end: Option<u64>,
        encoding: Option<Encoding>,
    ) -> Result<Option<Vec<u8>>, Failed> {
        let (offset, bytes_max) = (window.offset(), self.options.message_bytes_max);
        let Some(bytes) = self.held(window, end, bytes_max as u64)? else {
            return Ok(None);
        };
        let Some(encoding) = encoding.or_else(|| encoding_of(&bytes)) else {
            let what = "compressed, and nothing says with what: --encoding does";
            self.lines.fault(offset, 0, what)?;
            return Ok(None);
        };
        match decompress(encoding, &bytes, bytes_max) {
            Ok(bytes) => Ok(Some(bytes.into())),
            Err(error) => {
                let what = format!("can't be decompressed as {}: {error}", encoding.name());
                self.lines.fault(offset, 0, &what)?;
                Ok(None)
            }
        }
    }

    /// A document of JSON, and its lines; `compressed` with an encoding, if one is known.
    fn document(
        &mut self,
        window: &mut Window<'_>,
        end: Option<u64>,
        compressed: Option<Option<Encoding>>,
    ) -> Result<(), Failed> {
        let offset = window.offset();
        let bytes = match compressed {
            Some(encoding) => self.decompressed(window, end, encoding)?,
            None => self.held(window, end, TEXT_BYTES_MAX)?,
        };
        let Some(bytes) = bytes else {
            return Ok(());
        };
        match document::lines(&bytes) {
            Ok((document, lines)) => {
                // In a frame or an envelope it is clear what it is.
                if end.is_none() {
                    let title = document::title(&document);
                    self.lines.note(offset, 0, format_args!("{title}"))?;
                }
                self.texts(offset, &lines)
            }
            Err(error) => self.lines.fault(offset, 0, &format!("no JSON: {error}")),
        }
    }

    fn trailers(
        &mut self,
        window: &mut Window<'_>,
        end: u64,
        is_compressed: bool,
    ) -> Result<(), Failed> {
        let offset = window.offset();
        let bytes = if is_compressed {
            self.decompressed(window, Some(end), self.options.encoding)?
        } else {
            self.held(window, Some(end), TEXT_BYTES_MAX)?
        };
        match bytes {
            Some(bytes) => self.texts(offset, &document::trailers(&bytes)),
            None => Ok(()),
        }
    }

    fn metadata(&mut self, window: &mut Window<'_>, end: u64) -> Result<(), Failed> {
        let offset = window.offset();
        let Some(bytes) = self.held(window, Some(end), TEXT_BYTES_MAX)? else {
            return Ok(());
        };
        for entry in MetadataBlock::entries(&bytes) {
            match entry {
                Ok((name, value)) => {
                    let text = format!("{}: {}", name.escape_ascii(), value.escape_ascii());
                    self.texts(offset, &[text])?;
                }
                Err(error) => self.lines.fault(offset, 0, &error.to_string())?,
            }
        }
        Ok(())
    }

    fn credit(&mut self, window: &mut Window<'_>, end: u64) -> Result<(), Failed> {
        let offset = window.offset();
        let Some(bytes) = self.held(window, Some(end), TEXT_BYTES_MAX)? else {
            return Ok(());
        };
        match quill_core::varint::decode(&bytes) {
            Ok(Some((messages, length))) if length == bytes.len() => {
                let text = format_args!("{messages} more messages are taken");
                self.lines.put(offset, &Raw::of(&bytes), 1, text)
            }
            _ => self.lines.fault(offset, 0, "no number of messages"),
        }
    }

    fn texts(&mut self, offset: u64, texts: &[String]) -> Result<(), Failed> {
        for text in texts {
            self.lines.note(offset, 1, format_args!("{text}"))?;
        }
        Ok(())
    }
}
