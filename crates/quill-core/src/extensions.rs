//! Values that middleware hands to handlers.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;

type Values = HashMap<TypeId, Box<dyn Any + Send + Sync>>;

/// One value of each type, set by middleware and read by handlers. Empty until
/// the first one is set, at no cost.
#[derive(Default)]
pub struct Extensions(Option<Box<Values>>);

impl Extensions {
    /// No values; allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self(None)
    }

    /// Sets the value of its type; returns the one it replaces.
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: T) -> Option<T> {
        let values = self.0.get_or_insert_default();
        let old = values.insert(TypeId::of::<T>(), Box::new(value))?;
        old.downcast().ok().map(|old| *old)
    }

    /// The value of this type.
    #[must_use]
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.as_ref()?.get(&TypeId::of::<T>())?.downcast_ref()
    }

    /// Takes the value of this type out.
    pub fn remove<T: Send + Sync + 'static>(&mut self) -> Option<T> {
        let value = self.0.as_mut()?.remove(&TypeId::of::<T>())?;
        value.downcast().ok().map(|value| *value)
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.0.as_ref().map_or(0, |values| values.len());
        f.debug_struct("Extensions").field("len", &len).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_of_each_type() {
        let mut extensions = Extensions::new();
        assert_eq!(extensions.get::<u32>(), None);
        assert_eq!(extensions.insert(1_u32), None);
        assert_eq!(extensions.insert("text"), None);
        assert_eq!(extensions.insert(2_u32), Some(1));
        assert_eq!(extensions.get::<u32>(), Some(&2));
        assert_eq!(extensions.remove::<&str>(), Some("text"));
        assert_eq!(extensions.get::<&str>(), None);
    }
}
