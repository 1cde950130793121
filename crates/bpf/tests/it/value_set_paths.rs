//! Value sets on unusual paths: in loops over header stacks and in parsers of parsers, so that they are matched at
//! several offsets; of signed and optional fields; and in large numbers.

use bits::Bits;
use bpf::HandOverReason;
use engine::Objects;
use ir::{KeyValue, MatchKind, Program, ValueSetId};
use rng::SplitMix64;

use crate::kernel::InKernel;
use crate::rig::{self, Rig, Way};

/// Tags are parsed while they are in a set. Another parser matches each of them with the bytes behind it.
const SOURCE: &str = r#"
#include <core.p4>
#include <v1model.p4>
header tag_t { bit<8> kind; int<8> level; bit<16> label; }
header end_t { bit<8> found; bit<8> tags; }
struct headers { tag_t[12] tags; end_t end; }
struct metadata { bit<8> found; }
struct pair_t { @match(optional) bit<8> kind; @match(range) int<8> level; }
struct wide_t {
    @match(ternary) bit<8> kind; @match(ternary) int<8> level; @match(lpm) bit<16> label; @match(range) bit<16> next;
}
parser Behind(packet_in packet, inout headers hdr, inout metadata meta) {
    value_set<pair_t>(8) pairs;
    value_set<wide_t>(8) wides;
    state start {
        transition select(hdr.tags.last.kind, hdr.tags.last.level, hdr.tags.last.label, packet.lookahead<bit<16>>()) {
            wides: second;
            default: others;
        }
    }
    state others { transition select(hdr.tags.last.kind, hdr.tags.last.level) { pairs: first; default: accept; } }
    state first { meta.found = meta.found + 1; transition accept; }
    state second { meta.found = meta.found + 16; transition accept; }
}
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    value_set<bit<8>>(8) more;
    value_set<int<8>>(8) levels;
    Behind() behind;
    state start {
        packet.extract(hdr.tags.next);
        behind.apply(packet, hdr, meta);
        transition select(hdr.tags.last.kind, hdr.tags.last.level) {
            (more, levels): start;
            (more, _): accept;
            (_, levels): end;
            default: reject;
        }
    }
    state end { packet.extract(hdr.end); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply { } }
control C(inout headers hdr, inout metadata meta) { apply { } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        hdr.tags[0].label[15:8] = meta.found;
        if (std.parser_error != error.NoError) { mark_to_drop(std); }
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) { apply { } }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

/// Numbers that packets and members have in common, as signed ones too.
const NUMBERS: [u8; 8] = [0, 1, 2, 126, 127, 128, 254, 255];

fn number(rng: &mut SplitMix64) -> u8 {
    NUMBERS[rng.below(NUMBERS.len() as u64) as usize]
}

/// Returns a random value for a field of a set.
fn value(rng: &mut SplitMix64, width: u32, kind: MatchKind) -> KeyValue {
    let number = |rng: &mut SplitMix64| Bits::new(number(rng).into(), width);
    match kind {
        MatchKind::Exact => KeyValue::Exact(number(rng)),
        _ if rng.percent(30) => KeyValue::Any,
        MatchKind::Optional => KeyValue::Exact(number(rng)),
        MatchKind::Range => {
            let (low, high) = (number(rng), number(rng));
            if low.low_u64() <= high.low_u64() { KeyValue::Range(low, high) } else { KeyValue::Range(high, low) }
        }
        MatchKind::Lpm => {
            let length = 1 + rng.below(width.into()) as u32;
            KeyValue::Lpm(number(rng).shr(width - length).shl(width - length), length)
        }
        _ => {
            let mask = number(rng);
            KeyValue::Ternary(number(rng).and(&mask), mask)
        }
    }
}

fn sets(program: &Program) -> Vec<ValueSetId> {
    program.value_sets.keys().collect()
}

/// Sets the members of a set to this number of random ones.
fn refill(program: &Program, objects: &mut Objects, at: usize, count: u64, seed: u64) {
    let (id, mut rng) = (sets(program)[at], SplitMix64::new(seed));
    objects.clear_value_set(id);
    for _ in 0..count {
        let fields = &program.value_sets[id].fields;
        let member = fields.iter().map(|(_, width, kind)| value(&mut rng, *width, *kind)).collect();
        // A member may come twice.
        let _ = objects.insert_value_set_member(id, member);
    }
}

fn packet(rng: &mut SplitMix64) -> Vec<u8> {
    (0..8 + rng.below(60)).map(|_| number(rng)).collect()
}

#[test]
fn members_match_at_every_offset() {
    let program = rig::compile_text(SOURCE, None).expect("a valid program");
    let (mut found, mut dropped) = ([0; 256], 0);
    for seed in 0..20 {
        let mut rng = SplitMix64::new(seed);
        let mut rig = Rig::new(&program, |_, _| ());
        for _ in 0..400 {
            if rng.percent(20) {
                let (at, count, seed) = (rng.below(4) as usize, rng.below(7), rng.next_u64());
                rig.change(|program, objects| refill(program, objects, at, count, seed)).expect("it fits");
            }
            match rig.packet(0, &packet(&mut rng)) {
                Way::Sent { data, .. } => found[usize::from(data[2])] += 1,
                Way::Dropped => dropped += 1,
                Way::HandedOver => panic!("it stays in the kernel"),
            }
        }
        rig.compare_counts();
    }
    assert!(dropped > 10 && [0, 1, 2, 16, 17, 32].iter().all(|way| found[*way] > 20), "{dropped} {found:?}");
}

#[test]
fn a_set_that_had_too_many_members_matches_when_it_has_few() {
    let program = rig::compile_text(SOURCE, None).expect("a valid program");
    let (mut rig, mut rng) = (Rig::new(&program, |_, _| ()), SplitMix64::new(1));
    let wides = sets(&program).into_iter().position(|id| program.value_sets[id].fields.len() == 4).expect("the set");
    let is_handed_over = |rig: &mut Rig, rng: &mut SplitMix64| {
        (0..50).filter(|_| rig.packet(0, &packet(rng)) == Way::HandedOver).count()
    };
    // Both copies have had each number.
    for (count, handed_over) in [(3, 0), (200, 50), (200, 50), (0, 0), (40, 0), (500, 50), (1, 0), (2, 0), (64, 0)] {
        rig.change(|program, objects| refill(program, objects, wides, count, count)).expect("it fits");
        assert_eq!(is_handed_over(&mut rig, &mut rng), handed_over, "{count} members");
    }
}

#[test]
fn sets_in_loops_load() {
    let program = rig::compile_text(SOURCE, None).expect("a valid program");
    let rig = Rig::new(&program, |program, objects| (0..4).for_each(|at| refill(program, objects, at, 64, 5)));
    let reasons: Vec<HandOverReason> = rig.compiled.hand_overs.iter().map(|one| one.reason).collect();
    assert!(reasons.iter().all(|reason| *reason == HandOverReason::ValueSet), "{reasons:?}");
    match InKernel::load(&rig, 1) {
        Ok(kernel) => {
            eprintln!("{} instructions processed", kernel.verified_instructions());
            let mut rng = SplitMix64::new(2);
            for _ in 0..500 {
                let data = packet(&mut rng);
                if data.len() >= 14 {
                    kernel.compare(&rig, 0, &data);
                }
            }
        }
        Err(error) => testing::skip(&format!("needs root: {error}")),
    }
}
