use diagnostics::{Diagnostics, SourceMap};

use crate::generate::{NetworkKind, generate};
use crate::topology::{
    Endpoint, Entries, Hold, IntRole, KernelUse, Rate, Shape, Size, SwitchProgram, TinyAccess, Topology,
};

/// Reads a text; returns the topology and the rendered diagnostics.
fn read(text: &str) -> (Option<Topology>, String) {
    let mut map = SourceMap::new();
    let file = map.add("lab.toml", text);
    let mut diagnostics = Diagnostics::new();
    let topology = super::read(file, text, 510, &mut diagnostics);
    (topology, diagnostics.render(&map, false))
}

const GOOD: &str = r#"
[defaults]
program = "router.p4"
link = { rate = "10Mbps", delay = "1ms" }

[hosts.h1]
ip = "10.0.1.1/24"
gateway = "10.0.1.254"
neighbours = { "10.0.1.254" = "02:00:00:00:01:fe" }
[hosts.h2]
ip = "10.0.2.2/24"
mac = "08:00:00:00:02:02"

[switches.s1]
entries = "s1.json"
cpu_port = 510

[[links]]
ends = ["h1", "s1:1"]
[[links]]
ends = ["s1:2", "h2"]
rate = "unlimited"
loss = 0.5
"#;

#[test]
fn a_file_is_read() {
    let (topology, findings) = read(GOOD);
    let topology = topology.unwrap_or_else(|| panic!("{findings}"));
    assert_eq!(topology.hosts.len(), 2);
    assert_eq!(topology.hosts[0].mac.to_string(), "02:00:00:00:00:01");
    assert_eq!(topology.hosts[0].neighbours[0].1.to_string(), "02:00:00:00:01:fe");
    let switch = &topology.switches[0];
    assert!(matches!(&switch.program, SwitchProgram::File(name, _) if name == "router.p4"));
    assert!(matches!(&switch.entries, Entries::File(name, _) if name == "s1.json"));
    assert_eq!(switch.cpu_port, Some(510));
    assert_eq!(topology.links[0].shape.rate, Some(Rate::from_bps(10_000_000)));
    assert_eq!((topology.links[1].shape.rate, topology.links[1].shape.loss), (None, 0.5));
    assert_eq!(topology.links[1].shape.delay, topology.links[0].shape.delay);
    assert_eq!(topology.end_name(topology.links[1].ends[0]), "s1:2");
}

#[test]
fn stores_are_in_the_order_of_their_names() {
    let stores = "[stores.b]\n[stores.a]\ndurable = true\n[operator]\nchain = 1\n";
    let links = "[[links]]\nends = [\"a\", \"s1:3\"]\n[[links]]\nends = [\"b\", \"s1:4\"]\n";
    let text = format!("{stores}{GOOD}{links}[[links]]\nends = [\"operator\", \"s1:5\"]\n");
    let (topology, findings) = read(&text);
    let topology = topology.unwrap_or_else(|| panic!("{findings}"));
    let stores = topology.hosts[topology.stores()].iter().map(|host| (host.name.as_str(), host.is_durable));
    assert_eq!(stores.collect::<Vec<_>>(), [("a", true), ("b", false)]);
    let with = |setting: &str| text.replace("[defaults]", &format!("[defaults]\n{setting}"));
    let sharded = read(&with("shards = 2")).0.expect("it is right");
    assert_eq!((topology.shards(), sharded.shards()), (1, 2));
    assert_eq!(read(&crate::emit(&sharded)).0.expect("what is written can be read").shards, Some(2));
    let (_, findings) = read(&with("shards = 9"));
    assert!(findings.contains("`shards` must be") && findings.contains("1 to 8"), "{findings}");
    let (_, findings) = read(&text.replace("durable = true", "durable = 1"));
    assert!(findings.contains("`durable` must be true or false"), "{findings}");
    let (again, findings) = read(&crate::emit(&topology));
    let again = again.unwrap_or_else(|| panic!("{findings}"));
    assert_eq!(again.hosts.iter().map(|host| host.is_durable).collect::<Vec<_>>(), [false, false, true, false, false]);
}

#[test]
fn what_is_written_is_read_again() {
    let edge = Shape { rate: Some(Rate::from_bps(1_000_000_000)), ..Shape::default() };
    let kinds = [
        NetworkKind::Line { switches: 3, hosts: 2 },
        NetworkKind::Ring { switches: 4, hosts: 1 },
        NetworkKind::Star { hosts: 5 },
        NetworkKind::LeafSpine { leaves: 3, spines: 2, hosts: 2 },
        NetworkKind::FatTree { k: 4 },
        NetworkKind::Dumbbell { hosts: 2 },
        NetworkKind::Random { switches: 6, extra: 3, hosts: 1, seed: 4 },
    ];
    for kind in kinds {
        let made = generate(kind, edge, Shape { rate: None, loss: 0.25, ..edge }, 510).expect("it can be made");
        let text = crate::emit(&made);
        let (again, findings) = read(&text);
        let again = again.unwrap_or_else(|| panic!("{kind:?}: {findings}"));
        assert_eq!(crate::emit(&again), text);
        let ends =
            |topology: &Topology| -> Vec<_> { topology.links.iter().map(|link| (link.ends, link.shape)).collect() };
        assert_eq!(ends(&again), ends(&made), "{kind:?}");
    }
}

#[test]
fn switches_say_where_their_controllers_reach_them() {
    let text = "[defaults]\np4runtime = true\n[switches.s1]\n[switches.s2]\np4runtime = false\n[switches.s3]\n\
                p4runtime = \"127.0.0.1:9559\"\ndevice_id = 7\n";
    let (topology, findings) = read(text);
    let topology = topology.unwrap_or_else(|| panic!("{findings}"));
    let told = |topology: &Topology| -> Vec<_> {
        topology.switches.iter().map(|switch| (switch.p4runtime, switch.device_id)).collect()
    };
    let at = Endpoint::At("127.0.0.1:9559".parse().expect("an address"));
    assert_eq!(told(&topology), [(Some(Endpoint::Allotted), None), (None, None), (Some(at), Some(7))]);
    let again = read(&crate::emit(&topology)).0.expect("what is written can be read");
    assert_eq!(told(&again), told(&topology));
    let (_, findings) = read("[defaults]\np4runtime = \"127.0.0.1:9559\"\n[switches.s1]\np4runtime = 50051\n");
    for expected in
        ["several switches cannot share an address", "`p4runtime` must be true, false, or an address and port"]
    {
        assert!(findings.contains(expected), "{expected} is not in\n{findings}");
    }
}

#[test]
fn switches_use_the_kernel_as_the_file_says() {
    let text = "[defaults]\nkernel = \"auto\"\n[switches.s1]\n[switches.s2]\nkernel = \"off\"\n[switches.s3]\n\
                kernel = \"require\"\n";
    let uses = |text: &str| {
        let (topology, findings) = read(text);
        let topology = topology.unwrap_or_else(|| panic!("{findings}"));
        let uses: Vec<KernelUse> = topology.switches.iter().map(|switch| switch.kernel).collect();
        (uses, crate::emit(&topology))
    };
    let (said, emitted) = uses(text);
    assert_eq!(said, [KernelUse::Auto, KernelUse::Off, KernelUse::Require]);
    assert_eq!(uses(&emitted).0, said, "{emitted}");
    assert_eq!(uses("[switches.s1]\n").0, [KernelUse::Off]);
    let (_, findings) = read("[switches.s1]\nkernel = true\n[switches.s2]\nkernel = \"on\"\n");
    for expected in ["`kernel` must be a string", "`kernel` must be \"auto\", \"require\" or \"off\", not \"on\""] {
        assert!(findings.contains(expected), "{expected} is not in\n{findings}");
    }
}

#[test]
fn every_mistake_is_reported_in_one_run() {
    let (topology, findings) = read(
        r#"
[hosts.h1]
ip = "10.0.1.1"
ipp = "10.0.1.1/24"
[hosts.h2]
ip = "10.0.1.2/24"
mac = "08:00:00:00:00"
[hosts.h3]
ip = "10.0.1.2/24"
[hosts."1x"]

[switches.s1]
program = "builtin:switch"
entries = "shortest-paths"

[[links]]
ends = ["h1", "s1:1"]
rate = "10"
[[links]]
ends = ["h2", "s1:1"]
loss = 2
[[links]]
ends = ["h3", "s2:1"]
[[links]]
ends = ["h3:1", "s1"]
[[links]]
delay = "1ms"
"#,
    );
    assert!(topology.is_none());
    for expected in [
        "`10.0.1.1` is not an address with a prefix length",
        "a host has no `ipp`",
        "did you mean `ip`?",
        "`08:00:00:00:00` is not an Ethernet address",
        "`h2` and `h3` both have the address 10.0.1.2",
        "the name `1x` does not begin with a letter",
        "there is no program `builtin:switch`",
        "shortest paths require the built-in router",
        "`10` is not a rate",
        "`loss` must be a probability",
        "port 1 of `s1` has two links",
        "there is no host or switch `s2`",
        "`h3` is a host and has no ports",
        "`s1` is a switch: specify a port",
        "a link must have two ends",
    ] {
        assert!(findings.contains(expected), "{expected} is not in\n{findings}");
    }
    assert!(findings.contains("lab.toml:3:"), "places are told\n{findings}");
    assert!(!findings.contains("has no link"), "the links of h3 have mistakes\n{findings}");
    let (topology, findings) = read(&format!("{GOOD}[hosts.h9]\nip = \"10.0.9.9/24\"\n"));
    assert!(topology.is_some() && findings.contains("the host `h9` has no link"), "{findings}");
}

#[test]
fn addresses_that_no_host_has_are_told() {
    for (address, what) in [
        ("0.0.0.0/0", "this network"),
        ("127.0.0.1/8", "a loopback address"),
        ("224.0.0.1/24", "a multicast address"),
        ("255.255.255.255/32", "reserved"),
        ("10.0.1.0/24", "its network address"),
        ("10.0.1.255/24", "its broadcast address"),
    ] {
        let (_, found) = read(&format!("[hosts.h1]\nip = \"{address}\"\n"));
        assert!(found.contains(what) && found.contains("lab.toml:1:"), "{address}\n{found}");
    }
    for address in ["10.0.1.0/22", "10.0.0.255/16", "10.0.1.0/31", "10.0.1.1/31", "10.0.1.255/32", "1.0.0.1/0"] {
        let (_, found) = read(&format!("[hosts.h1]\nip = \"{address}\"\n"));
        assert!(!found.contains("cannot have the address"), "{address}\n{found}");
    }
}

#[test]
fn the_tutorials_format_is_read() {
    let (topology, findings) = read(
        r#"{
        "hosts": {
            "h1": { "ip": "10.0.1.1/24", "mac": "08:00:00:00:01:11", "commands": [
                "route add default gw 10.0.1.10 dev eth0", "arp -i eth0 -s 10.0.1.10 08:00:00:00:01:00" ] },
            "h2": { "ip": "10.0.2.2/24", "mac": "08:00:00:00:02:22" } },
        "switches": { "s1": { "runtime_json": "s1-runtime.json", "program": "build/firewall.json" }, "s2": {} },
        "links": [ ["h1", "s1-p1"], ["s1-p2", "s2-p2", "5ms", 0.5], ["s2-p1", "h2", 3] ]
    }"#,
    );
    let topology = topology.unwrap_or_else(|| panic!("{findings}"));
    assert_eq!(topology.hosts[0].gateway, Some([10, 0, 1, 10].into()));
    assert_eq!(topology.hosts[0].neighbours, [([10, 0, 1, 10].into(), "08:00:00:00:01:00".parse().unwrap())]);
    assert!(matches!(&topology.switches[0].program, SwitchProgram::File(name, _) if name == "firewall.p4"));
    assert_eq!(topology.switches[1].program, SwitchProgram::Unsaid);
    assert_eq!(topology.links[1].shape.rate, Some(Rate::from_bps(500_000)));
    assert_eq!(topology.links[1].shape.delay.as_ns(), 5_000_000);
    assert_eq!(topology.links[2].shape.delay.as_ns(), 3_000_000);
}

#[test]
fn hostile_files_are_refused_without_harm() {
    for text in
        ["", "[", "[[links]]", "links = 3", "hosts = []", "{", "{}", "{\"links\": [[1,2]]}", "{\"hosts\": 7}", "\u{0}"]
    {
        let _ = read(text);
    }
    let deep = "x = ".to_owned() + &"[".repeat(100_000);
    assert!(read(&deep).0.is_none());
    let deep = "{\"links\": ".to_owned() + &"[".repeat(100_000);
    assert!(read(&deep).0.is_none());
}

#[test]
fn an_empty_topology_is_a_mistake_with_a_remedy() {
    for (text, remedy) in [
        ("", "`triplane lab new line` prints an example"),
        ("# nothing\n[defaults]\n", "`triplane lab new line` prints an example"),
        ("{}", "fill in `hosts`, `switches` and `links`"),
    ] {
        let (topology, findings) = read(text);
        assert!(topology.is_none(), "{text}");
        assert_eq!(findings.matches("error[").count(), 1, "{findings}");
        assert!(findings.contains("the topology has no hosts and no switches"), "{findings}");
        assert!(findings.contains(remedy), "{findings}");
    }
}

#[test]
fn a_host_lends_the_memory_that_the_file_says() {
    let with = |memory: &str| GOOD.replacen("[hosts.h2]", &format!("[hosts.h2]\nmemory = {memory}"), 1);
    let topology = read(&with("\"16MiB\"")).0.expect("it is good");
    assert_eq!(topology.hosts[1].memory.map(Size::bytes), Some(16 << 20));
    assert_eq!(read(&crate::emit(&topology)).0.expect("it is good").hosts[1].memory, topology.hosts[1].memory);
    assert_eq!((topology.traffic_hosts(), topology.memory_servers(0)), (vec![0], vec![(2, 1)]));
    for (memory, part) in
        [("\"16MB\"", "`16MB` is not a size"), ("\"65GiB\"", "the maximum is 64GiB"), ("16", "memory")]
    {
        let (_, findings) = read(&with(memory));
        assert!(findings.contains(part), "{findings}");
    }
    let (_, findings) = read(&with("\"1MiB\"").replacen("ip = \"10.0.2.2/24\"\n", "", 1));
    assert!(findings.contains("`h2` lends memory, so it needs an address"), "{findings}");
}

#[test]
fn tiny_packet_programs_may_do_what_the_file_says() {
    let with = |access: &str| GOOD.replacen("[defaults]", &format!("[defaults]\ntpp = {access}"), 1);
    assert_eq!(read(GOOD).0.expect("it is good").tpp, TinyAccess::Off);
    for (text, access) in TinyAccess::WORDS {
        let topology = read(&with(&format!("{text:?}"))).0.expect("it is good");
        assert_eq!(topology.tpp, access);
        assert_eq!(read(&crate::emit(&topology)).0.expect("it is good").tpp, access);
    }
    let (_, findings) = read(&with("\"all\""));
    assert!(
        findings.contains("`tpp` must be \"off\", \"read\", \"write\" or \"write-registers\", not \"all\""),
        "{findings}"
    );
}

#[test]
fn the_rate_of_reads_needs_a_memory_server() {
    let with_rate = GOOD.replacen("[defaults]", "[defaults]\nmemory_rate = \"8Gbps\"", 1);
    let (_, findings) = read(&with_rate);
    assert!(findings.contains("`memory_rate` has no effect without hosts with `memory`"), "{findings}");
    let server = "[hosts.m1]\nip = \"10.9.0.1/24\"\nmemory = \"1MiB\"\n";
    let topology = read(&format!("{with_rate}\n{server}")).0;
    let rate = |topology: &Topology| topology.memory_rate.map(Rate::bps);
    let topology = topology.expect("it is good");
    assert_eq!(rate(&topology), Some(8_000_000_000));
    assert_eq!(rate(&read(&crate::emit(&topology)).0.expect("it is good")), Some(8_000_000_000));
    let (_, findings) = read(&format!("{}\n{server}", with_rate.replace("8Gbps", "fast")));
    assert!(findings.contains("`fast` is not a rate"), "{findings}");
}

#[test]
fn executions_of_tiny_packet_programs_are_limited_as_the_file_says() {
    let with =
        |limit: &str| GOOD.replacen("[defaults]", &format!("[defaults]\ntpp = \"read\"\ntpp_limit = {limit}"), 1);
    assert_eq!(read(GOOD).0.expect("it is good").tpp_limit, None);
    let topology = read(&with("250")).0.expect("it is good");
    assert_eq!(topology.tpp_limit, Some(250));
    assert_eq!(read(&crate::emit(&topology)).0.expect("it is good").tpp_limit, Some(250));
    let (_, findings) = read(&with("0"));
    assert!(findings.contains("`tpp_limit` must be an integer from 1 to 4294967295"), "{findings}");
    let (_, findings) = read(&GOOD.replacen("[defaults]", "[defaults]\ntpp_limit = 250", 1));
    let message = "`tpp_limit` has no effect without tpp = \"read\", \"write\" or \"write-registers\"";
    assert!(findings.contains(message), "{findings}");
}

#[test]
fn hosts_have_the_rules_of_their_shims() {
    let with = |defaults: &str, host: &str| {
        let text = GOOD.replacen("[defaults]", &format!("[defaults]\ntpp = \"read\"\n{defaults}"), 1);
        text.replacen("[hosts.h2]", &format!("[hosts.h2]\n{host}"), 1)
    };
    let all = "shim = { insert = [\"a.tpp to 10.0.0.0/8 tcp\", \"b.tpp one-in 9\"], policy = \"policy\" }";
    let own = "shim = { insert = \"c.tpp\" }";
    let rules = |topology: &Topology, host: usize| -> Vec<String> {
        topology.hosts[host].shim.insert.iter().map(|rule| rule.text.clone()).collect()
    };
    let topology = read(&with(all, own)).0.expect("it is good");
    for topology in [read(&crate::emit(&topology)).0.expect("it is good"), topology] {
        assert_eq!(rules(&topology, 0), ["a.tpp to 10.0.0.0/8 tcp", "b.tpp one-in 9"]);
        assert_eq!(rules(&topology, 1), ["c.tpp"]);
        assert_eq!(topology.hosts[0].shim.insert[1].rule.one_in, 9);
        let policy = |host: usize| topology.hosts[host].shim.policy.as_ref().map(|(name, _)| name.as_str());
        assert_eq!((policy(0), policy(1)), (Some("policy"), None));
        assert_eq!(topology.shims(), [0, 1]);
    }
    // One host that inserts is enough for all to need a shim, but for those that must have none.
    assert_eq!(read(&with("", own)).0.expect("it is good").shims(), [0, 1]);
    assert_eq!(read(&with(all, "shim = false")).0.expect("it is good").shims(), [0]);
    assert_eq!(rules(&read(&with(all, "shim = true")).0.expect("it is good"), 1).len(), 2);
    assert!(read(&with("", "shim = {}")).0.expect("it is good").shims().is_empty());
    for (defaults, host, message) in [
        ("", "shim = { insert = 3 }", "`insert` must be a list of rules: [\"queues.tpp to 10.0.0.0/8 tcp\"]"),
        ("", "shim = { insert = [\"a.tpp\", 3] }", "`insert` must be a list of rules"),
        ("", "shim = { insert = [\"a.tpp dport 80\"] }", "`dport` is no condition: expected from, to, tcp"),
        ("", "shim = { collect = [] }", "`collect`"),
        ("", "shim = { policy = 3 }", "`policy` must be a string"),
        ("shim = false", "", "`shim = false` is not allowed below [defaults]: write it below [hosts.NAME]"),
    ] {
        let (_, findings) = read(&with(defaults, host));
        assert!(findings.contains(message), "{defaults} {host}: {findings}");
    }
    let (_, findings) = read(&with(all, own).replacen("tpp = \"read\"", "", 1));
    assert_eq!(findings.matches("`insert` has no effect without tpp = \"read\"").count(), 2, "{findings}");
}

#[test]
fn rules_that_send_programs_to_hosts_without_shim_are_warned_of() {
    let with = |rule: &str, switch: &str| {
        let text = GOOD.replacen(
            "[defaults]",
            &format!("[defaults]\ntpp = \"read\"\nshim = {{ insert = \"a.tpp {rule}\" }}"),
            1,
        );
        let text = text.replacen("[hosts.h2]", "[hosts.h2]\nshim = false", 1);
        text.replacen("[switches.s1]", &format!("[switches.s1]\n{switch}"), 1)
    };
    let message = "`h2` has no shim, and drops packets with the program of this rule";
    for (rule, switch, is_warned) in [
        ("", "", true),
        ("to 10.0.0.0/8", "", true),
        ("to 192.168.0.0/16", "", false),
        ("", "tpp_strip = [2]", false),
        ("", "tpp_strip = [1]", true),
    ] {
        let (topology, findings) = read(&with(rule, switch));
        assert!(topology.is_some(), "{findings}");
        assert_eq!(findings.contains(message), is_warned, "{rule} {switch}: {findings}");
    }
}

#[test]
fn ports_at_the_edge_and_hosts_without_a_shim_are_those_of_the_file() {
    let with = |host: &str, switch: &str| {
        let text = GOOD.replacen("[defaults]", "[defaults]\ntpp = \"read\"", 1);
        let text = text.replacen("[hosts.h2]", &format!("[hosts.h2]\n{host}"), 1);
        text.replacen("[switches.s1]", &format!("[switches.s1]\n{switch}"), 1)
    };
    let topology = read(&with("shim = false", "tpp_strip = [2, 1]\ntpp_refuse = [1]")).0.expect("it is good");
    for topology in [read(&crate::emit(&topology)).0.expect("it is good"), topology] {
        let edge = &topology.switches[0].edge;
        assert_eq!((&edge.strip, &edge.refuse), (&[1, 2].into(), &[1].into()));
        assert_eq!([0, 1].map(|host| topology.hosts[host].lacks_shim), [false, true]);
    }
    let plain = read(GOOD).0.expect("it is good");
    assert_eq!((&plain.switches[0].edge, plain.hosts[1].lacks_shim), (&Default::default(), false));
    assert!(!read(&with("shim = true", "")).0.expect("it is good").hosts[1].lacks_shim);
    for (host, switch, message) in [
        ("shim = 0", "", "`shim` must be true or false"),
        ("", "tpp_strip = 2", "`tpp_strip` must be a list of ports from 1 to 510"),
        ("", "tpp_refuse = [2, 0]", "`tpp_refuse` must be a list of ports from 1 to 510"),
        ("", "tpp_refuse = [\"h1\"]", "`tpp_refuse` must be a list of ports from 1 to 510"),
        ("", "tpp_strip = [2, 3]", "port 3 of `s1` has no link, so it is no edge of the network"),
    ] {
        let (_, findings) = read(&with(host, switch));
        assert!(findings.contains(message), "{host} {switch}: {findings}");
    }
    for key in ["tpp_strip", "tpp_refuse"] {
        let (_, findings) = read(&GOOD.replacen("[switches.s1]", &format!("[switches.s1]\n{key} = [1]"), 1));
        let remedy = "tpp = \"read\", \"write\" or \"write-registers\" below [defaults]";
        assert!(findings.contains(&format!("`{key}` has no effect without {remedy}")), "{findings}");
    }
}

#[test]
fn switches_have_the_role_in_int_that_the_file_says() {
    let with = |role: &str| GOOD.replacen("[defaults]", &format!("[defaults]\nint = {role}"), 1);
    assert_eq!(read(GOOD).0.expect("it is good").int, IntRole::Off);
    for (text, role) in IntRole::WORDS {
        let topology = read(&with(&format!("{text:?}"))).0.expect("it is good");
        assert_eq!((topology.int, read(&crate::emit(&topology)).0.expect("it is good").int), (role, role));
    }
    let (_, findings) = read(&with("\"source\""));
    assert!(findings.contains("`int` must be \"off\", \"transit\" or \"sink\", not \"source\""), "{findings}");
}

#[test]
fn outputs_are_held_where_the_file_says() {
    let with = |hold: &str| GOOD.replacen("[defaults]", &format!("[defaults]\nhold = {hold}"), 1);
    assert_eq!(read(GOOD).0.expect("it is good").hold, Hold::Local);
    let (topology, findings) = read(&with("\"piggyback\""));
    let topology = topology.unwrap_or_else(|| panic!("{findings}"));
    assert_eq!(topology.hold, Hold::Piggyback);
    assert_eq!(read(&crate::emit(&topology)).0.expect("it is good").hold, Hold::Piggyback);
    let (_, findings) = read(&with("\"both\""));
    assert!(findings.contains("`hold` must be \"local\" or \"piggyback\", not \"both\""), "{findings}");
}
