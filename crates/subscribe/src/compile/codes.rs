//! Compresses a field's values to a small code domain: all values between two neighbouring bounds share one code.
//!
//! Codes ascend with values and leave gaps, so that adding or removing a bound changes two or three entries of the code
//! table and no entry of a state: an interval of values that ends before a bound is an interval of codes that ends
//! before that bound's code. All codes are reassigned only when no gap is left.

use std::collections::BTreeMap;

use crate::tables::CodeEntry;

/// The bounds that states test, each with its code and reference count. Bound 0 is always present.
#[derive(Clone)]
pub(crate) struct Codes {
    bounds: BTreeMap<u128, (u128, usize)>,
    width: u32,
    max: u128,
}

impl Codes {
    /// Creates codes of `width` bits for a field with values up to `max`.
    pub fn new(width: u32, max: u128) -> Codes {
        Codes { bounds: [(0, (0, 1))].into(), width, max }
    }

    /// Returns the maximum number of bounds.
    fn room(&self) -> u128 {
        1 << self.width
    }

    /// The width of the codes, in bits.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Whether `new` more bounds fit.
    pub fn fits(&self, new: usize) -> bool {
        (self.bounds.len() + new) as u128 <= self.room()
    }

    pub fn has(&self, bound: u128) -> bool {
        self.bounds.contains_key(&bound)
    }

    /// Adds a reference to a bound. Returns `true` if codes of other bounds changed.
    pub fn acquire(&mut self, bound: u128) -> bool {
        if let Some((_, uses)) = self.bounds.get_mut(&bound) {
            *uses += 1;
            return false;
        }
        let before = self.bounds.range(..bound).next_back().map_or(0, |(_, (code, _))| *code);
        let behind = self.bounds.range(bound..).next().map_or(self.room(), |(_, (code, _))| *code);
        let code = before + (behind - before) / 2;
        self.bounds.insert(bound, (code, 1));
        let is_full = code == before;
        if is_full {
            self.spread();
        }
        is_full
    }

    /// Reassigns all codes, evenly spaced.
    fn spread(&mut self) {
        let (count, room) = (self.bounds.len() as u128, self.room());
        for (at, (_, (code, _))) in self.bounds.iter_mut().enumerate() {
            *code = room * at as u128 / count;
        }
    }

    /// Drops one reference.
    pub fn release(&mut self, bound: u128) {
        let (_, uses) = self.bounds.get_mut(&bound).expect("what is released was held");
        *uses -= 1;
        if *uses == 0 {
            self.bounds.remove(&bound);
        }
    }

    /// Returns the code of a referenced bound.
    pub fn of(&self, bound: u128) -> u128 {
        self.bounds[&bound].0
    }

    /// Returns the code table; empty if there is no bound besides 0.
    pub fn entries(&self, stage: u16) -> Vec<CodeEntry> {
        let bounds: Vec<(u128, u128)> = self.bounds.iter().map(|(bound, (code, _))| (*bound, *code)).collect();
        if bounds.len() == 1 {
            return Vec::new();
        }
        let last = |at: usize| bounds.get(at + 1).map_or(self.max, |(next, _)| next - 1);
        bounds
            .iter()
            .enumerate()
            .map(|(at, (first, code))| CodeEntry { stage, first: *first, last: last(at), code: *code })
            .collect()
    }
}
