//! What an attack is.

use std::future::Future;
use std::pin::Pin;

use crate::arena::Arena;

/// One round of an attack: what it sent, in words, or what it found.
pub(crate) type Round = Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;

/// What is attacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Against {
    /// `quill demo` as it comes.
    Demo,
    /// `quill demo` that may have this many descriptors.
    DemoWithDescriptors(u64),
    /// `quill demo` that waits so many seconds for the rest of a request.
    DemoWithPatience(u64),
    /// A server with TLS and the same defaults.
    Tls,
    /// A server that lets an address have [`ADDRESS_CONNECTIONS`] connections.
    OfAddresses,
    /// `quill call`, which the attack starts itself.
    Call,
}

/// Connections that one address may have, where that is attacked.
pub(crate) const ADDRESS_CONNECTIONS: usize = 32;

/// How an attack spends its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// As fast as it can, one attack after another, for a share of the time.
    Busy,
    /// Mostly waiting, beside the others, for so many seconds a round.
    Patient(u64),
}

/// An attack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    /// What it sends, for the list and the table.
    pub(crate) sends: &'static str,
    pub(crate) against: Against,
    pub(crate) pace: Pace,
    /// Most memory the victim may have at any time.
    pub(crate) memory_mib_max: u64,
    pub(crate) round: fn(Arena) -> Round,
}

impl Attack {
    /// An attack on `quill demo` as fast as can be, through which every good
    /// call is answered.
    pub(crate) const fn new(
        name: &'static str,
        sends: &'static str,
        round: fn(Arena) -> Round,
    ) -> Self {
        Self {
            name,
            sends,
            against: Against::Demo,
            pace: Pace::Busy,
            memory_mib_max: 128,
            round,
        }
    }

    pub(crate) const fn against(mut self, against: Against) -> Self {
        self.against = against;
        self
    }

    pub(crate) const fn patient(mut self, seconds: u64) -> Self {
        self.pace = Pace::Patient(seconds);
        self
    }

    pub(crate) const fn memory_mib_max(mut self, mib: u64) -> Self {
        self.memory_mib_max = mib;
        self
    }
}
