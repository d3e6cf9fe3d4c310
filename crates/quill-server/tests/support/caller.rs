//! A gRPC caller of which next to nothing is to be measured: its frames are made once,
//! and of the answers it reads where they end.

use buffa_types::google::protobuf::StringValue;
use quill_core::{BuffaCodec, Method, MethodKind, Request, Response};
use quill_h2::hpack::Encoder;
use quill_server::{Routes, RunningServer, Server, Service};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

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
struct Echo;

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

/// A server, and a connection to it.
pub(crate) struct Caller {
    _server: RunningServer,
    stream: TcpStream,
    /// Requests that are written together, but for the numbers of their streams.
    requests: Vec<u8>,
    /// Where those numbers are.
    numbers: Vec<usize>,
    next: u32,
    received: Vec<u8>,
}

impl Caller {
    /// Starts a server, connects to it and calls it until all is as it stays.
    pub(crate) async fn connect() -> Self {
        let server = Server::builder().service(Echo).bind("127.0.0.1:0").await;
        let server = server.expect("a server").start();
        let address = server.local_addr().expect("an address");
        let stream = TcpStream::connect(address).await.expect("a connection");
        let mut caller = Self {
            _server: server,
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
        caller.stream.write_all(&start).await.expect("a write");
        // The first puts its fields in the header table.
        caller.put_request(&mut encoder);
        caller.call(1).await;
        caller.requests.clear();
        caller.numbers.clear();
        for _ in 0..TOGETHER {
            caller.put_request(&mut encoder);
        }
        for _ in 0..4 {
            caller.call(TOGETHER).await;
        }
        caller
    }

    fn put_request(&mut self, encoder: &mut Encoder) {
        let mut block = Vec::new();
        for (name, value) in [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", PATH),
            (":authority", "127.0.0.1:8080"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
            ("user-agent", "grpc-go/1.80.0"),
        ] {
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
    pub(crate) async fn call(&mut self, count: u32) {
        for (index, at) in self.numbers.iter().enumerate() {
            let number = self.next + 2 * u32::try_from(index / 2).expect("few");
            self.requests[*at..at + 4].copy_from_slice(&number.to_be_bytes());
        }
        self.next += 2 * count;
        let written = self.stream.write_all(&self.requests).await;
        written.expect("a write");
        let mut answered = 0;
        while answered < count {
            let read = self.stream.read_buf(&mut self.received).await;
            assert_ne!(read.expect("a read"), 0, "the server closed the connection");
            answered += self.take_answers();
        }
        assert_eq!(answered, count);
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
