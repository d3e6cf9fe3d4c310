//! One package's Rust file.

use buffa_codegen::CodeGenWarning;
use buffa_codegen::context::CodeGenContext;
use buffa_codegen::{CodeGenConfig, GeneratedFile};
use buffa_descriptor::generated::descriptor::FileDescriptorProto;
use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens as _, quote};
use syn::ext::IdentExt as _;

use crate::error::Error;
use crate::json_rules;
use crate::names::Names;
use crate::retarget::Retarget;
use crate::rust_names::{PRELUDE, PRIMITIVES};
use crate::schema::{self, Schema};
use crate::service::Reader;
use crate::shadow::Shadowed;
use crate::unnameable;
use crate::write::{self, Emit};

/// A generated file: its name (`echo.v1.rs`), its package and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PackageFile {
    /// `<package>.rs`; `_.rs` for files without a package.
    pub name: String,
    /// The package; empty for files without one.
    pub package: String,
    /// Rust items, to be `include!`d in a module.
    pub content: String,
}

/// How code is generated, whatever it is generated from.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) runtime: String,
    pub(crate) emit: Emit,
    pub(crate) extern_paths: Vec<(String, String)>,
    pub(crate) views: Vec<String>,
}

/// Generates the packages of `schema`; the second list warns of what has no effect.
pub(crate) fn generate(
    schema: &Schema,
    settings: &Settings,
) -> Result<(Vec<PackageFile>, Vec<String>), Error> {
    let retarget = Retarget::new(&settings.runtime)?;
    check_views(schema, &settings.views)?;
    let wanted = schema.files_to_generate(|name| settings.provides(name));
    unnameable::check(schema, &wanted)?;
    let mut files = schema.files.clone();
    let shadowed = Shadowed::mark(&mut files);
    let config = settings.config(&shadowed);
    let (generated, notes) = buffa_codegen::generate_with_diagnostics(&files, &wanted, &config)
        .map_err(|error| Error::new(error.to_string()))?;
    // A field whose short accessor on a view is missing can be read all the same;
    // nobody should rename a field for that, so it is no warning.
    let notes = notes
        .iter()
        .filter(|note| !matches!(note, CodeGenWarning::OwnedViewAccessorSuppressed { .. }));
    let mut warnings: Vec<String> = notes.map(ToString::to_string).collect();
    let types = CodeGenContext::for_generate(&files, &wanted, &config);
    let mut packages = Vec::new();
    for messages in generated {
        let in_package = |file: &&FileDescriptorProto| {
            schema::package(file) == messages.package
                && wanted.iter().any(|name| name == schema::name(file))
        };
        let package = Package {
            schema,
            files: files.iter().filter(in_package).collect(),
            types: &types,
            shadowed: &shadowed,
            retarget: &retarget,
            settings,
        };
        packages.push(package.file(&messages, &mut warnings)?);
    }
    Ok((packages, warnings))
}

impl Settings {
    /// Whether the type `name` (with a leading dot) comes from elsewhere.
    fn provides(&self, name: &str) -> bool {
        self.extern_paths.iter().any(|(proto, _)| {
            name.strip_prefix(proto.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    }

    fn config(&self, shadowed: &Shadowed) -> CodeGenConfig {
        let mut config = CodeGenConfig::default();
        config.file_per_package = true;
        config.generate_json = true;
        config.generate_views = true;
        let paths = self.extern_paths.iter();
        let paths = paths.map(|(proto, rust)| (shadowed.name(proto).to_owned(), rust.clone()));
        config.extern_paths = paths.collect();
        config
    }
}

/// A name that no method has is a mistake, not a wish without effect.
fn check_views(schema: &Schema, views: &[String]) -> Result<(), Error> {
    for view in views {
        let defined = schema.files.iter().any(|file| {
            let package = schema::package(file);
            file.service.iter().any(|service| {
                let service_name = service.name.as_deref().unwrap_or_default();
                service.method.iter().any(|method| {
                    let method = method.name.as_deref().unwrap_or_default();
                    let full = format!("{package}.{service_name}.{method}");
                    full.trim_start_matches('.') == view
                })
            })
        });
        if !defined {
            return Err(Error::new(format!(
                "no method {view:?} to take a view in: write \"package.Service.Method\""
            )));
        }
    }
    Ok(())
}

/// A package on its way to a file.
struct Package<'a> {
    schema: &'a Schema,
    files: Vec<&'a FileDescriptorProto>,
    types: &'a CodeGenContext<'a>,
    shadowed: &'a Shadowed,
    retarget: &'a Retarget,
    settings: &'a Settings,
}

impl Package<'_> {
    fn file(
        &self,
        messages: &GeneratedFile,
        warnings: &mut Vec<String>,
    ) -> Result<PackageFile, Error> {
        let broken = |error: syn::Error| {
            let package = &messages.package;
            Error::new(format!(
                "the code for package {package:?} is no Rust: {error}"
            ))
        };
        let mut parsed = syn::parse_file(&messages.content).map_err(broken)?;
        json_rules::apply(&mut parsed, self.retarget.runtime());
        let parsed = self.shadowed.unmark(parsed).map_err(broken)?;
        let mut names = names_of(&parsed, self.child_packages(&messages.package));
        let registers = parsed.items.iter().any(registers_types);
        let mut tokens = parsed.into_token_stream();
        tokens.extend(
            self.shadowed
                .unmark_tokens(self.services(&mut names, registers, warnings)?),
        );
        tokens.extend(self.descriptor_set());
        let mut file: syn::File = syn::parse2(self.retarget.rewrite(tokens)).map_err(broken)?;
        file.items.iter_mut().for_each(allow_lints);
        Ok(PackageFile {
            name: file_name(&messages.package),
            package: messages.package.clone(),
            content: format!("{}{}", self.header(), prettyplease::unparse(&file)),
        })
    }

    fn services(
        &self,
        names: &mut Names,
        registers: bool,
        warnings: &mut Vec<String>,
    ) -> Result<TokenStream, Error> {
        let mut reader = Reader {
            types: self.types,
            views: &self.settings.views,
            names,
            warnings,
        };
        let mut out = TokenStream::new();
        for file in &self.files {
            for service in reader.services(file)? {
                out.extend(write::items(
                    &service,
                    self.settings.emit,
                    registers,
                    self.retarget.runtime(),
                ));
            }
        }
        Ok(out)
    }

    fn descriptor_set(&self) -> TokenStream {
        let names: Vec<String> = self.file_names().map(str::to_owned).collect();
        let bytes = Literal::byte_string(&self.schema.descriptor_set_of(&names));
        quote! {
            /// The files of this package and all that they import, as a serialized
            /// `google.protobuf.FileDescriptorSet`: for reflection.
            pub const FILE_DESCRIPTOR_SET: &[u8] = #bytes;
        }
    }

    fn header(&self) -> String {
        let names: Vec<&str> = self.file_names().collect();
        format!(
            "// Generated by quill-codegen from {}. Do not edit.\n\n",
            names.join(", ")
        )
    }

    fn file_names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| schema::name(file))
    }

    /// The last names of the packages right below this one, which are modules beside its items.
    fn child_packages(&self, package: &str) -> impl Iterator<Item = &str> {
        schema::children(package, self.schema.files.iter().map(schema::package))
    }
}

/// `<package>.rs`, and `_.rs` for files without a package.
fn file_name(package: &str) -> String {
    match package {
        "" => "_.rs".to_owned(),
        package => format!("{package}.rs"),
    }
}

/// The names that are taken at the root of a package, and those of which the
/// code there needs that they stay what they are.
fn names_of<'a>(file: &syn::File, modules: impl Iterator<Item = &'a str>) -> Names {
    let items = file.items.iter().filter_map(|item| match item {
        syn::Item::Struct(item) => Some(item.ident.unraw().to_string()),
        syn::Item::Enum(item) => Some(item.ident.unraw().to_string()),
        syn::Item::Mod(item) => Some(item.ident.unraw().to_string()),
        syn::Item::Const(item) => Some(item.ident.unraw().to_string()),
        syn::Item::Use(item) => last_name(&item.tree),
        _ => None,
    });
    let mut names: Names = items.collect();
    names.extend(modules.chain(PRIMITIVES).chain(PRELUDE));
    names
}

/// Whether this is the module in which a package with messages names their types.
fn registers_types(item: &syn::Item) -> bool {
    let syn::Item::Mod(module) = item else {
        return false;
    };
    let mut items = module.content.iter().flat_map(|(_, items)| items);
    module.ident == "__buffa"
        && items
            .any(|item| matches!(item, syn::Item::Fn(item) if item.sig.ident == "register_types"))
}

fn last_name(tree: &syn::UseTree) -> Option<String> {
    match tree {
        syn::UseTree::Path(path) => last_name(&path.tree),
        syn::UseTree::Name(name) => Some(name.ident.unraw().to_string()),
        syn::UseTree::Rename(rename) => Some(rename.rename.unraw().to_string()),
        syn::UseTree::Glob(_) | syn::UseTree::Group(_) => None,
    }
}

/// Generated code is not the user's to lint; an included file can't say so
/// once for all of it.
fn allow_lints(item: &mut syn::Item) {
    let attributes = match item {
        syn::Item::Const(item) => &mut item.attrs,
        syn::Item::Enum(item) => &mut item.attrs,
        syn::Item::Fn(item) => &mut item.attrs,
        syn::Item::Impl(item) => &mut item.attrs,
        syn::Item::Mod(item) => &mut item.attrs,
        syn::Item::Static(item) => &mut item.attrs,
        syn::Item::Struct(item) => &mut item.attrs,
        syn::Item::Trait(item) => &mut item.attrs,
        syn::Item::Type(item) => &mut item.attrs,
        syn::Item::Use(item) => &mut item.attrs,
        _ => return,
    };
    attributes.push(syn::parse_quote! {
        #[allow(warnings, missing_docs, clippy::all, rustdoc::all)]
    });
}
