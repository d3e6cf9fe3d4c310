//! The .proto files that come with the generator.

/// The `.proto` files that can be imported without being in an include
/// directory, beside `google/protobuf/*.proto`: import name and text. A file
/// of the same name in an include directory goes before.
///
/// Other compilers (protoc, buf) need them on disk; this is where to take them
/// from.
pub const BUILTIN_PROTOS: &[(&str, &str)] = &[
    (
        "quill/annotations.proto",
        include_str!("../proto/quill/annotations.proto"),
    ),
    (
        "google/api/annotations.proto",
        include_str!("../proto/google/api/annotations.proto"),
    ),
    (
        "google/api/http.proto",
        include_str!("../proto/google/api/http.proto"),
    ),
    (
        "google/rpc/code.proto",
        include_str!("../proto/google/rpc/code.proto"),
    ),
    (
        "google/rpc/error_details.proto",
        include_str!("../proto/google/rpc/error_details.proto"),
    ),
    (
        "google/rpc/status.proto",
        include_str!("../proto/google/rpc/status.proto"),
    ),
];
