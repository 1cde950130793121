//! A change of program under traffic, with two workers: no packet is lost, reordered or skipped by both programs, and
//! counters and registers keep their values.
//!
//! The test needs root; without it, it skips and says so.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::support::controller::{ELECTION, Primary, become_primary, connect};
use crate::support::flows::{self, FLOWS};
use crate::support::switched::SwitchedHosts;
use crate::support::{Directory, Running, TEST_TIMEOUT, triplane};
use p4runtime_proto::config::{P4Info, Preamble};
use p4runtime_proto::v1;
use p4runtime_proto::v1::p4_runtime_client::P4RuntimeClient;
use testing::lock::LIVE_TRAFFIC;
use tonic::transport::Channel;
use v1::entity::Entity;
use v1::set_forwarding_pipeline_config_request::Action;
use v1::update::Type;

/// Each datagram gets the program's mark and, from an entry, the mark of its flow. A counter counts the datagrams and a
/// register numbers them. Checksums are not tested here: UDP is sent without one.
const PROGRAM: &str = "#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> dst; bit<48> src; bit<16> kind; }
header ipv4_t { bit<64> a; bit<8> ttl; bit<8> protocol; bit<16> sum; bit<64> addresses; }
header udp_t { bit<48> a; bit<16> sum; }
header mark_t { bit<16> flow; bit<32> number; bit<8> program; bit<8> entry; bit<32> seen; }
struct headers { ethernet_t ethernet; ipv4_t ipv4; udp_t udp; mark_t mark; }
struct meta {}
parser P(packet_in p, out headers hdr, inout meta m, inout standard_metadata_t sm) {
  state start { p.extract(hdr.ethernet); transition select(hdr.ethernet.kind) { 0x800: ipv4; default: accept; } }
  state ipv4 { p.extract(hdr.ipv4); transition select(hdr.ipv4.protocol) { 17: udp; default: accept; } }
  state udp { p.extract(hdr.udp); p.extract(hdr.mark); transition accept; }
}
control I(inout headers hdr, inout meta m, inout standard_metadata_t sm) {
  register<bit<32>>(16) seen;
  counter(16, CounterType.packets) counted;
  action mark(bit<8> entry) { hdr.mark.entry = entry; }
  table flows { key = { hdr.mark.flow : exact; } actions = { mark; NoAction; } size = 16; }
  apply {
    if (!hdr.mark.isValid()) { mark_to_drop(sm); return; }
    bit<32> before;
    flows.apply();
    seen.read(before, (bit<32>)hdr.mark.flow);
    seen.write((bit<32>)hdr.mark.flow, before + 1);
    counted.count((bit<32>)hdr.mark.flow);
    hdr.mark.seen = before;
    hdr.mark.program = PROGRAM;
    hdr.udp.sum = 0;
    sm.egress_spec = 2;
  }
}
control E(inout headers hdr, inout meta m, inout standard_metadata_t sm) { apply {} }
control V(inout headers hdr, inout meta m) { apply {} }
control D(packet_out p, in headers hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
";

/// Number of program changes.
const SWAPS: u8 = 6;
/// Minimum number of datagrams that arrive between two changes.
const BETWEEN: u64 = 400;
const LENGTH: usize = 12;

/// Returns the program with this number as its mark.
fn program(number: u8) -> String {
    PROGRAM.replace("= PROGRAM", &format!("= {number}"))
}

/// Counts of the datagrams that arrived.
struct Arrived {
    /// Datagrams of each flow.
    counts: [u32; FLOWS],
    /// Datagrams marked by each program.
    by_program: [u64; SWAPS as usize + 1],
}

/// Sends datagrams of many flows from h1 to h2 until `is_over`. Each datagram is marked by one of the programs, and
/// within a flow never by an older program than the datagram before.
fn send_through(network: &SwitchedHosts, is_over: &AtomicBool, so_far: &AtomicU64) -> Arrived {
    let (mut by_program, mut latest) = ([0; SWAPS as usize + 1], [0u8; FLOWS]);
    let arrived = |flow: usize, datagram: &[u8]| {
        let (program, entry) = (datagram[6], datagram[7]);
        assert_eq!(datagram[8..], datagram[2..6], "the register of flow {flow} goes on");
        assert_eq!(usize::from(entry), 100 + flow, "the entry of flow {flow} is there");
        assert!(program >= latest[flow] && program <= SWAPS, "flow {flow} went from {} to {program}", latest[flow]);
        latest[flow] = program;
        by_program[usize::from(program)] += 1;
        so_far.fetch_add(1, Ordering::Release);
    };
    let (h1, h2) = ((&network.h1, [10, 0, 0, 1]), (&network.h2, [10, 0, 0, 2]));
    let counts = flows::send_through(h1, h2, LENGTH, |_| !is_over.load(Ordering::Acquire), arrived);
    Arrived { counts, by_program }
}

/// The switch's controller.
struct Controller {
    client: P4RuntimeClient<Channel>,
    info: P4Info,
    _primary: Primary,
}

impl Controller {
    async fn connect() -> Controller {
        let client = connect().await;
        let (primary, info) = become_primary(client.clone()).await;
        Controller { client, info, _primary: primary }
    }

    /// Inserts an entry for each flow.
    async fn write_entries(&mut self) {
        let id = |preamble: &Option<Preamble>| preamble.as_ref().expect("it has a name").id;
        let table_id = id(&self.info.tables[0].preamble);
        let is_mark = |action: &&p4runtime_proto::config::Action| action.params.len() == 1;
        let action_id = id(&self.info.actions.iter().find(is_mark).expect("it is in the program").preamble);
        let update = |flow: u8| {
            let exact = v1::field_match::Exact { value: vec![flow] };
            let matched = v1::field_match::FieldMatchType::Exact(exact);
            let params = vec![v1::action::Param { param_id: 1, value: vec![100 + flow] }];
            let action = v1::table_action::Type::Action(v1::Action { action_id, params });
            let entry = v1::TableEntry {
                table_id,
                r#match: vec![v1::FieldMatch { field_id: 1, field_match_type: Some(matched) }],
                action: Some(v1::TableAction { r#type: Some(action) }),
                ..Default::default()
            };
            let entity = Some(v1::Entity { entity: Some(Entity::TableEntry(entry)) });
            v1::Update { r#type: Type::Insert.into(), entity }
        };
        let updates = (0..FLOWS as u8).map(update).collect();
        let request = v1::WriteRequest { device_id: 1, election_id: ELECTION, updates, ..Default::default() };
        self.client.write(request).await.expect("entries can be written");
    }

    /// Installs another program and keeps the entries and the counts.
    async fn change_program(&mut self, number: u8) {
        let config = v1::ForwardingPipelineConfig {
            p4info: Some(self.info.clone()),
            p4_device_config: program(number).into_bytes(),
            cookie: None,
        };
        let request = v1::SetForwardingPipelineConfigRequest {
            device_id: 1,
            election_id: ELECTION,
            action: Action::ReconcileAndCommit.into(),
            config: Some(config),
            ..Default::default()
        };
        self.client.set_forwarding_pipeline_config(request).await.expect("the program is taken");
    }

    /// Returns the values of the counter and of the register, by flow.
    async fn totals(&mut self) -> (Vec<i64>, Vec<u32>) {
        let entities =
            [Entity::CounterEntry(v1::CounterEntry::default()), Entity::RegisterEntry(v1::RegisterEntry::default())];
        let entities = entities.map(|entity| v1::Entity { entity: Some(entity) }).into();
        let request = v1::ReadRequest { device_id: 1, entities, ..Default::default() };
        let mut answers = self.client.read(request).await.expect("everybody may read").into_inner();
        let (mut counts, mut seen) = (Vec::new(), Vec::new());
        while let Some(answer) = answers.message().await.expect("it is read to the end") {
            for entity in answer.entities {
                match entity.entity {
                    Some(Entity::CounterEntry(entry)) => counts.push(entry.data.unwrap_or_default().packet_count),
                    Some(Entity::RegisterEntry(v1::RegisterEntry { data: Some(data), .. })) => match data.data {
                        Some(v1::p4_data::Data::Bitstring(bytes)) => {
                            seen.push(bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)));
                        }
                        other => panic!("{other:?}"),
                    },
                    other => panic!("{other:?}"),
                }
            }
        }
        (counts, seen)
    }
}

/// Waits until a condition holds or the timeout expires.
async fn until(is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() && begin.elapsed() < TEST_TIMEOUT {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[test]
fn another_program_under_traffic_loses_nothing() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some(network) = SwitchedHosts::new() else { return };
    let directory = Directory::new();
    let path = directory.write("first.p4", program(0));
    let mut command = network.switch.command(triplane(&[]).get_program()).expect("a command in a namespace");
    command.args(["run", &path, "--port", "1=p1", "--port", "2=p2", "--workers", "2", "--p4runtime", "--json"]);
    let mut switch = Running::start(&mut command);
    switch.wait_for("press Ctrl-C to stop");
    switch.wait_for("machine code has taken over from the interpreter after");

    let (is_over, is_complete, so_far) = (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
    let (is_ready, ready) = std::sync::mpsc::channel();
    let control = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime can be made").block_on(async {
            let mut controller = Controller::connect().await;
            controller.write_entries().await;
            is_ready.send(()).expect("somebody waits");
            for number in 1..=SWAPS + 1 {
                let before = so_far.load(Ordering::Acquire);
                until(|| so_far.load(Ordering::Acquire) >= before + BETWEEN).await;
                if number <= SWAPS {
                    controller.change_program(number).await;
                }
            }
            is_over.store(true, Ordering::Release);
            until(|| is_complete.load(Ordering::Acquire)).await;
            controller.totals().await
        })
    };
    let (arrived, (counts, seen)) = std::thread::scope(|scope| {
        let control = scope.spawn(|| network.switch.enter(control).expect("to enter a namespace"));
        // A panic in that thread surfaces when it is joined.
        let _ = ready.recv_timeout(TEST_TIMEOUT);
        let arrived = send_through(&network, &is_over, &so_far);
        is_complete.store(true, Ordering::Release);
        (arrived, control.join().expect("the controller comes to its end"))
    });
    println!("datagrams by program: {:?}", arrived.by_program);
    assert!(arrived.by_program.iter().all(|count| *count > 0), "each program ran: {:?}", arrived.by_program);
    assert_eq!(counts, arrived.counts.map(i64::from), "counters go on");
    assert_eq!(seen, arrived.counts, "registers go on");
    // The interpreter runs each program until its machine code takes over, under traffic.
    switch.wait_for("machine code has taken over from the interpreter after");
    switch.signal("INT");
    let done = switch.wait().ok();
    let summary = done.json();
    let all: u64 = arrived.by_program.iter().sum();
    for (port, direction) in [(0, "rx"), (1, "tx")] {
        let port = &summary["ports"][port];
        assert_eq!(port[format!("{direction}_packets")].as_u64(), Some(all), "the drivers agree: {summary:#}");
    }
}
