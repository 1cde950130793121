//! Tests the shims of live labs' hosts: `triplane lab up` and `triplane tpp top`.
//!
//! The live tests need root, `ping` and `perl`. Where those are missing the tests skip and say so.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use testing::lock::LIVE_TRAFFIC;

use crate::live::{RECEIVER, SENDER};
use crate::support::labs::{Labs, is_running, kill, until};
use crate::support::{Directory, Running, run, triplane};

/// Two hosts at the ends of a slow link, and one at which programs must be taken out.
const LAB: &str = r#"
[defaults]
program = "builtin:router"
entries = "shortest-paths"
tpp = "read"
link = { rate = "100Mbps", delay = "100us", queue = 500 }
shim = { insert = ["queues.tpp to 10.0.0.0/8"], policy = "policy" }

[hosts.h1]
ip = "10.0.0.1/8"
neighbours = { "10.0.0.9" = "02:00:00:00:00:99" }

[hosts.h2]
ip = "10.0.0.2/8"
shim = {}

[hosts.h3]
ip = "10.0.0.3/8"
shim = false

[switches.left]

[switches.right]
tpp_strip = [2]

[[links]]
ends = ["h1", "left:1"]

[[links]]
ends = ["h2", "right:1"]

[[links]]
ends = ["h3", "right:2"]

[[links]]
ends = ["left:4", "right:4"]
rate = "20Mbps"
"#;

const PROGRAM: &str = ".app 7\n.hops 5\nPUSH [Switch:ID]\nPUSH [PacketMetadata:OutputPort]\n\
                       PUSH [PacketMetadata:EnqueueDepth]\n";

/// Writes a lab with its files, and returns its path.
fn write(directory: &Directory, lab: &str) -> String {
    directory.write("queues.tpp", PROGRAM);
    directory.write("policy", "7 read all\n");
    directory.write("shims.toml", lab)
}

/// Creates the directory of labs with this lab up. Skips the test where that is not possible.
fn up(options: &[&str]) -> Option<Labs> {
    if !std::path::Path::new("/dev/net/tun").exists() {
        testing::skip("there is no /dev/net/tun");
        return None;
    }
    let labs = Labs::new(&["perl", "ping"])?;
    let lab = write(&labs.0, LAB);
    let done = labs.lab(&[&["up", &lab], options].concat()).ok();
    assert!(done.stdout.contains("2 hosts have shims; 1 insert programs"), "{done:?}");
    Some(labs)
}

impl Labs {
    /// Returns the state of a host's shim.
    fn shim(&self, host: &str) -> Value {
        let status = self.status();
        let shims = status["shims"].as_array().unwrap_or_else(|| panic!("no shims in {status:#}"));
        shims.iter().find(|shim| shim["host"] == host).unwrap_or_else(|| panic!("none of {host} in {status:#}")).clone()
    }

    /// Returns what `triplane tpp top` shows once.
    fn top(&self) -> Value {
        let mut command = triplane(&["tpp", "top", "--json", "--count", "1"]);
        command.env("TRIPLANE_LAB_DIR", self.0.path("labs"));
        run(&mut command).ok().json()
    }

    /// Whether a host answers.
    fn pings(&self, address: &str) -> bool {
        self.lab(&["exec", "h1", "ping", "-n", "-c", "1", "-W", "2", address]).code == Some(0)
    }
}

/// Returns the greatest depth of the queue of a port, if programs passed it.
fn depth(top: &Value, switch: &str, port: u32) -> Option<u64> {
    let ports = top["ports"].as_array().expect("ports");
    let port = ports.iter().find(|found| found["switch"] == switch && found["port"] == port)?;
    assert_eq!(port["words"][0]["name"], "PacketMetadata:EnqueueDepth", "{top:#}");
    port["words"][0]["max"].as_u64()
}

fn queues_of_a_live_lab_are_seen(options: &[&str]) {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some(labs) = up(options) else { return };
    assert!(labs.pings("10.0.0.2"));
    // The switch takes the programs out: this host has no shim.
    assert!(labs.pings("10.0.0.3"));
    let shims: Vec<Value> = labs.status()["shims"].as_array().expect("shims").clone();
    let hosts: Vec<&Value> = shims.iter().map(|shim| &shim["host"]).collect();
    assert_eq!(hosts, [&json!("h1"), &json!("h2")]);
    for shim in &shims {
        let process = shim["pid"].as_u64().expect("it has a process");
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
        for line in ["CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "NoNewPrivs:\t1"] {
            assert!(status.contains(line), "`{line}` is not in {status}");
        }
    }
    // Nobody answers for this address, but the host knows its neighbour.
    let neighbours = labs.lab(&["exec", "h1", "ip", "neighbour", "show", "dev", "tpp0"]).ok().stdout;
    assert!(neighbours.contains("10.0.0.9 lladdr 02:00:00:00:00:99 PERMANENT"), "{neighbours}");
    // A file fills the queue before the slow link, and its receiver's shim is killed meanwhile.
    let directory = Directory::new();
    let bytes: Vec<u8> = (0..8u32 << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let (sent, received) = (directory.write("sent", &bytes), directory.path("received"));
    let perl = ["perl", "-MIO::Socket::INET", "-e"];
    let mut sender = Running::start(&mut labs.command(&[&["exec", "h1"], &perl[..], &[SENDER, &sent]].concat()));
    sender.wait_for("listening");
    let receive = [&["exec", "h2"], &perl[..], &[RECEIVER, "10.0.0.1", &received]].concat();
    let receiver = Running::start(&mut labs.command(&receive));
    until("queue", || depth(&labs.top(), "left", 4) > Some(3));
    let process = labs.shim("h2")["pid"].as_u64().expect("it has a process");
    let is_under_way = || std::fs::metadata(&received).map_or(0, |file| file.len()) < bytes.len() as u64;
    kill(process);
    assert!(is_under_way(), "the transfer has ended before");
    receiver.wait().ok();
    sender.wait().ok();
    assert!(std::fs::read(&received).expect("what was received") == bytes, "other bytes arrived");
    until("second process", || labs.shim("h2")["restarts"] == 1 && labs.shim("h2")["failed"] == false);
    let second = labs.shim("h2");
    assert_eq!(second["why"], "its process was terminated by signal 9");
    assert_ne!(second["pid"], process);
    // The idle network has empty queues, and programs are still collected.
    let collected = |shim: &Value| shim["report"]["collected"].as_u64().unwrap_or(0);
    until("program at the second process", || labs.pings("10.0.0.2") && collected(&labs.shim("h2")) > 0);
    until("empty queue", || labs.pings("10.0.0.2") && depth(&labs.top(), "left", 4) == Some(0));
    let ports: BTreeSet<String> =
        labs.top()["ports"].as_array().expect("ports").iter().map(|p| p["to"].to_string()).collect();
    assert!(ports.iter().all(|to| ["\"right:4\"", "\"h2\""].contains(&to.as_str())), "{ports:?}");
    let text = labs.lab(&["status"]).ok().stdout;
    assert!(text.contains("shim of") && text.contains("started again 1 time"), "{text}");
    // h2 inserts nothing, so nothing arrives at h1.
    let first = labs.shim("h1");
    assert_eq!((&first["restarts"], collected(&first)), (&json!(0), 0), "{first:#}");
    assert!(first["report"]["inserted"].as_u64() > Some(1000), "{first:#}");
    let process = first["pid"].as_u64().expect("it has a process");
    labs.lab(&["down"]).ok();
    until("end of the shim", || !is_running(process));
}

#[test]
fn shims_of_a_lab_show_its_queues_and_return_after_their_death() {
    queues_of_a_live_lab_are_seen(&[]);
}

#[test]
fn shims_of_isolated_switches_show_their_queues() {
    queues_of_a_live_lab_are_seen(&["--isolate"]);
}

#[test]
fn top_needs_a_lab_whose_hosts_insert_programs() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some(labs) = Labs::new(&[]) else { return };
    let lab = LAB.replace("insert = [\"queues.tpp to 10.0.0.0/8\"], ", "");
    labs.lab(&["up", &write(&labs.0, &lab)]).ok();
    assert!(labs.status()["shims"].is_null());
    let mut command = triplane(&["tpp", "top", "-c", "1"]);
    let done = run(command.env("TRIPLANE_LAB_DIR", labs.0.path("labs")));
    assert_eq!(done.code, Some(3), "{done:?}");
    assert!(done.stderr.contains("no host of lab shims inserts programs"), "{done:?}");
}

#[test]
fn mistakes_in_the_files_of_shims_are_reported_with_their_places() {
    let directory = Directory::new();
    let check = |lab: &str, expected: &[&str]| {
        let done = run(&mut triplane(&["lab", "check", &write(&directory, lab)]));
        assert_eq!(done.code, Some(i32::from(!expected.is_empty())), "{done:?}");
        for part in expected {
            assert!(done.stderr.contains(part), "`{part}` in {done:?}");
        }
    };
    check(LAB, &[]);
    directory.write("writes.tpp", ".app 7\n.memory 5\nSTORE [Link:AppSpecific_1], [Packet:0]\n");
    directory.write("back.tpp", ".app 7\n.reflect\nPUSH [Switch:ID]\n");
    let with = |rules: &str| LAB.replace("[\"queues.tpp to 10.0.0.0/8\"]", rules);
    check(
        &with("[\"writes.tpp\", \"back.tpp\", \"none.tpp\", \"queues.tpp to ::/0\"]"),
        &[
            "shims.toml:7:20",
            "writes.tpp is not installed: 1 error",
            "shims.toml:7:34",
            "a reflective program would send",
            "shims.toml:7:46",
            "none.tpp",
            "shims.toml:7:58",
            "hosts of a lab have no IPv6",
        ],
    );
    check(&LAB.replace("policy = \"policy\"", "policy = \"other\""), &["shims.toml:7:58", "other"]);
    check(&LAB.replace("tpp_strip = [2]", ""), &[]);
}
