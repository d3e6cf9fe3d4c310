//! The `date` of answers.

use std::cell::Cell;
use std::time::{SystemTime, UNIX_EPOCH};

/// An IMF-fixdate (RFC 9110, section 5.6.7).
pub(super) type Text = [u8; 29];

thread_local! {
    /// The last second that this thread wrote, and its text.
    static LAST: Cell<(u64, Text)> = const { Cell::new((0, [0; 29])) };
}

/// The present second, as text; `None` before 1970.
pub(super) fn now() -> Option<Text> {
    let now = SystemTime::now();
    let second = now.duration_since(UNIX_EPOCH).ok()?.as_secs();
    if let Ok((last, text)) = LAST.try_with(Cell::get)
        && last == second
    {
        return Some(text);
    }
    let text = Text::try_from(httpdate::fmt_http_date(now).as_bytes()).ok()?;
    let _ = LAST.try_with(|kept| kept.set((second, text)));
    Some(text)
}
