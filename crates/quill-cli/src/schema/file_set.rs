//! Bytes of a descriptor set, whoever wrote them, to its files.

use buffa::DecodeOptions;
use buffa_descriptor::generated::descriptor::{
    DescriptorProto, EnumDescriptorProto, FileDescriptorProto, FileDescriptorSet,
};

/// Memory that the parts of decoded files may take: a multiple of their size,
/// something for small ones, and never more than this. A few bytes can ask for
/// a hundredfold of memory, and while they are linked it is taken twice and more.
const MEMORY_PER_BYTE: usize = 64;
const MEMORY_BASE_BYTES: usize = 256 * 1024;
const MEMORY_BYTES_MAX: usize = 96 * 1024 * 1024;

/// The files of a set. The error says what is wrong with it.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<FileDescriptorProto>, String> {
    let set: FileDescriptorSet = options(bytes)
        .decode_from_slice(bytes)
        .map_err(|error| error.to_string())?;
    set.file.iter().try_for_each(check_names)?;
    Ok(set.file)
}

/// One file.
pub(super) fn read_file(bytes: &[u8]) -> Result<FileDescriptorProto, String> {
    let file = options(bytes)
        .decode_from_slice(bytes)
        .map_err(|error| error.to_string())?;
    check_names(&file)?;
    Ok(file)
}

fn options(bytes: &[u8]) -> DecodeOptions {
    let memory = bytes.len().saturating_mul(MEMORY_PER_BYTE);
    let memory = memory.saturating_add(MEMORY_BASE_BYTES);
    DecodeOptions::new().with_element_memory_limit(memory.min(MEMORY_BYTES_MAX))
}

/// Whether all that a file declares has a name that the language allows: what
/// links files takes full names apart at their dots.
fn check_names(file: &FileDescriptorProto) -> Result<(), String> {
    let package = file.package.as_deref().unwrap_or_default();
    if !package.is_empty() {
        package.split('.').try_for_each(|part| check(Some(part)))?;
    }
    file.message_type.iter().try_for_each(check_message)?;
    file.enum_type.iter().try_for_each(check_enum)?;
    for service in &file.service {
        check(service.name.as_deref())?;
        let mut methods = service.method.iter();
        methods.try_for_each(|method| check(method.name.as_deref()))?;
    }
    let mut extensions = file.extension.iter();
    extensions.try_for_each(|extension| check(extension.name.as_deref()))
}

fn check_message(message: &DescriptorProto) -> Result<(), String> {
    check(message.name.as_deref())?;
    for field in message.field.iter().chain(&message.extension) {
        check(field.name.as_deref())?;
    }
    for oneof in &message.oneof_decl {
        check(oneof.name.as_deref())?;
    }
    message.nested_type.iter().try_for_each(check_message)?;
    message.enum_type.iter().try_for_each(check_enum)
}

fn check_enum(of: &EnumDescriptorProto) -> Result<(), String> {
    check(of.name.as_deref())?;
    let mut values = of.value.iter();
    values.try_for_each(|value| check(value.name.as_deref()))
}

fn check(name: Option<&str>) -> Result<(), String> {
    let name = name.unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(is_name) {
        return Err(format!("{name:?} is no name"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use buffa::Message;
    use buffa_descriptor::generated::descriptor::EnumValueDescriptorProto;

    #[test]
    fn sets_that_swell_are_refused() {
        // Files, and messages of a file, of no content: two bytes each on the
        // wire, hundreds in memory.
        let files = [0x0a, 0x00].repeat(1024 * 1024);
        assert!(read(&files).is_err());
        let messages = FileDescriptorSet {
            file: vec![FileDescriptorProto {
                message_type: vec![Default::default(); 1024 * 1024],
                ..Default::default()
            }],
            ..Default::default()
        };
        assert!(read(&messages.encode_to_vec()).is_err());
    }

    #[test]
    fn what_has_no_proper_name_is_refused() {
        // A package that begins with a dot made the linking of its enums panic.
        let of = EnumDescriptorProto {
            name: Some("E".to_owned()),
            value: vec![EnumValueDescriptorProto {
                name: Some("V".to_owned()),
                number: Some(0),
                ..Default::default()
            }],
            ..Default::default()
        };
        let file = |package: &str, of: &EnumDescriptorProto| FileDescriptorProto {
            name: Some("a.proto".to_owned()),
            package: Some(package.to_owned()),
            enum_type: vec![of.clone()],
            ..Default::default()
        };
        for package in ["", "a", "a.b_1.C"] {
            read_file(&file(package, &of).encode_to_vec()).unwrap();
        }
        for package in [".", ".a", "a.", "a..b", "a b", "\0"] {
            let error = read_file(&file(package, &of).encode_to_vec()).unwrap_err();
            assert!(error.ends_with("is no name"), "{error}");
        }
        for name in [None, Some(""), Some(".E"), Some("E.V"), Some("\u{e9}")] {
            let mut of = of.clone();
            of.name = name.map(str::to_owned);
            read_file(&file("a", &of).encode_to_vec()).unwrap_err();
        }
        let mut of = of;
        of.value[0].name = None;
        let set = FileDescriptorSet {
            file: vec![file("a", &of)],
            ..Default::default()
        };
        read(&set.encode_to_vec()).unwrap_err();
    }

    #[test]
    fn many_sets_of_the_usual_kind_fit() {
        let file = FileDescriptorProto {
            name: Some("a.proto".to_owned()),
            dependency: vec!["b.proto".to_owned(); 10],
            ..Default::default()
        };
        let set = FileDescriptorSet {
            file: vec![file; 10_000],
            ..Default::default()
        };
        assert_eq!(read(&set.encode_to_vec()).unwrap().len(), 10_000);
    }
}
