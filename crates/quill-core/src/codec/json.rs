//! ProtoJSON as generated code reads and writes it.
//!
//! The rules are those of <https://protobuf.dev/programming-guides/json/>, each in
//! one place with both directions side by side. Where the message library's
//! helpers follow them already they are re-exported as they are; generated code
//! names this module alone.

mod containers;
mod number;
mod scalars;
mod value;
mod well_known;

#[doc(hidden)]
pub use ::buffa::json_helpers::*;
pub use containers::{
    Key, map_closed_enum, map_enum, proto_map, proto_seq, repeated_closed_enum, repeated_enum,
    string_key_map,
};
pub use scalars::{
    bytes, double, float, int32, int64, opt_bytes, opt_double, opt_float, opt_int32, opt_int64,
    opt_uint32, opt_uint64, skip_if, uint32, uint64,
};
pub use value::{
    DefaultDeserializeSeed, MessageFieldSeed, message_field, message_field_always_present, read,
};
pub use well_known::distinct;
pub(super) use well_known::register;
