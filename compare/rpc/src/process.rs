//! The servers as processes of their own, and what the kernel says of them.

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Where servers run. Loads run on the other core, with this program.
const SERVER_CORE: &str = "0";
const BOTH_CORES: &str = "0,1";
const LOAD_CORE: &str = "1";

/// Long, for valgrind takes its time on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Something that serves `proto/echo.proto`, or files.
#[derive(Debug, Clone, Copy)]
pub struct Subject {
    pub name: &'static str,
    pub program: Program,
}

#[derive(Debug, Clone, Copy)]
pub enum Program {
    /// This program: the server of that name on a runtime of that kind.
    Own(&'static str, &'static str),
    Go,
    Volo,
    Nghttpd,
}

/// A server that runs until this is dropped.
#[derive(Debug)]
pub struct Server {
    pub subject: Subject,
    pub address: SocketAddr,
    child: Child,
}

impl Server {
    /// Starts a server on a core of its own. `folder` has the programs and
    /// files of this run.
    pub fn start(subject: Subject, folder: &Path) -> Result<Self, String> {
        Self::start_on(SERVER_CORE, subject, folder)
    }

    /// Starts a server on all cores, of which it shares one with the load.
    pub fn start_on_both(subject: Subject, folder: &Path) -> Result<Self, String> {
        Self::start_on(BOTH_CORES, subject, folder)
    }

    fn start_on(cores: &str, subject: Subject, folder: &Path) -> Result<Self, String> {
        let mut command = Command::new("taskset");
        command.args(["-c", cores]);
        match subject.program {
            Program::Own(server, runtime) => {
                command.arg(own_program()?).args(["serve", server, runtime]);
            }
            Program::Go => {
                command.arg(folder.join("grpc-go"));
            }
            // Built beside this program.
            Program::Volo => {
                command.arg(own_program()?.with_file_name("compare-volo"));
            }
            Program::Nghttpd => return Self::start_nghttpd(subject, command, folder),
        }
        Self::spawn(subject, &mut command)
    }

    /// Starts a server of ours under valgrind's callgrind.
    pub fn start_counted(subject: Subject) -> Result<Self, String> {
        let Program::Own(server, runtime) = subject.program else {
            return Err(format!("{} is not counted", subject.name));
        };
        let mut command = Command::new("valgrind");
        command
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(own_program()?)
            .args(["serve", server, runtime])
            .stderr(Stdio::piped());
        Self::spawn(subject, &mut command)
    }

    fn spawn(subject: Subject, command: &mut Command) -> Result<Self, String> {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", subject.name);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| failed(&error))?;
        let mut line = String::new();
        if let Some(out) = child.stdout.as_mut() {
            let read = BufReader::new(out).read_line(&mut line);
            read.map_err(|error| failed(&error))?;
        }
        match line.trim().parse() {
            Ok(address) => Ok(Self {
                subject,
                address,
                child,
            }),
            Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(failed(&"it did not start"))
            }
        }
    }

    /// nghttpd has to be told its port, and does not end with its input.
    fn start_nghttpd(
        subject: Subject,
        mut command: Command,
        folder: &Path,
    ) -> Result<Self, String> {
        let failed = |error: io::Error| format!("{}: {error}", subject.name);
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        let address = free.local_addr().map_err(failed)?;
        drop(free);
        let child = command
            .args(["setpriv", "--pdeathsig", "KILL"])
            .args(["nghttpd", "--no-tls", "-a", "127.0.0.1", "-d"])
            .arg(folder)
            .arg(address.port().to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let server = Self {
            subject,
            address,
            child,
        };
        let start = Instant::now();
        while let Err(error) = TcpStream::connect(address) {
            if start.elapsed() > START_LIMIT {
                return Err(failed(error));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// CPU time of all its threads since it started.
    pub fn cpu_time(&self) -> Result<Duration, String> {
        cpu_time(self.pid()).map_err(|error| format!("{}: {error}", self.subject.name))
    }

    /// Resident memory, in bytes.
    pub fn memory(&self) -> Result<f64, String> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid()));
        let status = status.map_err(|error| format!("{}: {error}", self.subject.name))?;
        // VmRSS:      1234 kB
        let kilobytes = status
            .split_once("VmRSS:")
            .and_then(|(_, rest)| rest.split_whitespace().next())
            .and_then(|number| number.parse::<f64>().ok());
        Ok(kilobytes.ok_or("no VmRSS")? * 1024.0)
    }

    /// Lets the server end by itself; what it wrote to standard error.
    pub fn finish(mut self) -> Result<String, String> {
        drop(self.child.stdin.take());
        let mut text = String::new();
        if let Some(mut err) = self.child.stderr.take() {
            err.read_to_string(&mut text)
                .map_err(|error| error.to_string())?;
        }
        self.child.wait().map_err(|error| error.to_string())?;
        Ok(text)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// This program again.
pub fn own_program() -> Result<std::path::PathBuf, String> {
    std::env::current_exe().map_err(|error| format!("no program: {error}"))
}

/// Moves this program, and so what it starts, to the core of loads.
pub fn move_to_load_core() -> Result<(), String> {
    let moved = Command::new("taskset")
        .args(["-cp", LOAD_CORE, &std::process::id().to_string()])
        .stdout(Stdio::null())
        .status();
    match moved {
        Ok(status) if status.success() => Ok(()),
        _ => Err("taskset cannot move the load to a core of its own; two are needed".into()),
    }
}

/// CPU time of all threads of a process.
pub fn cpu_time(pid: u32) -> io::Result<Duration> {
    let mut nanos = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may end while its like are read.
        let Ok(text) = fs::read_to_string(thread?.path().join("schedstat")) else {
            continue;
        };
        let on_cpu = text.split_whitespace().next();
        nanos += on_cpu.and_then(|number| number.parse().ok()).unwrap_or(0);
    }
    Ok(Duration::from_nanos(nanos))
}
