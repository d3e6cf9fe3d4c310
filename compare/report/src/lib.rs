//! How every comparison measures and reports: times interleaved in one run,
//! instruction counts by callgrind, one Markdown table, rows as JSON.

mod instructions;
mod report;
mod timing;

pub use self::instructions::{allocations_per_turn, can_count, counted, instructions_per_turn};
pub use self::report::{Arguments, Goal, Report};
pub use self::timing::{Contest, Subject};
