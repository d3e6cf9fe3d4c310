//! Answers on HTTP/1.1 that leave before the request's body has come to its end:
//! the connection takes another request, or the answer says that it will not.

use std::time::Duration;

use crate::peer::{Http1, envelope, soon};
use crate::probe::serve_with;

const SHORT: Duration = Duration::from_millis(100);

/// A call that is answered without the end of its body.
struct Early {
    what: &'static str,
    method: &'static str,
    fields: &'static [(&'static str, &'static str)],
    /// What of the body is enough for the answer.
    first: Vec<u8>,
    rest: Vec<u8>,
    /// What is in the answer.
    says: &'static str,
}

const JSON: (&str, &str) = ("content-type", "application/json");
const JSON_STREAM: (&str, &str) = ("content-type", "application/connect+json");
const GRPC_WEB: (&str, &str) = ("content-type", "application/grpc-web+json");

fn early_answers() -> Vec<Early> {
    let message = |json: &str| envelope(0, json.as_bytes());
    let one = |what, fields, says| Early {
        what,
        method: "One",
        fields,
        first: br#"{"text":"#.to_vec(),
        rest: br#""x"}"#.to_vec(),
        says,
    };
    let up = |what, fields, first: &str, says| Early {
        what,
        method: "Up",
        fields,
        first: message(first),
        rest: message("{}"),
        says,
    };
    vec![
        one(
            "a bad deadline",
            &[JSON, ("connect-timeout-ms", "soon")],
            "connect-timeout-ms",
        ),
        one(
            "an unknown compression",
            &[JSON, ("content-encoding", "br")],
            "br",
        ),
        one("an unknown content type", &[("content-type", "text/x")], ""),
        Early {
            what: "a length over the limit",
            method: "One",
            fields: &[GRPC_WEB],
            first: vec![0, 0x7f, 0xff, 0xff, 0xff],
            rest: b"the beginning of much".to_vec(),
            says: "grpc-status: 8",
        },
        Early {
            what: "a frame with unknown flags",
            method: "One",
            fields: &[GRPC_WEB],
            first: vec![0x7e, 0, 0, 0, 2],
            rest: b"{}".to_vec(),
            says: "grpc-status: ",
        },
        up(
            "a bad message",
            &[JSON_STREAM],
            r#"{"text":1}"#,
            "invalid_argument",
        ),
        up(
            "a bad message of gRPC-Web",
            &[GRPC_WEB],
            r#"{"text":1}"#,
            "grpc-status: 3",
        ),
        up(
            "a deadline",
            &[JSON_STREAM],
            r#"{"ending":"stall"}"#,
            "deadline_exceeded",
        ),
        up(
            "a deadline of gRPC-Web",
            &[GRPC_WEB],
            r#"{"ending":"stall"}"#,
            "grpc-status: 4",
        ),
    ]
}

impl Early {
    /// The head and the first bytes of a body, which is chunked or has a length.
    fn start(&self, is_chunked: bool) -> Vec<u8> {
        let mut head = format!(
            "POST /probe.v1.ProbeService/{} HTTP/1.1\r\nhost: a\r\n",
            self.method
        );
        for (name, value) in self.fields {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if is_chunked {
            head.push_str("transfer-encoding: chunked\r\n\r\n");
            [head.as_bytes(), &chunk(&self.first)].concat()
        } else {
            let length = self.first.len() + self.rest.len();
            head.push_str(&format!("content-length: {length}\r\n\r\n"));
            [head.as_bytes(), &self.first].concat()
        }
    }

    fn end(&self, is_chunked: bool) -> Vec<u8> {
        if is_chunked {
            [chunk(&self.rest), b"0\r\n\r\n".to_vec()].concat()
        } else {
            self.rest.clone()
        }
    }
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

#[tokio::test]
async fn a_body_that_came_in_whole_leaves_the_connection_usable() {
    let served = serve_with(|builder| builder.timeout_max(SHORT)).await;
    for early in early_answers() {
        for is_chunked in [false, true] {
            let what = early.what;
            let mut connection = Http1::connect(&served.url).await;
            connection
                .write([early.start(is_chunked), early.end(is_chunked)].concat())
                .await;
            let answer = connection.answer().await;
            let shown = String::from_utf8_lossy(&answer.body);
            assert!(shown.contains(early.says), "{what}: {answer:?}");
            assert_eq!(answer.header("connection"), None, "{what}: {answer:?}");

            let again = connection
                .post("/probe.v1.ProbeService/One", &[JSON], r#"{"text":"again"}"#)
                .await;
            assert_eq!(again.status, 200, "{what}: {again:?}");
            assert_eq!(again.json()["text"], "again", "{what}");
        }
    }
}

#[tokio::test]
async fn a_body_that_is_still_to_come_ends_the_connection_as_its_answer_says() {
    let served = serve_with(|builder| builder.timeout_max(SHORT)).await;
    for early in early_answers() {
        for is_chunked in [false, true] {
            let what = early.what;
            let mut connection = Http1::connect(&served.url).await;
            connection.write(early.start(is_chunked)).await;
            let answer = connection.answer().await;
            let shown = String::from_utf8_lossy(&answer.body);
            assert!(shown.contains(early.says), "{what}: {answer:?}");
            assert_eq!(
                answer.header("connection"),
                Some("close"),
                "{what}: {answer:?}"
            );
            connection.finish().await;
            assert!(soon(connection.read_answer()).await.is_none(), "{what}");
        }
    }
}

#[tokio::test]
async fn a_deadline_in_the_middle_of_a_message_ends_the_connection_as_its_answer_says() {
    let served = serve_with(|builder| builder.timeout_max(SHORT)).await;
    for (content_type, first) in [
        ("application/json", br#"{"text":"#.to_vec()),
        (
            "application/grpc-web+json",
            envelope(0, b"{}")[..6].to_vec(),
        ),
    ] {
        let mut connection = Http1::connect(&served.url).await;
        let head = format!(
            "POST /probe.v1.ProbeService/One HTTP/1.1\r\nhost: a\r\n\
             content-type: {content_type}\r\ncontent-length: 50\r\n\r\n"
        );
        connection.write([head.as_bytes(), &first].concat()).await;
        let answer = connection.answer().await;
        assert_eq!(
            answer.header("connection"),
            Some("close"),
            "{content_type}: {answer:?}"
        );
        connection.finish().await;
        assert!(
            soon(connection.read_answer()).await.is_none(),
            "{content_type}"
        );
    }
}
