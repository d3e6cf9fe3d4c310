//! Generates the message with every kind of field.

fn main() {
    let folder = "../tests/rpc/proto";
    quill_codegen::compile(&[format!("{folder}/probe/v1/kinds.proto")], &[folder])
        .unwrap_or_else(|error| error.exit());
}
