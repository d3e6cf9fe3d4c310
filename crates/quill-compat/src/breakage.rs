//! One thing that breaks.

use std::fmt;

use crate::place::Place;
use crate::rule::Rule;

/// A change that breaks what worked before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Break {
    /// The rule that it is against.
    pub rule: Rule,
    /// Where it is in the new schema: what changed, or what something is
    /// missing in; `None` when that is gone as well.
    pub place: Option<Place>,
    /// Where it was in the old schema, unless it is new.
    pub old_place: Option<Place>,
    /// What happened, such as `field 2 "count" of shop.v1.Order changed its type`.
    pub message: String,
    /// What was there, unless nothing was.
    pub was: Option<String>,
    /// What is there, unless it is gone.
    pub now: Option<String>,
    /// What to do about it.
    pub help: String,
}

impl Break {
    /// The place to show: in the new schema, or else in the old one.
    #[must_use]
    pub fn shown_place(&self) -> Option<&Place> {
        self.place.as_ref().or(self.old_place.as_ref())
    }
}

/// `message: was X, is Y`.
impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match (&self.was, &self.now) {
            (Some(was), Some(now)) => write!(f, ": was {was}, is {now}"),
            (Some(was), None) => write!(f, ": was {was}"),
            (None, Some(now)) => write!(f, ": is {now}"),
            (None, None) => Ok(()),
        }
    }
}
