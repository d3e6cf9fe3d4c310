//! Any bytes on an HTTP/2 connection, at either end of it, whose application
//! answers what it is asked: the same events and answers in pieces as in one. The
//! first byte says which end, the second where to cut.
#![no_main]

use std::io::IoSlice;

use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;
use quill_core::{RequestHead, ResponseHead};
use quill_h2::{Config, Connection, Event};

fuzz_target!(|input: &[u8]| {
    let [which, piece_bytes, bytes @ ..] = input else {
        return;
    };
    let piece_bytes = usize::from(*piece_bytes).max(1);
    let whole = talk(*which, bytes, bytes.len().max(1));
    assert_eq!(whole, talk(*which, bytes, piece_bytes));
});

/// The events, in words, and what was written.
fn talk(which: u8, bytes: &[u8], piece_bytes: usize) -> (String, Vec<u8>) {
    let mut end = if which & 1 == 0 {
        let mut end = Connection::server(Config::default());
        end.receive(&mut BytesMut::from(
            &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..],
        ));
        end
    } else {
        let mut end = Connection::client(Config::default());
        for _ in 0..3 {
            let _ = end.open("http", &RequestHead::post("/a.B/C"), &[], false);
        }
        end
    };
    let mut input = BytesMut::new();
    let mut log = String::new();
    for piece in bytes.chunks(piece_bytes) {
        input.extend_from_slice(piece);
        while let Some(event) = end.receive(&mut input) {
            log += &format!("{event:?}\n");
            answer(&mut end, event);
        }
    }
    (log, written(&mut end))
}

fn answer(end: &mut Connection, event: Event) {
    match event {
        Event::Request { key, .. } => {
            end.accept(key);
            end.send_head(key, &ResponseHead::new(200), &[], false);
            end.send_data(key, &mut Bytes::from_static(&[7; 300]), false, 1000);
        }
        Event::Data {
            key,
            data,
            end: ended,
        } => {
            end.release(key, u32::try_from(data.len()).unwrap_or(u32::MAX));
            end.send_data(key, &mut Bytes::from_static(b"more"), ended, 1000);
        }
        Event::Trailers { key, trailers } => end.send_trailers(key, &trailers),
        _ => {}
    }
}

fn written(end: &mut Connection) -> Vec<u8> {
    let mut all = Vec::new();
    while !end.output().is_empty() {
        let mut slices = [IoSlice::new(&[]); 16];
        let filled = end.output().slices(&mut slices);
        let before = all.len();
        slices[..filled]
            .iter()
            .for_each(|slice| all.extend_from_slice(slice));
        let count = all.len() - before;
        end.output_mut().advance(count);
    }
    all
}
