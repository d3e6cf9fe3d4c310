//! The life of streams, seen from a server.

use super::*;

#[test]
fn a_request_and_its_answer() {
    let mut end = End::server();
    let key = end.open(1);
    let events = end.feed(&data(1, flag::END_STREAM, b"hello"));
    let [
        Event::Data {
            data, end: true, ..
        },
    ] = &events[..]
    else {
        panic!("{events:?}");
    };
    assert_eq!(data, "hello");
    end.0.release(key, 5);
    let mut head = ResponseHead::new(200);
    head.headers.append("content-type", "text/plain");
    head.headers.append("connection", "close");
    end.0.send_head(key, &head, &[("date", b"now")], false);
    assert_eq!(
        end.0.send_data(key, &mut "world".into(), false, 1000),
        Sent::All
    );
    let mut trailers = quill_core::Headers::new();
    trailers.append("x-status", "0");
    end.0.send_trailers(key, &trailers);
    let frames = end.frames();
    let kinds: Vec<_> = frames
        .iter()
        .map(|frame| (frame.kind, frame.flags))
        .collect();
    assert_eq!(
        kinds,
        [
            (kind::HEADERS, END_HEADERS),
            (kind::DATA, 0),
            (kind::HEADERS, WHOLE)
        ]
    );
    assert_eq!(frames[1].payload, b"world");
    assert_eq!(end.0.streams_open(), 0);

    // The other end understands it.
    let mut client = End::client();
    let request = client
        .0
        .open("http", &RequestHead::post("/"), &[], false)
        .unwrap();
    client.frames();
    let bytes: Vec<u8> = frames
        .iter()
        .flat_map(|f| frame(f.kind, f.flags, f.stream, &f.payload))
        .collect();
    let events = client.feed(&bytes);
    let [
        Event::Response { key, head, .. },
        Event::Data { .. },
        Event::Trailers { trailers, .. },
    ] = &events[..]
    else {
        panic!("{events:?}");
    };
    assert_eq!((*key, head.status), (request, 200));
    let fields: Vec<_> = head.headers.iter().collect();
    assert_eq!(
        fields,
        [("content-type", &b"text/plain"[..]), ("date", b"now")]
    );
    assert_eq!(trailers.first("x-status"), Some(&b"0"[..]));
}

#[test]
fn malformed_requests_end_their_stream_alone() {
    let mut end = End::server();
    let protocol = ErrorCode::PROTOCOL_ERROR;
    let long = post_with(&[("content-length", "5")]);
    let depends_on_itself = [&[0, 0, 0, 7, 0], POST].concat();
    for (stream, bytes) in [
        (1, headers(1, WHOLE, &post_with(&[("connection", "close")]))),
        (3, headers(3, WHOLE, &long)),
        (
            5,
            [
                headers(5, END_HEADERS, &long),
                data(5, flag::END_STREAM, b"four"),
            ]
            .concat(),
        ),
        (7, headers(7, WHOLE | flag::PRIORITY, &depends_on_itself)),
        (
            9,
            [headers(9, END_HEADERS, &long), data(9, 0, b"sixsix")].concat(),
        ),
        (
            11,
            [headers(11, END_HEADERS, &long), headers(11, WHOLE, &[])].concat(),
        ),
        (
            13,
            [
                headers(13, END_HEADERS, POST),
                headers(13, END_HEADERS, &[]),
            ]
            .concat(),
        ),
        (
            15,
            [headers(15, END_HEADERS, POST), headers(15, WHOLE, POST)].concat(),
        ),
        (
            17,
            [headers(17, END_HEADERS, POST), window_update(17, 0)].concat(),
        ),
    ] {
        assert_eq!(end.refused(&bytes), Some((stream, protocol)), "{stream}");
        assert_eq!(end.0.streams_open(), 0);
    }
    let over = [
        headers(19, END_HEADERS, POST),
        window_update(19, 0x7fff_ffff),
    ]
    .concat();
    assert_eq!(
        end.refused(&over),
        Some((19, ErrorCode::FLOW_CONTROL_ERROR))
    );
    // The table was kept in step all along.
    assert!(matches!(
        end.feed(&headers(21, WHOLE, POST))[..],
        [Event::Request { .. }]
    ));
}

#[test]
fn frames_after_the_end_of_a_stream() {
    let closed = ErrorCode::STREAM_CLOSED;
    // Half-closed: the peer has ended its half.
    for frame in [data(1, 0, b"x"), headers(1, WHOLE, POST)] {
        let mut end = End::server();
        end.feed(&headers(1, WHOLE, POST));
        assert_eq!(end.refused(&frame), Some((1, closed)));
    }
    // Ended by both.
    let ended = || {
        let mut end = End::server();
        let events = end.feed(&headers(1, WHOLE, POST));
        let [Event::Request { key, .. }] = events[..] else {
            panic!("{events:?}");
        };
        end.0.send_head(key, &ResponseHead::new(200), &[], true);
        end.frames();
        end
    };
    assert_eq!(ended().refused(&data(1, 0, b"x")), Some((1, closed)));
    assert_eq!(ended().failed(&headers(1, WHOLE, POST)), Some(closed));
    for frame in [
        window_update(1, 1),
        window_update(1, 0),
        reset(1, ErrorCode::CANCEL),
    ] {
        assert_eq!(ended().refused(&frame), None);
    }
    // Reset by the peer.
    for frame in [data(1, 0, b"x"), headers(1, WHOLE, POST)] {
        let mut end = End::server();
        end.open(1);
        let events = end.feed(&reset(1, ErrorCode::CANCEL));
        assert!(matches!(events[..], [Event::Reset { fault: None, .. }]));
        assert_eq!(end.refused(&frame), Some((1, closed)));
    }
    // Reset here: the peer may not know yet.
    for frame in [
        data(1, 0, b"x"),
        headers(1, WHOLE, POST),
        reset(1, ErrorCode::CANCEL),
    ] {
        let mut end = End::server();
        let key = end.open(1);
        end.0.reset(key, ErrorCode::CANCEL);
        end.frames();
        assert_eq!(end.refused(&frame), None);
        assert!(end.frames().is_empty());
    }
    // Never used, and passed over.
    let mut end = End::server();
    end.open(5);
    assert_eq!(
        end.failed(&headers(3, WHOLE, POST)),
        Some(ErrorCode::PROTOCOL_ERROR)
    );
}

#[test]
fn streams_over_the_limit_are_refused() {
    let config = Config {
        streams_max: 2,
        ..Config::default()
    };
    let mut end = End::server_with(config);
    end.open(1);
    let key = end.open(3);
    let more = headers(5, END_HEADERS, POST);
    assert_eq!(end.refused(&more), Some((5, ErrorCode::REFUSED_STREAM)));
    // What comes for it is ignored, and the window is kept.
    assert_eq!(end.refused(&data(5, 0, &[0; 100])), None);
    end.0.reset(key, ErrorCode::CANCEL);
    end.open(7);
}

#[test]
fn a_head_that_is_too_large_is_answered_with_431() {
    let config = Config {
        headers_bytes_max: 200,
        ..Config::default()
    };
    let mut end = End::server_with(config);
    let text = "a".repeat(100);
    let block = post_with(&[("x", &text), ("y", &text)]);
    assert!(end.feed(&headers(1, END_HEADERS, &block)).is_empty());
    let frames = end.frames();
    assert_eq!((frames[0].kind, frames[0].flags), (kind::HEADERS, WHOLE));
    assert_eq!(
        (frames[1].kind, frames[1].code()),
        (kind::RST_STREAM, ErrorCode::NO_ERROR)
    );
    assert!(end.feed(&data(1, flag::END_STREAM, b"x")).is_empty());
    assert!(end.feed(&headers(3, WHOLE, &block)).is_empty());
    assert_eq!(end.frames().len(), 1);
    assert_eq!(end.0.streams_open(), 0);
}

#[test]
fn windows_hold_the_peer_back_and_open_as_it_is_read() {
    let mut end = End::server();
    let key = end.open(1);
    let mut came = 0;
    for _ in 0..3 {
        came += end.feed(&data(1, 0, &[0; 16_384])).len();
    }
    came += end.feed(&data(1, 0, &[0; 16_383])).len();
    assert_eq!(came, 4);
    assert!(!end.0.may_receive(key));
    assert!(end.frames().is_empty());
    end.0.release(key, 65_535);
    let frames = end.frames();
    // All was read: the window doubles.
    assert_eq!((frames[0].stream, frames[0].number()), (1, 2 * 65_535));
    assert!(end.0.may_receive(key));
    let mut end = End::server();
    let key = end.open(1);
    for _ in 0..3 {
        end.feed(&data(1, 0, &[0; 16_384]));
    }
    assert_eq!(
        end.refused(&data(1, 0, &[0; 16_384])),
        Some((1, ErrorCode::FLOW_CONTROL_ERROR))
    );
    assert!(!end.0.is_open(key));
}

#[test]
fn streams_that_nobody_reads_do_not_take_the_window_of_others_for_ever() {
    let config = Config {
        connection_window_bytes: 65_535,
        ..Config::default()
    };
    let mut end = End::server_with(config);
    for stream in [1, 3, 5, 7] {
        let key = end.open(stream);
        for _ in 0..3 {
            assert_eq!(end.feed(&data(stream, 0, &[0; 16_384])).len(), 1);
        }
        // Its reader goes: the connection's room comes back, the stream's does not.
        end.0.discard(key, 3 * 16_384);
        let frames = end.frames();
        assert_eq!(frames.len(), 1);
        assert_eq!((frames[0].stream, frames[0].number()), (0, 3 * 16_384));
    }
    let key = end.open(9);
    for _ in 0..3 {
        end.feed(&data(9, 0, &[0; 16_384]));
    }
    end.0.reset(key, ErrorCode::CANCEL);
    assert!(
        end.frames()
            .iter()
            .any(|frame| frame.number() == 3 * 16_384)
    );
    let too_much: Vec<u8> = [11, 13, 15, 17]
        .iter()
        .flat_map(|stream| {
            [
                headers(*stream, END_HEADERS, POST),
                data(*stream, 0, &[0; 16_384]),
            ]
            .concat()
        })
        .collect();
    assert_eq!(end.failed(&too_much), Some(ErrorCode::FLOW_CONTROL_ERROR));
}

#[test]
fn padding_is_given_back_at_once() {
    let mut end = End::server();
    let key = end.open(1);
    let mut padded = vec![255];
    padded.extend([0; 256]);
    for _ in 0..200 {
        let events = end.feed(&data(1, flag::PADDED, &padded));
        assert!(matches!(&events[..], [Event::Data { data, .. }] if data.len() == 1));
        end.0.release(key, 1);
    }
    assert!(end.frames().iter().any(|frame| frame.stream == 1));
}

#[test]
fn what_is_sent_stays_within_the_windows() {
    let mut end = End::server();
    end.feed(&settings(&[(4, 10), (5, 16_384)]));
    let key = end.open(1);
    end.frames();
    let mut body = Bytes::from_static(b"0123456789abcdef");
    assert_eq!(end.0.send_data(key, &mut body, true, 4), Sent::Full);
    assert_eq!(
        end.0.send_data(key, &mut body, true, 1000),
        Sent::StreamBlocked
    );
    assert!(!end.may_send(key));
    let sent: Vec<_> = end
        .frames()
        .into_iter()
        .map(|frame| frame.payload)
        .collect();
    assert_eq!(sent, [b"0123".to_vec(), b"456789".to_vec()]);
    // The window may go under zero; then more is needed (RFC 9113, section 6.9.2).
    end.feed(&settings(&[(4, 5)]));
    assert!(end.feed(&window_update(1, 5)).is_empty() || !end.may_send(key));
    let events = end.feed(&window_update(1, 3));
    assert!(matches!(events[..], [Event::Writable(Some(k))] if k == key));
    assert_eq!(
        end.0.send_data(key, &mut body, true, 1000),
        Sent::StreamBlocked
    );
    let events = end.feed(&settings(&[(4, 1000)]));
    assert!(matches!(events[..], [Event::Writable(None)]));
    assert_eq!(end.0.send_data(key, &mut body, true, 1000), Sent::All);
    let last = end.frames().pop().unwrap();
    assert_eq!(
        (last.flags, &last.payload[..]),
        (flag::END_STREAM, &b"def"[..])
    );
}

#[test]
fn the_connections_window_bounds_all_streams() {
    let mut end = End::server();
    end.feed(&settings(&[(4, 1_000_000)]));
    let (first, second) = (end.open(1), end.open(3));
    let mut body = Bytes::from(vec![0; 100_000]);
    let sent = end.0.send_data(first, &mut body, true, usize::MAX);
    assert_eq!(
        (sent, body.len()),
        (Sent::ConnectionBlocked, 100_000 - 65_535)
    );
    assert!(!end.may_send(second));
    let events = end.feed(&window_update(0, 100_000));
    assert!(matches!(events[..], [Event::Writable(None)]));
    assert_eq!(
        end.0.send_data(first, &mut body, true, usize::MAX),
        Sent::All
    );
    assert!(
        end.frames()
            .iter()
            .all(|frame| frame.payload.len() <= 16_384)
    );
}

#[test]
fn a_long_head_goes_on_in_continuation_frames() {
    let mut end = End::server();
    let key = end.open(1);
    let mut head = ResponseHead::new(200);
    head.headers.append("x-large", vec![b'~'; 40_000]);
    end.0.send_head(key, &head, &[], true);
    let frames = end.frames();
    let kinds: Vec<_> = frames
        .iter()
        .map(|frame| (frame.kind, frame.flags))
        .collect();
    assert_eq!(kinds[0], (kind::HEADERS, flag::END_STREAM));
    assert!(kinds.len() > 2);
    assert_eq!(kinds.last(), Some(&(kind::CONTINUATION, END_HEADERS)));
    assert!(
        kinds[1..kinds.len() - 1]
            .iter()
            .all(|kind| *kind == (kind::CONTINUATION, 0))
    );
}

#[test]
fn heads_that_repeat_are_the_same() {
    let mut end = End::server();
    let mut seen = Vec::new();
    for stream in [1, 3, 5] {
        let events = end.feed(&headers(stream, WHOLE, &post_with(&[("x-a", "1")])));
        let Some(Event::Request { head, .. }) = events.into_iter().next() else {
            panic!("no request");
        };
        assert_eq!(head.method, HttpMethod::Post);
        seen.push(head);
    }
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn small_payloads_do_not_keep_what_they_were_read_into() {
    let mut end = End::server();
    end.open(1);
    let mut input = BytesMut::with_capacity(64 * 1024);
    input.extend_from_slice(&data(1, 0, &[1; 100]));
    input.extend_from_slice(&data(1, 0, &[2; 16_384]));
    let range = input.as_ptr_range();
    let mut inside = Vec::new();
    while let Some(Event::Data { data, .. }) = end.0.receive(&mut input) {
        inside.push(range.contains(&data.as_ptr()));
    }
    assert_eq!(inside, [false, true]);
}

#[test]
fn the_least_size_of_the_header_table_is_told_too() {
    let mut end = End::server();
    let key = end.open(1);
    end.feed(&settings(&[(1, 0), (1, 4096)]));
    end.frames();
    end.0.send_head(key, &ResponseHead::new(200), &[], true);
    let head = end.frames().remove(0);
    // Size updates to 0 and to 4096, and status 200 (RFC 7541, section 4.2).
    assert_eq!(head.payload, [0x20, 0x3f, 0xe1, 0x1f, 0x88]);
}
