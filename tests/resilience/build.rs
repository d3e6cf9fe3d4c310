//! Generates the service that fails as it is asked to.

fn main() {
    quill_codegen::compile(&["proto/flaky/v1/flaky.proto"], &["proto"])
        .unwrap_or_else(|error| error.exit());
}
