use super::*;
use quill_core::HttpMethod;

fn refused(refusal: Refusal) -> Sent {
    let mut out = Out::new();
    Wire::ConnectUnary.refuse(refusal, &mut out);
    let sent = Sent::of(out);
    assert!(sent.ended);
    sent
}

#[test]
fn an_unknown_path_is_404_with_an_error_document() {
    let sent = refused(Refusal::UnknownPath);
    assert_eq!(sent.status(), 404);
    assert_eq!(sent.headers(), [("content-type", "application/json")]);
    assert!(sent.text().starts_with(r#"{"code":"unimplemented","#));
}

#[test]
fn a_path_that_is_not_canonical_is_400_and_a_low_http_version_505() {
    let sent = refused(Refusal::PathNotCanonical);
    assert_eq!(sent.status(), 400);
    assert!(sent.text().starts_with(r#"{"code":"invalid_argument","#));
    let sent = refused(Refusal::HttpVersion);
    assert_eq!(sent.status(), 505);
    assert!(sent.text().starts_with(r#"{"code":"unimplemented","#));
}

#[test]
fn a_wrong_http_method_and_a_wrong_type_have_their_header_and_no_body() {
    let sent = refused(Refusal::HttpMethod("POST"));
    assert_eq!((sent.status(), sent.text()), (405, ""));
    assert_eq!(sent.headers(), [("allow", "POST")]);
    let sent = refused(Refusal::MediaType);
    assert_eq!((sent.status(), sent.text()), (415, ""));
    assert!(
        sent.header("accept-post")
            .unwrap()
            .contains("application/connect+proto")
    );
}

#[test]
fn other_http_methods_are_refused_with_those_that_work() {
    for (method, allow) in [
        (method(MethodKind::Unary), "POST"),
        (readable(), "GET, POST"),
    ] {
        let mut head = post("application/proto", &[]);
        head.method = HttpMethod::Other("DELETE".into());
        let refused = open(&head, method, Arc::default()).unwrap_err();
        assert_eq!(refused, Refusal::HttpMethod(allow));
    }
    let mut head = post("application/connect+proto", &[]);
    head.method = HttpMethod::Get;
    let refused = open(&head, method(MethodKind::BidiStreaming), Arc::default()).unwrap_err();
    assert_eq!(refused, Refusal::HttpMethod("POST"));
}

#[test]
fn the_content_type_fits_the_kind_of_method() {
    for (content_type, kind) in [
        ("application/connect+proto", MethodKind::Unary),
        ("application/connect+foo", MethodKind::BidiStreaming),
    ] {
        let head = post(content_type, &[]);
        let refused = open(&head, method(kind), Arc::default()).unwrap_err();
        assert_eq!(refused, Refusal::MediaType);
    }
}
