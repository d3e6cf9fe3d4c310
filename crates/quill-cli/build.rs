//! Generates the demo's services of `proto/`.

fn main() {
    quill_codegen::compile(
        &["proto/echo/v1/echo.proto", "proto/data/v1/data.proto"],
        &["proto"],
    )
    .unwrap_or_else(|error| error.exit());
}
