//! The generator with its options.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use buffa_codegen::idents::escape_mod_ident;

use crate::error::Error;
use crate::package::{self, PackageFile, Settings};
use crate::schema::Schema;
use crate::write::Emit;

/// Compiles `.proto` files from a `build.rs` into `OUT_DIR`, one `<package>.rs`
/// for each package, for `quill::include_proto!`.
///
/// Each file lies in one of the `includes`, where imports are looked for too.
/// Imported files are generated as well where their messages are used. Cargo is
/// told to run the script again when one of the files changes.
///
/// # Errors
/// What [`Builder::compile`] says.
pub fn compile(protos: &[impl AsRef<Path>], includes: &[impl AsRef<Path>]) -> Result<(), Error> {
    Builder::new().compile(protos, includes)
}

/// What is generated, and where it goes.
#[derive(Clone, Debug)]
pub struct Builder {
    settings: Settings,
    out_dir: Option<PathBuf>,
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// The generator with its defaults: server and client, for the crate `quill`.
    #[must_use]
    pub fn new() -> Self {
        Self {
            settings: Settings {
                runtime: "::quill::__private".to_owned(),
                emit: Emit::ALL,
                extern_paths: Vec::new(),
                views: Vec::new(),
            },
            out_dir: None,
        }
    }

    /// Which halves of services to generate; [`Emit::ALL`] by default.
    #[must_use]
    pub fn emit(mut self, emit: Emit) -> Self {
        self.settings.emit = emit;
        self
    }

    /// Where the files go; `OUT_DIR` by default, which cargo sets for `build.rs`.
    #[must_use]
    pub fn out_dir(mut self, out_dir: impl Into<PathBuf>) -> Self {
        self.out_dir = Some(out_dir.into());
        self
    }

    /// Takes the messages below a proto path from Rust code that exists already:
    /// `.extern_path("common.v1", "::common_protos::common::v1")`. The path names
    /// a package or one message; it may start with a dot.
    #[must_use]
    pub fn extern_path(mut self, proto: &str, rust: impl Into<String>) -> Self {
        let proto = format!(".{}", proto.trim_matches('.'));
        self.settings.extern_paths.push((proto, rust.into()));
        self
    }

    /// Lets the handler of a method (`"echo.v1.EchoService.Echo"`) take the
    /// view of its message (`EchoRequestOwnedView`), which borrows from the
    /// bytes that came in instead of copying strings and bytes out.
    #[must_use]
    pub fn view_request(mut self, method: impl Into<String>) -> Self {
        self.settings.views.push(method.into());
        self
    }

    /// The module with what generated code needs at run time, as an absolute
    /// path: `::quill::__private` by default. For crates that can't depend on `quill`.
    #[must_use]
    pub fn runtime_path(mut self, path: impl Into<String>) -> Self {
        self.settings.runtime = path.into();
        self
    }

    /// Takes options as a plugin gets them, comma-separated:
    /// `emit=all|server|client|messages`, `extern_path=PROTO=RUST`,
    /// `view_request=METHOD`, `runtime_path=PATH`.
    ///
    /// # Errors
    /// An option that is unknown or lacks its value.
    pub fn plugin_options(mut self, options: &str) -> Result<Self, Error> {
        let options = options.split(',').map(str::trim);
        for option in options.filter(|option| !option.is_empty()) {
            self = match option.split_once('=') {
                Some(("emit", "all")) => self.emit(Emit::ALL),
                Some(("emit", "server")) => self.emit(Emit::SERVER),
                Some(("emit", "client")) => self.emit(Emit::CLIENT),
                Some(("emit", "messages")) => self.emit(Emit::MESSAGES),
                Some(("view_request", method)) => self.view_request(method),
                Some(("runtime_path", path)) => self.runtime_path(path),
                Some(("extern_path", paths)) => match paths.split_once('=') {
                    Some((proto, rust)) => self.extern_path(proto, rust),
                    None => return Err(unknown_option(option)),
                },
                _ => return Err(unknown_option(option)),
            };
        }
        Ok(self)
    }

    /// Compiles `.proto` files and writes the Rust of each package.
    ///
    /// # Errors
    /// What [`Schema::compile`] and [`generate`](Self::generate) say, and files
    /// that can't be written.
    pub fn compile(
        &self,
        protos: &[impl AsRef<Path>],
        includes: &[impl AsRef<Path>],
    ) -> Result<(), Error> {
        let schema = Schema::compile(protos, includes)?;
        self.write(&schema)
    }

    /// Writes the Rust of each package in a descriptor set file, as
    /// [`Schema::from_descriptor_set`] takes it: also for files that use editions.
    ///
    /// # Errors
    /// The file can't be read, and what [`compile`](Self::compile) says.
    pub fn compile_descriptor_set(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|error| Error::file("read", path, error))?;
        let schema = Schema::from_descriptor_set(&bytes)
            .map_err(|error| Error::new(format!("{}: {error}", path.display())))?;
        self.write(&schema)?;
        if self.out_dir.is_none() {
            rerun_if_changed(path);
        }
        Ok(())
    }

    /// Generates the Rust of each package; the second list warns of options in
    /// the files that have no effect.
    ///
    /// # Errors
    /// An option in a file or of this builder that makes no sense, or
    /// descriptors that contradict each other.
    pub fn generate(&self, schema: &Schema) -> Result<(Vec<PackageFile>, Vec<String>), Error> {
        package::generate(schema, &self.settings)
    }

    /// What [`compile`](Self::compile) writes: the Rust of each package, and
    /// `all-packages.rs`, which includes them in the modules of their names.
    ///
    /// # Errors
    /// What [`generate`](Self::generate) says.
    pub fn generate_all(&self, schema: &Schema) -> Result<(Vec<PackageFile>, Vec<String>), Error> {
        let (mut files, warnings) = self.generate(schema)?;
        files.push(tree(&files));
        Ok((files, warnings))
    }

    fn write(&self, schema: &Schema) -> Result<(), Error> {
        let out_dir = match &self.out_dir {
            Some(out_dir) => out_dir.clone(),
            None => PathBuf::from(cargo_out_dir()?),
        };
        let (files, warnings) = self.generate_all(schema)?;
        std::fs::create_dir_all(&out_dir)
            .map_err(|error| Error::file("create", &out_dir, error))?;
        for file in files {
            let path = out_dir.join(&file.name);
            std::fs::write(&path, file.content)
                .map_err(|error| Error::file("write", &path, error))?;
        }
        if self.out_dir.is_none() {
            schema.sources().for_each(rerun_if_changed);
            warnings.iter().for_each(|warning| warn(warning));
        }
        Ok(())
    }
}

/// The directory that cargo gives to a build script.
fn cargo_out_dir() -> Result<OsString, Error> {
    std::env::var_os("OUT_DIR")
        .ok_or_else(|| Error::new("OUT_DIR is not set: outside of a build.rs, choose an out_dir"))
}

#[allow(clippy::print_stdout, reason = "how a build script speaks to cargo")]
fn rerun_if_changed(path: &Path) {
    println!("cargo::rerun-if-changed={}", path.display());
}

#[allow(clippy::print_stdout, reason = "how a build script speaks to cargo")]
fn warn(warning: &str) {
    println!("cargo::warning={}", warning.replace('\n', " "));
}

fn unknown_option(option: &str) -> Error {
    Error::new(format!(
        "option {option:?} is unknown: there are emit=all|server|client|messages, \
         extern_path=PROTO=RUST, view_request=METHOD and runtime_path=PATH"
    ))
}

/// A file that includes all packages, each in the modules of its name, where
/// they find each other.
fn tree(files: &[PackageFile]) -> PackageFile {
    let mut content = String::from("// Generated by quill-codegen. Do not edit.\n\n");
    let mut open: Vec<&str> = Vec::new();
    let mut in_order: Vec<&PackageFile> = files.iter().collect();
    in_order.sort_by_key(|file| file.package.split('.').collect::<Vec<_>>());
    for file in in_order {
        let path: Vec<&str> = file
            .package
            .split('.')
            .filter(|name| !name.is_empty())
            .collect();
        let shared = open.iter().zip(&path).take_while(|(a, b)| a == b).count();
        for _ in shared..open.len() {
            content.push_str("}\n");
        }
        for name in path.iter().skip(shared) {
            let _ = writeln!(
                content,
                "#[allow(missing_docs)]\npub mod {} {{",
                escape_mod_ident(name)
            );
        }
        let _ = writeln!(content, "include!({:?});", file.name);
        open = path;
    }
    content.push_str(&"}\n".repeat(open.len()));
    PackageFile {
        name: TREE.to_owned(),
        package: String::new(),
        content,
    }
}

/// No package has this name, as it holds a hyphen.
const TREE: &str = "all-packages.rs";
