//! A key on its way to a store.

use super::{Kind, Namespace};

/// A key as a store sees it.
#[derive(Debug, Clone, Copy)]
pub struct KeyRef<'a> {
    /// Keeps equal keys of different limiters apart.
    pub namespace: &'a Namespace,
    /// What the bytes are.
    pub kind: Kind,
    /// The key's canonical bytes.
    pub bytes: &'a [u8],
}

impl<'a> KeyRef<'a> {
    /// A key of the namespace that limiters have unless told otherwise.
    #[must_use]
    pub const fn new(kind: Kind, bytes: &'a [u8]) -> Self {
        Self {
            namespace: &Namespace::DEFAULT,
            kind,
            bytes,
        }
    }

    /// Appends a form that no other key of any namespace has: the namespace's
    /// length and name, the kind's letter, and the bytes, parted by colons.
    pub fn write_canonical(&self, out: &mut Vec<u8>) {
        let name = self.namespace.name().as_bytes();
        out.extend_from_slice(name.len().to_string().as_bytes());
        out.push(b':');
        out.extend_from_slice(name);
        out.extend_from_slice(&[b':', self.kind.letter(), b':']);
        out.extend_from_slice(self.bytes);
    }
}
