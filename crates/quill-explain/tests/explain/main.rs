//! What bytes are said to be.

mod hostile;
mod protoc;
mod shown;
mod stream;

use std::path::Path;
use std::sync::Arc;

use buffa_descriptor::DescriptorPool;
use quill_codegen::Schema as Compiled;
use quill_explain::{Options, Schema, Summary, explain};

fn protos() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/explain")
}

/// The type `shop.v1.Order` of `shop.proto`.
fn order() -> Schema {
    let folder = protos();
    let compiled = Compiled::compile(&[folder.join("shop.proto")], &[&folder]).unwrap();
    let pool = DescriptorPool::decode(&compiled.to_descriptor_set()).unwrap();
    let message = pool.message_index("shop.v1.Order").unwrap();
    Schema {
        pool: Arc::new(pool),
        message,
    }
}

fn options(set: impl FnOnce(&mut Options)) -> Options {
    let mut options = Options::default();
    set(&mut options);
    options
}

/// The text, and the summary.
fn explained(bytes: &[u8], options: &Options) -> (String, Summary) {
    let mut text = Vec::new();
    let summary = explain(&mut &bytes[..], &mut text, options).unwrap();
    (String::from_utf8(text).unwrap(), summary)
}

/// Lines without the column of bytes.
fn lines(text: &str) -> Vec<String> {
    let line = |line: &str| format!("{} {}", &line[..8], line[38..].trim_end());
    text.lines().map(line).collect()
}
