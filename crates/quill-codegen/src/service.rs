//! A service of a .proto file with its names in Rust.

use buffa_codegen::context::CodeGenContext;
use buffa_codegen::idents::rust_path_to_tokens;
use buffa_descriptor::generated::descriptor::method_options::IdempotencyLevel;
use buffa_descriptor::generated::descriptor::{
    FileDescriptorProto, MethodDescriptorProto, ServiceDescriptorProto,
};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use crate::docs;
use crate::error::Error;
use crate::names::{Names, shouty_snake_case, snake_case, type_case};
use crate::options::{RpcOptions, ServiceAnnotations};
use crate::schema::{self, source_info};

/// Field numbers of descriptors, of which paths in `SourceCodeInfo` are made.
const FILE_SERVICE: i32 = 6;
const SERVICE_METHOD: i32 = 2;

/// A service, ready to be written.
#[derive(Debug)]
pub(crate) struct Service {
    /// `package.Service`.
    pub(crate) full_name: String,
    /// The trait that a user implements.
    pub(crate) definition: Ident,
    pub(crate) server: Ident,
    /// The server's type parameter: the type that implements the trait.
    pub(crate) parameter: Ident,
    pub(crate) client: Ident,
    /// The module of the methods' descriptors.
    pub(crate) module: Ident,
    pub(crate) docs: TokenStream,
    pub(crate) deprecated: bool,
    pub(crate) methods: Vec<Method>,
}

/// A method, ready to be written.
#[derive(Debug)]
pub(crate) struct Method {
    pub(crate) proto_name: String,
    /// Its name in the trait, and in the client, whose own names go before.
    pub(crate) name: Ident,
    pub(crate) client_name: Ident,
    /// Its descriptor in the service's module.
    pub(crate) descriptor: Ident,
    pub(crate) input: TokenStream,
    pub(crate) output: TokenStream,
    /// The view that the handler takes in place of the message, if it is to.
    pub(crate) input_view: Option<TokenStream>,
    pub(crate) client_streams: bool,
    pub(crate) server_streams: bool,
    pub(crate) idempotency: IdempotencyLevel,
    pub(crate) cache_ttl_ms: Option<i64>,
    pub(crate) docs: TokenStream,
    pub(crate) deprecated: bool,
}

/// What reading services needs to know, and what it finds out.
pub(crate) struct Reader<'a> {
    pub(crate) types: &'a CodeGenContext<'a>,
    /// Full method names (`package.Service.Method`) whose handlers take views.
    pub(crate) views: &'a [String],
    /// The names taken at the package's root in Rust.
    pub(crate) names: &'a mut Names,
    pub(crate) warnings: &'a mut Vec<String>,
}

impl Reader<'_> {
    /// The services of `file`.
    pub(crate) fn services(&mut self, file: &FileDescriptorProto) -> Result<Vec<Service>, Error> {
        let indexed = file.service.iter().zip(0..);
        indexed
            .map(|(service, index)| self.service(file, service, index))
            .collect()
    }

    fn service(
        &mut self,
        file: &FileDescriptorProto,
        service: &ServiceDescriptorProto,
        index: i32,
    ) -> Result<Service, Error> {
        let proto_name = service.name.clone().unwrap_or_default();
        let full_name = match schema::package(file) {
            "" => proto_name.clone(),
            package => format!("{package}.{proto_name}"),
        };
        let options = service.options.as_option();
        let annotations =
            options.map_or(Ok(ServiceAnnotations::default()), ServiceAnnotations::read);
        let annotations = annotations.map_err(|what| {
            let file = schema::name(file);
            Error::new(format!(
                "{file}: service {full_name}: (quill.service) {what}"
            ))
        })?;
        if annotations.path_prefix.is_some() {
            self.warnings.push(format!(
                "service {full_name}: path_prefix is not followed; its paths are \
                 /{full_name}/METHOD"
            ));
        }

        let base = type_case(&proto_name);
        let stem = match base.strip_suffix("Service") {
            None | Some("") => base.as_str(),
            Some(stem) => stem,
        };
        let role = |role: &str| [format!("{stem}{role}"), format!("{base}{role}")];
        let definition = self.names.claim_first(&[base.clone(), proto_name.clone()]);
        let server = self.names.claim_first(&role("Server"));
        let client = self.names.claim_first(&role("Client"));
        let module = self.names.claim(&snake_case(&proto_name));
        let path = [FILE_SERVICE, index];
        Ok(Service {
            definition,
            server,
            parameter: format_ident!("{}", if self.names.has("S") { "__S" } else { "S" }),
            client,
            module,
            docs: docs_at(file, &path),
            deprecated: options.is_some_and(|options| options.deprecated == Some(true)),
            methods: self.methods(file, service, &full_name, path)?,
            full_name,
        })
    }

    fn methods(
        &mut self,
        file: &FileDescriptorProto,
        service: &ServiceDescriptorProto,
        full_name: &str,
        [service_field, service_index]: [i32; 2],
    ) -> Result<Vec<Method>, Error> {
        let mut names = Names::default();
        let mut client_names = Names::from_iter(["new", "connect", "clone"]);
        let mut descriptors = Names::from_iter(["NAME"]);
        let mut methods = Vec::new();
        for (method, index) in service.method.iter().zip(0..) {
            let proto_name = method.name.clone().unwrap_or_default();
            let full_name = format!("{full_name}.{proto_name}");
            let path = [service_field, service_index, SERVICE_METHOD, index];
            let options = method_options(file, method, &full_name)?;
            let idempotency = idempotency(method, &options);
            let snake = snake_case(&proto_name);
            methods.push(Method {
                name: names.claim(&snake),
                client_name: client_names.claim(&snake),
                descriptor: descriptors.claim(&shouty_snake_case(&proto_name)),
                input: self.rust_type(file, method.input_type.as_deref())?,
                output: self.rust_type(file, method.output_type.as_deref())?,
                input_view: self.view(file, method, &full_name)?,
                client_streams: method.client_streaming.unwrap_or(false),
                server_streams: method.server_streaming.unwrap_or(false),
                cache_ttl_ms: self.cache_ttl_ms(&options, idempotency, &full_name),
                idempotency,
                docs: docs_at(file, &path),
                deprecated: is_deprecated(method),
                proto_name,
            });
        }
        Ok(methods)
    }

    fn cache_ttl_ms(
        &mut self,
        options: &RpcOptions,
        idempotency: IdempotencyLevel,
        full_name: &str,
    ) -> Option<i64> {
        let ttl = options.cache_ttl_ms?;
        if idempotency == IdempotencyLevel::NO_SIDE_EFFECTS {
            return Some(ttl);
        }
        self.warnings.push(format!(
            "method {full_name}: cache_ttl_ms does nothing without \
             `option idempotency_level = NO_SIDE_EFFECTS`"
        ));
        None
    }

    fn rust_type(
        &self,
        file: &FileDescriptorProto,
        proto_type: Option<&str>,
    ) -> Result<TokenStream, Error> {
        let name = proto_type.unwrap_or_default();
        let path = self
            .types
            .rust_type_relative(name, schema::package(file), 0)
            .ok_or_else(|| unknown_type(file, name))?;
        Ok(rust_path_to_tokens(&path))
    }

    /// The owned view of a method's input, where the handler is to take it.
    fn view(
        &self,
        file: &FileDescriptorProto,
        method: &MethodDescriptorProto,
        full_name: &str,
    ) -> Result<Option<TokenStream>, Error> {
        if !self.views.iter().any(|view| view == full_name) {
            return Ok(None);
        }
        let name = method.input_type.as_deref().unwrap_or_default();
        let path = self
            .types
            .rust_type_relative_split(name, schema::package(file), 0)
            .ok_or_else(|| unknown_type(file, name))?;
        let within = format!("{}OwnedView", path.within_package);
        let within = rust_path_to_tokens(&within);
        Ok(Some(match path.to_package.as_str() {
            "" => quote! { __buffa::view::#within },
            package => {
                let package = rust_path_to_tokens(package);
                quote! { #package::__buffa::view::#within }
            }
        }))
    }
}

impl Method {
    /// Its `MethodKind`.
    pub(crate) fn kind(&self) -> Ident {
        format_ident!(
            "{}",
            match (self.client_streams, self.server_streams) {
                (false, false) => "Unary",
                (true, false) => "ClientStreaming",
                (false, true) => "ServerStreaming",
                (true, true) => "BidiStreaming",
            }
        )
    }

    /// The function that registers or calls it.
    pub(crate) fn function(&self) -> Ident {
        format_ident!(
            "{}",
            match (self.client_streams, self.server_streams) {
                (false, false) => "unary",
                (true, false) => "client_streaming",
                (false, true) => "server_streaming",
                (true, true) => "bidi_streaming",
            }
        )
    }
}

/// The `(quill.rpc)` option of a method.
fn method_options(
    file: &FileDescriptorProto,
    method: &MethodDescriptorProto,
    full_name: &str,
) -> Result<RpcOptions, Error> {
    let options = method.options.as_option();
    options
        .map_or(Ok(RpcOptions::default()), RpcOptions::read)
        .map_err(|what| {
            let file = schema::name(file);
            Error::new(format!("{file}: method {full_name}: (quill.rpc) {what}"))
        })
}

/// The level that protobuf knows goes before Quill's own option.
fn idempotency(method: &MethodDescriptorProto, options: &RpcOptions) -> IdempotencyLevel {
    let level = method.options.as_option();
    let level = level.and_then(|options| options.idempotency_level);
    match level.unwrap_or_default() {
        IdempotencyLevel::IDEMPOTENCY_UNKNOWN if options.idempotent => IdempotencyLevel::IDEMPOTENT,
        level => level,
    }
}

fn is_deprecated(method: &MethodDescriptorProto) -> bool {
    let options = method.options.as_option();
    options.is_some_and(|options| options.deprecated == Some(true))
}

fn docs_at(file: &FileDescriptorProto, path: &[i32]) -> TokenStream {
    docs::attributes(source_info(file).and_then(|info| docs::comment(info, path)))
}

fn unknown_type(file: &FileDescriptorProto, name: &str) -> Error {
    let file = schema::name(file);
    Error::new(format!("{file} uses {name}, which no file defines"))
}
