//! What keeps the keys of limiters apart.

use std::borrow::Cow;
use std::sync::Arc;

/// Keeps the budgets of equal keys apart.
///
/// Limiters that share a backend share the budget of an equal key, unless they
/// are given different namespaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    id: u64,
    name: Name,
}

#[derive(Debug, Clone)]
enum Name {
    Static(&'static str),
    Shared(Arc<str>),
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Name {}

impl Name {
    fn as_str(&self) -> &str {
        match self {
            Self::Static(name) => name,
            Self::Shared(name) => name,
        }
    }
}

impl Namespace {
    /// The one that limiters have unless told otherwise; its name is empty.
    pub const DEFAULT: Self = Self {
        id: 0,
        name: Name::Static(""),
    };

    /// A namespace of this name. Equal names are one namespace.
    #[must_use]
    pub fn new(name: impl Into<Cow<'static, str>>) -> Self {
        let name = match name.into() {
            Cow::Borrowed(name) => Name::Static(name),
            Cow::Owned(name) => Name::Shared(name.into()),
        };
        Self {
            id: fnv1a(name.as_str()),
            name,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// A 64-bit hash of the name, 0 of the default one. Names are the
    /// operator's choice, not a client's, so it needs no secret.
    #[must_use]
    #[inline]
    pub const fn id(&self) -> u64 {
        self.id
    }
}

impl Default for Namespace {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// FNV-1a, with the empty name at 0.
fn fnv1a(name: &str) -> u64 {
    if name.is_empty() {
        return 0;
    }
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
