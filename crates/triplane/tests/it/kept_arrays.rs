//! Registers and counters of a switch with `--keep`: what a controller wrote survives a kill at any moment, and what
//! packets wrote survives an orderly end. Counters of entries survive with their entries.
//!
//! The test runs itself again inside a network namespace, where the switch and its controller have the loopback
//! interface to themselves. It needs root and skips without it.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::controller::{ELECTION, become_primary, connect};
use crate::support::network::Network;
use crate::support::{Directory, Running, run, triplane, unique};
use p4runtime_proto::config::P4Info;
use p4runtime_proto::v1;
use p4runtime_proto::v1::p4_runtime_client::P4RuntimeClient;
use ports::PortSpec;
use rng::SplitMix64;
use tonic::transport::Channel;
use v1::entity::Entity;
use v1::update::Type;

/// Counts the packets of each first byte in a register and in a counter.
const PROGRAM: &str = "#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> kind; }
struct headers { h_t h; }
struct meta {}
parser P(packet_in p, out headers hdr, inout meta m, inout standard_metadata_t sm) { state start { p.extract(hdr.h); transition accept; } }
control I(inout headers hdr, inout meta m, inout standard_metadata_t sm) {
  register<bit<24>>(100000) narrow;
  register<bit<80>>(600) wide;
  counter(600, CounterType.packets_and_bytes) kinds;
  direct_counter(CounterType.packets) hits;
  action hit() { hits.count(); }
  table t {
    key = { hdr.h.kind : exact; }
    actions = { hit; NoAction; }
    default_action = NoAction;
    counters = hits;
  }
  apply {
    t.apply();
    bit<80> seen;
    @atomic {
      wide.read(seen, (bit<32>) hdr.h.kind);
      wide.write((bit<32>) hdr.h.kind, seen + (1 << 70) + 1);
    }
    kinds.count((bit<32>) hdr.h.kind);
    sm.egress_spec = sm.ingress_port;
  }
}
control E(inout headers hdr, inout meta m, inout standard_metadata_t sm) { apply {} }
control V(inout headers hdr, inout meta m) { apply {} }
control D(packet_out p, in headers hdr) { apply { p.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
";

/// Number of times that the switch is killed.
const KILLS: u32 = 6;
/// Number of controller calls in flight at the same time.
const WRITERS: u32 = 3;
/// The first cell that no packet changes.
const FIRST: u64 = 256;
/// Number of packets of each kind.
const PACKETS: u64 = 40;
/// Number of kinds of packets.
const KINDS: u64 = 5;

/// Values of cells by array and index: the last acknowledged one, and one of a call that was not answered.
type Cells = BTreeMap<(u32, i64), (u64, Option<u64>)>;

#[test]
fn acknowledged_registers_and_counters_survive_a_kill() {
    if let Some(reason) = Network::obstacle(&[]) {
        return testing::skip(&reason);
    }
    let name = format!("triplane-{}-arrays", unique());
    let ip = |arguments: &[&str]| run(Command::new("ip").args(arguments));
    ip(&["netns", "add", &name]).ok();
    let this = std::env::current_exe().expect("a test is a program");
    let inside = ["kept_arrays::inside_a_namespace", "--exact", "--ignored", "--nocapture"];
    let done = run(Command::new("ip").args(["netns", "exec", &name]).arg(this).args(inside));
    ip(&["netns", "delete", &name]).ok();
    print!("{}", done.stdout);
    assert!(done.ok().stdout.contains("1 passed"), "the test inside ran");
}

#[test]
#[ignore = "the test above runs it, in a namespace"]
fn inside_a_namespace() {
    for arguments in ["link set lo up", "link add p1 type veth peer name q1", "link set p1 up", "link set q1 up"] {
        run(Command::new("ip").args(arguments.split(' '))).ok();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
    let directory = Directory::new();
    let program = directory.write("arrays.p4", PROGRAM);
    let state = directory.path("state");
    let mut rng = SplitMix64::new(7);
    let cells = Arc::new(Mutex::new(Cells::new()));
    for kill in 0..KILLS {
        let switch = start(&state, &program, if kill % 2 == 0 { "1" } else { "2" }, "registers,counters");
        let delay = Duration::from_millis(50 + rng.below(300));
        runtime.block_on(async {
            let client = connect().await;
            let (_primary, info) = become_primary(client.clone()).await;
            let ids = Ids::of(&info);
            check(client.clone(), &ids, &cells).await;
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let rng = SplitMix64::new((u64::from(kill) << 16) | u64::from(writer + 1));
                    tokio::spawn(write(client.clone(), ids, writer, rng, cells.clone()))
                })
                .collect();
            tokio::time::sleep(delay).await;
            switch.signal("KILL");
            for writer in writers {
                writer.await.expect("a writer ends when the switch is gone");
            }
        });
        println!("killed after {delay:?}: {} cells", cells.lock().unwrap().len());
    }
    assert!(cells.lock().unwrap().len() > 50, "there was something to lose");
    packets_are_kept_at_the_end(&runtime, &state, &program, &cells);
    counters_of_entries_are_kept_as_long_as_their_entries(&runtime, &directory.path("entries"), &program);
    pipelines_start_from_zero_unless_reconciled(&runtime, &state, &program);
    nothing_is_restored_without_the_option(&runtime, &directory.path("other"), &program);
}

/// Packets count, the switch ends with SIGINT, and the next one has their counts: with one worker, then with two.
fn packets_are_kept_at_the_end(runtime: &tokio::runtime::Runtime, state: &str, program: &str, cells: &Mutex<Cells>) {
    let mut expected = 0;
    for workers in ["1", "2", "1"] {
        let switch = start(state, program, workers, "counters,registers");
        let ids = runtime.block_on(async {
            let client = connect().await;
            let ids = Ids::of(&become_primary(client.clone()).await.1);
            check(client.clone(), &ids, cells).await;
            ids
        });
        let before = runtime.block_on(counts(ids));
        send();
        expected += PACKETS;
        // The switch has processed them when all are counted.
        let done = |counts: &[(u64, u64)]| {
            counts.iter().zip(&before).all(|(now, before)| now.0 == before.0 + PACKETS && now.1 == before.1 + PACKETS)
        };
        crate::support::service::eventually("all packets are counted", || done(&runtime.block_on(counts(ids))));
        switch.signal("INT");
        switch.wait().ok();
    }
    let switch = start(state, program, "2", "registers,counters");
    let ids = runtime.block_on(async { Ids::of(&become_primary(connect().await).await.1) });
    let kept = runtime.block_on(counts(ids));
    assert!(kept.iter().all(|(_, register)| *register == expected), "{expected}: {kept:?}");
    switch.signal("KILL");
}

/// The counters of entries survive an orderly end, those that a controller writes a kill, and none survives its entry.
fn counters_of_entries_are_kept_as_long_as_their_entries(
    runtime: &tokio::runtime::Runtime,
    state: &str,
    program: &str,
) {
    let all = |first: u64| {
        BTreeMap::from_iter((0..KINDS as u8).map(|kind| (kind, PACKETS + if kind == 0 { first } else { 0 })))
    };
    let switch = start(state, program, "1", "counters");
    runtime.block_on(async {
        let client = connect().await;
        let (_primary, info) = become_primary(client.clone()).await;
        let inserts = (0..KINDS as u8).map(|kind| update(Type::Insert, Entity::TableEntry(entry(&info, kind))));
        write_all(client, inserts.collect()).await;
    });
    send();
    let has = |expected: &BTreeMap<u8, u64>| runtime.block_on(entry_counts()) == *expected;
    crate::support::service::eventually("all packets are counted", || has(&all(0)));
    switch.signal("INT");
    switch.wait().ok();
    // Two workers; a controller sets a counter, and replaces an entry.
    let switch = start(state, program, "2", "counters");
    assert_eq!(runtime.block_on(entry_counts()), all(0));
    runtime.block_on(async {
        let client = connect().await;
        let (_primary, info) = become_primary(client.clone()).await;
        let key = |kind| v1::TableEntry { action: None, ..entry(&info, kind) };
        let data = Some(v1::CounterData { packet_count: PACKETS as i64 + 7, byte_count: 0 });
        let set = Entity::DirectCounterEntry(v1::DirectCounterEntry { table_entry: Some(key(0)), data });
        let updates = [
            (Type::Modify, set),
            (Type::Delete, Entity::TableEntry(key(1))),
            (Type::Insert, Entity::TableEntry(entry(&info, 1))),
            (Type::Delete, Entity::TableEntry(key(2))),
        ];
        write_all(client, updates.map(|(kind, entity)| update(kind, entity)).into()).await;
    });
    switch.signal("KILL");
    drop(switch);
    let switch = start(state, program, "1", "counters");
    let mut expected = all(7);
    expected.insert(1, 0);
    expected.remove(&2);
    assert_eq!(runtime.block_on(entry_counts()), expected);
    switch.signal("KILL");
}

/// A new pipeline has no values of the former one, also after a kill; a reconciled one has all.
fn pipelines_start_from_zero_unless_reconciled(runtime: &tokio::runtime::Runtime, state: &str, program: &str) {
    use v1::set_forwarding_pipeline_config_request::Action;
    for (action, is_kept) in [(Action::ReconcileAndCommit, true), (Action::VerifyAndCommit, false)] {
        let switch = start(state, program, "1", "registers,counters");
        let before = runtime.block_on(async {
            let mut client = connect().await;
            let (_primary, p4info) = become_primary(client.clone()).await;
            let ids = Ids::of(&p4info);
            let before = counts(ids).await;
            let config = v1::ForwardingPipelineConfig {
                p4info: Some(p4info),
                p4_device_config: PROGRAM.as_bytes().to_vec(),
                cookie: None,
            };
            let request = v1::SetForwardingPipelineConfigRequest {
                device_id: 1,
                election_id: ELECTION,
                action: action.into(),
                config: Some(config),
                ..Default::default()
            };
            client.set_forwarding_pipeline_config(request).await.expect("it is the same program");
            before
        });
        switch.signal("KILL");
        drop(switch);
        let switch = start(state, program, "1", "registers,counters");
        let ids = runtime.block_on(async { Ids::of(&become_primary(connect().await).await.1) });
        let after = runtime.block_on(counts(ids));
        if is_kept {
            assert!(before == after && before[0].1 > 0, "{before:?}, {after:?}");
        } else {
            assert!(after.iter().all(|counts| *counts == (0, 0)), "{after:?}");
        }
        switch.signal("KILL");
    }
}

/// Values stay in the directory while the option is left out, and those of the other kind with it.
fn nothing_is_restored_without_the_option(runtime: &tokio::runtime::Runtime, state: &str, program: &str) {
    let mut is_first = true;
    for (keep, has) in [("registers,counters", [false, false]), ("", [false, false]), ("counters", [true, false])] {
        let switch = start(state, program, "1", keep);
        let ids = runtime.block_on(async { Ids::of(&become_primary(connect().await).await.1) });
        let found = runtime.block_on(counts(ids));
        assert_eq!([found[1].0 > 0, found[1].1 > 0], has, "--keep {keep}: {found:?}");
        if is_first {
            send();
            let is_counted = || runtime.block_on(counts(ids)).iter().all(|counts| *counts == (PACKETS, PACKETS));
            crate::support::service::eventually("all packets are counted", is_counted);
            is_first = false;
        }
        switch.signal("INT");
        let done = switch.wait().ok();
        assert_eq!(done.stderr.contains("stay there and are not restored"), keep.is_empty(), "{done:?}");
    }
    let switch = start(state, program, "1", "registers");
    let ids = runtime.block_on(async { Ids::of(&become_primary(connect().await).await.1) });
    let found = runtime.block_on(counts(ids));
    assert!(found.iter().all(|counts| *counts == (0, PACKETS)), "the registers are still there: {found:?}");
    switch.signal("KILL");
}

fn start(state: &str, program: &str, workers: &str, keep: &str) -> Running {
    let mut arguments = vec!["run", program, "--interpret", "--port", "1=p1", "--workers", workers];
    arguments.extend(["--p4runtime", "--state-dir", state]);
    if !keep.is_empty() {
        arguments.extend(["--keep", keep, "--keep-interval", "0.05"]);
    }
    let mut switch = Running::start(&mut triplane(&arguments));
    switch.wait_for("press Ctrl-C to stop");
    switch
}

/// Sends packets of each kind to the switch.
fn send() {
    let spec = PortSpec::parse("1=q1", 510).expect("a port");
    let mut port = spec.open().expect("a socket");
    for number in 0..PACKETS * KINDS {
        let mut frame = vec![(number % KINDS) as u8; 60];
        frame[12..14].copy_from_slice(&[0x88, 0xb5]);
        port.send(&frame).expect("it is sent");
        port.flush().expect("it is sent");
    }
}

/// The ids of the arrays.
#[derive(Clone, Copy)]
struct Ids {
    narrow: u32,
    wide: u32,
    kinds: u32,
}

impl Ids {
    fn of(info: &P4Info) -> Ids {
        let register = |name: &str| {
            let all = info.registers.iter().filter_map(|register| register.preamble.as_ref());
            all.into_iter().find(|preamble| preamble.name == name).expect("it is in the program").id
        };
        let kinds = info.counters[0].preamble.as_ref().expect("it has a name").id;
        Ids { narrow: register("I.narrow"), wide: register("I.wide"), kinds }
    }
}

/// Returns the number as bytes in their shortest form.
fn shortest(value: u128) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let zeros = bytes.iter().take(15).take_while(|byte| **byte == 0).count();
    bytes[zeros..].to_vec()
}

/// A cell of the wide register has its value in both of its words.
fn wide_value(value: u64) -> u128 {
    u128::from(value & 0xff) << 72 | u128::from(value)
}

fn entity(ids: &Ids, array: u32, index: i64, value: Option<u64>) -> Entity {
    let at = Some(v1::Index { index });
    if array == ids.kinds {
        let data = value.map(|value| v1::CounterData { packet_count: value as i64, byte_count: 3 * value as i64 });
        return Entity::CounterEntry(v1::CounterEntry { counter_id: array, index: at, data });
    }
    let value = value.map(|value| if array == ids.wide { wide_value(value) } else { u128::from(value) });
    let data = value.map(|value| v1::P4Data { data: Some(v1::p4_data::Data::Bitstring(shortest(value))) });
    Entity::RegisterEntry(v1::RegisterEntry { register_id: array, index: at, data })
}

/// Writes to random cells of the writer's own until the switch is gone.
async fn write(
    mut client: P4RuntimeClient<Channel>,
    ids: Ids,
    writer: u32,
    mut rng: SplitMix64,
    cells: Arc<Mutex<Cells>>,
) {
    loop {
        let (array, size) = [(ids.narrow, 100_000), (ids.wide, 600), (ids.kinds, 600)][rng.below(3) as usize];
        // Packets change the first cells, those of the kernel included.
        let own = rng.below((size - FIRST) / u64::from(WRITERS));
        let index = (FIRST + own * u64::from(WRITERS) + u64::from(writer)) as i64;
        let value = 1 + rng.below(1 << 23);
        cells.lock().unwrap().entry((array, index)).or_default().1 = Some(value);
        let entity = Some(v1::Entity { entity: Some(entity(&ids, array, index, Some(value))) });
        let request = v1::WriteRequest {
            device_id: 1,
            election_id: ELECTION,
            updates: vec![v1::Update { r#type: Type::Modify.into(), entity }],
            ..Default::default()
        };
        match client.write(request).await {
            Ok(_) => drop(cells.lock().unwrap().insert((array, index), (value, None))),
            Err(status) => {
                let gone = [tonic::Code::Unavailable, tonic::Code::Unknown, tonic::Code::Cancelled];
                assert!(gone.contains(&status.code()) && status.details().is_empty(), "{status:?}");
                return;
            }
        }
    }
}

/// Reads entities.
async fn read(mut client: P4RuntimeClient<Channel>, entities: Vec<Entity>) -> Vec<Entity> {
    let entities = entities.into_iter().map(|entity| v1::Entity { entity: Some(entity) }).collect();
    let request = v1::ReadRequest { device_id: 1, entities, ..Default::default() };
    let mut answers = client.read(request).await.expect("everybody may read").into_inner();
    let mut found = Vec::new();
    while let Some(answer) = answers.message().await.expect("it is read to the end") {
        found.extend(answer.entities.into_iter().filter_map(|entity| entity.entity));
    }
    found
}

/// Checks the cells against the acknowledged values, and resolves the unknown ones.
async fn check(client: P4RuntimeClient<Channel>, ids: &Ids, cells: &Mutex<Cells>) {
    let requests = cells.lock().unwrap().keys().map(|(array, index)| entity(ids, *array, *index, None)).collect();
    let found = read(client, requests).await;
    let mut cells = cells.lock().unwrap();
    assert_eq!(found.len(), cells.len());
    for ((place, (known, unanswered)), found) in cells.iter_mut().zip(found) {
        let is = |value: u64| found == entity(ids, place.0, place.1, Some(value));
        match *unanswered {
            Some(value) if is(value) => *known = value,
            _ => assert!(is(*known), "{place:?}: {known} or {unanswered:?} is {found:?}"),
        }
        *unanswered = None;
    }
}

fn update(kind: Type, entity: Entity) -> v1::Update {
    v1::Update { r#type: kind.into(), entity: Some(v1::Entity { entity: Some(entity) }) }
}

/// Returns the entry of the table for a kind.
fn entry(info: &P4Info, kind: u8) -> v1::TableEntry {
    let table_id = info.tables[0].preamble.as_ref().expect("it has a name").id;
    let hit = info.actions.iter().filter_map(|action| action.preamble.as_ref()).find(|it| it.name == "I.hit");
    let action = v1::Action { action_id: hit.expect("it is in the program").id, params: Vec::new() };
    let exact = v1::field_match::FieldMatchType::Exact(v1::field_match::Exact { value: vec![kind] });
    v1::TableEntry {
        table_id,
        r#match: vec![v1::FieldMatch { field_id: 1, field_match_type: Some(exact) }],
        action: Some(v1::TableAction { r#type: Some(v1::table_action::Type::Action(action)) }),
        ..Default::default()
    }
}

/// Writes updates as the primary.
async fn write_all(mut client: P4RuntimeClient<Channel>, updates: Vec<v1::Update>) {
    let request = v1::WriteRequest { device_id: 1, election_id: ELECTION, updates, ..Default::default() };
    client.write(request).await.expect("the updates are right");
}

/// Returns the packets of each entry of the table, by kind.
async fn entry_counts() -> BTreeMap<u8, u64> {
    let all = v1::DirectCounterEntry { table_entry: Some(v1::TableEntry::default()), data: None };
    let found = read(connect().await, vec![Entity::DirectCounterEntry(all)]).await;
    let count = |entity| {
        let Entity::DirectCounterEntry(counter) = entity else { panic!("{entity:?}") };
        let entry = counter.table_entry.expect("it has a key");
        let Some(v1::field_match::FieldMatchType::Exact(exact)) = &entry.r#match[0].field_match_type else {
            panic!("{entry:?}")
        };
        (exact.value[0], counter.data.expect("it was read").packet_count as u64)
    };
    found.into_iter().map(count).collect()
}

/// Returns the packets of each kind: those of the counter, and those of the register, whose two words must agree.
async fn counts(ids: Ids) -> Vec<(u64, u64)> {
    let client = connect().await;
    let request = |array: u32| (0..KINDS as i64).map(move |index| entity(&ids, array, index, None)).collect();
    let counters = read(client.clone(), request(ids.kinds)).await;
    let registers = read(client, request(ids.wide)).await;
    let both = counters.into_iter().zip(registers);
    both.map(|both| match both {
        (Entity::CounterEntry(counter), Entity::RegisterEntry(register)) => {
            let packets = counter.data.expect("it is read").packet_count as u64;
            let Some(v1::p4_data::Data::Bitstring(bytes)) = register.data.and_then(|data| data.data) else {
                panic!("no bits")
            };
            let value = bytes.iter().fold(0u128, |value, byte| value << 8 | u128::from(*byte));
            assert_eq!(value >> 70, value & 0x3ff, "half of the element is lost: {value:#x}");
            (packets, (value & 0x3ff) as u64)
        }
        other => panic!("{other:?}"),
    })
    .collect()
}
