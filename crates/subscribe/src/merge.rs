//! Incremental union of all rules.
//!
//! Rules are in a binary trie under a key of 64 bits that begins with the value that they test first. Rules about the
//! same symbol are neighbours, and rules with similar bounds are close to one another. A leaf holds a few rules and
//! their union, a branch the union of its two halves. A change affects one leaf and its ancestors, where the union
//! recomputes the changed part only: all else is the same hash-consed diagram as before, recognized by one comparison.

use bdd::{Full, Ref, Store};

use crate::lower::balanced;

/// A leaf with more rules is split.
const MOST: usize = 24;
/// A branch with fewer rules becomes a leaf.
const LEAST: usize = 12;

/// Index of a trie node.
type Place = u32;

#[derive(Clone)]
enum Shape {
    /// Keys and rules.
    Leaf(Vec<(u64, u32)>),
    /// Children for the next key bit 0 and 1.
    Branch([Place; 2]),
}

#[derive(Clone)]
struct Part {
    shape: Shape,
    rules: usize,
    /// The union of the rules; invalid while the node is stale.
    union: Ref,
    stale: bool,
}

/// Position at which the union exceeded a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stopped {
    pub full: Full,
    /// Number of rules in the union.
    pub rules: usize,
}

/// A binary trie of rules with the union of each subtree.
#[derive(Clone)]
pub(crate) struct Merge {
    parts: Vec<Part>,
    free: Vec<Place>,
    /// Number of nodes in the store that triggers a garbage collection.
    collect_at: usize,
}

const ROOT: Place = 0;

impl Merge {
    pub fn new() -> Merge {
        let root = Part { shape: Shape::Leaf(Vec::new()), rules: 0, union: Ref::NOTHING, stale: false };
        Merge { parts: vec![root], free: Vec::new(), collect_at: 1 << 16 }
    }

    /// Returns the memory used, in bytes.
    pub fn bytes(&self) -> usize {
        let rules: usize = self
            .parts
            .iter()
            .map(|part| match &part.shape {
                Shape::Leaf(rules) => rules.capacity() * size_of::<(u64, u32)>(),
                Shape::Branch(_) => 0,
            })
            .sum();
        rules + self.parts.capacity() * size_of::<Part>()
    }

    pub fn insert(&mut self, key: u64, rule: u32) {
        let (mut at, mut depth) = (ROOT, 0);
        loop {
            let part = &mut self.parts[at as usize];
            part.stale = true;
            part.rules += 1;
            match &mut part.shape {
                Shape::Branch(halves) => at = halves[bit(key, depth)],
                Shape::Leaf(rules) => {
                    rules.push((key, rule));
                    if rules.len() > MOST && depth < 64 {
                        self.part(at, depth);
                    }
                    return;
                }
            }
            depth += 1;
        }
    }

    /// Splits a leaf into a branch.
    fn part(&mut self, at: Place, depth: u32) {
        let Shape::Leaf(rules) = std::mem::replace(&mut self.parts[at as usize].shape, Shape::Branch([0, 0])) else {
            unreachable!("only leaves are parted")
        };
        let (one, zero): (Vec<_>, Vec<_>) = rules.into_iter().partition(|(key, _)| bit(*key, depth) == 1);
        let halves = [zero, one].map(|rules| {
            let part = Part { rules: rules.len(), shape: Shape::Leaf(rules), union: Ref::NOTHING, stale: true };
            match self.free.pop() {
                Some(place) => {
                    self.parts[place as usize] = part;
                    place
                }
                None => {
                    self.parts.push(part);
                    self.parts.len() as Place - 1
                }
            }
        });
        self.parts[at as usize].shape = Shape::Branch(halves);
        for half in halves {
            if self.parts[half as usize].rules > MOST && depth < 63 {
                self.part(half, depth + 1);
            }
        }
    }

    pub fn remove(&mut self, key: u64, rule: u32) {
        let (mut at, mut depth) = (ROOT, 0);
        let mut small = None;
        loop {
            let part = &mut self.parts[at as usize];
            part.stale = true;
            part.rules -= 1;
            match &mut part.shape {
                Shape::Branch(halves) => {
                    if part.rules < LEAST && small.is_none() {
                        small = Some(at);
                    }
                    at = halves[bit(key, depth)];
                }
                Shape::Leaf(rules) => {
                    let place = rules.iter().position(|(_, other)| *other == rule).expect("the rule hangs here");
                    rules.swap_remove(place);
                    break;
                }
            }
            depth += 1;
        }
        if let Some(at) = small {
            let mut rules = Vec::new();
            self.gather(at, &mut rules);
            self.parts[at as usize].shape = Shape::Leaf(rules);
        }
    }

    /// Moves the rules of a subtree to `into` and frees its nodes.
    fn gather(&mut self, at: Place, into: &mut Vec<(u64, u32)>) {
        match std::mem::replace(&mut self.parts[at as usize].shape, Shape::Leaf(Vec::new())) {
            Shape::Leaf(mut rules) => into.append(&mut rules),
            Shape::Branch(halves) => {
                for half in halves {
                    self.gather(half, into);
                    self.free.push(half);
                }
            }
        }
    }

    /// Updates the union. `lower` creates the diagram of a rule; diagrams in `needed` survive garbage collection.
    pub fn refresh(
        &mut self,
        store: &mut Store,
        needed: &[Ref],
        lower: &mut impl FnMut(&mut Store, u32) -> Result<Ref, Full>,
    ) -> Result<Ref, Stopped> {
        self.fresh(ROOT, store, needed, lower)
    }

    fn fresh(
        &mut self,
        at: Place,
        store: &mut Store,
        needed: &[Ref],
        lower: &mut impl FnMut(&mut Store, u32) -> Result<Ref, Full>,
    ) -> Result<Ref, Stopped> {
        if !self.parts[at as usize].stale {
            return Ok(self.parts[at as usize].union);
        }
        if let Shape::Branch([zero, one]) = self.parts[at as usize].shape {
            self.fresh(zero, store, needed, lower)?;
            self.fresh(one, store, needed, lower)?;
        }
        if store.len() > self.collect_at {
            self.collect(store, needed);
        }
        let union = match self.union(at, store, lower) {
            // Garbage may occupy the space.
            Err(Full::Nodes | Full::Bytes) => {
                self.collect(store, needed);
                self.union(at, store, lower)
            }
            done => done,
        };
        let part = &mut self.parts[at as usize];
        part.union = union.map_err(|full| Stopped { full, rules: part.rules })?;
        part.stale = false;
        Ok(part.union)
    }

    fn union(
        &self,
        at: Place,
        store: &mut Store,
        lower: &mut impl FnMut(&mut Store, u32) -> Result<Ref, Full>,
    ) -> Result<Ref, Full> {
        match &self.parts[at as usize].shape {
            Shape::Branch([zero, one]) => {
                store.union(self.parts[*zero as usize].union, self.parts[*one as usize].union)
            }
            Shape::Leaf(rules) => {
                let rules = rules.iter().map(|(_, rule)| lower(store, *rule));
                let mut rules = rules.collect::<Result<Vec<_>, _>>()?;
                balanced(store, &mut rules)
            }
        }
    }

    /// Collects every diagram that is neither needed nor a union of the trie.
    pub fn collect(&mut self, store: &mut Store, needed: &[Ref]) {
        let unions = self.parts.iter().filter(|part| !part.stale).map(|part| part.union);
        store.collect(unions.chain(needed.iter().copied()));
        self.collect_at = (store.len() * 2).max(1 << 16);
    }
}

fn bit(key: u64, depth: u32) -> usize {
    (key >> (63 - depth) & 1) as usize
}
