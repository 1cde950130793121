//! Rollback on a target without atomic writes that applies a part of a change and refuses the rest: during the rollback
//! each message sees either the old rules or the new ones, and the rollback restores the state before the change.

use std::collections::BTreeSet;

use subscribe::{StateId, UpdateMode};
use subscribe_p4::entries::{Entity, Update};
use subscribe_p4::{entity_state, repair};

use crate::changes::program::{FEED, METER, METER_ANY, REPORTS, TestProgram};
use crate::changes::target::{ModelSwitch, Outcome};
use crate::changes::{targets, walk};

fn states(switch: &ModelSwitch) -> BTreeSet<StateId> {
    switch.tables.values().filter_map(|entry| entity_state(&Entity::Table(entry.clone()))).collect()
}

/// Returns the updates from one switch content to another, in arbitrary order.
fn difference(from: &ModelSwitch, to: &ModelSwitch) -> Vec<Update> {
    let mut updates = Vec::new();
    for (key, entry) in &from.tables {
        let entity = || Entity::Table(entry.clone());
        updates.extend((!to.tables.contains_key(key)).then(|| Update::Delete(entity())));
    }
    for (key, entry) in &to.tables {
        let entity = Entity::Table(entry.clone());
        match from.tables.get(key) {
            Some(known) if known == entry => {}
            Some(_) => updates.push(Update::Modify(entity)),
            None => updates.push(Update::Insert(entity)),
        }
    }
    for (id, ports) in &from.groups {
        updates.extend((!to.groups.contains_key(id)).then(|| Update::Delete(Entity::Group(*id, ports.clone()))));
    }
    for (id, ports) in &to.groups {
        let entity = Entity::Group(*id, ports.clone());
        match from.groups.get(id) {
            Some(known) if known == ports => {}
            Some(_) => updates.push(Update::Modify(entity)),
            None => updates.push(Update::Insert(entity)),
        }
    }
    updates
}

/// Maximum number of refused writes per change, and of intermediate states to check per rollback, because each is a
/// copy of the switch.
const MOST: usize = 2;

#[test]
fn the_way_back_from_a_part_of_a_change_shows_each_message_the_old_rules_or_the_new_ones() {
    // Number of rollbacks, of rollbacks with pauses, and of messages that distinguish old from new rules during one.
    let (mut ways, mut paused, mut apart) = (0, 0, 0);
    for (number, program) in [REPORTS, FEED, METER, METER_ANY].map(TestProgram::read).into_iter().enumerate() {
        for (at, target) in targets().into_iter().enumerate().step_by(2) {
            let seed = 7000 + 100 * number as u64 + 10 * at as u64;
            walk(seed, &program, target, UpdateMode::PerMessageConsistent, |rng, before, steps, rules| {
                let first: Vec<Update> = [&steps.prepare[..], &steps.transition.concat()].concat();
                let all = steps.all();
                // Deletions at the end are not rolled back, because the change is then complete. Every write is
                // refused, or a sample.
                let mut refused: BTreeSet<usize> = [0, first.len()].into();
                if first.len() < MOST {
                    refused.extend(0..first.len())
                } else {
                    refused.extend((0..MOST).map(|_| rng.below(first.len() as u64) as usize))
                }
                for made in refused {
                    let mut now = before.clone();
                    all[..made].iter().for_each(|update| now.apply(update));
                    let stay: BTreeSet<StateId> = states(&now).intersection(&states(before)).copied().collect();
                    let back = repair(difference(&now, before), |state| stay.contains(&state));
                    // Points at which all messages must have left: before each phase, and before the end.
                    let mut pauses = vec![back.prepare.len()];
                    back.transition.iter().for_each(|round| pauses.push(pauses[pauses.len() - 1] + round.len()));
                    let turned = pauses[pauses.len() - 1];
                    (ways, paused) = (ways + 1, paused + usize::from(pauses.len() > 2));
                    let back = back.all();
                    let mut times: BTreeSet<usize> = pauses.iter().copied().chain([0, back.len()]).collect();
                    times.extend((0..4 * MOST).map(|_| rng.below(back.len() as u64 + 1) as usize));
                    let mut seen = Vec::new();
                    for (time, update) in back.iter().map(Some).chain([None]).enumerate() {
                        seen.extend(times.contains(&time).then(|| now.clone()));
                        update.into_iter().for_each(|update| now.apply(update));
                    }
                    // From here on, times are indices into `seen`.
                    let place = |time: usize| times.range(..time).count();
                    let (pauses, turned) = (pauses.into_iter().map(place).collect::<Vec<_>>(), place(turned));
                    let last = seen.len() - 1;
                    assert_eq!(seen[last], *before, "seed {seed}: {made} writes are not taken back");
                    for _ in 0..10 {
                        let message = program.random_message(rng);
                        let old = program.run(target, &message, &mut |_| before);
                        let new = Outcome::of(&rules.evaluate(&message), program.format.counters.len());
                        apart += usize::from(old != new);
                        let mut now = rng.below(last as u64 + 1) as usize;
                        let is_back = now >= turned;
                        let end = pauses.iter().copied().find(|pause| now <= *pause).unwrap_or(last);
                        let got = program.run(target, &message, &mut |_| {
                            now += rng.below((end - now) as u64 + 1) as usize * rng.below(2) as usize;
                            &seen[now]
                        });
                        let is_right = got == old || !is_back && got == new;
                        assert!(
                            is_right,
                            "seed {seed}, {made} of {} writes: {message:?}\ngot {got:?}\nold {old:?}\nnew {new:?}",
                            all.len()
                        );
                    }
                }
                let mut switch = before.clone();
                all.iter().for_each(|update| switch.apply(update));
                switch
            });
        }
    }
    assert!(ways > 300 && paused > 3 && apart > 100, "{ways} ways back, {paused} with pauses, {apart} messages");
}
