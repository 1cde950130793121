//! Implements a trie for one prefix of at most 128 bits. The root covers 16 bits, or 20 in a large table, and each
//! further node 4. A prefix is in every word of its node that it covers (controlled prefix expansion, Srinivasan and
//! Varghese 1998).
//!
//! A prefix that is alone below a word is a *leaf* in this word, with the bits that are left (path compression), unless
//! these are more than [`LEAF_BITS`]. So an IPv4 route takes one load in a sparse part of the table, and the nodes that
//! exist have two prefixes each.
//!
//! ```text
//! word:  | 50..64 bits of the leaf | 46..50 15 less their number; 0: a child | 23..46 leaf's number, or child from 1
//!        | 0..23 number |
//! table: 16 words for the shortest prefixes, if the root covers 20 bits | root words | 16 words of child 1 | ...
//! ```
//!
//! The shortest prefixes are those that would be in more than 2^15 words of the root. They are looked up last.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;

use super::{FlatFull, load, store};

/// Maximum number of bits that the root of a small table covers, and that of a large one.
const ROOT_BITS: [u32; 2] = [16, 20];
/// Number of prefixes from which a table is large: each of them has room for 16 words of the root.
const LARGE: u32 = 1 << 16;
/// Number of bits that each further node covers; the last one may cover fewer.
pub const NODE_BITS: u32 = 4;
/// Number of prefixes of more than 64 bits that always have room.
const MAX_LONG: u32 = 4096;
/// Number of words of a node below the root.
pub const NODE_WORDS: usize = 1 << NODE_BITS;
/// Number of bits of a number, and of a child.
pub const TARGET_BITS: u32 = 23;
/// Position of the bits that say how long a leaf is.
pub const LENGTH_SHIFT: u32 = 2 * TARGET_BITS;
/// Number of these bits.
pub const LENGTH_BITS: u32 = 4;
/// Maximum number of bits of a leaf.
pub const LEAF_BITS: u32 = 14;

/// The shape of a table with one prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlatPrefixes {
    width: u32,
    root_bits: u32,
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

impl Node {
    /// Returns the number of bits in front of its children.
    fn end(&self) -> u32 {
        self.base + self.bits
    }
}

/// What a word says about longer prefixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    None,
    /// A child, from 1.
    Child(u64),
    /// A prefix: its bits behind the node, left-aligned among [`LEAF_BITS`], how many they are, and its number.
    Leaf {
        bits: u64,
        length: u32,
        number: u32,
    },
}

const TARGET_MASK: u64 = (1 << TARGET_BITS) - 1;

impl Target {
    fn of(word: u64) -> Target {
        let (target, code) = (word >> TARGET_BITS & TARGET_MASK, word >> LENGTH_SHIFT & ((1 << LENGTH_BITS) - 1));
        match (target, code) {
            (0, _) => Target::None,
            (child, 0) => Target::Child(child),
            (number, code) => Target::Leaf {
                bits: word >> (LENGTH_SHIFT + LENGTH_BITS),
                length: LEAF_BITS + 1 - code as u32,
                number: number as u32,
            },
        }
    }

    fn word(self) -> u64 {
        match self {
            Target::None => 0,
            Target::Child(child) => child << TARGET_BITS,
            Target::Leaf { bits, length, number } => {
                let code = u64::from(LEAF_BITS + 1 - length);
                bits << (LENGTH_SHIFT + LENGTH_BITS) | code << LENGTH_SHIFT | u64::from(number) << TARGET_BITS
            }
        }
    }
}

impl FlatPrefixes {
    /// Returns the shape of a table for `capacity` prefixes of a value of `width` bits. `None` if there can be more
    /// nodes or numbers than words can refer to, or if bits of both words of a value are in one node: widths of more
    /// than 64 bits must be multiples of four from 80 to 128.
    ///
    /// There is room for any prefixes, but of more than 4,096 prefixes of more than 64 bits, only for those of at most
    /// 64 bits. Longer ones take more room, and those that share bits take less.
    pub fn new(width: u32, capacity: u32) -> Option<FlatPrefixes> {
        let [small, large] = ROOT_BITS;
        let is_split =
            (1..=64).contains(&width) || ((64 + small..=128).contains(&width) && width.is_multiple_of(NODE_BITS));
        if !is_split || capacity >= 1 << TARGET_BITS {
            return None;
        }
        let first_word = if width > 64 { width - 64 } else { width };
        let root_bits = first_word.min(if capacity < LARGE { small } else { large });
        let mut shape = FlatPrefixes { width, root_bits, children: 0 };
        let long = if width > 64 { capacity.min(MAX_LONG) } else { capacity };
        for end in (root_bits..width).step_by(NODE_BITS as usize) {
            // A node behind these bits has a prefix that is too long for a leaf, or two others.
            let classes = [(long, width), (capacity - long, width.min(64))];
            let with_more = |bits: u32| {
                classes
                    .iter()
                    .filter(|(_, length)| *length > end + bits)
                    .map(|(count, _)| *count as usize)
                    .sum::<usize>()
            };
            let (all, alone) = (with_more(0), with_more(shape.leaf_bits(end)));
            shape.children += alone + (all - alone) / 2;
        }
        (shape.children < 1 << TARGET_BITS).then_some(shape)
    }

    /// Returns the number of words of a table.
    pub fn words(&self) -> usize {
        self.first_child() + self.children * NODE_WORDS
    }

    /// Returns the number of words in front of the root, for prefixes of at most [`FlatPrefixes::short_bits`].
    pub fn short_words(&self) -> usize {
        if self.short_bits() > 0 { 1 << self.short_bits() } else { 0 }
    }

    /// Returns the number of bits that these words cover; 0 if there are none.
    pub fn short_bits(&self) -> u32 {
        self.root_bits.saturating_sub(ROOT_BITS[0])
    }

    /// Returns the number of words of the root: a power of two.
    pub fn root_words(&self) -> usize {
        1 << self.root_bits
    }

    /// Returns the number of bits that the root covers.
    pub fn root_bits(&self) -> u32 {
        self.root_bits
    }

    /// Returns the index of the first word of the first child.
    pub fn first_child(&self) -> usize {
        self.short_words() + self.root_words()
    }

    /// Returns the maximum number of nodes below the root.
    pub fn children(&self) -> usize {
        self.children
    }

    /// Returns the width of the value in bits.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Returns the maximum number of bits of a leaf behind a number of bits: those of one word of the value.
    pub fn leaf_bits(&self, end: u32) -> u32 {
        let left = self.width - end;
        LEAF_BITS.min(if left > 64 { left - 64 } else { left })
    }

    fn short(&self) -> Node {
        Node { first: 0, base: 0, bits: self.short_bits() }
    }

    fn root(&self) -> Node {
        Node { first: self.short_words(), base: 0, bits: self.root_bits }
    }

    fn child(&self, node: Node, child: u64) -> Node {
        let base = node.end();
        let first = self.first_child() + (child as usize - 1) * NODE_WORDS;
        Node { first, base, bits: NODE_BITS.min(self.width - base) }
    }

    /// Returns the word of a node that covers a value.
    fn at(&self, node: Node, value: u128) -> usize {
        node.first + (value >> (self.width - node.end())) as usize % (1 << node.bits)
    }

    /// Returns the bits of a value behind the first `end` ones as those of a leaf.
    fn rest(&self, value: u128, end: u32) -> u64 {
        let left = self.width - end;
        let bits = if left < LEAF_BITS { value << (LEAF_BITS - left) } else { value >> (left - LEAF_BITS) };
        bits as u64 & ((1 << LEAF_BITS) - 1)
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
            if number_of(word) != 0 {
                found = number_of(word);
            }
            match Target::of(word) {
                Target::None => break,
                Target::Child(child) => node = self.child(node, child),
                Target::Leaf { bits, length, number } => {
                    if (self.rest(value, node.end()) ^ bits) >> (LEAF_BITS - length) == 0 {
                        found = number;
                    }
                    break;
                }
            }
        }
        if found == 0 && self.short_words() > 0 {
            found = number_of(load(words, self.at(self.short(), value)));
        }
        found
    }
}

fn number_of(word: u64) -> u32 {
    (word & TARGET_MASK) as u32
}

fn set_target(words: &[AtomicU64], at: usize, target: Target) {
    store(words, at, load(words, at) & TARGET_MASK | target.word());
}

fn set_number(words: &[AtomicU64], at: usize, number: u32) {
    store(words, at, load(words, at) & !TARGET_MASK | u64::from(number));
}

/// A prefix, with the bits of `value` behind the first `length` ones 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Prefix {
    value: u128,
    length: u32,
    number: u32,
}

/// The writer of a table: what lookups do not need.
#[derive(Clone, Debug)]
pub struct PrefixWriter {
    shape: FlatPrefixes,
    /// Numbers by length and value.
    present: HashMap<(u32, u128), u32>,
    /// For each word up to that of the last child that was ever in use, the number of bits in its node of the prefix
    /// whose number the word has.
    lengths: Vec<u8>,
    /// Number of prefixes in and below each child that was ever in use.
    counts: Vec<u32>,
    /// Children that are not in use.
    free: Vec<u32>,
}

impl PrefixWriter {
    /// Creates the writer of a table whose words are all 0.
    pub fn new(shape: FlatPrefixes) -> PrefixWriter {
        let lengths = vec![0; shape.first_child()];
        PrefixWriter { shape, present: HashMap::new(), lengths, counts: Vec::new(), free: Vec::new() }
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
        assert!((1..1 << TARGET_BITS).contains(&number), "numbers begin at 1");
        assert!(length <= shape.width && words.len() == shape.words(), "prefix and table fit the shape");
        let prefix = Prefix { value, length, number };
        let is_new = !self.present.contains_key(&(length, value));
        if is_new && self.missing(words, prefix) > self.free.len() + shape.children - self.counts.len() {
            return Err(FlatFull);
        }
        self.present.insert((length, value), number);
        let mut node = self.top(length);
        while !self.place(words, node, prefix) {
            let at = shape.at(node, value);
            let child = match Target::of(load(words, at)) {
                Target::Child(child) => child,
                target => {
                    let child = self.take_node();
                    if let Some(other) = self.leaf(node, value, target) {
                        let is_placed = self.place(words, shape.child(node, child), other);
                        assert!(is_placed, "a leaf of a word is one of its child");
                        self.counts[child as usize - 1] += 1;
                    }
                    set_target(words, at, Target::Child(child));
                    child
                }
            };
            self.counts[child as usize - 1] += u32::from(is_new);
            node = shape.child(node, child);
        }
        Ok(())
    }

    /// Returns the node where the search for a prefix of this length begins.
    fn top(&self, length: u32) -> Node {
        let is_short = self.shape.short_words() > 0 && length <= self.shape.short_bits();
        if is_short { self.shape.short() } else { self.shape.root() }
    }

    /// Puts a prefix into a node: into the words that it covers, or as a leaf into an empty word or that of the same
    /// prefix. Returns false if it belongs to a child.
    fn place(&mut self, words: &[AtomicU64], node: Node, prefix: Prefix) -> bool {
        let Prefix { value, length, number } = prefix;
        if length <= node.end() {
            let bits = length - node.base;
            for at in self.covered(node, value, bits) {
                if number_of(load(words, at)) == 0 || u32::from(self.lengths[at]) <= bits {
                    set_number(words, at, number);
                    self.lengths[at] = bits as u8;
                }
            }
            return true;
        }
        let at = self.shape.at(node, value);
        let target = Target::of(load(words, at));
        let is_same =
            || self.leaf(node, value, target).is_some_and(|leaf| (leaf.value, leaf.length) == (value, length));
        if length - node.end() > self.shape.leaf_bits(node.end()) || (target != Target::None && !is_same()) {
            return false;
        }
        let bits = self.shape.rest(value, node.end());
        set_target(words, at, Target::Leaf { bits, length: length - node.end(), number });
        true
    }

    /// Returns the prefix that is a leaf in a node, in the word that covers `value`.
    fn leaf(&self, node: Node, value: u128, target: Target) -> Option<Prefix> {
        let Target::Leaf { bits, length, number } = target else { return None };
        let left = self.shape.width - node.end();
        let bits = u128::from(bits >> (LEAF_BITS - length)) << (left - length);
        let value = prefix_of(value, node.end(), self.shape.width) | bits;
        Some(Prefix { value, length: node.end() + length, number })
    }

    /// Returns the number of nodes that a new prefix needs.
    fn missing(&self, words: &[AtomicU64], prefix: Prefix) -> usize {
        let Prefix { value, length, .. } = prefix;
        let shape = self.shape;
        let (mut node, mut missing) = (self.top(length), 0);
        while length > node.end() {
            match Target::of(load(words, shape.at(node, value))) {
                Target::Child(child) => node = shape.child(node, child),
                target => {
                    let mut end = node.end();
                    if let Some(other) = self.leaf(node, value, target) {
                        // Both are in one word of each further node, until they differ or one of them ends.
                        let common = (value ^ other.value) << (128 - shape.width);
                        let common = common.leading_zeros().min(length - 1).min(other.length - 1);
                        missing = 1 + (common - end) / NODE_BITS;
                        end += missing * NODE_BITS;
                    }
                    while length > end && length - end > shape.leaf_bits(end) {
                        missing += 1;
                        end += NODE_BITS;
                    }
                    break;
                }
            }
        }
        missing as usize
    }

    /// Removes a prefix and returns its number, or 0 if there is none.
    ///
    /// # Panics
    /// As [`PrefixWriter::insert`].
    pub fn remove(&mut self, words: &[AtomicU64], value: u128, length: u32) -> u32 {
        let shape = self.shape;
        assert!(length <= shape.width && words.len() == shape.words(), "prefix and table fit the shape");
        let Some(number) = self.present.remove(&(length, value)) else { return 0 };
        let mut node = self.top(length);
        let mut way = Vec::new();
        while length > node.end() {
            let at = shape.at(node, value);
            let Target::Child(child) = Target::of(load(words, at)) else {
                set_target(words, at, Target::None);
                break;
            };
            self.counts[child as usize - 1] -= 1;
            way.push((node, at, child));
            node = shape.child(node, child);
        }
        if length <= node.end() {
            self.uncover(words, node, value, length);
        }
        for (node, at, child) in way.into_iter().rev() {
            match self.counts[child as usize - 1] {
                0 => self.replace(words, at, child, Target::None),
                1 => self.compress(words, node, value, (at, child)),
                _ => break,
            }
        }
        number
    }

    /// Gives the words of a removed prefix to the next shorter one of its node.
    fn uncover(&mut self, words: &[AtomicU64], node: Node, value: u128, length: u32) {
        // Shorter ones are in the node above.
        let least = if node.base > 0 { node.base + 1 } else { self.top_least(length) };
        let width = self.shape.width;
        let shorter = (least..length).rev();
        let mut left = shorter.filter_map(|length| {
            let number = self.present.get(&(length, prefix_of(value, length, width)))?;
            Some((length - node.base, *number))
        });
        let (other_bits, other) = left.next().unwrap_or((0, 0));
        for at in self.covered(node, value, length - node.base) {
            if number_of(load(words, at)) != 0 && u32::from(self.lengths[at]) == length - node.base {
                set_number(words, at, other);
                self.lengths[at] = other_bits as u8;
            }
        }
    }

    /// Returns the length of the shortest prefixes in the same top node as one of this length.
    fn top_least(&self, length: u32) -> u32 {
        let short = self.shape.short_bits();
        if self.shape.short_words() > 0 && length > short { short + 1 } else { 0 }
    }

    /// Makes the only prefix of a child a leaf of the word that has the child, unless it is too long for that.
    fn compress(&mut self, words: &[AtomicU64], node: Node, value: u128, (at, child): (usize, u64)) {
        let below = self.shape.child(node, child);
        let mut range = below.first..below.first + (1 << below.bits);
        let first = range.find(|at| load(words, *at) != 0).expect("the prefix is in the child");
        let (word, bits) = (load(words, first), (first - below.first) as u128);
        let value = prefix_of(value, node.end(), self.shape.width) | bits << (self.shape.width - below.end());
        let only = match Target::of(word) {
            // It is too long for a leaf even there.
            Target::Child(_) => return,
            Target::None => {
                let length = below.base + u32::from(self.lengths[first]);
                Prefix { value, length, number: number_of(word) }
            }
            leaf => self.leaf(below, value, leaf).expect("the target is a leaf"),
        };
        let length = only.length - node.end();
        if length <= self.shape.leaf_bits(node.end()) {
            let leaf = Target::Leaf { bits: self.shape.rest(only.value, node.end()), length, number: only.number };
            self.replace(words, at, child, leaf);
        }
    }

    /// Gives a word another target than its child, and frees the child, which has no children.
    fn replace(&mut self, words: &[AtomicU64], at: usize, child: u64, target: Target) {
        set_target(words, at, target);
        let first = self.shape.first_child() + (child as usize - 1) * NODE_WORDS;
        (first..first + NODE_WORDS).for_each(|at| store(words, at, 0));
        self.counts[child as usize - 1] = 0;
        self.free.push(child as u32);
    }

    fn take_node(&mut self) -> u64 {
        match self.free.pop() {
            Some(child) => child.into(),
            None => {
                self.counts.push(0);
                self.lengths.resize(self.lengths.len() + NODE_WORDS, 0);
                self.counts.len() as u64
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
mod tests;
