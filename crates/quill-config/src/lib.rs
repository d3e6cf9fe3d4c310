//! Settings from a YAML file and the environment, for whoever deploys a program.
//!
//! A type that serde can read is the list of the keys. [`Sources`] are the file and
//! the environment's variables, of which the latter win; [`Sources::read`] makes the
//! value of them, or a [`ConfigError`] that says where a key stands (file and line, or
//! the variable), what is wrong with it and what is allowed. A key that the type does
//! not have is refused, with the nearest that it has.
//!
//! ```
//! use quill_config::{Size, Sources, Time};
//! use serde::Deserialize;
//!
//! #[derive(Debug, Default, Deserialize)]
//! #[serde(default, deny_unknown_fields)]
//! struct Settings {
//!     limits: Limits,
//! }
//!
//! #[derive(Debug, Default, Deserialize)]
//! #[serde(default, deny_unknown_fields)]
//! struct Limits {
//!     body: Option<Size>,
//!     timeout: Option<Time>,
//! }
//!
//! let file = Sources::text("app.yaml", "limits:\n  body: 4MiB\n  timeout: 30s\n");
//! let read = file.with_variables("APP_", [("APP_LIMITS__BODY", "1MiB")]);
//! let settings: Settings = read.read()?.value;
//! assert_eq!(settings.limits.body.map(Size::bytes), Some(1024 * 1024));
//!
//! let typo = Sources::text("app.yaml", "limits:\n  bodi: 4MiB\n");
//! assert_eq!(
//!     typo.read::<Settings>().unwrap_err().to_string(),
//!     "app.yaml:2: limits.bodi: there is no such key; did you mean limits.body?",
//! );
//! # Ok::<(), quill_config::ConfigError>(())
//! ```

mod error;
mod keys;
mod nearest;
mod node;
mod reader;
mod sources;
mod units;
mod variables;

pub use error::ConfigError;
pub use keys::{Key, keys};
pub use sources::{Read, Sources};
pub use units::{OrOff, Size, Time};
