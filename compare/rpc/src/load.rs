//! Loads by h2load, over HTTP/2 and HTTP/1.1.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use prost::Message;

use crate::generated::tonic::{Attribute, Record, Records};
use crate::process::{Program, Server};
use crate::servers::KEY;

const CONNECTIONS: &str = "8";
const STREAMS: &str = "16";

/// Bytes of gRPC's head of a message.
const HEAD_BYTES: usize = 5;

/// Records of one request.
const RECORDS: u64 = 50;

/// A request, and how often it is made.
#[derive(Debug, Clone)]
pub struct Load {
    path: &'static str,
    /// Fields beside those of HTTP, as `name: value`.
    fields: Vec<String>,
    body: PathBuf,
    is_http1: bool,
    is_secure: bool,
    /// What the bodies of one answer have together, where it is known before.
    answer_bytes: Option<usize>,
    pub requests: usize,
}

/// How the message lies in the body.
#[derive(Debug, Clone, Copy)]
pub enum Form {
    Grpc,
    /// Compressed both ways.
    GrpcZstd,
    GrpcWeb,
    /// Quill's own protocol: bare.
    Quill,
    /// Connect over HTTP/2: bare.
    Connect,
    /// Connect over HTTP/1.1: bare.
    ConnectHttp1,
}

impl Form {
    fn fields(self) -> Vec<String> {
        let fields: &[&str] = match self {
            Self::Grpc => &["content-type: application/grpc", "te: trailers"],
            Self::GrpcZstd => &[
                "content-type: application/grpc",
                "te: trailers",
                "grpc-encoding: zstd",
                "grpc-accept-encoding: zstd",
            ],
            Self::GrpcWeb => &["content-type: application/grpc-web+proto"],
            Self::Quill => &[
                "content-type: application/quill+proto",
                "accept: application/quill+proto",
            ],
            Self::Connect | Self::ConnectHttp1 => &[
                "content-type: application/proto",
                "connect-protocol-version: 1",
            ],
        };
        fields.iter().map(|field| (*field).to_owned()).collect()
    }
}

impl Load {
    /// Unary calls with a payload of so many bytes.
    pub fn unary(folder: &Path, form: Form, bytes: usize, requests: usize) -> Result<Self, String> {
        let message = message(bytes);
        let body = match form {
            Form::Grpc | Form::GrpcWeb => framed(&message),
            Form::GrpcZstd => compressed(&message)?,
            Form::Quill | Form::Connect | Form::ConnectHttp1 => message,
        };
        // The trailers of gRPC-Web are part of its bodies.
        let answer_bytes = match form {
            Form::GrpcZstd | Form::GrpcWeb => None,
            _ => Some(body.len()),
        };
        Ok(Self {
            path: "/echo.v1.Echo/Unary",
            fields: form.fields(),
            body: write(folder, &format!("{form:?}-{bytes}"), &body)?,
            is_http1: matches!(form, Form::ConnectHttp1),
            is_secure: false,
            answer_bytes,
            requests,
        })
    }

    /// Calls with many log records, of which `method` looks at each.
    pub fn records(folder: &Path, method: &'static str, requests: usize) -> Result<Self, String> {
        let mut load = Self::unary(folder, Form::Grpc, 0, requests)?;
        load.path = method;
        load.body = write(folder, "records", &framed(&records()))?;
        load.answer_bytes = None;
        Ok(load)
    }

    /// The same over TLS.
    pub fn over_tls(mut self) -> Self {
        self.is_secure = true;
        self
    }

    /// Calls whose answers have `times` messages of 100 bytes each.
    pub fn server_stream(folder: &Path, times: usize, requests: usize) -> Result<Self, String> {
        let mut load = Self::unary(folder, Form::Grpc, 100, requests)?;
        load.path = "/echo.v1.Echo/Expand";
        load.answer_bytes = load.answer_bytes.map(|bytes| bytes * times);
        Ok(load)
    }

    /// Calls whose requests have `times` messages of 100 bytes each.
    pub fn client_stream(folder: &Path, times: usize, requests: usize) -> Result<Self, String> {
        let mut load = Self::unary(folder, Form::Grpc, 100, requests)?;
        load.path = "/echo.v1.Echo/Collect";
        let body = framed(&message(100)).repeat(times);
        load.body = write(folder, "client-stream", &body)?;
        Ok(load)
    }

    /// [`server_stream`](Self::server_stream) in Quill's own protocol; with
    /// `credits`, each message is sent against one, all granted at once.
    pub fn quill_server_stream(
        folder: &Path,
        requests: usize,
        credits: bool,
    ) -> Result<Self, String> {
        let mut load = Self::unary(folder, Form::Quill, 100, requests)?;
        load.path = "/echo.v1.Echo/Expand";
        load.answer_bytes = None;
        load.fields = vec!["accept: application/quill-stream+proto".to_owned()];
        if credits {
            load.body = write(folder, "quill-server-stream", &quill_frames(1))?;
            load.fields.push("quill-credits: 1000000".to_owned());
            load.fields
                .push("content-type: application/quill-stream+proto".to_owned());
        } else {
            load.fields
                .push("content-type: application/quill+proto".to_owned());
        }
        Ok(load)
    }

    /// [`client_stream`](Self::client_stream) in Quill's own protocol.
    pub fn quill_client_stream(
        folder: &Path,
        times: usize,
        requests: usize,
    ) -> Result<Self, String> {
        let mut load = Self::unary(folder, Form::Quill, 100, requests)?;
        load.path = "/echo.v1.Echo/Collect";
        load.fields = vec![
            "accept: application/quill+proto".to_owned(),
            "content-type: application/quill-stream+proto".to_owned(),
        ];
        load.body = write(folder, "quill-client-stream", &quill_frames(times))?;
        Ok(load)
    }

    /// With what a call in earnest carries.
    pub fn with_metadata(mut self) -> Self {
        self.fields.extend([
            "grpc-timeout: 10S".into(),
            format!("authorization: Bearer {KEY}"),
            "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into(),
            "user-agent: grpc-go/1.85.0".into(),
        ]);
        self
    }

    pub fn with_requests(&self, requests: usize) -> Self {
        let mut load = self.clone();
        load.requests = requests;
        load
    }

    /// Makes the requests as fast as they are answered.
    pub fn run(&self, server: &Server) -> Result<(), String> {
        let streams = if self.is_http1 { "1" } else { STREAMS };
        self.h2load(server, &["-c", CONNECTIONS, "-m", streams])
    }

    /// Starts so many requests a second, whether or not earlier ones are
    /// answered (h2load does so in bursts, every 10 ms); the times that answers
    /// took, in microseconds and in order.
    pub fn run_at(&self, server: &Server, per_second: usize) -> Result<Vec<u64>, String> {
        let log = self.body.with_extension("log");
        let _ = fs::remove_file(&log);
        let rate = format!("--rps={}", per_second / 8);
        let file = format!("--log-file={}", log.display());
        self.h2load(server, &["-c", CONNECTIONS, "-m", "1000", &rate, &file])?;
        let text = fs::read_to_string(&log).map_err(|error| format!("h2load's log: {error}"))?;
        // Start of the request in us since the epoch, status, us until its end.
        let mut starts = Vec::with_capacity(self.requests);
        let mut times = Vec::with_capacity(self.requests);
        for line in text.lines() {
            let mut columns = line.split('\t').map(|column| column.parse().unwrap_or(0));
            starts.push(columns.next().unwrap_or(0));
            times.push(columns.nth(1).unwrap_or(0));
        }
        let span = starts.iter().max().zip(starts.iter().min());
        let seconds = span.map_or(0.0, |(last, first)| (last - first) as f64 / 1e6);
        let kept = times.len() as f64 / seconds;
        if kept < 0.9 * per_second as f64 {
            return Err(format!("{kept:.0} of {per_second} requests/s were sent"));
        }
        times.sort_unstable();
        Ok(times)
    }

    fn h2load(&self, server: &Server, arguments: &[&str]) -> Result<(), String> {
        let mut command = Command::new("h2load");
        command
            .args(["-n", &self.requests.to_string()])
            .args(arguments);
        let is_file = matches!(server.subject.program, Program::Nghttpd);
        let path = if is_file {
            let name = self.body.file_name().and_then(|name| name.to_str());
            format!("/{}", name.unwrap_or_default())
        } else {
            command.arg("-d").arg(&self.body);
            self.path.to_owned()
        };
        if self.is_http1 {
            command.arg("--h1");
        }
        for field in &self.fields {
            command.args(["-H", field]);
        }
        let scheme = if self.is_secure { "https" } else { "http" };
        let url = format!("{scheme}://{}{path}", server.address);
        let output = command
            .arg(url)
            .output()
            .map_err(|error| format!("h2load: {error}"))?;
        self.check(&String::from_utf8_lossy(&output.stdout))
            .map_err(|error| format!("{}: {error}", server.subject.name))
    }

    /// gRPC's errors come with status 200: only the bytes tell that all calls
    /// were answered.
    fn check(&self, report: &str) -> Result<(), String> {
        let number = |before: &str, after: &str| {
            let text = report.split_once(after)?.0;
            text.rsplit_once(before)?.1.trim().parse::<usize>().ok()
        };
        // requests: 9 total, 9 started, 9 done, 9 succeeded, 0 failed, ...
        // traffic: 1.2KB (1234) total, 12B (12) headers (...), 945B (945) data
        let succeeded = number(",", " succeeded").unwrap_or(0);
        let bytes = number("(", ") data").unwrap_or(0);
        let is_whole = match self.answer_bytes {
            Some(each) => bytes == self.requests * each,
            None => bytes >= self.requests,
        };
        if succeeded != self.requests || !is_whole {
            return Err(format!(
                "{succeeded} of {} requests were answered, with {bytes} bytes",
                self.requests
            ));
        }
        Ok(())
    }
}

/// A `Payload` of so many bytes.
pub fn message(bytes: usize) -> Vec<u8> {
    let mut message = vec![0x0a];
    let mut length = bytes;
    while length >= 0x80 {
        message.push(length as u8 | 0x80);
        length >>= 7;
    }
    message.push(length as u8);
    message.resize(message.len() + bytes, b'a');
    message
}

/// A message behind gRPC's head.
pub fn framed(message: &[u8]) -> Vec<u8> {
    enveloped(0, message)
}

/// A message that zstd made smaller, behind gRPC's head.
fn compressed(message: &[u8]) -> Result<Vec<u8>, String> {
    let bytes = zstd::bulk::compress(message, 3).map_err(|error| format!("zstd: {error}"))?;
    Ok(enveloped(1, &bytes))
}

/// Log records as a collector gets them, some 250 bytes each.
fn records() -> Vec<u8> {
    let attribute = |key: &str, value: String| Attribute {
        key: key.to_owned(),
        value,
    };
    let records = (0..RECORDS).map(|number: u64| Record {
        time_nanos: 1_700_000_000_000_000_000 + number * 1_000_003,
        severity: 9,
        host: format!("node-{:03}.eu-west.example", number % 7),
        service: "checkout".to_owned(),
        text: format!("order {number} was placed: 3 items, 59.97 EUR, paid by card"),
        trace_id: vec![number as u8; 16],
        attributes: vec![
            attribute("http.method", "POST".to_owned()),
            attribute("http.target", format!("/orders/{number}")),
            attribute("user.id", format!("u-{}", 7_919 * number)),
        ],
    });
    let records = records.collect();
    Records { records }.encode_to_vec()
}

fn enveloped(flags: u8, message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("messages are below 4 GiB");
    let mut framed = Vec::with_capacity(HEAD_BYTES + message.len());
    framed.push(flags);
    framed.extend(length.to_be_bytes());
    framed.extend(message);
    framed
}

/// A stream of messages of 100 bytes in Quill's frames: the length, the flag of a
/// message; at last the end.
fn quill_frames(times: usize) -> Vec<u8> {
    let message = message(100);
    let mut frame = vec![message.len() as u8, 0x01];
    frame.extend(message);
    let mut frames = frame.repeat(times);
    frames.extend([0x00, 0x02]);
    frames
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf, String> {
    let file = folder.join(name);
    fs::write(&file, bytes).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(file)
}
