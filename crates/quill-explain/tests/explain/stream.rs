//! Streams, which are never there as a whole.

use std::cell::Cell;
use std::io::{self, Read, Write};

use quill_explain::{View, explain};

use crate::{explained, options, order};

/// Messages without end, up to a number; it counts what was asked for at once.
struct Endless<'a> {
    message: &'a [u8],
    left: u64,
    at: usize,
    room_max: &'a Cell<usize>,
}

impl Read for Endless<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.room_max.set(self.room_max.get().max(room.len()));
        let mut count = 0;
        while count < room.len() && self.left > 0 {
            room[count] = self.message[self.at];
            count += 1;
            self.at += 1;
            if self.at == self.message.len() {
                self.at = 0;
                self.left -= 1;
            }
        }
        Ok(count)
    }
}

struct Lines(u64);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn many_messages_are_read_one_after_another() {
    for (message, lines_each) in [
        (&b"\x00\x00\x00\x00\x04\x0a\x02hi"[..], 2),
        (b"\x05\x01\x0a\x03abc", 2),
        // One message of many fields.
        (b"\x0a\x03abc", 1),
    ] {
        let room_max = Cell::new(0);
        let mut endless = Endless {
            message,
            left: 100_000,
            at: 0,
            room_max: &room_max,
        };
        let mut lines = Lines(0);
        let summary = explain(&mut endless, &mut lines, &options(|_| {})).unwrap();
        assert_eq!((lines.0, summary.faults), (100_000 * lines_each, 0));
        assert!(room_max.get() <= 64 * 1024);
    }
}

#[test]
fn what_comes_in_pieces_is_the_same() {
    struct Pieces<'a>(&'a [u8]);
    impl Read for Pieces<'_> {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            let end = room.len().min(1);
            self.0.read(&mut room[..end])
        }
    }
    let bytes = crate::shown::ORDER;
    let schema = order();
    let options = options(|o| o.schema = Some(schema));
    let (whole, _) = explained(bytes, &options);
    let mut pieces = Vec::new();
    explain(&mut Pieces(bytes), &mut pieces, &options).unwrap();
    assert_eq!(String::from_utf8(pieces).unwrap(), whole);
}

#[test]
fn a_message_that_is_held_has_a_limit() {
    let schema = order();
    let options = options(|o| {
        o.schema = Some(schema);
        o.view = View::Json;
        o.message_bytes_max = 8;
    });
    let stream = b"\x00\x00\x00\x00\x09\x0a\x07abcdefg\x00\x00\x00\x00\x02\x10\x01";
    let (json, summary) = explained(stream, &options);
    assert_eq!(json, "{\"count\":1}\n");
    assert!(summary.first_fault.unwrap().contains("more than 8 bytes"));
}
