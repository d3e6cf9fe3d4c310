//! What ends the connection, and what its answers are.

use super::*;

#[test]
fn a_server_begins_with_settings_and_its_window() {
    let mut end = End(Connection::server(Config::default()));
    let frames = end.frames();
    assert_eq!(frames[0].kind, kind::SETTINGS);
    assert_eq!((frames[1].kind, frames[1].stream), (kind::WINDOW_UPDATE, 0));
    assert_eq!(frames[1].number(), 4 * 1024 * 1024 - 65_535);
}

#[test]
fn what_is_no_preface_or_no_settings_ends_it() {
    let mut end = End(Connection::server(Config::default()));
    assert_eq!(
        end.failed(b"GET / HTTP/1.1\r\n"),
        Some(ErrorCode::PROTOCOL_ERROR)
    );
    for first in [
        frame(kind::PING, 0, 0, &[0; 8]),
        frame(kind::SETTINGS, flag::ACK, 0, &[]),
    ] {
        let mut end = End(Connection::server(Config::default()));
        end.feed(PREFACE);
        assert_eq!(end.failed(&first), Some(ErrorCode::PROTOCOL_ERROR));
    }
}

#[test]
fn pings_and_settings_are_answered() {
    let mut end = End::server();
    end.feed(&frame(kind::PING, 0, 0, b"12345678"));
    end.feed(&settings(&[(0xff, 7)]));
    let frames = end.frames();
    assert_eq!((frames[0].kind, frames[0].flags), (kind::PING, flag::ACK));
    assert_eq!(frames[0].payload, b"12345678");
    assert_eq!(
        (frames[1].kind, frames[1].flags),
        (kind::SETTINGS, flag::ACK)
    );
    end.0.send_ping(*b"abcdefgh");
    end.frames();
    let pong = end.feed(&frame(kind::PING, flag::ACK, 0, b"abcdefgh"));
    assert!(matches!(pong[..], [Event::Pong(data)] if &data == b"abcdefgh"));
    assert!(end.frames().is_empty());
}

#[test]
fn frames_that_break_a_rule_of_the_connection_end_it() {
    let protocol = ErrorCode::PROTOCOL_ERROR;
    let size = ErrorCode::FRAME_SIZE_ERROR;
    let flow = ErrorCode::FLOW_CONTROL_ERROR;
    let self_push = frame(kind::PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2]);
    for (bytes, code) in [
        (data(0, 0, b"a"), protocol),
        (data(1, 0, b"a"), protocol),
        (data(2, 0, b"a"), protocol),
        (headers(0, WHOLE, POST), protocol),
        (headers(2, WHOLE, POST), protocol),
        (headers(1, WHOLE | flag::PADDED, &[3, 0]), protocol),
        (headers(1, WHOLE | flag::PRIORITY, &[0; 4]), size),
        (
            headers(1, WHOLE | flag::PRIORITY | flag::PADDED, &[0; 5]),
            protocol,
        ),
        (headers(1, WHOLE, &[0xff; 20]), ErrorCode::COMPRESSION_ERROR),
        (frame(kind::PRIORITY, 0, 0, &[0; 5]), protocol),
        // An idle stream can't be reset, so this ends the connection.
        (frame(kind::PRIORITY, 0, 1, &[0; 4]), size),
        (frame(kind::PRIORITY, 0, 1, &[0, 0, 0, 1, 0]), protocol),
        (frame(kind::RST_STREAM, 0, 0, &[0; 4]), protocol),
        (frame(kind::RST_STREAM, 0, 1, &[0; 4]), protocol),
        (frame(kind::RST_STREAM, 0, 1, &[0; 5]), size),
        (frame(kind::SETTINGS, 0, 1, &[]), protocol),
        (frame(kind::SETTINGS, 0, 0, &[0; 5]), size),
        (frame(kind::SETTINGS, flag::ACK, 0, &[0; 6]), size),
        // The first was taken when the connection began.
        (frame(kind::SETTINGS, flag::ACK, 0, &[]), protocol),
        (settings(&[(4, 1 << 31)]), flow),
        (self_push, protocol),
        (frame(kind::PING, 0, 1, &[0; 8]), protocol),
        (frame(kind::PING, 0, 0, &[0; 7]), size),
        (frame(kind::GOAWAY, 0, 1, &[0; 8]), protocol),
        (frame(kind::GOAWAY, 0, 0, &[0; 7]), size),
        (window_update(0, 0), protocol),
        (window_update(0, 0x7fff_ffff), flow),
        (window_update(1, 1), protocol),
        (frame(kind::WINDOW_UPDATE, 0, 0, &[0; 3]), size),
        (frame(kind::CONTINUATION, END_HEADERS, 1, POST), protocol),
        (data(1, 0, &[0; 16_385]), size),
    ] {
        let mut end = End::server();
        assert_eq!(end.failed(&bytes), Some(code), "{bytes:?}");
    }
}

#[test]
fn a_header_block_is_not_interrupted() {
    for next in [
        headers(3, WHOLE, POST),
        frame(kind::PING, 0, 0, &[0; 8]),
        frame(kind::CONTINUATION, END_HEADERS, 3, &[]),
        frame(0xee, 0, 1, &[]),
    ] {
        let mut end = End::server();
        end.feed(&headers(1, flag::END_STREAM, &POST[..1]));
        assert_eq!(end.failed(&next), Some(ErrorCode::PROTOCOL_ERROR));
    }
    let mut end = End::server();
    end.feed(&headers(1, flag::END_STREAM, &POST[..1]));
    end.feed(&frame(kind::CONTINUATION, 0, 1, &POST[1..2]));
    let events = end.feed(&frame(kind::CONTINUATION, END_HEADERS, 1, &POST[2..]));
    assert!(matches!(events[..], [Event::Request { end: true, .. }]));
}

#[test]
fn unknown_frames_and_flags_are_ignored() {
    let mut end = End::server();
    assert!(end.feed(&frame(0xbe, 0xff, 77, b"whatever")).is_empty());
    assert!(
        end.feed(&frame(kind::PRIORITY, 0, 9, &[0, 0, 0, 3, 7]))
            .is_empty()
    );
    assert_eq!(end.feed(&headers(1, WHOLE | 0x80, POST)).len(), 1);
    assert!(end.frames().is_empty());
}

#[test]
fn streams_after_a_goaway_are_ignored_and_those_before_go_on() {
    let mut end = End::server();
    end.0.announce_goaway();
    let key = end.open(1);
    end.0.goaway(ErrorCode::NO_ERROR);
    let goaways = end.frames();
    assert_eq!(
        goaways.iter().map(Frame::number).collect::<Vec<_>>(),
        [0x7fff_ffff, 1]
    );
    assert!(end.0.is_leaving());
    assert!(end.feed(&headers(3, END_HEADERS, POST)).is_empty());
    assert!(end.feed(&data(3, flag::END_STREAM, b"x")).is_empty());
    assert!(end.frames().is_empty());
    let events = end.feed(&data(1, flag::END_STREAM, b"x"));
    assert!(matches!(&events[..], [Event::Data { key: k, end: true, .. }] if *k == key));
}

/// Bytes of a whole connection, valid and not.
fn conversation() -> Vec<u8> {
    [
        PREFACE.to_vec(),
        settings(&[(1, 100), (4, 100_000)]),
        headers(1, END_HEADERS, &post_with(&[("x", "1")])),
        data(1, 0, &[7; 10_000]),
        data(1, flag::PADDED, &[4, 1, 2, 3, 0, 0, 0, 0]),
        frame(kind::PING, 0, 0, &[1; 8]),
        headers(1, WHOLE, &field("trailer", "2")),
        headers(3, flag::END_STREAM, &POST[..2]),
        frame(kind::CONTINUATION, END_HEADERS, 3, &POST[2..]),
        headers(5, WHOLE, &post_with(&[("connection", "close")])),
        window_update(0, 1000),
        headers(7, END_HEADERS, POST),
        reset(7, ErrorCode::CANCEL),
        window_update(0, 0),
    ]
    .concat()
}

#[test]
fn events_and_answers_do_not_depend_on_how_the_bytes_are_cut() {
    let bytes = conversation();
    let run = |step: usize| {
        let mut end = End(Connection::server(Config::default()));
        let mut input = BytesMut::new();
        let mut log = String::new();
        for part in bytes.chunks(step) {
            input.extend_from_slice(part);
            while let Some(event) = end.0.receive(&mut input) {
                log += &format!("{event:?}\n");
            }
        }
        (log, end.written())
    };
    let whole = run(bytes.len());
    assert!(whole.0.contains("Failed"));
    for step in [1, 2, 3, 9, 10, 17, 1000] {
        assert_eq!(run(step), whole, "{step}");
    }
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_it_panic(
        cuts in proptest::collection::vec((0usize..12_000, proptest::num::u8::ANY), 0..8),
        tail in proptest::collection::vec(proptest::num::u8::ANY, 0..200),
    ) {
        let mut bytes = conversation();
        for (at, byte) in cuts {
            if let Some(place) = bytes.get_mut(at % 11_000) {
                *place = byte;
            }
        }
        bytes.extend(tail);
        let mut end = End(Connection::server(Config::default()));
        end.feed(&bytes);
        let mut end = End(Connection::client(Config::default()));
        end.feed(bytes.get(PREFACE.len()..).unwrap_or_default());
    }
}
