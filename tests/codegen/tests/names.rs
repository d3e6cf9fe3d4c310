//! Names that collide with those of generated code still mean what they say.

use buffa::{Message, MessageName};
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
