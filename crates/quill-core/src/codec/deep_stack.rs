//! Stack for work that recurses as deep as a peer's message nests.

use std::io;
use std::panic;
use std::thread;

/// What one level may take of the stack. A message of 50 fields takes 21 KiB in
/// a build without optimisation, and more fields take more.
const LEVEL_BYTES: usize = 256 * 1024;

/// So many levels fit on the stack that a runtime's thread has, 2 MiB.
pub(super) const LEVELS_INLINE: u32 = 6;

/// Runs `work`, which recurses `levels` deep: here, or on a thread with a stack
/// for it, while this one waits. Of such a stack only what is used takes memory.
///
/// # Errors
/// There is no thread to be had.
pub(super) fn with_levels<T: Send>(
    levels: usize,
    work: impl FnOnce() -> T + Send,
) -> io::Result<T> {
    if levels <= LEVELS_INLINE as usize {
        return Ok(work());
    }
    thread::scope(|scope| {
        let stack_bytes = levels.saturating_mul(LEVEL_BYTES);
        let deep = thread::Builder::new()
            .name("quill-deep".to_owned())
            .stack_size(stack_bytes)
            .spawn_scoped(scope, work)?;
        deep.join().or_else(|panic| panic::resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recurse(levels: usize) -> usize {
        let frame = std::hint::black_box([levels as u8; 100 * 1024]);
        if levels == 0 {
            return usize::from(frame[0]);
        }
        recurse(levels - 1) + 1
    }

    #[test]
    fn every_level_has_its_stack() {
        for levels in [0, 6, 7, 128] {
            assert_eq!(with_levels(levels, || recurse(levels)).unwrap(), levels);
        }
    }

    #[test]
    fn a_panic_comes_back() {
        let caught = panic::catch_unwind(|| with_levels(7, || -> usize { panic!("deep") }));
        assert!(caught.is_err());
    }
}
