//! One benchmark, as it is asked for.

use std::sync::Arc;
use std::time::Duration;

use quill::{Format, Metadata, Method, MethodKind, Protocol};
use quill_transport::Endpoint;

use super::budget::Budget;
use super::call::BenchCall;
use super::payload::GivenPayload;
use super::requests::Requests;
use super::run::Prepared;
use crate::args::{ClientArgs, SchemaArgs};
use crate::client;
use crate::failure::Failure;
use crate::schema::{MethodSchema, Reflection, Schema};
use crate::target::Target;

/// One benchmark: which method is called, how, with what, and what it has to
/// keep to.
#[derive(Clone, Debug)]
pub(crate) struct Benchmark {
    pub(crate) name: String,
    pub(crate) target: Target,
    pub(crate) payload: GivenPayload,
    /// In place of the command line's.
    pub(crate) protocol: Option<Protocol>,
    /// Beside the command line's, and in place of what has the same name there.
    pub(crate) metadata: Metadata,
    /// Whether the user named the server, beside the file: a token that lies in the
    /// environment is for no other one.
    pub(crate) takes_token: bool,
    /// In place of the command line's.
    pub(crate) timeout: Option<Duration>,
    pub(crate) budget: Budget,
}

impl Benchmark {
    /// Finds the schema, encodes the payload, and makes all ready to run.
    ///
    /// # Errors
    /// The server can't be reached, it has no such method, or the payload does
    /// not fit it.
    pub(crate) async fn prepare(
        &self,
        client_args: &ClientArgs,
        schema_args: &SchemaArgs,
    ) -> Result<Prepared, Failure> {
        let protocol = self.protocol.unwrap_or(client_args.protocol);
        let mut builder = client::builder(client_args, &self.target.base_url)?.protocol(protocol);
        let token = client_args.token.as_deref().filter(|_| self.takes_token);
        let mut metadata = self.metadata.clone();
        metadata.complete(&client::sent_metadata(&client_args.header, token)?);
        let asker = client::build(builder.clone())?;
        let reflection = Reflection::new(asker, metadata.clone());
        let schema = Schema::find(schema_args, &self.target.service, reflection).await?;
        let method = match &schema {
            Some(schema) => Some(schema.method(&self.target)?),
            None => None,
        };
        let messages = self.payload.encode(self, method.as_ref())?;
        let format = if method.is_some() {
            Format::Proto
        } else {
            Format::Json
        };
        builder = builder.format(format);
        let call = BenchCall {
            method: self.method(method),
            messages: messages.into(),
            metadata,
            timeout: self.timeout.or(client_args.timeout),
        };
        let requests = self.requests(client_args, &call, protocol, format)?;
        Ok(Prepared {
            name: self.name.clone(),
            target: self.target.clone(),
            protocol,
            format,
            http1: client_args.http1,
            call: Arc::new(call),
            builder,
            requests: requests.map(Arc::new),
        })
    }

    /// What lanes send; `None` for HTTP/1.1, and where the URL names several servers.
    fn requests(
        &self,
        args: &ClientArgs,
        call: &BenchCall,
        protocol: Protocol,
        format: Format,
    ) -> Result<Option<Requests>, Failure> {
        let Ok(endpoint) = Endpoint::parse(&self.target.base_url) else {
            return Ok(None);
        };
        if args.http1 {
            return Ok(None);
        }
        let tls = match endpoint.is_secure() {
            true => Some(client::tls(&args.tls)?),
            false => None,
        };
        let options = client::wire_options(args);
        let encoded = Requests::encode(call, protocol, format, options, endpoint, tls);
        let encoded = encoded.map_err(|error| {
            let name = &self.name;
            Failure::input(format!("the payload of {name:?}: {}", error.message()))
        });
        encoded.map(Some)
    }

    /// Whether a token stays here, and nothing else says who calls.
    pub(crate) fn keeps_token(&self, args: &ClientArgs) -> bool {
        let says_who = |metadata: &Metadata| metadata.get("authorization").is_some();
        let is_given = args.token.is_some() && !self.takes_token;
        is_given && !says_who(&self.metadata) && !args.header.iter().any(says_who)
    }

    /// A method of which nothing is known takes one message and answers with one.
    fn method(&self, schema: Option<MethodSchema>) -> Method {
        let Target {
            service, method, ..
        } = &self.target;
        schema.map_or_else(
            || Method::named(service, method, MethodKind::Unary),
            |schema| schema.method,
        )
    }
}
