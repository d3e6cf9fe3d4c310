use std::collections::VecDeque;

/// What a field adds to the size of a table or list beside its bytes (RFC 7541, 4.1;
/// RFC 9113, 6.5.2).
pub(super) const FIELD_OVERHEAD: usize = 32;

/// The size of a table before anybody announced another (RFC 9113, 6.5.2).
pub(super) const BYTES_DEFAULT: usize = 4096;

/// No table is larger, whatever is announced: 1 GiB, so that offsets fit 32 bits.
const BYTES_CEILING: usize = 1 << 30;

/// How much went through a table, since it exists.
///
/// A peer that makes every block add fields and push others out costs more than its
/// bytes show, so a connection can bound the change of these numbers over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Churn {
    /// Fields added.
    pub insertions: u64,
    /// Fields pushed out, by others or by a smaller size.
    pub evictions: u64,
}

/// A name and a value.
pub(super) type Pair<'a> = (&'a [u8], &'a [u8]);

/// The name of a field to add.
pub(super) enum Name<'a> {
    Text(&'a [u8]),
    /// That of the entry with this index, counted from 0, the newest.
    Entry(usize),
}

/// A dynamic table (RFC 7541, 2.3.2): what was added last is at index 0.
///
/// The texts stand one behind the other in one buffer, the oldest first, so that each
/// is one slice. Those pushed out leave a gap at the front; when the buffer is full
/// and the gap large, the rest moves down. The buffer grows with what is in use, to
/// at most twice the table's size.
pub(super) struct Table {
    texts: Vec<u8>,
    entries: VecDeque<Entry>,
    size: usize,
    size_max: usize,
    churn: Churn,
    changes: u64,
}

#[derive(Clone, Copy)]
struct Entry {
    at: u32,
    name_len: u32,
    value_len: u32,
}

impl Entry {
    #[inline]
    fn text_len(self) -> usize {
        self.name_len as usize + self.value_len as usize
    }
}

impl Table {
    pub(super) fn new(size_max: usize) -> Self {
        Self {
            texts: Vec::new(),
            entries: VecDeque::new(),
            size: 0,
            size_max: size_max.min(BYTES_CEILING),
            churn: Churn::default(),
            changes: 0,
        }
    }

    /// Entries.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn size_max(&self) -> usize {
        self.size_max
    }

    #[inline]
    pub(super) fn churn(&self) -> Churn {
        self.churn
    }

    /// Grows with whatever could change what an index means.
    #[inline]
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// The name and value at an index from 0, the newest, on.
    #[inline]
    pub(super) fn field(&self, index: usize) -> Option<Pair<'_>> {
        // Beyond the end when there is no such entry.
        let place = self.entries.len().wrapping_sub(index + 1);
        let entry = self.entries.get(place)?;
        let at = entry.at as usize;
        self.texts
            .get(at..at + entry.text_len())?
            .split_at_checked(entry.name_len as usize)
    }

    /// A name, wherever it stands.
    #[inline]
    pub(super) fn name<'a>(&'a self, name: &Name<'a>) -> Option<&'a [u8]> {
        match *name {
            Name::Text(text) => Some(text),
            Name::Entry(index) => self.field(index).map(|(name, _)| name),
        }
    }

    /// Changes the most that the table may hold, in bytes (RFC 7541, 4.3).
    pub(super) fn resize(&mut self, size_max: usize) {
        self.size_max = size_max.min(BYTES_CEILING);
        self.changes += 1;
        self.evict();
        if self.texts.capacity() > 2 * self.size_max {
            self.close_gap();
            self.texts.shrink_to(self.size_max);
            self.entries.shrink_to(self.entries.len());
        }
    }

    /// Takes no more memory than the entries need.
    pub(super) fn shrink(&mut self) {
        self.close_gap();
        self.texts.shrink_to_fit();
        self.entries.shrink_to_fit();
    }

    /// Adds a field; others make room for it, and one larger than the table leaves it
    /// empty (RFC 7541, 4.4).
    pub(super) fn insert(&mut self, name: &Name<'_>, value: &[u8]) {
        self.changes += 1;
        let name_len = self.name(name).map_or(0, <[u8]>::len);
        let text_len = name_len.saturating_add(value.len());
        if text_len.saturating_add(FIELD_OVERHEAD) > self.size_max {
            self.clear();
            return;
        }
        self.make_room(text_len);
        let at = self.texts.len();
        match *name {
            Name::Text(text) => self.texts.extend_from_slice(text),
            Name::Entry(index) => self.copy_name(index),
        }
        self.texts.extend_from_slice(value);
        self.entries.push_back(Entry {
            at: at as u32,
            name_len: name_len as u32,
            value_len: value.len() as u32,
        });
        self.size += text_len + FIELD_OVERHEAD;
        self.churn.insertions += 1;
        // Only now, since the name may be that of an entry which has to go.
        self.evict();
    }

    fn copy_name(&mut self, index: usize) {
        let place = self.entries.len().wrapping_sub(index).wrapping_sub(1);
        if let Some(entry) = self.entries.get(place) {
            let at = entry.at as usize;
            self.texts
                .extend_from_within(at..at + entry.name_len as usize);
        }
    }

    #[inline]
    fn evict(&mut self) {
        while self.size > self.size_max {
            let Some(oldest) = self.entries.pop_front() else {
                break;
            };
            self.size -= oldest.text_len() + FIELD_OVERHEAD;
            self.churn.evictions += 1;
        }
        if self.entries.is_empty() {
            self.texts.clear();
        }
    }

    fn clear(&mut self) {
        self.churn.evictions += self.entries.len() as u64;
        self.entries.clear();
        self.texts.clear();
        self.size = 0;
    }

    /// Sees to it that `len` more bytes fit behind the texts.
    #[inline]
    fn make_room(&mut self, len: usize) {
        if self.texts.capacity() - self.texts.len() < len {
            self.grow(len);
        }
    }

    #[cold]
    fn grow(&mut self, len: usize) {
        // Moving costs as much as what is left, so it waits for a gap of that size;
        // then each byte added pays for one moved.
        let live = self.texts.len() - self.gap();
        if live <= self.gap() || self.texts.len() + len > 2 * self.size_max {
            self.close_gap();
        }
        if self.texts.capacity() - self.texts.len() < len {
            let wanted = (self.texts.len() + len).max(2 * self.texts.capacity());
            let wanted = wanted.max(MIN_CAPACITY).min(2 * self.size_max);
            self.texts.reserve_exact(wanted - self.texts.len());
        }
    }

    /// Bytes at the front that belong to no entry any more.
    fn gap(&self) -> usize {
        self.entries
            .front()
            .map_or(self.texts.len(), |oldest| oldest.at as usize)
    }

    fn close_gap(&mut self) {
        let gap = self.gap();
        self.texts.copy_within(gap.., 0);
        self.texts.truncate(self.texts.len() - gap);
        for entry in &mut self.entries {
            entry.at -= gap as u32;
        }
    }
}

/// The first buffer, in bytes: it takes the heads of one kind of call.
const MIN_CAPACITY: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn names(table: &Table) -> Vec<String> {
        (0..table.len())
            .map(|index| table.field(index).expect("an entry").0)
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect()
    }

    #[test]
    fn the_newest_comes_first_and_the_oldest_goes() {
        let mut table = Table::new(3 * (FIELD_OVERHEAD + 2));
        for name in ["a", "b", "c", "d"] {
            table.insert(&Name::Text(name.as_bytes()), b"1");
        }
        assert_eq!(names(&table), ["d", "c", "b"]);
        assert_eq!(table.field(3), None);
        let churn = table.churn();
        assert_eq!((churn.insertions, churn.evictions), (4, 1));
        table.resize(FIELD_OVERHEAD + 2);
        assert_eq!(names(&table), ["d"]);
        table.insert(&Name::Text(b"too long"), b"for it");
        assert_eq!(table.len(), 0);
    }

    /// RFC 7541, 4.4: the name may be that of an entry which is pushed out.
    #[test]
    fn an_entry_gives_its_name_before_it_goes() {
        let mut table = Table::new(FIELD_OVERHEAD + 8);
        table.insert(&Name::Text(b"name"), b"1234");
        table.insert(&Name::Entry(0), b"5678");
        assert_eq!(table.len(), 1);
        assert_eq!(table.field(0), Some((&b"name"[..], &b"5678"[..])));
    }

    #[test]
    fn memory_stays_within_twice_the_size() {
        let mut table = Table::new(1000);
        for round in 0..10_000_usize {
            let value = vec![b'v'; round * 7 % 900];
            table.insert(&Name::Text(b"n"), &value);
            assert!(table.texts.capacity() <= 2000);
            let (_, newest) = table.field(0).expect("it fits");
            assert_eq!(newest, value);
        }
        // Fields of no bytes leave no gap that could tell when to move.
        for _ in 0..10_000 {
            table.insert(&Name::Text(b""), b"");
        }
        assert!(table.entries.capacity() <= 64);
        table.resize(0);
        assert_eq!(table.texts.capacity() + table.entries.capacity(), 0);
    }
}
