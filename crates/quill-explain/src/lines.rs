//! The lines of a dump.

use std::fmt::{self, Write as _};
use std::io::Write;

use crate::failed::Failed;
use crate::harmless::harmless;

/// Bytes that a line shows; of longer fields these are the first ones.
pub(crate) const SHOWN_BYTES: usize = 8;
/// Bytes of a text, and of its value in hexadecimal digits, that a line shows.
pub(crate) const TEXT_BYTES: usize = 80;
pub(crate) const DIGITS_BYTES: usize = 16;

/// The raw bytes of what a line is about.
#[derive(Clone, Copy, Default)]
pub(crate) struct Raw {
    bytes: [u8; SHOWN_BYTES],
    count: usize,
    has_more: bool,
}

impl Raw {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut raw = Self::default();
        raw.extend(bytes);
        raw
    }

    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match self.bytes.get_mut(self.count) {
                Some(place) => {
                    *place = *byte;
                    self.count = self.count.saturating_add(1);
                }
                None => {
                    self.has_more = true;
                    return;
                }
            }
        }
    }
}

impl fmt::Display for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(26);
        for (index, byte) in self.bytes.iter().take(self.count).enumerate() {
            let space = if index == 0 { "" } else { " " };
            let _ = write!(text, "{space}{byte:02x}");
        }
        if self.has_more {
            text.push_str(" ..");
        }
        write!(f, "{text:<26}")
    }
}

/// Where lines go.
pub(crate) struct Lines<'a> {
    pub(crate) out: &'a mut dyn Write,
    /// Nothing is written: only what is wrong is counted.
    pub(crate) is_silent: bool,
    pub(crate) faults: u64,
    pub(crate) first_fault: Option<String>,
}

impl Lines<'_> {
    /// `offset  bytes  text`, indented by the depth.
    pub(crate) fn put(
        &mut self,
        offset: u64,
        raw: &Raw,
        depth: usize,
        text: fmt::Arguments<'_>,
    ) -> Result<(), Failed> {
        if self.is_silent {
            return Ok(());
        }
        let indent = depth.saturating_mul(2);
        writeln!(self.out, "{offset:08x}  {raw}  {:indent$}{text}", "").map_err(Failed::Write)
    }

    /// Something that is no message's, or what is wrong.
    pub(crate) fn note(
        &mut self,
        offset: u64,
        depth: usize,
        text: fmt::Arguments<'_>,
    ) -> Result<(), Failed> {
        self.put(offset, &Raw::default(), depth, text)
    }

    /// What is wrong with the bytes at a place.
    pub(crate) fn fault(&mut self, offset: u64, depth: usize, what: &str) -> Result<(), Failed> {
        self.faults = self.faults.saturating_add(1);
        if self.first_fault.is_none() {
            self.first_fault = Some(format!("at {offset:#x}: {what}"));
        }
        self.note(offset, depth, format_args!("!! {}", harmless(what)))
    }
}

/// Text in quotes; control characters are escaped, and a long one is cut.
pub(crate) struct Quoted<'a> {
    pub(crate) start: &'a [u8],
    /// Bytes of all of it.
    pub(crate) length: u64,
}

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.start.get(..TEXT_BYTES).unwrap_or(self.start);
        let is_cut = self.length > shown.len() as u64;
        // A character that was cut in half is not shown.
        let text = match std::str::from_utf8(shown) {
            Ok(text) => text,
            Err(error) => {
                let valid = shown.get(..error.valid_up_to()).unwrap_or_default();
                std::str::from_utf8(valid).unwrap_or_default()
            }
        };
        write!(f, "{text:?}")?;
        if is_cut {
            write!(f, ".. ({} bytes)", self.length)?;
        }
        Ok(())
    }
}

/// Bytes in hexadecimal digits, the first ones of them.
pub(crate) struct Digits<'a> {
    pub(crate) start: &'a [u8],
    pub(crate) length: u64,
}

impl fmt::Display for Digits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.start.get(..DIGITS_BYTES).unwrap_or(self.start);
        write!(f, "{} bytes", self.length)?;
        for (index, byte) in shown.iter().enumerate() {
            write!(f, "{}{byte:02x}", if index == 0 { ": " } else { " " })?;
        }
        if self.length > shown.len() as u64 {
            f.write_str(" ..")?;
        }
        Ok(())
    }
}
