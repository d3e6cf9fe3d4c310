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
//! Names are those of the `.proto` file, methods and modules in snake case. A
//! keyword is written raw (`r#type`). Where Rust or another item has taken a
//! name already, a `_` follows it: a message `bool` is `bool_`, `Self` is
//! `Self_`, the method `Connect` of a client is `connect_`, and what a message
//! `lower` contains is in the module `lower_`. Names of which no Rust can be
//! made, such as `_`, are errors that show where they are.
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
mod rust_names;
mod schema;
mod service;
mod shadow;
mod texts;
mod unnameable;
mod write;

pub use builder::{Builder, compile};
pub use builtin::BUILTIN_PROTOS;
pub use error::Error;
pub use package::PackageFile;
pub use plugin::answer;
pub use schema::Schema;
pub use write::Emit;
