//! A server that is attacked, and what can be seen of it from outside.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use quill::tls::ClientTls;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use tokio::time::{Instant, sleep};

use crate::attack::Against;
use crate::{own_server, tls};

/// How long the victim waits for open exchanges when it is asked to end: one
/// that ends much sooner had none.
pub(crate) const DRAIN_LIMIT: Duration = Duration::from_secs(3);
/// Clearly less than that.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(2);
const START_TIME_MAX: Duration = Duration::from_secs(20);

/// A process that ends with this value.
pub(crate) struct Process {
    child: Child,
    pub(crate) pid: Pid,
}

impl Process {
    pub(crate) fn spawn(command: &mut Command) -> Result<Self, String> {
        let child = command.spawn().map_err(|e| format!("{command:?}: {e}"))?;
        let pid = Pid::from_raw(child.id().cast_signed()).ok_or("a process without a number")?;
        Ok(Self { child, pid })
    }

    /// How it ended, if it has.
    pub(crate) fn status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    async fn ended_within(&mut self, time: Duration) -> Option<ExitStatus> {
        let given_up = Instant::now() + time;
        loop {
            let status = self.status();
            if status.is_some() || Instant::now() > given_up {
                return status;
            }
            sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The process of a server.
pub(crate) struct Victim {
    process: Process,
    folder: PathBuf,
    pub(crate) address: SocketAddr,
    /// How to speak TLS with it, where it does.
    pub(crate) tls: Option<ClientTls>,
}

/// What `/proc` says of a process, in KiB.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) resident: u64,
    pub(crate) peak: u64,
}

impl Victim {
    pub(crate) async fn start(
        against: Against,
        program: &Path,
        folder: &Path,
    ) -> Result<Self, String> {
        std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let port_file = folder.join(own_server::PORT);
        let mut command;
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        if against == Against::Tls {
            tls::write_identity(folder)?;
            command = Command::new(own);
            command.arg("--serve-tls").arg(folder);
        } else if against == Against::OfAddresses {
            command = Command::new(own);
            command.arg("--serve-addresses").arg(folder);
        } else {
            command = Command::new(program);
            command.args(["demo", "--listen", "127.0.0.1:0", "--port-file"]);
            command.arg(&port_file);
            if let Against::DemoWithPatience(seconds) = against {
                command.args(["--receive-timeout", &format!("{seconds}s")]);
            }
        }
        let complaints = std::fs::File::create(folder.join("stderr")).map_err(|e| e.to_string())?;
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(complaints);
        let mut process = Process::spawn(&mut command)?;
        let pid = process.pid;
        if let Against::DemoWithDescriptors(count) = against {
            let limit = Rlimit {
                current: Some(count),
                maximum: Some(count),
            };
            prlimit(Some(pid), Resource::Nofile, limit).map_err(|e| format!("prlimit: {e}"))?;
        }
        let port = port(&port_file, &mut process).await?;
        let is_tls = against == Against::Tls;
        Ok(Self {
            process,
            folder: folder.to_owned(),
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            tls: is_tls.then(|| tls::trust(folder)).transpose()?,
        })
    }

    pub(crate) fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    pub(crate) fn memory(&self) -> Memory {
        memory(self.process.pid)
    }

    /// How many descriptors it has open.
    pub(crate) fn descriptors(&self) -> usize {
        let folder = format!("/proc/{}/fd", self.process.pid.as_raw_nonzero());
        std::fs::read_dir(folder).map_or(0, Iterator::count)
    }

    /// Processor time it has had, in ticks of 10 ms.
    pub(crate) fn ticks(&self) -> u64 {
        let path = format!("/proc/{}/stat", self.process.pid.as_raw_nonzero());
        let text = std::fs::read_to_string(path).unwrap_or_default();
        // The name in brackets may hold spaces.
        let fields = text.rsplit(')').next().unwrap_or_default();
        let mut fields = fields.split_ascii_whitespace().skip(11);
        let mut tick = || fields.next()?.parse::<u64>().ok();
        tick().unwrap_or_default() + tick().unwrap_or_default()
    }

    /// Asks it to end; what was wrong about how it did.
    pub(crate) async fn stop(mut self) -> Vec<String> {
        let mut findings = Vec::new();
        let asked = Instant::now();
        let _ = kill_process(self.process.pid, Signal::TERM);
        match self.process.ended_within(DRAIN_LIMIT * 3).await {
            Some(status) if status.success() => {
                let time = asked.elapsed();
                if time > DRAIN_TIME_MAX {
                    findings.push(format!("streams were left open: it drained for {time:.1?}"));
                }
            }
            Some(status) => findings.push(format!("it ended with {status}")),
            None => findings.push("it does not end when it is asked to".to_owned()),
        }
        let complaints = std::fs::read_to_string(self.folder.join("stderr")).unwrap_or_default();
        let panicked = complaints.lines().find(|line| line.contains("panicked"));
        findings.extend(panicked.map(|line| format!("a panic: {line}")));
        findings
    }
}

/// What `/proc` says of a process.
pub(crate) fn memory(pid: Pid) -> Memory {
    let path = format!("/proc/{}/status", pid.as_raw_nonzero());
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let kib = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().trim_end_matches(" kB").parse().ok()
    };
    Memory {
        resident: kib("VmRSS:").unwrap_or_default(),
        peak: kib("VmHWM:").unwrap_or_default(),
    }
}

async fn port(file: &Path, process: &mut Process) -> Result<u16, String> {
    let given_up = Instant::now() + START_TIME_MAX;
    loop {
        if let Ok(text) = std::fs::read_to_string(file) {
            return text.trim().parse().map_err(|_| format!("no port: {text}"));
        }
        if process.status().is_some() || Instant::now() > given_up {
            return Err("the victim did not start".to_owned());
        }
        sleep(Duration::from_millis(5)).await;
    }
}

/// Lets this process, and so those it starts, have as many descriptors as it
/// may; how many that are.
pub(crate) fn raise_descriptors() -> u64 {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let _ = rustix::process::setrlimit(Resource::Nofile, raised);
    let limit = rustix::process::getrlimit(Resource::Nofile);
    limit.current.unwrap_or(u64::MAX)
}
