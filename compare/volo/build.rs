//! Generates the service as volo's generator has it, without protoc.

fn main() {
    volo_build::Builder::protobuf()
        .add_service("../rpc/proto/echo.proto")
        .include_dirs(vec!["../rpc/proto".into()])
        .filename("volo_echo.rs".into())
        .write()
        .expect("the service is generated");
}
