//! Arrays of registers, counters and meters.

use bits::Bits;
use ir::{Register, Unit};

use super::EntryError;

/// Elements that get their memory together.
const PAGE: u64 = 256;

/// `size` values. A page of them takes memory once one of it is written, so that a program that declares millions of
/// registers costs next to nothing until it uses them.
#[derive(Clone, Debug)]
pub(crate) struct Cells<T> {
    size: u64,
    /// What elements of pages without memory hold.
    initial: T,
    pages: Vec<Option<Box<[T]>>>,
}

impl<T: Clone> Cells<T> {
    /// The validator limits sizes, so that the list of pages is short.
    pub(crate) fn new(size: u64, initial: T) -> Self {
        Cells { size, initial, pages: vec![None; size.div_ceil(PAGE) as usize] }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// The element, or nothing beyond the end.
    #[inline]
    pub(crate) fn get(&self, index: u64) -> Option<&T> {
        if index >= self.size {
            return None;
        }
        let page = self.pages[(index / PAGE) as usize].as_ref();
        Some(page.map_or(&self.initial, |page| &page[(index % PAGE) as usize]))
    }

    /// The element to change, or nothing beyond the end.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: u64) -> Option<&mut T> {
        if index >= self.size {
            return None;
        }
        let initial = &self.initial;
        let page =
            self.pages[(index / PAGE) as usize].get_or_insert_with(|| vec![initial.clone(); PAGE as usize].into());
        Some(&mut page[(index % PAGE) as usize])
    }

    pub(crate) fn checked(&self, index: u64) -> Result<&T, EntryError> {
        self.get(index).ok_or(EntryError::BeyondEnd { index, size: self.size })
    }

    pub(crate) fn checked_mut(&mut self, index: u64) -> Result<&mut T, EntryError> {
        let size = self.size;
        self.get_mut(index).ok_or(EntryError::BeyondEnd { index, size })
    }

    pub(crate) fn fill(&mut self, value: T) {
        self.pages.fill_with(|| None);
        self.initial = value;
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
    fn elements_are_apart_and_end_where_they_should() {
        for size in [1, PAGE - 1, PAGE, PAGE + 1, 10 * PAGE + 7] {
            let mut cells = Cells::new(size, 7u8);
            assert_eq!((cells.get(0), cells.get(size - 1), cells.get(size)), (Some(&7), Some(&7), None));
            *cells.get_mut(size - 1).unwrap() = 1;
            assert_eq!(cells.get(size - 1), Some(&1));
            assert_eq!((0..size - 1).find(|index| cells.get(*index) != Some(&7)), None);
            assert_eq!(cells.get_mut(size), None);
            assert_eq!(cells.get_mut(u64::MAX), None);
            cells.fill(3);
            assert_eq!((cells.get(size - 1), cells.get(0)), (Some(&3), Some(&3)));
        }
        assert_eq!(Cells::new(0, 0u8).get(0), None);
    }
}
