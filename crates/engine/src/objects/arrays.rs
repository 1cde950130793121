//! The control plane's requests to registers, counters, meters and value sets.

use bits::Bits;
use ir::{CounterId, KeyValue, MeterId, RegisterId, ValueSetId};

use super::control::Change;
use super::metering::MeterArray;
use super::{CounterValue, EntryError, MeterConfig, Objects};

impl Objects {
    /// The number of elements of a register array.
    pub fn register_size(&self, register: RegisterId) -> u64 {
        self.shared.registers[register].size()
    }

    /// An element of a register array.
    ///
    /// # Errors
    /// `BeyondEnd`.
    pub fn register(&self, register: RegisterId, index: u64) -> Result<Bits, EntryError> {
        let registers = &self.shared.registers[register];
        registers.get(index, self.several).ok_or_else(|| registers.beyond(index))
    }

    /// Sets an element of a register array, at once for all workers.
    ///
    /// # Errors
    /// `BeyondEnd`, `ValueWidth`.
    pub fn set_register(&mut self, register: RegisterId, index: u64, value: Bits) -> Result<(), EntryError> {
        let registers = &self.shared.registers[register];
        registers.check(&value)?;
        if index >= registers.size() {
            return Err(registers.beyond(index));
        }
        registers.set(index, &value, self.several);
        Ok(())
    }

    /// Sets all elements of a register array, one after the other.
    ///
    /// # Errors
    /// `ValueWidth`.
    pub fn fill_register(&mut self, register: RegisterId, value: Bits) -> Result<(), EntryError> {
        let registers = &self.shared.registers[register];
        registers.check(&value)?;
        registers.fill(&value, self.several);
        Ok(())
    }

    /// Whether an element is inside a counter array.
    fn check_counter(&self, counter: CounterId, index: u64) -> Result<(), EntryError> {
        let size = self.facts.counters[counter].ok_or(EntryError::NoSuchResource)?;
        if index >= size { Err(EntryError::BeyondEnd { index, size }) } else { Ok(()) }
    }

    /// The number of elements of a counter array; `None` for a direct counter.
    pub fn counter_size(&self, counter: CounterId) -> Option<u64> {
        self.facts.counters[counter]
    }

    /// An element of a counter array: what all workers have counted until now.
    ///
    /// # Errors
    /// `BeyondEnd`; `NoSuchResource` for a direct counter, which entries have.
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

    /// The number of elements of a meter array; `None` for a direct meter.
    pub fn meter_size(&self, meter: MeterId) -> Option<u64> {
        self.shared.meters[meter].as_ref().map(MeterArray::size)
    }

    /// The configuration of an element of a meter array.
    ///
    /// # Errors
    /// `BeyondEnd`; `NoSuchResource` for a direct meter, which entries have.
    pub fn meter_config(&self, meter: MeterId, index: u64) -> Result<Option<MeterConfig>, EntryError> {
        self.meter_array(meter)?.config(index, self.several)
    }

    /// Configures an element of a meter array, or takes its configuration away, at once for all workers.
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

    /// Configures every element of a meter array, or takes the configurations away.
    ///
    /// # Errors
    /// `NoSuchResource` for a direct meter, `PeakBelowCommitted`.
    pub fn configure_meters(&mut self, meter: MeterId, config: Option<MeterConfig>) -> Result<(), EntryError> {
        self.meter_array(meter)?.fill(config)
    }

    /// The members of a value set, a value for each of its fields.
    pub fn value_set(&self, set: ValueSetId) -> &[Vec<KeyValue>] {
        self.control().value_sets[set].members()
    }

    /// Adds a member to a value set.
    ///
    /// # Errors
    /// `Duplicate`, `Full`, and what can be wrong with a key.
    pub fn insert_value_set_member(&mut self, set: ValueSetId, member: Vec<KeyValue>) -> Result<(), EntryError> {
        let member = self.control().value_sets[set].new_member(member)?;
        self.change(Change::AddToSet(set, member));
        Ok(())
    }

    /// Takes a member of a value set away.
    ///
    /// # Errors
    /// `NotFound`, and what can be wrong with a key.
    pub fn remove_value_set_member(&mut self, set: ValueSetId, member: Vec<KeyValue>) -> Result<(), EntryError> {
        let at = self.control().value_sets[set].find(member)?;
        self.change(Change::TakeFromSet(set, at));
        Ok(())
    }

    /// Takes all members of a value set away.
    pub fn clear_value_set(&mut self, set: ValueSetId) {
        self.change(Change::ClearSet(set));
    }
}
