//! What a unary call allocates, from its bytes to those of its answer.

#[path = "support/caller.rs"]
mod caller;

use allocation_counter::measure;
use caller::{Calls, Echo, Measured, TOGETHER};
use quill_server::Server;

/// Allocations of a call of which 16 come at once. Its message's own are three of them:
/// its bytes, its string and the bytes of the answer. The others are the handler's
/// future, its reply and the token of the call's end.
const ALLOCATIONS_MAX: u64 = 6;

#[test]
fn a_unary_call_allocates_little() {
    const TIMES: u32 = 100;
    let server = async || {
        let server = Server::builder().service(Echo).bind("127.0.0.1:0").await;
        server.expect("a server")
    };
    let mut measured = Measured::start(server, Calls::UNARY);
    let info = measure(|| measured.run(TIMES));
    let calls = u64::from(TIMES * TOGETHER);
    let count = info.count_total;
    assert!(count > calls, "the counter counts nothing: {count}");
    assert!(
        // Threads and timers are there for all of them.
        count <= ALLOCATIONS_MAX * calls + 100,
        "{count} allocations in {calls} calls"
    );
}
