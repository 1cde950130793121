//! Finds the states that survive per-message consistent updates: those that the same messages reach before and after.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use bdd::{Ref, Store};

use super::{EmitContext, Emitter, EntryPoint, Frontier, NodeDelta, NodeHasher, children};

/// The arms from surviving states in one version of the diagram.
#[derive(Default)]
struct VersionArms {
    /// For each node, the number of arms from surviving states, and the node of the other version for the same values;
    /// `None` if there is none or more than one.
    from_kept: HashMap<Ref, (usize, Option<Ref>), NodeHasher>,
    /// Total number of arms to each node.
    uses: HashMap<Ref, usize, NodeHasher>,
    /// Pairs of nodes seen for a common value.
    seen: HashSet<(Ref, Ref), NodeHasher>,
}

impl VersionArms {
    /// Counts the arms to nodes that are added or removed. Only other such nodes and the root lead to them.
    fn new<'a>(nodes: impl Iterator<Item = &'a Ref>, entry_point: &EntryPoint, store: &Store) -> VersionArms {
        let mut version = VersionArms::default();
        let below = nodes.flat_map(|node| store.arms(*node)).map(|(_, child)| child);
        below.chain(entry_point.functions(store)).for_each(|child| *version.uses.entry(child).or_default() += 1);
        version
    }

    fn arm(&mut self, child: Ref) {
        self.from_kept.entry(child).or_insert((0, None)).0 += 1;
    }

    /// Records that some values lead to `child` here and to `other` in the other version.
    fn meets(&mut self, child: Ref, other: Ref) {
        let is_new = self.seen.insert((child, other));
        let (_, partner) = self.from_kept.entry(child).or_insert((0, None));
        if is_new {
            // More than one partner counts as none: NOTHING survives for no node.
            *partner = Some(if partner.is_none() { other } else { Ref::NOTHING });
        }
    }

    /// Whether only surviving states lead to `node`, and the same values lead to `other` in the other version.
    fn is_only(&self, node: Ref, other: Ref) -> bool {
        self.from_kept.get(&node).is_some_and(|(arms, partner)| {
            *partner == Some(other) && self.uses.get(&node).copied().unwrap_or(0) == *arms
        })
    }
}

/// The versions before and after the change.
struct BothVersions {
    old: VersionArms,
    new: VersionArms,
}

impl BothVersions {
    fn meet(&mut self, old: Ref, new: Ref) {
        self.old.meets(old, new);
        self.new.meets(new, old);
    }

    /// Records the arms of two nodes that share a level and a state. Returns the pairs of children.
    fn visit(&mut self, store: &Store, old: Ref, new: Ref) -> BTreeSet<(Ref, Ref)> {
        store.arms(old).for_each(|(_, child)| self.old.arm(child));
        store.arms(new).for_each(|(_, child)| self.new.arm(child));
        let pairs: BTreeSet<(Ref, Ref)> = children(store, old, new).map(|(_, old, new)| (old, new)).collect();
        pairs.iter().for_each(|(old, new)| self.meet(*old, *new));
        pairs
    }

    /// Records validity patterns in the same way. Patterns of only one version overlap others of the other version.
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
    /// Maps new nodes to the old nodes whose states they inherit: those that the same messages reach from surviving
    /// states. Leaves are never inherited.
    pub(super) fn inherit_consistently(
        &self,
        old: &EntryPoint,
        with: &EmitContext<'_>,
        delta: &NodeDelta,
    ) -> HashMap<Ref, Ref, NodeHasher> {
        let store = with.store;
        let fresh: HashSet<Ref, NodeHasher> = delta.fresh.iter().copied().collect();
        let mut versions = BothVersions {
            old: VersionArms::new(delta.dead.keys(), old, store),
            new: VersionArms::new(fresh.iter(), &self.entry_point, store),
        };
        // Ordered by level, because a node is decided after all nodes above it.
        let mut waiting: BTreeMap<u32, BTreeSet<(Ref, Ref)>> = BTreeMap::new();
        let wait = |pairs: BTreeSet<(Ref, Ref)>, waiting: &mut BTreeMap<u32, BTreeSet<(Ref, Ref)>>| {
            for (old, new) in pairs {
                if let (Some(level), Some(other)) = (store.level(old), store.level(new))
                    && level == other
                    && delta.dead.contains_key(&old)
                    && fresh.contains(&new)
                {
                    waiting.entry(level).or_default().insert((old, new));
                }
            }
        };
        match (old.direct(), self.entry_point.direct()) {
            (Some(old), Some(new)) if store.level(old).is_some() && store.level(old) == store.level(new) => {
                wait(versions.visit(store, old, new), &mut waiting);
            }
            (None, None) => wait(versions.visit_frontiers(&old.frontier, &self.entry_point.frontier), &mut waiting),
            _ => {}
        }
        let mut inherited: HashMap<Ref, Ref, NodeHasher> = HashMap::default();
        while let Some((_, pairs)) = waiting.pop_first() {
            for (old, new) in pairs {
                if versions.old.is_only(old, new) && versions.new.is_only(new, old) {
                    inherited.insert(new, old);
                    wait(versions.visit(store, old, new), &mut waiting);
                }
            }
        }
        inherited
    }
}
