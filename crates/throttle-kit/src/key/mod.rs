//! Who is limited: keys, and the namespaces that keep them apart.

mod hashed;
mod key_buf;
mod key_ref;
mod kind;
mod namespace;
mod of_std;

pub use hashed::Hashed;
pub use key_buf::KeyBuf;
pub use key_ref::KeyRef;
pub(crate) use kind::KINDS;
pub use kind::{Key, Kind};
pub use namespace::Namespace;
pub use of_std::IpBytes;
