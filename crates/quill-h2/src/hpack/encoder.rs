use super::table::{BYTES_DEFAULT, FIELD_OVERHEAD, Name, Table};
use super::{hash, huffman, integer, static_table};

/// The most that our table takes, in bytes, when the peer allows more: the fields that
/// repeat on a connection need less.
const TABLE_BYTES_MAX: u32 = BYTES_DEFAULT as u32;

/// A field larger than this share of the table is not worth what it would push out.
const TABLE_SHARE: usize = 4;

/// A cookie shorter than this, in bytes, could be guessed from how well it compresses
/// (RFC 7541, 7.1.3).
const COOKIE_BYTES_MIN: usize = 20;

/// Encodes the header blocks of one connection.
///
/// What repeats goes into the table: a field whose name the tables do not have, and one
/// whose value came before. So the name of a field that has another value each time (a
/// trace, a deadline) is sent once, its values push nothing out. What is in the table
/// costs a byte or two and one look-up. Huffman coding is for what enters the table;
/// what is sent on every call is sent as it is, which takes neither side any time.
pub struct Encoder {
    table: Table,
    update: Option<SizeUpdate>,
    /// By the hash of a field: the number of the insertion that put it in the table.
    /// A number may be out of date, so what it leads to is compared.
    fields: [u16; SLOTS],
    /// By the hash of a name, the same.
    names: [u16; SLOTS],
    /// By the hash of a field that is not in the table: more of that hash, so that it
    /// is known when it comes again.
    seen: [u16; SLOTS],
}

const SLOTS: usize = 64;

/// Sizes that the peer has to be told of (RFC 7541, 4.2).
#[derive(Clone, Copy)]
struct SizeUpdate {
    least: u32,
    last: u32,
}

/// A field on its way through the encoder.
struct Pair<'a> {
    name: &'a [u8],
    value: &'a [u8],
    name_hash: u64,
    hash: u64,
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Encoder {
    /// An encoder with the table of 4096 bytes that every connection begins with.
    #[must_use]
    pub fn new() -> Self {
        Self {
            table: Table::new(BYTES_DEFAULT),
            update: None,
            fields: [0; SLOTS],
            names: [0; SLOTS],
            seen: [0; SLOTS],
        }
    }

    /// Takes over the peer's `SETTINGS_HEADER_TABLE_SIZE`, in bytes, between two blocks.
    /// The table never gets larger than 4096 bytes, whatever the peer allows; the next
    /// block begins with the size updates that the change takes.
    pub fn set_table_bytes_max(&mut self, table_bytes_max: u32) {
        let last = table_bytes_max.min(TABLE_BYTES_MAX);
        if self.update.is_none() && last as usize == self.table.size_max() {
            return;
        }
        let least = self.update.map_or(last, |update| update.least.min(last));
        self.update = Some(SizeUpdate { least, last });
    }

    /// Appends a field to the header block that ends at the end of `out`.
    ///
    /// A `sensitive` one is in no table, here and behind every proxy (RFC 7541, 7.1.3);
    /// `authorization`, `proxy-authorization`, `set-cookie` and a short `cookie` are
    /// always. The name has to be in lower case (RFC 9113, 8.2); that is not checked.
    #[inline]
    pub fn field(&mut self, name: &[u8], value: &[u8], sensitive: bool, out: &mut Vec<u8>) {
        if self.update.is_some() {
            self.encode_size_update(out);
        }
        let name_hash = hash::of(name);
        let pair = Pair {
            name,
            value,
            name_hash,
            hash: hash::pair(name_hash, hash::of(value)),
        };
        if !sensitive {
            if let Some(index) = static_table::field_index(pair.hash, name, value) {
                return integer::encode(index, 7, 0x80, out);
            }
            if let Some(entry) = self.entry(&pair) {
                return integer::encode(static_table::LEN + 1 + entry, 7, 0x80, out);
            }
        }
        self.encode_literal(&pair, sensitive, out);
    }

    /// Where the table has the whole field.
    #[inline]
    fn entry(&self, pair: &Pair<'_>) -> Option<usize> {
        let entry = self.inserted_as(self.fields[slot(pair.hash)]);
        (self.table.field(entry)? == (pair.name, pair.value)).then_some(entry)
    }

    /// Where the table has a field of that name.
    fn entry_of_name(&self, pair: &Pair<'_>) -> Option<usize> {
        let entry = self.inserted_as(self.names[slot(pair.name_hash)]);
        (self.table.field(entry)?.0 == pair.name).then_some(entry)
    }

    /// The entry that came with an insertion, counted from 1 in 16 bits; beyond the
    /// table when it is gone.
    #[inline]
    fn inserted_as(&self, number: u16) -> usize {
        let insertions = self.table.churn().insertions as u16;
        usize::from(insertions.wrapping_sub(number))
    }

    #[inline(never)]
    fn encode_literal(&mut self, pair: &Pair<'_>, sensitive: bool, out: &mut Vec<u8>) {
        let known = static_table::name_index(pair.name_hash, pair.name);
        let entry = match known {
            Some(_) => None,
            None => self.entry_of_name(pair),
        };
        let index = known.or(entry.map(|entry| static_table::LEN + 1 + entry));
        let never = sensitive || is_secret(pair);
        let insert = !never && self.is_worth_inserting(pair, index.is_none());
        let (prefix_bits, flags) = match (insert, never) {
            (true, _) => (6, 0x40),
            (false, true) => (4, 0x10),
            (false, false) => (4, 0),
        };
        integer::encode(index.unwrap_or(0), prefix_bits, flags, out);
        if index.is_none() {
            encode_text(pair.name, insert, out);
        }
        encode_text(pair.value, insert, out);
        if insert {
            let name = match entry {
                Some(entry) => Name::Entry(entry),
                None => Name::Text(pair.name),
            };
            self.table.insert(&name, pair.value);
            let number = self.table.churn().insertions as u16;
            self.fields[slot(pair.hash)] = number;
            self.names[slot(pair.name_hash)] = number;
        }
    }

    /// Whether a field that the table does not have should go there; one that came only
    /// once is noted.
    fn is_worth_inserting(&mut self, pair: &Pair<'_>, name_is_new: bool) -> bool {
        let size = pair.name.len() + pair.value.len() + FIELD_OVERHEAD;
        if size > self.table.size_max() / TABLE_SHARE {
            return false;
        }
        let mark = (pair.hash >> 48) as u16;
        let seen = std::mem::replace(&mut self.seen[slot(pair.hash)], mark);
        name_is_new || seen == mark
    }

    /// The least size of the time between two blocks, since it is what pushed fields
    /// out, then the one of now (RFC 7541, 4.2).
    #[cold]
    fn encode_size_update(&mut self, out: &mut Vec<u8>) {
        let Some(SizeUpdate { least, last }) = self.update.take() else {
            return;
        };
        if least < last {
            self.table.resize(least as usize);
            integer::encode(least as usize, 5, 0x20, out);
        }
        self.table.resize(last as usize);
        integer::encode(last as usize, 5, 0x20, out);
    }
}

fn slot(hash: u64) -> usize {
    (hash >> 8) as usize % SLOTS
}

/// Whether a field is kept out of tables without being told.
fn is_secret(pair: &Pair<'_>) -> bool {
    match pair.name {
        b"authorization" | b"proxy-authorization" | b"set-cookie" => true,
        b"cookie" => pair.value.len() < COOKIE_BYTES_MIN,
        _ => false,
    }
}

/// Appends a string (RFC 7541, 5.2), `packed` when that makes it shorter.
fn encode_text(text: &[u8], packed: bool, out: &mut Vec<u8>) {
    if packed {
        let len = huffman::encoded_len(text);
        if len < text.len() {
            integer::encode(len, 7, 0x80, out);
            return huffman::encode(text, out);
        }
    }
    integer::encode(text.len(), 7, 0, out);
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests;
