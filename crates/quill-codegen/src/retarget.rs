//! Points the message library's code at the one crate that a user depends on.

use proc_macro2::{Delimiter, Group, Literal, TokenStream, TokenTree};
use quote::{format_ident, quote};

use crate::error::Error;

/// The crates that generated messages name, all re-exported by the runtime.
const CRATES: [&str; 4] = ["buffa", "buffa_types", "buffa_descriptor", "serde"];

/// The attributes' keys in `#[serde(...)]` whose values are paths.
const SERDE_PATHS: [&str; 5] = [
    "with",
    "serialize_with",
    "deserialize_with",
    "skip_serializing_if",
    "default",
];

/// The module of the message library in whose place the runtime has its own,
/// and what it is called there.
const JSON: (&str, &str) = ("json_helpers", "json");

/// Rewrites `::buffa::X` to `<runtime>::buffa::X`, and the same for its kin;
/// `::buffa::json_helpers` becomes `<runtime>::json`.
#[derive(Clone, Debug)]
pub(crate) struct Retarget {
    /// The runtime's module as text, for paths in string literals.
    text: String,
    tokens: TokenStream,
}

impl Retarget {
    /// `runtime` is the path of the module that re-exports everything.
    pub(crate) fn new(runtime: &str) -> Result<Self, Error> {
        let path = syn::parse_str::<syn::Path>(runtime)
            .ok()
            .filter(|path| {
                path.segments
                    .iter()
                    .all(|segment| segment.arguments.is_none())
            })
            .filter(|path| {
                let from_crate = path
                    .segments
                    .first()
                    .is_some_and(|first| first.ident == "crate");
                path.leading_colon.is_some() || from_crate
            });
        let Some(path) = path else {
            return Err(Error::new(format!(
                "the runtime path {runtime:?} is no absolute path of a module, such as \
                 \"::quill::__private\" or \"crate::runtime\""
            )));
        };
        Ok(Self {
            text: quote!(#path).to_string().replace(' ', ""),
            tokens: quote!(#path),
        })
    }

    /// The runtime's module.
    pub(crate) fn runtime(&self) -> &TokenStream {
        &self.tokens
    }

    pub(crate) fn rewrite(&self, tokens: TokenStream) -> TokenStream {
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        let mut out: Vec<TokenTree> = Vec::with_capacity(trees.len());
        let mut i = 0;
        while let Some(tree) = trees.get(i) {
            if let Some(name) = leading_path(&trees, i).filter(|_| starts_path(&out)) {
                out.extend(self.tokens.clone());
                out.extend(trees.get(i..i + 2).into_iter().flatten().cloned());
                i += 3;
                if is_json(name, trees.get(i..)) {
                    out.push(TokenTree::Ident(format_ident!("{}", JSON.1)));
                    i += 3;
                } else {
                    out.push(name.clone());
                }
                continue;
            }
            let TokenTree::Group(group) = tree else {
                out.push(tree.clone());
                i += 1;
                continue;
            };
            let is_attribute = group.delimiter() == Delimiter::Bracket
                && matches!(out.last(), Some(TokenTree::Punct(hash)) if hash.as_char() == '#');
            let inner = if is_attribute {
                self.rewrite_attribute(group.stream())
            } else {
                self.rewrite(group.stream())
            };
            let mut rewritten = Group::new(group.delimiter(), inner);
            rewritten.set_span(group.span());
            out.push(TokenTree::Group(rewritten));
            if is_attribute && derives_serde(group.stream()) {
                out.extend(self.serde_crate());
            }
            i += 1;
        }
        out.into_iter().collect()
    }

    /// Tells serde's derive where serde is.
    fn serde_crate(&self) -> TokenStream {
        let path = format!("{}::serde", self.text);
        quote! { #[serde(crate = #path)] }
    }

    /// In `#[serde(...)]` paths are string literals.
    fn rewrite_attribute(&self, tokens: TokenStream) -> TokenStream {
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        match trees.as_slice() {
            [TokenTree::Ident(name), TokenTree::Group(arguments)] if name == "serde" => {
                let paths = self.rewrite_serde(arguments.stream());
                quote! { serde(#paths) }
            }
            _ => self.rewrite(trees.into_iter().collect()),
        }
    }

    fn rewrite_serde(&self, tokens: TokenStream) -> TokenStream {
        let mut out: Vec<TokenTree> = Vec::new();
        for tree in tokens {
            let path = match (out.as_slice(), &tree) {
                ([.., TokenTree::Ident(key), _], TokenTree::Literal(literal))
                    if SERDE_PATHS.iter().any(|path| key == path) =>
                {
                    self.rewrite_literal(literal)
                }
                _ => None,
            };
            out.push(path.map_or(tree, TokenTree::Literal));
        }
        out.into_iter().collect()
    }

    fn rewrite_literal(&self, literal: &Literal) -> Option<Literal> {
        let text = literal.to_string();
        let path = text.strip_prefix('"')?.strip_suffix('"')?;
        let mut names = path.strip_prefix("::")?.split("::");
        let name = names.next()?;
        if !CRATES.contains(&name) {
            return None;
        }
        let path = match (name, names.next()) {
            ("buffa", Some(module)) if module == JSON.0 => {
                let rest: Vec<&str> = [JSON.1].into_iter().chain(names).collect();
                format!("{}::{}", self.text, rest.join("::"))
            }
            _ => format!("{}{path}", self.text),
        };
        Some(Literal::string(&path))
    }
}

/// Whether the path that starts with the crate `name` goes on with the module
/// that the runtime has its own of.
fn is_json(name: &TokenTree, rest: Option<&[TokenTree]>) -> bool {
    let is_buffa = matches!(name, TokenTree::Ident(name) if name == "buffa");
    let module = match rest {
        Some(
            [
                TokenTree::Punct(a),
                TokenTree::Punct(b),
                TokenTree::Ident(module),
                ..,
            ],
        ) if a.as_char() == ':' && b.as_char() == ':' => module,
        _ => return false,
    };
    is_buffa && module == JSON.0
}

/// The crate's name in `::name`, if that stands at `i` and is one of ours.
fn leading_path(trees: &[TokenTree], i: usize) -> Option<&TokenTree> {
    match trees.get(i..i + 3)? {
        [
            TokenTree::Punct(a),
            TokenTree::Punct(b),
            name @ TokenTree::Ident(ident),
        ] if a.as_char() == ':'
            && b.as_char() == ':'
            && CRATES.iter().any(|name| ident == name) =>
        {
            Some(name)
        }
        _ => None,
    }
}

/// Whether a `::` after `before` starts a path rather than continuing one. After
/// a `>` it does: types have no associated items of these names.
fn starts_path(before: &[TokenTree]) -> bool {
    let last = match before {
        // A lifetime (`&'a ::buffa::Message`) is two tokens, and ends no path.
        [.., TokenTree::Punct(quote), TokenTree::Ident(_)] if quote.as_char() == '\'' => {
            return true;
        }
        [.., TokenTree::Ident(last)] => last,
        _ => return true,
    };
    // A keyword (`for ::buffa::Message`) ends no path, but `self` and its kin do.
    let last = last.to_string();
    let part_of_path = matches!(last.as_str(), "self" | "Self" | "super" | "crate");
    !part_of_path && syn::parse_str::<syn::Ident>(&last).is_err()
}

fn derives_serde(attribute: TokenStream) -> bool {
    let mut trees = attribute.into_iter();
    match (trees.next(), trees.next()) {
        (Some(TokenTree::Ident(name)), Some(TokenTree::Group(traits))) if name == "derive" => {
            let mut traits = traits.stream().into_iter();
            traits.any(|tree| matches!(tree, TokenTree::Ident(name) if name == "serde"))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(source: &str) -> String {
        let tokens = source.parse().expect("valid tokens");
        let retarget = Retarget::new("::quill::__private").expect("a path");
        retarget.rewrite(tokens).to_string()
    }

    fn same(source: &str, expected: &str) {
        let expected: TokenStream = expected.parse().expect("valid tokens");
        assert_eq!(rewritten(source), expected.to_string());
    }

    #[test]
    fn paths_that_start_at_a_crate_are_moved() {
        same(
            "impl<'a> ::buffa::Message for ::buffa::X<'a> { fn f() -> ::buffa::A { a => ::serde::B, <::buffa::C>::d() } }",
            "impl<'a> ::quill::__private::buffa::Message for ::quill::__private::buffa::X<'a> { fn f() -> ::quill::__private::buffa::A \
             { a => ::quill::__private::serde::B, <::quill::__private::buffa::C>::d() } }",
        );
    }

    #[test]
    fn a_path_starts_after_a_lifetime() {
        same(
            "struct A<'a>(&'a ::buffa::MapView<'a, &'a str>);",
            "struct A<'a>(&'a ::quill::__private::buffa::MapView<'a, &'a str>);",
        );
    }

    #[test]
    fn other_paths_stay() {
        let source = "self::buffa::A; super::r#type::serde::B; x::serde::C; ::core::D; buffa::E";
        same(source, source);
    }

    #[test]
    fn json_helpers_are_the_runtimes() {
        same(
            "::buffa::json_helpers::int32::deserialize(d); ::buffa::json::A; ::serde::json_helpers::B",
            "::quill::__private::json::int32::deserialize(d); ::quill::__private::buffa::json::A; \
             ::quill::__private::serde::json_helpers::B",
        );
        same(
            "struct A { #[serde(with = \"::buffa::json_helpers::int32\", default = \"::buffa::json_helpers::f\")] f: u8 }",
            "struct A { #[serde(with = \"::quill::__private::json::int32\", default = \"::quill::__private::json::f\")] f: u8 }",
        );
    }

    #[test]
    fn serde_is_told_where_it_is() {
        same(
            "#[derive(::serde::Serialize)] struct A { #[serde(rename = \"::buffa::x\", with = \"::buffa::y\")] f: u8 }",
            "#[derive(::quill::__private::serde::Serialize)] #[serde(crate = \"::quill::__private::serde\")] \
             struct A { #[serde(rename = \"::buffa::x\", with = \"::quill::__private::buffa::y\")] f: u8 }",
        );
    }

    #[test]
    fn strings_and_docs_stay() {
        let source = "#[doc = \"::buffa::x\"] const A: &str = \"::buffa::y\";";
        same(source, source);
    }

    #[test]
    fn a_runtime_that_is_no_path_is_refused() {
        for runtime in [
            "",
            "::quill::",
            "a b",
            "::quill<T>",
            "quill; x",
            "super::rt",
            "quill",
        ] {
            assert!(Retarget::new(runtime).is_err(), "{runtime}");
        }
        for runtime in ["::quill", "crate::codegen"] {
            assert!(Retarget::new(runtime).is_ok(), "{runtime}");
        }
    }
}
