//! What became of a connection, as its peer sees it.

use std::collections::BTreeSet;

/// The payload of the PING that every sequence ends with: its answer says that the
/// connection has come through.
pub(crate) const LAST_PING: [u8; 8] = *b"the end!";

const RST_STREAM: u8 = 3;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const ACK: u8 = 1;
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// The last PING was not answered.
    pub(crate) is_over: bool,
    /// What GOAWAY said.
    pub(crate) code: Option<u32>,
    /// Streams that were reset, and why.
    pub(crate) resets: BTreeSet<(u32, u32)>,
}

impl Verdict {
    /// Whether a stream was reset, for whatever reason.
    pub(crate) fn has_reset(&self, stream: u32) -> bool {
        self.resets.iter().any(|reset| reset.0 == stream)
    }

    /// Reads what was answered.
    pub(crate) fn of(output: &[u8]) -> Self {
        let mut verdict = Self {
            is_over: true,
            ..Self::default()
        };
        for (kind, flags, stream, payload) in frames(output) {
            match kind {
                RST_STREAM => {
                    verdict.resets.insert((stream, number(payload)));
                }
                PING if flags & ACK != 0 && payload == LAST_PING => verdict.is_over = false,
                GOAWAY => verdict.code = Some(number(&payload[4..])),
                _ => {}
            }
        }
        verdict
    }
}

/// Whether what was answered so far has the answer to the last PING.
pub(crate) fn is_answered(output: &[u8]) -> bool {
    !Verdict::of(output).is_over
}

/// How many HEADERS frames were sent.
pub(crate) fn heads(output: &[u8]) -> usize {
    frames(output).filter(|(kind, ..)| *kind == 1).count()
}

fn frames(output: &[u8]) -> impl Iterator<Item = (u8, u8, u32, &[u8])> {
    let mut rest = output.strip_prefix(PREFACE).unwrap_or(output);
    std::iter::from_fn(move || {
        let (header, tail) = rest.split_first_chunk::<9>()?;
        let [a, b, c, kind, flags, stream @ ..] = *header;
        let (payload, tail) = tail.split_at_checked(number(&[0, a, b, c]) as usize)?;
        rest = tail;
        Some((kind, flags, u32::from_be_bytes(stream), payload))
    })
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(*bytes.first_chunk().expect("four bytes"))
}
