//! Section 9.1.2: what entries do.

use crate::spec::rig::*;
use crate::spec::tables::{forward, refused};
use p4runtime_proto::v1;

/// 9.1.2 An insertion names an action: INVALID_ARGUMENT otherwise.
/// 9.1.2 A modification without one leaves the action as it is.
#[test]
fn insertions_name_an_action_and_modifications_may() {
    let rig = Rig::new();
    let key = entry(&rig.info, "exact_t").exact(1, 1);
    assert_eq!(refused(rig.insert(key.clone())), Code::InvalidArgument);
    let empty = v1::TableEntry { action: Some(v1::TableAction { r#type: None }), ..key.clone() };
    assert_eq!(refused(rig.insert(empty)), Code::InvalidArgument);
    rig.insert(key.clone().does(forward(&rig))).unwrap();
    rig.modify(v1::TableEntry { metadata: vec![1], ..key.clone() }).unwrap();
    let kept = v1::TableEntry { metadata: vec![1], ..key.does(forward(&rig)) };
    assert_eq!(rig.entries(entry(&rig.info, "exact_t")), [kept]);
}

/// 9.1.2 A modification replaces the action.
#[test]
fn modifying_replaces_the_action() {
    let rig = Rig::new();
    let of = |port| entry(&rig.info, "exact_t").exact(1, 1).does(call(&rig.info, "forward", &[port]));
    rig.insert(of(2)).unwrap();
    rig.modify(of(3)).unwrap();
    assert_eq!(rig.entries(entry(&rig.info, "exact_t")), [of(3)]);
    assert_eq!(rig.through(1, &data(1, 0, 0, 0, 0)), Some(3));
}

/// 9.1.2 A direct table takes actions, not members, groups or sets: INVALID_ARGUMENT.
/// 9.1.2 A table with a profile takes no plain action: INVALID_ARGUMENT.
#[test]
fn the_action_is_of_the_tables_form() {
    use v1::table_action::Type;
    let rig = Rig::new();
    let key = |table: &str| entry(&rig.info, table).exact(1, 1);
    let set = v1::ActionProfileActionSet::default();
    for kind in [Type::ActionProfileMemberId(1), Type::ActionProfileGroupId(1), Type::ActionProfileActionSet(set)] {
        assert_eq!(refused(rig.insert(key("exact_t").action(kind))), Code::InvalidArgument);
    }
    assert_eq!(refused(rig.insert(key("member_t").does(forward(&rig)))), Code::InvalidArgument);
    assert_eq!(refused(rig.insert(key("group_t").does(forward(&rig)))), Code::InvalidArgument);
    assert_eq!(refused(rig.insert(key("member_t").action(Type::ActionProfileGroupId(1)))), Code::InvalidArgument);
}

/// 9.1.2 An action that the table does not have is INVALID_ARGUMENT.
#[test]
fn the_action_is_one_of_the_tables() {
    let rig = Rig::new();
    let of = |action| entry(&rig.info, "exact_t").exact(1, 1).does(action);
    assert_eq!(refused(rig.insert(of(call(&rig.info, "count_hit", &[])))), Code::InvalidArgument);
    assert_eq!(
        refused(rig.insert(of(v1::Action { action_id: 0x01ff_ffff, ..Default::default() }))),
        Code::InvalidArgument
    );
    assert_eq!(refused(rig.insert(of(v1::Action::default()))), Code::InvalidArgument);
}

/// 9.1.2 An action that may only be the default one, or not the default one, is PERMISSION_DENIED elsewhere.
#[test]
fn actions_stay_in_their_scope() {
    let rig = Rig::new();
    let of = |action: &str, arguments: &[u64]| entry(&rig.info, "scoped_t").does(call(&rig.info, action, arguments));
    assert_eq!(refused(rig.insert(of("drop", &[]).exact(1, 1))), Code::PermissionDenied);
    assert_eq!(refused(rig.modify(of("forward", &[1]).default_action())), Code::PermissionDenied);
    rig.insert(of("forward", &[1]).exact(1, 1)).unwrap();
    rig.modify(of("drop", &[]).default_action()).unwrap();
}

/// 9.1.2 Every parameter has one value: a missing, an extra, a repeated one is INVALID_ARGUMENT.
#[test]
fn every_parameter_has_one_value() {
    let rig = Rig::new();
    let of = |ids: &[u32]| {
        let param = |id: &u32| v1::action::Param { param_id: *id, value: vec![1] };
        let action = v1::Action { action_id: id(&rig.info, "pair"), params: ids.iter().map(param).collect() };
        entry(&rig.info, "exact_t").exact(1, 1).does(action)
    };
    for wrong in [&[][..], &[1], &[2], &[1, 2, 3], &[1, 1], &[1, 2, 2], &[0, 1]] {
        assert_eq!(refused(rig.insert(of(wrong))), Code::InvalidArgument, "{wrong:?}");
    }
    // Their order says nothing.
    rig.insert(of(&[2, 1])).unwrap();
}
