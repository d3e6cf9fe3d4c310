//! Names and values of many fields in one allocation.

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
/// is the faster way.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Fields {
    bytes: Vec<u8>,
    len: usize,
}

impl Fields {
    pub(crate) const fn new() -> Self {
        Self {
            bytes: Vec::new(),
            len: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of all names and values together.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len() - self.len * LENGTHS_BYTES
    }

    /// Adds a field. One whose name or value is over 4 GiB is dropped; every reader of
    /// a wire bounds its header block far below that.
    pub(crate) fn push(&mut self, name: &str, value: &[u8]) {
        let lengths = (u32::try_from(name.len()), u32::try_from(value.len()));
        let (Ok(name_len), Ok(value_len)) = lengths else {
            return;
        };
        let lengths = (u64::from(name_len) << 32) | u64::from(value_len);
        if self.bytes.capacity() == 0 {
            self.bytes.reserve(BYTES_AT_FIRST);
        }
        self.bytes.reserve(LENGTHS_BYTES + name.len() + value.len());
        self.bytes.extend_from_slice(&lengths.to_ne_bytes());
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.extend_from_slice(value);
        self.len += 1;
    }

    pub(crate) fn iter(&self) -> FieldsIter<'_> {
        FieldsIter(&self.bytes)
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

/// The fields that are left of a buffer.
#[derive(Clone)]
pub(crate) struct FieldsIter<'a>(&'a [u8]);

impl<'a> FieldsIter<'a> {
    #[inline]
    fn next_bytes(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let (lengths, rest) = self.0.split_first_chunk::<LENGTHS_BYTES>()?;
        let lengths = u64::from_ne_bytes(*lengths);
        let (name, rest) = rest.split_at_checked((lengths >> 32) as usize)?;
        let (value, rest) = rest.split_at_checked((lengths & 0xffff_ffff) as usize)?;
        self.0 = rest;
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
}
