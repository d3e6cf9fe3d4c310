//! Generates the suite's messages and service from its own `.proto` files,
//! which come with its Go module.

use std::path::PathBuf;

/// Names the folder that holds `connectrpc/conformance/v1`; `conformance/run` sets it.
const FOLDER: &str = "CONFORMANCE_PROTO";

fn main() {
    println!("cargo::rerun-if-env-changed={FOLDER}");
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
        eprintln!("{FOLDER} must name the suite's proto folder: build with conformance/run");
        std::process::exit(1);
    };
    let protos = ["config", "service", "server_compat", "client_compat"]
        .map(|name| folder.join(format!("connectrpc/conformance/v1/{name}.proto")));
    quill_codegen::compile(&protos, &[folder]).unwrap_or_else(|error| error.exit());
}
