//! Generates the services of `proto/`.

fn main() {
    let protos = [
        "proto/greet/v1/greet.proto",
        "proto/shop/v1/shop.proto",
        "proto/sums/v1/sums.proto",
    ];
    quill_codegen::compile(&protos, &["proto"]).unwrap_or_else(|error| error.exit());
}
