//! Assigns states to nodes: new nodes inherit them from old ones where possible.

use std::collections::{HashMap, HashSet};

use bdd::{Ref, Store};

use super::{EmitContext, Emitter, EntryPoint, NodeDelta, NodeHasher, deliver, differing_children};

impl Emitter {
    /// Maps new nodes to the old nodes that they replace.
    pub(super) fn inherit(
        &self,
        old: &EntryPoint,
        with: &EmitContext<'_>,
        delta: &NodeDelta,
    ) -> HashMap<Ref, Ref, NodeHasher> {
        let fresh: HashSet<Ref, NodeHasher> = delta.fresh.iter().copied().collect();
        let mut inherited: HashMap<Ref, Ref, NodeHasher> = HashMap::default();
        let mut taken: HashSet<Ref, NodeHasher> = HashSet::default();
        let mut waiting: Vec<(Ref, Ref)> = Vec::new();
        if let (Some(old), Some(new)) = (old.direct(), self.entry_point.direct()) {
            below(with.store, old, new, &mut waiting);
        } else {
            let old: HashMap<&Vec<Option<bool>>, Ref> =
                old.frontier.iter().map(|(pattern, of)| (pattern, *of)).collect();
            let new = self.entry_point.frontier.iter().rev();
            waiting.extend(new.filter_map(|(pattern, new)| Some((*old.get(pattern)?, *new))));
        }
        let mut seen: HashSet<(Ref, Ref), NodeHasher> = HashSet::default();
        let same_level = |old: Ref, new: Ref| with.store.level(old) == with.store.level(new);
        while let Some((old, new)) = waiting.pop() {
            let worth = old != new && fresh.contains(&new) && delta.dead.contains_key(&old);
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
    pub(super) fn assign_states(
        &mut self,
        delta: &NodeDelta,
        inherited: &HashMap<Ref, Ref, NodeHasher>,
        with: &EmitContext<'_>,
    ) {
        for function in &delta.fresh {
            let state = match inherited.get(function) {
                Some(old) => delta.dead[old],
                None => self.states.take(with.tag(*function)),
            };
            self.nodes.get_mut(function).expect("it was acquired").state = state;
        }
    }
}

/// Pushes the differing pairs of children of two nodes of a level; the first pair ends on top of the stack.
fn below(store: &Store, old: Ref, new: Ref, waiting: &mut Vec<(Ref, Ref)>) {
    if store.level(old) != store.level(new) || old.is_set() {
        return;
    }
    let from = waiting.len();
    waiting.extend(differing_children(store, old, new).map(|(_, old, new)| (old, new)).filter(|(old, new)| old != new));
    waiting[from..].reverse();
}
