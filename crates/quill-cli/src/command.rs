//! The subcommands, one file each.

pub(crate) mod bench;
pub(crate) mod call;
pub(crate) mod compat;
pub(crate) mod demo;
pub(crate) mod explain;
pub(crate) mod generate;
pub(crate) mod inspect;
pub(crate) mod shell;
