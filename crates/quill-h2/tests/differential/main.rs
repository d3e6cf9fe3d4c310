//! Whole connections against two other implementations: the `h2` crate, and nghttp2
//! where its library is installed. Each gets the same random frames, right and wrong
//! ones; where both others come to the same end, so do we.

mod frames;
mod h2_crate;
mod nghttp2;
mod ours;
#[path = "../python/mod.rs"]
mod python;
mod verdict;

use frames::{Numbers, to_client, to_server};
use nghttp2::Nghttp2;
use verdict::Verdict;

const STREAM_CLOSED: u32 = 5;

/// Sequences of frames a role.
const CASES: u64 = 5000;

#[test]
fn a_server_ends_as_both_others_do() {
    let Some(mut nghttp2) = Nghttp2::start() else {
        return;
    };
    compare(to_server, |bytes| {
        let others = [h2_crate::server(bytes), nghttp2.ask("server", bytes)];
        (ours::server(bytes), others)
    });
}

#[test]
fn a_client_ends_as_both_others_do() {
    let Some(mut nghttp2) = Nghttp2::start() else {
        return;
    };
    compare(to_client, |bytes| {
        let others = [h2_crate::client(bytes), nghttp2.ask("client", bytes)];
        (ours::client(bytes), others)
    });
}

/// Counts of what was compared, so that a test which compares nothing fails.
#[derive(Debug, Default)]
struct Tally {
    agreed: u64,
    failed: u64,
    reset: u64,
}

fn compare(
    case: fn(&mut Numbers) -> frames::Case,
    mut run: impl FnMut(&[u8]) -> (Verdict, [Verdict; 2]),
) {
    let mut tally = Tally::default();
    let mut differences = Vec::new();
    for seed in 1..=CASES {
        let case = case(&mut Numbers::new(seed));
        let (ours, [h2, nghttp2]) = run(&case.bytes);
        if let Some(difference) = difference(&ours, &h2, &nghttp2, &mut tally) {
            differences.push(format!(
                "seed {seed}: {difference}\n  ours {ours:?}\n  h2 {h2:?}\n  nghttp2 {nghttp2:?}\n{}",
                case.description()
            ));
        }
    }
    let count = differences.len();
    differences.truncate(20);
    assert!(count == 0, "{count} differ\n{}", differences.join("\n"));
    let Tally {
        agreed,
        failed,
        reset,
    } = tally;
    assert!(
        agreed > CASES / 2 && failed > CASES / 10 && reset > CASES / 50,
        "{tally:?}"
    );
}

/// In what we differ from what the two others have in common.
fn difference(
    ours: &Verdict,
    h2: &Verdict,
    nghttp2: &Verdict,
    tally: &mut Tally,
) -> Option<String> {
    // Two that end for different reasons do not agree.
    if h2.is_over != nghttp2.is_over || (h2.is_over && h2.code != nghttp2.code) {
        return None;
    }
    tally.agreed += 1;
    if h2.is_over {
        tally.failed += 1;
        // RFC 9113, section 5.4.1: what is an error of a stream may end the connection.
        // Both do so where we reset the stream.
        let mut resets = ours.resets.difference(&h2.resets);
        let is_same = (ours.is_over && ours.code == h2.code)
            || resets.any(|reset| Some(reset.1) == h2.code && !nghttp2.resets.contains(reset));
        return (!is_same).then(|| "how the connection ends".into());
    }
    if ours.is_over {
        return Some("whether the connection ends".into());
    }
    for reset in h2.resets.intersection(&nghttp2.resets) {
        tally.reset += 1;
        if !ours.resets.contains(reset) {
            return Some(format!("the reset of stream {}", reset.0));
        }
    }
    // RFC 9113, section 5.1: a frame for a closed stream may be answered with
    // STREAM_CLOSED. Whether it is depends on how long one remembers the stream; and one
    // that is leaving, since the peer does, no longer resets streams.
    if h2.code.or(nghttp2.code).is_some() {
        return None;
    }
    let unexpected = |reset: &&(u32, u32)| {
        reset.1 != STREAM_CLOSED && !h2.has_reset(reset.0) && !nghttp2.has_reset(reset.0)
    };
    let (stream, _) = ours.resets.iter().find(unexpected)?;
    Some(format!("stream {stream}, which neither resets"))
}
