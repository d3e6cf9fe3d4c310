//! The service itself.

use std::pin::pin;

use futures_util::future::{Either, select};
use futures_util::stream;
use quill_core::{Draining, Error, Request, Response};
use quill_server::codegen::Stream;
use tokio::sync::watch;

use crate::proto::health_check_response::ServingStatus;
use crate::proto::{Health, HealthCheckRequest, HealthCheckResponse};
use crate::reporter::{HealthReporter, Status};

/// The health service, to be added to a server.
pub type HealthServer = crate::proto::HealthServer<HealthService>;

/// Answers `Check` and `Watch` with what a [`HealthReporter`] was told.
#[derive(Clone, Debug)]
pub struct HealthService(HealthReporter);

/// A health service that says the server as a whole is serving.
#[must_use]
pub fn server() -> HealthServer {
    reporter().0
}

/// A health service, and what sets the status of services in it.
#[must_use]
pub fn reporter() -> (HealthServer, HealthReporter) {
    let reporter = HealthReporter::new();
    let service = HealthService(reporter.clone());
    (HealthServer::new(service), reporter)
}

impl Health for HealthService {
    async fn check(
        &self,
        mut request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Error> {
        let is_ending = request.draining().asked().is_cancelled();
        let service = &request.message().service;
        match self.0.status(service) {
            Some(_) if is_ending => Ok(answer(ServingStatus::NOT_SERVING).into()),
            Some(status) => Ok(answer(serving(Some(status))).into()),
            None => Err(Error::not_found(format!(
                "the health of service {service:?} is not known here"
            ))),
        }
    }

    async fn watch(
        &self,
        mut request: Request<HealthCheckRequest>,
    ) -> Result<Response<impl Stream<Item = Result<HealthCheckResponse, Error>> + Send>, Error>
    {
        let draining = request.draining();
        let service = &request.message().service;
        let Some(statuses) = self.0.watch(service) else {
            return Err(Error::resource_exhausted(
                "too many services without a status are watched, or the name is over 1024 bytes; ask for one that has a status",
            ));
        };
        let first = Watching {
            statuses,
            told: None,
            draining,
        };
        Ok(Response::new(stream::try_unfold(first, Watching::next)))
    }
}

/// A watcher, and what it was told last.
struct Watching {
    statuses: watch::Receiver<Option<Status>>,
    told: Option<Option<Status>>,
    draining: Draining,
}

impl Watching {
    /// Waits for a status that is not the one told last. Of a server that is asked to
    /// end nothing is serving any more. Once it drains, a watcher is not left waiting, but
    /// told to look elsewhere: sooner, it would come back here again and again.
    async fn next(mut self) -> Result<Option<(HealthCheckResponse, Self)>, Error> {
        loop {
            let is_ending = self.draining.asked().is_cancelled();
            let status = *self.statuses.borrow_and_update();
            let status = match status {
                Some(_) if is_ending => Some(Status::NotServing),
                status => status,
            };
            if self.told != Some(status) {
                self.told = Some(status);
                return Ok(Some((answer(serving(status)), self)));
            }
            let draining = self.draining.begun();
            if draining.is_cancelled() {
                return Err(Error::unavailable("the server is shutting down"));
            }
            let next = if is_ending {
                draining
            } else {
                self.draining.asked()
            };
            let mut ended = pin!(next.cancelled());
            let changed = pin!(self.statuses.changed());
            match select(ended.as_mut(), changed).await {
                Either::Right((Err(_), _)) => return Ok(None),
                Either::Left(_) | Either::Right((Ok(()), _)) => {}
            }
        }
    }
}

fn serving(status: Option<Status>) -> ServingStatus {
    match status {
        Some(Status::Serving) => ServingStatus::SERVING,
        Some(Status::NotServing) => ServingStatus::NOT_SERVING,
        None => ServingStatus::SERVICE_UNKNOWN,
    }
}

fn answer(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse {
        status: status.into(),
        ..Default::default()
    }
}
