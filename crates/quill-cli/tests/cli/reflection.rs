//! Schemas from the server, also from one that means no good.

use quill::Server;

use crate::shop::{Behaviour, Serving, Shop, descriptor_set};

const PLACE: &str = "shop.v1.Shop/Place";

#[test]
fn an_errors_details_are_decoded_by_what_is_known() {
    let reflection = quill_reflection::server(&descriptor_set(&["shop.proto"]))
        .with_descriptor_set(&descriptor_set(&["hidden.proto"]));
    let shop = Serving::start(Server::builder().service(Shop).service(reflection));
    for protocol in ["quill", "grpc", "grpc-web", "connect"] {
        let ran = shop
            .call("shop.v1.Shop/Fail")
            .args(["-v", "--protocol", protocol])
            .run();
        let lines: Vec<_> = ran.error(4).lines().collect();
        for line in [
            "quill: failed_precondition: not today",
            r#"  detail google.rpc.ErrorInfo {"reason":"CLOSED"}"#,
            r#"  detail shop.v1.OutOfStock {"item":"pen"}"#,
            // Looked up with the server, as the method's own files lack it.
            r#"  detail shop.v1.Hidden {"clue":"ink"}"#,
            "  detail other.v1.Thing (of unknown type) base64 AQID",
            "metadata x-shop: closed",
        ] {
            assert!(lines.contains(&line), "{protocol}: {line}: {lines:?}");
        }
    }
}

#[test]
fn the_older_version_does_and_files_may_come_one_by_one() {
    let shop = Serving::start(Server::builder().service(Shop).service(Behaviour::Older));
    let ran = shop.call(PLACE).input(r#"{"id":7}"#).run();
    assert_eq!(ran.lines(), [r#"{"id":"7"}"#]);
}

#[test]
fn without_reflection_the_other_ways_are_named() {
    let shop = Serving::shop();
    for protocol in ["quill", "grpc", "grpc-web", "connect"] {
        let ran = shop.call(PLACE).args(["--protocol", protocol]).run();
        let error = ran.error(4);
        assert!(error.contains("has no reflection"), "{protocol}: {error}");
        assert!(error.contains("--proto"), "{protocol}: {error}");
        assert!(error.contains("--descriptor-set"), "{protocol}: {error}");
    }
}

#[test]
fn answers_that_make_no_sense_end_with_an_error() {
    for (behaviour, said) in [
        (Behaviour::Endless, "answers more than was asked"),
        (Behaviour::Chain, "more than 10000 files"),
        (Behaviour::Garbage, "a file that can't be read"),
        (Behaviour::Silent, "ends before it has answered"),
    ] {
        let shop = Serving::start(Server::builder().service(Shop).service(behaviour));
        let ran = shop.call(PLACE).run();
        let error = ran.error(4);
        assert!(error.contains(said), "{behaviour:?}: {error}");
    }
}

#[test]
fn a_type_that_only_an_any_names_is_asked_for() {
    let set = descriptor_set(&["shop.proto"]);
    let more = descriptor_set(&["hidden.proto"]);
    let reflection = quill_reflection::server(&set).with_descriptor_set(&more);
    let shop = Serving::start(Server::builder().service(Shop).service(reflection));
    let hidden = r#"{"note":{"@type":"type.googleapis.com/shop.v1.Hidden","clue":"ink"}}"#;
    let ran = shop.call("shop.v1.Shop/Note").run();
    assert_eq!(ran.lines(), [hidden]);

    let reflection = quill_reflection::server(&set);
    let shop = Serving::start(Server::builder().service(Shop).service(reflection));
    let ran = shop.call("shop.v1.Shop/Note").run();
    let error = ran.error(4);
    assert!(
        error.contains("type.googleapis.com/shop.v1.Hidden"),
        "{error}"
    );
    assert!(error.contains("--descriptor-set"), "{error}");
}
