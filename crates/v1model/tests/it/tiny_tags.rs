//! Tests the place of a tiny packet program among VLAN tags, with a P4 program that pushes tags.

use std::sync::Arc;

use compiler::Source;
use switch::{Frame, PortId};
use v1model::{Config, Switch, TinySettings, V1Model};
use wire::ethernet;
use wire::tpp::{ETHERTYPE, Packet, find};

use crate::rows::{WAYS, Way, step};
use crate::tiny::assembled;

/// Pushes as many tags, of at most two, as the last byte of the destination says.
const PROGRAM: &str = r#"
#include <core.p4>
#include <v1model.p4>
header ethernet_h { bit<40> destination; bit<8> pushed; bit<48> source; bit<16> kind; }
header tag_h { bit<16> tag; bit<16> kind; }
struct headers_t { ethernet_h ethernet; tag_h outer; tag_h inner; }
struct metadata_t { }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.ethernet); transition accept; }
}
control Nothing(inout headers_t hdr, inout metadata_t meta) { apply {} }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 2;
        if (hdr.ethernet.pushed > 0) {
            hdr.inner.setValid();
            hdr.inner.tag = 0x0bb1;
            hdr.inner.kind = hdr.ethernet.kind;
            hdr.ethernet.kind = 0x8100;
        }
        if (hdr.ethernet.pushed > 1) {
            hdr.outer.setValid();
            hdr.outer.tag = 0x0bb2;
            hdr.outer.kind = 0x8100;
            hdr.ethernet.kind = 0x88a8;
        }
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply {} }
control D(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr.ethernet); packet.emit(hdr.outer); packet.emit(hdr.inner); }
}
V1Switch(P(), Nothing(), I(), E(), Nothing(), D()) main;
"#;

fn switch(way: Way, settings: Option<TinySettings>) -> Switch {
    let program = Arc::new(compiler::expect_program(&Source::new("tags.p4", PROGRAM), &V1Model).ir);
    let config = Config { executor: way.executor, ..Config::with_ports(4) };
    let mut switch = Switch::new(program, config).expect("the program fits the switch");
    switch.set_tiny_programs(settings);
    switch
}

/// Returns tags before `inner`, and the EtherType that announces them.
fn tagged(tags: usize, inner: u16, rest: &[u8]) -> (u16, Vec<u8>) {
    (0..tags).fold((inner, rest.to_vec()), |(kind, rest), tag| {
        (ethernet::VLAN, [&[0, tag as u8][..], &kind.to_be_bytes(), &rest].concat())
    })
}

/// Returns a frame with tags before and after a program, or without the program.
fn frame(pushed: u8, outer: usize, behind: usize, has_program: bool) -> Frame {
    let (mut kind, mut rest) = tagged(behind, ethernet::IPV4, b"the payload");
    if has_program {
        let mut program = assembled("PUSH [Switch:ID]\n");
        program.repr.encapsulated = kind;
        (kind, rest) = (ETHERTYPE, program.packet(&rest));
    }
    let (ethertype, rest) = tagged(outer, kind, &rest);
    let [destination, source] = [pushed, 1].map(|last| ethernet::Address([2, 0, 0, 0, 0, last]));
    Frame { port: PortId(1), data: ethernet::Repr { destination, source, ethertype }.packet(&rest) }
}

fn sent(switch: &mut Switch, way: Way, frame: Frame) -> Vec<u8> {
    let mut left = step(switch, way, [frame]);
    assert_eq!(left.len(), 1, "{:?}", switch.registry().render());
    left.remove(0).data
}

/// A program keeps the tags that followed it behind it. Tags that the P4 program pushes are before it, as far as
/// there are at most four.
#[test]
fn a_program_keeps_its_place_among_tags() {
    for way in WAYS {
        let mut switch = switch(way, Some(TinySettings::new(77, false)));
        for (pushed, outer, behind) in
            (0..3).flat_map(|pushed| (0..5).flat_map(move |outer| (0..6).map(move |behind| (pushed, outer, behind))))
        {
            let case = format!("{pushed} pushed, {outer} before, {behind} behind");
            let data = sent(&mut switch, way, frame(pushed, outer, behind, true));
            let place = find(&data).unwrap_or_else(|| panic!("the program is there: {case}"));
            assert_eq!(place.start, 14 + 4 * (outer + usize::from(pushed)).min(4), "{case}");
            let packet = Packet::new_checked(&data[place.start..]).expect("a correct program");
            assert!(packet.is_checksum_right(), "{case}");
            assert_eq!((packet.hop(), &packet.memory()[..4]), (1, &[0, 0, 0, 77][..]), "{case}");
            // Without the program the frame is the one that leaves if there is none.
            let mut rest = data.clone();
            rest[place.start - 2..place.start].copy_from_slice(&packet.encapsulated().to_be_bytes());
            rest.drain(place.start..place.start + packet.length());
            assert_eq!(rest, sent(&mut switch, way, frame(pushed, outer, behind, false)), "{case}");
        }
    }
}

/// A frame whose program is after more than four tags is an ordinary frame.
#[test]
fn a_program_after_five_tags_is_not_executed() {
    for way in WAYS {
        let [with, without] = [Some(TinySettings::new(77, false)), None].map(|settings| {
            let mut switch = switch(way, settings);
            [0, 1, 2].map(|pushed| sent(&mut switch, way, frame(pushed, 5, 1, true)))
        });
        assert_eq!(with, without);
    }
}
