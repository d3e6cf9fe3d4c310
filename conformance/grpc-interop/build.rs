//! Generates the interop service and ORCA's.

fn main() {
    let protos = [
        "proto/grpc/testing/test.proto",
        "proto/xds/service/orca/v3/orca.proto",
        "proto/xds/data/orca/v3/orca_load_report.proto",
    ];
    quill_codegen::compile(&protos, &["proto"]).unwrap_or_else(|error| error.exit());
}
