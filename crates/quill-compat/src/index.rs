//! A schema by names and numbers.

use std::collections::BTreeMap;
use std::rc::Rc;

use buffa::editions::{FieldPresence, MessageEncoding, ResolvedFeatures};
use buffa_descriptor::features;
use buffa_descriptor::generated::descriptor::field_descriptor_proto::{Label, Type};
use buffa_descriptor::generated::descriptor::{
    DescriptorProto, EnumDescriptorProto, FeatureSet, FieldDescriptorProto, FileDescriptorProto,
    ServiceDescriptorProto,
};

use crate::features::LanguageFeatures;
use crate::place::{At, FileInfo};

/// Numbers of fields in descriptors, for the paths of places.
const FILE_MESSAGE: i32 = 4;
const FILE_ENUM: i32 = 5;
const FILE_SERVICE: i32 = 6;
const FILE_EXTENSION: i32 = 7;
const MESSAGE_FIELD: i32 = 2;
const MESSAGE_NESTED: i32 = 3;
const MESSAGE_ENUM: i32 = 4;
const MESSAGE_EXTENSION: i32 = 6;

/// All that a schema declares. Full names have no dot in front.
#[derive(Default)]
pub(crate) struct Index<'a> {
    pub(crate) files: BTreeMap<&'a str, Rc<FileInfo<'a>>>,
    pub(crate) messages: BTreeMap<String, Message<'a>>,
    pub(crate) enums: BTreeMap<String, Enum<'a>>,
    pub(crate) services: BTreeMap<String, Service<'a>>,
    /// By the type that is extended, and the number.
    pub(crate) extensions: BTreeMap<(String, i32), Field<'a>>,
}

pub(crate) struct Message<'a> {
    pub(crate) proto: &'a DescriptorProto,
    pub(crate) features: ResolvedFeatures,
    pub(crate) at: At<'a>,
    /// By number.
    pub(crate) fields: BTreeMap<i32, Field<'a>>,
}

pub(crate) struct Enum<'a> {
    pub(crate) proto: &'a EnumDescriptorProto,
    pub(crate) features: ResolvedFeatures,
    pub(crate) at: At<'a>,
}

pub(crate) struct Service<'a> {
    pub(crate) proto: &'a ServiceDescriptorProto,
    pub(crate) at: At<'a>,
}

pub(crate) struct Field<'a> {
    pub(crate) proto: &'a FieldDescriptorProto,
    pub(crate) full_name: String,
    /// The message that has the field, or that is extended.
    pub(crate) of: String,
    pub(crate) features: ResolvedFeatures,
    pub(crate) languages: LanguageFeatures,
    pub(crate) at: At<'a>,
    pub(crate) is_map: bool,
    /// A key or value of a map.
    pub(crate) is_of_map: bool,
    /// The oneof, if it was written as one.
    pub(crate) oneof: Option<&'a str>,
}

/// How often a field is there, and whether it knows that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cardinality {
    Explicit,
    Implicit,
    Required,
    Repeated,
    Map,
}

impl<'a> Index<'a> {
    pub(crate) fn new(files: &'a [FileDescriptorProto]) -> Self {
        let mut index = Self::default();
        for file in files {
            let info = Rc::new(FileInfo::new(file));
            index.files.insert(info.name(), Rc::clone(&info));
            let at = At::file(&info);
            let scope = Scope {
                name: info.package().to_owned(),
                features: info.features,
                languages: LanguageFeatures::default().with(
                    file.options
                        .as_option()
                        .and_then(|options| options.features.as_option()),
                ),
            };
            for (number, message) in file.message_type.iter().enumerate() {
                index.add_message(message, at.item(FILE_MESSAGE, number), &scope, None);
            }
            for (number, of) in file.enum_type.iter().enumerate() {
                index.add_enum(of, at.item(FILE_ENUM, number), &scope);
            }
            for (number, extension) in file.extension.iter().enumerate() {
                index.add_extension(extension, at.item(FILE_EXTENSION, number), &scope);
            }
            for (number, service) in file.service.iter().enumerate() {
                let at = at.item(FILE_SERVICE, number);
                let name = scope.full_name(service.name.as_deref());
                index.services.insert(name, Service { proto: service, at });
            }
        }
        index
    }

    fn add_message(
        &mut self,
        proto: &'a DescriptorProto,
        at: At<'a>,
        around: &Scope,
        parent: Option<&'a DescriptorProto>,
    ) {
        let scope = around.inner(proto.name.as_deref(), features::message_features(proto));
        let is_of_map = parent.is_some() && is_map_entry(proto);
        let mut fields = BTreeMap::new();
        for (number, field) in proto.field.iter().enumerate() {
            let at = at.item(MESSAGE_FIELD, number);
            let mut field = Field::new(field, at, &scope, Some(proto));
            field.is_of_map = is_of_map;
            fields.insert(field.number(), field);
        }
        for (number, nested) in proto.nested_type.iter().enumerate() {
            self.add_message(nested, at.item(MESSAGE_NESTED, number), &scope, Some(proto));
        }
        for (number, of) in proto.enum_type.iter().enumerate() {
            self.add_enum(of, at.item(MESSAGE_ENUM, number), &scope);
        }
        for (number, extension) in proto.extension.iter().enumerate() {
            self.add_extension(extension, at.item(MESSAGE_EXTENSION, number), &scope);
        }
        let message = Message {
            proto,
            features: scope.features,
            at,
            fields,
        };
        self.messages.insert(scope.name, message);
    }

    fn add_enum(&mut self, proto: &'a EnumDescriptorProto, at: At<'a>, around: &Scope) {
        let scope = around.inner(proto.name.as_deref(), features::enum_features(proto));
        let of = Enum {
            proto,
            features: scope.features,
            at,
        };
        self.enums.insert(scope.name, of);
    }

    fn add_extension(&mut self, proto: &'a FieldDescriptorProto, at: At<'a>, around: &Scope) {
        let field = Field::new(proto, at, around, None);
        let key = (field.of.clone(), field.number());
        self.extensions.insert(key, field);
    }

    /// The enum of a field that has one.
    pub(crate) fn enum_of(&self, field: &Field<'_>) -> Option<&Enum<'a>> {
        self.enums.get(field.type_name())
    }
}

impl<'a> Field<'a> {
    /// `message` is the one that has it; an extension has none.
    fn new(
        proto: &'a FieldDescriptorProto,
        at: At<'a>,
        around: &Scope,
        message: Option<&'a DescriptorProto>,
    ) -> Self {
        let oneof = message.and_then(|message| {
            let index = usize::try_from(proto.oneof_index?).ok()?;
            message.oneof_decl.get(index)
        });
        // A field in a oneof takes the oneof's features before its message's.
        let around = around.inner(None, oneof.and_then(features::oneof_features));
        let scope = around.inner(proto.name.as_deref(), features::field_features(proto));
        let is_synthetic = proto.proto3_optional == Some(true);
        let entry = message.and_then(|message| {
            let own = format!("{}.", around.name);
            let name = proto.type_name.as_deref()?.trim_start_matches('.');
            let name = name.strip_prefix(&own)?;
            let mut nested = message.nested_type.iter();
            nested.find(|nested| nested.name.as_deref() == Some(name) && is_map_entry(nested))
        });
        let of = match message {
            Some(_) => around.name.clone(),
            None => undotted(proto.extendee.as_deref()).to_owned(),
        };
        Self {
            proto,
            of,
            features: scope.features,
            languages: scope.languages,
            full_name: scope.name,
            at,
            is_map: entry.is_some(),
            is_of_map: false,
            oneof: oneof
                .filter(|_| !is_synthetic)
                .and_then(|oneof| oneof.name.as_deref()),
        }
    }

    pub(crate) fn number(&self) -> i32 {
        self.proto.number.unwrap_or_default()
    }

    pub(crate) fn name(&self) -> &'a str {
        self.proto.name.as_deref().unwrap_or_default()
    }

    pub(crate) fn is_extension(&self) -> bool {
        self.proto.extendee.is_some()
    }

    /// The full name of its message or enum; empty for other types.
    pub(crate) fn type_name(&self) -> &'a str {
        undotted(self.proto.type_name.as_deref())
    }

    /// Its type as it is on the wire: a message that is delimited is a group.
    pub(crate) fn kind(&self) -> Type {
        let kind = self.proto.r#type.unwrap_or(Type::TYPE_MESSAGE);
        let is_delimited = self.features.message_encoding == MessageEncoding::Delimited;
        if kind == Type::TYPE_MESSAGE && is_delimited && !self.is_map && !self.is_of_map {
            return Type::TYPE_GROUP;
        }
        kind
    }

    pub(crate) fn cardinality(&self) -> Cardinality {
        let label = self.proto.label;
        if self.is_map {
            return Cardinality::Map;
        }
        if label == Some(Label::LABEL_REPEATED) {
            return Cardinality::Repeated;
        }
        if self.is_required() {
            return Cardinality::Required;
        }
        let is_message = matches!(self.kind(), Type::TYPE_MESSAGE | Type::TYPE_GROUP);
        let is_in_oneof = self.proto.oneof_index.is_some();
        let is_explicit = self.features.field_presence == FieldPresence::Explicit;
        if is_message || is_in_oneof || is_explicit || self.is_extension() {
            Cardinality::Explicit
        } else {
            Cardinality::Implicit
        }
    }

    pub(crate) fn is_required(&self) -> bool {
        self.proto.label == Some(Label::LABEL_REQUIRED)
            || self.features.field_presence == FieldPresence::LegacyRequired
    }

    /// Whether a default value means something here.
    pub(crate) fn can_have_default(&self) -> bool {
        let is_message = matches!(self.kind(), Type::TYPE_MESSAGE | Type::TYPE_GROUP);
        !is_message && !matches!(self.cardinality(), Cardinality::Repeated | Cardinality::Map)
    }

    /// `field 2 "count" of shop.v1.Order`.
    pub(crate) fn described(&self) -> String {
        let (number, of) = (self.number(), &self.of);
        if self.is_extension() {
            format!("extension {number} {:?} of {of}", self.full_name)
        } else {
            format!("field {number} {:?} of {of}", self.name())
        }
    }
}

impl Cardinality {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Explicit => "optional with explicit presence",
            Self::Implicit => "optional with implicit presence",
            Self::Required => "required",
            Self::Repeated => "repeated",
            Self::Map => "map",
        }
    }
}

/// What surrounds a declaration.
struct Scope {
    /// The package, or the full name of a message.
    name: String,
    features: ResolvedFeatures,
    languages: LanguageFeatures,
}

impl Scope {
    /// The scope of what is declared in this one; without a name, this one's again.
    fn inner(&self, name: Option<&str>, own: Option<&FeatureSet>) -> Self {
        Self {
            name: match name {
                Some(_) => self.full_name(name),
                None => self.name.clone(),
            },
            features: features::resolve_child(&self.features, own),
            languages: self.languages.with(own),
        }
    }

    fn full_name(&self, name: Option<&str>) -> String {
        let name = name.unwrap_or_default();
        if self.name.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.name)
        }
    }
}

pub(crate) fn is_map_entry(message: &DescriptorProto) -> bool {
    let options = message.options.as_option();
    options.is_some_and(|options| options.map_entry == Some(true))
}

/// A reference to a type, without the dot in front.
pub(crate) fn undotted(name: Option<&str>) -> &str {
    name.unwrap_or_default().trim_start_matches('.')
}
