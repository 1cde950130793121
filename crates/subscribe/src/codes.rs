//! Values of a field mapped onto a small domain: the values between two neighbouring bounds that any state asks for are
//! one code.
//!
//! Codes ascend with values and have room between them, so that a bound more or less changes two or three entries of the
//! code table and none of the states' entries: a stretch of values that ends before a bound is a stretch of codes that
//! ends before that bound's code. Only when no room is left are all codes given anew.

use std::collections::BTreeMap;

use crate::tables::CodeEntry;

/// The bounds that states ask for, with code and uses. The first is 0, which is always there.
#[derive(Clone)]
pub(crate) struct Codes {
    bounds: BTreeMap<u128, (u128, usize)>,
    width: u32,
    max: u128,
}

impl Codes {
    /// For a field with values up to `max`, codes of `width` bits.
    pub fn new(width: u32, max: u128) -> Codes {
        Codes { bounds: [(0, (0, 1))].into(), width, max }
    }

    /// How many bounds there may be.
    fn room(&self) -> u128 {
        1 << self.width
    }

    /// The width of the codes, in bits.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Whether so many more bounds would still fit.
    pub fn fits(&self, new: usize) -> bool {
        (self.bounds.len() + new) as u128 <= self.room()
    }

    pub fn has(&self, bound: u128) -> bool {
        self.bounds.contains_key(&bound)
    }

    /// Uses a bound once more; `true` if other bounds got other codes for it.
    pub fn hold(&mut self, bound: u128) -> bool {
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

    /// Gives all bounds new codes, as far apart as can be.
    fn spread(&mut self) {
        let (count, room) = (self.bounds.len() as u128, self.room());
        for (at, (_, (code, _))) in self.bounds.iter_mut().enumerate() {
            *code = room * at as u128 / count;
        }
    }

    /// Takes back one use.
    pub fn release(&mut self, bound: u128) {
        let (_, uses) = self.bounds.get_mut(&bound).expect("what is released was held");
        *uses -= 1;
        if *uses == 0 {
            self.bounds.remove(&bound);
        }
    }

    /// The code of a bound that is held.
    pub fn of(&self, bound: u128) -> u128 {
        self.bounds[&bound].0
    }

    /// The code table. A field without bounds needs none.
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
