//! A switch that starts without a program waits for a controller's, serves the device ID 0, keeps what it acknowledged
//! before, and counts packets across changes of the program.
//!
//! The test needs root; without it, it skips and says so.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddrV4, TcpStream};
use std::time::{Duration, Instant};

use crate::support::{Directory, Running, TEST_TIMEOUT, run, triplane};
use p4runtime_client::{Client, ServerTarget};
use p4runtime_proto::v1;
use p4runtime_proto::v1::p4_runtime_client::P4RuntimeClient;
use ports::namespace::{Namespace, NamespaceError, veth};
use testing::lock::LIVE_TRAFFIC;
use tonic::transport::Channel;
use v1::set_forwarding_pipeline_config_request::Action;

/// Sends every packet back.
const PROGRAM: &str = "#include <core.p4>
#include <v1model.p4>
struct headers {}
struct meta {}
parser P(packet_in p, out headers hdr, inout meta m, inout standard_metadata_t sm) { state start { transition accept; } }
control I(inout headers hdr, inout meta m, inout standard_metadata_t sm) { apply { sm.egress_spec = sm.ingress_port; } }
control E(inout headers hdr, inout meta m, inout standard_metadata_t sm) { apply {} }
control V(inout headers hdr, inout meta m) { apply {} }
control D(packet_out p, in headers hdr) { apply {} }
V1Switch(P(), V(), I(), E(), V(), D()) main;
";

/// The device ID.
const DEVICE: u64 = 0;
/// Address of the metrics, in the namespace of the switch.
const METRICS: &str = "127.0.0.1:9090";
/// Number of datagrams sent to each program.
const COUNT: u32 = 5;

/// A host on port 1 of a switch.
struct Network {
    switch: Namespace,
    host: Namespace,
}

impl Network {
    fn new() -> Result<Network, NamespaceError> {
        let network = Network { switch: Namespace::new("switch")?, host: Namespace::new("host")? };
        veth(&network.host, "eth0", &network.switch, "p1")?;
        for (namespace, interface) in [(&network.host, "eth0"), (&network.switch, "p1")] {
            namespace.disable_ipv6()?;
            namespace.set_up(interface)?;
        }
        network.switch.set_up("lo")?;
        network.host.add_address("eth0", IpAddr::from([10, 0, 0, 1]), 24)?;
        network.host.add_neighbour("eth0", IpAddr::from([10, 0, 0, 2]), [2, 0, 0, 0, 0, 2])?;
        assert!(network.host.wait_for_link("eth0", TEST_TIMEOUT)?);
        Ok(network)
    }

    /// Starts a switch without a program.
    fn start(&self, state: &str) -> Running {
        let mut command = self.switch.command(triplane(&[]).get_program()).expect("a command in a namespace");
        let options = ["run", "--port", "1=p1", "--p4runtime", "--device-id", "0", "--state-dir", state, "--json"];
        Running::start(command.args(options).args(["--metrics", METRICS]))
    }

    /// Sends datagrams to the switch.
    fn send(&self) {
        let to = SocketAddrV4::new([10, 0, 0, 2].into(), 7);
        self.host.send_datagrams(to, b"datagram", COUNT).expect("the host sends");
    }

    /// Waits until the switch has received this number of packets from the host.
    fn wait_for_packets(&self, count: u32) {
        let expected = format!("\ntriplane_port_rx_packets_total{{port=\"1\"}} {count}\n");
        let scrape = || {
            let mut peer = TcpStream::connect(METRICS).expect("the switch serves metrics");
            peer.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").expect("it takes a request");
            let mut answer = String::new();
            peer.read_to_string(&mut answer).expect("it answers");
            answer
        };
        let deadline = Instant::now() + TEST_TIMEOUT;
        loop {
            let answer = self.switch.enter(scrape).expect("to enter a namespace");
            if answer.contains(&expected) {
                return;
            }
            assert!(Instant::now() < deadline, "{count} packets expected: {answer}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sets the pipeline as the primary of the device, with `config` if the action takes one.
    fn set(&self, action: Action, config: Option<v1::ForwardingPipelineConfig>) -> Result<(), tonic::Status> {
        let set = async {
            let target = ServerTarget::new("127.0.0.1:9559", None).expect("an address");
            let client = Client::connect(&target, DEVICE).await.expect("the switch listens");
            let (_stream, election_id) = client.become_primary(None).await.expect("there is no other controller");
            let channel = Channel::from_static("http://127.0.0.1:9559").connect().await.expect("the switch listens");
            let request = v1::SetForwardingPipelineConfigRequest {
                device_id: DEVICE,
                election_id: Some(v1::Uint128 { high: (election_id >> 64) as u64, low: election_id as u64 }),
                action: action.into(),
                config,
                ..Default::default()
            };
            P4RuntimeClient::new(channel).set_forwarding_pipeline_config(request).await.map(drop)
        };
        let work = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime can be made").block_on(set)
        };
        self.switch.enter(work).expect("to enter a namespace")
    }
}

/// Returns the config of the program.
fn config() -> v1::ForwardingPipelineConfig {
    let source = compiler::Source::new("program.p4", PROGRAM);
    let compiled = compiler::expect_program(&source, &v1model::V1Model);
    v1::ForwardingPipelineConfig {
        p4info: Some(compiled.p4info),
        p4_device_config: PROGRAM.as_bytes().to_vec(),
        cookie: None,
    }
}

#[test]
fn a_switch_without_a_program_waits_for_a_pipeline() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let network = match Network::new() {
        Err(error @ NamespaceError::Refused { .. }) => return testing::skip(&error.to_string()),
        network => network.expect("a network"),
    };
    let directory = Directory::new();
    let state = directory.path("state");

    // A pipeline that is saved but not committed is there after a restart.
    let mut switch = network.start(&state);
    switch.wait_for("waiting for a controller to set a pipeline");
    assert_eq!(network.set(Action::Commit, None).expect_err("nothing is saved").code(), tonic::Code::NotFound);
    network.set(Action::VerifyAndSave, Some(config())).expect("it is saved");
    switch.signal("KILL");
    drop(switch);

    let mut switch = network.start(&state);
    switch.wait_for("a saved pipeline that awaits COMMIT");
    switch.wait_for("waiting for a controller to set a pipeline");
    network.send();
    network.wait_for_packets(COUNT);
    network.set(Action::Commit, None).expect("it is still saved");
    network.send();
    network.wait_for_packets(2 * COUNT);
    network.set(Action::ReconcileAndCommit, Some(config())).expect("it is set again");
    network.send();
    network.wait_for_packets(3 * COUNT);
    switch.signal("INT");
    let summary = switch.wait().ok().json();
    let counts = &summary["counters"];
    let count = |name: &str| counts[name].as_u64();
    assert_eq!(count("port.1.rx.packets"), Some(u64::from(3 * COUNT)), "{counts:#}");
    assert_eq!(count("drop.ingress.program"), Some(u64::from(COUNT)), "{counts:#}");
    assert_eq!(count("port.1.tx.packets"), Some(u64::from(2 * COUNT)), "{counts:#}");

    // The committed pipeline runs at the next start.
    let mut switch = network.start(&state);
    switch.wait_for("device 0");
    switch.wait_for("running the program in");
    switch.signal("INT");
    switch.wait().ok();
}

#[test]
fn a_program_is_required_where_no_controller_can_set_it() {
    for (arguments, said) in [
        (&["run", "--port", "1=tap:none"][..], "with --p4runtime a controller can set it"),
        (
            &["run", "--port", "1=tap:none", "--p4runtime", "127.0.0.1:0", "--entries", "e.json"],
            "--entries requires a program",
        ),
    ] {
        let done = run(&mut triplane(arguments));
        assert!(done.code == Some(2) && done.stderr.contains(said), "{done:?}");
    }
}
