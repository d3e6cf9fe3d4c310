//! What a peer may not do too often. Each flood stops at its own limit.

use super::*;
use crate::config::{Limits, Rate};

const CALM: Option<ErrorCode> = Some(ErrorCode::ENHANCE_YOUR_CALM);

/// All limits out of the way but those that a test sets.
fn limits(set: impl FnOnce(&mut Limits)) -> Config {
    let endless = Rate {
        burst: u32::MAX,
        per_second: 0,
    };
    let mut config = Config {
        limits: Limits {
            unseen_resets: endless,
            resets: endless,
            stream_errors: endless,
            continuations_max: u32::MAX,
            empty_data: endless,
            settings: endless,
            pings: endless,
            small_window_updates: endless,
            ignored_frames: endless,
            table_evictions: endless,
        },
        ..Config::default()
    };
    set(&mut config.limits);
    config
}

const TEN: Rate = Rate {
    burst: 10,
    per_second: 0,
};

/// Ten pass, the eleventh ends the connection.
fn holds(mut end: End, mut flood: impl FnMut(u32) -> Vec<u8>) {
    for turn in 0..10 {
        assert_eq!(end.failed_at(&flood(turn)), None, "{turn}");
    }
    assert_eq!(end.failed_at(&flood(10)), CALM);
}

impl End {
    fn failed_at(&mut self, bytes: &[u8]) -> Option<ErrorCode> {
        let events = self.feed(bytes);
        let failed = events.iter().find_map(|event| match event {
            Event::Failed(error) => Some(error.code),
            _ => None,
        });
        // What the application has seen it has seen.
        for event in &events {
            if let Event::Request { key, .. } = event {
                self.0.accept(*key);
            }
        }
        failed
    }
}

#[test]
fn streams_that_are_reset_as_they_are_opened() {
    let end = End::server_with(limits(|limits| limits.unseen_resets = TEN));
    holds(end, |turn| {
        let stream = 2 * turn + 1;
        [
            headers(stream, WHOLE, POST),
            reset(stream, ErrorCode::CANCEL),
        ]
        .concat()
    });
}

#[test]
fn streams_that_are_reset_before_their_end() {
    let mut end = End::server_with(limits(|limits| limits.resets = TEN));
    for stream in 0..11 {
        end.open(2 * stream + 1);
    }
    holds(end, |turn| reset(2 * turn + 1, ErrorCode::CANCEL));
}

#[test]
fn streams_that_break_a_rule() {
    let stream_errors = || End::server_with(limits(|limits| limits.stream_errors = TEN));
    let block = post_with(&[("connection", "close")]);
    holds(stream_errors(), |turn| headers(2 * turn + 1, WHOLE, &block));
    // "MadeYouReset": each is opened well and broken after.
    holds(stream_errors(), |turn| {
        let stream = 2 * turn + 1;
        [headers(stream, END_HEADERS, POST), window_update(stream, 0)].concat()
    });
    // Heads that are too large are answered, and count as well.
    let mut config = limits(|limits| limits.stream_errors = TEN);
    config.headers_bytes_max = 100;
    let block = post_with(&[("x", &"a".repeat(100))]);
    holds(End::server_with(config), |turn| {
        headers(2 * turn + 1, WHOLE, &block)
    });
}

#[test]
fn streams_over_the_number_that_may_be_open() {
    let mut config = limits(|limits| limits.stream_errors = TEN);
    config.streams_max = 1;
    let mut end = End::server_with(config);
    end.open(1);
    holds(end, |turn| headers(2 * turn + 3, END_HEADERS, POST));
}

#[test]
fn a_block_of_many_continuations() {
    let mut end = End::server_with(limits(|limits| limits.continuations_max = 10));
    end.feed(&headers(1, flag::END_STREAM, POST));
    holds(end, |_| frame(kind::CONTINUATION, 0, 1, &[]));
}

#[test]
fn a_block_without_an_end() {
    let mut end = End::server_with(limits(|_| {}));
    end.feed(&headers(1, flag::END_STREAM, POST));
    let part = frame(kind::CONTINUATION, 0, 1, &[0; 8192]);
    let mut sent = 0;
    while end.failed_at(&part).is_none() {
        sent += 8192;
        assert!(sent <= 4 * 16 * 1024);
    }
    assert!(end.0.is_failed());
}

#[test]
fn empty_data_without_an_end() {
    let mut end = End::server_with(limits(|limits| limits.empty_data = TEN));
    end.open(1);
    holds(end, |_| data(1, 0, &[]));
    let mut end = End::server_with(limits(|limits| limits.empty_data = TEN));
    end.open(1);
    holds(end, |_| data(1, flag::PADDED, &[3, 0, 0, 0]));
}

#[test]
fn settings_without_an_end() {
    // The first one counts.
    let mut end = End::server_with(limits(|limits| limits.settings = TEN));
    for _ in 0..9 {
        assert_eq!(end.failed_at(&settings(&[(4, 100)])), None);
    }
    assert_eq!(end.failed_at(&settings(&[(4, 100)])), CALM);
}

#[test]
fn pings_without_anything_else() {
    let end = End::server_with(limits(|limits| limits.pings = TEN));
    let ping = frame(kind::PING, 0, 0, &[0; 8]);
    holds(end, |_| ping.clone());
    // A peer that measures its bandwidth pings once for what it sends.
    let mut end = End::server_with(limits(|limits| limits.pings = TEN));
    end.open(1);
    for _ in 0..100 {
        let both = [data(1, 0, b"x"), ping.clone()].concat();
        assert_eq!(end.failed_at(&both), None);
    }
}

#[test]
fn small_window_updates() {
    let mut end = End::server_with(limits(|limits| limits.small_window_updates = TEN));
    end.open(1);
    holds(end, |_| window_update(1, 1));
    let end = End::server_with(limits(|limits| limits.small_window_updates = TEN));
    holds(end, |_| window_update(0, 255));
    // They may follow small messages.
    let mut end = End::server_with(limits(|limits| limits.small_window_updates = TEN));
    let key = end.open(1);
    for _ in 0..100 {
        end.0.send_data(key, &mut "small".into(), false, 100);
        let both = [window_update(1, 5), window_update(0, 5)].concat();
        assert_eq!(end.failed_at(&both), None);
    }
}

#[test]
fn frames_without_a_use() {
    let ignored = || End::server_with(limits(|limits| limits.ignored_frames = TEN));
    holds(ignored(), |turn| {
        frame(kind::PRIORITY, 0, 2 * turn + 1, &[0, 0, 0, 2, 0])
    });
    holds(ignored(), |_| frame(0xfa, 0, 0, &[0; 10]));
    holds(ignored(), |_| frame(kind::PING, flag::ACK, 0, &[0; 8]));
    let mut pinging = ignored();
    for _ in 0..100 {
        pinging.0.send_ping([1; 8]);
    }
    for _ in 0..100 {
        let pong = pinging.feed(&frame(kind::PING, flag::ACK, 0, &[1; 8]));
        assert!(matches!(pong[..], [Event::Pong(_)]));
    }
}

#[test]
fn frames_for_streams_that_are_gone() {
    // A stream that is gone, whose answer had so many bytes.
    let gone = |bytes: usize| {
        let mut end = End::server_with(limits(|limits| limits.ignored_frames = TEN));
        let key = end.open(1);
        let sent = end
            .0
            .send_data(key, &mut vec![0; bytes].into(), false, bytes);
        assert_eq!(sent, Sent::All);
        end.0.reset(key, ErrorCode::CANCEL);
        end
    };
    let late = [
        reset(1, ErrorCode::CANCEL),
        window_update(1, 10_000),
        data(1, 0, &[]),
        data(1, flag::PADDED, &[3, 0, 0, 0]),
        headers(1, WHOLE, &field("x", "1")),
    ];
    for frame in late {
        for (bytes, free) in [(0, 4), (40 * 1024, 14)] {
            let mut end = gone(bytes);
            for _ in 0..free {
                assert_eq!(end.failed_at(&frame), None);
            }
            holds(end, |_| frame.clone());
        }
    }
    // Bytes that fill the window may have been on their way.
    let mut end = gone(0);
    for _ in 0..100 {
        assert_eq!(end.failed_at(&data(1, 0, b"x")), None);
    }
}

#[test]
fn fields_that_push_each_other_out_of_the_table() {
    let mut config = limits(|limits| {
        limits.table_evictions = Rate {
            burst: 1000,
            per_second: 0,
        };
    });
    config.headers_bytes_max = 64 * 1024;
    let mut end = End::server_with(config);
    // Indexed fields that are all new: the table holds some hundred of them.
    let mut block = POST.to_vec();
    for index in 0..600u32 {
        block.extend([0x40, 1, b'x', 4]);
        block.extend(format!("{index:04}").as_bytes());
    }
    let failed = (0..10).find_map(|turn| end.failed_at(&headers(2 * turn + 1, WHOLE, &block)));
    assert_eq!(failed, CALM);
}

#[test]
fn a_head_that_grows_as_it_is_decoded() {
    let mut end = End::server_with(limits(|_| {}));
    // One long field in the table, and a block of references to it.
    let mut block = POST.to_vec();
    block.extend([0x40, 1, b'x', 0x7f, 0x81, 0x1f - 0x10]);
    let length = 127 + 1 + 128 * (0x1f - 0x10);
    block.extend(vec![b'a'; length]);
    assert_eq!(end.failed_at(&headers(1, WHOLE, &block)), None);
    let bomb = [POST, &[0xbe; 10_000]].concat();
    assert_eq!(end.failed_at(&headers(3, WHOLE, &bomb)), CALM);
}
