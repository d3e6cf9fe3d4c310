//! Generated clients call generated servers.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use buffa_types::google::protobuf::{Empty, Timestamp};
use codegen_tests::proto::echo::v1::{
    EchoClient, EchoRequest, EchoRequestOwnedView, EchoResponse, EchoServer, EchoService,
    FILE_DESCRIPTOR_SET, echo_service,
};
use codegen_tests::runtime::{QuillClient, Routes, Service as _};
use futures_core::Stream;
use futures_util::stream::{self, StreamExt as _};
use quill_core::{Code, Error, Idempotency, MethodKind, Request, Response, Streaming};

/// Answers with a prefix that its streams borrow.
struct Echo {
    prefix: String,
}

impl Echo {
    fn answer(&self, message: &str) -> EchoResponse {
        EchoResponse {
            message: format!("{}{message}", self.prefix),
            ..Default::default()
        }
    }
}

impl EchoService for Echo {
    async fn echo(
        &self,
        request: Request<EchoRequestOwnedView>,
    ) -> Result<Response<EchoResponse>, Error> {
        Ok(self.answer(request.message().message()).into())
    }

    async fn expand(
        &self,
        request: Request<EchoRequest>,
    ) -> Result<Response<impl Stream<Item = Result<EchoResponse, Error>> + Send>, Error> {
        let message = request.into_inner().message;
        if message.is_empty() {
            return Err(Error::invalid_argument("nothing to repeat"));
        }
        Ok(stream::iter(0..3)
            .map(move |n| Ok(self.answer(&format!("{message}{n}"))))
            .into())
    }

    async fn collect(
        &self,
        request: Request<Streaming<EchoRequest>>,
    ) -> Result<Response<EchoResponse>, Error> {
        let mut requests = request.into_inner();
        let mut all = Vec::new();
        while let Some(request) = requests.message().await? {
            all.push(request.message);
        }
        Ok(self.answer(&all.join("+")).into())
    }

    async fn chat(
        &self,
        request: Request<Streaming<EchoRequest>>,
    ) -> Result<Response<impl Stream<Item = Result<EchoResponse, Error>> + Send>, Error> {
        let answers = request
            .into_inner()
            .map(|request| Ok(self.answer(&request?.message)));
        Ok(Response::new(answers))
    }

    async fn old(&self, request: Request<EchoRequest>) -> Result<Response<EchoResponse>, Error> {
        Ok(self.answer(&request.message().message).into())
    }

    async fn now(&self, _: Request<Empty>) -> Result<Response<Timestamp>, Error> {
        Ok(Timestamp::default().into())
    }
}

fn server() -> EchoServer<Echo> {
    EchoServer::new(Echo {
        prefix: "> ".to_owned(),
    })
}

fn client() -> EchoClient {
    EchoClient::new(QuillClient::of(Routes::of(server())))
}

fn request(message: &str) -> EchoRequest {
    EchoRequest {
        message: message.to_owned(),
        ..Default::default()
    }
}

/// Everything here is ready at once or wakes nobody.
fn run<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..1000 {
        if let Poll::Ready(value) = future.as_mut().poll(&mut cx) {
            return value;
        }
    }
    panic!("the future does not end")
}

async fn texts(mut answers: Streaming<EchoResponse>) -> Result<Vec<String>, Error> {
    let mut texts = Vec::new();
    while let Some(answer) = answers.message().await? {
        texts.push(answer.message);
    }
    Ok(texts)
}

#[test]
fn a_unary_call_takes_a_message_or_a_request() {
    run(async {
        let client = client();
        let answer = client.echo(request("hi")).await.expect("an answer");
        assert_eq!(answer.message().message, "> hi");
        let request = Request::new(request("ho")).with_timeout(Duration::from_secs(1));
        let answer = client.echo(request).await.expect("an answer");
        assert_eq!(answer.message().message, "> ho");
    });
}

#[test]
fn a_server_streams_what_borrows_from_it() {
    run(async {
        let answers = client().expand(request("a")).await.expect("a stream");
        let texts = texts(answers.into_inner()).await.expect("messages");
        assert_eq!(texts, ["> a0", "> a1", "> a2"]);
        let error = client().expand(request("")).await.expect_err("an error");
        assert_eq!(error.code(), Code::InvalidArgument);
    });
}

#[test]
fn a_client_streams_with_and_without_a_request() {
    run(async {
        let words = ["a", "b"].map(request);
        let answer = client().collect(stream::iter(words.clone())).await;
        assert_eq!(answer.expect("an answer").message().message, "> a+b");
        let answer = client().collect(Request::new(stream::iter(words))).await;
        assert_eq!(answer.expect("an answer").message().message, "> a+b");
    });
}

#[test]
fn both_sides_stream() {
    run(async {
        let words = stream::iter(["a", "b"].map(request));
        let answers = client().chat(words).await.expect("a stream");
        let texts = texts(answers.into_inner()).await.expect("messages");
        assert_eq!(texts, ["> a", "> b"]);
    });
}

#[test]
fn what_is_not_implemented_says_so() {
    run(async {
        let error = client().missing(request("")).await.expect_err("an error");
        assert_eq!(error.code(), Code::Unimplemented);
        assert_eq!(
            error.message(),
            "echo.v1.EchoService/Missing is not implemented"
        );
        let error = client().missing_stream(request("")).await;
        assert_eq!(error.expect_err("an error").code(), Code::Unimplemented);
    });
}

#[test]
fn well_known_types_and_deprecated_methods_are_methods_like_others() {
    run(async {
        let now = client().now(Empty::default()).await.expect("an answer");
        assert_eq!(now.into_inner(), Timestamp::default());
        #[allow(deprecated)]
        let old = client().old(request("x")).await.expect("an answer");
        assert_eq!(old.message().message, "> x");
    });
}

#[test]
fn methods_are_registered_with_kind_and_options() {
    assert_eq!(server().name(), "echo.v1.EchoService");
    let routes = Routes::of(EchoServer::from_arc(Arc::new(Echo {
        prefix: String::new(),
    })));
    let methods: Vec<_> = routes
        .methods()
        .map(|method| (method.name().to_owned(), method.kind()))
        .collect();
    let expected = [
        ("Chat", MethodKind::BidiStreaming),
        ("Collect", MethodKind::ClientStreaming),
        ("Echo", MethodKind::Unary),
        ("Expand", MethodKind::ServerStreaming),
        ("Missing", MethodKind::Unary),
        ("MissingStream", MethodKind::ServerStreaming),
        ("Now", MethodKind::Unary),
        ("Old", MethodKind::Unary),
    ];
    assert_eq!(
        methods,
        expected.map(|(name, kind)| (name.to_owned(), kind))
    );

    let echo = &echo_service::ECHO;
    assert_eq!(echo.path(), "/echo.v1.EchoService/Echo");
    assert_eq!(echo.idempotency(), Idempotency::NoSideEffects);
    assert_eq!(echo.cache_ttl(), Some(Duration::from_secs(60)));
    let expand = &echo_service::EXPAND;
    assert_eq!(expand.idempotency(), Idempotency::Idempotent);
    assert_eq!(echo_service::COLLECT.idempotency(), Idempotency::Unknown);
}

#[test]
fn the_descriptor_set_has_all_imports_and_the_options() {
    use buffa::{ExtensionSet as _, Message as _};
    use buffa_descriptor::generated::descriptor::FileDescriptorSet;

    let set = FileDescriptorSet::decode_from_slice(FILE_DESCRIPTOR_SET).expect("a set");
    let names: Vec<_> = set
        .file
        .iter()
        .filter_map(|file| file.name.as_deref())
        .collect();
    for file in &set.file {
        for import in &file.dependency {
            assert!(names.contains(&import.as_str()), "{import} is missing");
        }
    }
    let echo = set
        .file
        .iter()
        .find(|file| file.name.as_deref() == Some("echo/echo.proto"));
    let method = &echo.expect("the file").service[0].method[0];
    let options = method
        .options
        .as_option()
        .expect("options")
        .unknown_fields();
    let numbers: Vec<_> = options.iter().map(|field| field.number).collect();
    assert!(
        numbers.contains(&50001) && numbers.contains(&72_295_728),
        "{numbers:?}"
    );
}
