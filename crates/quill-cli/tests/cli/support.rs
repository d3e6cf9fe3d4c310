//! The demo as a process, and commands against it.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long anything may take before a test gives up, on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const PROTOCOLS: [&str; 5] = ["quill", "grpc", "grpc-web", "grpc-web-text", "connect"];

pub(crate) fn quill() -> Command {
    Command::new(env!("CARGO_BIN_EXE_quill"))
}

/// A path for a file of this test alone.
pub(crate) fn scratch(name: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

/// A demo that serves until it is dropped.
pub(crate) struct Demo {
    pub(crate) child: Child,
    pub(crate) address: String,
}

impl Demo {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    pub(crate) fn start_with(args: &[&str]) -> Self {
        let port_file = scratch("port");
        let mut child = quill()
            .args(["demo", "--listen", "127.0.0.1:0", "--port-file"])
            .arg(&port_file)
            .args(args)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let port = wait_for("the port file", || {
            if let Some(status) = child.try_wait().unwrap() {
                panic!("the demo ended with {status}");
            }
            std::fs::read_to_string(&port_file).ok()
        });
        let port: u16 = port.trim().parse().expect("the file holds the port");
        Self {
            child,
            address: format!("127.0.0.1:{port}"),
        }
    }

    pub(crate) fn url(&self, method: &str) -> String {
        format!("http://{}/{method}", self.address)
    }

    /// `quill call` of a method of the demo.
    pub(crate) fn call(&self, method: &str) -> Call {
        Call::new(&self.url(method))
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A `quill call` to be run.
pub(crate) struct Call {
    pub(crate) command: Command,
    stdin: Vec<u8>,
}

impl Call {
    pub(crate) fn new(target: &str) -> Self {
        let mut command = quill();
        command.args(["call", target]);
        Self {
            command,
            stdin: Vec::new(),
        }
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.command.args(args);
        self
    }

    pub(crate) fn input(self, input: &str) -> Self {
        self.args(["--input", input])
    }

    /// Gives it standard input.
    pub(crate) fn stdin(mut self, text: &str) -> Self {
        self.stdin = text.as_bytes().to_vec();
        self.args(["--input", "-"])
    }

    pub(crate) fn run(self) -> Ran {
        run(self.command, &self.stdin)
    }
}

/// What a command left behind.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// The lines of a call that went well.
    #[track_caller]
    pub(crate) fn lines(&self) -> Vec<&str> {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout.lines().collect()
    }

    /// Its error, of a call that ended with this exit code.
    #[track_caller]
    pub(crate) fn error(&self, code: i32) -> &str {
        assert_eq!(self.code, Some(code), "{self:?}");
        self.stderr.trim_end()
    }
}

pub(crate) fn run(mut command: Command, stdin: &[u8]) -> Ran {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // What the command does not read is nobody's loss.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    let stdout = drained(child.stdout.take().unwrap());
    let stderr = drained(child.stderr.take().unwrap());
    let status = wait(&mut child);
    Ran {
        code: status.code(),
        stdout: stdout.join().unwrap(),
        stderr: stderr.join().unwrap(),
    }
}

fn drained(mut pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

pub(crate) fn wait(child: &mut Child) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if start.elapsed() > PATIENCE {
            let _ = child.kill();
            panic!("still running after {PATIENCE:?}");
        }
        pause();
    }
}

pub(crate) fn wait_for<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(start.elapsed() < PATIENCE, "waited too long for {what}");
        pause();
    }
}

/// Between two looks at another process, of which no clock of ours can tell.
fn pause() {
    pause_for(Duration::from_millis(5));
}

#[expect(clippy::disallowed_methods, reason = "there is no runtime here")]
pub(crate) fn pause_for(time: Duration) {
    std::thread::sleep(time);
}

/// A program of others; `None`, with a word about it, where it is not
/// installed. `REQUIRE_EXTERNAL=1` makes that a failure.
pub(crate) fn external(program: &str) -> Option<Command> {
    let found = std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    });
    if found {
        return Some(Command::new(program));
    }
    let required = std::env::var_os("REQUIRE_EXTERNAL").is_some_and(|value| value == "1");
    assert!(!required, "{program} is not installed");
    let _ = writeln!(std::io::stderr(), "skipped: {program} is not installed");
    None
}
