//! What connections hold while they rest, and streams while nothing comes of them.

#[path = "support/caller.rs"]
mod caller;

use allocation_counter::measure;
use caller::{Calls, Echo, Measured};
use quill_server::Server;

const CONNECTIONS: usize = 50;

/// Bytes of a connection after some calls, and those of a stream on it. A buffer that the
/// thread keeps for the next read may be among them: 8 kB, spread over all connections.
const IDLE_BYTES_MAX: i64 = 3_100;
const STREAM_BYTES_MAX: i64 = 2_250;

#[test]
fn connections_and_streams_that_rest_hold_little() {
    let server = async || {
        let server = Server::builder().service(Echo).bind("127.0.0.1:0").await;
        server.expect("a server")
    };
    let mut measured = Measured::start(server, Calls::UNARY);
    let mut each = |what: &str, most: i64, work: fn(&mut Measured)| {
        let held = measure(|| {
            work(&mut measured);
            measured.rest();
        });
        let held = held.bytes_current / CONNECTIONS as i64;
        assert!(held > 100, "the counter counts nothing: {held}");
        assert!(held <= most, "{what} holds {held} bytes");
    };
    each("a connection", IDLE_BYTES_MAX, |measured| {
        measured.connect(CONNECTIONS);
        measured.run(6);
    });
    each("a stream", STREAM_BYTES_MAX, Measured::open_streams);
}
