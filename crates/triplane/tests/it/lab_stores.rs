//! Tests live labs with stores of resilient state: `triplane lab up` and `triplane lab run`.
//!
//! These tests need root and some tools. Where those are missing the tests skip and say so.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;
use testing::lock::LIVE_TRAFFIC;
use testing::port::reserved_ports;

use crate::support::controller::set_program;
use crate::support::labs::{Labs, is_running, kill, until};
use crate::support::{Running, run, triplane};

impl Labs {
    /// Returns the state of a switch or store.
    #[track_caller]
    fn node(&self, name: &str) -> Value {
        let status = self.status();
        let all = ["switches", "stores"].iter().flat_map(|kind| status[kind].as_array().cloned().unwrap_or_default());
        all.into_iter().find(|node| node["name"] == name).unwrap_or_else(|| panic!("no {name} in {status:#}"))
    }
}

fn process_of(node: &Value) -> u64 {
    node["pid"].as_u64().expect("it has a process")
}

/// Sends 20 MB to the first client: the hashes of the numbers from 0.
const SERVER: &str = "
import hashlib, socket
data = b''.join(hashlib.sha256(b'%d' % i).digest() for i in range(625000))
s = socket.create_server(('', 8000))
print('listening', hashlib.sha256(data).hexdigest(), flush=True)
c, _ = s.accept()
c.sendall(data)
c.close()
";

/// Receives everything, and prints a line in the middle and the hash at the end.
const CLIENT: &str = "
import hashlib, socket
s = socket.create_connection(('192.0.2.1', 8000), timeout=60)
all, told = b'', False
while True:
    part = s.recv(65536)
    if not part: break
    all += part
    if len(all) > 1000000 and not told:
        told = True
        print('under way', flush=True)
print('received', len(all), hashlib.sha256(all).hexdigest(), flush=True)
";

#[test]
fn a_download_goes_on_when_the_switch_of_its_nat_is_killed() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some(labs) = Labs::new(&["python3"]) else { return };
    let up = labs.lab(&["up", "examples/nat/lab.toml", "--isolate"]).ok();
    assert!(up.stdout.contains("stores: chain a -> b -> c, in memory, lease 50ms"), "{up:?}");
    let directory = labs.0.path("labs/nat/cluster");
    let mode = |path: &str| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode(&directory), mode(&format!("{directory}/cluster.key"))), (0o700, 0o600));

    let mut server = Running::start(&mut labs.command(&["exec", "server", "python3", "-c", SERVER]));
    let expected = server.wait_for("listening").split(' ').next_back().expect("a hash").trim().to_owned();
    let mut client = Running::start(&mut labs.command(&["exec", "client", "python3", "-c", CLIENT]));
    client.wait_for("under way");
    kill(process_of(&labs.node("nat1")));
    let done = client.wait().ok();
    assert!(done.stdout.contains(&format!("received 20000000 {expected}")), "{done:?}");

    let (nat1, nat2) = (labs.node("nat1"), labs.node("nat2"));
    assert_eq!(nat1["why"], "its process was terminated by signal 9", "{nat1:#}");
    assert!(nat2["counters"]["port.1.tx.packets"].as_u64() > Some(100), "{nat2:#}");
    let lost = nat2["counters"].as_object().expect("counters").keys().find(|name| name.starts_with("drop.resilient"));
    assert_eq!(lost, None, "{nat2:#}");
    for (store, role) in [("a", "head"), ("b", "middle"), ("c", "tail")] {
        let store = labs.node(store);
        assert_eq!((&store["failed"], &store["role"]), (&Value::from(false), &Value::from(role)), "{store:#}");
    }
    labs.lab(&["heal", "nat1"]).ok();
    let stores: Vec<u64> = ["a", "b", "c"].iter().filter_map(|store| labs.node(store)["pid"].as_u64()).collect();
    assert!(stores.len() == 3 && stores.iter().all(|pid| is_running(*pid)));
    for pid in &stores {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
        assert!(status.contains("CapEff:\t0000000000000000\n") && status.contains("NoNewPrivs:\t1\n"), "{status}");
    }
    labs.lab(&["down"]).ok();
    assert!(!stores.iter().any(|pid| is_running(*pid)), "the stores end with the lab");
    assert!(std::fs::metadata(&directory).is_err(), "and their files are removed");
}

/// Returns a topology of the key-value example whose files are found from any directory.
fn key_value(name: &str) -> String {
    let examples = crate::support::root().join("examples");
    let text = std::fs::read_to_string(examples.join("key-value").join(name)).expect("the example is there");
    let absolute = |name: &str| format!("{:?}", examples.join(name).display().to_string());
    text.replace("\"store.p4\"", &absolute("key-value/store.p4"))
        .replace("\"../common/edge.p4\"", &absolute("common/edge.p4"))
        .replace("\"edge.json\"", &absolute("key-value/edge.json"))
}

/// Simulated and live: the scenario's keys are in two shards, whose chains begin with different stores.
#[test]
fn the_rows_of_a_lab_may_be_in_several_shards() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some(labs) = Labs::new(&[]) else { return };
    let text = key_value("lab.toml");
    let sharded = text.replacen("[defaults]\n", "[defaults]\nshards = 2\n", 1);
    assert_ne!(text, sharded);
    let topology = labs.0.write("lab.toml", sharded);
    let scenario = crate::support::root().join("examples/key-value/scenario.toml").display().to_string();
    labs.lab(&["sim", &topology, "--scenario", &scenario]).ok();
    let up = labs.lab(&["up", &topology, "--name", "sharded"]).ok();
    assert!(up.stdout.contains("stores: a, b, c, in the chains of 2 shards, in memory"), "{up:?}");
    let roles = ["a", "b", "c"].map(|store| labs.node(store)["role"].as_str().expect("a role").to_owned());
    assert_eq!(roles, ["head 0; tail 1", "head 1; middle 0", "middle 1; tail 0"]);
}

/// Controllers reach a switch with stores, but change neither its rows nor its program.
#[test]
fn a_switch_with_stores_serves_controllers() {
    let Some(labs) = Labs::new(&[]) else { return };
    let port = reserved_ports(1);
    let asked = format!("[switches.s1]\np4runtime = \"127.0.0.1:{port}\"\n");
    let topology = labs.0.write("lab.toml", key_value("lab.toml").replace("[switches.s1]\n", &asked));
    labs.lab(&["up", &topology, "--name", "controlled"]).ok();
    let address = format!("127.0.0.1:{port}");
    let ctl = |words: &[&str]| run(&mut triplane(&[&["ctl", "--addr", &address][..], words].concat()));
    let registers = ctl(&["registers", "values"]).ok();
    assert!(registers.stderr.contains("the switch returned 0 of 65,536 cells"), "{registers:?}");
    assert!(ctl(&["tables"]).ok().stderr.contains("the program has no tables"));
    let refused = ctl(&["set", "values", "7", "1"]);
    let reason = "resilient state, which only packets write";
    assert!(refused.code == Some(1) && refused.stderr.contains(reason), "{refused:?}");
    let program = crate::support::root().join("examples/key-value/store.p4").display().to_string();
    let refused = set_program(&address, &program).expect_err("it is not replaced").to_string();
    assert!(refused.contains("state is in stores is not replaced"), "{refused}");
}

#[test]
fn a_durable_store_starts_again_with_its_rows() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some(labs) = Labs::new(&[]) else { return };
    let durable = |store: &str| (format!("[stores.{store}]"), format!("[stores.{store}]\ndurable = true"));
    let text =
        ["a", "b", "c"].map(durable).iter().fold(key_value("lab.toml"), |text, (from, to)| text.replace(from, to));
    let topology = labs.0.write("lab.toml", text.replace("lease = \"50ms\"", "lease = \"1s\""));
    let scenario = labs.0.write(
        "scenario.toml",
        "duration = \"4s\"\n[[traffic]]\nname = \"adds\"\nkind = \"probe\"\nfrom = \"client\"\nto = \"client\"\n\
         frame = \"02aa00000001 020000000001 88b6  02 0007 00000001 00000000\"\nstart = \"10ms\"\nstop = \"3s\"\n\
         interval = \"10ms\"\n[traffic.values]\nvalue = { at = 17, bytes = 4 }\n\
         [[faults]]\nat = \"500ms\"\nsuspend = \"a\"\n[[faults]]\nat = \"700ms\"\nresume = \"a\"\n\
         [[faults]]\nat = \"1s\"\ncrash = \"a\"\n[[faults]]\nat = \"1200ms\"\nrestart = \"a\"\n\
         [[expect]]\ntraffic = \"adds\"\nvalue = \"value\"\nlast = 100\n",
    );
    let done = labs.lab(&["run", &topology, "--name", "durable", "--scenario", &scenario, "--json"]).ok().json();
    let points = done["traffic"][0]["values"]["value"].as_array().expect("values").clone();
    let values: Vec<f64> = points.iter().map(|point| point[1].as_f64().expect("a number")).collect();
    assert!(values.is_sorted_by(|one, next| one < next), "no answer is undone: {values:?}");
}

#[test]
fn a_store_in_memory_that_is_killed_is_replaced_by_a_spare_one() {
    let Some(labs) = Labs::new(&[]) else { return };
    let topology = labs.0.write("lab.toml", key_value("operated.toml").replace("chain = 3", "chain = 2"));
    let up = labs.lab(&["up", &topology, "--name", "operated"]).ok();
    assert!(up.stdout.contains("stores: a, b, c; the operator forms a chain of 2, in memory"), "{up:?}");
    let role = |store: &str| labs.node(store)["role"].as_str().unwrap_or_default().to_owned();
    // On a busy machine, the operator may find the stores in any order.
    let has_chain_without = |store: &str| {
        let mut roles = ["a", "b", "c"].iter().filter(|other| **other != store).map(|other| role(other));
        roles.all(|role| role == "head" || role == "tail")
    };
    let spare = || ["a", "b", "c"].into_iter().find(|store| role(store) == "spare" && has_chain_without(store));
    until("chain", || spare().is_some());
    let first = ["a", "b", "c"].into_iter().find(|store| role(store) == "head").expect("the chain has a head");
    kill(process_of(&labs.node(first)));
    until("new chain", || has_chain_without(first));
    assert_eq!(labs.node(first)["why"], "its process was terminated by signal 9");
    labs.lab(&["heal", first]).ok();
    until("spare store", || spare().is_some());

    let last = ["a", "b", "c"].into_iter().find(|store| role(store) == "tail").expect("the chain has a tail");
    labs.lab(&["suspend", last]).ok();
    until("chain without the suspended store", || role(last) == "spare" && has_chain_without(last));
    assert_eq!(labs.node(last)["suspended"], true);
    labs.lab(&["resume", last]).ok();
    assert_eq!(labs.node(last)["suspended"], false);
    let text = labs.lab(&["status"]).ok().stdout;
    assert!(text.contains("operator  up  operator "), "{text}");

    for (arguments, expected) in [
        (["suspend", "s1"], "`s1` has no process of its own, so it cannot be suspended: start the lab with --isolate"),
        (
            ["fail", "d"],
            "there is no switch or store `d`; the switches are edge, s1, s2, and the stores a, b, c, operator",
        ),
    ] {
        let refused = labs.lab(&arguments);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(expected), "{refused:?}");
    }
}

#[test]
fn a_lab_whose_daemon_is_killed_leaves_no_store() {
    let Some(labs) = Labs::new(&[]) else { return };
    labs.lab(&["up", "examples/key-value/lab.toml", "--name", "crashed"]).ok();
    let stores: Vec<u64> = ["a", "b"].iter().filter_map(|store| labs.node(store)["pid"].as_u64()).collect();
    // A stopped process does not see the end of the daemon.
    labs.lab(&["suspend", "b"]).ok();
    let text = std::fs::read_to_string(labs.0.path("labs/crashed/lab.json")).expect("the lab has a run directory");
    kill(process_of(&serde_json::from_str(&text).expect("as JSON")));
    until("end of the first store", || !is_running(stores[0]));
    labs.lab(&["down", "crashed"]).ok();
    until("end of the stopped store", || !is_running(stores[1]));
    assert!(std::fs::metadata(labs.0.path("labs/crashed")).is_err());
}
