//! One key to check signatures with (RFC 7517, RFC 7518, RFC 8037).

use ring::hmac;
use ring::signature::{
    self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use serde_json::{Map, Value};

use super::algorithm::Algorithm;
use super::decode;

/// A key, of one kind; it checks the algorithms of its kind and no others.
pub(super) struct Key {
    pub(super) id: Option<String>,
    /// The only algorithm it is for, where it says so.
    algorithm: Option<Algorithm>,
    kind: Kind,
}

enum Kind {
    Rsa(RsaPublicKeyComponents<Vec<u8>>),
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
    Secret(Vec<u8>),
}

impl Key {
    /// The key of a JWK; `None` for one that is of another kind, not for checking
    /// signatures, or malformed.
    pub(super) fn of_jwk(jwk: &Map<String, Value>) -> Option<Self> {
        let text = |name: &str| jwk.get(name).and_then(Value::as_str);
        let bytes = |name: &str| decode(text(name)?);
        if text("use").is_some_and(|usage| usage != "sig") {
            return None;
        }
        if let Some(operations) = jwk.get("key_ops").and_then(Value::as_array)
            && !operations.iter().any(|operation| operation == "verify")
        {
            return None;
        }
        let kind = match (text("kty")?, text("crv")) {
            ("RSA", _) => Kind::Rsa(RsaPublicKeyComponents {
                n: without_zeros(bytes("n")?),
                e: without_zeros(bytes("e")?),
            }),
            ("EC", Some("P-256")) => Kind::P256(point(&bytes("x")?, &bytes("y")?, 32)?),
            ("EC", Some("P-384")) => Kind::P384(point(&bytes("x")?, &bytes("y")?, 48)?),
            ("OKP", Some("Ed25519")) => Kind::Ed25519(bytes("x").filter(|x| x.len() == 32)?),
            ("oct", _) => Kind::Secret(bytes("k")?),
            _ => return None,
        };
        let algorithm = match text("alg") {
            Some(name) => Some(Algorithm::from_name(name)?),
            None => None,
        };
        Some(Self {
            id: text("kid").map(str::to_owned),
            algorithm,
            kind,
        })
    }

    pub(super) fn of_secret(secret: &[u8]) -> Self {
        Self {
            id: None,
            algorithm: None,
            kind: Kind::Secret(secret.to_owned()),
        }
    }

    /// Whether a token that is signed in this way can be checked with it.
    pub(super) fn is_for(&self, algorithm: Algorithm) -> bool {
        use Algorithm::{
            EdDsa, Es256, Es384, Hs256, Hs384, Hs512, Ps256, Ps384, Ps512, Rs256, Rs384, Rs512,
        };
        let fits = match &self.kind {
            Kind::Rsa(_) => matches!(algorithm, Rs256 | Rs384 | Rs512 | Ps256 | Ps384 | Ps512),
            Kind::P256(_) => algorithm == Es256,
            Kind::P384(_) => algorithm == Es384,
            Kind::Ed25519(_) => algorithm == EdDsa,
            // As long as the hash at least (RFC 7518, section 3.2).
            Kind::Secret(secret) => match algorithm {
                Hs256 => secret.len() >= 32,
                Hs384 => secret.len() >= 48,
                Hs512 => secret.len() >= 64,
                _ => false,
            },
        };
        fits && self.algorithm.is_none_or(|only| only == algorithm)
    }

    /// Whether `signature` is this key's on `message`.
    pub(super) fn verifies(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        if !self.is_for(algorithm) {
            return false;
        }
        let public = |of: &'static dyn VerificationAlgorithm, key: &[u8]| {
            UnparsedPublicKey::new(of, key).verify(message, signature)
        };
        let verified = match &self.kind {
            Kind::Rsa(key) => match rsa(algorithm) {
                // Keys under 2048 bits are refused there.
                Some(parameters) => key.verify(parameters, message, signature),
                None => return false,
            },
            Kind::P256(point) => public(&signature::ECDSA_P256_SHA256_FIXED, point),
            Kind::P384(point) => public(&signature::ECDSA_P384_SHA384_FIXED, point),
            Kind::Ed25519(key) => public(&signature::ED25519, key),
            Kind::Secret(secret) => match hash(algorithm) {
                Some(hash) => hmac::verify(&hmac::Key::new(hash, secret), message, signature),
                None => return false,
            },
        };
        verified.is_ok()
    }
}

fn rsa(algorithm: Algorithm) -> Option<&'static RsaParameters> {
    match algorithm {
        Algorithm::Rs256 => Some(&signature::RSA_PKCS1_2048_8192_SHA256),
        Algorithm::Rs384 => Some(&signature::RSA_PKCS1_2048_8192_SHA384),
        Algorithm::Rs512 => Some(&signature::RSA_PKCS1_2048_8192_SHA512),
        Algorithm::Ps256 => Some(&signature::RSA_PSS_2048_8192_SHA256),
        Algorithm::Ps384 => Some(&signature::RSA_PSS_2048_8192_SHA384),
        Algorithm::Ps512 => Some(&signature::RSA_PSS_2048_8192_SHA512),
        _ => None,
    }
}

fn hash(algorithm: Algorithm) -> Option<hmac::Algorithm> {
    match algorithm {
        Algorithm::Hs256 => Some(hmac::HMAC_SHA256),
        Algorithm::Hs384 => Some(hmac::HMAC_SHA384),
        Algorithm::Hs512 => Some(hmac::HMAC_SHA512),
        _ => None,
    }
}

/// A point as it is without compression (SEC 1, section 2.3.3).
fn point(x: &[u8], y: &[u8], len: usize) -> Option<Vec<u8>> {
    (x.len() == len && y.len() == len).then(|| [&[4], x, y].concat())
}

/// A number without the zeros that some put in front, which RFC 7518 forbids.
fn without_zeros(number: Vec<u8>) -> Vec<u8> {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number.into_iter().skip(zeros).collect()
}
