//! What a unary call allocates, from its bytes to those of its answer.

#[path = "support/caller.rs"]
mod caller;

use allocation_counter::measure;
use caller::{Caller, TOGETHER};

/// Allocations of a call of which 16 come at once. Its message's own are three of them:
/// its bytes, its string and the bytes of the answer.
const ALLOCATIONS_MAX: u64 = 12;

#[test]
fn a_unary_call_allocates_little() {
    const BATCHES: u32 = 50;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut caller = runtime.block_on(Caller::connect());
    let info = measure(|| {
        runtime.block_on(async {
            for _ in 0..BATCHES {
                caller.call(TOGETHER).await;
            }
        });
    });
    let calls = u64::from(BATCHES * TOGETHER);
    let count = info.count_total;
    assert!(count > calls, "the counter counts nothing: {count}");
    assert!(
        count <= ALLOCATIONS_MAX * calls,
        "{count} allocations in {calls} calls"
    );
}
