//! Names and values of many fields in two allocations.

/// Room made at once for the first field, so that the fields of most calls cost
/// one allocation in each arena, not one for each time that it doubles.
const FIELDS_AT_FIRST: usize = 8;
const NAME_BYTES_AT_FIRST: usize = 96;
const VALUE_BYTES_AT_FIRST: usize = 192;

/// One field's place in the arenas; a field's name and value lie one after
/// the other in theirs, so only the ends are kept.
#[derive(Clone, Copy, Debug)]
struct Ends {
    name: u32,
    value: u32,
}

/// An ordered list of name/value pairs: the storage of
/// [`Headers`](crate::Headers) and [`Metadata`](crate::Metadata).
///
/// Names lie in one string, values in one byte vector: a call's header block
/// costs three allocations whatever its number of fields, and a look-up
/// compares slices without hashing, which for the dozen fields of a call is
/// the faster way.
#[derive(Clone, Default)]
pub(crate) struct Fields {
    names: String,
    values: Vec<u8>,
    ends: Vec<Ends>,
}

impl Fields {
    pub(crate) const fn new() -> Self {
        Self {
            names: String::new(),
            values: Vec::new(),
            ends: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of all names and values together.
    pub(crate) fn bytes(&self) -> usize {
        self.names.len() + self.values.len()
    }

    /// Adds a field. Fields that would take an arena over 4 GiB are dropped;
    /// every reader of a wire bounds its header block far below that.
    pub(crate) fn push(&mut self, name: &str, value: &[u8]) {
        let name_end = u32::try_from(self.names.len() + name.len());
        let value_end = u32::try_from(self.values.len() + value.len());
        let (Ok(name_end), Ok(value_end)) = (name_end, value_end) else {
            return;
        };
        if self.ends.is_empty() {
            self.ends.reserve(FIELDS_AT_FIRST);
            self.names.reserve(NAME_BYTES_AT_FIRST);
            self.values.reserve(VALUE_BYTES_AT_FIRST);
        }
        self.names.push_str(name);
        self.values.extend_from_slice(value);
        self.ends.push(Ends {
            name: name_end,
            value: value_end,
        });
    }

    pub(crate) fn iter(&self) -> FieldsIter<'_> {
        FieldsIter {
            fields: self,
            next: 0,
        }
    }

    pub(crate) fn first(&self, name: &str) -> Option<&[u8]> {
        self.iter().find(|(n, _)| *n == name).map(|(_, v)| v)
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

impl PartialEq for Fields {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Fields {}

#[derive(Clone)]
pub(crate) struct FieldsIter<'a> {
    fields: &'a Fields,
    next: usize,
}

impl<'a> Iterator for FieldsIter<'a> {
    type Item = (&'a str, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let ends = self.fields.ends.get(self.next)?;
        let starts = match self.next.checked_sub(1) {
            Some(before) => *self.fields.ends.get(before)?,
            None => Ends { name: 0, value: 0 },
        };
        self.next += 1;
        let name = self
            .fields
            .names
            .get(starts.name as usize..ends.name as usize)?;
        let value = self
            .fields
            .values
            .get(starts.value as usize..ends.value as usize)?;
        Some((name, value))
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
