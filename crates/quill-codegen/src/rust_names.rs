//! What types are called in Rust where their own names won't do.
//!
//! A message or an enum keeps its name, what a message contains goes to a module
//! of that name in snake case, and its view is `NameView`. Where Rust or another
//! type takes one of these, a `_` follows it: `bool_`, `Self_`, `lower_::Inner`.

use std::collections::{BTreeMap, BTreeSet};

use buffa_codegen::idents::is_rust_keyword;

use crate::names::Names;

/// The types that are everywhere without being brought in. A type or a module
/// of such a name would take their place, also in code that serde derives.
pub(crate) const PRIMITIVES: [&str; 17] = [
    "bool", "char", "f32", "f64", "i128", "i16", "i32", "i64", "i8", "isize", "str", "u128", "u16",
    "u32", "u64", "u8", "usize",
];

/// What the prelude brings and the message library's code names as it stands.
pub(crate) const PRELUDE: [&str; 2] = ["From", "Into"];

/// The module in which the message library puts what goes with the messages.
const ANCILLARY: &str = "__buffa";

/// What a message or an enum is called in Rust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RustName {
    /// Its name in the .proto file.
    pub(crate) proto: String,
    pub(crate) name: String,
    /// The module of what a message contains.
    pub(crate) module: String,
    /// What `View` and `OwnedView` are put behind.
    pub(crate) view: String,
}

/// What is declared side by side: at a package's root, or in a message.
#[derive(Debug, Default)]
pub(crate) struct Scope<'a> {
    pub(crate) messages: BTreeSet<&'a str>,
    pub(crate) enums: BTreeSet<&'a str>,
    /// The last names of the packages right below.
    pub(crate) packages: BTreeSet<&'a str>,
}

impl Scope<'_> {
    /// The types that the message library can't be left alone with, by their names.
    pub(crate) fn special(&self) -> BTreeMap<String, RustName> {
        let (stay, go): (Vec<&str>, Vec<&str>) = self
            .messages
            .union(&self.enums)
            .partition(|name| stays(name));
        let mut types = Names::from_iter(PRIMITIVES);
        let mut rust_names: BTreeMap<&str, String> = BTreeMap::new();
        for name in stay.into_iter().chain(go) {
            rust_names.insert(name, types.take(name));
        }
        let mut modules = types.clone();
        modules.extend(self.packages.iter().copied().chain([ANCILLARY]));
        let mut views = Names::default();
        let mut special = BTreeMap::new();
        for (proto, name) in rust_names {
            let is_message = self.messages.contains(proto);
            let usual = module_case(proto);
            let module = if is_message {
                modules.take(&usual)
            } else {
                usual.clone()
            };
            let is_special = name != proto || module != usual || is_named_by_library(proto);
            let mut view = proto.to_owned();
            while is_message && !free_view(&view, &views, is_special.then_some(&types)) {
                view.push('_');
            }
            if is_message {
                views.extend(views_of(&view).iter().map(String::as_str));
            }
            if is_special || view != proto {
                let rust = RustName {
                    proto: proto.to_owned(),
                    name,
                    module,
                    view,
                };
                special.insert(proto.to_owned(), rust);
            }
        }
        special
    }
}

/// The message library's rule: a word starts at an upper-case letter that
/// follows a lower-case one, or that starts a word after an acronym.
pub(crate) fn module_case(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::with_capacity(name.len() + 4);
    for (i, &c) in chars.iter().enumerate() {
        let before = i.checked_sub(1).and_then(|i| chars.get(i));
        let before_lower = chars.get(i + 1).is_some_and(char::is_ascii_lowercase);
        let starts_word = c.is_ascii_uppercase()
            && before.is_some_and(|b| {
                b.is_ascii_lowercase() || (b.is_ascii_uppercase() && before_lower)
            });
        if starts_word {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// Whether the message library's code uses `name` for something of its own, or
/// would have to escape it and does not.
fn is_named_by_library(name: &str) -> bool {
    is_type_parameter(name) || PRELUDE.contains(&name) || is_rust_keyword(name)
}

/// Its type parameters are called so (`fn visit_str<E: Error>`).
pub(crate) fn is_type_parameter(name: &str) -> bool {
    name.len() == 1 && name.starts_with(|c: char| c.is_ascii_uppercase())
}

/// Whether a type can have this name in Rust.
fn stays(name: &str) -> bool {
    !PRIMITIVES.contains(&name) && Names::default().take(name) == name
}

fn views_of(view: &str) -> [String; 2] {
    [format!("{view}View"), format!("{view}OwnedView")]
}

/// Whether a message can have views of this name; the library itself sees to
/// conflicts with `types`, as long as it knows both names.
fn free_view(view: &str, views: &Names, types: Option<&Names>) -> bool {
    let taken = |name: &String| views.has(name) || types.is_some_and(|types| types.has(name));
    !views_of(view).iter().any(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn special(messages: &[&str], packages: &[&str]) -> Vec<String> {
        let scope = Scope {
            messages: messages.iter().copied().collect(),
            packages: packages.iter().copied().collect(),
            ..Scope::default()
        };
        let special = scope.special().into_values();
        special
            .map(|rust| format!("{} {} {}", rust.name, rust.module, rust.view))
            .collect()
    }

    #[test]
    fn ordinary_names_stay() {
        assert!(special(&["Foo", "Bar", "FooView", "Type", "_Foo"], &["v1"]).is_empty());
    }

    #[test]
    fn rusts_own_names_get_an_underscore() {
        assert_eq!(special(&["bool"], &[]), ["bool_ bool__ bool"]);
        assert_eq!(special(&["bool", "bool_"], &[])[0], "bool__ bool___ bool");
        assert_eq!(special(&["Self"], &[]), ["Self_ self_ Self"]);
        assert_eq!(
            special(&["Super", "Str"], &[]),
            ["Str str_ Str", "Super super_ Super"]
        );
        assert_eq!(special(&["E", "From"], &[]), ["E e E", "From from From"]);
    }

    #[test]
    fn what_differs_in_case_only_gets_modules_that_differ() {
        assert_eq!(special(&["lower"], &[]), ["lower lower_ lower"]);
        assert_eq!(
            special(&["Foo", "foo", "FOO"], &[]),
            ["FOO foo_ FOO", "Foo foo__ Foo", "foo foo___ foo"]
        );
        assert_eq!(
            special(&["HTTPRequest", "HttpRequest"], &[]),
            ["HttpRequest http_request_ HttpRequest"]
        );
        assert_eq!(special(&["Foo"], &["foo", "foo_"]), ["Foo foo__ Foo"]);
    }

    #[test]
    fn an_owned_view_is_no_view_of_an_owned() {
        assert_eq!(
            special(&["Item", "ItemOwned"], &[]),
            ["ItemOwned item_owned ItemOwned_"]
        );
    }
}
