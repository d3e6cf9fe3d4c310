//! Types whose names the message library's generated code also uses unqualified.
//!
//! Its code has type parameters of one letter (`fn visit_str<E: Error>`) and
//! names `From` and `Into` as the prelude has them. A message or an enum of
//! such a name would take their place, and the code would not compile. So
//! these types get a mark in their names before generating; then, as every
//! unmarked use is the library's own, those are renamed, and the marks go. The
//! same marks get types through that are called like keywords, which the
//! library does not escape: `type` ends as `r#type`, `Self` as `Self_`. And a
//! message in lower case keeps its name while what it contains goes to a module
//! with a `_`: `lower_::Inner`.

use std::collections::BTreeMap;

use buffa_codegen::idents::is_rust_keyword;
use buffa_descriptor::generated::descriptor::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
};
use proc_macro2::{Group, Ident, Literal, Spacing, TokenStream, TokenTree};
use quote::ToTokens;
use syn::visit_mut::VisitMut;

use crate::names::snake_case;
use crate::schema;

/// Lower-case, so that it keeps its place when a name becomes a module's or a constant's.
const MARK: &str = "zquillz";

/// The mark of a message in lower case: it starts a word, so that the module of
/// what the message contains differs from the message's own name.
const WORD_MARK: &str = "Zquillz";

const PRELUDE: [&str; 2] = ["From", "Into"];

/// The types that had to be marked.
#[derive(Debug, Default)]
pub(crate) struct Shadowed {
    /// Full names with a leading dot, as they are and as they are marked.
    marked: BTreeMap<String, String>,
    /// The simple names of those that shadow something.
    names: Vec<String>,
}

impl Shadowed {
    /// Marks what shadows in `files`.
    pub(crate) fn mark(files: &mut [FileDescriptorProto]) -> Self {
        let mut shadowed = Self::default();
        for file in files.iter_mut() {
            let scope = match schema::package(file) {
                "" => String::new(),
                package => format!(".{package}"),
            };
            for message in &mut file.message_type {
                shadowed.mark_message(message, &scope, &scope);
            }
            for enumeration in &mut file.enum_type {
                shadowed.mark_enum(enumeration, &scope, &scope);
            }
        }
        if !shadowed.names.is_empty() {
            for file in files {
                shadowed.rename_uses(file);
            }
        }
        shadowed
    }

    /// The name under which the type `full_name` (with a leading dot) is generated.
    pub(crate) fn name<'a>(&'a self, full_name: &'a str) -> &'a str {
        self.marked.get(full_name).map_or(full_name, String::as_str)
    }

    /// Renames the library's own uses and takes the marks out again.
    pub(crate) fn unmark(&self, mut file: syn::File) -> TokenStream {
        if self.names.is_empty() {
            return file.into_token_stream();
        }
        TypeParameters { names: &self.names }.visit_file_mut(&mut file);
        let qualified = self.rename(file.into_token_stream(), &|name| {
            let path: TokenStream = format!("::core::convert::{name}").parse().ok()?;
            PRELUDE.contains(&name).then_some(path)
        });
        without_marks(qualified)
    }

    /// Takes the marks out of code of our own, which uses no such name.
    pub(crate) fn unmark_tokens(&self, tokens: TokenStream) -> TokenStream {
        if self.names.is_empty() {
            return tokens;
        }
        without_marks(tokens)
    }

    fn mark_message(&mut self, message: &mut DescriptorProto, scope: &str, marked_scope: &str) {
        let is_lower = |name: &str| name == snake_case(name);
        let mark = if message.name.as_deref().is_some_and(is_lower) {
            WORD_MARK
        } else {
            MARK
        };
        let (full, marked) = self.mark_name(&mut message.name, mark, scope, marked_scope);
        for nested in &mut message.nested_type {
            self.mark_message(nested, &full, &marked);
        }
        for enumeration in &mut message.enum_type {
            self.mark_enum(enumeration, &full, &marked);
        }
    }

    fn mark_enum(&mut self, enumeration: &mut EnumDescriptorProto, scope: &str, marked: &str) {
        self.mark_name(&mut enumeration.name, MARK, scope, marked);
    }

    fn mark_name(
        &mut self,
        name: &mut Option<String>,
        mark: &str,
        scope: &str,
        marked_scope: &str,
    ) -> (String, String) {
        let name = name.get_or_insert_default();
        let full = format!("{scope}.{name}");
        if mark == WORD_MARK || shadows(name) {
            if !self.names.contains(name) {
                self.names.push(name.clone());
            }
            name.push_str(mark);
        }
        let marked = format!("{marked_scope}.{name}");
        if full != marked {
            self.marked.insert(full.clone(), marked.clone());
        }
        (full, marked)
    }

    fn rename_uses(&self, file: &mut FileDescriptorProto) {
        for message in &mut file.message_type {
            self.rename_in_message(message);
        }
        self.rename_in_fields(&mut file.extension);
        for service in &mut file.service {
            for method in &mut service.method {
                self.rename_use(&mut method.input_type);
                self.rename_use(&mut method.output_type);
            }
        }
    }

    fn rename_in_message(&self, message: &mut DescriptorProto) {
        self.rename_in_fields(&mut message.field);
        self.rename_in_fields(&mut message.extension);
        for nested in &mut message.nested_type {
            self.rename_in_message(nested);
        }
    }

    fn rename_in_fields(&self, fields: &mut [FieldDescriptorProto]) {
        for field in fields {
            self.rename_use(&mut field.type_name);
            self.rename_use(&mut field.extendee);
        }
    }

    fn rename_use(&self, name: &mut Option<String>) {
        if let Some(marked) = name.as_ref().and_then(|name| self.marked.get(name)) {
            *name = Some(marked.clone());
        }
    }

    /// Replaces unqualified identifiers that shadow something.
    fn rename(
        &self,
        tokens: TokenStream,
        replace: &dyn Fn(&str) -> Option<TokenStream>,
    ) -> TokenStream {
        let shadowing = |name: &str| {
            let shadows = self.names.iter().any(|shadowing| shadowing == name);
            shadows.then(|| replace(name)).flatten()
        };
        replace_unqualified(tokens, &shadowing)
    }
}

fn shadows(name: &str) -> bool {
    let one_letter = name.len() == 1 && name.starts_with(|c: char| c.is_ascii_uppercase());
    one_letter || PRELUDE.contains(&name) || is_rust_keyword(name)
}

/// Renames type parameters, each within the function that declares it.
struct TypeParameters<'a> {
    names: &'a [String],
}

impl TypeParameters<'_> {
    fn rename<T: ToTokens + syn::parse::Parse>(
        &self,
        generics: &syn::Generics,
        item: &T,
    ) -> Option<T> {
        let declared: Vec<String> = generics
            .type_params()
            .map(|parameter| parameter.ident.to_string())
            .filter(|name| self.names.contains(name))
            .collect();
        if declared.is_empty() {
            return None;
        }
        let renamed = replace_unqualified(item.to_token_stream(), &|name| {
            let declared = declared.iter().any(|declared| declared == name);
            declared.then(|| {
                Ident::new(&format!("__{name}"), proc_macro2::Span::call_site()).into_token_stream()
            })
        });
        syn::parse2(renamed).ok()
    }
}

impl VisitMut for TypeParameters<'_> {
    fn visit_impl_item_fn_mut(&mut self, function: &mut syn::ImplItemFn) {
        syn::visit_mut::visit_impl_item_fn_mut(self, function);
        if let Some(renamed) = self.rename(&function.sig.generics, function) {
            *function = renamed;
        }
    }

    fn visit_item_fn_mut(&mut self, function: &mut syn::ItemFn) {
        syn::visit_mut::visit_item_fn_mut(self, function);
        if let Some(renamed) = self.rename(&function.sig.generics, function) {
            *function = renamed;
        }
    }
}

/// Replaces identifiers that follow neither `::` nor `.`.
fn replace_unqualified(
    tokens: TokenStream,
    replace: &dyn Fn(&str) -> Option<TokenStream>,
) -> TokenStream {
    let mut out = TokenStream::new();
    let mut qualified = false;
    let mut joint_colon = false;
    for tree in tokens {
        let (mut is_qualifier, mut is_joint_colon) = (false, false);
        match &tree {
            TokenTree::Punct(punct) if punct.as_char() == ':' => {
                is_qualifier = joint_colon;
                is_joint_colon = !joint_colon && punct.spacing() == Spacing::Joint;
            }
            TokenTree::Punct(punct) => is_qualifier = punct.as_char() == '.',
            _ => {}
        }
        match &tree {
            TokenTree::Ident(ident) if !qualified => match replace(&ident.to_string()) {
                Some(replacement) => out.extend(replacement),
                None => out.extend([tree]),
            },
            TokenTree::Group(group) => {
                let inner = replace_unqualified(group.stream(), replace);
                out.extend([TokenTree::Group(Group::new(group.delimiter(), inner))]);
            }
            _ => out.extend([tree]),
        }
        qualified = is_qualifier;
        joint_colon = is_joint_colon;
    }
    out
}

fn without_marks(tokens: TokenStream) -> TokenStream {
    let upper = MARK.to_ascii_uppercase();
    let unmarked = |text: &str| {
        // A word's mark in a module's name leaves the `_` before it.
        [MARK, WORD_MARK, &format!("_{upper}"), &upper]
            .iter()
            .fold(text.to_owned(), |text, mark| text.replace(mark, ""))
    };
    let mut out = TokenStream::new();
    for tree in tokens {
        out.extend([match &tree {
            TokenTree::Ident(ident) => {
                let text = ident.to_string();
                let plain = unmarked(&text);
                if plain == text {
                    tree
                } else {
                    TokenTree::Ident(crate::names::ident(&plain))
                }
            }
            TokenTree::Literal(literal) => {
                let plain = unmarked(&literal.to_string());
                TokenTree::Literal(plain.parse::<Literal>().unwrap_or_else(|_| literal.clone()))
            }
            TokenTree::Group(group) => {
                TokenTree::Group(Group::new(group.delimiter(), without_marks(group.stream())))
            }
            TokenTree::Punct(_) => tree,
        }]);
    }
    out
}
