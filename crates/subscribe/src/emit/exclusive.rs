//! Which states stay where writes come one after the other: those that the same messages reach before and after.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use bdd::{Ref, Store};

use super::{Emitter, Entrance, Fast, Frontier, Surroundings, Turnover, children};

/// How one side is led to from states that stay.
#[derive(Default)]
struct Side {
    /// Arms that lead to a node, and the node of the other side that they lead to; `None` for several or none.
    from_kept: HashMap<Ref, (usize, Option<Ref>), Fast>,
    /// Arms that lead to a node from anywhere.
    uses: HashMap<Ref, usize, Fast>,
    /// Pairs of nodes that were found to meet.
    seen: HashSet<(Ref, Ref), Fast>,
}

impl Side {
    /// Counts the arms to nodes that come or go: only others of these, and the root, lead there.
    fn new<'a>(nodes: impl Iterator<Item = &'a Ref>, entrance: &Entrance, store: &Store) -> Side {
        let mut side = Side::default();
        let below = nodes.flat_map(|node| store.arms(*node)).map(|(_, child)| child);
        below.chain(entrance.functions(store)).for_each(|child| *side.uses.entry(child).or_default() += 1);
        side
    }

    fn arm(&mut self, child: Ref) {
        self.from_kept.entry(child).or_insert((0, None)).0 += 1;
    }

    /// Some values that lead to `child` lead to `other` on the other side.
    fn meets(&mut self, child: Ref, other: Ref) {
        let is_new = self.seen.insert((child, other));
        let (_, partner) = self.from_kept.entry(child).or_insert((0, None));
        if is_new {
            // Two partners are none: NOTHING stays for nobody.
            *partner = Some(if partner.is_none() { other } else { Ref::NOTHING });
        }
    }

    /// Whether only states that stay lead to `node`, and where they lead to `other` on the other side.
    fn is_only(&self, node: Ref, other: Ref) -> bool {
        self.from_kept.get(&node).is_some_and(|(arms, partner)| {
            *partner == Some(other) && self.uses.get(&node).copied().unwrap_or(0) == *arms
        })
    }
}

/// Both sides, before and after.
struct Sides {
    old: Side,
    new: Side,
}

impl Sides {
    fn meet(&mut self, old: Ref, new: Ref) {
        self.old.meets(old, new);
        self.new.meets(new, old);
    }

    /// Goes through the arms of two nodes of a level that have one state; gives the pairs of children.
    fn visit(&mut self, store: &Store, old: Ref, new: Ref) -> BTreeSet<(Ref, Ref)> {
        store.arms(old).for_each(|(_, child)| self.old.arm(child));
        store.arms(new).for_each(|(_, child)| self.new.arm(child));
        let pairs: BTreeSet<(Ref, Ref)> = children(store, old, new).collect();
        pairs.iter().for_each(|(old, new)| self.meet(*old, *new));
        pairs
    }

    /// The same of validity patterns. Patterns that only one side has overlap others of the other side.
    fn visit_frontiers(&mut self, old: &Frontier, new: &Frontier) -> BTreeSet<(Ref, Ref)> {
        old.iter().for_each(|(_, function)| self.old.arm(*function));
        new.iter().for_each(|(_, function)| self.new.arm(*function));
        let known: HashMap<_, _> = new.iter().map(|(pattern, function)| (pattern, *function)).collect();
        let patterns: HashSet<_> = old.iter().map(|(pattern, _)| pattern).collect();
        let mut pairs = BTreeSet::new();
        for (pattern, function) in old {
            pairs.insert((*function, known.get(pattern).copied().unwrap_or(Ref::NOTHING)));
        }
        let alone = new.iter().filter(|(pattern, _)| !patterns.contains(pattern));
        pairs.extend(alone.map(|(_, function)| (Ref::NOTHING, *function)));
        pairs.iter().for_each(|(old, new)| self.meet(*old, *new));
        pairs
    }
}

impl Emitter {
    /// Finds the new nodes that take over the states of old ones: those that are reached by the same messages, from states
    /// that stay. Leaves never do.
    pub(super) fn exclusive(
        &self,
        old: &Entrance,
        with: &Surroundings<'_>,
        turnover: &Turnover,
    ) -> HashMap<Ref, Ref, Fast> {
        let store = with.store;
        let fresh: HashSet<Ref, Fast> = turnover.fresh.iter().copied().collect();
        let mut sides = Sides {
            old: Side::new(turnover.dead.keys(), old, store),
            new: Side::new(fresh.iter(), &self.entrance, store),
        };
        // By level, for a node is known when all above it are.
        let mut waiting: BTreeMap<u32, BTreeSet<(Ref, Ref)>> = BTreeMap::new();
        let wait = |pairs: BTreeSet<(Ref, Ref)>, waiting: &mut BTreeMap<u32, BTreeSet<(Ref, Ref)>>| {
            for (old, new) in pairs {
                if let (Some(level), Some(other)) = (store.level(old), store.level(new))
                    && level == other
                    && turnover.dead.contains_key(&old)
                    && fresh.contains(&new)
                {
                    waiting.entry(level).or_default().insert((old, new));
                }
            }
        };
        match (old.direct(), self.entrance.direct()) {
            (Some(old), Some(new)) if store.level(old).is_some() && store.level(old) == store.level(new) => {
                wait(sides.visit(store, old, new), &mut waiting);
            }
            (None, None) => wait(sides.visit_frontiers(&old.frontier, &self.entrance.frontier), &mut waiting),
            _ => {}
        }
        let mut inherited: HashMap<Ref, Ref, Fast> = HashMap::default();
        while let Some((_, pairs)) = waiting.pop_first() {
            for (old, new) in pairs {
                if sides.old.is_only(old, new) && sides.new.is_only(new, old) {
                    inherited.insert(new, old);
                    wait(sides.visit(store, old, new), &mut waiting);
                }
            }
        }
        inherited
    }
}
