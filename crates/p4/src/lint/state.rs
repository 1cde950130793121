//! What is known at a point of the program of variables and headers.

use std::collections::BTreeMap;

use crate::typed::VarId;

/// A part of a variable: the variable and the fields that lead to the part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Path {
    pub(super) var: VarId,
    pub(super) fields: Vec<u32>,
}

impl Path {
    fn is_inside(&self, outer: &Path) -> bool {
        self.var == outer.var && self.fields.starts_with(&outer.fields)
    }
}

/// What may hold of a part, as a set of possibilities. A value is there or not; a header is valid or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct May(u8);

impl May {
    /// No value, or an invalid header.
    pub(super) const OFF: May = May(1);
    /// A value, or a valid header.
    pub(super) const ON: May = May(2);
    /// Nothing is known, and nothing is to be said.
    pub(super) const UNKNOWN: May = May(4);
    /// What was there when the action began.
    pub(super) const ENTRY: May = May(8);

    fn or(self, other: May) -> May {
        May(self.0 | other.0)
    }

    fn has(self, other: May) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether it may be off, and all that it may be is known.
    pub(super) fn is_maybe_off(self) -> bool {
        self.has(May::OFF) && !self.has(May::UNKNOWN) && !self.has(May::ENTRY)
    }
}

/// What is known at a point. A part that is not mentioned is as what it is a part of; what is not mentioned at all is
/// as it was at the beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    parts: BTreeMap<Path, May>,
    /// Whether the point cannot be reached.
    pub(super) dead: bool,
}

impl State {
    /// A point that is not reached.
    pub(super) fn dead() -> State {
        State { parts: BTreeMap::new(), dead: true }
    }

    /// How much work a copy of this is, or a meeting with another.
    pub(super) fn cost(&self) -> u32 {
        1 + self.parts.len() as u32 / 4
    }

    /// What is known of a part that has no parts mentioned.
    pub(super) fn of(&self, path: &Path) -> May {
        let mut at = path.clone();
        loop {
            if let Some(may) = self.parts.get(&at) {
                return *may;
            }
            if at.fields.pop().is_none() {
                return May::ENTRY;
            }
        }
    }

    /// What is known of a part and everything in it.
    pub(super) fn within(&self, path: &Path) -> May {
        self.parts
            .range(path.clone()..)
            .take_while(|(inner, _)| inner.is_inside(path))
            .fold(self.of(path), |sum, (_, may)| sum.or(*may))
    }

    /// From now on, this holds of the part and everything in it.
    pub(super) fn set(&mut self, path: &Path, may: May) {
        self.forget(path);
        self.parts.insert(path.clone(), may);
    }

    /// From now on, nothing is said of the part and of what is in it.
    pub(super) fn forget(&mut self, path: &Path) {
        let inner: Vec<Path> = self
            .parts
            .range(path.clone()..)
            .take_while(|(inner, _)| inner.is_inside(path))
            .map(|(inner, _)| inner.clone())
            .collect();
        for inner in inner {
            self.parts.remove(&inner);
        }
    }

    /// What holds where this point and another meet.
    pub(super) fn join(&mut self, other: &State) {
        if other.dead {
            return;
        }
        if self.dead {
            *self = other.clone();
            return;
        }
        if self.parts == other.parts {
            return;
        }
        let keys: Vec<Path> = self.parts.keys().chain(other.parts.keys()).cloned().collect();
        let both: BTreeMap<Path, May> = keys
            .into_iter()
            .map(|path| (self.of(&path).or(other.of(&path)), path))
            .map(|(may, path)| (path, may))
            .collect();
        self.parts = both;
    }

    /// What holds behind something that leaves `effect` behind.
    pub(super) fn apply(&mut self, effect: &State) {
        if self.dead || effect.dead {
            self.dead = true;
            return;
        }
        let before = self.clone();
        // Outer parts come first, so that setting one does not undo what was said of its parts.
        for (path, may) in &effect.parts {
            let after = if may.has(May::ENTRY) { May(may.0 & !May::ENTRY.0).or(before.within(path)) } else { *may };
            self.set(path, after);
        }
    }
}
