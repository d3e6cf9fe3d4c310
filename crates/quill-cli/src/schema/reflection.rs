//! A schema from the server, by gRPC's reflection service.

use std::time::Duration;

use buffa_descriptor::generated::descriptor::FileDescriptorProto;
use futures_util::stream;
use quill::{BuffaCodec, Code, Deadline, Error, Metadata, Method, QuillClient, Request};
use quill_explain::harmless;
use quill_reflection::proto::v1::server_reflection::SERVER_REFLECTION_INFO;
use quill_reflection::proto::v1::server_reflection_request::MessageRequest;
use quill_reflection::proto::v1::server_reflection_response::MessageResponse;
use quill_reflection::proto::v1::{
    ErrorResponse, FileDescriptorResponse, ServerReflectionRequest, ServerReflectionResponse,
};
use quill_reflection::proto::v1alpha;

use super::list;
use super::reflection_files::ReflectionFiles;
use crate::failure::Failure;
use crate::output::call_failure;

/// Questions of one call.
const QUESTIONS_MAX: usize = 64;
/// Finding the schema of the method gets this long.
const LOOK_UP_TIMEOUT: Duration = Duration::from_secs(30);
/// Looking up the type of an error's detail is a courtesy: it gets this long.
const DETAIL_TIMEOUT: Duration = Duration::from_secs(5);
/// Packages of services that are about the server they are on.
const ABOUT_SERVERS: [&str; 2] = ["grpc.reflection.", "grpc.health."];
const HINT: &str = "give the schema with --proto FILE or --descriptor-set FILE";

/// The reflection service of a server.
///
/// Every call sends its questions and ends its half before it reads the
/// answers, so that it works where both halves can't overlap (HTTP/1.1).
pub(crate) struct Reflection {
    client: QuillClient,
    metadata: Metadata,
    deadline: Deadline,
    /// Which version the server has; the newer one until it says no.
    method: &'static Method,
}

/// Why nothing was found out.
enum Unknown {
    /// The server answered that there is no such thing.
    NotFound(String),
    /// The call failed.
    Failed(Error),
    /// The answer makes no sense; completes "the server's reflection ...".
    Senseless(String),
}

impl Reflection {
    /// Asks with this metadata. What it takes to find the schema is no part of
    /// the call, and has a limit of its own.
    pub(crate) fn new(client: QuillClient, metadata: Metadata) -> Self {
        Self {
            client,
            metadata,
            deadline: Deadline::within(LOOK_UP_TIMEOUT),
            method: &SERVER_REFLECTION_INFO,
        }
    }

    /// What is said where a server does not describe itself.
    pub(super) fn missing() -> Failure {
        Failure::server("the server has no reflection").with_hint(HINT)
    }

    /// The full names of the server's services.
    pub(crate) async fn services(&mut self) -> Result<Vec<String>, Failure> {
        self.list_services().await.map_err(failure)
    }

    /// The file that declares a symbol, with all that it imports; `None` when
    /// the server does not describe itself.
    pub(super) async fn files_of_symbol(
        &mut self,
        symbol: &str,
    ) -> Result<Option<Vec<FileDescriptorProto>>, Failure> {
        match self.files_of(vec![symbol.to_owned()]).await {
            Ok(files) => Ok(Some(files)),
            Err(Unknown::NotFound(message)) => {
                let services = match self.list_services().await {
                    Ok(services) => list(services.iter().map(String::as_str)),
                    Err(_) => "does not say which".to_owned(),
                };
                Err(Failure::input(format!(
                    "the server has no service {symbol} ({message}); it has {services}"
                )))
            }
            Err(Unknown::Failed(error)) if error.code() == Code::Unimplemented => Ok(None),
            Err(unknown) => Err(failure(unknown)),
        }
    }

    /// Every file that declares a service, with all that they import. What
    /// describes and watches the server is no part of its schema.
    pub(super) async fn all_files(&mut self) -> Result<Vec<FileDescriptorProto>, Failure> {
        let mut services = self.services().await?;
        services.retain(|name| !ABOUT_SERVERS.iter().any(|prefix| name.starts_with(prefix)));
        if services.is_empty() {
            return Err(Failure::server("the server describes no services").with_hint(HINT));
        }
        self.files_of(services).await.map_err(failure)
    }

    /// The file that declares a message type, with all that it imports; `None`
    /// when the server does not say.
    pub(super) async fn files_of_type(
        &mut self,
        full_name: &str,
    ) -> Option<Vec<FileDescriptorProto>> {
        self.deadline = Deadline::within(DETAIL_TIMEOUT);
        self.files_of(vec![full_name.to_owned()]).await.ok()
    }

    async fn files_of(
        &mut self,
        symbols: Vec<String>,
    ) -> Result<Vec<FileDescriptorProto>, Unknown> {
        let mut files = ReflectionFiles::default();
        for some in symbols.chunks(QUESTIONS_MAX) {
            let symbols = some.iter().cloned();
            let questions = symbols.map(MessageRequest::FileContainingSymbol);
            for answer in self.ask(questions.collect()).await? {
                take(&mut files, answer)?;
            }
        }
        loop {
            let missing = files.missing(QUESTIONS_MAX);
            if missing.is_empty() {
                return files.into_files().map_err(Unknown::Senseless);
            }
            let questions = missing.into_iter().map(MessageRequest::FileByFilename);
            for answer in self.ask(questions.collect()).await? {
                match take(&mut files, answer) {
                    // Whether it is needed shows when the files are linked.
                    Ok(()) | Err(Unknown::NotFound(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }

    async fn list_services(&mut self) -> Result<Vec<String>, Unknown> {
        let list = MessageRequest::ListServices(String::new());
        match self.ask(vec![list]).await?.into_iter().next() {
            Some(MessageResponse::ListServicesResponse(list)) => {
                Ok(list.service.into_iter().map(|s| s.name).collect())
            }
            _ => Err(Unknown::Senseless("lists no services".to_owned())),
        }
    }

    /// One answer for each question, by the newest version the server has.
    async fn ask(
        &mut self,
        questions: Vec<MessageRequest>,
    ) -> Result<Vec<MessageResponse>, Unknown> {
        match self.ask_by(self.method, questions.clone()).await {
            Err(Unknown::Failed(error))
                if error.code() == Code::Unimplemented
                    && self.method.path() == SERVER_REFLECTION_INFO.path() =>
            {
                self.method = &v1alpha::SERVER_REFLECTION_INFO;
                self.ask_by(self.method, questions).await
            }
            answers => answers,
        }
    }

    async fn ask_by(
        &self,
        method: &Method,
        questions: Vec<MessageRequest>,
    ) -> Result<Vec<MessageResponse>, Unknown> {
        let count = questions.len();
        let questions = questions
            .into_iter()
            .map(|question| ServerReflectionRequest {
                message_request: Some(question),
                ..Default::default()
            });
        let questions: Vec<_> = questions.collect();
        let mut request = Request::new(stream::iter(questions));
        request.metadata_mut().extend(&self.metadata);
        request = request.with_deadline(self.deadline);
        let answers = self
            .client
            .bidi_streaming(method, BuffaCodec, BuffaCodec, request)
            .await
            .map_err(Unknown::Failed)?;
        let mut answers = answers.into_inner();
        let mut responses = Vec::new();
        while let Some(answer) = answers.message().await.map_err(Unknown::Failed)? {
            let answer: ServerReflectionResponse = answer;
            match answer.message_response {
                Some(response) if responses.len() < count => responses.push(response),
                Some(_) => {
                    return Err(Unknown::Senseless("answers more than was asked".to_owned()));
                }
                None => return Err(Unknown::Senseless("answers without an answer".to_owned())),
            }
        }
        if responses.len() < count {
            return Err(Unknown::Senseless("ends before it has answered".to_owned()));
        }
        Ok(responses)
    }
}

/// How the command ends when nothing was found out.
fn failure(error: Unknown) -> Failure {
    match error {
        Unknown::NotFound(message) => Failure::server(format!(
            "the server's reflection knows not all it lists: {message}"
        )),
        Unknown::Failed(error) if error.code() == Code::Unimplemented => Reflection::missing(),
        Unknown::Failed(error) if error.code() == Code::DeadlineExceeded => Failure::network(
            format!("the server's reflection did not answer within {LOOK_UP_TIMEOUT:?} ({error})"),
        )
        .with_hint(HINT),
        Unknown::Failed(error) => {
            let message = format!("reflection failed: {}", harmless(&error.to_string()));
            call_failure(&error, &message, None)
        }
        Unknown::Senseless(what) => {
            Failure::server(format!("the server's reflection {what}")).with_hint(HINT)
        }
    }
}

fn take(files: &mut ReflectionFiles, answer: MessageResponse) -> Result<(), Unknown> {
    match answer {
        MessageResponse::FileDescriptorResponse(answer) => {
            let FileDescriptorResponse {
                file_descriptor_proto,
                ..
            } = *answer;
            for file in file_descriptor_proto {
                files.take(&file).map_err(Unknown::Senseless)?;
            }
            Ok(())
        }
        MessageResponse::ErrorResponse(error) => {
            let ErrorResponse {
                error_code,
                error_message,
                ..
            } = *error;
            if error_code.cast_unsigned() == Code::NotFound.number() {
                return Err(Unknown::NotFound(harmless(&error_message)));
            }
            let code = Code::from_number(error_code.cast_unsigned()).unwrap_or(Code::Unknown);
            Err(Unknown::Failed(Error::new(code, error_message)))
        }
        _ => Err(Unknown::Senseless("answers another question".to_owned())),
    }
}
