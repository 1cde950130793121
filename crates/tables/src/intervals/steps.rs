//! Step functions: piecewise constant functions, many of them in one memory.
//!
//! A function is a B+ tree whose nodes hold 16 thresholds: a million thresholds are five levels deep, and a lookup has
//! no branch that depends on them. Inner nodes and leaves have the same form: the item of a threshold is a node in the
//! former, a value in the latter.
//!
//! Every function begins at 0. Thresholds change in place; nodes split when they are full and merge when few items are
//! left.

use smallvec::SmallVec;

use super::nodes::{FAN, Nodes};
use super::search::Search;

/// The root of a function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Root {
    pub(super) node: u32,
    /// Number of levels above the leaves.
    pub(super) height: u32,
}

/// The items of a node, plus one during an insertion.
pub(super) type Items = SmallVec<[(u64, u32); FAN + 1]>;

/// The path to a leaf: nodes, and the indices in them.
type Path = SmallVec<[(u32, usize); 12]>;

/// The nodes of all functions of a table.
#[derive(Clone, Debug)]
pub(super) enum AnyNodes {
    /// Nodes for numbers of up to 32 bits.
    Narrow(Nodes<u32>),
    Wide(Nodes<u64>),
}

/// Expands the same code for both kinds of nodes.
macro_rules! with {
    ($any:expr, $nodes:ident => $work:expr) => {
        match $any {
            AnyNodes::Narrow($nodes) => $work,
            AnyNodes::Wide($nodes) => $work,
        }
    };
}
pub(super) use with;

/// All functions of a table.
#[derive(Clone, Debug)]
pub(super) struct Steps {
    pub(super) nodes: AnyNodes,
    /// Number of items of each node.
    lens: Vec<u8>,
    free: Vec<u32>,
}

impl Steps {
    /// Creates an empty set of functions over numbers of `bits` bits.
    pub(super) fn new(bits: u32) -> Steps {
        let nodes = match bits {
            ..=32 => AnyNodes::Narrow(Nodes::default()),
            _ => AnyNodes::Wide(Nodes::default()),
        };
        Steps { nodes, lens: Vec::new(), free: Vec::new() }
    }

    /// Creates a constant function.
    pub(super) fn constant(&mut self, value: u32) -> Root {
        Root { node: self.allocate(&[(0, value)]), height: 0 }
    }

    /// Returns the value at a number.
    #[inline(always)]
    pub(super) fn value(&self, search: impl Search, root: Root, number: u64) -> u32 {
        with!(&self.nodes, nodes => nodes.value(search, root, number))
    }

    /// Returns the steps that a range of numbers touches: threshold and value. The first may begin before the range.
    pub(super) fn steps(&self, root: Root, low: u64, high: u64) -> Vec<(u64, u32)> {
        let mut steps = Vec::new();
        self.gather(root, low, high, &mut steps);
        steps
    }

    fn gather(&self, root: Root, low: u64, high: u64, steps: &mut Vec<(u64, u32)>) {
        let items = self.items(root.node);
        let first = place(&items, low);
        for (at, (threshold, value)) in items.into_iter().enumerate().skip(first) {
            if at > first && threshold > high {
                return;
            }
            match root.height {
                0 => steps.push((threshold, value)),
                height => self.gather(Root { node: value, height: height - 1 }, low, high, steps),
            }
        }
    }

    /// Sets the value that begins at a threshold, which may be new.
    pub(super) fn set(&mut self, root: &mut Root, threshold: u64, value: u32) {
        let mut path = self.path(*root, threshold);
        let (mut node, mut at) = path.pop().expect("a path has a leaf");
        let mut items = self.items(node);
        if items[at].0 == threshold {
            items[at].1 = value;
            return self.store(node, &items);
        }
        let mut new = (threshold, value);
        loop {
            items.insert(at + 1, new);
            if items.len() <= FAN {
                return self.store(node, &items);
            }
            // Insertions in ascending order fill their nodes.
            let cut = if at + 2 == items.len() { FAN } else { FAN / 2 };
            let right = self.allocate(&items[cut..]);
            self.store(node, &items[..cut]);
            new = (items[cut].0, right);
            let Some((parent, place)) = path.pop() else {
                *root = Root { node: self.allocate(&[(items[0].0, node), new]), height: root.height + 1 };
                return;
            };
            (node, at, items) = (parent, place, self.items(parent));
        }
    }

    /// Removes a threshold, which exists and is not 0.
    pub(super) fn remove(&mut self, root: &mut Root, threshold: u64) {
        let mut path = self.path(*root, threshold);
        let (mut node, at) = path.pop().expect("a path has a leaf");
        let mut items = self.items(node);
        debug_assert_eq!(items[at].0, threshold, "a threshold that is removed is there");
        items.remove(at);
        while let Some((parent, place)) = path.pop() {
            let mut above = self.items(parent);
            if items.is_empty() {
                self.free.push(node);
                above.remove(place);
            } else {
                above[place].0 = items[0].0;
                self.store(node, &items);
                self.merge(&mut above, place);
            }
            (node, items) = (parent, above);
        }
        self.store(node, &items);
        while root.height > 0 && self.len(root.node) == 1 {
            self.free.push(root.node);
            *root = Root { node: self.items(root.node)[0].1, height: root.height - 1 };
        }
    }

    /// Releases the memory of a constant function.
    pub(super) fn release(&mut self, root: Root) {
        debug_assert!(root.height == 0 && self.len(root.node) == 1, "the function is constant");
        self.free.push(root.node);
    }

    /// Merges a node with few items into a neighbour, if the result has room for more.
    fn merge(&mut self, above: &mut Items, place: usize) {
        if self.len(above[place].1) > FAN / 4 {
            return;
        }
        for left in [Some(place), place.checked_sub(1)].into_iter().flatten() {
            let Some((_, right)) = above.get(left + 1).copied() else { continue };
            let left_node = above[left].1;
            if self.len(left_node) + self.len(right) <= FAN * 3 / 4 {
                let mut items = self.items(left_node);
                items.extend(self.items(right));
                self.store(left_node, &items);
                self.free.push(right);
                above.remove(left + 1);
                return;
            }
        }
    }

    fn path(&self, root: Root, number: u64) -> Path {
        let mut path = Path::new();
        let mut node = root.node;
        for _ in 0..=root.height {
            let items = self.items(node);
            let at = place(&items, number);
            path.push((node, at));
            node = items[at].1;
        }
        path
    }

    fn len(&self, node: u32) -> usize {
        usize::from(self.lens[node as usize])
    }

    fn items(&self, node: u32) -> Items {
        with!(&self.nodes, nodes => nodes.items(node, self.len(node)))
    }

    fn store(&mut self, node: u32, items: &[(u64, u32)]) {
        with!(&mut self.nodes, nodes => nodes.store(node, items));
        self.lens[node as usize] = items.len() as u8;
    }

    fn allocate(&mut self, items: &[(u64, u32)]) -> u32 {
        let node = self.free.pop().unwrap_or_else(|| {
            with!(&mut self.nodes, nodes => nodes.push());
            self.lens.push(0);
            u32::try_from(self.lens.len() - 1).expect("there are fewer than 2^32 nodes")
        });
        self.store(node, items);
        node
    }

    /// Returns the number of bytes that lookups touch.
    pub(super) fn lookup_bytes(&self) -> usize {
        with!(&self.nodes, nodes => nodes.bytes())
    }

    pub(super) fn memory_bytes(&self) -> usize {
        with!(&self.nodes, nodes => nodes.capacity_bytes()) + self.lens.capacity() + self.free.capacity() * 4
    }
}

/// Returns the index of the last item that does not begin above a number, or the first if all do.
fn place(items: &[(u64, u32)], number: u64) -> usize {
    items.partition_point(|(threshold, _)| *threshold <= number).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rng::SplitMix64;

    use super::super::search::BinarySearch;
    use super::*;

    /// Compares a function and the order of its thresholds with a map.
    fn compare(steps: &Steps, root: Root, map: &BTreeMap<u64, u32>, rng: &mut SplitMix64, (end, last): (u64, u64)) {
        assert_eq!(steps.steps(root, 0, last), map.iter().map(|(at, value)| (*at, *value)).collect::<Vec<_>>());
        for _ in 0..50 {
            let number = if rng.percent(10) { last - rng.below(2) } else { rng.below(end) };
            let (at, value) = map.range(..=number).next_back().expect("a function begins at 0");
            assert_eq!(steps.value(BinarySearch, root, number), *value, "at {number}");
            let high = number.saturating_add(rng.below(end)).min(last);
            let range: Vec<_> = map.range(at..=&high).map(|(at, value)| (*at, *value)).collect();
            assert_eq!(steps.steps(root, number, high), range, "{number} to {high}");
        }
    }

    #[test]
    fn functions_agree_with_a_map_while_they_grow_and_shrink() {
        let kinds = [(30, 64), (3_000, 64), (u64::MAX, 64), (3_000, 33), (30, 32), (3_000, 32), (1 << 32, 32)];
        for (seed, (end, bits)) in kinds.into_iter().enumerate() {
            let mut rng = SplitMix64::new(seed as u64);
            let mut steps = Steps::new(bits);
            let last = u64::MAX >> (64 - bits);
            let mut functions: Vec<(Root, BTreeMap<u64, u32>)> =
                (0..3).map(|value| (steps.constant(value), BTreeMap::from([(0, value)]))).collect();
            for step in 0..9_000u32 {
                let (root, map) = &mut functions[rng.below(3) as usize];
                if rng.percent(if step < 5_000 { 80 } else { 15 }) {
                    let at = if rng.percent(1) { last } else { rng.below(end) };
                    steps.set(root, at, step);
                    map.insert(at, step);
                } else if let Some((at, _)) = map.range(rng.below(end).max(1)..).next().map(|(at, value)| (*at, *value))
                {
                    steps.remove(root, at);
                    map.remove(&at);
                }
                if step % 100 == 0 {
                    functions.iter().for_each(|(root, map)| compare(&steps, *root, map, &mut rng, (end, last)));
                }
            }
            for (root, map) in &mut functions {
                for at in map.split_off(&1).into_keys() {
                    steps.remove(root, at);
                }
                assert_eq!((root.height, steps.len(root.node)), (0, 1), "only the step that begins at 0 is left");
                steps.release(*root);
            }
            assert_eq!(steps.free.len(), steps.lens.len(), "every node is free again");
        }
    }

    #[test]
    fn thresholds_in_order_fill_their_nodes_and_gone_ones_give_theirs_back() {
        let mut steps = Steps::new(32);
        let mut root = steps.constant(0);
        (1..100_000).for_each(|at| steps.set(&mut root, at, at as u32));
        assert!(steps.lens.len() * FAN < 100_000 * 11 / 10, "{} nodes", steps.lens.len());
        // One threshold of 16 stays.
        (1..100_000).filter(|at| at % 16 != 0).for_each(|at| steps.remove(&mut root, at));
        let kept = steps.lens.len() - steps.free.len();
        assert!(kept * FAN < 100_000 / 16 * 5, "{kept} nodes for {} thresholds", 100_000 / 16);
        assert_eq!(steps.value(BinarySearch, root, 99_999), 99_984);
    }
}
