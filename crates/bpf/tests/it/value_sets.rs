//! Value sets: parsers in the kernel match the same members as the switch.

use bits::Bits;
use bpf::HandOverReason;
use engine::Objects;
use ir::{KeyValue, Program, ValueSetId};
use rng::SplitMix64;

use crate::kernel::InKernel;
use crate::rig::{self, Rig, Way};

/// The parser notes in the last byte which set a packet matches.
const SOURCE: &str = r#"
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> kind; bit<16> port; int<8> level; bit<128> address; bit<8> found; }
struct headers { h_t h; }
struct metadata { bit<8> found; }
struct mixed_t {
    @match(exact) bit<8> kind;
    @match(ternary) bit<16> port;
    @match(range) bit<8> level;
    @match(lpm) bit<128> address;
}
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    value_set<bit<16>>(4) ports;
    value_set<mixed_t>(100) mixed;
    state start {
        packet.extract(hdr.h);
        transition select(hdr.h.kind, hdr.h.port, (bit<8>) hdr.h.level, hdr.h.address) {
            mixed: first;
            (7, ports, 1 .. 9, _): second;
            (_, ports, _, _): third;
            default: accept;
        }
    }
    state first { meta.found = 1; transition accept; }
    state second { meta.found = 2; transition accept; }
    state third { meta.found = 3; transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply { } }
control C(inout headers hdr, inout metadata meta) { apply { } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply { std.egress_spec = 1; hdr.h.found = meta.found; }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) { apply { } }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

fn set(program: &Program, name: &str) -> ValueSetId {
    program.value_sets.iter().find(|(_, set)| set.name.ends_with(name)).expect("the set").0
}

/// Returns a small number, so that packets often have those of members.
fn number(rng: &mut SplitMix64, width: u32) -> Bits {
    let low = Bits::new(rng.below(4).into(), width);
    if width == 128 { low.or(&Bits::new(u128::from(rng.below(2)) << 100, width)) } else { low }
}

fn mixed_member(rng: &mut SplitMix64) -> Vec<KeyValue> {
    let mask = number(rng, 16);
    let low = number(rng, 8);
    let high = Bits::new(low.low_u128() + u128::from(rng.below(3)), 8);
    let length = [0, 28, 30, 64, 127, 128][rng.below(6) as usize];
    let address = number(rng, 128);
    let address = if length == 0 { Bits::new(0, 128) } else { address.shr(128 - length).shl(128 - length) };
    vec![
        KeyValue::Exact(number(rng, 8)),
        if rng.percent(20) { KeyValue::Any } else { KeyValue::Ternary(number(rng, 16).and(&mask), mask) },
        if rng.percent(20) { KeyValue::Any } else { KeyValue::Range(low, high) },
        if length == 0 { KeyValue::Any } else { KeyValue::Lpm(address, length) },
    ]
}

fn packet(rng: &mut SplitMix64) -> Vec<u8> {
    let kind = if rng.percent(30) { 7 } else { rng.below(4) as u8 };
    let address = number(rng, 128).low_u128();
    let mut packet = vec![kind, 0, rng.below(4) as u8, rng.below(12) as u8];
    packet.extend(address.to_be_bytes());
    packet.resize(24, 0);
    packet
}

/// Adds or removes a member, or removes all.
fn change(rng: &mut SplitMix64, rig: &mut Rig, present: &mut [Vec<Vec<KeyValue>>; 2]) {
    let which = rng.below(2) as usize;
    let id = set(&rig.program, ["ports", "mixed"][which]);
    let present = &mut present[which];
    if rng.percent(3) {
        present.clear();
        rig.change(|_, objects| objects.clear_value_set(id)).expect("it fits");
    } else if present.len() > 1 && rng.percent(45) {
        let member = present.swap_remove(rng.below(present.len() as u64) as usize);
        rig.change(|_, objects| objects.remove_value_set_member(id, member.clone()).expect("it is there"))
            .expect("it fits");
    } else {
        let member = if which == 0 { vec![KeyValue::Exact(number(rng, 16))] } else { mixed_member(rng) };
        let insert = |objects: &mut Objects| objects.insert_value_set_member(id, member.clone()).is_ok();
        let is_new = std::cell::Cell::new(true);
        rig.change(|_, objects| is_new.set(insert(objects))).expect("it fits");
        present.extend(is_new.get().then_some(member));
    }
}

#[test]
fn members_match_as_in_the_switch() {
    let program = rig::compile_text(SOURCE, None).expect("a valid program");
    let mut found = [0; 4];
    for seed in 0..20 {
        let mut rng = SplitMix64::new(seed);
        let mut rig = Rig::new(&program, |_, _| ());
        let mut present = [Vec::new(), Vec::new()];
        for _ in 0..300 {
            if rng.percent(20) {
                change(&mut rng, &mut rig, &mut present);
            }
            let Way::Sent { data, .. } = rig.packet(0, &packet(&mut rng)) else { panic!("it stays in the kernel") };
            found[usize::from(data[20])] += 1;
        }
    }
    assert!(found.iter().all(|count| *count > 100), "{found:?}");
}

#[test]
fn a_set_of_too_many_members_hands_over_until_it_has_fewer() {
    let program = rig::compile_text(SOURCE, None).expect("a valid program");
    let (ports, member) = (set(&program, "ports"), |port: u128| vec![KeyValue::Exact(Bits::new(port, 16))]);
    let mut rig = Rig::new(&program, |program, objects| {
        let id = set(program, "ports");
        (0..64).for_each(|port| objects.insert_value_set_member(id, member(port)).expect("there is room"));
    });
    let reasons: Vec<HandOverReason> = rig.compiled.hand_overs.iter().map(|one| one.reason).collect();
    assert_eq!(reasons, [HandOverReason::ValueSet]);
    let packet = |port: u8| [[9, 0, port, 0].as_slice(), &[0; 20]].concat();
    let sent = |way: Way| if let Way::Sent { data, .. } = way { Some(data[20]) } else { None };
    assert_eq!(sent(rig.packet(0, &packet(63))), Some(3));
    assert_eq!(sent(rig.packet(0, &packet(64))), Some(0));
    rig.change(|_, objects| objects.insert_value_set_member(ports, member(64)).expect("there is room"))
        .expect("it fits");
    assert_eq!(rig.packet(0, &packet(64)), Way::HandedOver);
    rig.change(|_, objects| objects.remove_value_set_member(ports, member(3)).expect("it is there")).expect("it fits");
    assert_eq!([3, 63, 64].map(|port| sent(rig.packet(0, &packet(port)))), [Some(0), Some(3), Some(3)]);
}

#[test]
fn value_sets_load() {
    let program = rig::compile_text(SOURCE, None).expect("a valid program");
    let mut rng = SplitMix64::new(5);
    let rig = Rig::new(&program, |program, objects| {
        for seed in 0..40 {
            // A member may come twice.
            let _ = objects.insert_value_set_member(set(program, "mixed"), mixed_member(&mut SplitMix64::new(seed)));
        }
    });
    match InKernel::load(&rig, 1) {
        Ok(kernel) => {
            (0..500).for_each(|_| kernel.compare(&rig, 0, &packet(&mut rng)));
            eprintln!("{} instructions processed", kernel.verified_instructions());
        }
        Err(error) => testing::skip(&format!("needs root: {error}")),
    }
}
