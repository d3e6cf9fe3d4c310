//! Line ends where they would begin a field of their own: in metadata that a handler or a
//! caller sets, in messages of errors, and in what peers send inside of bodies.

use buffa::Message as _;
use futures_util::stream;
use quill::client::{Token, Tokens};
use quill::{
    Code, Error, Format, Metadata, Protocol, QuillClient, Request, Response, Stream, Streaming,
};

use crate::peer::{Answer, Http1, Script, ToldServer, envelope, head, http2, send, soon};
use crate::probe::{
    PROTOCOLS, ProbeClient, ProbeRequest, ProbeResponse, ProbeServer, ProbeService, say,
};

/// What would be a second field if it were written as it is.
const SMUGGLED: &str = "a\r\nx-evil: 1";
/// Names and values that no handler may set.
const FORBIDDEN: [(&str, &str); 10] = [
    ("x-a", SMUGGLED),
    ("x-a", "a\nx-evil: 1"),
    ("x-a", "a\rx-evil: 1"),
    ("x-a", "\r\n\r\nHTTP/1.1 200 OK"),
    ("x-a", "a\r\n"),
    ("x-a", "a\0"),
    ("x-a\r\nx-evil", "1"),
    ("x-a: 1\nx-evil", "1"),
    ("x-a\r\nx-evil-bin", "1"),
    ("grpc-status", "0\r\nx-evil: 1"),
];
const PLACES: [&str; 3] = ["leading", "trailing", "error"];

/// Sets metadata: `ending` says where, `text` its name and value around a `=`.
struct Sets;

fn set<T>(asked: &ProbeRequest, well: T) -> Result<Response<T>, Error> {
    let (name, value) = asked.text.split_once('=').expect("a name and a value");
    let bytes = name.ends_with("-bin");
    let mut response = Response::new(well);
    let mut error = Error::not_found("gone");
    let metadata = match asked.ending.as_str() {
        "leading" => response.metadata_mut(),
        "trailing" => response.trailers_mut(),
        "error" => error.metadata_mut(),
        "message" => return Err(Error::not_found(value.to_owned())),
        place => panic!("no place {place}"),
    };
    if bytes {
        metadata.insert_bin(name, value)?;
    } else {
        metadata.append(name, value)?;
    }
    if asked.ending == "error" {
        return Err(error);
    }
    Ok(response)
}

impl ProbeService for Sets {
    async fn one(&self, request: Request<ProbeRequest>) -> Result<Response<ProbeResponse>, Error> {
        set(request.message(), ProbeResponse::default())
    }

    async fn down(
        &self,
        request: Request<ProbeRequest>,
    ) -> Result<Response<impl Stream<Item = Result<ProbeResponse, Error>> + Send>, Error> {
        set(
            request.message(),
            stream::iter([Ok(ProbeResponse::default())]),
        )
    }

    async fn up(
        &self,
        _: Request<Streaming<ProbeRequest>>,
    ) -> Result<Response<ProbeResponse>, Error> {
        Err(Error::unimplemented("up"))
    }

    /// What it is told comes when the head has left.
    async fn both(
        &self,
        request: Request<Streaming<ProbeRequest>>,
    ) -> Result<Response<impl Stream<Item = Result<ProbeResponse, Error>> + Send>, Error> {
        let messages = request.into_inner();
        let answers = stream::try_unfold(messages, |mut messages| async move {
            let Some(asked) = messages.message().await? else {
                return Ok(None);
            };
            set(&asked, ())?;
            Ok(Some((ProbeResponse::default(), messages)))
        });
        Ok(Response::new(answers))
    }
}

struct Setter {
    _server: quill::RunningServer,
    url: String,
}

impl Setter {
    async fn serve() -> Self {
        let builder = quill::Server::builder().service(ProbeServer::new(Sets));
        let server = builder.bind("127.0.0.1:0").await.unwrap().start();
        let url = format!("http://{}", server.local_addr().unwrap());
        Self {
            _server: server,
            url,
        }
    }

    /// A client of each protocol on each version of HTTP, and its name.
    fn clients(&self) -> Vec<(String, ProbeClient)> {
        let mut clients = Vec::new();
        for protocol in PROTOCOLS {
            let builder = || {
                let builder = QuillClient::builder().base_url(&self.url);
                builder.protocol(protocol)
            };
            let client = ProbeClient::new(builder().build().unwrap());
            clients.push((format!("{protocol:?}"), client));
            // gRPC needs HTTP/2.
            if protocol != Protocol::Grpc {
                let client = ProbeClient::new(builder().http1().build().unwrap());
                clients.push((format!("{protocol:?} on HTTP/1.1"), client));
            }
        }
        clients
    }
}

fn asking(place: &str, name: &str, value: &str) -> ProbeRequest {
    ProbeRequest {
        text: format!("{name}={value}"),
        ending: place.to_owned(),
        ..Default::default()
    }
}

/// What came beside the messages of an answer or with its error.
#[derive(Debug)]
struct Outcome {
    metadata: Metadata,
    error: Option<Error>,
}

impl From<Error> for Outcome {
    fn from(error: Error) -> Self {
        Self {
            metadata: error.received_metadata().clone(),
            error: Some(error),
        }
    }
}

async fn unary(client: &ProbeClient, asked: ProbeRequest) -> Outcome {
    match soon(client.one(asked)).await {
        Err(error) => error.into(),
        Ok(response) => {
            let (_, mut metadata, trailers) = response.into_parts();
            metadata.extend(&trailers);
            Outcome {
                metadata,
                error: None,
            }
        }
    }
}

async fn drained(response: Result<Response<Streaming<ProbeResponse>>, Error>) -> Outcome {
    let read = async {
        let (mut answers, mut metadata, _) = response?.into_parts();
        while answers.message().await?.is_some() {}
        metadata.extend(answers.trailers());
        Ok(metadata)
    };
    match soon(read).await {
        Err::<_, Error>(error) => error.into(),
        Ok(metadata) => Outcome {
            metadata,
            error: None,
        },
    }
}

async fn down(client: &ProbeClient, asked: ProbeRequest) -> Outcome {
    drained(client.down(asked).await).await
}

async fn both(client: &ProbeClient, asked: ProbeRequest) -> Outcome {
    drained(client.both(stream::iter([asked])).await).await
}

fn assert_refused(outcome: &Outcome, name: &str, what: &str) {
    let error = outcome.error.as_ref().expect(what);
    assert_eq!(error.code(), Code::Internal, "{what}: {error}");
    assert!(error.message().contains("metadata"), "{what}: {error}");
    // The name as one can read it, with its line ends escaped.
    let name = format!("{name:?}");
    assert!(error.message().contains(&name), "{what}: {error}");
    assert_eq!(outcome.metadata.get("x-evil"), None, "{what}");
    assert_eq!(outcome.metadata.get("x-a"), None, "{what}");
}

#[tokio::test]
async fn what_may_not_be_set_is_an_internal_error_in_every_protocol() {
    let setter = Setter::serve().await;
    for (way, client) in setter.clients() {
        for place in PLACES {
            for (name, value) in FORBIDDEN {
                let what = format!("{way} {place} {name:?} {value:?}");
                let asked = || asking(place, name, value);
                assert_refused(&unary(&client, asked()).await, name, &what);
                assert_refused(&down(&client, asked()).await, name, &what);
                assert_refused(&both(&client, asked()).await, name, &what);
            }
            let fine = unary(&client, asking(place, "x-a", "1")).await;
            assert_eq!(fine.metadata.get("x-a"), Some("1"), "{way} {place}");
        }
    }
}

/// The body of a request in JSON, and in protobuf within an envelope.
fn bodies(asked: &ProbeRequest) -> [(&'static str, &'static str, Vec<u8>); 6] {
    let json = serde_json::json!({"text": asked.text, "ending": asked.ending}).to_string();
    let framed = envelope(0, &asked.encode_to_vec());
    [
        ("One", "application/json", json.clone().into()),
        ("One", "application/quill+json", json.clone().into()),
        ("One", "application/grpc-web+proto", framed.clone()),
        ("Down", "application/grpc-web+proto", framed),
        (
            "Down",
            "application/connect+json",
            envelope(0, json.as_bytes()),
        ),
        ("Down", "application/quill-stream+json", {
            let length = u8::try_from(json.len()).expect("a short message");
            assert!(length < 128, "a length of one byte");
            [&[length, 3], json.as_bytes()].concat()
        }),
    ]
}

/// No field, and no line of the body, is one that was smuggled.
fn assert_whole(answer: &Answer, what: &str) {
    let names = |headers: &quill_core::Headers| {
        let names: Vec<String> = headers.iter().map(|(name, _)| name.to_owned()).collect();
        names
    };
    for name in [names(&answer.headers), names(&answer.trailers)].concat() {
        assert!(!name.contains("evil"), "{what}: {answer:?}");
    }
    for line in [&b"\nx-evil"[..], b"\rx-evil", b"\nHTTP/1.1"] {
        let is_in = answer.body.windows(line.len()).any(|part| part == line);
        assert!(!is_in, "{what}: {answer:?}");
    }
}

/// As any peer sees it, byte by byte on HTTP/1.1, and field by field on HTTP/2.
#[tokio::test]
async fn no_answer_has_a_line_of_a_handlers_own() {
    let setter = Setter::serve().await;
    let channel = http2(&setter.url);
    let mut connection = Http1::connect(&setter.url).await;
    let values = FORBIDDEN.into_iter().filter(|(name, _)| *name == "x-a");
    let bytes = ("x-a-bin", SMUGGLED);
    for (name, value) in values.chain([bytes]) {
        for place in ["leading", "trailing", "error", "message"] {
            for (method, content_type, body) in bodies(&asking(place, name, value)) {
                let what = format!("{place} {name} {value:?} to {method} as {content_type}");
                let path = format!("/probe.v1.ProbeService/{method}");
                let fields = [("content-type", content_type)];
                assert_whole(&connection.post(&path, &fields, &body).await, &what);
                assert_whole(&send(&channel, head(&path, &fields), body).await, &what);
            }
        }
    }
}

#[tokio::test]
async fn bytes_and_messages_may_hold_line_ends_and_come_back_as_they_went() {
    let setter = Setter::serve().await;
    let bytes = "a\r\nx-evil: 1\r\n\r\n\0ü";
    let message = "100% \r\nx-evil: 1\n\tü\u{1}";
    for (way, client) in setter.clients() {
        for place in PLACES {
            for outcome in [
                unary(&client, asking(place, "x-a-bin", bytes)).await,
                down(&client, asking(place, "x-a-bin", bytes)).await,
            ] {
                let what = format!("{way} {place}: {outcome:?}");
                let came = outcome.metadata.get_bin("x-a-bin");
                assert_eq!(came, Some(bytes.as_bytes()), "{what}");
                assert_eq!(outcome.metadata.get("x-evil"), None, "{what}");
            }
        }
        for outcome in [
            unary(&client, asking("message", "x", message)).await,
            both(&client, asking("message", "x", message)).await,
        ] {
            let error = outcome.error.expect("an error");
            assert_eq!(error.code(), Code::NotFound, "{way}");
            assert_eq!(error.message(), message, "{way}");
            assert_eq!(outcome.metadata.get("x-evil"), None, "{way}");
        }
    }
}

/// A frame of Quill with one of its names and values.
fn quill_metadata(pairs: &[(&[u8], &[u8])]) -> Vec<u8> {
    let one_byte = |part: &[u8]| u8::try_from(part.len()).expect("a short part");
    let mut block = Vec::new();
    for part in pairs.iter().flat_map(|(name, value)| [name, value]) {
        block.push(one_byte(part));
        block.extend_from_slice(part);
    }
    [&[one_byte(&block), 0x20], &block[..]].concat()
}

/// Answers whose trailing metadata is in the body, where no parser of HTTP looks at it.
fn hostile() -> [(Protocol, Script); 4] {
    let end = r#"{"metadata": {"x-a": ["1\r\nx-evil: 1", "\u000a", "\u0000"],
        "x-b\r\nx-evil": ["1"], "x-fine": ["1"]}}"#;
    let connect = Script::ok("application/connect+proto").body(envelope(2, end.as_bytes()));
    let block = b"grpc-status: 0\r\nx-a: 1\rx-evil: 1\r\nx-a: \0\r\nx-fine: 1\r\n";
    let web = || Script::ok("application/grpc-web+proto").body(envelope(0x80, block));
    let fields = quill_metadata(&[
        (b"x-a", SMUGGLED.as_bytes()),
        (b"x-a", b"\n"),
        (b"x-a", b"\0"),
        (b"x-b\r\nx-evil", b"1"),
        (b"x-fine", b"1"),
    ]);
    let quill = Script::ok("application/quill-stream+proto").body(fields);
    [
        (Protocol::Connect, connect),
        (Protocol::GrpcWeb, web()),
        (Protocol::Quill, quill.body([0, 2])),
        (Protocol::GrpcWebText, {
            use base64::Engine as _;
            let text = base64::prelude::BASE64_STANDARD.encode(envelope(0x80, block));
            Script::ok("application/grpc-web-text+proto").body(text)
        }),
    ]
}

/// Left out, or with spaces for them (RFC 9110, section 5.5).
#[tokio::test]
async fn what_peers_send_within_bodies_has_no_line_ends_either() {
    for (protocol, script) in hostile() {
        let server = script.serve().await;
        let outcome = down(&told(&server, protocol), say("x")).await;
        assert!(outcome.error.is_none(), "{protocol:?}: {outcome:?}");
        let metadata = outcome.metadata;
        assert_eq!(metadata.get("x-fine"), Some("1"), "{protocol:?}");
        for (name, value) in metadata.iter() {
            assert!(!name.contains("evil"), "{protocol:?}: {metadata:?}");
            let has_line_end = value.iter().any(|byte| b"\r\n\0".contains(byte));
            assert!(!has_line_end, "{protocol:?}: {metadata:?}");
        }
    }
}

fn told(server: &ToldServer, protocol: Protocol) -> ProbeClient {
    let builder = QuillClient::builder().base_url(&server.url);
    let builder = builder.protocol(protocol).format(Format::Proto);
    ProbeClient::new(builder.build().unwrap())
}

#[tokio::test]
async fn callers_can_set_none_either() {
    let server = Script::ok("text/plain").serve().await;
    for (name, value) in FORBIDDEN {
        let what = format!("{name:?} {value:?}");
        let refused = Request::new(say("x")).with_metadata(name, value);
        let error = refused.expect_err(&what).to_string();
        assert!(error.contains(&format!("{name:?}")), "{error}");
        let builder = QuillClient::builder().base_url(&server.url);
        let error = builder.metadata(name, value).build().expect_err(&what);
        assert!(error.to_string().contains(&format!("{name:?}")), "{error}");
    }
    let url = format!("{}/a\r\nx-evil: 1", server.url);
    assert!(QuillClient::builder().base_url(url).build().is_err());
}

/// Parts of the head that are no metadata.
#[tokio::test]
async fn no_call_leaves_with_line_ends_in_its_path_or_token() {
    let server = Script::ok("text/plain").serve().await;
    let ways = PROTOCOLS.map(|protocol| (protocol, false));
    for (protocol, http1) in ways.into_iter().chain([(Protocol::Quill, true)]) {
        let builder = || {
            let builder = QuillClient::builder().base_url(&server.url);
            let builder = builder.protocol(protocol);
            if http1 { builder.http1() } else { builder }
        };
        let client = builder().build().unwrap();
        for (service, method) in [
            ("a.B\r\nx-evil: 1", "C"),
            ("a.B", "C HTTP/1.1\r\nx-evil: 1"),
        ] {
            let error = soon(client.call(service, method, "")).await.unwrap_err();
            assert!(error.message().contains("no URI"), "{protocol:?}: {error}");
        }
        let tokens = Tokens::new(|| async { Ok(Token::bearer(SMUGGLED)) });
        let client = ProbeClient::new(builder().tokens(tokens).build().unwrap());
        let error = soon(client.one(say("x"))).await.unwrap_err();
        assert_eq!(error.code(), Code::Internal, "{protocol:?}: {error}");
        assert!(!error.to_string().contains("evil"), "a secret: {error}");
    }
    assert!(server.asked.lock().expect("not poisoned").is_empty());
}
