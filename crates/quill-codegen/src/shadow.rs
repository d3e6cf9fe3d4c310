//! Types whose names the message library can't be left alone with.
//!
//! Its code has type parameters of one letter (`fn visit_str<E: Error>`), names
//! `From` and `Into` as the prelude has them, does not escape keywords, and
//! refuses messages that differ in case only. So types of such names get a mark
//! in their names before generating. Then, as every unmarked use is the
//! library's own, those are renamed; and the marks become what [`RustName`]
//! says: how a mark is written in the end tells whether it stands in the name
//! of a type, of a module or of a constant.

use std::collections::{BTreeMap, BTreeSet};

use buffa_descriptor::generated::descriptor::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
};
use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::visit_mut::{self, VisitMut};

use crate::names::ident;
use crate::rust_names::{PRELUDE, RustName, Scope, is_type_parameter, module_case};
use crate::schema;

/// Starts a mark, which goes on with an index and ends with `z`. A digit comes
/// first, so that no change of case puts a `_` in or before it.
const TYPE_MARK: &str = "0Zquillz";
/// What becomes of the mark in the name of a module, and of a constant.
const MODULE_MARK: &str = "0zquillz";
const CONST_MARK: &str = "0ZQUILLZ";

/// The types that had to be marked.
#[derive(Debug, Default)]
pub(crate) struct Shadowed {
    /// Full names with a leading dot, as they are and as they are marked.
    marked: BTreeMap<String, String>,
    /// By the index in their marks.
    names: Vec<RustName>,
}

impl Shadowed {
    /// Marks in `files` what needs it.
    pub(crate) fn mark(files: &mut [FileDescriptorProto]) -> Self {
        let mut shadowed = Self::default();
        let packages: BTreeSet<String> = files
            .iter()
            .map(|file| schema::package(file).to_owned())
            .collect();
        for package in &packages {
            shadowed.mark_package(files, package, &packages);
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
    pub(crate) fn unmark(&self, mut file: syn::File) -> syn::Result<syn::File> {
        if self.names.is_empty() {
            return Ok(file);
        }
        let protos = || self.names.iter().map(|rust| rust.proto.as_str());
        let prelude: Vec<_> = protos().filter(|name| PRELUDE.contains(name)).collect();
        let parameters: Vec<_> = protos().filter(|name| is_type_parameter(name)).collect();
        let in_full = |name: &str| {
            let path = format!("::core::convert::{name}");
            let path = syn::parse_str(&path).ok();
            path.filter(|_| prelude.contains(&name))
        };
        if !prelude.is_empty() {
            Paths { rename: &in_full }.visit_file_mut(&mut file);
        }
        if !parameters.is_empty() {
            TypeParameters { names: &parameters }.visit_file_mut(&mut file);
        }
        syn::parse2(self.unmark_tokens(file.into_token_stream()))
    }

    /// Takes the marks out of code, which else uses no such name.
    pub(crate) fn unmark_tokens(&self, tokens: TokenStream) -> TokenStream {
        if self.names.is_empty() {
            return tokens;
        }
        let unmarked = tokens.into_iter().map(|tree| match tree {
            TokenTree::Ident(name) => {
                let unmarked = self.unmark_name(&name.to_string());
                TokenTree::Ident(unmarked.map_or(name, |name| ident(&name)))
            }
            TokenTree::Literal(literal) => {
                let proto = without_marks(&literal.to_string());
                TokenTree::Literal(proto.and_then(|text| text.parse().ok()).unwrap_or(literal))
            }
            TokenTree::Group(group) => {
                let inner = self.unmark_tokens(group.stream());
                TokenTree::Group(Group::new(group.delimiter(), inner))
            }
            TokenTree::Punct(_) => tree,
        });
        unmarked.collect()
    }

    /// The name in Rust for one with marks in it.
    fn unmark_name(&self, name: &str) -> Option<String> {
        let mut out = String::new();
        let mut rest = name;
        while let Some((before, mark, behind)) = split_at_mark(rest) {
            let rust = self.names.get(mark.index)?;
            rest = behind;
            let (proto, became) = match mark.stands_in {
                TYPE_MARK if rest.starts_with("View") || rest.starts_with("OwnedView") => {
                    (rust.proto.clone(), &rust.view)
                }
                TYPE_MARK => (rust.proto.clone(), &rust.name),
                MODULE_MARK => (module_case(&rust.proto), &rust.module),
                // Constants are hidden: they only have to differ.
                _ => {
                    out.push_str(&format!("{before}_{}", mark.index));
                    continue;
                }
            };
            out.push_str(before.strip_suffix(&proto).unwrap_or(before));
            out.push_str(became);
        }
        out.push_str(rest);
        (rest.len() < name.len()).then_some(out)
    }

    fn mark_package(
        &mut self,
        files: &mut [FileDescriptorProto],
        package: &str,
        packages: &BTreeSet<String>,
    ) {
        let special = {
            let mut scope = Scope {
                packages: schema::children(package, packages.iter().map(String::as_str)).collect(),
                ..Scope::default()
            };
            for file in files.iter().filter(|file| schema::package(file) == package) {
                scope.messages.extend(names_of(&file.message_type));
                scope.enums.extend(enum_names_of(&file.enum_type));
            }
            self.index(scope.special())
        };
        let scope = match package {
            "" => String::new(),
            package => format!(".{package}"),
        };
        let files = files.iter_mut();
        for file in files.filter(|file| schema::package(file) == package) {
            for message in &mut file.message_type {
                self.mark_message(message, &special, &scope, &scope);
            }
            for enumeration in &mut file.enum_type {
                self.mark_name(&mut enumeration.name, &special, &scope, &scope);
            }
        }
    }

    /// Keeps what a scope's special types are called, and says where.
    fn index(&mut self, special: BTreeMap<String, RustName>) -> BTreeMap<String, usize> {
        let mut indices = BTreeMap::new();
        for (name, rust) in special {
            indices.insert(name, self.names.len());
            self.names.push(rust);
        }
        indices
    }

    fn mark_message(
        &mut self,
        message: &mut DescriptorProto,
        special: &BTreeMap<String, usize>,
        scope: &str,
        marked_scope: &str,
    ) {
        let (full, marked) = self.mark_name(&mut message.name, special, scope, marked_scope);
        let nested = Scope {
            messages: names_of(&message.nested_type).collect(),
            enums: enum_names_of(&message.enum_type).collect(),
            ..Scope::default()
        };
        let special = self.index(nested.special());
        for nested in &mut message.nested_type {
            self.mark_message(nested, &special, &full, &marked);
        }
        for enumeration in &mut message.enum_type {
            self.mark_name(&mut enumeration.name, &special, &full, &marked);
        }
    }

    fn mark_name(
        &mut self,
        name: &mut Option<String>,
        special: &BTreeMap<String, usize>,
        scope: &str,
        marked_scope: &str,
    ) -> (String, String) {
        let name = name.get_or_insert_default();
        let full = format!("{scope}.{name}");
        if let Some(index) = special.get(name) {
            name.push_str(&format!("{TYPE_MARK}{index}z"));
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
}

fn names_of(messages: &[DescriptorProto]) -> impl Iterator<Item = &str> {
    let names = messages.iter().map(|message| message.name.as_deref());
    names.map(Option::unwrap_or_default)
}

fn enum_names_of(enums: &[EnumDescriptorProto]) -> impl Iterator<Item = &str> {
    let names = enums.iter().map(|enumeration| enumeration.name.as_deref());
    names.map(Option::unwrap_or_default)
}

/// A mark in a text.
struct Mark {
    /// The one of the three ways of writing it.
    stands_in: &'static str,
    index: usize,
}

/// What comes before the first mark, the mark, and what comes behind it.
fn split_at_mark(text: &str) -> Option<(&str, Mark, &str)> {
    let ways = [TYPE_MARK, MODULE_MARK, CONST_MARK].into_iter();
    let found = ways.filter_map(|way| text.find(way).map(|at| (at, way)));
    let (at, stands_in) = found.min()?;
    let (before, rest) = text.split_at_checked(at)?;
    let (index, behind) = rest.strip_prefix(stands_in)?.split_once(['z', 'Z'])?;
    let index = index.parse().ok()?;
    Some((before, Mark { stands_in, index }, behind))
}

/// The text of a literal, in which types have the names of the .proto file.
fn without_marks(literal: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = literal;
    while let Some((before, _, behind)) = split_at_mark(rest) {
        out.push_str(before);
        rest = behind;
    }
    out.push_str(rest);
    (rest.len() < literal.len()).then_some(out)
}

/// Renames the first names of paths, where they name a type, a trait or a module.
struct Paths<'a> {
    rename: &'a dyn Fn(&str) -> Option<syn::Path>,
}

impl VisitMut for Paths<'_> {
    fn visit_path_mut(&mut self, path: &mut syn::Path) {
        visit_mut::visit_path_mut(self, path);
        let first = path
            .segments
            .first()
            .filter(|_| path.leading_colon.is_none());
        let Some(first) = first else { return };
        let Some(mut renamed) = (self.rename)(&first.ident.to_string()) else {
            return;
        };
        if let Some(last) = renamed.segments.last_mut() {
            last.arguments = first.arguments.clone();
        }
        renamed
            .segments
            .extend(path.segments.iter().skip(1).cloned());
        *path = renamed;
    }

    fn visit_expr_path_mut(&mut self, path: &mut syn::ExprPath) {
        // One name alone is that of a value.
        if path.qself.is_some() || path.path.segments.len() > 1 {
            let before = path.path.segments.len();
            visit_mut::visit_expr_path_mut(self, path);
            move_position(&mut path.qself, before, path.path.segments.len());
        }
    }

    fn visit_type_path_mut(&mut self, path: &mut syn::TypePath) {
        let before = path.path.segments.len();
        visit_mut::visit_type_path_mut(self, path);
        move_position(&mut path.qself, before, path.path.segments.len());
    }
}

/// In `<Type as Trait>::name`, where the trait ends after it got longer.
fn move_position(qself: &mut Option<syn::QSelf>, before: usize, now: usize) {
    if let Some(qself) = qself
        && qself.position > 0
    {
        qself.position += now - before;
    }
}

/// Renames type parameters, each within the function that declares it.
struct TypeParameters<'a> {
    names: &'a [&'a str],
}

impl TypeParameters<'_> {
    /// Renames them where they are declared, and says how for where they are used.
    fn declared(&self, generics: &mut syn::Generics) -> Vec<Ident> {
        let mut declared = Vec::new();
        for parameter in generics.type_params_mut() {
            if self.names.iter().any(|name| parameter.ident == name) {
                declared.push(parameter.ident.clone());
                parameter.ident = renamed(&parameter.ident);
            }
        }
        declared
    }
}

fn renamed(parameter: &Ident) -> Ident {
    Ident::new(&format!("__{parameter}"), Span::call_site())
}

fn rename_of(declared: &[Ident]) -> impl Fn(&str) -> Option<syn::Path> {
    |name| {
        let parameter = declared.iter().find(|declared| *declared == name)?;
        Some(renamed(parameter).into())
    }
}

impl VisitMut for TypeParameters<'_> {
    fn visit_impl_item_fn_mut(&mut self, function: &mut syn::ImplItemFn) {
        visit_mut::visit_impl_item_fn_mut(self, function);
        let declared = self.declared(&mut function.sig.generics);
        if !declared.is_empty() {
            let rename = &rename_of(&declared);
            Paths { rename }.visit_impl_item_fn_mut(function);
        }
    }

    fn visit_item_fn_mut(&mut self, function: &mut syn::ItemFn) {
        visit_mut::visit_item_fn_mut(self, function);
        let declared = self.declared(&mut function.sig.generics);
        if !declared.is_empty() {
            let rename = &rename_of(&declared);
            Paths { rename }.visit_item_fn_mut(function);
        }
    }
}
