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
/// packets can be handed over at all. Only cuts of less than 16 bytes may be: two bytes may be removed.
fn fast(second: &str, ingress: &str, deparser: &str) -> ([bool; 2], bool) {
    let program = rig::compile_text(&source(second, ingress, deparser), None).expect("a valid program");
    let mut rig = Rig::new(&program, |_, _| {});
    let ways = [0u8, 1].map(|first| {
        let data: Vec<u8> = [first].into_iter().chain(7..26).collect();
        for length in 1..data.len() {
            let way = rig.packet(0, &data[..length]);
            assert!(length < 16 || way != Way::HandedOver, "{length} bytes");
        }
        rig.packet(0, &data) != Way::HandedOver
    });
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
fn headers_that_change_their_places_stay_in_the_kernel() {
    for (second, ingress, deparser) in [
        (SECOND, "", "packet.emit(hdr.b); packet.emit(hdr.a);"),
        (SECOND, "", "packet.emit(hdr.a);"),
        (SECOND, "", ""),
        (SECOND, "", "packet.emit(hdr.a); packet.emit(hdr.a);"),
        ("packet.advance(8);", "", BOTH),
        ("packet.extract(hdr.a);", "", BOTH),
        (SECOND, "hdr.b.setValid();", BOTH),
        (SECOND, "hdr.b.setInvalid();", BOTH),
        (SECOND, "hdr.a.setInvalid(); hdr.b.setInvalid();", BOTH),
        (SECOND, "hdr.b = hdr.a;", BOTH),
        (SECOND, "", "if (hdr.a.v == 0) { packet.emit(hdr.a); } packet.emit(hdr.b);"),
    ] {
        assert_eq!(fast(second, ingress, deparser), ([true, true], true), "{second} {ingress} {deparser}");
    }
}

/// Frames of less than 14 bytes have no room for their start to move.
#[test]
fn packets_of_less_than_14_bytes_are_handed_over() {
    let program = rig::compile_text(&source(SECOND, "hdr.b.setInvalid();", BOTH), None).expect("a valid program");
    let mut rig = Rig::new(&program, |_, _| {});
    for (length, is_fast) in [(14, false), (15, true)] {
        let mut data = vec![7; length];
        data[0] = 1;
        assert_eq!(rig.packet(0, &data) != Way::HandedOver, is_fast, "{length} bytes");
        assert_ne!(rig.packet(0, &vec![0; length]), Way::HandedOver, "nothing is removed");
    }
    rig.compare_counts();
}

/// Egress sees the length that the packet will have, and may drop it for that before the deparser runs.
#[test]
fn egress_reads_the_length_of_changed_headers() {
    let ways = |ingress: &str| {
        let egress = "if (std.packet_length > 20) { mark_to_drop(std); }";
        let empty = "std) { apply {} }\ncontrol D";
        let text =
            source(SECOND, ingress, BOTH).replacen(empty, &format!("std) {{ apply {{ {egress} }} }}\ncontrol D"), 1);
        assert!(text.contains(egress));
        let program = rig::compile_text(&text, None).expect("a valid program");
        let mut rig = Rig::new(&program, |_, _| {});
        let ways = [[0u8; 20], [1; 20]].map(|data| match rig.packet(0, &data) {
            Way::Sent { data, .. } => data.len(),
            Way::Dropped => 0,
            Way::HandedOver => panic!("handed over"),
        });
        rig.compare_counts();
        ways
    };
    assert_eq!(ways(""), [20, 20], "the length is that of arrival");
    assert_eq!(ways("hdr.b.setInvalid();"), [20, 19]);
    assert_eq!(ways("hdr.b = hdr.a;"), [0, 20]);
    assert_eq!(ways("h_t t; t.setValid(); t.v = 9; hdr.b = t;"), [0, 20], "headers of a body alone do not count");
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
