//! Sections 9.5, 9.6 and 9.9: multicast groups, clone sessions, value sets, extern entries.

use crate::spec::rig::*;
use p4runtime_proto::v1;
use p4runtime_proto::v1::entity::Entity as Kind;
use p4runtime_proto::v1::packet_replication_engine_entry::Type;
use p4runtime_proto::v1::replica::PortKind;

#[track_caller]
fn refused(result: Result<(), Refused>) -> Code {
    result.expect_err("this is refused").code
}

fn replica(port: u8, instance: u32) -> v1::Replica {
    v1::Replica { port_kind: Some(PortKind::Port(vec![port])), instance, ..Default::default() }
}

fn with_backups(port: u8, backups: &[(u8, u32)]) -> v1::Replica {
    let backup = |(port, instance): &(u8, u32)| v1::BackupReplica { port: vec![*port], instance: *instance };
    v1::Replica { backup_replicas: backups.iter().map(backup).collect(), ..replica(port, 1) }
}

fn group(multicast_group_id: u32, replicas: Vec<v1::Replica>) -> v1::MulticastGroupEntry {
    v1::MulticastGroupEntry { multicast_group_id, replicas, ..Default::default() }
}

fn session(session_id: u32, replicas: Vec<v1::Replica>) -> v1::CloneSessionEntry {
    v1::CloneSessionEntry { session_id, replicas, ..Default::default() }
}

fn groups(entities: Vec<v1::Entity>) -> Vec<v1::MulticastGroupEntry> {
    let one = |entity: v1::Entity| match entity.entity {
        Some(Kind::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry {
            r#type: Some(Type::MulticastGroupEntry(group)),
        })) => group,
        other => panic!("no group: {other:?}"),
    };
    entities.into_iter().map(one).collect()
}

fn sessions(entities: Vec<v1::Entity>) -> Vec<v1::CloneSessionEntry> {
    let one = |entity: v1::Entity| match entity.entity {
        Some(Kind::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry {
            r#type: Some(Type::CloneSessionEntry(session)),
        })) => session,
        other => panic!("no session: {other:?}"),
    };
    entities.into_iter().map(one).collect()
}

/// 9.5.1 Groups are inserted, modified, read and deleted, with instances and metadata.
#[test]
fn groups_live() {
    let rig = Rig::new();
    let written = v1::MulticastGroupEntry { metadata: vec![1, 2], ..group(7, vec![replica(1, 1), replica(2, 9)]) };
    rig.insert(written.clone()).unwrap();
    assert_eq!(groups(rig.read(group(7, vec![]))), [written]);
    rig.modify(group(7, vec![replica(3, 0)])).unwrap();
    assert_eq!(groups(rig.read(group(7, vec![]))), [group(7, vec![replica(3, 0)])]);
    rig.delete(group(7, vec![])).unwrap();
    assert_eq!(rig.read(group(0, vec![])), []);
}

/// 9.5.1 A group that is there is ALREADY_EXISTS, one that is not NOT_FOUND.
/// 9.5.3 The same for clone sessions.
#[test]
fn groups_and_sessions_exist_or_do_not() {
    let rig = Rig::new();
    assert_eq!(refused(rig.modify(group(7, vec![]))), Code::NotFound);
    assert_eq!(refused(rig.delete(group(7, vec![]))), Code::NotFound);
    rig.insert(group(7, vec![])).unwrap();
    assert_eq!(refused(rig.insert(group(7, vec![]))), Code::AlreadyExists);
    assert_eq!(refused(rig.modify(session(7, vec![replica(1, 0)]))), Code::NotFound);
    assert_eq!(refused(rig.delete(session(7, vec![]))), Code::NotFound);
    rig.insert(session(7, vec![replica(1, 0)])).unwrap();
    assert_eq!(refused(rig.insert(session(7, vec![replica(1, 0)]))), Code::AlreadyExists);
}

/// 9.5.2 The group id 0 is none: INVALID_ARGUMENT in a write.
/// 9.5.4 The session id 0 is none: INVALID_ARGUMENT in a write.
#[test]
fn zero_is_no_group_and_no_session() {
    let rig = Rig::new();
    assert_eq!(refused(rig.insert(group(0, vec![replica(1, 0)]))), Code::InvalidArgument);
    assert_eq!(refused(rig.modify(group(0, vec![]))), Code::InvalidArgument);
    assert_eq!(refused(rig.delete(group(0, vec![]))), Code::InvalidArgument);
    assert_eq!(refused(rig.insert(session(0, vec![replica(1, 0)]))), Code::InvalidArgument);
    assert_eq!(refused(rig.delete(session(0, vec![]))), Code::InvalidArgument);
}

/// 9.5.1 The group id 0 reads all groups.
/// 9.5.3 The session id 0 reads all sessions.
#[test]
fn all_groups_and_sessions_are_read_at_once() {
    let rig = Rig::new();
    rig.insert(group(1, vec![])).unwrap();
    rig.insert(group(2, vec![])).unwrap();
    rig.insert(session(1, vec![replica(1, 0)])).unwrap();
    assert_eq!(groups(rig.read(group(0, vec![]))).len(), 2);
    assert_eq!(sessions(rig.read(session(0, vec![]))).len(), 1);
}

/// 9.5.1 A packet of the group leaves once for each replica.
/// 9.5.1 A group that is not there drops the packet.
#[test]
fn packets_are_replicated() {
    let rig = Rig::new();
    let send = entry(&rig.info, "exact_t").exact(1, 1).does(call(&rig.info, "replicate", &[7]));
    rig.insert(send).unwrap();
    assert!(rig.copies(1, &data(1, 0, 0, 0, 0)).is_empty());
    rig.insert(group(7, vec![replica(2, 1), replica(3, 1), replica(2, 2)])).unwrap();
    let mut ports = rig.copies(1, &data(1, 0, 0, 0, 0));
    ports.sort();
    assert_eq!(ports, [2, 2, 3]);
    rig.delete(group(7, vec![])).unwrap();
    assert!(rig.copies(1, &data(1, 0, 0, 0, 0)).is_empty());
}

/// 9.5.1 Ports and instances of a group's replicas are pairs that occur once, backups included: INVALID_ARGUMENT.
#[test]
fn pairs_of_port_and_instance_occur_once() {
    let rig = Rig::new();
    assert_eq!(refused(rig.insert(group(1, vec![replica(1, 1), replica(1, 1)]))), Code::InvalidArgument);
    let backup = vec![with_backups(1, &[(2, 1)]), replica(2, 1)];
    assert_eq!(refused(rig.insert(group(1, backup))), Code::InvalidArgument);
    rig.insert(group(1, vec![replica(1, 1), replica(1, 2)])).unwrap();
    assert_eq!(refused(rig.modify(group(1, vec![replica(1, 1), replica(1, 1)]))), Code::InvalidArgument);
}

/// 9.5.1 A replica has another port than its backups: INVALID_ARGUMENT.
/// 9.5.1 Backups come back in their order, with their instances.
#[test]
fn backups_have_ports_of_their_own_and_an_order() {
    let rig = Rig::new();
    assert_eq!(refused(rig.insert(group(1, vec![with_backups(1, &[(1, 1)])]))), Code::InvalidArgument);
    let written = group(1, vec![with_backups(1, &[(4, 1), (2, 1), (3, 1)])]);
    rig.insert(written.clone()).unwrap();
    assert_eq!(groups(rig.read(group(1, vec![]))), [written]);
    let written = group(2, vec![with_backups(1, &[(2, 5), (3, 6)])]);
    rig.insert(written.clone()).unwrap();
    assert_eq!(groups(rig.read(group(2, vec![]))), [written]);
    assert_eq!(refused(rig.insert(group(3, vec![with_backups(1, &[(2, 0x1_0000)])]))), Code::InvalidArgument);
}

/// 9.5.3 A class of service is one of the queues of a port: INVALID_ARGUMENT otherwise.
#[test]
fn classes_of_service_are_queues() {
    let rig = Rig::new();
    let written = v1::CloneSessionEntry { class_of_service: 7, ..session(5, vec![replica(1, 0)]) };
    rig.insert(written.clone()).unwrap();
    assert_eq!(sessions(rig.read(session(5, vec![]))), [written]);
    let beyond = v1::CloneSessionEntry { class_of_service: 8, ..session(6, vec![replica(1, 0)]) };
    assert_eq!(refused(rig.insert(beyond)), Code::InvalidArgument);
}

/// 9.5.1 An instance that the data plane's type cannot hold is INVALID_ARGUMENT.
/// 9.5.1 A replica has a port.
#[test]
fn instances_and_ports_fit() {
    let rig = Rig::new();
    assert_eq!(refused(rig.insert(group(1, vec![replica(1, 0x1_0000)]))), Code::InvalidArgument);
    let portless = v1::Replica { instance: 1, ..Default::default() };
    assert_eq!(refused(rig.insert(group(1, vec![portless.clone()]))), Code::InvalidArgument);
    assert_eq!(refused(rig.insert(session(1, vec![portless]))), Code::InvalidArgument);
    assert_eq!(refused(rig.insert(session(1, vec![replica(1, 0x1_0000)]))), Code::InvalidArgument);
}

/// 9.5.1 A group id that the data plane's type cannot hold is refused.
#[test]
fn group_ids_fit_the_data_plane() {
    let rig = Rig::new();
    let code = refused(rig.insert(group(0x1_0000, vec![replica(1, 0)])));
    assert!([Code::InvalidArgument, Code::OutOfRange].contains(&code), "{code:?}");
}

/// 9.5.3 Sessions are inserted, modified, read and deleted, with truncation.
#[test]
fn sessions_live() {
    let rig = Rig::new();
    let written = v1::CloneSessionEntry { packet_length_bytes: 32, ..session(5, vec![replica(2, 1)]) };
    rig.insert(written.clone()).unwrap();
    assert_eq!(sessions(rig.read(session(5, vec![]))), [written]);
    rig.modify(session(5, vec![replica(3, 0)])).unwrap();
    assert_eq!(sessions(rig.read(session(5, vec![]))), [session(5, vec![replica(3, 0)])]);
    rig.delete(session(5, vec![])).unwrap();
    assert_eq!(rig.read(session(0, vec![])), []);
}

/// 9.5.3 A clone leaves at the session's port, cut to its length; without the session there is none.
#[test]
fn packets_are_cloned_and_cut() {
    let rig = Rig::new();
    rig.insert(entry(&rig.info, "exact_t").exact(1, 1).does(call(&rig.info, "mirror", &[]))).unwrap();
    // What the tables after it do not change leaves at port 0, which is not a port.
    assert!(rig.copies(1, &data(1, 0, 0, 0, 0)).is_empty());
    rig.insert(v1::CloneSessionEntry { packet_length_bytes: 32, ..session(5, vec![replica(2, 1)]) }).unwrap();
    rig.send(1, &data(1, 0, 0, 0, 0));
    let (port, frame) = rig.sent();
    assert_eq!((port, frame.len()), (2, 32));
}

/// 9.5.3 A negative length is INVALID_ARGUMENT.
#[test]
fn lengths_are_not_negative() {
    let rig = Rig::new();
    let wrong = v1::CloneSessionEntry { packet_length_bytes: -1, ..session(5, vec![replica(2, 1)]) };
    assert_eq!(refused(rig.insert(wrong)), Code::InvalidArgument);
}

/// 9.5 An entry without group and session is INVALID_ARGUMENT.
#[test]
fn a_replication_entry_says_which_kind_it_is() {
    let rig = Rig::new();
    let nothing = v1::PacketReplicationEngineEntry::default();
    assert_eq!(refused(rig.insert(nothing.clone())), Code::InvalidArgument);
    assert_eq!(rig.read_code(nothing), Code::InvalidArgument);
}

fn set(rig: &Rig, values: &[u64]) -> v1::ValueSetEntry {
    let member = |value: &u64| v1::ValueSetMember { r#match: entry(&rig.info, "exact_t").exact(1, *value).r#match };
    v1::ValueSetEntry { value_set_id: id(&rig.info, "specials"), members: values.iter().map(member).collect() }
}

#[track_caller]
fn set_values(rig: &Rig) -> Vec<v1::ValueSetEntry> {
    let one = |entity: v1::Entity| match entity.entity {
        Some(Kind::ValueSetEntry(entry)) => entry,
        other => panic!("no value set: {other:?}"),
    };
    rig.read(set(rig, &[])).into_iter().map(one).collect()
}

/// 9.6 A value set is replaced as a whole, read, and emptied; the parser follows it.
#[test]
fn value_sets_are_replaced() {
    let rig = Rig::new();
    assert_eq!(rig.through(1, &data(0x77, 0, 0, 0, 0)), None);
    rig.modify(set(&rig, &[0x77, 0x78])).unwrap();
    assert_eq!(set_values(&rig), [set(&rig, &[0x77, 0x78])]);
    assert_eq!(rig.through(1, &data(0x77, 0, 0, 0, 0)), Some(3));
    rig.modify(set(&rig, &[0x79])).unwrap();
    assert_eq!(set_values(&rig), [set(&rig, &[0x79])]);
    rig.modify(set(&rig, &[])).unwrap();
    assert_eq!(rig.through(1, &data(0x79, 0, 0, 0, 0)), None);
}

/// 9.6 Value sets are neither inserted nor deleted: INVALID_ARGUMENT.
#[test]
fn value_sets_are_only_modified() {
    let rig = Rig::new();
    assert_eq!(refused(rig.insert(set(&rig, &[1]))), Code::InvalidArgument);
    assert_eq!(refused(rig.delete(set(&rig, &[1]))), Code::InvalidArgument);
}

/// 9.6 More members than the set's size are RESOURCE_EXHAUSTED, and the set stays.
#[test]
fn a_full_value_set_is_exhausted() {
    let rig = Rig::new();
    rig.modify(set(&rig, &[9])).unwrap();
    assert_eq!(refused(rig.modify(set(&rig, &[1, 2, 3]))), Code::ResourceExhausted);
    assert_eq!(set_values(&rig), [set(&rig, &[9])]);
}

/// 9.6 A member that stands twice is ALREADY_EXISTS.
#[test]
fn value_sets_have_a_member_once() {
    let rig = Rig::new();
    assert_eq!(refused(rig.modify(set(&rig, &[1, 1]))), Code::AlreadyExists);
}

/// 9.6 Members follow the rules of matches.
#[test]
fn members_of_value_sets_are_well_formed() {
    let rig = Rig::new();
    assert_eq!(refused(rig.modify(set(&rig, &[0x1_0000]))), Code::OutOfRange);
    let mut wrong = set(&rig, &[1]);
    wrong.members[0].r#match[0].field_id = 7;
    assert_eq!(refused(rig.modify(wrong)), Code::InvalidArgument);
    let mut empty = set(&rig, &[1]);
    empty.members[0].r#match.clear();
    assert_eq!(refused(rig.modify(empty)), Code::InvalidArgument);
}

/// 9.9 The program has no externs besides v1model's: an extern entry is refused.
#[test]
fn extern_entries_are_refused() {
    let rig = Rig::new();
    let entry = v1::ExternEntry { extern_type_id: 0x81, extern_id: 0x8100_0001, entry: None };
    let code = refused(rig.insert(entry.clone()));
    assert!([Code::Unimplemented, Code::InvalidArgument, Code::NotFound].contains(&code), "{code:?}");
    assert!(rig.read_all(vec![IntoEntity::entity(entry)]).is_err());
}
