//! Who sends, and attributes.

use quill_core::trace::TraceId;

use crate::proto::opentelemetry::proto::common::v1::any_value::Value;
use crate::proto::opentelemetry::proto::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use crate::proto::opentelemetry::proto::resource::v1::Resource;

const SERVICE_NAME: &str = "service.name";
const INSTANCE_ID: &str = "service.instance.id";

/// The attribute of this name.
pub(crate) fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: AnyValue {
            value: Some(value),
            ..Default::default()
        }
        .into(),
        ..Default::default()
    }
}

/// The attribute of this name, whose value is a text.
pub(crate) fn text(key: &str, value: impl Into<String>) -> KeyValue {
    attribute(key, Value::StringValue(value.into()))
}

/// What this process says of itself: its service's name, these attributes, and an
/// id of its own unless they have one.
pub(crate) fn resource(service: &str, attributes: &[(String, String)]) -> Resource {
    let mut all = vec![
        text(SERVICE_NAME, service),
        text("telemetry.sdk.name", "quill"),
        text("telemetry.sdk.language", "rust"),
        text("telemetry.sdk.version", env!("CARGO_PKG_VERSION")),
    ];
    all.retain(|own| attributes.iter().all(|(key, _)| *key != own.key));
    all.extend(attributes.iter().map(|(key, value)| text(key, value)));
    if all.iter().all(|attribute| attribute.key != INSTANCE_ID) {
        all.push(text(INSTANCE_ID, TraceId::random().to_string()));
    }
    Resource {
        attributes: all,
        ..Default::default()
    }
}

/// What recorded the spans and metrics.
pub(crate) fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "quill".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_holds_and_the_rest_is_filled_in() {
        let keys = |resource: &Resource, key: &str| {
            let of_key = resource.attributes.iter().filter(|own| own.key == key);
            of_key.count()
        };
        let plain = resource("a", &[]);
        let own = [
            (SERVICE_NAME.to_owned(), "b".to_owned()),
            (INSTANCE_ID.to_owned(), "7".to_owned()),
        ];
        let said = resource("a", &own);
        for key in [SERVICE_NAME, INSTANCE_ID, "telemetry.sdk.name"] {
            assert_eq!((keys(&plain, key), keys(&said, key)), (1, 1), "{key}");
        }
        assert!(said.attributes.contains(&text(SERVICE_NAME, "b")));
        assert!(said.attributes.contains(&text(INSTANCE_ID, "7")));
    }
}
