//! The guide: what to know before a limit goes to work.
//!
//! - [Choosing a quota](quotas)
//! - [Choosing a key](keys)
//! - [Behind proxies](proxies)
//! - [Across machines](machines)
//! - [Rolling out in shadow mode](rollout)
//! - [When the store is down](outages)

#[doc = include_str!("quotas.md")]
pub mod quotas {}

#[doc = include_str!("keys.md")]
pub mod keys {}

#[doc = include_str!("proxies.md")]
pub mod proxies {}

#[doc = include_str!("machines.md")]
#[cfg_attr(feature = "redis", doc = "\n[redis]: crate::store::redis")]
#[cfg_attr(not(feature = "redis"), doc = "\n[redis]: crate::store")]
pub mod machines {}

#[doc = include_str!("rollout.md")]
pub mod rollout {}

#[doc = include_str!("outages.md")]
#[cfg_attr(feature = "redis", doc = "\n[redis]: crate::store::redis")]
#[cfg_attr(not(feature = "redis"), doc = "\n[redis]: crate::store")]
pub mod outages {}
