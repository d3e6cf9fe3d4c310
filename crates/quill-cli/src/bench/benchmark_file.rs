//! The file that lists benchmarks.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, stdin};
use std::path::{Path, PathBuf};

use quill::Metadata;
use serde::Deserialize;
use serde_json::Value as Json;
use serde_saphyr::UserMessageFormatter;

use super::benchmark::Benchmark;
use super::budget::Budget;
use super::payload::GivenPayload;
use crate::args::{metadata, protocol, time};
use crate::failure::Failure;
use crate::target::Target;

/// Most bytes of the file; large payloads have files of their own.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A YAML file with a list of benchmarks.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BenchmarkFile {
    benchmarks: Vec<Listed>,
}

/// One benchmark as the file has it. What has no field here is a budget.
#[derive(Debug, Deserialize)]
struct Listed {
    name: Option<String>,
    url: Option<String>,
    service: String,
    method: String,
    payload: Option<Json>,
    protocol: Option<String>,
    #[serde(default)]
    metadata: BTreeMap<String, String>,
    timeout: Option<String>,
    #[serde(default, alias = "budget")]
    budgets: BTreeMap<String, Json>,
    #[serde(flatten)]
    rest: BTreeMap<String, Json>,
}

const KEYS: &str = "name, url, service, method, payload, protocol, metadata, timeout, budgets";

impl BenchmarkFile {
    /// Reads the benchmarks, in the file's order. `server` is that of those
    /// that name none.
    pub(crate) fn read(path: &Path, server: Option<&str>) -> Result<Vec<Benchmark>, Failure> {
        let (given, name): (Box<dyn Read>, _) = if path == Path::new("-") {
            (Box::new(stdin()), "standard input".to_owned())
        } else {
            let name = path.display().to_string();
            let opened = File::open(path).map_err(|error| {
                Failure::input(format!("{name}: {error}")).with_hint(
                    "--file names another one; URL/package.Service/Method needs none \
                     (quill bench --help)",
                )
            });
            (Box::new(opened?), name)
        };
        let wrong = |error: String| Failure::input(format!("{name}: {error}"));
        let mut text = String::new();
        // One more than is allowed tells that there is more.
        let read = given.take(BYTES_MAX + 1).read_to_string(&mut text);
        read.map_err(|error| wrong(error.to_string()))?;
        if text.len() as u64 > BYTES_MAX {
            return Err(wrong(format!(
                "it has more than {BYTES_MAX} bytes; a payload can be \"@file\""
            )));
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse(&text, folder, server).map_err(wrong)
    }

    /// `folder` is where the files of payloads are looked for.
    fn parse(text: &str, folder: &Path, server: Option<&str>) -> Result<Vec<Benchmark>, String> {
        let yaml: Json = serde_saphyr::from_str(text)
            .map_err(|error| error.render_with_formatter(&UserMessageFormatter))?;
        if !yaml.is_object() {
            return Err("it lists no benchmarks: it begins with \"benchmarks:\"".to_owned());
        }
        if yaml.get("benchmarks").is_some_and(Json::is_null) {
            return Err("it lists no benchmarks: a list stands below \"benchmarks:\"".to_owned());
        }
        let file: Self = serde_path_to_error::deserialize(yaml).map_err(|error| {
            let path = error.path().to_string();
            format!("{path}: {}", error.into_inner())
        })?;
        if file.benchmarks.is_empty() {
            return Err("it lists no benchmarks".to_owned());
        }
        let listed = file.benchmarks.into_iter().enumerate();
        listed
            .map(|(index, listed)| {
                let read = listed.read(folder, server);
                read.map_err(|error| format!("benchmarks[{index}]: {error}"))
            })
            .collect()
    }
}

impl Listed {
    fn read(self, folder: &Path, server: Option<&str>) -> Result<Benchmark, String> {
        let mut budget = Budget::default();
        if let Some(unknown) = self.rest.keys().find(|key| !Budget::is_known(key)) {
            let budgets = Budget::names();
            return Err(format!(
                "there is no key {unknown:?}; there are {KEYS}, and the budgets {budgets}"
            ));
        }
        for (name, value) in self.budgets.iter().chain(&self.rest) {
            let set = budget.set(name, value);
            set.map_err(|error| format!("{name} {error}"))?;
        }
        let mut sent = Metadata::new();
        for (name, value) in &self.metadata {
            let one = metadata(name, value).map_err(|error| format!("metadata: {error}"))?;
            sent.extend(&one);
        }
        let url = self
            .url
            .as_deref()
            .or(server)
            .ok_or("missing field `url`")?;
        let url = url.trim_end_matches('/');
        let takes_token = server.is_some_and(|server| server.trim_end_matches('/') == url);
        let path = format!("{}/{}", self.service, self.method);
        let target =
            Target::parse(&format!("{url}/{path}"), None).map_err(|error| error.to_string())?;
        let protocol = self.protocol.as_deref().map(protocol).transpose();
        let timeout = self.timeout.as_deref().map(time).transpose();
        Ok(Benchmark {
            name: self.name.unwrap_or(path),
            target,
            payload: payload(self.payload, folder),
            protocol: protocol.map_err(|error| format!("protocol: {error}"))?,
            metadata: sent,
            takes_token,
            timeout: timeout.map_err(|error| format!("timeout: {error}"))?,
            budget,
        })
    }
}

/// A message, a list of messages, or the name of a file with some.
fn payload(given: Option<Json>, folder: &Path) -> GivenPayload {
    match given {
        None | Some(Json::Null) => GivenPayload::Empty,
        Some(Json::String(text)) if text.starts_with('@') => {
            let path: PathBuf = folder.join(text.trim_start_matches('@'));
            GivenPayload::File(path)
        }
        Some(Json::Array(messages)) => {
            let texts: Vec<_> = messages.iter().map(Json::to_string).collect();
            GivenPayload::Json(texts.join("\n"))
        }
        Some(message) => GivenPayload::Json(message.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quill::Protocol;
    use std::time::Duration;

    fn parse(text: &str) -> Result<Vec<Benchmark>, String> {
        BenchmarkFile::parse(text, Path::new("folder"), None)
    }

    #[test]
    fn a_benchmark_is_a_method_and_a_payload() {
        let read = parse(
            r#"
benchmarks:
  - name: "Echo Service - Unary"
    url: "http://localhost:8080"
    service: "echo.v1.EchoService"
    method: "Echo"
    payload:
      message: "Hello, World!"

  - name: "Large Payload"
    url: "http://localhost:8080/"
    service: "data.v1.DataService"
    method: "Process"
    payload:
      data: "..." # Large payload
"#,
        )
        .unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!(read[0].name, "Echo Service - Unary");
        assert_eq!(read[0].target.base_url, "http://localhost:8080");
        assert_eq!(read[0].target.method, "Echo");
        let payload = GivenPayload::Json(r#"{"message":"Hello, World!"}"#.to_owned());
        assert_eq!(read[0].payload, payload);
        assert_eq!(read[1].target.base_url, "http://localhost:8080");
        assert_eq!(
            read[1].payload,
            GivenPayload::Json(r#"{"data":"..."}"#.to_owned())
        );
    }

    #[test]
    fn all_else_of_a_benchmark_is_optional() {
        let read = parse(
            r#"
benchmarks:
  - url: unix:/run/a.sock
    service: a.B
    method: C
    payload: "@data/large.json"
    protocol: grpc
    metadata: {x-id: "7"}
    timeout: 2s
    p99: 40ms
    budgets: {p50: 1ms, errors: 1%}
  - {url: "http://h", service: a.B, method: C, payload: [{a: 1}, {a: 2}]}
  - {url: "http://h", service: a.B, method: C}
"#,
        )
        .unwrap();
        let first = &read[0];
        assert_eq!(first.name, "a.B/C");
        assert_eq!(
            first.payload,
            GivenPayload::File("folder/data/large.json".into())
        );
        assert_eq!(first.protocol, Some(Protocol::from_name("grpc").unwrap()));
        assert_eq!(first.metadata.get("x-id"), Some("7"));
        assert_eq!(first.timeout, Some(Duration::from_secs(2)));
        assert_ne!(first.budget, Budget::default());
        let list = GivenPayload::Json("{\"a\":1}\n{\"a\":2}".to_owned());
        assert_eq!(read[1].payload, list);
        assert_eq!(read[2].payload, GivenPayload::Empty);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let entry = |more: &str| {
            format!("benchmarks:\n  - {{url: 'http://h', service: a.B, method: C, {more}}}\n")
        };
        for (text, said) in [
            ("benchmarks: []".to_owned(), "no benchmarks"),
            ("".to_owned(), "it lists no benchmarks"),
            ("# a".to_owned(), "it lists no benchmarks"),
            ("a".to_owned(), "it lists no benchmarks"),
            ("benchmarks:".to_owned(), "a list stands below"),
            ("benchmarks: 7".to_owned(), "benchmarks: invalid type"),
            ("benchmark: []".to_owned(), "unknown field `benchmark`"),
            ("- a\n- [".to_owned(), "line"),
            (entry("method: D"), "duplicate mapping key `method`"),
            (entry("p42: 1s"), "benchmarks[0]: there is no key \"p42\""),
            (entry("p99: 40"), "p99 is 40: write a number"),
            (entry("protocol: soap"), "protocol: there are quill"),
            (entry("timeout: 5"), "timeout"),
            (entry("metadata: {grpc-x: a}"), "metadata"),
            (
                "benchmarks:\n  - {service: a.B, method: C}".to_owned(),
                "missing field `url`",
            ),
            (
                "benchmarks:\n  - {url: 'http://h', service: a..B, method: C}".to_owned(),
                "no service's full name",
            ),
        ] {
            let error = parse(&text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
