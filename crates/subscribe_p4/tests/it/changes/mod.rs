//! Rules come and go at random: what the writes of each change lead to is what a fresh compilation gives, and where they
//! are made one after the other each message sees the old rules or the new ones.

mod program;
mod read_back;
mod refused;
mod target;

use std::collections::{BTreeMap, BTreeSet};

use rng::SplitMix64;
use subscribe::{Layout, Limits, Refusal, RuleId, Subscriptions, Target, Wide, Writes};
use subscribe_p4::Options;
use subscribe_p4::entries::{Installer, Steps};

use program::{CODED, CPU_PORT, FEED, METER, Program, REPORTS};
use target::{Outcome, Switch};

fn targets() -> [Target; 5] {
    let of = Options::default().target;
    let [ternary, lpm] = [Wide::Ternary, Wide::Lpm].map(|wide| Target { wide, has_ranges: false, ..of });
    let beside = |of: Target| Target { exact_beside: true, ..of };
    [of, Target { carries: false, ..beside(of) }, ternary, beside(ternary), beside(lpm)]
}

fn installer<'a>(program: &'a Program, layout: &Layout, target: Target, writes: Writes) -> Installer<'a> {
    let options = Options { target, ..Options::default() };
    let installer = Installer::new(&program.format, &program.rules, layout, &options, CPU_PORT);
    if writes == Writes::InTurn { installer.in_turn() } else { installer }
}

fn compiler(program: &Program, layout: &Layout, target: Target, writes: Writes) -> Subscriptions {
    let options = subscribe::Options { target, limits: Limits::default(), writes };
    Subscriptions::new(program.rules.format.clone(), layout.clone(), options)
}

/// How many walks each target has: more where most users are.
fn rounds(target: usize) -> u64 {
    if target == 0 { 2 } else { 1 }
}

/// So many states of a switch between the writes of a change are looked into: each is a whole switch.
const MOST_TIMES: usize = 64;

/// A walk of rules that come and go; `check` is told of each change: the switch before it, its steps, the rules after it.
fn walk(
    seed: u64,
    program: &Program,
    target: Target,
    writes: Writes,
    mut check: impl FnMut(&mut SplitMix64, &Switch, Steps, &Subscriptions) -> Switch,
) {
    let mut rng = SplitMix64::new(seed);
    let layout = Layout::sensible(&program.rules.format, &[]);
    let mut all = compiler(program, &layout, target, writes);
    let mut installer = installer(program, &layout, target, writes);
    let mut switch = Switch::default();
    let first = installer.install_steps(&all.tables()).expect("few groups");
    first.all().iter().for_each(|update| switch.apply(update));
    let mut ids: Vec<RuleId> = Vec::new();
    for _ in 0..30 {
        let mut remove = Vec::new();
        for _ in 0..rng.pick(&[(4, 0), (4, 1), (1, 4)]).min(ids.len() as u64) {
            remove.push(ids.swap_remove(rng.below(ids.len() as u64) as usize));
        }
        let text: Vec<String> =
            (0..rng.pick(&[(2, 0), (5, 1), (1, 6)])).map(|_| program.random_rule(&mut rng)).collect();
        let applied = match all.change(&remove, program.parse(&text.join("\n"))) {
            Ok(applied) => applied,
            // Of aggregates with other conditions there are few, and of codes.
            Err(Refusal::Slots { .. } | Refusal::Codes(..)) => {
                ids.extend(remove);
                continue;
            }
            Err(other) => panic!("it fits: {other:?}"),
        };
        ids.extend(applied.added);
        let steps = installer.steps(&applied.change).expect("few groups");
        switch = check(&mut rng, &switch, steps, &all);
        let mut anew = Switch::default();
        let fresh = self::installer(program, &layout, target, writes).install(&all.tables()).expect("few groups");
        fresh.iter().for_each(|update| anew.apply(update));
        if writes == Writes::Together {
            assert_eq!(switch.without_group_numbers(), anew.without_group_numbers(), "bit for bit, seed {seed}");
        } else {
            assert_eq!(switch.size(), anew.size(), "nothing is left behind, seed {seed}");
        }
    }
    let applied = all.change(&ids, Vec::new()).expect("less always fits");
    switch = check(&mut rng, &switch, installer.steps(&applied.change).expect("few groups"), &all);
    assert_eq!(switch.tables.len() + switch.groups.values().map(Vec::len).sum::<usize>(), 0, "nothing is left");
}

/// What the switch does with a message, and what the rules say.
fn agree(
    program: &Program,
    target: Target,
    switch: &Switch,
    rules: &Subscriptions,
    rng: &mut SplitMix64,
    seed: u64,
) -> usize {
    let mut delivered = 0;
    for _ in 0..40 {
        let message = program.random_message(rng);
        let expected = Outcome::of(&rules.evaluate(&message), program.format.counters.len());
        let got = program.run(target, &message, &mut |_| switch);
        assert_eq!(got, expected, "seed {seed}: {message:?}");
        delivered += usize::from(!expected.ports.is_empty());
    }
    delivered
}

#[test]
fn what_changes_lead_to_is_what_a_fresh_compilation_gives() {
    for (number, program) in [REPORTS, FEED, METER, CODED].map(Program::read).into_iter().enumerate() {
        let mut delivered = 0;
        for (at, target) in targets().into_iter().enumerate() {
            for round in 0..rounds(at) {
                let seed = 100 * number as u64 + 10 * at as u64 + round;
                walk(seed, &program, target, Writes::Together, |rng, before, steps, rules| {
                    let mut switch = before.clone();
                    steps.all().iter().for_each(|update| switch.apply(update));
                    let layout = rules.layout().clone();
                    let mut anew = compiler(&program, &layout, target, Writes::Together);
                    anew.change(&[], rules.rules().map(|(_, rule)| rule.clone()).collect()).expect("it fits");
                    let mut fresh = Switch::default();
                    let install = installer(&program, &layout, target, Writes::Together).install(&anew.tables());
                    install.expect("few groups").iter().for_each(|update| fresh.apply(update));
                    // Slots are given in the order of their first use, so the order of columns has a history; so have codes.
                    let has_history = !program.format.aggregates.is_empty() || program.has_codes();
                    if target.wide == Wide::Range && !has_history {
                        assert_eq!(switch.size(), fresh.size(), "as many entries, seed {seed}");
                    }
                    delivered += agree(&program, target, &switch, rules, rng, seed);
                    agree(&program, target, &fresh, &anew, rng, seed);
                    switch
                });
            }
        }
        assert!(delivered > 500, "most messages match nothing: {delivered}");
    }
}

#[test]
fn writes_one_after_the_other_show_each_message_the_old_rules_or_the_new_ones() {
    // How many messages told the two apart, switches had raised priorities, changes took pauses within.
    let (mut apart, mut raised, mut paused) = (0, 0, 0);
    for (number, program) in [REPORTS, FEED, METER].map(Program::read).into_iter().enumerate() {
        for (at, target) in targets().into_iter().enumerate() {
            for round in 0..rounds(at) {
                let seed = 1000 + 100 * number as u64 + 10 * at as u64 + round;
                walk(seed, &program, target, Writes::InTurn, |rng, before, steps, rules| {
                    // Where the pauses are, by how many writes were made.
                    let mut pauses = vec![steps.prepare.len()];
                    pauses.extend(steps.turn.iter().map(Vec::len));
                    (1..pauses.len()).for_each(|at| pauses[at] += pauses[at - 1]);
                    // None before the first round.
                    if pauses.len() > 1 {
                        pauses.remove(0);
                    }
                    let turned = *pauses.last().expect("the preparation's");
                    // After each write, or some of them where there are many; at every pause in any case.
                    let all = steps.all();
                    let mut times: BTreeSet<usize> = pauses.iter().copied().chain([0, all.len()]).collect();
                    match all.len() < MOST_TIMES {
                        true => times.extend(0..all.len()),
                        false => times.extend((0..MOST_TIMES).map(|_| rng.below(all.len() as u64) as usize)),
                    }
                    let mut now = before.clone();
                    let mut seen = Vec::new();
                    for (time, update) in all.iter().map(Some).chain([None]).enumerate() {
                        seen.extend(times.contains(&time).then(|| now.clone()));
                        update.into_iter().for_each(|update| now.apply(update));
                    }
                    // From here on times are places in `seen`.
                    let place = |time: usize| times.range(..time).count();
                    let (pauses, turned) = (pauses.into_iter().map(place).collect::<Vec<_>>(), place(turned));
                    let last = seen.len() - 1;
                    paused += usize::from(pauses.len() > 1);
                    raised += usize::from(seen[last].has_raised_priority());
                    for _ in 0..60 {
                        let message = program.random_message(rng);
                        let old = program.run(target, &message, &mut |_| &seen[0]);
                        let new = Outcome::of(&rules.evaluate(&message), program.format.counters.len());
                        apart += usize::from(old != new);
                        // A message on its way reads later tables at later times; none is on its way for a pause.
                        let mut now = rng.below(last as u64 + 1) as usize;
                        let end = pauses.iter().copied().find(|pause| now <= *pause).unwrap_or(last);
                        let is_late = now >= turned;
                        let mut times = BTreeMap::new();
                        let got = program.run(target, &message, &mut |table| {
                            now += rng.below((end - now) as u64 + 1) as usize * rng.below(2) as usize;
                            times.insert(table, now);
                            &seen[now]
                        });
                        let expected = if is_late { vec![&new] } else { vec![&old, &new] };
                        assert!(
                            expected.contains(&&got),
                            "seed {seed}: {message:?}\nread {times:?} of {turned}, {last}\ngot {got:?}\nold {old:?}\nnew {new:?}"
                        );
                    }
                    agree(&program, target, &seen[last], rules, rng, seed);
                    seen.pop().expect("the last")
                });
            }
        }
    }
    assert!(apart > 500, "{apart} messages told old and new apart");
    assert!(raised > 10 && paused > 10, "{raised} priorities were raised, {paused} changes took pauses");
}
