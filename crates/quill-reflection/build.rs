//! Generates the service of `proto/`.

use std::path::Path;

const V1: &str = "proto/grpc/reflection/v1/reflection.proto";
const V1ALPHA: &str = "proto/grpc/reflection/v1alpha/reflection.proto";

fn main() {
    quill_codegen::Builder::new()
        .emit(quill_codegen::Emit::SERVER)
        .runtime_path("::quill_server::codegen")
        .compile(&[V1], &["proto"])
        .unwrap_or_else(|error| error.exit());
    // Both versions have the same messages on the wire: of the older one only
    // its descriptor is needed.
    let older = quill_codegen::Schema::compile(&[V1ALPHA], &["proto"])
        .unwrap_or_else(|error| error.exit())
        .to_descriptor_set();
    println!("cargo::rerun-if-changed={V1ALPHA}");
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    std::fs::write(Path::new(&out).join("v1alpha.binpb"), older).expect("OUT_DIR can be written");
}
