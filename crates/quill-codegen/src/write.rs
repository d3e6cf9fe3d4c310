//! Writes the Rust of a service.

use buffa_descriptor::generated::descriptor::method_options::IdempotencyLevel;
use proc_macro2::{Ident, TokenStream};
use quote::quote;

use crate::service::{Method, Service};

/// Which halves of a service are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emit {
    /// The trait, and what registers an implementation of it with a server.
    pub server: bool,
    /// The typed client.
    pub client: bool,
}

impl Emit {
    /// Both halves: the default.
    pub const ALL: Self = Self::new(true, true);
    /// The trait and the server.
    pub const SERVER: Self = Self::new(true, false);
    /// The client.
    pub const CLIENT: Self = Self::new(false, true);
    /// Neither: messages and descriptors only.
    pub const MESSAGES: Self = Self::new(false, false);

    const fn new(server: bool, client: bool) -> Self {
        Self { server, client }
    }
}

/// The items of `service`; `registers` says that the package has types to
/// register, and `rt` is the runtime's module.
pub(crate) fn items(
    service: &Service,
    emit: Emit,
    registers: bool,
    rt: &TokenStream,
) -> TokenStream {
    let register = registers.then(|| quote! { #rt::register_types(__buffa::register_types); });
    let mut out = TokenStream::new();
    if emit.server {
        out.extend(definition(service, rt));
        out.extend(server(service, register.as_ref(), rt));
    }
    if emit.client {
        out.extend(client(service, register.as_ref(), rt));
    }
    if emit.server || emit.client {
        out.extend(descriptors(service, rt));
    }
    out
}

/// The module with a static for each method.
fn descriptors(service: &Service, rt: &TokenStream) -> TokenStream {
    let Service {
        module, full_name, ..
    } = service;
    let docs = format!(" The methods of `{full_name}`, by which the runtime knows them.");
    let methods = service.methods.iter().map(|method| {
        let (name, kind) = (&method.descriptor, method.kind());
        let path = format!("/{full_name}/{}", method.proto_name);
        let docs = format!(" `{path}`");
        let idempotency = match method.idempotency {
            IdempotencyLevel::IDEMPOTENCY_UNKNOWN => None,
            IdempotencyLevel::NO_SIDE_EFFECTS => Some(quote!(NoSideEffects)),
            IdempotencyLevel::IDEMPOTENT => Some(quote!(Idempotent)),
        };
        let idempotency =
            idempotency.map(|level| quote! { .with_idempotency(#rt::Idempotency::#level) });
        let cache_ttl = method.cache_ttl_ms.map(|ttl| {
            let ttl = ttl.unsigned_abs();
            quote! { .with_cache_ttl(::core::time::Duration::from_millis(#ttl)) }
        });
        quote! {
            #[doc = #docs]
            pub static #name: #rt::Method =
                #rt::Method::new(#path, #rt::MethodKind::#kind) #idempotency #cache_ttl;
        }
    });
    quote! {
        #[doc = #docs]
        pub mod #module {
            /// The service's full name.
            pub const NAME: &str = #full_name;
            #(#methods)*
        }
    }
}

/// The trait that a user implements.
fn definition(service: &Service, rt: &TokenStream) -> TokenStream {
    let Service {
        definition,
        docs,
        full_name,
        ..
    } = service;
    let about = paragraph(
        docs,
        &format!(
            "The service `{full_name}`. A method that is not implemented answers `unimplemented`."
        ),
    );
    let methods = service.methods.iter().map(|method| {
        let Method { name, docs, .. } = method;
        let deprecated = deprecated(method.deprecated);
        let request = received(method, rt);
        let (output, answer) = (&method.output, answered(method, rt));
        let message = format!("{full_name}/{} is not implemented", method.proto_name);
        let nothing = if method.server_streams {
            quote! { #rt::Streaming<#output> }
        } else {
            quote! { #output }
        };
        quote! {
            #docs
            #deprecated
            fn #name(
                &self,
                request: #rt::Request<#request>,
            ) -> impl ::core::future::Future<
                Output = ::core::result::Result<#rt::Response<#answer>, #rt::Error>,
            > + ::core::marker::Send {
                ::core::mem::drop(request);
                let error = #rt::Error::unimplemented(#message);
                ::core::future::ready(::core::result::Result::<#rt::Response<#nothing>, _>::Err(error))
            }
        }
    });
    quote! {
        #docs
        #about
        pub trait #definition: ::core::marker::Send + ::core::marker::Sync + 'static {
            #(#methods)*
        }
    }
}

/// What registers an implementation with a server, and what may be in an `Any`.
fn server(service: &Service, register: Option<&TokenStream>, rt: &TokenStream) -> TokenStream {
    let Service {
        definition,
        server,
        module,
        parameter,
        ..
    } = service;
    let docs = format!(" Serves an implementation of [`{definition}`].");
    let methods = service.methods.iter().map(|method| {
        let (function, descriptor) = (method.function(), &method.descriptor);
        let handler = handler(service, method, rt);
        let codec = request_codec(method, rt);
        quote! {
            let service = ::std::sync::Arc::clone(&self.0);
            router.#function(&#module::#descriptor, #codec, #rt::BuffaCodec, #handler);
        }
    });
    let router = if service.methods.is_empty() {
        quote!(_)
    } else {
        quote!(router)
    };
    quote! {
        #[doc = #docs]
        #[derive(Debug)]
        pub struct #server<#parameter>(::std::sync::Arc<#parameter>);

        impl<#parameter: #definition> #server<#parameter> {
            /// Serves this implementation.
            pub fn new(service: #parameter) -> Self {
                Self(::std::sync::Arc::new(service))
            }

            /// Serves an implementation that is used elsewhere too.
            pub fn from_arc(service: ::std::sync::Arc<#parameter>) -> Self {
                Self(service)
            }
        }

        impl<#parameter> ::core::clone::Clone for #server<#parameter> {
            fn clone(&self) -> Self {
                Self(::std::sync::Arc::clone(&self.0))
            }
        }

        impl<#parameter: #definition> #rt::Service for #server<#parameter> {
            fn name(&self) -> &'static str {
                #module::NAME
            }

            fn routes(self, #router: &mut #rt::Routes) {
                #register
                #(#methods)*
            }
        }
    }
}

/// The closure that hands a request to the implementation. The trait is named
/// in the call, since a method may have the name of one that `Arc` has.
fn handler(service: &Service, method: &Method, rt: &TokenStream) -> TokenStream {
    let (parameter, definition) = (&service.parameter, &service.definition);
    let name = &method.name;
    let call = quote! { <#parameter as #definition>::#name(&service, request).await };
    let body = if method.server_streams {
        // A stream may borrow from the implementation, so it keeps it alive.
        quote! { #rt::HeldStream::run(|outlet| async move { outlet.forward(#call).await }) }
    } else {
        quote! { async move { #call } }
    };
    quote! {
        move |request| {
            let service = ::std::sync::Arc::clone(&service);
            #body
        }
    }
}

/// The typed client.
fn client(service: &Service, register: Option<&TokenStream>, rt: &TokenStream) -> TokenStream {
    let Service {
        client,
        module,
        full_name,
        ..
    } = service;
    let about = format!("Calls `{full_name}`. Cheap to clone; clones share their connections.");
    let deprecation = deprecated(service.deprecated);
    let methods = service
        .methods
        .iter()
        .map(|method| client_method(module, method, rt));
    let docs = paragraph(&service.docs, &about);
    let from_docs = &service.docs;
    quote! {
        #from_docs
        #docs
        #deprecation
        #[derive(Clone, Debug)]
        pub struct #client(#rt::QuillClient);

        impl #client {
            /// A client of the server at `url`, connected.
            ///
            /// # Errors
            /// The URL is none, or no connection could be made.
            pub async fn connect(
                url: impl ::core::convert::AsRef<str>,
            ) -> ::core::result::Result<Self, #rt::ConnectError> {
                ::core::result::Result::Ok(Self::new(#rt::QuillClient::connect(url).await?))
            }

            /// Calls through a client that is set up already.
            pub fn new(client: #rt::QuillClient) -> Self {
                #register
                Self(client)
            }

            #(#methods)*
        }
    }
}

/// The method of the client that calls `method`.
fn client_method(module: &Ident, method: &Method, rt: &TokenStream) -> TokenStream {
    let Method {
        client_name,
        descriptor,
        docs,
        input,
        output,
        ..
    } = method;
    let deprecated = deprecated(method.deprecated);
    let function = method.function();
    let (argument, request) = if method.client_streams {
        (
            quote! { impl #rt::IntoStreamingRequest<#input> },
            quote! { request.into_streaming_request() },
        )
    } else {
        (
            quote! { impl ::core::convert::Into<#rt::Request<#input>> },
            quote! { request.into() },
        )
    };
    let answer = if method.server_streams {
        quote! { #rt::Streaming<#output> }
    } else {
        quote! { #output }
    };
    quote! {
        #docs
        #deprecated
        pub async fn #client_name(
            &self,
            request: #argument,
        ) -> ::core::result::Result<#rt::Response<#answer>, #rt::Error> {
            let method = &#module::#descriptor;
            self.0.#function(method, #rt::BuffaCodec, #rt::BuffaCodec, #request).await
        }
    }
}

/// What a handler gets: the message or its view, or a stream of them.
fn received(method: &Method, rt: &TokenStream) -> TokenStream {
    let message = method.input_view.as_ref().unwrap_or(&method.input);
    if method.client_streams {
        quote! { #rt::Streaming<#message> }
    } else {
        quote! { #message }
    }
}

/// What a handler answers with.
fn answered(method: &Method, rt: &TokenStream) -> TokenStream {
    let output = &method.output;
    if method.server_streams {
        quote! {
            impl #rt::Stream<Item = ::core::result::Result<#output, #rt::Error>> + ::core::marker::Send
        }
    } else {
        quote! { #output }
    }
}

fn request_codec(method: &Method, rt: &TokenStream) -> TokenStream {
    match method.input_view {
        Some(_) => {
            let input = &method.input;
            quote! { #rt::BuffaViewCodec::<#input>::new() }
        }
        None => quote! { #rt::BuffaCodec },
    }
}

fn deprecated(deprecated: bool) -> Option<TokenStream> {
    deprecated.then(|| quote! { #[deprecated] })
}

/// A paragraph of docs that follows `before`.
fn paragraph(before: &TokenStream, text: &str) -> TokenStream {
    let text = format!(" {text}");
    let gap = (!before.is_empty()).then(|| quote! { #[doc = ""] });
    quote! { #gap #[doc = #text] }
}
