//! Which method of which server is called.

use crate::failure::Failure;

/// `URL/package.Service/Method`, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Where the server is, with a path that goes before the methods' own.
    pub(crate) base_url: String,
    /// The service's full name.
    pub(crate) service: String,
    /// The method's own name.
    pub(crate) method: String,
}

impl Target {
    /// `server` is the one that is called where the text names none.
    pub(crate) fn parse(text: &str, server: Option<&str>) -> Result<Self, Failure> {
        if let Some(server) = server
            && !is_url(text)
        {
            let server = server.trim_end_matches('/');
            return Self::parse(&format!("{server}/{text}"), None);
        }
        let parts = text
            .rsplit_once('/')
            .and_then(|(rest, method)| Some((rest.rsplit_once('/')?, method)));
        let Some(((base_url, service), method)) = parts else {
            return Err(wrong(text, "it names no server, service and method"));
        };
        if base_url.is_empty() || base_url.ends_with('/') || base_url.ends_with(':') {
            return Err(wrong(text, "the service or the method is missing"));
        }
        if !is_name(service, true) {
            return Err(wrong(
                text,
                &format!("{service:?} is no service's full name"),
            ));
        }
        if !is_name(method, false) {
            return Err(wrong(text, &format!("{method:?} is no method's name")));
        }
        Ok(Self {
            base_url: base_url.to_owned(),
            service: service.to_owned(),
            method: method.to_owned(),
        })
    }
}

/// Whether a text begins with where a server is.
pub(crate) fn is_url(text: &str) -> bool {
    text.contains("://") || text.starts_with("unix:")
}

/// Whether a text is an identifier, or several with dots between.
pub(crate) fn is_name(text: &str, dotted: bool) -> bool {
    let is_identifier = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    if dotted {
        text.split('.').all(is_identifier)
    } else {
        is_identifier(text)
    }
}

fn wrong(text: &str, what: &str) -> Failure {
    Failure::input(format!(
        "{text:?} can't be called: {what}; write URL/package.Service/Method, such as \
         http://127.0.0.1:8080/echo.v1.EchoService/Echo"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_method_is_behind_the_url() {
        for base_url in [
            "http://127.0.0.1:8080",
            "https://a.b/api/v1",
            "http://[::1]:1",
            "unix:/run/a.sock",
        ] {
            let target = Target::parse(&format!("{base_url}/echo.v1.Echo/Say"), None).unwrap();
            assert_eq!(target.base_url, base_url);
            assert_eq!(target.service, "echo.v1.Echo");
            assert_eq!(target.method, "Say");
        }
    }

    #[test]
    fn a_server_may_be_known_already() {
        for text in ["echo.v1.Echo/Say", "http://b/echo.v1.Echo/Say"] {
            let target = Target::parse(text, Some("http://a:1/")).unwrap();
            let is_url = text.starts_with("http");
            assert_eq!(
                target.base_url,
                if is_url { "http://b" } else { "http://a:1" }
            );
            assert_eq!(target.service, "echo.v1.Echo");
        }
    }

    #[test]
    fn what_is_missing_is_said() {
        for (text, said) in [
            ("", "names no server"),
            ("http:", "names no server"),
            ("echo.v1.Echo/Say", "names no server"),
            ("/echo.v1.Echo/Say", "is missing"),
            ("http://a", "is missing"),
            ("http://a/Say", "is missing"),
            ("http://a/b.C/", "no method's name"),
            ("http://a/b..C/D", "no service's full name"),
            ("http://a:1/echo.v1.Echo.Say", "is missing"),
            ("http://a/b.C/D?e=f", "no method's name"),
        ] {
            let error = Target::parse(text, None).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
            assert!(error.contains("URL/package.Service/Method"), "{error}");
        }
    }
}
