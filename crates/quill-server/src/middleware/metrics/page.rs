//! Where a server answers with its metrics.

use std::future::{Ready, ready};

use quill_core::{HttpMethod, RequestHead, ResponseHead};
use quill_transport::{BindError, Full, HttpRequest, HttpResponse, Listener, Service};

use super::collector::MetricsCollector;
use super::prometheus::CONTENT_TYPE;

const PATH_DEFAULT: &str = "/metrics";
/// What its path may be.
pub(crate) const PATH_FORM: &str = "allowed is a path with its leading /, without a query";

/// Where a server answers Prometheus' scraper; nowhere unless set.
#[derive(Debug)]
pub struct MetricsPage {
    pub(crate) path: String,
    pub(crate) place: Place,
}

/// On whose address a page is.
#[derive(Debug)]
pub(crate) enum Place {
    /// The server's own.
    Here,
    /// One that is bound with the server.
    Address(String),
    Bound(Listener),
}

impl MetricsPage {
    /// At `/metrics` of the server's own address, for whoever can reach it: behind
    /// the HTTP-level layers and no others.
    #[must_use]
    pub fn here() -> Self {
        Self {
            path: PATH_DEFAULT.to_owned(),
            place: Place::Here,
        }
    }

    /// At `/metrics` of an address of its own, which callers need not reach. It
    /// speaks plain HTTP, answers nothing else, and ends with the server.
    #[must_use]
    pub fn on(listener: Listener) -> Self {
        Self {
            place: Place::Bound(listener),
            ..Self::here()
        }
    }

    /// As [`on`](Self::on), at an address that is bound with the server's own
    /// (`host:port`, `unix:/path`).
    #[must_use]
    pub fn on_address(address: impl Into<String>) -> Self {
        Self {
            place: Place::Address(address.into()),
            ..Self::here()
        }
    }

    /// Binds its address, if it has one that is not bound yet.
    pub(crate) async fn bind(&mut self) -> Result<(), BindError> {
        if let Place::Address(address) = &self.place {
            self.place = Place::Bound(Listener::bind(address).await?);
        }
        Ok(())
    }

    /// At another path, with its leading `/`.
    #[must_use]
    pub fn at(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// Whether its path is one, as [`PATH_FORM`] says.
    pub(crate) fn has_path(&self) -> bool {
        let path = &self.path;
        path.starts_with('/') && RequestHead::post(path).path() == path
    }
}

/// Answers with a collector's metrics at one path, and 404 at others.
#[derive(Clone, Debug)]
pub(crate) struct PageService {
    path: String,
    collector: MetricsCollector,
}

impl PageService {
    pub(crate) fn new(path: String, collector: MetricsCollector) -> Self {
        Self { path, collector }
    }

    /// The answer to a request that is for the page; `None` to others.
    pub(crate) fn answer(&self, request: &RequestHead) -> Option<HttpResponse<Full>> {
        (request.path() == self.path).then(|| self.page(&request.method))
    }

    fn page(&self, method: &HttpMethod) -> HttpResponse<Full> {
        if *method != HttpMethod::Get {
            let mut response = status(405);
            response.head.headers.append("allow", "GET");
            return response;
        }
        let mut head = ResponseHead::new(200);
        head.headers.append("content-type", CONTENT_TYPE);
        head.headers.append("cache-control", "no-store");
        HttpResponse {
            head,
            body: Full::new(self.collector.prometheus()),
        }
    }
}

impl Service for PageService {
    type Body = Full;
    type Future = Ready<HttpResponse<Full>>;

    fn call(&self, request: HttpRequest) -> Self::Future {
        ready(self.answer(&request.head).unwrap_or_else(|| status(404)))
    }
}

fn status(status: u16) -> HttpResponse<Full> {
    HttpResponse {
        head: ResponseHead::new(status),
        body: Full::default(),
    }
}
