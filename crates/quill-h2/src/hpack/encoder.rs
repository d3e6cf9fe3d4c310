use super::ends::Ends;
use super::table::{BYTES_DEFAULT, FIELD_OVERHEAD, Name, Pair, Table};
use super::{huffman, integer, static_table};

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
    /// Fields written in full that would be an index, or be so, the next time.
    literals: u64,
    /// None on a connection at rest.
    finder: Option<Box<Finder>>,
}

/// Where fields are found, of those that were sent.
struct Finder {
    /// Fields sent lately, by what is quick to see of them.
    recent: [Place; RECENT_SLOTS],
    /// By the hash of a field: where the table has it.
    fields: [Place; FIELD_SLOTS],
    /// By the hash of a name: where the table has a field of that name.
    names: [Place; NAME_SLOTS],
    /// By the hash of a field that is not in the table: more of that hash, so that it
    /// is known when it comes again.
    seen: [u16; FIELD_SLOTS],
}

impl Finder {
    /// Finds what the table has.
    fn of(table: &Table) -> Box<Self> {
        let mut finder = Box::new(Self {
            recent: [Place::NONE; RECENT_SLOTS],
            fields: [Place::NONE; FIELD_SLOTS],
            names: [Place::NONE; NAME_SLOTS],
            seen: [0; FIELD_SLOTS],
        });
        let newest = table.churn().insertions;
        for entry in (0..table.len()).rev() {
            if let Some((name, value)) = table.field(entry) {
                let ends = Ends::of(name);
                let place = Place::inserted(newest - entry as u64);
                finder.put(ends.hash_with(Ends::of(value)), ends.hash(), place);
            }
        }
        finder
    }

    fn put(&mut self, field_hash: u64, name_hash: u64, place: Place) {
        self.fields[field_hash as usize % FIELD_SLOTS] = place;
        self.names[name_hash as usize % NAME_SLOTS] = place;
    }
}

const RECENT_SLOTS: usize = 64;
const FIELD_SLOTS: usize = 64;
const NAME_SLOTS: usize = 32;

/// Sizes that the peer has to be told of (RFC 7541, 4.2).
#[derive(Clone, Copy)]
struct SizeUpdate {
    least: u32,
    last: u32,
}

/// Where a field was found. It may have gone since, or another be there now, so what it
/// leads to is compared.
///
/// An index of the static table, where 0 is no place; or with [`Place::INSERTED`], the
/// number of the insertion that the entry came with.
#[derive(Clone, Copy)]
struct Place(u16);

impl Place {
    const NONE: Self = Self(0);
    const INSERTED: u16 = 1 << 15;

    #[inline]
    fn inserted(number: u64) -> Self {
        Self(number as u16 | Self::INSERTED)
    }
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
            literals: 0,
            finder: None,
        }
    }

    /// Gives back what memory is needed only while encoding, on a connection that goes
    /// idle.
    pub fn release_scratch(&mut self) {
        self.finder = None;
        self.table.shrink();
    }

    #[inline]
    fn finder(&mut self) -> &mut Finder {
        self.finder.get_or_insert_with(|| Finder::of(&self.table))
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
    pub fn field(&mut self, name: &[u8], value: &[u8], sensitive: bool, out: &mut Vec<u8>) {
        if self.update.is_some() {
            self.encode_size_update(out);
        }
        if sensitive {
            return self.encode_never_indexed(name, value, out);
        }
        let recent = recent_slot(name, value);
        let place = self.finder().recent[recent];
        match self.index_of(place, name, value) {
            Some(index) => integer::encode(index, 7, 0x80, out),
            None => {
                let place = self.encode_searched(name, value, out);
                self.finder().recent[recent] = place;
            }
        }
    }

    /// Grows with whatever could change how a field is written that the table has; none
    /// while the next block has to begin with a size update.
    #[inline]
    pub(crate) fn changes(&self) -> Option<u64> {
        match self.update {
            None => Some(self.table.changes()),
            Some(_) => None,
        }
    }

    /// Grows with each field that may be written otherwise the next time.
    pub(crate) fn literals(&self) -> u64 {
        self.literals
    }

    /// The index of a field, if it is at that place.
    #[inline]
    fn index_of(&self, place: Place, name: &[u8], value: &[u8]) -> Option<usize> {
        let (index, field) = self.at(place)?;
        (field.0 == name && field.1 == value).then_some(index)
    }

    /// What is at a place, with its index.
    #[inline]
    fn at(&self, place: Place) -> Option<(usize, Pair<'_>)> {
        if place.0 & Place::INSERTED == 0 {
            let index = usize::from(place.0);
            return Some((index, static_table::field(index)?));
        }
        let newest = Place::inserted(self.table.churn().insertions);
        let entry = usize::from(newest.0.wrapping_sub(place.0) & !Place::INSERTED);
        Some((static_table::LEN + 1 + entry, self.table.field(entry)?))
    }

    /// Appends a field that was not sent lately, and says where it is now.
    #[inline(never)]
    fn encode_searched(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) -> Place {
        let name_ends = Ends::of(name);
        let hash = name_ends.hash_with(Ends::of(value));
        if let Some(index) = static_table::field_index(hash, name, value) {
            integer::encode(index, 7, 0x80, out);
            return Place(index as u16);
        }
        let place = self.finder().fields[hash as usize % FIELD_SLOTS];
        if let Some(index) = self.index_of(place, name, value) {
            integer::encode(index, 7, 0x80, out);
            return place;
        }
        if is_secret(name, value) {
            self.encode_never_indexed(name, value, out);
            return Place::NONE;
        }
        self.literals += 1;
        let index = self.name_index(name_ends.hash(), name);
        if !self.is_worth_inserting(name.len() + value.len(), hash, index.is_none()) {
            encode_literal(Literal::NotIndexed, index, name, value, out);
            return Place::NONE;
        }
        encode_literal(Literal::Indexed, index, name, value, out);
        self.table.insert(&Name::Text(name), value);
        let place = Place::inserted(self.table.churn().insertions);
        self.finder().put(hash, name_ends.hash(), place);
        place
    }

    fn encode_never_indexed(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let index = self.name_index(Ends::of(name).hash(), name);
        encode_literal(Literal::NeverIndexed, index, name, value, out);
    }

    /// The index of a field with that name.
    fn name_index(&mut self, hash: u64, name: &[u8]) -> Option<usize> {
        static_table::name_index(hash, name).or_else(|| {
            let place = self.finder().names[hash as usize % NAME_SLOTS];
            let (index, field) = self.at(place)?;
            (field.0 == name).then_some(index)
        })
    }

    /// Whether a field that the table does not have should go there; one that came only
    /// once is noted.
    fn is_worth_inserting(&mut self, text_len: usize, hash: u64, name_is_new: bool) -> bool {
        if text_len + FIELD_OVERHEAD > self.table.size_max() / TABLE_SHARE {
            return false;
        }
        let mark = (hash >> 48) as u16;
        let seen = &mut self.finder().seen[hash as usize % FIELD_SLOTS];
        let seen = std::mem::replace(seen, mark);
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

/// Different for the fields of a usual head, and not more.
#[inline]
fn recent_slot(name: &[u8], value: &[u8]) -> usize {
    let last = |text: &[u8]| text.last().map_or(0, |&byte| u32::from(byte));
    let seen = name.len() as u32 ^ (value.len() as u32) << 8 ^ last(name) << 16 ^ last(value) << 24;
    (seen.wrapping_mul(RECENT_SPREAD) >> (32 - RECENT_SLOTS.ilog2())) as usize
}

/// Odd, with its bits spread.
const RECENT_SPREAD: u32 = 0x9e37_79b1;

/// Whether a field is kept out of tables without being told.
fn is_secret(name: &[u8], value: &[u8]) -> bool {
    match name {
        b"authorization" | b"proxy-authorization" | b"set-cookie" => true,
        b"cookie" => value.len() < COOKIE_BYTES_MIN,
        _ => false,
    }
}

/// What a literal field does to the table (RFC 7541, 6.2).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Literal {
    Indexed,
    NotIndexed,
    NeverIndexed,
}

fn encode_literal(
    literal: Literal,
    name_index: Option<usize>,
    name: &[u8],
    value: &[u8],
    out: &mut Vec<u8>,
) {
    let (prefix_bits, flags) = match literal {
        Literal::Indexed => (6, 0x40),
        Literal::NotIndexed => (4, 0),
        Literal::NeverIndexed => (4, 0x10),
    };
    let packed = literal == Literal::Indexed;
    integer::encode(name_index.unwrap_or(0), prefix_bits, flags, out);
    if name_index.is_none() {
        encode_text(name, packed, out);
    }
    encode_text(value, packed, out);
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
