//! Runs etcd servers, each in a directory and on ports of its own.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::port::reserved_ports;

/// Maximum time until a server answers.
const PATIENCE: Duration = Duration::from_secs(60);

/// The reason for which a test is skipped.
pub const MISSING: &str = "etcd is not installed (Debian package etcd-server)";

/// A cluster of one server. It is killed when this is dropped.
pub struct EtcdServer {
    directory: PathBuf,
    address: SocketAddr,
    options: Vec<String>,
    child: Option<Child>,
}

impl EtcdServer {
    /// Starts a server without TLS. Returns `None` if etcd is not installed.
    ///
    /// # Panics
    /// If the server does not start.
    pub fn start() -> Option<EtcdServer> {
        EtcdServer::with("http", &[])
    }

    /// Starts a server with this scheme and further options. Returns `None` if etcd is not installed.
    ///
    /// # Panics
    /// If the server does not start.
    pub fn with(scheme: &str, options: &[String]) -> Option<EtcdServer> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Command::new("etcd").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?;
        let name = format!("triplane-etcd-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).expect("a temporary directory");
        let port = reserved_ports(2);
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let (client, peer) = (format!("{scheme}://{address}"), format!("http://127.0.0.1:{}", port + 1));
        let mut all: Vec<String> = [
            "--name",
            "test",
            "--listen-client-urls",
            &client,
            "--advertise-client-urls",
            &client,
            "--listen-peer-urls",
            &peer,
            "--initial-advertise-peer-urls",
            &peer,
            "--initial-cluster",
            &format!("test={peer}"),
        ]
        .map(str::to_owned)
        .to_vec();
        all.extend_from_slice(options);
        let mut server = EtcdServer { directory, address, options: all, child: None };
        server.restart();
        Some(server)
    }

    /// Starts the server, which was killed or has not run yet, and waits until it listens.
    ///
    /// # Panics
    /// If the server does not listen.
    pub fn restart(&mut self) {
        let mut command = Command::new("etcd");
        command.args(&self.options).arg("--data-dir").arg(self.directory.join("data"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.child = Some(command.spawn().expect("etcd starts"));
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(self.address).is_err() {
            assert!(Instant::now() < deadline, "etcd does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Kills the server. It keeps its data.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Sends the server a signal (`STOP`) through the shell: every shell has `kill`.
    ///
    /// # Panics
    /// If the server does not run.
    pub fn signal(&self, signal: &str) {
        let id = self.child.as_ref().expect("it runs").id();
        let done = Command::new("sh").args(["-c", &format!("kill -{signal} {id}")]).status().expect("a shell");
        assert!(done.success());
    }

    /// Returns its URL without TLS.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns its port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Makes a call of the interface over HTTP, with JSON, and returns the answer.
    ///
    /// # Panics
    /// If it fails.
    pub fn call(&self, path: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        let length = body.len();
        let request = format!("POST /v3/{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}");
        stream.write_all(format!("{request}\r\n\r\n{body}").as_bytes()).expect("it is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        answer
    }
}

impl Drop for EtcdServer {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
