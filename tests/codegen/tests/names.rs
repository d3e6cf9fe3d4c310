//! Names that collide with those of generated code still mean what they say.

use std::pin::pin;
use std::task::{Context, Waker};

use buffa::{Message, MessageName};
use codegen_tests::proto::names::awkward;
use codegen_tests::proto::names::r#match::r#async as keywords;
use codegen_tests::proto::names::shadow::{self, A, E, outer};
use codegen_tests::proto::names::{self, EchoServiceClient, EchoServiceServer};
use codegen_tests::proto::{Bare, BareServer, BareService, a, old};
use codegen_tests::runtime::{Routes, Service as _};
use serde::de::DeserializeOwned;

fn both_ways<M: Message + serde::Serialize + DeserializeOwned + PartialEq>(message: &M) -> String {
    let bytes = message.encode_to_vec();
    assert!(M::decode_from_slice(&bytes).is_ok_and(|decoded| decoded == *message));
    let json = serde_json::to_string(message).expect("JSON");
    let parsed: M = serde_json::from_str(&json).expect("the same message");
    assert!(parsed == *message, "{json}");
    json
}

#[test]
fn types_that_shadow_type_parameters_keep_their_names() {
    assert_eq!(<shadow::S as MessageName>::FULL_NAME, "names.shadow.S");
    assert_eq!(<outer::S as MessageName>::FULL_NAME, "names.shadow.Outer.S");
    assert_eq!(
        shadow::From::TYPE_URL,
        "type.googleapis.com/names.shadow.From"
    );
    let message = A {
        e: E::E_ONE.into(),
        es: vec![E::E_UNKNOWN.into(), E::E_ONE.into()],
        ..Default::default()
    };
    assert_eq!(
        both_ways(&message),
        r#"{"e":"E_ONE","es":["E_UNKNOWN","E_ONE"]}"#
    );
    let into = shadow::Into::default().with_text("x");
    assert_eq!(both_ways(&into), r#"{"text":"x"}"#);
}

#[test]
fn types_that_are_called_like_the_preludes_work() {
    let message = names::Vec {
        boxes: vec![names::Box::default()],
        ..Default::default()
    };
    assert_eq!(both_ways(&message), r#"{"boxes":[{}]}"#);
    let keyword = names::r#type {
        r#fn: true,
        ..Default::default()
    };
    assert_eq!(both_ways(&keyword), r#"{"fn":true}"#);
    let lower = names::lower {
        kind: Some(names::lower_::Inner::default().into()),
        ..Default::default()
    };
    assert_eq!(both_ways(&lower), r#"{"a":{}}"#);
    assert_eq!(names::lower_::Inner::FULL_NAME, "names.lower.Inner");
    assert_eq!(<names::Self_ as MessageName>::FULL_NAME, "names.Self");
}

#[test]
fn types_that_are_called_like_primitive_ones_get_an_underscore() {
    let message = awkward::bool_ {
        i32: awkward::i32_::default().into(),
        strs: vec![awkward::str_::default().with_text("x")],
        u8: [("a".to_owned(), awkward::u8_::default())]
            .into_iter()
            .collect(),
        ..Default::default()
    };
    assert_eq!(
        both_ways(&message),
        r#"{"i32":{},"strs":[{"text":"x"}],"u8":{"a":{}}}"#
    );
    assert_eq!(awkward::bool_::FULL_NAME, "names.awkward.bool");
    assert_eq!(awkward::str___::bool_::FULL_NAME, "names.awkward.str.bool");
    let chars = awkward::Chars {
        char: awkward::char_::CHAR_A.into(),
        ..Default::default()
    };
    assert_eq!(both_ways(&chars), r#"{"char":"CHAR_A"}"#);
    // What a message contains is in a module, which must not hide a type either.
    let contained = awkward::Str {
        kind: awkward::str__::Kind::KIND_ONE.into(),
        ..Default::default()
    };
    assert_eq!(both_ways(&contained), r#"{"kind":"KIND_ONE"}"#);
    let _ = awkward::super_::Inner::default();
}

#[test]
fn messages_that_differ_in_case_only_are_told_apart() {
    let message = awkward::foo {
        inner: awkward::foo___::Inner::default().into(),
        Foo: awkward::Foo {
            inner: awkward::foo__::Inner::default().into(),
            one: Some(awkward::__buffa::oneof::foo__::One::Foo("x".to_owned())),
            ..Default::default()
        }
        .into(),
        ..Default::default()
    };
    assert_eq!(
        both_ways(&message),
        r#"{"inner":{},"Foo":{"inner":{},"Foo":"x"}}"#
    );
    assert_eq!(awkward::foo_::Inner::FULL_NAME, "names.awkward.FOO.Inner");
    assert_eq!(
        awkward::http_request_::Header::FULL_NAME,
        "names.awkward.HttpRequest.Header"
    );
}

#[test]
fn views_and_messages_do_not_take_each_others_names() {
    assert_eq!(
        awkward::ItemOwnedView::FULL_NAME,
        "names.awkward.ItemOwnedView"
    );
    let item = awkward::ItemOwned {
        name: "x".to_owned(),
        ..Default::default()
    };
    let view = awkward::__buffa::view::ItemOwned_OwnedView::from_owned(&item).expect("a view");
    assert_eq!(view.name(), "x");
    let item = awkward::Item {
        name: "y".to_owned(),
        ..Default::default()
    };
    let view = awkward::__buffa::view::ItemOwnedView::from_owned(&item).expect("a view");
    assert_eq!(view.name(), "y");
}

#[test]
fn fields_that_are_called_like_types_keep_their_names() {
    let fields = awkward::Fields {
        From: "a".to_owned(),
        S: awkward::S {
            E: [(1, awkward::E::default())].into_iter().collect(),
            ..Default::default()
        }
        .into(),
        Into: [("k".to_owned(), awkward::From::default())]
            .into_iter()
            .collect(),
        ..Default::default()
    };
    assert_eq!(
        both_ways(&fields),
        r#"{"From":"a","S":{"E":{"1":{}}},"Into":{"k":{}}}"#
    );
    let hidden = awkward::_Hidden {
        _name: "x".to_owned(),
        _inner: awkward::_hidden::_Inner::default().into(),
        ..Default::default()
    };
    assert_eq!(both_ways(&hidden), r#"{"Name":"x","Inner":{}}"#);
}

#[test]
fn services_that_are_called_like_what_generated_code_uses_are_served() {
    struct All;
    impl keywords::S for All {}
    impl keywords::E for All {}
    impl keywords::From_ for All {}
    impl keywords::Self_ for All {}
    impl keywords::Send for All {}
    impl keywords::Default for All {}
    impl keywords::Option for All {}
    impl awkward::Bool for All {}
    assert_eq!(keywords::SServer::new(All).name(), "names.match.async.S");
    assert_eq!(
        keywords::FromServer::new(All).name(),
        "names.match.async.From"
    );
    assert_eq!(
        keywords::SelfServer::new(All).name(),
        "names.match.async.Self"
    );
    assert_eq!(keywords::self_::SELF.path(), "/names.match.async.Self/Self");
    assert_eq!(
        keywords::OptionServer::new(All).name(),
        "names.match.async.Option"
    );
    assert_eq!(awkward::bool__::GET.path(), "/names.awkward.Bool/Get");
    assert_eq!(awkward::BoolServer::new(All).name(), "names.awkward.Bool");
    let _: fn(_) -> keywords::SClient = keywords::SClient::new;
}

#[test]
fn nested_requests_and_their_views_are_called() {
    use awkward::outer::middle::{Inner, InnerOwnedView};
    use codegen_tests::runtime::{Error, QuillClient, Request, Response};

    struct Both;
    impl awkward::A for Both {
        async fn r#do(
            &self,
            request: Request<awkward::__buffa::view::outer::middle::InnerOwnedView>,
        ) -> Result<Response<awkward::S>, Error> {
            assert_eq!(request.message().text(), "x");
            Ok(awkward::S::default().into())
        }

        async fn view(
            &self,
            request: Request<awkward::SOwnedView>,
        ) -> Result<Response<Inner>, Error> {
            assert!(request.message().view().E.is_empty());
            Ok(Inner::default().into())
        }
    }
    let _: Option<InnerOwnedView> = None;
    let client = awkward::AClient::new(QuillClient::of(Routes::of(awkward::AServer::new(Both))));
    let inner = Inner {
        text: "x".to_owned(),
        ..Default::default()
    };
    let calls = async {
        client.r#do(inner).await.expect("an answer");
        client.view(awkward::S::default()).await.expect("an answer");
    };
    // Everything here is ready at once.
    let mut cx = Context::from_waker(Waker::noop());
    assert!(pin!(calls).poll(&mut cx).is_ready());
}

#[test]
fn methods_that_are_called_like_the_clients_own_get_an_underscore() {
    struct Nothing;
    impl names::Names for Nothing {}
    let client = names::NamesClient::new(codegen_tests::runtime::QuillClient::of(Routes::of(
        names::NamesServer::new(Nothing),
    )));
    // Not called: that they are there, under these names, is the point.
    let _ = [client.new_(names::Result::default())];
    let _ = [client.connect_(names::Option::default())];
    let _ = [client.clone_(names::String::default())];
    let _ = [client.r#type(names::Request::default())];
    let _ = [client.self_(names::Some::default())];
    let _ = [client.get_http_info(names::Self_::default())];
    let _ = [client.get_http_info_(names::Self_::default())];
    assert_eq!(names::names::NAME_.path(), "/names.Names/Name");
    assert_eq!(names::names::NAME, "names.Names");
}

#[test]
fn services_step_aside_for_messages_and_each_other() {
    struct Both;
    impl names::Echo for Both {}
    impl names::EchoService for Both {}
    impl names::Service for Both {}
    impl names::LowerCase for Both {}
    // The messages EchoServer and EchoClient have those names already.
    let _ = (names::EchoServer::default(), names::EchoClient::default());
    assert_eq!(names::EchoServer_::new(Both).name(), "names.Echo");
    assert_eq!(EchoServiceServer::new(Both).name(), "names.EchoService");
    assert_eq!(names::ServiceServer::new(Both).name(), "names.Service");
    assert_eq!(
        Routes::of(names::ServiceServer::new(Both))
            .methods()
            .count(),
        0
    );
    assert_eq!(names::LowerCaseServer::new(Both).name(), "names.lower_case");
    assert_eq!(names::lower_case::DO_IT.path(), "/names.lower_case/do_it");
    let _: fn(_) -> EchoServiceClient = EchoServiceClient::new;
}

#[test]
fn packages_find_each_other_and_no_package_is_one() {
    struct Show;
    impl BareService for Show {}
    assert_eq!(BareServer::new(Show).name(), "BareService");
    assert_eq!(
        codegen_tests::proto::bare_service::SHOW.path(),
        "/BareService/Show"
    );
    let bare = Bare {
        common: a::Common {
            text: "x".to_owned(),
            ..Default::default()
        }
        .into(),
        ..Default::default()
    };
    assert_eq!(both_ways(&bare), r#"{"common":{"text":"x"}}"#);
    let deep = a::b::r#type::Deep {
        common: bare.common.clone(),
        ..Default::default()
    };
    assert_eq!(both_ways(&deep), r#"{"common":{"text":"x"}}"#);
}

#[test]
fn proto2_keeps_defaults_that_look_like_paths() {
    let old = old::Old::default();
    assert_eq!(old.name, "::buffa::x");
}

#[test]
fn proto2_messages_hold_closed_enums_wrappers_and_descriptors() {
    let parsed: old::Old = serde_json::from_str(
        r#"{"name": "x", "kinds": ["KIND_B", 1], "kindByNumber": {"-1": "KIND_A"},
            "limits": {"a": "1e1"}, "seals": ["_w"], "wrapped": "7", "nothings": [null],
            "nothingByFlag": {"true": null}, "types": ["TYPE_BOOL"],
            "file": {"name": "a.proto", "messageType": [{"name": "M"}]},
            "fieldsByName": {"f": {"number": 1}}}"#,
    )
    .expect("a message");
    assert_eq!(parsed.kinds, [old::Kind::KIND_B, old::Kind::KIND_A]);
    let json: serde_json::Value = serde_json::from_str(&both_ways(&parsed)).expect("JSON");
    assert_eq!(json["limits"]["a"], 10);
    assert_eq!(json["seals"][0], "/w==");
    assert_eq!(json["nothings"], serde_json::json!([null]));
    assert_eq!(json["nothingByFlag"], serde_json::json!({"true": null}));
    assert_eq!(json["file"]["messageType"][0]["name"], "M");
    for refused in [
        r#"{"name": "x", "kindByNumber": {"1": "KIND_A", "1": "KIND_A"}}"#,
        r#"{"name": "x", "limits": {"a": "01"}}"#,
        r#"{"name": "x", "seals": ["AA="]}"#,
        r#"{"name": "x", "kinds": [null]}"#,
        r#"{"name": "x", "weight": "nan"}"#,
    ] {
        assert!(
            serde_json::from_str::<old::Old>(refused).is_err(),
            "{refused}"
        );
    }
}
