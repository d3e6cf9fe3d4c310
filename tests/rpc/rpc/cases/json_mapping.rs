//! The ProtoJSON mapping field by field, as tables: what goes in, what comes
//! back, what is refused. What stands in `json` is not repeated here.

use base64::Engine as _;
use buffa::Message as _;
use quill::types::google::protobuf::Any;
use serde_json::{Value, json};

use super::json::{echoed, post, refused};
use super::kinds::serve_kinds;
use crate::peer::{Answer, Http1};
use crate::probe::Served;
use crate::probe::proto::{Kinds, kinds};

const HOLD: &str = "/probe.v1.KindsService/Hold";
const PRINT: &str = "/probe.v1.KindsService/Print";

/// Each row: fields as written, and the answer. All rows that differ are shown.
async fn comes_back(rows: &[(&str, &str)]) {
    let served = serve_kinds().await;
    let mut wrong = Vec::new();
    for (written, expected) in rows {
        let expected: Value = serde_json::from_str(expected).expect("the table's JSON");
        let answer = post(&served, format!("{{{written}}}")).await;
        if (answer.status, answer.json()) != (200, expected) {
            wrong.push(format!("{written}: {}", answer.text()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Each row: fields as written, for which there is no message.
async fn is_refused(rows: &[&str]) {
    let served = serve_kinds().await;
    let mut wrong = Vec::new();
    for written in rows {
        let answer = post(&served, format!("{{{written}}}")).await;
        if answer.status != 400 || answer.json()["code"] != "invalid_argument" {
            wrong.push(format!("{written}: {}", answer.text()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The answer when the server prints this message.
async fn printed(served: &Served, message: &Kinds) -> Answer {
    let bytes = base64::prelude::BASE64_STANDARD.encode(message.encode_to_vec());
    let mut connection = Http1::connect(&served.url).await;
    let fields = [("content-type", "application/json")];
    let request = json!({ "kinds": bytes }).to_string();
    connection.post(PRINT, &fields, request).await
}

#[tokio::test]
async fn integers() {
    comes_back(&[
        (r#""anInt32": -0"#, "{}"),
        (r#""anInt32": -0.0"#, "{}"),
        (r#""anInt32": "-0""#, "{}"),
        (r#""anInt32": 1e0"#, r#"{"anInt32": 1}"#),
        (r#""anInt32": 10.0e-1"#, r#"{"anInt32": 1}"#),
        (r#""anInt32": "2147483647.0""#, r#"{"anInt32": 2147483647}"#),
        (r#""aUint64": "1.0e1""#, r#"{"aUint64": "10"}"#),
        (r#""anInt64": "-1""#, r#"{"anInt64": "-1"}"#),
        (
            r#""byName": {"a": "1", "b": 2}"#,
            r#"{"byName": {"a": "1", "b": "2"}}"#,
        ),
    ])
    .await;
    is_refused(&[
        r#""anInt32": "1e-1""#,
        r#""anInt32": "-2147483649""#,
        r#""anInt64": 9223372036854775808"#,
        r#""anInt64": "9223372036854775808""#,
        r#""aUint64": 18446744073709551616"#,
        r#""aUint64": "-1""#,
        r#""aUint32": "1.5""#,
        r#""anInt32": 1e1000000000"#,
        r#""anInt32": "1e1000000000""#,
        r#""anInt32": 123456789012345678901234567890123456789012345678901234567890"#,
        r#""anInt32": 01"#,
        r#""anInt32": +1"#,
        r#""anInt32": 1."#,
        r#""anInt32": .5"#,
        r#""anInt32": 0x1"#,
        r#""anInt32": "0x1""#,
        r#""anInt32": "1 ""#,
        r#""anInt32": "1,0""#,
        r#""anInt32": "-""#,
        r#""anInt32": "e1""#,
        r#""anInt32": "Infinity""#,
        r#""anInt32": {}"#,
        r#""anInt32": [1]"#,
    ])
    .await;
}

#[tokio::test]
async fn floats_and_booleans() {
    comes_back(&[
        (r#""aDouble": 1"#, r#"{"aDouble": 1.0}"#),
        (r#""aDouble": "1.5""#, r#"{"aDouble": 1.5}"#),
        (r#""aDouble": "-1e-3""#, r#"{"aDouble": -0.001}"#),
        (r#""aDouble": 0"#, "{}"),
        (r#""aFloat": 3.4028234e38"#, r#"{"aFloat": 3.4028235e38}"#),
        (
            r#""doubles": ["NaN", "Infinity", "-Infinity", 2]"#,
            r#"{"doubles": ["NaN", "Infinity", "-Infinity", 2.0]}"#,
        ),
        (r#""wrappedDouble": "NaN""#, r#"{"wrappedDouble": "NaN"}"#),
        (r#""aBool": true"#, r#"{"aBool": true}"#),
        (r#""aBool": false"#, "{}"),
        (r#""wrappedBool": false"#, r#"{"wrappedBool": false}"#),
        (
            r#""byFlag": {"true": "a", "false": "b"}"#,
            r#"{"byFlag": {"true": "a", "false": "b"}}"#,
        ),
    ])
    .await;
    is_refused(&[
        r#""aDouble": "1.s""#,
        r#""aDouble": """#,
        r#""aDouble": " 1""#,
        r#""aDouble": "1_0""#,
        r#""aFloat": 3.5e38"#,
        r#""aFloat": -3.5e38"#,
        r#""aDouble": true"#,
        r#""aBool": "true""#,
        r#""aBool": 1"#,
        r#""aBool": "yes""#,
        r#""byFlag": {"1": "a"}"#,
        r#""byFlag": {"True": "a"}"#,
    ])
    .await;
}

#[tokio::test]
async fn text_and_bytes() {
    comes_back(&[
        (
            r#""aString": "\u00e9\ud83d\ude00""#,
            r#"{"aString": "é😀"}"#,
        ),
        (r#""aString": "\u0000""#, r#"{"aString": "\u0000"}"#),
        (r#""aString": "\u2028<>&""#, r#"{"aString": "\u2028<>&"}"#),
        (r#""someBytes": "AA==""#, r#"{"someBytes": "AA=="}"#),
        (r#""someBytes": "AA""#, r#"{"someBytes": "AA=="}"#),
        (r#""someBytes": "_w""#, r#"{"someBytes": "/w=="}"#),
        (r#""wrappedBytes": """#, r#"{"wrappedBytes": ""}"#),
        (
            r#""bytesByName": {"a": "-_8"}"#,
            r#"{"bytesByName": {"a": "+/8="}}"#,
        ),
        (r#""wrappedString": """#, r#"{"wrappedString": ""}"#),
    ])
    .await;
    is_refused(&[
        r#""aString": "\ud800""#,
        r#""aString": "\ud800\u0041""#,
        r#""aString": "\udc00""#,
        r#""aString": "\u12""#,
        r#""aString": "\x41""#,
        "\"aString\": \"\n\"",
        r#""aString": 1"#,
        r#""aString": true"#,
        r#""aString": ["a"]"#,
        r#""someBytes": "A===""#,
        r#""someBytes": "=AAA""#,
        r#""someBytes": "AAA-+/""#,
        r#""someBytes": "AAAA\n""#,
        r#""someBytes": 1"#,
        r#""someBytes": [1, 2]"#,
    ])
    .await;
    let served = serve_kinds().await;
    for bytes in [
        &b"{\"aString\": \"\xc0\x80\"}"[..],
        b"{\"aString\": \"\xed\xa0\x80\"}",
        b"{\"aString\": \"\xf5\x80\x80\x80\"}",
        b"{\"\xff\": 1}",
        b"\xef\xbb\xbf{}",
    ] {
        refused(&served, bytes, "").await;
    }
}

#[tokio::test]
async fn enums() {
    comes_back(&[
        (
            r#""shades": ["SHADE_DARK", 1, 42]"#,
            r#"{"shades": ["SHADE_DARK", "SHADE_DARK", 42]}"#,
        ),
        (r#""shade": 2147483647"#, r#"{"shade": 2147483647}"#),
        (r#""shade": -2147483648"#, r#"{"shade": -2147483648}"#),
        (r#""shade": "SHADE_UNSPECIFIED""#, "{}"),
        (
            r#""maybeShade": 0"#,
            r#"{"maybeShade": "SHADE_UNSPECIFIED"}"#,
        ),
        (
            r#""shadeByName": {"a": 1}"#,
            r#"{"shadeByName": {"a": "SHADE_DARK"}}"#,
        ),
        (r#""nothing": null"#, "{}"),
        (
            r#""noThings": [null, "NULL_VALUE"]"#,
            r#"{"noThings": [null, null]}"#,
        ),
        (r#""nothing": "NULL_VALUE""#, "{}"),
    ])
    .await;
    is_refused(&[
        r#""shade": "1""#,
        r#""shade": """#,
        r#""shade": " SHADE_DARK""#,
        r#""shade": 2147483648"#,
        r#""shade": {}"#,
        r#""shades": ["NOPE"]"#,
        r#""shadeByName": {"a": "NOPE"}"#,
    ])
    .await;
}

#[tokio::test]
async fn nulls() {
    let fields = [
        "aBool",
        "anInt32",
        "anInt64",
        "aDouble",
        "aString",
        "someBytes",
        "shade",
        "maybe",
        "maybeText",
        "maybeShade",
        "numbers",
        "children",
        "shades",
        "byName",
        "byNumber",
        "any",
        "at",
        "lasting",
        "mask",
        "document",
        "list",
        "wrapped",
        "wrappedString",
        "child",
        "word",
        "number",
    ];
    let served = serve_kinds().await;
    for field in fields {
        let back = echoed(&served, &format!("{{\"{field}\": null}}")).await;
        assert_eq!(back, json!({}), "{field}");
    }
    // The one message that a null is.
    assert_eq!(
        echoed(&served, r#"{"value": null, "values": [null, 1]}"#).await,
        json!({"value": null, "values": [null, 1.0]})
    );
    assert_eq!(
        echoed(&served, r#"{"valueChoice": null}"#).await,
        json!({"valueChoice": null})
    );
    is_refused(&[
        r#""numbers": [null]"#,
        r#""numbers": [1, null]"#,
        r#""words": [null]"#,
        r#""children": [null]"#,
        r#""doubles": [null]"#,
        r#""shades": [null]"#,
        r#""shadeByName": {"a": null}"#,
        r#""intByName": {"a": null}"#,
        r#""byName": {"a": null}"#,
        r#""byNumber": {"1": null}"#,
        r#""byFlag": {"true": null}"#,
    ])
    .await;
}

#[tokio::test]
async fn lists_and_maps() {
    comes_back(&[
        (r#""numbers": []"#, "{}"),
        (
            r#""numbers": [1, "2", "3e0", 4.0]"#,
            r#"{"numbers": [1, 2, 3, 4]}"#,
        ),
        (r#""intByName": {"a": "-1"}"#, r#"{"intByName": {"a": -1}}"#),
        (
            r#""intByNumber": {"-1": "4294967295"}"#,
            r#"{"intByNumber": {"-1": 4294967295}}"#,
        ),
        (r#""intByName": null, "shades": null"#, "{}"),
        (r#""byName": {}"#, "{}"),
        (r#""byNumber": {"-1": {}}"#, r#"{"byNumber": {"-1": {}}}"#),
        (
            r#""bySize": {"18446744073709551615": "a"}"#,
            r#"{"bySize": {"18446744073709551615": "a"}}"#,
        ),
        (r#""byName": {"": 1}"#, r#"{"byName": {"": "1"}}"#),
        (
            r#""valueByName": {"a": null}"#,
            r#"{"valueByName": {"a": null}}"#,
        ),
    ])
    .await;
    is_refused(&[
        r#""numbers": 1"#,
        r#""numbers": {}"#,
        r#""numbers": "1""#,
        r#""numbers": ["1.5"]"#,
        r#""numbers": ["2147483648"]"#,
        r#""intByNumber": {"1": "-1"}"#,
        r#""numbers": [[1]]"#,
        r#""numbers": [1,]"#,
        r#""byName": []"#,
        r#""byName": {"a": {}}"#,
        r#""byName": {1: 1}"#,
        r#""byNumber": {"1.0": {}}"#,
        r#""byNumber": {"": {}}"#,
        r#""byNumber": {" 1": {}}"#,
        r#""byNumber": {"2147483648": {}}"#,
        r#""bySize": {"-1": "a"}"#,
    ])
    .await;
}

#[tokio::test]
async fn names() {
    comes_back(&[
        (r#""an_int32": 1"#, r#"{"anInt32": 1}"#),
        (r#""other name": "a""#, r#"{"other name": "a"}"#),
        (r#""renamed": "a""#, r#"{"other name": "a"}"#),
        (r#""\u0061nInt32": 1"#, r#"{"anInt32": 1}"#),
        // Names are exact: these are fields that nobody knows.
        (r#""AnInt32": 1"#, "{}"),
        (r#""an-int32": 1"#, "{}"),
        (r#""2": 1"#, "{}"),
        (r#""": 1"#, "{}"),
        (r#""@type": "x", "$": [{"a": 1e400}]"#, "{}"),
    ])
    .await;
    is_refused(&[
        // A field comes once, by whichever of its names.
        r#""anInt32": 1, "anInt32": 1"#,
        r#""anInt32": 1, "an_int32": 2"#,
        r#""numbers": [1], "numbers": [2]"#,
        r#""byName": {}, "by_name": {}"#,
        r#""child": null, "child": {}"#,
        r#""child": {"aBool": true, "aBool": true}"#,
        r#""word": "a", "word": "a""#,
        r#""word": "a", "number": 1"#,
        r#""shadeChoice": 1, "valueChoice": 1"#,
    ])
    .await;
}

#[tokio::test]
async fn times() {
    comes_back(&[
        (r#""lasting": "0s""#, r#"{"lasting": "0s"}"#),
        (r#""lasting": "-0.5s""#, r#"{"lasting": "-0.500s"}"#),
        (r#""lasting": "1.0005s""#, r#"{"lasting": "1.000500s"}"#),
        (
            r#""lasting": "-315576000000.999999999s""#,
            r#"{"lasting": "-315576000000.999999999s"}"#,
        ),
        (
            r#""at": "1969-12-31T23:59:59.9Z""#,
            r#"{"at": "1969-12-31T23:59:59.900Z"}"#,
        ),
        (
            r#""at": "2000-02-29T00:00:00.000001Z""#,
            r#"{"at": "2000-02-29T00:00:00.000001Z"}"#,
        ),
        (
            r#""at": "2024-01-01T00:00:00-23:59""#,
            r#"{"at": "2024-01-01T23:59:00Z"}"#,
        ),
    ])
    .await;
    is_refused(&[
        r#""lasting": "1S""#,
        r#""lasting": "s""#,
        r#""lasting": "1""#,
        r#""lasting": "1 s""#,
        r#""lasting": "1e3s""#,
        r#""lasting": "-315576000001s""#,
        r#""lasting": "1.1234567890s""#,
        r#""lasting": "--1s""#,
        r#""lasting": "1.-5s""#,
        r#""lasting": {"seconds": 1}"#,
        r#""at": "0001-01-01T00:00:00+00:01""#,
        r#""at": "9999-12-31T23:59:59-00:01""#,
        r#""at": "2024-01-01T00:00:00.1234567890Z""#,
        r#""at": "2024-13-01T00:00:00Z""#,
        r#""at": "2024-01-32T00:00:00Z""#,
        r#""at": "1900-02-29T00:00:00Z""#,
        r#""at": "2024-01-01T24:00:00Z""#,
        r#""at": "2024-01-01t00:00:00z""#,
        r#""at": "2024-01-01T00:00:00+0100""#,
        r#""at": "2024-01-01T00:00Z""#,
        r#""at": "24-01-01T00:00:00Z""#,
        r#""at": "2024-01-01T00:00:00Z ""#,
        r#""at": """#,
        r#""at": 0"#,
    ])
    .await;
}

#[tokio::test]
async fn masks_structs_and_wrappers() {
    comes_back(&[
        (r#""mask": "FooBar""#, r#"{"mask": "FooBar"}"#),
        (r#""mask": """#, r#"{"mask": ""}"#),
        (r#""mask": "a.b.cD,eF""#, r#"{"mask": "a.b.cD,eF"}"#),
        (r#""document": {}"#, r#"{"document": {}}"#),
        (
            r#""value": {"a": [true, null, "x", -1.5, {}]}"#,
            r#"{"value": {"a": [true, null, "x", -1.5, {}]}}"#,
        ),
        (r#""value": []"#, r#"{"value": []}"#),
        (r#""value": """#, r#"{"value": ""}"#),
        (r#""value": 0"#, r#"{"value": 0.0}"#),
        (r#""value": "NaN""#, r#"{"value": "NaN"}"#),
        (
            r#""list": [1, [2], {"a": null}]"#,
            r#"{"list": [1.0, [2.0], {"a": null}]}"#,
        ),
        (r#""wrapped": 0"#, r#"{"wrapped": "0"}"#),
        (
            r#""wrappedUint64": "18446744073709551615""#,
            r#"{"wrappedUint64": "18446744073709551615"}"#,
        ),
    ])
    .await;
    is_refused(&[
        r#""mask": "foo_bar""#,
        r#""mask": "a b""#,
        r#""mask": ["a"]"#,
        r#""mask": {"paths": ["a"]}"#,
        r#""document": []"#,
        r#""document": "a""#,
        r#""list": {}"#,
        r#""value": 1e400"#,
        r#""wrapped": {"value": 1}"#,
        r#""wrappedInt32": 1.5"#,
        r#""wrappedBool": "true""#,
    ])
    .await;
}

#[tokio::test]
async fn any() {
    let of = |name: &str, rest: &str| {
        format!("\"any\": {{\"@type\": \"type.googleapis.com/{name}\"{rest}}}")
    };
    let nested = of(
        "google.protobuf.Any",
        r#", "value": {"@type": "type.googleapis.com/probe.v1.Kinds", "anInt32": 1}"#,
    );
    let rows = [
        of(
            "google.protobuf.Timestamp",
            r#", "value": "1970-01-01T00:00:00Z""#,
        ),
        of("google.protobuf.Int64Value", r#", "value": "7""#),
        of("google.protobuf.Struct", r#", "value": {"a": 1.0}"#),
        of("google.protobuf.Value", r#", "value": null"#),
        of("google.protobuf.FieldMask", r#", "value": "a,bC""#),
        of("probe.v1.Kinds", ""),
        of("probe.v1.Kinds", r#", "child": {"any": {}}"#),
        nested,
    ];
    let same: Vec<(&str, String)> = rows
        .iter()
        .map(|row| (row.as_str(), format!("{{{row}}}")))
        .collect();
    let table: Vec<_> = same.iter().map(|(a, b)| (*a, b.as_str())).collect();
    comes_back(&table).await;
    let wrong = [
        of("probe.v1.Kinds", r#", "anInt32": "x""#),
        of("google.protobuf.Duration", r#", "value": "x""#),
        r#""any": {"@type": "type.googleapis.com/"}"#.to_owned(),
        r#""any": {"@type": ""}"#.to_owned(),
        r#""any": {"anInt32": 1}"#.to_owned(),
        of("probe.v1.Kinds", r#", "aBool": true, "a_bool": true"#),
        r#""any": []"#.to_owned(),
        r#""any": "x""#.to_owned(),
    ];
    is_refused(&wrong.iter().map(String::as_str).collect::<Vec<_>>()).await;
}

const UNKNOWN: &str = r#"{"@type": "type.googleapis.com/no.Such", "value": "AA=="}"#;

/// The refusal says which type it is, and where to make it known.
fn names_the_type(answer: &Answer) {
    let message = answer.json()["message"].to_string();
    assert!(message.contains("type.googleapis.com/no.Such"), "{message}");
    assert!(message.contains("register_types"), "{message}");
}

#[tokio::test]
async fn an_any_of_an_unknown_type_is_refused_wherever_it_stands() {
    let served = serve_kinds().await;
    for written in [
        r#"{"any": ANY}"#,
        r#"{"anys": [{}, ANY]}"#,
        r#"{"anyByName": {"a": ANY}}"#,
        r#"{"anyByNumber": {"1": ANY}}"#,
        r#"{"anyChoice": ANY}"#,
        r#"{"child": {"any": ANY}}"#,
        r#"{"any": {"@type": "type.googleapis.com/google.protobuf.Any", "value": ANY}}"#,
        r#"{"any": {"@type": "type.googleapis.com/probe.v1.Kinds", "any": ANY}}"#,
    ] {
        let answer = post(&served, written.replace("ANY", UNKNOWN)).await;
        assert_eq!(answer.status, 400, "{written}: {answer:?}");
        names_the_type(&answer);
    }
    // A message without a oneof is read by other code.
    let mut connection = Http1::connect(&served.url).await;
    let fields = [("content-type", "application/json")];
    for written in [
        r#"{"one": ANY}"#,
        r#"{"some": [ANY]}"#,
        r#"{"named": {"a": ANY}}"#,
        r#"{"numbered": {"1": ANY}}"#,
    ] {
        for (any, status) in [(UNKNOWN, 400), ("{}", 200)] {
            let body = written.replace("ANY", any);
            let answer = connection.post(HOLD, &fields, body).await;
            assert_eq!(answer.status, status, "{written}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn an_any_of_an_unknown_type_is_not_printed() {
    let served = serve_kinds().await;
    let unknown = || Any {
        type_url: "type.googleapis.com/no.Such".to_owned(),
        value: vec![8, 1].into(),
        ..Any::default()
    };
    let mut messages = vec![Kinds::default(); 6];
    messages[0].any = unknown().into();
    messages[1].anys = vec![Any::default(), unknown()];
    messages[2].any_by_name.insert("a".to_owned(), unknown());
    messages[3].any_by_number.insert(1, unknown());
    messages[4].second_choice = Some(kinds::SecondChoice::AnyChoice(Box::new(unknown())));
    messages[5].any = Any::pack(&messages[0], Kinds::TYPE_URL).into();
    for message in &messages {
        let answer = printed(&served, message).await;
        assert_eq!(answer.status, 500, "{answer:?}");
        assert_eq!(answer.json()["code"], "internal");
        names_the_type(&answer);
    }
}

#[tokio::test]
async fn what_the_text_itself_may_be() {
    let served = serve_kinds().await;
    for text in ["{}", " \t\r\n{ } \n", "{\"x\": {\"y\": [[[{}]]]}}"] {
        assert_eq!(echoed(&served, text).await, json!({}), "{text:?}");
    }
    for text in [
        "null",
        "[]",
        "1",
        "\"x\"",
        "{}x",
        "{},",
        "{} {}",
        "{} null",
        "{\"anInt32\": 1,}",
        "{\"anInt32\" 1}",
        "{anInt32: 1}",
        "// c\n{}",
        "{/**/}",
        "{\"x\": NaN}",
        "{\"x\": 01}",
        "{\"x\": nulL}",
        "\u{feff}{}",
        "\u{a0}{}",
    ] {
        refused(&served, text, "").await;
    }
}

#[tokio::test]
async fn depth() {
    let served = serve_kinds().await;
    let nested = |depth: usize, open: &str, inner: &str, close: &str| {
        format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
    };
    // The message itself is the first of a hundred.
    let child = |depth: usize| nested(depth, "{\"child\": ", "{}", "}");
    assert_eq!(post(&served, child(99)).await.status, 200);
    refused(&served, child(100), "100 objects").await;
    let list = |depth: usize| format!("{{\"list\": {}}}", nested(depth, "[", "", "]"));
    assert_eq!(post(&served, list(90)).await.status, 200);
    refused(&served, list(200), "").await;
    let value = |depth: usize| format!("{{\"value\": {}}}", nested(depth, "{\"a\": ", "1", "}"));
    assert_eq!(post(&served, value(90)).await.status, 200);
    refused(&served, value(200), "").await;
}

/// What a message may hold and JSON may not: an error, and never a wrong text.
#[tokio::test]
async fn what_has_no_json_form_is_an_error() {
    let served = serve_kinds().await;
    let fine = printed(&served, &Kinds::default()).await;
    assert_eq!((fine.status, fine.json()), (200, json!({})));
    for (what, set) in no_json_forms() {
        let mut message = Kinds::default();
        set(&mut message);
        let answer = printed(&served, &message).await;
        assert_eq!(answer.status, 500, "{what}: {answer:?}");
        assert_eq!(answer.json()["code"], "internal", "{what}");
    }
}

/// Printing is by name, whole, and of what is set.
#[tokio::test]
async fn what_is_printed() {
    let served = serve_kinds().await;
    for (set, text) in printed_forms() {
        let mut message = Kinds::default();
        set(&mut message);
        let answer = printed(&served, &message).await;
        let text: Value = serde_json::from_str(text).expect("the table's JSON");
        assert_eq!((answer.status, answer.json()), (200, text));
    }
}

fn printed_forms() -> [(Set, &'static str); 9] {
    [
        (
            |message| message.an_int64 = i64::MIN,
            r#"{"anInt64": "-9223372036854775808"}"#,
        ),
        (
            |message| message.a_fixed64 = u64::MAX,
            r#"{"aFixed64": "18446744073709551615"}"#,
        ),
        (
            |message| message.a_double = f64::NAN,
            r#"{"aDouble": "NaN"}"#,
        ),
        (
            |message| message.a_float = f32::NEG_INFINITY,
            r#"{"aFloat": "-Infinity"}"#,
        ),
        (
            |message| message.some_bytes = vec![251, 255],
            r#"{"someBytes": "+/8="}"#,
        ),
        (|message| message.maybe = Some(0), r#"{"maybe": 0}"#),
        (
            |message| message.renamed = "a".into(),
            r#"{"other name": "a"}"#,
        ),
        (
            |message| message.at.get_or_insert_default().nanos = 1,
            r#"{"at": "1970-01-01T00:00:00.000000001Z"}"#,
        ),
        (
            |message| message.lasting.get_or_insert_default().nanos = -1,
            r#"{"lasting": "-0.000000001s"}"#,
        ),
    ]
}

type Set = fn(&mut Kinds);

fn no_json_forms() -> [(&'static str, Set); 5] {
    [
        ("mask", |message| {
            message.mask.get_or_insert_default().paths = vec!["foo_Bar".into()];
        }),
        ("time before year 1", |message| {
            message.at.get_or_insert_default().seconds = -62_135_596_801;
        }),
        ("time after year 9999", |message| {
            message.at.get_or_insert_default().seconds = 253_402_300_800;
        }),
        ("negative nanos of a time", |message| {
            message.at.get_or_insert_default().nanos = -1;
        }),
        ("long duration", |message| {
            message.lasting.get_or_insert_default().seconds = 315_576_000_001;
        }),
    ]
}

/// The rules are those of a type, wherever a value of it stands.
#[tokio::test]
async fn a_value_is_read_alike_wherever_it_stands() {
    let in_any = |name: &str, value: &str| {
        format!(
            r#""any": {{"@type": "type.googleapis.com/google.protobuf.{name}", "value": {value}}}"#
        )
    };
    let mut taken: Vec<(String, String)> = Vec::new();
    let mut refused: Vec<String> = Vec::new();
    let bad_doubles = [
        "nan", "inf", "-inf", "infinity", "+1", "+1.", ".5", "01", "1e309",
    ];
    for text in bad_doubles {
        for field in ["aDouble", "aFloat", "wrappedDouble"] {
            refused.push(format!(r#""{field}": "{text}""#));
        }
        refused.push(format!(r#""doubles": ["{text}"]"#));
        refused.push(in_any("DoubleValue", &format!("\"{text}\"")));
        refused.push(in_any("FloatValue", &format!("\"{text}\"")));
    }
    for text in ["+1", "01", "-01", "1.", ".5"] {
        for field in [
            "anInt32", "anInt64", "aUint32", "aUint64", "maybe", "number",
        ] {
            refused.push(format!(r#""{field}": "{text}""#));
        }
        for field in ["wrapped", "wrappedUint64", "wrappedInt32"] {
            refused.push(format!(r#""{field}": "{text}""#));
        }
        refused.push(format!(r#""numbers": ["{text}"]"#));
        refused.push(format!(r#""byName": {{"a": "{text}"}}"#));
        refused.push(format!(r#""intByName": {{"a": "{text}"}}"#));
        refused.push(format!(r#""byNumber": {{"{text}": {{}}}}"#));
        refused.push(format!(r#""bySize": {{"{text}": "a"}}"#));
        refused.push(in_any("Int32Value", &format!("\"{text}\"")));
    }
    for text in ["AA=", "AAAA=", "+-AA", "AA=A"] {
        refused.push(format!(r#""someBytes": "{text}""#));
        refused.push(format!(r#""wrappedBytes": "{text}""#));
        refused.push(format!(r#""bytesByName": {{"a": "{text}"}}"#));
        refused.push(in_any("BytesValue", &format!("\"{text}\"")));
    }
    for fields in [
        r#""byName": {"a": 1, "a": 1}"#,
        r#""byName": {"a": 1, "\u0061": 1}"#,
        r#""intByName": {"a": 1, "a": 1}"#,
        r#""byNumber": {"1": {}, "1": {}}"#,
        r#""byFlag": {"true": "a", "true": "a"}"#,
        r#""shadeByName": {"a": 1, "a": 1}"#,
        r#""bytesByName": {"a": "", "a": ""}"#,
        r#""valueByName": {"a": 1, "a": 1}"#,
        r#""anyByName": {"a": {}, "a": {}}"#,
        r#""document": {"a": 1, "a": 2}"#,
        r#""document": {"b": [{"a": 1, "a": 2}]}"#,
        r#""value": {"a": 1, "a": 2}"#,
        r#""values": [{"a": 1, "a": 2}]"#,
        r#""list": [{"a": 1, "a": 2}]"#,
        r#""valueChoice": {"a": 1, "a": 2}"#,
    ] {
        refused.push(fields.to_owned());
        refused.push(format!(
            r#""any": {{"@type": "type.googleapis.com/probe.v1.Kinds", {fields}}}"#
        ));
    }
    refused.push(in_any("Struct", r#"{"a": 1, "a": 2}"#));
    refused.push(in_any("Value", r#"[{"a": 1, "a": 2}]"#));
    refused.push(in_any("ListValue", r#"[{"a": 1, "a": 2}]"#));
    for (field, written, back) in [
        ("wrappedInt32", r#""1e1""#, "10"),
        ("wrappedInt32", r#""10.0""#, "10"),
        ("wrappedInt32", "1e1", "10"),
        ("wrapped", "1e1", r#""10""#),
        ("aDouble", "-0.0", "-0.0"),
        ("aDouble", "-0", "-0.0"),
        ("aDouble", r#""-0""#, "-0.0"),
        ("aFloat", r#""-0.0""#, "-0.0"),
        ("noThings", "[null, null]", "[null, null]"),
    ] {
        taken.push((
            format!("\"{field}\": {written}"),
            format!("{{\"{field}\": {back}}}"),
        ));
    }
    for (name, written, back) in [
        ("Int32Value", r#""1e1""#, "10"),
        ("DoubleValue", r#""NaN""#, r#""NaN""#),
        ("BytesValue", r#""_w""#, r#""/w==""#),
    ] {
        taken.push((in_any(name, written), format!("{{{}}}", in_any(name, back))));
    }
    let taken: Vec<_> = taken
        .iter()
        .map(|(a, b)| (a.as_str(), b.as_str()))
        .collect();
    comes_back(&taken).await;
    is_refused(&refused.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let served = serve_kinds().await;
    // A number's sign is not seen by comparing.
    let negative = post(&served, r#"{"aDouble": -0.0}"#).await;
    assert_eq!(negative.text(), r#"{"aDouble":-0.0}"#);
}
