//! Where a server is.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use quill_core::RequestHead;

use crate::error::{TransportError, TransportErrorKind};

/// Where a server is: `http://host:port`, `https://host:port` or
/// `unix:/path/of/socket`, the first two with an optional path that every
/// request's target is put behind.
///
/// `http` means HTTP/2 with prior knowledge unless HTTP/1.1 is asked for,
/// `https` what the server chooses in the TLS handshake. The port defaults to
/// 80 and 443.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    pub(super) place: Place,
    /// The one of the host's addresses that is meant; any where there is none.
    pub(super) address: Option<SocketAddr>,
    secure: bool,
    authority: String,
    prefix: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

impl Endpoint {
    /// Reads a URL.
    ///
    /// # Errors
    /// [`TransportErrorKind::Url`], with what is wrong in it.
    pub fn parse(url: &str) -> Result<Self, TransportError> {
        read(url).map_err(|wrong| {
            let message = format!("the URL {:?} can't be used: {wrong}", Redacted(url));
            TransportError::new(TransportErrorKind::Url, message).unprocessed()
        })
    }

    /// Whether the connection is encrypted (`https`).
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.secure
    }

    /// The host and port that requests name; `localhost` for a Unix socket.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The path that every request's target is put behind; empty or
    /// `/segments`, without a slash at its end.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The one of its host's addresses that is meant, where it is one that
    /// [`resolve`](Self::resolve) gave.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Puts a request's target behind the prefix, and names the authority where none
    /// is named.
    pub(super) fn complete(&self, head: &mut RequestHead) {
        if !self.prefix.is_empty() {
            head.target.insert_str(0, &self.prefix);
        }
        if head.authority.is_empty() {
            self.authority.clone_into(&mut head.authority);
        }
    }

    /// The scheme that HTTP/2 requests name.
    pub(super) fn scheme(&self) -> &'static str {
        if self.secure { "https" } else { "http" }
    }
}

impl FromStr for Endpoint {
    type Err = TransportError;

    fn from_str(url: &str) -> Result<Self, TransportError> {
        Self::parse(url)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Unix(path) => write!(f, "unix:{}", path.display()),
            Place::Tcp { .. } => {
                write!(f, "{}://{}{}", self.scheme(), self.authority, self.prefix)
            }
        }
    }
}

/// A URL in an error must not carry a password into a log.
struct Redacted<'a>(&'a str);

impl fmt::Debug for Redacted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.split_once("://"), self.0.rsplit_once('@')) {
            (Some((scheme, _)), Some((_, rest))) => write!(f, "\"{scheme}://...@{rest}\""),
            _ => write!(f, "{:?}", self.0),
        }
    }
}

fn read(url: &str) -> Result<Endpoint, String> {
    if let Some(path) = url.strip_prefix("unix:") {
        return read_unix(path);
    }
    let (scheme, rest) = url
        .split_once("://")
        .ok_or("a scheme is missing; write http://host:port, https://host:port or unix:/path")?;
    let secure = match scheme.to_ascii_lowercase().as_str() {
        "http" => false,
        "https" => true,
        _ => {
            return Err(format!(
                "the scheme {scheme:?} is none of http, https and unix"
            ));
        }
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if authority.contains('@') {
        return Err("it holds a user name or password; send them as a header".to_owned());
    }
    if path.contains(['?', '#']) {
        return Err("it has a query or a fragment, which has no place before a method".to_owned());
    }
    if let Some(byte) = path.bytes().find(|byte| !byte.is_ascii_graphic()) {
        return Err(format!(
            "its path holds the byte {byte:#04x}; percent-encode it"
        ));
    }
    let (host, port) = split_port(authority)?;
    check_host(host)?;
    let port = port.unwrap_or(if secure { 443 } else { 80 });
    let is_default = port == if secure { 443 } else { 80 };
    Ok(Endpoint {
        place: Place::Tcp {
            host: host.trim_matches(['[', ']']).to_owned(),
            port,
        },
        address: None,
        secure,
        authority: if is_default {
            host.to_owned()
        } else {
            format!("{host}:{port}")
        },
        prefix: path.trim_end_matches('/').to_owned(),
    })
}

fn read_unix(path: &str) -> Result<Endpoint, String> {
    if cfg!(not(unix)) {
        return Err("this system has no Unix sockets".to_owned());
    }
    let path = path.strip_prefix("//").unwrap_or(path);
    if path.is_empty() {
        return Err("the path of the socket is missing; write unix:/path/of/socket".to_owned());
    }
    Ok(Endpoint {
        place: Place::Unix(path.into()),
        address: None,
        secure: false,
        authority: "localhost".to_owned(),
        prefix: String::new(),
    })
}

/// Splits `host`, `host:port`, `[v6]` and `[v6]:port`.
fn split_port(authority: &str) -> Result<(&str, Option<u16>), String> {
    let after_host = if authority.starts_with('[') {
        authority.find(']').map(|end| end + 1)
    } else {
        authority.find(':')
    };
    let Some(end) = after_host else {
        if authority.starts_with('[') {
            return Err("the bracket of its IPv6 address is not closed".to_owned());
        }
        return Ok((authority, None));
    };
    let (host, port) = authority.split_at(end);
    if port.is_empty() {
        return Ok((host, None));
    }
    let digits = port.strip_prefix(':').unwrap_or_default();
    if digits.contains(':') {
        return Err("an IPv6 address needs brackets: http://[::1]:8080".to_owned());
    }
    let number = digits.bytes().all(|byte| byte.is_ascii_digit());
    match digits.parse() {
        Ok(port @ 1..) if number => Ok((host, Some(port))),
        _ => Err(format!("the port {digits:?} is none of 1 to 65535")),
    }
}

fn check_host(host: &str) -> Result<(), String> {
    if host.is_empty() {
        return Err("the host is missing".to_owned());
    }
    if let Some(v6) = host.strip_prefix('[') {
        let v6 = v6.trim_end_matches(']');
        return match v6.parse::<std::net::Ipv6Addr>() {
            Ok(_) => Ok(()),
            Err(_) => Err(format!("{v6:?} is no IPv6 address")),
        };
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    match host.chars().find(|c| !fits(*c)) {
        None => Ok(()),
        Some(c) if c.is_ascii() => Err(format!("the host holds {c:?}")),
        Some(c) => Err(format!(
            "the host holds {c:?}; write an international name in its ASCII form (xn--...)"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        let read = |url: &str| {
            let endpoint = Endpoint::parse(url).unwrap();
            let Place::Tcp { host, port } = endpoint.place.clone() else {
                panic!("{url} is no TCP place");
            };
            assert_eq!(Endpoint::parse(&endpoint.to_string()).unwrap(), endpoint);
            (host, port, endpoint.authority, endpoint.prefix)
        };
        let fields = |host: &str, port, authority: &str, prefix: &str| {
            (
                host.to_owned(),
                port,
                authority.to_owned(),
                prefix.to_owned(),
            )
        };
        assert_eq!(read("http://a.b"), fields("a.b", 80, "a.b", ""));
        assert_eq!(read("HTTPS://a.b/"), fields("a.b", 443, "a.b", ""));
        assert_eq!(read("http://a:443"), fields("a", 443, "a:443", ""));
        assert_eq!(
            read("https://a_b:8443/api/v1/"),
            fields("a_b", 8443, "a_b:8443", "/api/v1")
        );
        assert_eq!(read("http://[::1]:80"), fields("::1", 80, "[::1]", ""));
        assert_eq!(read("http://[::1]:1/x"), fields("::1", 1, "[::1]:1", "/x"));
    }

    #[cfg(unix)]
    #[test]
    fn unix_sockets_are_read_in_both_forms() {
        for url in ["unix:/run/q.sock", "unix:///run/q.sock"] {
            let endpoint = Endpoint::parse(url).unwrap();
            assert_eq!(endpoint.to_string(), "unix:/run/q.sock");
            assert_eq!(endpoint.authority(), "localhost");
        }
        let relative = Endpoint::parse("unix:q.sock").unwrap();
        assert_eq!(relative.place, Place::Unix("q.sock".into()));
    }

    #[test]
    fn what_is_wrong_with_a_url_is_said() {
        for (url, said) in [
            ("", "scheme is missing"),
            ("localhost:8080", "scheme is missing"),
            ("ftp://a", "\"ftp\" is none of"),
            ("http://", "host is missing"),
            ("http://:80", "host is missing"),
            ("http://a:0", "port \"0\""),
            ("http://a:", "port \"\""),
            ("http://a:+1", "port \"+1\""),
            ("http://a:65536", "port \"65536\""),
            ("http://a:1x", "port \"1x\""),
            ("http://::1:80", "needs brackets"),
            ("http://[::1", "not closed"),
            ("http://[::g]", "no IPv6 address"),
            ("http://[::1]x", "port"),
            ("http://a?x=1", "query"),
            ("http://a/b#c", "fragment"),
            ("http://a/b c", "0x20"),
            ("http://a b", "holds ' '"),
            ("http://ü", "xn--"),
            ("unix:", "path of the socket is missing"),
        ] {
            let error = Endpoint::parse(url).unwrap_err();
            assert_eq!(error.kind(), TransportErrorKind::Url);
            assert!(error.to_string().contains(said), "{url}: {error}");
        }
        let error = Endpoint::parse("http://me:secret@a")
            .unwrap_err()
            .to_string();
        assert!(error.contains("user name"), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
}
