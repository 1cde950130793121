//! Implements value sets: sets of keys that a parser's `select` matches, filled by the control plane.

use bits::Bits;
use ir::{KeyValue, MatchKind};

use super::EntryError;
use crate::tables::{KeyShape, canonical, matches};

/// The members of a value set.
#[derive(Clone, Debug)]
pub(crate) struct ValueSetMembers {
    fields: Vec<KeyShape>,
    capacity: u64,
    members: Vec<Vec<KeyValue>>,
}

impl ValueSetMembers {
    pub(crate) fn new(set: &ir::ValueSet) -> Self {
        let shape =
            |(_, width, kind): &(String, u32, MatchKind)| KeyShape { width: *width, kind: *kind, signed: false };
        ValueSetMembers {
            fields: set.fields.iter().map(shape).collect(),
            capacity: set.size.max(1024),
            members: Vec::new(),
        }
    }

    pub(crate) fn members(&self) -> &[Vec<KeyValue>] {
        &self.members
    }

    /// Returns the canonical form of a member that may be added.
    pub(crate) fn new_member(&self, member: Vec<KeyValue>) -> Result<Vec<KeyValue>, EntryError> {
        let member = canonical(&self.fields, member)?;
        if self.members.contains(&member) {
            return Err(EntryError::Duplicate);
        }
        if self.members.len() as u64 >= self.capacity {
            return Err(EntryError::Full(self.capacity));
        }
        Ok(member)
    }

    pub(crate) fn add(&mut self, member: Vec<KeyValue>) {
        self.members.push(member);
    }

    /// Returns the index of a member.
    pub(crate) fn find(&self, member: Vec<KeyValue>) -> Result<usize, EntryError> {
        let member = canonical(&self.fields, member)?;
        self.members.iter().position(|other| *other == member).ok_or(EntryError::NotFound)
    }

    pub(crate) fn take(&mut self, at: usize) {
        self.members.remove(at);
    }

    pub(crate) fn clear(&mut self) {
        self.members.clear();
    }

    /// Returns the number of keys of a `select` that the set covers.
    pub(crate) fn field_count(&self) -> usize {
        self.fields.len()
    }

    pub(crate) fn contains(&self, keys: &[Bits]) -> bool {
        self.members.iter().any(|member| matches(&self.fields, member, keys))
    }
}
