//! The parts that live tests share: a runner that enters a namespace first, two hosts, and a wire made of two ports.

pub mod xdp;

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use ports::namespace::{Namespace, NamespaceError, veth_with_queues};
use ports::{AfPacketPort, Port, PortStats, wait};

/// Timeout of network operations in tests.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// A test: its name and the function that runs it, with the namespace of the router.
pub type Test = (&'static str, fn(&Namespace));

/// A test under its whole name, `suite::test`.
type NamedTest = (String, fn(&Namespace));

/// The namespaces in which a suite runs.
#[derive(Clone, Copy)]
pub enum Place {
    /// A user namespace and a network namespace in it, which need no privilege.
    UserNamespace,
    /// A network namespace alone, for operations that root of a user namespace may not do.
    NetworkNamespace,
}

/// The tests of a file. They run one after the other in a process of their own.
pub struct Suite {
    pub name: &'static str,
    pub place: Place,
    pub tests: &'static [Test],
}

impl Suite {
    /// Returns the tests whose whole name, `suite::test`, contains `filter`, each with that name.
    fn matching(&self, filter: &str) -> Vec<NamedTest> {
        let named = self.tests.iter().map(|(name, test)| (format!("{}::{name}", self.name), *test));
        named.filter(|(name, _)| name.contains(filter)).collect()
    }
}

/// The first argument of a process that runs one suite; the name of the suite and the filter follow.
const RUN_SUITE: &str = "run-suite";

/// Runs the tests whose names contain the first argument, and ends the process. `--list` prints the names only.
///
/// A process can enter a user namespace only once and only before it starts a thread. So each suite runs in a child
/// process, one after the other.
pub fn run(suites: &[Suite]) -> ! {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [RUN_SUITE, name, filter] = arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        let suite = suites.iter().find(|suite| suite.name == name).expect("a parent names a suite that there is");
        run_suite(suite, filter);
    }
    let filter = arguments.iter().find(|argument| !argument.starts_with('-')).map_or("", String::as_str);
    let chosen = suites.iter().filter(|suite| !suite.matching(filter).is_empty());
    if arguments.iter().any(|argument| argument == "--list") {
        for (name, _) in chosen.flat_map(|suite| suite.matching(filter)) {
            println!("{name}: test");
        }
        std::process::exit(0);
    }
    let mut all_passed = true;
    for suite in chosen {
        let mut child = Command::new(std::env::current_exe().unwrap());
        let status = child.args([RUN_SUITE, suite.name, filter]).status().unwrap();
        if !matches!(status.code(), Some(0 | 1)) {
            // The suite ended before it could print its totals.
            println!("{} ended early: {status}", suite.name);
            println!("test result: FAILED. 0 passed; 1 failed; 0 ignored;");
        }
        all_passed &= status.success();
    }
    std::process::exit(i32::from(!all_passed));
}

fn run_suite(suite: &Suite, filter: &str) -> ! {
    let router = match suite.place {
        Place::UserNamespace => Namespace::new_user(),
        Place::NetworkNamespace => Namespace::new_own(),
    };
    let tests = suite.matching(filter);
    let router = match router {
        Ok(router) => router,
        Err(error @ NamespaceError::Refused { .. }) => {
            for (name, _) in &tests {
                testing::skip(&format!("{name}: {error}"));
            }
            // The format of the standard harness, which `cargo xtask ci` reads the totals from.
            println!("test result: ok. {} passed; 0 failed; 0 ignored;", tests.len());
            std::process::exit(0);
        }
        Err(error) => panic!("{error}"),
    };
    router.disable_ipv6().unwrap();
    let (mut passed, mut failed) = (0, 0);
    for (name, test) in tests {
        let is_ok = catch_unwind(AssertUnwindSafe(|| test(&router))).is_ok();
        println!("test {name} ... {}", if is_ok { "ok" } else { "FAILED" });
        passed += i32::from(is_ok);
        failed += i32::from(!is_ok);
    }
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!("test result: {verdict}. {passed} passed; {failed} failed; 0 ignored;");
    std::process::exit(failed.min(1));
}

/// Two hosts, h1 (10.0.0.1, fd00::1) and h2 (10.0.0.2, fd00::2), each with its eth0 linked to the router's r1 and r2.
pub struct Hosts {
    pub h1: Namespace,
    pub h2: Namespace,
}

impl Hosts {
    pub fn new(router: &Namespace) -> Hosts {
        Hosts::with_queues(router, 1)
    }

    pub fn with_queues(router: &Namespace, queues: u32) -> Hosts {
        let host = |number: u8| {
            let host = Namespace::new(&format!("h{number}")).unwrap();
            let end = format!("r{number}");
            veth_with_queues(&host, "eth0", router, &end, queues).unwrap();
            host.set_mac("eth0", [8, 0, 0, 0, 0, number]).unwrap();
            host.set_parameter("net/ipv6/conf/eth0/accept_dad", "0").ok();
            host.add_address("eth0", IpAddr::from([10, 0, 0, number]), 24).unwrap();
            host.add_address("eth0", IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, u16::from(number)]), 64).unwrap();
            host.set_up("eth0").unwrap();
            router.set_up(&end).unwrap();
            assert!(
                host.wait_for_link("eth0", TEST_TIMEOUT).unwrap() && router.wait_for_link(&end, TEST_TIMEOUT).unwrap()
            );
            host
        };
        Hosts { h1: host(1), h2: host(2) }
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        // The kernel removes namespaces in its own time, and the next test wants the router's names again.
        for host in [&self.h1, &self.h2] {
            host.remove("eth0").ok();
        }
    }
}

/// The frames that a wire has carried.
pub struct Carried {
    pub stats: [PortStats; 2],
    /// The frames, as far as they were asked for.
    pub frames: Vec<Vec<u8>>,
}

/// A thread that carries every frame from r1 to r2 and back.
pub struct Wire {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Carried>,
}

impl Wire {
    /// Starts carrying; keeps copies of the frames if `keep`.
    pub fn start(keep: bool) -> Wire {
        let open = |name| Box::new(AfPacketPort::open(name).unwrap()) as Box<dyn Port>;
        Wire::between(["r1", "r2"].map(open), keep)
    }

    /// Returns the same between any two ports, with frames left where they are.
    pub fn between(mut ports: [Box<dyn Port>; 2], keep: bool) -> Wire {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let carry = move || {
            let mut frames = Vec::new();
            let mut batch = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                let mut idle = true;
                for from in 0..2 {
                    idle &= ports[from].receive_frames(&mut batch, 64).unwrap() == 0;
                    for frame in batch.drain(..) {
                        if keep {
                            frames.push(frame.to_vec());
                        }
                        ports[1 - from].send_frame(frame).unwrap();
                    }
                    ports[1 - from].flush().unwrap();
                }
                if idle {
                    let descriptors = [ports[0].poll_fd().unwrap(), ports[1].poll_fd().unwrap()];
                    wait(&descriptors, Duration::from_millis(20)).unwrap();
                }
            }
            Carried { stats: [ports[0].stats(), ports[1].stats()], frames }
        };
        Wire { stop, thread: std::thread::spawn(carry) }
    }

    /// Stops carrying.
    pub fn stop(self) -> Carried {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Bytes that look random and are the same each time.
pub fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut rng = rng::SplitMix64::new(seed);
    (0..len).map(|_| rng.next_u64() as u8).collect()
}

/// Sends `len` bytes from a client to a server that sends them back; returns whether both saw the right bytes.
pub fn tcp(hosts: &Hosts, server: SocketAddr, len: usize) {
    let listener = hosts.h2.enter(|| TcpListener::bind(server)).unwrap().unwrap();
    let echo = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        let mut seen = Vec::new();
        stream.read_to_end(&mut seen).unwrap();
        stream.write_all(&seen).unwrap();
    });
    let sent = noise(len, 7);
    let mut stream = hosts.h1.enter(|| TcpStream::connect_timeout(&server, TEST_TIMEOUT)).unwrap().unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream.write_all(&sent).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut seen = Vec::new();
    stream.read_to_end(&mut seen).unwrap();
    assert!(seen == sent, "{} of {} bytes came back, or others", seen.len(), sent.len());
    echo.join().unwrap();
}
