//! Who is let in, and what the others are told.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use futures_util::stream;
use quill::auth::{
    Algorithm, ApiKeyValidator, AuthLayer, BasicValidator, CertificateValidator, Identity,
    JwtValidator, TokenValidator,
};
use quill::rate_limit::{ClientIpConfig, RateLimitLayer};
use quill::tls::{ClientTls, ServerTls};
use quill::{Code, Error, Incoming, Protocol, QuillClient, Request};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};
use ring::hmac;
use tower::filter::FilterLayer;

use crate::peer::Http1;
use crate::probe::{PROTOCOLS, ProbeClient, ProbeRequest, Served, say, serve_with};

const ONE: &str = "/probe.v1.ProbeService/One";
const KEY: &str = "4f2c9a61b0d84f2c9a61b0d8";

fn keys() -> ApiKeyValidator {
    ApiKeyValidator::new().key(KEY, Identity::new("ann").with_scopes(["read"]))
}

/// The layer, and within it one that lets nobody in whom it did not say to be ann.
async fn guarded(layer: AuthLayer) -> Served {
    let is_ann = FilterLayer::new(|request: Request<Incoming>| {
        let identity = request.extensions().get::<Identity>();
        match identity.map(Identity::subject) {
            Some("ann") => Ok(request),
            other => Err(tower::BoxError::from(Error::aborted(format!(
                "this is {}",
                other.unwrap_or("nobody")
            )))),
        }
    });
    serve_with(|builder| builder.layer(layer).layer(is_ann)).await
}

fn with<T>(message: T, name: &str, value: &str) -> Request<T> {
    Request::new(message).with_metadata(name, value).unwrap()
}

async fn one(client: &ProbeClient, name: &str, value: &str) -> Result<(), Error> {
    client.one(with(say("x"), name, value)).await.map(drop)
}

#[track_caller]
fn assert_code<T: std::fmt::Debug>(answer: Result<T, Error>, code: Code, why: &str) {
    let error = answer.expect_err(why);
    assert_eq!(error.code(), code, "{why}: {error}");
}

#[tokio::test]
async fn calls_of_every_kind_need_a_key_in_every_protocol() {
    let served = guarded(AuthLayer::new(keys())).await;
    for protocol in PROTOCOLS {
        let client = served.client(protocol);
        for (key, is_known) in [(Some(KEY), true), (Some("another"), false), (None, false)] {
            let why = format!("{protocol:?} with {key:?}");
            let asked = |mut request: Request<ProbeRequest>| {
                if let Some(key) = key {
                    request.metadata_mut().insert("x-api-key", key).unwrap();
                }
                request
            };
            let streamed = || {
                let mut request = Request::new(stream::iter([say("x")]));
                if let Some(key) = key {
                    request.metadata_mut().insert("x-api-key", key).unwrap();
                }
                request
            };
            let few = ProbeRequest {
                count: 1,
                ..say("x")
            };
            let unary = client.one(asked(Request::new(say("x")))).await.map(drop);
            let up = client.up(streamed()).await.map(drop);
            let down = match client.down(asked(Request::new(few))).await {
                Ok(answers) => answers.into_inner().message().await.map(drop),
                Err(error) => Err(error),
            };
            let both = match client.both(streamed()).await {
                Ok(answers) => answers.into_inner().message().await.map(drop),
                Err(error) => Err(error),
            };
            for answer in [unary, up, down, both] {
                if is_known {
                    answer.expect(&why);
                } else {
                    assert_code(answer, Code::Unauthenticated, &why);
                }
            }
        }
    }
}

#[tokio::test]
async fn http_callers_are_told_how_to_bring_credentials() {
    let layer = AuthLayer::new(keys().as_bearer())
        .or(BasicValidator::new("orders"))
        .or(ApiKeyValidator::new().as_bearer());
    let served = guarded(layer).await;
    let mut plain = Http1::connect(&served.url).await;
    for fields in [
        &[
            ("content-type", "application/json"),
            ("connect-protocol-version", "1"),
        ][..],
        &[("content-type", "application/json")][..],
        &[
            ("content-type", "application/json"),
            ("authorization", "Bearer nope"),
        ][..],
    ] {
        let answer = plain.post(ONE, fields, "{}").await;
        assert_eq!(answer.status, 401, "{answer:?}");
        let challenge = answer.header("www-authenticate");
        let expected = "Bearer, Basic realm=\"orders\", charset=\"UTF-8\"";
        assert_eq!(challenge, Some(expected));
    }
}

#[tokio::test]
async fn rules_hold_for_methods_by_their_registered_path() {
    let layer = || {
        AuthLayer::new(keys())
            .scopes("/probe.v1.ProbeService/*", ["write"])
            .scopes("/probe.v1.ProbeService/One", ["read"])
            .public("/probe.v1.ProbeService/Up")
    };
    let served = serve_with(|builder| builder.layer(layer())).await;
    for protocol in PROTOCOLS {
        let client = served.client(protocol);
        one(&client, "x-api-key", KEY).await.unwrap();
        let why = format!("{protocol:?}");
        let unknown = client.one(say("x")).await;
        assert_code(unknown, Code::Unauthenticated, &why);
        let up = client.up(stream::iter([say("x")])).await;
        up.expect("it is public");
        let request = with(say("x"), "x-api-key", KEY);
        let down = match client.down(request).await {
            Ok(answers) => answers.into_inner().message().await.map(drop),
            Err(error) => Err(error),
        };
        assert_code(down, Code::PermissionDenied, &why);
    }
    // No other spelling of a guarded path is let in, nor is it a public one's.
    let mut plain = Http1::connect(&served.url).await;
    let fields = [("content-type", "application/json")];
    for path in [
        "/probe.v1.ProbeService/%4Fne",
        "/probe.v1.ProbeService/One/",
        "/probe.v1.ProbeService//One",
        "//probe.v1.ProbeService/One",
        "/probe.v1.ProbeService/Up/../One",
        "/probe.v1.ProbeService/one",
        "/probe.v1.ProbeService/One?/probe.v1.ProbeService/Up",
        "/probe.v1.ProbeService/One;a=b",
        "/probe.v1.ProbeService/Up%2f..%2fOne",
        "/PROBE.V1.PROBESERVICE/ONE",
    ] {
        let answer = plain.post(path, &fields, "{}").await;
        assert!(
            matches!(answer.status, 400 | 401 | 404),
            "{path}: {answer:?}"
        );
    }
}

#[tokio::test]
async fn optional_lets_in_who_brings_nothing_and_nobody_who_brings_a_wrong_thing() {
    let layer = AuthLayer::new(keys()).optional();
    let served = guarded(layer).await;
    for protocol in PROTOCOLS {
        let client = served.client(protocol);
        one(&client, "x-api-key", KEY).await.unwrap();
        let nobody = client.one(say("x")).await.unwrap_err();
        assert_eq!(nobody.message(), "this is nobody", "{protocol:?}");
        let wrong = one(&client, "x-api-key", "wrong").await;
        assert_code(wrong, Code::Unauthenticated, "a wrong key");
    }
}

#[tokio::test]
async fn each_kind_of_credentials_is_taken() {
    let tokens = TokenValidator::new(|token: String| async move {
        match token.as_str() {
            "opaque" => Ok(Some(Identity::new("ann"))),
            "down" => Err(Error::unavailable("ask later")),
            _ => Ok(None),
        }
    });
    let layer = AuthLayer::new(keys())
        .or(BasicValidator::new("orders").user("ann", "s:cret", Identity::new("ann")))
        .or(tokens);
    let served = guarded(layer).await;
    for protocol in PROTOCOLS {
        let client = served.client(protocol);
        let basic = |pair: &str| format!("Basic {}", BASE64_STANDARD.encode(pair));
        one(&client, "x-api-key", KEY).await.unwrap();
        one(&client, "authorization", &basic("ann:s:cret"))
            .await
            .unwrap();
        one(&client, "authorization", "Bearer opaque")
            .await
            .unwrap();
        for (value, code) in [
            (basic("ann:secret"), Code::Unauthenticated),
            (basic("ann"), Code::Unauthenticated),
            ("Basic !".to_owned(), Code::Unauthenticated),
            ("Bearer nope".to_owned(), Code::Unauthenticated),
            ("Bearer down".to_owned(), Code::Unavailable),
            ("Digest x".to_owned(), Code::Unauthenticated),
        ] {
            assert_code(one(&client, "authorization", &value).await, code, &value);
        }
        let twice = with(say("x"), "x-api-key", KEY);
        let twice = twice.with_metadata("x-api-key", "other").unwrap();
        assert_code(client.one(twice).await, Code::Unauthenticated, "two keys");
    }
}

/// Keys of an issuer, which change while a server runs.
struct Issuer {
    url: String,
    document: Arc<Mutex<String>>,
    asked: Arc<Mutex<u32>>,
}

impl Issuer {
    async fn start() -> Self {
        let document = Arc::new(Mutex::new(String::new()));
        let asked = Arc::new(Mutex::new(0));
        let (answer, count) = (Arc::clone(&document), Arc::clone(&asked));
        let get = axum::routing::get(move || async move {
            *count.lock().unwrap() += 1;
            answer.lock().unwrap().clone()
        });
        let router = axum::Router::new().route("/keys.json", get);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/keys.json", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self {
            url,
            document,
            asked,
        }
    }

    fn publish(&self, keys: &[&str]) {
        let keys = keys.iter().map(|id| {
            let k = BASE64_URL_SAFE_NO_PAD.encode(secret(id));
            serde_json::json!({"kty": "oct", "kid": id, "k": k})
        });
        let keys: Vec<_> = keys.collect();
        *self.document.lock().unwrap() = serde_json::json!({ "keys": keys }).to_string();
    }

    fn validator(&self, cooldown: Duration) -> JwtValidator {
        let builder = JwtValidator::builder().issuer("issuer").audience("probe");
        let builder = builder.jwks_url(&*self.url).algorithms([Algorithm::Hs256]);
        let every = Duration::from_secs(3600);
        builder.refresh(every, cooldown).build().unwrap()
    }
}

fn secret(id: &str) -> String {
    format!("{id:_<32}")
}

fn token(id: &str, scope: &str) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let header = serde_json::json!({"alg": "HS256", "kid": id}).to_string();
    let claims = serde_json::json!({
        "iss": "issuer", "aud": "probe", "sub": "ann", "scope": scope,
        "exp": now.unwrap().as_secs() + 60,
    });
    let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
    let signed = [
        encode(header.as_bytes()),
        encode(claims.to_string().as_bytes()),
    ]
    .join(".");
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret(id).as_bytes());
    let signature = hmac::sign(&key, signed.as_bytes());
    format!("Bearer {signed}.{}", encode(signature.as_ref()))
}

#[tokio::test]
async fn tokens_are_checked_with_keys_that_are_fetched_and_rotate() {
    let issuer = Issuer::start().await;
    let layer = AuthLayer::new(issuer.validator(Duration::ZERO)).scopes(ONE, ["read"]);
    let served = guarded(layer).await;
    let client = served.client(Protocol::Grpc);
    let answer = one(&client, "authorization", &token("a", "read")).await;
    assert_code(answer, Code::Unavailable, "there are no keys yet");
    issuer.publish(&["a"]);
    for protocol in PROTOCOLS {
        let client = served.client(protocol);
        one(&client, "authorization", &token("a", "read other"))
            .await
            .unwrap();
        let denied = one(&client, "authorization", &token("a", "other")).await;
        assert_code(denied, Code::PermissionDenied, "it lacks a scope");
    }
    let unknown = one(&client, "authorization", &token("b", "read")).await;
    assert_code(unknown, Code::Unauthenticated, "of a key that is not there");
    issuer.publish(&["b"]);
    one(&client, "authorization", &token("b", "read"))
        .await
        .unwrap();
    let old = one(&client, "authorization", &token("a", "read")).await;
    assert_code(old, Code::Unauthenticated, "of a key that is gone");
}

#[tokio::test]
async fn tokens_of_unknown_keys_do_not_have_keys_fetched_again_and_again() {
    let issuer = Issuer::start().await;
    issuer.publish(&["a"]);
    let validator = issuer.validator(Duration::from_secs(3600));
    let served = guarded(AuthLayer::new(validator)).await;
    let client = served.client(Protocol::Quill);
    let calls = (0..20).map(|_| {
        let client = client.clone();
        async move { one(&client, "authorization", &token("a", "")).await }
    });
    for answer in futures_util::future::join_all(calls).await {
        answer.unwrap();
    }
    for id in 0..20 {
        let answer = one(&client, "authorization", &token(&format!("{id}"), "")).await;
        assert_code(answer, Code::Unauthenticated, "an unknown key");
    }
    assert_eq!(*issuer.asked.lock().unwrap(), 1);
}

#[tokio::test]
async fn limits_know_who_was_let_in() {
    let keys = keys().key("of bob", Identity::new("bob"));
    let limit = RateLimitLayer::new(0.01, 1.0).per_identity(ClientIpConfig::default());
    let layer = AuthLayer::new(keys);
    let served = serve_with(|builder| builder.layer(layer).layer(limit)).await;
    for protocol in [Protocol::Grpc] {
        let client = served.client(protocol);
        for key in [KEY, "of bob"] {
            one(&client, "x-api-key", key).await.unwrap();
            let again = one(&client, "x-api-key", key).await;
            assert_code(again, Code::ResourceExhausted, key);
        }
    }
}

#[tokio::test]
async fn callers_are_known_by_their_certificates() {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let authority = CertifiedIssuer::self_signed(params, key).unwrap();
    let issue = |name: &str, uri: Option<&str>| {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        let uri = uri.map(|uri| SanType::URI(uri.try_into().unwrap()));
        params.subject_alt_names.extend(uri);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &authority).unwrap();
        (certificate.pem(), key.serialize_pem())
    };
    let (chain, key) = issue("localhost", None);
    let tls = ServerTls::builder()
        .identity_pem(chain, key)
        .client_ca_pem(authority.pem())
        .build()
        .unwrap();
    let certificates = CertificateValidator::any()
        .named("spiffe://example/ann", Identity::new("ann"))
        .only_named();
    let guard = AuthLayer::new(certificates);
    let served = serve_with(|builder| builder.tls(tls).layer(guard)).await;
    let port = served.server.local_addr().unwrap().port();
    for protocol in PROTOCOLS {
        for (uri, is_known) in [
            ("spiffe://example/ann", true),
            ("spiffe://example/bob", false),
        ] {
            let (chain, key) = issue("client", Some(uri));
            let tls = ClientTls::builder()
                .without_public_authorities()
                .ca_pem(authority.pem())
                .identity_pem(chain, key)
                .build()
                .unwrap();
            let client = QuillClient::builder()
                .base_url(format!("https://localhost:{port}"))
                .protocol(protocol)
                .tls(tls)
                .build()
                .unwrap();
            let answer = ProbeClient::new(client).one(say("x")).await;
            if is_known {
                answer.expect(uri);
            } else {
                assert_code(answer, Code::Unauthenticated, uri);
            }
        }
    }
}
