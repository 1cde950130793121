//! Relaxes rule masks to tuple masks.

use smallvec::SmallVec;

use crate::key_layout::{KeyField, KeyLayout};
use crate::pattern::Words;

/// Number of masks that are tried for a new tuple, from coarse to the rule's own.
pub(super) const GRIDS: usize = 3;

/// Relaxes a rule's mask for a tuple: prefixes are cut to the steps of a grid. Other masks stay unchanged, since rule
/// sets usually repeat one such mask in many rules.
pub(super) fn relax(layout: &KeyLayout, mask: &[u64], grid: usize) -> Words {
    let mut relaxed: Words = mask.into();
    if grid + 1 == GRIDS {
        return relaxed;
    }
    let lengths: SmallVec<[Option<u32>; 8]> = layout.fields().iter().map(|field| prefix_length(field, mask)).collect();
    let shares = layout.fields().iter().zip(&lengths).filter(|(field, _)| field.width > NARROW);
    let longest = shares.filter_map(|(field, length)| Some(share(field.width, (*length)?))).max().unwrap_or(0);
    for (field, length) in layout.fields().iter().zip(lengths) {
        if let Some(length) = length {
            keep_prefix(field, &mut relaxed, cut(field.width, length, longest, grid));
        }
    }
    relaxed
}

/// Maximum width in bits of a field that is in a tuple entirely or not at all.
const NARROW: u32 = 16;

/// Returns the fraction of a field that a prefix fixes, in 64ths.
fn share(width: u32, length: u32) -> u32 {
    length * 64 / width.max(1)
}

/// Returns the length of a prefix in a tuple, given the longest fraction among the rule's prefixes.
fn cut(width: u32, length: u32, longest: u32, grid: usize) -> u32 {
    if width <= NARROW {
        return if length == width { width } else { 0 };
    }
    if grid > 0 {
        let step = width / 8;
        return length / step * step;
    }
    // Beside a long prefix, a short one is not selective.
    if share(width, length) + 32 <= longest {
        return 0;
    }
    let step = width / 4;
    (length / step * step).min(step * 3)
}

/// Returns the prefix length of a field's bits in a mask, if they form a prefix.
fn prefix_length(field: &KeyField, mask: &[u64]) -> Option<u32> {
    let mut length = 0;
    let mut ended = false;
    for part in (0..field.words()).rev() {
        let bits = field.ones(part).count_ones();
        let word = (mask[field.word + part] >> field.shift & field.ones(part)) << (64 - bits);
        let ones = word.leading_ones();
        if word.count_ones() != ones || (ended && ones > 0) {
            return None;
        }
        length += ones;
        ended |= ones < bits;
    }
    Some(length)
}

/// Clears a field's bits after a prefix in a mask.
fn keep_prefix(field: &KeyField, mask: &mut [u64], length: u32) {
    let spare = field.width - length;
    for part in 0..field.words() {
        let out = spare.saturating_sub(64 * part as u32).min(64);
        mask[field.word + part] &= !((crate::key_layout::low_ones(out) & field.ones(part)) << field.shift);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FieldKind;

    #[test]
    fn masks_are_cut_to_steps() {
        let layout = KeyLayout::new([(32, FieldKind::Prefix), (16, FieldKind::Range), (100, FieldKind::Masked)]);
        let relaxed = |masks: [u128; 3], grid| {
            let mut mask = vec![0; layout.words()];
            for (field, value) in masks.into_iter().enumerate() {
                layout.put(&mut mask, field, &[value as u64, (value >> 64) as u64]);
            }
            relax(&layout, &mask, grid).to_vec()
        };
        let all = (1u128 << 100) - 1;
        // Full, nearly full and non-contiguous masks; then the result of each grid.
        assert_eq!(
            relaxed([0xffff_ffff, 0xffff, all], 0),
            [0xffff_ff00 | 0xffff << 32, all as u64 & !0 << 25, all as u64 >> 28]
        );
        assert_eq!(relaxed([0xffff_f800, 0xfff0, 0xff], 0), [0xffff_0000, 0xff, 0]);
        assert_eq!(relaxed([0xffff_f800, 0xfff0, 0xff], 1), [0xffff_f000, 0xff, 0]);
        assert_eq!(relaxed([0xffff_f800, 0xfff0, 0xff], 2), [0xffff_f800 | 0xfff0 << 32, 0xff, 0]);
        assert_eq!(relaxed([0xff00_00ff, 0, 0], 0), [0xff00_00ff, 0, 0]);
    }
}
