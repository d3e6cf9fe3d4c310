//! `quill compat`, by files, git and a server.

use std::path::{Path, PathBuf};
use std::process::Command;

use quill::Server;

use crate::shop::{Serving, Shop, descriptor_set, protos};
use crate::support::{Ran, quill, run, scratch};

/// A folder with one file of this text.
fn folder(name: &str, text: &str) -> PathBuf {
    let folder = scratch(name);
    std::fs::create_dir_all(folder.join("a/v1")).unwrap();
    write(&folder, text);
    folder
}

fn write(folder: &Path, text: &str) {
    let text = format!("syntax = \"proto3\";\npackage a.v1;\n{text}\n");
    std::fs::write(folder.join("a/v1/a.proto"), text).unwrap();
}

fn compat(folder: &Path, arguments: &[&str]) -> Ran {
    let mut command = quill();
    command.arg("compat").args(arguments).current_dir(folder);
    run(command, b"")
}

/// Whether this breaks the binary format.
fn breaks_wire(old: &str, new: &str) -> bool {
    let root = folder("old", old);
    let new = folder("new", new);
    let arguments = [
        root.to_str().unwrap(),
        new.to_str().unwrap(),
        "--rules",
        "WIRE",
    ];
    match compat(&root, &arguments).code {
        Some(0) => false,
        Some(1) => true,
        code => panic!("{code:?}"),
    }
}

#[test]
fn the_binary_format_breaks_where_it_does() {
    let field = |kind: &str| format!("message M {{ {kind} n = 1; }}");
    for (old, new, breaks) in [
        ("message M {}", &field("int32")[..], false),
        ("message M {}", "message N {}", false),
        (&field("int32"), &field("uint32"), false),
        (&field("int32"), &field("sint32"), true),
        (&field("int32"), "message M {}", true),
        (&field("int32"), "message M { reserved 1; }", false),
        (&field("int32"), "message M { string s = 1; }", true),
    ] {
        assert_eq!(breaks_wire(old, new), breaks, "{old} to {new}");
    }
}

const OLD: &str = "message M { int32 n = 1; }\nservice S { rpc Do(M) returns (M); }";
const NEW: &str = "message M {\n  string n = 1;\n}\nservice S { rpc Do(M) returns (M); }";
const SAID: &str = "new/a/v1/a.proto:4:3: FIELD_SAME_TYPE: field 1 \"n\" of a.v1.M changed its type: \
                    was int32, is string\n  help: keep int32, or add a new field with a number of \
                    its own and reserve 1\n";

#[test]
fn a_break_is_said_where_it_is() {
    let root = folder("old", OLD).parent().unwrap().to_owned();
    std::fs::create_dir_all(root.join("new/a/v1")).unwrap();
    write(&root.join("new"), NEW);
    let ran = compat(&root, &["old", "new"]);
    assert_eq!((ran.code, &ran.stdout[..]), (Some(1), SAID));
    assert!(
        ran.stderr.contains("1 thing breaks between old and new"),
        "{ran:?}"
    );

    let ran = compat(&root, &["--against", "old", "new", "--format", "github"]);
    let annotation = "::error file=new/a/v1/a.proto,line=4,col=3,endLine=4,endColumn=8,\
                      title=FIELD_SAME_TYPE::field 1 \"n\" of a.v1.M changed its type: was int32, \
                      is string. Keep int32, or add a new field";
    assert!(ran.stdout.starts_with(annotation), "{ran:?}");

    let ran = compat(&root, &["old", "new", "--format", "json"]);
    assert_eq!(ran.code, Some(1));
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["rules"], "FILE");
    let found = &json["breaks"][0];
    assert_eq!(found["rule"], "FIELD_SAME_TYPE");
    assert_eq!(
        (&found["was"], &found["now"]),
        (&"int32".into(), &"string".into())
    );
    assert_eq!(
        (&found["place"]["line"], &found["place"]["column"]),
        (&4.into(), &3.into())
    );
    assert_eq!(found["old_place"]["file"], "old/a/v1/a.proto");
}

#[test]
fn what_does_not_break_ends_well_in_every_format() {
    let old = folder("old", OLD);
    let old = old.to_str().unwrap();
    for set in ["FILE", "PACKAGE", "WIRE_JSON", "wire"] {
        let ran = compat(Path::new("."), &[old, old, "--rules", set]);
        assert!(ran.lines()[0].starts_with("nothing breaks"), "{ran:?}");
    }
    let ran = compat(Path::new("."), &[old, old, "--format", "github"]);
    assert!(ran.lines().is_empty(), "{ran:?}");
    let ran = compat(Path::new("."), &[old, old, "--format", "json"]);
    assert!(ran.lines()[0].contains("\"breaks\":[]"), "{ran:?}");
}

#[test]
fn a_known_file_that_is_imported_no_longer_is_none_deleted() {
    let import = |name: &str, field: &str| {
        folder(
            name,
            &format!("import \"google/protobuf/empty.proto\";\n{field}"),
        )
    };
    let old = import("old", "message M { google.protobuf.Empty e = 1; }");
    let new = folder("new", "message M { reserved 1; }");
    let schemas = [old.to_str().unwrap(), new.to_str().unwrap()];
    let ran = compat(&old, &[schemas[0], schemas[1], "--rules", "FILE"]);
    assert_eq!(ran.code, Some(1));
    let rules: Vec<_> = ran.stdout.lines().step_by(2).collect();
    assert!(
        rules.len() == 1 && rules[0].contains("FIELD_NO_DELETE"),
        "{ran:?}"
    );
}

#[test]
fn a_revision_is_read_without_being_checked_out() {
    let root = folder("api", OLD).parent().unwrap().to_owned();
    std::fs::write(
        root.join("api/a/v1/b.proto"),
        "syntax = \"proto3\";\nmessage B {}\n",
    )
    .unwrap();
    for arguments in [
        &["init", "--quiet"][..],
        &["add", "."],
        &[
            "-c",
            "user.name=n",
            "-c",
            "user.email=e@x",
            "commit",
            "--quiet",
            "-m",
            "m",
        ],
        &["tag", "v1"],
    ] {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(&root);
        let ran = run(git, b"");
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    write(&root.join("api"), NEW);
    let said = SAID.replace("new/", "api/");
    for old in ["git:v1", "git:HEAD#api", "git:v1#./api/"] {
        let ran = compat(&root, &[old, "api"]);
        assert_eq!(
            (ran.code, &ran.stdout[..]),
            (Some(1), &said[..]),
            "{old}: {ran:?}"
        );
    }
    // From below, and of one file.
    let ran = compat(&root.join("api"), &["git:v1#a", "a"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let ran = compat(&root, &["git:v1#api/a/v1/a.proto", "api/a/v1/a.proto"]);
    assert!(ran.stdout.starts_with("api/a/v1/a.proto:4:3:"), "{ran:?}");
    std::fs::remove_file(root.join("api/a/v1/b.proto")).unwrap();
    let ran = compat(&root, &["git:v1", "api"]);
    assert!(
        ran.stdout
            .contains("git:v1#api/a/v1/b.proto: FILE_NO_DELETE"),
        "{ran:?}"
    );
    for (old, said) in [
        ("git:nothing", "git:nothing#api"),
        ("git:", "no revision"),
        ("git:--help", "no revision"),
        ("git:v1#none", "no .proto file"),
    ] {
        let ran = compat(&root, &[old, "api"]);
        assert!(ran.error(2).contains(said), "{old}: {ran:?}");
    }
}

#[test]
fn a_server_is_compared_by_what_it_describes() {
    let reflection = quill_reflection::server(&descriptor_set(&["shop.proto"]));
    let server = Serving::start(Server::builder().service(Shop).service(reflection));
    let folder = protos();
    let own = folder.to_str().unwrap();
    // The folder has a file more, which no service of the server uses.
    let ran = compat(Path::new("."), &[&server.url, own]);
    assert!(ran.lines()[0].starts_with("nothing breaks"), "{ran:?}");
    let ran = compat(Path::new("."), &[own, &server.url]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.contains("hidden.proto was deleted"), "{ran:?}");
    let silent = Serving::shop();
    let ran = compat(Path::new("."), &[&silent.url, own]);
    assert!(ran.error(4).contains("no reflection"), "{ran:?}");
    let ran = compat(Path::new("."), &["http://127.0.0.1:1", own]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
}

#[test]
fn what_is_no_schema_is_said() {
    let old = folder("old", OLD);
    let old = old.to_str().unwrap();
    for (arguments, said) in [
        (&[old][..], "two schemas"),
        (&[], "quill compat OLD NEW"),
        (&[old, "none"], "none: "),
        (&[old, "none.proto"], "none.proto: there is no such file"),
    ] {
        let ran = compat(Path::new("."), arguments);
        assert!(ran.error(2).contains(said), "{arguments:?}: {ran:?}");
    }
    let rules = compat(Path::new("."), &["--list-rules"]);
    let rules = rules.lines();
    assert!(
        rules
            .iter()
            .any(|rule| rule.starts_with("FIELD_SAME_TYPE ")),
        "{rules:?}"
    );
}

#[test]
fn names_of_files_drive_no_terminal_and_no_workflow() {
    use buffa::Message as _;
    use buffa_descriptor::generated::descriptor::{FileDescriptorProto, FileDescriptorSet};
    let set = |name: &str| {
        let file = FileDescriptorProto {
            name: Some(name.to_owned()),
            ..Default::default()
        };
        let set = FileDescriptorSet {
            file: vec![file],
            ..Default::default()
        };
        let path = scratch("set.binpb");
        std::fs::write(&path, set.encode_to_vec()).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (old, new) = (set("::error::a\u{1b}[2J\n::error::driven"), set("b"));
    for format in ["text", "github", "json"] {
        let ran = compat(Path::new("."), &[&old, &new, "--format", format]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let is_command = |line: &str| {
            line.trim_start().starts_with("::") && !line.starts_with("::error title=FILE_NO_DELETE")
        };
        assert!(!ran.stdout.lines().any(is_command), "{ran:?}");
        assert!(!ran.stdout.contains('\u{1b}'), "{ran:?}");
    }
}
