//! `triplane store` and `run --store`: mistakes, and a switch that is killed while another one continues.

use std::fs::Permissions;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use ports::namespace::{Namespace, NamespaceError, veth_with_queues};
use ports::{AfPacketPort, Port};
use testing::lock::LIVE_TRAFFIC;

use crate::support::service::eventually;
use crate::support::{Directory, Running, TEST_TIMEOUT, root, run, triplane};

const CLUSTER: &str = "lease = \"200ms\"
[stores.a]
address = \"127.0.0.1:7101\"
[stores.b]
address = \"127.0.0.1:7102\"
[switches.s1]
address = \"127.0.0.1:7201\"
[switches.s2]
address = \"127.0.0.1:7202\"
";
pub const PROGRAM: &str = "examples/key-value/store.p4";

#[test]
fn mistakes_about_stores_are_one_sentence() {
    let directory = Directory::new();
    let cluster = directory.write("cluster.toml", CLUSTER);
    let wrong = directory.write("wrong.toml", "[stores.a]\nadress = \"127.0.0.1:7101\"\n");
    let state = directory.path("state");
    let refused = |arguments: &[&str], code: i32, part: &str| {
        let done = run(&mut triplane(arguments));
        assert_eq!(done.code, Some(code), "{done:?}");
        assert!(done.stderr.contains(part), "{done:?} lacks {part:?}");
    };
    let store = |name: &'static str, file: &str| -> Vec<String> {
        ["store", "run", name, "--cluster", file, "--state-dir", &state].map(str::to_owned).to_vec()
    };
    let words = |words: &[String]| -> Vec<String> { words.to_vec() };
    for (name, file, code, part) in [
        ("c", &cluster, 1, "has no store `c`: it has a, b"),
        ("s1", &cluster, 1, "has no store `s1`"),
        ("a", &wrong, 1, "unknown field `adress`"),
        ("a", &directory.path("none.toml"), 3, "none.toml"),
    ] {
        let arguments = words(&store(name, file));
        refused(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), code, part);
    }
    let run_with = |more: &[&str], code: i32, part: &str| {
        refused(&[&["run", PROGRAM, "--port", "1=lo"][..], more].concat(), code, part);
    };
    run_with(&["--store", &cluster], 2, "--switch");
    run_with(&["--store", &cluster, "--switch", "s1", "--workers", "2"], 2, "--store requires --workers 1");
    let state = directory.path("state");
    let kept = ["--store", &cluster, "--switch", "s1", "--p4runtime", "--state-dir", &state];
    run_with(&kept, 2, "--store requires a run without --state-dir");
    let captures = ["run", PROGRAM, "--port", "1=in.pcap:", "--store", &cluster, "--switch", "s1"];
    refused(&captures, 2, "--store requires a live port");
}

/// Runs a command, and returns its exit code and output.
fn says(arguments: &[&str]) -> (Option<i32>, String) {
    let done = run(&mut triplane(arguments));
    (done.code, done.stderr)
}

#[test]
fn a_cluster_that_others_can_reach_needs_a_private_key_file() {
    let directory = Directory::new();
    let (key, state) = (directory.path("cluster.key"), directory.path("state"));
    let open = directory.write("open.toml", CLUSTER.replace("127.0.0.1:7201", "10.0.0.1:7201"));
    let text = format!("key_file = \"cluster.key\"\n{CLUSTER}");
    let sealed = directory.write("sealed.toml", &text);
    let run_a = |cluster: &str| says(&["store", "run", "a", "--cluster", cluster, "--state-dir", &state]);
    let expect = |(code, stderr): (Option<i32>, String), expected: i32, part: &str| {
        assert!(code == Some(expected) && stderr.contains(part), "{code:?}: {stderr} lacks {part:?}");
    };
    expect(run_a(&open), 1, "create a key with `triplane store key cluster.key`");
    expect(run_a(&sealed), 3, "cannot read the key file");
    expect(says(&["store", "key", &key]), 0, "copy it to every store and switch");
    let before = std::fs::read(&key).expect("the key is there");
    expect(says(&["store", "key", &key]), 3, "a key is not overwritten");
    assert_eq!(std::fs::read(&key).expect("the key is there"), before);
    std::fs::set_permissions(&key, Permissions::from_mode(0o644)).expect("it is ours");
    expect(run_a(&sealed), 3, "run `chmod 600");
}

#[test]
fn members_with_another_cluster_file_are_reported_once() {
    let directory = Directory::new();
    let ports = [(); 2].map(|()| {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has ports");
        socket.local_addr().expect("it is bound").port()
    });
    let text = CLUSTER.replace("7101", &ports[0].to_string()).replace("7102", &ports[1].to_string());
    let files = [directory.write("one.toml", &text), directory.write("two.toml", text.replace("200ms", "300ms"))];
    let stores = [("a", &files[0]), ("b", &files[1])].map(|(name, file)| {
        let state = directory.path(name);
        let arguments = ["store", "run", name, "--cluster", file, "--state-dir", &state];
        Running::start(&mut triplane(&arguments))
    });
    for (mut store, other) in stores.into_iter().zip(["b", "a"]) {
        store.wait_for(&format!("`{other}` at 127.0.0.1:"));
        std::thread::sleep(Duration::from_millis(200));
        store.signal("INT");
        let done = store.wait().ok();
        assert_eq!(done.stderr.matches("has another cluster file: its messages are ignored").count(), 1, "{done:?}");
        assert!(done.stdout.contains("from members with another cluster file"), "{done:?}");
    }
}

/// A client behind each of two switches, which run in one namespace with their stores.
pub struct Network {
    pub switches: Namespace,
    pub clients: [Namespace; 2],
}

impl Network {
    pub fn new() -> Result<Network, NamespaceError> {
        let switches = Namespace::new("switches")?;
        let clients = [Namespace::new("client1")?, Namespace::new("client2")?];
        switches.disable_ipv6()?;
        switches.set_up("lo")?;
        for (client, end) in clients.iter().zip(["p1", "p2"]) {
            client.disable_ipv6()?;
            veth_with_queues(client, "eth0", &switches, end, 1)?;
            client.set_up("eth0")?;
            switches.set_up(end)?;
            assert!(client.wait_for_link("eth0", TEST_TIMEOUT)? && switches.wait_for_link(end, TEST_TIMEOUT)?);
        }
        Ok(Network { switches, clients })
    }

    /// Starts a command of Triplane beside the switches, and waits until it runs.
    pub fn start(&self, arguments: &[&str]) -> Running {
        let mut command = self.switches.command(triplane(&[]).get_program()).expect("a command in a namespace");
        let mut running = Running::start(command.args(arguments).current_dir(root()));
        running.wait_for("press Ctrl-C to stop");
        running
    }

    /// Adds 1 to key 7 this number of times, from a client, and returns the answers. A request that is not answered is
    /// a failure.
    pub fn count(&self, client: usize, times: u32) -> Vec<u32> {
        let ask = || {
            let mut port = AfPacketPort::open("eth0").expect("the interface is there");
            (0..times).map(|_| add(&mut port)).collect()
        };
        self.clients[client].enter(ask).expect("to enter a namespace")
    }
}

/// Adds 1 to key 7, and returns the value in the answer.
fn add(port: &mut AfPacketPort) -> u32 {
    const CLIENT: [u8; 6] = [2, 0, 0, 0, 0, 1];
    let frame = [&[2, 0, 0, 0, 0, 2][..], &CLIENT, &[0x88, 0xb6, 2, 0, 7, 0, 0, 0, 1], &[0; 39]].concat();
    port.send(&frame).expect("the interface is up");
    port.flush().expect("the interface is up");
    let deadline = Instant::now() + TEST_TIMEOUT;
    loop {
        let mut received = Vec::new();
        port.receive(&mut received, 32).expect("the interface is up");
        let is_answer = |data: &[u8]| data.starts_with(&CLIENT) && data[12..15] == [0x88, 0xb6, 2];
        if let Some(answer) = received.iter().find(|answer| is_answer(&answer.data)) {
            let bytes = &answer.data[17..21];
            return u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        assert!(Instant::now() < deadline, "no answer");
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// The two stores and two switches of [`CLUSTER`] in a network.
pub struct LiveCluster {
    pub network: Network,
    pub cluster: String,
    states: [String; 2],
    pub directory: Directory,
}

impl LiveCluster {
    /// Creates the network; returns `None`, and prints a note, without the permission to.
    pub fn new() -> Option<LiveCluster> {
        let network = match Network::new() {
            Err(error @ NamespaceError::Refused { .. }) => {
                testing::skip(&error.to_string());
                return None;
            }
            network => network.expect("a network"),
        };
        let directory = Directory::new();
        let cluster = directory.write("cluster.toml", CLUSTER);
        let states = ["a", "b"].map(|name| directory.path(name));
        Some(LiveCluster { network, cluster, states, directory })
    }

    /// Starts both stores.
    fn start_stores(&self, more: &[&str]) -> [Running; 2] {
        [("a", 0), ("b", 1)].map(|(name, number)| {
            let arguments =
                ["store", "run", name, "--cluster", &self.cluster, "--state-dir", &self.states[number], "--json"];
            self.network.start(&[&arguments[..], more].concat())
        })
    }

    /// Starts a switch at a port.
    fn start_switch(&self, name: &str, port: &str) -> Running {
        self.network.start(&["run", PROGRAM, "--port", port, "--store", &self.cluster, "--switch", name])
    }
}

#[test]
fn a_key_goes_on_counting_when_its_switch_is_killed() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some(live) = LiveCluster::new() else { return };
    let stores = live.start_stores(&[]);
    let (first, second) = (live.start_switch("s1", "1=p1"), live.start_switch("s2", "1=p2"));
    let network = &live.network;
    assert_eq!(network.count(0, 50), (1..=50).collect::<Vec<_>>());
    // The row moves between living switches, and back.
    assert_eq!(network.count(1, 50), (51..=100).collect::<Vec<_>>());
    assert_eq!(network.count(0, 50), (101..=150).collect::<Vec<_>>());
    first.signal("KILL");
    assert_eq!(network.count(1, 50), (151..=200).collect::<Vec<_>>());
    // The switch starts again, with another incarnation and no memory.
    let first = live.start_switch("s1", "1=p1");
    assert_eq!(network.count(0, 50), (201..=250).collect::<Vec<_>>());
    for switch in [first, second] {
        switch.signal("INT");
        switch.wait().ok();
    }
    for store in stores {
        store.signal("INT");
        let done = store.wait().ok().json();
        assert_eq!((done["rows"].as_u64(), done["refused"].as_u64()), (Some(1), Some(0)), "{done:#}");
    }
    // A store that has lost its rows does not answer for them.
    let arguments = ["store", "run", "a", "--cluster", &live.cluster, "--state-dir", &live.states[0]];
    let done = run(&mut triplane(&arguments));
    assert!(done.code == Some(3) && done.stderr.contains("lost them when it stopped"), "{done:?}");
    let done = run(&mut triplane(&[&arguments[..], &["--forget"]].concat()));
    assert!(done.code == Some(3) && done.stderr.contains("all of them have to forget together"), "{done:?}");
}

#[test]
fn stores_on_disk_go_on_after_all_of_them_were_killed() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some(live) = LiveCluster::new() else { return };
    let mut stores = live.start_stores(&["--durable"]);
    let switches = [live.start_switch("s1", "1=p1"), live.start_switch("s2", "1=p2")];
    let network = &live.network;
    assert_eq!(network.count(0, 50), (1..=50).collect::<Vec<_>>());
    for round in 1..4 {
        stores.iter().for_each(|store| store.signal("KILL"));
        drop(stores);
        stores = live.start_stores(&["--durable"]);
        // The row stays at the switch that had it, or moves to the other one.
        assert_eq!(network.count(round % 2, 50), (50 * round as u32 + 1..=50 * round as u32 + 50).collect::<Vec<_>>());
    }
    for switch in switches {
        switch.signal("INT");
        switch.wait().ok();
    }
    for store in stores {
        store.signal("INT");
        let done = store.wait().ok().json();
        assert_eq!((done["rows"].as_u64(), done["disk"]["rows"].as_u64()), (Some(1), Some(1)), "{done:#}");
        assert!(done["disk"]["commits"].as_u64() >= Some(50), "{done:#}");
    }
}

#[test]
fn a_durable_store_says_what_is_wrong_with_its_directory() {
    let directory = Directory::new();
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback has ports");
    let address = socket.local_addr().expect("it is bound");
    drop(socket);
    let cluster = directory.write("cluster.toml", format!("[stores.a]\naddress = \"{address}\"\n"));
    let state = directory.path("state");
    let arguments = ["store", "run", "a", "--cluster", &cluster, "--state-dir", &state];
    let durable = [&arguments[..], &["--durable"]].concat();
    let refused = |arguments: &[&str], part: &str| {
        let done = run(&mut triplane(arguments));
        assert!(done.code == Some(3) && done.stderr.contains(part), "{done:?} lacks {part:?}");
    };
    let mut store = Running::start(&mut triplane(&durable));
    store.wait_for("0 rows on disk; press Ctrl-C to stop");
    refused(&durable, "another store uses");
    store.signal("KILL");
    drop(store);
    refused(&arguments, "pass --durable");
    let mut store = Running::start(&mut triplane(&durable));
    store.wait_for("press Ctrl-C to stop");
    store.signal("INT");
    let done = store.wait().ok();
    assert!(done.stdout.contains("0 rows on disk; "), "{done:?}");
    std::fs::write(directory.path("state/rows.redb"), "rows").expect("it can be written");
    refused(&durable, "is damaged (it does not begin as such files do)");
    std::fs::remove_file(directory.path("state/rows.redb")).expect("it can be removed");
    refused(&durable, "its rows are not in");
    let mut store = Running::start(&mut triplane(&[&durable[..], &["--forget"]].concat()));
    store.wait_for("press Ctrl-C to stop");
}

#[test]
fn switches_give_up_the_rows_of_a_store_that_forgets() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let network = match Network::new() {
        Err(error @ NamespaceError::Refused { .. }) => return testing::skip(&error.to_string()),
        network => network.expect("a network"),
    };
    let directory = Directory::new();
    let alone = CLUSTER.replace("[stores.b]\naddress = \"127.0.0.1:7102\"\n", "");
    let (cluster, state) = (directory.write("cluster.toml", &alone), directory.path("a"));
    let arguments = ["store", "run", "a", "--cluster", &cluster, "--state-dir", &state];
    let store = network.start(&arguments);
    let socket = directory.path("s1.sock");
    let start_switch = |name: &str, port: &str, more: &[&str]| {
        let arguments = ["run", PROGRAM, "--port", port, "--store", &cluster, "--switch", name];
        network.start(&[&arguments[..], more].concat())
    };
    let switches = [start_switch("s1", "1=p1", &["--socket", &socket]), start_switch("s2", "1=p2", &[])];
    let rows = || run(&mut triplane(&["resilient", "rows", "--socket", &socket, "--json"])).ok().json()["rows"].clone();
    assert_eq!(network.count(0, 30), (1..=30).collect::<Vec<_>>());
    assert_eq!(rows()[0]["key"][0]["shown"], "7");
    store.signal("KILL");
    let store = network.start(&[&arguments[..], &["--forget"]].concat());
    // The other switch starts without rows.
    assert_eq!(network.count(1, 50), (1..=50).collect::<Vec<_>>());
    // Until the first one renews its lease or the lease ends, it writes its old row, and the packets are dropped.
    eventually("the end of the old row", || rows() == serde_json::json!([]));
    assert_eq!(network.count(0, 10), (51..=60).collect::<Vec<_>>());
    for running in switches.into_iter().chain([store]) {
        running.signal("INT");
        running.wait().ok();
    }
}
