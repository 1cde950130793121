//! Bitmap sketches: the number of different elements, such as flows, that each link carried (paper, section 2.5).
//!
//! ```text
//! packets with programs ──> receiving host: bit hash(element) of each link on the path
//!                              each period └──> report ──> aggregator: OR of all hosts' bitmaps ──> estimates
//! ```
//!
//! A host sees the packets that it receives, and their programs tell which links they passed. An element sets one of b
//! bits. If z bits of a link stay zero, about b ln(b / z) elements passed it (linear counting; Whang et al., *A
//! Linear-Time Probabilistic Counting Algorithm for Database Applications*, 1990). Setting bits commutes, so the OR of
//! the hosts' bitmaps is the bitmap that one host would have that received everything, whatever order the reports have,
//! and even if one comes twice.
//!
//! A link is a switch and a port: ports of different switches have the same numbers. Bitmaps of different hashes or
//! lengths mean nothing together, so merging them is refused.

mod report;

use std::collections::BTreeMap;

use rng::SplitMix64;
use thiserror::Error;

pub use crate::hop_words::LinkPlace;
pub use report::{HostSketch, SketchAggregator, SketchReport};

/// Least and greatest number of bits of a link.
pub const BITS: std::ops::RangeInclusive<u32> = 8..=1 << 20;

/// Maximum number of links of a sketch. Observations of further links are only counted.
pub const MAX_LINKS: usize = 65_536;

/// Bits of a word of a bitmap.
const WORD: u32 = u64::BITS;

/// The hash of a sketch. Only sketches with the same one can be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SketchHash {
    /// Number of bits of each link, one of [`BITS`].
    pub bits: u32,
    /// Seed of the hash function.
    pub seed: u64,
}

impl SketchHash {
    /// Returns the bit of an element.
    fn bit(&self, element: &[u8]) -> u32 {
        let mut hash = mix(self.seed ^ element.len() as u64);
        for chunk in element.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            hash = mix(hash ^ u64::from_be_bytes(word));
        }
        ((u128::from(hash) * u128::from(self.bits)) >> 64) as u32
    }
}

/// Mixes the bits of a word: the output function of SplitMix64.
fn mix(word: u64) -> u64 {
    SplitMix64::new(word).next_u64()
}

/// The reason why two sketches cannot be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MergeRefusal {
    /// They have different numbers of bits.
    #[error("a sketch with {0} bits a link cannot be merged into one with {1}")]
    Bits(u32, u32),
    /// They hash elements differently.
    #[error("a sketch with hash seed {0} cannot be merged into one with {1}")]
    Seed(u64, u64),
}

/// An estimated number of elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cardinality {
    /// About this number.
    About(f64),
    /// All bits are set: the bitmap is too small for any estimate.
    Full,
}

/// Returns the standard error of linear counting with this number of bits for `elements` different elements.
pub fn standard_error(bits: u32, elements: f64) -> f64 {
    let load = elements / f64::from(bits);
    (f64::from(bits) * (load.exp_m1() - load)).max(0.0).sqrt()
}

/// A bitmap for each link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitmapSketch {
    hash: SketchHash,
    links: BTreeMap<LinkPlace, Vec<u64>>,
    left_out: u64,
}

impl BitmapSketch {
    /// Creates an empty sketch. Bits outside [`BITS`] are the nearest number of it.
    pub fn new(hash: SketchHash) -> BitmapSketch {
        let bits = hash.bits.clamp(*BITS.start(), *BITS.end());
        BitmapSketch { hash: SketchHash { bits, ..hash }, links: BTreeMap::new(), left_out: 0 }
    }

    /// Returns the hash.
    pub fn hash(&self) -> SketchHash {
        self.hash
    }

    /// Whether no link was seen.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Returns the number of observations that were left out because [`MAX_LINKS`] links were known. Repeated elements
    /// and reports count again.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns the links in ascending order.
    pub fn links(&self) -> impl Iterator<Item = LinkPlace> + '_ {
        self.links.keys().copied()
    }

    /// Returns the bitmap of a link; `None` if there are too many links.
    fn bitmap(&mut self, link: LinkPlace) -> Option<&mut Vec<u64>> {
        if self.links.len() >= MAX_LINKS && !self.links.contains_key(&link) {
            return None;
        }
        let words = self.hash.bits.div_ceil(WORD) as usize;
        Some(self.links.entry(link).or_insert_with(|| vec![0; words]))
    }

    /// Records that an element passed a link.
    pub fn observe(&mut self, link: LinkPlace, element: &[u8]) {
        let bit = self.hash.bit(element);
        match self.bitmap(link) {
            Some(bitmap) => bitmap[(bit / WORD) as usize] |= 1 << (bit % WORD),
            None => self.left_out += 1,
        }
    }

    /// Adds the bits of another sketch.
    ///
    /// # Errors
    /// If the sketches have different hashes. This one stays as it is then.
    pub fn merge(&mut self, other: &BitmapSketch) -> Result<(), MergeRefusal> {
        if other.hash.bits != self.hash.bits {
            return Err(MergeRefusal::Bits(other.hash.bits, self.hash.bits));
        }
        if other.hash.seed != self.hash.seed {
            return Err(MergeRefusal::Seed(other.hash.seed, self.hash.seed));
        }
        self.left_out += other.left_out;
        for (link, bits) in &other.links {
            match self.bitmap(*link) {
                Some(bitmap) => bitmap.iter_mut().zip(bits).for_each(|(word, other)| *word |= other),
                None => self.left_out += bits.iter().map(|word| u64::from(word.count_ones())).sum::<u64>(),
            }
        }
        Ok(())
    }

    /// Returns the estimated number of elements that passed a link; 0 if it was not seen.
    pub fn estimate(&self, link: LinkPlace) -> Cardinality {
        let set: u32 = self.links.get(&link).into_iter().flatten().map(|word| word.count_ones()).sum();
        let bits = f64::from(self.hash.bits);
        match self.hash.bits - set {
            0 => Cardinality::Full,
            zeros => Cardinality::About(bits * (bits / f64::from(zeros)).ln()),
        }
    }
}

#[cfg(test)]
mod tests;
