//! Headers that leave where they were, and others.

use crate::rig::{self, Rig, Way};

/// Returns a program whose parser extracts `b` after `a` if `a` is 1, and whose ingress and deparser are given.
fn source(second: &str, ingress: &str, deparser: &str) -> String {
    format!(
        "#include <core.p4>
#include <v1model.p4>
header h_t {{ bit<8> v; }}
struct headers {{ h_t a; h_t b; }}
struct metadata {{ }}
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {{
    state start {{ packet.extract(hdr.a); transition select(hdr.a.v) {{ 1: second; default: accept; }} }}
    state second {{ {second} transition accept; }}
}}
control V(inout headers hdr, inout metadata meta) {{ apply {{}} }}
control C(inout headers hdr, inout metadata meta) {{ apply {{}} }}
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {{
    apply {{ std.egress_spec = 2; {ingress} }}
}}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {{ apply {{}} }}
control D(packet_out packet, in headers hdr) {{ apply {{ {deparser} }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"
    )
}

const SECOND: &str = "packet.extract(hdr.b);";
const BOTH: &str = "packet.emit(hdr.a); packet.emit(hdr.b);";

/// Runs packets and returns whether those with one header, and those with two, stay in the kernel, and whether
/// packets can be handed over at all.
fn fast(second: &str, ingress: &str, deparser: &str) -> ([bool; 2], bool) {
    let program = rig::compile_text(&source(second, ingress, deparser), None).expect("a valid program");
    let mut rig = Rig::new(&program, |_, _| {});
    let ways = [0u8, 1].map(|first| rig.packet(0, &[first, 7, 8, 9]) != Way::HandedOver);
    // Too short for the second header.
    rig.packet(0, &[1]);
    rig.compare_counts();
    (ways, !rig.compiled.hand_overs.is_empty())
}

#[test]
fn headers_that_stay_are_never_handed_over() {
    assert_eq!(fast(SECOND, "", BOTH), ([true, true], false));
    assert_eq!(fast(SECOND, "hdr.a.v = hdr.a.v + 1; hdr.b.v = 3;", BOTH), ([true, true], false));
    assert_eq!(fast("", "", "packet.emit(hdr.a);"), ([true, true], false));
}

#[test]
fn headers_that_change_their_places_are_handed_over() {
    assert_eq!(fast(SECOND, "", "packet.emit(hdr.b); packet.emit(hdr.a);"), ([true, false], true), "another order");
    assert_eq!(fast(SECOND, "", "packet.emit(hdr.a);"), ([true, false], true), "one is missing");
    assert_eq!(fast(SECOND, "", "packet.emit(hdr.a); packet.emit(hdr.a);"), ([false, false], true), "one twice");
    assert_eq!(fast("packet.advance(8);", "", BOTH), ([true, false], true), "a byte is skipped");
    assert_eq!(fast("packet.extract(hdr.a);", "", BOTH), ([true, false], true), "extracted twice");
    assert_eq!(fast(SECOND, "hdr.b.setValid();", BOTH), ([false, true], true), "added");
    assert_eq!(fast(SECOND, "hdr.b.setInvalid();", BOTH), ([true, false], true), "removed");
    assert_eq!(fast(SECOND, "hdr.b = hdr.a;", BOTH), ([false, true], true), "copied");
    assert_eq!(
        fast(SECOND, "", "if (hdr.a.v == 0) { packet.emit(hdr.a); } packet.emit(hdr.b);"),
        ([true, false], true)
    );
}

/// Egress sees the length that the packet will have, and may drop it for that before the deparser runs.
#[test]
fn egress_that_reads_the_length_beside_changed_headers_is_handed_over() {
    let ways = |ingress: &str| {
        let egress = "if (std.packet_length > 3) { mark_to_drop(std); }";
        let empty = "std) { apply {} }\ncontrol D";
        let text =
            source(SECOND, ingress, BOTH).replacen(empty, &format!("std) {{ apply {{ {egress} }} }}\ncontrol D"), 1);
        assert!(text.contains(egress));
        let program = rig::compile_text(&text, None).expect("a valid program");
        let mut rig = Rig::new(&program, |_, _| {});
        let ways = [&[0u8, 7, 8][..], &[1, 7, 8, 9]].map(|data| rig.packet(0, data) != Way::HandedOver);
        rig.compare_counts();
        ways
    };
    assert_eq!(ways(""), [true, true], "the length is that of arrival");
    assert_eq!(ways("hdr.b.setInvalid();"), [false, false]);
    assert_eq!(ways("hdr.b = hdr.a;"), [false, false]);
}

/// A table whose entries have more arguments than scratch memory has words is not in the region.
#[test]
fn actions_of_thousands_of_parameters_are_handed_over() {
    let params: Vec<String> = (0..5_000).map(|number| format!("bit<8> p{number}")).collect();
    let table = format!(
        "inout standard_metadata_t std) {{\n    action many({}) {{ hdr.a.v = p0; }}\n    \
         table t {{ key = {{ hdr.a.v: exact; }} actions = {{ many; NoAction; }} size = 4; }}\n    apply {{ std.egress_spec",
        params.join(", ")
    );
    let text = source(SECOND, "t.apply();", BOTH);
    let text = text.replacen("inout standard_metadata_t std) {\n    apply { std.egress_spec", &table, 1);
    let program = rig::compile_text(&text, None).expect("a valid program");
    let mut rig = Rig::new(&program, |_, _| {});
    assert_eq!(rig.packet(0, &[0, 7]), Way::HandedOver);
}
