//! The service over a connection, in both versions.

use futures_util::stream;
use quill_client::QuillClient;
use quill_core::{BuffaCodec, Code, Method, Request};
use quill_reflection::proto::v1::server_reflection::SERVER_REFLECTION_INFO;
use quill_reflection::proto::v1::server_reflection_request::MessageRequest;
use quill_reflection::proto::v1::server_reflection_response::MessageResponse;
use quill_reflection::proto::v1::{
    ExtensionRequest, ServerReflectionRequest, ServerReflectionResponse,
};
use quill_reflection::proto::v1alpha;
use quill_server::{RunningServer, Server};
use quill_wire::Protocol;

/// What the answers to some questions say, in short.
#[derive(Debug, PartialEq)]
enum Said {
    Files(Vec<String>),
    Numbers(Vec<i32>),
    Services(Vec<String>),
    Error(i32, String),
}

struct Reflecting {
    client: QuillClient,
    _server: RunningServer,
}

impl Reflecting {
    async fn start(set: &[u8]) -> Self {
        let server = Server::builder()
            .service(quill_reflection::server(set))
            .bind("127.0.0.1:0")
            .await
            .unwrap()
            .start();
        let address = server.local_addr().unwrap();
        let client = QuillClient::builder()
            .base_url(format!("http://{address}"))
            .protocol(Protocol::Grpc)
            .build()
            .unwrap();
        Self {
            client,
            _server: server,
        }
    }

    async fn ask(
        &self,
        method: &Method,
        questions: Vec<Option<MessageRequest>>,
    ) -> Result<Vec<Said>, quill_core::Error> {
        let requests: Vec<_> = questions
            .into_iter()
            .map(|message_request| ServerReflectionRequest {
                host: "here".to_owned(),
                message_request,
                ..Default::default()
            })
            .collect();
        let asked = requests.clone();
        let request = Request::new(stream::iter(requests));
        let mut answers = self
            .client
            .bidi_streaming(method, BuffaCodec, BuffaCodec, request)
            .await?
            .into_inner();
        let mut said = Vec::new();
        while let Some(answer) = answers.message().await? {
            let answer: ServerReflectionResponse = answer;
            assert_eq!(answer.valid_host, "here");
            assert_eq!(answer.original_request.as_option(), asked.get(said.len()));
            said.push(say(answer));
        }
        Ok(said)
    }

    async fn ask_v1(&self, questions: Vec<MessageRequest>) -> Vec<Said> {
        let questions = questions.into_iter().map(Some).collect();
        self.ask(&SERVER_REFLECTION_INFO, questions).await.unwrap()
    }
}

fn say(answer: ServerReflectionResponse) -> Said {
    use buffa::Message;
    use buffa_descriptor::generated::descriptor::FileDescriptorProto;
    match answer.message_response.unwrap() {
        MessageResponse::FileDescriptorResponse(files) => {
            let file = |bytes: &Vec<u8>| FileDescriptorProto::decode_from_slice(bytes).unwrap();
            let files = files.file_descriptor_proto.iter();
            Said::Files(files.map(|bytes| file(bytes).name.unwrap()).collect())
        }
        MessageResponse::AllExtensionNumbersResponse(numbers) => {
            Said::Numbers(numbers.extension_number.clone())
        }
        MessageResponse::ListServicesResponse(services) => {
            Said::Services(services.service.iter().map(|s| s.name.clone()).collect())
        }
        MessageResponse::ErrorResponse(error) => {
            Said::Error(error.error_code, error.error_message.clone())
        }
    }
}

fn zoo() -> Vec<u8> {
    quill_codegen::Schema::compile(&["tests/proto/zoo/v1/zoo.proto"], &["tests/proto"])
        .unwrap()
        .to_descriptor_set()
}

fn files(names: &[&str]) -> Said {
    Said::Files(
        names
            .iter()
            .map(|name| format!("zoo/v1/{name}.proto"))
            .collect(),
    )
}

fn symbol(name: &str) -> MessageRequest {
    MessageRequest::FileContainingSymbol(name.to_owned())
}

fn extension(containing_type: &str, extension_number: i32) -> MessageRequest {
    MessageRequest::FileContainingExtension(Box::new(ExtensionRequest {
        containing_type: containing_type.to_owned(),
        extension_number,
        ..Default::default()
    }))
}

#[tokio::test]
async fn services_are_listed_in_both_versions() {
    let reflecting = Reflecting::start(&zoo()).await;
    let all = [
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
        "zoo.v1.Zoo",
    ];
    for method in [&SERVER_REFLECTION_INFO, &v1alpha::SERVER_REFLECTION_INFO] {
        let list = MessageRequest::ListServices(String::new());
        let said = reflecting.ask(method, vec![Some(list)]).await.unwrap();
        assert_eq!(said, [Said::Services(all.map(str::to_owned).to_vec())]);
    }
}

#[tokio::test]
async fn every_kind_of_symbol_is_found_in_its_file() {
    let reflecting = Reflecting::start(&zoo()).await;
    for (name, file) in [
        ("zoo.v1.Zoo", "zoo"),
        ("zoo.v1.Zoo.Feed", "zoo"),
        ("zoo.v1.Animal", "animal"),
        ("zoo.v1.Animal.Leg", "animal"),
        ("zoo.v1.Animal.Leg.toes", "animal"),
        ("zoo.v1.Animal.base", "animal"),
        ("zoo.v1.Animal.home", "animal"),
        ("zoo.v1.Animal.age", "animal"),
        ("zoo.v1.Size", "animal"),
        ("zoo.v1.SIZE_LARGE", "animal"),
        ("zoo.v1.size", "animal"),
        ("zoo.v1.Base.name", "base"),
        ("grpc.reflection.v1.ServerReflection", ""),
    ] {
        let said = reflecting.ask_v1(vec![symbol(name)]).await;
        let Said::Files(names) = &said[0] else {
            panic!("{name}: {said:?}");
        };
        let expected = match file {
            "" => "grpc/reflection/v1/reflection.proto".to_owned(),
            file => format!("zoo/v1/{file}.proto"),
        };
        assert_eq!(names[0], expected, "{name}");
    }
}

#[tokio::test]
async fn imports_go_along_once_a_stream() {
    let reflecting = Reflecting::start(&zoo()).await;
    let by_name = MessageRequest::FileByFilename("zoo/v1/animal.proto".to_owned());
    let said = reflecting
        .ask_v1(vec![symbol("zoo.v1.Zoo"), by_name, symbol("zoo.v1.Base")])
        .await;
    assert_eq!(
        said,
        [
            files(&["zoo", "animal", "base"]),
            files(&["animal"]),
            files(&["base"])
        ]
    );
}

#[tokio::test]
async fn extensions_are_found() {
    let reflecting = Reflecting::start(&zoo()).await;
    let numbers = |name: &str| MessageRequest::AllExtensionNumbersOfType(name.to_owned());
    let said = reflecting
        .ask_v1(vec![
            numbers("zoo.v1.Base"),
            numbers("zoo.v1.Animal"),
            extension("zoo.v1.Base", 150),
        ])
        .await;
    assert_eq!(
        said,
        [
            Said::Numbers(vec![120, 150]),
            Said::Numbers(vec![]),
            files(&["animal", "base"])
        ]
    );
}

#[tokio::test]
async fn what_is_not_there_is_an_error_in_the_stream_which_goes_on() {
    let reflecting = Reflecting::start(&zoo()).await;
    let questions = vec![
        Some(symbol("zoo.v1.Unicorn")),
        Some(MessageRequest::FileByFilename("zoo.proto".to_owned())),
        Some(extension("zoo.v1.Base", 151)),
        Some(extension("zoo.v1.Base", -1)),
        Some(MessageRequest::AllExtensionNumbersOfType(
            "zoo.v1.Zoo".to_owned(),
        )),
        None,
        Some(symbol("zoo.v1.Base")),
    ];
    let said = reflecting
        .ask(&SERVER_REFLECTION_INFO, questions)
        .await
        .unwrap();
    for (said, (code, named)) in said.iter().zip([
        (5, "symbol \"zoo.v1.Unicorn\""),
        (5, "file \"zoo.proto\""),
        (5, "extension 151 of \"zoo.v1.Base\""),
        (5, "extension -1 of \"zoo.v1.Base\""),
        (5, "message \"zoo.v1.Zoo\""),
        (3, "asks for nothing"),
    ]) {
        let Said::Error(number, message) = said else {
            panic!("{said:?}");
        };
        assert_eq!(*number, code, "{message}");
        assert!(message.contains(named), "{message}");
    }
    assert_eq!(said[6], files(&["base"]));
}

#[tokio::test]
async fn sets_are_combined_and_what_two_share_is_taken_once() {
    let set = zoo();
    let server = quill_reflection::server(&set).with_descriptor_set(&set);
    assert!(server.error().is_none());
}

#[tokio::test]
async fn a_set_that_cant_be_used_shows_at_once_and_at_each_call() {
    let broken = quill_reflection::server(b"\xff");
    assert!(
        broken
            .error()
            .unwrap()
            .to_string()
            .contains("can't be used")
    );
    let reflecting = Reflecting::start(b"\xff").await;
    let list = MessageRequest::ListServices(String::new());
    let error = reflecting
        .ask(&SERVER_REFLECTION_INFO, vec![Some(list)])
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::Internal);
}
