//! What is generated, and how much of it.

mod support;

use buffa::Message;
use buffa_descriptor::generated::compiler::{CodeGeneratorRequest, CodeGeneratorResponse};
use buffa_descriptor::generated::descriptor::{
    DescriptorProto, Edition, FileDescriptorProto, FileDescriptorSet,
};
use quill_codegen::{BUILTIN_PROTOS, Builder, Emit, PackageFile, Schema};
use support::Folder;

/// The standard health service, from its published names and numbers.
const HEALTH: &str = r#"
syntax = "proto3";
package grpc.health.v1;
message HealthCheckRequest { string service = 1; }
message HealthCheckResponse {
  enum ServingStatus { UNKNOWN = 0; SERVING = 1; NOT_SERVING = 2; SERVICE_UNKNOWN = 3; }
  ServingStatus status = 1;
}
service Health {
  // Asks once.
  rpc Check(HealthCheckRequest) returns (HealthCheckResponse);
  // Asks for every change.
  rpc Watch(HealthCheckRequest) returns (stream HealthCheckResponse);
}
"#;

const FOUR: &str = r#"
syntax = "proto3";
package four;
message M { string text = 1; }
service Four {
  rpc Unary(M) returns (M);
  rpc Client(stream M) returns (M);
  rpc Server(M) returns (stream M);
  rpc Bidi(stream M) returns (stream M);
}
"#;

fn generate(builder: &Builder, schema: &Schema) -> Vec<PackageFile> {
    let (files, warnings) = builder.generate(schema).expect("code");
    assert!(warnings.is_empty(), "{warnings:?}");
    files
}

fn schema_of(test: &str, text: &str) -> Schema {
    let folder = Folder::new(test).with("x.proto", text);
    folder.compile("x.proto").expect("valid protobuf")
}

fn names(files: &[PackageFile]) -> Vec<&str> {
    files.iter().map(|file| file.name.as_str()).collect()
}

#[test]
fn a_service_costs_at_most_60_lines_a_method() {
    for (test, text, methods) in [("health", HEALTH, 2), ("four", FOUR, 4)] {
        let schema = schema_of(test, text);
        let lines = |emit| {
            let files = generate(&Builder::new().emit(emit), &schema);
            files[0].content.lines().count()
        };
        let service = lines(Emit::ALL) - lines(Emit::MESSAGES);
        // What stands once for the whole service is some 80 lines.
        let limit = 80 + 60 * methods;
        assert!(
            service <= limit,
            "{test}: {service} lines for {methods} methods"
        );
        assert!(service <= 100 * methods, "{test}: {service} lines");
    }
}

#[test]
fn each_half_can_be_left_out() {
    let schema = schema_of("halves", FOUR);
    for (emit, server, client) in [
        (Emit::ALL, true, true),
        (Emit::SERVER, true, false),
        (Emit::CLIENT, false, true),
        (Emit::MESSAGES, false, false),
    ] {
        let content = generate(&Builder::new().emit(emit), &schema)
            .remove(0)
            .content;
        assert_eq!(content.contains("pub trait Four:"), server);
        assert_eq!(content.contains("pub struct FourServer<S>"), server);
        assert_eq!(content.contains("pub struct FourClient("), client);
        assert_eq!(content.contains("pub mod four {"), server || client);
        assert!(content.contains("pub struct M {"));
        assert!(content.contains("pub const FILE_DESCRIPTOR_SET: &[u8]"));
    }
}

#[test]
fn only_the_runtime_is_named() {
    let content = generate(&Builder::new(), &schema_of("runtime", HEALTH))
        .remove(0)
        .content;
    for crate_name in ["buffa", "buffa_types", "serde", "quill_core"] {
        let path = format!("::{crate_name}::");
        let outside = content
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .filter(|line| !line.contains("/**") && !line.contains("`]"))
            .flat_map(|line| line.match_indices(&path).map(move |(at, _)| (line, at)))
            .filter(|(line, at)| !line[..*at].ends_with("::quill::__private"));
        let outside: Vec<_> = outside.collect();
        assert!(outside.is_empty(), "{outside:?}");
    }
}

#[test]
fn imports_are_generated_when_their_types_are_used() {
    let folder = Folder::new("used")
        .with(
            "x.proto",
            "syntax = \"proto3\"; package x; import \"y.proto\"; import \"unused.proto\";
             import \"google/rpc/status.proto\"; import \"google/api/annotations.proto\";
             import \"google/protobuf/empty.proto\";
             message M { y.N n = 1; google.rpc.Status status = 2; }
             service X { rpc Do(M) returns (google.protobuf.Empty) {
               option (google.api.http) = { get: \"/x\" }; } }",
        )
        .with(
            "y.proto",
            "syntax = \"proto3\"; package y; import \"z.proto\"; message N { z.E e = 1; }",
        )
        .with(
            "z.proto",
            "syntax = \"proto3\"; package z; enum E { NONE = 0; }",
        )
        .with(
            "unused.proto",
            "syntax = \"proto3\"; package unused; message U {}",
        );
    let schema = folder.compile("x.proto").expect("valid protobuf");
    let files = generate(&Builder::new(), &schema);
    assert_eq!(names(&files), ["google.rpc.rs", "x.rs", "y.rs", "z.rs"]);

    let elsewhere = Builder::new().extern_path(".y", "::ys::y");
    let files = generate(&elsewhere, &schema);
    assert_eq!(names(&files), ["google.rpc.rs", "x.rs"]);
    assert!(
        files[1].content.contains("::ys::y::N"),
        "{}",
        files[1].content
    );
    assert_eq!(schema.sources().count(), 4);
}

#[test]
fn builtin_files_compile() {
    let folder = Folder::new("builtin");
    for (name, _) in BUILTIN_PROTOS {
        Schema::compile(&[name], &[folder.path()]).expect("valid protobuf");
    }
}

#[test]
fn files_of_an_include_directory_go_before_builtin_ones() {
    let folder = Folder::new("before")
        .with(
            "x.proto",
            "syntax = \"proto3\"; import \"google/rpc/status.proto\"; message M { mine.S s = 1; }",
        )
        .with(
            "google/rpc/status.proto",
            "syntax = \"proto3\"; package mine; message S {}",
        );
    let schema = folder.compile("x.proto").expect("valid protobuf");
    assert_eq!(
        names(&generate(&Builder::new(), &schema)),
        ["_.rs", "mine.rs"]
    );
}

#[test]
fn a_folder_gets_the_packages_and_their_tree() {
    let folder = Folder::new("written").with("x.proto", HEALTH);
    let out = folder.path().join("out");
    Builder::new()
        .out_dir(&out)
        .compile(&[folder.path().join("x.proto")], &[folder.path()])
        .expect("files");
    let tree = std::fs::read_to_string(out.join("all-packages.rs")).expect("the tree");
    assert!(tree.contains("include!(\"grpc.health.v1.rs\");"), "{tree}");
    assert!(out.join("grpc.health.v1.rs").is_file());
}

#[test]
fn editions_come_in_by_descriptor_set() {
    let file = FileDescriptorProto {
        name: Some("x.proto".to_owned()),
        package: Some("x".to_owned()),
        syntax: Some("editions".to_owned()),
        edition: Some(Edition::EDITION_2023),
        message_type: vec![DescriptorProto {
            name: Some("M".to_owned()),
            ..Default::default()
        }],
        ..Default::default()
    };
    let set = FileDescriptorSet {
        file: vec![file],
        ..Default::default()
    };
    let folder = Folder::new("set");
    let path = folder.path().join("set.binpb");
    std::fs::write(&path, set.encode_to_vec()).expect("a file");
    let out = folder.path().join("out");
    let builder = Builder::new().out_dir(&out);
    builder.compile_descriptor_set(&path).expect("code");
    let code = std::fs::read_to_string(out.join("x.rs")).expect("the package");
    assert!(code.contains("pub struct M {"), "{code}");
}

#[test]
fn a_descriptor_set_says_what_its_files_said() {
    let schema = schema_of("same", FOUR);
    let again = Schema::from_descriptor_set(&schema.to_descriptor_set()).expect("a set");
    assert_eq!(
        generate(&Builder::new(), &schema),
        generate(&Builder::new(), &again)
    );
}

fn plugin(parameter: &str) -> CodeGeneratorResponse {
    let schema = schema_of("plugin", FOUR);
    let set = FileDescriptorSet::decode_from_slice(&schema.to_descriptor_set()).expect("a set");
    let request = CodeGeneratorRequest {
        file_to_generate: vec!["x.proto".to_owned()],
        parameter: Some(parameter.to_owned()),
        proto_file: set.file,
        ..Default::default()
    };
    let answer = quill_codegen::answer(&request.encode_to_vec()).expect("an answer");
    CodeGeneratorResponse::decode_from_slice(&answer).expect("a response")
}

#[test]
fn the_plugin_answers_with_files_or_an_error() {
    let response = plugin("emit=client,runtime_path=crate::rt");
    assert_eq!(response.error, None);
    assert_eq!(response.file[0].name.as_deref(), Some("four.rs"));
    let content = response.file[0].content.as_deref().expect("content");
    assert!(content.contains("pub struct FourClient(crate::rt::QuillClient);"));
    assert!(!content.contains("pub trait Four:"));

    let response = plugin("emit=nothing");
    assert!(response.file.is_empty());
    assert!(response.error.expect("an error").contains("emit=nothing"));

    assert!(quill_codegen::answer(b"\xff").is_err());
}

#[test]
fn the_plugins_binary_speaks_over_pipes() {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    let run = |request: &[u8]| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_protoc-gen-quill"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the plugin starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(request).expect("the request is read");
        drop(stdin);
        child.wait_with_output().expect("the plugin ends")
    };
    let output = run(&CodeGeneratorRequest::default().encode_to_vec());
    assert!(output.status.success());
    assert!(CodeGeneratorResponse::decode_from_slice(&output.stdout).is_ok());

    let output = run(b"\xff");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("protoc-gen-quill: "));
}
