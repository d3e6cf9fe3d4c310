//! Bytes that are written as text: hexadecimal digits, or base64.

use std::fmt;
use std::io::{self, Read};

/// How bytes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As they are.
    Binary,
    /// Two hexadecimal digits each; spaces and line ends are passed over.
    Hex,
    /// Base64, in either alphabet, padded or not, also in pieces that are each
    /// padded, as gRPC-Web's text format has it.
    Base64,
}

impl Form {
    /// The form that a beginning looks like. Text that could be both is
    /// hexadecimal; base64 needs eight characters to be recognised.
    #[must_use]
    pub fn recognise(start: &[u8]) -> Self {
        let text: Vec<u8> = start
            .iter()
            .copied()
            .filter(|byte| !byte.is_ascii_whitespace())
            .collect();
        let is_all = |is: fn(&u8) -> bool| !text.is_empty() && text.iter().all(is);
        if is_all(u8::is_ascii_hexdigit) && (text.len().is_multiple_of(2) || text.len() > 1024) {
            return Self::Hex;
        }
        if text.len() >= 8 && is_all(|byte| sextet(*byte).is_some() || *byte == b'=') {
            return Self::Base64;
        }
        Self::Binary
    }

    /// Reads the bytes behind text of this form. What is no such text is an
    /// error of kind `InvalidData`, with an [`Unformed`] in it.
    pub fn read<'a>(self, source: impl Read + 'a) -> Box<dyn Read + 'a> {
        match self {
            Self::Binary => Box::new(source),
            Self::Hex | Self::Base64 => Box::new(FormReader {
                source,
                form: self,
                digits: 0,
                count: 0,
                group: Vec::with_capacity(3),
                position: 0,
                text: vec![0; 8 * 1024],
                filled: 0,
                taken: 0,
            }),
        }
    }
}

/// A character that is none of a form's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unformed {
    form: Form,
    position: u64,
}

impl fmt::Display for Unformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let position = self.position;
        match self.form {
            Form::Hex => write!(
                f,
                "character {position} is no hexadecimal digit, or lacks its pair"
            ),
            _ => write!(f, "character {position} is no base64, or ends it too soon"),
        }
    }
}

impl std::error::Error for Unformed {}

fn sextet(byte: u8) -> Option<u32> {
    let value = match byte {
        b'A'..=b'Z' => byte.wrapping_sub(b'A'),
        b'a'..=b'z' => byte.wrapping_sub(b'a').wrapping_add(26),
        b'0'..=b'9' => byte.wrapping_sub(b'0').wrapping_add(52),
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    };
    Some(value.into())
}

struct FormReader<R> {
    source: R,
    form: Form,
    /// Digits of a group that is not whole yet, and how many.
    digits: u32,
    count: u32,
    /// Bytes of a group that is, the last one first.
    group: Vec<u8>,
    /// Characters that were read.
    position: u64,
    text: Vec<u8>,
    filled: usize,
    taken: usize,
}

impl<R: Read> FormReader<R> {
    fn unformed(&self) -> io::Error {
        let unformed = Unformed {
            form: self.form,
            position: self.position,
        };
        io::Error::new(io::ErrorKind::InvalidData, unformed)
    }

    fn next_character(&mut self) -> io::Result<Option<u8>> {
        loop {
            if self.taken == self.filled {
                self.taken = 0;
                self.filled = self.source.read(&mut self.text)?;
                if self.filled == 0 {
                    return Ok(None);
                }
            }
            let byte = self.text.get(self.taken).copied();
            self.taken = self.taken.saturating_add(1);
            self.position = self.position.saturating_add(1);
            if let Some(byte) = byte.filter(|byte| !byte.is_ascii_whitespace()) {
                return Ok(Some(byte));
            }
        }
    }

    /// The bytes of the next group, up to three; none at the end.
    fn group(&mut self) -> io::Result<([u8; 3], usize)> {
        let (bits, whole) = match self.form {
            Form::Hex => (4, 2),
            _ => (6, 4),
        };
        loop {
            let byte = self.next_character()?;
            let digit = byte.and_then(|byte| match self.form {
                Form::Hex => char::from(byte).to_digit(16),
                _ => sextet(byte),
            });
            match (byte, digit) {
                (_, Some(digit)) => {
                    self.digits = self.digits << bits | digit;
                    self.count = self.count.saturating_add(1);
                    if self.count == whole {
                        return Ok(self.taken_group());
                    }
                }
                (Some(b'='), None) if self.form == Form::Base64 && self.count > 1 => {
                    return Ok(self.taken_group());
                }
                // A second `=`, behind the group that the first one ended.
                (Some(b'='), None) if self.form == Form::Base64 && self.count == 0 => {}
                (None, None) if self.count == 0 => return Ok(([0; 3], 0)),
                (None, None) if self.form == Form::Base64 && self.count > 1 => {
                    return Ok(self.taken_group());
                }
                _ => return Err(self.unformed()),
            }
        }
    }

    fn taken_group(&mut self) -> ([u8; 3], usize) {
        let (digits, count) = (self.digits, self.count);
        (self.digits, self.count) = (0, 0);
        if self.form == Form::Hex {
            let [.., byte] = digits.to_be_bytes();
            return ([byte, 0, 0], 1);
        }
        let shift = 6_u32.saturating_mul(4_u32.saturating_sub(count));
        let [_, a, b, c] = (digits << shift).to_be_bytes();
        (
            [a, b, c],
            usize::try_from(count).unwrap_or(4).saturating_sub(1),
        )
    }
}

impl<R: Read> Read for FormReader<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let mut written = 0_usize;
        while let Some(place) = room.get_mut(written) {
            if self.group.is_empty() {
                // What is there goes on before more text is waited for.
                if written > 0 && self.taken == self.filled {
                    break;
                }
                let (bytes, count) = self.group()?;
                // Taken from the end.
                self.group.extend(bytes.iter().take(count).rev());
            }
            let Some(byte) = self.group.pop() else {
                break;
            };
            *place = byte;
            written = written.saturating_add(1);
        }
        Ok(written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(form: Form, text: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        form.read(text.as_bytes()).read_to_end(&mut bytes)?;
        // Also byte by byte.
        let (mut single, mut byte) = (Vec::new(), [0]);
        let mut reader = form.read(text.as_bytes());
        while reader.read(&mut byte)? == 1 {
            single.extend(byte);
        }
        assert_eq!(single, bytes);
        Ok(bytes)
    }

    #[test]
    fn text_is_read_as_its_form_has_it() {
        for (form, text, bytes) in [
            (Form::Hex, "0a 02\n6869", &b"\x0a\x02hi"[..]),
            (Form::Hex, "FF", b"\xff"),
            (Form::Hex, "", b""),
            (Form::Base64, "CgJoaQ==", b"\x0a\x02hi"),
            (Form::Base64, "CgJoaQ", b"\x0a\x02hi"),
            (Form::Base64, "CgJo\naQ==CgJoaQ==", b"\x0a\x02hi\x0a\x02hi"),
            (Form::Base64, "_-8=/+8", b"\xff\xef\xff\xef"),
            (Form::Binary, "a=", b"a="),
        ] {
            assert_eq!(read(form, text).unwrap(), bytes, "{text}");
        }
        for (form, text, position) in [
            (Form::Hex, "0a0", 3),
            (Form::Hex, "0a0g", 4),
            (Form::Base64, "CgJoa", 5),
            (Form::Base64, "Cg!=", 3),
            (Form::Base64, "C=", 2),
        ] {
            let error = read(form, text).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("character {position} ")),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn a_form_is_known_by_its_characters() {
        for (text, form) in [
            ("0a02 6869", Form::Hex),
            ("CgJoaQ==", Form::Base64),
            ("0a0", Form::Binary),
            ("hi", Form::Binary),
            ("\n\u{2}hi", Form::Binary),
            ("{\"code\": 1}", Form::Binary),
            ("", Form::Binary),
        ] {
            assert_eq!(Form::recognise(text.as_bytes()), form, "{text:?}");
        }
    }
}
