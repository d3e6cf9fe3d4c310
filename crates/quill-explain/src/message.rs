//! A message, field by field as it comes.

use std::sync::Arc;

use buffa_descriptor::{DescriptorPool, ScalarType, SingularKind};

use crate::failed::Failed;
use crate::guess::{self, Check, Guess};
use crate::lines::{Digits, Lines, Quoted, Raw, TEXT_BYTES};
use crate::scalar::{Number, Wire};
use crate::shape::{Kind, Known, Shape};
use crate::window::Window;

/// How deep messages and groups are followed, as deep as they are decoded.
const DEPTH_MAX: usize = 100;
/// Fields without a type that are longer are not looked into.
const GUESS_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Values of a packed list that a line shows.
const VALUES_MAX: usize = 16;

/// Writes the lines of messages.
pub(crate) struct Dump<'a, 'out> {
    pub(crate) pool: Option<&'a Arc<DescriptorPool>>,
    pub(crate) lines: &'a mut Lines<'out>,
}

/// Where the fields at hand end, and how deep they are.
#[derive(Clone, Copy)]
pub(crate) struct Scope {
    pub(crate) shape: Shape,
    /// The offset behind them; the end of the input when it is not known.
    pub(crate) end: Option<u64>,
    pub(crate) depth: usize,
    /// The field's number, inside of a group.
    group: Option<u64>,
}

impl Scope {
    pub(crate) fn message(shape: Shape, end: Option<u64>) -> Self {
        Self {
            shape,
            end,
            depth: 0,
            group: None,
        }
    }

    fn inner(self, shape: Shape, end: Option<u64>) -> Self {
        Self {
            shape,
            end,
            depth: self.depth.saturating_add(1),
            group: None,
        }
    }

    /// Bytes that are left at an offset.
    fn left(self, offset: u64) -> u64 {
        self.end.map_or(u64::MAX, |end| end.saturating_sub(offset))
    }
}

/// Why the fields of a message can't be followed further.
enum Stop {
    Failed(Failed),
    Fault(u64, String),
}

impl From<Failed> for Stop {
    fn from(failed: Failed) -> Self {
        Self::Failed(failed)
    }
}

/// The tag of a field, and where it is.
struct Tag {
    number: u64,
    wire: Wire,
    offset: u64,
    raw: Raw,
    /// `1:LEN`, and the name where it is known.
    text: String,
    known: Option<Known>,
}

impl Dump<'_, '_> {
    /// Writes a message. What is wrong in it is a line of its own; the window is
    /// behind the message then, or at the end of the input.
    pub(crate) fn message(&mut self, window: &mut Window<'_>, scope: Scope) -> Result<(), Failed> {
        match self.fields(window, scope) {
            Ok(()) => Ok(()),
            Err(Stop::Failed(failed)) => Err(failed),
            Err(Stop::Fault(offset, what)) => {
                self.lines.fault(offset, scope.depth, &what)?;
                match scope.end {
                    Some(end) => window.skip_to(end),
                    None => window.skip(u64::MAX).map(|_| ()),
                }
            }
        }
    }

    fn fields(&mut self, window: &mut Window<'_>, scope: Scope) -> Result<(), Stop> {
        while let Some(tag) = self.tag(window, scope)? {
            match tag.wire {
                Wire::Varint | Wire::I64 | Wire::I32 => self.number(window, scope, &tag)?,
                Wire::Len => self.delimited(window, scope, &tag)?,
                Wire::StartGroup => self.group(window, scope, &tag)?,
                Wire::EndGroup if scope.group == Some(tag.number) => return Ok(()),
                Wire::EndGroup => {
                    let what = format!("the end of group {}, which did not begin", tag.number);
                    return Err(Stop::Fault(tag.offset, what));
                }
            }
        }
        match scope.group {
            Some(number) => {
                let what = format!("group {number} does not end");
                Err(Stop::Fault(window.offset(), what))
            }
            None => Ok(()),
        }
    }

    /// The next field's tag; `None` at the end.
    fn tag(&self, window: &mut Window<'_>, scope: Scope) -> Result<Option<Tag>, Stop> {
        let offset = window.offset();
        if scope.left(offset) == 0 || (scope.end.is_none() && window.is_at_end()?) {
            return Ok(None);
        }
        let mut raw = Raw::default();
        let tag = varint(window, scope, &mut raw, "a tag")?;
        let number = tag >> 3;
        let wire = Wire::of_tag(tag).filter(|_| guess::is_number(number));
        let Some(wire) = wire else {
            let what = format!("no tag: field {number}, wire type {}", tag & 7);
            return Err(Stop::Fault(offset, what));
        };
        let known = scope.shape.field(self.pool.map(|pool| &**pool), number);
        // A schema that has the field in another way does not help to read it.
        let known = known.filter(|known| may_be(known, wire));
        let mut text = format!("{:<9}", format!("{number}:{}", wire.name()));
        if let Some(known) = &known {
            text.push_str(&format!(" {} =", known.name));
        } else if !matches!(scope.shape, Shape::Unknown) {
            text.push_str(" (unknown) =");
        }
        Ok(Some(Tag {
            number,
            wire,
            offset,
            raw,
            text,
            known,
        }))
    }

    fn number(&mut self, window: &mut Window<'_>, scope: Scope, tag: &Tag) -> Result<(), Stop> {
        let mut raw = tag.raw;
        let bits = match tag.wire {
            Wire::I64 => fixed(window, scope, &mut raw, 8)?,
            Wire::I32 => fixed(window, scope, &mut raw, 4)?,
            _ => varint(window, scope, &mut raw, "a number")?,
        };
        let kind = tag.known.as_ref().and_then(|known| match known.kind {
            Kind::Value(kind) => Some(kind),
            Kind::Entry(..) => None,
        });
        let number = Number {
            bits,
            wire: tag.wire,
            kind,
            pool: self.pool.map(|pool| &**pool),
        };
        let text = format_args!("{} {number}", tag.text);
        self.lines.put(tag.offset, &raw, scope.depth, text)?;
        Ok(())
    }

    fn group(&mut self, window: &mut Window<'_>, scope: Scope, tag: &Tag) -> Result<(), Stop> {
        let shape = tag.known.as_ref().and_then(Known::inner);
        let text = format_args!("{} {{", tag.text);
        self.lines.put(tag.offset, &tag.raw, scope.depth, text)?;
        if scope.depth >= DEPTH_MAX {
            return Err(too_deep(tag.offset));
        }
        let mut inner = scope.inner(shape.unwrap_or(Shape::Unknown), scope.end);
        inner.group = Some(tag.number);
        self.fields(window, inner)?;
        let end = window.offset();
        self.lines.note(end, scope.depth, format_args!("}}"))?;
        Ok(())
    }

    /// A field that says its length: text, bytes, a message, or a packed list.
    fn delimited(&mut self, window: &mut Window<'_>, scope: Scope, tag: &Tag) -> Result<(), Stop> {
        let mut raw = tag.raw;
        let length = varint(window, scope, &mut raw, "a length")?;
        let start = window.offset();
        let left = scope.left(start);
        let end = start.saturating_add(length);
        if length > left {
            let what = format!(
                "field {} has {length} bytes, and {left} are left",
                tag.number
            );
            self.lines
                .put(tag.offset, &raw, scope.depth, format_args!("{}", tag.text))?;
            return Err(Stop::Fault(start, what));
        }
        let inner = match tag.known.as_ref().map(|known| (known, known.inner())) {
            Some((_, Some(shape))) => Some(shape),
            Some((known, None)) => return self.value(window, scope, tag, raw, known, length),
            None => guessed(window, length)?,
        };
        let Some(shape) = inner else {
            return self.bytes(window, scope, tag, raw, length, None);
        };
        if scope.depth >= DEPTH_MAX {
            self.lines
                .put(tag.offset, &raw, scope.depth, format_args!("{}", tag.text))?;
            return Err(too_deep(start));
        }
        let text = format_args!("{} {} {{", tag.text, self.name_of(shape));
        self.lines.put(tag.offset, &raw, scope.depth, text)?;
        self.message(window, scope.inner(shape, Some(end)))?;
        check_reached(window, end)?;
        self.lines.note(end, scope.depth, format_args!("}}"))?;
        Ok(())
    }

    fn name_of(&self, shape: Shape) -> String {
        match (shape, self.pool) {
            (Shape::Message(index), Some(pool)) => pool.message(index).full_name().to_owned(),
            (Shape::Entry(..), _) => "entry".to_owned(),
            _ => "message?".to_owned(),
        }
    }

    /// A value that a schema knows, and that is no message.
    fn value(
        &mut self,
        window: &mut Window<'_>,
        scope: Scope,
        tag: &Tag,
        raw: Raw,
        known: &Known,
        length: u64,
    ) -> Result<(), Stop> {
        match known.kind {
            Kind::Value(SingularKind::Scalar(ScalarType::String)) => {
                self.bytes(window, scope, tag, raw, length, Some(Guess::Text))
            }
            Kind::Value(SingularKind::Scalar(ScalarType::Bytes)) => {
                self.bytes(window, scope, tag, raw, length, Some(Guess::Bytes))
            }
            Kind::Value(kind) => self.packed(window, scope, tag, raw, kind, length),
            Kind::Entry(..) => self.bytes(window, scope, tag, raw, length, None),
        }
    }

    fn packed(
        &mut self,
        window: &mut Window<'_>,
        scope: Scope,
        tag: &Tag,
        mut raw: Raw,
        kind: SingularKind,
        length: u64,
    ) -> Result<(), Stop> {
        let end = window.offset().saturating_add(length);
        let inner = scope.inner(Shape::Unknown, Some(end));
        let (mut values, mut count) = (String::new(), 0_u64);
        while window.offset() < end {
            let wire = Wire::of(kind);
            let bits = match wire {
                Wire::I64 => fixed(window, inner, &mut raw, 8),
                Wire::I32 => fixed(window, inner, &mut raw, 4),
                _ => varint(window, inner, &mut raw, "a number"),
            };
            let bits = match bits {
                Ok(bits) => bits,
                Err(Stop::Fault(offset, what)) => {
                    self.lines.fault(offset, scope.depth, &what)?;
                    window.skip_to(end)?;
                    break;
                }
                Err(stop) => return Err(stop),
            };
            count = count.saturating_add(1);
            if count <= VALUES_MAX as u64 {
                let pool = self.pool.map(|pool| &**pool);
                let kind = Some(kind);
                let number = Number {
                    bits,
                    wire,
                    kind,
                    pool,
                };
                let comma = if count == 1 { "" } else { ", " };
                values.push_str(&format!("{comma}{number}"));
            }
        }
        check_reached(window, end)?;
        let more = count.saturating_sub(VALUES_MAX as u64);
        let more = if more > 0 {
            format!(", and {more} more")
        } else {
            String::new()
        };
        let text = format_args!("{} [{values}{more}]", tag.text);
        self.lines.put(tag.offset, &raw, scope.depth, text)?;
        Ok(())
    }

    /// Text or bytes; the first ones are shown.
    fn bytes(
        &mut self,
        window: &mut Window<'_>,
        scope: Scope,
        tag: &Tag,
        mut raw: Raw,
        length: u64,
        is: Option<Guess>,
    ) -> Result<(), Stop> {
        let end = window.offset().saturating_add(length);
        let shown = usize::try_from(length).unwrap_or(usize::MAX);
        // A character more than is shown, so that the cut is seen.
        let start = window.peek(shown.min(TEXT_BYTES.saturating_add(4)))?;
        raw.extend(start);
        let whole = start.len() as u64 == length;
        let text_up_to = match std::str::from_utf8(start) {
            Ok(_) => start.len(),
            Err(error) if error.error_len().is_none() && !whole => error.valid_up_to(),
            Err(_) => 0,
        };
        let valid = start.get(..text_up_to).unwrap_or_default();
        let is_utf8 = text_up_to > 0 || start.is_empty();
        let is_text = match is {
            Some(Guess::Text) => is_utf8,
            Some(_) => false,
            None => is_utf8 && guess::is_text(valid),
        };
        let (quoted, digits) = (
            Quoted {
                start: valid,
                length,
            },
            Digits { start, length },
        );
        let wrong = if is == Some(Guess::Text) && !is_utf8 {
            " (no UTF-8)"
        } else {
            ""
        };
        let text = if is_text {
            format!("{} {quoted}", tag.text)
        } else {
            format!("{} {digits}{wrong}", tag.text)
        };
        self.lines
            .put(tag.offset, &raw, scope.depth, format_args!("{text}"))?;
        if !wrong.is_empty() {
            let what = format!("field {} is a string, and no UTF-8", tag.number);
            self.lines.fault(tag.offset, scope.depth, &what)?;
        }
        window.skip_to(end)?;
        check_reached(window, end)
    }
}

/// The shape of bytes that look like a message.
fn guessed(window: &mut Window<'_>, length: u64) -> Result<Option<Shape>, Failed> {
    let length = match usize::try_from(length) {
        Ok(length) if length as u64 <= GUESS_BYTES_MAX && length > 0 => length,
        _ => return Ok(None),
    };
    let bytes = window.peek(length)?;
    let is_message = bytes.len() == length && guess::guess(bytes) == Guess::Message;
    Ok(is_message.then_some(Shape::Unknown))
}

/// Whether the input went on as far as a length promised.
fn check_reached(window: &Window<'_>, end: u64) -> Result<(), Stop> {
    if window.offset() < end {
        let missing = end.saturating_sub(window.offset());
        let what = format!("the input ends, and {missing} bytes are missing");
        return Err(Stop::Fault(window.offset(), what));
    }
    Ok(())
}

fn too_deep(offset: u64) -> Stop {
    Stop::Fault(offset, format!("nests deeper than {DEPTH_MAX}"))
}

/// Whether a field of a schema may be on the wire in this way.
fn may_be(known: &Known, wire: Wire) -> bool {
    match known.kind {
        Kind::Entry(..) => wire == Wire::Len,
        Kind::Value(SingularKind::Message(_)) => matches!(wire, Wire::Len | Wire::StartGroup),
        Kind::Value(kind) => Wire::of(kind) == wire || (known.is_list && wire == Wire::Len),
    }
}

/// Reads a varint; `what` names it where it is cut or too long.
fn varint(window: &mut Window<'_>, scope: Scope, raw: &mut Raw, what: &str) -> Result<u64, Stop> {
    let offset = window.offset();
    let room = usize::try_from(scope.left(offset))
        .unwrap_or(usize::MAX)
        .min(10);
    let bytes = window.peek(room)?;
    match guess::varint(bytes) {
        Ok((value, rest)) => {
            let length = bytes.len().saturating_sub(rest.len());
            raw.extend(bytes.get(..length).unwrap_or_default());
            window.advance(length);
            Ok(value)
        }
        Err(Check::Invalid) => Err(Stop::Fault(offset, format!("{what} of more than 64 bits"))),
        Err(_) => Err(Stop::Fault(offset, format!("{what} that is cut off"))),
    }
}

/// Reads a little-endian number of so many bytes, up to eight.
fn fixed(window: &mut Window<'_>, scope: Scope, raw: &mut Raw, count: usize) -> Result<u64, Stop> {
    let offset = window.offset();
    let room = usize::try_from(scope.left(offset))
        .unwrap_or(usize::MAX)
        .min(count);
    let bytes = window.peek(room)?;
    if bytes.len() < count {
        return Err(Stop::Fault(
            offset,
            format!("a number of {count} bytes that is cut off"),
        ));
    }
    let mut value = [0; 8];
    for (place, byte) in value.iter_mut().zip(bytes) {
        *place = *byte;
    }
    raw.extend(bytes);
    window.advance(count);
    Ok(u64::from_le_bytes(value))
}
