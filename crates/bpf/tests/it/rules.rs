//! Tables of rules: ternary, range and optional keys, and prefixes beside exact elements.

use bits::Bits;
use engine::{Objects, TableEntry};
use ir::{KeyValue, Program};
use rng::SplitMix64;

use crate::kernel::InKernel;
use crate::rig::{self, Rig, Way};

fn rig() -> Rig {
    Rig::new(&rig::compile_text(include_str!("rules.p4"), None).expect("a valid program"), |_, _| ())
}

fn number(value: u64, width: u32) -> Bits {
    Bits::new(u128::from(value) & ((1 << width) - 1), width)
}

/// Values near the ends of their range and in its middle, so that rules overlap.
fn value(rng: &mut SplitMix64, width: u32) -> u64 {
    match rng.below(3) {
        0 => rng.below(4),
        1 => (1 << (width - 1)) - 2 + rng.below(4),
        _ => u64::MAX - rng.below(3),
    }
}

fn range(rng: &mut SplitMix64, signed: bool) -> KeyValue {
    let [a, b] = [value(rng, 16), value(rng, 16)].map(|value| value as u16);
    let is_ordered = if signed { a.cast_signed() <= b.cast_signed() } else { a <= b };
    let (low, high) = if is_ordered { (a, b) } else { (b, a) };
    KeyValue::Range(number(low.into(), 16), number(high.into(), 16))
}

fn acl_entry(rng: &mut SplitMix64, program: &Program, priority: i32) -> TableEntry {
    let mask = rng.below(256);
    let optional = if rng.percent(50) { KeyValue::Any } else { KeyValue::Exact(number(value(rng, 32), 32)) };
    let keys = vec![
        KeyValue::Ternary(number(value(rng, 8) & mask, 8), number(mask, 8)),
        range(rng, false),
        range(rng, true),
        optional,
    ];
    entry(program, "MyIngress.acl", keys, priority, rng)
}

fn route(rng: &mut SplitMix64, program: &Program) -> TableEntry {
    let length = rng.below(65) as u32;
    let address = value(rng, 64) & u64::MAX.checked_shl(64 - length).unwrap_or(0);
    let keys = vec![KeyValue::Exact(number(value(rng, 8), 8)), KeyValue::Lpm(Bits::new(address.into(), 64), length)];
    entry(program, "MyIngress.routes", keys, 0, rng)
}

fn entry(program: &Program, table: &str, keys: Vec<KeyValue>, priority: i32, rng: &mut SplitMix64) -> TableEntry {
    let table = &program.tables[program.table_named(table).expect("a table")];
    TableEntry::new(keys, priority, table.actions[0].action, vec![number(rng.next_u64(), 8)])
}

fn packet(rng: &mut SplitMix64) -> Vec<u8> {
    let [a, b, c] = [value(rng, 8) as u8, value(rng, 16) as u8, rng.below(9) as u8];
    let mut packet = vec![a];
    packet.extend((value(rng, 16) as u16).to_be_bytes());
    packet.extend((value(rng, 16) as u16).to_be_bytes());
    packet.extend((value(rng, 32) as u32).to_be_bytes());
    packet.extend(value(rng, 64).to_be_bytes());
    packet.extend([b, c, 0, 0]);
    packet
}

/// Fills the tables with these numbers of entries, or as many as have different keys.
fn fill(seed: u64, acl: u64, routes: u64) -> impl Fn(&Program, &mut Objects) {
    move |program, objects| {
        let mut rng = SplitMix64::new(seed);
        for name in ["MyIngress.acl", "MyIngress.routes"] {
            objects.clear(program.table_named(name).expect("a table")).expect("it may be cleared");
        }
        for priority in 1..=acl {
            let entry = acl_entry(&mut rng, program, priority as i32);
            _ = objects.insert(program.table_named("MyIngress.acl").expect("a table"), entry);
        }
        for _ in 0..routes {
            let entry = route(&mut rng, program);
            _ = objects.insert(program.table_named("MyIngress.routes").expect("a table"), entry);
        }
    }
}

#[test]
fn the_rule_of_the_highest_rank_is_applied() {
    let (mut rig, mut rng) = (rig(), SplitMix64::new(1));
    for round in 0..60 {
        rig.change(fill(round, rng.below(40), rng.below(40))).expect("the entries fit");
        for _ in 0..40 {
            let packet = packet(&mut rng);
            let way = rig.packet(0, &packet);
            assert!(matches!(way, Way::Sent { port: 3, .. }), "round {round}: {way:?}");
        }
    }
}

#[test]
fn hundreds_of_rules_are_searched_while_they_come_and_go() {
    let (mut rig, mut rng) = (rig(), SplitMix64::new(2));
    let mut unknown = 0;
    for (acl, routes) in [(64, 10), (65, 300), (400, 3), (17, 900), (700, 700), (0, 0), (300, 1)] {
        rig.change(fill(7, acl, routes)).expect("the entries fit");
        for _ in 0..60 {
            unknown += u32::from(rig.packet(0, &packet(&mut rng)) == Way::HandedOver);
        }
    }
    // Most of these rules match nearly everything, so no mask divides them.
    assert!((1..100).contains(&unknown), "{unknown} of 420 packets were handed over");
}

/// Inserts a rule for a mask of zeros in the first element of the key, values of the second one from `low` on, and all
/// values of the others.
fn insert(program: &Program, objects: &mut Objects, mask: u64, low: u64, priority: i32) {
    let all = KeyValue::Range(number(0x8000, 16), number(0x7fff, 16));
    let range = KeyValue::Range(number(low, 16), number(0xffff, 16));
    let keys = vec![KeyValue::Ternary(number(0, 8), number(mask, 8)), range, all, KeyValue::Any];
    let entry = entry(program, "MyIngress.acl", keys, priority, &mut SplitMix64::new(1));
    objects.insert(program.table_named("MyIngress.acl").expect("a table"), entry).expect("there is room");
}

/// Returns a packet with this second element.
fn packet_with(b: u16) -> Vec<u8> {
    let mut packet = packet(&mut SplitMix64::new(3));
    packet[1..3].copy_from_slice(&b.to_be_bytes());
    packet
}

#[test]
fn a_search_takes_96_steps_at_most_and_ends_at_the_best_rule() {
    let mut rig = rig();
    // These rules have no bit in common that a mask could compare, so two tuples have all of them.
    let fill = |count: i32| {
        move |program: &Program, objects: &mut Objects| {
            objects.clear(program.table_named("MyIngress.acl").expect("a table")).expect("it may be cleared");
            (1..=count).for_each(|priority| insert(program, objects, 0, 1, priority));
        }
    };
    let [none, all] = [0, 1].map(packet_with);
    rig.change(fill(94)).expect("the entries fit");
    assert_ne!(rig.packet(0, &none), Way::HandedOver, "94 rules in two tuples");
    let steps = |rig: &Rig, packet: &[u8]| rig.machine(0, &mut packet.to_vec()).expect("no fault").steps;
    assert!(steps(&rig, &all) * 3 < steps(&rig, &none), "{} and {}", steps(&rig, &all), steps(&rig, &none));
    rig.change(fill(95)).expect("the entries fit");
    assert_eq!(rig.packet(0, &none), Way::HandedOver, "95 rules in two tuples");
    assert_ne!(rig.packet(0, &all), Way::HandedOver, "the best rule comes first");
    // Rules with a mask each, so that there are many tuples.
    rig.change(fill(0)).expect("the table is empty");
    rig.change(|program, objects| insert(program, objects, 0, 0, 100)).expect("the entry fits");
    let alone = steps(&rig, &all);
    let insert_others = |program: &Program, objects: &mut Objects| {
        (1..40).for_each(|mask| insert(program, objects, mask, 0, 1));
    };
    rig.change(insert_others).expect("the entries fit");
    assert!(steps(&rig, &all) < alone + 20, "{} and {alone}", steps(&rig, &all));
    assert_ne!(rig.packet(0, &all), Way::HandedOver);
}

#[test]
fn rules_whose_order_is_not_known_hand_over() {
    let mut rig = rig();
    let add = |a: u64, mask: u64, priority| {
        move |program: &Program, objects: &mut Objects| {
            let all = KeyValue::Range(number(0, 16), number(0xffff, 16));
            let signed = KeyValue::Range(number(0x8000, 16), number(0x7fff, 16));
            let keys = vec![KeyValue::Ternary(number(a, 8), number(mask, 8)), all, signed, KeyValue::Any];
            let entry = entry(program, "MyIngress.acl", keys, priority, &mut SplitMix64::new(a));
            objects.insert(program.table_named("MyIngress.acl").expect("a table"), entry).expect("there is room");
        }
    };
    let packet = |a: u8| {
        let mut packet = packet(&mut SplitMix64::new(3));
        packet[0] = a;
        packet
    };
    rig.change(add(1, 0x0f, 5)).expect("the entries fit");
    rig.change(add(2, 0x0f, 5)).expect("the entries fit");
    assert_ne!(rig.packet(0, &packet(0x11)), Way::HandedOver, "no packet matches both");
    rig.change(add(0x10, 0xf0, 5)).expect("the entries fit");
    assert_eq!(rig.packet(0, &packet(0x11)), Way::HandedOver, "0x11 matches two of one priority");
    assert_ne!(rig.packet(0, &packet(0x10)), Way::HandedOver, "0x10 matches one");
    rig.change(add(0x11, 0xff, 6)).expect("the entries fit");
    assert_ne!(rig.packet(0, &packet(0x11)), Way::HandedOver, "one has a higher priority");
}

#[test]
fn rules_in_the_kernel_are_rules() {
    let (mut rig, mut rng) = (rig(), SplitMix64::new(4));
    rig.change(fill(5, 60, 60)).expect("the entries fit");
    let kernel = match InKernel::load(&rig, 1) {
        Ok(kernel) => kernel,
        Err(error) => return testing::skip(&format!("needs root: {error}")),
    };
    for _ in 0..1000 {
        kernel.compare(&rig, 0, &packet(&mut rng));
    }
    eprintln!("{} instructions processed", kernel.verified_instructions());
    assert!(kernel.verified_instructions() < 50_000, "{} instructions were processed", kernel.verified_instructions());
}
