//! Implements the control plane's operations on registers, counters, meters and value sets.

use std::ops::Range;

use bits::Bits;
use ir::{CounterId, KeyValue, MeterId, RegisterId, TableId, ValueSetId};

use super::control::ControlChange;
use super::metering::MeterArray;
use super::{CounterValue, EntryError, MeterConfig, Objects, SharedWords};

impl Objects {
    /// Returns the number of elements of a register array.
    pub fn register_size(&self, register: RegisterId) -> u64 {
        self.shared.registers[register].size()
    }

    /// Returns an element of a register array.
    ///
    /// # Errors
    /// `BeyondEnd`.
    pub fn register(&self, register: RegisterId, index: u64) -> Result<Bits, EntryError> {
        let registers = &self.shared.registers[register];
        registers.get(index, self.several).ok_or_else(|| registers.beyond(index))
    }

    /// Appends the words of some elements of a register array: `width.div_ceil(64)` for each, the least significant
    /// first. Appends nothing if none of them was ever written, and none for elements beyond the end.
    pub fn read_register_words(&self, register: RegisterId, elements: Range<u64>, words: &mut Vec<u64>) {
        self.shared.registers[register].read_words(elements, self.several, words);
    }

    /// Sets an element of a register array, visible to all workers immediately. No packet is in an `@atomic` block
    /// meanwhile, so its write does not replace this one by a value that it computed from an earlier one.
    ///
    /// # Errors
    /// `BeyondEnd`, `ValueWidth`, `RowRegister`.
    pub fn set_register(&mut self, register: RegisterId, index: u64, value: Bits) -> Result<(), EntryError> {
        self.check_not_in_rows(register)?;
        let registers = &self.shared.registers[register];
        registers.check(&value)?;
        if index >= registers.size() {
            return Err(registers.beyond(index));
        }
        self.begin_atomic();
        self.shared.registers[register].set(index, &value, self.several);
        self.end_atomic();
        Ok(())
    }

    /// Sets all elements of a register array, one after the other, each as [`Objects::set_register`] does.
    ///
    /// # Errors
    /// `ValueWidth`, `RowRegister`.
    pub fn fill_register(&mut self, register: RegisterId, value: Bits) -> Result<(), EntryError> {
        self.check_not_in_rows(register)?;
        self.shared.registers[register].check(&value)?;
        self.begin_atomic();
        let (registers, exclusive) = (&self.shared.registers[register], &mut self.exclusive);
        registers.fill(&value, self.several, || exclusive.pause());
        self.end_atomic();
        Ok(())
    }

    /// Moves the elements of a register array to shared memory, from this word on, one word each. Others may read and
    /// write them there from now on, as other workers do; the memory is used for as long as these objects are.
    /// Meanwhile no worker may run packets. Returns false if the elements already lie in shared memory.
    ///
    /// # Panics
    /// If elements have more than 64 bits or are `@resilient`, or the memory does not have all words.
    pub fn share_register(&mut self, register: RegisterId, words: SharedWords, first: usize) -> bool {
        self.shared.registers[register].share(words, first)
    }

    /// Checks that an index is inside a counter array.
    pub(super) fn check_counter(&self, counter: CounterId, index: u64) -> Result<(), EntryError> {
        let size = self.sizes.counters[counter].ok_or(EntryError::NoSuchResource)?;
        if index >= size { Err(EntryError::BeyondEnd { index, size }) } else { Ok(()) }
    }

    /// Returns the number of elements of a counter array; `None` for a direct counter.
    pub fn counter_size(&self, counter: CounterId) -> Option<u64> {
        self.sizes.counters[counter]
    }

    /// Returns an element of a counter array: the sum over all workers so far.
    ///
    /// # Errors
    /// `BeyondEnd`; `NoSuchResource` for a direct counter, which belongs to entries.
    pub fn counter(&self, counter: CounterId, index: u64) -> Result<CounterValue, EntryError> {
        self.check_counter(counter, index)?;
        let others = self.tallies.iter().map(|tally| tally.counter(counter, index));
        Ok(others.fold(self.tally.counter(counter, index), CounterValue::plus))
    }

    /// Sets an element of a counter array.
    ///
    /// # Errors
    /// As [`Objects::counter`].
    pub fn set_counter(&mut self, counter: CounterId, index: u64, value: CounterValue) -> Result<(), EntryError> {
        self.check_counter(counter, index)?;
        let others = self.tallies.iter().map(|tally| tally.counter(counter, index));
        self.tally.set_counter(counter, index, others.fold(value, CounterValue::minus));
        Ok(())
    }

    fn meter_array(&self, meter: MeterId) -> Result<&MeterArray, EntryError> {
        self.shared.meters[meter].as_ref().ok_or(EntryError::NoSuchResource)
    }

    /// Returns the number of elements of a meter array; `None` for a direct meter.
    pub fn meter_size(&self, meter: MeterId) -> Option<u64> {
        self.shared.meters[meter].as_ref().map(MeterArray::size)
    }

    /// Returns the configuration of an element of a meter array.
    ///
    /// # Errors
    /// `BeyondEnd`; `NoSuchResource` for a direct meter, which belongs to entries.
    pub fn meter_config(&self, meter: MeterId, index: u64) -> Result<Option<MeterConfig>, EntryError> {
        self.meter_array(meter)?.config(index, self.several)
    }

    /// Sets or removes the configuration of an element of a meter array, visible to all workers immediately.
    ///
    /// # Errors
    /// As [`Objects::meter_config`], and `PeakBelowCommitted`.
    pub fn configure_meter(
        &mut self,
        meter: MeterId,
        index: u64,
        config: Option<MeterConfig>,
    ) -> Result<(), EntryError> {
        self.meter_array(meter)?.configure(index, config, self.several)
    }

    /// Sets or removes the configuration of every element of a meter array.
    ///
    /// # Errors
    /// `NoSuchResource` for a direct meter, `PeakBelowCommitted`.
    pub fn configure_meters(&mut self, meter: MeterId, config: Option<MeterConfig>) -> Result<(), EntryError> {
        self.meter_array(meter)?.fill(config)
    }

    /// Moves a meter array to shared memory, from this word on: [`meter_word::COUNT`](super::meter_word) words for
    /// each element. Others may execute its meters there from now on, as other workers do, while they hold
    /// [`meter_word::LOCK`](super::meter_word). Meanwhile no worker may run packets. Returns false if it already lies
    /// in shared memory.
    ///
    /// # Panics
    /// If it is a direct meter, or the memory does not have all words.
    pub fn share_meter(&mut self, meter: MeterId, words: SharedWords, first: usize) -> bool {
        let array = self.shared.meters[meter].as_ref().expect("it is no direct meter");
        array.share(words, first, usize::try_from(array.size()).expect("the memory has all words"))
    }

    /// Moves the direct meters of a table's entries with numbers below `count` to shared memory, as
    /// [`Objects::share_meter`] does. A meter belongs to an entry while
    /// [`meter_word::ROUND`](super::meter_word) has the entry's generation.
    ///
    /// # Panics
    /// If the memory does not have all words.
    pub fn share_direct_meter(&mut self, table: TableId, words: SharedWords, first: usize, count: usize) -> bool {
        self.shared.direct[table].share(words, first, count)
    }

    /// Returns the members of a value set, each with one value per field.
    pub fn value_set(&self, set: ValueSetId) -> &[Vec<KeyValue>] {
        self.control().value_sets[set].members()
    }

    /// Adds a member to a value set.
    ///
    /// # Errors
    /// `Duplicate`, `Full`, and all errors of a key.
    pub fn insert_value_set_member(&mut self, set: ValueSetId, member: Vec<KeyValue>) -> Result<(), EntryError> {
        let member = self.control().value_sets[set].new_member(member)?;
        self.change(ControlChange::AddToSet(set, member));
        Ok(())
    }

    /// Removes a member from a value set.
    ///
    /// # Errors
    /// `NotFound`, and all errors of a key.
    pub fn remove_value_set_member(&mut self, set: ValueSetId, member: Vec<KeyValue>) -> Result<(), EntryError> {
        let at = self.control().value_sets[set].find(member)?;
        self.change(ControlChange::TakeFromSet(set, at));
        Ok(())
    }

    /// Removes all members from a value set.
    pub fn clear_value_set(&mut self, set: ValueSetId) {
        self.change(ControlChange::ClearSet(set));
    }
}
