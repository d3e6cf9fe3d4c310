//! Names and values of many fields in one allocation, or in none.

use std::sync::Arc;

/// Room made at once for the first field, so that the fields of most calls cost one
/// allocation, not one for each time that it doubles.
const BYTES_AT_FIRST: usize = 256;

/// Bytes before each field: the lengths of its name and of its value.
const LENGTHS_BYTES: usize = 8;

/// An ordered list of name/value pairs: the storage of
/// [`Headers`](crate::Headers) and [`Metadata`](crate::Metadata).
///
/// The fields lie one behind the other in one buffer, each behind its lengths: a call's
/// header block costs one allocation whatever its number of fields, is small to move,
/// and a look-up compares slices without hashing, which for the dozen fields of a call
/// is the faster way. Those that many calls have in common cost none: they are constant,
/// or shared.
#[derive(Clone)]
pub(crate) struct Fields {
    store: Store,
    len: usize,
}

#[derive(Clone)]
enum Store {
    Constant(&'static [(&'static str, &'static str)]),
    Own(Vec<u8>),
    Shared(Arc<[u8]>),
}

impl Fields {
    pub(crate) const fn new() -> Self {
        Self::constant(&[])
    }

    /// These fields, which are copied once others are added.
    pub(crate) const fn constant(fields: &'static [(&'static str, &'static str)]) -> Self {
        Self {
            store: Store::Constant(fields),
            len: fields.len(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of all names and values together.
    pub(crate) fn bytes(&self) -> usize {
        match self.iter() {
            FieldsIter::Constant(fields) => fields.map(|(n, v)| n.len() + v.len()).sum(),
            FieldsIter::Bytes(bytes) => bytes.len() - self.len * LENGTHS_BYTES,
        }
    }

    /// From now on clones cost nothing until they are changed.
    pub(crate) fn share(&mut self) {
        if let Store::Own(bytes) = &self.store {
            self.store = Store::Shared(bytes.as_slice().into());
        }
    }

    /// Adds a field. One whose name or value is over 4 GiB is dropped; every reader of
    /// a wire bounds its header block far below that.
    pub(crate) fn push(&mut self, name: &str, value: &[u8]) {
        let lengths = (u32::try_from(name.len()), u32::try_from(value.len()));
        let (Ok(name_len), Ok(value_len)) = lengths else {
            return;
        };
        let mut bytes = self.take_bytes();
        let lengths = (u64::from(name_len) << 32) | u64::from(value_len);
        bytes.reserve(LENGTHS_BYTES + name.len() + value.len());
        bytes.extend_from_slice(&lengths.to_ne_bytes());
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(value);
        self.store = Store::Own(bytes);
        self.len += 1;
    }

    /// Takes the fields out, as bytes that others can be added to.
    fn take_bytes(&mut self) -> Vec<u8> {
        match std::mem::replace(&mut self.store, Store::Constant(&[])) {
            Store::Own(bytes) => bytes,
            Store::Constant(fields) => {
                let mut list = Self {
                    store: Store::Own(Vec::with_capacity(BYTES_AT_FIRST)),
                    len: 0,
                };
                for (name, value) in fields {
                    list.push(name, value.as_bytes());
                }
                list.take_bytes()
            }
            Store::Shared(bytes) => {
                let room = bytes.len() + BYTES_AT_FIRST;
                let mut own = Vec::with_capacity(room);
                own.extend_from_slice(&bytes);
                own
            }
        }
    }

    pub(crate) fn iter(&self) -> FieldsIter<'_> {
        match &self.store {
            Store::Constant(fields) => FieldsIter::Constant(fields.iter()),
            Store::Own(bytes) => FieldsIter::Bytes(bytes),
            Store::Shared(bytes) => FieldsIter::Bytes(bytes),
        }
    }

    pub(crate) fn first(&self, name: &str) -> Option<&[u8]> {
        let mut fields = self.iter();
        std::iter::from_fn(|| fields.next_bytes())
            .find(|(n, _)| *n == name.as_bytes())
            .map(|(_, v)| v)
    }

    /// Removes every field of this name; returns whether there was one.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        if self.first(name).is_none() {
            return false;
        }
        let mut kept = Fields::new();
        for (n, v) in self.iter().filter(|(n, _)| *n != name) {
            kept.push(n, v);
        }
        *self = kept;
        true
    }
}

impl Default for Fields {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Fields {
    fn eq(&self, other: &Self) -> bool {
        if self.len != other.len {
            return false;
        }
        match (self.iter(), other.iter()) {
            (FieldsIter::Bytes(one), FieldsIter::Bytes(other)) => one == other,
            (FieldsIter::Constant(one), FieldsIter::Constant(other))
                if std::ptr::eq(one.as_slice(), other.as_slice()) =>
            {
                true
            }
            (one, other) => one.eq(other),
        }
    }
}

impl Eq for Fields {}

/// The fields that are left of a list.
#[derive(Clone)]
pub(crate) enum FieldsIter<'a> {
    Constant(std::slice::Iter<'static, (&'static str, &'static str)>),
    Bytes(&'a [u8]),
}

impl<'a> FieldsIter<'a> {
    #[inline]
    fn next_bytes(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let left = match self {
            Self::Constant(fields) => {
                let (name, value) = fields.next()?;
                return Some((name.as_bytes(), value.as_bytes()));
            }
            Self::Bytes(left) => left,
        };
        let (lengths, rest) = left.split_first_chunk::<LENGTHS_BYTES>()?;
        let lengths = u64::from_ne_bytes(*lengths);
        let (name, rest) = rest.split_at_checked((lengths >> 32) as usize)?;
        let (value, rest) = rest.split_at_checked((lengths & 0xffff_ffff) as usize)?;
        *left = rest;
        Some((name, value))
    }
}

impl<'a> Iterator for FieldsIter<'a> {
    type Item = (&'a str, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.next_bytes()?;
        // What went in as text is text.
        Some((std::str::from_utf8(name).ok()?, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_in_order_and_removal_keeps_the_rest() {
        let mut fields = Fields::new();
        fields.push("a", b"1");
        fields.push("b", b"");
        fields.push("a", b"2");
        let all: Vec<_> = fields.iter().collect();
        assert_eq!(all, [("a", &b"1"[..]), ("b", &b""[..]), ("a", &b"2"[..])]);
        assert!(fields.remove("a"));
        assert!(!fields.remove("a"));
        assert_eq!(fields.iter().collect::<Vec<_>>(), [("b", &b""[..])]);
        assert_eq!(fields.bytes(), 1);
    }

    #[test]
    fn lists_are_equal_however_they_are_stored_and_shared_ones_are_copied_when_changed() {
        let constant = Fields::constant(&[("a", "1"), ("b", "2")]);
        let mut own = Fields::new();
        own.push("a", b"1");
        own.push("b", b"2");
        assert!(constant == own);
        assert!(own == constant);
        assert!(constant == constant.clone());
        assert!(Fields::constant(&[("a", "1"), ("b", "3")]) != constant);
        assert_eq!(
            (constant.bytes(), constant.first("b")),
            (4, Some(&b"2"[..]))
        );
        own.share();
        let mut changed = own.clone();
        assert!(own == constant && changed == own);
        changed.push("c", b"3");
        assert_eq!((changed.len(), own.len()), (3, 2));
        let mut longer = constant.clone();
        longer.push("c", b"3");
        assert!(longer == changed && constant == own);
    }
}
