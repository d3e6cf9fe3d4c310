//! A client's end.

use super::*;
use crate::OpenError;

fn open(end: &mut End) -> Key {
    let head = RequestHead::post("/a.B/C");
    end.0.open("http", &head, &[], false).unwrap()
}

/// `:status: 200`, out of the static table.
const OK: &[u8] = &[0x88];

#[test]
fn streams_are_opened_within_the_peers_limit() {
    let mut end = End::client();
    end.feed(&settings(&[(3, 1)]));
    let key = open(&mut end);
    assert_eq!(key.id(), 1);
    let refused = end.0.open("http", &RequestHead::post("/"), &[], true);
    assert_eq!(refused, Err(OpenError::Full));
    end.0.reset(key, ErrorCode::CANCEL);
    assert_eq!(open(&mut end).id(), 3);
}

#[test]
fn interim_answers_are_passed_over_and_a_body_follows() {
    let mut end = End::client();
    let key = open(&mut end);
    assert!(
        end.feed(&headers(1, END_HEADERS, &field(":status", "103")))
            .is_empty()
    );
    let events = end.feed(&headers(1, END_HEADERS, OK));
    assert!(matches!(&events[..], [Event::Response { head, .. }] if head.status == 200));
    let events = end.feed(&data(1, flag::END_STREAM, b"x"));
    assert!(matches!(&events[..], [Event::Data { end: true, .. }]));
    // The request goes on until it has ended too.
    assert!(end.0.is_open(key));
    end.0.send_data(key, &mut Bytes::new(), true, 0);
    assert!(!end.0.is_open(key));
}

#[test]
fn answers_that_break_a_rule_end_their_stream() {
    let protocol = ErrorCode::PROTOCOL_ERROR;
    for bytes in [
        data(1, 0, b"before a head"),
        headers(1, WHOLE, &field(":status", "103")),
        headers(1, WHOLE, &field(":status", "101")),
        headers(1, WHOLE, &field("x", "1")),
        [headers(1, END_HEADERS, OK), headers(1, END_HEADERS, OK)].concat(),
        headers(1, WHOLE, &[OK, &field("content-length", "3")].concat()),
        // 304 has no body.
        [headers(1, END_HEADERS, &[0x8b]), data(1, 0, b"x")].concat(),
    ] {
        let mut end = End::client();
        open(&mut end);
        assert_eq!(end.refused(&bytes), Some((1, protocol)), "{bytes:?}");
    }
}

#[test]
fn what_comes_for_an_answer_that_has_ended_concerns_it_alone() {
    let mut end = End::client();
    end.0
        .open("http", &RequestHead::post("/"), &[], true)
        .unwrap();
    // A window that nothing more is sent through may not be overrun by settings.
    end.feed(&window_update(1, 1000));
    end.feed(&settings(&[(4, 0x7fff_ffff)]));
    assert!(!end.0.is_failed());
    assert_eq!(end.feed(&headers(1, WHOLE, OK)).len(), 1);
    let late = headers(1, WHOLE, OK);
    assert_eq!(end.refused(&late), Some((1, ErrorCode::STREAM_CLOSED)));
}

#[test]
fn the_answer_to_head_has_a_length_and_no_body() {
    let mut end = End::client();
    let mut head = RequestHead::post("/");
    head.method = HttpMethod::Other("HEAD".into());
    end.0.open("http", &head, &[], true).unwrap();
    let block = [OK, &field("content-length", "3")].concat();
    let events = end.feed(&headers(1, WHOLE, &block));
    assert!(matches!(&events[..], [Event::Response { end: true, .. }]));
}

#[test]
fn what_a_server_must_not_do_ends_the_connection() {
    for bytes in [
        headers(2, WHOLE, OK),
        headers(1, WHOLE, OK),
        frame(kind::PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2]),
        settings(&[(2, 1)]),
        data(1, 0, b"x"),
    ] {
        let mut end = End::client();
        assert_eq!(
            end.failed(&bytes),
            Some(ErrorCode::PROTOCOL_ERROR),
            "{bytes:?}"
        );
    }
}

#[test]
fn after_a_goaway_no_stream_is_opened() {
    let mut end = End::client();
    open(&mut end);
    let goaway = frame(kind::GOAWAY, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 11]);
    let events = end.feed(&goaway);
    assert!(matches!(
        events[..],
        [Event::GoAway {
            last: 0,
            code: ErrorCode::ENHANCE_YOUR_CALM
        }]
    ));
    let refused = end.0.open("http", &RequestHead::post("/"), &[], true);
    assert_eq!(refused, Err(OpenError::Closing));
}
