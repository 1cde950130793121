//! Which states stay where writes come one after the other: those that the same messages reach before and after.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use bdd::{Ref, Store};

use super::{Emitter, Fast, Frontier, Surroundings, Turnover, is_direct};

/// How one side is led to from states that stay.
#[derive(Default)]
struct Side {
    /// Arms that lead to a node, and the node of the other side that they lead to; `None` for several or none.
    from_kept: HashMap<Ref, (usize, Option<Ref>), Fast>,
    /// Arms that lead to a node from anywhere.
    uses: HashMap<Ref, usize, Fast>,
}

impl Side {
    /// Counts the arms to nodes that come or go: only others of these, and the root, lead there.
    fn new<'a>(nodes: impl Iterator<Item = &'a Ref>, root: Ref, frontier: &Frontier, store: &Store) -> Side {
        let mut side = Side::default();
        let mut count = |child: Ref| *side.uses.entry(child).or_default() += 1;
        nodes.for_each(|node| store.arms(*node).for_each(|(_, child)| count(child)));
        match is_direct(frontier) {
            true => store.arms(root).for_each(|(_, child)| count(child)),
            false => frontier.iter().for_each(|(_, function)| count(*function)),
        }
        side
    }

    fn arm(&mut self, child: Ref) {
        self.from_kept.entry(child).or_insert((0, None)).0 += 1;
    }

    /// Some values that lead to `child` lead to `other` on the other side.
    fn meets(&mut self, child: Ref, other: Ref, seen: &mut HashSet<(Ref, Ref), Fast>) {
        let is_new = seen.insert((child, other));
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
    seen_old: HashSet<(Ref, Ref), Fast>,
    seen_new: HashSet<(Ref, Ref), Fast>,
}

impl Sides {
    fn meet(&mut self, old: Ref, new: Ref) {
        self.old.meets(old, new, &mut self.seen_old);
        self.new.meets(new, old, &mut self.seen_new);
    }

    /// Goes through the arms of two nodes of a level that have one state; gives the pairs of children.
    fn visit(&mut self, store: &Store, old: Ref, new: Ref) -> BTreeSet<(Ref, Ref)> {
        store.arms(old).for_each(|(_, child)| self.old.arm(child));
        store.arms(new).for_each(|(_, child)| self.new.arm(child));
        let mut pairs = BTreeSet::new();
        let (mut old_arms, mut new_arms) = (store.arms(old).peekable(), store.arms(new).peekable());
        let (mut old_child, mut new_child) = (Ref::NOTHING, Ref::NOTHING);
        while let Some(first) = [old_arms.peek(), new_arms.peek()].into_iter().flatten().map(|(first, _)| *first).min()
        {
            if let Some((_, child)) = old_arms.next_if(|(at, _)| *at == first) {
                old_child = child;
            }
            if let Some((_, child)) = new_arms.next_if(|(at, _)| *at == first) {
                new_child = child;
            }
            pairs.insert((old_child, new_child));
        }
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
        (old_root, root): (Ref, Ref),
        (old_frontier, frontier): (&Frontier, &Frontier),
        with: &Surroundings<'_>,
        turnover: &Turnover,
    ) -> HashMap<Ref, Ref, Fast> {
        let store = with.store;
        let fresh: HashSet<Ref, Fast> = turnover.fresh.iter().copied().collect();
        let mut sides = Sides {
            old: Side::new(turnover.dead.keys(), old_root, old_frontier, store),
            new: Side::new(fresh.iter(), root, frontier, store),
            seen_old: HashSet::default(),
            seen_new: HashSet::default(),
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
        match (is_direct(old_frontier), is_direct(frontier)) {
            (true, true) if store.level(old_root).is_some() && store.level(old_root) == store.level(root) => {
                wait(sides.visit(store, old_root, root), &mut waiting);
            }
            (false, false) => wait(sides.visit_frontiers(old_frontier, frontier), &mut waiting),
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
