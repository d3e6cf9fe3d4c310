//! The static table (RFC 7541, Appendix A), and finding a field in it.

use super::hash;

/// Fields of the static table; the first one has the index 1.
pub(super) const LEN: usize = 61;

const FIELDS: [(&str, &str); LEN] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// The field with an index from 1 on.
#[inline]
pub(super) fn field(index: usize) -> Option<(&'static [u8], &'static [u8])> {
    static TABLE: [(&str, &str); LEN] = FIELDS;
    let (name, value) = TABLE.get(index.wrapping_sub(1))?;
    Some((name.as_bytes(), value.as_bytes()))
}

/// The index of a field whose value the table has too.
#[inline]
pub(super) fn field_index(field_hash: u64, name: &[u8], value: &[u8]) -> Option<usize> {
    let index = usize::from(BY_FIELD[slot(field_hash)]);
    (field(index)? == (name, value)).then_some(index)
}

/// The first index with a name.
#[inline]
pub(super) fn name_index(name_hash: u64, name: &[u8]) -> Option<usize> {
    let mut at = slot(name_hash);
    // An empty slot ends the search, and most are empty.
    while let Some((found, _)) = field(usize::from(BY_NAME[at])) {
        if found == name {
            return Some(usize::from(BY_NAME[at]));
        }
        at = (at + 1) % SLOTS;
    }
    None
}

const SLOTS: usize = 256;

const fn slot(hash: u64) -> usize {
    (hash % SLOTS as u64) as usize
}

/// The index of the first field with a name, at the slot of the name's hash or behind
/// it; 0 where there is none.
static BY_NAME: [u8; SLOTS] = by_name();

const fn by_name() -> [u8; SLOTS] {
    let mut slots = [0; SLOTS];
    let mut index = LEN;
    while index > 0 {
        let name = FIELDS[index - 1].0;
        let first = index == 1 || !same(FIELDS[index - 2].0.as_bytes(), name.as_bytes());
        if first {
            let mut at = slot(hash::of(name.as_bytes()));
            while slots[at] != 0 {
                at = (at + 1) % SLOTS;
            }
            slots[at] = index as u8;
        }
        index -= 1;
    }
    slots
}

/// The index of the field with a value, at the slot of the field's hash; 0 where there
/// is none.
static BY_FIELD: [u8; SLOTS] = by_field();

const fn by_field() -> [u8; SLOTS] {
    let mut slots = [0; SLOTS];
    let mut index = 1;
    while index <= LEN {
        let (name, value) = FIELDS[index - 1];
        if !value.is_empty() {
            let name = hash::of(name.as_bytes());
            let at = slot(hash::pair(name, hash::of(value.as_bytes())));
            assert!(slots[at] == 0, "two fields share a slot: change the hash");
            slots[at] = index as u8;
        }
        index += 1;
    }
    slots
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_is_found_by_its_name_and_value() {
        for index in 1..=LEN {
            let (name, value) = field(index).expect("within the table");
            let name_hash = hash::of(name);
            let first = FIELDS.iter().position(|f| f.0.as_bytes() == name);
            assert_eq!(name_index(name_hash, name), first.map(|at| at + 1));
            let field_hash = hash::pair(name_hash, hash::of(value));
            let found = (!value.is_empty()).then_some(index);
            assert_eq!(field_index(field_hash, name, value), found);
        }
        assert_eq!(field(0), None);
        assert_eq!(field(LEN + 1), None);
    }

    #[test]
    fn other_names_are_not_found() {
        for name in ["", "te", "grpc-status", "content-typf", ":protocol"] {
            assert_eq!(name_index(hash::of(name.as_bytes()), name.as_bytes()), None);
        }
    }
}
