//! Tests that packets that wait for rows run again as received, wherever their program changes headers.

use std::sync::Arc;

use compiler::Source;
use engine::RowState;
use ir::Op;
use switch::{Frame, RowSwitch};
use v1model::{Config, Switch, V1Model};

use crate::rows::{WAYS, Way, step};

/// A program that counts packets in a row. Each name in capitals is a place for a change of a header.
const PROGRAM: &str = r#"
#include <core.p4>
#include <v1model.p4>
header h_h { bit<8> row; bit<8> changes; bit<32> count; }
struct headers_t { h_h h; }
struct metadata_t { }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.h); PARSER transition accept; }
}
control Nothing(inout headers_t hdr, inout metadata_t meta) { apply {} }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    @resilient register<bit<32>>(16) seen;
    action change() { ACTION }
    table changes { key = { hdr.h.row: exact; } actions = { change; NoAction; } const entries = { 3: change; } }
    apply {
        bit<32> value;
        standard.egress_spec = 2;
        changes.apply();
        if (hdr.h.row == 3) { BRANCH }
        seen.read(value, (bit<32>) hdr.h.row);
        seen.write((bit<32>) hdr.h.row, value + 1);
        hdr.h.count = value + 1;
        AFTER
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<32>>(16) departures;
    apply {
        bit<32> value = 0;
        EGRESS
        hdr.h.count = hdr.h.count + value;
    }
}
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.h); } }
V1Switch(P(), Nothing(), I(), E(), Nothing(), D()) main;
"#;

const CHANGE: &str = "hdr.h.changes = hdr.h.changes + 1;";

/// The places, their statements, and whether the packet may have changed before it uses the row.
const PLACES: [(&str, &str, bool); 6] = [
    ("PARSER", CHANGE, true),
    ("ACTION", CHANGE, true),
    ("BRANCH", CHANGE, true),
    ("AFTER", CHANGE, false),
    ("AFTER", "", false),
    // The row is used once more, after the header has got its count.
    ("EGRESS", "departures.read(value, 3);", false),
];

fn program(place: &str, change: &str) -> Arc<ir::Program> {
    let mut text = PROGRAM.replace(place, change);
    for other in ["PARSER", "ACTION", "BRANCH", "AFTER", "EGRESS"] {
        text = text.replace(other, "");
    }
    Arc::new(compiler::expect_program(&Source::new("received.p4", &text), &V1Model).ir)
}

/// Returns the answer of a method of the code generator for ingress and egress.
fn changes_before(program: &ir::Program) -> bool {
    let named = |name: &str| program.bodies.iter().find(|(_, body)| body.name == name).expect("it is there").0;
    let bodies = ["P", "I", "E"].map(named);
    let groups = program.resilient_groups().expect("the annotations are right");
    let registers = groups.iter().flat_map(|group| group.registers.clone()).collect::<Vec<_>>();
    jit::changes_headers_before(program, &bodies, |op| match op {
        Op::RegisterRead(_, register, _) | Op::RegisterWrite(register, ..) => registers.contains(register),
        _ => false,
    })
}

#[test]
fn only_packets_that_may_have_changed_are_kept_as_received() {
    for (place, change, changes) in PLACES {
        assert_eq!(changes_before(&program(place, change)), changes, "{place}: {change}");
    }
    let text = PROGRAM
        .replace("EGRESS", "departures.write(3, 1);")
        .replace("register<bit<32>>(16) departures", "@resilient register<bit<32>>(16) departures");
    let text = ["PARSER", "ACTION", "BRANCH", "AFTER"].iter().fold(text, |text, place| text.replace(place, ""));
    let program = compiler::expect_program(&Source::new("received.p4", &text), &V1Model).ir;
    assert!(changes_before(&program), "egress uses a row of its own, behind the change of ingress");
}

#[test]
fn a_packet_that_waited_leaves_as_one_that_did_not() {
    for (place, change, _) in PLACES {
        for way in WAYS {
            waits(way, place, change);
        }
    }
}

fn waits(way: Way, place: &str, change: &str) {
    let new = || {
        let config = Config { executor: way.executor, ..Config::with_ports(5) };
        Switch::new(program(place, change), config).expect("the program fits the switch")
    };
    let (mut plain, mut owning) = (new(), new());
    owning.own_rows(8);
    for row in [3, 4] {
        let frame = Frame::new(1, [&[row, 7, 0, 0, 0, 9][..], &[0; 40]].concat());
        assert!(step(&mut owning, way, [frame.clone()]).is_empty(), "{way:?}, {place}: it waits");
        for row in owning.take_awaited() {
            owning.objects_mut().set_row_state(row, RowState::Owned);
            owning.resume(row);
        }
        let mut left = step(&mut owning, way, []);
        left.extend(owning.take_held().into_iter().map(|held| match held.output {
            switch::Output::Frame(frame) => frame,
            switch::Output::Notification(notification) => panic!("{notification:?}"),
        }));
        assert_eq!(left, step(&mut plain, way, [frame]), "{way:?}, {place}");
        assert_eq!(left.len(), 1);
    }
}
