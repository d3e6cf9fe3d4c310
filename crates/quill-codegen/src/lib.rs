//! From `.proto` to Rust, without protoc: messages, service traits, servers and
//! typed clients.
//!
//! In `build.rs`:
//!
//! ```no_run
//! quill_codegen::compile(&["proto/echo/v1/echo.proto"], &["proto"]).unwrap_or_else(|e| e.exit());
//! ```
//!
//! and in the crate `quill::include_proto!("echo.v1");`, which brings for a
//! service `EchoService` the messages, the trait `EchoService`, `EchoServer`,
//! `EchoClient`, the descriptors of the methods in the module `echo_service`,
//! and `FILE_DESCRIPTOR_SET` for reflection. [`Builder`] has the options.
//!
//! The binary `protoc-gen-quill` does the same as a plugin of protoc and buf;
//! its options are those of [`Builder::plugin_options`].

mod builder;
mod builtin;
mod diagnostic;
mod docs;
mod error;
mod identifiers;
mod json_rules;
mod names;
mod options;
mod package;
mod plugin;
mod retarget;
mod schema;
mod service;
mod shadow;
mod texts;
mod write;

pub use builder::{Builder, compile};
pub use builtin::BUILTIN_PROTOS;
pub use error::Error;
pub use package::PackageFile;
pub use plugin::answer;
pub use schema::Schema;
pub use write::Emit;
