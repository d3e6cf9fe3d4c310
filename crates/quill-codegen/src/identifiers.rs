//! Checks that the names in descriptors can be names.
//!
//! A compiler sees to that in `.proto` files; a descriptor set may come from
//! anywhere, and its names become Rust.

use buffa_descriptor::generated::descriptor::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
};

use crate::error::Error;
use crate::schema;

/// Checks every name that `file` declares.
pub(crate) fn check(file: &FileDescriptorProto) -> Result<(), Error> {
    let bad = |what: &'static str| move |name: String| (what, name);
    let checked = package(schema::package(file))
        .map_err(bad("package"))
        .and_then(|()| each(&file.message_type, message))
        .and_then(|()| each(&file.enum_type, enumeration))
        .and_then(|()| each(&file.extension, field))
        .and_then(|()| {
            each(&file.service, |service| {
                identifier(service.name.as_deref()).map_err(bad("service"))?;
                each(&service.method, |method| {
                    identifier(method.name.as_deref()).map_err(bad("method"))
                })
            })
        });
    checked.map_err(|(what, name)| {
        let file = schema::name(file);
        Error::new(format!("{file}: {name:?} can't be the name of a {what}"))
    })
}

type Checked = Result<(), (&'static str, String)>;

fn each<T>(items: &[T], check: impl Fn(&T) -> Checked) -> Checked {
    items.iter().try_for_each(check)
}

fn message(message: &DescriptorProto) -> Checked {
    identifier(message.name.as_deref()).map_err(|name| ("message", name))?;
    each(&message.field, field)?;
    each(&message.extension, field)?;
    each(&message.enum_type, enumeration)?;
    each(&message.oneof_decl, |oneof| {
        identifier(oneof.name.as_deref()).map_err(|name| ("oneof", name))
    })?;
    each(&message.nested_type, self::message)
}

fn enumeration(enumeration: &EnumDescriptorProto) -> Checked {
    identifier(enumeration.name.as_deref()).map_err(|name| ("enum", name))?;
    each(&enumeration.value, |value| {
        identifier(value.name.as_deref()).map_err(|name| ("enum value", name))
    })
}

fn field(field: &FieldDescriptorProto) -> Checked {
    identifier(field.name.as_deref()).map_err(|name| ("field", name))
}

fn package(package: &str) -> Result<(), String> {
    if package.is_empty() {
        return Ok(());
    }
    package
        .split('.')
        .try_for_each(|name| identifier(Some(name)))
}

/// A letter or `_`, then letters, digits and `_`; the name is the error.
fn identifier(name: Option<&str>) -> Result<(), String> {
    let name = name.unwrap_or_default();
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let goes_on = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if starts && goes_on {
        Ok(())
    } else {
        Err(name.to_owned())
    }
}
