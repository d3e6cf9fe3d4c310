//! What the ProtoJSON mapping asks and the message library's code does not do:
//! an `Any` of an unknown type is an error, and so is a field that comes twice;
//! and what serde would read by itself is read by the runtime where it knows more.

use std::collections::BTreeSet;

use proc_macro2::{Literal, TokenStream, TokenTree};
use quote::ToTokens;
use syn::visit_mut::{self, VisitMut};
use syn::{Arm, Attribute, Expr, Fields, Ident, ImplItemFn, Item, ItemImpl, ItemStruct, Pat, Stmt};

/// How the library's code names an `Any`.
const ANY: &str = ":: buffa_types :: google :: protobuf :: Any";

/// The module of the enums that oneofs become.
const ONEOFS: &str = "oneof";

/// Adds these rules to a package's code; `rt` is the runtime's module.
pub(crate) fn apply(file: &mut syn::File, rt: &TokenStream) {
    FieldsOnce.visit_file_mut(file);
    ElementRules.visit_file_mut(file);
    let mut oneofs = BTreeSet::new();
    find_oneofs(&file.items, &mut Vec::new(), &mut oneofs);
    AnyRule { oneofs, rt }.add(&mut file.items);
}

/// Where a message is read by hand-written code rather than by serde's own,
/// refuses a field that was read before, by whichever of its names.
struct FieldsOnce;

impl VisitMut for FieldsOnce {
    fn visit_arm_mut(&mut self, arm: &mut Arm) {
        visit_mut::visit_arm_mut(self, arm);
        let Some(name) = first_name(&arm.pat) else {
            return;
        };
        let Expr::Block(body) = &mut *arm.body else {
            return;
        };
        let Some(variable) = body.block.stmts.first().and_then(assigned) else {
            return;
        };
        let check = syn::parse_quote! {
            if #variable.is_some() {
                return ::core::result::Result::Err(::serde::de::Error::duplicate_field(#name));
            }
        };
        body.block.stmts.insert(0, check);
    }
}

/// The first of the names that a pattern matches.
fn first_name(pattern: &Pat) -> Option<syn::LitStr> {
    match pattern {
        Pat::Or(names) => first_name(names.cases.first()?),
        Pat::Lit(name) => match &name.lit {
            syn::Lit::Str(name) => Some(name.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// The variable of a field that a statement assigns to.
fn assigned(statement: &Stmt) -> Option<Ident> {
    let Stmt::Expr(Expr::Assign(assignment), _) = statement else {
        return None;
    };
    let Expr::Path(path) = &*assignment.left else {
        return None;
    };
    let variable = path.path.get_ident()?;
    variable
        .to_string()
        .starts_with("__f_")
        .then(|| variable.clone())
}

/// The well-known types of which a message itself does not know how it is read:
/// the runtime does.
const READ_BY_RUNTIME: [&str; 11] = [
    "Any",
    "BytesValue",
    "DoubleValue",
    "FloatValue",
    "Int32Value",
    "Int64Value",
    "ListValue",
    "Struct",
    "UInt32Value",
    "UInt64Value",
    "Value",
];

/// Has what the library reads by serde alone read by a helper, where the type
/// needs one: lists of 32-bit integers, maps, and some well-known types.
struct ElementRules;

impl VisitMut for ElementRules {
    fn visit_field_mut(&mut self, field: &mut syn::Field) {
        if let Some(helper) = helper_of(&field.ty) {
            let from = "::buffa::json_helpers::null_as_default";
            let to = format!("::buffa::json_helpers::{helper}");
            for attribute in &mut field.attrs {
                if let syn::Meta::List(list) = &mut attribute.meta {
                    list.tokens = with_literal(list.tokens.clone(), from, &to);
                }
            }
        }
        let is_read = |part: &str| field.attrs.iter().any(|a| text(a).contains(part));
        if holds_message(&field.ty) && is_read("serde") && !is_read("with =") {
            field.attrs.push(syn::parse_quote! {
                #[serde(deserialize_with = "::buffa::json_helpers::message_field")]
            });
        }
    }

    fn visit_impl_item_fn_mut(&mut self, function: &mut ImplItemFn) {
        visit_mut::visit_impl_item_fn_mut(self, function);
        let library: syn::Block = syn::parse_quote!({ ::buffa::json_helpers::null_as_default(d) });
        if function.sig.ident == "deserialize"
            && text(&library) == text(&function.block)
            && let Some(helper) = helper_of(&function.sig.output)
            && let Ok(call) = syn::parse_str(&format!("{{ ::buffa::json_helpers::{helper}(d) }}"))
        {
            function.block = call;
        }
    }

    fn visit_expr_method_call_mut(&mut self, call: &mut syn::ExprMethodCall) {
        visit_mut::visit_expr_method_call_mut(self, call);
        if call.method == "next_value" && call.turbofish.as_ref().is_some_and(holds_message) {
            let map = &call.receiver;
            *call = syn::parse_quote! {
                #map.next_value_seed(::buffa::json_helpers::MessageFieldSeed::default())
            };
        }
    }
}

/// Whether a field's type is one message of a type that the runtime reads.
fn holds_message(field: &impl ToTokens) -> bool {
    let code = text(field);
    code.contains("MessageField <") && READ_BY_RUNTIME.iter().any(|name| names(&code, name))
}

/// The helper for a type of field that the library would read by serde alone.
fn helper_of(field: &impl ToTokens) -> Option<&'static str> {
    let code = text(field);
    let has = |part: &str| code.contains(part);
    if has("HashMap <") {
        return Some("proto_map::deserialize");
    }
    let is_special =
        has("< i32 >") || has("< u32 >") || READ_BY_RUNTIME.iter().any(|name| names(&code, name));
    (has("Vec <") && is_special).then_some("proto_seq::deserialize")
}

/// Whether code names this well-known type.
fn names(code: &str, name: &str) -> bool {
    let path = format!(":: buffa_types :: google :: protobuf :: {name} ");
    format!("{code} ").contains(&path)
}

/// The tokens with the string `from` replaced by the string `to`.
fn with_literal(tokens: TokenStream, from: &str, to: &str) -> TokenStream {
    let quoted = format!("{from:?}");
    let replaced = tokens.into_iter().map(|tree| match tree {
        TokenTree::Literal(literal) if literal.to_string() == quoted => {
            TokenTree::Literal(Literal::string(to))
        }
        tree => tree,
    });
    replaced.collect()
}

/// The enums of oneofs that an `Any` is a member of, by their paths below
/// [`ONEOFS`].
fn find_oneofs(items: &[Item], path: &mut Vec<String>, found: &mut BTreeSet<String>) {
    for item in items {
        match item {
            Item::Mod(module) => {
                let Some((_, items)) = &module.content else {
                    continue;
                };
                path.push(module.ident.to_string());
                find_oneofs(items, path, found);
                path.pop();
            }
            Item::Enum(item)
                if item
                    .variants
                    .iter()
                    .any(|variant| names_any(&variant.fields)) =>
            {
                path.push(item.ident.to_string());
                let name = path.join(" :: ");
                found.extend(below_oneofs(&name).map(str::to_owned));
                path.pop();
            }
            _ => {}
        }
    }
}

/// What follows the module of oneofs in a path, up to where the path ends.
fn below_oneofs(path: &str) -> Option<&str> {
    let (_, below) = path.split_once(&format!("{ONEOFS} :: "))?;
    below.split(" >").next()
}

fn names_any(tokens: &impl ToTokens) -> bool {
    let code = text(tokens);
    let mut ends = code.split(ANY).skip(1);
    ends.any(|rest| !rest.trim_start().starts_with("::"))
}

/// Has messages with an `Any` check its type on the way to JSON and back.
struct AnyRule<'a> {
    oneofs: BTreeSet<String>,
    rt: &'a TokenStream,
}

impl AnyRule<'_> {
    fn add(&self, items: &mut Vec<Item>) {
        let mut added = Vec::new();
        for item in items.iter_mut() {
            match item {
                Item::Mod(module) => {
                    if let Some((_, items)) = &mut module.content {
                        self.add(items);
                    }
                }
                Item::Enum(item) if item.variants.iter().any(|v| names_any(&v.fields)) => {
                    added.push(self.check_of_oneof(item));
                }
                Item::Struct(item) if derives(&item.attrs, "Serialize") => {
                    added.extend(self.message(item));
                }
                _ => {}
            }
        }
        for item in items.iter_mut() {
            let Item::Impl(item) = item else { continue };
            if is_deserialize(item) && added.iter().any(|message| is_same_type(message, item)) {
                self.check_what_was_read(item);
            }
        }
        items.extend(added.into_iter().map(Item::Impl));
    }

    fn check_of_oneof(&self, item: &syn::ItemEnum) -> ItemImpl {
        let (rt, name) = (self.rt, &item.ident);
        let members = item.variants.iter().filter(|v| names_any(&v.fields));
        let members = members.map(|variant| &variant.ident);
        syn::parse_quote! {
            impl #rt::HoldsAny for #name {
                fn check_types(
                    &self,
                ) -> ::core::result::Result<(), ::buffa::alloc::string::String> {
                    match self {
                        #(Self::#members(any) => #rt::HoldsAny::check_types(any),)*
                        #[allow(unreachable_patterns)]
                        _ => ::core::result::Result::Ok(()),
                    }
                }
            }
        }
    }

    /// What a message with an `Any` gets: the check, and serde's traits around
    /// what serde derives, which `remote` makes functions of the message.
    fn message(&self, item: &mut ItemStruct) -> Vec<ItemImpl> {
        let fields = match &item.fields {
            Fields::Named(fields) => fields.named.iter(),
            _ => return Vec::new(),
        };
        let holding = fields.filter(|field| self.holds_any(&field.ty));
        let holding: Vec<_> = holding.filter_map(|field| field.ident.clone()).collect();
        if holding.is_empty() {
            return Vec::new();
        }
        let (rt, name) = (self.rt, &item.ident);
        item.attrs
            .push(syn::parse_quote!(#[serde(remote = "Self")]));
        let mut impls = vec![
            syn::parse_quote! {
                impl #rt::HoldsAny for #name {
                    fn check_types(
                        &self,
                    ) -> ::core::result::Result<(), ::buffa::alloc::string::String> {
                        #(#rt::HoldsAny::check_types(&self.#holding)?;)*
                        ::core::result::Result::Ok(())
                    }
                }
            },
            syn::parse_quote! {
                impl ::serde::Serialize for #name {
                    fn serialize<__S: ::serde::Serializer>(
                        &self,
                        serializer: __S,
                    ) -> ::core::result::Result<__S::Ok, __S::Error> {
                        #rt::HoldsAny::check_types(self)
                            .map_err(<__S::Error as ::serde::ser::Error>::custom)?;
                        #name::serialize(self, serializer)
                    }
                }
            },
        ];
        if derives(&item.attrs, "Deserialize") {
            let mut read = syn::parse_quote! {
                impl<'de> ::serde::Deserialize<'de> for #name {
                    fn deserialize<__D: ::serde::Deserializer<'de>>(
                        deserializer: __D,
                    ) -> ::core::result::Result<Self, __D::Error> {
                        #name::deserialize(deserializer)
                    }
                }
            };
            self.check_what_was_read(&mut read);
            impls.push(read);
        }
        impls
    }

    fn holds_any(&self, field: &syn::Type) -> bool {
        names_any(field)
            || below_oneofs(&text(field)).is_some_and(|oneof| self.oneofs.contains(oneof))
    }

    /// Puts the check behind what `deserialize` does.
    fn check_what_was_read(&self, item: &mut ItemImpl) {
        let rt = self.rt;
        for function in &mut item.items {
            let syn::ImplItem::Fn(function) = function else {
                continue;
            };
            let read = &function.block;
            function.block = syn::parse_quote! {{
                let read: ::core::result::Result<Self, _> = #read;
                let message = read?;
                match #rt::HoldsAny::check_types(&message) {
                    ::core::result::Result::Ok(()) => ::core::result::Result::Ok(message),
                    ::core::result::Result::Err(error) => {
                        ::core::result::Result::Err(::serde::de::Error::custom(error))
                    }
                }
            }};
        }
    }
}

/// Code as text, with a space around each token and no comma before an end.
fn text(code: &impl ToTokens) -> String {
    let text = code.to_token_stream().to_string();
    text.replace(" , >", " >").replace(" ,)", ")")
}

fn derives(attributes: &[Attribute], name: &str) -> bool {
    attributes.iter().any(|attribute| {
        let is_derive = attribute.path().is_ident("derive");
        is_derive && text(attribute).contains(&format!(":: serde :: {name}"))
    })
}

fn is_deserialize(item: &ItemImpl) -> bool {
    let path = item.trait_.as_ref().map(|(_, path, _)| path);
    let last = path.and_then(|path| path.segments.last());
    last.is_some_and(|segment| segment.ident == "Deserialize")
}

fn is_same_type(one: &ItemImpl, other: &ItemImpl) -> bool {
    text(&one.self_ty) == text(&other.self_ty)
}
