//! What a user reads when a .proto is wrong.

mod support;

use quill_codegen::{Builder, Error, Schema};
use support::Folder;

/// The error of compiling `text`, without the folder's path.
fn error_of(test: &str, text: &str) -> String {
    let folder = Folder::new(test).with("x/x.proto", text);
    let error = folder.compile("x/x.proto").expect_err("an error");
    shown(&error, &folder)
}

fn shown(error: &Error, folder: &Folder) -> String {
    let prefix = format!("{}/", folder.path().display());
    error.to_string().replace(&prefix, "")
}

#[test]
fn an_undefined_type_is_shown_in_its_line() {
    let text = "syntax = \"proto3\";\npackage x;\n\nservice X {\n\trpc Do(Missing) returns (Missing);\n}\n";
    assert_eq!(
        error_of("undefined", text),
        "x/x.proto:5:9: name 'Missing' is not defined\n   \
         |\n 5 |  rpc Do(Missing) returns (Missing);\n   |         ^^^^^^^"
    );
}

#[test]
fn a_syntax_error_names_line_and_column() {
    let error = error_of(
        "syntax",
        "syntax = \"proto3\";\nmessage A {\n  string é 1;\n}\n",
    );
    assert!(error.starts_with("x/x.proto:3:"), "{error}");
    assert!(error.contains("\n 3 |   string"), "{error}");
    let error = error_of("unclosed", "syntax = \"proto3\";\nmessage A {");
    assert!(error.starts_with("x/x.proto:2:12: expected"), "{error}");
    assert!(
        error.contains("\n 2 | message A {\n   |            ^"),
        "{error}"
    );
}

#[test]
fn a_missing_import_is_shown_where_it_is_imported() {
    let error = error_of("import", "syntax = \"proto3\";\nimport \"y.proto\";\n");
    assert!(
        error.starts_with("x/x.proto:2:1: import 'y.proto' not found"),
        "{error}"
    );
    assert!(error.contains("\n 2 | import \"y.proto\";\n"), "{error}");
}

#[test]
fn a_mistake_in_an_imported_file_names_that_file() {
    let folder = Folder::new("imported")
        .with("x.proto", "syntax = \"proto3\";\nimport \"y/y.proto\";\n")
        .with("y/y.proto", "syntax = \"proto3\";\n\nmessage {}\n");
    let error = folder.compile("x.proto").expect_err("an error");
    assert!(
        shown(&error, &folder).starts_with("y/y.proto:3:9: "),
        "{error}"
    );
    assert_eq!(error.line(), Some(3));
    assert_eq!(
        error.path(),
        Some(folder.path().join("y/y.proto").as_path())
    );
}

#[test]
fn editions_are_named_with_the_way_out() {
    let text = "// A comment.\n/* Another. */ edition = \"2023\";\npackage x;\n";
    let error = error_of("editions", text);
    assert!(
        error.starts_with("x/x.proto: edition \"2023\": "),
        "{error}"
    );
    assert!(error.contains("descriptor set"), "{error}");
}

#[test]
fn files_that_are_not_there_are_told_from_files_in_no_include() {
    let folder = Folder::new("there").with("a/x.proto", "syntax = \"proto3\";");
    let error = folder.compile("nowhere.proto").expect_err("an error");
    assert!(
        error.to_string().contains("there is no such file"),
        "{error}"
    );
    let other = Folder::new("elsewhere");
    let path = folder.path().join("a/x.proto");
    let error = Schema::compile(&[&path], &[other.path()]).expect_err("an error");
    assert!(
        error
            .to_string()
            .contains("none of the include directories"),
        "{error}"
    );
    let error = Schema::compile(&[&path], &[folder.path().join("b")]).expect_err("an error");
    assert!(error.to_string().contains("does not exist"), "{error}");
}

#[test]
fn an_import_cycle_ends() {
    let folder = Folder::new("cycle")
        .with("x.proto", "syntax = \"proto3\";\nimport \"y.proto\";\n")
        .with("y.proto", "syntax = \"proto3\";\nimport \"x.proto\";\n");
    let error = folder.compile("x.proto").expect_err("an error");
    assert!(
        error.to_string().contains("x.proto -> y.proto -> x.proto"),
        "{error}"
    );
}

#[test]
fn options_that_make_no_sense_name_the_method() {
    for (option, expected) in [
        ("cache_ttl_ms: 0", "cache_ttl_ms is 0: it must be over 0"),
        ("cache_ttl_ms: -5", "cache_ttl_ms is -5: it must be over 0"),
        (
            "min_profile: \"fast\"",
            "has min_profile \"fast\": \"classic\", \"turbo\" and \"hyper\" are known",
        ),
    ] {
        let text = format!(
            "syntax = \"proto3\";\npackage x;\nimport \"quill/annotations.proto\";\n\
             message M {{}}\nservice X {{ rpc Do(M) returns (M) {{ option (quill.rpc) = {{ {option} }}; }} }}"
        );
        let folder = Folder::new("options").with("x.proto", &text);
        let schema = folder.compile("x.proto").expect("valid protobuf");
        let error = Builder::new().generate(&schema).expect_err("an error");
        assert_eq!(
            error.to_string(),
            format!("x.proto: method x.X.Do: (quill.rpc) {expected}")
        );
    }
}

#[test]
fn options_without_effect_are_warned_of() {
    let text = "syntax = \"proto3\";\npackage x;\nimport \"quill/annotations.proto\";\n\
        message M {}\nservice X {\n  option (quill.service).path_prefix = \"/v1\";\n  \
        rpc Do(M) returns (M) { option (quill.rpc).cache_ttl_ms = 5; } }";
    let folder = Folder::new("warned").with("x.proto", text);
    let schema = folder.compile("x.proto").expect("valid protobuf");
    let (files, warnings) = Builder::new().generate(&schema).expect("code");
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(
        warnings[0].starts_with("service x.X: path_prefix"),
        "{warnings:?}"
    );
    assert!(
        warnings[1].starts_with("method x.X.Do: cache_ttl_ms"),
        "{warnings:?}"
    );
    assert!(
        !files[0].content.contains("with_cache_ttl"),
        "{}",
        files[0].content
    );
}

#[test]
fn builder_options_that_make_no_sense_are_errors() {
    let folder = Folder::new("builder").with(
        "x.proto",
        "syntax = \"proto3\"; message M {} service X { rpc Do(M) returns (M); }",
    );
    let schema = folder.compile("x.proto").expect("valid protobuf");
    let error = Builder::new().view_request("X.Dont").generate(&schema);
    let error = error.expect_err("no such method");
    assert!(
        error.to_string().contains("no method \"X.Dont\""),
        "{error}"
    );
    let error = Builder::new().runtime_path("quill").generate(&schema);
    assert!(
        error
            .expect_err("no path")
            .to_string()
            .contains("\"quill\"")
    );
    for options in ["emit=some", "emit", "unknown=1", "extern_path=a"] {
        let error = Builder::new()
            .plugin_options(options)
            .expect_err("an error");
        assert!(error.to_string().contains(options), "{error}");
    }
}

#[test]
fn a_descriptor_set_must_be_one_and_whole() {
    let error = Schema::from_descriptor_set(b"\xff\xff").expect_err("an error");
    assert!(
        error.to_string().contains("no valid descriptor set"),
        "{error}"
    );
    let error = Schema::from_descriptor_set(b"").expect_err("an error");
    assert!(error.to_string().contains("no files"), "{error}");
    // One file, "a", that imports "b".
    let error = Schema::from_descriptor_set(b"\x0a\x06\x0a\x01a\x1a\x01b").expect_err("an error");
    assert!(error.to_string().contains("a imports b, which"), "{error}");
}

#[test]
fn names_in_a_descriptor_set_must_be_names() {
    // A file "a" with one message: "x y".
    let set = b"\x0a\x0a\x0a\x01a\x22\x05\x0a\x03x y";
    let error = Schema::from_descriptor_set(set).expect_err("an error");
    assert_eq!(
        error.to_string(),
        "a: \"x y\" can't be the name of a message"
    );
}

/// The error of generating from `text`, without the folder's path.
fn refusal_of(test: &str, text: &str) -> String {
    let folder = Folder::new(test).with("x/x.proto", text);
    let schema = folder.compile("x/x.proto").expect("valid protobuf");
    let error = Builder::new().generate(&schema).expect_err("an error");
    shown(&error, &folder)
}

#[test]
fn a_name_that_rust_can_not_have_is_shown_in_its_line() {
    let text = "syntax = \"proto3\";\npackage x;\n\nmessage M {\n\tstring _ = 1;\n}\n";
    assert_eq!(
        refusal_of("underscore", text),
        "x/x.proto:5:9: a field is called \"_\": Rust needs more than underscores for a name\n   \
         |\n 5 |  string _ = 1;\n   |         ^\nhelp: rename it in the .proto file"
    );
}

#[test]
fn names_that_no_rust_can_be_made_of_are_named_with_their_place() {
    for (test, text, expected) in [
        (
            "package",
            "package a._.b;",
            "1:20: a part of a package is called \"_\"",
        ),
        (
            "super",
            "package a.super;",
            "1:20: Rust can have no module \"super\"",
        ),
        (
            "ours",
            "package a.__buffa;",
            "1:20: a part of a package is called \"__buffa\"",
        ),
        ("message", "message _ {}", "1:28: a message is called \"_\""),
        (
            "visitor",
            "message __Visitor {}",
            "names that start with two underscores",
        ),
        (
            "enum",
            "enum __ { A = 0; }",
            "1:25: an enum is called \"__\"",
        ),
        (
            "value",
            "enum E { _ = 0; }",
            "1:29: an enum value is called \"_\"",
        ),
        ("service", "service _ {}", "1:28: a service is called \"_\""),
        (
            "method",
            "message M {} service S { rpc _(M) returns (M); }",
            "1:49: a method is called \"_\"",
        ),
        (
            "oneof",
            "message M { oneof _ { string s = 1; } }",
            "1:38: an oneof is called \"_\"",
        ),
        (
            "member",
            "message M { oneof one { string _1 = 1; } }",
            "1:51: the field of a oneof \"_1\" would be \"1\" in Rust, which is no name",
        ),
        (
            "unknown-fields",
            "message M { string __buffa_unknown_fields = 1; }",
            "1:39: a field is called \"__buffa_unknown_fields\"",
        ),
        (
            "self",
            "message M { string self = 1; oneof self_ { string a = 2; } }",
            "\"self_\" would be \"self_\" in Rust, as \"self\" is already",
        ),
        (
            "oneofs",
            "message M { oneof a_b { string c = 1; } oneof a__b { string d = 2; } }",
            "the oneof \"a__b\" would be \"AB\" in Rust, as \"a_b\" is already",
        ),
        (
            "extensions",
            "import \"google/protobuf/descriptor.proto\"; extend google.protobuf.FileOptions \
             { string file_descriptor_set = 50000; }",
            "the extension \"file_descriptor_set\" would be \"FILE_DESCRIPTOR_SET\" in Rust",
        ),
        (
            "nested",
            "message M { message N {} message __N {} }",
            "a message is called \"__N\"",
        ),
    ] {
        let error = refusal_of(test, &format!("syntax = \"proto3\"; {text}\n"));
        assert!(error.starts_with("x/x.proto:1:"), "{error}");
        assert!(error.contains(expected), "{test}: {error}");
    }
}

#[test]
fn a_package_that_would_hide_a_type_is_refused_where_one_is_around_it() {
    let folder = Folder::new("hidden")
        .with(
            "x.proto",
            "syntax = \"proto3\"; package x; import \"y.proto\"; message M { x.str.N n = 1; }",
        )
        .with(
            "y.proto",
            "syntax = \"proto3\"; package x.str; message N {}",
        );
    let schema = folder.compile("x.proto").expect("valid protobuf");
    let error = Builder::new().generate(&schema).expect_err("an error");
    assert!(
        shown(&error, &folder)
            .starts_with("y.proto:1:20: the module of package \"x.str\" would hide"),
        "{error}"
    );
    let schema = folder.compile("y.proto").expect("valid protobuf");
    Builder::new().generate(&schema).expect("code");
}

#[test]
fn a_descriptor_sets_names_are_refused_without_a_line() {
    // A file "a" with one message: "_".
    let set = b"\x0a\x08\x0a\x01a\x22\x03\x0a\x01_";
    let schema = Schema::from_descriptor_set(set).expect("a set");
    let error = Builder::new().generate(&schema).expect_err("an error");
    assert!(
        error
            .to_string()
            .starts_with("a: a message is called \"_\": "),
        "{error}"
    );
}
