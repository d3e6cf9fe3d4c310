//! Generates the messages and clients of `proto/`.

fn main() {
    let services = ["trace/v1/trace", "metrics/v1/metrics"];
    let protos =
        services.map(|name| format!("proto/opentelemetry/proto/collector/{name}_service.proto"));
    quill_codegen::Builder::new()
        .emit(quill_codegen::Emit::CLIENT)
        .runtime_path("crate::codegen")
        .compile(&protos, &["proto"])
        .unwrap_or_else(|error| error.exit());
}
