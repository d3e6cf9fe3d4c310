//! What can be asked about: files, symbols, extensions, services.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use buffa::{DecodeOptions, Message};
use buffa_descriptor::generated::descriptor::{FileDescriptorProto, FileDescriptorSet};
use buffa_descriptor::{DescriptorPool, ExtensionDescriptor, PoolError};

/// The files of one or more descriptor sets, linked.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    pool: DescriptorPool,
    /// Each file serialized, by name: encoded once, then sent by reference.
    files: HashMap<String, File>,
}

#[derive(Debug)]
struct File {
    serialized: Vec<u8>,
    imports: Vec<String>,
}

impl Catalog {
    /// Adds the files of a serialized `google.protobuf.FileDescriptorSet` that
    /// are not there yet. On an error nothing is added.
    pub(crate) fn add(&mut self, set: &[u8]) -> Result<(), DescriptorSetError> {
        // The set is part of the program: only its form is checked, not its size.
        let mut set: FileDescriptorSet = DecodeOptions::new()
            .with_element_memory_limit(usize::MAX)
            .with_unknown_field_limit(usize::MAX)
            .decode_from_slice(set)
            .map_err(|error| DescriptorSetError(error.into()))?;
        let mut names = HashSet::new();
        set.file.retain(|file| {
            let name = name(file);
            !self.files.contains_key(name) && names.insert(name.to_owned())
        });
        let files: Vec<_> = set.file.iter().map(File::of).collect();
        self.pool
            .add_file_descriptor_set(set)
            .map_err(DescriptorSetError)?;
        self.files.extend(files);
        Ok(())
    }

    /// The full names of all services, sorted.
    pub(crate) fn services(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .pool
            .services()
            .iter()
            .map(|service| service.full_name().to_owned())
            .collect();
        names.sort_unstable();
        names
    }

    /// The name of the file that declares a symbol, whatever it is.
    pub(crate) fn file_of_symbol(&self, symbol: &str) -> Option<&str> {
        self.pool.file_containing_symbol(symbol).map(name)
    }

    /// The name of the file that declares the extension `number` of a message.
    pub(crate) fn file_of_extension(&self, extended: &str, number: i32) -> Option<&str> {
        let extended = self.pool.message_index(extended)?;
        let number = u32::try_from(number).ok()?;
        let extension = self.pool.extension_for(extended, number)?;
        self.file_of_symbol(extension.full_name())
    }

    /// The numbers of all extensions of a message, sorted; `None` when there
    /// is no such message.
    pub(crate) fn extension_numbers(&self, extended: &str) -> Option<Vec<i32>> {
        let extended = self.pool.message_index(extended)?;
        let number = |extension: &ExtensionDescriptor| i32::try_from(extension.field().number());
        let extensions = self.pool.extensions_of(extended);
        Some(extensions.filter_map(|e| number(e).ok()).collect())
    }

    /// A file by name: serialized, with the names of what it imports.
    pub(crate) fn file(&self, name: &str) -> Option<(&[u8], &[String])> {
        let file = self.files.get(name)?;
        Some((&file.serialized, &file.imports))
    }
}

impl File {
    fn of(file: &FileDescriptorProto) -> (String, Self) {
        let serialized = file.encode_to_vec();
        let imports = file.dependency.clone();
        (
            name(file).to_owned(),
            Self {
                serialized,
                imports,
            },
        )
    }
}

fn name(file: &FileDescriptorProto) -> &str {
    file.name.as_deref().unwrap_or_default()
}

/// A descriptor set that can't be served: bytes that are no serialized
/// `google.protobuf.FileDescriptorSet`, a set without the imports it uses, or
/// two sets that declare the same name.
#[derive(Clone, Debug)]
pub struct DescriptorSetError(PoolError);

impl fmt::Display for DescriptorSetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the descriptor set can't be used: {}", self.0)?;
        if matches!(self.0, PoolError::UnresolvedTypeName { .. }) {
            f.write_str(" (build it with its imports)")?;
        }
        Ok(())
    }
}

impl std::error::Error for DescriptorSetError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// What a server answers from, shared by its calls.
pub(crate) type Shared = Arc<Result<Catalog, DescriptorSetError>>;
