//! What the environment says of settings.

use std::sync::Arc;

use crate::error::ConfigError;
use crate::node::{Node, Place, Value};

/// What stands between the keys of a variable's name.
const NESTED: &str = "__";

/// Whether a name is one that Kubernetes makes of its own accord, for a service whose
/// name happens to begin like the prefix: `X_SERVICE_HOST`, `X_CANARY_PORT_8080_TCP`.
/// `name` is without the prefix, of which this leaves the last `_`.
pub(crate) fn is_of_kubernetes(name: &str) -> bool {
    if name.contains(NESTED) {
        return false;
    }
    let name = format!("_{name}");
    let is_of_port = |rest: &str| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        digits > 0 && rest[digits..].starts_with('_')
    };
    let ends = ["_SERVICE_HOST", "_SERVICE_PORT", "_PORT"];
    ends.iter().any(|end| name.ends_with(end))
        || name.contains("_SERVICE_PORT_")
        || name.split("_PORT_").skip(1).any(is_of_port)
}

/// Puts a variable's value into `settings`, if it is for them.
pub(crate) fn overlay(
    settings: &mut Node,
    prefix: &str,
    variable: &str,
    value: &str,
) -> Result<(), ConfigError> {
    let Some(name) = variable.strip_prefix(prefix) else {
        return Ok(());
    };
    let place = Place::Variable(Arc::from(variable));
    let key = name.to_ascii_lowercase();
    let steps: Vec<&str> = key.split(NESTED).collect();
    if value.is_empty() {
        remove(settings, &steps);
        return Ok(());
    }
    let value = if value.starts_with(['[', '{']) {
        let read = Node::yaml(value).map_err(|error| {
            let wrong = format!(
                "what begins with [ or {{ is read as YAML: {}",
                first_line(&error)
            );
            ConfigError::new(variable.to_owned(), steps.join("."), wrong)
        })?;
        read.moved_to(&place)
    } else {
        Node {
            value: Value::Raw(value.to_owned()),
            place: place.clone(),
        }
    };
    put(settings, &steps, value, &place);
    Ok(())
}

/// The first line of an error, without the extract that follows it.
pub(crate) fn first_line(error: &serde_saphyr::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

/// Takes a key away, if it is there.
fn remove(node: &mut Node, steps: &[&str]) {
    let (Value::Map(entries), Some((step, rest))) = (&mut node.value, steps.split_first()) else {
        return;
    };
    let Some(at) = entries.iter().position(|(key, _)| key == step) else {
        return;
    };
    match rest {
        [] => drop(entries.remove(at)),
        rest => remove(&mut entries[at].1, rest),
    }
}

fn put(node: &mut Node, steps: &[&str], value: Node, place: &Place) {
    let Some((step, rest)) = steps.split_first() else {
        *node = value;
        return;
    };
    if !matches!(node.value, Value::Map(_)) {
        *node = Node {
            place: place.clone(),
            ..Node::empty()
        };
    }
    if let Value::Map(entries) = &mut node.value {
        let at = entries.iter().position(|(key, _)| key == step);
        let at = at.unwrap_or_else(|| {
            let inner = Node {
                place: place.clone(),
                ..Node::empty()
            };
            entries.push(((*step).to_owned(), inner));
            entries.len() - 1
        });
        put(&mut entries[at].1, rest, value, place);
    }
}
