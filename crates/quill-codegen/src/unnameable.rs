//! Names in .proto files of which no Rust can be made.

use std::collections::BTreeMap;

use buffa_descriptor::generated::descriptor::{
    DescriptorProto, EnumDescriptorProto, FileDescriptorProto, ServiceDescriptorProto,
};

use crate::error::Error;
use crate::names::settled;
use crate::rust_names::{PRIMITIVES, module_case};
use crate::schema::{self, Schema};

/// Field numbers of descriptors, of which paths in `SourceCodeInfo` are made.
const NAME: i32 = 1;
const FILE_PACKAGE: i32 = 2;
const FILE_MESSAGE: i32 = 4;
const FILE_ENUM: i32 = 5;
const FILE_SERVICE: i32 = 6;
const FILE_EXTENSION: i32 = 7;
const MESSAGE_FIELD: i32 = 2;
const MESSAGE_NESTED: i32 = 3;
const MESSAGE_ENUM: i32 = 4;
const MESSAGE_EXTENSION: i32 = 6;
const MESSAGE_ONEOF: i32 = 8;
const ENUM_VALUE: i32 = 2;
const SERVICE_METHOD: i32 = 2;

/// The constant that every package has.
const DESCRIPTOR_SET: &str = "FILE_DESCRIPTOR_SET";

/// Checks every name in the files named `wanted`; the first that can't be is
/// shown in its line, with what to do about it.
pub(crate) fn check(schema: &Schema, wanted: &[String]) -> Result<(), Error> {
    for file in wanted.iter().filter_map(|name| schema.file(name)) {
        check_file(schema, file).map_err(|refused| {
            let diagnostic = schema.diagnostic(file, &refused.path, refused.message);
            Error::schema(diagnostic.with_help("rename it in the .proto file"))
        })?;
    }
    Ok(())
}

/// What can't be named, by its path, and why.
struct Refused {
    path: Vec<i32>,
    message: String,
}

type Checked = Result<(), Refused>;

fn check_file(schema: &Schema, file: &FileDescriptorProto) -> Checked {
    package(schema, schema::package(file))?;
    each(&[], FILE_MESSAGE, &file.message_type, message)?;
    each(&[], FILE_ENUM, &file.enum_type, enumeration)?;
    each(&[], FILE_SERVICE, &file.service, service)?;
    let mut constants = Taken::of("extension");
    constants.take(DESCRIPTOR_SET, DESCRIPTOR_SET, &[])?;
    for (extension, index) in file.extension.iter().zip(0..) {
        let name = extension.name.as_deref().unwrap_or_default();
        let path = [FILE_EXTENSION, index];
        member("extension", Some(name), &path)?;
        constants.take(name, &module_case(name).to_ascii_uppercase(), &path)?;
    }
    Ok(())
}

fn each<T>(
    path: &[i32],
    field: i32,
    items: &[T],
    check: impl Fn(&T, &[i32]) -> Checked,
) -> Checked {
    items
        .iter()
        .zip(0..)
        .try_for_each(|(item, index)| check(item, &[path, &[field, index]].concat()))
}

fn package(schema: &Schema, package: &str) -> Checked {
    let refuse = |message| {
        let path = vec![FILE_PACKAGE];
        Err(Refused { path, message })
    };
    let mut above = String::new();
    for name in package.split('.') {
        if name != "_" && settled(name) != name {
            return refuse(format!(
                "Rust can have no module {name:?}, as a part of a package is"
            ));
        }
        if let Some(why) = for_no_rust(name) {
            return refuse(format!("a part of a package is called {name:?}: {why}"));
        }
        let is_primitive = PRIMITIVES.contains(&name);
        if is_primitive
            && schema
                .files
                .iter()
                .any(|file| schema::package(file) == above)
        {
            return refuse(format!(
                "the module of package {package:?} would hide Rust's own type {name:?} from the \
                 package {above:?} around it"
            ));
        }
        let dot = if above.is_empty() { "" } else { "." };
        above = format!("{above}{dot}{name}");
    }
    Ok(())
}

fn message(message: &DescriptorProto, path: &[i32]) -> Checked {
    type_name("message", message.name.as_deref(), path)?;
    let fields = message.field.iter().zip(0..);
    let fields = fields.map(|(field, index)| (field, [path, &[MESSAGE_FIELD, index]].concat()));
    let mut names = Taken::of("field");
    let mut variants = BTreeMap::new();
    for (field, path) in fields {
        let name = field.name.as_deref().unwrap_or_default();
        member("field", Some(name), &path)?;
        let is_synthetic = field.proto3_optional == Some(true);
        match field.oneof_index.filter(|_| !is_synthetic) {
            Some(oneof) => {
                let variants = variants
                    .entry(oneof)
                    .or_insert_with(|| Taken::of("field of a oneof"));
                variants.take(name, &pascal_case(name), &path)?;
            }
            None => names.take(name, &settled(name), &path)?,
        }
    }
    let mut types = Taken::of("oneof");
    each(path, MESSAGE_ONEOF, &message.oneof_decl, |oneof, path| {
        member("oneof", oneof.name.as_deref(), path)
    })?;
    for (oneof, index) in message.oneof_decl.iter().zip(0..) {
        if variants.contains_key(&index) {
            let name = oneof.name.as_deref().unwrap_or_default();
            let path = [path, &[MESSAGE_ONEOF, index]].concat();
            types.take(name, &pascal_case(name), &path)?;
            names.take(name, &settled(name), &path)?;
        }
    }
    each(path, MESSAGE_NESTED, &message.nested_type, self::message)?;
    each(path, MESSAGE_ENUM, &message.enum_type, enumeration)?;
    each(
        path,
        MESSAGE_EXTENSION,
        &message.extension,
        |field, path| member("field", field.name.as_deref(), path),
    )
}

fn enumeration(enumeration: &EnumDescriptorProto, path: &[i32]) -> Checked {
    type_name("enum", enumeration.name.as_deref(), path)?;
    let mut names = Taken::of("enum value");
    for (value, index) in enumeration.value.iter().zip(0..) {
        let name = value.name.as_deref().unwrap_or_default();
        let path = [path, &[ENUM_VALUE, index]].concat();
        member("enum value", Some(name), &path)?;
        names.take(name, &settled(name), &path)?;
    }
    Ok(())
}

fn service(service: &ServiceDescriptorProto, path: &[i32]) -> Checked {
    type_name("service", service.name.as_deref(), path)?;
    each(path, SERVICE_METHOD, &service.method, |method, path| {
        member("method", method.name.as_deref(), path)
    })
}

/// Types share their scope with what generated code defines for itself.
fn type_name(what: &str, name: Option<&str>, path: &[i32]) -> Checked {
    named(what, name, path, for_no_rust)
}

/// Members are told from generated code's own by where they stand.
fn member(what: &str, name: Option<&str>, path: &[i32]) -> Checked {
    named(what, name, path, |name| {
        let is_ours = name.starts_with("__buffa_") || is_nothing(name);
        for_no_rust(name).filter(|_| is_ours)
    })
}

fn named(
    what: &str,
    name: Option<&str>,
    path: &[i32],
    why: impl Fn(&str) -> Option<&'static str>,
) -> Checked {
    let name = name.unwrap_or_default();
    match why(name) {
        None => Ok(()),
        Some(why) => {
            let article = if what.starts_with(['e', 'o']) {
                "an"
            } else {
                "a"
            };
            refused(path, format!("{article} {what} is called {name:?}: {why}"))
        }
    }
}

fn refused(path: &[i32], message: String) -> Checked {
    let path = [path, &[NAME]].concat();
    Err(Refused { path, message })
}

/// Why `name` can't be the name of a type or a module.
fn for_no_rust(name: &str) -> Option<&'static str> {
    if is_nothing(name) {
        Some("Rust needs more than underscores for a name")
    } else if name.starts_with("__") {
        Some("names that start with two underscores are for generated code itself")
    } else {
        None
    }
}

fn is_nothing(name: &str) -> bool {
    name.chars().all(|c| c == '_') && !name.is_empty()
}

/// The names of one kind that are taken in Rust, and by what.
struct Taken {
    what: &'static str,
    by: BTreeMap<String, String>,
}

impl Taken {
    fn of(what: &'static str) -> Self {
        let by = BTreeMap::new();
        Self { what, by }
    }

    /// Takes `rust` for `proto`, whose path is given.
    fn take(&mut self, proto: &str, rust: &str, path: &[i32]) -> Checked {
        let what = self.what;
        if !rust.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            let message =
                format!("the {what} {proto:?} would be {rust:?} in Rust, which is no name");
            return refused(path, message);
        }
        match self.by.insert(rust.to_owned(), proto.to_owned()) {
            None => Ok(()),
            Some(other) => refused(
                path,
                format!("the {what} {proto:?} would be {rust:?} in Rust, as {other:?} is already"),
            ),
        }
    }
}

/// The message library's rule for oneofs and what is in them: `foo_bar` to `FooBar`.
fn pascal_case(name: &str) -> String {
    let words = name.split('_').map(|word| {
        let mut chars = word.chars();
        let first = chars.next().map(|c| c.to_ascii_uppercase());
        first.into_iter().chain(chars).collect::<String>()
    });
    settled(&words.collect::<String>())
}
