//! Represents the abstract state of variables and headers at a point of the program.

use std::collections::BTreeMap;

use crate::typed::VarId;

/// A part of a variable: the variable and the path of fields that leads to the part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PartPath {
    pub(super) var: VarId,
    pub(super) fields: Vec<u32>,
}

impl PartPath {
    fn is_inside(&self, outer: &PartPath) -> bool {
        self.var == outer.var && self.fields.starts_with(&outer.fields)
    }
}

/// Abstract value of a part: the set of possible states. A variable has a value or none; a header is valid or invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AbstractValue(u8);

impl AbstractValue {
    /// No value, or an invalid header.
    pub(super) const OFF: AbstractValue = AbstractValue(1);
    /// A value, or a valid header.
    pub(super) const ON: AbstractValue = AbstractValue(2);
    /// Unknown; suppresses diagnostics.
    pub(super) const UNKNOWN: AbstractValue = AbstractValue(4);
    /// The state at the beginning of the action.
    pub(super) const ENTRY: AbstractValue = AbstractValue(8);

    fn or(self, other: AbstractValue) -> AbstractValue {
        AbstractValue(self.0 | other.0)
    }

    fn has(self, other: AbstractValue) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether it may be off and all of its possible states are known.
    pub(super) fn is_maybe_off(self) -> bool {
        self.has(AbstractValue::OFF) && !self.has(AbstractValue::UNKNOWN) && !self.has(AbstractValue::ENTRY)
    }
}

/// Abstract state at a point. A part that is not listed has the state of the enclosing part; if none is listed, it has
/// its initial state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FlowState {
    parts: BTreeMap<PartPath, AbstractValue>,
    /// Whether the point is unreachable.
    pub(super) dead: bool,
}

impl FlowState {
    /// Returns the state of an unreachable point.
    pub(super) fn dead() -> FlowState {
        FlowState { parts: BTreeMap::new(), dead: true }
    }

    /// Returns the cost of copying or joining this state.
    pub(super) fn cost(&self) -> u32 {
        1 + self.parts.len() as u32 / 4
    }

    /// Returns the state of a part without listed subparts.
    pub(super) fn of(&self, path: &PartPath) -> AbstractValue {
        let mut at = path.clone();
        loop {
            if let Some(may) = self.parts.get(&at) {
                return *may;
            }
            if at.fields.pop().is_none() {
                return AbstractValue::ENTRY;
            }
        }
    }

    /// Returns the join of the states of a part and everything in it.
    pub(super) fn within(&self, path: &PartPath) -> AbstractValue {
        self.parts
            .range(path.clone()..)
            .take_while(|(inner, _)| inner.is_inside(path))
            .fold(self.of(path), |sum, (_, may)| sum.or(*may))
    }

    /// Sets the state of a part and everything in it.
    pub(super) fn set(&mut self, path: &PartPath, may: AbstractValue) {
        self.forget(path);
        self.parts.insert(path.clone(), may);
    }

    /// Marks a part and everything in it as unknown.
    pub(super) fn forget(&mut self, path: &PartPath) {
        let inner: Vec<PartPath> = self
            .parts
            .range(path.clone()..)
            .take_while(|(inner, _)| inner.is_inside(path))
            .map(|(inner, _)| inner.clone())
            .collect();
        for inner in inner {
            self.parts.remove(&inner);
        }
    }

    /// Joins the states of two paths.
    pub(super) fn join(&mut self, other: &FlowState) {
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
        let keys: Vec<PartPath> = self.parts.keys().chain(other.parts.keys()).cloned().collect();
        let both: BTreeMap<PartPath, AbstractValue> = keys
            .into_iter()
            .map(|path| (self.of(&path).or(other.of(&path)), path))
            .map(|(may, path)| (path, may))
            .collect();
        self.parts = both;
    }

    /// Applies an effect to this state.
    pub(super) fn apply(&mut self, effect: &FlowState) {
        if self.dead || effect.dead {
            self.dead = true;
            return;
        }
        let before = self.clone();
        // Outer parts come first, so that setting one does not overwrite the states of its subparts.
        for (path, may) in &effect.parts {
            let after = if may.has(AbstractValue::ENTRY) {
                AbstractValue(may.0 & !AbstractValue::ENTRY.0).or(before.within(path))
            } else {
                *may
            };
            self.set(path, after);
        }
    }
}
