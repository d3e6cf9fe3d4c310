//! Bytes on their way to the socket.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes};

/// Payloads from this size on leave by reference; smaller ones are cheaper to copy.
const BY_REFERENCE_BYTES_MIN: usize = 2048;

/// Sent bytes are taken from the front of the buffer once they are so many, so
/// that a connection that never catches up does not grow it.
const COMPACT_BYTES_MIN: usize = 64 * 1024;

/// What waits to be written: one buffer, and large payloads between its parts,
/// by reference. All that is queued leaves in as few writes as the socket takes.
#[derive(Debug, Default)]
pub struct Output {
    buffer: Vec<u8>,
    /// What of the buffer has been written.
    start: usize,
    /// Payloads, and where in the buffer each belongs.
    shared: VecDeque<(usize, Bytes)>,
    shared_bytes: usize,
}

impl Output {
    /// Bytes that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buffer.len() - self.start + self.shared_bytes
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `slices` with the first of what waits, in order; the number filled.
    pub fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut filled = 0;
        let mut put = |bytes: &'a [u8]| match slices.get_mut(filled) {
            _ if bytes.is_empty() => true,
            Some(slice) => {
                *slice = IoSlice::new(bytes);
                filled += 1;
                true
            }
            None => false,
        };
        let mut from = self.start;
        for (at, bytes) in &self.shared {
            if !put(self.buffer.get(from..*at).unwrap_or_default()) || !put(bytes) {
                return filled;
            }
            from = *at;
        }
        put(self.buffer.get(from..).unwrap_or_default());
        filled
    }

    /// Notes that the first `written` bytes have left.
    pub fn advance(&mut self, mut written: usize) {
        while let Some((at, bytes)) = self.shared.front_mut() {
            let before = at.saturating_sub(self.start);
            let copied = before.min(written);
            self.start += copied;
            written -= copied;
            if copied < before || written == 0 {
                break;
            }
            let sent = bytes.len().min(written);
            bytes.advance(sent);
            self.shared_bytes -= sent;
            written -= sent;
            if !bytes.is_empty() {
                break;
            }
            self.shared.pop_front();
        }
        self.start = (self.start + written).min(self.buffer.len());
        if self.is_empty() {
            self.buffer.clear();
            self.start = 0;
        } else if self.start >= COMPACT_BYTES_MIN {
            self.buffer.drain(..self.start);
            for (at, _) in &mut self.shared {
                *at -= self.start;
            }
            self.start = 0;
        }
    }

    /// Uses this buffer, whose room is worth keeping, in place of an empty one.
    pub fn lend(&mut self, mut spare: Vec<u8>) {
        if self.buffer.is_empty() && self.shared.is_empty() {
            spare.clear();
            self.buffer = spare;
        }
    }

    /// Takes the buffer while nothing waits, so that an idle connection has none.
    pub fn reclaim(&mut self) -> Option<Vec<u8>> {
        if !self.is_empty() {
            return None;
        }
        self.start = 0;
        self.shared = VecDeque::new();
        Some(std::mem::take(&mut self.buffer))
    }

    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Appends a payload.
    pub(crate) fn put(&mut self, bytes: Bytes) {
        if bytes.len() < BY_REFERENCE_BYTES_MIN {
            self.buffer.extend_from_slice(&bytes);
        } else {
            self.shared_bytes += bytes.len();
            self.shared.push_back((self.buffer.len(), bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(output: &mut Output, step: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while !output.is_empty() {
            let mut slices = [IoSlice::new(&[]); 3];
            let filled = output.slices(&mut slices);
            let bytes: Vec<u8> = slices[..filled].iter().flat_map(|s| s.to_vec()).collect();
            let step = step.min(bytes.len());
            all.extend(&bytes[..step]);
            output.advance(step);
        }
        all
    }

    #[test]
    fn order_is_kept_however_the_writes_are_cut() {
        for step in [1, 2, 7, 1000, 5000, 100_000] {
            let mut output = Output::default();
            let mut expected = Vec::new();
            for round in 0..4u8 {
                output.buffer().extend([round; 3]);
                let large = vec![round + 10; BY_REFERENCE_BYTES_MIN + usize::from(round)];
                output.put(large.clone().into());
                output.put(large.clone().into());
                expected.extend([round; 3]);
                expected.extend(&large);
                expected.extend(&large);
            }
            output.buffer().extend(b"end");
            expected.extend(b"end");
            assert_eq!(output.len(), expected.len());
            assert_eq!(drained(&mut output, step), expected);
            assert!(output.reclaim().is_some());
        }
    }

    #[test]
    fn a_buffer_that_never_empties_does_not_grow_for_ever() {
        let mut output = Output::default();
        output.buffer().push(0);
        for _ in 0..1000 {
            output.buffer().extend([1; 1000]);
            output.put(vec![2; 3000].into());
            output.advance(4000);
        }
        assert_eq!(output.len(), 1);
        assert!(output.buffer.len() < 2 * COMPACT_BYTES_MIN);
    }
}
