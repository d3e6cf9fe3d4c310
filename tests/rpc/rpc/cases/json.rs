//! JSON as other writers of ProtoJSON send it, to a server that sends it back.

use buffa::Message as _;
use quill_core::{BuffaViewCodec, Codec as _, DecodeLimits, Format};
use serde_json::{Value, json};

use super::kinds::serve_kinds;
use crate::peer::{Answer, Http1};
use crate::probe::Served;
use crate::probe::proto::Kinds;

const ECHO: &str = "/probe.v1.KindsService/Echo";

pub(super) async fn post(served: &Served, json: impl AsRef<[u8]>) -> Answer {
    let mut connection = Http1::connect(&served.url).await;
    let fields = [("content-type", "application/json")];
    connection.post(ECHO, &fields, json).await
}

/// The message as it comes back.
pub(super) async fn echoed(served: &Served, json: &str) -> Value {
    let answer = post(served, json).await;
    assert_eq!(answer.status, 200, "{json}: {answer:?}");
    answer.json()
}

/// A message that is refused, with the path of what is wrong.
pub(super) async fn refused(served: &Served, json: impl AsRef<[u8]>, path: &str) {
    let json = json.as_ref();
    let shown = String::from_utf8_lossy(&json[..json.len().min(80)]).into_owned();
    let answer = post(served, json).await;
    assert_eq!(answer.status, 400, "{shown}: {answer:?}");
    let error = answer.json();
    assert_eq!(error["code"], "invalid_argument", "{shown}");
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains(path), "{shown}: {message}");
}

#[tokio::test]
async fn numbers_may_be_quoted_and_whole_numbers_written_with_a_point() {
    let served = serve_kinds().await;
    for (written, number) in [
        (r#""1e2""#, 100),
        (r#""100.000""#, 100),
        ("1.0", 1),
        ("1e2", 100),
        (r#""-2147483648""#, i32::MIN),
        ("2147483647", i32::MAX),
    ] {
        for field in ["anInt32", "an_int32", "aSint32", "aSfixed32"] {
            let json = format!("{{\"{field}\": {written}}}");
            let back = echoed(&served, &json).await;
            let fields = back.as_object().expect("an object");
            assert_eq!(fields.values().next(), Some(&json!(number)), "{json}");
        }
    }
    for written in [
        "1.5",
        r#""0.5""#,
        "2147483648",
        r#""""#,
        r#"" 1""#,
        r#""1x""#,
        "true",
        "1e40",
        r#""NaN""#,
    ] {
        refused(&served, format!("{{\"anInt32\": {written}}}"), "anInt32").await;
    }
    for (field, written) in [
        ("aUint32", "-1"),
        ("aUint32", "4294967296"),
        ("aUint64", "-1"),
    ] {
        refused(&served, format!("{{\"{field}\": {written}}}"), field).await;
    }
}

#[tokio::test]
async fn numbers_of_64_bits_are_text_on_the_way_out() {
    let served = serve_kinds().await;
    for (field, written, text) in [
        ("anInt64", "9007199254740993", "9007199254740993"),
        ("anInt64", "\"9007199254740993\"", "9007199254740993"),
        ("anInt64", "-9223372036854775808", "-9223372036854775808"),
        ("aUint64", "18446744073709551615", "18446744073709551615"),
        ("aFixed64", "\"1e3\"", "1000"),
        ("wrapped", "\"7\"", "7"),
    ] {
        let back = echoed(&served, &format!("{{\"{field}\": {written}}}")).await;
        assert_eq!(back, json!({ field: text }), "{written}");
    }
}

#[tokio::test]
async fn floats_that_are_no_numbers_are_words() {
    let served = serve_kinds().await;
    for word in ["NaN", "Infinity", "-Infinity"] {
        for field in ["aDouble", "aFloat"] {
            let back = echoed(&served, &format!("{{\"{field}\": \"{word}\"}}")).await;
            assert_eq!(back, json!({ field: word }));
        }
    }
    for written in ["NaN", "1e309", "-1e309", "Infinity"] {
        let answer = post(&served, format!("{{\"aDouble\": {written}}}")).await;
        assert_eq!(answer.status, 400, "{written}: {answer:?}");
    }
}

#[tokio::test]
async fn bytes_are_base64_of_either_alphabet_padded_or_not() {
    let served = serve_kinds().await;
    for (written, back) in [
        ("-_8", "+/8="),
        ("-_8=", "+/8="),
        ("+/8", "+/8="),
        ("+/8=", "+/8="),
        ("", ""),
    ] {
        let echo = echoed(&served, &format!("{{\"someBytes\": \"{written}\"}}")).await;
        let expected = if back.is_empty() {
            json!({})
        } else {
            json!({ "someBytes": back })
        };
        assert_eq!(echo, expected, "{written}");
    }
    for written in ["QUJD!!!", "A", "AB=C", "Q UJD"] {
        refused(
            &served,
            format!("{{\"someBytes\": \"{written}\"}}"),
            "someBytes",
        )
        .await;
    }
}

#[tokio::test]
async fn a_field_mask_has_only_names_that_come_back() {
    let served = serve_kinds().await;
    let back = echoed(&served, r#"{"mask": "fooBar,a.bC"}"#).await;
    assert_eq!(back, json!({"mask": "fooBar,a.bC"}));
    refused(&served, r#"{"mask": "foo_bar"}"#, "mask").await;
    // A path that has no JSON form: camel case loses it.
    let mut message = Kinds::default();
    message.mask.get_or_insert_default().paths = vec!["foo_Bar".into()];
    let call = crate::peer::http2(&served.url);
    let fields = [
        ("content-type", "application/proto"),
        ("accept", "application/proto"),
    ];
    let binary = crate::peer::send(
        &call,
        crate::peer::head(ECHO, &fields),
        message.encode_to_vec(),
    )
    .await;
    assert_eq!(binary.status, 200, "binary has one");
    assert!(serde_json::to_string(&message).is_err());
}

#[tokio::test]
async fn an_enum_keeps_numbers_it_does_not_know_and_refuses_names() {
    let served = serve_kinds().await;
    for (written, back) in [
        ("\"SHADE_DARK\"", json!("SHADE_DARK")),
        ("1", json!("SHADE_DARK")),
        ("42", json!(42)),
        ("-1", json!(-1)),
    ] {
        let echo = echoed(&served, &format!("{{\"shade\": {written}}}")).await;
        assert_eq!(echo, json!({ "shade": back }), "{written}");
    }
    for written in ["\"NOPE\"", "\"shade_dark\"", "1.5", "4294967296", "true"] {
        refused(&served, format!("{{\"shade\": {written}}}"), "shade").await;
    }
}

#[tokio::test]
async fn a_oneof_has_one_member() {
    let served = serve_kinds().await;
    assert_eq!(
        echoed(&served, r#"{"word": "", "number": null}"#).await,
        json!({"word": ""})
    );
    for two in [
        r#"{"word": "a", "number": 1}"#,
        r#"{"word": "a", "word": "b"}"#,
    ] {
        let answer = post(&served, two).await;
        assert_eq!(answer.status, 400, "{two}: {answer:?}");
        assert_eq!(answer.json()["code"], "invalid_argument");
    }
}

#[tokio::test]
async fn times_have_their_range() {
    let served = serve_kinds().await;
    for (field, written, back) in [
        ("lasting", "-0.5s", "-0.500s"),
        ("lasting", "1.000000001s", "1.000000001s"),
        ("lasting", "315576000000s", "315576000000s"),
        ("at", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        (
            "at",
            "9999-12-31T23:59:59.999999999Z",
            "9999-12-31T23:59:59.999999999Z",
        ),
        ("at", "2024-02-29T12:00:00+02:00", "2024-02-29T10:00:00Z"),
    ] {
        let echo = echoed(&served, &format!("{{\"{field}\": \"{written}\"}}")).await;
        assert_eq!(echo, json!({ field: back }), "{written}");
    }
    // A leap second has no form in a Timestamp, and is refused.
    for (field, written) in [
        ("lasting", "315576000001s"),
        ("lasting", "1"),
        ("lasting", "1.0000000001s"),
        ("at", "0000-01-01T00:00:00Z"),
        ("at", "2016-12-31T23:59:60Z"),
        ("at", "2023-02-29T00:00:00Z"),
        ("at", "2024-02-29 00:00:00Z"),
        ("at", "10000-01-01T00:00:00Z"),
        ("at", "2024-02-29T00:00:00"),
    ] {
        refused(&served, format!("{{\"{field}\": \"{written}\"}}"), field).await;
    }
}

#[tokio::test]
async fn what_is_wrong_is_named_by_its_path() {
    let served = serve_kinds().await;
    for (json, path) in [
        (r#"{"child": {"anInt32": "x"}}"#, "child.anInt32"),
        (r#"{"children": [{}, {"aBool": 1}]}"#, "children[1].aBool"),
        (r#"{"numbers": [1, 2, "x"]}"#, "numbers"),
        (r#"{"byName": {"a": "x"}}"#, "byName"),
        (r#"{"byNumber": {"1": {"aString": 5}}}"#, "byNumber"),
        (r#"{"byNumber": {"x": {}}}"#, "byNumber"),
        (r#"{"at": 5}"#, "at"),
    ] {
        refused(&served, json, path).await;
    }
    for broken in [
        "{",
        "",
        "[]",
        "{}{}",
        "{\"aString\": \"\\ud800\"}",
        "nul",
        "{'a': 1}",
    ] {
        refused(&served, broken, "JSON").await;
    }
    refused(&served, b"{\"aString\": \"\xff\xfe\"}", "JSON").await;
}

#[tokio::test]
async fn an_any_is_empty_or_names_its_type_wherever_that_stands() {
    let served = serve_kinds().await;
    assert_eq!(echoed(&served, r#"{"any": {}}"#).await, json!({"any": {}}));
    let kinds = "type.googleapis.com/probe.v1.Kinds";
    let duration = "type.googleapis.com/google.protobuf.Duration";
    for (written, back) in [
        (
            format!(r#"{{"aString": "x", "@type": "{kinds}"}}"#),
            json!({"@type": kinds, "aString": "x"}),
        ),
        (
            format!(r#"{{"value": "1.5s", "@type": "{duration}"}}"#),
            json!({"@type": duration, "value": "1.500s"}),
        ),
    ] {
        let echo = echoed(&served, &format!("{{\"any\": {written}}}")).await;
        assert_eq!(echo, json!({ "any": back }));
    }
    for written in [
        r#"{"aString": "x"}"#.to_owned(),
        r#"{"@type": "probe.v1.Kinds"}"#.to_owned(),
        r#"{"@type": 5}"#.to_owned(),
        format!(r#"{{"@type": "{kinds}", "anInt32": "x"}}"#),
        format!(r#"{{"@type": "{duration}", "value": 5}}"#),
    ] {
        refused(&served, format!("{{\"any\": {written}}}"), "any").await;
    }
}

#[tokio::test]
async fn a_few_bytes_of_json_do_not_become_much_memory() {
    let served = serve_kinds().await;
    let list = |count: usize| format!("{{\"children\": [{}]}}", vec!["{}"; count].join(","));
    assert_eq!(post(&served, list(1000)).await.status, 200);
    refused(&served, list(1_000_000), "objects").await;
}

#[tokio::test]
async fn fields_that_are_not_known_are_left_and_null_is_none() {
    let served = serve_kinds().await;
    let json = r#"{"noSuchField": {"a": [1]}, "aString": null, "children": null, "maybe": 0}"#;
    assert_eq!(echoed(&served, json).await, json!({"maybe": 0}));
    let document = r#"{"document": {"a": null, "b": [1, "x", {"c": true}]}}"#;
    let back = echoed(&served, document).await;
    assert_eq!(back["document"]["b"][2]["c"], json!(true));
    assert_eq!(back["document"]["a"], Value::Null);
}

/// A message with this many levels of children, in JSON.
fn nested_json(depth: usize) -> String {
    let open = "{\"child\": ".repeat(depth);
    format!("{open}{{}}{}", "}".repeat(depth))
}

/// The same in binary.
fn nested(depth: usize) -> Vec<u8> {
    let mut message = Vec::new();
    for _ in 0..depth {
        let mut outer = vec![0xf2, 0x01];
        let mut left = message.len();
        while left >= 0x80 {
            outer.push(left as u8 | 0x80);
            left >>= 7;
        }
        outer.push(left as u8);
        outer.extend(&message);
        message = outer;
    }
    message
}

#[test]
fn views_nest_as_deep_on_a_small_stack() {
    let decode = || {
        let codec = BuffaViewCodec::<Kinds>::new();
        let limits = DecodeLimits::default();
        let binary = codec.decode(Format::Proto, nested(90).into(), &limits);
        let binary = binary.expect("a message").bytes().len();
        let json = codec.decode(Format::Json, nested_json(90).into(), &limits);
        assert_eq!(json.expect("a message").bytes().len(), binary);
        for (format, bytes) in [
            (Format::Proto, nested(101)),
            (Format::Json, nested_json(101).into()),
        ] {
            assert!(codec.decode(format, bytes.into(), &limits).is_err());
        }
    };
    let thread = std::thread::Builder::new().stack_size(512 * 1024);
    thread
        .spawn(decode)
        .expect("a thread")
        .join()
        .expect("no overflow");
}

#[tokio::test]
async fn messages_nest_a_hundred_deep_and_no_deeper_in_json() {
    let served = serve_kinds().await;
    assert_eq!(post(&served, nested_json(99)).await.status, 200);
    for depth in [101, 127, 1000, 100_000] {
        refused(&served, nested_json(depth), "").await;
    }
    let unknown = format!("{{\"x\": {}", "[".repeat(100_000));
    refused(&served, unknown, "").await;
}

#[tokio::test]
async fn messages_nest_a_hundred_deep_and_no_deeper_in_binary() {
    let served = serve_kinds().await;
    // Groups of field 98, which is not known, that never end.
    let groups = [0x93, 0x06].repeat(100_000);
    let mut connection = Http1::connect(&served.url).await;
    let fields = [("content-type", "application/proto")];
    let answer = connection.post(ECHO, &fields, nested(99)).await;
    assert_eq!(answer.status, 200);
    for bad in [nested(101), nested(5_000), groups] {
        let answer = connection.post(ECHO, &fields, bad).await;
        assert_eq!(answer.status, 400, "{answer:?}");
        assert_eq!(answer.json()["code"], "invalid_argument");
    }
    // A message that requires another of its own type, and is never complete.
    let path = "/probe.v1.EndlessService/Echo";
    for body in [&[0x0a, 0x00][..], b""] {
        let answer = connection.post(path, &fields, body).await;
        assert!(matches!(answer.status, 200 | 400), "{answer:?}");
    }
}
