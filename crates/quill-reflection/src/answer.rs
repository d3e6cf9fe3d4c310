//! The answer to each request of a stream.

use std::collections::HashSet;

use quill_core::Code;

use crate::catalog::Catalog;
use crate::proto::v1::server_reflection_request::MessageRequest;
use crate::proto::v1::server_reflection_response::MessageResponse;
use crate::proto::v1::{
    ErrorResponse, ExtensionNumberResponse, FileDescriptorResponse, ListServiceResponse,
    ServerReflectionRequest, ServerReflectionResponse, ServiceResponse,
};

/// Imports go along with the file that was asked for up to this many bytes, so
/// that an answer stays below the message size that callers accept. They ask
/// for what is missing by name.
const IMPORTS_BYTES_MAX: usize = 2 * 1024 * 1024;

/// The files that were sent on one stream already; at most all there are.
#[derive(Debug, Default)]
pub(crate) struct Sent(HashSet<String>);

/// Answers one request.
pub(crate) fn answer(
    catalog: &Catalog,
    sent: &mut Sent,
    request: ServerReflectionRequest,
) -> ServerReflectionResponse {
    let response = match &request.message_request {
        Some(asked) => respond(catalog, sent, asked),
        None => Err((
            Code::InvalidArgument,
            "the request asks for nothing: set one of file_by_filename, file_containing_symbol, \
             file_containing_extension, all_extension_numbers_of_type and list_services"
                .to_owned(),
        )),
    };
    let response = response.unwrap_or_else(|(code, message)| {
        let error = ErrorResponse {
            error_code: code.number().cast_signed(),
            error_message: message,
            ..Default::default()
        };
        error.into()
    });
    ServerReflectionResponse {
        valid_host: request.host.clone(),
        original_request: request.into(),
        message_response: Some(response),
        ..Default::default()
    }
}

fn respond(
    catalog: &Catalog,
    sent: &mut Sent,
    asked: &MessageRequest,
) -> Result<MessageResponse, (Code, String)> {
    match asked {
        MessageRequest::FileByFilename(name) => sent
            .file_with_imports(catalog, name)
            .ok_or_else(|| not_found(&format!("file {name:?}"))),
        MessageRequest::FileContainingSymbol(symbol) => catalog
            .file_of_symbol(symbol)
            .and_then(|name| sent.file_with_imports(catalog, name))
            .ok_or_else(|| not_found(&format!("symbol {symbol:?}"))),
        MessageRequest::FileContainingExtension(extension) => {
            let (extended, number) = (&extension.containing_type, extension.extension_number);
            catalog
                .file_of_extension(extended, number)
                .and_then(|name| sent.file_with_imports(catalog, name))
                .ok_or_else(|| not_found(&format!("extension {number} of {extended:?}")))
        }
        MessageRequest::AllExtensionNumbersOfType(extended) => {
            let numbers = catalog.extension_numbers(extended);
            let response = ExtensionNumberResponse {
                extension_number: numbers
                    .ok_or_else(|| not_found(&format!("message {extended:?}")))?,
                base_type_name: extended.clone(),
                ..Default::default()
            };
            Ok(response.into())
        }
        MessageRequest::ListServices(_) => {
            let services = catalog.services().into_iter().map(|name| ServiceResponse {
                name,
                ..Default::default()
            });
            let response = ListServiceResponse {
                service: services.collect(),
                ..Default::default()
            };
            Ok(response.into())
        }
    }
}

impl Sent {
    /// A file, and what it imports, directly or not, without what the caller
    /// has from this stream. The file itself goes in any case.
    fn file_with_imports(&mut self, catalog: &Catalog, name: &str) -> Option<MessageResponse> {
        let (file, imports) = catalog.file(name)?;
        self.0.insert(name.to_owned());
        let mut files = vec![file.to_vec()];
        let mut imports_bytes: usize = 0;
        let mut waiting: Vec<&[String]> = vec![imports];
        while let Some(imports) = waiting.pop() {
            for import in imports {
                let Some((file, imports)) = catalog.file(import) else {
                    continue;
                };
                let bytes = imports_bytes.saturating_add(file.len());
                if bytes > IMPORTS_BYTES_MAX || !self.0.insert(import.clone()) {
                    continue;
                }
                imports_bytes = bytes;
                files.push(file.to_vec());
                waiting.push(imports);
            }
        }
        let response = FileDescriptorResponse {
            file_descriptor_proto: files,
            ..Default::default()
        };
        Some(response.into())
    }
}

fn not_found(what: &str) -> (Code, String) {
    (Code::NotFound, format!("there is no {what} here"))
}
