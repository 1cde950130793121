//! Section 9.1, with 8.3 (byte strings): tables and their entries.

use crate::rig::*;
use p4runtime_proto::v1;
use p4runtime_proto::v1::field_match::FieldMatchType;

/// The code of what is refused.
#[track_caller]
fn refused(result: Result<(), Refused>) -> Code {
    let refused = result.expect_err("this is refused");
    assert!(!refused.message.is_empty(), "a refusal says why");
    refused.code
}

fn forward(rig: &Rig) -> v1::Action {
    call(&rig.info, "forward", &[2])
}

/// An entry of each table with a key of one kind; what is written comes back.
fn one_of_each(rig: &Rig) -> Vec<v1::TableEntry> {
    let of = |table| entry(&rig.info, table).does(forward(rig));
    vec![
        of("exact_t").exact(1, 0x1234),
        of("lpm_t").lpm(1, 0x0a00_0000, 8),
        of("ternary_t").ternary(1, 0x1200, 0xff00).ternary(2, 1, 1).priority(5),
        of("range_t").range(1, 3, 9).priority(5),
        of("optional_t").optional(1, 7).priority(5),
    ]
}

/// 8.2 What is written is read back as it was: every kind of match, priorities, actions with arguments.
/// 9.1 Entries are inserted and read.
#[test]
fn entries_of_every_kind_come_back_as_they_were_written() {
    let rig = Rig::new();
    for written in one_of_each(&rig) {
        rig.insert(written.clone()).unwrap();
        assert_eq!(rig.entries(v1::TableEntry { table_id: written.table_id, ..Default::default() }), [written]);
    }
}

/// 9.1 Entries do to packets what they say.
#[test]
fn entries_act_on_packets() {
    let rig = Rig::new();
    rig.insert(entry(&rig.info, "lpm_t").lpm(1, 0x0a00_0000, 8).does(call(&rig.info, "forward", &[2]))).unwrap();
    rig.insert(entry(&rig.info, "lpm_t").lpm(1, 0x0a01_0000, 16).does(call(&rig.info, "forward", &[4]))).unwrap();
    assert_eq!(rig.through(1, &data(0, 0, 0x0a02_0304, 0, 0)), Some(2));
    assert_eq!(rig.through(1, &data(0, 0, 0x0a01_0304, 0, 0)), Some(4));
}

/// 9.1 An entry that is there already is ALREADY_EXISTS, and stays as it was.
#[test]
fn what_is_there_cannot_be_inserted() {
    let rig = Rig::new();
    for written in one_of_each(&rig) {
        rig.insert(written.clone()).unwrap();
        let again = v1::TableEntry { metadata: vec![1], ..written.clone() };
        assert_eq!(refused(rig.insert(again)), Code::AlreadyExists);
        assert_eq!(rig.entries(v1::TableEntry { table_id: written.table_id, ..Default::default() }), [written]);
    }
}

/// 12 Modifying or deleting what is not there is NOT_FOUND.
#[test]
fn what_is_not_there_cannot_be_changed() {
    let rig = Rig::new();
    for entry in one_of_each(&rig) {
        assert_eq!(refused(rig.modify(entry.clone())), Code::NotFound);
        assert_eq!(refused(rig.delete(entry)), Code::NotFound);
    }
}

/// 9.1 Match and priority say which entry it is.
#[test]
fn the_priority_is_part_of_the_key() {
    let rig = Rig::new();
    let of = |priority| entry(&rig.info, "ternary_t").ternary(1, 1, 1).priority(priority).does(forward(&rig));
    rig.insert(of(5)).unwrap();
    rig.insert(of(6)).unwrap();
    assert_eq!(refused(rig.delete(of(7))), Code::NotFound);
    rig.delete(of(5)).unwrap();
    assert_eq!(rig.entries(entry(&rig.info, "ternary_t")), [of(6)]);
}

/// 9.1 Several entries may have one priority.
#[test]
fn entries_share_priorities() {
    let rig = Rig::new();
    for value in 0..4 {
        rig.insert(entry(&rig.info, "ternary_t").ternary(1, value, 0xff).priority(5).does(forward(&rig))).unwrap();
    }
    assert_eq!(rig.entries(entry(&rig.info, "ternary_t")).len(), 4);
}

/// 9.1 A higher number wins.
#[test]
fn a_higher_priority_wins() {
    let rig = Rig::new();
    let of = |mask, priority, port| {
        let entry = entry(&rig.info, "ternary_t").ternary(1, 0x1200 & mask, mask).priority(priority);
        entry.does(call(&rig.info, "forward", &[port]))
    };
    rig.insert(of(0xff00, 5, 2)).unwrap();
    rig.insert(of(0xf000, 6, 3)).unwrap();
    assert_eq!(rig.through(1, &data(0, 0x1200, 0, 0, 0)), Some(3));
    rig.delete(of(0xf000, 6, 3)).unwrap();
    assert_eq!(rig.through(1, &data(0, 0x1200, 0, 0, 0)), Some(2));
}

/// 9.1 A key with a ternary, range or optional match needs a priority other than 0: INVALID_ARGUMENT.
/// 9.1 A key without one has none: INVALID_ARGUMENT.
#[test]
fn priorities_are_where_they_are_needed_and_nowhere_else() {
    let rig = Rig::new();
    for entry in one_of_each(&rig) {
        let wrong = v1::TableEntry { priority: if entry.priority == 0 { 1 } else { 0 }, ..entry.clone() };
        assert_eq!(refused(rig.insert(wrong.clone())), Code::InvalidArgument, "{wrong:?}");
        let negative = v1::TableEntry { priority: -1, ..entry };
        assert_eq!(refused(rig.insert(negative)), Code::InvalidArgument);
    }
}

/// 8.1.1 The id 0 is none: INVALID_ARGUMENT in a write.
/// 9.1 A table that P4Info does not have cannot be written.
#[test]
fn a_table_has_to_exist() {
    let rig = Rig::new();
    let nothing = v1::TableEntry::default().does(forward(&rig));
    assert_eq!(refused(rig.insert(nothing.clone())), Code::InvalidArgument);
    let unknown = refused(rig.insert(v1::TableEntry { table_id: 0x02ff_ffff, ..nothing.clone() }));
    assert!([Code::NotFound, Code::InvalidArgument].contains(&unknown));
    // An action is no table.
    let action = refused(rig.insert(v1::TableEntry { table_id: id(&rig.info, "forward"), ..nothing }));
    assert!([Code::NotFound, Code::InvalidArgument].contains(&action));
}

/// 9.1 DELETE looks at the key only, whatever else there is.
#[test]
fn deleting_looks_at_the_key_only() {
    let rig = Rig::new();
    for written in one_of_each(&rig) {
        rig.insert(written.clone()).unwrap();
        let nonsense = v1::Action { action_id: 77, params: Vec::new() };
        let key = v1::TableEntry { metadata: vec![9], idle_timeout_ns: -5, ..written.clone() }.does(nonsense);
        rig.delete(key).unwrap();
        rig.insert(written.clone()).unwrap();
        rig.delete(v1::TableEntry { action: None, ..written }).unwrap();
    }
}

/// 9.1 A table without a key has no entries but the default one: INVALID_ARGUMENT.
#[test]
fn a_keyless_table_takes_no_entries() {
    let rig = Rig::new();
    assert_eq!(refused(rig.insert(entry(&rig.info, "keyless_t").does(forward(&rig)))), Code::InvalidArgument);
}

/// 9.1 A table has room for as many entries as the program says; one more is RESOURCE_EXHAUSTED, and one that goes makes
/// room.
#[test]
fn a_full_table_is_exhausted() {
    let rig = Rig::new();
    let of = |value| entry(&rig.info, "exact_t").exact(1, value).does(forward(&rig));
    let insert = |value: u64| v1::Update { r#type: v1::update::Type::Insert.into(), entity: Some(of(value).entity()) };
    let room = fill(&rig, insert);
    assert_eq!(room, 8, "the program says so");
    rig.delete(of(3)).unwrap();
    rig.insert(of(room)).unwrap();
    assert_eq!(refused(rig.insert(of(3))), Code::ResourceExhausted);
}

/// 9.1 `is_const` in a write is INVALID_ARGUMENT.
#[test]
fn writes_cannot_make_constants() {
    let rig = Rig::new();
    let written = one_of_each(&rig).remove(0);
    let constant = v1::TableEntry { is_const: true, ..written.clone() };
    assert_eq!(refused(rig.insert(constant.clone())), Code::InvalidArgument);
    rig.insert(written).unwrap();
    assert_eq!(refused(rig.modify(constant.clone())), Code::InvalidArgument);
    assert_eq!(refused(rig.delete(constant)), Code::InvalidArgument);
}

/// 9.1 `metadata` and `controller_metadata` come back.
#[test]
fn metadata_comes_back() {
    let rig = Rig::new();
    let written = one_of_each(&rig).remove(0);
    let with = v1::TableEntry { metadata: vec![0, 1, 0xff], controller_metadata: u64::MAX, ..written };
    rig.insert(with.clone()).unwrap();
    assert_eq!(rig.entries(entry(&rig.info, "exact_t")), std::slice::from_ref(&with));
    let changed = v1::TableEntry { metadata: vec![7], controller_metadata: 0, ..with };
    rig.modify(changed.clone()).unwrap();
    assert_eq!(rig.entries(entry(&rig.info, "exact_t")), [changed]);
}

/// 9.1.1 What matches everything is left out: a mask of 0, a prefix of length 0, a full range are INVALID_ARGUMENT.
#[test]
fn what_matches_everything_is_left_out() {
    let rig = Rig::new();
    let of = |table: &str| entry(&rig.info, table).does(forward(&rig));
    assert_eq!(refused(rig.insert(of("lpm_t").lpm(1, 0, 0))), Code::InvalidArgument);
    assert_eq!(refused(rig.insert(of("ternary_t").ternary(1, 0, 0).priority(1))), Code::InvalidArgument);
    assert_eq!(refused(rig.insert(of("range_t").range(1, 0, 0xffff).priority(1))), Code::InvalidArgument);
    rig.insert(of("lpm_t")).unwrap();
    rig.insert(of("ternary_t").priority(1)).unwrap();
    rig.insert(of("range_t").priority(1)).unwrap();
    rig.insert(of("optional_t").priority(1)).unwrap();
    assert_eq!(rig.entries(entry(&rig.info, "ternary_t")), [of("ternary_t").priority(1)]);
}

/// 9.1.1 An exact field cannot be left out: INVALID_ARGUMENT.
#[test]
fn exact_fields_have_to_be_there() {
    let rig = Rig::new();
    assert_eq!(refused(rig.insert(entry(&rig.info, "exact_t").does(forward(&rig)))), Code::InvalidArgument);
}

/// 9.1.1 A field that the table does not have is INVALID_ARGUMENT.
/// 9.1.1 A field that stands twice is INVALID_ARGUMENT.
/// 9.1.1 A field without a match is INVALID_ARGUMENT.
#[test]
fn fields_are_those_of_the_table_once_each() {
    let rig = Rig::new();
    let of = || entry(&rig.info, "exact_t").does(forward(&rig));
    assert_eq!(refused(rig.insert(of().exact(1, 1).exact(2, 1))), Code::InvalidArgument);
    assert_eq!(refused(rig.insert(of().exact(0, 1))), Code::InvalidArgument);
    assert_eq!(refused(rig.insert(of().exact(1, 1).exact(1, 2))), Code::InvalidArgument);
    let mut nothing = of();
    nothing.r#match.push(v1::FieldMatch { field_id: 1, field_match_type: None });
    assert_eq!(refused(rig.insert(nothing)), Code::InvalidArgument);
}

/// 9.1.1 A match of another kind than the field's is INVALID_ARGUMENT.
#[test]
fn matches_are_of_the_fields_kind() {
    let rig = Rig::new();
    let of = |table: &str| entry(&rig.info, table).does(forward(&rig));
    for wrong in [
        of("exact_t").lpm(1, 1, 16),
        of("exact_t").ternary(1, 1, 1),
        of("exact_t").optional(1, 1),
        of("lpm_t").exact(1, 1),
        of("lpm_t").range(1, 1, 2),
        of("ternary_t").exact(1, 1).priority(1),
        of("range_t").exact(1, 1).priority(1),
        of("optional_t").exact(1, 1).priority(1),
    ] {
        assert_eq!(refused(rig.insert(wrong.clone())), Code::InvalidArgument, "{wrong:?}");
    }
    let any = prost_types::Any { type_url: "type.googleapis.com/example.Match".to_owned(), value: Vec::new() };
    let other = of("exact_t").field(1, FieldMatchType::Other(any));
    assert!([Code::InvalidArgument, Code::Unimplemented].contains(&refused(rig.insert(other))));
}

/// 9.1.1 Bits behind an LPM prefix are 0: INVALID_ARGUMENT otherwise.
/// 9.1.1 A prefix is no longer than its field, and not negative: INVALID_ARGUMENT.
#[test]
fn prefixes_are_well_formed() {
    let rig = Rig::new();
    let of = |value, length| entry(&rig.info, "lpm_t").lpm(1, value, length).does(forward(&rig));
    assert_eq!(refused(rig.insert(of(0x0a00_0001, 8))), Code::InvalidArgument);
    assert_eq!(refused(rig.insert(of(0x0a00_0001, 33))), Code::InvalidArgument);
    assert_eq!(refused(rig.insert(of(0, -1))), Code::InvalidArgument);
    rig.insert(of(0x0a00_0001, 32)).unwrap();
}

/// 9.1.1 Bits outside a ternary mask are 0: INVALID_ARGUMENT otherwise.
#[test]
fn values_have_no_bits_outside_their_mask() {
    let rig = Rig::new();
    let of = |value, mask| entry(&rig.info, "ternary_t").ternary(1, value, mask).priority(1).does(forward(&rig));
    assert_eq!(refused(rig.insert(of(0x1201, 0xff00))), Code::InvalidArgument);
    assert_eq!(refused(rig.insert(of(0x1200, 0xff))), Code::InvalidArgument);
    rig.insert(of(0x1200, 0xff00)).unwrap();
}

/// 9.1.1 The low end of a range is not above the high one: INVALID_ARGUMENT.
#[test]
fn ranges_go_upwards() {
    let rig = Rig::new();
    let of = |low, high| entry(&rig.info, "range_t").range(1, low, high).priority(1).does(forward(&rig));
    assert_eq!(refused(rig.insert(of(9, 3))), Code::InvalidArgument);
    rig.insert(of(3, 3)).unwrap();
    rig.insert(of(0, 0xfffe)).unwrap();
}

/// 8.3 A value that needs more bits than its field has is OUT_OF_RANGE.
/// 8.3 An empty value is OUT_OF_RANGE.
#[test]
fn values_fit_their_fields() {
    let rig = Rig::new();
    let of = |table: &str| entry(&rig.info, table).does(forward(&rig));
    assert_eq!(refused(rig.insert(of("exact_t").exact(1, 0x1_0000))), Code::OutOfRange);
    assert_eq!(refused(rig.insert(of("optional_t").optional(1, 0x100).priority(1))), Code::OutOfRange);
    assert_eq!(refused(rig.insert(of("ternary_t").ternary(2, 0, 0x1ff).priority(1))), Code::OutOfRange);
    assert_eq!(refused(rig.insert(of("range_t").range(1, 0, 0x1_0000).priority(1))), Code::OutOfRange);
    assert_eq!(refused(rig.insert(of("lpm_t").lpm(1, 0x1_0000_0000, 8))), Code::OutOfRange);
    let exact = v1::field_match::Exact { value: Vec::new() };
    assert_eq!(refused(rig.insert(of("exact_t").field(1, FieldMatchType::Exact(exact)))), Code::OutOfRange);
    let wide = entry(&rig.info, "exact_t").exact(1, 1).does(call(&rig.info, "forward", &[0x200]));
    assert_eq!(refused(rig.insert(wide)), Code::OutOfRange);
}

/// 8.3 Zeros in front of a number are accepted, as many as there are.
/// 8.3 What is read has as few bytes as possible.
/// 8.2 An entry is the same however its numbers are written.
#[test]
fn zeros_in_front_are_accepted_and_not_given_back() {
    let rig = Rig::new();
    let padded = |bytes: &[u8]| {
        let exact = v1::field_match::Exact { value: bytes.to_vec() };
        entry(&rig.info, "exact_t").field(1, FieldMatchType::Exact(exact)).does(v1::Action {
            action_id: id(&rig.info, "forward"),
            params: vec![v1::action::Param { param_id: 1, value: vec![0, 0, 0, 0, 2] }],
        })
    };
    rig.insert(padded(&[0, 0, 0, 0, 0, 0x63])).unwrap();
    assert_eq!(
        rig.entries(entry(&rig.info, "exact_t")),
        [entry(&rig.info, "exact_t").exact(1, 0x63).does(forward(&rig))]
    );
    assert_eq!(refused(rig.insert(padded(&[0x63]))), Code::AlreadyExists);
    rig.delete(padded(&[0, 0x63])).unwrap();
    rig.insert(padded(&[0, 0, 0])).unwrap();
    assert_eq!(rig.entries(entry(&rig.info, "exact_t"))[0].r#match, entry(&rig.info, "exact_t").exact(1, 0).r#match);
}

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
#[test]
fn a_constant_default_action_stays() {
    let rig = Rig::new();
    let default = entry(&rig.info, "const_default_t").default_action();
    assert_eq!(refused(rig.modify(default.clone().does(forward(&rig)))), Code::PermissionDenied);
    assert_eq!(refused(rig.modify(default)), Code::PermissionDenied);
}

/// 9.1.3 A table with a profile has a default entry that stays NoAction.
#[test]
fn the_default_action_of_a_profiles_table_stays() {
    let rig = Rig::new();
    for table in ["member_t", "group_t"] {
        let default = entry(&rig.info, table).default_action();
        assert!(rig.modify(default.clone().does(forward(&rig))).is_err(), "{table}");
        let read = rig.entries(default.clone());
        assert_eq!(read, [default.does(call(&rig.info, "NoAction", &[]))]);
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

/// 9.1.8 The idle timeout comes back as it was set.
#[test]
fn idle_timeouts_come_back() {
    let rig = Rig::new();
    let of = |idle_timeout_ns| v1::TableEntry {
        idle_timeout_ns,
        ..entry(&rig.info, "idle_t").exact(1, 1).does(call(&rig.info, "NoAction", &[]))
    };
    rig.insert(of(5_000_000_001)).unwrap();
    assert_eq!(rig.entries(entry(&rig.info, "idle_t")), [of(5_000_000_001)]);
    rig.modify(of(0)).unwrap();
    assert_eq!(rig.entries(entry(&rig.info, "idle_t")), [of(0)]);
}

/// 9.1.8 `time_since_last_hit` is in the answer if and only if it is in the request, timeout or not.
#[test]
fn the_time_since_the_last_hit_is_told_when_asked_for() {
    let rig = Rig::new();
    rig.insert(entry(&rig.info, "idle_t").exact(1, 1).does(call(&rig.info, "NoAction", &[]))).unwrap();
    assert_eq!(rig.entries(entry(&rig.info, "idle_t"))[0].time_since_last_hit, None);
    let ask = v1::TableEntry {
        time_since_last_hit: Some(v1::table_entry::IdleTimeout::default()),
        ..entry(&rig.info, "idle_t")
    };
    std::thread::sleep(std::time::Duration::from_millis(20));
    let elapsed = rig.entries(ask)[0].time_since_last_hit.expect("it was asked for").elapsed_ns;
    assert!(elapsed >= 15_000_000, "{elapsed}");
}

/// 9.1.8 A table without idle timeouts takes neither a timeout nor `time_since_last_hit`: INVALID_ARGUMENT.
/// 9.1.8 `time_since_last_hit` is not written: INVALID_ARGUMENT.
#[test]
fn timeouts_are_for_tables_that_have_them() {
    let rig = Rig::new();
    let hit = Some(v1::table_entry::IdleTimeout::default());
    let exact = one_of_each(&rig).remove(0);
    let wrong = |entry| refused(rig.insert(entry));
    assert_eq!(wrong(v1::TableEntry { idle_timeout_ns: 1, ..exact.clone() }), Code::InvalidArgument);
    assert_eq!(wrong(v1::TableEntry { time_since_last_hit: hit, ..exact }), Code::InvalidArgument);
    let idle = entry(&rig.info, "idle_t").exact(1, 1).does(call(&rig.info, "NoAction", &[]));
    assert_eq!(wrong(v1::TableEntry { time_since_last_hit: hit, ..idle.clone() }), Code::InvalidArgument);
    assert_eq!(wrong(v1::TableEntry { idle_timeout_ns: -1, ..idle }), Code::InvalidArgument);
    let ask = v1::TableEntry { time_since_last_hit: hit, ..entry(&rig.info, "exact_t") };
    assert_eq!(rig.read_code(ask), Code::InvalidArgument);
}

/// 9.1.8 Default entries have no timeout: INVALID_ARGUMENT.
#[test]
fn default_entries_have_no_timeout() {
    let rig = Rig::new();
    let default = entry(&rig.info, "idle_t").default_action().does(call(&rig.info, "NoAction", &[]));
    let timeout = v1::TableEntry { idle_timeout_ns: 1, ..default.clone() };
    assert_eq!(refused(rig.modify(timeout)), Code::InvalidArgument);
    let hit = v1::TableEntry { time_since_last_hit: Some(v1::table_entry::IdleTimeout::default()), ..default };
    assert_eq!(refused(rig.modify(hit)), Code::InvalidArgument);
}
