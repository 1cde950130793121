//! Stores hash-consed nodes: nodes with equal level, cuts and children share one [`Ref`].

use std::hash::{BuildHasher, Hash, Hasher};
use std::ops::Range;

use hashbrown::HashTable;

use crate::set::Sets;

/// The bit that distinguishes sets from nodes.
const SET: u32 = 1 << 31;

/// Handle to a function in a [`Store`]: a node or a set. Equal functions of one store have equal `Ref`s.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ref(pub(crate) u32);

impl Ref {
    /// The function that is the empty set everywhere: no rule matches. As a condition, "never".
    pub const NOTHING: Ref = Ref(SET);
    /// As a condition, "always": the set that contains only the reserved number, `u32::MAX`.
    pub const ALWAYS: Ref = Ref(SET | 1);

    /// Whether the function is the same set everywhere.
    pub fn is_set(self) -> bool {
        self.0 & SET != 0
    }

    /// Returns a number that is unique among the store's live functions, for use as a hash key. Bit 31 is set for sets.
    pub fn number(self) -> u32 {
        self.0
    }

    pub(crate) fn of_set(index: u32) -> Ref {
        Ref(SET | index)
    }

    /// Returns the index among nodes or among sets.
    pub(crate) fn index(self) -> usize {
        (self.0 & !SET) as usize
    }
}

impl std::fmt::Debug for Ref {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", if self.is_set() { "set" } else { "node" }, self.index())
    }
}

/// Limits of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of nodes and sets in the store, including garbage (unreachable ones not yet collected).
    pub nodes: usize,
    /// Maximum size of all nodes and sets in bytes.
    pub bytes: usize,
    /// Remaining steps of operations; a step takes a few tens of nanoseconds.
    pub steps: u64,
}

impl Limits {
    /// No limits except those of the index types.
    pub const NONE: Limits = Limits { nodes: 1 << 30, bytes: usize::MAX, steps: u64::MAX };
}

/// The limit that stopped an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitExceeded {
    /// [`Limits::nodes`].
    Nodes,
    /// [`Limits::bytes`].
    Bytes,
    /// [`Limits::steps`].
    Steps,
}

/// A node: its level, and the function for each interval of values. Child `n` holds from `cuts[n - 1]` (0 for the
/// first) up to, not including, `cuts[n]` (the end of the domain for the last).
#[derive(Clone)]
pub(crate) struct DiagramNode {
    pub level: u32,
    pub cuts: Box<[u128]>,
    pub children: Box<[Ref]>,
    pub hash: u64,
}

impl DiagramNode {
    fn bytes(arms: usize) -> usize {
        arms * (size_of::<u128>() + size_of::<Ref>()) + size_of::<DiagramNode>() + size_of::<u32>()
    }
}

/// An entry of the operation cache: operator, operands, result.
#[derive(Clone, Copy)]
pub(crate) struct CacheEntry {
    pub key: (u32, Ref, Ref),
    pub result: Ref,
}

/// Hash-consed nodes and sets, and the operations on them.
#[derive(Clone)]
pub struct Store {
    pub(crate) nodes: Vec<Option<DiagramNode>>,
    pub(crate) free: Vec<u32>,
    pub(crate) by_content: HashTable<u32>,
    pub(crate) sets: Sets,
    /// Number of arms of all nodes.
    pub(crate) arm_count: usize,
    pub(crate) limits: Limits,
    pub(crate) hasher: foldhash::fast::FixedState,
    /// Operation cache: results by the hash of their operands; a newer entry replaces an older one.
    pub(crate) cache: Vec<Option<CacheEntry>>,
    /// Arms of nodes under construction, those of outer calls first.
    pub(crate) arms_stack: Vec<(u128, Ref)>,
}

impl Default for Store {
    fn default() -> Self {
        Self::new()
    }
}

impl Store {
    /// Creates an empty store without limits.
    pub fn new() -> Store {
        Store {
            nodes: Vec::new(),
            free: Vec::new(),
            by_content: HashTable::new(),
            sets: Sets::new(),
            arm_count: 0,
            limits: Limits::NONE,
            hasher: foldhash::fast::FixedState::with_seed(0x5eed),
            cache: vec![None; 1 << 10],
            arms_stack: Vec::new(),
        }
    }

    /// Sets limits for later operations.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Returns the number of steps left.
    pub fn steps_left(&self) -> u64 {
        self.limits.steps
    }

    /// Returns the number of nodes and sets, including garbage.
    pub fn len(&self) -> usize {
        self.nodes.len() - self.free.len() + self.sets.len()
    }

    /// Whether the store has only the two constants.
    pub fn is_empty(&self) -> bool {
        self.len() == 2
    }

    /// Returns the size of nodes and sets in bytes, without the operation cache.
    pub fn bytes(&self) -> usize {
        (self.nodes.len() - self.free.len()) * DiagramNode::bytes(0)
            + self.arm_count * (size_of::<u128>() + size_of::<Ref>())
            + self.sets.bytes()
    }

    /// Returns the size of the operation cache in bytes.
    pub fn cache_bytes(&self) -> usize {
        self.cache.len() * size_of::<Option<CacheEntry>>()
    }

    /// Returns the level that a function tests first; `None` if it is a set.
    pub fn level(&self, of: Ref) -> Option<u32> {
        (!of.is_set()).then(|| self.get(of).level)
    }

    /// Returns the arms of a node in ascending order: the first value, and the function from there to the next arm. A
    /// set has none.
    pub fn arms(&self, of: Ref) -> impl ExactSizeIterator<Item = (u128, Ref)> + '_ {
        let (cuts, children): (&[u128], &[Ref]) =
            if of.is_set() { (&[], &[]) } else { (&self.get(of).cuts, &self.get(of).children) };
        children.iter().enumerate().map(|(at, child)| (if at == 0 { 0 } else { cuts[at - 1] }, *child))
    }

    /// Returns the number of arms of a node; a set has none.
    pub fn arm_count(&self, of: Ref) -> usize {
        if of.is_set() { 0 } else { self.get(of).children.len() }
    }

    /// Returns these arms of a node, as [`Store::arms`] does.
    ///
    /// # Panics
    /// Panics if the node has fewer arms.
    pub fn arms_in(&self, of: Ref, range: Range<usize>) -> impl ExactSizeIterator<Item = (u128, Ref)> + '_ {
        let (from, (cuts, children)): (usize, (&[u128], &[Ref])) =
            (range.start, if of.is_set() { (&[], &[]) } else { (&self.get(of).cuts, &self.get(of).children) });
        let first = move |at: usize| if at == 0 { 0 } else { cuts[at - 1] };
        children[range].iter().enumerate().map(move |(at, child)| (first(from + at), *child))
    }

    /// Returns the number of equal arms with which two nodes of a level begin, and of those with which they end. The
    /// sum is at most the number of arms of either.
    pub fn common_arms(&self, a: Ref, b: Ref) -> (usize, usize) {
        if a.is_set() || b.is_set() {
            return (0, 0);
        }
        let (a, b) = (self.get(a), self.get(b));
        let few = a.children.len().min(b.children.len());
        // The first arm begins at 0; each further one has a cut.
        let children = a.children.iter().zip(&b.children).take_while(|(a, b)| a == b).count();
        let cuts = 1 + a.cuts.iter().zip(&b.cuts).take_while(|(a, b)| a == b).count();
        let front = children.min(cuts);
        let children = a.children.iter().rev().zip(b.children.iter().rev()).take_while(|(a, b)| a == b).count();
        let cuts = a.cuts.iter().rev().zip(b.cuts.iter().rev()).take_while(|(a, b)| a == b).count();
        (front, children.min(cuts).min(few - front))
    }

    /// Returns the numbers of a set, ascending.
    ///
    /// # Panics
    /// Panics if `of` is a node.
    pub fn set(&self, of: Ref) -> &[u32] {
        assert!(of.is_set(), "{of:?} is not a set");
        self.sets.get(of.index())
    }

    /// Returns the function that is this set everywhere. The numbers may be unsorted and repeated; none is `u32::MAX`.
    pub fn constant(&mut self, numbers: &[u32]) -> Ref {
        let mut sorted = numbers.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert!(sorted.last() != Some(&u32::MAX), "`u32::MAX` is reserved");
        Ref::of_set(self.sets.intern(&sorted, &self.hasher))
    }

    pub(crate) fn get(&self, of: Ref) -> &DiagramNode {
        debug_assert!(!of.is_set());
        self.nodes[of.index()].as_ref().expect("use of a function that was garbage-collected")
    }

    /// Interns the node whose arms are `arms_stack[base..]`, and pops them. Adjacent arms must have different children,
    /// and the first must start at 0.
    pub(crate) fn intern(&mut self, level: u32, base: usize) -> Result<Ref, LimitExceeded> {
        let result = self.intern_top(level, base);
        self.arms_stack.truncate(base);
        result
    }

    fn intern_top(&mut self, level: u32, base: usize) -> Result<Ref, LimitExceeded> {
        let arms = &self.arms_stack[base..];
        if let [(_, only)] = arms {
            return Ok(*only);
        }
        let mut state = self.hasher.build_hasher();
        level.hash(&mut state);
        for (first, child) in arms {
            state.write_u128(*first);
            state.write_u32(child.0);
        }
        let hash = state.finish();
        let same = |index: &u32| {
            self.nodes[*index as usize].as_ref().is_some_and(|node| {
                node.hash == hash
                    && node.level == level
                    && node.children.len() == arms.len()
                    && node.children.iter().zip(arms).all(|(one, (_, other))| one == other)
                    && node.cuts.iter().zip(&arms[1..]).all(|(one, (other, _))| one == other)
            })
        };
        if let Some(index) = self.by_content.find(hash, same) {
            return Ok(Ref(*index));
        }
        if self.len() >= self.limits.nodes.min(1 << 30) {
            return Err(LimitExceeded::Nodes);
        }
        if self.bytes() + DiagramNode::bytes(arms.len()) > self.limits.bytes {
            return Err(LimitExceeded::Bytes);
        }
        let node = DiagramNode {
            level,
            cuts: arms[1..].iter().map(|(first, _)| *first).collect(),
            children: arms.iter().map(|(_, child)| *child).collect(),
            hash,
        };
        self.arm_count += arms.len();
        let index = match self.free.pop() {
            Some(index) => {
                self.nodes[index as usize] = Some(node);
                index
            }
            None => {
                self.nodes.push(Some(node));
                self.nodes.len() as u32 - 1
            }
        };
        let nodes = &self.nodes;
        self.by_content.insert_unique(hash, index, |index| nodes[*index as usize].as_ref().map_or(0, |node| node.hash));
        Ok(Ref(index))
    }
}
