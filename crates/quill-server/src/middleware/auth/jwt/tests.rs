//! Tokens that are good, and each way in which they are not.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use quill_core::{Code, RequestParts};
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair,
};
use serde_json::{Value, json};

use super::algorithm::Algorithm;
use super::builder::JwtBuilder;
use super::validator::JwtValidator;
use crate::auth::{Authenticator, Identity, Verdict};

mod rsa;

fn encode(bytes: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

type Sign = Box<dyn Fn(&[u8]) -> Vec<u8>>;

/// Signs in one way, and has the key to check it with.
struct Signer {
    algorithm: &'static str,
    jwk: Value,
    sign: Sign,
}

impl Signer {
    fn ecdsa(algorithm: &'static str, curve: &str, of: &'static EcdsaSigningAlgorithm) -> Self {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(of, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(of, pkcs8.as_ref(), &random).unwrap();
        let (x, y) = pair.public_key().as_ref()[1..].split_at(pair.public_key().as_ref().len() / 2);
        Self {
            algorithm,
            jwk: json!({"kty": "EC", "crv": curve, "x": encode(x), "y": encode(y)}),
            sign: Box::new(move |message| {
                let signature = pair.sign(&SystemRandom::new(), message).unwrap();
                signature.as_ref().to_vec()
            }),
        }
    }

    fn es256() -> Self {
        Self::ecdsa("ES256", "P-256", &ECDSA_P256_SHA256_FIXED_SIGNING)
    }

    fn es384() -> Self {
        Self::ecdsa("ES384", "P-384", &ECDSA_P384_SHA384_FIXED_SIGNING)
    }

    fn ed25519() -> Self {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
        let x = encode(pair.public_key());
        Self {
            algorithm: "EdDSA",
            jwk: json!({"kty": "OKP", "crv": "Ed25519", "x": x}),
            sign: Box::new(move |message| pair.sign(message).as_ref().to_vec()),
        }
    }

    fn hmac(secret: &'static [u8]) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
        Self {
            algorithm: "HS256",
            jwk: json!({"kty": "oct", "k": encode(secret)}),
            sign: Box::new(move |message| hmac::sign(&key, message).as_ref().to_vec()),
        }
    }

    fn named(mut self, id: &str) -> Self {
        self.jwk["kid"] = id.into();
        self
    }

    fn header(&self) -> Value {
        let mut header = json!({"alg": self.algorithm, "typ": "JWT"});
        if let Some(id) = self.jwk.get("kid") {
            header["kid"] = id.clone();
        }
        header
    }

    fn token(&self, claims: &Value) -> String {
        self.token_of(&self.header(), claims)
    }

    fn token_of(&self, header: &Value, claims: &Value) -> String {
        let signed = [encode(header.to_string()), encode(claims.to_string())].join(".");
        let signature = (self.sign)(signed.as_bytes());
        [signed, encode(signature)].join(".")
    }
}

fn now() -> u64 {
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::SystemTime::UNIX_EPOCH)
        .unwrap()
        .as_secs()
}

/// Claims that are all as they should be.
fn good() -> Value {
    json!({
        "iss": "https://issuer.example",
        "aud": "orders",
        "sub": "ann",
        "exp": now() + 60,
        "scope": "orders.read orders.write",
    })
}

fn ours() -> JwtBuilder {
    let builder = JwtValidator::builder();
    builder.issuer("https://issuer.example").audience("orders")
}

fn with_keys(signers: &[&Signer]) -> JwtBuilder {
    let keys: Vec<&Value> = signers.iter().map(|signer| &signer.jwk).collect();
    ours().jwks(json!({ "keys": keys }).to_string())
}

fn check(validator: &JwtValidator, token: &str) -> Result<Identity, String> {
    let mut request = RequestParts::default();
    let value = format!("Bearer {token}");
    request.metadata.append("authorization", &value).unwrap();
    match validator.authenticate(&request) {
        Verdict::Known(identity) => Ok(identity),
        Verdict::Refused(error) => {
            assert_eq!(error.code(), Code::Unauthenticated);
            Err(error.message().to_owned())
        }
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn assert_refused(validator: &JwtValidator, token: &str, why: &str) {
    let refused = check(validator, token).unwrap_err();
    assert!(refused.contains(why), "{refused}, and not: {why}");
}

#[test]
fn tokens_of_each_algorithm_are_taken_with_what_they_say() {
    for signer in [Signer::es256(), Signer::es384(), Signer::ed25519()] {
        let validator = with_keys(&[&signer]).build().unwrap();
        let identity = check(&validator, &signer.token(&good())).unwrap();
        assert_eq!(identity.subject(), "ann", "{}", signer.algorithm);
        assert!(identity.has_scope("orders.read") && identity.has_scope("orders.write"));
        assert_eq!(identity.claims()["aud"], "orders");
    }
    let signer = Signer::hmac(b"0123456789abcdef0123456789abcdef");
    let builder = ours().secret(b"0123456789abcdef0123456789abcdef");
    let validator = builder.algorithms([Algorithm::Hs256]).build().unwrap();
    check(&validator, &signer.token(&good())).unwrap();
}

#[test]
fn tokens_that_others_signed_by_rsa_are_taken() {
    let validator = ours().jwks(rsa::KEYS).build().unwrap();
    for token in [rsa::RS256, rsa::PS256] {
        assert_eq!(check(&validator, token).unwrap().subject(), "ann");
    }
    assert_refused(&validator, rsa::SHORT, "signature");
    let only = ours().jwks(rsa::KEYS).algorithms([Algorithm::Ps256]);
    assert_refused(&only.build().unwrap(), rsa::RS256, "not allowed");
}

#[test]
fn what_was_changed_or_cut_is_not_taken() {
    let signer = Signer::es256();
    let validator = with_keys(&[&signer]).build().unwrap();
    let token = signer.token(&good());
    let parts: Vec<&str> = token.split('.').collect();
    let mut claims = good();
    claims["sub"] = "bob".into();
    let forged = [parts[0], &encode(claims.to_string()), parts[2]].join(".");
    assert_refused(&validator, &forged, "signature");
    let cut = [parts[0], parts[1], &parts[2][..40]].join(".");
    assert_refused(&validator, &cut, "signature");
    for bad in [
        ".",
        "..",
        "a.b.c",
        parts[0],
        &[parts[0], parts[1]].join("."),
        &[parts[0], parts[1], ""].join("."),
        &[&token, "x"].join("."),
        &[&token, "="].concat(),
    ] {
        assert!(check(&validator, bad).is_err(), "{bad}");
    }
    assert!(check(&validator, &"a".repeat(9000)).is_err());
}

#[test]
fn none_and_other_algorithms_are_not_taken() {
    let signer = Signer::es256();
    let validator = with_keys(&[&signer]).build().unwrap();
    for name in ["none", "None", "NONE", "", "es256", "HS256", "RS256", "XX"] {
        let header = json!({ "alg": name });
        let unsigned = [encode(header.to_string()), encode(good().to_string())].join(".") + ".";
        assert!(check(&validator, &unsigned).is_err(), "{name}");
        assert!(
            check(&validator, &signer.token_of(&header, &good())).is_err(),
            "{name}"
        );
    }
    for header in [
        json!({}),
        json!({"alg": 7}),
        json!([]),
        json!({"alg": ["ES256"]}),
    ] {
        let token = signer.token_of(&header, &good());
        assert!(check(&validator, &token).is_err(), "{header}");
    }
}

/// A public key is no secret: as an HMAC key anybody could sign with it.
#[test]
fn a_public_key_is_not_taken_for_a_secret() {
    let validator = ours()
        .jwks(rsa::KEYS)
        .algorithms([Algorithm::Rs256, Algorithm::Hs256])
        .build()
        .unwrap();
    let keys: Value = serde_json::from_str(rsa::KEYS).unwrap();
    let n = keys["keys"][0]["n"].as_str().unwrap();
    for secret in [n.as_bytes().to_vec(), super::decode(n).unwrap()] {
        let signer = Signer::hmac(secret.leak());
        for header in [
            json!({"alg": "HS256", "kid": "long"}),
            json!({"alg": "HS256"}),
        ] {
            let token = signer.token_of(&header, &good());
            assert_refused(&validator, &token, "not known");
        }
    }
}

#[test]
fn a_key_is_for_the_algorithm_and_the_use_that_it_says() {
    let mut signer = Signer::es256();
    signer.jwk["alg"] = "ES256".into();
    signer.jwk["use"] = "sig".into();
    check(
        &with_keys(&[&signer]).build().unwrap(),
        &signer.token(&good()),
    )
    .unwrap();
    for (name, value) in [
        ("alg", json!("ES384")),
        ("alg", json!("none")),
        ("use", json!("enc")),
        ("key_ops", json!(["sign"])),
    ] {
        let mut other = Signer::es256();
        other.jwk[name] = value;
        let other = with_keys(&[&other]).build();
        assert!(other.is_err(), "{name}: no key is left");
    }
}

#[test]
fn keys_are_found_by_their_id() {
    let (old, new) = (Signer::es256().named("old"), Signer::es256().named("new"));
    let validator = with_keys(&[&old, &new]).build().unwrap();
    for signer in [&old, &new] {
        check(&validator, &signer.token(&good())).unwrap();
    }
    let other = json!({"alg": "ES256", "kid": "other"});
    assert_refused(&validator, &new.token_of(&other, &good()), "not known");
    let unnamed = json!({"alg": "ES256"});
    assert_refused(&validator, &new.token_of(&unnamed, &good()), "not known");
    let wrong = json!({"alg": "ES256", "kid": "old"});
    assert_refused(&validator, &new.token_of(&wrong, &good()), "signature");
    let number = json!({"alg": "ES256", "kid": 7});
    assert_refused(&validator, &new.token_of(&number, &good()), "malformed");
    let only = with_keys(&[&new]).build().unwrap();
    check(&only, &new.token_of(&unnamed, &good())).unwrap();
}

#[test]
fn claims_must_be_so() {
    let signer = Signer::es256();
    let validator = with_keys(&[&signer]).build().unwrap();
    let with = |name: &str, value: Value| {
        let mut claims = good();
        claims[name] = value;
        check(&validator, &signer.token(&claims))
    };
    for (name, value) in [
        ("aud", json!(["others", "orders"])),
        ("exp", json!((now() - 10) as f64 + 0.5)),
        ("nbf", json!(now() + 10)),
        ("scope", json!(["a", "b"])),
    ] {
        assert!(with(name, value.clone()).is_ok(), "{name}: {value}");
    }
    for (name, value) in [
        ("iss", json!("https://issuer.example.evil")),
        ("iss", json!(["https://issuer.example"])),
        ("iss", Value::Null),
        ("aud", json!("others")),
        ("aud", json!([])),
        ("aud", json!({"orders": 1})),
        ("exp", json!(now() - 31)),
        ("exp", json!("9999999999")),
        ("exp", Value::Null),
        ("nbf", json!(now() + 60)),
        ("nbf", json!("0")),
        ("sub", json!("")),
        ("sub", json!(7)),
    ] {
        assert!(with(name, value.clone()).is_err(), "{name}: {value}");
    }
    let mut header = signer.header();
    header["crit"] = json!(["b64"]);
    assert_refused(&validator, &signer.token_of(&header, &good()), "extensions");
}

#[test]
fn settings_that_open_doors_are_said_or_told() {
    let signer = Signer::es256();
    let keys = json!({"keys": [signer.jwk]}).to_string();
    let builder = || JwtValidator::builder().jwks(keys.clone());
    for (builder, why) in [
        (builder().audience("a"), "no issuer"),
        (builder().issuer("i"), "no audience"),
        (builder().issuer("i").any_issuer().audience("a"), "both set"),
        (ours(), "no keys"),
        (ours().jwks("{}"), "no keys"),
        (ours().jwks("nonsense"), "no JSON"),
        (ours().jwks("{\"keys\": []}"), "none of"),
        (ours().secret([7; 32]), "not unless they are named"),
        (ours().secret([7; 31]).algorithms([Algorithm::Hs256]), "32"),
        (ours().secret([7; 32]).algorithms([]), "no algorithm"),
        (
            builder().issuer("i").audience("a").leeway(Duration::MAX),
            "leeway",
        ),
        (ours().jwks_url("nonsense"), "nonsense"),
        (ours().jwks_url("ftp://a/b"), "ftp://a/b"),
    ] {
        let error = builder.build().unwrap_err().to_string();
        assert!(error.contains(why), "{error}, and not: {why}");
    }
    let any = builder().any_issuer().any_audience().build().unwrap();
    check(
        &any,
        &signer.token(&json!({"sub": "ann", "exp": now() + 9})),
    )
    .unwrap();
}

impl JwtValidator {
    fn keys_are_fetched(&self) -> bool {
        self.0.keys.is_fetching()
    }
}

fn authenticate(validator: &JwtValidator, token: &str) -> Verdict {
    let mut request = RequestParts::default();
    let value = format!("Bearer {token}");
    request.metadata.append("authorization", &value).unwrap();
    validator.authenticate(&request)
}

/// Polls as often as a call does whose caller resets it at once.
async fn give_up(verdict: Verdict) {
    let Verdict::Asking(mut asking) = verdict else {
        return;
    };
    std::future::poll_fn(|cx| {
        let _ = asking.as_mut().poll(cx);
        std::task::Poll::Ready(())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn callers_that_give_up_neither_stop_a_fetch_nor_begin_more() {
    let [a, b] = ["a", "b"].map(|name| Signer::es256().named(name));
    let path = std::env::temp_dir().join(format!("quill-jwks-reset-{}", std::process::id()));
    let publish = |signer: &Signer| {
        std::fs::write(&path, json!({"keys": [signer.jwk]}).to_string()).unwrap();
    };
    publish(&a);
    let validator = ours().jwks_file(&path).build().unwrap();
    let by = |signer: &Signer| authenticate(&validator, &signer.token(&good()));
    let settled = async || {
        while validator.keys_are_fetched() {
            tokio::task::yield_now().await;
        }
    };

    give_up(by(&a)).await;
    settled().await;
    assert!(
        matches!(by(&a), Verdict::Known(_)),
        "what it began was done"
    );

    tokio::time::advance(Duration::from_secs(30)).await;
    give_up(by(&b)).await;
    settled().await;
    publish(&b);
    assert!(
        matches!(by(&b), Verdict::Refused(_)),
        "it counts as a fetch"
    );
    std::fs::remove_file(&path).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_refresh_that_is_due_within_the_cooldown_waits_for_it() {
    let [a, b] = ["a", "b"].map(|name| Signer::es256().named(name));
    let path = std::env::temp_dir().join(format!("quill-jwks-rest-{}", std::process::id()));
    std::fs::write(&path, json!({"keys": [a.jwk]}).to_string()).unwrap();
    let validator = ours().jwks_file(&path);
    let (refresh, cooldown) = (Duration::from_secs(1), Duration::from_secs(60));
    let validator = validator.refresh(refresh, cooldown).build().unwrap();
    let by = |signer: &Signer| authenticate(&validator, &signer.token(&good()));
    let Verdict::Asking(asking) = by(&a) else {
        panic!("nothing was read yet")
    };
    asking.await.unwrap();
    std::fs::write(&path, json!({"keys": [b.jwk]}).to_string()).unwrap();
    tokio::time::advance(Duration::from_secs(30)).await;
    assert!(matches!(by(&a), Verdict::Known(_)));
    assert!(
        !validator.keys_are_fetched(),
        "they are old, and it is too soon"
    );
    tokio::time::advance(Duration::from_secs(30)).await;
    assert!(matches!(by(&a), Verdict::Known(_)));
    assert!(validator.keys_are_fetched());
    std::fs::remove_file(&path).unwrap();
}

#[tokio::test(start_paused = true)]
async fn keys_of_a_file_are_read_again_as_they_age_and_when_one_is_missing() {
    let [a, b, c] = ["a", "b", "c"].map(|name| Signer::es256().named(name));
    let path = std::env::temp_dir().join(format!("quill-jwks-{}", std::process::id()));
    let publish = |signer: &Signer| {
        std::fs::write(&path, json!({"keys": [signer.jwk]}).to_string()).unwrap();
    };
    let validator = ours().jwks_file(&path).build().unwrap();
    let by = |signer: &Signer| authenticate(&validator, &signer.token(&good()));

    let Verdict::Asking(asking) = by(&a) else {
        panic!("nothing was read yet")
    };
    assert_eq!(asking.await.unwrap_err().code(), Code::Unavailable);
    publish(&a);
    tokio::time::advance(Duration::from_secs(1)).await;
    let Verdict::Asking(asking) = by(&a) else {
        panic!("a second has passed")
    };
    asking.await.unwrap();
    assert!(matches!(by(&a), Verdict::Known(_)));

    publish(&b);
    assert!(matches!(by(&b), Verdict::Refused(_)), "it is too soon");
    tokio::time::advance(Duration::from_secs(30)).await;
    let Verdict::Asking(asking) = by(&b) else {
        panic!("half a minute has passed")
    };
    asking.await.unwrap();

    publish(&c);
    tokio::time::advance(Duration::from_secs(300)).await;
    assert!(
        matches!(by(&b), Verdict::Known(_)),
        "those at hand serve on"
    );
    while matches!(by(&b), Verdict::Known(_)) {
        tokio::task::yield_now().await;
    }
    assert!(matches!(by(&c), Verdict::Known(_)));
    std::fs::remove_file(&path).unwrap();
    tokio::time::advance(Duration::from_secs(300)).await;
    for _ in 0..3 {
        assert!(
            matches!(by(&c), Verdict::Known(_)),
            "a file that is gone changes nothing"
        );
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
