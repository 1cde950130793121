//! Sections 8.4.6 and 18.1, and what programs ask of entries: translated types, restrictions, references.

use crate::spec::rig::*;
use p4runtime_proto::v1;

const PROGRAM: &str = include_str!("../../p4/restrictions.p4");

#[track_caller]
fn refused(result: Result<(), Refused>) -> Refused {
    result.expect_err("this is refused")
}

fn text(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

fn exact(entry: v1::TableEntry, value: Vec<u8>) -> v1::TableEntry {
    entry.field(1, v1::field_match::FieldMatchType::Exact(v1::field_match::Exact { value }))
}

fn argument(action: v1::Action, value: Vec<u8>) -> v1::Action {
    v1::Action { params: vec![v1::action::Param { param_id: 1, value }], ..action }
}

/// 18.1 A translated match field and a translated parameter are written and read in the controller's form: numbers of
/// another width.
#[test]
fn numbers_are_translated_both_ways() {
    let rig = Rig::with(PROGRAM);
    let written = entry(&rig.info, "by_port").exact(1, 2).does(call(&rig.info, "to_port", &[3]));
    rig.insert(written.clone()).unwrap();
    assert_eq!(rig.entries(entry(&rig.info, "by_port")), [written]);
    assert_eq!(rig.through(2, &[7; 64]), Some(3));
}

/// 18.1 A number that stands for nothing in the data plane is refused.
#[test]
fn numbers_without_a_meaning_are_refused() {
    let rig = Rig::with(PROGRAM);
    let wide = entry(&rig.info, "by_port").exact(1, 0x200).does(call(&rig.info, "to_port", &[3]));
    let refused = refused(rig.insert(wide));
    assert!([Code::InvalidArgument, Code::OutOfRange, Code::NotFound].contains(&refused.code), "{refused:?}");
    assert!(refused.message.contains("0x0200"), "{}", refused.message);
}

/// 8.4.6 A type whose controller form is a text is written and read as a text.
#[test]
fn texts_are_translated_both_ways() {
    let rig = Rig::with(PROGRAM);
    let of =
        |name: &str, port| exact(entry(&rig.info, "by_name"), text(name)).does(call(&rig.info, "to_port", &[port]));
    rig.insert(of("red", 2)).unwrap();
    rig.insert(of("blue", 3)).unwrap();
    assert_eq!(refused(rig.insert(of("red", 3))).code, Code::AlreadyExists);
    assert_eq!(rig.entries(exact(entry(&rig.info, "by_name"), text("red"))), [of("red", 2)]);
    let classify = argument(call(&rig.info, "classify", &[]), text("blue"));
    let chosen = entry(&rig.info, "classes").exact(1, 7).does(classify);
    rig.insert(chosen.clone()).unwrap();
    assert_eq!(rig.entries(entry(&rig.info, "classes")), [chosen]);
    assert_eq!(rig.through(1, &[7; 64]), Some(3));
}

/// 18.1 Metadata of packets to and from the controller are in its form too.
/// 16.6 A value that stands for nothing in the data plane is refused, with the packet it is about.
#[test]
fn metadata_of_packets_is_translated() {
    use v1::stream_message_request::Update as Request;
    use v1::stream_message_response::Update as Response;
    let field = |metadata_id, value: Vec<u8>| v1::PacketMetadata { metadata_id, value };
    let mut rig = Rig::with(PROGRAM);
    let by_name = exact(entry(&rig.info, "by_name"), text("red")).does(call(&rig.info, "to_port", &[3]));
    rig.insert(by_name).unwrap();
    let out = |metadata| Request::Packet(v1::PacketOut { payload: vec![7; 64], metadata });
    rig.primary().send(out(vec![field(1, text("red")), field(2, vec![0, 0, 0, 2]), field(3, vec![0])]));
    assert_eq!(rig.sent().0, 3, "the program knows the packet's name");

    let classify = argument(call(&rig.info, "classify", &[]), text("blue"));
    rig.insert(entry(&rig.info, "classes").exact(1, 7).does(classify)).unwrap();
    let mut frame = vec![7; 64];
    frame[1] = 0xee;
    rig.send(2, &frame);
    match rig.primary().recv().expect("the stream goes on").update {
        Some(Response::Packet(packet)) => {
            let names: Vec<_> = packet.metadata.iter().map(|field| field.value.clone()).collect();
            assert_eq!(names, [vec![2], vec![0], text("blue")]);
            assert_eq!(packet.payload, frame);
        }
        other => panic!("no packet: {other:?}"),
    }
    rig.primary().send(out(vec![field(1, text("red")), field(2, vec![2, 0]), field(3, vec![0])]));
    let error = rig.primary().refused();
    assert!(error.message.contains("`port`"), "{}", error.message);
    assert!(matches!(error.details, Some(v1::stream_error::Details::PacketOut(_))));
}

/// The p4-constraints language: an entry that breaks `@entry_restriction` is INVALID_ARGUMENT, with the clause that
/// failed and the values it saw.
#[test]
fn entry_restrictions_are_kept() {
    let rig = Rig::with(PROGRAM);
    let of = |kind: u64, mask: u64| {
        let row = entry(&rig.info, "restricted").exact(1, kind).priority(1).does(call(&rig.info, "to_port", &[2]));
        if mask == 0 { row } else { row.ternary(2, 0, mask) }
    };
    rig.insert(of(7, 0xff)).unwrap();
    rig.insert(of(8, 0)).unwrap();
    let refused = refused(rig.insert(of(9, 0xff)));
    assert_eq!(refused.code, Code::InvalidArgument);
    assert!(refused.message.contains("second::mask != 0 -> first == 7"), "{}", refused.message);
    assert!(refused.message.contains("first is 0x9"), "{}", refused.message);
    assert_eq!(rig.entries(entry(&rig.info, "restricted")).len(), 2);
}

/// The p4-constraints language: an action that breaks `@action_restriction` is INVALID_ARGUMENT.
#[test]
fn action_restrictions_are_kept() {
    let rig = Rig::with(PROGRAM);
    let of = |port| entry(&rig.info, "by_port").exact(1, 2).does(call(&rig.info, "to_port", &[port]));
    let refused = refused(rig.insert(of(0)));
    assert_eq!(refused.code, Code::InvalidArgument);
    assert!(refused.message.contains("port != 0"), "{}", refused.message);
    rig.insert(of(1)).unwrap();
    let refused = rig.modify(of(0)).unwrap_err();
    assert_eq!(refused.code, Code::InvalidArgument);
}

/// SAI P4's convention: what `@refers_to` names has to exist when it is written, and to stay while it is named.
#[test]
fn references_are_kept() {
    let rig = Rig::with(PROGRAM);
    let route = |hop| entry(&rig.info, "routes").exact(1, 7).does(call(&rig.info, "via", &[hop]));
    let hop = |id| entry(&rig.info, "hops").exact(1, id).does(call(&rig.info, "to_port", &[2]));
    assert!(refused(rig.insert(route(5))).message.contains("refers to"));
    rig.insert(hop(5)).unwrap();
    rig.insert(route(5)).unwrap();
    let in_use = refused(rig.delete(hop(5)));
    assert_eq!(in_use.code, Code::FailedPrecondition);
    assert!(in_use.message.contains("in use by 1 reference"), "{}", in_use.message);
    rig.delete(route(5)).unwrap();
    rig.delete(hop(5)).unwrap();
}

/// References are those of what was written: a batch that is taken back leaves none.
#[test]
fn references_of_a_batch_that_failed_are_forgotten() {
    use v1::update::Type;
    let rig = Rig::with(PROGRAM);
    let update = |kind: Type, entry: v1::TableEntry| v1::Update { r#type: kind.into(), entity: Some(entry.entity()) };
    let hop = entry(&rig.info, "hops").exact(1, 5).does(call(&rig.info, "to_port", &[2]));
    let route = entry(&rig.info, "routes").exact(1, 7).does(call(&rig.info, "via", &[5]));
    rig.insert(hop.clone()).unwrap();
    let failing = v1::WriteRequest {
        device_id: DEVICE,
        election_id: Some(uint128(1)),
        atomicity: v1::write_request::Atomicity::RollbackOnError.into(),
        updates: vec![update(Type::Insert, route.clone()), update(Type::Insert, route)],
        ..Default::default()
    };
    assert!(rig.write_as(failing).is_err());
    rig.delete(hop).unwrap();
}

/// An invalid restriction is an error of the program, reported at its source position.
#[test]
fn mistakes_in_restrictions_refuse_the_program() {
    let rig = Rig::bare();
    let _primary = rig.session(Some(1));
    let wrong = PROGRAM.replace("port != 0", "prt != 0");
    let failed = rig.set(Action::VerifyAndCommit, Some(config(&wrong))).unwrap_err();
    assert_eq!(failed.code, Code::InvalidArgument);
    assert!(failed.message.contains("the action has no parameter `prt`"), "{}", failed.message);
}

/// The p4-constraints language: a key that is a string is 0 only if it is empty, and every number beside it counts as
/// 0.
#[test]
fn restrictions_on_strings_mean_what_p4_constraints_says() {
    let with = |restriction: &str| {
        let table = format!("@entry_restriction(\"{restriction}\") table by_name");
        Rig::with(&PROGRAM.replacen("table by_name", &table, 1))
    };
    let red = |rig: &Rig| exact(entry(&rig.info, "by_name"), text("red")).does(call(&rig.info, "to_port", &[2]));
    let rig = with("meta.name != 0; meta.name != 7");
    rig.insert(red(&rig)).unwrap();
    assert_eq!(rig.entries(entry(&rig.info, "by_name")), [red(&rig)]);
    let rig = with("meta.name == 7");
    let refused = refused(rig.insert(red(&rig)));
    assert_eq!(refused.code, Code::InvalidArgument);
    assert!(refused.message.contains("`meta.name == 7` does not hold: meta.name is \"red\""), "{}", refused.message);
}

/// A control plane cannot tell apart what the program gives one name: such a program is refused.
#[test]
fn programs_whose_instances_share_a_name_are_refused() {
    let rig = Rig::bare();
    let _primary = rig.session(Some(1));
    let part = "control Part(inout metadata_t m) {
                    @name(\".t\") table t { key = { m.port : exact; } actions = { NoAction; } }
                    apply { t.apply(); }
                }";
    let text = "#include <core.p4>
                #include <v1model.p4>
                struct headers_t { }
                struct metadata_t { bit<9> port; }
                parser P(packet_in p, out headers_t h, inout metadata_t m, inout standard_metadata_t s) {
                    state start { transition accept; }
                }
                PART
                control I(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
                    Part() one;
                    Part() two;
                    apply { one.apply(m); two.apply(m); }
                }
                control E(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) { apply { } }
                control C(inout headers_t h, inout metadata_t m) { apply { } }
                control D(packet_out p, in headers_t h) { apply { } }
                V1Switch(P(), C(), I(), E(), C(), D()) main;";
    let failed = rig.set(Action::VerifyAndCommit, Some(config(&text.replace("PART", part)))).unwrap_err();
    assert_eq!(failed.code, Code::InvalidArgument);
    assert!(failed.message.contains("the same name: `t`"), "{}", failed.message);
    let apart = text.replace("PART", &part.replace("@name(\".t\")", ""));
    rig.set(Action::VerifyAndCommit, Some(config(&apart))).unwrap();
}
