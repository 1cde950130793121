//! Writes to a switch whose packets run in the kernel, too.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bpf::{KernelOptions, PortState};
use p4runtime_proto::v1;
use p4runtime_proto::v1::write_request::Atomicity;
use p4runtime_server::testing::TestServer;
use switch::PortId;

use crate::spec::rig::build::{Build, call, entry};
use crate::v1model_target::V1ModelTarget;

/// Returns a server whose switch has code in the kernel, as far as it knows.
fn server() -> TestServer<V1ModelTarget> {
    let mut server = TestServer::<V1ModelTarget>::new(1);
    let program = server.switch.program().clone();
    let pipeline = v1model::kernel_pipeline(&program).expect("a v1model program");
    let code = bpf::compile(&program, &pipeline, KernelOptions { cpus: 2, ports: 4 }).expect("it is not too large");
    let region: Vec<AtomicU64> = (0..code.layout.bytes() / 8).map(|_| AtomicU64::new(0)).collect();
    server.switch.attach_kernel(&code, Arc::new(region), |_| false).expect("the entries fit");
    server.switch.set_kernel_device(PortId(0), PortState::Fast { device: 1, max_frame: 1514 });
    server.switch.publish();
    assert!(server.switch.is_in_kernel());
    server
}

fn update(entity: v1::entity::Entity) -> v1::Update {
    v1::Update { r#type: v1::update::Type::Modify.into(), entity: Some(v1::Entity { entity: Some(entity) }) }
}

/// Sets an element of a register with this number.
fn register(server: &TestServer<V1ModelTarget>, at: usize, index: i64) -> v1::Update {
    let id = server.p4info().registers[at].preamble.as_ref().expect("an id").id;
    let data = v1::P4Data { data: Some(v1::p4_data::Data::Bitstring(vec![1])) };
    update(v1::entity::Entity::RegisterEntry(v1::RegisterEntry {
        register_id: id,
        index: Some(v1::Index { index }),
        data: Some(data),
    }))
}

/// Sets the rates of an element of a meter.
fn meter(server: &TestServer<V1ModelTarget>) -> v1::Update {
    let id = server.p4info().meters[0].preamble.as_ref().expect("an id").id;
    let config = v1::MeterConfig { cir: 1, cburst: 2, pir: 3, pburst: 4, ..Default::default() };
    update(v1::entity::Entity::MeterEntry(v1::MeterEntry {
        meter_id: id,
        index: Some(v1::Index { index: 0 }),
        config: Some(config),
        ..Default::default()
    }))
}

/// Sets an element of a counter.
fn counter(server: &TestServer<V1ModelTarget>) -> v1::Update {
    let id = server.p4info().counters[0].preamble.as_ref().expect("an id").id;
    update(v1::entity::Entity::CounterEntry(v1::CounterEntry {
        counter_id: id,
        index: Some(v1::Index { index: 0 }),
        data: Some(v1::CounterData { packet_count: 1, byte_count: 1 }),
    }))
}

/// Changes a multicast group that does not exist.
fn missing_group() -> v1::Update {
    let group = v1::MulticastGroupEntry { multicast_group_id: 99, ..Default::default() };
    let entry = v1::packet_replication_engine_entry::Type::MulticastGroupEntry(group);
    update(v1::entity::Entity::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry { r#type: Some(entry) }))
}

#[test]
fn packets_see_registers_of_an_atomic_write_with_all_of_it() {
    let mut server = server();
    let cases = [
        (Atomicity::DataplaneAtomic, vec![counter(&server), register(&server, 0, 1)], true, true),
        (Atomicity::DataplaneAtomic, vec![register(&server, 0, 1), register(&server, 0, 99)], false, false),
        // Packets wait for the last updates only, so not at all if one before them fails.
        (Atomicity::DataplaneAtomic, vec![register(&server, 0, 1), missing_group()], false, false),
        (Atomicity::DataplaneAtomic, vec![meter(&server)], true, true),
        (Atomicity::DataplaneAtomic, vec![counter(&server)], true, false),
        (Atomicity::RollbackOnError, vec![register(&server, 0, 1)], true, false),
        (Atomicity::ContinueOnError, vec![register(&server, 0, 1)], true, false),
    ];
    for (atomicity, updates, is_right, waits) in cases {
        let what = format!("{atomicity:?} {updates:?}");
        let stops = server.stops.take();
        assert_eq!(server.write(atomicity, updates).is_ok(), is_right, "{what}");
        assert_eq!(server.switch.is_in_kernel(), !waits, "{what}");
        // Other workers would see registers before the tables of the same write.
        assert_eq!(server.stops.take(), u64::from(waits), "{what}, after {stops}");
        // The data plane publishes what was written before it is acknowledged.
        server.switch.publish();
        assert!(server.switch.is_in_kernel(), "{what}");
    }
}

/// Writes an entry with this key and these rates.
fn metered(server: &TestServer<V1ModelTarget>, kind: v1::update::Type, key: u64, cir: i64) -> v1::Update {
    let info = server.p4info();
    let rates = (cir > 0).then(|| v1::MeterConfig { cir, cburst: 2, pir: 9, pburst: 4, ..Default::default() });
    let entry = entry(&info, "metered_t").exact(1, key).does(call(&info, "meter_hit", &[]));
    let entry = v1::TableEntry { meter_config: rates, ..entry };
    v1::Update { r#type: kind.into(), ..update(v1::entity::Entity::TableEntry(entry)) }
}

/// Sets the rates of an entry with this key.
fn direct_meter(server: &TestServer<V1ModelTarget>, key: u64) -> v1::Update {
    let table_entry = Some(entry(&server.p4info(), "metered_t").exact(1, key));
    let config = Some(v1::MeterConfig { cir: 5, cburst: 2, pir: 9, pburst: 4, ..Default::default() });
    update(v1::entity::Entity::DirectMeterEntry(v1::DirectMeterEntry { table_entry, config, ..Default::default() }))
}

#[test]
fn packets_see_direct_meters_of_an_atomic_write_with_all_of_it() {
    use v1::update::Type::{Delete, Insert, Modify};
    let mut server = server();
    let of = |kind, key, cir| metered(&server, kind, key, cir);
    // The updates, whether they succeed, and whether packets wait for them.
    let cases = [
        (vec![of(Insert, 1, 0), of(Insert, 2, 0)], true, false),
        (vec![of(Insert, 3, 1), of(Insert, 4, 1)], true, true),
        (vec![of(Modify, 1, 1)], true, true),
        (vec![of(Modify, 1, 1)], true, false),
        (vec![of(Modify, 1, 0), of(Modify, 2, 0)], true, true),
        (vec![direct_meter(&server, 1), of(Modify, 2, 0)], true, true),
        // Updates of the same entry stay in order.
        (vec![of(Insert, 5, 0), direct_meter(&server, 5), of(Delete, 5, 0)], true, true),
        (vec![of(Delete, 3, 0), of(Insert, 6, 1)], true, true),
        (vec![of(Delete, 6, 0), of(Delete, 4, 0)], true, false),
        (vec![of(Modify, 2, 7), missing_group()], false, true),
        (vec![missing_group(), of(Modify, 2, 7)], false, false),
        // A meter that returns is that of another entry, until it is published.
        (vec![of(Delete, 2, 0), missing_group()], false, false),
        (vec![of(Insert, 7, 1)], true, true),
        (vec![of(Delete, 7, 0), missing_group()], false, true),
        (vec![missing_group(), of(Delete, 7, 0)], false, false),
    ];
    for (at, (updates, is_right, waits)) in cases.into_iter().enumerate() {
        server.stops.take();
        let result = server.write(Atomicity::DataplaneAtomic, updates);
        assert_eq!(result.is_ok(), is_right, "case {at}: {result:?}");
        assert_eq!((server.switch.is_in_kernel(), server.stops.take()), (!waits, u64::from(waits)), "case {at}");
        server.switch.publish();
        assert!(server.switch.is_in_kernel(), "case {at}");
    }
}
