//! Generates the service of `proto/`.

fn main() {
    quill_codegen::Builder::new()
        .emit(quill_codegen::Emit::SERVER)
        .runtime_path("::quill_server::codegen")
        .compile(&["proto/grpc/health/v1/health.proto"], &["proto"])
        .unwrap_or_else(|error| error.exit());
}
