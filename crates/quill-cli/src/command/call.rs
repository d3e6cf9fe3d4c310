//! `quill call`: JSON in, JSON out.

use std::future::Future;
use std::io::Write as _;

use buffa_descriptor::DynamicMessage;
use quill::{Deadline, Error, Metadata, MethodKind, QuillClient, Request, Response, Streaming};
use tokio::sync::oneshot;

use crate::args::CallArgs;
use crate::client;
use crate::failure::Failure;
use crate::input::{Input, Messages};
use crate::output::{JsonLines, PrintError, call_failure, describe, metadata_line};
use crate::schema::{MethodSchema, Reflection, Schema};
use crate::target::Target;

pub(crate) async fn run(args: CallArgs) -> Result<(), Failure> {
    let target = Target::parse(&args.target)?;
    let client = client::build(client::builder(&args.client, &target.base_url)?)?;
    let metadata = client::sent_metadata(&args.client)?;
    let reflection = Reflection::new(client.clone(), metadata.clone());
    let schema = Schema::load(&args.schema, &target, reflection).await?;
    let method = schema.method(&target)?;
    let given = match (&args.input, method.method.kind().client_streams()) {
        (Some(input), _) => input,
        (None, true) => "",
        (None, false) => "{}",
    };
    let messages = Input::open(given)?.read(method.requests.clone());
    let mut call = Call {
        client,
        method,
        metadata,
        schema,
        deadline: args.client.timeout.map(Deadline::within),
        verbose: args.verbose,
        out: JsonLines::stdout(args.emit_defaults),
    };
    match call.run(messages).await {
        Ok(()) | Err(Ended::Quietly) => Ok(()),
        Err(Ended::Failed(failure)) => Err(failure),
        Err(Ended::Refused(error)) => {
            call.show("metadata", error.received_metadata());
            let text = describe(&error, &mut call.schema).await;
            Err(call_failure(&error, &text, call.deadline))
        }
    }
}

/// The call, once all about it is known.
struct Call {
    client: QuillClient,
    method: MethodSchema,
    schema: Schema,
    metadata: Metadata,
    deadline: Option<Deadline>,
    verbose: bool,
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
        self.show("header", answer.metadata());
        self.print(answer.message()).await?;
        self.show("trailer", answer.trailers());
        Ok(())
    }

    async fn print_all(
        &mut self,
        answers: Response<Streaming<DynamicMessage>>,
    ) -> Result<(), Ended> {
        self.show("header", answers.metadata());
        let mut answers = answers.into_inner();
        while let Some(answer) = answers.message().await? {
            self.print(&answer).await?;
        }
        self.show("trailer", answers.trailers());
        Ok(())
    }

    /// Prints a message; the server is asked for types that only an `Any` in it names.
    async fn print(&mut self, message: &DynamicMessage) -> Result<(), PrintError> {
        let error = match self.out.print(message) {
            Err(PrintError::Json(error)) => error,
            printed => return printed,
        };
        match self.schema.with_any_types(message).await {
            Some(message) => self.out.print(&message),
            None => Err(PrintError::Json(error)),
        }
    }

    /// Shows metadata on standard error, if that was asked for.
    fn show(&self, kind: &str, metadata: &Metadata) {
        if !self.verbose {
            return;
        }
        let mut stderr = std::io::stderr().lock();
        for (name, value) in metadata.iter() {
            // Nobody is left to tell when stderr is closed.
            let _ = writeln!(stderr, "{kind} {}", metadata_line(name, value));
        }
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
