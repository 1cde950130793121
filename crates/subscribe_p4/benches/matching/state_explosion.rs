//! Rules with ranges over three fields and no field that separates them by value, for which diagrams grow.

use std::hint::black_box;
use std::time::Instant;

use rng::SplitMix64;
use subscribe::{Condition, FieldId, Message, Rule, Subscriptions, workload};

use crate::general::General;
use crate::switch::{BATCH, Case};
use crate::{MESSAGES, TURN, median, rate_of, rounds, timed};

/// A random value inside or outside a rule's ranges.
fn point(rules: &[&Rule], rng: &mut SplitMix64) -> [u16; 3] {
    let mut point = [rng.next_u64() as u16, rng.next_u64() as u16, rng.next_u64() as u16];
    if rng.percent(50) {
        let rule = rules[rng.below(rules.len() as u64) as usize];
        let Condition::All(tests) = &rule.condition else { panic!("a rule of another form") };
        for (coordinate, test) in point.iter_mut().zip(tests) {
            let Condition::Test(test) = test else { panic!("a rule of another form") };
            let (first, last) = test.values.list()[0];
            *coordinate = (first as u64 + rng.below((last - first + 1) as u64)) as u16;
        }
    }
    point
}

/// Panics unless the switch and direct evaluation of the rules agree on the ports of some messages.
fn check(case: &Case, rules: &Subscriptions, switch: &mut crate::switch::RuleSwitch, messages: &[Vec<u8>]) {
    let mut delivered = 0;
    for bytes in messages.iter().take(500) {
        let mut message = Message::empty(&case.rules.format);
        for (at, pair) in (0u16..).zip(bytes.chunks_exact(2)) {
            message.set(&case.rules.format, FieldId(at), u128::from(u16::from_be_bytes([pair[0], pair[1]])));
        }
        let mut answer = [0];
        switch.run(&mut [bytes.clone()], &mut answer);
        let ports = rules.evaluate(&message).ports;
        assert_eq!(switch.ports(answer[0]), ports);
        delivered += usize::from(!ports.is_empty());
    }
    assert!(delivered > 100, "half of the messages are for someone");
}

/// Prints a row for `count` rules, each range covering `1/part` of its field's values.
pub fn row(count: usize, part: u64) {
    let case = Case::new(include_str!("crossing.p4"));
    let of = workload::ranges(1, count, part);
    let begin = Instant::now();
    let rules = case.compile(&of.text);
    let seconds = begin.elapsed().as_secs_f64();
    let stats = rules.stats();
    let mut switch = case.switch(&rules);
    let all: Vec<&Rule> = rules.rules().map(|(_, rule)| rule).collect();
    let mut rng = SplitMix64::new(3);
    let points: Vec<[u16; 3]> = (0..MESSAGES).map(|_| point(&all, &mut rng)).collect();
    let mut messages: Vec<Vec<u8>> =
        points.iter().map(|point| point.iter().flat_map(|number| number.to_be_bytes()).collect()).collect();
    check(&case, &rules, &mut switch, &messages);
    let mut answers = [0; BATCH];
    let ours = (0..rounds()).map(|turn| {
        let first = turn * TURN % MESSAGES;
        timed(&mut messages[first..first + TURN], |batch| {
            switch.run(batch, &mut answers);
            black_box(&answers);
        })
    });
    let our = median(ours.collect());
    let general = General::new(&of.text, &["x", "y", "z"]);
    let general = rate_of(general, |general, at| {
        let [x, y, z] = points[at % MESSAGES].map(u32::from);
        black_box(general.ports(None, &[("x", x), ("y", y), ("z", z)]));
    });
    println!(
        "{count:>9} {:>8} {:>8} {:>9} {:>8} {seconds:>7.1} s {our:>6.1} ns {:>11.2} {general:>12}",
        format!("1/{part}"),
        stats.nodes,
        stats.entries(),
        stats.leaves,
        1e3 / our
    );
}
