//! A client of redis, and a pair of servers: a primary and its replica.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rng::SplitMix64;

use crate::{ROWS, TURN};

/// Maximum time in which the servers must be ready.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection to a redis server.
pub struct RedisLoop {
    stream: TcpStream,
    replies: BufReader<TcpStream>,
    random: SplitMix64,
}

impl RedisLoop {
    pub fn new(address: &str) -> RedisLoop {
        let stream = TcpStream::connect(address).unwrap_or_else(|error| panic!("no redis at {address}: {error}"));
        let replies = BufReader::new(stream.try_clone().expect("a socket can be shared"));
        RedisLoop { stream, replies, random: SplitMix64::new(7) }
    }

    pub fn setting(&mut self, name: &str) -> String {
        write!(self.stream, "CONFIG GET {name}\r\n").expect("it is connected");
        let lines: Vec<String> = (0..5).map(|_| self.line()).collect();
        lines[4].clone()
    }

    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.replies.read_line(&mut line).expect("it is connected");
        line.trim_end().to_owned()
    }

    /// Sends SET commands for a turn, a window at once. Returns the number of commands per second.
    pub fn measure(&mut self, window: u64) -> f64 {
        let (start, mut done) = (Instant::now(), 0);
        while start.elapsed() < TURN {
            let mut commands = Vec::new();
            for _ in 0..window {
                let row = self.random.below(ROWS);
                write!(commands, "*3\r\n$3\r\nSET\r\n$10\r\nrow{row:07}\r\n$8\r\n12345678\r\n").expect("it is memory");
            }
            let mut stream = self.stream.try_clone().expect("a socket can be shared");
            std::thread::scope(|scope| {
                scope.spawn(move || stream.write_all(&commands).expect("it is connected"));
                (0..window).for_each(|_| assert_eq!(self.line(), "+OK"));
            });
            done += window;
        }
        done as f64 / start.elapsed().as_secs_f64()
    }
}

/// Two servers on the loopback interface. They end when this is dropped.
pub struct RedisPair {
    servers: Vec<Child>,
    client: RedisLoop,
}

impl RedisPair {
    /// Starts the servers, and waits until the replica follows. On disk, both sync each command.
    ///
    /// # Errors
    /// If redis is not installed, or the servers do not become ready.
    pub fn start(directory: &Path, is_durable: bool) -> Result<RedisPair, Box<dyn Error>> {
        let listeners = [TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?];
        let mut ports = Vec::new();
        for listener in listeners {
            ports.push(listener.local_addr()?.port());
        }
        let mut servers = Vec::new();
        for (number, port) in ports.iter().enumerate() {
            let directory = directory.join(format!("redis-{is_durable}-{number}"));
            std::fs::create_dir_all(&directory)?;
            let mut command = Command::new("redis-server");
            command.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", "", "--dir"]).arg(directory);
            command.args(["--appendonly", if is_durable { "yes" } else { "no" }, "--appendfsync", "always"]);
            if number == 1 {
                command.args(["--replicaof", "127.0.0.1", &ports[0].to_string()]);
            }
            let started = command.stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null()).spawn();
            servers.push(ServerGuard(Some(started.map_err(|error| format!("`redis-server` cannot be run: {error}"))?)));
        }
        let address = format!("127.0.0.1:{}", ports[0]);
        let begin = Instant::now();
        while TcpStream::connect(&address).is_err() && begin.elapsed() < START_TIMEOUT {
            std::thread::sleep(Duration::from_millis(10));
        }
        let servers = servers.into_iter().filter_map(|mut guard| guard.0.take()).collect();
        let mut pair = RedisPair { servers, client: RedisLoop::new(&address) };
        while !pair.is_followed()? {
            if begin.elapsed() > START_TIMEOUT {
                return Err("the replica of redis does not follow".into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(pair)
    }

    /// Whether the replica is online.
    fn is_followed(&mut self) -> Result<bool, Box<dyn Error>> {
        write!(self.client.stream, "INFO replication\r\n")?;
        let length: usize = self.client.line().trim_start_matches('$').parse()?;
        let (mut read, mut is_online) = (0, false);
        while read < length {
            let mut line = String::new();
            read += self.client.replies.read_line(&mut line)?;
            is_online |= line.contains("state=online");
        }
        self.client.line();
        Ok(is_online)
    }

    /// Sends SET commands for a time, a window at once, and waits each time until the replica has them. Returns their
    /// number a second.
    pub fn measure(&mut self, window: usize, time: Duration) -> Result<f64, Box<dyn Error>> {
        let (start, mut done) = (Instant::now(), 0);
        while start.elapsed() < time {
            let mut commands = Vec::new();
            for _ in 0..window {
                let row = self.client.random.below(ROWS);
                write!(commands, "*3\r\n$3\r\nSET\r\n$10\r\nrow{row:07}\r\n$8\r\n12345678\r\n")?;
            }
            write!(commands, "*3\r\n$4\r\nWAIT\r\n$1\r\n1\r\n$1\r\n0\r\n")?;
            self.client.stream.write_all(&commands)?;
            for _ in 0..window {
                if self.client.line() != "+OK" {
                    return Err("redis refuses a SET".into());
                }
            }
            if self.client.line() != ":1" {
                return Err("redis does not wait for its replica".into());
            }
            done += window;
        }
        Ok(done as f64 / start.elapsed().as_secs_f64())
    }
}

impl Drop for RedisPair {
    fn drop(&mut self) {
        self.servers.drain(..).for_each(|server| drop(ServerGuard(Some(server))));
    }
}

/// Ends a server when it is dropped.
struct ServerGuard(Option<Child>);

impl Drop for ServerGuard {
    fn drop(&mut self) {
        if let Some(server) = &mut self.0 {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}
