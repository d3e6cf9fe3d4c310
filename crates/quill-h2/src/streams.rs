//! The streams of a connection that are open, and those that just were.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use crate::window::{ReceiveWindow, SendWindow};

/// An open stream: its identifier, and the slot that it has while it is open, from
/// 0 to the number of streams that may be open. A key outlives its stream safely:
/// it then leads nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    slot: u32,
    id: u32,
}

impl Key {
    /// Its slot: small, and used again once the stream is gone.
    #[must_use]
    pub fn slot(self) -> usize {
        self.slot as usize
    }

    /// Its identifier (RFC 9113, section 5.1.1).
    #[must_use]
    pub fn id(self) -> u32 {
        self.id
    }
}

/// One stream, from its first HEADERS until both halves have ended or one reset
/// it (RFC 9113, section 5.1).
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) id: u32,
    pub(crate) send_window: SendWindow,
    pub(crate) receive_window: ReceiveWindow,
    /// What is still to come of the body whose length the head gave.
    pub(crate) content_left: Option<u64>,
    /// A client: the answer's head has come. A server: always.
    pub(crate) has_head: bool,
    /// A request that no body may follow in its answer.
    pub(crate) is_head_request: bool,
    /// The application has begun to answer it, or asked for it.
    pub(crate) is_seen: bool,
    pub(crate) head_sent: bool,
    pub(crate) receive_ended: bool,
    pub(crate) send_ended: bool,
}

/// How a stream came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Both halves ended, or the stream was never used.
    Ended,
    /// The peer reset it.
    ResetByPeer,
    /// This side reset it: the peer may not know yet.
    ResetHere,
}

/// Streams that are remembered after this side reset them, since frames of theirs
/// may still be under way (RFC 9113, section 5.1, "closed").
const RESETS_REMEMBERED: usize = 256;

/// Streams that are remembered after any other end, to name a peer's mistake rightly.
const ENDS_REMEMBERED: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct Streams {
    slots: Vec<Option<Stream>>,
    free: Vec<u32>,
    by_id: HashMap<u32, u32, BuildHasherDefault<IdHasher>>,
    ends: [(u32, Option<End>); ENDS_REMEMBERED],
    next_end: usize,
    resets: VecDeque<u32>,
}

impl Streams {
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn insert(&mut self, stream: Stream) -> Key {
        let id = stream.id;
        let slot = if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = Some(stream);
            slot
        } else {
            self.slots.push(Some(stream));
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        };
        self.by_id.insert(id, slot);
        Key { slot, id }
    }

    pub(crate) fn find(&self, id: u32) -> Option<Key> {
        self.by_id.get(&id).map(|slot| Key { slot: *slot, id })
    }

    pub(crate) fn at(&mut self, key: Key) -> Option<&mut Stream> {
        let stream = self.slots.get_mut(key.slot())?.as_mut()?;
        (stream.id == key.id).then_some(stream)
    }

    pub(crate) fn peek(&self, key: Key) -> Option<&Stream> {
        let stream = self.slots.get(key.slot())?.as_ref()?;
        (stream.id == key.id).then_some(stream)
    }

    pub(crate) fn remove(&mut self, key: Key, end: End) -> Option<Stream> {
        self.at(key)?;
        let stream = self.slots.get_mut(key.slot())?.take()?;
        self.by_id.remove(&key.id);
        self.remember(key.id, end);
        self.free.push(key.slot);
        Some(stream)
    }

    /// Takes no more memory than the open streams need.
    pub(crate) fn shrink(&mut self) {
        while self.slots.pop_if(|slot| slot.is_none()).is_some() {}
        self.slots.shrink_to_fit();
        let slots = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        self.free.retain(|slot| *slot < slots);
        self.free.shrink_to_fit();
        self.by_id.shrink_to_fit();
        self.resets.shrink_to_fit();
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.slots.iter_mut().flatten()
    }

    /// Remembers how a stream ended, for a while.
    pub(crate) fn remember(&mut self, id: u32, end: End) {
        if end == End::ResetHere {
            if self.resets.len() == RESETS_REMEMBERED {
                self.resets.pop_front();
            }
            self.resets.push_back(id);
            return;
        }
        self.ends[self.next_end % ENDS_REMEMBERED] = (id, Some(end));
        self.next_end = self.next_end.wrapping_add(1);
    }

    /// How a stream ended, if that is still known.
    pub(crate) fn end(&self, id: u32) -> Option<End> {
        if self.resets.contains(&id) {
            return Some(End::ResetHere);
        }
        let known = self.ends.iter().find(|(known, _)| *known == id);
        known.and_then(|(_, end)| *end)
    }
}

/// Identifiers are spread by a multiplication; there are never more than the
/// streams that may be open, so a peer gains nothing by choosing them.
#[derive(Debug, Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, id: u32) {
        self.0 = (self.0 ^ u64::from(id)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(id: u32) -> Stream {
        Stream {
            id,
            send_window: SendWindow::new(1),
            receive_window: ReceiveWindow::new(1, 1, 1),
            content_left: None,
            has_head: true,
            is_head_request: false,
            is_seen: false,
            head_sent: false,
            receive_ended: false,
            send_ended: false,
        }
    }

    #[test]
    fn a_key_leads_to_its_own_stream_and_to_no_later_one() {
        let mut streams = Streams::default();
        let first = streams.insert(stream(1));
        assert_eq!(streams.find(1), Some(first));
        assert!(streams.remove(first, End::Ended).is_some());
        let second = streams.insert(stream(3));
        assert_eq!(second.slot(), first.slot());
        assert!(streams.at(first).is_none());
        assert!(streams.remove(first, End::Ended).is_none());
        assert_eq!(streams.at(second).map(|stream| stream.id), Some(3));
        assert_eq!(streams.len(), 1);
    }

    #[test]
    fn slots_of_open_streams_stay_when_memory_is_given_back() {
        let mut streams = Streams::default();
        let keys: Vec<Key> = (0..6).map(|n| streams.insert(stream(2 * n + 1))).collect();
        for gone in [0, 2, 4, 5] {
            streams.remove(keys[gone], End::Ended);
        }
        streams.shrink();
        assert_eq!(streams.slots.len(), 4);
        for open in [1, 3] {
            assert_eq!(streams.find(keys[open].id()), Some(keys[open]));
        }
        let mut slots: Vec<usize> = (6..9)
            .map(|n| streams.insert(stream(2 * n + 1)).slot())
            .collect();
        slots.sort_unstable();
        assert_eq!(slots, [0, 2, 4]);
    }

    #[test]
    fn ends_are_remembered_for_a_while() {
        let mut streams = Streams::default();
        assert_eq!(streams.end(0), None);
        streams.remember(1, End::ResetHere);
        streams.remember(3, End::ResetByPeer);
        assert_eq!(streams.end(1), Some(End::ResetHere));
        assert_eq!(streams.end(3), Some(End::ResetByPeer));
        for id in 2..2 + 2 * RESETS_REMEMBERED as u32 {
            streams.remember(2 * id + 1, End::ResetHere);
            streams.remember(2 * id, End::Ended);
        }
        assert_eq!((streams.end(1), streams.end(3)), (None, None));
        assert_eq!(streams.resets.len(), RESETS_REMEMBERED);
    }
}
