//! Names in a .proto file to names in Rust.

use std::collections::BTreeSet;

use buffa_codegen::idents::make_field_ident;
use proc_macro2::Ident;

/// `GetHTTPInfo` to `get_http_info`: a word starts at an upper-case letter that
/// follows a lower-case one or a digit, or that starts a word after an acronym.
pub(crate) fn snake_case(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::with_capacity(name.len() + 4);
    for (i, &c) in chars.iter().enumerate() {
        let before = i.checked_sub(1).and_then(|i| chars.get(i)).copied();
        let after = chars.get(i + 1).copied();
        let starts_word = c.is_ascii_uppercase()
            && before.is_some_and(|b| {
                b.is_ascii_lowercase()
                    || b.is_ascii_digit()
                    || (b.is_ascii_uppercase() && after.is_some_and(|a| a.is_ascii_lowercase()))
            });
        if starts_word {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// `GetHTTPInfo` to `GET_HTTP_INFO`.
pub(crate) fn shouty_snake_case(name: &str) -> String {
    snake_case(name).to_ascii_uppercase()
}

/// The name of a Rust type for a service: as it stands when it looks like one
/// (acronyms stay), else with its words joined (`echo_service` to `EchoService`).
pub(crate) fn type_case(name: &str) -> String {
    let looks_right = name.starts_with(|c: char| c.is_ascii_uppercase()) && !name.contains('_');
    if looks_right {
        return name.to_owned();
    }
    let capitalised = name.split('_').map(|word| {
        let mut chars = word.chars();
        let first = chars.next().map(|c| c.to_ascii_uppercase());
        first.into_iter().chain(chars).collect::<String>()
    });
    let joined: String = capitalised.collect();
    let valid = joined.starts_with(|c: char| c.is_ascii_alphabetic());
    if valid { joined } else { name.to_owned() }
}

/// An identifier for `name`: raw (`r#type`) for a keyword of any edition, with
/// `_` for those that can't be raw.
pub(crate) fn ident(name: &str) -> Ident {
    make_field_ident(&settled(name))
}

/// `name` with a `_` behind it if no identifier can be made of it, raw or not.
pub(crate) fn settled(name: &str) -> String {
    let end = match name {
        "self" | "Self" | "super" | "crate" | "_" => "_",
        _ => "",
    };
    format!("{name}{end}")
}

/// The names taken in one Rust scope, as they stand behind an `r#`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(BTreeSet<String>);

impl Names {
    /// Takes `name`, with as many `_` behind it as make it free.
    pub(crate) fn take(&mut self, name: &str) -> String {
        let mut name = settled(name);
        while !self.0.insert(name.clone()) {
            name.push('_');
        }
        name
    }

    /// Takes `name` as [`take`](Self::take) does, for an identifier.
    pub(crate) fn claim(&mut self, name: &str) -> Ident {
        ident(&self.take(name))
    }

    /// Takes the first free one of `candidates`, or the last with `_` behind it.
    pub(crate) fn claim_first(&mut self, candidates: &[String]) -> Ident {
        let free = candidates.iter().find(|name| !self.has(&settled(name)));
        match free.or(candidates.last()) {
            Some(name) => self.claim(name),
            None => self.claim("_"),
        }
    }

    /// Whether `name` is taken.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

impl<S: Into<String>> Extend<S> for Names {
    fn extend<I: IntoIterator<Item = S>>(&mut self, names: I) {
        self.0.extend(names.into_iter().map(Into::into));
    }
}

impl<S: Into<String>> FromIterator<S> for Names {
    fn from_iter<I: IntoIterator<Item = S>>(names: I) -> Self {
        Self(names.into_iter().map(Into::into).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_split_at_case_and_keep_acronyms_together() {
        for (proto, snake) in [
            ("Echo", "echo"),
            ("GetHTTPInfo", "get_http_info"),
            ("getUser2Name", "get_user2_name"),
            ("already_snake", "already_snake"),
            ("Get_Foo", "get_foo"),
            ("ABC", "abc"),
        ] {
            assert_eq!(snake_case(proto), snake);
        }
        assert_eq!(shouty_snake_case("GetHTTPInfo"), "GET_HTTP_INFO");
    }

    #[test]
    fn service_names_become_type_names() {
        for (proto, rust) in [
            ("EchoService", "EchoService"),
            ("HTTPEcho", "HTTPEcho"),
            ("echo_service", "EchoService"),
            ("echo", "Echo"),
            ("_1", "_1"),
        ] {
            assert_eq!(type_case(proto), rust);
        }
    }

    #[test]
    fn keywords_become_identifiers() {
        for (name, rust) in [
            ("type", "r#type"),
            ("self", "self_"),
            ("crate", "crate_"),
            ("echo", "echo"),
            ("async", "r#async"),
            ("gen", "r#gen"),
            ("_", "__"),
        ] {
            assert_eq!(ident(name).to_string(), rust);
        }
    }

    #[test]
    fn a_taken_name_gets_an_underscore() {
        let mut names = Names::from_iter(["new", "connect"]);
        assert_eq!(names.claim("new").to_string(), "new_");
        assert_eq!(names.claim("echo").to_string(), "echo");
        assert_eq!(names.claim("echo").to_string(), "echo_");
        assert_eq!(names.claim("self").to_string(), "self_");
        assert_eq!(names.claim("self_").to_string(), "self__");
        assert_eq!(names.claim("type").to_string(), "r#type");
        let candidates = ["connect".to_owned(), "dial".to_owned()];
        assert_eq!(names.claim_first(&candidates).to_string(), "dial");
        assert_eq!(names.claim_first(&candidates).to_string(), "dial_");
    }
}
