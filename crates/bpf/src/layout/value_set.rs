//! Lays out value sets: the number of members, and for each one a pair of words for each element, as in a rule.

use engine::tables::KeyShape;
use ir::{MatchKind, ValueSet};
use tables::flat::RuleElement;

use super::{Allocator, Unsupported, rule_elements};

/// Maximum number of members. A set with more has the number [`TOO_MANY`], and its packets are handed over.
pub(crate) const MAX_MEMBERS: usize = 64;
/// The number of members of a set that has too many.
pub(crate) const TOO_MANY: u64 = MAX_MEMBERS as u64 + 1;

/// A value set of the region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FlatSet {
    /// Offset of the number of members in the first copy in bytes. The members follow.
    pub first: u32,
    /// The pairs of a member match its elements, split or not, in this way.
    pub elements: Vec<RuleElement>,
}

/// Returns the fields of a set as elements of a key.
pub(crate) fn set_keys(set: &ValueSet) -> Vec<KeyShape> {
    set.fields.iter().map(|(_, width, kind)| KeyShape { width: *width, kind: *kind, signed: false }).collect()
}

impl FlatSet {
    /// Lays out a set; `None` if it has ranges of more than 64 bits.
    pub(super) fn new(set: &ValueSet, bytes: &mut Allocator) -> Result<Option<FlatSet>, Unsupported> {
        let keys = set_keys(set);
        if keys.iter().any(|key| key.width > 64 && key.kind == MatchKind::Range) {
            return Ok(None);
        }
        let elements = rule_elements(keys);
        let first = bytes.take(1 + (MAX_MEMBERS * elements.len() * 2) as u64)?;
        Ok(Some(FlatSet { first, elements }))
    }
}
