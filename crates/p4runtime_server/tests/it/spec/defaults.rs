//! Sections 9.1.3 to 9.1.5: default entries, constant tables, and entries that the program brings.

use crate::spec::batches::update;
use crate::spec::rig::*;
use crate::spec::tables::{forward, refused};
use p4runtime_proto::v1;
use v1::update::Type;

/// 9.1.3 The default entry is neither inserted nor deleted: INVALID_ARGUMENT.
#[test]
fn default_entries_are_only_modified() {
    let rig = Rig::new();
    let default = entry(&rig.info, "exact_t").does(forward(&rig)).default_action();
    assert_eq!(refused(rig.insert(default.clone())), Code::InvalidArgument);
    assert_eq!(refused(rig.delete(default)), Code::InvalidArgument);
}

/// 9.1.3 A default entry has neither match nor priority: INVALID_ARGUMENT.
#[test]
fn default_entries_have_no_key() {
    let rig = Rig::new();
    let default = || entry(&rig.info, "ternary_t").does(forward(&rig)).default_action();
    assert_eq!(refused(rig.modify(default().ternary(1, 1, 1))), Code::InvalidArgument);
    assert_eq!(refused(rig.modify(default().priority(1))), Code::InvalidArgument);
}

/// 9.1.3 The default action can be changed, and packets get it.
/// 9.1.3 Without an action it becomes what the program says, and its metadata goes.
#[test]
fn the_default_action_is_changed_and_reset() {
    let rig = Rig::new();
    let key = || entry(&rig.info, "exact_t").default_action();
    let original = rig.entries(key());
    assert_eq!(original, [key().does(call(&rig.info, "NoAction", &[]))]);
    let changed = v1::TableEntry { metadata: vec![1], controller_metadata: 2, ..key().does(forward(&rig)) };
    rig.modify(changed.clone()).unwrap();
    assert_eq!(rig.entries(key()), [changed]);
    assert_eq!(rig.through(1, &data(1, 0, 0, 0, 0)), Some(2));
    rig.modify(key()).unwrap();
    assert_eq!(rig.entries(key()), original);
}

/// 9.1.3 A constant default entry is PERMISSION_DENIED.
/// 9.1 Reads mark it with `is_const`, and others not; the mark cannot be written.
#[test]
fn a_constant_default_action_stays() {
    let rig = Rig::new();
    let default = entry(&rig.info, "const_default_t").default_action();
    assert_eq!(refused(rig.modify(default.clone().does(forward(&rig)))), Code::PermissionDenied);
    assert_eq!(refused(rig.modify(default.clone())), Code::PermissionDenied);
    let constant = rig.entries(default).remove(0);
    assert!(constant.is_const);
    assert_eq!(refused(rig.modify(constant)), Code::PermissionDenied);
    let other = rig.entries(entry(&rig.info, "exact_t").default_action()).remove(0);
    assert!(!other.is_const);
    assert_eq!(refused(rig.modify(v1::TableEntry { is_const: true, ..other })), Code::InvalidArgument);
}

/// 9.1.3 A table with a profile has a default entry that stays NoAction.
#[test]
fn the_default_action_of_a_profiles_table_stays() {
    let rig = Rig::new();
    for table in ["member_t", "group_t"] {
        let default = entry(&rig.info, table).default_action();
        assert!(rig.modify(default.clone().does(forward(&rig))).is_err(), "{table}");
        let read = rig.entries(default.clone());
        let constant = default.does(call(&rig.info, "NoAction", &[]));
        assert_eq!(read, [v1::TableEntry { is_const: true, ..constant }]);
    }
}

/// 9.1.4 A constant table is not written: PERMISSION_DENIED.
/// 9.1.4 Not even with the action that is there already.
#[test]
fn constant_tables_are_not_written() {
    let rig = Rig::new();
    let of = |value| entry(&rig.info, "const_t").ternary(1, value, 0xff).does(forward(&rig));
    assert_eq!(refused(rig.insert(of(0x77).priority(9))), Code::PermissionDenied);
    let there = rig.entries(entry(&rig.info, "const_t")).remove(0);
    let there = v1::TableEntry { is_const: false, ..there };
    assert_eq!(refused(rig.modify(there.clone())), Code::PermissionDenied);
    assert_eq!(refused(rig.delete(there)), Code::PermissionDenied);
}

/// 9.1.4 The default action of a constant table can be changed.
#[test]
fn the_default_action_of_a_constant_table_can_be_changed() {
    let rig = Rig::new();
    rig.modify(entry(&rig.info, "const_t").default_action().does(forward(&rig))).unwrap();
}

/// 9.1.4 Constant entries are read, with match, action, priority and `is_const`.
/// 9.1.4 Their priorities fall from the number of entries to 1.
#[test]
fn constant_entries_are_read() {
    let rig = Rig::new();
    let mut read = rig.entries(entry(&rig.info, "const_t"));
    read.sort_by_key(|entry| -entry.priority);
    let constant = |entry: v1::TableEntry| v1::TableEntry { is_const: true, ..entry };
    let of = |port| entry(&rig.info, "const_t").does(call(&rig.info, "forward", &[port]));
    let expected = [
        of(1).ternary(1, 0x11, 0xff).priority(3),
        of(2).ternary(1, 0x20, 0xf0).priority(2),
        entry(&rig.info, "const_t").does(call(&rig.info, "NoAction", &[])).priority(1),
    ];
    assert_eq!(read, expected.map(constant));
}

/// 9.1.5 Initial entries that are not constant are modified and deleted like others.
/// 9.1.5 Entries can be added beside them.
#[test]
fn initial_entries_are_changed_like_others() {
    let rig = Rig::new();
    let of = |value| entry(&rig.info, "pre_t").exact(1, value).does(forward(&rig));
    rig.modify(of(0xe2)).unwrap();
    rig.delete(of(0xe2)).unwrap();
    rig.insert(of(0xe3)).unwrap();
    let mut read = rig.entries(entry(&rig.info, "pre_t"));
    read.retain(|entry| *entry == of(0xe3));
    assert_eq!(read.len(), 1);
}

/// 9.1.5 Initial entries that are marked `const` themselves, in a table that is not constant, stay: PERMISSION_DENIED.
/// 9.1.5 They are read with `is_const`, the others without; a controller that sends one back gets the error that it is
/// constant.
#[test]
fn initial_entries_that_are_constant_stay() {
    let rig = Rig::new();
    let of = |value, port| entry(&rig.info, "pre_t").exact(1, value).does(call(&rig.info, "forward", &[port]));
    let constant = v1::TableEntry { is_const: true, ..of(0xe1, 1) };
    let written = || {
        let mut read = rig.entries(entry(&rig.info, "pre_t"));
        read.sort_by_key(|entry| format!("{:?}", entry.r#match));
        read
    };
    assert_eq!(written(), [constant.clone(), of(0xe2, 2)]);
    assert_eq!(refused(rig.modify(of(0xe1, 3))), Code::PermissionDenied);
    assert_eq!(refused(rig.modify(of(0xe1, 1))), Code::PermissionDenied, "not even with the action it has");
    assert_eq!(refused(rig.delete(of(0xe1, 1))), Code::PermissionDenied);
    assert_eq!(refused(rig.insert(of(0xe1, 3))), Code::AlreadyExists);
    // Sent back as it was read, it is as constant; only an insert is about the mark.
    assert_eq!(refused(rig.modify(constant.clone())), Code::PermissionDenied);
    assert_eq!(refused(rig.delete(constant.clone())), Code::PermissionDenied);
    assert_eq!(refused(rig.insert(constant.clone())), Code::InvalidArgument);
    let read = rig.entries(entry(&rig.info, "const_t")).remove(0);
    assert!(read.is_const);
    assert_eq!(refused(rig.delete(read)), Code::PermissionDenied);
    // What is there would go with a batch that does not leave it alone.
    assert!(rig.write(vec![update(Type::Delete, of(0xe2, 2)), update(Type::Delete, of(0xe1, 1))]).is_err());
    assert_eq!(written(), [constant]);
    assert_eq!(rig.through(1, &data(0, 0, 0, 0, 0xe1)), Some(1));
}
