//! Header stacks: tags and labels that are parsed in loops, pushed and popped.

use bits::Bits;
use bpf::HandOverReason;
use engine::{Objects, TableEntry};
use ir::{KeyValue, Program};
use rng::SplitMix64;

use crate::kernel::InKernel;
use crate::rig::{self, Rig, Way};

const SOURCE: &str = include_str!("stacks.p4");

fn write(program: &Program, objects: &mut Objects) {
    let table = program.table_named("MyIngress.labels").expect("a table");
    let actions = &program.tables[table].actions;
    let mut rng = SplitMix64::new(6);
    for label in 0..8 {
        for second in 0..2 {
            let action = actions[rng.below(3) as usize].action;
            let args = program.actions[action].params.iter().map(|_| Bits::new(rng.below(8).into(), 20)).collect();
            let keys = vec![KeyValue::Exact(Bits::new(label, 20)), KeyValue::Exact(Bits::new(second, 1))];
            objects.insert(table, TableEntry::new(keys, 0, action, args)).expect("there is room");
        }
    }
}

/// Returns a packet with up to four tags and six labels. The stacks have room for three and four.
fn packet(rng: &mut SplitMix64) -> Vec<u8> {
    let mut data = vec![2; 12];
    let (tags, labels) = (rng.below(5), rng.below(7));
    for _ in 0..tags {
        data.extend([0x81, 0, 0, rng.below(9) as u8]);
    }
    data.extend(if labels > 0 { [0x88, 0x47] } else { [8, 0] });
    for number in 1..=labels {
        data.extend([0, 0, (rng.below(9) as u8) << 4 | u8::from(number == labels), 64]);
    }
    data.extend([7; 30]);
    data
}

#[test]
fn stacks_mean_the_same() {
    let program = rig::compile_text(SOURCE, None).expect("a valid program");
    let (mut rig, mut rng) = (Rig::new(&program, write), SplitMix64::new(1));
    let (mut lengths, mut overflows) = (Vec::new(), 0);
    for _ in 0..3000 {
        let data = packet(&mut rng);
        match rig.packet(0, &data) {
            Way::Sent { port: 4, .. } => overflows += 1,
            Way::Sent { data: sent, .. } => lengths.push(sent.len() as i64 - data.len() as i64),
            other => panic!("{other:?}"),
        }
    }
    rig.compare_counts();
    lengths.sort_unstable();
    lengths.dedup();
    assert_eq!(lengths, [-8, -4, 0, 4, 8], "headers are pushed and popped");
    assert!(overflows > 300, "{overflows} packets had too many tags or labels");
    let reasons: Vec<HandOverReason> = rig.compiled.hand_overs.iter().map(|one| one.reason).collect();
    assert_eq!(reasons, [HandOverReason::HeaderLayout]);
}

#[test]
fn every_cut_of_stacks_means_the_same() {
    let program = rig::compile_text(SOURCE, None).expect("a valid program");
    let (mut rig, mut rng) = (Rig::new(&program, write), SplitMix64::new(2));
    for _ in 0..20 {
        let data = packet(&mut rng);
        (1..=data.len()).for_each(|length| _ = rig.packet(0, &data[..length]));
    }
    rig.compare_counts();
}

#[test]
fn stacks_in_the_kernel_mean_the_same() {
    let program = rig::compile_text(SOURCE, None).expect("a valid program");
    let (rig, mut rng) = (Rig::new(&program, write), SplitMix64::new(3));
    let kernel = match InKernel::load(&rig, 1) {
        Ok(kernel) => kernel,
        Err(error) => return testing::skip(&format!("needs root: {error}")),
    };
    (0..500).for_each(|_| kernel.compare(&rig, 0, &packet(&mut rng)));
    eprintln!("{} instructions processed", kernel.verified_instructions());
    assert!(kernel.verified_instructions() < 50_000, "{} instructions were processed", kernel.verified_instructions());
}

#[test]
fn computed_elements_are_handed_over() {
    let text = SOURCE.replace("hdr.tags[0].label = meta.last;", "hdr.tags[meta.count].label = meta.last;");
    let program = rig::compile_text(&text, None).expect("a valid program");
    let (mut rig, mut rng) = (Rig::new(&program, write), SplitMix64::new(4));
    (0..300).for_each(|_| _ = rig.packet(0, &packet(&mut rng)));
    assert!(rig.compiled.hand_overs.iter().any(|one| one.reason == HandOverReason::Stack));
    assert!(rig.ways.handed_over > 30 && rig.ways.sent > 30, "{:?}", rig.ways);
}
