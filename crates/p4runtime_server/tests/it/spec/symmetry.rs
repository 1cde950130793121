//! Section 8.2: everything that is read can be written back.

use crate::spec::rig::*;
use p4runtime_proto::v1;
use p4runtime_proto::v1::entity::Entity as Kind;
use p4runtime_proto::v1::table_action::Type as Target;
use p4runtime_proto::v1::write_request::Atomicity;

const ATOMICITIES: [Atomicity; 3] =
    [Atomicity::ContinueOnError, Atomicity::RollbackOnError, Atomicity::DataplaneAtomic];

fn rates(cir: i64) -> Option<v1::MeterConfig> {
    Some(v1::MeterConfig { cir, cburst: 2, pir: cir + 1, pburst: 4, ..Default::default() })
}

fn replicas() -> Vec<v1::Replica> {
    let port_kind = |port| Some(v1::replica::PortKind::Port(vec![port]));
    let backup_replicas = vec![v1::BackupReplica { port: vec![3], instance: 2 }];
    let second = v1::Replica { port_kind: port_kind(2), instance: 1, backup_replicas };
    vec![v1::Replica { port_kind: port_kind(1), ..Default::default() }, second]
}

/// Writes something of every kind. Some meters are set and others are not.
fn fill_all(rig: &Rig) {
    let info = &rig.info;
    let forward = |port| call(info, "forward", &[port]);
    let (profile, selector) = (id(info, "profile"), id(info, "selector"));
    for (action_profile_id, member_id) in [(profile, 1), (profile, 2), (selector, 1), (selector, 2)] {
        let action = Some(forward(u64::from(member_id)));
        rig.insert(v1::ActionProfileMember { action_profile_id, member_id, action }).unwrap();
    }
    let in_group = |member_id, port| v1::action_profile_group::Member {
        member_id,
        weight: member_id as i32,
        watch_kind: Some(v1::action_profile_group::member::WatchKind::WatchPort(vec![port])),
    };
    let members = vec![in_group(1, 3), in_group(2, 4)];
    rig.insert(v1::ActionProfileGroup { action_profile_id: selector, group_id: 7, members, max_size: 8 }).unwrap();
    rig.insert(entry(info, "exact_t").exact(1, 1).does(call(info, "pair", &[7, 8]))).unwrap();
    rig.insert(entry(info, "lpm_t").lpm(1, 0x0a00_0000, 8).does(forward(2))).unwrap();
    rig.insert(entry(info, "lpm_t").does(forward(3))).unwrap();
    rig.insert(entry(info, "ternary_t").ternary(1, 1, 3).priority(5).does(call(info, "drop", &[]))).unwrap();
    rig.insert(entry(info, "range_t").range(1, 2, 9).priority(1).does(forward(1))).unwrap();
    rig.insert(entry(info, "optional_t").optional(1, 2).priority(1).does(forward(1))).unwrap();
    let counted = entry(info, "counted_t").exact(1, 1).does(call(info, "count_hit", &[]));
    rig.insert(v1::TableEntry { metadata: b"mine".to_vec(), controller_metadata: 9, ..counted }).unwrap();
    let metered = |key| entry(info, "metered_t").exact(1, key).does(call(info, "meter_hit", &[]));
    rig.insert(v1::TableEntry { meter_config: rates(5), ..metered(1) }).unwrap();
    rig.insert(metered(2)).unwrap();
    let idle = entry(info, "idle_t").exact(1, 1).does(call(info, "NoAction", &[]));
    rig.insert(v1::TableEntry { idle_timeout_ns: 3_600_000_000_000, ..idle }).unwrap();
    rig.insert(entry(info, "member_t").exact(1, 1).action(Target::ActionProfileMemberId(2))).unwrap();
    rig.insert(entry(info, "group_t").exact(1, 1).action(Target::ActionProfileGroupId(7))).unwrap();
    rig.modify(entry(info, "keyless_t").default_action().does(forward(4))).unwrap();
    let meter_id = id(info, "metered");
    let index = |index| Some(v1::Index { index });
    rig.modify(v1::MeterEntry { meter_id, index: index(2), config: rates(1), ..Default::default() }).unwrap();
    let counter_id = id(info, "counted");
    let data = Some(v1::CounterData { byte_count: 100, packet_count: 2 });
    rig.modify(v1::CounterEntry { counter_id, index: index(1), data }).unwrap();
    for (name, bytes) in [("remembered", vec![0x12, 0x34]), ("signed", vec![0xff])] {
        let data = Some(v1::P4Data { data: Some(v1::p4_data::Data::Bitstring(bytes)) });
        rig.modify(v1::RegisterEntry { register_id: id(info, name), index: index(1), data }).unwrap();
    }
    rig.insert(v1::MulticastGroupEntry { multicast_group_id: 1, replicas: replicas(), metadata: b"m".to_vec() })
        .unwrap();
    let session =
        v1::CloneSessionEntry { session_id: 5, class_of_service: 1, packet_length_bytes: 64, replicas: replicas() };
    rig.insert(session).unwrap();
    let exact = v1::field_match::FieldMatchType::Exact(v1::field_match::Exact { value: vec![7] });
    let member = v1::ValueSetMember { r#match: vec![v1::FieldMatch { field_id: 1, field_match_type: Some(exact) }] };
    rig.modify(v1::ValueSetEntry { value_set_id: id(info, "specials"), members: vec![member] }).unwrap();
    let config = Some(v1::digest_entry::Config { max_timeout_ns: 1, max_list_size: 2, ack_timeout_ns: 3 });
    rig.insert(v1::DigestEntry { digest_id: info.digests[0].preamble.as_ref().unwrap().id, config }).unwrap();
}

/// Returns a wildcard request of every kind.
fn wildcards() -> Vec<v1::Entity> {
    let everything = v1::TableEntry {
        counter_data: Some(v1::CounterData::default()),
        meter_config: Some(v1::MeterConfig::default()),
        ..Default::default()
    };
    vec![
        everything.entity(),
        v1::TableEntry { is_default_action: true, ..Default::default() }.entity(),
        v1::ActionProfileMember::default().entity(),
        v1::ActionProfileGroup::default().entity(),
        v1::CounterEntry::default().entity(),
        v1::DirectCounterEntry { table_entry: Some(v1::TableEntry::default()), data: None }.entity(),
        v1::MeterEntry::default().entity(),
        v1::DirectMeterEntry { table_entry: Some(v1::TableEntry::default()), ..Default::default() }.entity(),
        v1::RegisterEntry::default().entity(),
        v1::MulticastGroupEntry::default().entity(),
        v1::CloneSessionEntry::default().entity(),
        v1::ValueSetEntry::default().entity(),
        v1::DigestEntry::default().entity(),
    ]
}

/// Whether the specification makes every write of this table entry PERMISSION_DENIED: an entry that the program
/// declares constant, and a constant default action (9.1.3, 9.1.4, 9.1.5). Reads mark them.
fn is_constant(entity: &v1::Entity) -> bool {
    matches!(&entity.entity, Some(Kind::TableEntry(entry)) if entry.is_const)
}

fn modify(entity: &v1::Entity) -> v1::Update {
    v1::Update { r#type: v1::update::Type::Modify.into(), entity: Some(entity.clone()) }
}

fn write(rig: &Rig, atomicity: Atomicity, updates: Vec<v1::Update>) -> Result<(), Failed> {
    rig.write_as(v1::WriteRequest {
        device_id: DEVICE,
        election_id: Some(uint128(1)),
        updates,
        atomicity: atomicity.into(),
        ..Default::default()
    })
}

/// Returns what packets do not change: counts and registers are data plane volatile (8.2.1).
fn without_volatile(mut entities: Vec<v1::Entity>) -> Vec<v1::Entity> {
    entities.retain_mut(|entity| match &mut entity.entity {
        Some(Kind::TableEntry(entry)) => {
            entry.counter_data = None;
            true
        }
        Some(Kind::CounterEntry(_) | Kind::DirectCounterEntry(_) | Kind::RegisterEntry(_)) => false,
        _ => true,
    });
    entities
}

/// 8.2 Everything that wildcard reads of every kind return can be written back, as MODIFY, in one batch of each
/// atomicity, and changes nothing. Meters that are not set are among it, and packets pass meanwhile.
#[test]
fn everything_that_is_read_can_be_written_back() {
    let rig = Rig::new();
    fill_all(&rig);
    let before = rig.read_all(wildcards()).unwrap();
    let kind = |entity: &v1::Entity| format!("{:?}", entity.entity).split('(').nth(1).map(str::to_owned);
    let kinds: std::collections::BTreeSet<_> = before.iter().map(kind).collect();
    assert!(kinds.len() > 10 && before.len() > 40, "{} entities: {kinds:?}", before.len());
    let unset = before.iter().filter(|entity| {
        matches!(&entity.entity, Some(Kind::MeterEntry(v1::MeterEntry { config: None, .. })))
            || matches!(&entity.entity, Some(Kind::DirectMeterEntry(v1::DirectMeterEntry { config: None, .. })))
    });
    assert_eq!(unset.count(), 3 + 1);
    for atomicity in ATOMICITIES {
        std::thread::scope(|scope| {
            let traffic = scope.spawn(|| (0..200).for_each(|at| rig.send(1, &data(at % 4, 1, 0x0a00_0001, 2, 0))));
            let found = rig.read_all(wildcards()).unwrap();
            let updates = found.iter().filter(|entity| !is_constant(entity)).map(modify).collect();
            write(&rig, atomicity, updates).unwrap_or_else(|failed| panic!("{atomicity:?}: {failed:?}"));
            traffic.join().unwrap();
        });
        let after = rig.read_all(wildcards()).unwrap();
        assert_eq!(without_volatile(after), without_volatile(before.clone()), "{atomicity:?}");
    }
    // The specification excludes constants, even if the write would change nothing.
    for constant in before.iter().filter(|entity| is_constant(entity)) {
        let failed = rig.write(vec![modify(constant)]).unwrap_err();
        assert_eq!(failed.codes(), [Code::PermissionDenied], "{constant:?}");
    }
}
