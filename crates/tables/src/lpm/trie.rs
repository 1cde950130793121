//! Implements a bitmap trie with steps of 6 bits (Eatherton, Varghese, Dittia: Tree Bitmap, 2004).
//!
//! A node covers 6 bits of the key. One bitmap marks which of its 63 inner prefixes (of 0 to 5 more bits) have a
//! result, another which of its 64 children exist. Results and children are stored contiguously in arenas and are
//! indexed by counting bits. An update touches only the nodes on one path and nothing below them, unlike a trie that
//! pushes results to its leaves.
//!
//! ```text
//! results: bit  0 for *        children: bit i for the 6 bits i
//!          bits 1, 2 for 0*, 1*
//!          bits 3..7 for 00* to 11*, and so on to bits 31..63 for 5 bits
//! ```
//!
//! Steps end at 3, 9, 15, 21 bits and so on, because the first one has only 3 bits: most routes have lengths of 24, 48
//! or 32 bits, and then 8, 8 or 32 neighbours share a node. With a first step of 6 bits each /24 would have its own.
//!
//! So the longest inner prefix of 6 bits is the highest bit of the first bitmap under a mask for these bits.

use crate::arena::Arena;
use crate::prefetch::prefetch;
use crate::{BATCH, MISS};

/// Number of bits per step.
const STEP: u32 = 6;
/// Number of bits that the first step lacks.
const SKEW: u32 = 3;

#[derive(Clone, Copy, Debug, Default)]
struct TrieNode {
    results: u64,
    children: u64,
    first_result: u32,
    first_child: u32,
}

/// For each value of 6 bits, the mask of its inner prefixes.
const INNER: [u64; 64] = {
    let mut table = [0; 64];
    let mut bits = 0;
    while bits < 64 {
        let mut length = 0;
        while length < STEP {
            table[bits as usize] |= 1u64 << inner(bits, length);
            length += 1;
        }
        bits += 1;
    }
    table
};

/// For each inner prefix, the mask of those that begin with it.
const BELOW: [u64; 63] = {
    let mut table = [0; 63];
    let mut bits = 0;
    while bits < 64 {
        let mut length = 0;
        while length < STEP {
            // The inner prefixes of these bits that are not shorter.
            table[inner(bits, length) as usize] |= INNER[bits as usize] & !((1u64 << ((1u32 << length) - 1)) - 1);
            length += 1;
        }
        bits += 1;
    }
    table
};

/// Returns the bit index of the first `length` of 6 bits among the inner prefixes.
const fn inner(bits: u32, length: u32) -> u32 {
    (1 << length) - 1 + (bits >> (STEP - length))
}

/// Iteration over the steps of a value.
pub(super) trait Walk {
    /// Returns the bits of the first step.
    fn first(&mut self) -> usize;

    /// Returns the bits of the next step.
    fn next(&mut self) -> usize;
}

/// Values of up to 64 bits, the first bit at the top.
impl Walk for u64 {
    #[inline(always)]
    fn first(&mut self) -> usize {
        let bits = *self >> (64 - STEP + SKEW);
        *self <<= STEP - SKEW;
        bits as usize
    }

    #[inline(always)]
    fn next(&mut self) -> usize {
        let bits = *self >> (64 - STEP);
        *self <<= STEP;
        bits as usize
    }
}

/// Values of up to 128 bits, the first bit at the top.
impl Walk for u128 {
    #[inline(always)]
    fn first(&mut self) -> usize {
        let bits = *self >> (128 - STEP + SKEW);
        *self <<= STEP - SKEW;
        bits as usize
    }

    #[inline(always)]
    fn next(&mut self) -> usize {
        let bits = *self >> (128 - STEP);
        *self <<= STEP;
        bits as usize
    }
}

/// Values of any width, padded with zeros. The first bit is at the top of the first word.
struct Wide<'a> {
    words: &'a [u64],
    bit: usize,
}

impl Walk for Wide<'_> {
    #[inline(always)]
    fn first(&mut self) -> usize {
        self.bit += (STEP - SKEW) as usize;
        self.words.first().map_or(0, |word| (word >> (64 - STEP + SKEW)) as usize)
    }

    #[inline(always)]
    fn next(&mut self) -> usize {
        let (word, offset) = (self.bit / 64, self.bit % 64);
        self.bit += STEP as usize;
        let mut bits = self.words.get(word).map_or(0, |word| word << offset);
        if offset > 0 {
            bits |= self.words.get(word + 1).map_or(0, |word| word >> (64 - offset));
        }
        (bits >> (64 - STEP)) as usize
    }
}

#[derive(Clone, Debug)]
pub(super) struct Trie {
    nodes: Arena<TrieNode>,
    results: Arena<u32>,
}

#[inline(always)]
fn rank(bitmap: u64, bit: u32) -> u32 {
    (bitmap & ((1 << bit) - 1)).count_ones()
}

impl Trie {
    pub(super) fn new() -> Self {
        Trie { nodes: Arena::new(), results: Arena::new() }
    }

    /// Creates another tree in the same memory.
    pub(super) fn new_root(&mut self) -> u32 {
        self.nodes.allocate(1)
    }

    /// Releases a tree that has no prefix.
    pub(super) fn free_root(&mut self, root: u32) {
        self.nodes.release(root, 1);
    }

    #[inline(always)]
    fn node(&self, at: u32) -> TrieNode {
        self.nodes.items[at as usize]
    }

    /// Returns the position of the result of the longest prefix that a node has for 6 bits.
    #[inline(always)]
    fn inside(node: &TrieNode, bits: usize) -> Option<u32> {
        let candidates = node.results & INNER[bits];
        (candidates != 0).then(|| node.first_result + rank(node.results, candidates.ilog2()))
    }

    #[inline(always)]
    fn child(node: &TrieNode, bits: usize) -> Option<u32> {
        (node.children >> bits & 1 != 0).then(|| node.first_child + rank(node.children, bits as u32))
    }

    #[inline(always)]
    fn descend(&self, root: u32, mut walk: impl Walk) -> Option<u32> {
        let mut best = None;
        let mut at = root;
        let mut bits = walk.first();
        loop {
            let node = self.node(at);
            best = Self::inside(&node, bits).or(best);
            match Self::child(&node, bits) {
                Some(child) => at = child,
                None => return best.map(|place| self.results.items[place as usize]),
            }
            bits = walk.next();
        }
    }

    #[inline(always)]
    pub(super) fn lookup_number(&self, root: u32, value: impl Walk) -> Option<u32> {
        self.descend(root, value)
    }

    pub(super) fn lookup(&self, root: u32, value: &[u64]) -> Option<u32> {
        self.descend(root, Wide { words: value, bit: 0 })
    }

    /// Looks up a batch of up to [`BATCH`] values; all walks descend together, so their loads overlap.
    #[inline(always)]
    pub(super) fn lookup_batch<T: Walk + Copy + Default>(
        &self,
        root: u32,
        found: &mut [u32],
        value: impl Fn(usize) -> T,
    ) {
        let mut rest = [T::default(); BATCH];
        let mut at = [root; BATCH];
        let mut steps = [0u8; BATCH];
        let mut going = [0u8; BATCH];
        let mut count = found.len();
        for index in 0..count {
            rest[index] = value(index);
            steps[index] = rest[index].first() as u8;
            going[index] = index as u8;
        }
        found.fill(MISS);
        while count > 0 {
            let mut kept = 0;
            for place in 0..count {
                let index = usize::from(going[place]) % BATCH;
                let node = self.node(at[index]);
                let bits = usize::from(steps[index]) % (1 << STEP);
                if let Some(place) = Self::inside(&node, bits) {
                    found[index] = place;
                }
                if let Some(child) = Self::child(&node, bits) {
                    at[index] = child;
                    steps[index] = rest[index].next() as u8;
                    prefetch(&self.nodes.items, child as usize);
                    going[kept] = index as u8;
                    kept += 1;
                } else {
                    prefetch(&self.results.items, found[index] as usize);
                }
            }
            count = kept;
        }
        for found in found.iter_mut().filter(|found| **found != MISS) {
            *found = self.results.items[*found as usize];
        }
    }

    /// Returns the node of a prefix, and the bit index of the prefix in it.
    fn seek(&self, root: u32, value: &[u64], prefix: u32) -> Option<(u32, u32)> {
        let prefix = prefix + SKEW;
        let mut walk = Wide { words: value, bit: 0 };
        let mut at = root;
        let mut bits = walk.first();
        for _ in 0..prefix / STEP {
            at = Self::child(&self.node(at), bits)?;
            bits = walk.next();
        }
        Some((at, inner(bits as u32, prefix % STEP)))
    }

    pub(super) fn find(&self, root: u32, value: &[u64], prefix: u32) -> Option<u32> {
        let (at, place) = self.seek(root, value, prefix)?;
        let node = self.node(at);
        let there = node.results >> place & 1 != 0;
        there.then(|| self.results.items[(node.first_result + rank(node.results, place)) as usize])
    }

    /// Returns handle and length of the longest prefix of a value that has at most `longest` bits.
    pub(super) fn cover(&self, root: u32, value: &[u64], longest: u32) -> Option<(u32, u32)> {
        let mut walk = Wide { words: value, bit: 0 };
        let mut at = root;
        let mut best = None;
        let longest = longest + SKEW;
        let mut bits = walk.first();
        for depth in 0..=longest / STEP {
            let node = self.node(at);
            let inner_longest = (longest - depth * STEP).min(STEP - 1);
            let allowed = (1u64 << ((1 << (inner_longest + 1)) - 1)) - 1;
            let candidates = node.results & INNER[bits] & allowed;
            if candidates != 0 {
                let place = candidates.ilog2();
                let handle = self.results.items[(node.first_result + rank(node.results, place)) as usize];
                best = Some((handle, depth * STEP + (place + 1).ilog2() - SKEW));
            }
            match Self::child(&node, bits) {
                Some(child) => at = child,
                None => break,
            }
            bits = walk.next();
        }
        best
    }

    /// Sets the handle of a prefix and returns its previous handle.
    pub(super) fn insert(&mut self, root: u32, value: &[u64], prefix: u32, handle: u32) -> Option<u32> {
        let prefix = prefix + SKEW;
        let mut walk = Wide { words: value, bit: 0 };
        let mut at = root;
        let mut bits = walk.first();
        for _ in 0..prefix / STEP {
            let node = self.node(at);
            at = match Self::child(&node, bits) {
                Some(child) => child,
                None => {
                    let place = rank(node.children, bits as u32);
                    let len = node.children.count_ones() as usize;
                    let first = self.nodes.insert(node.first_child, len, place as usize, TrieNode::default());
                    let node = &mut self.nodes.items[at as usize];
                    node.children |= 1 << bits;
                    node.first_child = first;
                    first + place
                }
            };
            bits = walk.next();
        }
        let place = inner(bits as u32, prefix % STEP);
        let node = self.node(at);
        let index = rank(node.results, place);
        if node.results >> place & 1 != 0 {
            let result = &mut self.results.items[(node.first_result + index) as usize];
            return Some(std::mem::replace(result, handle));
        }
        let len = node.results.count_ones() as usize;
        let first = self.results.insert(node.first_result, len, index as usize, handle);
        let node = &mut self.nodes.items[at as usize];
        node.results |= 1 << place;
        node.first_result = first;
        None
    }

    /// Removes a prefix, and the nodes that only it needed; the root stays.
    pub(super) fn remove(&mut self, root: u32, value: &[u64], prefix: u32) -> Option<u32> {
        let handle = self.find(root, value, prefix)?;
        // Nodes move when their siblings change. So the path is walked once to remove the result, and again from its
        // end for each node that becomes empty.
        let (at, place) = self.seek(root, value, prefix)?;
        let node = self.node(at);
        let len = node.results.count_ones() as usize;
        let first = self.results.remove(node.first_result, len, rank(node.results, place) as usize);
        let node = &mut self.nodes.items[at as usize];
        node.results &= !(1 << place);
        node.first_result = first;

        let prefix = prefix + SKEW;
        let mut path = Vec::with_capacity((prefix / STEP) as usize);
        let mut walk = Wide { words: value, bit: 0 };
        let mut at = root;
        let mut bits = walk.first();
        for _ in 0..prefix / STEP {
            path.push((at, bits));
            at = Self::child(&self.node(at), bits).expect("the prefix was found");
            bits = walk.next();
        }
        while let Some((parent, bits)) = path.pop() {
            let node = self.node(at);
            if node.results != 0 || node.children != 0 {
                break;
            }
            let above = self.node(parent);
            let len = above.children.count_ones() as usize;
            let first = self.nodes.remove(above.first_child, len, rank(above.children, bits as u32) as usize);
            let above = &mut self.nodes.items[parent as usize];
            above.children &= !(1 << bits);
            above.first_child = first;
            at = parent;
        }
        Some(handle)
    }

    /// Visits every prefix of a tree of values of up to 32 bits: value with its first bit at the top, length, handle. A
    /// prefix comes before those that it contains, otherwise the lower value comes first.
    pub(super) fn for_each_in_order(&self, root: u32, visit: &mut impl FnMut(u32, u32, u32)) {
        self.visit_inner(&self.node(root), 0, (0, 0, 0), visit);
    }

    /// Visits the prefixes in a node at this depth, and in the nodes below it, that begin with a value and the first
    /// `length` of 6 bits.
    fn visit_inner(
        &self,
        node: &TrieNode,
        depth: u32,
        (value, bits, length): (u64, u32, u32),
        visit: &mut impl FnMut(u32, u32, u32),
    ) {
        if length == STEP {
            if let Some(child) = Self::child(node, bits as usize) {
                let value = value | u64::from(bits) << (64 - STEP + SKEW - depth * STEP);
                self.visit_inner(&self.node(child), depth + 1, (value, 0, 0), visit);
            }
            return;
        }
        let place = inner(bits, length);
        let children = (u64::MAX >> (64 - (1 << (STEP - length)))) << bits;
        if node.results & BELOW[place as usize] == 0 && node.children & children == 0 {
            return;
        }
        if node.results >> place & 1 != 0 {
            let handle = self.results.items[(node.first_result + rank(node.results, place)) as usize];
            let value = value | u64::from(bits) << (64 - STEP + SKEW - depth * STEP);
            visit((value >> 32) as u32, depth * STEP + length - SKEW, handle);
        }
        self.visit_inner(node, depth, (value, bits, length + 1), visit);
        self.visit_inner(node, depth, (value, bits | 1 << (STEP - length - 1), length + 1), visit);
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.nodes.memory_bytes() + self.results.memory_bytes()
    }
}
