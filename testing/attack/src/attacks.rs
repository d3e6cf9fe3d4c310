//! The attacks.

mod bodies;
mod bytes;
mod call;
mod call_answers;
mod crlf;
mod deadlines;
mod floods;
mod handshakes;
mod headers;
mod quill_frames;
mod sockets;
mod streams;
mod unfinished;
mod windows;

use crate::attack::{Against, Attack};

/// What a server waits for the rest of a request, in seconds, that is to wait in vain.
const PATIENCE: u64 = 2;
/// Descriptors of a server that is to run out of them.
const FEW_DESCRIPTORS: u64 = 64;

/// An `async fn` as what an [`Attack`] holds.
macro_rules! round {
    ($function:path) => {
        |arena| Box::pin($function(arena))
    };
}

/// Every attack, in the order of the table.
pub(crate) const ALL: &[Attack] = &[
    Attack::new(
        "random-bytes",
        "random bytes, bare and behind good beginnings",
        round!(bytes::random),
    ),
    Attack::new(
        "prefixes",
        "every prefix of good requests in each protocol",
        round!(bytes::prefixes),
    ),
    Attack::new(
        "rapid-reset",
        "streams that are reset at once",
        round!(floods::rapid_reset),
    ),
    Attack::new(
        "made-you-reset",
        "streams that the server must reset",
        round!(floods::made_you_reset),
    ),
    Attack::new(
        "continuation",
        "header blocks without an end",
        round!(floods::continuation),
    ),
    Attack::new(
        "empty-frames",
        "empty DATA, padding alone, PRIORITY, unknown frames",
        round!(floods::empty_frames),
    ),
    Attack::new(
        "settings",
        "SETTINGS, answers read and not",
        round!(floods::settings_frames),
    ),
    Attack::new("ping", "PING, answers read and not", round!(floods::ping)),
    Attack::new(
        "zero-window",
        "endless answers into windows of nothing",
        round!(windows::zero),
    ),
    Attack::new(
        "dribble",
        "DATA of one byte each to handlers that do not read",
        round!(windows::dribble),
    )
    .patient(8),
    Attack::new(
        "window-increments",
        "increments of 0, over 2^31-1, and of one byte",
        round!(windows::increments),
    ),
    Attack::new(
        "hpack",
        "table bombs, endless integers, size updates, bad Huffman",
        round!(headers::hpack),
    ),
    Attack::new(
        "many-fields",
        "100,000 fields in heads, queries, JSON, protobuf, METADATA",
        round!(headers::many_fields),
    ),
    Attack::new(
        "slow-headers",
        "heads and prefaces, a byte at a time",
        round!(headers::slow),
    )
    .patient(15),
    Attack::new(
        "slow-bodies",
        "bodies a byte at a time, in each protocol",
        round!(bodies::slow),
    )
    .patient(6),
    Attack::new(
        "stalled-bodies",
        "bodies that stop half-way, against --receive-timeout 2s",
        round!(bodies::stalled),
    )
    .against(Against::DemoWithPatience(PATIENCE))
    .patient(6),
    Attack::new(
        "slow-readers",
        "endless answers read 100 bytes at a time",
        round!(streams::slow_readers),
    )
    .patient(6)
    // 100 connections with 256 KiB of answers and 64 KiB on the way to the socket
    // each, twice for what grows by doubling, beside the 24 MiB of a server at rest.
    .memory_mib_max(96),
    Attack::new(
        "stopped-readers",
        "echoes and pipelined answers that nobody reads",
        round!(streams::stopped_readers),
    ),
    Attack::new(
        "idle",
        "10,000 connections that do nothing",
        round!(sockets::idle),
    )
    .patient(15)
    .memory_mib_max(256),
    Attack::new(
        "emfile",
        "120 connections to a server with 64 descriptors",
        round!(sockets::too_many),
    )
    .against(Against::DemoWithDescriptors(FEW_DESCRIPTORS))
    .patient(6),
    Attack::new(
        "one-address",
        "connections of one address, against connections_per_ip_max 32",
        round!(sockets::of_one_address),
    )
    .against(Against::OfAddresses),
    Attack::new(
        "bombs",
        "64 MiB of zeros in each encoding and protocol",
        round!(bodies::bombs),
    ),
    Attack::new(
        "nesting",
        "JSON and protobuf nested 100,000 deep and more",
        round!(bodies::nesting),
    ),
    Attack::new(
        "tls",
        "bad, cut and endless handshakes",
        round!(handshakes::bad),
    )
    .against(Against::Tls),
    Attack::new(
        "vanish",
        "clients that vanish in the middle of streams",
        round!(streams::vanish),
    ),
    Attack::new(
        "cr-lf",
        "CR and LF in error messages, metadata, names and paths",
        round!(crlf::smuggle),
    ),
    Attack::new(
        "quill-frames",
        "floods of CREDIT, METADATA and empty frames",
        round!(quill_frames::floods),
    ),
    Attack::new(
        "deadlines",
        "deadlines of eleven years and more",
        round!(deadlines::eleven_years),
    ),
    Attack::new(
        "unfinished",
        "250 large messages that never end on each connection",
        round!(unfinished::messages),
    )
    .patient(8)
    // 256 MiB, and 30 of a server at rest and of unread bytes: some 290 where memory goes
    // back at once. What was let go of in the last tenth of a second comes on top: 40 so far,
    // and more on a machine that sends faster.
    .memory_mib_max(416),
    Attack::new(
        "quill-call",
        "hostile descriptor sets, reflection and answers to quill call",
        round!(call::hostile),
    )
    .against(Against::Call)
    .patient(20)
    .memory_mib_max(384),
];
