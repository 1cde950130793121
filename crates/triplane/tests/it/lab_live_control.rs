//! Live labs whose switches have controllers, or processes of their own, and the start and end of labs.
//!
//! These tests need root and some tools. Where those are missing the tests skip and say so. Each test has its own
//! directory of labs, so that `lab down --all` affects only its own labs.

use std::net::TcpListener;
use std::process::Command;

use crate::support::labs::{Labs, is_running, kill, until};
use crate::support::{Running, run, triplane};
use testing::port::reserved_ports;

impl Labs {
    /// Writes a topology of this shape after `change` and returns its path.
    fn topology(&self, name: &str, shape: &[&str], change: impl Fn(String) -> String) -> String {
        let path = self.0.path(&format!("{name}.toml"));
        let made = self.lab(&[&["new"], shape].concat()).ok();
        std::fs::write(&path, change(made.stdout)).expect("the file can be written");
        path
    }

    /// Names of the files that labs left in the directory.
    fn left(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.0.path("labs")) else { return Vec::new() };
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| !name.starts_with('.')).collect()
    }

    /// Whether a ping from h1 is answered within this time in seconds.
    fn ping(&self, address: &str, timeout_s: &str) -> bool {
        self.lab(&["exec", "h1", "ping", "-n", "-c", "1", "-W", timeout_s, address]).code == Some(0)
    }

    /// Waits until a ping from h1 is answered.
    #[track_caller]
    fn reaches(&self, address: &str) {
        until("an answer", || self.ping(address, "2"));
    }

    /// Whether no answer to a ping from h1 comes within two seconds.
    fn misses(&self, address: &str) -> bool {
        !self.ping(address, "2")
    }
}

/// Controllers reach every switch at its port, are disconnected when it crashes, and find an empty switch when it
/// starts again.
fn controllers(labs: &Labs, isolate: &[&str]) {
    let topology = labs.topology("controlled", &["line", "--switches", "2"], |text| text);
    let first = reserved_ports(2);
    let up = labs.lab(&[&["up", &topology, "--p4runtime", &first.to_string()], isolate].concat()).ok();
    let second = format!("127.0.0.1:{}", first + 1);
    assert!(up.stdout.contains(&format!("s2: P4Runtime on {second}, device 1")), "{up:?}");
    let status = labs.status();
    assert_eq!(status["switches"][1]["p4runtime"]["address"], second.as_str(), "{status:#}");
    assert_eq!(status["switches"][1]["p4runtime"]["device_id"], 1, "{status:#}");
    let ctl = |words: &[&str]| run(&mut triplane(&[&["ctl", "--addr", &second, "--device-id", "1"], words].concat()));
    labs.reaches("10.0.0.2");
    ctl(&["delete", "routes", "hdr.ipv4.dst=10.0.0.2/32"]).ok();
    assert!(labs.misses("10.0.0.2"), "the controller took the route away");

    labs.lab(&["fail", "s2"]).ok();
    let refused = ctl(&["tables"]);
    assert_eq!(refused.code, Some(3), "a switch that is down has no controllers: {refused:?}");
    labs.lab(&["heal", "s2"]).ok();
    let entries = ctl(&["entries", "routes"]).ok();
    assert!(entries.stdout.contains("10.0.0.2"), "it starts with its own entries: {entries:?}");
    labs.reaches("10.0.0.2");
    labs.lab(&["down"]).ok();
    assert!(TcpListener::bind(&second).is_ok(), "the port is free again");
}

#[test]
fn controllers_reach_switches_that_are_threads() {
    let Some(labs) = Labs::new(&["ping"]) else { return };
    controllers(&labs, &[]);
}

#[test]
fn controllers_reach_switches_that_are_processes() {
    let Some(labs) = Labs::new(&["ping"]) else { return };
    controllers(&labs, &["--isolate"]);
}

#[test]
fn a_topology_says_which_switches_have_controllers() {
    let Some(labs) = Labs::new(&[]) else { return };
    let port = reserved_ports(1);
    let asked = format!("[switches.s2]\np4runtime = \"127.0.0.1:{port}\"\ndevice_id = 7\n");
    let change = |text: String| text.replace("[switches.s2]\n", &asked);
    let topology = labs.topology("some", &["line", "--switches", "2"], change);
    labs.lab(&["up", &topology]).ok();
    let status = labs.status();
    assert!(status["switches"][0]["p4runtime"].is_null(), "{status:#}");
    assert_eq!(status["switches"][1]["p4runtime"]["device_id"], 7, "{status:#}");
    let address = format!("127.0.0.1:{port}");
    run(&mut triplane(&["ctl", "--addr", &address, "--device-id", "7", "tables"])).ok();
}

#[test]
fn a_switch_without_a_program_waits_for_its_controllers() {
    let Some(labs) = Labs::new(&[]) else { return };
    let path = labs.0.path("bare.toml");
    let text = "[hosts.h1]\nip = \"10.0.0.1/8\"\n[switches.s1]\n[[links]]\nends = [\"h1\", \"s1:1\"]\n";
    std::fs::write(&path, text).expect("the file can be written");
    let refused = labs.lab(&["up", &path]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("specifies no program for `s1`"), "{refused:?}");
    let port = reserved_ports(1).to_string();
    labs.lab(&["up", &path, "--p4runtime", &port]).ok();
    let address = format!("127.0.0.1:{port}");
    let tables = run(&mut triplane(&["ctl", "--addr", &address, "--device-id", "0", "tables"]));
    assert!(tables.stderr.contains("the switch has no program yet"), "{tables:?}");
}

#[test]
fn mistakes_and_missing_privileges_are_reported_before_the_start() {
    let Some(labs) = Labs::new(&["unshare"]) else { return };
    let path = labs.0.path("wrong.toml");
    std::fs::write(&path, "[hosts.h1]\nip = \"10.0.0.1/8\"\n[[links]]\nends = [\"h1\", \"s1:1\"]\n").unwrap();
    let binary = env!("CARGO_BIN_EXE_triplane");
    let up = format!("echo 0 > /proc/sys/user/max_net_namespaces; exec {binary} lab up {path}");
    let mut command = Command::new("unshare");
    let refused = run(command.args(["-Ur", "sh", "-c", &up]).env("TRIPLANE_LAB_DIR", labs.0.path("labs")));
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("`s1`"), "{refused:?}");
    assert!(refused.stderr.contains("no live network can be created here: "), "{refused:?}");
    // A user with the rights to create networks sees mistakes only.
    let refused = labs.lab(&["up", &path]);
    assert!(refused.stderr.contains("`s1`") && !refused.stderr.contains("no live network"), "{refused:?}");
}

#[test]
fn a_process_that_is_killed_leaves_the_others_alone() {
    let Some(labs) = Labs::new(&["ping"]) else { return };
    let topology = labs.topology("apart", &["line", "--switches", "3"], |text| text);
    labs.lab(&["up", &topology, "--isolate"]).ok();
    labs.reaches("10.0.0.3");
    let processes: Vec<u64> =
        (0..3).map(|at| labs.status()["switches"][at]["pid"].as_u64().expect("it has a process")).collect();
    kill(processes[2]);
    until("the end of s3", || labs.status()["switches"][2]["failed"] == true);
    let status = labs.status();
    assert_eq!(status["switches"][2]["why"], "its process was terminated by signal 9", "{status:#}");
    assert_eq!(status["switches"][0]["failed"], false, "{status:#}");
    labs.reaches("10.0.0.2");
    assert!(labs.misses("10.0.0.3"));

    // The state of a link also applies to the process that comes next.
    labs.lab(&["link", "down", "s2", "s3"]).ok();
    labs.lab(&["heal", "s3"]).ok();
    assert!(labs.misses("10.0.0.3"));
    labs.lab(&["link", "up", "s2", "s3"]).ok();
    labs.reaches("10.0.0.3");
    // A command returns when its effect holds, even for the very next packet.
    for _ in 0..2 {
        labs.lab(&["link", "down", "s1", "s2"]).ok();
        assert!(labs.misses("10.0.0.3"));
        labs.lab(&["link", "up", "s1", "s2"]).ok();
        assert!(labs.ping("10.0.0.3", "20"));
    }
    labs.lab(&["down"]).ok();
    assert!(processes.iter().all(|process| !is_running(*process)));
    assert_eq!(labs.left(), Vec::<String>::new());
}

#[test]
fn captures_come_from_processes_too() {
    let Some(labs) = Labs::new(&["ping"]) else { return };
    let topology = labs.topology("apart", &["star", "--hosts", "2"], |text| text);
    labs.lab(&["up", &topology, "--isolate"]).ok();
    let path = labs.0.path("s1.pcap");
    let capture = Running::start(&mut labs.command(&["pcap", "s1:1", &path]));
    until("a capture", || {
        labs.reaches("10.0.0.2");
        let bytes = std::fs::read(&path).unwrap_or_default();
        wire::pcap::Reader::new(bytes.as_slice()).map(|reader| reader.flatten().count()).unwrap_or(0) >= 4
    });
    capture.signal("INT");
}

#[test]
fn nothing_outlives_a_holder_that_is_killed() {
    let Some(labs) = Labs::new(&["ping"]) else { return };
    let file = labs.0.path("process");
    let command = format!("[hosts.h1]\ncommands = [\"sleep 600 & echo $! > {file}\"]\n");
    let change = |text: String| text.replace("[hosts.h1]\n", &command);
    let topology = labs.topology("killed", &["star", "--hosts", "2"], change);
    labs.lab(&["up", &topology, "--isolate"]).ok();
    let started = std::fs::read_to_string(&file).expect("the command wrote it").trim().parse().expect("a number");
    assert!(is_running(started));
    let program = Running::start(&mut labs.command(&["exec", "h2", "sleep", "600"]));
    let switch = labs.status()["switches"][0]["pid"].as_u64().expect("it has a process");
    let text = std::fs::read_to_string(labs.0.path("labs/killed/lab.json")).expect("the lab tells of itself");
    let room: serde_json::Value = serde_json::from_str(&text).expect("as JSON");
    kill(room["pid"].as_u64().expect("a number"));
    until("the end of the switch", || !is_running(switch));
    let down = labs.lab(&["down", "killed"]).ok();
    assert!(down.stdout.contains("had crashed"), "{down:?}");
    assert_eq!(labs.left(), Vec::<String>::new());
    assert_ne!(program.wait().code, Some(0), "what ran on a host was ended");
    assert!(!is_running(started), "and what the topology asked for");
}

#[test]
fn a_process_without_the_environment_of_its_host_ends_with_a_crashed_lab() {
    let Some(labs) = Labs::new(&[]) else { return };
    let file = labs.0.path("process");
    let command = format!("[hosts.h1]\ncommands = [\"env -i /bin/sleep 600 & echo $! > {file}\"]\n");
    let topology = labs.topology("cleared", &["star", "--hosts", "2"], |text| text.replace("[hosts.h1]\n", &command));
    labs.lab(&["up", &topology]).ok();
    let started = std::fs::read_to_string(&file).expect("the command wrote it").trim().parse().expect("a number");
    let outside = Running::start(Command::new("sleep").arg("600"));
    let text = std::fs::read_to_string(labs.0.path("labs/cleared/lab.json")).expect("the lab describes itself");
    let description: serde_json::Value = serde_json::from_str(&text).expect("as JSON");
    kill(description["pid"].as_u64().expect("a number"));
    labs.lab(&["down", "--lab", "cleared"]).ok();
    assert!(!is_running(started));
    outside.signal("TERM");
    assert_eq!(outside.wait().code, None, "only this test's signal ended it");
}

#[test]
fn a_switch_that_is_stopped_holds_nobody_up() {
    let Some(labs) = Labs::new(&["ping"]) else { return };
    let topology = labs.topology("halted", &["line", "--switches", "3"], |text| text);
    labs.lab(&["up", &topology, "--isolate"]).ok();
    let processes: Vec<u64> =
        (0..3).map(|at| labs.status()["switches"][at]["pid"].as_u64().expect("it has a process")).collect();
    let signal = |signal: &str| run(Command::new("sh").args(["-c", &format!("kill -{signal} {}", processes[2])])).ok();
    signal("STOP");
    let status = labs.status();
    assert_eq!(status["switches"][2]["why"], "it did not respond; it may be stopped", "{status:#}");
    assert_eq!(status["switches"][0]["failed"], false, "{status:#}");
    for command in [&["link", "down", "s2", "s3"][..], &["pcap", "s3:1", "/dev/null"]] {
        let refused = labs.lab(command);
        assert!(refused.stderr.contains("`s3` did not respond; it may be stopped"), "{refused:?}");
    }
    labs.reaches("10.0.0.2");
    signal("CONT");
    labs.lab(&["link", "up", "s2", "s3"]).ok();
    labs.reaches("10.0.0.3");
    signal("STOP");
    labs.lab(&["down"]).ok();
    assert!(processes.iter().all(|process| !is_running(*process)));
    assert_eq!(labs.left(), Vec::<String>::new());
}

#[test]
fn a_lab_that_is_stopped_holds_nobody_up() {
    let Some(labs) = Labs::new(&[]) else { return };
    let topology = labs.topology("stopped", &["star", "--hosts", "2"], |text| text);
    labs.lab(&["up", &topology]).ok();
    let text = std::fs::read_to_string(labs.0.path("labs/stopped/lab.json")).expect("the lab tells of itself");
    let room: serde_json::Value = serde_json::from_str(&text).expect("as JSON");
    let pid = room["pid"].as_u64().expect("a number");
    let signal = |signal: &str| run(Command::new("sh").args(["-c", &format!("kill -{signal} {pid}")])).ok();
    signal("STOP");
    for command in [&["status"][..], &["fail", "s1"], &["link", "down", "h1", "s1"], &["pcap", "s1:1", "/dev/null"]] {
        let refused = labs.lab(command);
        assert_eq!(refused.code, Some(3), "{refused:?}");
        assert!(refused.stderr.contains(&format!("resume its process with `kill -CONT {pid}`")), "{refused:?}");
    }
    signal("CONT");
    labs.status();
    signal("STOP");
    labs.lab(&["down"]).ok();
    assert_eq!(labs.left(), Vec::<String>::new());
}

#[test]
fn what_runs_on_hosts_ends_with_the_lab() {
    let Some(labs) = Labs::new(&[]) else { return };
    let file = labs.0.path("process");
    let command = format!("[hosts.h1]\ncommands = [\"sleep 600 & echo $! > {file}\"]\n");
    let topology = labs.topology("hosts", &["star", "--hosts", "2"], |text| text.replace("[hosts.h1]\n", &command));
    labs.lab(&["up", &topology]).ok();
    let started = std::fs::read_to_string(&file).expect("the command wrote it").trim().parse().expect("a number");
    let mut asked = Running::start(&mut labs.command(&["exec", "h2", "sh", "-c", "echo here; sleep 600"]));
    asked.wait_for("here");
    assert!(is_running(started));
    labs.lab(&["down"]).ok();
    assert_ne!(asked.wait().code, Some(0), "what was asked for on h2 was ended");
    assert!(!is_running(started), "and what the topology asked for on h1");
}

#[test]
fn shells_run_on_a_host_and_all_labs_end_together() {
    let Some(labs) = Labs::new(&[]) else { return };
    for name in ["one", "two"] {
        let topology = labs.topology(name, &["star", "--hosts", "2"], |text| text);
        labs.lab(&["up", &topology]).ok();
    }
    let unsaid = labs.lab(&["status"]);
    assert!(unsaid.stderr.contains("several labs are up; choose one with --lab (up: one, two)"), "{unsaid:?}");
    // A shell whose input has ended prints its host's name and exits.
    let mut shell = labs.command(&["shell", "--lab", "two", "h2"]);
    let script = labs.0.path("shell");
    std::fs::write(&script, "#!/bin/sh\necho $TRIPLANE_HOST; ls /sys/class/net\n").expect("it can be written");
    run(Command::new("chmod").args(["+x", &script])).ok();
    let done = run(shell.env("SHELL", &script)).ok();
    assert_eq!(done.stdout, "h2\neth0\nlo\n", "{done:?}");
    let down = labs.lab(&["down", "--all"]).ok();
    assert_eq!(down.stdout, "lab one: down\nlab two: down\n");
    assert_eq!(labs.left(), Vec::<String>::new());
}

#[test]
fn a_start_that_fails_is_undone() {
    let Some(labs) = Labs::new(&[]) else { return };
    let topology = labs.topology("twice", &["line", "--switches", "2"], |text| text);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("it has an address").port().to_string();
    let refused = labs.lab(&["up", &topology, "--p4runtime", &port]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains(&format!("cannot serve P4Runtime at 127.0.0.1:{port}")), "{refused:?}");
    assert_eq!(labs.left(), Vec::<String>::new());

    labs.lab(&["up", &topology]).ok();
    let again = labs.lab(&["up", &topology]);
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.stderr.contains("the lab `twice` is already up"), "{again:?}");
    assert_eq!(labs.left(), ["twice"]);
}

#[test]
fn ctrl_c_while_a_lab_starts_undoes_it() {
    let Some(labs) = Labs::new(&[]) else { return };
    let change = |text: String| text.replace("[hosts.h1]\n", "[hosts.h1]\ncommands = [\"sleep 600\"]\n");
    let topology = labs.topology("slow", &["line", "--switches", "2"], change);
    let mut up = Running::start(&mut labs.command(&["up", &topology, "--isolate"]));
    until("the beginning", || labs.left() == ["slow"]);
    until("the command of h1", || std::path::Path::new(&labs.0.path("labs/slow/h1.log")).exists());
    let meanwhile = labs.lab(&["up", &topology]);
    assert!(meanwhile.stderr.contains("is already starting"), "{meanwhile:?}");
    up.signal("INT");
    up.wait_for("interrupted; everything was cleaned up");
    assert_eq!(up.wait().code, Some(3));
    assert_eq!(labs.left(), Vec::<String>::new());
}

#[test]
fn a_lab_that_is_starting_can_be_ended() {
    let Some(labs) = Labs::new(&[]) else { return };
    let change = |text: String| text.replace("[hosts.h1]\n", "[hosts.h1]\ncommands = [\"sleep 600\"]\n");
    let topology = labs.topology("slow", &["line", "--switches", "2"], change);
    let mut up = Running::start(&mut labs.command(&["up", &topology]));
    until("the command of h1", || std::path::Path::new(&labs.0.path("labs/slow/h1.log")).exists());
    labs.lab(&["down", "slow"]).ok();
    assert_eq!(labs.left(), Vec::<String>::new());
    // A daemon that was killed would give no reason.
    up.wait_for("the lab was stopped while it was starting");
    assert_eq!(up.wait().code, Some(3));
}

#[test]
fn a_start_that_is_killed_leaves_no_directory() {
    let Some(labs) = Labs::new(&[]) else { return };
    let change = |text: String| text.replace("[hosts.h1]\n", "[hosts.h1]\ncommands = [\"sleep 600\"]\n");
    let topology = labs.topology("stuck", &["line", "--switches", "2"], change);
    let mut up = Running::start(&mut labs.command(&["up", &topology]));
    until("the command of h1", || std::path::Path::new(&labs.0.path("labs/stuck/h1.log")).exists());
    let text = std::fs::read_to_string(labs.0.path("labs/stuck/lab.json")).expect("the lab describes itself");
    let lab: serde_json::Value = serde_json::from_str(&text).expect("as JSON");
    // A stopped daemon cannot remove what it created.
    run(Command::new("sh").args(["-c", &format!("kill -STOP {}", lab["pid"])])).ok();
    up.signal("INT");
    up.wait_for("interrupted; everything was cleaned up");
    assert_eq!(up.wait().code, Some(3));
    assert_eq!(labs.left(), Vec::<String>::new());
}

#[test]
fn a_lab_ends_without_the_program_kill() {
    let Some(labs) = Labs::new(&[]) else { return };
    let file = labs.0.path("process");
    let command = format!("[hosts.h1]\ncommands = [\"/bin/sleep 600 & echo $! > {file}\"]\n");
    let topology = labs.topology("bare", &["star", "--hosts", "2"], |text| text.replace("[hosts.h1]\n", &command));
    let lab = |words: &[&str]| run(labs.command(words).env("PATH", "/nonexistent")).ok();
    let read = || std::fs::read_to_string(&file).expect("the command wrote it");
    let started = || read().trim().parse::<u64>().expect("a number");
    lab(&["up", &topology, "--isolate"]);
    let first = started();
    assert!(is_running(first));
    lab(&["down"]);
    assert!(!is_running(first));
    // The daemon ends nothing if it is killed.
    lab(&["up", &topology, "--isolate"]);
    let second = started();
    assert!(is_running(second));
    let text = std::fs::read_to_string(labs.0.path("labs/bare/lab.json")).expect("the lab describes itself");
    let description: serde_json::Value = serde_json::from_str(&text).expect("as JSON");
    kill(description["pid"].as_u64().expect("a number"));
    lab(&["down", "bare"]);
    assert!(!is_running(second));
    assert_eq!(labs.left(), Vec::<String>::new());
}

#[test]
fn a_log_has_the_output_of_all_commands() {
    let Some(labs) = Labs::new(&[]) else { return };
    let file = labs.0.path("go");
    let background = format!("echo early; (until test -e {file}; do sleep 0.02; done; echo late) &");
    let commands = format!("[hosts.h1]\ncommands = [\"{background}\", \"echo second; touch {file}\"]\n");
    let topology = labs.topology("logs", &["star", "--hosts", "2"], |text| text.replace("[hosts.h1]\n", &commands));
    labs.lab(&["up", &topology]).ok();
    let log = || std::fs::read(labs.0.path("labs/logs/h1.log")).expect("there is a log");
    until("the last line", || log().ends_with(b"late\n"));
    assert_eq!(String::from_utf8(log()).as_deref(), Ok("early\nsecond\nlate\n"));
}

/// Writes a topology whose program has `count` long warnings. Returns its path and a text of each warning.
fn topology_with_warnings(labs: &Labs, count: usize) -> (String, &'static str) {
    let properties: String = (0..count).map(|number| format!("    property_{number:0120} = {number};\n")).collect();
    let source = format!(
        "#include <core.p4>\n#include <v1model.p4>\nstruct H {{}}\nstruct M {{}}\n\
         parser P(packet_in b, out H h, inout M m, inout standard_metadata_t s) {{\n\
         \x20 state start {{ transition accept; }}\n}}\n\
         control V(inout H h, inout M m) {{ apply {{}} }}\n\
         control I(inout H h, inout M m, inout standard_metadata_t s) {{\n\
         \x20 table t {{\n    key = {{ s.ingress_port: exact; }}\n    actions = {{ NoAction; }}\n{properties}  }}\n\
         \x20 apply {{ t.apply(); }}\n}}\n\
         control E(inout H h, inout M m, inout standard_metadata_t s) {{ apply {{}} }}\n\
         control C(inout H h, inout M m) {{ apply {{}} }}\n\
         control D(packet_out b, in H h) {{ apply {{}} }}\n\
         V1Switch(P(), V(), I(), E(), C(), D()) main;\n"
    );
    labs.0.write("warned.p4", &source);
    let path = labs.0.path("warned.toml");
    let text = "[hosts.h1]\nip = \"10.0.0.1/8\"\n[switches.s1]\nprogram = \"warned.p4\"\n\
                [[links]]\nends = [\"h1\", \"s1:1\"]\n";
    std::fs::write(&path, text).expect("the file can be written");
    (path, "v1model has no table property")
}

#[test]
fn warnings_of_any_length_are_printed_once() {
    const COUNT: usize = 200;
    let Some(labs) = Labs::new(&[]) else { return };
    let (topology, warning) = topology_with_warnings(&labs, COUNT);
    for isolate in [&[][..], &["--isolate"]] {
        let up = labs.lab(&[&["up", &topology], isolate].concat()).ok();
        assert!(up.stderr.len() > 65_536, "more than a pipe holds");
        assert_eq!(up.stderr.matches(warning).count(), COUNT);
        labs.lab(&["down"]).ok();
    }
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("it has an address").port().to_string();
    let refused = labs.lab(&["up", &topology, "--p4runtime", &port]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert_eq!(refused.stderr.matches(warning).count(), COUNT);
    assert_eq!(refused.stderr.matches("error: ").count(), 1, "{refused:?}");
    assert!(refused.stderr.contains(&format!("cannot serve P4Runtime at 127.0.0.1:{port}")), "{refused:?}");
}

#[test]
fn an_endpoint_for_other_machines_is_pointed_out() {
    let Some(labs) = Labs::new(&[]) else { return };
    let port = reserved_ports(2);
    let asked = format!("[switches.s2]\np4runtime = \"0.0.0.0:{port}\"\ndevice_id = 7\n");
    let change = |text: String| text.replace("[switches.s2]\n", &asked);
    let topology = labs.topology("open", &["line", "--switches", "2"], change);
    let expected = format!(
        "s2: P4Runtime on 0.0.0.0:{port}, device 7, without TLS: \
         any client that reaches this address controls the switch"
    );
    let up = labs.lab(&["up", &topology]).ok();
    assert!(up.stderr.contains(&expected), "{up:?}");
    labs.lab(&["down"]).ok();
    let scenario = labs.0.path("scenario.toml");
    std::fs::write(&scenario, "duration = \"10ms\"\n").expect("the file can be written");
    let played = labs.lab(&["run", &topology, "--scenario", &scenario]).ok();
    assert!(played.stderr.contains(&expected), "{played:?}");
    let local = labs.topology("local", &["line", "--switches", "2"], |text| text);
    let up = labs.lab(&["up", &local, "--p4runtime", &port.to_string()]).ok();
    assert!(!up.stderr.contains("any client"), "{up:?}");
}

#[test]
fn two_that_start_one_lab_at_once_do_not_both() {
    let Some(labs) = Labs::new(&[]) else { return };
    let topology = labs.topology("race", &["line", "--switches", "2"], |text| text);
    let both = [(); 2].map(|()| Running::start(&mut labs.command(&["up", &topology])));
    let mut codes = both.map(|running| running.wait().code);
    codes.sort_unstable();
    assert_eq!(codes[0], Some(0), "one is up: {codes:?}");
    assert_ne!(codes[1], Some(0), "the other one is told: {codes:?}");
    labs.lab(&["status"]).ok();
}

#[test]
fn what_is_no_labs_stays_where_it_is() {
    let Some(labs) = Labs::new(&[]) else { return };
    let topology = labs.topology("mine", &["star", "--hosts", "2"], |text| text);
    let kept = labs.0.path("labs/mine/kept");
    std::fs::create_dir_all(labs.0.path("labs/mine")).expect("it can be made");
    std::fs::write(&kept, "").expect("it can be written");
    let refused = labs.lab(&["up", &topology]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains("is not the run directory of a lab"), "{refused:?}");
    labs.lab(&["down", "--all"]).ok();
    for name in [&["mine"][..], &["--lab", "mine"], &["mine", "--lab", "mine"]] {
        assert_eq!(labs.lab(&[&["down"], name].concat()).code, Some(2), "{name:?}");
    }
    assert!(std::path::Path::new(&kept).exists());
    // Another user may have created a symbolic link in a directory that everybody can write to.
    let link = labs.0.path("link");
    std::os::unix::fs::symlink(labs.0.path("labs"), &link).expect("it can be made");
    let refused = run(labs.command(&["up", &topology, "--name", "other"]).env("TRIPLANE_LAB_DIR", &link));
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains("is not a directory"), "{refused:?}");
}
