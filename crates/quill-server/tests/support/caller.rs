//! A gRPC caller on a thread of its own, so that what is measured on the server's is the
//! server: its frames are made once, and of the answers it reads where they end.

#![allow(dead_code, reason = "not everything that is measured needs all of it")]

use std::io::{Read, Write};
use std::iter;
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use buffa_types::google::protobuf::StringValue;
use futures_util::stream;
use quill_core::{BuffaCodec, Error, Method, MethodKind, Request, Response, Streaming};
use quill_h2::hpack::Encoder;
use quill_server::{BoundServer, Routes, RunningServer, Service};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

const ECHO: &str = "/measure.v1.Echo/Echo";
const EXPAND: &str = "/measure.v1.Echo/Expand";
const COLLECT: &str = "/measure.v1.Echo/Collect";

/// Calls that are under way together.
pub(crate) const TOGETHER: u32 = 16;

/// Messages of a stream.
pub(crate) const STREAMED: u32 = 300;

/// Bytes of each message, encoded.
const MESSAGE_BYTES: u8 = 100;

/// What a frame may have, unless more was agreed on.
const PAYLOAD_BYTES_MAX: usize = 16 * 1024;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const FRAME_HEADER_BYTES: usize = 9;

/// What is called.
#[derive(Clone, Copy)]
pub(crate) struct Calls {
    path: &'static str,
    /// Messages of each request.
    messages: u32,
    /// What each request has beside the fields that all have.
    fields: &'static [(&'static str, &'static str)],
}

impl Calls {
    /// One message, which is answered by itself.
    pub(crate) const UNARY: Self = Self::of(ECHO, 1);
    /// One message, which is answered by [`STREAMED`] of the same.
    pub(crate) const SERVER_STREAM: Self = Self::of(EXPAND, 1);
    /// [`STREAMED`] messages, of which the last is answered.
    pub(crate) const CLIENT_STREAM: Self = Self::of(COLLECT, STREAMED);

    const fn of(path: &'static str, messages: u32) -> Self {
        Self {
            path,
            messages,
            fields: &[],
        }
    }

    pub(crate) const fn with(mut self, fields: &'static [(&'static str, &'static str)]) -> Self {
        self.fields = fields;
        self
    }
}

/// Answers with what it was sent.
pub(crate) struct Echo;

impl Service for Echo {
    fn name(&self) -> &str {
        "measure.v1.Echo"
    }

    fn routes(self, routes: &mut Routes) {
        let method = Method::new(ECHO, MethodKind::Unary);
        let echo =
            |request: Request<StringValue>| async { Ok(Response::new(request.into_inner())) };
        routes.unary(&method, BuffaCodec, BuffaCodec, echo);
        let method = Method::new(EXPAND, MethodKind::ServerStreaming);
        let expand = |request: Request<StringValue>| async {
            let messages = iter::repeat_n(request.into_inner(), STREAMED as usize);
            Ok(Response::new(stream::iter(messages.map(Ok))))
        };
        routes.server_streaming(&method, BuffaCodec, BuffaCodec, expand);
        let method = Method::new(COLLECT, MethodKind::ClientStreaming);
        routes.client_streaming(&method, BuffaCodec, BuffaCodec, last);
    }
}

async fn last(request: Request<Streaming<StringValue>>) -> Result<Response<StringValue>, Error> {
    let mut messages = request.into_inner();
    let mut last = StringValue::default();
    while let Some(message) = messages.message().await? {
        last = message;
    }
    Ok(Response::new(last))
}

/// A server on this thread, and its callers.
pub(crate) struct Measured {
    runtime: Runtime,
    _server: RunningServer,
    address: SocketAddr,
    calls: Calls,
    callers: Vec<Caller>,
}

impl Measured {
    /// Starts a server and has it called until all is as it stays.
    pub(crate) fn start(bind: impl AsyncFnOnce() -> BoundServer, calls: Calls) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let server = runtime.block_on(async { bind().await.start() });
        let address = server.local_addr().expect("an address");
        let mut measured = Self {
            runtime,
            _server: server,
            address,
            calls,
            callers: Vec::new(),
        };
        measured.connect(1);
        measured.run(4);
        measured
    }

    /// Has so many callers more.
    pub(crate) fn connect(&mut self, count: usize) {
        let (address, calls) = (self.address, self.calls);
        self.with_callers(move |callers| {
            callers.extend((0..count).map(|_| Caller::connect(address, calls)));
        });
    }

    /// Serves [`TOGETHER`] calls of each caller at once, so many times.
    pub(crate) fn run(&mut self, times: u32) {
        self.with_callers(move |callers| {
            for _ in 0..times {
                callers.iter_mut().for_each(|caller| caller.call(TOGETHER));
            }
        });
    }

    /// Opens a stream on each connection, of which no message comes.
    pub(crate) fn open_streams(&mut self) {
        self.with_callers(|callers| callers.iter_mut().for_each(Caller::open_stream));
    }

    /// Serves for a while in which nothing comes.
    pub(crate) fn rest(&mut self) {
        let rest = async { tokio::time::sleep(Duration::from_millis(500)).await };
        self.runtime.block_on(rest);
    }

    fn with_callers(&mut self, work: impl FnOnce(&mut Vec<Caller>) + Send + 'static) {
        let mut callers = std::mem::take(&mut self.callers);
        self.callers = self.serve(move || {
            work(&mut callers);
            callers
        });
    }

    /// Serves while another thread does this.
    fn serve<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, is_done) = oneshot::channel();
        let thread = thread::spawn(move || {
            let made = work();
            // Nobody waits for it when the server failed.
            let _ = done.send(());
            made
        });
        let _ = self.runtime.block_on(is_done);
        thread.join().expect("the caller's thread")
    }
}

struct Caller {
    stream: TcpStream,
    /// Requests that are written together, but for the numbers of their streams.
    requests: Vec<u8>,
    /// Where those numbers are, and of which request.
    numbers: Vec<(usize, u32)>,
    next: u32,
    received: Vec<u8>,
}

impl Caller {
    fn connect(address: SocketAddr, calls: Calls) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_nodelay(true).expect("an option");
        let mut caller = Self {
            stream,
            requests: Vec::new(),
            numbers: Vec::new(),
            next: 1,
            received: Vec::with_capacity(64 * 1024),
        };
        let mut encoder = Encoder::new();
        let mut start = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        // SETTINGS_INITIAL_WINDOW_SIZE: no call of a measurement waits for a window.
        put_frame(&mut start, SETTINGS, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff]);
        put_frame(&mut start, WINDOW_UPDATE, 0, &[0x7f, 0, 0, 0]);
        caller.stream.write_all(&start).expect("a write");
        // Until the header table has the fields.
        for _ in 0..4 {
            caller.put_request(&mut encoder, calls, 0);
            caller.call(1);
            caller.requests.clear();
            caller.numbers.clear();
        }
        for index in 0..TOGETHER {
            caller.put_request(&mut encoder, calls, index);
        }
        caller
    }

    fn put_request(&mut self, encoder: &mut Encoder, calls: Calls, index: u32) {
        let mut block = Vec::new();
        let usual = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", calls.path),
            (":authority", "127.0.0.1:8080"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
            ("user-agent", "grpc-go/1.80.0"),
        ];
        for (name, value) in usual.iter().chain(calls.fields) {
            encoder.field(name.as_bytes(), value.as_bytes(), false, &mut block);
        }
        let text_bytes = MESSAGE_BYTES - 2;
        let mut message = vec![0, 0, 0, 0, MESSAGE_BYTES, 0x0a, text_bytes];
        message.resize(message.len() + usize::from(text_bytes), b'x');
        self.put(HEADERS, END_HEADERS, &block, index);
        let body = message.repeat(calls.messages as usize);
        let mut parts = body.chunks(PAYLOAD_BYTES_MAX).peekable();
        while let Some(part) = parts.next() {
            let flags = if parts.peek().is_none() {
                END_STREAM
            } else {
                0
            };
            self.put(DATA, flags, part, index);
        }
    }

    /// Puts a frame of the request with this index.
    fn put(&mut self, kind: u8, flags: u8, payload: &[u8], index: u32) {
        self.numbers.push((self.requests.len() + 5, index));
        put_frame(&mut self.requests, kind, flags, payload);
    }

    /// Makes the calls that were put, `count` of them, and waits for their answers.
    fn call(&mut self, count: u32) {
        for (at, index) in &self.numbers {
            let number = self.next + 2 * index;
            self.requests[*at..at + 4].copy_from_slice(&number.to_be_bytes());
        }
        self.next += 2 * count;
        self.stream.write_all(&self.requests).expect("a write");
        let mut answered = 0;
        let mut read = [0; 16 * 1024];
        while answered < count {
            let bytes = self.stream.read(&mut read).expect("a read");
            assert_ne!(bytes, 0, "the server closed the connection");
            self.received.extend_from_slice(&read[..bytes]);
            answered += self.take_answers();
        }
        assert_eq!(answered, count);
    }

    fn open_stream(&mut self) {
        let end = FRAME_HEADER_BYTES + usize::from(self.requests[2]);
        let mut head = self.requests[..end].to_vec();
        head[5..FRAME_HEADER_BYTES].copy_from_slice(&self.next.to_be_bytes());
        self.next += 2;
        self.stream.write_all(&head).expect("a write");
    }

    /// Takes the frames that have come; how many calls they end.
    fn take_answers(&mut self) -> u32 {
        let (mut answered, mut at) = (0, 0);
        while let Some([a, b, c, kind, flags, ..]) = self.received.get(at..) {
            let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
            let end = at + FRAME_HEADER_BYTES + length;
            if end > self.received.len() {
                break;
            }
            let is_answer = *kind == HEADERS && flags & END_STREAM != 0;
            answered += u32::from(is_answer);
            at = end;
        }
        self.received.drain(..at);
        answered
    }
}

fn put_frame(out: &mut Vec<u8>, kind: u8, flags: u8, payload: &[u8]) {
    let length = u32::try_from(payload.len()).expect("a short frame");
    out.extend_from_slice(&length.to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags, 0, 0, 0, 0]);
    out.extend_from_slice(payload);
}
