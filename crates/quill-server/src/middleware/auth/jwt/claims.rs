//! What a token says, and what of it must be so (RFC 7519, section 4.1).

use std::time::Duration;

use serde_json::{Map, Value};

use crate::middleware::auth::identity::Identity;

/// What tokens must say.
#[derive(Clone, Debug)]
pub(super) struct Expected {
    /// One of these; `None` for any.
    pub(super) issuers: Option<Vec<String>>,
    /// One of these; `None` for any.
    pub(super) audiences: Option<Vec<String>>,
    /// How far clocks may be apart.
    pub(super) leeway: Duration,
}

impl Expected {
    /// Who a token is of, at so many seconds since 1970.
    pub(super) fn check(
        &self,
        claims: Map<String, Value>,
        now: f64,
    ) -> Result<Identity, &'static str> {
        let leeway = self.leeway.as_secs_f64();
        let Some(expires) = claims.get("exp").and_then(Value::as_f64) else {
            return Err("this token does not say until when it is valid");
        };
        if now >= expires + leeway {
            return Err("this token has expired");
        }
        if let Some(not_before) = claims.get("nbf") {
            match not_before.as_f64() {
                None => return Err("this token is malformed"),
                Some(not_before) if now + leeway < not_before => {
                    return Err("this token is not valid yet");
                }
                Some(_) => {}
            }
        }
        if let Some(issuers) = &self.issuers {
            let issuer = claims.get("iss").and_then(Value::as_str);
            if !issuer.is_some_and(|issuer| issuers.iter().any(|other| other == issuer)) {
                return Err("this token is from another issuer");
            }
        }
        if let Some(audiences) = &self.audiences {
            let is_ours = |audience: &Value| {
                let audience = audience.as_str();
                audience.is_some_and(|audience| audiences.iter().any(|other| other == audience))
            };
            let is_for_us = match claims.get("aud") {
                Some(Value::Array(all)) => all.iter().any(is_ours),
                Some(one) => is_ours(one),
                None => false,
            };
            if !is_for_us {
                return Err("this token is for somebody else");
            }
        }
        identity(claims)
    }
}

fn identity(claims: Map<String, Value>) -> Result<Identity, &'static str> {
    let subject = claims.get("sub").and_then(Value::as_str);
    let Some(subject) = subject.filter(|subject| !subject.is_empty()) else {
        return Err("this token does not say whose it is");
    };
    let identity = Identity::new(subject).with_scopes(scopes(&claims));
    Ok(identity.with_claims(claims))
}

/// `scope` with blanks between (RFC 8693, section 4.2), or a list in `scope` or
/// `scp`, as some issuers have it.
fn scopes(claims: &Map<String, Value>) -> Vec<String> {
    match claims.get("scope").or_else(|| claims.get("scp")) {
        Some(Value::String(text)) => text.split_ascii_whitespace().map(str::to_owned).collect(),
        Some(Value::Array(list)) => {
            let list = list.iter().filter_map(Value::as_str);
            list.map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}
