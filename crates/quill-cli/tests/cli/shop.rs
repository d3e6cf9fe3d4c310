//! A server in this process, whose messages are bytes: what it answers need
//! not make sense.

use std::path::{Path, PathBuf};

use futures_util::stream;
use quill::{
    BoundServer, BuffaCodec, Detail, Error, Method, MethodKind, RawCodec, Response, Routes, Server,
    Service,
};
use quill_reflection::proto::v1::server_reflection_request::MessageRequest;
use quill_reflection::proto::v1::server_reflection_response::MessageResponse;
use quill_reflection::proto::v1::{
    ErrorResponse, FileDescriptorResponse, ListServiceResponse, ServerReflectionRequest,
    ServerReflectionResponse, ServiceResponse,
};
use quill_reflection::proto::{v1, v1alpha};

use crate::support::scratch;

pub(crate) fn protos() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/proto")
}

/// The descriptor set of these files of the shop.
pub(crate) fn descriptor_set(files: &[&str]) -> Vec<u8> {
    let folder = protos();
    let paths: Vec<_> = files
        .iter()
        .map(|f| folder.join("shop/v1").join(f))
        .collect();
    quill_codegen::Schema::compile(&paths, &[folder])
        .unwrap()
        .to_descriptor_set()
}

pub(crate) fn descriptor_set_file(files: &[&str]) -> PathBuf {
    let path = scratch("set.binpb");
    std::fs::write(&path, descriptor_set(files)).unwrap();
    path
}

/// `shop.v1.Shop`.
pub(crate) struct Shop;

impl Service for Shop {
    fn name(&self) -> &str {
        "shop.v1.Shop"
    }

    fn routes(self, routes: &mut Routes) {
        let method = |name| Method::named("shop.v1.Shop", name, MethodKind::Unary);
        routes.unary(&method("Place"), RawCodec, RawCodec, |request| {
            std::future::ready(Ok(Response::new(request.into_inner())))
        });
        routes.unary(&method("Note"), RawCodec, RawCodec, |request| {
            drop(request);
            // Order { note: Any of Hidden { clue: "ink" } }
            let mut order = vec![0x22, 43, 0x0a, 34];
            order.extend_from_slice(b"type.googleapis.com/shop.v1.Hidden");
            order.extend_from_slice(b"\x12\x05\x0a\x03ink");
            std::future::ready(Ok(Response::new(order.into())))
        });
        routes.unary(&method("Fail"), RawCodec, RawCodec, |request| {
            drop(request);
            std::future::ready(Err(failure()))
        });
    }
}

fn failure() -> Error {
    let detail = |type_name: &str, value: &[u8]| Detail {
        type_name: type_name.to_owned(),
        value: value.to_vec().into(),
    };
    Error::failed_precondition("not today")
        // ErrorInfo { reason: "CLOSED" }
        .with_detail(&detail("google.rpc.ErrorInfo", b"\x0a\x06CLOSED"))
        // OutOfStock { item: "pen" }, Hidden { clue: "ink" }
        .with_detail(&detail("shop.v1.OutOfStock", b"\x0a\x03pen"))
        .with_detail(&detail("shop.v1.Hidden", b"\x0a\x03ink"))
        .with_detail(&detail("other.v1.Thing", b"\x01\x02\x03"))
        .with_metadata("x-shop", "closed")
        .unwrap()
}

/// How a reflection service behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Behaviour {
    /// As it should, in the older version only, one file an answer.
    Older,
    /// Answers without an end.
    Endless,
    /// Each file imports the next.
    Chain,
    /// Bytes that are no file.
    Garbage,
    /// No answer at all.
    Silent,
    /// Names and texts that would drive terminals and workflows.
    Hostile,
}

impl Service for Behaviour {
    fn name(&self) -> &str {
        v1alpha::NAME
    }

    fn routes(self, routes: &mut Routes) {
        let method = match self {
            Behaviour::Older => &v1alpha::SERVER_REFLECTION_INFO,
            _ => &v1::server_reflection::SERVER_REFLECTION_INFO,
        };
        routes.bidi_streaming(method, BuffaCodec, BuffaCodec, move |request| {
            let requests = request.into_inner();
            let answers = stream::unfold((requests, 0_u64), move |(mut requests, n)| async move {
                let asked = match self {
                    Behaviour::Endless => Ok(Some(ServerReflectionRequest::default())),
                    _ => requests.message().await,
                };
                let answer = match asked {
                    Ok(Some(_)) if self == Behaviour::Silent => return None,
                    Ok(Some(request)) => Ok(self.answer(&request)),
                    Ok(None) => return None,
                    Err(error) => Err(error),
                };
                Some((answer, (requests, n + 1)))
            });
            std::future::ready(Ok(Response::new(answers)))
        });
    }
}

impl Behaviour {
    fn answer(self, request: &ServerReflectionRequest) -> ServerReflectionResponse {
        use buffa::Message;
        use buffa_descriptor::generated::descriptor::{FileDescriptorProto, FileDescriptorSet};
        if self == Behaviour::Hostile {
            return hostile_answer(request);
        }
        let file = match self {
            Behaviour::Garbage => b"\xff\xff".to_vec(),
            Behaviour::Older => {
                let set = descriptor_set(&["shop.proto"]);
                let set = FileDescriptorSet::decode_from_slice(&set).unwrap();
                let name = match &request.message_request {
                    Some(MessageRequest::FileByFilename(name)) => name.as_str(),
                    _ => "shop/v1/shop.proto",
                };
                let mut files = set.file.iter();
                let file = files
                    .find(|file| file.name.as_deref() == Some(name))
                    .unwrap();
                file.encode_to_vec()
            }
            _ => {
                let number = match &request.message_request {
                    Some(MessageRequest::FileByFilename(name)) => name.parse().unwrap(),
                    _ => 0_u64,
                };
                FileDescriptorProto {
                    name: Some(number.to_string()),
                    dependency: vec![(number + 1).to_string(), number.to_string(), "0".to_owned()],
                    ..Default::default()
                }
                .encode_to_vec()
            }
        };
        let files = FileDescriptorResponse {
            file_descriptor_proto: vec![file],
            ..Default::default()
        };
        ServerReflectionResponse {
            message_response: Some(MessageResponse::from(files)),
            ..Default::default()
        }
    }
}

const DRIVING: &str = "\u{1b}[2J\n::error::driven";

/// A list with such a name; a file with such a name; such an error.
fn hostile_answer(request: &ServerReflectionRequest) -> ServerReflectionResponse {
    use buffa::Message;
    use buffa_descriptor::generated::descriptor::field_descriptor_proto::Type;
    use buffa_descriptor::generated::descriptor::{
        DescriptorProto, FieldDescriptorProto, FileDescriptorProto,
    };
    let answer = match &request.message_request {
        Some(MessageRequest::ListServices(_)) => {
            let service = ["::error::driven", DRIVING].map(|name| ServiceResponse {
                name: name.to_owned(),
                ..Default::default()
            });
            MessageResponse::from(ListServiceResponse {
                service: service.to_vec(),
                ..Default::default()
            })
        }
        Some(MessageRequest::FileContainingSymbol(symbol)) if symbol == "a.M" => {
            let field = FieldDescriptorProto {
                name: Some("f".to_owned()),
                number: Some(1),
                r#type: Some(Type::TYPE_STRING),
                default_value: Some(DRIVING.to_owned()),
                ..Default::default()
            };
            let file = FileDescriptorProto {
                name: Some(format!("a.proto{DRIVING}")),
                package: Some("a".to_owned()),
                message_type: vec![DescriptorProto {
                    name: Some("M".to_owned()),
                    field: vec![field],
                    ..Default::default()
                }],
                ..Default::default()
            };
            MessageResponse::from(FileDescriptorResponse {
                file_descriptor_proto: vec![file.encode_to_vec()],
                ..Default::default()
            })
        }
        _ => MessageResponse::from(ErrorResponse {
            error_code: 5,
            error_message: DRIVING.to_owned(),
            ..Default::default()
        }),
    };
    ServerReflectionResponse {
        message_response: Some(answer),
        ..Default::default()
    }
}

/// A server that serves until it is dropped.
pub(crate) struct Serving {
    pub(crate) url: String,
    _stop: tokio::sync::oneshot::Sender<()>,
}

impl Serving {
    pub(crate) fn start(builder: quill::ServerBuilder) -> Self {
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let (started, address) = std::sync::mpsc::sync_channel(1);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let server: BoundServer = builder.bind("127.0.0.1:0").await.unwrap();
                started.send(server.local_addr().unwrap()).unwrap();
                let running = server.start();
                let _ = stopped.await;
                drop(running);
            });
        });
        let address = address.recv().unwrap();
        Self {
            url: format!("http://{address}"),
            _stop: stop,
        }
    }

    pub(crate) fn shop() -> Self {
        Self::start(Server::builder().service(Shop))
    }

    pub(crate) fn call(&self, method: &str) -> crate::support::Call {
        crate::support::Call::new(&format!("{}/{method}", self.url))
    }
}
