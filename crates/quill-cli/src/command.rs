//! The subcommands, one file each.

pub(crate) mod bench;
pub(crate) mod call;
pub(crate) mod compat;
pub(crate) mod demo;
