//! Reads the privileges of running commands from `/proc`: those of the process and of each of its threads.

use std::fs;

use crate::support::network::Network;
use crate::support::rig::Rig;
use crate::support::service::Service;
use crate::support::{Directory, Running, run, triplane};
use testing::lock;
use testing::lock::LIVE_TRAFFIC;
use testing::port::reserved_address;

/// Fields of a status and their values without any privilege.
const NONE: [(&str, &str); 5] = [
    ("CapEff", "0000000000000000"),
    ("CapPrm", "0000000000000000"),
    ("CapInh", "0000000000000000"),
    ("CapAmb", "0000000000000000"),
    ("NoNewPrivs", "1"),
];

/// Returns a field of a status.
fn field<'a>(status: &'a str, name: &str) -> &'a str {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name}:\n{status}")).trim()
}

/// Asserts that a process and all of its threads have no privileges. Returns the number of threads.
#[track_caller]
pub fn assert_unprivileged(pid: u32) -> usize {
    let mut statuses = vec![fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs")];
    for task in fs::read_dir(format!("/proc/{pid}/task")).expect("the process has threads") {
        // A thread may end in between.
        statuses.extend(fs::read_to_string(task.expect("an entry").path().join("status")));
    }
    let own = fs::read_to_string("/proc/self/status").expect("proc is mounted");
    // Without CAP_SETPCAP, number 8, the bounding set stays.
    let drops_bounding = u64::from_str_radix(field(&own, "CapEff"), 16).expect("hexadecimal") & (1 << 8) != 0;
    for status in &statuses {
        for (name, none) in NONE {
            assert_eq!(field(status, name), none, "{name} of `{}`", field(status, "Name"));
        }
        if drops_bounding {
            assert_eq!(field(status, "CapBnd"), NONE[0].1, "CapBnd of `{}`", field(status, "Name"));
        }
    }
    statuses.len() - 1
}

#[test]
fn a_running_switch_has_no_privileges_with_any_kind_of_port() {
    if let Some(reason) = Network::obstacle(&["ping"]) {
        return testing::skip(&reason);
    }
    let _lock = lock(LIVE_TRAFFIC);
    let network = Network::new(false);
    let directory = Directory::new();
    let state = directory.path("state");
    let served = ["--p4runtime", "0", "--metrics", "0", "--state-dir", &state, "--show-privileges", "--port"];
    for (more, workers) in [("3=tap:p4tap0", "1"), ("3=xdp:lo,generic", "2")] {
        let options = [&served[..], &[more, "--workers", workers]].concat();
        let router = network.router(&options);
        // It forwards. This comes first: the workers start after the line that the test waited for.
        let ping = network.run("h1", &["ping", "-n", "-W", "20", "-c", "1", "10.0.2.2"]).ok();
        assert!(ping.stdout.contains("1 received"), "{ping:?}");
        let threads = assert_unprivileged(router.id());
        // Its own thread, those of P4Runtime, of the store and of the metrics, and those of two workers.
        assert!(threads >= if workers == "1" { 4 } else { 6 }, "{threads} threads");
        router.signal("INT");
        let done = router.wait().ok();
        assert!(done.stderr.contains("privileges: no capabilities, no_new_privs; "), "{}", done.stderr);
    }
}

#[test]
fn only_the_loader_of_kernel_ports_keeps_capabilities_and_only_for_controllers() {
    // CAP_NET_ADMIN, CAP_PERFMON and CAP_BPF.
    const LOADER: u64 = 1 << 12 | 1 << 38 | 1 << 39;
    if let Some(reason) = Network::obstacle(&[]) {
        return testing::skip(&reason);
    }
    let network = Network::new(false);
    for (more, expected) in [(&[][..], &[][..]), (&["--p4runtime", "127.0.0.1:0"], &[("kernel-loader", LOADER)])] {
        let mut router = network.router_on(["1=kernel:p1", "2=kernel:p2"], more);
        router.wait_for("the program runs in the kernel");
        router.wait_for("press Ctrl-C to stop");
        let mut kept: Vec<(String, u64)> = Vec::new();
        for task in fs::read_dir(format!("/proc/{}/task", router.id())).expect("the process has threads") {
            let Ok(status) = fs::read_to_string(task.expect("an entry").path().join("status")) else { continue };
            let capabilities = u64::from_str_radix(field(&status, "CapPrm"), 16).expect("hexadecimal");
            assert_eq!(field(&status, "NoNewPrivs"), "1", "{status}");
            if capabilities != 0 {
                kept.push((field(&status, "Name").to_owned(), capabilities));
            }
        }
        let expected: Vec<_> = expected.iter().map(|(name, bits)| ((*name).to_owned(), *bits)).collect();
        assert_eq!(kept, expected, "{more:?}");
        router.signal("INT");
        router.wait().ok();
    }
}

#[test]
fn the_subscription_service_has_no_privileges() {
    let directory = Directory::new();
    directory.write("common.sub", "price > 100 : fwd(3)\n");
    let rules = directory.write("rules.sub", "include \"common.sub\"\nstock == \"GOOGL\" : fwd(2)\n");
    let keep = directory.path("added.rules");
    let address = reserved_address();
    let _rig = Rig::new(8, address);
    let mut service = Service::start(&rules, address, &["--keep", &keep]);
    service.running.wait_for("the switch applies 2 rules");
    // The main thread, the one of changes and the one of the server.
    assert!(assert_unprivileged(service.running.id()) >= 3);
    // Clients still change rules, and the file and its includes are still read.
    service.add("price > 5 : fwd(3)");
    assert!(fs::read_to_string(&keep).expect("the journal").contains("price > 5"));
    directory.write("common.sub", "price > 200 : fwd(3)\nprice > 300 : fwd(4)\n");
    service.running.wait_for("2 rules added, 1 removed");
}

#[test]
fn processes_that_only_exchange_datagrams_have_no_privileges() {
    let mut receiver = Running::start(&mut triplane(&["market", "receive", "--port", "0", "--show-privileges"]));
    receiver.wait_for("press Ctrl-C");
    assert_unprivileged(receiver.id());
    let address = reserved_address();
    let mut publisher = Running::start(&mut triplane(&["market", "publish", "--to", &address.to_string()]));
    publisher.wait_for("press Ctrl-C");
    assert_unprivileged(publisher.id());
    // No other test takes this address of the loopback interface.
    let mut echo = Running::start(&mut triplane(&["tpp", "echo", "127.102.0.1"]));
    echo.wait_for("press Ctrl-C");
    assert_unprivileged(echo.id());
    for running in [receiver, publisher, echo] {
        running.signal("INT");
        running.wait().ok();
    }
}

#[test]
fn the_switch_processes_of_a_lab_have_no_privileges() {
    if let Some(reason) = Network::obstacle(&["ping"]) {
        return testing::skip(&reason);
    }
    let directory = Directory::new();
    let labs = directory.path("labs");
    let lab = |arguments: &[&str]| {
        let mut command = triplane(&[&["lab"], arguments].concat());
        run(command.env("TRIPLANE_LAB_DIR", &labs)).ok()
    };
    let topology = directory.write("lab.toml", lab(&["new", "star", "--hosts", "2"]).stdout);
    lab(&["up", &topology, "--isolate", "--name", "bare"]);
    let status: serde_json::Value = lab(&["status", "--lab", "bare", "--json"]).json();
    let pids: Vec<u64> =
        status["switches"].as_array().expect("switches").iter().filter_map(|s| s["pid"].as_u64()).collect();
    assert!(!pids.is_empty(), "{status:#}");
    for pid in pids {
        // The threads of the process, of its switch and of the connection to the daemon.
        assert!(assert_unprivileged(pid as u32) >= 3);
    }
    lab(&["down", "--lab", "bare"]);
}

#[test]
fn help_says_which_capabilities_to_grant() {
    for words in [&["run"][..], &["subscribe", "serve"], &["lab"], &["market"]] {
        let help = run(triplane(words).arg("--help")).ok();
        assert!(help.stdout.contains("Privileges:"), "{}", help.stdout);
    }
    let help = run(&mut triplane(&["run", "--help"])).ok().stdout;
    assert!(help.contains("sudo setcap cap_net_raw,cap_net_admin,cap_bpf+ep"), "{help}");
}
