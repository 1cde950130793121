//! Finds overlapping rows whose relative precedence is undefined.

use super::{Row, RowKey, TableChain};

impl TableChain {
    /// Returns pairs of overlapping rows that have equal precedence and different results, identified by [`Row::at`].
    /// Each row is reported in at most one pair.
    pub fn ambiguous(&self) -> Vec<(usize, usize)> {
        /// Maximum number of validity patterns that are compared pairwise.
        const PATTERNS: usize = 4096;
        let mut out = Vec::new();
        let mut stretches = Vec::new();
        let mut patterns = Vec::new();
        for row in &self.rows {
            match &row.matches {
                RowKey::Stretch(first, last) => {
                    stretches.push(((row.stage, row.state, row.part, row.rank), *first, *last, &row.then, row.at));
                }
                RowKey::Validity(pattern) => patterns.push((row, pattern)),
            }
        }
        overlaps(stretches, &mut out);
        let codes = self.codes.iter().map(|row| ((row.stage, row.rank), row.first, row.last, row.code, row.at));
        overlaps(codes.collect(), &mut out);
        patterns.truncate(PATTERNS);
        for (at, (row, pattern)) in patterns.iter().enumerate() {
            let meets = |other: &[Option<bool>]| {
                pattern.iter().zip(other).all(|(one, other)| one.is_none() || other.is_none() || one == other)
            };
            let clash = |(other, its): &&(&Row, &Vec<Option<bool>>)| {
                other.rank == row.rank && other.then != row.then && meets(its)
            };
            out.extend(patterns[..at].iter().find(clash).map(|(other, _)| (other.at, row.at)));
        }
        out
    }
}

/// Reports intervals of one group that overlap and have different results.
fn overlaps<G: Ord, T: PartialEq>(mut all: Vec<(G, u128, u128, T, usize)>, out: &mut Vec<(usize, usize)>) {
    all.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
    for group in all.chunk_by(|a, b| a.0 == b.0) {
        let mut furthest = &group[0];
        for next in &group[1..] {
            if next.1 <= furthest.2 && next.3 != furthest.3 {
                out.push((furthest.4, next.4));
            }
            if next.2 > furthest.2 {
                furthest = next;
            }
        }
    }
}
