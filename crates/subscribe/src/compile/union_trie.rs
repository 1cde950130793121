//! Maintains the union of all rules incrementally.
//!
//! Rules are in a binary trie under a key of 64 bits that begins with the value that they test first. Rules about the
//! same symbol are neighbours, and rules with similar bounds are close to one another. A leaf holds a few rules and
//! their union, a branch the union of its two halves. A change affects one leaf and its ancestors, where the union
//! recomputes the changed part only: all else is the same hash-consed diagram as before, recognized by one comparison.

use bdd::{LimitExceeded, Ref, Store};

use crate::compile::lower::balanced;

/// A leaf with more rules is split.
const MAX_LEAF: usize = 24;
/// A branch with fewer rules becomes a leaf.
const MIN_BRANCH: usize = 12;

/// Index of a trie node.
type NodeIndex = u32;

#[derive(Clone)]
enum TrieNodeKind {
    /// Keys and rules.
    Leaf(Vec<(u64, u32)>),
    /// Children for the next key bit 0 and 1.
    Branch([NodeIndex; 2]),
}

#[derive(Clone)]
struct TrieNode {
    kind: TrieNodeKind,
    rules: usize,
    /// The union of the rules; invalid while the node is stale.
    union: Ref,
    stale: bool,
}

/// Position at which the union exceeded a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stopped {
    pub full: LimitExceeded,
    /// Number of rules in the union.
    pub rules: usize,
}

/// A binary trie of rules with the union of each subtree.
#[derive(Clone)]
pub(crate) struct UnionTrie {
    nodes: Vec<TrieNode>,
    free: Vec<NodeIndex>,
    /// Number of nodes in the store that triggers a garbage collection.
    collect_at: usize,
}

const ROOT: NodeIndex = 0;

impl UnionTrie {
    pub fn new() -> UnionTrie {
        let root = TrieNode { kind: TrieNodeKind::Leaf(Vec::new()), rules: 0, union: Ref::NOTHING, stale: false };
        UnionTrie { nodes: vec![root], free: Vec::new(), collect_at: 1 << 16 }
    }

    /// Returns the memory used, in bytes.
    pub fn bytes(&self) -> usize {
        let rules: usize = self
            .nodes
            .iter()
            .map(|node| match &node.kind {
                TrieNodeKind::Leaf(rules) => rules.capacity() * size_of::<(u64, u32)>(),
                TrieNodeKind::Branch(_) => 0,
            })
            .sum();
        rules + self.nodes.capacity() * size_of::<TrieNode>()
    }

    pub fn insert(&mut self, key: u64, rule: u32) {
        let (mut at, mut depth) = (ROOT, 0);
        loop {
            let node = &mut self.nodes[at as usize];
            node.stale = true;
            node.rules += 1;
            match &mut node.kind {
                TrieNodeKind::Branch(halves) => at = halves[bit(key, depth)],
                TrieNodeKind::Leaf(rules) => {
                    rules.push((key, rule));
                    if rules.len() > MAX_LEAF && depth < 64 {
                        self.node(at, depth);
                    }
                    return;
                }
            }
            depth += 1;
        }
    }

    /// Splits a leaf into a branch.
    fn node(&mut self, at: NodeIndex, depth: u32) {
        let TrieNodeKind::Leaf(rules) =
            std::mem::replace(&mut self.nodes[at as usize].kind, TrieNodeKind::Branch([0, 0]))
        else {
            unreachable!("only leaves are parted")
        };
        let (one, zero): (Vec<_>, Vec<_>) = rules.into_iter().partition(|(key, _)| bit(*key, depth) == 1);
        let halves = [zero, one].map(|rules| {
            let node =
                TrieNode { rules: rules.len(), kind: TrieNodeKind::Leaf(rules), union: Ref::NOTHING, stale: true };
            match self.free.pop() {
                Some(place) => {
                    self.nodes[place as usize] = node;
                    place
                }
                None => {
                    self.nodes.push(node);
                    self.nodes.len() as NodeIndex - 1
                }
            }
        });
        self.nodes[at as usize].kind = TrieNodeKind::Branch(halves);
        for half in halves {
            if self.nodes[half as usize].rules > MAX_LEAF && depth < 63 {
                self.node(half, depth + 1);
            }
        }
    }

    pub fn remove(&mut self, key: u64, rule: u32) {
        let (mut at, mut depth) = (ROOT, 0);
        let mut small = None;
        loop {
            let node = &mut self.nodes[at as usize];
            node.stale = true;
            node.rules -= 1;
            match &mut node.kind {
                TrieNodeKind::Branch(halves) => {
                    if node.rules < MIN_BRANCH && small.is_none() {
                        small = Some(at);
                    }
                    at = halves[bit(key, depth)];
                }
                TrieNodeKind::Leaf(rules) => {
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
            self.nodes[at as usize].kind = TrieNodeKind::Leaf(rules);
        }
    }

    /// Moves the rules of a subtree to `into` and frees its nodes.
    fn gather(&mut self, at: NodeIndex, into: &mut Vec<(u64, u32)>) {
        match std::mem::replace(&mut self.nodes[at as usize].kind, TrieNodeKind::Leaf(Vec::new())) {
            TrieNodeKind::Leaf(mut rules) => into.append(&mut rules),
            TrieNodeKind::Branch(halves) => {
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
        lower: &mut impl FnMut(&mut Store, u32) -> Result<Ref, LimitExceeded>,
    ) -> Result<Ref, Stopped> {
        self.fresh(ROOT, store, needed, lower)
    }

    fn fresh(
        &mut self,
        at: NodeIndex,
        store: &mut Store,
        needed: &[Ref],
        lower: &mut impl FnMut(&mut Store, u32) -> Result<Ref, LimitExceeded>,
    ) -> Result<Ref, Stopped> {
        if !self.nodes[at as usize].stale {
            return Ok(self.nodes[at as usize].union);
        }
        if let TrieNodeKind::Branch([zero, one]) = self.nodes[at as usize].kind {
            self.fresh(zero, store, needed, lower)?;
            self.fresh(one, store, needed, lower)?;
        }
        if store.len() > self.collect_at {
            self.collect(store, needed);
        }
        let union = match self.union(at, store, lower) {
            // Garbage may occupy the space.
            Err(LimitExceeded::Nodes | LimitExceeded::Bytes) => {
                self.collect(store, needed);
                self.union(at, store, lower)
            }
            done => done,
        };
        let node = &mut self.nodes[at as usize];
        node.union = union.map_err(|full| Stopped { full, rules: node.rules })?;
        node.stale = false;
        Ok(node.union)
    }

    fn union(
        &self,
        at: NodeIndex,
        store: &mut Store,
        lower: &mut impl FnMut(&mut Store, u32) -> Result<Ref, LimitExceeded>,
    ) -> Result<Ref, LimitExceeded> {
        match &self.nodes[at as usize].kind {
            TrieNodeKind::Branch([zero, one]) => {
                store.union(self.nodes[*zero as usize].union, self.nodes[*one as usize].union)
            }
            TrieNodeKind::Leaf(rules) => {
                let rules = rules.iter().map(|(_, rule)| lower(store, *rule));
                let mut rules = rules.collect::<Result<Vec<_>, _>>()?;
                balanced(store, &mut rules)
            }
        }
    }

    /// Collects every diagram that is neither needed nor a union of the trie.
    pub fn collect(&mut self, store: &mut Store, needed: &[Ref]) {
        let unions = self.nodes.iter().filter(|node| !node.stale).map(|node| node.union);
        store.collect(unions.chain(needed.iter().copied()));
        self.collect_at = (store.len() * 2).max(1 << 16);
    }
}

fn bit(key: u64, depth: u32) -> usize {
    (key >> (63 - depth) & 1) as usize
}
