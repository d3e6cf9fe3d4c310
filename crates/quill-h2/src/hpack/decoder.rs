use std::sync::atomic::{AtomicU64, Ordering};

use super::memo::Stamp;
use super::table::{BYTES_DEFAULT, Churn, FIELD_OVERHEAD, Name, Pair, Table};
use super::{Error, huffman, integer, static_table};

/// A list this many times above its bound ends the connection; up to there it is
/// decoded, so that only its stream has to be refused.
const CEILING_FACTOR: usize = 16;

/// Where the fields of a header block go.
pub trait Sink {
    /// Takes the next field. Nothing about its bytes has been checked: names may hold
    /// capitals, values line breaks.
    fn field(&mut self, field: Field<'_>);
}

/// A field of a header block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// Its name, as sent.
    pub name: &'a [u8],
    /// Its value, as sent.
    pub value: &'a [u8],
    /// Whether whoever sends it on must keep it out of tables as well (RFC 7541,
    /// 7.1.3).
    pub never_indexed: bool,
}

/// What a block came to besides its fields.
#[derive(Clone, Copy, Debug)]
#[must_use = "a list above its bound is to be refused"]
pub struct Decoded<'b> {
    pub(super) block: &'b [u8],
    pub(super) list_bytes: usize,
    pub(super) list_bytes_max: usize,
    /// Set when the same bytes would mean the same while it lasts.
    pub(super) stamp: Option<Stamp>,
}

impl Decoded<'_> {
    /// The size of the list: the bytes of its names and values, and 32 for each field
    /// (RFC 9113, 6.5.2).
    #[must_use]
    pub fn list_bytes(&self) -> usize {
        self.list_bytes
    }

    /// Whether the list is above its bound. The sink has then seen only the fields up
    /// to there; the stream is to be refused, the connection can go on.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        self.list_bytes > self.list_bytes_max
    }
}

/// Decodes the header blocks that a peer sends on one connection.
pub struct Decoder {
    id: u64,
    table: Table,
    table_bytes_max: u32,
    /// The least that was announced since the last block, when that is less than the
    /// table had: the next block begins with an update to no more (RFC 7541, 4.2).
    reduced_to: Option<u32>,
    /// Huffman strings of one field, decoded; its length is what was needed so far.
    scratch: Vec<u8>,
}

/// A string of a block, as it stands there.
#[derive(Clone, Copy)]
struct Text<'b> {
    huffman: bool,
    bytes: &'b [u8],
}

/// How the rest of a field is to be read, by the bits that it begins with
/// (RFC 7541, 6).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Literal {
    Indexed,
    NotIndexed,
    NeverIndexed,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new(BYTES_DEFAULT as u32)
    }
}

impl Decoder {
    /// A decoder whose table may hold `table_bytes_max` bytes from the first block on.
    /// In HTTP/2 that is 4096, whatever is announced in the first SETTINGS, until the
    /// peer has acknowledged them: see [`Decoder::set_table_bytes_max`].
    #[must_use]
    pub fn new(table_bytes_max: u32) -> Self {
        /// Tells decoders apart, so that nothing remembered of one is taken for another's.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            table: Table::new(table_bytes_max as usize),
            table_bytes_max,
            reduced_to: None,
            scratch: Vec::new(),
        }
    }

    /// Changes how many bytes the peer's table may have: our
    /// `SETTINGS_HEADER_TABLE_SIZE`, from its acknowledgement on (RFC 9113, 6.5.3).
    ///
    /// A table in use never grows by this, since it is the peer's to say how much it
    /// uses; when it has to shrink, the next block has to begin with the peer's word
    /// for it.
    pub fn set_table_bytes_max(&mut self, table_bytes_max: u32) {
        self.table_bytes_max = table_bytes_max;
        if (table_bytes_max as usize) < self.table.size_max() {
            let least = self.reduced_to.unwrap_or(table_bytes_max);
            self.reduced_to = Some(least.min(table_bytes_max));
        }
    }

    /// How much went through the table so far.
    #[must_use]
    pub fn churn(&self) -> Churn {
        self.table.churn()
    }

    /// Gives back what memory is needed only while decoding, on a connection that goes
    /// idle.
    pub fn release_scratch(&mut self) {
        self.scratch = Vec::new();
        self.table.shrink();
    }

    /// Decodes a whole header block: a HEADERS or PUSH_PROMISE frame's and those of the
    /// CONTINUATION frames behind it, joined.
    ///
    /// Each field goes to `sink`, as long as the list has at most `list_bytes_max` bytes
    /// (names, values, and 32 for each field). A longer one is decoded all the same, for
    /// what it does to the table, and [`Decoded::is_too_large`] says so.
    ///
    /// The work is linear in the length of the block and, for what enters the table, in
    /// that of the list, which is cut off at sixteen times its bound.
    ///
    /// # Errors
    ///
    /// When the block breaks a rule of RFC 7541, or its list is far too large. The
    /// connection has to end then: the decoder no longer knows the peer's table.
    pub fn decode<'b>(
        &mut self,
        block: &'b [u8],
        list_bytes_max: usize,
        sink: &mut impl Sink,
    ) -> Result<Decoded<'b>, Error> {
        let changes = self.table.changes();
        let mut input = block;
        self.decode_size_updates(&mut input)?;
        let mut list = List {
            bytes: 0,
            bytes_max: list_bytes_max,
            sink,
        };
        while let Some((&first, rest)) = input.split_first() {
            input = rest;
            if first & 0x80 != 0 {
                let index = integer::decode(first, 7, &mut input)?;
                let (name, value) = self.indexed(index)?;
                list.field(name, value, false)?;
            } else if first & 0x40 != 0 {
                self.decode_literal(Literal::Indexed, first, 6, &mut input, &mut list)?;
            } else if first & 0x20 != 0 {
                return Err(Error::SizeUpdateLate);
            } else {
                let literal = if first & 0x10 != 0 {
                    Literal::NeverIndexed
                } else {
                    Literal::NotIndexed
                };
                self.decode_literal(literal, first, 4, &mut input, &mut list)?;
            }
        }
        let list_bytes = list.bytes;
        let unchanged = self.table.changes() == changes && list_bytes <= list_bytes_max;
        Ok(Decoded {
            block,
            list_bytes,
            list_bytes_max,
            stamp: self.stamp().filter(|_| unchanged),
        })
    }

    /// What the meaning of a block depends on; none while any next block has to begin
    /// with a size update.
    #[inline]
    pub(super) fn stamp(&self) -> Option<Stamp> {
        match self.reduced_to {
            None => Some(Stamp {
                decoder: self.id,
                changes: self.table.changes(),
            }),
            Some(_) => None,
        }
    }

    /// Size updates stand before the fields (RFC 7541, 4.2).
    #[inline]
    fn decode_size_updates(&mut self, input: &mut &[u8]) -> Result<(), Error> {
        while let Some((&first, rest)) = input.split_first() {
            if first & 0xe0 != 0x20 {
                break;
            }
            *input = rest;
            let asked = integer::decode(first, 5, input)?;
            let allowed = self.reduced_to.take().unwrap_or(self.table_bytes_max);
            if asked > allowed {
                return Err(Error::SizeUpdateTooLarge { asked, allowed });
            }
            self.table.resize(asked as usize);
        }
        match self.reduced_to {
            None => Ok(()),
            Some(_) => Err(Error::SizeUpdateMissing),
        }
    }

    #[inline]
    fn indexed(&self, index: u32) -> Result<Pair<'_>, Error> {
        match (index as usize).checked_sub(static_table::LEN + 1) {
            Some(entry) => self.table.field(entry).ok_or(Error::IndexUnknown(index)),
            None => static_field(index),
        }
    }

    fn decode_literal<S: Sink>(
        &mut self,
        literal: Literal,
        first: u8,
        prefix_bits: u32,
        input: &mut &[u8],
        list: &mut List<'_, S>,
    ) -> Result<(), Error> {
        let index = integer::decode(first, prefix_bits, input)?;
        let own_name = match index {
            0 => Some(take_text(input)?),
            _ => None,
        };
        let value = take_text(input)?;
        // Both strings have to be there at once, so they share the scratch.
        let name_len = match own_name {
            Some(text) => text.decode(0, &mut self.scratch)?,
            None => 0,
        };
        let value_len = value.decode(name_len, &mut self.scratch)?;
        let (name_part, rest) = self.scratch.split_at(name_len);
        let value = match value.huffman {
            true => &rest[..value_len],
            false => value.bytes,
        };
        let name = match own_name {
            Some(Text { huffman: true, .. }) => Name::Text(name_part),
            Some(text) => Name::Text(text.bytes),
            None => match (index as usize).checked_sub(static_table::LEN + 1) {
                Some(entry) => Name::Entry(entry),
                None => Name::Text(static_field(index)?.0),
            },
        };
        let text = self.table.name(&name).ok_or(Error::IndexUnknown(index))?;
        list.field(text, value, literal == Literal::NeverIndexed)?;
        if literal == Literal::Indexed {
            self.table.insert(&name, value);
        }
        Ok(())
    }
}

fn static_field(index: u32) -> Result<Pair<'static>, Error> {
    static_table::field(index as usize).ok_or(Error::IndexUnknown(index))
}

impl Text<'_> {
    /// Decodes a Huffman string into `scratch` from `at` on, and returns its length there.
    #[inline]
    fn decode(self, at: usize, scratch: &mut Vec<u8>) -> Result<usize, Error> {
        if !self.huffman {
            return Ok(0);
        }
        let end = at + huffman::decoded_len_max(self.bytes.len());
        if scratch.len() < end {
            scratch.resize(end, 0);
        }
        huffman::decode(self.bytes, &mut scratch[at..end])
    }
}

/// Reads a string (RFC 7541, 5.2).
#[inline]
fn take_text<'b>(input: &mut &'b [u8]) -> Result<Text<'b>, Error> {
    let (&first, rest) = input.split_first().ok_or(Error::Truncated)?;
    *input = rest;
    let len = integer::decode(first, 7, input)? as usize;
    let (bytes, rest) = input.split_at_checked(len).ok_or(Error::Truncated)?;
    *input = rest;
    let huffman = first & 0x80 != 0;
    Ok(Text { huffman, bytes })
}

/// The list so far.
struct List<'s, S> {
    bytes: usize,
    bytes_max: usize,
    sink: &'s mut S,
}

impl<S: Sink> List<'_, S> {
    #[inline]
    fn field(&mut self, name: &[u8], value: &[u8], never_indexed: bool) -> Result<(), Error> {
        self.bytes += name.len() + value.len() + FIELD_OVERHEAD;
        if self.bytes <= self.bytes_max {
            self.sink.field(Field {
                name,
                value,
                never_indexed,
            });
        } else if self.bytes / CEILING_FACTOR > self.bytes_max {
            return Err(Error::ListEndless);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
