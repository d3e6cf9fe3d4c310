//! What is asked about: a server, and maybe one of the things it describes.

use std::path::Path;

use crate::failure::Failure;
use crate::target::{is_name, is_url};

/// `URL`, `URL/package.Symbol` or `URL/package.Service/Method`, taken apart; or
/// a symbol alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    /// The server; `None` where only files can know.
    pub(crate) base_url: Option<String>,
    /// The full name of a service, message, enum or method.
    pub(crate) symbol: Option<String>,
}

impl Subject {
    /// `server` is the one that is asked where the text names none.
    pub(crate) fn parse(text: Option<&str>, server: Option<&str>) -> Result<Self, Failure> {
        let base_url = server.map(|url| url.trim_end_matches('/').to_owned());
        let Some(text) = text else {
            return Ok(Self {
                base_url,
                symbol: None,
            });
        };
        if !is_url(text) {
            let symbol = Some(symbol(text).ok_or_else(|| wrong(text))?);
            return Ok(Self { base_url, symbol });
        }
        let (base_url, symbol) = match text.strip_prefix("unix:") {
            Some(path) => {
                let (socket, rest) = socket(path);
                let symbol = match rest {
                    "" => None,
                    rest => Some(symbol(rest).ok_or_else(|| wrong(text))?),
                };
                (format!("unix:{socket}"), symbol)
            }
            None => of_url(text),
        };
        Ok(Self {
            base_url: Some(base_url),
            symbol,
        })
    }
}

/// A URL, and the symbol behind it: names with a dot are none of its path's
/// segments.
fn of_url(text: &str) -> (String, Option<String>) {
    let text = text.trim_end_matches('/');
    let path = text.find("://").map_or(0, |scheme| scheme + 3);
    let is_dotted = |segment: &str| segment.contains('.') && is_name(segment, true);
    let authority = text[path..].find('/').map_or(text.len(), |end| path + end);
    if let Some((rest, last)) = text.rsplit_once('/')
        && rest.len() >= authority
    {
        if is_dotted(last) {
            return (rest.to_owned(), Some(last.to_owned()));
        }
        if let Some((rest, service)) = rest.rsplit_once('/')
            && rest.len() >= authority
            && is_dotted(service)
            && is_name(last, false)
        {
            return (rest.to_owned(), Some(format!("{service}.{last}")));
        }
    }
    (text.to_owned(), None)
}

/// The path of a socket that is there, and what comes behind it.
fn socket(path: &str) -> (&str, &str) {
    let mut socket = path;
    while !Path::new(socket).exists() {
        match socket.rfind('/') {
            Some(end) if end > 0 => socket = &socket[..end],
            // None is there, which is told by who connects.
            _ => return (path, ""),
        }
    }
    if Path::new(socket).is_dir() {
        return (path, "");
    }
    (socket, path[socket.len()..].trim_matches('/'))
}

/// A full name; a method may stand behind a slash.
fn symbol(text: &str) -> Option<String> {
    let name = text.trim_matches('/').replacen('/', ".", 1);
    is_name(&name, true).then_some(name)
}

fn wrong(text: &str) -> Failure {
    Failure::input(format!(
        "{text:?} can't be looked up: write URL, URL/package.Service, URL/package.Message or \
         URL/package.Service/Method"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (Option<String>, Option<String>) {
        let subject = Subject::parse(Some(text), Some("http://other/")).unwrap();
        (subject.base_url, subject.symbol)
    }

    #[test]
    fn a_symbol_stands_behind_the_url() {
        for (text, url, symbol) in [
            ("http://a:1", "http://a:1", ""),
            ("http://a.example/", "http://a.example", ""),
            ("http://a/b.C", "http://a", "b.C"),
            ("http://a/b.C/D", "http://a", "b.C.D"),
            ("http://a/api/v1", "http://a/api/v1", ""),
            ("http://a/api/b.v1.C", "http://a/api", "b.v1.C"),
            ("unix:/no/such/socket", "unix:/no/such/socket", ""),
            ("b.C", "http://other", "b.C"),
            ("b.C/D", "http://other", "b.C.D"),
        ] {
            let symbol = (!symbol.is_empty()).then(|| symbol.to_owned());
            assert_eq!(parse(text), (Some(url.to_owned()), symbol), "{text}");
        }
        assert!(Subject::parse(Some("a b"), None).is_err());
        assert!(Subject::parse(Some("a//b/c"), None).is_err());
    }

    #[test]
    fn a_socket_is_a_file_that_is_there() {
        let folder = env!("CARGO_MANIFEST_DIR");
        let text = format!("unix:{folder}/Cargo.toml/b.C/D");
        let url = format!("unix:{folder}/Cargo.toml");
        assert_eq!(parse(&text), (Some(url.clone()), Some("b.C.D".to_owned())));
        assert_eq!(parse(&url), (Some(url.clone()), None));
    }
}
