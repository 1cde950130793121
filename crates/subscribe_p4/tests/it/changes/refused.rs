//! A target that takes writes one after the other takes a part of a change, and refuses the rest: the way back shows each message the
//! old rules or the new ones, too, and ends where the change began.

use std::collections::BTreeSet;

use subscribe::{State, Writes};
use subscribe_p4::entries::{Entity, Update};
use subscribe_p4::{mend, state};

use crate::changes::program::{FEED, METER, Program, REPORTS};
use crate::changes::target::{Outcome, Switch};
use crate::changes::{targets, walk};

fn states(switch: &Switch) -> BTreeSet<State> {
    switch.tables.values().filter_map(|entry| state(&Entity::Table(entry.clone()))).collect()
}

/// What takes a switch with this content to another, in no useful order.
fn difference(from: &Switch, to: &Switch) -> Vec<Update> {
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

/// So many writes of a change are refused, and so many states on the way back are looked into: each is a whole switch.
const MOST: usize = 2;

#[test]
fn the_way_back_from_a_part_of_a_change_shows_each_message_the_old_rules_or_the_new_ones() {
    // How many ways back there were, and how many took pauses within; messages that told old and new apart while on one.
    let (mut ways, mut paused, mut apart) = (0, 0, 0);
    for (number, program) in [REPORTS, FEED, METER].map(Program::read).into_iter().enumerate() {
        for (at, target) in targets().into_iter().enumerate().step_by(2) {
            let seed = 7000 + 100 * number as u64 + 10 * at as u64;
            walk(seed, &program, target, Writes::InTurn, |rng, before, steps, rules| {
                let first: Vec<Update> = [&steps.prepare[..], &steps.turn.concat()].concat();
                let all = steps.all();
                // What is deleted last is not taken back: the change is made then. Every write is refused, or some of many.
                let mut refused: BTreeSet<usize> = [0, first.len()].into();
                match first.len() < MOST {
                    true => refused.extend(0..first.len()),
                    false => refused.extend((0..MOST).map(|_| rng.below(first.len() as u64) as usize)),
                }
                for made in refused {
                    let mut now = before.clone();
                    all[..made].iter().for_each(|update| now.apply(update));
                    let stay: BTreeSet<State> = states(&now).intersection(&states(before)).copied().collect();
                    let back = mend(difference(&now, before), |state| stay.contains(&state));
                    // Where messages have to have left: before each round, and before the end.
                    let mut pauses = vec![back.prepare.len()];
                    back.turn.iter().for_each(|round| pauses.push(pauses[pauses.len() - 1] + round.len()));
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
                    // From here on times are places in `seen`.
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
