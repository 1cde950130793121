//! Lists the programs of the survey, with entries and traffic.

/// A program with entries and traffic.
pub struct Case {
    pub name: &'static str,
    /// The program's file in the repository.
    pub program: &'static str,
    /// A file of entries, or entries in JSON; empty for none.
    pub entries: &'static str,
    /// Frames in the language of `triplane bench --traffic`, or `feed` with the name of a workload of `itch_feed`.
    pub traffic: &'static str,
}

const fn case(name: &'static str, program: &'static str, entries: &'static str, traffic: &'static str) -> Case {
    Case { name, program, entries, traffic }
}

const BASIC: &str = r#"{"table_entries": [
    {"table": "MainIngress.routes", "match": {"hdr.ipv4.dst": "10.0.0.0/16"},
     "action_name": "MainIngress.forward", "action_params": {"mac": "02:00:00:00:00:02", "port": 2}}]}"#;
const TUNNEL: &str = r#"{"table_entries": [
    {"table": "MainIngress.routes", "match": {"hdr.ipv4.dst": "10.0.0.0/16"},
     "action_name": "MainIngress.enter", "action_params": {"id": 7}},
    {"table": "MainIngress.tunnels", "match": {"hdr.tunnel.id": 7},
     "action_name": "MainIngress.pass", "action_params": {"port": 2}},
    {"table": "MainIngress.tunnels", "match": {"hdr.tunnel.id": 8},
     "action_name": "MainIngress.leave", "action_params": {"mac": "02:00:00:00:00:02", "port": 2}}]}"#;
const QOS: &str = r#"{"table_entries": [
    {"table": "MainIngress.routes", "match": {"hdr.ipv4.dst": "10.0.0.0/16"},
     "action_name": "MainIngress.forward", "action_params": {"port": 2}},
    {"table": "MainIngress.classes", "match": {"hdr.ipv4.protocol": [17, 255], "hdr.udp.dst": [80, 90]}, "priority": 1,
     "action_name": "MainIngress.class", "action_params": {"dscp": 46, "priority": 5}}]}"#;
pub const GROUP: &str = r#"{"multicast_group_entries": [{"multicast_group_id": 1, "replicas": [
    {"egress_port": 1, "instance": 1}, {"egress_port": 2, "instance": 1}, {"egress_port": 3, "instance": 1},
    {"egress_port": 4, "instance": 1}]}]}"#;
const KNOWN: &str = r#"{"table_entries": [{"table": "MainIngress.stations", "match": {"hdr.ethernet.dst": 2},
    "action_name": "MainIngress.forward", "action_params": {"port": 2}}]}"#;
pub const SESSION: &str = r#"{"clone_session_entries": [
    {"clone_session_id": 1, "replicas": [{"egress_port": 5, "instance": 1}]}]}"#;
const ONE_PORT: &str = "udp,flows=1000,dst=10.0.0.0/16";

pub const CASES: &[Case] = &[
    case("wire", "examples/wire/wire.p4", "", ONE_PORT),
    case("wire, 1400 bytes", "examples/wire/wire.p4", "", "udp,flows=1000,size=1400"),
    case("fixed port, one header", "crates/v1model_runtime/benches/survey/programs/fixed_port.p4", "", ONE_PORT),
    case(
        "router, forwards",
        "examples/router/router.p4",
        "examples/router/entries.json",
        "udp,flows=1000,dst=10.0.2.0/24",
    ),
    case(
        "router, drops",
        "examples/router/router.p4",
        "examples/router/entries.json",
        "udp,flows=1000,dst=10.9.0.0/16",
    ),
    case(
        "router, two ports and drops",
        "examples/router/router.p4",
        "examples/router/entries.json",
        "udp,flows=1000,dst=10.0.0.0-10.0.3.255,ports=1-2",
    ),
    case(
        "router, 1400 bytes",
        "examples/router/router.p4",
        "examples/router/entries.json",
        "udp,flows=1000,dst=10.0.2.0/24,size=1400",
    ),
    case(
        "firewall, forwards",
        "examples/firewall/firewall.p4",
        "examples/firewall/s1.json",
        "udp,flows=1000,dst=10.0.3.1,ports=1-2",
    ),
    case(
        "firewall, drops",
        "examples/firewall/firewall.p4",
        "examples/firewall/s1.json",
        "udp,flows=1000,dst=10.0.1.1,src=10.9.0.0/16,ports=3",
    ),
    case(
        "load balancer",
        "examples/load-balancer/balancer.p4",
        "examples/load-balancer/s1.json",
        "tcp,flows=1000,dst=10.0.0.100",
    ),
    case("ecn", "examples/ecn/ecn.p4", "examples/ecn/s1.json", "udp,flows=1000,dst=10.0.3.0/24"),
    case(
        "link monitor, data",
        "examples/link-monitor/monitor.p4",
        "examples/link-monitor/s1.json",
        "udp,flows=1000,dst=10.0.2.0/24",
    ),
    case(
        "router pod",
        "examples/router-pod/pod.p4",
        "examples/router-pod/leaf1.json",
        "udp,flows=1000,dst=10.2.0.0/16",
    ),
    case(
        "tunnel, enters",
        "examples/tunnel/tunnel.p4",
        "examples/tunnel/edge1.json",
        "udp,flows=1000,dst=192.168.2.0/24",
    ),
    case(
        "tunnel, passes",
        "examples/tunnel/tunnel.p4",
        "examples/tunnel/core.json",
        "udp,flows=1000,dst=203.0.113.0/24",
    ),
    case("market data, other traffic", "examples/market-data/switch.p4", "examples/market-data/switch.json", ONE_PORT),
    case(
        "market data, one message",
        "examples/market-data/switch.p4",
        "examples/market-data/switch.json",
        "feed sample",
    ),
    case("layer 2 switch, no stations", "crates/jit/benches/programs/l2.p4", "", ONE_PORT),
    case("basic, forwards", "crates/v1model_runtime/benches/survey/programs/basic.p4", BASIC, ONE_PORT),
    case(
        "basic, drops",
        "crates/v1model_runtime/benches/survey/programs/basic.p4",
        BASIC,
        "udp,flows=1000,dst=10.9.0.0/16",
    ),
    case(
        "tunnel with counters, enters",
        "crates/v1model_runtime/benches/survey/programs/tunnel_counters.p4",
        TUNNEL,
        ONE_PORT,
    ),
    case(
        "tunnel with counters, leaves",
        "crates/v1model_runtime/benches/survey/programs/tunnel_counters.p4",
        TUNNEL,
        "frame=02000000000202000000000112120800000845000028000000004011000001020304\
         0a0000010000000000000000000000000000000000000000000000000000",
    ),
    case(
        "mri",
        "crates/v1model_runtime/benches/survey/programs/mri.p4",
        BASIC,
        "frame=0200000000020200000000010800450000320000000040fd000001020304\
         0a0000010002000000010000000000000002000000000000000000000000",
    ),
    case(
        "source routing",
        "crates/v1model_runtime/benches/survey/programs/source_route.p4",
        "",
        "frame=020000000002020000000001123400020003800445000028000000004011000001020304\
         0a000001000000000000000000000000000000000000",
    ),
    case(
        "calculator",
        "crates/v1model_runtime/benches/survey/programs/calc.p4",
        "",
        "frame=02000000000202000000000112345034012b0000000100000002000000000000000000000000000000000000000000000000",
    ),
    case("qos", "crates/v1model_runtime/benches/survey/programs/qos.p4", QOS, ONE_PORT),
    case("heavy hitters", "crates/v1model_runtime/benches/survey/programs/heavy_hitter.p4", "", ONE_PORT),
    case("policer", "crates/v1model_runtime/benches/survey/programs/meter.p4", "", ONE_PORT),
    case(
        "egress writes priority, port, time",
        "crates/v1model_runtime/benches/survey/programs/remark.p4",
        "",
        ONE_PORT,
    ),
    case("truncate", "crates/v1model_runtime/benches/survey/programs/snap.p4", "", ONE_PORT),
    case("digest", "crates/v1model_runtime/benches/survey/programs/learn.p4", "", ONE_PORT),
    case("packet-in", "crates/v1model_runtime/benches/survey/programs/packet_in.p4", "", ONE_PORT),
    case(
        "stations, forwards",
        "crates/v1model_runtime/benches/survey/programs/multicast.p4",
        KNOWN,
        "udp,flows=1000,dmac=00:00:00:00:00:02",
    ),
    case("multicast to four ports", "crates/v1model_runtime/benches/survey/programs/multicast.p4", GROUP, ONE_PORT),
    case("clone from ingress", "crates/v1model_runtime/benches/survey/programs/clone.p4", SESSION, ONE_PORT),
    case("clone from egress", "crates/v1model_runtime/benches/survey/programs/clone_egress.p4", SESSION, ONE_PORT),
    case("recirculate", "crates/v1model_runtime/benches/survey/programs/recirculate.p4", "", ONE_PORT),
    case("resubmit", "crates/v1model_runtime/benches/survey/programs/resubmit.p4", "", ONE_PORT),
];
