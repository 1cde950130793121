//! Implements a trie for one prefix of at most 128 bits. The root covers up to 16 bits, each further node 4, and a
//! prefix is in every word of its node that it covers (controlled prefix expansion, Srinivasan and Varghese 1998). An
//! IPv4 route of 24 bits takes three loads.
//!
//! ```text
//! word: | 56..61 bits of the prefix in this node | 32..56 child, from 1 | 0..32 number |
//! table: root words | 16 words of child 1 | 16 words of child 2 | ...
//! ```

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;

use super::{FlatFull, load, store};

/// Maximum number of bits that the root covers.
const ROOT_BITS: u32 = 16;
/// Number of bits that each further node covers; the last one may cover fewer.
pub const NODE_BITS: u32 = 4;
/// Number of prefixes of more than 64 bits that always have room.
const MAX_LONG: u32 = 4096;
/// Number of words of a node below the root.
pub const NODE_WORDS: usize = 1 << NODE_BITS;
/// Position of the child in a word.
pub const CHILD_SHIFT: u32 = 32;
/// Number of bits of a child.
pub const CHILD_BITS: u32 = 24;
/// Position of the number of bits of the prefix.
const LENGTH_SHIFT: u32 = CHILD_SHIFT + CHILD_BITS;

/// The shape of a table with one prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlatPrefixes {
    width: u32,
    children: usize,
}

/// One node on the way to a prefix.
#[derive(Clone, Copy)]
struct Node {
    /// The first word.
    first: usize,
    /// Number of bits in front of the node.
    base: u32,
    /// Number of bits that the node covers.
    bits: u32,
}

impl FlatPrefixes {
    /// Returns the shape of a table for `capacity` prefixes of a value of `width` bits. `None` if there can be more
    /// nodes than words can refer to, or if bits of both words of a value are in one node: widths of more than 64 bits
    /// must be multiples of four from 80 to 128.
    ///
    /// There is room for any prefixes, but of more than 4,096 prefixes of more than 64 bits, only for those of at most
    /// 64 bits. Longer ones take more room, and those that share bits take less.
    pub fn new(width: u32, capacity: u32) -> Option<FlatPrefixes> {
        let levels = |width: u32| width.saturating_sub(ROOT_BITS).div_ceil(NODE_BITS) as usize;
        let few = if width > 64 { capacity.min(MAX_LONG) } else { capacity };
        let children = few as usize * levels(width) + (capacity - few) as usize * levels(64);
        let is_split =
            (1..=64).contains(&width) || ((64 + ROOT_BITS..=128).contains(&width) && width.is_multiple_of(NODE_BITS));
        (is_split && children < 1 << CHILD_BITS).then_some(FlatPrefixes { width, children })
    }

    /// Returns the number of words of a table.
    pub fn words(&self) -> usize {
        self.root_words() + self.children * NODE_WORDS
    }

    /// Returns the number of words of the root: a power of two.
    pub fn root_words(&self) -> usize {
        1 << self.root_bits()
    }

    /// Returns the number of bits that the root covers.
    pub fn root_bits(&self) -> u32 {
        self.width.min(ROOT_BITS)
    }

    /// Returns the maximum number of nodes below the root.
    pub fn children(&self) -> usize {
        self.children
    }

    /// Returns the width of the value in bits.
    pub fn width(&self) -> u32 {
        self.width
    }

    fn root(&self) -> Node {
        Node { first: 0, base: 0, bits: self.root_bits() }
    }

    fn child(&self, node: Node, child: u64) -> Node {
        let base = node.base + node.bits;
        let first = self.root_words() + (child as usize - 1) * NODE_WORDS;
        Node { first, base, bits: NODE_BITS.min(self.width - base) }
    }

    /// Returns the word of a node that covers a value.
    fn at(&self, node: Node, value: u128) -> usize {
        node.first + (value >> (self.width - node.base - node.bits)) as usize % (1 << node.bits)
    }

    /// Returns the number of the longest prefix of a value; 0 if there is none.
    ///
    /// # Panics
    /// If the table has another length than the shape's.
    pub fn lookup(&self, words: &[AtomicU64], value: u128) -> u32 {
        assert_eq!(words.len(), self.words(), "the table has the shape's length");
        let (mut node, mut found) = (self.root(), 0);
        loop {
            let word = load(words, self.at(node, value));
            if word as u32 != 0 {
                found = word as u32;
            }
            match child_of(word) {
                0 => return found,
                child => node = self.child(node, child),
            }
        }
    }
}

fn child_of(word: u64) -> u64 {
    word >> CHILD_SHIFT & ((1 << CHILD_BITS) - 1)
}

fn set_child(words: &[AtomicU64], at: usize, child: u64) {
    let others = !(((1u64 << CHILD_BITS) - 1) << CHILD_SHIFT);
    store(words, at, load(words, at) & others | child << CHILD_SHIFT);
}

fn set_prefix(words: &[AtomicU64], at: usize, number: u32, bits: u32) {
    let child = load(words, at) & ((1u64 << CHILD_BITS) - 1) << CHILD_SHIFT;
    store(words, at, child | u64::from(bits) << LENGTH_SHIFT | u64::from(number));
}

/// The writer of a table: what lookups do not need.
#[derive(Clone, Debug)]
pub struct PrefixWriter {
    shape: FlatPrefixes,
    /// Numbers by length and value.
    present: HashMap<(u32, u128), u32>,
    /// Children that are not in use; those beyond `fresh` never were.
    free: Vec<u32>,
    fresh: usize,
}

impl PrefixWriter {
    /// Creates the writer of a table whose words are all 0.
    pub fn new(shape: FlatPrefixes) -> PrefixWriter {
        PrefixWriter { shape, present: HashMap::new(), free: Vec::new(), fresh: 0 }
    }

    /// Adds a prefix, or gives it another number. The bits of `value` behind the first `length` ones must be 0.
    ///
    /// # Errors
    /// [`FlatFull`] if there are too few nodes; nothing has changed then.
    ///
    /// # Panics
    /// If the number is 0, the prefix does not fit the shape, or the table has another length than the shape's.
    pub fn insert(&mut self, words: &[AtomicU64], value: u128, length: u32, number: u32) -> Result<(), FlatFull> {
        let shape = self.shape;
        assert!(number != 0 && length <= shape.width && words.len() == shape.words(), "prefix and table fit the shape");
        let mut node = shape.root();
        while length > node.base + node.bits {
            let at = shape.at(node, value);
            let child = match child_of(load(words, at)) {
                0 => {
                    // All nodes below a missing one are missing, so nothing was changed before.
                    let missing = (length - node.base - node.bits).div_ceil(NODE_BITS) as usize;
                    if missing > self.free.len() + shape.children - self.fresh {
                        return Err(FlatFull);
                    }
                    let child = self.take_node();
                    set_child(words, at, child);
                    child
                }
                child => child,
            };
            node = shape.child(node, child);
        }
        self.present.insert((length, value), number);
        let bits = length - node.base;
        for at in self.covered(node, value, bits) {
            let word = load(words, at);
            if word as u32 == 0 || (word >> LENGTH_SHIFT) as u32 <= bits {
                set_prefix(words, at, number, bits);
            }
        }
        Ok(())
    }

    /// Removes a prefix and returns its number, or 0 if there is none.
    ///
    /// # Panics
    /// As [`PrefixWriter::insert`].
    pub fn remove(&mut self, words: &[AtomicU64], value: u128, length: u32) -> u32 {
        let shape = self.shape;
        assert!(length <= shape.width && words.len() == shape.words(), "prefix and table fit the shape");
        let Some(number) = self.present.remove(&(length, value)) else { return 0 };
        let mut node = shape.root();
        let mut way = Vec::new();
        while length > node.base + node.bits {
            let at = shape.at(node, value);
            way.push((at, node));
            node = shape.child(node, child_of(load(words, at)));
        }
        let bits = length - node.base;
        let shorter = (0..bits).rev().filter(|bits| *bits > 0 || node.base == 0);
        let left = shorter.map(|bits| (bits, prefix_of(value, node.base + bits, shape.width)));
        let mut left = left.filter_map(|(bits, value)| Some((bits, *self.present.get(&(node.base + bits, value))?)));
        let (other_bits, other) = left.next().unwrap_or((0, 0));
        for at in self.covered(node, value, bits) {
            let word = load(words, at);
            if word as u32 != 0 && (word >> LENGTH_SHIFT) as u32 == bits {
                set_prefix(words, at, other, other_bits);
            }
        }
        self.free_empty(words, way);
        number
    }

    /// Frees the nodes without content at the end of a way from the root.
    fn free_empty(&mut self, words: &[AtomicU64], way: Vec<(usize, Node)>) {
        for (at, node) in way.into_iter().rev() {
            let child = child_of(load(words, at));
            let first = self.shape.child(node, child).first;
            if (first..first + NODE_WORDS).any(|word| load(words, word) != 0) {
                return;
            }
            set_child(words, at, 0);
            self.free.push(child as u32);
        }
    }

    fn take_node(&mut self) -> u64 {
        match self.free.pop() {
            Some(child) => child.into(),
            None => {
                self.fresh += 1;
                self.fresh as u64
            }
        }
    }

    /// Returns the words of a node that a prefix with this many bits in it covers.
    fn covered(&self, node: Node, value: u128, bits: u32) -> std::ops::Range<usize> {
        let first = self.shape.at(node, value);
        first..first + (1 << (node.bits - bits))
    }
}

/// Returns a value with only its first `length` bits.
fn prefix_of(value: u128, length: u32, width: u32) -> u128 {
    if length == 0 { 0 } else { value >> (width - length) << (width - length) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FieldKind, KeyLayout, Lpm, PackedLookup};
    use rng::SplitMix64;

    fn blank(shape: &FlatPrefixes) -> Vec<AtomicU64> {
        (0..shape.words()).map(|_| AtomicU64::new(0)).collect()
    }

    #[test]
    fn it_agrees_with_the_ordinary_table_while_prefixes_come_and_go() {
        for width in [1, 3, 9, 16, 17, 21, 32, 48, 64, 80, 100, 128] {
            let shape = FlatPrefixes::new(width, 150).expect("a small table");
            let words = blank(&shape);
            let mut writer = PrefixWriter::new(shape);
            let mut ordinary = Lpm::new(&KeyLayout::new([(width, FieldKind::Prefix)]));
            let mut rng = SplitMix64::new(width.into());
            let mut present: Vec<(u128, u32)> = Vec::new();
            let key = |value: u128| [value as u64, (value >> 64) as u64][..width.div_ceil(64) as usize].to_vec();
            let random = |rng: &mut SplitMix64| {
                // Few different bits at the start and the end, so that prefixes contain each other.
                let bits = u128::from(rng.below(8)) << (width.max(3) - 3) | u128::from(rng.below(8));
                bits & (u128::MAX >> (128 - width))
            };
            for step in 1..3000 {
                let length = rng.below(u64::from(width) + 1) as u32;
                let value = prefix_of(random(&mut rng), length, width);
                match present.iter().position(|one| *one == (value, length)) {
                    Some(at) if rng.percent(60) => {
                        let number = ordinary.remove(&key(value), length).expect("the prefix is there");
                        assert_eq!(writer.remove(&words, value, length), number);
                        present.swap_remove(at);
                    }
                    None if present.len() < 150 => {
                        ordinary.insert(&key(value), length, step);
                        assert_eq!(writer.insert(&words, value, length, step), Ok(()));
                        present.push((value, length));
                    }
                    _ => {}
                }
                for value in [value, random(&mut rng)] {
                    let expected = ordinary.lookup(&key(value)).unwrap_or(0);
                    assert_eq!(shape.lookup(&words, value), expected, "{value:#x} of {width} bits, step {step}");
                }
            }
            assert!(!present.is_empty());
            present.iter().for_each(|(value, length)| _ = writer.remove(&words, *value, *length));
            assert!(words.iter().all(|word| load(std::slice::from_ref(word), 0) == 0), "nothing stays");
        }
    }

    #[test]
    fn every_capacity_is_reached_and_nodes_are_used_again() {
        let shape = FlatPrefixes::new(32, 4).expect("a small table");
        let words = blank(&shape);
        let mut writer = PrefixWriter::new(shape);
        for round in 0..3u32 {
            let value = |number: u32| u128::from(number << 30 | round << 20 | 5);
            for number in 0..4 {
                assert_eq!(writer.insert(&words, value(number), 32, number + 1), Ok(()));
            }
            assert_eq!(writer.insert(&words, 0xffff_ffff, 32, 9), Err(FlatFull));
            assert_eq!(writer.insert(&words, 0xffff_0000, 16, 9), Ok(()), "the root has room");
            assert_eq!(shape.lookup(&words, 0xffff_ffff), 9);
            assert_eq!(writer.remove(&words, 0xffff_0000, 16), 9);
            for number in 0..4 {
                assert_eq!(shape.lookup(&words, value(number)), number + 1);
                assert_eq!(writer.remove(&words, value(number), 32), number + 1);
            }
        }
    }

    #[test]
    fn too_many_nodes_are_no_shape() {
        assert_eq!(FlatPrefixes::new(64, 1 << 22), None);
        assert_eq!(FlatPrefixes::new(128, 1 << 22), None);
        assert!([65, 79, 81, 126, 132].into_iter().all(|width| FlatPrefixes::new(width, 1).is_none()));
        assert!(FlatPrefixes::new(16, u32::MAX).is_some(), "the root covers all bits");
    }
}
