//! Holds the state that the packets of all workers read and write: registers and meters.
//!
//! Elements are words, each read and written atomically. A lock protects elements of several words (a register wider
//! than 64 bits, a meter); it is taken only while there are several workers.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bits::Bits;
use cranelift_entity::PrimaryMap;
use ir::{MeterId, Program, RegisterId, TableId};

use super::EntryError;
use super::inline_arrays::PageDirectory;
use super::metering::MeterArray;
use super::paged::PAGE;
use super::register_words::{RegisterWords, SharedWords};

/// Number of elements that are set before others may take the lock of `@atomic` blocks.
const ELEMENTS_AT_ONCE: u64 = 1 << 10;

/// Registers and meters.
#[derive(Debug)]
pub(crate) struct SharedArrays {
    pub(crate) registers: PrimaryMap<RegisterId, Registers>,
    /// Meter arrays; `None` for a direct meter.
    pub(crate) meters: PrimaryMap<MeterId, Option<MeterArray>>,
    /// Direct meters of tables, by handle.
    pub(crate) direct: PrimaryMap<TableId, MeterArray>,
}

impl SharedArrays {
    pub(crate) fn new(program: &Program) -> Self {
        let array = |meter: &ir::Meter| meter.size.map(|size| MeterArray::new(size, meter.unit));
        let unit = |table: &ir::Table| table.meter.map_or(ir::Unit::Packets, |meter| program.meters[meter].unit);
        SharedArrays {
            registers: program.registers.values().map(Registers::new).collect(),
            meters: program.meters.values().map(array).collect(),
            direct: program.tables.values().map(|table| MeterArray::new(u64::MAX, unit(table))).collect(),
        }
    }
}

/// Locks for the elements of an array; distant elements may share one.
pub(crate) struct Locks([Mutex<()>; 32]);

impl std::fmt::Debug for Locks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Locks")
    }
}

impl Locks {
    pub(crate) fn new() -> Self {
        Locks([const { Mutex::new(()) }; 32])
    }

    /// Locks an element, if there are several workers.
    #[inline]
    pub(crate) fn hold(&self, several: bool, index: u64) -> Option<MutexGuard<'_, ()>> {
        // The guarded data is consistent wherever a thread can end.
        several.then(|| self.0[(index % 32) as usize].lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A register array: values of one width, initially 0.
#[derive(Debug)]
pub(crate) struct Registers {
    width: u32,
    /// Number of words per element.
    stride: u64,
    size: u64,
    words: RegisterWords,
    /// The directory with which compiled code finds the words of a resilient array.
    directory: Option<PageDirectory>,
    locks: Locks,
}

impl Registers {
    fn new(register: &ir::Register) -> Self {
        let stride = u64::from(register.width.div_ceil(64));
        Registers {
            width: register.width,
            stride,
            size: register.size,
            words: RegisterWords::new(),
            directory: PageDirectory::new(register),
            locks: Locks::new(),
        }
    }

    pub(super) fn directory(&self) -> Option<&PageDirectory> {
        self.directory.as_ref()
    }

    /// Returns a word for writing.
    #[inline]
    fn word_at(&self, index: u64) -> &AtomicU64 {
        match self.words.get(index) {
            Some(word) => word,
            None => self.first_at(index),
        }
    }

    /// Returns the word on a page without memory.
    #[cold]
    fn first_at(&self, index: u64) -> &AtomicU64 {
        let word = self.words.at(index);
        self.directory.iter().for_each(|directory| directory.note(index, self.words.own()));
        word
    }

    /// Moves the elements to shared memory, one word each. See [`RegisterWords::share`].
    pub(super) fn share(&self, words: SharedWords, first: usize) -> bool {
        assert!(self.stride <= 1 && self.directory.is_none(), "elements of one word, without rows");
        self.words.share(words, first..first + self.size as usize)
    }

    /// Allocates memory for these elements, so that compiled code may write them.
    pub(super) fn allocate(&self, elements: Range<u64>) {
        if self.directory.is_some() && self.stride == 1 {
            let pages = elements.start / PAGE..elements.end.min(self.size).div_ceil(PAGE);
            pages.for_each(|page| _ = self.word_at(page * PAGE));
        }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn width(&self) -> u32 {
        self.width
    }

    /// Returns an element of at most 64 bits; 0 beyond the end.
    #[inline]
    pub(crate) fn word(&self, index: u64) -> u64 {
        debug_assert!(self.width <= 64, "elements of one word");
        if index >= self.size {
            return 0;
        }
        self.words.get(index).map_or(0, |word| word.load(Relaxed))
    }

    /// Sets an element of at most 64 bits; does nothing beyond the end.
    #[inline]
    pub(crate) fn set_word(&self, index: u64, value: u64) {
        debug_assert!(self.width <= 64, "elements of one word");
        if index < self.size && self.width > 0 {
            self.word_at(index).store(value & (u64::MAX >> (64 - self.width)), Relaxed);
        }
    }

    /// Sets an element of at most 64 bits to `new` if it is `old`. Returns its value before; 0 beyond the end.
    pub(crate) fn exchange_word(&self, index: u64, old: u64, new: u64) -> u64 {
        debug_assert!(self.width <= 64, "elements of one word");
        if index >= self.size || self.width == 0 {
            return 0;
        }
        let new = new & (u64::MAX >> (64 - self.width));
        let (Ok(before) | Err(before)) = self.word_at(index).compare_exchange(old, new, Relaxed, Relaxed);
        before
    }

    /// Returns an element; `None` beyond the end.
    pub(crate) fn get(&self, index: u64, several: bool) -> Option<Bits> {
        if index >= self.size {
            return None;
        }
        if self.stride <= 1 {
            return Some(Bits::new(u128::from(self.word(index)), self.width));
        }
        let _whole = self.locks.hold(several, index);
        let first = index * self.stride;
        let word = |at: u64| self.words.get(at).map_or(0, |word| word.load(Relaxed));
        let words: Vec<u64> = (first..first + self.stride).map(word).collect();
        Some(Bits::from_words(&words, self.width))
    }

    /// Appends the words of elements; nothing if none of them was ever written.
    pub(crate) fn read_words(&self, elements: Range<u64>, several: bool, words: &mut Vec<u64>) {
        let range = elements.start * self.stride..elements.end.min(self.size) * self.stride;
        if !self.words.has_any(range.clone()) {
            return;
        }
        let word = |at: u64| self.words.get(at).map_or(0, |word| word.load(Relaxed));
        if self.stride <= 1 {
            return words.extend(range.map(word));
        }
        for first in range.step_by(self.stride as usize) {
            let _whole = self.locks.hold(several, first / self.stride);
            words.extend((first..first + self.stride).map(word));
        }
    }

    /// Sets an element to a value of the array's width; does nothing beyond the end.
    pub(crate) fn set(&self, index: u64, value: &Bits, several: bool) {
        if self.stride <= 1 {
            return self.set_word(index, value.low_u64());
        }
        if index < self.size {
            let _whole = self.locks.hold(several, index);
            for at in 0..self.stride {
                self.word_at(index * self.stride + at).store(value.word(at as usize), Relaxed);
            }
        }
    }

    /// Returns the number of bytes of elements, each in whole bytes. Those beyond the end have no bytes.
    pub(crate) fn bytes_of(&self, elements: &Range<u64>) -> u64 {
        elements.end.min(self.size).saturating_sub(elements.start) * u64::from(self.width.div_ceil(8))
    }

    /// Appends the bytes of elements, each in whole bytes, the most significant first.
    pub(crate) fn get_bytes(&self, elements: Range<u64>, several: bool, bytes: &mut Vec<u8>) {
        let length = self.width.div_ceil(8) as usize;
        for index in elements.start..elements.end.min(self.size) {
            match length {
                0 => {}
                1..=8 => bytes.extend_from_slice(&self.word(index).to_be_bytes()[8 - length..]),
                _ => bytes.extend(self.get(index, several).iter().flat_map(Bits::to_be_bytes)),
            }
        }
    }

    /// Sets elements to bytes of [`Registers::get_bytes`], or to zeros.
    pub(crate) fn set_bytes(&self, elements: Range<u64>, bytes: Option<&[u8]>, several: bool) {
        let length = self.width.div_ceil(8) as usize;
        for (at, index) in (elements.start..elements.end.min(self.size)).enumerate() {
            let value = match bytes {
                None => Bits::zero(self.width),
                Some(bytes) => Bits::from_be_bytes(&bytes[at * length..(at + 1) * length], self.width),
            };
            // Writing 0 to elements that were never written allocates no memory.
            if self.get(index, several).is_some_and(|before| before != value) {
                self.set(index, &value, several);
            }
        }
    }

    /// Sets every element, and calls `pause` after every 1,024 of them. Writing 0 to elements that were never written
    /// allocates no memory.
    pub(crate) fn fill(&self, value: &Bits, several: bool, mut pause: impl FnMut()) {
        let mut count = 0;
        let mut has_set = || {
            count += 1;
            if count % ELEMENTS_AT_ONCE == 0 {
                pause();
            }
        };
        if *value == Bits::zero(self.width) {
            let mut last = None;
            for (at, word) in self.words.iter() {
                if self.stride <= 1 {
                    word.store(0, Relaxed);
                    has_set();
                } else if last.replace(at / self.stride) != Some(at / self.stride) {
                    self.set(at / self.stride, value, several);
                    has_set();
                }
            }
        } else {
            for index in 0..self.size {
                self.set(index, value, several);
                has_set();
            }
        }
    }

    pub(crate) fn beyond(&self, index: u64) -> EntryError {
        EntryError::BeyondEnd { index, size: self.size }
    }

    /// Checks a value written by the control plane.
    pub(crate) fn check(&self, value: &Bits) -> Result<(), EntryError> {
        if value.width() == self.width {
            Ok(())
        } else {
            Err(EntryError::ValueWidth { want: self.width, got: value.width() })
        }
    }
}
