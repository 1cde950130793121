//! `triplane tpp shim`: what it refuses, and two hosts with shims whose packets pass `examples/router`. The live tests
//! need root and some tools. Where those are missing they skip and say so.

use serde_json::{Value, json};
use testing::lock::LIVE_TRAFFIC;

use crate::live::{RECEIVER, SENDER};
use crate::support::labs::until;
use crate::support::network::Network;
use crate::support::{Directory, Done, Running, run, triplane};

const PROGRAM: &str =
    ".app 7\n.hops 3\nPUSH [Switch:ID]\nPUSH [PacketMetadata:OutputPort]\nPUSH [PacketMetadata:Length]\n";

#[test]
fn rules_and_programs_are_refused_before_anything_is_opened() {
    let directory = Directory::new();
    let program = directory.write("path.tpp", PROGRAM);
    let writer = directory.write("write.tpp", ".app 7\n.memory 5\nSTORE [Link:AppSpecific_1], [Packet:0]\n");
    let reflective = directory.write("back.tpp", ".reflect\nPUSH [Switch:ID]\n");
    let policy = directory.write("policy", "7 read all\n7 write Link:AppSpecific_0\n");
    let rules = directory.write("rules", "# a comment\npath.tpp tcp\n  path.tpp tcp port 70000 # too large\n");
    // No interface has this name: if it were opened, the message would say so.
    let refused = |options: &[&str], code: i32, parts: &[&str]| {
        let done = run(&mut triplane(&[&["tpp", "shim", "no-such-if"], options].concat()));
        assert_eq!(done.code, Some(code), "{options:?}: {done:?}");
        for part in parts {
            assert!(done.stderr.contains(part), "{options:?}: `{part}` in {done:?}");
        }
    };
    refused(&[], 2, &["there is nothing to do: write --insert, --rules or --collect"]);
    let rule = format!("{program} dport 80");
    refused(&["--insert", &rule], 2, &["--insert `", "`dport` is no condition: expected from, to, tcp"]);
    refused(&["--collect", &format!("{program} one-in 2")], 2, &["one-in and priority are those of the host"]);
    refused(&["--insert", &format!("{program} to 2001:db8::1")], 2, &["a live shim inserts into IPv4 packets only"]);
    refused(&["--collect", &format!("{program} from ::/0")], 2, &["a live shim inserts into IPv4 packets only"]);
    let ipv6 = directory.write("ipv6", "path.tpp to 2001:db8::/32\n");
    refused(&["--rules", &ipv6], 1, &["ipv6:1:1", "a live shim inserts into IPv4 packets only", "1 error"]);
    refused(&["--rules", &rules], 1, &["rules:3:3", "`70000` is no value of `port`: expected a port", "1 error"]);
    refused(&["--insert", &writer, "--policy", &policy], 1, &["write.tpp:3:", "is not installed: 1 error"]);
    refused(&["--insert", &reflective], 1, &["is refused: a reflective program would send"]);
    refused(&["--insert", &directory.path("none.tpp")], 3, &["none.tpp"]);
    refused(&["--insert", &program, "--policy", &policy], 3, &["there is no network interface `no-such-if`"]);
}

/// Creates the network and a router whose switch has the number 42. Skips the test where that is not possible.
fn network() -> Option<Network> {
    let obstacle = Network::obstacle(&["perl", "ping"]).or_else(|| {
        let is_there = std::path::Path::new("/dev/net/tun").exists();
        (!is_there).then(|| "there is no /dev/net/tun".to_owned())
    });
    if let Some(reason) = obstacle {
        testing::skip(&reason);
        return None;
    }
    Some(Network::new(false))
}

/// Starts a shim at a host.
fn shim(network: &Network, host: &str, options: &[&str]) -> Running {
    let binary = triplane(&[]).get_program().to_str().expect("a path").to_owned();
    let command = [&[binary.as_str(), "tpp", "shim", "eth0", "--json", "--show-privileges"], options].concat();
    let mut shim = Running::start(&mut network.command(host, &command));
    shim.wait_for("no capabilities, no_new_privs");
    shim.wait_for("press Ctrl-C to stop");
    shim
}

/// Asserts that a shim at h1 ends at once with an error of the environment.
#[track_caller]
fn refused(network: &Network, options: &[&str], reason: &str) {
    let binary = triplane(&[]).get_program().to_str().expect("a path").to_owned();
    let command = [&[binary.as_str(), "tpp", "shim", "eth0"], options].concat();
    let done = Running::start(&mut network.command("h1", &command)).wait();
    assert_eq!(done.code, Some(3), "{done:?}");
    assert!(done.stderr.contains(reason), "`{reason}` in {done:?}");
}

/// Ends a program and returns its report.
fn end(running: Running) -> Value {
    running.signal("INT");
    running.wait().ok().json()
}

fn bytes() -> Vec<u8> {
    (0..4u32 << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// A file on its way from h2 to h1.
struct Transfer {
    directory: Directory,
    sender: Running,
}

impl Transfer {
    fn start(network: &Network) -> Transfer {
        let directory = Directory::new();
        let sent = directory.write("sent", bytes());
        let perl = ["perl", "-MIO::Socket::INET", "-e", SENDER, sent.as_str()];
        let mut sender = Running::start(&mut network.command("h2", &perl));
        sender.wait_for("listening");
        Transfer { directory, sender }
    }

    /// Receives the file, which must be the one that was sent.
    #[track_caller]
    fn receive(self, network: &Network) {
        let path = self.directory.path("received");
        network.run("h1", &["perl", "-MIO::Socket::INET", "-e", RECEIVER, "10.0.2.2", &path]).ok();
        self.sender.wait().ok();
        let received = std::fs::read(path).expect("what was received");
        assert!(received == bytes(), "{} bytes arrived, or others", received.len());
    }
}

fn ping(network: &Network, bytes: &str) -> Done {
    network.run("h1", &["ping", "-n", "-W", "20", "-c", "1", "-s", bytes, "10.0.2.2"])
}

/// Returns the words of a report: hop, name, number of programs, least and greatest value.
fn words(report: &Value) -> Vec<Value> {
    let words = report["words"].as_array().expect("words");
    words.iter().map(|word| json!([word["hop"], word["name"], word["programs"], word["min"], word["max"]])).collect()
}

#[test]
fn packets_of_applications_carry_programs_that_the_switch_executes() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some(network) = network() else { return };
    let directory = Directory::new();
    let rule = directory.write("path.tpp", PROGRAM);
    let router = network.router(&["--json", "--tpp", "42", "--tpp-limit", "1000000"]);
    let shims = ["h1", "h2"].map(|host| shim(&network, host, &["--insert", &rule]));
    // 12 bytes of header, 3 instructions, 3 words at 3 hops.
    let device = network.run("h1", &["ip", "link", "show", "tpp0"]).ok().stdout;
    assert!(
        device.contains(&format!("mtu {}", 1500 - 12 - 12 - 36)) && device.contains("02:00:00:00:01:01"),
        "{device}"
    );
    // The second one takes several fragments.
    for bytes in ["56", "4000"] {
        let text = ping(&network, bytes).ok().stdout;
        assert!(text.contains("1 packets transmitted, 1 received, 0% packet loss"), "{text}");
    }
    Transfer::start(&network).receive(&network);
    let [first, second] = shims.map(end);
    let summary = end(router);
    let inserted = |report: &Value| report["rules"][0]["inserted"].as_u64().expect("a number");
    for (report, other, port) in [(&first, &second, 1), (&second, &first, 2)] {
        let collected = report["received"]["collected"].as_u64().expect("a number");
        assert!(collected > 100, "{report:#}");
        assert_eq!(collected, inserted(other), "{report:#}\n{other:#}");
        assert_eq!(report["rules"][0]["too_long"], 0, "{report:#}");
        assert_eq!(report["received"], json!({ "collected": collected, "foreign": 0, "damaged": 0, "malformed": 0 }));
        assert_eq!((&report["lost"], &report["not_executed"]), (&json!(0), &json!(0)), "{report:#}");
        let words = words(report);
        assert_eq!(words[0], json!([0, "Switch:ID", collected, 42, 42]), "{report:#}");
        assert_eq!(words[1], json!([0, "PacketMetadata:OutputPort", collected, port, port]), "{report:#}");
        assert_eq!(words.len(), 3, "there is one switch: {report:#}");
    }
    // Full segments fill the MTU of the wire with the program, and none exceeds it.
    assert_eq!(words(&first)[2][4], 1514, "{first:#}");
    assert_eq!(summary["tiny_programs"]["executed"], inserted(&first) + inserted(&second), "{summary:#}");
}

/// Only h1 has a shim. The switch takes its programs out before they reach the kernel of h2.
#[test]
fn a_host_without_a_shim_gets_packets_without_programs() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some(network) = network() else { return };
    let directory = Directory::new();
    let rule = directory.write("path.tpp", PROGRAM);
    for strips in [false, true] {
        let edge: &[&str] = if strips { &["--tpp-strip", "2"] } else { &[] };
        let router = network.router(&[&["--json", "--tpp", "42", "--tpp-limit", "1000000"], edge].concat());
        let shim = shim(&network, "h1", &["--insert", &rule]);
        let pinged = network.run("h1", &["ping", "-n", "-W", "3", "-c", "3", "-i", "0.2", "10.0.2.2"]);
        assert_eq!(pinged.stdout.contains("3 received, 0% packet loss"), strips, "{pinged:?}");
        if strips {
            Transfer::start(&network).receive(&network);
        }
        let (shim, summary) = (end(shim), end(router));
        let programs = &summary["tiny_programs"];
        let inserted = shim["rules"][0]["inserted"].as_u64().expect("a number");
        assert_eq!(programs["executed"], inserted, "{summary:#}\n{shim:#}");
        assert_eq!(programs["stripped"], if strips { inserted } else { 0 }, "{summary:#}\n{shim:#}");
    }
}

#[test]
fn connections_go_on_when_the_shim_is_killed() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some(network) = network() else { return };
    let directory = Directory::new();
    let rule = directory.write("path.tpp", PROGRAM);
    let router = network.router(&["--json", "--tpp", "42", "--tpp-limit", "1000000"]);
    let routes = network.run("h1", &["ip", "route"]).ok().stdout;
    let receiver = shim(&network, "h2", &["--collect", &rule]);
    let killed = shim(&network, "h1", &["--insert", &rule]);
    assert!(network.run("h1", &["ip", "route"]).ok().stdout.contains("tpp0"));
    // The answers have no program. Their receiver gets each of them once, though two interfaces could deliver it.
    let text = network.run("h1", &["ping", "-n", "-W", "20", "-c", "3", "-i", "0.2", "10.0.2.2"]).ok().stdout;
    assert!(text.contains("3 packets transmitted, 3 received, 0% packet loss"), "{text}");
    // The connection begins with the shim, and ends without it.
    let gate = directory.path("gate");
    let waiting = format!(
        r#"my $peer = IO::Socket::INET->new(PeerAddr => "10.0.2.2", PeerPort => 9000, Timeout => 20) or die "no: $!";
        sysread($peer, my $first, 1) or die "nothing: $!";
        $| = 1;
        print "begun\n";
        while (!-e "{gate}") {{ select(undef, undef, undef, 0.01); }}
        open(my $file, ">:raw", $ARGV[0]) or die "cannot write: $!";
        print $file $first;
        while (sysread($peer, my $data, 65536)) {{ print $file $data; }}
        close($file) or die "cannot write: $!";"#
    );
    let transfer = Transfer::start(&network);
    let path = directory.path("received");
    let perl = ["perl", "-MIO::Socket::INET", "-e", &waiting, &path];
    let mut reading = Running::start(&mut network.command("h1", &perl));
    reading.wait_for("begun");
    killed.signal("KILL");
    assert_eq!(killed.wait().code, None);
    assert_eq!(network.run("h1", &["ip", "route"]).ok().stdout, routes);
    assert_ne!(network.run("h1", &["ip", "link", "show", "tpp0"]).code, Some(0));
    directory.write("gate", "");
    reading.wait().ok();
    transfer.sender.wait().ok();
    assert!(std::fs::read(path).expect("what was received") == bytes());
    ping(&network, "56").ok();
    let report = end(receiver);
    assert!(report["received"]["collected"].as_u64() >= Some(3), "{report:#}");
    end(router);
}

/// Sets a parameter of the kernel for IPv4 at all interfaces of a host.
fn set_all(network: &Network, host: &str, parameter: &str, value: u8) {
    let script = format!("echo {value} > /proc/sys/net/ipv4/conf/all/{parameter}");
    network.run(host, &["sh", "-c", &script]).ok();
}

/// Returns a setting of a host.
fn setting(network: &Network, host: &str, name: &str) -> String {
    network.run(host, &["cat", &format!("/proc/sys/net/{name}")]).ok().stdout.trim().to_owned()
}

#[test]
fn packets_of_routes_that_are_not_copied_leave_without_program() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some(network) = network() else { return };
    let directory = Directory::new();
    let rule = directory.write("path.tpp", PROGRAM);
    let router = network.router(&[]);
    let ip = |arguments: &[&str]| _ = network.run("h1", &[&["ip"], arguments].concat()).ok();
    ip(&["route", "add", "10.0.2.0/24", "via", "10.0.1.254", "dev", "eth0", "table", "100"]);
    for rp_filter in [0, 2, 1] {
        set_all(&network, "h1", "rp_filter", rp_filter);
        ip(&["rule", "add", "to", "10.0.2.0/24", "lookup", "100"]);
        let sender = shim(&network, "h1", &["--insert", &rule]);
        // Answers arrive at another interface than that of the route to their source, which only this permits.
        if rp_filter == 1 {
            network.run("h1", &["sh", "-c", "echo 2 > /proc/sys/net/ipv4/conf/tpp0/rp_filter"]).ok();
        }
        ping(&network, "56").ok();
        ip(&["neighbour", "flush", "dev", "eth0"]);
        ping(&network, "56").ok();
        ip(&["rule", "del", "to", "10.0.2.0/24", "lookup", "100"]);
        let report = end(sender);
        // The answers pass through the shim.
        assert!(report["to_host"].as_u64() >= Some(2), "{report:#}");
        assert_eq!(report["rules"][0]["matched"], 0, "{report:#}");
    }
    router.signal("INT");
    router.wait().ok();
}

/// Returns the capabilities of the threads of a process that has a name, by their names.
fn thread_capabilities(network: &Network, host: &str, process: u32) -> Vec<(String, String)> {
    let script = format!("cd /proc/{process}/task && for t in *; do cat $t/comm; grep CapEff $t/status; done");
    let text = network.run(host, &["sh", "-c", &script]).ok().stdout;
    let lines: Vec<&str> = text.lines().collect();
    lines.chunks(2).map(|pair| (pair[0].to_owned(), pair[1].trim_start_matches("CapEff:").trim().to_owned())).collect()
}

#[test]
fn later_routes_and_neighbours_are_followed() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some(network) = network() else { return };
    let directory = Directory::new();
    let rule = directory.write("path.tpp", PROGRAM);
    let router = network.router(&["--json", "--tpp", "42", "--tpp-limit", "1000000"]);
    let ip = |arguments: &[&str]| network.run("h1", &[&["ip"], arguments].concat()).ok().stdout;
    let before = ip(&["route"]);
    ip(&["route", "add", "10.0.9.0/24", "via", "10.0.1.252", "dev", "eth0"]);
    let receiver = shim(&network, "h2", &["--collect", &rule]);
    let sender = shim(&network, "h1", &["--insert", &rule]);
    let way = |to: &str| ip(&["route", "get", to]);
    let leads = |to: &str, gateway: &str| way(to).contains(&format!("via {gateway} dev tpp0"));
    assert!(leads("10.0.9.9", "10.0.1.252"), "{}", way("10.0.9.9"));
    // A route that another one replaces, and a change of its metrics.
    ip(&["route", "replace", "10.0.9.0/24", "via", "10.0.1.253", "dev", "eth0"]);
    until("copy of the new route", || leads("10.0.9.9", "10.0.1.253"));
    ip(&["route", "del", "10.0.9.0/24", "via", "10.0.1.253", "dev", "eth0"]);
    until("copy of the old route", || leads("10.0.9.9", "10.0.1.252"));
    ip(&["route", "del", "10.0.9.0/24", "via", "10.0.1.252", "dev", "eth0"]);
    until("end of the copy", || !ip(&["route", "show", "dev", "tpp0"]).contains("10.0.9.0"));
    // Packets of a new route get programs.
    ip(&["route", "add", "10.0.2.2", "via", "10.0.1.254", "dev", "eth0", "mtu", "1500"]);
    until("copy of the route", || leads("10.0.2.2", "10.0.1.254"));
    assert!(ip(&["route", "show", "dev", "tpp0"]).contains("mtu 1440"));
    ping(&network, "56").ok();
    let mac = "02:00:00:00:00:77";
    let neighbours = || ip(&["neighbour", "show", "dev", "tpp0", "nud", "permanent"]);
    let change = |verb: &str, mac: &str| {
        ip(&["neighbour", verb, "10.0.1.77", "lladdr", mac, "dev", "eth0", "nud", "permanent"]);
    };
    change("add", mac);
    until("neighbour", || neighbours().contains(mac));
    change("replace", "02:00:00:00:00:78");
    until("change of the neighbour", || neighbours().contains("02:00:00:00:00:78"));
    ip(&["neighbour", "del", "10.0.1.77", "dev", "eth0"]);
    until("end of the neighbour", || neighbours().is_empty());
    // CAP_NET_ADMIN, and only where routes are followed.
    let mut capabilities = thread_capabilities(&network, "h1", sender.id());
    capabilities.sort();
    let expected = [("routes", "0000000000001000"), ("triplane", "0000000000000000")];
    assert_eq!(capabilities, expected.map(|(name, set)| (name.to_owned(), set.to_owned())));
    let (sender, receiver) = (end(sender), end(receiver));
    assert_eq!(sender["rules"][0]["inserted"], 1, "{sender:#}");
    assert_eq!(receiver["received"]["collected"], 1, "{receiver:#}");
    ip(&["route", "del", "10.0.2.2", "via", "10.0.1.254", "dev", "eth0"]);
    assert_eq!(ip(&["route"]), before);
    end(router);
}

#[test]
fn one_interface_answers_arp_with_either_filter_of_sources() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some(network) = network() else { return };
    let directory = Directory::new();
    let rule = directory.write("path.tpp", PROGRAM);
    // This neighbour is the kernel of the router's namespace.
    network.run("router", &["ip", "address", "add", "10.0.1.9/24", "dev", "p1"]).ok();
    for (rp_filter, arp_ignore) in [(0, "8"), (2, "8"), (1, "0")] {
        set_all(&network, "h1", "rp_filter", rp_filter);
        set_all(&network, "h1", "arp_ignore", 0);
        network.run("router", &["ip", "neighbour", "flush", "dev", "p1"]).ok();
        let receiver = shim(&network, "h1", &["--collect", &rule]);
        assert_eq!(setting(&network, "h1", "ipv4/conf/tpp0/arp_ignore"), arp_ignore);
        assert_eq!(setting(&network, "h1", "ipv6/conf/tpp0/disable_ipv6"), "1");
        network.run("router", &["ping", "-n", "-W", "20", "-c", "1", "10.0.1.1"]).ok();
        let neighbours = network.run("router", &["ip", "neighbour", "show", "dev", "p1"]).ok().stdout;
        assert!(neighbours.contains("02:00:00:00:01:01"), "{neighbours}");
        end(receiver);
    }
    set_all(&network, "h1", "arp_ignore", 1);
    refused(&network, &["--collect", &rule], "nothing would answer ARP requests at `eth0`");
}

#[test]
fn copies_of_routes_lead_to_the_same_gateways() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some(network) = network() else { return };
    let directory = Directory::new();
    let rule = directory.write("path.tpp", PROGRAM);
    let ip = |arguments: &[&str]| network.run("h1", &[&["ip"], arguments].concat()).ok().stdout;
    ip(&["route", "replace", "default", "via", "172.31.1.1", "dev", "eth0", "onlink", "mtu", "1500", "initcwnd", "20"]);
    ip(&["route", "add", "10.0.9.0/24", "dev", "eth0", "table", "100"]);
    let sender = shim(&network, "h1", &["--insert", &rule]);
    assert!(ip(&["link", "show", "tpp0"]).contains("alias between eth0 and the stack"));
    let routes = ip(&["route", "show", "dev", "tpp0"]);
    let default = routes.lines().find(|route| route.starts_with("default")).unwrap_or_default();
    let expected = ["via 172.31.1.1", "onlink", "mtu 1440", "initcwnd 20"];
    assert!(expected.iter().all(|part| default.contains(part)), "{routes}");
    refused(&network, &["--collect", &rule, "--device", "tpp1"], "another program is between `eth0` and the stack");
    refused(&network, &["--collect", &rule], "choose another one with `--device NAME`");
    refused(&network, &["--collect", &rule, "--device", "all"], "the name is reserved");
    // Hosts without shim may receive what goes to a group.
    network.run("h1", &["ping", "-n", "-c", "1", "-W", "0.1", "224.0.0.1"]);
    let report = end(sender);
    assert_eq!((&report["to_groups"], &report["rules"][0]["matched"]), (&json!(1), &json!(0)), "{report:#}");
    ip(&["route", "flush", "table", "main"]);
    refused(&network, &["--insert", &rule], "no packet would get a program: the main table has no IPv4 route of eth0");
}

/// Starts a shim at a host whose reader of the output has opened it, and reads nothing yet.
fn unread_shim(network: &Network, host: &str, options: &str) -> (Running, std::fs::File, Directory) {
    let directory = Directory::new();
    let output = directory.path("output");
    run(std::process::Command::new("mkfifo").arg(&output)).ok();
    let binary = triplane(&[]).get_program().to_str().expect("a path").to_owned();
    let script = format!("exec {binary} tpp shim eth0 --json {options} >{output}");
    let mut shim = Running::start(&mut network.command(host, &["sh", "-c", &script]));
    let reader = std::fs::File::open(output).expect("the shim opens it, too");
    shim.wait_for("press Ctrl-C to stop");
    (shim, reader, directory)
}

#[test]
fn a_slow_reader_costs_lines_and_not_sums() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some(network) = network() else { return };
    let directory = Directory::new();
    let rule = directory.write("path.tpp", PROGRAM);
    let router = network.router(&["--tpp", "42", "--tpp-limit", "1000000"]);
    let sender = shim(&network, "h2", &["--insert", &rule]);
    let (receiver, reader, _fifo) = unread_shim(&network, "h1", &format!("--insert {rule} --lines"));
    Transfer::start(&network).receive(&network);
    receiver.signal("INT");
    let done = receiver.wait();
    assert_eq!(done.code, Some(0), "{done:?}");
    let (_, report) = done.stderr.split_once("the sums follow here\n").expect("a note");
    let report: Value = serde_json::from_str(report).expect("JSON");
    drop(reader);
    let (collected, inserted) = (&report["received"]["collected"], &end(sender)["rules"][0]["inserted"]);
    assert!(collected == inserted && collected.as_u64() > Some(1000), "{report:#}");
    assert!(report["unprinted"].as_u64() > Some(0), "{report:#}");
    assert_eq!((&report["words"][0]["programs"], &report["unnamed"]), (collected, &json!(0)), "{report:#}");
    router.signal("INT");
    router.wait().ok();
}

#[test]
fn an_interface_that_is_lost_ends_the_shim_with_an_error() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some(network) = network() else { return };
    let directory = Directory::new();
    let rule = directory.write("path.tpp", PROGRAM);
    // The reader is gone, so nobody sees the sums.
    for (command, reason) in
        [(&["set", "p1", "down"][..], "interface `eth0` has no link"), (&["del", "p1"], "interface `eth0` disappeared")]
    {
        network.run("router", &["ip", "link", "set", "p1", "up"]).ok();
        let (shim, reader, _fifo) = unread_shim(&network, "h1", &format!("--insert {rule}"));
        drop(reader);
        network.run("router", &[&["ip", "link"], command].concat()).ok();
        let done = shim.wait();
        assert_eq!(done.code, Some(3), "{done:?}");
        assert!(done.stderr.contains(reason), "`{reason}` in {done:?}");
    }
}
