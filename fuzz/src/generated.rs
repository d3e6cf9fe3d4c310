//! Messages of the tests' `.proto` files.

quill::include_proto!("probe.v1");
