//! Tests `triplane store operate` with stores that are killed and return, and its commands.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ports::namespace::NamespaceError;
use ports::{AfPacketPort, Port};
use serde_json::Value;
use testing::lock::LIVE_TRAFFIC;

use crate::resilient::{Network, PROGRAM};
use crate::support::{Directory, Running, TEST_TIMEOUT, run, triplane};

/// A cluster of stores with a chain of three.
pub struct Cluster {
    pub directory: Directory,
    pub path: String,
    layout: String,
    /// Option and file with which commands reach the operator.
    pub asked: [String; 2],
}

impl Cluster {
    pub fn new(stores: &[&str], address: impl Fn(usize) -> String) -> Cluster {
        Cluster::with_operators(&[], stores, address)
    }

    /// Does the same for several operators, if there are names.
    pub fn with_operators(operators: &[&str], stores: &[&str], address: impl Fn(usize) -> String) -> Cluster {
        let directory = Directory::new();
        let mut text = format!("lease = \"200ms\"\nchain = {}\n", stores.len().min(3));
        for (at, name) in stores.iter().enumerate() {
            text.push_str(&format!("[stores.{name}]\naddress = \"{}\"\n", address(at)));
        }
        let operators: Vec<String> = match operators {
            [] => vec!["operator".to_owned()],
            names => names.iter().map(|name| format!("operators.{name}")).collect(),
        };
        for (at, section) in operators.iter().chain([&"switches.s1".to_owned()]).enumerate() {
            text.push_str(&format!("[{section}]\naddress = \"{}\"\n", address(stores.len() + at)));
        }
        let path = directory.write("cluster.toml", text);
        let layout = directory.path("layout.json");
        let asked = ["--layout".to_owned(), layout.clone()];
        Cluster { directory, path, layout, asked }
    }

    fn operate(&self) -> Vec<String> {
        ["store", "operate", "--cluster", &self.path, "--layout", &self.layout].map(str::to_owned).to_vec()
    }

    pub fn store(&self, name: &str) -> Vec<String> {
        let state = self.directory.path(name);
        ["store", "run", name, "--cluster", &self.path, "--state-dir", &state].map(str::to_owned).to_vec()
    }

    pub fn status(&self) -> Value {
        let [option, file] = &self.asked;
        run(&mut triplane(&["store", "status", option, file, "--json"])).ok().json()
    }

    /// Waits until the chain has these members in any order, and each of them has all rows.
    #[track_caller]
    pub fn wait_for_chain(&self, wanted: &[&str]) {
        let deadline = Instant::now() + TEST_TIMEOUT;
        loop {
            let status = self.status();
            let mut members = chain_of(&status, 0);
            members.sort_unstable();
            let is_active = |name: &&str| {
                let stores = status["stores"].as_array().unwrap();
                stores.iter().any(|store| store["name"] == **name && store["is_active"] == true)
            };
            if members == wanted && members.iter().all(is_active) && status["chains"][0]["learner"].is_null() {
                return;
            }
            assert!(Instant::now() < deadline, "{status:#}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Returns the members of a shard's chain.
fn chain_of(status: &Value, shard: usize) -> Vec<&str> {
    status["chains"][shard]["members"].as_array().into_iter().flatten().map(name_of).collect()
}

fn name_of(value: &Value) -> &str {
    value.as_str().expect("a name")
}

pub fn words(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

pub fn start(arguments: &[String]) -> Running {
    let mut running = Running::start(&mut triplane(&words(arguments)));
    running.wait_for("press Ctrl-C to stop");
    running
}

/// Returns addresses of the loopback interface that were free a moment ago.
pub fn free_addresses(count: usize) -> Vec<String> {
    let sockets: Vec<UdpSocket> = (0..count).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
    sockets.iter().map(|socket| socket.local_addr().unwrap().to_string()).collect()
}

#[test]
fn stores_that_die_leave_the_chain_and_return() {
    let addresses = free_addresses(6);
    let cluster = Cluster::new(&["a", "b", "c", "d"], |at| addresses[at].clone());
    let mut operator = start(&cluster.operate());
    let mut stores: Vec<(&str, Running)> =
        ["a", "b", "c"].map(|name| (name, start(&cluster.store(name)))).into_iter().collect();
    operator.wait_for("chain formed: a -> b -> c");
    cluster.wait_for_chain(&["a", "b", "c"]);
    stores[0].1.signal("KILL");
    operator.wait_for("store `a` was removed (no answer, or restarted without rows): chain b -> c");
    // A store that lost its rows restarts in another life, and joins after the others.
    stores[0] = ("a", start(&cluster.store("a")));
    operator.wait_for("store `a` joined: chain b -> c -> a");
    // A spare store takes the place of another store that is killed.
    stores.push(("d", start(&cluster.store("d"))));
    stores[1].1.signal("KILL");
    operator.wait_for("store `d` joined: chain c -> a -> d");
    let table = run(&mut triplane(&["store", "status", "--layout", &cluster.layout])).ok().stdout;
    assert!(table.starts_with("chain c -> a -> d: 3 of 3 stores") && table.contains("store `d` joined"), "{table}");
    // An operator continues after another one was killed, and sees the changes since then.
    operator.signal("KILL");
    stores[2].1.signal("KILL");
    let mut operator = start(&cluster.operate());
    operator.wait_for("store `c` was removed (no answer, or restarted without rows): chain a -> d");
    stores[1] = ("b", start(&cluster.store("b")));
    cluster.wait_for_chain(&["a", "b", "d"]);
    let second = run(&mut triplane(&words(&cluster.operate())));
    assert!(second.code == Some(3) && second.stderr.contains("another operator uses"), "{second:?}");
    operator.signal("INT");
    operator.wait().ok();
}

#[test]
fn each_shard_has_a_chain_of_its_own() {
    let addresses = free_addresses(6);
    let cluster = Cluster::new(&["a", "b", "c", "d"], |at| addresses[at].clone());
    let text = std::fs::read_to_string(&cluster.path).expect("it was written");
    std::fs::write(&cluster.path, format!("shards = 2\n{text}")).expect("it can be written");
    let mut operator = start(&cluster.operate());
    let mut stores = ["a", "b", "c", "d"].map(|name| start(&cluster.store(name)));
    operator.wait_for("shard 0: chain formed: a -> b -> c");
    operator.wait_for("shard 1: chain formed: b -> c -> d");
    cluster.wait_for_chain(&["a", "b", "c"]);
    stores[0].signal("KILL");
    operator.wait_for("shard 0: store `a` was removed");
    cluster.wait_for_chain(&["b", "c", "d"]);
    assert_eq!(chain_of(&cluster.status(), 1), ["b", "c", "d"]);
    stores[0] = start(&cluster.store("a"));
    operator.wait_for("store `a` answers again");
    let drained = run(&mut triplane(&["store", "drain", "b", "--layout", &cluster.layout])).ok();
    assert!(drained.stdout.contains("store `b` is in no chain, and can be stopped"), "{drained:?}");
    let status = cluster.status();
    for shard in [0, 1] {
        let mut members = chain_of(&status, shard);
        members.sort_unstable();
        assert_eq!(members, ["a", "c", "d"], "{status:#}");
    }
    let table = run(&mut triplane(&["store", "status", "--layout", &cluster.layout])).ok().stdout;
    assert!(table.starts_with("shard 0: chain ") && table.contains("\nshard 1: chain "), "{table}");
    assert!(table.contains("b      drained"), "{table}");
    operator.signal("INT");
    operator.wait().ok();
    let text = std::fs::read_to_string(&cluster.path).expect("it was written");
    std::fs::write(&cluster.path, text.replace("shards = 2", "shards = 3")).expect("it can be written");
    let refused = run(&mut triplane(&words(&cluster.operate())));
    let expected = "it has 2 shards, and the cluster file has shards = 3: their number cannot be changed";
    assert!(refused.code == Some(3) && refused.stderr.contains(expected), "{refused:?}");
}

#[test]
fn people_drain_and_replace_stores() {
    let addresses = free_addresses(6);
    let cluster = Cluster::new(&["a", "b", "c", "d"], |at| addresses[at].clone());
    let mut operator = start(&cluster.operate());
    let _stores = ["a", "b", "c", "d"].map(|name| start(&cluster.store(name)));
    operator.wait_for("chain formed: a -> b -> c");
    cluster.wait_for_chain(&["a", "b", "c"]);
    let ask = |words: &[&str]| run(&mut triplane(&[&["store"], words, &["--layout", &cluster.layout]].concat()));
    let done = ask(&["drain", "b"]).ok();
    assert!(done.stdout.contains("store `b` is not in the chain a -> c -> d, and can be stopped"), "{done:?}");
    assert!(done.stderr.contains("store `d` joined: chain a -> b -> c -> d"), "{done:?}");
    let refused = |words: &[&str], part: &str| {
        let done = ask(words);
        assert!(done.code == Some(1) && done.stderr.contains(part), "{done:?}");
    };
    refused(&["replace", "a"], "no spare store answers");
    refused(&["replace", "b"], "store `b` is not in the chain");
    refused(&["replace", "a", "--with", "c"], "store `c` cannot take its place");
    refused(&["drain", "x"], "there is no store `x`: there are a, b, c, d");
    let done = ask(&["replace", "a", "--with", "b"]).ok();
    assert!(done.stdout.contains("store `a` is not in the chain c -> d -> b"), "{done:?}");
    ask(&["drain", "a", "--cancel"]).ok();
    cluster.wait_for_chain(&["b", "c", "d"]);
}

#[test]
fn mistakes_about_operators_are_one_sentence() {
    let cluster = Cluster::new(&["a", "b", "c"], |at| format!("127.0.0.1:{}", 7101 + at));
    let alone = cluster.directory.write("alone.toml", "[stores.a]\naddress = \"127.0.0.1:7101\"\n");
    let refused = |arguments: &[&str], code: i32, part: &str| {
        let done = run(&mut triplane(arguments));
        assert_eq!(done.code, Some(code), "{done:?}");
        assert!(done.stderr.contains(part), "{done:?} lacks {part:?}");
    };
    refused(&["store", "status", "--layout", &cluster.layout], 3, "no operator of this machine listens on");
    refused(&["store", "operate", "--cluster", &alone, "--layout", &cluster.layout], 1, "has no operator");
    let run = cluster.store("a");
    refused(&[&words(&run)[..], &["--forget"]].concat(), 2, "--forget requires a cluster without an operator");
    std::fs::write(&cluster.layout, "{}").unwrap();
    refused(&words(&cluster.operate()), 3, "is not a valid cluster layout");
}

/// Sends requests to add 1 to key 7 until `stop` is set. Returns their number, and the values of the answers.
pub fn load(stop: &AtomicBool) -> (u32, Vec<u32>) {
    const CLIENT: [u8; 6] = [2, 0, 0, 0, 0, 1];
    let mut port = AfPacketPort::open("eth0").expect("the interface is there");
    let frame = [&[2, 0, 0, 0, 0, 2][..], &CLIENT, &[0x88, 0xb6, 2, 0, 7, 0, 0, 0, 1], &[0; 39]].concat();
    let (mut sent, mut values) = (0, Vec::new());
    while !stop.load(Ordering::Relaxed) {
        sent += 1;
        port.send(&frame).expect("the interface is up");
        port.flush().expect("the interface is up");
        // A request is lost if the lease ends before its write is acknowledged.
        let patience = Instant::now() + Duration::from_millis(500);
        let before = values.len();
        while values.len() == before && Instant::now() < patience {
            let mut received = Vec::new();
            port.receive(&mut received, 32).expect("the interface is up");
            let is_answer = |data: &[u8]| data.starts_with(&CLIENT) && data[12..15] == [0x88, 0xb6, 2];
            let answers = received.iter().filter(|answer| is_answer(&answer.data));
            values.extend(answers.map(|it| u32::from_be_bytes([it.data[17], it.data[18], it.data[19], it.data[20]])));
            std::thread::sleep(Duration::from_micros(100));
        }
    }
    (sent, values)
}

#[test]
fn nothing_acknowledged_is_lost_while_all_stores_are_killed_in_turn() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let network = match Network::new() {
        Err(error @ NamespaceError::Refused { .. }) => return testing::skip(&error.to_string()),
        network => network.expect("a network"),
    };
    let names = ["a", "b", "c", "d"];
    let cluster = Cluster::new(&names, |at| format!("127.0.0.1:{}", 7101 + at));
    let start = |arguments: &[String]| network.start(&words(arguments));
    let mut operator = start(&cluster.operate());
    let mut stores = names.map(|name| start(&cluster.store(name)));
    operator.wait_for("chain formed");
    let switch = network.start(&["run", PROGRAM, "--port", "1=p1", "--store", &cluster.path, "--switch", "s1"]);
    let stop = AtomicBool::new(false);
    let (sent, values) = std::thread::scope(|scope| {
        let client = scope.spawn(|| network.clients[0].enter(|| load(&stop)).expect("to enter a namespace"));
        cluster.wait_for_chain(&["a", "b", "c"]);
        for (at, others) in [["b", "c", "d"], ["a", "c", "d"], ["a", "b", "d"], ["a", "b", "c"]].iter().enumerate() {
            stores[at].signal("KILL");
            cluster.wait_for_chain(others);
            stores[at] = start(&cluster.store(names[at]));
            if at == 1 {
                operator.signal("KILL");
                operator = start(&cluster.operate());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        stop.store(true, Ordering::Relaxed);
        client.join().expect("the client does not panic")
    });
    assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "an acknowledged value was lost: {values:?}");
    assert!(values.last().is_some_and(|last| *last <= sent) && values.len() > 100, "{sent} sent: {values:?}");
    let status = ["store", "status", "--layout", &cluster.layout, "--program", PROGRAM];
    let status = run(&mut triplane(&status)).ok().stdout;
    assert!(status.contains("\"keys\"  1 row with values"), "{status}");
    for running in stores.into_iter().chain([switch, operator]) {
        running.signal("INT");
        running.wait().ok();
    }
}
