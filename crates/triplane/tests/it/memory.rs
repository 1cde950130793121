//! `triplane memory serve` and `run --memory`: mistakes, and a server that is killed while another one goes on.

use std::time::Instant;

use p4runtime_proto::v1;
use ports::namespace::{Namespace, NamespaceError, veth_with_queues};
use ports::{AfPacketPort, Port};
use serde_json::json;
use testing::lock::LIVE_TRAFFIC;

use crate::privileges::assert_unprivileged;
use crate::support::controller::{ELECTION, become_primary, connect};
use crate::support::metrics::{metrics_address, samples};
use crate::support::{Directory, Running, TEST_TIMEOUT, run, triplane};

/// Answers a request with the value of its key: from the table, or 0xffff.
const PROGRAM: &str = "#include <core.p4>
#include <v1model.p4>
header request_t { bit<48> dst; bit<48> src; bit<16> kind; bit<16> key; bit<16> value; }
struct headers { request_t request; }
struct meta {}
parser P(packet_in p, out headers hdr, inout meta m, inout standard_metadata_t sm) {
  state start { p.extract(hdr.request); transition accept; }
}
control I(inout headers hdr, inout meta m, inout standard_metadata_t sm) {
  action answer(bit<16> value) { hdr.request.value = value; }
  @elastic[cache = \"0\"] table values {
    key = { hdr.request.key : exact; }
    actions = { answer; }
    default_action = answer(0xffff);
    size = 5000;
  }
  apply {
    if (hdr.request.kind != 0x88b6) { mark_to_drop(sm); return; }
    values.apply();
    sm.egress_spec = sm.ingress_port;
    hdr.request.dst = hdr.request.src;
  }
}
control E(inout headers hdr, inout meta m, inout standard_metadata_t sm) { apply {} }
control V(inout headers hdr, inout meta m) { apply {} }
control D(packet_out p, in headers hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
";

#[test]
fn mistakes_about_memory_are_one_sentence() {
    let directory = Directory::new();
    let path = directory.write("values.p4", PROGRAM);
    let plain = directory.write("plain.p4", PROGRAM.replace("@elastic[cache = \"0\"] ", ""));
    let refused = |arguments: &[&str], code: i32, part: &str| {
        let done = run(&mut triplane(arguments));
        assert_eq!(done.code, Some(code), "{done:?}");
        assert!(done.stderr.contains(part), "{done:?} lacks {part:?}");
    };
    let with = |more: &[&str], part: &str| refused(&[&["run", &path, "--port", "1=lo"][..], more].concat(), 2, part);
    with(&["--memory", "10.9.0.1"], "expected ADDRESS@PORT");
    with(&["--memory", "10.9.0.1@2", "--workers", "2"], "--memory requires --workers 1");
    with(&["--memory", "10.9.0.1@7"], "--memory names port 7, which no --port has");
    with(&["--memory", "10.9.0.1@1", "--memory", "10.9.0.1@1"], "--memory names the server 10.9.0.1 twice");
    let kept = ["--p4runtime", "127.0.0.1:0", "--state-dir", &directory.path("state")];
    with(&[&["--memory", "10.9.0.1@1"], &kept[..]].concat(), "--memory requires a run without --state-dir");
    with(&["--socket", &directory.path("s1.sock")], "--socket requires --store FILE or --memory ADDRESS@PORT");
    let capture = ["memory", "serve", "--port", ":out.pcap", "--address", "10.9.0.1", "--memory", "1MiB"];
    refused(&capture, 2, "memory serve requires a live port");
    refused(&["run", &path, "--port", "1=in.pcap:", "--memory", "10.9.0.1@1"], 2, "--memory requires a live port");
    let serve =
        |memory: &'static str| ["memory", "serve", "--port", "none0", "--address", "10.9.0.1", "--memory", memory];
    refused(&serve("64"), 2, "write a number and its unit, `64MiB`, `1GiB`");
    refused(&serve("64MiB"), 3, "none0");
    let mut ternary = PROGRAM.replace("hdr.request.key : exact", "hdr.request.key : ternary");
    ternary = ternary.replace("key = {", "key = { hdr.request.kind : exact;");
    let ternary = directory.write("ternary.p4", ternary);
    refused(&["check", &ternary], 1, "an @elastic table cannot match a ternary element such as `hdr.request.key`");
    refused(&["check", &ternary], 1, "move it to a local table that is applied before");
    let checked = run(&mut triplane(&["check", &path])).ok().stdout;
    let sizes = "5,000 entries in 7,464 cells of 24 bytes (key 2, record 3); a READ has 8 cells, 192 bytes";
    assert!(checked.contains(sizes), "{checked}");
    assert!(!run(&mut triplane(&["check", &plain])).ok().stdout.contains("elastic"));
    let prefixes = directory.write("prefixes.p4", prefixes(""));
    let checked = run(&mut triplane(&["check", &prefixes])).ok().stdout;
    let reads = "cells of 24 bytes (key 3, record 3); a READ has 8 cells, 192 bytes; a lookup has one READ for each prefix \
                 length in use, at most 17; a copy";
    assert!(checked.contains(reads), "{checked}");
}

/// Returns the program with keys that are prefixes.
fn prefixes(lengths: &str) -> String {
    let program = PROGRAM.replace("hdr.request.key : exact", "hdr.request.key : lpm");
    program.replace("cache = \"0\"", &format!("cache = \"0\"{lengths}"))
}

#[test]
fn labs_report_memory_servers_that_they_cannot_use() {
    let directory = Directory::new();
    directory.write("values.p4", PROGRAM);
    directory.write("plain.p4", PROGRAM.replace("@elastic[cache = \"0\"] ", ""));
    let scenario = directory.write("scenario.toml", "duration = \"1ms\"\n");
    let lab = |program: &str, memory: &str, more: &str| {
        let text = format!(
            "[defaults]\nprogram = \"{program}.p4\"\n[hosts.client]\nip = \"10.0.1.1/24\"\n[hosts.m1]\n\
             ip = \"10.0.9.1/24\"\nmemory = \"{memory}\"\n[switches.s1]\n[[links]]\nends = [\"client\", \"s1:1\"]\n\
             [[links]]\nends = [\"m1\", \"s1:2\"]\n{more}"
        );
        directory.write("lab.toml", text)
    };
    let simulated = |path: &str| run(&mut triplane(&["lab", "sim", path, "--scenario", &scenario]));
    let refused = |done: crate::support::Done, part: &str| {
        assert_eq!(done.code, Some(1), "{done:?}");
        assert!(done.stderr.contains(part), "{done:?} lacks {part:?}");
    };
    let small = simulated(&lab("values", "64KiB", ""));
    refused(small, "write memory = \"176KiB\" or more");
    let many: String = (2..=65).fold(String::new(), |text, number| {
        let host = format!("[hosts.m{number}]\nip = \"10.0.{}.2/24\"\nmemory = \"1MiB\"\n", number + 20);
        text + &host + &format!("[[links]]\nends = [\"m{number}\", \"s1:{}\"]\n", number + 1)
    });
    refused(simulated(&lab("values", "1MiB", &many)), "the switch has 65 memory servers; there can be 64");
    let stores = "[stores.a]\n[[links]]\nends = [\"a\", \"s1:3\"]\n";
    refused(simulated(&lab("values", "1MiB", stores)), "a lab cannot have stores and memory servers together yet");
    // The last key is that of the link of `m1`.
    refused(
        simulated(&lab("values", "1MiB", "mtu = 351\n")),
        "the link of a memory server needs an MTU of at least 352 bytes",
    );
    assert!(simulated(&lab("values", "1MiB", "mtu = 352\n")).ok().stdout.contains("m1  lends"));
    let path = lab("values", "1MiB", "");
    assert!(simulated(&path).ok().stdout.contains("m1  lends 179,304 bytes"));
    // A change of the only memory server, and one that comes to nothing.
    let change =
        |what: &str| format!("duration = \"1ms\"\n[[writes]]\nat = \"0ms\"\nswitch = \"s1\"\n{what} = \"m1\"\n");
    directory.write("scenario.toml", change("add"));
    refused(simulated(&path), "all memory servers of this switch join, so it has none at the start");
    directory.write("scenario.toml", change("remove"));
    let last = simulated(&path).ok();
    assert!(last.stderr.contains("`s1` rejected a write: 10.0.9.1 is the only memory server"), "{last:?}");
    let unused = simulated(&lab("plain", "1MiB", ""));
    refused(unused, "the program of this switch has no @elastic table, so it uses no memory server");
    directory.write("scenario.toml", "duration = \"1ms\"\n");
    let idle = simulated(&lab("plain", "1MiB", "")).ok();
    assert!(idle.stderr.contains("`m1` lends memory that nobody uses"), "{idle:?}");
    // 40 prefixes of 128 cells each.
    directory.write("prefixes.p4", prefixes(", lengths = \"8, 16\""));
    let entry = |number: u32| {
        format!(
            "{{\"table\": \"I.values\", \"match\": {{\"hdr.request.key\": [{}, 9]}}, \"action_name\": \"I.answer\", \
             \"action_params\": {{\"value\": 1}}}}",
            number << 7
        )
    };
    let entries: Vec<String> = (0..40).map(entry).collect();
    directory.write("many.json", format!("{{\"table_entries\": [{}]}}", entries.join(",\n")));
    let many = lab("prefixes", "1MiB", "");
    let text = std::fs::read_to_string(&many).expect("it was written");
    directory.write("lab.toml", text.replace("[defaults]\n", "[defaults]\nentries = \"many.json\"\n"));
    refused(simulated(&many), "the prefixes of table I.values count as 5120 entries, and its size is 5000");
}

/// A client, a switch, and two memory servers at its ports 2 and 3.
struct Network {
    switch: Namespace,
    client: Namespace,
    servers: [Namespace; 2],
}

impl Network {
    fn new() -> Result<Network, NamespaceError> {
        let name = |name| {
            let namespace = Namespace::new(name)?;
            namespace.disable_ipv6()?;
            Ok::<_, NamespaceError>(namespace)
        };
        let network = Network { switch: name("switch")?, client: name("client")?, servers: [name("m1")?, name("m2")?] };
        network.switch.set_up("lo")?;
        let others = [&network.client, &network.servers[0], &network.servers[1]];
        for (number, other) in others.into_iter().enumerate() {
            let end = format!("p{}", number + 1);
            veth_with_queues(other, "eth0", &network.switch, &end, 1)?;
            other.set_up("eth0")?;
            network.switch.set_up(&end)?;
            assert!(other.wait_for_link("eth0", TEST_TIMEOUT)? && network.switch.wait_for_link(&end, TEST_TIMEOUT)?);
        }
        Ok(network)
    }

    fn start_server(&self, number: usize) -> Running {
        let address = format!("10.9.0.{}", number + 1);
        let words = ["memory", "serve", "--port", "eth0", "--address", &address, "--memory", "1MiB"];
        let mut command = self.servers[number].command(triplane(&[]).get_program()).expect("a command in a namespace");
        let mut server = Running::start(command.args(words));
        server.wait_for("press Ctrl-C to stop");
        server
    }

    fn control(&self, words: &[&str]) -> crate::support::Done {
        let mut command = self.switch.command(triplane(&[]).get_program()).expect("a command in a namespace");
        run(command.args(words))
    }

    /// Sets the pipeline of the switch once more, and returns the message of the refusal.
    fn set_pipeline(&self) -> String {
        let work = async {
            let mut client = connect().await;
            let _primary = become_primary(client.clone()).await;
            let request = v1::GetForwardingPipelineConfigRequest { device_id: 1, response_type: 0 };
            let config = client.get_forwarding_pipeline_config(request).await.expect("it is told").into_inner().config;
            let action = v1::set_forwarding_pipeline_config_request::Action::VerifyAndCommit.into();
            let (device_id, election_id) = (1, ELECTION);
            let request =
                v1::SetForwardingPipelineConfigRequest { device_id, election_id, action, config, ..Default::default() };
            client.set_forwarding_pipeline_config(request).await.expect_err("it is refused").message().to_owned()
        };
        let run =
            || tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(work);
        self.switch.enter(run).expect("to enter a namespace")
    }

    /// Asks for the values of keys, each until there is an answer, and returns these.
    fn ask(&self, keys: std::ops::Range<u16>) -> Vec<u16> {
        let ask = move || {
            let mut port = AfPacketPort::open("eth0").expect("the interface is there");
            keys.map(|key| value(&mut port, key)).collect()
        };
        self.client.enter(ask).expect("to enter a namespace")
    }
}

/// Asks for the value of a key. Requests that wait while no server is connected are dropped, so it asks again.
fn value(port: &mut AfPacketPort, key: u16) -> u16 {
    const CLIENT: [u8; 6] = [2, 0, 0, 0, 0, 1];
    let frame = [&[2, 0, 0, 0, 0, 2][..], &CLIENT, &[0x88, 0xb6], &key.to_be_bytes(), &[0; 44]].concat();
    let deadline = Instant::now() + TEST_TIMEOUT;
    for turn in 0u64.. {
        if turn.is_multiple_of(1000) {
            port.send(&frame).expect("the interface is up");
            port.flush().expect("the interface is up");
        }
        let mut received = Vec::new();
        port.receive(&mut received, 32).expect("the interface is up");
        let is_answer = |data: &[u8]| data.starts_with(&CLIENT) && data[12..16] == frame[12..16];
        if let Some(answer) = received.iter().find(|answer| is_answer(&answer.data)) {
            return u16::from_be_bytes([answer.data[16], answer.data[17]]);
        }
        assert!(Instant::now() < deadline, "no answer for key {key}");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    unreachable!("the loop has no end")
}

#[test]
fn entries_are_looked_up_in_the_memory_of_servers_that_die_and_return() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let network = match Network::new() {
        Err(error @ NamespaceError::Refused { .. }) => return testing::skip(&error.to_string()),
        network => network.expect("a network"),
    };
    let directory = Directory::new();
    let path = directory.write("values.p4", PROGRAM);
    let entry = |key: u16| {
        format!(
            "{{\"table\": \"I.values\", \"match\": {{\"hdr.request.key\": {key}}}, \"action_name\": \"I.answer\", \
             \"action_params\": {{\"value\": {}}}}}",
            key + 1000
        )
    };
    let entries: Vec<String> = (0..100).map(entry).collect();
    let entries = directory.write("entries.json", format!("{{\"table_entries\": [{}]}}", entries.join(",\n")));
    let first = network.start_server(0);
    let mut second = network.start_server(1);
    let mut command = network.switch.command(triplane(&[]).get_program()).expect("a command in a namespace");
    command.args(["run", &path, "--entries", &entries, "--port", "1=p1", "--port", "2=p2", "--port", "3=p3"]);
    command.args(["--memory", "10.9.0.1@2", "--memory", "10.9.0.2@3", "--p4runtime", "127.0.0.1:9559"]);
    let mut switch = Running::start(command.args(["--metrics", "127.0.0.1:0"]));
    let metrics = metrics_address(&mut switch);

    let expected = |keys: std::ops::Range<u16>| keys.map(|key| key + 1000).collect::<Vec<u16>>();
    assert_eq!(network.ask(0..100), expected(0..100));
    assert_eq!(network.ask(200..203), [0xffff; 3], "keys without entries");
    // A controller writes an entry, and reads it.
    let ctl = |words: &[&str]| network.control(&[&["ctl"][..], words].concat()).ok().stdout;
    ctl(&["insert", "I.values", "hdr.request.key=200 -> answer(value=7)"]);
    assert_eq!(network.ask(200..201), [7]);
    assert!(ctl(&["entries", "I.values"]).contains("200"));
    let refusal = network.set_pipeline();
    assert!(refusal.contains("is not replaced while it runs"), "{refusal}");
    assert_eq!(network.ask(200..201), [7]);
    assert_unprivileged(second.id());
    // The first server dies, then it returns with empty memory, and the second one dies.
    first.signal("KILL");
    drop(first.wait());
    assert_eq!(network.ask(0..100), expected(0..100));
    switch.wait_for("memory server 10.9.0.1 does not answer; lookups go to the others");
    let first = network.start_server(0);
    switch.wait_for("memory server 10.9.0.1 answers");
    // Its copies are complete as soon as it answers alone.
    second.signal("KILL");
    drop(second.wait());
    assert_eq!(network.ask(0..100), expected(0..100), "no false miss");
    second = network.start_server(1);
    assert_eq!(network.ask(200..201), [7]);

    let samples = network.switch.enter(|| samples(&metrics)).expect("to enter a namespace");
    let sample = |name: &str| *samples.get(name).unwrap_or_else(|| panic!("{name} is missing in {samples:?}"));
    assert_eq!(sample("triplane_elastic_entries{table=\"I.values\"}"), 101.0);
    assert_eq!(sample("triplane_elastic_server_connections{server=\"10.9.0.1\"}"), 1.0);
    assert_eq!(sample("triplane_elastic_server_state{server=\"10.9.0.1\"}"), 1.0);
    assert_eq!(sample("triplane_elastic_server_missing_bytes{server=\"10.9.0.1\"}"), 0.0);
    assert!(sample("triplane_elastic_server_bytes{server=\"10.9.0.1\"}") >= 179_304.0, "{samples:?}");
    assert!(sample("triplane_elastic_server_reads_total{server=\"10.9.0.1\"}") >= 100.0, "{samples:?}");
    assert!(sample("triplane_elastic_reads_total{table=\"I.values\"}") >= 300.0, "{samples:?}");
    assert!(sample("triplane_elastic_server_timeouts_total{server=\"10.9.0.1\"}") >= 1.0, "{samples:?}");

    switch.signal("INT");
    let done = switch.wait().ok();
    assert!(done.stdout.contains("I.values: 101 entries"), "{done:?}");
    first.signal("INT");
    let served = first.wait().ok().stdout;
    let reads: u64 = served.split(' ').next().and_then(|reads| reads.replace(',', "").parse().ok()).expect("a number");
    assert!(reads >= 100, "{served}");
    drop(second);
}

#[test]
fn servers_join_and_leave_a_running_switch() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let network = match Network::new() {
        Err(error @ NamespaceError::Refused { .. }) => return testing::skip(&error.to_string()),
        network => network.expect("a network"),
    };
    let directory = Directory::new();
    let (path, socket) = (directory.write("values.p4", PROGRAM), directory.path("s1.sock"));
    let first = network.start_server(0);
    let mut command = network.switch.command(triplane(&[]).get_program()).expect("a command in a namespace");
    command.args(["run", &path, "--port", "1=p1", "--port", "2=p2", "--port", "3=p3", "--memory", "10.9.0.1@2"]);
    let mut switch = Running::start(command.args(["--p4runtime", "127.0.0.1:9559", "--socket", &socket]));
    switch.wait_for("press Ctrl-C to stop");
    let insert = |key: u16| {
        let entry = format!("hdr.request.key={key} -> answer(value={})", key + 1000);
        network.control(&["ctl", "insert", "I.values", &entry]).ok();
    };
    (0..10).for_each(insert);
    let expected = |keys: std::ops::Range<u16>| keys.map(|key| key + 1000).collect::<Vec<u16>>();
    assert_eq!(network.ask(0..10), expected(0..10));
    let memory = |words: &[&str]| network.control(&[&["memory"][..], words, &["--socket", &socket]].concat());
    let refused = |words: &[&str], part: &str| {
        let done = memory(words);
        assert!(done.code == Some(1) && done.stderr.contains(part), "{done:?} lacks {part:?}");
    };
    refused(&["remove", "10.9.0.1"], "10.9.0.1 is the only memory server: add another one first");
    refused(&["remove", "10.9.0.2"], "10.9.0.2 is not a memory server of this switch");
    refused(&["add", "10.9.0.1@2"], "10.9.0.1 is a memory server of this switch already");
    refused(&["add", "10.9.0.2@9"], "the switch has no port 9");
    let none = network.control(&["memory", "list", "--socket", &directory.path("none.sock")]);
    assert!(none.code == Some(3) && none.stderr.contains("no switch listens on"), "{none:?}");
    // The second server joins, and takes over from the first one.
    let second = network.start_server(1);
    let listed = memory(&["add", "10.9.0.2@3", "--json"]).ok().json();
    let states = |listed: &serde_json::Value| -> Vec<(String, String, u64)> {
        let servers = listed["servers"].as_array().expect("a list");
        let text = |server: &serde_json::Value, name: &str| server[name].as_str().expect("a text").to_owned();
        let entries = |server: &serde_json::Value| server["entries"].as_u64().expect("a number");
        servers.iter().map(|it| (text(it, "address"), text(it, "state"), entries(it))).collect()
    };
    let serving = |address: &str, entries| (address.to_owned(), "serving".to_owned(), entries);
    assert_eq!(states(&listed), [serving("10.9.0.1", 10), serving("10.9.0.2", 10)], "{listed:#}");
    switch.wait_for("memory server 10.9.0.2 has joined");
    insert(10);
    let text = memory(&["remove", "10.9.0.1"]).ok().stdout;
    assert!(text.contains("10.9.0.2     3  serving       11") && !text.contains("10.9.0.1 "), "{text}");
    switch.wait_for("memory server 10.9.0.1 has left");
    first.signal("KILL");
    drop(first.wait());
    assert_eq!(network.ask(0..12), [expected(0..11), vec![0xffff]].concat());
    let listed = memory(&["list", "--json"]).ok().json();
    assert_eq!((states(&listed), &listed["is_changing"]), (vec![serving("10.9.0.2", 11)], &json!(false)));
    assert!(listed["servers"][0]["reads"].as_u64() >= Some(12), "{listed:#}");
    switch.signal("INT");
    switch.wait().ok();
    drop(second);
}

#[test]
fn a_controller_writes_prefixes_and_the_longest_one_answers() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let network = match Network::new() {
        Err(error @ NamespaceError::Refused { .. }) => return testing::skip(&error.to_string()),
        network => network.expect("a network"),
    };
    let directory = Directory::new();
    let path = directory.write("prefixes.p4", prefixes(", lengths = \"8, 16\""));
    let checked = run(&mut triplane(&["check", &path, "--json"])).ok().json();
    let table = &checked["elastic"][0];
    assert_eq!((&table["max_reads"], &table["prefix_lengths"]), (&json!(2), &json!([8, 16])), "{checked:#}");
    let server = network.start_server(0);
    let mut command = network.switch.command(triplane(&[]).get_program()).expect("a command in a namespace");
    command.args(["run", &path, "--port", "1=p1", "--port", "2=p2", "--memory", "10.9.0.1@2"]);
    let mut switch = Running::start(command.args(["--p4runtime", "127.0.0.1:9559"]));
    switch.wait_for("press Ctrl-C to stop");
    let ctl = |verb: &str, entry: &str| network.control(&["ctl", verb, "I.values", entry]);
    ctl("insert", "hdr.request.key=0x0100/8 -> answer(value=1)").ok();
    assert_eq!(network.ask(0x1ff..0x201), [1, 0xffff]);
    // Two cells of 16 bits.
    ctl("insert", "hdr.request.key=0x0102/15 -> answer(value=2)").ok();
    ctl("insert", "hdr.request.key=0x0102/16 -> answer(value=3)").ok();
    assert_eq!(network.ask(0x101..0x105), [1, 3, 2, 1]);
    ctl("modify", "hdr.request.key=0x0102/15 -> answer(value=4)").ok();
    ctl("delete", "hdr.request.key=0x0102/16").ok();
    assert_eq!(network.ask(0x101..0x105), [1, 4, 4, 1]);
    let entries = network.control(&["ctl", "entries", "I.values"]).ok().stdout;
    assert!(entries.contains("/15") && !entries.contains("/16"), "{entries}");
    ctl("delete", "hdr.request.key=0x0100/8").ok();
    assert_eq!(network.ask(0x101..0x105), [0xffff, 4, 4, 0xffff]);
    // A prefix of 8 bits takes one cell, and one of 9 bits 128 of 16 bits.
    let fill = |address: u32| ctl("insert", &format!("hdr.request.key={address:#x}/9 -> answer(value=5)"));
    (0..39).for_each(|number| drop(fill(number << 7 | 0x8000).ok()));
    let refused = fill(0x7000);
    assert!(refused.stderr.contains("takes 128 of the table's 5000 entries, but fewer are free"), "{refused:?}");
    assert_eq!(network.ask(0x8000..0x8001), [5]);
    switch.signal("INT");
    let done = switch.wait().ok();
    assert!(done.stdout.contains("I.values: 40 entries"), "{done:?}");
    drop(server);
}
