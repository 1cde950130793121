//! Sections 9.8, 16.3 and 16.4: digests and idle timeouts.

use crate::spec::rig::*;
use p4runtime_proto::v1;
use p4runtime_proto::v1::digest_entry::Config;
use p4runtime_proto::v1::entity::Entity as Kind;
use p4runtime_proto::v1::p4_data::Data;
use p4runtime_proto::v1::stream_message_request::Update as Request;
use p4runtime_proto::v1::stream_message_response::Update as Response;

const SECOND: i64 = 1_000_000_000;

#[track_caller]
fn refused(result: Result<(), Refused>) -> Code {
    result.expect_err("this is refused").code
}

fn digest_id(rig: &Rig) -> u32 {
    rig.info.digests[0].preamble.as_ref().unwrap().id
}

fn digest(rig: &Rig, max_timeout_ns: i64, max_list_size: i32, ack_timeout_ns: i64) -> v1::DigestEntry {
    let config = Some(Config { max_timeout_ns, max_list_size, ack_timeout_ns });
    v1::DigestEntry { digest_id: digest_id(rig), config }
}

/// A switch that learns from packets with `a` 1 to 4.
fn learning() -> Rig {
    let rig = Rig::new();
    for a in 1..=4 {
        rig.insert(entry(&rig.info, "exact_t").exact(1, a).does(call(&rig.info, "learn", &[]))).unwrap();
    }
    rig
}

#[track_caller]
fn list(session: &mut Session) -> v1::DigestList {
    match session.recv().expect("the stream goes on").update {
        Some(Response::Digest(list)) => list,
        other => panic!("no digest list: {other:?}"),
    }
}

/// The fields `a` and `port` of what was learned.
fn learned(list: &v1::DigestList) -> Vec<(Vec<u8>, Vec<u8>)> {
    let bits = |data: &v1::P4Data| match &data.data {
        Some(Data::Bitstring(bytes)) => bytes.clone(),
        other => panic!("no bits: {other:?}"),
    };
    let one = |data: &v1::P4Data| match &data.data {
        Some(Data::Struct(fields)) => (bits(&fields.members[0]), bits(&fields.members[1])),
        other => panic!("no struct: {other:?}"),
    };
    list.data.iter().map(one).collect()
}

/// 9.8 Digests are configured, reconfigured, read and turned off.
/// 9.8 One that is on is ALREADY_EXISTS, one that is off NOT_FOUND.
#[test]
fn digests_are_configured() {
    let rig = Rig::new();
    let asked = v1::DigestEntry { digest_id: digest_id(&rig), config: None };
    let read = |rig: &Rig| rig.read(asked);
    assert_eq!(rig.read_code(asked), Code::NotFound);
    assert_eq!(refused(rig.modify(digest(&rig, 1, 1, 1))), Code::NotFound);
    assert_eq!(refused(rig.delete(digest(&rig, 1, 1, 1))), Code::NotFound);
    rig.insert(digest(&rig, SECOND, 2, SECOND)).unwrap();
    assert_eq!(refused(rig.insert(digest(&rig, 1, 1, 1))), Code::AlreadyExists);
    assert_eq!(read(&rig), [v1::Entity { entity: Some(Kind::DigestEntry(digest(&rig, SECOND, 2, SECOND))) }]);
    rig.modify(digest(&rig, 0, 1, 0)).unwrap();
    assert_eq!(rig.read(v1::DigestEntry::default()).len(), 1);
    rig.delete(v1::DigestEntry { digest_id: digest_id(&rig), config: None }).unwrap();
    assert_eq!(rig.read(v1::DigestEntry::default()), []);
}

/// 9.8 A digest has to exist; times and sizes are not negative.
#[test]
fn digests_make_sense() {
    let rig = Rig::new();
    let unknown = v1::DigestEntry { digest_id: 77, ..digest(&rig, 0, 1, 0) };
    let code = refused(rig.insert(unknown));
    assert!([Code::InvalidArgument, Code::NotFound].contains(&code));
    assert_eq!(refused(rig.insert(digest(&rig, -1, 1, 0))), Code::InvalidArgument);
    assert_eq!(refused(rig.insert(digest(&rig, 0, -1, 0))), Code::InvalidArgument);
    assert_eq!(refused(rig.insert(digest(&rig, 0, 1, -1))), Code::InvalidArgument);
}

/// 5.2 A role whose config does not list a digest receives no lists of it, and acknowledges none for others.
#[test]
fn a_role_without_the_digest_acknowledges_nothing() {
    let mut rig = learning();
    rig.insert(digest(&rig, SECOND, 1, 600 * SECOND)).unwrap();
    let mut other = rig.open();
    let config = prost_types::Any { type_url: "type.googleapis.com/stratum.P4RoleConfig".to_owned(), value: vec![] };
    other.claim(v1::MasterArbitrationUpdate {
        device_id: DEVICE,
        role: Some(v1::Role { name: "other".to_owned(), config: Some(config), ..Default::default() }),
        election_id: Some(uint128(4)),
        ..Default::default()
    });
    assert_eq!(other.mastership().0, Code::Ok);
    rig.through(2, &data(1, 0, 0, 0, 0));
    let sent = list(rig.primary());
    other.send(Request::DigestAck(v1::DigestListAck { digest_id: sent.digest_id, list_id: sent.list_id }));
    assert_eq!(code(other.refused().canonical_code), Code::PermissionDenied);
    // The list waits for its acknowledgement, so the same message is not sent again.
    rig.through(2, &data(1, 0, 0, 0, 0));
    rig.primary().is_quiet();
}

/// 9.8 Without a configuration nothing is sent.
/// 9.8 What was learned reaches the primary, with the digest's id and fields.
/// 9.8 With a list size of 1 every message is a list.
#[test]
fn what_is_learned_reaches_the_primary() {
    let mut rig = learning();
    rig.through(2, &data(1, 0, 0, 0, 0));
    rig.primary().is_quiet();
    rig.insert(digest(&rig, SECOND, 1, SECOND)).unwrap();
    rig.through(2, &data(1, 0, 0, 0, 0));
    let first = list(rig.primary());
    assert_eq!(first.digest_id, digest_id(&rig));
    assert_eq!(learned(&first), [(vec![1], vec![2])]);
    assert!(first.timestamp > 0);
    rig.through(3, &data(2, 0, 0, 0, 0));
    let second = list(rig.primary());
    assert_eq!(learned(&second), [(vec![2], vec![3])]);
    assert_ne!(first.list_id, second.list_id);
}

/// 9.8 A list is sent when it has the configured number of different messages.
/// 9.8 Equal messages are in a list once.
#[test]
fn lists_are_filled_with_different_messages() {
    let mut rig = learning();
    rig.insert(digest(&rig, 3600 * SECOND, 2, 3600 * SECOND)).unwrap();
    for _ in 0..3 {
        rig.through(2, &data(1, 0, 0, 0, 0));
    }
    rig.primary().is_quiet();
    rig.through(2, &data(2, 0, 0, 0, 0));
    assert_eq!(learned(&list(rig.primary())), [(vec![1], vec![2]), (vec![2], vec![2])]);
}

/// 9.8 A list that is not full is sent when its time is up.
#[test]
fn lists_are_sent_when_their_time_is_up() {
    let mut rig = learning();
    rig.insert(digest(&rig, SECOND / 20, 100, SECOND)).unwrap();
    rig.through(2, &data(1, 0, 0, 0, 0));
    assert_eq!(learned(&list(rig.primary())), [(vec![1], vec![2])]);
}

/// 9.8 What was sent and not acknowledged is not sent again before its time is up; after an acknowledgement it is.
#[test]
fn acknowledged_messages_may_come_again() {
    let mut rig = learning();
    rig.insert(digest(&rig, 0, 1, 3600 * SECOND)).unwrap();
    rig.through(2, &data(1, 0, 0, 0, 0));
    let first = list(rig.primary());
    rig.through(2, &data(1, 0, 0, 0, 0));
    rig.primary().is_quiet();
    // An acknowledgement of another list changes nothing.
    let digest_id = first.digest_id;
    rig.primary().send(Request::DigestAck(v1::DigestListAck { digest_id, list_id: first.list_id + 1000 }));
    rig.through(2, &data(1, 0, 0, 0, 0));
    rig.primary().is_quiet();
    rig.primary().send(Request::DigestAck(v1::DigestListAck { digest_id, list_id: first.list_id }));
    // Messages of a stream are processed in order.
    rig.primary().arbitrate(DEVICE, "", Some(1));
    rig.primary().mastership();
    rig.through(2, &data(1, 0, 0, 0, 0));
    assert_eq!(learned(&list(rig.primary())), learned(&first));
}

/// 9.8 An acknowledgement timeout of 0 keeps nothing back.
#[test]
fn without_an_acknowledgement_timeout_nothing_is_kept_back() {
    let mut rig = learning();
    rig.insert(digest(&rig, 0, 1, 0)).unwrap();
    for _ in 0..3 {
        rig.through(2, &data(1, 0, 0, 0, 0));
        assert_eq!(learned(&list(rig.primary())), [(vec![1], vec![2])]);
    }
}

/// 9.8 A digest that is turned off sends nothing.
#[test]
fn a_digest_that_is_off_is_quiet() {
    let mut rig = learning();
    rig.insert(digest(&rig, 0, 1, 0)).unwrap();
    rig.delete(digest(&rig, 0, 1, 0)).unwrap();
    rig.through(2, &data(1, 0, 0, 0, 0));
    rig.primary().is_quiet();
}

/// 9.8 Digests go to the primary alone.
#[test]
fn digests_are_for_the_primary() {
    let mut rig = learning();
    rig.insert(digest(&rig, 0, 1, 0)).unwrap();
    let mut backup = rig.session(Some(0));
    rig.through(2, &data(1, 0, 0, 0, 0));
    list(rig.primary());
    backup.is_quiet();
}

/// 16.4 An entry that nothing hits for its timeout is reported to the primary: key, metadata, timeout.
/// 16.4 It is reported again after another timeout.
/// 16.4 An entry without a timeout is not reported.
#[test]
fn idle_entries_are_reported() {
    let mut rig = Rig::new();
    let idle = v1::TableEntry {
        idle_timeout_ns: SECOND / 10,
        metadata: vec![7],
        controller_metadata: 8,
        ..entry(&rig.info, "idle_t").exact(1, 1).does(call(&rig.info, "NoAction", &[]))
    };
    let never = entry(&rig.info, "idle_t").exact(1, 2).does(call(&rig.info, "NoAction", &[]));
    rig.insert(never).unwrap();
    rig.insert(idle.clone()).unwrap();
    for _ in 0..2 {
        let notification = match rig.primary().recv().unwrap().update {
            Some(Response::IdleTimeoutNotification(notification)) => notification,
            other => panic!("{other:?}"),
        };
        assert!(notification.timestamp > 0);
        let [reported] = &notification.table_entry[..] else { panic!("{notification:?}") };
        assert_eq!((reported.table_id, &reported.r#match), (idle.table_id, &idle.r#match));
        assert_eq!((&reported.metadata, reported.controller_metadata), (&idle.metadata, idle.controller_metadata));
        assert_eq!(reported.idle_timeout_ns, idle.idle_timeout_ns);
    }
}
