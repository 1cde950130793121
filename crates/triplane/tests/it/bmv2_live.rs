//! `simple_switch_grpc` on real interfaces, with the command line of the P4 tutorials' scripts: entries by P4Runtime,
//! captures, the lines for which scripts wait, and the end by a signal.
//!
//! The test needs root; without it, it skips and says so.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use crate::support::service::eventually;
use crate::support::{Directory, Running, TEST_TIMEOUT, run, triplane};
use p4runtime_client::{Client, ServerTarget};
use p4runtime_proto::v1;
use p4runtime_proto::v1::p4_runtime_client::P4RuntimeClient;
use ports::namespace::{Namespace, NamespaceError, veth};
use testing::lock::LIVE_TRAFFIC;
use tonic::transport::Channel;
use v1::set_forwarding_pipeline_config_request::Action;

/// Answers ARP requests and pings by sending them back with both addresses of each kind exchanged.
const REFLECT: &str = "#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_t { bit<96> front; bit<32> src; bit<32> dst; }
header icmp_t { bit<8> type; bit<8> code; bit<16> checksum; }
struct headers { ethernet_t eth; ipv4_t ip; icmp_t icmp; }
struct meta {}
parser P(packet_in p, out headers hdr, inout meta m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.eth); transition select(hdr.eth.type) { 0x800: ip; default: accept; } }
    state ip { p.extract(hdr.ip); p.extract(hdr.icmp); transition accept; }
}
control I(inout headers hdr, inout meta m, inout standard_metadata_t sm) {
    action reflect() {
        bit<48> mac = hdr.eth.dst;
        hdr.eth.dst = hdr.eth.src;
        hdr.eth.src = mac;
        bit<32> address = hdr.ip.dst;
        hdr.ip.dst = hdr.ip.src;
        hdr.ip.src = address;
        // The checksum of the reply: the type changes from 8 to 0, its high byte.
        bit<17> sum = (bit<17>) hdr.icmp.checksum + 0x800;
        hdr.icmp.checksum = sum[15:0] + (bit<16>) sum[16:16];
        hdr.icmp.type = 0;
        sm.egress_spec = sm.ingress_port;
    }
    action drop() { mark_to_drop(sm); }
    table echo {
        key = { hdr.icmp.type: exact; }
        actions = { reflect; drop; }
        default_action = drop();
    }
    apply { if (hdr.icmp.isValid()) { echo.apply(); } else { drop(); } }
}
control E(inout headers hdr, inout meta m, inout standard_metadata_t sm) { apply {} }
control V(inout headers hdr, inout meta m) { apply {} }
control D(packet_out p, in headers hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
";

/// The address that answers.
const TARGET: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// The port on which the switch listens.
const SERVER: &str = "127.0.0.1:50051";

/// A host on port 0 of a switch.
struct Network {
    switch: Namespace,
    host: Namespace,
}

impl Network {
    fn new() -> Result<Network, NamespaceError> {
        let network = Network { switch: Namespace::new("switch")?, host: Namespace::new("host")? };
        veth(&network.host, "eth0", &network.switch, "s1-eth1")?;
        for (namespace, interface) in [(&network.host, "eth0"), (&network.switch, "s1-eth1")] {
            namespace.disable_ipv6()?;
            namespace.set_up(interface)?;
        }
        network.switch.set_up("lo")?;
        network.host.add_address("eth0", IpAddr::from([10, 0, 0, 1]), 24)?;
        network.host.add_neighbour("eth0", TARGET.into(), [2, 0, 0, 0, 0, 2])?;
        assert!(network.host.wait_for_link("eth0", TEST_TIMEOUT)?);
        Ok(network)
    }

    fn start(&self, arguments: &[&str]) -> Running {
        let mut command = self.switch.command(triplane(&[]).get_program()).expect("a command in a namespace");
        Running::start(command.arg("simple_switch_grpc").args(arguments))
    }

    /// Returns the number of pings that are answered.
    fn pings(&self, count: u16, timeout: Duration) -> usize {
        let answered = |number: u16| {
            let result = self.host.ping(TARGET, number, timeout).expect("the host sends");
            matches!(result, ports::namespace::PingResult::Reply { .. })
        };
        (1..=count).filter(|number| answered(*number)).count()
    }

    /// Sets the pipeline as the primary of a device, and inserts the entry that reflects echo requests.
    fn control(&self, device_id: u64, config: v1::ForwardingPipelineConfig) {
        let info = config.p4info.clone().expect("a P4Info");
        let id = |preamble: &Option<p4runtime_proto::config::Preamble>| preamble.as_ref().expect("a preamble").id;
        let action = info.actions.iter().find(|it| it.preamble.as_ref().is_some_and(|it| it.name == "I.reflect"));
        let entry = v1::TableEntry {
            table_id: id(&info.tables[0].preamble),
            r#match: vec![v1::FieldMatch {
                field_id: 1,
                field_match_type: Some(v1::field_match::FieldMatchType::Exact(v1::field_match::Exact {
                    value: vec![8],
                })),
            }],
            action: Some(v1::TableAction {
                r#type: Some(v1::table_action::Type::Action(v1::Action {
                    action_id: id(&action.expect("the action").preamble),
                    params: Vec::new(),
                })),
            }),
            ..Default::default()
        };
        let work = async {
            let target = ServerTarget::new(SERVER, None).expect("an address");
            let client = Client::connect(&target, device_id).await.expect("the switch listens");
            let (_stream, election) = client.become_primary(None).await.expect("there is no other controller");
            let channel = Channel::from_static("http://127.0.0.1:50051").connect().await.expect("it listens");
            let mut stub = P4RuntimeClient::new(channel);
            let election_id = Some(v1::Uint128 { high: (election >> 64) as u64, low: election as u64 });
            let request = v1::SetForwardingPipelineConfigRequest {
                device_id,
                election_id,
                action: Action::VerifyAndCommit.into(),
                config: Some(config),
                ..Default::default()
            };
            stub.set_forwarding_pipeline_config(request).await.expect("the program is accepted");
            let update = v1::Update {
                r#type: v1::update::Type::Insert.into(),
                entity: Some(v1::Entity { entity: Some(v1::entity::Entity::TableEntry(entry)) }),
            };
            let request = v1::WriteRequest { device_id, election_id, updates: vec![update], ..Default::default() };
            stub.write(request).await.expect("the entry is accepted");
        };
        let run = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work);
        self.switch.enter(run).expect("to enter a namespace");
    }
}

/// Wraps a device config as controllers for BMv2 do (`p4.tmp.P4DeviceConfig`).
fn wrapped(data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x08, 0x01, 0x1a];
    let mut length = data.len();
    while length >= 0x80 {
        bytes.push(length as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    [bytes, data.to_vec()].concat()
}

fn frames(path: &str) -> usize {
    let mut reader = wire::pcap::Reader::new(std::fs::File::open(path).expect(path)).expect("a capture");
    let mut count = 0;
    while let Ok(Some(_)) = reader.read() {
        count += 1;
    }
    count
}

#[test]
fn a_switch_started_as_the_tutorials_start_bmv2_is_programmed_and_ends() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let network = match Network::new() {
        Err(error @ NamespaceError::Refused { .. }) => return testing::skip(&error.to_string()),
        network => network.expect("a network"),
    };
    let directory = Directory::new();
    let (source, json) = (directory.write("reflect.p4", REFLECT), directory.path("reflect.json"));
    run(&mut triplane(&["p4c-bm2-ss", "-o", &json, &source])).ok();
    let compiled = compiler::ProgramFile::parse(&std::fs::read(&json).unwrap()).expect("a program");
    let config = |p4_device_config| v1::ForwardingPipelineConfig {
        p4info: Some(compiled.program.p4info.clone()),
        p4_device_config,
        cookie: None,
    };

    // As `p4runtime_switch.py` does: --pcap with its value apart, target options behind `--`.
    let pcaps = directory.path("pcaps");
    std::fs::create_dir(&pcaps).unwrap();
    let log = directory.path("switch");
    let mut switch = network.start(&[
        "-i",
        "0@s1-eth1",
        "--pcap",
        &pcaps,
        "--nanolog",
        "ipc:///tmp/bm-0-log.ipc",
        "--device-id",
        "0",
        &json,
        "--log-file",
        &log,
        "--thrift-port",
        "9090",
        "--",
        "--grpc-server-addr",
        "0.0.0.0:50051",
        "--cpu-port",
        "255",
    ]);
    switch.wait_for("Adding interface s1-eth1 as port 0");
    switch.wait_for("Server listening on 0.0.0.0:50051");
    assert_eq!(network.pings(2, Duration::from_millis(200)), 0, "no entry answers");
    let text = std::fs::read(&json).unwrap();
    network.control(0, config(wrapped(&text)));
    assert_eq!(network.pings(5, TEST_TIMEOUT), 5);
    // The files are complete while the switch runs, soon after a frame has left.
    assert_eq!(frames(&format!("{pcaps}/s1-eth1_in.pcap")), 7);
    let sent = || frames(&format!("{pcaps}/s1-eth1_out.pcap"));
    eventually("the frames that were sent are in their file", || sent() == 5);
    switch.signal("TERM");
    let done = switch.wait().ok();
    let note = "ignored, without meaning here: --thrift-port, --nanolog; there is no Thrift server";
    assert!(done.stderr.contains(note), "{done:?}");
    let log = std::fs::read_to_string(format!("{log}.txt")).expect("the log");
    assert!(log.contains("P4Runtime on 0.0.0.0:50051"), "{log}");

    // Without a program or a CPU port, with the JSON as it is, and with another device ID.
    let mut switch = network.start(&["-i0@s1-eth1", "--device-id=3", "--no-p4", "--", "--grpc-server-addr", SERVER]);
    switch.wait_for("Server listening on");
    network.control(3, config(text));
    assert_eq!(network.pings(3, TEST_TIMEOUT), 3);
    switch.signal("INT");
    switch.wait().ok();
    // Without interfaces: controllers come, packets do not.
    let mut switch = network.start(&["--no-p4", "--", "--grpc-server-addr", SERVER]);
    switch.wait_for("Server listening on");
    network.control(0, config(std::fs::read(&json).unwrap()));
    switch.signal("TERM");
    switch.wait().ok();
}
