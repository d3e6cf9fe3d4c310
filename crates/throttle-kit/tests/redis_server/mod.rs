//! Redis servers that a test starts, on loopback, and ends by itself.

#![allow(dead_code, reason = "each test binary uses a part")]
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "waits for other programs, and says why a test is skipped"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Whether `binary` is there. If not, says that the test is skipped, or fails
/// it where external programs are required.
pub(crate) fn is_available(binary: &str) -> bool {
    let found = Command::new(binary)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !found {
        assert!(
            std::env::var_os("REQUIRE_EXTERNAL").is_none_or(|value| value != "1"),
            "{binary} is not installed, and REQUIRE_EXTERNAL=1"
        );
        println!("skipped: {binary} is not installed");
    }
    found
}

/// A port that was free a moment ago, and with it the one 10,000 above, which a
/// cluster's nodes talk on.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        // Spread over processes, so that tests that run side by side rarely meet.
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = 11_000 + ((std::process::id() * 37 + step) % 20_000) as u16;
        let free = |port| TcpListener::bind(("127.0.0.1", port)).is_ok();
        if free(port) && free(port + 10_000) {
            return port;
        }
    }
}

/// A directory that is removed when dropped.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "throttle-kit-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A running server.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    args: Vec<String>,
    directory: Directory,
}

impl Server {
    /// Starts one with default settings, that keeps nothing on disk.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    pub(crate) fn start_with(args: &[&str]) -> Self {
        Self::start_at(free_port(), args)
    }

    pub(crate) fn start_at(port: u16, args: &[&str]) -> Self {
        let directory = Directory::new();
        let args: Vec<_> = args.iter().map(|&arg| arg.to_owned()).collect();
        let child = Self::spawn(port, &args, directory.path());
        let server = Self {
            child,
            port,
            args,
            directory,
        };
        server.wait();
        server
    }

    /// Starts a sentinel that watches `primary` by the name `limits`.
    pub(crate) fn start_sentinel(primary: u16) -> Self {
        let port = free_port();
        let directory = Directory::new();
        let file = directory.path().join("sentinel.conf");
        std::fs::write(
            &file,
            format!(
                "port {port}\nbind 127.0.0.1\n\
                 sentinel monitor limits 127.0.0.1 {primary} 1\n\
                 sentinel down-after-milliseconds limits 500\n\
                 sentinel failover-timeout limits 3000\n"
            ),
        )
        .unwrap();
        let child = Command::new("redis-sentinel")
            .arg(&file)
            .current_dir(directory.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self {
            child,
            port,
            args: Vec::new(),
            directory,
        };
        server.wait();
        server
    }

    fn spawn(port: u16, args: &[String], directory: &Path) -> Child {
        Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no", "--daemonize", "no"])
            .args(args)
            .current_dir(directory)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    fn wait(&self) {
        wait_for("the server answers", Duration::from_secs(10), || {
            self.try_command("PING")
                .is_some_and(|it| it.contains("PONG"))
        });
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Sends an inline command; the reply as it came.
    pub(crate) fn command(&self, command: &str) -> String {
        // A sentinel that promotes a server also cuts its clients off.
        (0..3)
            .find_map(|_| self.try_command(command))
            .expect("the server answers")
    }

    fn try_command(&self, command: &str) -> Option<String> {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        let mut stream = BufReader::new(stream);
        stream
            .get_mut()
            .write_all(format!("{command}\r\n").as_bytes())
            .ok()?;
        let mut reply = String::new();
        read_reply(&mut stream, &mut reply).ok()?;
        Some(reply)
    }

    /// How often the server ran this command.
    pub(crate) fn calls(&self, command: &str) -> u64 {
        let stats = self.command("INFO commandstats");
        let prefix = format!("cmdstat_{command}:calls=");
        stats
            .lines()
            .find_map(|line| line.strip_prefix(&prefix))
            .map_or(0, |line| {
                let end = line.find(',').unwrap_or(line.len());
                line[..end].parse().unwrap()
            })
    }

    /// Opens a MONITOR: every command that the server is sent, one a line.
    pub(crate) fn monitor(&self) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.write_all(b"MONITOR\r\n").unwrap();
        let mut ok = [0; 5];
        stream.read_exact(&mut ok).unwrap();
        stream
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again on the same port, empty.
    pub(crate) fn restart(&mut self) {
        self.kill();
        self.child = Self::spawn(self.port, &self.args, self.directory.path());
        self.wait();
    }

    /// Sends a signal by the name that kill(1) knows.
    pub(crate) fn signal(&self, signal: &str) {
        let status = Command::new("kill")
            .args([&format!("-{signal}"), &self.child.id().to_string()])
            .status()
            .unwrap();
        assert!(status.success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Reads one whole reply, with those in it.
fn read_reply(from: &mut impl BufRead, reply: &mut String) -> std::io::Result<()> {
    let start = reply.len();
    from.read_line(reply)?;
    let head = reply[start..].trim_end().to_owned();
    let len = head.get(1..).and_then(|len| len.parse::<u64>().ok());
    match (head.as_bytes().first(), len) {
        (Some(b'$'), Some(len)) => from.take(len + 2).read_to_string(reply).map(drop),
        (Some(b'*'), Some(len)) => (0..len).try_for_each(|_| read_reply(from, reply)),
        (Some(_), _) => Ok(()),
        (None, _) => Err(std::io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Waits until `ready`, at most `limit`.
pub(crate) fn wait_for(what: &str, limit: Duration, mut ready: impl FnMut() -> bool) {
    let start = Instant::now();
    while !ready() {
        assert!(start.elapsed() < limit, "{what}: not within {limit:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A cluster of three nodes without replicas.
pub(crate) struct Cluster(pub(crate) Vec<Server>);

impl Cluster {
    pub(crate) fn start() -> Self {
        let nodes: Vec<_> = (0..3)
            .map(|_| {
                Server::start_with(&[
                    "--cluster-enabled",
                    "yes",
                    "--cluster-node-timeout",
                    "2000",
                    "--cluster-config-file",
                    "nodes.conf",
                    "--cluster-require-full-coverage",
                    "no",
                ])
            })
            .collect();
        // What `redis-cli --cluster create` does, without its pauses.
        let bounds = [(0, 5460), (5461, 10_922), (10_923, 16_383)];
        for (index, (node, (low, high))) in nodes.iter().zip(bounds).enumerate() {
            node.command(&format!("CLUSTER SET-CONFIG-EPOCH {}", index + 1));
            let reply = node.command(&format!("CLUSTER ADDSLOTSRANGE {low} {high}"));
            assert!(reply.starts_with("+OK"), "{reply}");
        }
        for node in &nodes[1..] {
            node.command(&format!("CLUSTER MEET 127.0.0.1 {}", nodes[0].port));
        }
        let cluster = Self(nodes);
        wait_for("the cluster is whole", Duration::from_secs(20), || {
            cluster.0.iter().all(|node| {
                let info = node.command("CLUSTER INFO");
                info.contains("cluster_state:ok")
                    && info.contains("cluster_slots_ok:16384")
                    && info.contains("cluster_known_nodes:3")
            })
        });
        cluster
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.0.iter().map(Server::url).collect()
    }

    /// The index of the node that serves `slot` before any is moved.
    pub(crate) fn owner(slot: u16) -> usize {
        match slot {
            0..=5460 => 0,
            5461..=10_922 => 1,
            _ => 2,
        }
    }

    /// Moves a slot, with its keys, from one node to another.
    pub(crate) fn move_slot(&self, slot: u16, from: usize, to: usize, mut halfway: impl FnMut()) {
        let id = |index: usize| {
            let reply = self.0[index].command("CLUSTER MYID");
            reply.lines().nth(1).unwrap().trim().to_owned()
        };
        let (from_id, to_id) = (id(from), id(to));
        self.0[to].command(&format!("CLUSTER SETSLOT {slot} IMPORTING {from_id}"));
        self.0[from].command(&format!("CLUSTER SETSLOT {slot} MIGRATING {to_id}"));
        halfway();
        let keys = self.0[from].command(&format!("CLUSTER GETKEYSINSLOT {slot} 1000"));
        let to_port = self.0[to].port;
        // `$5\r\nabcde\r\n` for each key.
        let mut lines = keys.lines();
        while let Some(line) = lines.next() {
            if line.starts_with('$') {
                let key = lines.next().unwrap();
                let reply =
                    self.0[from].command(&format!("MIGRATE 127.0.0.1 {to_port} \"{key}\" 0 1000"));
                assert!(reply.starts_with("+OK"), "{reply}");
            }
        }
        for node in [to, from] {
            let reply = self.0[node].command(&format!("CLUSTER SETSLOT {slot} NODE {to_id}"));
            assert!(reply.starts_with("+OK"), "{reply}");
        }
    }
}
