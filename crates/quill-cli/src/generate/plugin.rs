//! The generators: Quill's own for Rust, and plugins as processes.

use std::env;
use std::io::{Read as _, Write as _};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use buffa::DecodeOptions;
use buffa_descriptor::generated::compiler::CodeGeneratorResponse;
use quill_codegen::{Builder, Schema};

use super::config::Target;
use super::files::Generated;
use super::language::{Language, Plugin};
use crate::failure::Failure;

/// Bytes that a plugin may answer with.
const ANSWER_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Generates a target; the lines warn of what has no effect.
pub(crate) fn generate(
    schema: &Schema,
    target: &Target,
) -> Result<(Generated, Vec<String>), Failure> {
    let wrong = |error: quill_codegen::Error| Failure::input(error.to_string());
    let mut files = Generated::new();
    if target.lang == Language::Rust {
        let options = target.options.join(",");
        let builder = Builder::new().plugin_options(&options).map_err(wrong)?;
        let (generated, warnings) = builder.generate_all(schema).map_err(wrong)?;
        for file in generated {
            files.insert(target.out.join(&file.name), file.content);
        }
        return Ok((files, warnings));
    }
    for plugin in target.lang.plugins() {
        let options = if target.options.is_empty() {
            plugin.options.to_owned()
        } else {
            target.options.join(",")
        };
        let answer = run(plugin, &schema.plugin_request(&options))?;
        take(plugin, answer, &target.out, &mut files)?;
    }
    Ok((files, Vec::new()))
}

/// Runs a plugin: the request on its standard input, the answer on its output.
fn run(plugin: &Plugin, request: &[u8]) -> Result<CodeGeneratorResponse, Failure> {
    let name = plugin.program;
    let Some(path) = find(name) else {
        return Err(Failure::input(format!("{name} is not installed"))
            .with_hint(&format!("to get it: {}", plugin.install)));
    };
    let failed = |error: &dyn std::fmt::Display| Failure::input(format!("{name}: {error}"));
    let mut child = Command::new(path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| failed(&error))?;
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(failed(&"it has no input and output"));
    };
    let mut answer = Vec::new();
    let read = std::thread::scope(|scope| {
        // What it does not read, its answer and its exit code speak of.
        scope.spawn(move || stdin.write_all(request));
        stdout.take(ANSWER_BYTES_MAX + 1).read_to_end(&mut answer)
    });
    read.map_err(|error| failed(&error))?;
    if answer.len() as u64 > ANSWER_BYTES_MAX {
        let _ = child.kill();
    }
    let status = child.wait().map_err(|error| failed(&error))?;
    if !status.success() {
        return Err(failed(&format!("it ended with {status}")));
    }
    DecodeOptions::new()
        .with_element_memory_limit(answer.len().saturating_mul(8).saturating_add(1 << 20))
        .decode_from_slice(&answer)
        .map_err(|error| failed(&format!("its answer can't be read: {error}")))
}

/// Takes the files of an answer, each below the target's folder.
fn take(
    plugin: &Plugin,
    answer: CodeGeneratorResponse,
    out: &Path,
    files: &mut Generated,
) -> Result<(), Failure> {
    let name = plugin.program;
    if let Some(error) = answer.error.filter(|error| !error.is_empty()) {
        return Err(Failure::input(format!("{name}: {error}")));
    }
    let mut last = None;
    for file in answer.file {
        let content = file.content.unwrap_or_default();
        let path = match file.name.filter(|name| !name.is_empty()) {
            Some(file_name) => {
                let is_below = Path::new(&file_name)
                    .components()
                    .all(|part| matches!(part, Component::Normal(_)));
                let inserts = file.insertion_point.is_some_and(|point| !point.is_empty());
                if !is_below || inserts {
                    let what = if inserts {
                        "inserts into"
                    } else {
                        "would write"
                    };
                    return Err(Failure::input(format!("{name} {what} {file_name:?}")));
                }
                out.join(file_name)
            }
            // A file in several pieces has its name in the first one.
            None => last.take().unwrap_or_default(),
        };
        files.entry(path.clone()).or_default().push_str(&content);
        last = Some(path);
    }
    Ok(())
}

/// Looks for a program where the ecosystems put theirs.
fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = env::split_paths(&path).collect();
    let here = env::current_dir().unwrap_or_default();
    for folder in here.ancestors() {
        folders.push(folder.join("node_modules/.bin"));
        folders.push(folder.join(".venv/bin"));
    }
    folders.extend(env::var_os("GOBIN").map(PathBuf::from));
    folders.extend(env::var_os("GOPATH").map(|path| PathBuf::from(path).join("bin")));
    folders.extend(env::var_os("HOME").map(|path| PathBuf::from(path).join("go/bin")));
    let names = [
        program.to_owned(),
        format!("{program}{}", env::consts::EXE_SUFFIX),
    ];
    let mut paths = folders
        .iter()
        .flat_map(|folder| names.iter().map(|name| folder.join(name)));
    paths.find(|path| path.is_file())
}
