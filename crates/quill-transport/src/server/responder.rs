//! Our [`Service`] as hyper's.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderValue;
use http::header::CONNECTION;
use hyper::body::Incoming;
use pin_project_lite::pin_project;
use quill_core::{Budget, HttpVersion, Peer, SharedHead};

use super::activity::{Activity, Mark};
use super::delivery::Delivery;
use super::unread::Unread;
use crate::adapt::HttpBody;
use crate::body::RecvBody;
use crate::exchange::{HttpRequest, HttpResponse, Service};
use crate::fields;

/// Answers the requests of one connection.
pub(super) struct Responder<S> {
    pub(super) service: S,
    pub(super) peer: Peer,
    pub(super) budget: Option<Budget>,
    pub(super) activity: Arc<Activity>,
    /// The largest piece that an answer's body is handed on in.
    pub(super) piece_bytes_max: usize,
}

impl<S: Service> hyper::service::Service<http::Request<Incoming>> for Responder<S> {
    type Response = http::Response<Marked<S::Body>>;
    type Error = Infallible;
    type Future = Answer<S::Future, S::Body>;

    fn call(&self, request: http::Request<Incoming>) -> Self::Future {
        let mark = self.activity.begin();
        let (parts, body) = request.into_parts();
        let mut body = RecvBody::hyper(body, self.peer.version()).lingering();
        let unread = (self.peer.version() == HttpVersion::Http1).then(Unread::new);
        if let Some(unread) = &unread {
            body = body.tied(unread.tie());
        }
        let future = self.service.call(HttpRequest {
            head: SharedHead::new(fields::request_from_http(&parts)),
            body,
            peer: self.peer.clone(),
            budget: self.budget.clone(),
        });
        Answer {
            future,
            mark: Some(mark),
            response: None,
            unread,
            piece_bytes_max: self.piece_bytes_max,
        }
    }
}

pin_project! {
    /// The answer to come.
    pub(super) struct Answer<F, B> {
        #[pin]
        future: F,
        mark: Option<Mark>,
        response: Option<HttpResponse<B>>,
        unread: Option<Unread>,
        piece_bytes_max: usize,
    }
}

impl<F, B> Future for Answer<F, B>
where
    F: Future<Output = HttpResponse<B>>,
    B: crate::Body,
{
    type Output = Result<http::Response<Marked<B>>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if this.response.is_none() {
            *this.response = Some(ready!(this.future.poll(cx)));
        }
        let may_stay_open = match this.unread {
            // HTTP/1.1 alone: HTTP/2 says it in another way.
            Some(unread) => {
                let leaves = this.mark.as_ref().is_some_and(Mark::is_leaving);
                ready!(unread.poll_read(cx)) && !leaves
            }
            None => true,
        };
        let Some(response) = this.response.take() else {
            return Poll::Pending;
        };
        let mut parts = fields::response_to_http(&response.head);
        if !may_stay_open {
            let close = HeaderValue::from_static("close");
            parts.headers.insert(CONNECTION, close);
        }
        let body = Marked {
            body: HttpBody::new(response.body),
            rest: Bytes::new(),
            piece_bytes_max: *this.piece_bytes_max,
            delivery: Delivery::current(),
            mark: this.mark.take(),
        };
        Poll::Ready(Ok(http::Response::from_parts(parts, body)))
    }
}

pin_project! {
    /// An answer's body; its exchange is open until it is dropped.
    pub(super) struct Marked<B> {
        #[pin]
        body: HttpBody<B>,
        // What is left of a piece that was too large to be handed on whole.
        rest: Bytes,
        piece_bytes_max: usize,
        delivery: Option<Delivery>,
        mark: Option<Mark>,
    }
}

impl<B: crate::Body> http_body::Body for Marked<B> {
    type Data = bytes::Bytes;
    type Error = crate::TransportError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Self::Data>, Self::Error>>> {
        let this = self.project();
        if let Some(delivery) = this.delivery {
            delivery.asked();
        }
        if this.rest.is_empty() {
            match ready!(this.body.poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => *this.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                end => return Poll::Ready(end),
            }
        }
        if let Some(delivery) = this.delivery {
            delivery.given();
        }
        let bytes = this.rest.len().min(*this.piece_bytes_max);
        let piece = this.rest.split_to(bytes);
        Poll::Ready(Some(Ok(http_body::Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match self.body.size_hint().exact() {
            Some(bytes) => http_body::SizeHint::with_exact(bytes + self.rest.len() as u64),
            None => http_body::SizeHint::default(),
        }
    }
}
