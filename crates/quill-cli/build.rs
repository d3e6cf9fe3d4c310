//! Generates the demo's services of `proto/`, and the descriptors of the types
//! that `quill call` knows without a schema.

use std::path::Path;

/// What error details, `Any` and imports commonly name.
const KNOWN: [&str; 11] = [
    "google/protobuf/any.proto",
    "google/protobuf/descriptor.proto",
    "google/protobuf/duration.proto",
    "google/protobuf/empty.proto",
    "google/protobuf/field_mask.proto",
    "google/protobuf/source_context.proto",
    "google/protobuf/struct.proto",
    "google/protobuf/timestamp.proto",
    "google/protobuf/wrappers.proto",
    "google/rpc/error_details.proto",
    "google/rpc/status.proto",
];

fn main() {
    quill_codegen::compile(
        &["proto/echo/v1/echo.proto", "proto/data/v1/data.proto"],
        &["proto"],
    )
    .unwrap_or_else(|error| error.exit());
    println!("cargo::rerun-if-changed=proto");
    let known = quill_codegen::Schema::compile(&KNOWN, &["proto"])
        .unwrap_or_else(|error| error.exit())
        .to_descriptor_set();
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    std::fs::write(Path::new(&out).join("known.binpb"), known).expect("OUT_DIR can be written");
}
