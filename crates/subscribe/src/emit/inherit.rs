//! Inheritance of states from old to new nodes, and state assignment.

use std::collections::{HashMap, HashSet};

use bdd::{Ref, Store};

use super::{Emitter, Entrance, Fast, Surroundings, Turnover, children, deliver};

impl Emitter {
    /// Maps new nodes to the old nodes that they replace.
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
            // Deliveries in entries change together with the entries.
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

    /// Assigns states to new nodes: inherited ones where possible, fresh ones otherwise.
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

/// Pushes the differing pairs of children of two nodes of a level; the first pair ends on top of the stack.
fn below(store: &Store, old: Ref, new: Ref, waiting: &mut Vec<(Ref, Ref)>) {
    if store.level(old) != store.level(new) || old.is_set() {
        return;
    }
    let from = waiting.len();
    waiting.extend(children(store, old, new).filter(|(old, new)| old != new));
    waiting[from..].reverse();
}
