//! Section 9.2: members, groups, one-shot sets.

use crate::spec::rig::*;
use p4runtime_proto::v1;
use p4runtime_proto::v1::table_action::Type;

#[track_caller]
fn refused(result: Result<(), Refused>) -> Code {
    result.expect_err("this is refused").code
}

fn member(rig: &Rig, profile: &str, member_id: u32, port: u64) -> v1::ActionProfileMember {
    let action = Some(call(&rig.info, "forward", &[port]));
    v1::ActionProfileMember { action_profile_id: id(&rig.info, profile), member_id, action }
}

fn in_group(member_id: u32, weight: i32) -> v1::action_profile_group::Member {
    v1::action_profile_group::Member { member_id, weight, ..Default::default() }
}

fn group(rig: &Rig, group_id: u32, members: &[(u32, i32)]) -> v1::ActionProfileGroup {
    let members = members.iter().map(|(id, weight)| in_group(*id, *weight)).collect();
    v1::ActionProfileGroup { action_profile_id: id(&rig.info, "selector"), group_id, members, ..Default::default() }
}

fn one_shot(rig: &Rig, actions: &[(u64, i32)]) -> v1::ActionProfileActionSet {
    let one = |(port, weight): &(u64, i32)| v1::ActionProfileAction {
        action: Some(call(&rig.info, "forward", &[*port])),
        weight: *weight,
        ..Default::default()
    };
    v1::ActionProfileActionSet { action_profile_actions: actions.iter().map(one).collect(), ..Default::default() }
}

fn row(rig: &Rig, table: &str, kind: Type) -> v1::TableEntry {
    entry(&rig.info, table).exact(1, 1).action(kind)
}

fn members(entities: Vec<v1::Entity>) -> Vec<v1::ActionProfileMember> {
    let one = |entity: v1::Entity| match entity.entity {
        Some(v1::entity::Entity::ActionProfileMember(member)) => member,
        other => panic!("no member: {other:?}"),
    };
    entities.into_iter().map(one).collect()
}

fn groups(entities: Vec<v1::Entity>) -> Vec<v1::ActionProfileGroup> {
    let one = |entity: v1::Entity| match entity.entity {
        Some(v1::entity::Entity::ActionProfileGroup(group)) => group,
        other => panic!("no group: {other:?}"),
    };
    entities.into_iter().map(one).collect()
}

/// 9.2.1 Members are inserted, modified, read and deleted.
#[test]
fn members_live() {
    let rig = Rig::new();
    rig.insert(member(&rig, "profile", 1, 2)).unwrap();
    assert_eq!(members(rig.read(member(&rig, "profile", 1, 0))), [member(&rig, "profile", 1, 2)]);
    rig.modify(member(&rig, "profile", 1, 3)).unwrap();
    assert_eq!(members(rig.read(member(&rig, "profile", 1, 0))), [member(&rig, "profile", 1, 3)]);
    rig.delete(v1::ActionProfileMember { action: None, ..member(&rig, "profile", 1, 0) }).unwrap();
    assert_eq!(rig.read(member(&rig, "profile", 0, 0)), []);
}

/// 9.2.1 A member that is there is ALREADY_EXISTS; one that is not is NOT_FOUND, modified or deleted.
#[test]
fn members_exist_or_do_not() {
    let rig = Rig::new();
    assert_eq!(refused(rig.modify(member(&rig, "profile", 1, 2))), Code::NotFound);
    assert_eq!(refused(rig.delete(member(&rig, "profile", 1, 2))), Code::NotFound);
    rig.insert(member(&rig, "profile", 1, 2)).unwrap();
    assert_eq!(refused(rig.insert(member(&rig, "profile", 1, 3))), Code::AlreadyExists);
}

/// 9.2.1 A member has an action: INVALID_ARGUMENT otherwise.
/// 9.2.1 The action is one of the profile's tables: INVALID_ARGUMENT otherwise.
#[test]
fn members_have_an_action_of_their_tables() {
    let rig = Rig::new();
    let without = v1::ActionProfileMember { action: None, ..member(&rig, "profile", 1, 2) };
    assert_eq!(refused(rig.insert(without.clone())), Code::InvalidArgument);
    let other = v1::ActionProfileMember { action: Some(call(&rig.info, "drop", &[])), ..without.clone() };
    assert_eq!(refused(rig.insert(other)), Code::InvalidArgument);
    rig.insert(member(&rig, "profile", 1, 2)).unwrap();
    assert_eq!(refused(rig.modify(without)), Code::InvalidArgument);
}

/// 9.2.1 More members than there is room for are RESOURCE_EXHAUSTED; there is room for the profile's size.
#[test]
fn a_full_profile_is_exhausted() {
    let rig = Rig::new();
    let insert = |id: u64| v1::Update {
        r#type: v1::update::Type::Insert.into(),
        entity: Some(member(&rig, "profile", id as u32 + 1, 2).entity()),
    };
    let room = fill(&rig, insert);
    assert!(room >= 4, "{room}");
}

/// 9.2.1 The member id 0 is none; a profile has to exist.
#[test]
fn ids_of_members_and_profiles_are_not_zero() {
    let rig = Rig::new();
    assert_eq!(refused(rig.insert(member(&rig, "profile", 0, 2))), Code::InvalidArgument);
    let nowhere = v1::ActionProfileMember { action_profile_id: 0, ..member(&rig, "profile", 1, 2) };
    assert_eq!(refused(rig.insert(nowhere)), Code::InvalidArgument);
}

/// 9.1.2 A member or group that is not there is NOT_FOUND in an entry.
#[test]
fn entries_refer_to_what_is_there() {
    let rig = Rig::new();
    assert_eq!(refused(rig.insert(row(&rig, "member_t", Type::ActionProfileMemberId(1)))), Code::NotFound);
    assert_eq!(refused(rig.insert(row(&rig, "group_t", Type::ActionProfileGroupId(1)))), Code::NotFound);
    rig.insert(member(&rig, "profile", 1, 2)).unwrap();
    let written = row(&rig, "member_t", Type::ActionProfileMemberId(1));
    rig.insert(written.clone()).unwrap();
    assert_eq!(rig.entries(entry(&rig.info, "member_t")), [written]);
    assert_eq!(rig.through(1, &data(1, 0, 0, 0, 0)), Some(2));
}

/// 9.2.1 Modifying a member changes what its entries and groups do.
#[test]
fn a_members_change_reaches_entries_and_groups() {
    let rig = Rig::new();
    rig.insert(member(&rig, "selector", 1, 2)).unwrap();
    rig.insert(group(&rig, 9, &[(1, 1)])).unwrap();
    rig.insert(row(&rig, "group_t", Type::ActionProfileGroupId(9))).unwrap();
    assert_eq!(rig.through(1, &data(1, 0, 0, 0, 0)), Some(2));
    rig.modify(member(&rig, "selector", 1, 4)).unwrap();
    assert_eq!(rig.through(1, &data(1, 0, 0, 0, 0)), Some(4));
}

/// 9.2.1 A member that a group or an entry uses cannot be deleted: FAILED_PRECONDITION.
/// 9.2.2 A group that an entry uses cannot be deleted: FAILED_PRECONDITION.
#[test]
fn what_is_in_use_cannot_be_deleted() {
    let rig = Rig::new();
    rig.insert(member(&rig, "selector", 1, 2)).unwrap();
    rig.insert(group(&rig, 9, &[(1, 1)])).unwrap();
    assert_eq!(refused(rig.delete(member(&rig, "selector", 1, 2))), Code::FailedPrecondition);
    let by_group = row(&rig, "group_t", Type::ActionProfileGroupId(9));
    rig.insert(by_group.clone()).unwrap();
    assert_eq!(refused(rig.delete(group(&rig, 9, &[]))), Code::FailedPrecondition);
    rig.delete(by_group).unwrap();
    rig.delete(group(&rig, 9, &[])).unwrap();
    let by_member = row(&rig, "group_t", Type::ActionProfileMemberId(1));
    rig.insert(by_member.clone()).unwrap();
    assert_eq!(refused(rig.delete(member(&rig, "selector", 1, 2))), Code::FailedPrecondition);
    rig.delete(by_member).unwrap();
    rig.delete(member(&rig, "selector", 1, 2)).unwrap();
}

/// 9.2.1 The ids 0 read all members of all profiles, or of one.
/// 9.2.2 The ids 0 read all groups of all selectors, or of one.
#[test]
fn members_and_groups_are_read_together() {
    let rig = Rig::new();
    rig.insert(member(&rig, "profile", 1, 2)).unwrap();
    rig.insert(member(&rig, "selector", 1, 3)).unwrap();
    rig.insert(member(&rig, "selector", 2, 4)).unwrap();
    rig.insert(group(&rig, 7, &[(1, 1)])).unwrap();
    rig.insert(group(&rig, 8, &[(1, 1), (2, 2)])).unwrap();
    assert_eq!(rig.read(v1::ActionProfileMember::default()).len(), 3);
    assert_eq!(rig.read(member(&rig, "selector", 0, 0)).len(), 2);
    assert_eq!(rig.read(v1::ActionProfileGroup::default()).len(), 2);
    assert_eq!(groups(rig.read(group(&rig, 8, &[]))), [group(&rig, 8, &[(1, 1), (2, 2)])]);
}

/// 9.2.2 Groups are inserted, modified and deleted; one that is there is ALREADY_EXISTS, one that is not NOT_FOUND.
/// 9.2.2 Ids of groups and of members are apart.
#[test]
fn groups_live() {
    let rig = Rig::new();
    rig.insert(member(&rig, "selector", 1, 2)).unwrap();
    assert_eq!(refused(rig.modify(group(&rig, 1, &[(1, 1)]))), Code::NotFound);
    assert_eq!(refused(rig.delete(group(&rig, 1, &[]))), Code::NotFound);
    rig.insert(group(&rig, 1, &[(1, 1)])).unwrap();
    assert_eq!(refused(rig.insert(group(&rig, 1, &[(1, 1)]))), Code::AlreadyExists);
    rig.modify(group(&rig, 1, &[(1, 5)])).unwrap();
    assert_eq!(groups(rig.read(group(&rig, 1, &[]))), [group(&rig, 1, &[(1, 5)])]);
    rig.delete(group(&rig, 1, &[])).unwrap();
    assert_eq!(rig.read(group(&rig, 0, &[])), []);
}

/// 9.2.2 Members of a group exist: NOT_FOUND otherwise.
#[test]
fn groups_are_of_members_that_exist() {
    let rig = Rig::new();
    assert_eq!(refused(rig.insert(group(&rig, 1, &[(1, 1)]))), Code::NotFound);
    rig.insert(group(&rig, 1, &[])).unwrap();
    assert_eq!(refused(rig.modify(group(&rig, 1, &[(1, 1)]))), Code::NotFound);
}

/// 9.2.2 A group has a member once.
#[test]
fn groups_have_a_member_once() {
    let rig = Rig::new();
    rig.insert(member(&rig, "selector", 1, 2)).unwrap();
    assert_eq!(refused(rig.insert(group(&rig, 1, &[(1, 1), (1, 2)]))), Code::InvalidArgument);
}

/// 9.2.2 A weight of 0, or below, is INVALID_ARGUMENT.
#[test]
fn weights_are_positive() {
    let rig = Rig::new();
    rig.insert(member(&rig, "selector", 1, 2)).unwrap();
    for weight in [0, -1] {
        assert_eq!(refused(rig.insert(group(&rig, 1, &[(1, weight)]))), Code::InvalidArgument);
        let set = Type::ActionProfileActionSet(one_shot(&rig, &[(2, weight)]));
        assert_eq!(refused(rig.insert(row(&rig, "group_t", set))), Code::InvalidArgument);
    }
}

/// 9.2.2 A profile without a selector has no groups.
#[test]
fn only_selectors_have_groups() {
    let rig = Rig::new();
    let wrong = v1::ActionProfileGroup { action_profile_id: id(&rig.info, "profile"), ..group(&rig, 1, &[]) };
    assert_eq!(refused(rig.insert(wrong)), Code::InvalidArgument);
}

/// 9.2.2 The maximal size of a group is not changed: INVALID_ARGUMENT.
/// 9.2.3 The maximal size, where it is given, comes back and is kept to: RESOURCE_EXHAUSTED.
#[test]
fn the_maximal_size_of_a_group_stays() {
    let rig = Rig::new();
    (1..=3).for_each(|id| rig.insert(member(&rig, "selector", id, 2)).unwrap());
    let sized = |max_size, members: &[(u32, i32)]| v1::ActionProfileGroup { max_size, ..group(&rig, 1, members) };
    rig.insert(sized(2, &[(1, 1)])).unwrap();
    assert_eq!(groups(rig.read(group(&rig, 1, &[]))), [sized(2, &[(1, 1)])]);
    assert_eq!(refused(rig.modify(sized(3, &[(1, 1)]))), Code::InvalidArgument);
    let beyond = refused(rig.modify(sized(2, &[(1, 1), (2, 1), (3, 1)])));
    assert!([Code::ResourceExhausted, Code::InvalidArgument].contains(&beyond), "{beyond:?}");
    assert_eq!(refused(rig.modify(sized(-1, &[]))), Code::InvalidArgument);
}

/// 9.2.2 A watch port is one of the switch's: INVALID_ARGUMENT otherwise.
/// 9.2.2 Watch ports come back.
#[test]
fn watch_ports_are_ports_of_the_switch() {
    let rig = Rig::new();
    rig.insert(member(&rig, "selector", 1, 2)).unwrap();
    let watching = |port: &[u8]| {
        let watch = v1::action_profile_group::member::WatchKind::WatchPort(port.to_vec());
        let member = v1::action_profile_group::Member { watch_kind: Some(watch), ..in_group(1, 1) };
        v1::ActionProfileGroup { members: vec![member], ..group(&rig, 1, &[]) }
    };
    assert_eq!(refused(rig.insert(watching(&[77]))), Code::InvalidArgument);
    rig.insert(watching(&[2])).unwrap();
    assert_eq!(groups(rig.read(group(&rig, 1, &[]))), [watching(&[2])]);
}

/// 9.2.2 `watch`, by which older clients number the port, means the same and comes back as it was sent.
#[expect(deprecated, reason = "older clients number the port")]
#[test]
fn watch_ports_may_be_numbers() {
    let rig = Rig::new();
    rig.insert(member(&rig, "selector", 1, 2)).unwrap();
    let watching = |port: i32| {
        let watch = v1::action_profile_group::member::WatchKind::Watch(port);
        let member = v1::action_profile_group::Member { watch_kind: Some(watch), ..in_group(1, 1) };
        v1::ActionProfileGroup { members: vec![member], ..group(&rig, 1, &[]) }
    };
    for none in [77, -1] {
        assert_eq!(refused(rig.insert(watching(none))), Code::InvalidArgument);
    }
    rig.insert(watching(2)).unwrap();
    assert_eq!(groups(rig.read(group(&rig, 1, &[]))), [watching(2)]);
}

/// 9.2.4 An entry takes a set of actions in one message, and it comes back as it was sent.
/// 9.2.4 Equal actions of a set stay apart.
#[test]
fn one_shot_sets_come_back_as_they_were_sent() {
    let rig = Rig::new();
    let set = one_shot(&rig, &[(2, 1), (3, 2), (2, 1)]);
    let written = row(&rig, "group_t", Type::ActionProfileActionSet(set));
    rig.insert(written.clone()).unwrap();
    assert_eq!(rig.entries(entry(&rig.info, "group_t")), std::slice::from_ref(&written));
    assert!([Some(2), Some(3)].contains(&rig.through(1, &data(1, 0, 7, 0, 0))));
    let changed = row(&rig, "group_t", Type::ActionProfileActionSet(one_shot(&rig, &[(4, 1)])));
    rig.modify(changed.clone()).unwrap();
    assert_eq!(rig.entries(entry(&rig.info, "group_t")), [changed]);
    assert_eq!(rig.through(1, &data(1, 0, 7, 0, 0)), Some(4));
    rig.delete(written).unwrap();
    assert_eq!(rig.entries(entry(&rig.info, "group_t")), []);
}

/// 9.2.4 The members and groups behind a set are not seen.
#[test]
fn one_shot_sets_show_no_members_and_groups() {
    let rig = Rig::new();
    let set = one_shot(&rig, &[(2, 1), (3, 2)]);
    rig.insert(row(&rig, "group_t", Type::ActionProfileActionSet(set))).unwrap();
    assert_eq!(rig.read(v1::ActionProfileMember::default()), []);
    assert_eq!(rig.read(v1::ActionProfileGroup::default()), []);
}

/// 9.2.4 A selector is programmed with sets or with members and groups, not with both: INVALID_ARGUMENT.
#[test]
fn a_selector_is_programmed_in_one_style() {
    let rig = Rig::new();
    let set = Type::ActionProfileActionSet(one_shot(&rig, &[(2, 1)]));
    rig.insert(member(&rig, "selector", 1, 2)).unwrap();
    assert_eq!(refused(rig.insert(row(&rig, "group_t", set.clone()))), Code::InvalidArgument);
    rig.delete(member(&rig, "selector", 1, 2)).unwrap();
    rig.insert(row(&rig, "group_t", set)).unwrap();
    assert_eq!(refused(rig.insert(member(&rig, "selector", 1, 2))), Code::InvalidArgument);
    assert_eq!(refused(rig.insert(group(&rig, 1, &[]))), Code::InvalidArgument);
}

/// 9.2.4 The actions of a set are the table's: INVALID_ARGUMENT otherwise.
#[test]
fn the_actions_of_a_set_are_the_tables() {
    let rig = Rig::new();
    let mut set = one_shot(&rig, &[(2, 1)]);
    set.action_profile_actions[0].action = Some(call(&rig.info, "pair", &[1, 1]));
    assert_eq!(
        refused(rig.insert(row(&rig, "group_t", Type::ActionProfileActionSet(set.clone())))),
        Code::InvalidArgument
    );
    set.action_profile_actions[0].action = None;
    assert_eq!(refused(rig.insert(row(&rig, "group_t", Type::ActionProfileActionSet(set)))), Code::InvalidArgument);
}

/// 9.2.4 The selector's own mode and size semantics are taken as the default; others answer UNIMPLEMENTED.
#[test]
fn other_selection_modes_are_not_implemented() {
    let rig = Rig::new();
    let mut set = one_shot(&rig, &[(2, 1)]);
    set.action_selection_mode = v1::action_profile_action_set::ActionSelectionMode::Random.into();
    let code = refused(rig.insert(row(&rig, "group_t", Type::ActionProfileActionSet(set))));
    assert!([Code::Unimplemented, Code::InvalidArgument].contains(&code), "{code:?}");
}

/// 9.2.5 Members of one group may have different actions.
/// 9.2.5 An empty group is allowed, and its packets go on without an action.
#[test]
fn groups_may_be_mixed_or_empty() {
    let rig = Rig::new();
    rig.insert(member(&rig, "selector", 1, 2)).unwrap();
    let drop = v1::ActionProfileMember { action: Some(call(&rig.info, "drop", &[])), ..member(&rig, "selector", 2, 0) };
    rig.insert(drop).unwrap();
    rig.insert(group(&rig, 1, &[(1, 1), (2, 1)])).unwrap();
    rig.insert(group(&rig, 2, &[])).unwrap();
    rig.insert(row(&rig, "group_t", Type::ActionProfileGroupId(2))).unwrap();
    rig.insert(entry(&rig.info, "exact_t").exact(1, 1).does(call(&rig.info, "forward", &[3]))).unwrap();
    assert_eq!(rig.through(1, &data(1, 0, 0, 0, 0)), Some(3));
}
