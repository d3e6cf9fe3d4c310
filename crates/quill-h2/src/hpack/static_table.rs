//! The static table (RFC 7541, Appendix A), and finding a field in it.

use super::ends::Ends;
use super::table::Pair;

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
pub(super) fn field(index: usize) -> Option<Pair<'static>> {
    static TABLE: [(&str, &str); LEN] = FIELDS;
    let (name, value) = TABLE.get(index.wrapping_sub(1))?;
    Some((name.as_bytes(), value.as_bytes()))
}

/// The index of a field whose value the table has too.
#[inline]
pub(super) fn field_index(hash: u64, name: &[u8], value: &[u8]) -> Option<usize> {
    find(&BY_FIELD, hash, |field| field == (name, value))
}

/// The first index with a name.
#[inline]
pub(super) fn name_index(hash: u64, name: &[u8]) -> Option<usize> {
    find(&BY_NAME, hash, |(found, _)| found == name)
}

/// Indexes at the slots of their hashes, or behind where those are taken; 0 where there
/// is none, which is in most of them.
type Slots = [u8; SLOTS];

const SLOTS: usize = 256;

static BY_FIELD: Slots = slots(true);
static BY_NAME: Slots = slots(false);

#[inline]
fn find(slots: &Slots, hash: u64, is_it: impl Fn(Pair<'static>) -> bool) -> Option<usize> {
    let mut at = hash as usize % SLOTS;
    while slots[at] != 0 {
        let index = usize::from(slots[at]);
        if is_it(field(index)?) {
            return Some(index);
        }
        at = (at + 1) % SLOTS;
    }
    None
}

/// Slots of the fields with a value, or of the first field with each name.
const fn slots(by_field: bool) -> Slots {
    let mut slots = [0; SLOTS];
    let mut index = LEN;
    while index > 0 {
        let (name, value) = FIELDS[index - 1];
        let ends = Ends::of(name.as_bytes());
        let (wanted, hash) = if by_field {
            let hash = ends.hash_with(Ends::of(value.as_bytes()));
            (!value.is_empty(), hash)
        } else {
            let first = index == 1 || !same(FIELDS[index - 2].0.as_bytes(), name.as_bytes());
            (first, ends.hash())
        };
        if wanted {
            let mut at = hash as usize % SLOTS;
            while slots[at] != 0 {
                at = (at + 1) % SLOTS;
            }
            slots[at] = index as u8;
        }
        index -= 1;
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
            let ends = Ends::of(name);
            let first = FIELDS.iter().position(|f| f.0.as_bytes() == name);
            assert_eq!(name_index(ends.hash(), name), first.map(|at| at + 1));
            let hash = ends.hash_with(Ends::of(value));
            let found = (!value.is_empty()).then_some(index);
            assert_eq!(field_index(hash, name, value), found);
        }
        assert_eq!(field(0), None);
        assert_eq!(field(LEN + 1), None);
    }

    #[test]
    fn other_names_are_not_found() {
        for name in ["", "te", "grpc-status", "content-typf", ":protocol"] {
            let name = name.as_bytes();
            assert_eq!(name_index(Ends::of(name).hash(), name), None);
        }
    }
}
