//! The guide's lists of benchmarks, and the commands that run them.

use std::path::Path;
use std::process::Command;

use crate::support::{Demo, run, scratch};

/// The blocks of a page of the guide that are in this language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
    let text = std::fs::read_to_string(path.join(page)).unwrap();
    let fences = text.split("```").skip(1).step_by(2);
    let fences = fences.filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n'));
    fences.map(str::to_owned).collect()
}

#[test]
fn its_lists_of_benchmarks_run_by_its_commands() {
    let demo = Demo::start();
    let binaries = Path::new(env!("CARGO_BIN_EXE_quill")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", binaries.display());
    for page in ["cli-bench.md", "performance.md"] {
        let here = |text: &str| {
            let text = text.replace("localhost:8080", &demo.address);
            text.replace("127.0.0.1:8080", &demo.address)
        };
        let lists = blocks(page, "yaml");
        let lists = lists
            .iter()
            .filter(|text| text.starts_with("benchmarks:\n"));
        let lists: Vec<_> = lists.collect();
        assert!(!lists.is_empty(), "{page}");
        let commands = blocks(page, "sh").join("\n");
        let commands: Vec<_> = commands
            .lines()
            .filter(|line| line.starts_with("quill bench"))
            .collect();
        assert!(commands.len() >= 4, "{page}: {commands:?}");
        for list in lists {
            let file = scratch("benchmarks.yaml");
            let folder = file.parent().unwrap();
            std::fs::write(&file, here(list)).unwrap();
            std::fs::write(folder.join("messages.json"), "{}\n{}\n").unwrap();
            for command in &commands {
                // For a moment only, whatever they say; how fast that is, is no
                // matter of this test.
                let short = command.replacen("quill bench", "quill bench -d 0.1", 1);
                let mut words = short.replace("-d 60", "").replace("-d 5", "");
                if let Some(filed) = words.find('>') {
                    words.insert_str(filed, "2> log ");
                }
                let mut shell = Command::new("sh");
                shell.arg("-euc").arg(here(&words));
                shell.env("PATH", &path).current_dir(folder);
                let ran = run(shell, b"");
                assert!(matches!(ran.code, Some(0 | 1)), "{page}: {words}: {ran:?}");
            }
            let results = std::fs::read_to_string(folder.join("results.json")).unwrap();
            let results: serde_json::Value = serde_json::from_str(&results).unwrap();
            let rows = results["benchmarks"].as_array().unwrap();
            assert_eq!(rows.len(), list.matches("- name:").count(), "{results}");
            assert!(rows.iter().all(|row| row["errors"] == 0), "{results}");
        }
    }
}
