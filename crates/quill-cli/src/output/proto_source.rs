//! What files declare, as the language of `.proto` writes it.

use std::fmt::Write as _;

use buffa_descriptor::generated::descriptor::field_descriptor_proto::{Label, Type};
use buffa_descriptor::generated::descriptor::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
    MethodDescriptorProto, ServiceDescriptorProto,
};
use quill_explain::harmless;

/// How deep messages are looked for, and shown, in messages.
const DEPTH_MAX: usize = 32;

/// What a symbol is, in the words of its file. `None` when the file has no such
/// symbol.
pub(crate) fn declaration(file: &FileDescriptorProto, symbol: &str) -> Option<String> {
    let package = file.package.as_deref().unwrap_or_default();
    let name = match symbol.strip_prefix(package) {
        Some(name) if !package.is_empty() => name.strip_prefix('.')?,
        _ if package.is_empty() => symbol,
        _ => return None,
    };
    let mut source = Source::default();
    let (first, rest) = name.split_once('.').unwrap_or((name, ""));
    for service in &file.service {
        if service.name.as_deref() == Some(first) {
            source.service_or_method(service, rest)?;
            return Some(source.text);
        }
    }
    source.type_of(&file.message_type, &file.enum_type, name, DEPTH_MAX)?;
    Some(source.text)
}

#[derive(Default)]
struct Source {
    text: String,
    depth: usize,
}

impl Source {
    /// A declaration and what it holds, further right.
    fn block(&mut self, head: &str, inside: impl FnOnce(&mut Self)) {
        self.line(&format!("{head} {{"));
        self.depth += 1;
        inside(self);
        self.depth -= 1;
        self.line("}");
    }

    fn line(&mut self, line: &str) {
        let _ = writeln!(
            self.text,
            "{:width$}{}",
            "",
            harmless(line),
            width = self.depth * 2
        );
    }

    fn service_or_method(&mut self, service: &ServiceDescriptorProto, method: &str) -> Option<()> {
        if method.is_empty() {
            let head = format!("service {}", text(service.name.as_ref()));
            self.block(&head, |inside| {
                for method in &service.method {
                    inside.line(&rpc(method));
                }
            });
            return Some(());
        }
        let named = |found: &&MethodDescriptorProto| found.name.as_deref() == Some(method);
        let method = service.method.iter().find(named)?;
        self.line(&rpc(method));
        Some(())
    }

    fn type_of(
        &mut self,
        messages: &[DescriptorProto],
        enums: &[EnumDescriptorProto],
        name: &str,
        depth: usize,
    ) -> Option<()> {
        let (first, rest) = name.split_once('.').unwrap_or((name, ""));
        let named = |found: &&EnumDescriptorProto| found.name.as_deref() == Some(name);
        if let Some(found) = enums.iter().find(named) {
            self.enumeration(found);
            return Some(());
        }
        let named = |found: &&DescriptorProto| found.name.as_deref() == Some(first);
        let message = messages.iter().find(named)?;
        if rest.is_empty() {
            self.message(message);
            return Some(());
        }
        let depth = depth.checked_sub(1)?;
        self.type_of(&message.nested_type, &message.enum_type, rest, depth)
    }

    fn message(&mut self, message: &DescriptorProto) {
        let head = format!("message {}", text(message.name.as_ref()));
        if self.depth >= DEPTH_MAX {
            self.line(&format!("{head} {{}}"));
            return;
        }
        self.block(&head, |inside| {
            for nested in &message.nested_type {
                if !is_map_entry(nested) {
                    inside.message(nested);
                }
            }
            for nested in &message.enum_type {
                inside.enumeration(nested);
            }
            let mut oneofs_shown = Vec::new();
            for field in &message.field {
                let is_alone = field.proto3_optional.unwrap_or_default();
                match field.oneof_index.filter(|_| !is_alone) {
                    None => inside.line(&declared(message, field)),
                    Some(oneof) if oneofs_shown.contains(&oneof) => {}
                    Some(oneof) => {
                        oneofs_shown.push(oneof);
                        inside.oneof(message, oneof);
                    }
                }
            }
        });
    }

    fn oneof(&mut self, message: &DescriptorProto, oneof: i32) {
        let index = usize::try_from(oneof).unwrap_or(usize::MAX);
        let declared_oneof = message.oneof_decl.get(index);
        let name = text(declared_oneof.and_then(|oneof| oneof.name.as_ref()));
        self.block(&format!("oneof {name}"), |inside| {
            let members = message.field.iter();
            for member in members.filter(|field| field.oneof_index == Some(oneof)) {
                inside.line(&declared(message, member));
            }
        });
    }

    fn enumeration(&mut self, found: &EnumDescriptorProto) {
        self.block(&format!("enum {}", text(found.name.as_ref())), |inside| {
            for value in &found.value {
                let name = text(value.name.as_ref());
                let number = value.number.unwrap_or_default();
                inside.line(&format!("{name} = {number};"));
            }
        });
    }
}

fn rpc(method: &MethodDescriptorProto) -> String {
    let stream = |streams: Option<bool>| if streams == Some(true) { "stream " } else { "" };
    let name = text(method.name.as_ref());
    let (takes, gives) = (
        stream(method.client_streaming),
        stream(method.server_streaming),
    );
    let input = absolute(method.input_type.as_ref());
    let output = absolute(method.output_type.as_ref());
    format!("rpc {name}({takes}{input}) returns ({gives}{output});")
}

/// `repeated .pkg.Type name = 1;`
fn declared(message: &DescriptorProto, field: &FieldDescriptorProto) -> String {
    let name = text(field.name.as_ref());
    let number = field.number.unwrap_or_default();
    if let Some((key, value)) = map_of(message, field) {
        return format!(
            "map<{}, {}> {name} = {number};",
            type_name(key),
            type_name(value)
        );
    }
    let label = match field.label {
        Some(Label::LABEL_REPEATED) => "repeated ",
        Some(Label::LABEL_REQUIRED) => "required ",
        _ if field.proto3_optional == Some(true) => "optional ",
        _ => "",
    };
    format!("{label}{} {name} = {number};", type_name(field))
}

/// The key and the value of a field that is a map.
fn map_of<'a>(
    message: &'a DescriptorProto,
    field: &FieldDescriptorProto,
) -> Option<(&'a FieldDescriptorProto, &'a FieldDescriptorProto)> {
    let entry = field.type_name.as_deref()?.rsplit('.').next()?;
    let entry = message
        .nested_type
        .iter()
        .find(|nested| is_map_entry(nested) && nested.name.as_deref() == Some(entry))?;
    Some((entry.field.first()?, entry.field.get(1)?))
}

fn is_map_entry(message: &DescriptorProto) -> bool {
    let options = message.options.as_option();
    options.is_some_and(|options| options.map_entry == Some(true))
}

fn type_name(field: &FieldDescriptorProto) -> &str {
    match field.r#type {
        Some(Type::TYPE_DOUBLE) => "double",
        Some(Type::TYPE_FLOAT) => "float",
        Some(Type::TYPE_INT64) => "int64",
        Some(Type::TYPE_UINT64) => "uint64",
        Some(Type::TYPE_INT32) => "int32",
        Some(Type::TYPE_FIXED64) => "fixed64",
        Some(Type::TYPE_FIXED32) => "fixed32",
        Some(Type::TYPE_BOOL) => "bool",
        Some(Type::TYPE_STRING) => "string",
        Some(Type::TYPE_BYTES) => "bytes",
        Some(Type::TYPE_UINT32) => "uint32",
        Some(Type::TYPE_SFIXED32) => "sfixed32",
        Some(Type::TYPE_SFIXED64) => "sfixed64",
        Some(Type::TYPE_SINT32) => "sint32",
        Some(Type::TYPE_SINT64) => "sint64",
        _ => absolute(field.type_name.as_ref()),
    }
}

/// A full name without the dot that marks it as one.
fn absolute(name: Option<&String>) -> &str {
    text(name).trim_start_matches('.')
}

fn text(name: Option<&String>) -> &str {
    name.map_or("", String::as_str)
}
