//! Sections 9.1.1 and 8.3: match fields and their values.

use crate::spec::rig::*;
use crate::spec::tables::{forward, refused};
use p4runtime_proto::v1;
use p4runtime_proto::v1::field_match::FieldMatchType;

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

/// 9.1.1 Bits after an LPM prefix are 0: INVALID_ARGUMENT otherwise.
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
