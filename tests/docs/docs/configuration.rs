//! The guide's page on configuration: its code compiles, its files are read, and its
//! tables have every key that there is and no other.

#![allow(
    dead_code,
    unused_variables,
    reason = "each function is a page's block and its surroundings"
)]

use std::collections::BTreeSet;
use std::path::Path;

use quill::{ClientConfig, QuillClient, Server, ServerConfig, shutdown_signal};
use quill_examples::Greeter;
use quill_examples::greet::GreetServer;

use crate::{pages, read, root};

type Failure = Box<dyn std::error::Error>;

async fn server() -> Result<(), Failure> {
    let config = ServerConfig::load("quill-server.yaml")?;
    Server::builder()
        .configure(&config)?
        .service(GreetServer::new(Greeter))
        .bind(config.listen())
        .await?
        .serve_until(shutdown_signal())
        .await?;
    Ok(())
}

fn client() -> Result<(), Failure> {
    let config = ClientConfig::load("orders-client.yaml")?;
    let client = QuillClient::builder().configure(&config)?.build()?;
    Ok(())
}

/// The keys of the table below a heading.
fn listed(heading: &str) -> Vec<String> {
    let page = read(&root().join("docs/guide/configuration.md"));
    let section = page.split(heading).nth(1).expect("the heading is there");
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split('`').next().map(str::to_owned))
        .collect()
}

fn same(heading: &str, there: impl Iterator<Item = (String, Option<String>)>) {
    let listed = listed(heading);
    let told: BTreeSet<&String> = listed.iter().collect();
    assert_eq!(told.len(), listed.len(), "a key is listed twice");
    let there: Vec<String> = there.map(|(key, _)| key).collect();
    let there: BTreeSet<&String> = there.iter().collect();
    let missing: Vec<_> = there.difference(&told).collect();
    let invented: Vec<_> = told.difference(&there).collect();
    assert!(
        missing.is_empty() && invented.is_empty(),
        "{heading}: the page lacks {missing:?}, and nothing reads {invented:?}"
    );
}

#[test]
fn every_key_is_in_the_tables() {
    same("\n## Keys of a server\n", ServerConfig::keys());
    same("\n## Keys of a client\n", ClientConfig::keys());
}

#[test]
fn variables_are_named_by_the_rule() {
    for (key, variable) in ServerConfig::keys() {
        let by_rule = format!("QUILL_SERVER_{}", key.replace('.', "__").to_uppercase());
        let is_within = key.contains("[]") || key.contains(".NAME");
        assert_eq!(variable, (!is_within).then_some(by_rule), "{key}");
    }
}

/// The files that the page shows, and those of the folder of examples.
#[tokio::test]
async fn the_files_are_read() {
    let folder = std::env::temp_dir().join(format!("quill-docs-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("tls")).expect("a folder");
    let (_, blocks) = pages()
        .into_iter()
        .find(|(page, _)| page == "configuration.md")
        .expect("the page is there");
    let yaml = blocks.iter().filter(|block| block.language == "yaml");
    let mut names = BTreeSet::new();
    for block in yaml {
        let name = block.text.lines().next().unwrap_or_default();
        let name = name.strip_prefix("# ").expect("a file says its name");
        std::fs::write(folder.join(name), &block.text).expect("a file");
        names.insert(name.to_owned());
    }
    assert_eq!(names.len(), 3, "{names:?}");
    identity(&folder.join("tls"));
    let server = ServerConfig::load(folder.join("server.yaml")).expect("it is read");
    assert_eq!(server.listen(), "0.0.0.0:8080");
    let (health, _) = quill_health::reporter();
    let builder = Server::builder().configure(&server).expect("it is well");
    builder.service(health).check().expect("it would be served");
    let client = ClientConfig::load(folder.join("client.yaml")).expect("it is read");
    let builder = QuillClient::builder().configure(&client);
    builder.expect("it is well").build().expect("it is built");
    std::fs::remove_dir_all(folder).expect("it is there");

    let example = ServerConfig::load(root().join("deploy/server.yaml")).expect("it is read");
    let builder = Server::builder().configure(&example).expect("it is well");
    builder.check().expect("it would be served");
}

fn identity(folder: &Path) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]);
    let made = made.expect("a certificate");
    let key = made.signing_key.serialize_pem();
    std::fs::write(folder.join("server.pem"), made.cert.pem()).expect("a file");
    std::fs::write(folder.join("server.key"), key).expect("a file");
}
