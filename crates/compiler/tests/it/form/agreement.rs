//! A P4Info beside a program that is not the one that it describes.

use compiler::agree;
use p4runtime_proto::config::p4_data_type_spec::TypeSpec;
use p4runtime_proto::config::{
    Digest, P4DataTypeSpec, P4Info, P4NamedType, P4StructTypeSpec, P4TypeInfo, Preamble, Register,
    p4_struct_type_spec::Member,
};

use super::{program, programs};

/// What is said of a program with a P4Info that was changed.
fn mismatch(name: &str, change: impl FnOnce(&mut P4Info)) -> String {
    let found = program(name);
    let mut info = found.program.p4info.clone();
    change(&mut info);
    assert_ne!(info, found.program.p4info, "there is something to change");
    agree(&found.program.ir, &info).expect_err("it does not fit").to_string()
}

#[test]
fn p4info_of_the_compiler_agrees_with_the_ir() {
    for program in programs() {
        assert_eq!(agree(&program.program.ir, &program.program.p4info), Ok(()), "{}", program.source);
    }
}

#[test]
fn other_fields_are_noticed() {
    let table = |info: &mut P4Info| info.tables.iter().position(|table| !table.match_fields.is_empty()).unwrap();
    let wider = mismatch("router.p4", |info| {
        let at = table(info);
        info.tables[at].match_fields[0].bitwidth += 1;
    });
    assert!(wider.contains("the match field `hdr."), "{wider}");
    let fewer = mismatch("router.p4", |info| {
        let at = table(info);
        info.tables[at].match_fields.pop();
    });
    assert!(fewer.contains("the match fields of table"), "{fewer}");
    let huge = mismatch("router.p4", |info| {
        let at = table(info);
        info.tables[at].match_fields[0].bitwidth = i32::MIN;
    });
    assert!(huge.contains("-2147483648 bits"), "{huge}");
}

#[test]
fn other_actions_are_noticed() {
    let with_params = |info: &P4Info| info.actions.iter().position(|action| !action.params.is_empty()).unwrap();
    let fewer = mismatch("router.p4", |info| {
        let at = with_params(info);
        info.actions[at].params.pop();
    });
    assert!(fewer.contains("the parameters of action"), "{fewer}");
    let missing = mismatch("router.p4", |info| info.actions.clear());
    assert!(missing.contains("the actions of table"), "{missing}");
    let twice = mismatch("router.p4", |info| {
        let id = info.actions[0].preamble.as_ref().unwrap().id;
        info.tables[0].preamble.as_mut().unwrap().id = id;
    });
    assert!(twice.contains("a missing or duplicate name or id"), "{twice}");
}

#[test]
fn another_profile_is_noticed() {
    let none = mismatch("action_selector.p4", |info| info.action_profiles.clear());
    assert!(none.contains("the action profile of table"), "{none}");
}

#[test]
fn another_digest_is_noticed() {
    let other = mismatch("digest.p4", |info| {
        let spec = TypeSpec::Bool(Default::default());
        info.digests[0].type_spec = Some(P4DataTypeSpec { type_spec: Some(spec) });
    });
    assert!(other.contains("the fields of digest"), "{other}");
}

/// Sixty types, each twice the one before: a value of the last would have 2^60 parts.
#[test]
fn types_without_an_end_are_refused() {
    let named = |at: u32| P4DataTypeSpec { type_spec: Some(TypeSpec::Struct(P4NamedType { name: format!("s{at}") })) };
    for base in [Vec::new(), vec![named(59)]] {
        let member = |spec| Member { name: "m".to_owned(), type_spec: Some(spec) };
        let twice = |at| P4StructTypeSpec {
            members: vec![member(named(at)), member(named(at))],
            annotations: vec![],
            ..Default::default()
        };
        let mut structs: std::collections::BTreeMap<_, _> =
            (1..60).map(|at| (format!("s{at}"), twice(at - 1))).collect();
        let members = base.into_iter().map(member).collect();
        structs.insert("s0".to_owned(), P4StructTypeSpec { members, ..Default::default() });
        let why = mismatch("router.p4", |info| {
            info.type_info = Some(P4TypeInfo { structs, ..Default::default() });
            let preamble = info.tables[0]
                .preamble
                .clone()
                .map(|preamble| p4runtime_proto::config::Preamble { id: 0x1600_0001, ..preamble });
            info.registers.push(Register { preamble, type_spec: Some(named(59)), ..Default::default() });
        });
        assert!(why.contains("too many parts"), "{why}");
    }
}

/// Digests that name one struct of the maximum size: a short P4Info that means many parts.
#[test]
fn digests_share_a_limit_of_parts() {
    let found = program("router.p4");
    let mut info = found.program.p4info.clone();
    let spec = |spec| P4DataTypeSpec { type_spec: Some(spec) };
    let flag = Member { name: "m".to_owned(), type_spec: Some(spec(TypeSpec::Bool(Default::default()))) };
    let wide = P4StructTypeSpec { members: vec![flag; 1 << 16], annotations: vec![], ..Default::default() };
    info.type_info.get_or_insert_default().structs.insert("wide".to_owned(), wide);
    let digest = |at: u32| Digest {
        preamble: Some(Preamble { id: 0x1700_0000 + at, name: format!("d{at}"), ..Default::default() }),
        type_spec: Some(spec(TypeSpec::Struct(P4NamedType { name: "wide".to_owned() }))),
    };
    info.digests = (1..=15).map(digest).collect();
    assert_eq!(agree(&found.program.ir, &info), Ok(()));
    info.digests.extend((16..=17).map(digest));
    let refused = agree(&found.program.ir, &info).expect_err("they are too many").to_string();
    assert!(refused.contains("too many parts"), "{refused}");
}
