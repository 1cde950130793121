//! Tests live labs with memory servers: `triplane lab up` and `triplane lab run`.
//!
//! These tests need root and `ping`. Where those are missing the tests skip and say so.

use serde_json::{Value, json};
use testing::lock::LIVE_TRAFFIC;

use crate::support::labs::{Labs, is_running, kill, until};
use crate::support::{root, run};

const LAB: &str = r#"
[defaults]
program = "PROGRAM"
entries = "routes.json"

[hosts.one]
ip = "192.168.1.1/24"
mac = "02:00:00:00:01:01"
gateway = "192.168.1.254"
neighbours = { "192.168.1.254" = "02:aa:00:00:00:01" }

[hosts.w1]
ip = "10.1.0.1/24"
mac = "02:00:00:00:02:01"
gateway = "10.1.0.254"
neighbours = { "10.1.0.254" = "02:aa:00:00:00:02" }

[hosts.m1]
ip = "10.9.0.1/24"
memory = "16MiB"

[hosts.m2]
ip = "10.9.0.2/24"
memory = "16MiB"

[switches.s1]

[[links]]
ends = ["one", "s1:1"]

[[links]]
ends = ["w1", "s1:2"]

[[links]]
ends = ["m1", "s1:3"]

[[links]]
ends = ["m2", "s1:4"]
"#;

/// Both memory servers die and return while packets travel.
const SCENARIO: &str = r#"
duration = "1500ms"

[[traffic]]
name = "echo"
kind = "ping"
from = "one"
to = "w1"
count = 10
interval = "100ms"

[[faults]]
at = "300ms"
crash = "m1"

[[faults]]
at = "600ms"
restart = "m1"

[[faults]]
at = "900ms"
suspend = "m2"

[[faults]]
at = "1200ms"
resume = "m2"
"#;

impl Labs {
    /// Writes the lab of these tests, and returns its path.
    fn memory_lab(&self) -> String {
        let route = |customer: u32, prefix: &str, host: u32, port: u32| {
            format!(
                "{{\"table\": \"RouterIngress.routes\", \"match\": {{\"standard.ingress_port\": {customer}, \
                 \"hdr.ipv4.dst\": \"{prefix}\"}}, \"action_name\": \"RouterIngress.forward\", \"action_params\": \
                 {{\"next\": \"02:00:00:00:0{host}:01\", \"port\": {port}}}}}"
            )
        };
        let routes = [route(1, "10.1.0.0/16", 2, 2), route(2, "192.168.1.0/24", 1, 1)].join(",\n");
        self.0.write("routes.json", format!("{{\"table_entries\": [{routes}]}}"));
        let program = root().join("examples/elastic-router/prefixes.p4");
        self.0.write("routed.toml", LAB.replace("PROGRAM", program.to_str().expect("the path is text")))
    }

    /// Whether a packet reaches a host and is answered: both directions are looked up.
    fn is_answered(&self) -> bool {
        self.lab(&["exec", "one", "ping", "-c", "1", "-W", "1", "10.1.0.1"]).code == Some(0)
    }

    fn memory_server(&self, name: &str) -> Value {
        let status = self.status();
        let servers = status["memory"].as_array().unwrap_or_else(|| panic!("no servers in {status:#}"));
        servers.iter().find(|server| server["name"] == name).expect("the server is in the lab").clone()
    }
}

fn routes_are_looked_up_in_the_memory_of_servers(options: &[&str]) {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some(labs) = Labs::new(&["ping"]) else { return };
    let lab = labs.memory_lab();
    labs.lab(&[&["up", &lab], options].concat()).ok();
    until("answer", || labs.is_answered());
    let first = labs.memory_server("m1");
    assert_eq!(
        (&first["failed"], &first["memory"], &first["address"]),
        (&json!(false), &json!("16MiB"), &json!("10.9.0.1"))
    );
    let text = labs.lab(&["status"]).ok().stdout;
    assert!(text.contains("memory server") && text.contains("16MiB"), "{text}");
    let addresses = labs.lab(&["exec", "m1", "ip", "-4", "-o", "address"]).ok().stdout;
    assert!(!addresses.contains("10.9.0.1"), "the kernel would answer for the server: {addresses}");
    // One of them has every route.
    labs.lab(&["fail", "m1"]).ok();
    assert_eq!(labs.memory_server("m1")["failed"], true);
    until("answer from the second server", || labs.is_answered());
    labs.lab(&["fail", "m2"]).ok();
    assert!(!labs.is_answered(), "nothing is cached");
    labs.lab(&["heal", "m1"]).ok();
    until("answer from the first server", || labs.is_answered());
    // A process that is killed is reported, and can be started again.
    labs.lab(&["heal", "m2"]).ok();
    let process = labs.memory_server("m1")["pid"].as_u64().expect("it has a process");
    kill(process);
    until("end of the process", || labs.memory_server("m1")["failed"] == true);
    assert_eq!(labs.memory_server("m1")["why"], "its process was terminated by signal 9");
    until("answer from the second server", || labs.is_answered());
    labs.lab(&["heal", "m1"]).ok();
    // The switch crashes and asks for the memory again.
    labs.lab(&["fail", "s1"]).ok();
    labs.lab(&["heal", "s1"]).ok();
    until("answer after the crash of the switch", || labs.is_answered());
    let wrong = labs.lab(&["fail", "one"]);
    assert!(wrong.stderr.contains("the switches are s1, and the memory servers m1, m2"), "{wrong:?}");
    let process = labs.memory_server("m2")["pid"].as_u64().expect("it has a process");
    labs.lab(&["down"]).ok();
    until("end of the servers", || !is_running(process));
}

#[test]
fn memory_servers_of_a_lab_die_and_return() {
    routes_are_looked_up_in_the_memory_of_servers(&[]);
}

#[test]
fn memory_servers_of_isolated_switches_die_and_return() {
    routes_are_looked_up_in_the_memory_of_servers(&["--isolate"]);
}

#[test]
fn a_scenario_crashes_and_suspends_memory_servers() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some(labs) = Labs::new(&["ping"]) else { return };
    let lab = labs.memory_lab();
    let scenario = labs.0.write("scenario.toml", SCENARIO);
    let results = run(&mut labs.command(&["run", &lab, "--scenario", &scenario, "--json"])).ok().json();
    assert_eq!(results["traffic"][0]["sent"], 10, "{results:#}");
    let other = labs.0.write("other.toml", SCENARIO.replace("\"m1\"", "\"w1\""));
    let refused = run(&mut labs.command(&["run", &lab, "--scenario", &other]));
    assert!(refused.stderr.contains("the host `w1` cannot be crashed on a live network"), "{refused:?}");
}
