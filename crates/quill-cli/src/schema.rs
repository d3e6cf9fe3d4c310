//! What a server's methods take and answer.

mod descriptor_set;
mod file_set;
mod git;
mod known;
mod proto_files;
mod reflection;
mod reflection_files;
mod source;
mod unknown_any;

use std::collections::HashSet;
use std::sync::Arc;

use buffa_descriptor::generated::descriptor::{FileDescriptorProto, FileDescriptorSet};
use buffa_descriptor::{
    DescriptorPool, DynamicMessage, MessageDescriptor, MessageIndex, MethodDescriptor, PoolError,
    ReflectMessage, ServiceDescriptor,
};
use quill::{DecodeLimits, Method, MethodKind};
use quill_explain::harmless;

use crate::args::SchemaArgs;
use crate::failure::Failure;
use crate::message_type::MessageType;
use crate::output::declaration;
use crate::target::Target;

use unknown_any::unknown_any;

pub(crate) use proto_files::compile_schema as compile;
pub(crate) use reflection::Reflection;
pub(crate) use source::{Loaded, Source};

/// Types that are looked up for the `Any`s of one answer, at most.
const ANY_TYPES_MAX: usize = 16;
/// Names that an error lists at most.
const NAMES_LISTED_MAX: usize = 20;

/// The types and services of a server, and where to ask for more.
pub(crate) struct Schema {
    pool: Arc<DescriptorPool>,
    reflection: Option<Reflection>,
}

/// A method with the types of its messages.
pub(crate) struct MethodSchema {
    pub(crate) method: Method,
    pub(crate) requests: MessageType,
    pub(crate) responses: MessageType,
}

impl Schema {
    /// The schema that the arguments give, or else what the server says of this
    /// symbol.
    pub(crate) async fn load(
        args: &SchemaArgs,
        symbol: &str,
        reflection: Reflection,
    ) -> Result<Self, Failure> {
        let schema = Self::find(args, symbol, reflection).await?;
        schema.ok_or_else(Reflection::missing)
    }

    /// As [`load`](Self::load); `None` when the server does not describe itself.
    pub(crate) async fn find(
        args: &SchemaArgs,
        symbol: &str,
        mut reflection: Reflection,
    ) -> Result<Option<Self>, Failure> {
        if args.names_files() {
            return Self::from_files(args).map(Some);
        }
        match reflection.files_of_symbol(symbol).await? {
            Some(files) => Self::link(files, Some(reflection)).map(Some),
            None => Ok(None),
        }
    }

    /// The schema of the files that the arguments name.
    pub(crate) fn from_files(args: &SchemaArgs) -> Result<Self, Failure> {
        let files = if args.proto.is_empty() {
            descriptor_set::read(&args.descriptor_set)?
        } else {
            proto_files::compile(&args.proto, &args.import_path)?
        };
        Self::link(files, None)
    }

    /// All that a server describes.
    pub(crate) async fn of_server(mut reflection: Reflection) -> Result<Self, Failure> {
        let files = reflection.all_files().await?;
        Self::link(files, Some(reflection))
    }

    pub(crate) fn pool(&self) -> &Arc<DescriptorPool> {
        &self.pool
    }

    /// The full names of all message types, in order; those that everyone has
    /// are left out beside others.
    pub(crate) fn type_names(&self) -> Vec<String> {
        let is_entry = |message: &MessageDescriptor| {
            let options = message.options();
            options.is_some_and(|options| options.map_entry == Some(true))
        };
        let messages = self.pool.messages().iter();
        let messages = messages.filter(|message| !is_entry(message));
        let names = messages.map(|message| message.full_name().to_owned());
        let (known, mut own): (Vec<_>, Vec<_>) = names.partition(|name| {
            name.starts_with("google.protobuf.") || name.starts_with("google.rpc.")
        });
        if own.is_empty() {
            own = known;
        }
        own.sort_unstable();
        own
    }

    fn link(
        files: Vec<FileDescriptorProto>,
        reflection: Option<Reflection>,
    ) -> Result<Self, Failure> {
        let pool = pool(files).map_err(|error| {
            let failure = format!("the schema can't be used: {error}");
            let lacks = matches!(error, PoolError::UnresolvedTypeName { .. });
            match &reflection {
                Some(_) => Failure::server(failure)
                    .with_hint("give the schema with --proto or --descriptor-set"),
                None if lacks => Failure::input(failure).with_hint(
                    "a descriptor set needs its imports: protoc --include_imports, or buf build",
                ),
                None => Failure::input(failure),
            }
        })?;
        Ok(Self {
            pool: Arc::new(pool),
            reflection,
        })
    }

    /// The method that is to be called.
    pub(crate) fn method(&self, target: &Target) -> Result<MethodSchema, Failure> {
        let service = self.service(&target.service)?;
        let Some(method) = service.method(&target.method) else {
            let methods = service.methods().iter().map(MethodDescriptor::name);
            return Err(Failure::input(format!(
                "the service {} has no method {}; it has {}",
                target.service,
                target.method,
                list(methods)
            )));
        };
        let kind = match (method.is_client_streaming(), method.is_server_streaming()) {
            (false, false) => MethodKind::Unary,
            (true, false) => MethodKind::ClientStreaming,
            (false, true) => MethodKind::ServerStreaming,
            (true, true) => MethodKind::BidiStreaming,
        };
        let message = |index: MessageIndex| MessageType::new(Arc::clone(&self.pool), index);
        Ok(MethodSchema {
            method: Method::named(&target.service, &target.method, kind),
            requests: message(method.input()),
            responses: message(method.output()),
        })
    }

    /// The full names of all services.
    pub(crate) fn services(&self) -> Vec<String> {
        let names = self.pool.services().iter();
        names
            .map(|service| service.full_name().to_owned())
            .collect()
    }

    /// The names of a service's methods.
    pub(crate) fn methods(&self, service: &str) -> Result<Vec<&str>, Failure> {
        let methods = self.service(service)?.methods().iter();
        Ok(methods.map(MethodDescriptor::name).collect())
    }

    /// What a service, method, message or enum is, in the words of its file.
    pub(crate) fn declaration(&self, symbol: &str) -> Result<String, Failure> {
        let found = self.pool.files().iter().find_map(|file| {
            let text = declaration(file, symbol)?;
            let name = harmless(file.name.as_deref().unwrap_or_default());
            Some(format!("// {symbol}, in {name}\n{text}"))
        });
        found.ok_or_else(|| {
            let services = self.pool.services().iter();
            let services = list(services.map(ServiceDescriptor::full_name));
            Failure::input(format!(
                "the schema has no {symbol}; it has the services {services}"
            ))
        })
    }

    fn service(&self, full_name: &str) -> Result<&ServiceDescriptor, Failure> {
        self.pool.service_by_name(full_name).ok_or_else(|| {
            let services = self.pool.services().iter();
            let services = list(services.map(ServiceDescriptor::full_name));
            Failure::input(format!(
                "the schema has no service {full_name}; it has {services}"
            ))
        })
    }

    /// A message type by its full name; the server is asked for one that the
    /// schema lacks. `None` when nobody knows it.
    pub(crate) async fn message_type(&mut self, full_name: &str) -> Option<MessageType> {
        if let Some(message) = MessageType::named(&self.pool, full_name) {
            return Some(message);
        }
        let files = self.reflection.as_mut()?.files_of_type(full_name).await?;
        let pool = Arc::new(pool(files).ok()?);
        MessageType::named(&pool, full_name)
    }
}

impl Schema {
    /// The message again, by a schema that has the types in its `Any`s too: the
    /// server is asked for them. `None` when it does not say all.
    pub(crate) async fn with_any_types(
        &mut self,
        message: &DynamicMessage,
    ) -> Option<DynamicMessage> {
        let full_name = message.message_descriptor().full_name();
        let bytes = message.try_encode_to_vec().ok()?;
        for _ in 0..=ANY_TYPES_MAX {
            let message = MessageType::named(&self.pool, full_name)?
                .read_bytes(&bytes, &DecodeLimits::default())
                .ok()?;
            let Some(unknown) = unknown_any(&message) else {
                return Some(message);
            };
            let more = self.reflection.as_mut()?.files_of_type(&unknown).await?;
            self.pool = Arc::new(self.pool_with(more)?);
        }
        None
    }

    fn pool_with(&self, more: Vec<FileDescriptorProto>) -> Option<DescriptorPool> {
        let mut pool = DescriptorPool::clone(&self.pool);
        let set = FileDescriptorSet {
            file: more,
            ..Default::default()
        };
        pool.add_file_descriptor_set(set).ok()?;
        Some(pool)
    }
}

/// Links files, with the commonly known ones that are not among them: servers
/// leave out some, and `Any` names others.
fn pool(files: Vec<FileDescriptorProto>) -> Result<DescriptorPool, PoolError> {
    let names: HashSet<_> = files.iter().filter_map(|file| file.name.clone()).collect();
    let is_missing = |file: &FileDescriptorProto| {
        let name = file.name.as_ref();
        name.is_some_and(|name| !names.contains(name))
    };
    let set = |file| FileDescriptorSet {
        file,
        ..Default::default()
    };
    let known = known::files().into_iter().filter(is_missing);
    let mut all = files.clone();
    all.extend(known);
    // The same types under other file names: then those of the schema are the
    // ones that count.
    DescriptorPool::new(set(all)).or_else(|_| DescriptorPool::new(set(files)))
}

/// The names, in a sentence; not all when there are many.
fn list<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = names.len().saturating_sub(NAMES_LISTED_MAX);
    let names = names.take(NAMES_LISTED_MAX).map(harmless);
    let mut listed = names.collect::<Vec<_>>().join(", ");
    if listed.is_empty() {
        listed.push_str("none");
    }
    if more > 0 {
        listed.push_str(&format!(" and {more} more"));
    }
    listed
}
