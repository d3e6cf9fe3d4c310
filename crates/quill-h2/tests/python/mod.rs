//! A Python program that answers a line for each line.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub(crate) struct Python {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Python {
    /// Runs `program`; none, with a word, where what it needs is missing, by the one
    /// statement `needs`. `REQUIRE_EXTERNAL=1` makes that a failure.
    pub(crate) fn start(what: &str, needs: &str, program: &str) -> Option<Self> {
        let needed = Command::new("python3").args(["-c", needs]).output();
        if !needed.is_ok_and(|output| output.status.success()) {
            let required = std::env::var_os("REQUIRE_EXTERNAL").is_some_and(|value| value == "1");
            assert!(!required, "{what} is not installed");
            let _ = writeln!(std::io::stderr(), "skipped: no {what}");
            return None;
        }
        let mut child = Command::new("python3")
            .args(["-c", program])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python starts");
        Some(Self {
            input: child.stdin.take().expect("piped"),
            output: BufReader::new(child.stdout.take().expect("piped")),
            child,
        })
    }

    pub(crate) fn ask(&mut self, line: &str) -> String {
        writeln!(self.input, "{line}").expect("Python reads");
        let mut answer = String::new();
        self.output.read_line(&mut answer).expect("Python answers");
        assert!(answer.ends_with('\n'), "no answer to {line}");
        answer.trim().to_owned()
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
