//! Interns the terminals of diagrams, which are sets of numbers.

use std::hash::BuildHasher;

use hashbrown::HashTable;

#[derive(Clone)]
struct Set {
    numbers: Box<[u32]>,
    hash: u64,
}

/// The sets of a store. The first two always exist: the empty one, and the one that means "always".
#[derive(Clone)]
pub(crate) struct Sets {
    list: Vec<Option<Set>>,
    free: Vec<u32>,
    by_content: HashTable<u32>,
    numbers: usize,
    scratch: Vec<u32>,
}

impl Sets {
    pub fn new() -> Sets {
        let hasher = foldhash::fast::FixedState::with_seed(0x5eed);
        let mut sets =
            Sets { list: Vec::new(), free: Vec::new(), by_content: HashTable::new(), numbers: 0, scratch: Vec::new() };
        sets.intern(&[], &hasher);
        sets.intern(&[u32::MAX], &hasher);
        sets
    }

    pub fn len(&self) -> usize {
        self.list.len() - self.free.len()
    }

    pub fn bytes(&self) -> usize {
        self.numbers * size_of::<u32>() + self.len() * (size_of::<Option<Set>>() + size_of::<u32>())
    }

    pub fn get(&self, index: usize) -> &[u32] {
        &self.list[index].as_ref().expect("a set that was collected is not used").numbers
    }

    /// Returns the index of the set of these numbers, which ascend.
    pub fn intern(&mut self, numbers: &[u32], hasher: &foldhash::fast::FixedState) -> u32 {
        let hash = hasher.hash_one(numbers);
        let same = |index: &u32| {
            self.list[*index as usize].as_ref().is_some_and(|set| set.hash == hash && *set.numbers == *numbers)
        };
        if let Some(index) = self.by_content.find(hash, same) {
            return *index;
        }
        let set = Some(Set { numbers: numbers.into(), hash });
        self.numbers += numbers.len();
        let index = match self.free.pop() {
            Some(index) => {
                self.list[index as usize] = set;
                index
            }
            None => {
                self.list.push(set);
                self.list.len() as u32 - 1
            }
        };
        let list = &self.list;
        self.by_content.insert_unique(hash, index, |index| list[*index as usize].as_ref().map_or(0, |set| set.hash));
        index
    }

    /// Returns the index of the union of two sets.
    pub fn union(&mut self, a: usize, b: usize, hasher: &foldhash::fast::FixedState) -> u32 {
        let mut out = std::mem::take(&mut self.scratch);
        out.clear();
        let (mut left, mut right) = (self.get(a), self.get(b));
        while let ([x, rest_left @ ..], [y, rest_right @ ..]) = (left, right) {
            out.push(*x.min(y));
            if x <= y {
                left = rest_left;
            }
            if y <= x {
                right = rest_right;
            }
        }
        out.extend_from_slice(left);
        out.extend_from_slice(right);
        // A union as long as an operand equals that operand.
        let index = if out.len() == self.get(a).len() {
            a as u32
        } else if out.len() == self.get(b).len() {
            b as u32
        } else {
            self.intern(&out, hasher)
        };
        self.scratch = out;
        index
    }

    /// Drops every set except the constants and the marked ones.
    pub fn retain(&mut self, marked: &[bool]) {
        for (index, slot) in self.list.iter_mut().enumerate().skip(2) {
            if marked[index] {
                continue;
            }
            if let Some(set) = slot.take() {
                self.numbers -= set.numbers.len();
                if let Ok(entry) = self.by_content.find_entry(set.hash, |other| *other as usize == index) {
                    entry.remove();
                }
                self.free.push(index as u32);
            }
        }
    }

    /// Returns the number of indices.
    pub fn capacity(&self) -> usize {
        self.list.len()
    }
}
