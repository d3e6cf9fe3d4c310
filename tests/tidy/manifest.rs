//! What every Cargo.toml has in common. Read by line: the manifests are written
//! by hand in one style, and a manifest that cargo cannot read fails elsewhere.

use crate::tree::{Fault, Tree};

/// The crates that know no runtime and no socket.
const SANS_IO: &[&str] = &[
    "crates/quill-core/Cargo.toml",
    "crates/quill-h2/Cargo.toml",
    "crates/quill-wire/Cargo.toml",
];
const RUNTIMES: &[&str] = &[
    "async-std",
    "hyper",
    "mio",
    "smol",
    "socket2",
    "tokio",
    "tokio-stream",
    "tokio-util",
];

pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    let publishes = tree
        .text("Cargo.toml")
        .is_some_and(|root| !root.contains("\npublish = false"));
    for (path, text) in tree.files() {
        if path != "Cargo.toml" && !path.ends_with("/Cargo.toml") {
            continue;
        }
        let manifest = Manifest::read(text);
        unsorted(path, &manifest, &mut faults);
        if SANS_IO.contains(&path) {
            runtimes(path, &manifest, &mut faults);
        }
        if manifest.table("package").is_some() {
            package(tree, path, &manifest, publishes, &mut faults);
        }
    }
    faults
}

fn package(
    tree: &Tree,
    path: &str,
    manifest: &Manifest<'_>,
    publishes: bool,
    faults: &mut Vec<Fault>,
) {
    let mut fault = |line, sentence: &str| faults.push(Fault::new(path, line, sentence));
    let inherited = manifest.has("package", "publish.workspace", "true") && !publishes;
    if !inherited && !manifest.has("package", "publish", "false") {
        fault(
            1,
            "a crate is not published for now: `publish.workspace = true`.",
        );
    }
    let folder = path.trim_end_matches("Cargo.toml");
    if !folder.starts_with("crates/") {
        return;
    }
    if !manifest.has("lints", "workspace", "true") {
        fault(
            1,
            "a crate takes the workspace's lints: `[lints] workspace = true`.",
        );
    }
    // The default harness refuses the flags that the criterion benches take.
    let library = tree.text(&format!("{folder}src/lib.rs")).is_some();
    if library && !manifest.has("lib", "bench", "false") {
        fault(
            1,
            "`cargo bench -- --save-baseline x` needs `[lib] bench = false` here.",
        );
    }
    let main = format!("{folder}src/main.rs");
    let bins = format!("{folder}src/bin/");
    let binaries = tree
        .with_extension("rs")
        .filter(|(file, _)| *file == main || file.starts_with(&bins));
    let unbenched = manifest
        .tables("[bin]")
        .filter(|bin| bin.has("bench", "false"));
    if binaries.count() > unbenched.count() {
        fault(
            1,
            "`cargo bench -- --save-baseline x` needs a `[[bin]]` with `bench = false` for each binary.",
        );
    }
    for bench in manifest
        .tables("[bench]")
        .filter(|bench| !bench.has("harness", "false"))
    {
        fault(
            bench.line,
            "a bench has a `main` of its own: `harness = false`.",
        );
    }
}

fn runtimes(path: &str, manifest: &Manifest<'_>, faults: &mut Vec<Fault>) {
    let shipped = |table: &&Table<'_>| table.is_dependencies() && !table.name.contains("dev-");
    for table in manifest.tables.iter().filter(shipped) {
        for (line, name) in table.names().filter(|(_, name)| RUNTIMES.contains(name)) {
            let sentence =
                format!("this crate is sans-I/O; `{name}` brings a runtime or a socket.");
            faults.push(Fault::new(path, line, sentence));
        }
    }
}

fn unsorted(path: &str, manifest: &Manifest<'_>, faults: &mut Vec<Fault>) {
    for table in manifest
        .tables
        .iter()
        .filter(|table| table.is_dependencies())
    {
        let mut last = "";
        let mut group = 0;
        for entry in &table.entries {
            // In the workspace's table a comment heads a group of its own.
            if table.name == "workspace.dependencies" && entry.group != group {
                (last, group) = ("", entry.group);
            }
            let name = entry.name();
            if name < last {
                let sentence = format!("dependencies are sorted; `{name}` comes before `{last}`.");
                faults.push(Fault::new(path, entry.line, sentence));
            }
            last = name;
        }
    }
}

struct Manifest<'a> {
    tables: Vec<Table<'a>>,
}

struct Table<'a> {
    /// `[[bin]]` is called `[bin]`.
    name: &'a str,
    line: usize,
    entries: Vec<Entry<'a>>,
}

struct Entry<'a> {
    line: usize,
    key: &'a str,
    value: &'a str,
    /// Comment lines of the table before it.
    group: usize,
}

impl<'a> Manifest<'a> {
    fn read(text: &'a str) -> Self {
        let mut tables: Vec<Table<'a>> = Vec::new();
        let (mut group, mut open) = (0, 0_usize);
        for (index, raw) in text.lines().enumerate() {
            let line = raw.trim();
            if open == 0 && line.starts_with('[') {
                let name = line
                    .strip_prefix('[')
                    .and_then(|l| l.strip_suffix(']'))
                    .unwrap_or(line);
                tables.push(Table {
                    name,
                    line: index + 1,
                    entries: Vec::new(),
                });
                group = 0;
                continue;
            }
            if line.starts_with('#') {
                group += 1;
            } else if let (0, Some((key, value))) = (open, line.split_once('=')) {
                let (key, value) = (key.trim(), value.trim());
                if let Some(table) = tables.last_mut() {
                    table.entries.push(Entry {
                        line: index + 1,
                        key,
                        value,
                        group,
                    });
                }
            }
            // A value may go on over lines.
            open += line.matches(['[', '{']).count();
            open = open.saturating_sub(line.matches([']', '}']).count());
        }
        Self { tables }
    }

    fn tables(&self, name: &str) -> impl Iterator<Item = &Table<'a>> {
        self.tables.iter().filter(move |table| table.name == name)
    }

    fn table(&self, name: &str) -> Option<&Table<'a>> {
        self.tables(name).next()
    }

    fn has(&self, table: &str, key: &str, value: &str) -> bool {
        self.table(table).is_some_and(|table| table.has(key, value))
    }
}

impl<'a> Table<'a> {
    fn has(&self, key: &str, value: &str) -> bool {
        self.entries
            .iter()
            .any(|entry| entry.key == key && entry.value == value)
    }

    fn is_dependencies(&self) -> bool {
        self.name.ends_with("dependencies")
    }

    fn names(&self) -> impl Iterator<Item = (usize, &'a str)> {
        self.entries.iter().map(|entry| (entry.line, entry.name()))
    }
}

impl<'a> Entry<'a> {
    fn name(&self) -> &'a str {
        self.key.split('.').next().unwrap_or(self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[package]\nname = \"a\"\npublish.workspace = true\n\n[lib]\nbench = false\n\n\
        [dependencies]\nbytes.workspace = true\ntokio = { version = \"1\", features = [\n  \"rt\",\n] }\n\n\
        [[bench]]\nname = \"b\"\nharness = false\n\n[lints]\nworkspace = true\n";

    fn faults(path: &str, text: &str) -> Vec<String> {
        let source = path.replace("Cargo.toml", "src/lib.rs");
        let tree = Tree::of(&[
            ("Cargo.toml", "[workspace.package]\npublish = false\n"),
            (path, text),
            (&source, ""),
        ]);
        check(&tree).iter().map(Fault::to_string).collect()
    }

    #[test]
    fn each_missing_line_is_a_fault() {
        assert_eq!(faults("crates/a/Cargo.toml", GOOD), [""; 0]);
        for line in [
            "publish.workspace = true",
            "bench = false",
            "workspace = true\n",
            "harness = false",
        ] {
            let cut = match line {
                "workspace = true\n" => GOOD.replace("[lints]\nworkspace = true\n", ""),
                line => GOOD.replace(line, ""),
            };
            assert_eq!(faults("crates/a/Cargo.toml", &cut).len(), 1, "{line}");
        }
    }

    #[test]
    fn sans_io_crates_take_no_runtime() {
        let path = "crates/quill-core/Cargo.toml";
        assert_eq!(
            faults(path, GOOD),
            [
                "crates/quill-core/Cargo.toml:10: this crate is sans-I/O; `tokio` brings a runtime or a socket."
            ]
        );
        assert!(faults(path, &GOOD.replace("[dependencies]", "[dev-dependencies]")).is_empty());
    }

    #[test]
    fn unsorted_dependencies_are_faults() {
        let text = "[dependencies]\nb.workspace = true\n# c\na = \"1\"\n";
        assert_eq!(
            faults("x/Cargo.toml", text),
            ["x/Cargo.toml:4: dependencies are sorted; `a` comes before `b`."]
        );
        let groups = "[workspace.dependencies]\n# Ours\nb = \"1\"\n# Theirs\na = \"1\"\n";
        assert!(faults("x/Cargo.toml", groups).is_empty());
    }

    #[test]
    fn a_binary_has_no_default_bench() {
        let tree = |text| {
            Tree::of(&[
                ("Cargo.toml", "\npublish = false\n"),
                ("crates/a/Cargo.toml", text),
                ("crates/a/src/main.rs", ""),
            ])
        };
        let text = GOOD.replace("[lib]", "[[bin]]");
        assert!(check(&tree(&text)).is_empty());
        assert_eq!(check(&tree(GOOD)).len(), 1);
    }
}
