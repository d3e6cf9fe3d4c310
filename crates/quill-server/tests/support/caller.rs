//! A gRPC caller on a thread of its own, so that what is measured on the server's is the
//! server: its frames are made once, and of the answers it reads where they end.

#![allow(dead_code, reason = "not everything that is measured needs all of it")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use buffa_types::google::protobuf::StringValue;
use quill_core::{BuffaCodec, Method, MethodKind, Request, Response};
use quill_h2::hpack::Encoder;
use quill_server::{BoundServer, Routes, RunningServer, Service};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

const PATH: &str = "/measure.v1.Echo/Echo";

/// Calls that are under way together.
pub(crate) const TOGETHER: u32 = 16;

/// Bytes of each message, encoded.
const MESSAGE_BYTES: u8 = 100;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const FRAME_HEADER_BYTES: usize = 9;

/// Answers with what it was sent.
pub(crate) struct Echo;

impl Service for Echo {
    fn name(&self) -> &str {
        "measure.v1.Echo"
    }

    fn routes(self, routes: &mut Routes) {
        let method = Method::new(PATH, MethodKind::Unary);
        let echo =
            |request: Request<StringValue>| async { Ok(Response::new(request.into_inner())) };
        routes.unary(&method, BuffaCodec, BuffaCodec, echo);
    }
}

/// A server on this thread, and its callers.
pub(crate) struct Measured {
    runtime: Runtime,
    _server: RunningServer,
    address: SocketAddr,
    fields: &'static [(&'static str, &'static str)],
    callers: Vec<Caller>,
}

impl Measured {
    /// Starts a server and has it called until all is as it stays. Each request has
    /// `fields` beside those that all have.
    pub(crate) fn start(
        bind: impl AsyncFnOnce() -> BoundServer,
        fields: &'static [(&'static str, &'static str)],
    ) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let server = runtime.block_on(async { bind().await.start() });
        let address = server.local_addr().expect("an address");
        let mut measured = Self {
            runtime,
            _server: server,
            address,
            fields,
            callers: Vec::new(),
        };
        measured.connect(1);
        measured.run(4);
        measured
    }

    /// Has so many callers more.
    pub(crate) fn connect(&mut self, count: usize) {
        let (address, fields) = (self.address, self.fields);
        self.with_callers(move |callers| {
            callers.extend((0..count).map(|_| Caller::connect(address, fields)));
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
    /// Where those numbers are.
    numbers: Vec<usize>,
    next: u32,
    received: Vec<u8>,
}

impl Caller {
    fn connect(address: SocketAddr, fields: &[(&str, &str)]) -> Self {
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
            caller.put_request(&mut encoder, fields);
            caller.call(1);
            caller.requests.clear();
            caller.numbers.clear();
        }
        for _ in 0..TOGETHER {
            caller.put_request(&mut encoder, fields);
        }
        caller
    }

    fn put_request(&mut self, encoder: &mut Encoder, fields: &[(&str, &str)]) {
        let mut block = Vec::new();
        let usual = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", PATH),
            (":authority", "127.0.0.1:8080"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
            ("user-agent", "grpc-go/1.80.0"),
        ];
        for (name, value) in usual.iter().chain(fields) {
            encoder.field(name.as_bytes(), value.as_bytes(), false, &mut block);
        }
        let text_bytes = MESSAGE_BYTES - 2;
        let mut message = vec![0, 0, 0, 0, MESSAGE_BYTES, 0x0a, text_bytes];
        message.resize(message.len() + usize::from(text_bytes), b'x');
        for (kind, flags, payload) in [(HEADERS, END_HEADERS, &block), (DATA, END_STREAM, &message)]
        {
            self.numbers.push(self.requests.len() + 5);
            put_frame(&mut self.requests, kind, flags, payload);
        }
    }

    /// Makes the calls that were put, `count` of them, and waits for their answers.
    fn call(&mut self, count: u32) {
        for (index, at) in self.numbers.iter().enumerate() {
            let number = self.next + 2 * u32::try_from(index / 2).expect("few");
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
