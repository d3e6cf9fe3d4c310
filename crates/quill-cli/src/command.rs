//! The subcommands, one file each.

pub(crate) mod call;
pub(crate) mod demo;
