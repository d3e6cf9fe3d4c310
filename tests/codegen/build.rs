//! Generates everything that the tests call, against this crate's own runtime.

fn main() {
    quill_codegen::Builder::new()
        .runtime_path("crate::runtime")
        .view_request("echo.v1.EchoService.Echo")
        .view_request("names.awkward.A.Do")
        .view_request("names.awkward.A.View")
        .compile(
            &[
                "proto/echo/echo.proto",
                "proto/names/names.proto",
                "proto/names/awkward.proto",
                "proto/names/match/async.proto",
                "proto/names/shadow.proto",
                "proto/a/b/deep.proto",
                "proto/bare.proto",
                "proto/old.proto",
            ],
            &["proto"],
        )
        .unwrap_or_else(|error| error.exit());
}
