//! Which pages of which origins may call the server from a browser.

use std::sync::Arc;
use std::time::Duration;

use quill_core::{HttpMethod, RequestHead, ResponseHead};
use quill_wire::browser;

use crate::error::ServeError;

const ALLOW_CREDENTIALS: &str = "access-control-allow-credentials";
const ALLOW_HEADERS: &str = "access-control-allow-headers";
const ALLOW_METHODS: &str = "access-control-allow-methods";
const ALLOW_ORIGIN: &str = "access-control-allow-origin";
const EXPOSE_HEADERS: &str = "access-control-expose-headers";
const MAX_AGE: &str = "access-control-max-age";
const REQUEST_METHOD: &str = "access-control-request-method";

/// How long a browser may keep a preflight's answer: the most that all of them do.
const MAX_AGE_DEFAULT: Duration = Duration::from_secs(2 * 60 * 60);

/// Lets pages of other origins call the server from a browser: CORS, as the
/// [Fetch standard](https://fetch.spec.whatwg.org/#http-cors-protocol) has it.
///
/// It knows the fields of the protocols that a browser can speak, and lets
/// `authorization` through; the application's own metadata is named by
/// [`request_metadata`](Self::request_metadata) and
/// [`response_metadata`](Self::response_metadata).
///
/// It stands before everything else: a preflight is answered before layers and
/// routes, so it needs no credentials, and every answer carries the fields,
/// errors too. A request from an origin that is not allowed is answered
/// without them, and the browser keeps the answer from the page; its preflight
/// is refused with 403.
///
/// ```
/// # use quill_server::{Cors, Server};
/// let server = Server::builder().cors(Cors::origins(["https://app.example"]));
/// # drop(server);
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Cors {
    origins: Origins,
    request_fields: Vec<String>,
    response_fields: Vec<String>,
    credentials: bool,
    max_age: Duration,
    fault: Option<String>,
}

#[derive(Clone, Debug)]
enum Origins {
    Any,
    Listed(Vec<String>),
}

impl Cors {
    /// Allows these origins and no other: `https://app.example`, with a port
    /// where it is not the scheme's own. No patterns, no `null`: what no browser
    /// would send as its page's origin is refused when the server is bound.
    pub fn origins<O: AsRef<str>>(origins: impl IntoIterator<Item = O>) -> Self {
        let mut fault = None;
        let mut listed = Vec::new();
        for text in origins {
            match serialized(text.as_ref()) {
                Ok(origin) => listed.push(origin),
                Err(wrong) => fault = Some(wrong),
            }
        }
        Self {
            fault,
            ..Self::new(Origins::Listed(listed))
        }
    }

    /// Allows the pages of every origin. Any site that a user visits may then
    /// call the server from the user's network and read what it answers: for
    /// public services only. Cookies never come along:
    /// [`allow_credentials`](Self::allow_credentials) needs a list of origins.
    pub fn any_origin() -> Self {
        Self::new(Origins::Any)
    }

    fn new(origins: Origins) -> Self {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let mut request_fields: Vec<String> = owned(browser::REQUEST_FIELDS);
        request_fields.push("authorization".to_owned());
        Self {
            origins,
            request_fields,
            response_fields: owned(browser::RESPONSE_FIELDS),
            credentials: false,
            max_age: MAX_AGE_DEFAULT,
            fault: None,
        }
    }

    /// Lets pages send this metadata with their requests.
    pub fn request_metadata<N: AsRef<str>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        for name in names {
            if let Some(name) = self.field(name.as_ref()) {
                self.request_fields.push(name);
            }
        }
        self
    }

    /// Lets pages see this metadata of answers, before and after the messages.
    pub fn response_metadata<N: AsRef<str>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        for name in names {
            if let Some(name) = self.field(name.as_ref()) {
                self.response_fields.extend(browser::response_names(&name));
            }
        }
        self
    }

    /// Lets the allowed origins' pages send cookies and client certificates.
    pub fn allow_credentials(mut self) -> Self {
        self.credentials = true;
        self
    }

    /// How long a browser may keep a preflight's answer; 2 h unless set, to
    /// the second. Browsers have a limit of their own.
    pub fn max_age(mut self, age: Duration) -> Self {
        self.max_age = age;
        self
    }

    fn field(&mut self, name: &str) -> Option<String> {
        // `*` is a token, but would mean every field.
        let is_token = name.parse::<http::HeaderName>().is_ok() && name != "*";
        if !is_token {
            self.fault = Some(format!(
                "CORS: {name:?} is no name of metadata: name each field by itself"
            ));
        }
        is_token.then(|| name.to_ascii_lowercase())
    }

    /// The settings as they are used.
    pub(crate) fn build(&self) -> Result<CorsFields, ServeError> {
        if let Some(fault) = &self.fault {
            return Err(ServeError::setting(fault.clone()));
        }
        if self.credentials && matches!(self.origins, Origins::Any) {
            let wrong = "CORS: credentials need a list of origins: any site could use them";
            return Err(ServeError::setting(wrong.to_owned()));
        }
        Ok(CorsFields(Arc::new(Fields {
            origins: self.origins.clone(),
            methods: browser::METHODS.join(", "),
            request_fields: self.request_fields.join(", "),
            response_fields: self.response_fields.join(", "),
            credentials: self.credentials,
            max_age: self.max_age.as_secs().to_string(),
        })))
    }
}

/// The fields of [`Cors`], as they go on the wire.
#[derive(Clone, Debug)]
pub(crate) struct CorsFields(Arc<Fields>);

#[derive(Debug)]
struct Fields {
    origins: Origins,
    methods: String,
    request_fields: String,
    response_fields: String,
    credentials: bool,
    max_age: String,
}

/// What an answer's `access-control-allow-origin` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Allowed {
    No,
    Any,
    Origin(Vec<u8>),
}

impl CorsFields {
    /// Whom the answer to this request is for.
    pub(crate) fn allowed(&self, request: &RequestHead) -> Allowed {
        let mut named = request.headers.all("origin");
        match (&self.0.origins, named.next(), named.next()) {
            (Origins::Any, ..) => Allowed::Any,
            (Origins::Listed(origins), Some(origin), None)
                if origins.iter().any(|listed| listed.as_bytes() == origin) =>
            {
                Allowed::Origin(origin.to_vec())
            }
            _ => Allowed::No,
        }
    }

    /// The answer to a preflight; `None` for any other request.
    pub(crate) fn preflight(&self, request: &RequestHead) -> Option<ResponseHead> {
        let is_preflight = request.method == HttpMethod::Options
            && request.headers.first("origin").is_some()
            && request.headers.first(REQUEST_METHOD).is_some();
        if !is_preflight {
            return None;
        }
        let allowed = self.allowed(request);
        let is_allowed = allowed != Allowed::No;
        let mut head = ResponseHead::new(if is_allowed { 204 } else { 403 });
        if is_allowed {
            head.headers.set(ALLOW_METHODS, &self.0.methods);
            head.headers.set(ALLOW_HEADERS, &self.0.request_fields);
            head.headers.set(MAX_AGE, &self.0.max_age);
        }
        self.allow(allowed, &mut head);
        Some(head)
    }

    /// Marks the answer to a call.
    pub(crate) fn mark(&self, allowed: Allowed, head: &mut ResponseHead) {
        if allowed != Allowed::No {
            head.headers.set(EXPOSE_HEADERS, &self.0.response_fields);
        }
        self.allow(allowed, head);
    }

    fn allow(&self, allowed: Allowed, head: &mut ResponseHead) {
        // A cache must not give one origin's answer to another (Fetch, "CORS
        // protocol and HTTP caches"); so it is said without an origin as well.
        if matches!(self.0.origins, Origins::Listed(_)) {
            head.headers.append("vary", "origin");
        }
        match allowed {
            Allowed::No => return,
            Allowed::Any => head.headers.set(ALLOW_ORIGIN, "*"),
            Allowed::Origin(origin) => head.headers.set(ALLOW_ORIGIN, origin),
        }
        if self.0.credentials {
            head.headers.set(ALLOW_CREDENTIALS, "true");
        }
    }
}

/// An origin as browsers write it (RFC 6454, section 6.2).
fn serialized(text: &str) -> Result<String, String> {
    match check_origin(text) {
        Ok(()) => Ok(text.to_ascii_lowercase()),
        Err(why) => Err(format!(
            "CORS: {text:?} is no origin: {why}; write it as https://app.example or \
             http://localhost:3000"
        )),
    }
}

fn check_origin(text: &str) -> Result<(), &'static str> {
    let (scheme, authority) = text.split_once("://").ok_or("it has no scheme")?;
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    if !scheme.starts_with(|c: char| c.is_ascii_alphabetic()) || !scheme.chars().all(is_scheme) {
        return Err("its scheme is none");
    }
    // The colons of an IPv6 address stand within its brackets.
    let port_at = authority.find(']').map_or(0, |bracket| bracket + 1);
    let (host, port) = match authority[port_at..].find(':') {
        Some(colon) => {
            let (host, port) = authority.split_at(port_at + colon);
            (host, Some(&port[1..]))
        }
        None => (authority, None),
    };
    check_host(host)?;
    let Some(port) = port else { return Ok(()) };
    let is_decimal = port.bytes().all(|byte| byte.is_ascii_digit()) && !port.starts_with('0');
    let number = port.parse::<u16>().ok().filter(|_| is_decimal);
    let number = number.ok_or("its port is no number from 1 to 65535, without zeros before it")?;
    let own = match scheme.to_ascii_lowercase().as_str() {
        "https" => Some(443),
        "http" => Some(80),
        _ => None,
    };
    if own == Some(number) {
        return Err("browsers leave the scheme's own port out");
    }
    Ok(())
}

/// A host as browsers write it: a name, or an IP address in its shortest form.
fn check_host(host: &str) -> Result<(), &'static str> {
    if let Some(rest) = host.strip_prefix('[') {
        let inner = rest.strip_suffix(']').and_then(|ip| ip.parse().ok());
        let inner: std::net::Ipv6Addr = inner.ok_or("its IPv6 address is none")?;
        if host.eq_ignore_ascii_case(&shortest(inner)) {
            return Ok(());
        }
        return Err("browsers write an IPv6 address in hexadecimal and as short as it can be");
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    // A name may end in a dot, which browsers keep.
    let mut labels = host.strip_suffix('.').unwrap_or(host).split('.');
    if !labels.all(|label| !label.is_empty() && label.chars().all(is_part)) {
        return Err("only a host and a port may follow the scheme, without patterns or path");
    }
    // Browsers take a name whose last label is a number for an IPv4 address.
    let last = host.rsplit('.').find(|label| !label.is_empty());
    if last.is_some_and(is_number) && host.parse::<std::net::Ipv4Addr>().is_err() {
        return Err("browsers write an IPv4 address as four numbers");
    }
    Ok(())
}

/// Whether the URL standard has browsers read this label as a number: of decimal
/// digits, or of hexadecimal ones, be they none, behind `0x`.
fn is_number(label: &str) -> bool {
    let hexadecimal = label.strip_prefix("0x").or(label.strip_prefix("0X"));
    match hexadecimal {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => label.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

/// An IPv6 address as the URL standard has browsers write it: without the dotted
/// end that Rust gives an address that maps one of IPv4.
fn shortest(ip: std::net::Ipv6Addr) -> String {
    match ip.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] => format!("[::ffff:{high:x}:{low:x}]"),
        _ => format!("[{ip}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_as_browsers_write_them() {
        for (text, origin) in [
            ("https://app.example", "https://app.example"),
            ("HTTPS://App.Example:8443", "https://app.example:8443"),
            ("http://[2001:db8::1]:3000", "http://[2001:db8::1]:3000"),
            ("http://[::1]", "http://[::1]"),
            ("http://[::ffff:7f00:1]", "http://[::ffff:7f00:1]"),
            ("http://127.0.0.1:3000", "http://127.0.0.1:3000"),
            ("https://app.example.", "https://app.example."),
            ("http://my_host", "http://my_host"),
            ("http://0xyz", "http://0xyz"),
            ("http://0x7f.example", "http://0x7f.example"),
            ("https://app.example:80", "https://app.example:80"),
            ("http://app.example:8080", "http://app.example:8080"),
            ("capacitor://localhost", "capacitor://localhost"),
            ("chrome-extension://abcdef", "chrome-extension://abcdef"),
        ] {
            assert_eq!(serialized(text).as_deref(), Ok(origin));
        }
        for text in [
            "",
            "*",
            "null",
            "app.example",
            "://app.example",
            "https://",
            "https://*.example",
            "https://app.example/",
            "https://app.example/page",
            "https://user@app.example",
            "https://app.example:443",
            "http://app.example:80",
            "https://äpp.example",
            "https://app.example:",
            "https://:8443",
            "https://a..b",
            "https://.example",
            "https://a..",
            "https://.",
            "https://app.example:0",
            "https://app.example:0443",
            "https://app.example:65536",
            "https://app.example:+1",
            "https://app.example:https",
            "https://app.example:1:2",
            "HTTPS://app.example:443",
            "https://app.example?",
            "https://app.example#",
            "1https://app.example",
            "https://[::1",
            "https://::1",
            "https://[]",
            "https://[::1]a",
            "https://[::1]]:1",
            "https://[0:0::1]",
            "https://[::ffff:127.0.0.1]",
            "https://[::1]:443",
            "https://[app.example]",
            "https://127.1",
            "https://0x7f",
            "https://0X7F.1",
            "https://127.0.0.0x1",
            "https://app.0x",
            "https://127.0.0.1.",
            "https://127.0.0.256",
            "https://app.example, https://b.example",
        ] {
            let wrong = Cors::origins([text]).build().unwrap_err().to_string();
            assert!(wrong.contains(&format!("{text:?} is no origin")), "{wrong}");
            assert!(wrong.contains("write it as https://app.example"), "{wrong}");
        }
    }

    #[test]
    fn credentials_are_for_listed_origins() {
        assert!(Cors::any_origin().allow_credentials().build().is_err());
        let listed = Cors::origins(["https://app.example"]);
        assert!(listed.allow_credentials().build().is_ok());
    }

    #[test]
    fn fields_are_named_one_by_one() {
        for name in ["*", "", "x tenant", "x-tenant, x-b", "a\r\nb: c"] {
            assert!(
                Cors::any_origin().request_metadata([name]).build().is_err(),
                "{name}"
            );
            assert!(
                Cors::any_origin()
                    .response_metadata([name])
                    .build()
                    .is_err(),
                "{name}"
            );
        }
    }
}
