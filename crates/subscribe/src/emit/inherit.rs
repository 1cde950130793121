//! Which new nodes take the places of old ones, and the states that all get.

use std::collections::{HashMap, HashSet};

use bdd::{Ref, Store};

use super::{Emitter, Entrance, Fast, Surroundings, Turnover, children, deliver};

impl Emitter {
    /// Finds for new nodes the old ones whose place they take.
    pub(super) fn inherit(
        &self,
        old: &Entrance,
        with: &Surroundings<'_>,
        turnover: &Turnover,
    ) -> HashMap<Ref, Ref, Fast> {
        let fresh: HashSet<Ref, Fast> = turnover.fresh.iter().copied().collect();
        let mut inherited: HashMap<Ref, Ref, Fast> = HashMap::default();
        let mut taken: HashSet<Ref, Fast> = HashSet::default();
        let mut waiting: Vec<(Ref, Ref)> = Vec::new();
        if let (Some(old), Some(new)) = (old.direct(), self.entrance.direct()) {
            below(with.store, old, new, &mut waiting);
        } else {
            let old: HashMap<&Vec<Option<bool>>, Ref> =
                old.frontier.iter().map(|(pattern, of)| (pattern, *of)).collect();
            let new = self.entrance.frontier.iter().rev();
            waiting.extend(new.filter_map(|(pattern, new)| Some((*old.get(pattern)?, *new))));
        }
        let mut seen: HashSet<(Ref, Ref), Fast> = HashSet::default();
        let same_level = |old: Ref, new: Ref| with.store.level(old) == with.store.level(new);
        while let Some((old, new)) = waiting.pop() {
            let worth = old != new && fresh.contains(&new) && turnover.dead.contains_key(&old);
            if !worth || with.tag(old) != with.tag(new) || !same_level(old, new) || !seen.insert((old, new)) {
                continue;
            }
            // What entries carry changes with them.
            let is_carried = |function: Ref| function.is_set() && deliver(with, function).is_plain();
            if self.carries && (is_carried(old) || is_carried(new)) {
                continue;
            }
            if !inherited.contains_key(&new) && !taken.contains(&old) {
                inherited.insert(new, old);
                taken.insert(old);
            }
            below(with.store, old, new, &mut waiting);
        }
        inherited
    }

    /// Gives new nodes their states: the inherited ones, or others.
    pub(super) fn allot(&mut self, turnover: &Turnover, inherited: &HashMap<Ref, Ref, Fast>, with: &Surroundings<'_>) {
        for function in &turnover.fresh {
            let state = match inherited.get(function) {
                Some(old) => turnover.dead[old],
                None => self.states.take(with.tag(*function)),
            };
            self.held.get_mut(function).expect("it was acquired").state = state;
        }
    }
}

/// Pairs of children that differ, of two nodes of a level; the first pair is to be taken off first.
fn below(store: &Store, old: Ref, new: Ref, waiting: &mut Vec<(Ref, Ref)>) {
    if store.level(old) != store.level(new) || old.is_set() {
        return;
    }
    let from = waiting.len();
    waiting.extend(children(store, old, new).filter(|(old, new)| old != new));
    waiting[from..].reverse();
}
