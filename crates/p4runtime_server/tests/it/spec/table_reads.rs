//! Section 9.1.6: reads of table entries.

use crate::spec::rig::*;
use crate::spec::tables::{forward, one_of_each};
use p4runtime_proto::v1;

/// 9.1.6 The table id 0 reads all tables, constant ones too, without their default entries.
#[test]
fn all_tables_are_read_at_once() {
    let rig = Rig::new();
    one_of_each(&rig).into_iter().for_each(|entry| rig.insert(entry).unwrap());
    let read = rig.entries(v1::TableEntry::default());
    assert_eq!(read.len(), 5 + 3 + 2);
    assert!(read.iter().all(|entry| !entry.is_default_action));
}

/// 9.1.6 A match reads one entry.
/// 9.1.6 A match that is not there reads none, without an error.
#[test]
fn a_match_reads_one_entry() {
    let rig = Rig::new();
    let of = |value| entry(&rig.info, "exact_t").exact(1, value).does(forward(&rig));
    (1..4).for_each(|value| rig.insert(of(value)).unwrap());
    assert_eq!(rig.entries(entry(&rig.info, "exact_t").exact(1, 2)), [of(2)]);
    assert_eq!(rig.entries(entry(&rig.info, "exact_t").exact(1, 9)), []);
}

/// 9.1.6 A match in a read has to be one of the table.
#[test]
fn a_match_in_a_read_has_to_be_the_tables() {
    let rig = Rig::new();
    assert_eq!(rig.read_code(entry(&rig.info, "exact_t").exact(7, 2)), Code::InvalidArgument);
    assert_eq!(rig.read_code(entry(&rig.info, "exact_t").lpm(1, 2, 16)), Code::InvalidArgument);
}

/// 9.1.6 An action, a priority, metadata and controller metadata filter what is read.
#[test]
fn reads_are_filtered() {
    let rig = Rig::new();
    let all = || entry(&rig.info, "ternary_t");
    let of = |value, priority, action: &str, arguments: &[u64]| {
        all().ternary(1, value, 0xff).priority(priority).does(call(&rig.info, action, arguments))
    };
    let first = v1::TableEntry { metadata: vec![1], ..of(1, 5, "forward", &[2]) };
    let second = v1::TableEntry { controller_metadata: 9, ..of(2, 6, "drop", &[]) };
    rig.insert(first.clone()).unwrap();
    rig.insert(second.clone()).unwrap();
    let only_action = v1::Action { action_id: id(&rig.info, "drop"), ..Default::default() };
    assert_eq!(rig.entries(all().does(only_action)), std::slice::from_ref(&second));
    assert_eq!(rig.entries(all().priority(5)), std::slice::from_ref(&first));
    assert_eq!(rig.entries(all().priority(7)), []);
    assert_eq!(rig.entries(v1::TableEntry { metadata: vec![1], ..all() }), [first]);
    assert_eq!(rig.entries(v1::TableEntry { controller_metadata: 9, ..all() }), [second]);
    assert_eq!(rig.entries(v1::TableEntry { metadata: vec![2], ..all() }), []);
}

/// 9.1.6 `is_default_action` reads the default entry alone.
#[test]
fn the_default_entry_is_read_alone() {
    let rig = Rig::new();
    rig.insert(one_of_each(&rig).remove(0)).unwrap();
    let read = rig.entries(entry(&rig.info, "exact_t").default_action());
    assert_eq!(read.len(), 1);
    assert!(read[0].is_default_action);
    assert_eq!(read[0].r#match, []);
}
