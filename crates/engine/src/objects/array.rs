//! Arrays of registers, counters and meters, of any size a program asks for.

use bits::Bits;
use ir::{Register, Unit};

use super::{EntryError, FoldMap};

/// Arrays up to this size are kept as they are; of larger ones only what was ever written, so that a program that
/// declares 2^40 registers costs nothing until it uses them.
const DENSE_LIMIT: u64 = 1 << 20;

/// `size` values of which most may be the default.
#[derive(Clone, Debug)]
pub(crate) struct Cells<T> {
    size: u64,
    default: T,
    storage: Storage<T>,
}

#[derive(Clone, Debug)]
enum Storage<T> {
    Dense(Vec<T>),
    Sparse(FoldMap<u64, T>),
}

impl<T: Clone> Cells<T> {
    pub(crate) fn new(size: u64, default: T) -> Self {
        let storage = match size {
            0..=DENSE_LIMIT => Storage::Dense(vec![default.clone(); size as usize]),
            _ => Storage::Sparse(FoldMap::default()),
        };
        Cells { size, default, storage }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// The element, or nothing beyond the end.
    #[inline]
    pub(crate) fn get(&self, index: u64) -> Option<&T> {
        match &self.storage {
            Storage::Dense(cells) => cells.get(usize::try_from(index).ok()?),
            Storage::Sparse(cells) => (index < self.size).then(|| cells.get(&index).unwrap_or(&self.default)),
        }
    }

    /// The element to change, or nothing beyond the end.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: u64) -> Option<&mut T> {
        match &mut self.storage {
            Storage::Dense(cells) => cells.get_mut(usize::try_from(index).ok()?),
            Storage::Sparse(cells) => {
                (index < self.size).then(|| cells.entry(index).or_insert_with(|| self.default.clone()))
            }
        }
    }

    pub(crate) fn checked(&self, index: u64) -> Result<&T, EntryError> {
        self.get(index).ok_or(EntryError::BeyondEnd { index, size: self.size })
    }

    pub(crate) fn checked_mut(&mut self, index: u64) -> Result<&mut T, EntryError> {
        let size = self.size;
        self.get_mut(index).ok_or(EntryError::BeyondEnd { index, size })
    }

    pub(crate) fn fill(&mut self, value: T) {
        match &mut self.storage {
            Storage::Dense(cells) => cells.fill(value),
            Storage::Sparse(cells) => {
                cells.clear();
                self.default = value;
            }
        }
    }
}

/// A register array: values of one width.
#[derive(Clone, Debug)]
pub(crate) struct Registers {
    width: u32,
    cells: Cells<Bits>,
}

impl Registers {
    pub(crate) fn new(register: &Register) -> Self {
        Registers { width: register.width, cells: Cells::new(register.size, Bits::zero(register.width)) }
    }

    pub(crate) fn width(&self) -> u32 {
        self.width
    }

    pub(crate) fn cells(&self) -> &Cells<Bits> {
        &self.cells
    }

    pub(crate) fn cells_mut(&mut self) -> &mut Cells<Bits> {
        &mut self.cells
    }

    /// A value that may be written from outside.
    pub(crate) fn check(&self, value: &Bits) -> Result<(), EntryError> {
        match value.width() == self.width {
            true => Ok(()),
            false => Err(EntryError::ValueWidth { want: self.width, got: value.width() }),
        }
    }
}

/// What a counter has counted. Both numbers are kept whatever the counter's unit; the unit says which of them mean
/// something to the control plane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterValue {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl CounterValue {
    /// Counts a packet.
    #[inline]
    pub fn count(&mut self, bytes: u64) {
        self.packets = self.packets.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(bytes);
    }

    /// The value with the numbers that are not counted in this unit set to 0.
    pub fn in_unit(self, unit: Unit) -> CounterValue {
        match unit {
            Unit::Packets => CounterValue { bytes: 0, ..self },
            Unit::Bytes => CounterValue { packets: 0, ..self },
            Unit::PacketsAndBytes => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dense_and_sparse_behave_alike() {
        for size in [10, DENSE_LIMIT + 1, u64::MAX] {
            let mut cells = Cells::new(size, 7u8);
            assert_eq!(cells.get(0), Some(&7));
            *cells.get_mut(size.min(10) - 1).unwrap() = 1;
            assert_eq!(cells.get(9), Some(&1));
            assert_eq!(cells.get(size), None);
            assert_eq!(cells.get_mut(size), None);
            cells.fill(3);
            assert_eq!((cells.get(9), cells.get(1)), (Some(&3), Some(&3)));
        }
    }
}
