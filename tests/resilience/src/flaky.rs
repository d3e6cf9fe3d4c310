//! The service.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::stream;
use quill::{
    Code, Error, Metadata, Request, Response, RunningServer, ServeError, Server, Stream, Streaming,
};

use crate::proto::{FlakyRequest, FlakyResponse, FlakyServer, FlakyService};

/// The service. Clones count together.
#[derive(Clone, Default)]
pub struct Flaky(Arc<State>);

type Log = dyn Fn(&str) + Send + Sync;

#[derive(Default)]
struct State {
    name: String,
    runs: Mutex<HashMap<String, u32>>,
    /// Told of each run of a method that is not to be repeated.
    log: Option<Box<Log>>,
}

impl Flaky {
    /// The service of a server with this name.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self(Arc::new(State {
            name: name.into(),
            ..State::default()
        }))
    }

    /// The same; `log` is told of the ids that run.
    #[must_use]
    pub fn logging(log: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(State {
            log: Some(Box::new(log)),
            ..State::default()
        }))
    }

    /// How often an id has run.
    #[must_use]
    pub fn runs(&self, id: &str) -> u32 {
        let runs = self.0.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.get(id).copied().unwrap_or_default()
    }

    /// How many ids have run.
    #[must_use]
    pub fn ids(&self) -> usize {
        let runs = self.0.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.len()
    }

    /// Serves it on a free port.
    ///
    /// # Errors
    /// The port can't be had.
    pub async fn serve(&self, address: &str) -> Result<RunningServer, ServeError> {
        let server = Server::builder().service(FlakyServer::new(self.clone()));
        Ok(server.bind(address).await?.start())
    }

    async fn run(
        &self,
        request: &FlakyRequest,
        metadata: &Metadata,
        previous_attempts: u32,
    ) -> Result<FlakyResponse, Error> {
        if let Some(log) = &self.0.log {
            log(&request.id);
        }
        let run = {
            let mut runs = self.0.runs.lock().unwrap_or_else(PoisonError::into_inner);
            let run = runs.entry(request.id.clone()).or_default();
            *run += 1;
            *run
        };
        if run <= request.slow {
            tokio::time::sleep(Duration::from_millis(request.delay_ms)).await;
        }
        let is_failing = !self.0.name.is_empty() && self.0.name == request.failing_server;
        if run <= request.failures || is_failing {
            let code = Code::from_number(request.code).unwrap_or(Code::Unavailable);
            let error = Error::new(code, format!("run {run} fails"));
            return Err(match request.retry_after_ms {
                0 => error,
                millis => error.with_retry_after(Duration::from_millis(millis)),
            });
        }
        let text = |name| metadata.get(name).unwrap_or_default().to_owned();
        Ok(FlakyResponse {
            id: request.id.clone(),
            run,
            previous_attempts,
            messages: 1,
            server: self.0.name.clone(),
            authorization: text("authorization"),
            tenant: text("x-tenant"),
            ..Default::default()
        })
    }

    async fn run_request(
        &self,
        request: Request<FlakyRequest>,
    ) -> Result<Response<FlakyResponse>, Error> {
        let (message, parts) = request.into_parts();
        let answer = self
            .run(&message, &parts.metadata, parts.previous_attempts)
            .await?;
        Ok(answer.into())
    }
}

type Answers = Pin<Box<dyn Stream<Item = Result<FlakyResponse, Error>> + Send>>;

impl FlakyService for Flaky {
    async fn get(&self, request: Request<FlakyRequest>) -> Result<Response<FlakyResponse>, Error> {
        self.run_request(request).await
    }

    async fn set(&self, request: Request<FlakyRequest>) -> Result<Response<FlakyResponse>, Error> {
        self.run_request(request).await
    }

    async fn list(
        &self,
        request: Request<FlakyRequest>,
    ) -> Result<Response<impl Stream<Item = Result<FlakyResponse, Error>> + Send>, Error> {
        let (message, parts) = request.into_parts();
        let first = (0, message, parts.metadata, parts.previous_attempts);
        let answers = stream::try_unfold(
            (first, self.clone()),
            |((made, message, metadata, attempts), flaky)| async move {
                if made < message.count {
                    let answer = FlakyResponse {
                        id: message.id.clone(),
                        ..Default::default()
                    };
                    let next = (made + 1, message, metadata, attempts);
                    return Ok(Some((answer, (next, flaky))));
                }
                if made > message.count {
                    return Ok(None);
                }
                let answer = flaky.run(&message, &metadata, attempts).await?;
                Ok(Some((
                    answer,
                    ((made + 1, message, metadata, attempts), flaky),
                )))
            },
        );
        let answers: Answers = Box::pin(answers);
        Ok(Response::new(answers))
    }

    async fn load(
        &self,
        request: Request<Streaming<FlakyRequest>>,
    ) -> Result<Response<FlakyResponse>, Error> {
        let (mut messages, parts) = request.into_parts();
        let mut last = FlakyRequest::default();
        let mut count = 0;
        while let Some(message) = messages.message().await? {
            last = message;
            count += 1;
        }
        let run = self.run(&last, &parts.metadata, parts.previous_attempts);
        let mut answer = run.await?;
        answer.messages = count;
        Ok(answer.into())
    }

    async fn chat(
        &self,
        request: Request<Streaming<FlakyRequest>>,
    ) -> Result<Response<impl Stream<Item = Result<FlakyResponse, Error>> + Send>, Error> {
        let (messages, parts) = request.into_parts();
        let first = (
            messages,
            parts.metadata,
            parts.previous_attempts,
            self.clone(),
        );
        let answers = stream::try_unfold(
            first,
            |(mut messages, metadata, attempts, flaky)| async move {
                let Some(message) = messages.message().await? else {
                    return Ok(None);
                };
                let answer = flaky.run(&message, &metadata, attempts).await?;
                Ok(Some((answer, (messages, metadata, attempts, flaky))))
            },
        );
        let answers: Answers = Box::pin(answers);
        Ok(Response::new(answers))
    }
}
