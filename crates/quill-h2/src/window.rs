//! Flow-control windows (RFC 9113, section 5.2).

/// No window may be larger (RFC 9113, section 6.9.1).
pub(crate) const WINDOW_BYTES_MAX: u32 = 0x7fff_ffff;

/// What every window begins with (RFC 9113, section 6.9.2).
pub(crate) const WINDOW_BYTES_DEFAULT: u32 = 65_535;

/// What the peer may send: on a stream, or on the connection.
///
/// Bytes that came are held until the application has read them, and only then
/// is their room given again, half a window at a time. A window grows to twice
/// its size whenever a whole half was read and nothing is left waiting: a reader
/// that keeps up gets what its bandwidth and delay need within a few round
/// trips, and one that does not holds no more than it began with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveWindow {
    /// What the peer may still send; under zero after settings shrank it.
    open: i64,
    held: u32,
    released: u32,
    target: u32,
    target_max: u32,
}

impl ReceiveWindow {
    pub(crate) fn new(open: u32, target: u32, target_max: u32) -> Self {
        Self {
            open: i64::from(open),
            held: 0,
            released: 0,
            target,
            target_max: target_max.max(target),
        }
    }

    /// Takes bytes that came; whether there was room for them.
    pub(crate) fn receive(&mut self, bytes: u32) -> bool {
        if i64::from(bytes) > self.open {
            return false;
        }
        self.open -= i64::from(bytes);
        self.held = self.held.saturating_add(bytes);
        true
    }

    /// Whether anything may come.
    pub(crate) fn is_open(&self) -> bool {
        self.open > 0
    }

    /// Bytes that came and were not released.
    pub(crate) fn held(&self) -> u32 {
        self.held
    }

    /// Gives the room of read bytes again; the increment to announce, if it is time.
    pub(crate) fn release(&mut self, bytes: u32) -> Option<u32> {
        let bytes = bytes.min(self.held);
        self.held -= bytes;
        self.released = self.released.saturating_add(bytes);
        if self.released == 0 || self.released < self.target / 2 {
            return None;
        }
        let mut increment = std::mem::take(&mut self.released);
        if self.held == 0 && self.target < self.target_max {
            let grown = self.target.saturating_mul(2).min(self.target_max);
            increment = increment.saturating_add(grown - self.target);
            self.target = grown;
        }
        self.open += i64::from(increment);
        Some(increment)
    }

    /// Forgets bytes that nobody will read, without room for others in their place.
    pub(crate) fn drop_held(&mut self, bytes: u32) {
        self.held = self.held.saturating_sub(bytes);
    }

    /// Moves the window, as a new SETTINGS_INITIAL_WINDOW_SIZE does once it is
    /// acknowledged.
    pub(crate) fn shift(&mut self, by: i64) {
        self.open += by;
    }
}

/// What this side may send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendWindow(i32);

impl SendWindow {
    pub(crate) fn new(bytes: u32) -> Self {
        Self(i32::try_from(bytes).unwrap_or(i32::MAX))
    }

    pub(crate) fn open(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }

    /// Uses some of what is [`open`](Self::open).
    pub(crate) fn take(&mut self, bytes: usize) {
        let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
        self.0 = self.0.saturating_sub(bytes);
    }

    /// Moves the window; `false` when that takes it over 2^31-1.
    pub(crate) fn shift(&mut self, by: i64) -> bool {
        match i32::try_from(i64::from(self.0) + by) {
            Ok(moved) => {
                self.0 = moved;
                true
            }
            Err(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_given_again_half_a_window_at_a_time() {
        let mut window = ReceiveWindow::new(100, 100, 100);
        assert!(window.receive(80));
        assert!(!window.receive(21));
        assert_eq!(window.release(49), None);
        assert_eq!(window.release(1), Some(50));
        assert_eq!(window.held(), 30);
        // No more is given than came.
        assert_eq!(window.release(1000), None);
        assert!(window.receive(70));
    }

    #[test]
    fn a_window_grows_only_for_a_reader_that_keeps_up() {
        let mut window = ReceiveWindow::new(100, 100, 300);
        assert!(window.receive(100));
        assert_eq!(window.release(50), Some(50));
        assert_eq!(window.release(50), Some(150));
        assert!(window.receive(200));
        assert_eq!(window.release(200), Some(300));
        assert!(window.receive(300));
        assert!(!window.receive(1));
        assert_eq!(window.release(300), Some(300));
    }

    #[test]
    fn a_send_window_never_exceeds_its_maximum() {
        let mut window = SendWindow::new(10);
        window.take(10);
        assert_eq!(window.open(), 0);
        assert!(window.shift(-5));
        assert_eq!(window.open(), 0);
        assert!(window.shift(i64::from(WINDOW_BYTES_MAX)));
        assert!(!window.shift(i64::from(WINDOW_BYTES_MAX)));
    }
}
