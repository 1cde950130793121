//! Access to keys and parameters of entries.

use crate::entries::{Matched, ProgramEntry};

/// Returns the value of a parameter.
pub(super) fn param(entry: &ProgramEntry, name: &str) -> Option<u128> {
    entry.params.iter().find(|(known, ..)| known == name).map(|(_, _, value)| *value)
}

/// Returns the match on the field's value.
pub(super) fn value(entry: &ProgramEntry) -> Option<&Matched> {
    entry.keys.iter().find(|(name, ..)| name == "value").map(|(_, _, matched)| matched)
}

/// Whether the action of an entry is `NoAction`.
pub(super) fn is_nothing(entry: &ProgramEntry) -> bool {
    entry.action.rsplit('.').next() == Some("NoAction")
}

/// Returns the value of an exact key.
pub(super) fn exactly(entry: &ProgramEntry, name: &str) -> Option<u128> {
    entry.keys.iter().find(|(known, ..)| known == name).and_then(|(_, _, matched)| match matched {
        Matched::Exact(value) => Some(*value),
        _ => None,
    })
}

/// Returns the intervals of values that a key matches; `None` if there are too many.
pub(crate) fn intervals(matched: &Matched, width: u32) -> Option<Vec<(u128, u128)>> {
    /// Maximum number of wildcard bits before the last one bit of a mask; each doubles the number of intervals.
    const HOLES: u32 = 10;
    let max = subscribe::max_of(width);
    match *matched {
        Matched::Exact(value) => Some(vec![(value, value)]),
        Matched::Range(first, last) => Some(vec![(first, last)]),
        Matched::Lpm(value, length) => Some(intervals(&Matched::Ternary(value, !behind(length, width) & max), width)?),
        Matched::Ternary(value, mask) => {
            let value = value & mask;
            let below = if mask == 0 { max } else { (1u128 << mask.trailing_zeros()) - 1 };
            let holes = !mask & max & !below;
            if holes.count_ones() > HOLES {
                return None;
            }
            // Enumerates the subsets of the wildcard bits in ascending order.
            let mut out = Vec::with_capacity(1 << holes.count_ones());
            let mut bits = 0u128;
            loop {
                out.push((value | bits, value | bits | below));
                bits = bits.wrapping_sub(holes) & holes;
                if bits == 0 {
                    return Some(out);
                }
            }
        }
    }
}

/// Returns a mask of the bits after a prefix.
fn behind(length: u32, width: u32) -> u128 {
    if length == 0 { subscribe::max_of(width) } else { subscribe::max_of(width).checked_shr(length).unwrap_or(0) }
}
