//! Chapter 13: reads.

use crate::spec::rig::*;
use p4runtime_proto::v1;

fn row(rig: &Rig, value: u64) -> v1::TableEntry {
    entry(&rig.info, "exact_t").exact(1, value).does(call(&rig.info, "forward", &[2]))
}

/// 13 An unknown device is NOT_FOUND.
#[test]
fn an_unknown_device_is_not_found() {
    let rig = Rig::new();
    for device_id in [0, DEVICE + 1] {
        let entities = vec![v1::TableEntry::default().entity()];
        let request = v1::ReadRequest { device_id, entities, ..Default::default() };
        assert_eq!(rig.read_as(request).1.unwrap_err().code, Code::NotFound);
    }
}

/// 13.2 An empty entity is INVALID_ARGUMENT: nothing reads everything.
#[test]
fn an_empty_entity_is_refused() {
    let rig = Rig::new();
    let failed = rig.read_all(vec![v1::Entity { entity: None }]).unwrap_err();
    assert_eq!(failed.codes(), [Code::InvalidArgument]);
}

/// 13 A read of nothing gives nothing.
#[test]
fn a_read_of_nothing_gives_nothing() {
    let rig = Rig::new();
    assert_eq!(rig.read_all(Vec::new()).unwrap(), []);
}

/// 13.3 A batch of reads gives what the good ones ask for, then UNKNOWN with an error for each request, in order.
#[test]
fn good_reads_are_answered_beside_bad_ones() {
    let rig = Rig::new();
    rig.insert(row(&rig, 1)).unwrap();
    let bad = || entry(&rig.info, "exact_t").exact(7, 1).entity();
    let entities = vec![row(&rig, 1).entity(), bad(), v1::CounterEntry::default().entity(), bad()];
    let request = v1::ReadRequest { device_id: DEVICE, entities, ..Default::default() };
    let (found, result) = rig.read_as(request);
    let failed = result.unwrap_err();
    assert_eq!(failed.code, Code::Unknown);
    assert_eq!(failed.codes(), [Code::Ok, Code::InvalidArgument, Code::Ok, Code::InvalidArgument]);
    assert_eq!(found.len(), 1 + 4);
}

/// 13.3 A kind of entity may stand in a batch several times.
#[test]
fn requests_may_repeat() {
    let rig = Rig::new();
    rig.insert(row(&rig, 1)).unwrap();
    let found = rig.read_all(vec![row(&rig, 1).entity(), row(&rig, 1).entity()]).unwrap();
    assert_eq!(found, [row(&rig, 1).entity(), row(&rig, 1).entity()]);
}

/// 13.2 Everything is read with one empty message of each kind.
#[test]
fn every_kind_of_entity_is_read_with_an_empty_message() {
    let rig = Rig::new();
    rig.insert(row(&rig, 1)).unwrap();
    let found = rig
        .read_all(vec![
            v1::TableEntry::default().entity(),
            v1::ActionProfileMember::default().entity(),
            v1::ActionProfileGroup::default().entity(),
            v1::CounterEntry::default().entity(),
            v1::MeterEntry::default().entity(),
            v1::RegisterEntry::default().entity(),
            v1::MulticastGroupEntry::default().entity(),
            v1::CloneSessionEntry::default().entity(),
            v1::ValueSetEntry::default().entity(),
            v1::DigestEntry::default().entity(),
        ])
        .unwrap();
    assert!(found.len() > 10);
}

/// 13 A table entry that is not there is an empty answer; anything else that is asked for by its id is NOT_FOUND.
#[test]
fn what_is_not_there_is_not_read() {
    let rig = Rig::new();
    assert_eq!(rig.read(row(&rig, 1)), []);
    let group = v1::MulticastGroupEntry { multicast_group_id: 3, ..Default::default() };
    assert_eq!(rig.read_code(group), Code::NotFound);
}

/// 13.3 Reads run beside each other, and beside writes.
#[test]
fn reads_run_beside_each_other() {
    let rig = Rig::new();
    (0..8).for_each(|value| rig.insert(row(&rig, value)).unwrap());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..20).for_each(|_| assert_eq!(rig.entries(entry(&rig.info, "exact_t")).len(), 8)));
        }
        for _ in 0..20 {
            rig.modify(row(&rig, 1)).unwrap();
        }
    });
}

/// 13.3 An answer may take several messages; a table of many entries is read whole.
#[test]
fn many_entries_are_read_whole() {
    let rig = Rig::with(&EVERY.replace("size = 8", "size = 40000"));
    let update =
        |value| v1::Update { r#type: v1::update::Type::Insert.into(), entity: Some(row(&rig, value).entity()) };
    for batch in 0..20 {
        rig.write((0..1_000).map(|value| update(batch * 1_000 + value)).collect()).unwrap();
    }
    let mut found = rig.entries(entry(&rig.info, "exact_t"));
    assert_eq!(found.len(), 20_000);
    found.dedup();
    assert_eq!(found.len(), 20_000);
}
