//! Holds the mechanical rules of CONTRIBUTING.md over every tracked file.
//!
//! A rule is a function from a file to faults, with its own tests beside it
//! that show it fail. A fault names the file, the line, what is wrong and what
//! is allowed.

mod links;
mod manifest;
mod rust;
mod size;
mod tree;
mod words;

use tree::{Fault, Tree};

fn hold(rule: impl Fn(&Tree) -> Vec<Fault>) {
    let faults = rule(&Tree::of_workspace());
    let lines: Vec<String> = faults.iter().map(Fault::to_string).collect();
    assert!(faults.is_empty(), "\n{}\n", lines.join("\n"));
}

#[test]
fn the_tree_is_read() {
    let tree = Tree::of_workspace();
    for path in ["Cargo.toml", "CONTRIBUTING.md", "tests/tidy/main.rs"] {
        assert!(
            tree.exists(path),
            "{path} is not in the tree that tidy reads"
        );
    }
}

#[test]
fn files_and_functions_are_small() {
    hold(size::check);
}

#[test]
fn roots_hold_docs_and_exports_only() {
    hold(size::check_roots);
}

#[test]
fn code_is_finished() {
    hold(words::check_unfinished);
}

#[test]
fn names_say_what_a_thing_is() {
    hold(words::check_names);
}

#[test]
fn protocols_are_named_in_quill_wire_only() {
    hold(words::check_protocols);
}

#[test]
fn nothing_names_a_machine_or_a_package_host() {
    hold(words::check_places);
}

#[test]
fn manifests_follow_the_workspace() {
    hold(manifest::check);
}

#[test]
fn markdown_links_resolve() {
    hold(links::check);
}
