//! Generates the services under test.

fn main() {
    let files = ["probe", "kinds", "required"].map(|name| format!("proto/probe/v1/{name}.proto"));
    quill_codegen::compile(&files, &["proto"]).unwrap_or_else(|error| error.exit());
}
