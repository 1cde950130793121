//! Backends: the storage of table entries, and the search for the entry of a key.
//!
//! A backend knows keys, priorities and handles, but no actions. Its result may be *pending*: this is for tables in
//! another machine's memory. The backends here return a result at once:
//!
//! | key elements                                      | backend     | structure in the `tables` crate     |
//! |---------------------------------------------------|-------------|-------------------------------------|
//! | only `exact`                                      | `exact`     | a hash table                        |
//! | one `lpm`, otherwise only `exact`                 | `lpm`       | a multibit trie                     |
//! | one `range` of to 64 bits, otherwise only `exact` | `intervals` | a hash and a search of thresholds   |
//! | any other combination                             | `ternary`   | a scan of a few, else merged tuples |
//!
//! [`Scan`] compares with each entry. It defines the expected results, and tests compare the others with it.

mod exact;
mod intervals;
mod lpm;
mod packed;

mod scan;
mod ternary;
mod words;

pub use ::tables::MISS;
pub use ::tables::inline_lookup::{self, InlineLookup};
pub use scan::Scan;
pub use ternary::LISTED_BITS;
pub use words::{KeyWords, WordPlace, Words};

use bits::Bits;
use ir::{KeyValue, MatchKind};

use crate::objects::EntryError;

/// Names an entry of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle(pub u32);

/// The result of a lookup in a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The handle of the matching entry.
    Hit(Handle),
    /// No entry matches.
    Miss,
    /// The result is not known yet; the packet has to wait.
    Pending,
}

impl From<Option<u32>> for Lookup {
    fn from(found: Option<u32>) -> Self {
        found.map_or(Lookup::Miss, |handle| Lookup::Hit(Handle(handle)))
    }
}

/// The storage of a table's entries. Keys have one element for each of the table's, selectors excepted; values are in
/// the form that [`canonical`] returns.
pub trait Backend: std::fmt::Debug + Send + Sync {
    /// Looks a key up: of the matching entries, the one with the highest priority wins, then the one with the longest
    /// prefixes, then the oldest.
    fn lookup(&self, key: &[Bits]) -> Lookup;

    /// Looks up a key packed by [`KeyWords`] from the elements without selectors; `None` if the backend has no faster
    /// method than [`Backend::lookup`].
    fn lookup_words(&self, key: &[u64]) -> Option<Lookup> {
        _ = key;
        None
    }

    /// Looks up several keys that lie one after the other. Results are handles, or [`tables::MISS`] where no entry
    /// matches. Returns false, without results, if the backend does not support batches.
    fn lookup_batch(&self, keys: &[u64], found: &mut [u32]) -> bool {
        _ = (keys, found);
        false
    }

    /// Describes inline lookups of packed keys, if the backend supports them; their results equal those of lookups.
    fn inline_lookup(&self) -> Option<InlineLookup<'_>> {
        None
    }

    /// Returns the entry with exactly these values and this priority.
    fn find(&self, keys: &[KeyValue], priority: i32) -> Option<Handle>;

    /// Adds an entry, which must not exist yet.
    fn insert(&mut self, keys: &[KeyValue], priority: i32, handle: Handle);

    /// Announces that about `more` entries will be added before [`Backend::finish_load`]. Lookups may take longer in
    /// the meantime.
    fn begin_load(&mut self, more: usize) {
        _ = more;
    }

    /// Ends a load.
    fn finish_load(&mut self) {}

    /// Copies the backend with its entries.
    fn copy(&self) -> Box<dyn Backend>;

    /// Removes an entry and returns its handle.
    fn remove(&mut self, keys: &[KeyValue], priority: i32) -> Option<Handle>;
}

/// The properties of a key element that a backend depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyShape {
    /// Width in bits.
    pub width: u32,
    /// Match kind; not [`MatchKind::Selector`].
    pub kind: MatchKind,
    /// Whether ranges are signed.
    pub signed: bool,
}

impl From<&ir::Key> for KeyShape {
    fn from(key: &ir::Key) -> KeyShape {
        KeyShape { width: key.width, kind: key.kind, signed: key.signed }
    }
}

/// Creates the backend for a key.
pub(crate) fn backend_for(shape: &[KeyShape]) -> Box<dyn Backend> {
    let lpm = shape.iter().filter(|key| key.kind == MatchKind::Lpm).count();
    let exact = shape.iter().filter(|key| key.kind == MatchKind::Exact).count();
    if exact == shape.len() {
        Box::new(exact::backend(shape))
    } else if lpm == 1 && exact + 1 == shape.len() {
        Box::new(lpm::backend(shape))
    } else if intervals::fits(shape) {
        Box::new(intervals::backend(shape))
    } else {
        Box::new(ternary::RuleTable::new(shape))
    }
}

/// Whether entries of a table with this key have priorities.
pub(crate) fn needs_priority(shape: &[KeyShape]) -> bool {
    shape.iter().any(|key| matches!(key.kind, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional))
}

/// Converts values to the canonical form of their match kind, so that equal entries have equal values; or returns the
/// reason why they do not fit.
pub fn canonical(shape: &[KeyShape], values: Vec<KeyValue>) -> Result<Vec<KeyValue>, EntryError> {
    if values.len() != shape.len() {
        return Err(EntryError::KeyCount { want: shape.len(), got: values.len() });
    }
    let each = |(key, (shape, value))| canonical_value(key, shape, value);
    shape.iter().zip(values).enumerate().map(each).collect()
}

fn canonical_value(key: usize, shape: &KeyShape, value: KeyValue) -> Result<KeyValue, EntryError> {
    let width = shape.width;
    let check = |bits: &Bits| {
        if bits.width() == width { Ok(()) } else { Err(EntryError::KeyWidth { key, want: width, got: bits.width() }) }
    };
    let (lowest, highest) = if shape.signed && width > 0 {
        (Bits::new(1, width).shl(width - 1), Bits::ones(width).shr(1))
    } else {
        (Bits::zero(width), Bits::ones(width))
    };
    let value = match (shape.kind, value) {
        (MatchKind::Lpm, KeyValue::Any) => KeyValue::Lpm(Bits::zero(width), 0),
        (MatchKind::Lpm, KeyValue::Exact(value)) => KeyValue::Lpm(value, width),
        (MatchKind::Ternary, KeyValue::Any) => KeyValue::Ternary(Bits::zero(width), Bits::zero(width)),
        (MatchKind::Ternary, KeyValue::Exact(value)) => KeyValue::Ternary(value, Bits::ones(width)),
        (MatchKind::Range, KeyValue::Any) => KeyValue::Range(lowest, highest),
        (MatchKind::Range, KeyValue::Exact(value)) => KeyValue::Range(value.clone(), value),
        (_, value) => value,
    };
    match (shape.kind, &value) {
        (MatchKind::Exact | MatchKind::Optional, KeyValue::Exact(value)) => check(value)?,
        (MatchKind::Optional, KeyValue::Any) => {}
        (MatchKind::Lpm, KeyValue::Lpm(value, prefix)) => {
            check(value)?;
            if *prefix > width {
                return Err(EntryError::PrefixTooLong { key, width, got: *prefix });
            }
            if *value != value.and(&prefix_mask(width, *prefix)) {
                return Err(EntryError::BitsBehindMask { key });
            }
        }
        (MatchKind::Ternary, KeyValue::Ternary(value, mask)) => {
            check(value)?;
            check(mask)?;
            if *value != value.and(mask) {
                return Err(EntryError::BitsBehindMask { key });
            }
        }
        (MatchKind::Range, KeyValue::Range(low, high)) => {
            check(low)?;
            check(high)?;
            if !within(shape.signed, low, low, high) {
                return Err(EntryError::EmptyRange { key });
            }
        }
        (kind, _) => return Err(EntryError::KeyKind { key, kind }),
    }
    Ok(value)
}

/// Returns the mask of the first `prefix` of `width` bits.
pub(crate) fn prefix_mask(width: u32, prefix: u32) -> Bits {
    Bits::ones(width).shl(width - prefix)
}

fn within(signed: bool, value: &Bits, low: &Bits, high: &Bits) -> bool {
    if signed {
        value.signed_cmp(low).is_ge() && value.signed_cmp(high).is_le()
    } else {
        value.unsigned_cmp(low).is_ge() && value.unsigned_cmp(high).is_le()
    }
}

/// Whether a key matches an entry's values; this defines every match kind.
pub fn matches(shape: &[KeyShape], values: &[KeyValue], key: &[Bits]) -> bool {
    let one = |((shape, value), key): ((&KeyShape, &KeyValue), &Bits)| match value {
        KeyValue::Exact(value) => key == value,
        KeyValue::Lpm(value, prefix) => {
            let spare = shape.width - prefix;
            key.shr(spare) == value.shr(spare)
        }
        KeyValue::Ternary(value, mask) => key.and(mask) == *value,
        KeyValue::Range(low, high) => within(shape.signed, key, low, high),
        KeyValue::Any => true,
    };
    shape.iter().zip(values).zip(key).all(one)
}

#[cfg(test)]
mod tests;
