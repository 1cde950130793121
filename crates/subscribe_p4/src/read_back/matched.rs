//! Keys and parameters of entries.

use crate::entries::{Matched, TableEntry};

/// The value of a parameter.
pub(super) fn param(entry: &TableEntry, name: &str) -> Option<u128> {
    entry.params.iter().find(|(known, ..)| known == name).map(|(_, _, value)| *value)
}

/// What an entry matches of a field.
pub(super) fn value(entry: &TableEntry) -> Option<&Matched> {
    entry.keys.iter().find(|(name, ..)| name == "value").map(|(_, _, matched)| matched)
}

/// Whether an entry says that nothing is done.
pub(super) fn is_nothing(entry: &TableEntry) -> bool {
    entry.action.rsplit('.').next() == Some("NoAction")
}

/// The value of a key that is matched exactly.
pub(super) fn exactly(entry: &TableEntry, name: &str) -> Option<u128> {
    entry.keys.iter().find(|(known, ..)| known == name).and_then(|(_, _, matched)| match matched {
        Matched::Exact(value) => Some(*value),
        _ => None,
    })
}

/// The stretches of values that a key matches; `None` if they are too many.
pub(crate) fn stretches(matched: &Matched, width: u32) -> Option<Vec<(u128, u128)>> {
    /// Bits of a mask that stand in front of others and are of no matter: so many double the stretches.
    const HOLES: u32 = 10;
    let max = subscribe::max_of(width);
    match *matched {
        Matched::Exact(value) => Some(vec![(value, value)]),
        Matched::Range(first, last) => Some(vec![(first, last)]),
        Matched::Lpm(value, length) => Some(stretches(&Matched::Ternary(value, !behind(length, width) & max), width)?),
        Matched::Ternary(value, mask) => {
            let value = value & mask;
            let below = if mask == 0 { max } else { (1u128 << mask.trailing_zeros()) - 1 };
            let holes = !mask & max & !below;
            if holes.count_ones() > HOLES {
                return None;
            }
            // Each set of bits that are holes, in ascending order.
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

/// The ones behind a prefix.
fn behind(length: u32, width: u32) -> u128 {
    if length == 0 { subscribe::max_of(width) } else { subscribe::max_of(width).checked_shr(length).unwrap_or(0) }
}
