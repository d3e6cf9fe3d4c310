//! Generates one service for each subject, as each would have it, without protoc.

use std::env;
use std::error::Error;
use std::fs;
use std::path::PathBuf;

use prost::Message;

const PROTO: &str = "proto/echo.proto";

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    quill_codegen::Builder::new()
        .view_request("echo.v1.Echo.Skim")
        .compile(&[PROTO], &["proto"])
        .unwrap_or_else(|error| error.exit());

    let set = protox::compile([PROTO], ["proto"])?;
    let (for_tonic, for_connectrpc) = (out.join("tonic"), out.join("connectrpc"));
    fs::create_dir_all(&for_tonic)?;
    fs::create_dir_all(&for_connectrpc)?;

    let file = for_connectrpc.join("echo.binpb");
    fs::write(&file, set.encode_to_vec())?;
    connectrpc_build::Config::new()
        .files(&["echo.proto"])
        .descriptor_set(file)
        .out_dir(for_connectrpc)
        .generate_json(false)
        .include_file("all.rs")
        .compile()?;
    tonic_prost_build::configure()
        .out_dir(for_tonic)
        .compile_fds(set)?;
    Ok(())
}
