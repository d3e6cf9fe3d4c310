//! Exchanges on a lane: in few places, of all sizes, and what becomes of them when the
//! server refuses, leaves or hangs.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use quill_core::Headers;
use quill_transport::{
    Caller, ClientOptions, Endpoint, Lane, LaneRequest, Part, ServerOptions, TransportError,
    TransportErrorKind,
};
use tokio::net::TcpListener;

use crate::raw::{Frame, Raw};
use crate::support::*;

/// Makes the same request a number of times, and keeps what came of each.
struct Same {
    request: LaneRequest,
    left: usize,
    /// The answer that is coming in, in each place.
    coming: Vec<Option<BytesMut>>,
    answers: Vec<(Bytes, Option<Headers>)>,
    errors: Vec<TransportError>,
    /// When the exchange in the first place has taken too long.
    first_is_late: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Same {
    fn new(url: &str, path: &str, body: Bytes, times: usize) -> Self {
        let endpoint = Endpoint::parse(url).unwrap();
        Self {
            request: LaneRequest::new(&endpoint, post(path), body).unwrap(),
            left: times,
            coming: vec![None; 16],
            answers: Vec::new(),
            errors: Vec::new(),
            first_is_late: None,
        }
    }
}

impl Caller for Same {
    fn poll_begin(&mut self, place: usize, _: &mut Context<'_>) -> Poll<bool> {
        let Some(left) = self.left.checked_sub(1) else {
            return Poll::Ready(false);
        };
        self.left = left;
        assert!(self.coming[place].is_none(), "{place} is not free");
        self.coming[place] = Some(BytesMut::new());
        Poll::Ready(true)
    }

    fn request(&self, place: usize) -> Option<&LaneRequest> {
        assert!(self.coming[place].is_some());
        Some(&self.request)
    }

    fn take(&mut self, place: usize, part: Part) -> bool {
        let coming = self.coming[place].as_mut().expect("it was begun");
        match part {
            Part::Head(head) => assert_eq!(head.status, 200),
            Part::Data(data) => coming.extend_from_slice(&data),
            Part::End(trailers) => {
                let answer = self.coming[place].take().unwrap_or_default().freeze();
                self.answers.push((answer, trailers));
            }
            Part::Failed(error) => {
                self.coming[place] = None;
                self.errors.push(error);
            }
        }
        true
    }

    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<usize> {
        let Some(late) = &mut self.first_is_late else {
            return Poll::Pending;
        };
        ready!(late.as_mut().poll(cx));
        self.first_is_late = None;
        self.coming[0] = None;
        Poll::Ready(0)
    }
}

async fn lane(url: &str, places: usize) -> Lane {
    let endpoint = Endpoint::parse(url).unwrap();
    let options = ClientOptions::default();
    let lane = soon(Lane::connect(&endpoint, &options, None, places)).await;
    lane.unwrap().expect("it is HTTP/2")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exchanges_follow_each_other_in_their_places() {
    let shared = Shared::default();
    let mut options = ServerOptions::default();
    // Fewer streams than there are places.
    options.http2_streams_max = 3;
    let running = start(&shared, options).await;
    let url = url(&running);
    let mut lane = lane(&url, 5).await;
    for (path, body, times) in [
        ("/echo", Bytes::from_static(b"hi"), 1000),
        ("/echo", Bytes::new(), 10),
        // More than any window.
        ("/echo", Bytes::from(vec![7; 3_000_000]), 8),
        ("/trailers", Bytes::from_static(b"hi"), 10),
    ] {
        let mut same = Same::new(&url, path, body.clone(), times);
        soon(lane.run(&mut same)).await.unwrap();
        assert!(same.errors.is_empty(), "{:?}", same.errors);
        assert_eq!(same.answers.len(), times, "{path}");
        for (answer, trailers) in &same.answers {
            assert_eq!(trailers.is_some(), path == "/trailers");
            assert!(path == "/trailers" || *answer == body);
        }
    }
    lane.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_takes_too_long_is_given_up() {
    let shared = Shared::default();
    let running = start(&shared, ServerOptions::default()).await;
    let url = url(&running);
    let mut lane = lane(&url, 1).await;
    let mut same = Same::new(&url, "/hang", Bytes::new(), 1);
    let arrived = shared.arrived.clone();
    same.first_is_late = Some(Box::pin(async move { arrived.notified().await }));
    soon(lane.run(&mut same)).await.unwrap();
    // The server learns of it.
    soon(shared.dropped.notified()).await;
    let mut same = Same::new(&url, "/echo", Bytes::from_static(b"hi"), 1);
    soon(lane.run(&mut same)).await.unwrap();
    assert_eq!(same.answers.len(), 1);
}

#[tokio::test]
async fn what_a_server_that_leaves_has_not_taken_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let mut raw = Raw::server(socket).await;
        // Of three it takes the first, refuses the second, and has not seen the third.
        raw.until(|frame| frame.kind == Frame::HEADERS && frame.stream == 5)
            .await;
        raw.write(&Frame::reset(3, 7)).await;
        raw.write(&Frame::goaway(3, 0)).await;
        // :status 200, and the end.
        raw.write(&Frame::headers(1, 0x5, &[0x88])).await;
        raw.rest().await
    });
    let mut lane = lane(&url, 3).await;
    let mut same = Same::new(&url, "/", Bytes::new(), 3);
    let error = soon(lane.run(&mut same)).await.unwrap_err();
    assert_eq!(error.kind(), TransportErrorKind::Closed);
    assert_eq!(same.answers.len(), 1);
    assert_eq!(same.errors.len(), 2);
    for error in &same.errors {
        assert!(!error.maybe_processed(), "{error}");
    }
    drop(lane);
    soon(serving).await.unwrap();
}

#[tokio::test]
async fn what_is_under_way_fails_with_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let mut raw = Raw::server(socket).await;
        raw.until(|frame| frame.kind == Frame::HEADERS).await;
    });
    let mut lane = lane(&url, 2).await;
    let mut same = Same::new(&url, "/", Bytes::new(), 3);
    soon(lane.run(&mut same)).await.unwrap_err();
    assert_eq!((same.errors.len(), same.left), (2, 1));
    assert!(same.errors.iter().all(TransportError::maybe_processed));
    soon(serving).await.unwrap();
}

#[tokio::test]
async fn a_server_without_http2_is_told_apart() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let answer = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
        socket.writable().await.unwrap();
        socket.try_write(answer).unwrap();
    });
    let endpoint = Endpoint::parse(&url).unwrap();
    let options = ClientOptions::default();
    let connected = soon(Lane::connect(&endpoint, &options, None, 1)).await;
    let error = connected.unwrap_err();
    assert_eq!(error.kind(), TransportErrorKind::HttpVersion, "{error}");
}
