//! Values of more than 64 bits: addresses of IPv6, and fields that do not begin or end with a byte.

use bits::Bits;
use bpf::HandOverReason;
use engine::{Objects, TableEntry};
use ir::{KeyValue, MatchKind, Program};
use rng::SplitMix64;

use crate::kernel::InKernel;
use crate::rig::{self, Rig, Way};

const TABLES: [&str; 4] = ["MyIngress.routes", "MyIngress.hosts", "MyIngress.rules", "MyIngress.mixes"];
const SOURCE: &str = include_str!("wide.p4");

fn rig() -> Rig {
    Rig::new(&rig::compile_text(SOURCE, None).expect("a valid program"), |_, _| ())
}

/// Few addresses that differ at both ends and at the border of their halves, so that entries overlap.
fn address(rng: &mut SplitMix64) -> u128 {
    let base = rng.pick(&[(3, 0x2001_0db8 << 96), (1, 0), (1, u128::MAX)]);
    let mut flip = || {
        let at = rng.pick(&[(3, 0), (1, 40), (2, 61), (2, 64), (1, 80), (2, 126)]);
        u128::from(rng.below(4)) << at
    };
    base ^ flip() ^ flip()
}

fn value(rng: &mut SplitMix64, width: u32) -> Bits {
    let value = if width > 100 { address(rng) } else { rng.pick(&[(3, 0), (1, 1), (1, u128::MAX)]) };
    match width {
        192 => Bits::new(value, 128).concat(&Bits::new(rng.below(2).into(), 64)),
        _ => Bits::new(value & u128::MAX >> (128 - width), width),
    }
}

fn key(rng: &mut SplitMix64, key: &ir::Key) -> KeyValue {
    let (value, ones) = (value(rng, key.width), Bits::ones(key.width));
    match key.kind {
        MatchKind::Exact => KeyValue::Exact(value),
        MatchKind::Optional if rng.percent(50) => KeyValue::Any,
        MatchKind::Optional => KeyValue::Exact(value),
        MatchKind::Lpm => {
            let length = rng.below(u64::from(key.width) + 1) as u32;
            KeyValue::Lpm(value.and(&ones.shl(key.width - length)), length)
        }
        MatchKind::Ternary => {
            let mask = ones.shl(rng.pick(&[(1, 0), (1, 2), (1, 63), (1, 65), (1, 128)]));
            KeyValue::Ternary(value.and(&mask), mask)
        }
        MatchKind::Range | MatchKind::Selector => KeyValue::Range(Bits::zero(key.width), value),
    }
}

/// Fills the tables with about this number of entries each.
fn fill(seed: u64, count: u64) -> impl Fn(&Program, &mut Objects) {
    move |program, objects| {
        let mut rng = SplitMix64::new(seed);
        for name in TABLES {
            let id = program.table_named(name).expect("a table");
            let table = &program.tables[id];
            // Some entries stay.
            for entry in objects.entries(id).map(|info| info.entry.clone()).collect::<Vec<_>>() {
                if rng.percent(70) {
                    objects.delete(id, &entry.keys, entry.priority).expect("the entry is there");
                }
            }
            let needs_priority = name == "MyIngress.rules";
            for number in 0..rng.below(count) {
                let keys = table.keys.iter().map(|one| key(&mut rng, one)).collect();
                let action = table.actions[0].action;
                let params = program.actions[action].params.iter().map(|param| program.slots[param.slot].width);
                let args = params.map(|width| {
                    Bits::new(u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64()), 128).resize(width)
                });
                let priority = if needs_priority { (seed * 100 + number + 1) as i32 } else { 0 };
                // A repeated key is refused.
                _ = objects.insert(id, TableEntry::new(keys, priority, action, args.collect()));
            }
        }
    }
}

fn packet(rng: &mut SplitMix64) -> Vec<u8> {
    let odd = value(rng, 4).concat(&value(rng, 64)).concat(&value(rng, 100)).concat(&Bits::zero(8));
    let word = if rng.percent(10) { Bits::new(0x8000_0000_0000_0001, 64) } else { value(rng, 64) };
    let odd = if rng.percent(50) { odd } else { value(rng, 4).concat(&word).concat(&odd.slice(107, 0)) };
    let mut data = odd.to_be_bytes();
    data.extend([0x60, 0, 0, rng.below(3) as u8, 0, 10, rng.pick(&[(2, 0), (1, 17), (1, 0xff)]), 64]);
    let target = if rng.percent(10) { 1 } else { address(rng) };
    data.extend(address(rng).to_be_bytes());
    data.extend(target.to_be_bytes());
    data.extend([0; 20]);
    let is_cut = rng.percent(5);
    data.truncate(if is_cut { 1 + rng.below(data.len() as u64) as usize } else { data.len() });
    data
}

#[test]
fn wide_values_mean_the_same() {
    let (mut rig, mut rng) = (rig(), SplitMix64::new(1));
    let mut seen = [const { Vec::new() }; 6];
    for round in 0..60 {
        rig.change(fill(round, 30)).expect("the entries fit");
        for _ in 0..60 {
            let data = packet(&mut rng);
            if let Way::Sent { data, .. } = rig.packet(0, &data)
                && data.len() == 82
            {
                (0..6).for_each(|at| seen[at].push(data[62 + at]));
            }
        }
    }
    assert_eq!(rig.ways.handed_over, 0, "{:?}", rig.compiled.hand_overs);
    let distinct = seen.map(|mut values| {
        values.sort_unstable();
        values.dedup();
        values.len()
    });
    // Every kind of table has hits of many entries, and every constant and state of the parser is met.
    assert!(distinct[..4].iter().all(|count| *count > 40), "{distinct:?}");
    assert_eq!(distinct[4..], [6, 4]);
}

#[test]
fn every_cut_of_wide_headers_means_the_same() {
    let program = rig::compile_text(SOURCE, None).expect("a valid program");
    let mut rig = Rig::new(&program, fill(6, 30));
    for seed in 0..20 {
        let data = packet(&mut SplitMix64::new(seed));
        (1..=data.len()).for_each(|length| _ = rig.packet(0, &data[..length]));
    }
    rig.compare_counts();
    assert_eq!(rig.ways.handed_over, 0, "{:?}", rig.compiled.hand_overs);
}

#[test]
fn wide_values_in_the_kernel_mean_the_same() {
    let (mut rig, mut rng) = (rig(), SplitMix64::new(4));
    rig.change(fill(5, 60)).expect("the entries fit");
    let kernel = match InKernel::load(&rig, 1) {
        Ok(kernel) => kernel,
        Err(error) => return testing::skip(&format!("needs root: {error}")),
    };
    (0..1000).map(|_| packet(&mut rng)).filter(|data| data.len() >= 14).for_each(|data| kernel.compare(&rig, 0, &data));
    eprintln!("{} instructions processed", kernel.verified_instructions());
    assert!(kernel.verified_instructions() < 50_000, "{} instructions were processed", kernel.verified_instructions());
}

#[test]
fn wide_products_and_computed_shifts_are_handed_over_where_they_are() {
    for (sum, other) in [
        ("hdr.ip.source + add", "hdr.ip.source * add"),
        ("meta.ahead >> 125", "meta.ahead >> hdr.result.route"),
        ("(meta.ahead << 3)", "(meta.ahead |+| 3)"),
    ] {
        let text = SOURCE.replace(sum, other);
        let line = text.lines().position(|line| line.contains(other)).expect("it was replaced") + 1;
        let mut rig = Rig::new(&rig::compile_text(&text, None).expect("a valid program"), |_, _| ());
        let wide = rig.compiled.hand_overs.iter().filter(|one| one.reason == HandOverReason::WideValue);
        let lines: Vec<String> = wide.map(|one| rig.program.locs[one.loc].to_string()).collect();
        assert!(lines.iter().any(|place| place.contains(&format!(":{line}:"))), "{lines:?}, line {line}");
        let mut rng = SplitMix64::new(3);
        (0..100).for_each(|_| _ = rig.packet(0, &packet(&mut rng)));
        assert!(rig.ways.handed_over > 80, "{:?}", rig.ways);
    }
}
