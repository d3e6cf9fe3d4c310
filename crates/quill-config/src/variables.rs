//! What the environment says of settings.

use std::sync::Arc;

use crate::error::ConfigError;
use crate::node::{Node, Place, Value};

/// What stands between the keys of a variable's name.
const NESTED: &str = "__";

/// What Kubernetes sets of its own accord for a service that happens to be called like
/// the prefix: `X_SERVICE_HOST`, `X_PORT_8080_TCP`.
fn is_of_kubernetes(name: &str) -> bool {
    name == "PORT" || name.starts_with("PORT_") || name.starts_with("SERVICE_")
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
    if is_of_kubernetes(name) {
        return Ok(());
    }
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
