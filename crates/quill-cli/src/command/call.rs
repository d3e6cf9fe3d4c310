//! `quill call`: JSON in, JSON out.

use std::future::Future;
use std::time::Instant;

use buffa_descriptor::DynamicMessage;
use quill::{
    Deadline, Error, HttpVersion, Metadata, MethodKind, QuillClient, Request, Response, Streaming,
};
use tokio::sync::oneshot;

use crate::args::CallArgs;
use crate::client;
use crate::command::inspect;
use crate::failure::Failure;
use crate::input::{Input, Messages};
use crate::output::{JsonLines, Narration, PrintError, call_failure, describe};
use crate::schema::{MethodSchema, Reflection, Schema};
use crate::target::Target;

pub(crate) async fn run(args: CallArgs) -> Result<(), Failure> {
    // Without a target only a question gets past the arguments.
    let target = args.target.as_deref().unwrap_or_default();
    if args.list {
        return inspect::list(&args).await;
    } else if args.describe {
        return inspect::describe(&args).await;
    } else if args.template {
        return inspect::show_template(&args, target).await;
    }
    let target = Target::parse(target, args.client.url.as_deref())?;
    let client = client::build(client::builder(&args.client, &target.base_url)?)?;
    let metadata = client::sent_metadata(&args.client.header, args.client.token.as_deref())?;
    let narration = Narration::new(args.verbose);
    if narration.is_wanted() {
        narration.way(args.client.protocol, version(&client).await?, &target);
    }
    let begun = Instant::now();
    let reflection = Reflection::new(client.clone(), metadata.clone());
    let schema = Schema::load(&args.schema, &target.service, reflection).await?;
    let method = schema.method(&target)?;
    narration.method(&method.method, begun.elapsed());
    narration.metadata("request", &metadata);
    let given = match (&args.input, method.method.kind().client_streams()) {
        (Some(input), _) => input,
        (None, true) => "",
        (None, false) => "{}",
    };
    if given == "-" && args.repeat > 1 {
        let why = "standard input can be read only once: --repeat needs --input JSON or @file";
        return Err(Failure::input(why));
    }
    let mut call = Call {
        client,
        method,
        metadata,
        schema,
        deadline: None,
        narration,
        out: JsonLines::stdout(args.emit_defaults),
    };
    for _ in 0..args.repeat {
        let messages = Input::open(given)?.read(call.method.requests.clone());
        call.deadline = args.client.timeout.map(Deadline::within);
        call.narration.begin();
        let outcome = call.run(messages).await;
        call.narration.end();
        match outcome {
            Ok(()) => {}
            Err(Ended::Quietly) => break,
            Err(Ended::Failed(failure)) => return Err(failure),
            Err(Ended::Refused(error)) => return Err(call.refused(&error).await),
        }
    }
    Ok(())
}

/// The version of HTTP that the server's connection speaks; `None` for several servers.
async fn version(client: &QuillClient) -> Result<Option<HttpVersion>, Failure> {
    let version = client.http_version().await;
    version.map_err(|error| Failure::network(error.to_string()))
}

/// The call, once all about it is known.
struct Call {
    client: QuillClient,
    method: MethodSchema,
    schema: Schema,
    metadata: Metadata,
    deadline: Option<Deadline>,
    narration: Narration,
    out: JsonLines,
}

/// How a call ended, if not well.
enum Ended {
    /// Nobody reads the output any more.
    Quietly,
    /// The call failed.
    Refused(Error),
    /// This side failed.
    Failed(Failure),
}

impl From<Error> for Ended {
    fn from(error: Error) -> Self {
        Ended::Refused(error)
    }
}

impl From<PrintError> for Ended {
    fn from(error: PrintError) -> Self {
        match error {
            PrintError::Closed => Ended::Quietly,
            PrintError::Io(error) => {
                Ended::Failed(Failure::input(format!("standard output: {error}")))
            }
            PrintError::Json(error) => Ended::Failed(
                Failure::server(format!("the answer can't be shown as JSON: {error}"))
                    .with_hint("a schema given by --proto or --descriptor-set may have its types"),
            ),
        }
    }
}

impl Call {
    async fn run(&mut self, messages: Messages) -> Result<(), Ended> {
        let (client, method) = (self.client.clone(), self.method.method.clone());
        let requests = self.method.requests.clone();
        let responses = self.method.responses.clone();
        match method.kind() {
            MethodKind::Unary => {
                let message = messages.only().await.map_err(Ended::Failed)?;
                let request = self.request(message);
                let answer = client.unary(&method, requests, responses, request).await?;
                self.print_one(&answer).await
            }
            MethodKind::ServerStreaming => {
                let message = messages.only().await.map_err(Ended::Failed)?;
                let request = self.request(message);
                let answers = client
                    .server_streaming(&method, requests, responses, request)
                    .await?;
                self.print_all(answers).await
            }
            MethodKind::ClientStreaming => {
                let (messages, unreadable) = messages.into_stream();
                let request = self.request(messages);
                let call = async {
                    let answer = client
                        .client_streaming(&method, requests, responses, request)
                        .await?;
                    self.print_one(&answer).await
                };
                unless_unreadable(unreadable, call).await
            }
            MethodKind::BidiStreaming => {
                let (messages, unreadable) = messages.into_stream();
                let request = self.request(messages);
                let call = async {
                    let answers = client
                        .bidi_streaming(&method, requests, responses, request)
                        .await?;
                    self.print_all(answers).await
                };
                unless_unreadable(unreadable, call).await
            }
        }
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.metadata_mut().extend(&self.metadata);
        match self.deadline {
            Some(deadline) => request.with_deadline(deadline),
            None => request,
        }
    }

    async fn print_one(&mut self, answer: &Response<DynamicMessage>) -> Result<(), Ended> {
        self.narration.metadata("header", answer.metadata());
        self.print(answer.message()).await?;
        self.narration.metadata("trailer", answer.trailers());
        Ok(())
    }

    async fn print_all(
        &mut self,
        answers: Response<Streaming<DynamicMessage>>,
    ) -> Result<(), Ended> {
        self.narration.metadata("header", answers.metadata());
        let mut answers = answers.into_inner();
        while let Some(answer) = answers.message().await? {
            self.print(&answer).await?;
        }
        self.narration.metadata("trailer", answers.trailers());
        Ok(())
    }

    /// Prints a message; the server is asked for types that only an `Any` in it names.
    async fn print(&mut self, message: &DynamicMessage) -> Result<(), PrintError> {
        self.narration.received();
        let error = match self.out.print(message) {
            Err(PrintError::Json(error)) => error,
            printed => return printed,
        };
        match self.schema.with_any_types(message).await {
            Some(message) => self.out.print(&message),
            None => Err(PrintError::Json(error)),
        }
    }

    /// An error of the server's, in full.
    async fn refused(&mut self, error: &Error) -> Failure {
        self.narration
            .metadata("metadata", error.received_metadata());
        let text = describe(error, &mut self.schema).await;
        call_failure(error, &text, self.deadline)
    }
}

/// Makes the call, and gives it up when its input can't be read.
async fn unless_unreadable(
    unreadable: oneshot::Receiver<Failure>,
    call: impl Future<Output = Result<(), Ended>>,
) -> Result<(), Ended> {
    tokio::select! {
        biased;
        Ok(failure) = unreadable => Err(Ended::Failed(failure)),
        outcome = call => outcome,
    }
}
