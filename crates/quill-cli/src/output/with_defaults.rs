//! A message's JSON with the fields that are at their defaults.

use buffa::editions::FieldPresence;
use buffa_descriptor::{
    DescriptorPool, DynamicMessage, FieldDescriptor, FieldKind, MessageIndex, ScalarType,
    SingularKind,
};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value as Json};

/// The JSON of a message in which every field without presence is written, as
/// ProtoJSON allows: zeros, empty strings, lists and maps. Fields that know
/// whether they are set are left out unless they are. The well-known types, and
/// what is in an `Any`, keep their form.
pub(super) struct WithDefaults<'a> {
    pool: &'a DescriptorPool,
    message: MessageIndex,
    json: &'a Json,
}

/// The value of a field that is set.
struct FieldValue<'a> {
    pool: &'a DescriptorPool,
    kind: FieldKind,
    json: &'a Json,
}

impl<'a> WithDefaults<'a> {
    /// `json` is the message's own JSON.
    pub(super) fn of(message: &'a DynamicMessage, json: &'a Json) -> Self {
        Self {
            pool: message.pool(),
            message: message.message_index(),
            json,
        }
    }
}

impl Serialize for WithDefaults<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { pool, json, .. } = *self;
        let descriptor = pool.message(self.message);
        let is_well_known = descriptor.full_name().starts_with("google.protobuf.");
        let Json::Object(fields) = json else {
            return json.serialize(serializer);
        };
        if is_well_known {
            return json.serialize(serializer);
        }
        let mut map = serializer.serialize_map(None)?;
        for field in descriptor.fields() {
            let (name, kind) = (field.json_name(), field.kind());
            if let Some(json) = fields.get(name) {
                map.serialize_entry(name, &FieldValue { pool, kind, json })?;
            } else if has_default(field) {
                map.serialize_entry(name, &default(pool, kind))?;
            }
        }
        // Extensions have names in brackets.
        for (name, json) in fields.iter().filter(|(name, _)| name.starts_with('[')) {
            map.serialize_entry(name, json)?;
        }
        map.end()
    }
}

impl Serialize for FieldValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { pool, json, .. } = *self;
        let full = |message, json| WithDefaults {
            pool,
            message,
            json,
        };
        match (self.kind, json) {
            (FieldKind::Singular(SingularKind::Message(message)), _) => {
                full(message, json).serialize(serializer)
            }
            (FieldKind::List(SingularKind::Message(message)), Json::Array(items)) => {
                serializer.collect_seq(items.iter().map(|item| full(message, item)))
            }
            (
                FieldKind::Map {
                    value: SingularKind::Message(message),
                    ..
                },
                Json::Object(entries),
            ) => {
                let entries = entries.iter();
                serializer.collect_map(entries.map(|(key, value)| (key, full(message, value))))
            }
            _ => json.serialize(serializer),
        }
    }
}

/// Whether a field that is not in the JSON has a value all the same.
fn has_default(field: &FieldDescriptor) -> bool {
    match field.kind() {
        FieldKind::List(_) | FieldKind::Map { .. } => true,
        FieldKind::Singular(_) => {
            field.presence() == FieldPresence::Implicit && field.oneof_index().is_none()
        }
    }
}

fn default(pool: &DescriptorPool, kind: FieldKind) -> Json {
    match kind {
        FieldKind::List(_) => Json::Array(Vec::new()),
        FieldKind::Map { .. } => Json::Object(Map::new()),
        FieldKind::Singular(kind) => default_value(pool, kind),
    }
}

/// The JSON of a value that was never set.
pub(super) fn default_value(pool: &DescriptorPool, kind: SingularKind) -> Json {
    let scalar = match kind {
        SingularKind::Message(_) => return Json::Object(Map::new()),
        SingularKind::Enum(index) => {
            let descriptor = pool.enumeration(index);
            return match descriptor.value(0) {
                Some(value) => value.name().into(),
                None => 0.into(),
            };
        }
        SingularKind::Scalar(scalar) => scalar,
    };
    match scalar {
        ScalarType::Bool => false.into(),
        ScalarType::String | ScalarType::Bytes => "".into(),
        ScalarType::Double | ScalarType::Float => 0.0.into(),
        // 64 bits are written as a string, whatever they hold.
        ScalarType::Int64
        | ScalarType::Sint64
        | ScalarType::Sfixed64
        | ScalarType::Uint64
        | ScalarType::Fixed64 => "0".into(),
        _ => 0.into(),
    }
}
