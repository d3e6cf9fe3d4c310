//! What the code is generated from: descriptors, and which of them are asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use buffa::{DecodeOptions, Message};
use buffa_descriptor::generated::compiler::CodeGeneratorRequest;
use buffa_descriptor::generated::descriptor::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet, SourceCodeInfo,
};
use protox::file::{ChainFileResolver, GoogleFileResolver, IncludeFileResolver};

use crate::diagnostic::Diagnostic;
use crate::error::Error;
use crate::identifiers;
use crate::texts::TextResolver;

/// Compiled `.proto` files with all that they import.
#[derive(Clone, Debug)]
pub struct Schema {
    pub(crate) files: Vec<FileDescriptorProto>,
    pub(crate) requested: Vec<String>,
    /// The files that were read from disk, by their names.
    sources: BTreeMap<String, PathBuf>,
}

impl Schema {
    /// Compiles `.proto` files, in this process. Each lies in one of the
    /// `includes`, where imports are looked for too; `google/protobuf/*.proto`
    /// and [`BUILTIN_PROTOS`](crate::BUILTIN_PROTOS) are always found.
    ///
    /// # Errors
    /// A file that is missing, is no valid protobuf, or uses editions, which
    /// this compiler does not read: [`from_descriptor_set`](Self::from_descriptor_set)
    /// takes those.
    pub fn compile(
        protos: &[impl AsRef<Path>],
        includes: &[impl AsRef<Path>],
    ) -> Result<Self, Error> {
        let protos: Vec<&Path> = protos.iter().map(AsRef::as_ref).collect();
        Self::compile_all(&BTreeMap::new(), &protos, includes)
    }

    /// Compiles texts that lie in no file: those of another revision, say. The
    /// keys are the names by which they import each other, and `protos` are
    /// those asked for; other imports are looked for as in
    /// [`compile`](Self::compile).
    ///
    /// # Errors
    /// What [`compile`](Self::compile) says.
    pub fn compile_texts(
        texts: &BTreeMap<String, String>,
        protos: &[impl AsRef<str>],
        includes: &[impl AsRef<Path>],
    ) -> Result<Self, Error> {
        let names: Vec<&Path> = protos.iter().map(|name| Path::new(name.as_ref())).collect();
        Self::compile_all(texts, &names, includes)
    }

    fn compile_all(
        texts: &BTreeMap<String, String>,
        protos: &[&Path],
        includes: &[impl AsRef<Path>],
    ) -> Result<Self, Error> {
        let includes: Vec<&Path> = includes.iter().map(AsRef::as_ref).collect();
        let mut resolver = ChainFileResolver::new();
        resolver.add(TextResolver::new(texts.clone()));
        for include in &includes {
            if !include.is_dir() {
                return Err(Error::new(format!(
                    "the include directory {} does not exist",
                    include.display()
                )));
            }
            resolver.add(IncludeFileResolver::new((*include).to_owned()));
        }
        resolver.add(TextResolver::builtin());
        resolver.add(GoogleFileResolver::new());

        let mut compiler = protox::Compiler::with_file_resolver(resolver);
        compiler.include_imports(true).include_source_info(true);
        for proto in protos {
            compiler
                .open_file(proto)
                .map_err(|error| explain(&error, proto, texts, &includes))?;
        }
        let requested = compiler.files().filter(|file| !file.is_import());
        Ok(Self {
            requested: requested.map(|file| file.name().to_owned()).collect(),
            sources: compiler
                .files()
                .filter_map(|file| Some((file.name().to_owned(), file.path()?.to_owned())))
                .collect(),
            files: decode_set(&compiler.encode_file_descriptor_set())?,
        })
    }

    /// Takes a serialized `google.protobuf.FileDescriptorSet`, as `protoc
    /// --include_imports --descriptor_set_out` and `buf build` write it: also
    /// for files that use editions. All its files are asked for, except
    /// `google.protobuf` and Quill's annotations.
    ///
    /// # Errors
    /// Bytes that are no such set, or a set without a file that another imports.
    pub fn from_descriptor_set(bytes: &[u8]) -> Result<Self, Error> {
        let files = decode_set(bytes)?;
        let ours = |file: &&FileDescriptorProto| !is_well_known(package(file));
        let requested = files.iter().filter(ours).map(|file| name(file).to_owned());
        let requested = requested.collect();
        Self::new(files, requested)
    }

    /// The descriptors and the names of the files asked for among them.
    pub(crate) fn new(
        files: Vec<FileDescriptorProto>,
        requested: Vec<String>,
    ) -> Result<Self, Error> {
        let schema = Self {
            files,
            requested,
            sources: BTreeMap::new(),
        };
        for file in &schema.files {
            identifiers::check(file)?;
            for import in &file.dependency {
                if schema.file(import).is_none() {
                    return Err(Error::new(format!(
                        "{} imports {import}, which the descriptor set lacks: build it with its \
                         imports (protoc --include_imports; buf build does so by itself)",
                        name(file)
                    )));
                }
            }
        }
        match schema
            .requested
            .iter()
            .find(|name| schema.file(name).is_none())
        {
            Some(name) => Err(Error::new(format!("no descriptor of the file {name}"))),
            None => Ok(schema),
        }
    }

    /// The files that were read from disk.
    pub fn sources(&self) -> impl Iterator<Item = &Path> {
        self.sources.values().map(PathBuf::as_path)
    }

    /// All files as a serialized `google.protobuf.FileDescriptorSet`, imports
    /// before what imports them, with comments.
    #[must_use]
    pub fn to_descriptor_set(&self) -> Vec<u8> {
        let set = FileDescriptorSet {
            file: self.files.clone(),
            ..Default::default()
        };
        set.encode_to_vec()
    }

    /// What is wrong with the element of `file` at `path`, which is as in
    /// `SourceCodeInfo.Location`; where that is, if the file says.
    pub(crate) fn diagnostic(
        &self,
        file: &FileDescriptorProto,
        path: &[i32],
        message: impl Into<String>,
    ) -> Diagnostic {
        let source = self.sources.get(name(file));
        let shown = source.cloned().unwrap_or_else(|| PathBuf::from(name(file)));
        let diagnostic = Diagnostic::new(Some(shown), message);
        let locations = source_info(file).map(|info| info.location.as_slice());
        let at = locations
            .unwrap_or_default()
            .iter()
            .find(|at| at.path == path);
        let text = source.and_then(|path| std::fs::read_to_string(path).ok());
        match at {
            Some(at) => diagnostic.at_span(&at.span, text.as_deref()),
            None => diagnostic,
        }
    }

    /// A serialized `google.protobuf.compiler.CodeGeneratorRequest` for the files
    /// that are asked for: what a plugin of protoc and buf reads. `parameter` holds
    /// its options.
    #[must_use]
    pub fn plugin_request(&self, parameter: &str) -> Vec<u8> {
        let request = CodeGeneratorRequest {
            file_to_generate: self.requested.clone(),
            parameter: Some(parameter.to_owned()),
            proto_file: self.files.clone(),
            ..Default::default()
        };
        request.encode_to_vec()
    }

    pub(crate) fn file(&self, name: &str) -> Option<&FileDescriptorProto> {
        self.files.iter().find(|file| self::name(file) == name)
    }

    /// The files to generate code for: those asked for, and the imported ones
    /// whose types they use, directly or not. An import that only brings
    /// options is left out, as is what `provided` says exists elsewhere.
    pub(crate) fn files_to_generate(&self, provided: impl Fn(&str) -> bool) -> Vec<String> {
        let mut home = BTreeMap::new();
        for file in &self.files {
            for message in &file.message_type {
                collect_types(&format!(".{}", package(file)), message, file, &mut home);
            }
            for enumeration in &file.enum_type {
                let scope = format!(".{}", package(file));
                home.insert(join(&scope, enumeration.name.as_deref()), name(file));
            }
        }
        let mut taken: BTreeSet<&str> = self.requested.iter().map(String::as_str).collect();
        let mut todo: Vec<&str> = taken.iter().copied().collect();
        while let Some(file) = todo.pop().and_then(|name| self.file(name)) {
            for used in used_types(file) {
                let Some(&file) = home.get(used) else {
                    continue;
                };
                let package = self.file(file).map(package).unwrap_or_default();
                if !is_well_known(package) && !provided(used) && taken.insert(file) {
                    todo.push(file);
                }
            }
        }
        let in_order = self.files.iter().map(name);
        in_order
            .filter(|name| taken.contains(name))
            .map(str::to_owned)
            .collect()
    }

    /// A serialized set of the files in `package` and all that they import,
    /// without comments.
    pub(crate) fn descriptor_set_of(&self, names: &[String]) -> Vec<u8> {
        let mut taken: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        let mut todo: Vec<&str> = taken.iter().copied().collect();
        while let Some(file) = todo.pop().and_then(|name| self.file(name)) {
            for import in &file.dependency {
                if taken.insert(import) {
                    todo.push(import);
                }
            }
        }
        let mut set = FileDescriptorSet::default();
        for file in self.files.iter().filter(|file| taken.contains(name(file))) {
            let mut file = file.clone();
            file.source_code_info = buffa::MessageField::none();
            set.file.push(file);
        }
        set.encode_to_vec()
    }
}

/// Packages whose types the message library brings, and Quill's own options.
fn is_well_known(package: &str) -> bool {
    matches!(
        package,
        "google.protobuf" | "google.protobuf.compiler" | "quill"
    )
}

pub(crate) fn name(file: &FileDescriptorProto) -> &str {
    file.name.as_deref().unwrap_or_default()
}

pub(crate) fn package(file: &FileDescriptorProto) -> &str {
    file.package.as_deref().unwrap_or_default()
}

/// The last names of those of `packages` that are right below `package`.
pub(crate) fn children<'a>(
    package: &str,
    packages: impl Iterator<Item = &'a str>,
) -> impl Iterator<Item = &'a str> {
    let below = packages.filter_map(move |other| match package {
        "" => Some(other),
        _ => other.strip_prefix(package)?.strip_prefix('.'),
    });
    let names = below.filter_map(|rest| rest.split('.').next());
    names.filter(|name| !name.is_empty())
}

pub(crate) fn source_info(file: &FileDescriptorProto) -> Option<&SourceCodeInfo> {
    file.source_code_info.as_option()
}

fn join(scope: &str, name: Option<&str>) -> String {
    let dot = if scope.ends_with('.') { "" } else { "." };
    format!("{scope}{dot}{}", name.unwrap_or_default())
}

fn collect_types<'a>(
    scope: &str,
    message: &'a DescriptorProto,
    file: &'a FileDescriptorProto,
    home: &mut BTreeMap<String, &'a str>,
) {
    let full = join(scope, message.name.as_deref());
    for nested in &message.nested_type {
        collect_types(&full, nested, file, home);
    }
    for enumeration in &message.enum_type {
        home.insert(join(&full, enumeration.name.as_deref()), name(file));
    }
    home.insert(full, name(file));
}

/// The full names of all types that a file's fields, extensions and methods use.
fn used_types(file: &FileDescriptorProto) -> Vec<&str> {
    fn of_fields<'a>(fields: &'a [FieldDescriptorProto], used: &mut Vec<&'a str>) {
        used.extend(fields.iter().filter_map(|field| field.type_name.as_deref()));
        used.extend(fields.iter().filter_map(|field| field.extendee.as_deref()));
    }
    fn of_message<'a>(message: &'a DescriptorProto, used: &mut Vec<&'a str>) {
        of_fields(&message.field, used);
        of_fields(&message.extension, used);
        for nested in &message.nested_type {
            of_message(nested, used);
        }
    }
    let mut used = Vec::new();
    of_fields(&file.extension, &mut used);
    for message in &file.message_type {
        of_message(message, &mut used);
    }
    for method in file.service.iter().flat_map(|service| &service.method) {
        used.extend(method.input_type.as_deref());
        used.extend(method.output_type.as_deref());
    }
    used
}

fn decode_set(bytes: &[u8]) -> Result<Vec<FileDescriptorProto>, Error> {
    // Descriptors take several times their encoded size in memory, and come
    // from the user's own build: the library's bound for hostile input is too low.
    let options =
        DecodeOptions::new().with_element_memory_limit(buffa_codegen::TOOLING_ELEMENT_MEMORY_LIMIT);
    let set = options.decode_from_slice::<FileDescriptorSet>(bytes);
    let set = set.map_err(|error| Error::new(format!("no valid descriptor set: {error}")))?;
    if set.file.is_empty() {
        return Err(Error::new("the descriptor set holds no files"));
    }
    Ok(set.file)
}

/// The compiler's error with the path as the user knows it, and with a better
/// text where the compiler can't know what went wrong.
fn explain(
    error: &protox::Error,
    asked: &Path,
    texts: &BTreeMap<String, String>,
    includes: &[&Path],
) -> Error {
    let locate = |name: &str| {
        let mut paths = includes.iter().map(|include| include.join(name));
        paths.find(|path| path.is_file())
    };
    let text = error.file().and_then(|name| match texts.get(name) {
        Some(text) => Some((PathBuf::from(name), text.clone())),
        None => {
            locate(name).and_then(|path| Some((path.clone(), std::fs::read_to_string(path).ok()?)))
        }
    });
    if let Some(diagnostic) = text.as_ref().and_then(editions_diagnostic) {
        return Error::schema(diagnostic);
    }
    if error.file().is_none() && error.is_file_not_found() {
        let message = if asked.is_file() {
            "the file lies in none of the include directories"
        } else {
            "there is no such file, here or in an include directory"
        };
        let looked = includes.iter().map(|include| include.display().to_string());
        let help = format!(
            "include directories: {}",
            looked.collect::<Vec<_>>().join(", ")
        );
        return Error::schema(Diagnostic::new(Some(asked.to_owned()), message).with_help(help));
    }
    let mut diagnostic = Diagnostic::from_compiler(error, locate);
    if let Some((_, text)) = text
        && error.is_parse()
    {
        diagnostic = diagnostic.at_end_of(&text);
    }
    Error::schema(diagnostic)
}

/// A parser that knows no editions stumbles over the file's first statement.
fn editions_diagnostic((path, text): &(PathBuf, String)) -> Option<Diagnostic> {
    let statement = first_statement(text);
    let rest = statement.strip_prefix("edition")?.trim_start();
    rest.starts_with('=').then(|| {
        let edition = rest.trim_start_matches('=').split(';').next();
        let message = format!(
            "edition {}: the built-in compiler reads proto2 and proto3 only",
            edition.unwrap_or_default().trim()
        );
        Diagnostic::new(Some(path.clone()), message).with_help(
            "compile it with `buf build -o set.binpb` or `protoc --include_imports \
             --descriptor_set_out=set.binpb`, and generate from that descriptor set",
        )
    })
}

/// The text from the first statement on, after white space and comments.
fn first_statement(text: &str) -> &str {
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    loop {
        let comment_end = if rest.starts_with("//") {
            rest.find('\n')
        } else if rest.starts_with("/*") {
            rest.find("*/").map(|end| end + 2)
        } else {
            return rest;
        };
        let Some(end) = comment_end else {
            return "";
        };
        rest = rest.get(end..).unwrap_or_default().trim_start();
    }
}
