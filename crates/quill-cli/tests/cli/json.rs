//! ProtoJSON as it is written for `quill call` and printed by it: the rules of
//! generated messages, for types that are known at run time only.

use crate::shop::{Serving, protos};
use crate::support::Ran;

const PLACE: &str = "shop.v1.Shop/Place";

fn place(shop: &Serving, order: &str) -> Ran {
    let call = shop
        .call(PLACE)
        .args(["--proto".as_ref(), protos().as_os_str()]);
    call.input(order).run()
}

#[test]
fn what_the_mapping_has_is_taken_and_printed() {
    let shop = Serving::shop();
    for (written, printed) in [
        (r#"{"id": 1e1}"#, r#"{"id":"10"}"#),
        (
            r#"{"id": "10.0", "count": "1e1"}"#,
            r#"{"id":"10","count":10}"#,
        ),
        (r#"{"limit": "1e1"}"#, r#"{"limit":10}"#),
        (r#"{"weight": -0.0}"#, r#"{"weight":-0.0}"#),
        (r#"{"weight": "-Infinity"}"#, r#"{"weight":"-Infinity"}"#),
        (r#"{"rates": ["NaN", 1]}"#, r#"{"rates":["NaN",1.0]}"#),
        (r#"{"seal": "_w"}"#, r#"{"seal":"/w=="}"#),
        (r#"{"places": {"-1": "a"}}"#, r#"{"places":{"-1":"a"}}"#),
        (
            r#"{"values": [null, {"a": [1]}]}"#,
            r#"{"values":[null,{"a":[1.0]}]}"#,
        ),
        (
            r#"{"name": null, "places": null, "rates": null, "limit": null}"#,
            "{}",
        ),
        (
            r#"{"note": {"value": "1e1", "@type": "type.googleapis.com/google.protobuf.Int32Value"}}"#,
            r#"{"note":{"@type":"type.googleapis.com/google.protobuf.Int32Value","value":10}}"#,
        ),
    ] {
        let ran = place(&shop, written);
        assert_eq!(ran.lines(), [printed], "{written}");
    }
}

#[test]
fn what_the_mapping_does_not_have_is_refused_by_its_field() {
    let shop = Serving::shop();
    for (written, field, said) in [
        (r#"{"name": 5}"#, "name", "integer `5`, expected a string"),
        (
            r#"{"name": true}"#,
            "name",
            "boolean `true`, expected a string",
        ),
        (r#"{"gift": "true"}"#, "gift", "expected a boolean"),
        (r#"{"id": true}"#, "id", "expected a 64-bit integer"),
        (r#"{"id": "+1"}"#, "id", "expected a 64-bit integer"),
        (r#"{"count": "01"}"#, "count", "expected a 32-bit integer"),
        (r#"{"limit": "1.5"}"#, "limit", "expected a 32-bit integer"),
        (r#"{"weight": "nan"}"#, "weight", "expected a double"),
        (r#"{"weight": "1e309"}"#, "weight", "expected a double"),
        (r#"{"discount": "3.5e38"}"#, "discount", "expected a float"),
        (r#"{"rates": ["+1"]}"#, "rates[0]", "expected a double"),
        (
            r#"{"prices": {"a": "inf"}}"#,
            "prices.a",
            "expected a double",
        ),
        (
            r#"{"prices": {"a": 1, "a": 1}}"#,
            "prices",
            "\"a\" comes twice",
        ),
        (r#"{"places": {"01": "a"}}"#, "places", "\"01\" is no key"),
        (r#"{"places": []}"#, "places", "expected an object"),
        (r#"{"rates": {}}"#, "rates", "expected a list"),
        (
            r#"{"extra": {"b": [{"a": 1, "a": 2}]}}"#,
            "extra",
            "\"a\" comes twice",
        ),
        (r#"{"seal": "AA="}"#, "seal", "no base64"),
        (
            r#"{"note": {"@type": "type.googleapis.com/shop.v1.Order", "count": "01"}}"#,
            "note",
            "expected a 32-bit integer",
        ),
        (
            r#"{"note": {"@type": "type.googleapis.com/google.protobuf.DoubleValue", "value": "nan"}}"#,
            "note",
            "expected a double",
        ),
    ] {
        let ran = place(&shop, written);
        let error = ran.error(2);
        assert!(
            error.contains(&format!("field \"{field}")),
            "{written}: {error}"
        );
        assert!(error.contains(said), "{written}: {error}");
    }
}
