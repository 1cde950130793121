//! Provides the operations on objects to executors other than the interpreter.

use bits::Bits;
use ir::{Algorithm, CounterId, MeterId, RegisterId, ValueSetId};

use super::rows::Undo;
use super::{Colour, Objects};
use crate::BitString;

impl Objects {
    /// Counts a packet of `bytes` bytes; does nothing beyond the end, and for direct counters.
    #[inline]
    pub fn count(&mut self, counter: CounterId, index: u64, bytes: u64) {
        if self.sizes.counters[counter].is_some_and(|size| index < size) {
            if self.is_recording() {
                self.record(Undo::Counter(counter, index, self.tally.counter(counter, index)));
            }
            self.tally.count(counter, index, bytes);
        }
    }

    /// Meters a packet of `bytes` bytes; green beyond the end, and for direct meters.
    pub fn execute_meter(&mut self, meter: MeterId, index: u64, bytes: u64, now_ns: u64) -> Colour {
        if self.is_recording()
            && let Some(array) = &self.shared.meters[meter]
        {
            let state = array.state(index, self.several);
            state.into_iter().for_each(|state| self.record(Undo::Meter(meter, index, state)));
        }
        let array = self.shared.meters[meter].as_ref();
        array.map_or(Colour::Green, |array| array.execute(index, bytes, now_ns, self.several))
    }

    /// Returns an element of a register array of at most 64 bits; 0 beyond the end.
    #[inline]
    pub fn register_word(&self, register: RegisterId, index: u64) -> u64 {
        self.shared.registers[register].word(index)
    }

    /// Sets an element of a register array of at most 64 bits, truncated to its width; does nothing beyond the end.
    #[inline]
    pub fn set_register_word(&self, register: RegisterId, index: u64, value: u64) {
        self.shared.registers[register].set_word(index, value);
    }

    /// Sets an element of a register array of at most 64 bits to `new`, truncated to its width, if it is `old`, in one
    /// step. Returns its value before; 0 beyond the end.
    pub fn exchange_register_word(&self, register: RegisterId, index: u64, old: u64, new: u64) -> u64 {
        self.shared.registers[register].exchange_word(index, old, new)
    }

    /// Returns an element of a register array; 0 beyond the end.
    pub fn read_register(&self, register: RegisterId, index: u64) -> Bits {
        let registers = &self.shared.registers[register];
        registers.get(index, self.several).unwrap_or_else(|| Bits::zero(registers.width()))
    }

    /// Sets an element of a register array to a value of its width; does nothing beyond the end.
    pub fn write_register(&mut self, register: RegisterId, index: u64, value: &Bits) {
        self.shared.registers[register].set(index, value, self.several);
    }

    /// Returns the next random number from `low` to `high`.
    pub fn random_between(&mut self, low: &Bits, high: &Bits) -> Bits {
        if self.is_recording() {
            self.record(Undo::Random(self.random.clone()));
        }
        self.random.between(low, high)
    }

    /// Computes a checksum or hash, zero-extended or truncated to `width` bits.
    pub fn compute(&self, algorithm: Algorithm, data: &BitString, width: u32) -> Bits {
        self.control().algorithms.compute_to_width(algorithm, data, width)
    }

    /// Whether these values match a member of a value set.
    pub fn value_set_contains(&self, set: ValueSetId, values: &[Bits]) -> bool {
        self.control().value_sets[set].contains(values)
    }
}
