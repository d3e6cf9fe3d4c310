//! What the targets for calls have in common.

mod cuts;
mod generated;

pub use cuts::{KINDS, put_lines, read_at_every_cut};
pub use generated::{FILE_DESCRIPTOR_SET, Kinds};
