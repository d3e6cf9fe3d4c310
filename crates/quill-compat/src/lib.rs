//! What breaks between two protobuf schemas.
//!
//! [`compare`] takes the descriptors of an old and of a new schema and says what
//! code or data of the old one no longer works with the new one. What counts is
//! a [`RuleSet`]; names and meaning of sets and rules are those of `buf
//! breaking`, whose verdicts the tests compare with.
//!
//! ```
//! use buffa_descriptor::generated::descriptor::FileDescriptorProto;
//! use quill_compat::{RuleSet, compare};
//!
//! let old = [FileDescriptorProto {
//!     name: Some("shop.proto".to_owned()),
//!     ..Default::default()
//! }];
//! let breaks = compare(&old, &[], RuleSet::File);
//! assert_eq!(breaks[0].rule.id(), "FILE_NO_DELETE");
//! assert!(compare(&old, &[], RuleSet::Wire).is_empty());
//! ```

mod breakage;
mod compare;
mod features;
mod index;
mod place;
mod rule;

pub use breakage::Break;
pub use compare::compare;
pub use place::Place;
pub use rule::{Rule, RuleSet};
