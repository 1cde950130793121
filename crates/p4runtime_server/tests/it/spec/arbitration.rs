//! Chapter 5: streams, roles, primaries. The first numbers of a comment are the section.

use crate::spec::rig::*;
use p4runtime_proto::v1;

/// 5.3 An update for a device that is not there ends the stream with NOT_FOUND.
#[test]
fn an_unknown_device_ends_the_stream() {
    let rig = Rig::bare();
    let mut session = rig.open();
    session.arbitrate(DEVICE + 1, "", Some(1));
    assert_eq!(session.ends(), Code::NotFound);
}

/// 5.1 The device id 0 is none.
#[test]
fn device_zero_is_no_device() {
    let rig = Rig::bare();
    let mut session = rig.open();
    session.arbitrate(0, "", Some(1));
    assert_eq!(session.ends(), Code::NotFound);
}

/// 5.3 An election id that a live controller of the role has ends the stream of another with INVALID_ARGUMENT.
#[test]
fn an_election_id_in_use_ends_the_stream() {
    let rig = Rig::bare();
    let mut first = rig.session(Some(7));
    let mut second = rig.open();
    second.arbitrate(DEVICE, "", Some(7));
    assert_eq!(second.ends(), Code::InvalidArgument);
    first.is_quiet();
}

/// 5.3 A live controller that changes to an election id in use loses its stream, INVALID_ARGUMENT.
#[test]
fn changing_to_an_election_id_in_use_ends_the_stream() {
    let rig = Rig::bare();
    let _first = rig.session(Some(7));
    let mut second = rig.session(Some(6));
    second.arbitrate(DEVICE, "", Some(7));
    assert_eq!(second.ends(), Code::InvalidArgument);
}

/// 5.3 An election id is free again when its controller has gone.
#[test]
fn an_election_id_is_free_again_when_its_stream_has_ended() {
    let rig = Rig::bare();
    let mut watcher = rig.session(Some(1));
    drop(rig.session(Some(7)));
    assert_eq!(watcher.mastership(), (Code::AlreadyExists, Some(7)));
    assert_eq!(watcher.mastership(), (Code::NotFound, Some(7)));
    let mut again = rig.open();
    again.arbitrate(DEVICE, "", Some(7));
    assert_eq!(again.mastership(), (Code::Ok, Some(7)));
}

/// 5.3 A role config of a form that the server does not know is INVALID_ARGUMENT.
#[test]
fn a_role_config_of_another_form_is_refused() {
    let rig = Rig::bare();
    let config = prost_types::Any { type_url: "type.googleapis.com/example.Config".to_owned(), value: Vec::new() };
    let role = v1::Role { name: "r".to_owned(), config: Some(config), ..Default::default() };
    let update = v1::MasterArbitrationUpdate {
        device_id: DEVICE,
        role: Some(role),
        election_id: Some(uint128(1)),
        ..Default::default()
    };
    let mut session = rig.open();
    session.claim(update.clone());
    assert_eq!(session.ends(), Code::InvalidArgument);
    // From a controller that is live already, too.
    let mut session = rig.open();
    session.arbitrate(DEVICE, "r", Some(1));
    assert_eq!(session.mastership().0, Code::Ok);
    session.claim(update);
    assert_eq!(session.ends(), Code::InvalidArgument);
}

/// 5.3 More streams of a role than the server takes end with RESOURCE_EXHAUSTED.
#[test]
fn too_many_streams_are_refused() {
    let rig = Rig::bare();
    let mut sessions = Vec::new();
    for election in 1..=1_000u128 {
        let mut session = rig.open();
        // Descending ids: only the new controller is notified.
        session.arbitrate(DEVICE, "", Some(10_000 - election));
        match session.recv() {
            Ok(_) => sessions.push(session),
            Err(failed) => {
                assert_eq!(failed.code, Code::ResourceExhausted);
                assert!(sessions.len() > 1);
                return;
            }
        }
    }
    panic!("a thousand streams and no limit");
}

/// 5.3 The first controller becomes primary and is notified at once.
/// 5.4 The primary receives OK, with the device and its own election id.
#[test]
fn the_first_controller_becomes_primary() {
    let rig = Rig::bare();
    let mut session = rig.open();
    session.arbitrate(DEVICE, "", Some(5));
    let update = session.arbitration();
    assert_eq!(update.device_id, DEVICE);
    assert_eq!(update.election_id, Some(uint128(5)));
    assert_eq!(update.status.unwrap().code, 0);
    session.is_quiet();
}

/// 5.3 A live controller cannot change its device: FAILED_PRECONDITION.
#[test]
fn a_controller_cannot_change_its_device() {
    let rig = Rig::bare();
    let mut session = rig.session(Some(1));
    session.arbitrate(DEVICE + 1, "", Some(1));
    assert_eq!(session.ends(), Code::FailedPrecondition);
}

/// 5.3 A live controller cannot change its role: FAILED_PRECONDITION.
#[test]
fn a_controller_cannot_change_its_role() {
    let rig = Rig::bare();
    let mut session = rig.session(Some(1));
    session.arbitrate(DEVICE, "other", Some(1));
    assert_eq!(session.ends(), Code::FailedPrecondition);
}

/// 5.3 A higher election id becomes primary, and all controllers of the role are notified.
/// 5.4 Backups receive ALREADY_EXISTS and the primary's election id while there is a primary.
#[test]
fn a_higher_election_id_takes_over() {
    let rig = Rig::bare();
    let mut old = rig.session(Some(5));
    let mut backup = rig.session(Some(3));
    let mut new = rig.open();
    new.arbitrate(DEVICE, "", Some(9));
    assert_eq!(new.mastership(), (Code::Ok, Some(9)));
    assert_eq!(old.mastership(), (Code::AlreadyExists, Some(9)));
    assert_eq!(backup.mastership(), (Code::AlreadyExists, Some(9)));
}

/// 5.3 Only the backup itself is notified that it is one.
#[test]
fn a_lower_election_id_becomes_backup_and_only_it_is_notified() {
    let rig = Rig::bare();
    let mut primary = rig.session(Some(5));
    let mut backup = rig.open();
    backup.arbitrate(DEVICE, "", Some(4));
    assert_eq!(backup.mastership(), (Code::AlreadyExists, Some(5)));
    primary.is_quiet();
}

/// 5.3 A backup that raises its election id becomes primary.
#[test]
fn a_backup_that_raises_its_id_takes_over() {
    let rig = Rig::bare();
    let mut primary = rig.session(Some(5));
    let mut backup = rig.session(Some(4));
    backup.arbitrate(DEVICE, "", Some(6));
    assert_eq!(backup.mastership(), (Code::Ok, Some(6)));
    assert_eq!(primary.mastership(), (Code::AlreadyExists, Some(6)));
}

/// 5.3 A primary that lowers its election id becomes backup; the role has no primary then, and all are notified.
/// 5.4 Without a primary the status is NOT_FOUND and the election id the highest ever seen.
#[test]
fn a_primary_that_lowers_its_id_leaves_none() {
    let rig = Rig::bare();
    let mut primary = rig.session(Some(5));
    let mut backup = rig.session(Some(4));
    primary.arbitrate(DEVICE, "", Some(3));
    assert_eq!(primary.mastership(), (Code::NotFound, Some(5)));
    assert_eq!(backup.mastership(), (Code::NotFound, Some(5)));
}

/// 5 When the primary's stream ends, the backups are notified.
/// 5 There is no primary then until one claims it with an id not below the highest ever: no ghost takes over.
#[test]
fn a_primary_that_goes_leaves_none_until_one_claims_it() {
    let rig = Rig::bare();
    let primary = rig.session(Some(5));
    let mut backup = rig.session(Some(4));
    drop(primary);
    assert_eq!(backup.mastership(), (Code::NotFound, Some(5)));
    backup.arbitrate(DEVICE, "", Some(4));
    assert_eq!(backup.mastership(), (Code::NotFound, Some(5)));
    backup.arbitrate(DEVICE, "", Some(5));
    assert_eq!(backup.mastership(), (Code::Ok, Some(5)));
}

/// 16.2.1 Without an election id a controller is never primary, not even alone.
/// 5.4 The election id is left out while there has been no primary.
#[test]
fn without_an_election_id_nobody_is_primary() {
    let rig = Rig::bare();
    let mut session = rig.open();
    session.arbitrate(DEVICE, "", None);
    assert_eq!(session.mastership(), (Code::NotFound, None));
}

/// 16.2.1 Several controllers can do without an election id.
#[test]
fn several_controllers_can_do_without_an_election_id() {
    let rig = Rig::bare();
    let mut primary = rig.session(Some(1));
    for _ in 0..3 {
        let mut session = rig.open();
        session.arbitrate(DEVICE, "", None);
        assert_eq!(session.mastership(), (Code::AlreadyExists, Some(1)));
        std::mem::forget(session);
    }
    primary.is_quiet();
}

/// 16.2.1 An election id of 0 is one.
#[test]
fn the_election_id_zero_is_an_election_id() {
    let rig = Rig::bare();
    let mut session = rig.open();
    session.arbitrate(DEVICE, "", Some(0));
    assert_eq!(session.mastership(), (Code::Ok, Some(0)));
}

/// 16.2 Election ids have 128 bits.
#[test]
fn election_ids_have_128_bits() {
    let rig = Rig::bare();
    let mut low = rig.session(Some(u128::from(u64::MAX)));
    let mut high = rig.open();
    high.arbitrate(DEVICE, "", Some(1 << 64));
    assert_eq!(high.mastership(), (Code::Ok, Some(1 << 64)));
    assert_eq!(low.mastership(), (Code::AlreadyExists, Some(1 << 64)));
}

/// 5 Each role has a primary of its own; election ids of one role mean nothing to another.
#[test]
fn roles_have_their_own_primaries() {
    let rig = Rig::bare();
    let mut first = rig.session(Some(5));
    let mut second = rig.open();
    second.arbitrate(DEVICE, "other", Some(5));
    let update = second.arbitration();
    assert_eq!(update.role.unwrap().name, "other");
    assert_eq!(update.status.unwrap().code, 0);
    first.is_quiet();
}

/// 5.4 Notifications carry the role's config as the primary gave it last.
#[test]
fn notifications_carry_the_primarys_role_config() {
    let rig = Rig::bare();
    let config = prost_types::Any { type_url: "type.googleapis.com/stratum.P4RoleConfig".to_owned(), value: vec![] };
    let claim = |election, config| v1::MasterArbitrationUpdate {
        device_id: DEVICE,
        role: Some(v1::Role { name: "r".to_owned(), config, ..Default::default() }),
        election_id: Some(uint128(election)),
        ..Default::default()
    };
    let (mut primary, mut backup) = (rig.open(), rig.open());
    primary.claim(claim(2, Some(config.clone())));
    assert_eq!(primary.arbitration().role.unwrap().config, Some(config.clone()));
    backup.claim(claim(1, None));
    assert_eq!(backup.arbitration().role.unwrap().config, Some(config));
    // A change of the config by the primary is sent to all.
    primary.claim(claim(2, None));
    assert_eq!(primary.arbitration().role.unwrap().config, None);
    assert_eq!(backup.arbitration().role.unwrap().config, None);
}

/// 12 A write by anyone but the primary is PERMISSION_DENIED.
/// 12 Writes are known by device, role and election id, not by their connection.
#[test]
fn only_the_primary_writes() {
    let rig = Rig::new();
    let mut backup = rig.open();
    backup.arbitrate(DEVICE, "", Some(0));
    assert_eq!(backup.mastership().0, Code::AlreadyExists);
    let write = |device_id, role: &str, election: Option<u128>| {
        let request = v1::WriteRequest {
            device_id,
            role: role.to_owned(),
            election_id: election.map(uint128),
            ..Default::default()
        };
        rig.write_as(request).err().map(|failed| failed.code)
    };
    assert_eq!(write(DEVICE, "", Some(1)), None);
    assert_eq!(write(DEVICE, "", Some(0)), Some(Code::PermissionDenied));
    assert_eq!(write(DEVICE, "", Some(2)), Some(Code::PermissionDenied));
    assert_eq!(write(DEVICE, "", None), Some(Code::PermissionDenied));
}

/// 12 A write to an unknown device is NOT_FOUND for any client.
/// 12 A write of an unknown role is NOT_FOUND.
#[test]
fn writes_to_unknown_devices_and_of_unknown_roles_are_not_found() {
    let rig = Rig::new();
    let request = |device_id, role: &str| v1::WriteRequest {
        device_id,
        role: role.to_owned(),
        election_id: Some(uint128(99)),
        ..Default::default()
    };
    assert_eq!(rig.write_as(request(DEVICE + 1, "")).unwrap_err().code, Code::NotFound);
    assert_eq!(rig.write_as(request(0, "")).unwrap_err().code, Code::NotFound);
    assert_eq!(rig.write_as(request(DEVICE, "nobody")).unwrap_err().code, Code::NotFound);
}

/// 5.3 A primary that was replaced cannot write any more, and its successor can.
#[test]
fn a_replaced_primary_cannot_write() {
    let mut rig = Rig::new();
    let mut new = rig.session(Some(2));
    assert_eq!(rig.primary().mastership(), (Code::AlreadyExists, Some(2)));
    let write = |election| {
        let request =
            v1::WriteRequest { device_id: DEVICE, election_id: Some(uint128(election)), ..Default::default() };
        rig.write_as(request).err().map(|failed| failed.code)
    };
    assert_eq!(write(1), Some(Code::PermissionDenied));
    assert_eq!(write(2), None);
    new.is_quiet();
}

/// 5 Without a primary nobody writes: its id went with its stream.
#[test]
fn nobody_writes_when_the_primary_has_gone() {
    let rig = Rig::new();
    let mut backup = rig.session(Some(0));
    let successor = rig.session(Some(2));
    drop(successor);
    assert_eq!(backup.mastership().1, Some(2));
    assert_eq!(backup.mastership(), (Code::NotFound, Some(2)));
    let request = v1::WriteRequest { device_id: DEVICE, election_id: Some(uint128(2)), ..Default::default() };
    assert_eq!(rig.write_as(request).unwrap_err().code, Code::PermissionDenied);
}

/// 13 Reads need no stream and no election id.
#[test]
fn reads_need_no_stream() {
    let rig = Rig::new();
    let everything = v1::TableEntry::default();
    assert!(!rig.read(everything).is_empty());
}
