//! Chapters 10, 11 and 12: batches of writes, their errors, atomicity.

use crate::spec::rig::*;
use p4runtime_proto::v1;
use p4runtime_proto::v1::update::Type;
use p4runtime_proto::v1::write_request::Atomicity;

pub fn update(kind: Type, entity: impl IntoEntity) -> v1::Update {
    v1::Update { r#type: kind.into(), entity: Some(entity.entity()) }
}

fn row(rig: &Rig, value: u64, port: u64) -> v1::TableEntry {
    entry(&rig.info, "exact_t").exact(1, value).does(call(&rig.info, "forward", &[port]))
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

fn rows(rig: &Rig) -> Vec<v1::TableEntry> {
    let mut rows = rig.entries(entry(&rig.info, "exact_t"));
    rows.sort_by_key(|row| format!("{:?}", row.r#match));
    rows
}

/// 12.3 A batch that works ends with OK and no details.
/// 12.1 A batch mixes kinds of entities.
/// 12 A batch may be empty.
#[test]
fn a_batch_of_many_kinds_works() {
    let rig = Rig::new();
    let group = v1::MulticastGroupEntry { multicast_group_id: 1, ..Default::default() };
    let counter = v1::CounterEntry { counter_id: id(&rig.info, "counted"), ..Default::default() };
    rig.write(vec![update(Type::Insert, row(&rig, 1, 2)), update(Type::Insert, group), update(Type::Modify, counter)])
        .unwrap();
    rig.write(Vec::new()).unwrap();
    assert_eq!(rows(&rig).len(), 1);
}

/// 12.3 If some updates fail the call ends with UNKNOWN and one error for each update, in their order.
/// 12.3 Updates that went well have OK there and nothing else.
/// 10 Code and message of the status in the details are those of the call.
/// 12.2 CONTINUE_ON_ERROR tries every update.
#[test]
fn each_update_has_its_own_error() {
    let rig = Rig::new();
    let batch = vec![
        update(Type::Modify, row(&rig, 1, 2)),
        update(Type::Insert, row(&rig, 1, 2)),
        update(Type::Insert, row(&rig, 0x1_0000, 2)),
        update(Type::Insert, row(&rig, 3, 2)),
    ];
    let failed = write(&rig, Atomicity::ContinueOnError, batch).unwrap_err();
    assert_eq!(failed.code, Code::Unknown);
    assert_eq!(failed.codes(), [Code::NotFound, Code::Ok, Code::OutOfRange, Code::Ok]);
    assert_eq!(failed.errors[1].message, "");
    assert!(!failed.errors[2].message.is_empty());
    let status = failed.status.unwrap();
    assert_eq!((status.code, status.message), (Code::Unknown as i32, failed.message));
    assert_eq!(rows(&rig), [row(&rig, 1, 2), row(&rig, 3, 2)]);
}

/// 12.3 If the errors of a batch do not fit into a response, the updates that failed by themselves have details that
/// name their index, and the message names as many as fit.
#[test]
fn errors_of_a_huge_batch_do_not_break_the_call() {
    const HUGE: u64 = 3_000;
    let rig = Rig::new();
    let wrong = |at: u64| at % 1_000 == 999;
    let updates = (0..HUGE).map(|at| {
        let port = if wrong(at) { 0x200 } else { 2 };
        update(Type::Modify, entry(&rig.info, "exact_t").default_action().does(call(&rig.info, "forward", &[port])))
    });
    let failed = write(&rig, Atomicity::ContinueOnError, updates.collect()).unwrap_err();
    assert_eq!(failed.code, Code::Unknown);
    assert_eq!(failed.codes(), [Code::OutOfRange; 3]);
    for (error, at) in failed.errors.iter().zip([999, 1999, 2999]) {
        assert!(error.message.starts_with(&format!("[{at}]: ")), "{}", error.message);
    }
    assert!(failed.message.starts_with("3 of 3000 updates failed"), "{}", failed.message);
    assert!(failed.message.contains("[999]: ") && failed.message.contains("[2999]: "), "{}", failed.message);
    let updates = (0..HUGE).map(|at| update(Type::Modify, row(&rig, at, 2)));
    let failed = write(&rig, Atomicity::ContinueOnError, updates.collect()).unwrap_err();
    assert!(failed.message.starts_with("3000 of 3000 updates failed"), "{}", failed.message);
    assert!(failed.message.ends_with(" more") && failed.errors[0].code == Code::NotFound, "{}", failed.message);
}

/// 12.3 The update that an atomic batch failed for has its code, its index and its message in the details, wherever in
/// the batch it is, and whether it is refused before the batch runs or while it runs.
#[test]
fn the_cause_of_a_failed_batch_is_always_reported() {
    let rig = Rig::new();
    let route = |key: u64| entry(&rig.info, "lpm_t").lpm(1, key, 32).does(call(&rig.info, "forward", &[2]));
    rig.insert(route(7)).unwrap();
    for (wrong, code) in [(route(1 << 32), Code::OutOfRange), (route(7), Code::AlreadyExists)] {
        for atomicity in [Atomicity::RollbackOnError, Atomicity::DataplaneAtomic] {
            for (all, at) in [(3, 2), (90, 89), (92, 91), (300, 0), (300, 91), (300, 299)] {
                let updates =
                    (0..all).map(|of| update(Type::Insert, if of == at { wrong.clone() } else { route(0x100 + of) }));
                let failed = write(&rig, atomicity, updates.collect()).unwrap_err();
                let causes: Vec<_> = failed.errors.iter().filter(|error| error.code != Code::Aborted).collect();
                let [cause] = &causes[..] else { panic!("{at} of {all}: {causes:?}") };
                assert_eq!(cause.code, code, "{at} of {all}");
                if failed.errors.len() == all as usize {
                    assert!(std::ptr::eq(*cause, &failed.errors[at as usize]), "{at} of {all}");
                    assert!(!cause.message.is_empty() && failed.message.contains(&cause.message));
                } else {
                    assert!(std::ptr::eq(*cause, &failed.errors[0]), "the cause comes first");
                    assert!(cause.message.starts_with(&format!("[{at}]: ")), "{}", cause.message);
                    assert!(failed.message.contains(&cause.message), "{}", failed.message);
                }
                assert_eq!(rig.entries(entry(&rig.info, "lpm_t")), [route(7)]);
            }
        }
    }
}

/// 12.3 An error before any update is looked at has no details.
#[test]
fn errors_of_the_whole_call_have_no_details() {
    let rig = Rig::new();
    let request = v1::WriteRequest { device_id: DEVICE, election_id: Some(uint128(9)), ..Default::default() };
    let failed = rig.write_as(request).unwrap_err();
    assert_eq!((failed.code, failed.status), (Code::PermissionDenied, None));
}

/// 12 An update without a type is INVALID_ARGUMENT.
/// 12 An update without an entity is INVALID_ARGUMENT, as is one whose entity is empty.
#[test]
fn updates_have_a_type_and_an_entity() {
    let rig = Rig::new();
    let batch = vec![
        update(Type::Unspecified, row(&rig, 1, 2)),
        v1::Update { r#type: 77, entity: Some(row(&rig, 1, 2).entity()) },
        v1::Update { r#type: Type::Insert.into(), entity: None },
        v1::Update { r#type: Type::Insert.into(), entity: Some(v1::Entity { entity: None }) },
    ];
    assert_eq!(rig.write(batch).unwrap_err().codes(), [Code::InvalidArgument; 4]);
}

/// 12.2 ROLLBACK_ON_ERROR leaves nothing behind when an update fails.
/// 12.2 DATAPLANE_ATOMIC leaves nothing behind when an update fails.
#[test]
fn all_or_nothing_is_nothing_if_one_fails() {
    for atomicity in [Atomicity::RollbackOnError, Atomicity::DataplaneAtomic] {
        let rig = Rig::new();
        let register = |value: u8| v1::RegisterEntry {
            register_id: id(&rig.info, "remembered"),
            index: Some(v1::Index { index: 0 }),
            data: Some(v1::P4Data { data: Some(v1::p4_data::Data::Bitstring(vec![value])) }),
        };
        rig.insert(row(&rig, 1, 2)).unwrap();
        rig.insert(row(&rig, 2, 2)).unwrap();
        rig.modify(register(5)).unwrap();
        let group = v1::MulticastGroupEntry { multicast_group_id: 1, ..Default::default() };
        let batch = vec![
            update(Type::Modify, row(&rig, 1, 3)),
            update(Type::Delete, row(&rig, 2, 2)),
            update(Type::Insert, row(&rig, 3, 3)),
            update(Type::Insert, group.clone()),
            update(Type::Modify, register(6)),
            update(Type::Insert, row(&rig, 3, 4)),
        ];
        let failed = write(&rig, atomicity, batch).unwrap_err();
        assert_eq!(failed.code, Code::Unknown);
        assert_eq!(failed.errors.len(), 6);
        assert_eq!(failed.errors[5].code, Code::AlreadyExists);
        assert!(failed.errors[..5].iter().all(|error| [Code::Ok, Code::Aborted].contains(&error.code)));
        assert_eq!(rows(&rig), [row(&rig, 1, 2), row(&rig, 2, 2)]);
        assert_eq!(rig.read(v1::MulticastGroupEntry::default()), []);
        assert_eq!(rig.read(register(0)), [register(5).entity()]);
        assert_eq!(rig.through(1, &data(1, 0, 0, 0, 0)), Some(2));
    }
}

/// 12.2 ROLLBACK_ON_ERROR and DATAPLANE_ATOMIC do all of a batch that has no mistake.
#[test]
fn all_or_nothing_is_all_if_none_fails() {
    for atomicity in [Atomicity::RollbackOnError, Atomicity::DataplaneAtomic] {
        let rig = Rig::new();
        let batch = (0..8).map(|value| update(Type::Insert, row(&rig, value, 2))).collect();
        write(&rig, atomicity, batch).unwrap();
        assert_eq!(rows(&rig).len(), 8);
    }
}

/// 12.2 DATAPLANE_ATOMIC: no packet sees a part of a batch.
/// 11 No packet sees a part of one update.
#[test]
fn no_packet_sees_half_a_batch() {
    /// More than the server runs of another batch between packets.
    const BETWEEN: u64 = 600;
    let rig = Rig::new();
    // The first update says what is written into a packet, twice, and the last where it leaves. All name one port.
    let batch = |kind: Type, port: u64| -> Vec<v1::Update> {
        let written = entry(&rig.info, "exact_t").exact(1, 1).does(call(&rig.info, "pair", &[port, port]));
        let leaves = |key| entry(&rig.info, "lpm_t").lpm(1, key, 32).does(call(&rig.info, "forward", &[port]));
        std::iter::once(written).chain((0..=BETWEEN).rev().map(leaves)).map(|entry| update(kind, entry)).collect()
    };
    rig.write(batch(Type::Insert, 1)).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            (0..40)
                .for_each(|round| write(&rig, Atomicity::DataplaneAtomic, batch(Type::Modify, 1 + round % 4)).unwrap());
        });
        while !writer.is_finished() {
            rig.send(1, &data(1, 0, 0, 0, 0));
            let (port, bytes) = rig.sent();
            let port = port as u8;
            assert_eq!((&bytes[2..4], bytes[9]), (&[0, port][..], port), "it leaves by port {port}");
        }
    });
}

/// 13.4 What is read is the state before or after a batch.
#[test]
fn no_read_sees_half_a_batch() {
    let rig = Rig::new();
    let pair = |value: u64| {
        let of = |table: &str, argument: &[u64], action: &str| {
            entry(&rig.info, table).exact(1, 1).does(call(&rig.info, action, argument))
        };
        // Both name one number.
        vec![
            update(Type::Modify, of("exact_t", &[value, value], "pair")),
            update(
                Type::Modify,
                v1::MulticastGroupEntry {
                    multicast_group_id: 1,
                    replicas: vec![v1::Replica {
                        port_kind: Some(v1::replica::PortKind::Port(vec![value as u8])),
                        ..Default::default()
                    }],
                    ..Default::default()
                },
            ),
        ]
    };
    let insert = |updates: Vec<v1::Update>| -> Vec<v1::Update> {
        updates.into_iter().map(|update| v1::Update { r#type: Type::Insert.into(), ..update }).collect()
    };
    rig.write(insert(pair(1))).unwrap();
    let reads = v1::ReadRequest {
        device_id: DEVICE,
        entities: vec![entry(&rig.info, "exact_t").entity(), v1::MulticastGroupEntry::default().entity()],
        ..Default::default()
    };
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            (0..60).for_each(|round| write(&rig, Atomicity::DataplaneAtomic, pair(1 + round % 4)).unwrap());
        });
        while !writer.is_finished() {
            let both = rig.read_as(reads.clone()).1.unwrap();
            let text = format!("{both:?}");
            let value = (1..=4u8).find(|value| text.contains(&format!("Port([{value}])"))).unwrap();
            assert!(text.contains(&format!("value: [{value}]")), "{text}");
        }
    });
}

/// 12.1 What was written is in force when the call returns.
#[test]
fn a_write_is_in_force_when_it_returns() {
    let rig = Rig::new();
    rig.insert(row(&rig, 1, 2)).unwrap();
    for round in 0..50 {
        let port = 1 + round % 4;
        rig.modify(row(&rig, 1, port)).unwrap();
        assert_eq!(rig.through(1, &data(1, 0, 0, 0, 0)), Some(port as u32));
    }
}

/// 12.1 Calls that overlap give what some order of them gives.
#[test]
fn overlapping_writes_are_serialized() {
    let rig = Rig::new();
    let wins: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| rig.insert(row(&rig, 1, 2)).is_ok())).collect();
        threads.into_iter().filter(|_| true).map(|thread| usize::from(thread.join().unwrap())).sum()
    });
    assert_eq!(wins, 1, "one of four equal insertions works");
    assert_eq!(rows(&rig).len(), 1);
}

/// 12.2 An atomicity that does not exist is refused.
#[test]
fn an_unknown_atomicity_is_refused() {
    let rig = Rig::new();
    let request = v1::WriteRequest {
        device_id: DEVICE,
        election_id: Some(uint128(1)),
        atomicity: 9,
        updates: vec![update(Type::Insert, row(&rig, 1, 2))],
        ..Default::default()
    };
    assert!(rig.write_as(request).is_err());
    assert_eq!(rows(&rig), []);
}

/// Returns an arbitration update with the election id 4 and a `stratum.P4RoleConfig` of these ids.
fn claim(role: &str, exclusive: &[u32], shared: &[u32]) -> v1::MasterArbitrationUpdate {
    use p4runtime_proto::prost::encoding::encode_varint;
    let mut value = Vec::new();
    for (tag, ids) in [(1, exclusive), (2, shared)] {
        for id in ids {
            encode_varint(tag << 3, &mut value);
            encode_varint(u64::from(*id), &mut value);
        }
    }
    let config = prost_types::Any { type_url: "type.googleapis.com/stratum.P4RoleConfig".to_owned(), value };
    v1::MasterArbitrationUpdate {
        device_id: DEVICE,
        role: Some(v1::Role { name: role.to_owned(), config: Some(config), ..Default::default() }),
        election_id: Some(uint128(4)),
        ..Default::default()
    }
}

/// 5.2 What a role claims exclusively, no other role may write, not even one without a config, as long as the role has
/// a controller. The others may still read it.
#[test]
fn exclusive_objects_are_written_by_their_role_alone() {
    let rig = Rig::new();
    let (exact, lpm) = (id(&rig.info, "exact_t"), id(&rig.info, "lpm_t"));
    let mut owner = rig.open();
    owner.claim(claim("owner", &[exact], &[lpm]));
    assert_eq!(owner.mastership().0, Code::Ok);
    let route = || entry(&rig.info, "lpm_t").lpm(1, 0, 8).does(call(&rig.info, "forward", &[2]));
    let write_as = |role: &str, election_id, updates| {
        rig.write_as(v1::WriteRequest {
            device_id: DEVICE,
            role: role.to_owned(),
            election_id: Some(uint128(election_id)),
            updates,
            ..Default::default()
        })
    };
    let denied = rig.write(vec![update(Type::Insert, row(&rig, 1, 2)), update(Type::Insert, route())]).unwrap_err();
    assert_eq!(denied.codes(), [Code::PermissionDenied, Code::Ok]);
    assert!(denied.errors[0].message.contains("`owner`"), "{denied:?}");
    write_as("owner", 4, vec![update(Type::Insert, row(&rig, 1, 2)), update(Type::Modify, route())]).unwrap();
    assert_eq!(rows(&rig), [row(&rig, 1, 2)]);
    drop(owner);
    // The server learns that the stream is gone in its own time.
    let deadline = std::time::Instant::now() + SOON;
    while let Err(failed) = rig.write(vec![update(Type::Modify, row(&rig, 1, 3))]) {
        assert!(std::time::Instant::now() < deadline, "the object is free again: {failed:?}");
    }
}

/// 5.2 A role config that claims an object exclusively, if another role lists it, is INVALID_ARGUMENT and ends the
/// stream, as is one that lists an object which another role claims exclusively.
#[test]
fn two_roles_cannot_have_one_object_exclusively() {
    let rig = Rig::new();
    let (exact, lpm) = (id(&rig.info, "exact_t"), id(&rig.info, "lpm_t"));
    let mut first = rig.open();
    first.claim(claim("first", &[exact], &[lpm]));
    assert_eq!(first.mastership().0, Code::Ok);
    for (exclusive, shared) in [(vec![exact], vec![]), (vec![], vec![exact]), (vec![lpm], vec![])] {
        let mut second = rig.open();
        second.claim(claim("second", &exclusive, &shared));
        assert_eq!(second.ends(), Code::InvalidArgument, "{exclusive:?} {shared:?}");
    }
    let mut second = rig.open();
    second.claim(claim("second", &[], &[lpm]));
    assert_eq!(second.mastership().0, Code::Ok);
    // A controller of the same role has the same claims.
    let mut backup = rig.open();
    backup.claim(v1::MasterArbitrationUpdate { election_id: Some(uint128(3)), ..claim("first", &[exact], &[lpm]) });
    assert_eq!(backup.mastership().0, Code::AlreadyExists);
}

/// 12 An update that the role may not make is PERMISSION_DENIED, and others of the batch are made.
/// 13 A read gives a role what it may see, and nothing else.
#[test]
fn roles_write_and_read_what_they_may() {
    let rig = Rig::new();
    rig.insert(entry(&rig.info, "lpm_t").lpm(1, 0, 8).does(call(&rig.info, "forward", &[2]))).unwrap();
    let mut session = rig.open();
    session.claim(claim("rows", &[], &[id(&rig.info, "exact_t")]));
    assert_eq!(session.mastership().0, Code::Ok);
    let other = entry(&rig.info, "lpm_t").does(call(&rig.info, "forward", &[2]));
    let failed = rig
        .write_as(v1::WriteRequest {
            device_id: DEVICE,
            role: "rows".to_owned(),
            election_id: Some(uint128(4)),
            updates: vec![update(Type::Insert, other), update(Type::Insert, row(&rig, 1, 2))],
            ..Default::default()
        })
        .unwrap_err();
    assert_eq!(failed.codes(), [Code::PermissionDenied, Code::Ok]);
    let of = |role: &str| {
        let entities = vec![v1::TableEntry::default().entity()];
        rig.read_as(v1::ReadRequest { device_id: DEVICE, role: role.to_owned(), entities }).1.unwrap()
    };
    assert_eq!(of("rows"), [row(&rig, 1, 2).entity()]);
    assert!(of("").len() > 1);
}
