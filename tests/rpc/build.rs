//! Generates the services under test.

fn main() {
    quill_codegen::compile(&["proto/probe/v1/probe.proto"], &["proto"])
        .unwrap_or_else(|error| error.exit());
}
