//! A message to fill in.

use buffa_descriptor::{DescriptorPool, FieldKind, MessageIndex, ScalarType, SingularKind};
use serde_json::{Map, Value as Json};

use super::with_defaults::default_value;

/// How deep messages are shown in messages.
const DEPTH_MAX: usize = 6;

/// The JSON of a message with all of its fields, each at its default; lists and
/// maps have one element, so that its form shows, and of a oneof the first
/// member is there.
pub(crate) fn template(pool: &DescriptorPool, message: MessageIndex) -> Json {
    Template { pool }.message(message, &mut Vec::new())
}

struct Template<'a> {
    pool: &'a DescriptorPool,
}

impl Template<'_> {
    /// `within` are the messages around it; none is shown in itself.
    fn message(&self, message: MessageIndex, within: &mut Vec<MessageIndex>) -> Json {
        let descriptor = self.pool.message(message);
        if let Some(json) = well_known(descriptor.full_name()) {
            return json;
        }
        if within.len() >= DEPTH_MAX || within.contains(&message) {
            return Json::Object(Map::new());
        }
        within.push(message);
        let mut json = Map::new();
        let mut oneofs_shown = Vec::new();
        for field in descriptor.fields() {
            if let Some(oneof) = field.oneof_index() {
                if oneofs_shown.contains(&oneof) {
                    continue;
                }
                oneofs_shown.push(oneof);
            }
            let value = match field.kind() {
                FieldKind::Singular(kind) => self.value(kind, within),
                FieldKind::List(kind) => Json::Array(vec![self.value(kind, within)]),
                FieldKind::Map { key, value } => {
                    let mut map = Map::new();
                    map.insert(key_text(key).to_owned(), self.value(value, within));
                    Json::Object(map)
                }
            };
            json.insert(field.json_name().to_owned(), value);
        }
        within.pop();
        Json::Object(json)
    }

    fn value(&self, kind: SingularKind, within: &mut Vec<MessageIndex>) -> Json {
        match kind {
            SingularKind::Message(message) => self.message(message, within),
            _ => default_value(self.pool, kind),
        }
    }
}

fn key_text(key: ScalarType) -> &'static str {
    match key {
        ScalarType::String => "key",
        ScalarType::Bool => "false",
        _ => "0",
    }
}

/// Well-known types have JSON of their own.
fn well_known(full_name: &str) -> Option<Json> {
    Some(match full_name.strip_prefix("google.protobuf.")? {
        "Timestamp" => "1970-01-01T00:00:00Z".into(),
        "Duration" => "0s".into(),
        "FieldMask" | "StringValue" | "BytesValue" => "".into(),
        "Struct" | "Any" | "Empty" => Json::Object(Map::new()),
        "ListValue" => Json::Array(Vec::new()),
        "Value" => Json::Null,
        "BoolValue" => false.into(),
        "DoubleValue" | "FloatValue" => 0.0.into(),
        "Int32Value" | "UInt32Value" => 0.into(),
        "Int64Value" | "UInt64Value" => "0".into(),
        _ => return None,
    })
}
