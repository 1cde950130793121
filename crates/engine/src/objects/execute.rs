//! What executors other than the interpreter ask of objects while a packet runs.

use bits::Bits;
use ir::{Algorithm, CounterId, MeterId, ValueSetId};

use super::{Colour, Objects};
use crate::BitString;

impl Objects {
    /// Counts a packet of so many bytes; beyond the end, and for direct counters, nothing.
    pub fn count(&mut self, counter: CounterId, index: u64, bytes: u64) {
        if let Some(cell) = self.counters[counter].as_mut().and_then(|cells| cells.get_mut(index)) {
            cell.count(bytes);
        }
    }

    /// Meters a packet of so many bytes; green beyond the end, and for direct meters.
    pub fn execute_meter(&mut self, meter: MeterId, index: u64, bytes: u64, now_ns: u64) -> Colour {
        let (unit, cells) = &mut self.meters[meter];
        let cell = cells.as_mut().and_then(|cells| cells.get_mut(index));
        cell.map_or(Colour::Green, |cell| cell.execute(*unit, bytes, now_ns))
    }

    /// The next random number from `low` to `high`.
    pub fn random_between(&mut self, low: &Bits, high: &Bits) -> Bits {
        self.random.between(low, high)
    }

    /// A checksum or hash, zero-extended or cut to `width` bits.
    pub fn compute(&self, algorithm: Algorithm, data: &BitString, width: u32) -> Bits {
        self.algorithms.compute_to_width(algorithm, data, width)
    }

    /// Whether a value set has a member that these values match.
    pub fn value_set_contains(&self, set: ValueSetId, values: &[Bits]) -> bool {
        self.value_sets[set].contains(values)
    }
}
