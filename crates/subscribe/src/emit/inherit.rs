//! Which new nodes take the places of old ones, and the states that all get.

use std::collections::{HashMap, HashSet};

use bdd::{Ref, Store};

use super::{Emitter, Fast, Frontier, Surroundings, Turnover, is_direct};

impl Emitter {
    /// Finds for new nodes the old ones whose place they take.
    pub(super) fn inherit(
        &self,
        (old_root, root): (Ref, Ref),
        (old_frontier, frontier): (&Frontier, &Frontier),
        with: &Surroundings<'_>,
        turnover: &Turnover,
    ) -> HashMap<Ref, Ref, Fast> {
        let fresh: HashSet<Ref, Fast> = turnover.fresh.iter().copied().collect();
        let mut inherited: HashMap<Ref, Ref, Fast> = HashMap::default();
        let mut taken: HashSet<Ref, Fast> = HashSet::default();
        let mut waiting: Vec<(Ref, Ref)> = Vec::new();
        let old_direct = is_direct(old_frontier);
        if is_direct(frontier) && old_direct {
            below(with.store, old_root, root, &mut waiting);
        } else {
            let old: HashMap<&Vec<Option<bool>>, Ref> =
                old_frontier.iter().map(|(pattern, of)| (pattern, *of)).collect();
            waiting.extend(frontier.iter().rev().filter_map(|(pattern, new)| Some((*old.get(pattern)?, *new))));
        }
        let mut seen: HashSet<(Ref, Ref), Fast> = HashSet::default();
        while let Some((old, new)) = waiting.pop() {
            let worth = old != new && fresh.contains(&new) && turnover.dead.contains_key(&old);
            if !worth || with.store.level(old) != with.store.level(new) || !seen.insert((old, new)) {
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

/// Pairs of children of two nodes of a level that hold for a value together, the first pair to be taken off first.
fn below(store: &Store, old: Ref, new: Ref, waiting: &mut Vec<(Ref, Ref)>) {
    if store.level(old) != store.level(new) || old.is_set() {
        return;
    }
    let from = waiting.len();
    let mut old_arms = store.arms(old).peekable();
    let mut new_arms = store.arms(new).peekable();
    let (mut old_child, mut new_child) = (Ref::NOTHING, Ref::NOTHING);
    loop {
        let firsts = (old_arms.peek().map(|(first, _)| *first), new_arms.peek().map(|(first, _)| *first));
        let first = match firsts {
            (Some(one), Some(other)) => one.min(other),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => break,
        };
        if let Some((_, child)) = old_arms.next_if(|(at, _)| *at == first) {
            old_child = child;
        }
        if let Some((_, child)) = new_arms.next_if(|(at, _)| *at == first) {
            new_child = child;
        }
        if old_child != new_child {
            waiting.push((old_child, new_child));
        }
    }
    waiting[from..].reverse();
}
