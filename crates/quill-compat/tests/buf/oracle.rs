//! The compiler of this workspace, and buf as a process.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use buffa::Message;
use buffa_descriptor::generated::descriptor::{FileDescriptorProto, FileDescriptorSet};
use quill_codegen::Schema;
use quill_compat::RuleSet;

use crate::Rules;
use crate::pairs::{Files, Pair, only_file};

/// A folder that goes when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn with(files: &Files) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("compat-{}-{number}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        for (name, text) in files {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn compile(files: &Files) -> Vec<FileDescriptorProto> {
    try_compile(files).expect("the files compile")
}

/// `None` for files that contradict each other.
pub(crate) fn try_compile(files: &Files) -> Option<Vec<FileDescriptorProto>> {
    let folder = Folder::with(files);
    let paths: Vec<_> = files.keys().map(|name| folder.0.join(name)).collect();
    let schema = Schema::compile(&paths, &[&folder.0]).ok()?;
    Some(decoded(&schema.to_descriptor_set()))
}

fn decoded(set: &[u8]) -> Vec<FileDescriptorProto> {
    FileDescriptorSet::decode_from_slice(set).unwrap().file
}

/// buf, which is installed.
pub(crate) struct Buf(PathBuf);

impl Buf {
    /// `None`, with a word about it, where it is not; `REQUIRE_EXTERNAL=1`
    /// makes that a failure.
    pub(crate) fn find() -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut programs = std::env::split_paths(&path).map(|folder| folder.join("buf"));
        if let Some(program) = programs.find(|program| program.is_file()) {
            return Some(Self(program));
        }
        let required = std::env::var_os("REQUIRE_EXTERNAL").is_some_and(|value| value == "1");
        assert!(!required, "buf is not installed");
        let _ = writeln!(std::io::stderr(), "skipped: buf is not installed");
        None
    }

    /// The rules of these sets that a pair is against.
    pub(crate) fn verdict(&self, pair: &Pair, sets: &[&str]) -> Rules {
        let lines = self.breaking(&pair.name, &pair.old, &pair.new, sets);
        let rules = lines.lines().map(|line| field(line, "type").unwrap());
        rules.collect()
    }

    /// What buf prints: a line of JSON for each break.
    fn breaking(&self, name: &str, old: &Files, new: &Files, sets: &[&str]) -> String {
        let (old, new) = (Folder::with(old), Folder::with(new));
        let sets: Vec<_> = sets.iter().map(|set| format!("{set:?}")).collect();
        let uses = sets.join(",");
        let output = Command::new(&self.0)
            .args(["breaking", ".", "--error-format", "json", "--against"])
            .arg(&old.0)
            .arg("--config")
            .arg(format!(
                r#"{{"version":"v2","breaking":{{"use":[{uses}]}}}}"#
            ))
            .current_dir(&new.0)
            .output()
            .unwrap();
        let code = output.status.code();
        let lines = text(&output);
        let compiles = !lines.contains("\"type\":\"COMPILE\"");
        assert!(
            matches!(code, Some(0 | 100)) && compiles,
            "{name}: {output:?}"
        );
        lines
    }

    /// The verdicts of all sets.
    pub(crate) fn verdicts(&self, pairs: &[Pair]) -> BTreeMap<String, Rules> {
        let sets = RuleSet::ALL.map(RuleSet::name);
        // Pairs of one file and no imports are looked at together.
        let (mut olds, mut news) = (Files::new(), Files::new());
        let mut said = BTreeMap::new();
        let mut names = BTreeMap::new();
        for (index, pair) in pairs.iter().enumerate() {
            let package = format!("p{index}.v1");
            let files = (
                only_file(&pair.old, &package),
                only_file(&pair.new, &package),
            );
            if let (Some(old), Some(new)) = files {
                let path = format!("p{index}/v1/a.proto");
                olds.insert(path.clone(), old);
                news.insert(path.clone(), new);
                names.insert(path, &pair.name);
                said.insert(pair.name.clone(), Rules::new());
            } else {
                said.insert(pair.name.clone(), self.verdict(pair, &sets));
            }
        }
        let lines = self.breaking("pairs of one file", &olds, &news, &sets);
        for line in lines.lines() {
            let name = names[&field(line, "path").unwrap()];
            said.entry(name.clone())
                .or_default()
                .insert(field(line, "type").unwrap());
        }
        said
    }

    /// Each rule with the categories it is in.
    pub(crate) fn rules(&self) -> BTreeMap<String, BTreeSet<String>> {
        let output = Command::new(&self.0)
            .args(["config", "ls-breaking-rules", "--format", "json"])
            .current_dir(env!("CARGO_TARGET_TMPDIR"))
            .output()
            .unwrap();
        let lines = text(&output);
        let rules = lines.lines().map(|line| {
            let (_, categories) = line.split_once(r#""categories":["#).unwrap();
            let (categories, _) = categories.split_once(']').unwrap();
            let categories = categories
                .split(',')
                .map(|name| name.trim_matches('"').to_owned());
            (field(line, "id").unwrap(), categories.collect())
        });
        rules.collect()
    }

    /// The descriptors of files that only buf can read.
    pub(crate) fn build(&self, files: &Files) -> Vec<FileDescriptorProto> {
        let folder = Folder::with(files);
        let output = Command::new(&self.0)
            .args(["build", "-o", "-#format=binpb"])
            .current_dir(&folder.0)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        decoded(&output.stdout)
    }
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The text of a field in a line of JSON.
fn field(line: &str, name: &str) -> Option<String> {
    let (_, value) = line.split_once(&format!("\"{name}\":\""))?;
    value.split('"').next().map(str::to_owned)
}

pub(crate) fn write_table(said: &BTreeMap<String, Rules>) {
    let mut table = String::from(
        "# What `buf breaking` says of each pair, by all four sets: UPDATE_VERDICTS=1 writes it.\n",
    );
    for (name, rules) in said {
        let rules: Vec<_> = rules.iter().map(String::as_str).collect();
        let _ = writeln!(
            table,
            "{}",
            format!("{name}: {}", rules.join(" ")).trim_end()
        );
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/buf/verdicts.txt");
    std::fs::write(path, table).unwrap();
}
