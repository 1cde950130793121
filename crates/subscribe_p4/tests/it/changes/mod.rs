//! Random sequences of rule changes: the writes of each change lead to the result of a fresh compilation, and if they
//! are applied one after the other, each message sees either the old rules or the new ones.

mod program;
mod read_back;
mod refused;
mod target;

use std::collections::{BTreeMap, BTreeSet};

use rng::SplitMix64;
use subscribe::{ColumnLayout, Limits, Refusal, RuleId, Subscriptions, TargetCapabilities, UpdateMode, Wide};
use subscribe_p4::ProgramOptions;
use subscribe_p4::entries::{Installer, UpdatePlan};

use program::{CODED, CPU_PORT, FEED, METER, METER_ANY, REPORTS, TestProgram};
use target::{ModelSwitch, Outcome};

fn targets() -> [TargetCapabilities; 5] {
    let of = ProgramOptions::default().target;
    let [ternary, lpm] = [Wide::Ternary, Wide::Lpm].map(|wide| TargetCapabilities { wide, has_ranges: false, ..of });
    let beside = |of: TargetCapabilities| TargetCapabilities { exact_beside: true, ..of };
    [of, TargetCapabilities { carries: false, ..beside(of) }, ternary, beside(ternary), beside(lpm)]
}

fn installer<'a>(
    program: &'a TestProgram,
    layout: &ColumnLayout,
    target: TargetCapabilities,
    writes: UpdateMode,
) -> Installer<'a> {
    let options = ProgramOptions { target, ..ProgramOptions::default() };
    let installer = Installer::new(&program.format, &program.rules, layout, &options, CPU_PORT);
    if writes == UpdateMode::PerMessageConsistent { installer.per_message_consistent() } else { installer }
}

fn compiler(
    program: &TestProgram,
    layout: &ColumnLayout,
    target: TargetCapabilities,
    writes: UpdateMode,
) -> Subscriptions {
    let options =
        subscribe::CompileOptions { target, limits: Limits::default(), update_mode: writes, ..Default::default() };
    Subscriptions::new(program.rules.format.clone(), layout.clone(), options)
}

/// Number of walks per target: more for the most common one.
fn rounds(target: usize) -> u64 {
    if target == 0 { 2 } else { 1 }
}

/// Maximum number of intermediate switch states to check per change, because each is a copy of the switch.
const MAX_TIMES: usize = 64;

/// A random sequence of rule changes. `check` is called for each change with the switch before it, its plan, and the
/// rules after it.
fn walk(
    seed: u64,
    program: &TestProgram,
    target: TargetCapabilities,
    writes: UpdateMode,
    mut check: impl FnMut(&mut SplitMix64, &ModelSwitch, UpdatePlan, &Subscriptions) -> ModelSwitch,
) {
    let mut rng = SplitMix64::new(seed);
    let layout = ColumnLayout::sensible(&program.rules.format, &[]);
    let mut all = compiler(program, &layout, target, writes);
    let mut installer = installer(program, &layout, target, writes);
    let mut switch = ModelSwitch::default();
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
            // The program has few slots for aggregates under other conditions, and few codes.
            Err(Refusal::Slots { .. } | Refusal::Codes(..)) => {
                ids.extend(remove);
                continue;
            }
            Err(other) => panic!("it fits: {other:?}"),
        };
        ids.extend(applied.added);
        let steps = installer.steps(&applied.change).expect("few groups");
        switch = check(&mut rng, &switch, steps, &all);
        let mut anew = ModelSwitch::default();
        let fresh = self::installer(program, &layout, target, writes).install(&all.tables()).expect("few groups");
        fresh.iter().for_each(|update| anew.apply(update));
        if writes == UpdateMode::Atomic {
            assert_eq!(switch.without_group_numbers(), anew.without_group_numbers(), "bit for bit, seed {seed}");
        } else {
            assert_eq!(switch.size(), anew.size(), "nothing is left behind, seed {seed}");
        }
    }
    let applied = all.change(&ids, Vec::new()).expect("less always fits");
    switch = check(&mut rng, &switch, installer.steps(&applied.change).expect("few groups"), &all);
    assert_eq!(switch.tables.len() + switch.groups.values().map(Vec::len).sum::<usize>(), 0, "nothing is left");
}

/// Returns the delivery by the switch and by the rules.
fn agree(
    program: &TestProgram,
    target: TargetCapabilities,
    switch: &ModelSwitch,
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
fn incremental_changes_lead_to_the_entries_of_a_fresh_compilation() {
    for (number, program) in [REPORTS, FEED, METER, CODED, METER_ANY].map(TestProgram::read).into_iter().enumerate() {
        let mut delivered = 0;
        for (at, target) in targets().into_iter().enumerate() {
            for round in 0..rounds(at) {
                let seed = 100 * number as u64 + 10 * at as u64 + round;
                walk(seed, &program, target, UpdateMode::Atomic, |rng, before, steps, rules| {
                    let mut switch = before.clone();
                    steps.all().iter().for_each(|update| switch.apply(update));
                    let layout = rules.layout().clone();
                    let mut anew = compiler(&program, &layout, target, UpdateMode::Atomic);
                    anew.change(&[], rules.rules().map(|(_, rule)| rule.clone()).collect()).expect("it fits");
                    let mut fresh = ModelSwitch::default();
                    let install = installer(&program, &layout, target, UpdateMode::Atomic).install(&anew.tables());
                    install.expect("few groups").iter().for_each(|update| fresh.apply(update));
                    // Slots are assigned in the order of first use, so the column order depends on history, and so do
                    // codes.
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
    // Number of messages that distinguish old from new rules, of switches with raised priorities, and of changes with
    // pauses.
    let (mut apart, mut raised, mut paused) = (0, 0, 0);
    for (number, program) in [REPORTS, FEED, METER, METER_ANY].map(TestProgram::read).into_iter().enumerate() {
        for (at, target) in targets().into_iter().enumerate() {
            for round in 0..rounds(at) {
                let seed = 1000 + 100 * number as u64 + 10 * at as u64 + round;
                walk(seed, &program, target, UpdateMode::PerMessageConsistent, |rng, before, steps, rules| {
                    // Positions of the pauses, as numbers of writes.
                    let mut pauses = vec![steps.prepare.len()];
                    pauses.extend(steps.transition.iter().map(Vec::len));
                    (1..pauses.len()).for_each(|at| pauses[at] += pauses[at - 1]);
                    // No pause is needed before the first phase.
                    if pauses.len() > 1 {
                        pauses.remove(0);
                    }
                    let turned = *pauses.last().expect("the preparation's");
                    // Checks after each write, or a sample of them; always at a pause.
                    let all = steps.all();
                    let mut times: BTreeSet<usize> = pauses.iter().copied().chain([0, all.len()]).collect();
                    if all.len() < MAX_TIMES {
                        times.extend(0..all.len())
                    } else {
                        times.extend((0..MAX_TIMES).map(|_| rng.below(all.len() as u64) as usize))
                    }
                    let mut now = before.clone();
                    let mut seen = Vec::new();
                    for (time, update) in all.iter().map(Some).chain([None]).enumerate() {
                        seen.extend(times.contains(&time).then(|| now.clone()));
                        update.into_iter().for_each(|update| now.apply(update));
                    }
                    // From here on, times are indices into `seen`.
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
                        // A message in flight reads later tables at later times; no message is in flight across a
                        // pause.
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
