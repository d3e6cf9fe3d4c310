//! The plugin of protoc and buf.

use buffa::Message;
use buffa_descriptor::generated::compiler::code_generator_response::{Feature, File};
use buffa_descriptor::generated::compiler::{CodeGeneratorRequest, CodeGeneratorResponse};

use crate::builder::Builder;
use crate::error::Error;
use crate::schema::Schema;

/// The editions that the message library knows, as numbers of
/// `google.protobuf.Edition`.
const EDITION_MIN: i32 = 998;
const EDITION_MAX: i32 = 1001;

/// Answers a serialized `google.protobuf.compiler.CodeGeneratorRequest` with a
/// serialized `CodeGeneratorResponse`. What is wrong with the request's files
/// is in the answer.
///
/// # Errors
/// The request is none.
pub fn answer(request: &[u8]) -> Result<Vec<u8>, Error> {
    let request = buffa_codegen::decode_request(request).map_err(Error::new)?;
    let mut response = CodeGeneratorResponse {
        supported_features: Some(
            Feature::FEATURE_PROTO3_OPTIONAL as u64 | Feature::FEATURE_SUPPORTS_EDITIONS as u64,
        ),
        minimum_edition: Some(EDITION_MIN),
        maximum_edition: Some(EDITION_MAX),
        ..Default::default()
    };
    match files(request) {
        Ok(files) => response.file = files,
        Err(error) => response.error = Some(error.to_string()),
    }
    Ok(response.encode_to_vec())
}

fn files(request: CodeGeneratorRequest) -> Result<Vec<File>, Error> {
    let options = request.parameter.unwrap_or_default();
    let builder = Builder::new().plugin_options(&options)?;
    let schema = Schema::new(request.proto_file, request.file_to_generate)?;
    let (files, warnings) = builder.generate(&schema)?;
    warnings.iter().for_each(|warning| warn(warning));
    let files = files.into_iter().map(|file| File {
        name: Some(file.name),
        content: Some(file.content),
        ..Default::default()
    });
    Ok(files.collect())
}

#[allow(clippy::print_stderr, reason = "where a plugin's warnings go")]
fn warn(warning: &str) {
    eprintln!("protoc-gen-quill: {warning}");
}
