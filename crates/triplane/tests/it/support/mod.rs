//! Shared support of the command's tests: running programs with a time limit, networks of namespaces, and frames of a
//! feed.

// Not every test uses all of these items.
#![allow(dead_code)]

pub mod authority;
pub mod controller;
pub mod deliveries;
pub mod feed;
pub mod flows;
pub mod labs;
pub mod metrics;
pub mod network;
pub mod plain;
pub mod rig;
pub mod service;
pub mod sources;
pub mod stalling;
pub mod switched;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum run time of a program; after it the program is killed, and the test fails.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(120);

/// Returns the root of the workspace. Commands run there, so that their output names `examples/...`.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/triplane is two levels deep")
}

/// Returns a `triplane` command with these arguments.
pub fn triplane(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_triplane"));
    command.args(arguments).current_dir(root()).env_remove("NO_COLOR").env("COLUMNS", "110");
    command
}

/// The result of a program.
pub struct Done {
    /// Exit code; `None` if a signal ended the program.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Done {
    /// Parses the standard output as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("not JSON: {error}\n{self:?}"))
    }

    /// Returns the result itself, and panics if the program failed.
    #[track_caller]
    pub fn ok(self) -> Done {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }
}

impl std::fmt::Debug for Done {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Done { code, stdout, stderr } = self;
        write!(f, "exit code {code:?}\n--- standard output\n{stdout}\n--- standard error\n{stderr}")
    }
}

/// Runs a program to its end.
#[track_caller]
pub fn run(command: &mut Command) -> Done {
    Running::start(command).wait()
}

/// A running program. Dropping this kills it.
pub struct Running {
    name: String,
    child: Child,
    stdout: Option<JoinHandle<String>>,
    stderr: Option<JoinHandle<String>>,
    /// Lines of either stream, as they arrive.
    lines: Receiver<String>,
}

impl Running {
    /// Starts a program.
    #[track_caller]
    pub fn start(command: &mut Command) -> Running {
        let name = format!("{command:?}");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        let (sender, lines) = channel();
        let collect = |stream: Box<dyn Read + Send>| {
            let sender = sender.clone();
            std::thread::spawn(move || {
                let mut all = Vec::new();
                let mut reader = std::io::BufReader::new(stream);
                let mut start = 0;
                while std::io::BufRead::read_until(&mut reader, b'\n', &mut all).is_ok_and(|count| count > 0) {
                    let _ = sender.send(String::from_utf8_lossy(&all[start..]).into_owned());
                    start = all.len();
                }
                String::from_utf8_lossy(&all).into_owned()
            })
        };
        let stdout = collect(Box::new(child.stdout.take().expect("it is piped")));
        let stderr = collect(Box::new(child.stderr.take().expect("it is piped")));
        Running { name, child, stdout: Some(stdout), stderr: Some(stderr), lines }
    }

    /// Waits until the program prints a line with this text, and returns the line.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) -> String {
        let deadline = Instant::now() + TEST_TIMEOUT;
        let mut seen = String::new();
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) if line.contains(text) => return line,
                Ok(line) => seen += &line,
                Err(_) => panic!("{} does not print `{text}`, but:\n{seen}", self.name),
            }
        }
    }

    /// Waits until the program prints a line with this text and an address after it (`P4Runtime on 127.0.0.1:43123,
    /// device 0`). Returns the address. A program started with port 0 prints the port that it got.
    #[track_caller]
    pub fn wait_for_address(&mut self, before: &str) -> String {
        let line = self.wait_for(before);
        let after = line.split_once(before).map_or("", |(_, after)| after);
        let address: &str = after.split([',', ' ', ';', '\n']).next().unwrap_or_default();
        assert!(
            address.parse::<std::net::SocketAddr>().is_ok_and(|address| address.port() != 0),
            "no address in `{line}`"
        );
        address.to_owned()
    }

    /// Returns the program's process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends the program a signal (`INT`) through the shell: every shell has `kill`.
    pub fn signal(&self, signal: &str) {
        let done = run(Command::new("sh").args(["-c", &format!("kill -{signal} {}", self.child.id())]));
        assert_eq!(done.code, Some(0), "{done:?}");
    }

    /// Waits until the program ends.
    #[track_caller]
    pub fn wait(mut self) -> Done {
        let deadline = Instant::now() + TEST_TIMEOUT;
        let status: Option<ExitStatus> = loop {
            match self.child.try_wait().expect("a child can be waited for") {
                Some(status) => break Some(status),
                None if Instant::now() > deadline => break None,
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        if status.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        let text =
            |thread: Option<JoinHandle<String>>| thread.and_then(|thread| thread.join().ok()).unwrap_or_default();
        let (stdout, stderr) = (text(self.stdout.take()), text(self.stderr.take()));
        let code = status.and_then(|status| status.code());
        let done = Done { code, stdout, stderr };
        assert!(status.is_some(), "{} does not end in {} s; {done:?}", self.name, TEST_TIMEOUT.as_secs());
        done
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // An error means that the program has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a number that no other test on this machine has at the same time: of this process, and of this call.
pub fn unique() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}x{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A directory that is deleted when this is dropped.
pub struct Directory(PathBuf);

impl Directory {
    /// Creates an empty directory.
    pub fn new() -> Directory {
        let path = std::env::temp_dir().join(format!("triplane-test-{}", unique()));
        std::fs::create_dir_all(&path).expect("a temporary directory can be made");
        Directory(path)
    }

    /// Returns the path of a file in the directory.
    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("temporary paths are UTF-8").to_owned()
    }

    /// Writes a file in the directory and returns its path.
    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, contents).expect("a temporary file can be written");
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Decodes hexadecimal digits; white space is skipped.
pub fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits")).collect()
}

/// Returns the line of `examples/router/router.p4` on which the action `name` drops, found in the file itself.
pub fn drop_line(name: &str) -> usize {
    let text = std::fs::read_to_string(root().join("examples/router/router.p4")).expect("the router");
    let action = text.lines().position(|line| line.contains(&format!("action {name}("))).expect("the action");
    let drop = text.lines().skip(action).position(|line| line.contains("mark_to_drop")).expect("its statement");
    action + drop + 1
}
