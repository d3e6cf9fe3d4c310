//! What happens, told on standard error to whoever asked for it.

use std::io::{Write, stderr};
use std::time::{Duration, Instant};

use quill::{HttpVersion, Metadata, Method, MethodKind, Protocol};
use quill_explain::harmless;
use quill_wire::prism_profile;

use super::{count, metadata_line, micros};
use crate::target::Target;

/// Lines about a call, if they are wanted. Nobody is missed when standard error
/// is closed.
pub(crate) struct Narration {
    is_wanted: bool,
    begun: Instant,
    messages: u64,
}

impl Narration {
    pub(crate) fn new(is_wanted: bool) -> Self {
        Self {
            is_wanted,
            begun: Instant::now(),
            messages: 0,
        }
    }

    /// Over what, and where to. Each of several servers may speak a version of its own.
    pub(crate) fn way(&self, protocol: Protocol, version: Option<HttpVersion>, target: &Target) {
        let url = &target.base_url;
        let Some(version) = version else {
            return self.say(&format!("* {} to {url}", protocol.name()));
        };
        let http = match version {
            HttpVersion::Http3 => "HTTP/3",
            HttpVersion::Http2 => "HTTP/2",
            _ => "HTTP/1.1",
        };
        let tls = if url.starts_with("https:") {
            " and TLS"
        } else {
            ""
        };
        let profile = match protocol {
            Protocol::Quill => format!(" (Prism profile {})", prism_profile(version)),
            _ => String::new(),
        };
        let protocol = protocol.name();
        self.say(&format!("* {protocol} over {http}{tls}{profile} to {url}"));
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// What is called, and how long it took to learn of it.
    pub(crate) fn method(&self, method: &Method, took: Duration) {
        let kind = match method.kind() {
            MethodKind::Unary => "unary",
            MethodKind::ClientStreaming => "client streaming",
            MethodKind::ServerStreaming => "server streaming",
            MethodKind::BidiStreaming => "bidi streaming",
        };
        let (service, name, took) = (method.service(), method.name(), time(took));
        self.say(&format!("* {service}/{name}, {kind}, schema in {took}"));
    }

    /// Metadata, a line for each.
    pub(crate) fn metadata(&self, kind: &str, metadata: &Metadata) {
        for (name, value) in metadata.iter() {
            if is_secret(name) {
                // What proves who calls has no place on a screen.
                self.say(&format!(
                    "{kind} {name}: ({} bytes, not shown)",
                    value.len()
                ));
            } else {
                self.say(&format!("{kind} {}", metadata_line(name, value)));
            }
        }
    }

    /// A call begins.
    pub(crate) fn begin(&mut self) {
        (self.begun, self.messages) = (Instant::now(), 0);
    }

    /// A message has come.
    pub(crate) fn received(&mut self) {
        self.messages += 1;
        if self.messages == 1 {
            let took = time(self.begun.elapsed());
            self.say(&format!("* first message after {took}"));
        }
    }

    /// The call has ended.
    pub(crate) fn end(&self) {
        let (messages, took) = (count(self.messages), time(self.begun.elapsed()));
        let s = if self.messages == 1 { "" } else { "s" };
        self.say(&format!("* {messages} message{s} in {took}"));
    }

    fn say(&self, line: &str) {
        if self.is_wanted {
            let _ = writeln!(stderr().lock(), "{}", harmless(line));
        }
    }
}

/// Whether a name, in lower case, is that of what proves who calls.
fn is_secret(name: &str) -> bool {
    const WORDS: [&str; 7] = [
        "authorization",
        "cookie",
        "token",
        "secret",
        "password",
        "key",
        "apikey",
    ];
    name.split(['-', '_', '.'])
        .any(|word| WORDS.contains(&word))
}

fn time(time: Duration) -> String {
    micros(time.as_secs_f64() * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_proves_who_calls_is_known_by_its_name() {
        for name in [
            "authorization",
            "proxy-authorization",
            "cookie",
            "set-cookie",
            "x-api-key",
            "apikey",
            "x-amz-security-token",
            "session_token-bin",
            "client.secret",
            "x-password",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["x-tenant", "date", "x-monkey", "tokens-left", "secretary"] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
