//! What a hostile server answers `quill call`, and hostile descriptor sets.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::dice::Dice;
use crate::wire::messages::{bytes_field, envelope, number_field};

/// What `quill call` asked.
pub(super) struct Asked {
    pub(super) path: String,
    /// Messages of this request, and of those before it.
    pub(super) questions: usize,
    pub(super) asked_before: usize,
}

impl Asked {
    fn is_reflection(&self) -> bool {
        self.path.contains("reflection")
    }
}

/// An answer, byte by byte, and what follows it.
pub(super) struct Answer {
    pub(super) bytes: Vec<u8>,
    pub(super) then: Then,
}

pub(super) enum Then {
    /// The next request.
    Go,
    Close,
    /// Silence.
    Hold,
    /// The same bytes for ever.
    Repeat(Vec<u8>),
}

type Answerer = Box<dyn Fn(&Asked) -> Answer + Send + Sync>;

/// One server.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) answer: Answerer,
    /// Whether nothing good can come of it.
    pub(super) must_fail: bool,
    /// What the command is told to speak.
    pub(super) protocol: &'static str,
}

const CONNECT: &str = "connect";

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/connect+proto\r\n";
const CHUNKED: &str = "transfer-encoding: chunked\r\n\r\n";
/// The most that a message may have.
const MESSAGE_BYTES: usize = 4 * 1024 * 1024 - 64;
const FLIPS: usize = 24;

/// A whole answer of these messages.
fn stream(messages: &[Vec<u8>]) -> Answer {
    let mut body: Vec<u8> = messages
        .iter()
        .flat_map(|message| envelope(0, message))
        .collect();
    body.extend(envelope(2, b"{}"));
    whole("application/connect+proto", &body)
}

fn whole(content_type: &str, body: &[u8]) -> Answer {
    answer_of(200, content_type, body)
}

fn answer_of(status: u16, content_type: &str, body: &[u8]) -> Answer {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n\r\n"
    );
    Answer {
        bytes: [head.as_bytes(), body].concat(),
        then: Then::Go,
    }
}

/// The answer to a question of reflection: a file.
fn described(file: &[u8]) -> Vec<u8> {
    bytes_field(4, &bytes_field(1, file))
}

/// A `FileDescriptorProto` of this name with these parts.
fn file(name: &str, parts: &[Vec<u8>]) -> Vec<u8> {
    [
        bytes_field(1, name.as_bytes()),
        bytes_field(2, b"a"),
        parts.concat(),
        bytes_field(12, b"proto3"),
    ]
    .concat()
}

/// A field of a message: its name, number, label and type.
fn field(name: &str, number: u64, label: u64, of: u64, type_name: &str) -> Vec<u8> {
    let mut field = bytes_field(1, name.as_bytes());
    field.extend(
        [
            number_field(3, number),
            number_field(4, label),
            number_field(5, of),
        ]
        .concat(),
    );
    if !type_name.is_empty() {
        field.extend(bytes_field(6, type_name.as_bytes()));
    }
    bytes_field(2, &field)
}

fn message(name: &str, parts: &[Vec<u8>]) -> Vec<u8> {
    bytes_field(
        4,
        &[bytes_field(1, name.as_bytes()), parts.concat()].concat(),
    )
}

/// `service B { rpc C(M) returns (M); }`
fn service() -> Vec<u8> {
    let method = [
        bytes_field(1, b"C"),
        bytes_field(2, b".a.M"),
        bytes_field(3, b".a.M"),
    ]
    .concat();
    bytes_field(6, &[bytes_field(1, b"B"), bytes_field(2, &method)].concat())
}

/// A schema that makes sense: a message of itself, of text and of an `Any`.
fn good_file() -> Vec<u8> {
    let fields = [
        field("m", 1, 1, 11, ".a.M"),
        field("all", 2, 3, 11, ".a.M"),
        field("text", 3, 1, 9, ""),
        field("any", 4, 3, 11, ".google.protobuf.Any"),
    ];
    file(
        "a.proto",
        &[
            bytes_field(3, b"google/protobuf/any.proto"),
            message("M", &fields),
            service(),
        ],
    )
}

/// A message in itself, so many times.
fn nested(number: u64, depth: usize) -> Vec<u8> {
    // From the inside, written backwards: copying at each level would take for ever.
    let mut backwards = Vec::new();
    for _ in 0..depth {
        let head = [
            crate::wire::messages::varint(number << 3 | 2),
            crate::wire::messages::varint(backwards.len() as u64),
        ]
        .concat();
        backwards.extend(head.into_iter().rev());
    }
    backwards.reverse();
    backwards
}

/// The same file to every question.
fn says(name: &'static str, must_fail: bool, said: &[u8]) -> Case {
    let answer = described(said);
    let answer = move |asked: &Asked| stream(&vec![answer.clone(); asked.questions]);
    Case {
        name,
        answer: Box::new(answer),
        must_fail,
        protocol: CONNECT,
    }
}

/// A good schema, and this answer to the call.
fn replies(
    name: &'static str,
    must_fail: bool,
    reply: impl Fn() -> Answer + Send + Sync + 'static,
) -> Case {
    let good = described(&good_file());
    let answer = move |asked: &Asked| {
        if asked.is_reflection() {
            stream(&vec![good.clone(); asked.questions])
        } else {
            reply()
        }
    };
    Case {
        name,
        answer: Box::new(answer),
        must_fail,
        protocol: CONNECT,
    }
}

/// Bytes as they are, and what follows.
fn raw(name: &'static str, bytes: Vec<u8>, then: fn() -> Then) -> Case {
    let answer = move |_: &Asked| Answer {
        bytes: bytes.clone(),
        then: then(),
    };
    Case {
        name,
        answer: Box::new(answer),
        must_fail: true,
        protocol: CONNECT,
    }
}

pub(super) fn cases(dice: &mut Dice) -> Vec<Case> {
    let head = format!("{HEAD}{CHUNKED}").into_bytes();
    let endless = [
        HEAD.as_bytes(),
        b"content-length: 99999999999\r\n\r\n\0\xff\xff\xff\xff",
    ]
    .concat();
    let mut cases = vec![
        raw("silence", Vec::new(), || Then::Hold),
        raw("closed at once", Vec::new(), || Then::Close),
        raw("a head without an end", HEAD.into(), || {
            Then::Repeat(b"x-a: 1\r\n".repeat(100))
        }),
        raw("an endless status", b"HTTP/1.1 2".to_vec(), || {
            Then::Repeat(vec![b'0'; 1000])
        }),
        raw("endless empty messages", head.clone(), || {
            Then::Repeat([b"fa0\r\n", &[0; 4000][..], b"\r\n"].concat())
        }),
        raw("a message without an end", endless, || {
            Then::Repeat(vec![0; 16_000])
        }),
        raw(
            "a chunk without an end",
            [&head[..], b"ffffffffffffffff\r\n"].concat(),
            || Then::Repeat(vec![0; 16_000]),
        ),
        raw(
            "cut in the middle",
            [&head[..], b"5\r\n\0\0"].concat(),
            || Then::Close,
        ),
        raw("random bytes", dice.bytes(5000), || Then::Close),
    ];
    cases.extend(line_ends());
    cases.extend(files(dice));
    cases.extend(answers());
    cases
}

/// Line ends and more in the trailers of gRPC-Web, which are lines of text.
fn line_ends() -> impl Iterator<Item = Case> {
    let trailers: [(&str, &[u8]); 4] = [
        (
            "a bare CR in trailers",
            b"grpc-status: 5\rgrpc-status: 0\r\n",
        ),
        (
            "two statuses in trailers",
            b"grpc-status: 5\r\ngrpc-status: 0\r\n\r\nx: 1\r\n",
        ),
        (
            "CR and LF in an error's message",
            b"grpc-message: a%0D%0Agrpc-status: 0%00%1B[2J\r\ngrpc-status: 5\r\n",
        ),
        ("NUL and no colon in trailers", b"grpc-status: 0\0\n\0\n:\n"),
    ];
    trailers.into_iter().flat_map(|(name, block)| {
        let frame = envelope(0x80, block);
        let text = STANDARD.encode(&frame).into_bytes();
        [("grpc-web", frame), ("grpc-web-text", text)].map(|(protocol, body)| Case {
            name,
            answer: Box::new(move |_| whole(&format!("application/{protocol}+proto"), &body)),
            must_fail: true,
            protocol,
        })
    })
}

/// Schemas that make no sense, or too much of it.
fn files(dice: &mut Dice) -> Vec<Case> {
    let imports = |count: usize, name: &dyn Fn(usize) -> String| -> Vec<u8> {
        (0..count)
            .flat_map(|n| bytes_field(3, name(n).as_bytes()))
            .collect()
    };
    let chain = |asked: &Asked| {
        let answers = (0..asked.questions).map(|n| {
            let n = asked.asked_before + n;
            let more: Vec<u8> = (0..64)
                .flat_map(|m| bytes_field(3, format!("{n}-{m}").as_bytes()))
                .collect();
            described(&file(&n.to_string(), &[more]))
        });
        stream(&answers.collect::<Vec<_>>())
    };
    let mut cases = vec![
        Case {
            name: "imports without an end",
            answer: Box::new(chain),
            must_fail: true,
            protocol: CONNECT,
        },
        says(
            "a million imports",
            true,
            &file("a", &[imports(400_000, &|n| n.to_string())]),
        ),
        says(
            "imports of itself",
            true,
            &file("a", &[imports(3, &|_| "a".to_owned())]),
        ),
    ];
    cases.extend(senseless(dice));
    for _ in 0..FLIPS {
        let mut flipped = good_file();
        for _ in 0..=dice.below(3) {
            let at = dice.below(flipped.len());
            flipped[at] ^= 1 << dice.below(8);
        }
        cases.push(says("a file with wrong bits", false, &flipped));
    }
    cases
}

/// Files that swell, are too deep, or contradict themselves.
fn senseless(dice: &mut Dice) -> Vec<Case> {
    vec![
        says(
            "swelling messages",
            true,
            &[0x22, 0].repeat(MESSAGE_BYTES / 2),
        ),
        says(
            "swelling fields",
            true,
            &bytes_field(4, &[0x12, 0].repeat(MESSAGE_BYTES / 2)),
        ),
        says(
            "swelling values",
            true,
            &bytes_field(5, &[0x12, 0].repeat(MESSAGE_BYTES / 2)),
        ),
        says(
            "swelling services",
            true,
            &bytes_field(6, &[0x12, 0].repeat(MESSAGE_BYTES / 2)),
        ),
        says(
            "swelling unknown fields",
            true,
            &[0xf8, 0x7f, 0].repeat(MESSAGE_BYTES / 3),
        ),
        says(
            "types 90 deep",
            true,
            &file("a", &[bytes_field(4, &nested(3, 90))]),
        ),
        says(
            "types 200,000 deep",
            true,
            &file("a", &[bytes_field(4, &nested(3, 200_000))]),
        ),
        says("a service of no types", true, &file("a", &[service()])),
        says(
            "a field of number 0",
            true,
            &file("a", &[message("M", &[field("f", 0, 1, 9, "")]), service()]),
        ),
        says(
            "a field of an unknown type",
            true,
            &file("a", &[message("M", &[field("f", 1, 1, 99, "")]), service()]),
        ),
        says(
            "two types of one name",
            true,
            &file("a", &[message("M", &[]), message("M", &[]), service()]),
        ),
        says("an answer that is no file", true, &dice.bytes(2000)),
    ]
}

/// Answers to a call of a method whose schema is good.
fn answers() -> Vec<Case> {
    let proto = "application/proto";
    let detail = r#"{"code":"not_found","message":"\u0000\r\n","details":[{"type":"a.Unknown","value":"CAE"},{"type":"google.rpc.RetryInfo","value":"____"}]}"#;
    vec![
        replies("an answer 200,000 deep", true, move || {
            whole(proto, &nested(1, 200_000))
        }),
        replies("an answer 99 deep", false, move || {
            whole(proto, &nested(1, 99))
        }),
        replies("a swelling answer", true, move || {
            whole(proto, &[0x12, 0].repeat(MESSAGE_BYTES / 2))
        }),
        replies("an answer of unknown fields", true, move || {
            whole(proto, &[0xf8, 0x7f, 0].repeat(MESSAGE_BYTES / 3))
        }),
        replies("an answer that is too large", true, move || {
            whole(proto, &vec![0; MESSAGE_BYTES * 2])
        }),
        replies("an answer of many Anys", false, move || {
            let any = |n: u32| bytes_field(4, &bytes_field(1, format!("x/a.T{n}").as_bytes()));
            whole(proto, &(0..10_000).flat_map(any).collect::<Vec<_>>())
        }),
        replies("an Any of its own type, nested", false, move || {
            let mut inner = Vec::new();
            for _ in 0..80 {
                inner = bytes_field(
                    4,
                    &[bytes_field(1, b"x/a.M"), bytes_field(2, &inner)].concat(),
                );
            }
            whole(proto, &inner)
        }),
        replies("an error with odd details", true, move || {
            answer_of(404, "application/json", detail.as_bytes())
        }),
        replies("an error nested 100,000 deep", true, || {
            answer_of(500, "application/json", &[b'['; 100_000])
        }),
        replies("an answer that is a bomb", true, || {
            let bomb = bomb();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/proto\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
                bomb.len()
            );
            Answer {
                bytes: [head.as_bytes(), &bomb].concat(),
                then: Then::Go,
            }
        }),
    ]
}

/// 64 MiB of zeros.
fn bomb() -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let zeros = vec![0; 1 << 20];
    let written = (0..64).try_for_each(|_| gzip.write_all(&zeros));
    written.and_then(|()| gzip.finish()).unwrap_or_default()
}

/// Files for `--descriptor-set`: a name, the bytes, and whether nothing good can come of it.
/// Nobody listens where the call would go, so it fails all the same.
pub(super) fn descriptor_sets(dice: &mut Dice) -> Vec<(&'static str, Vec<u8>, bool)> {
    let good = bytes_field(1, &good_file());
    let mut sets = vec![
        ("an empty set", Vec::new(), true),
        ("a set of random bytes", dice.bytes(5000), true),
        ("a swelling set", [0x0a, 0].repeat(MESSAGE_BYTES), true),
        (
            "a set of a swelling file",
            bytes_field(1, &[0x22, 0].repeat(MESSAGE_BYTES)),
            true,
        ),
        (
            "a set 200,000 deep",
            bytes_field(1, &bytes_field(4, &nested(3, 200_000))),
            true,
        ),
        (
            "a set of unknown fields",
            [0xf8, 0x7f, 0].repeat(MESSAGE_BYTES),
            true,
        ),
        ("a set that is cut", good[..good.len() - 5].to_vec(), true),
    ];
    for _ in 0..FLIPS {
        let mut flipped = good.clone();
        let at = dice.below(flipped.len());
        flipped[at] ^= 1 << dice.below(8);
        sets.push(("a set with a wrong bit", flipped, true));
    }
    sets
}
