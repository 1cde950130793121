//! The control plane's requests to registers, counters, meters and value sets.

use bits::Bits;
use ir::{CounterId, KeyValue, MeterId, RegisterId, ValueSetId};

use super::{Cells, CounterValue, EntryError, Meter, MeterConfig, Objects};

impl Objects {
    /// The number of elements of a register array.
    pub fn register_size(&self, register: RegisterId) -> u64 {
        self.registers[register].cells().size()
    }

    /// An element of a register array.
    ///
    /// # Errors
    /// `BeyondEnd`.
    pub fn register(&self, register: RegisterId, index: u64) -> Result<&Bits, EntryError> {
        self.registers[register].cells().checked(index)
    }

    /// Sets an element of a register array.
    ///
    /// # Errors
    /// `BeyondEnd`, `ValueWidth`.
    pub fn set_register(&mut self, register: RegisterId, index: u64, value: Bits) -> Result<(), EntryError> {
        self.registers[register].check(&value)?;
        *self.registers[register].cells_mut().checked_mut(index)? = value;
        Ok(())
    }

    /// Sets all elements of a register array.
    ///
    /// # Errors
    /// `ValueWidth`.
    pub fn fill_register(&mut self, register: RegisterId, value: Bits) -> Result<(), EntryError> {
        self.registers[register].check(&value)?;
        self.registers[register].cells_mut().fill(value);
        Ok(())
    }

    fn counter_cells(&self, counter: CounterId) -> Result<&Cells<CounterValue>, EntryError> {
        self.counters[counter].as_ref().ok_or(EntryError::NoSuchResource)
    }

    /// The number of elements of a counter array; `None` for a direct counter.
    pub fn counter_size(&self, counter: CounterId) -> Option<u64> {
        self.counters[counter].as_ref().map(Cells::size)
    }

    /// An element of a counter array.
    ///
    /// # Errors
    /// `BeyondEnd`; `NoSuchResource` for a direct counter, which entries have.
    pub fn counter(&self, counter: CounterId, index: u64) -> Result<CounterValue, EntryError> {
        self.counter_cells(counter)?.checked(index).copied()
    }

    /// Sets an element of a counter array.
    ///
    /// # Errors
    /// As [`Objects::counter`].
    pub fn set_counter(&mut self, counter: CounterId, index: u64, value: CounterValue) -> Result<(), EntryError> {
        let cells = self.counters[counter].as_mut().ok_or(EntryError::NoSuchResource)?;
        *cells.checked_mut(index)? = value;
        Ok(())
    }

    /// The number of elements of a meter array; `None` for a direct meter.
    pub fn meter_size(&self, meter: MeterId) -> Option<u64> {
        self.meters[meter].1.as_ref().map(Cells::size)
    }

    /// The configuration of an element of a meter array.
    ///
    /// # Errors
    /// `BeyondEnd`; `NoSuchResource` for a direct meter, which entries have.
    pub fn meter_config(&self, meter: MeterId, index: u64) -> Result<Option<MeterConfig>, EntryError> {
        let cells = self.meters[meter].1.as_ref().ok_or(EntryError::NoSuchResource)?;
        cells.checked(index).map(Meter::config)
    }

    /// Configures an element of a meter array, or takes its configuration away.
    ///
    /// # Errors
    /// As [`Objects::meter_config`], and `PeakBelowCommitted`.
    pub fn configure_meter(
        &mut self,
        meter: MeterId,
        index: u64,
        config: Option<MeterConfig>,
    ) -> Result<(), EntryError> {
        let cells = self.meters[meter].1.as_mut().ok_or(EntryError::NoSuchResource)?;
        cells.checked_mut(index)?.configure(config)
    }

    /// Configures every element of a meter array, or takes the configurations away.
    ///
    /// # Errors
    /// `NoSuchResource` for a direct meter, `PeakBelowCommitted`.
    pub fn configure_meters(&mut self, meter: MeterId, config: Option<MeterConfig>) -> Result<(), EntryError> {
        let cells = self.meters[meter].1.as_mut().ok_or(EntryError::NoSuchResource)?;
        let mut one = Meter::default();
        one.configure(config)?;
        cells.fill(one);
        Ok(())
    }

    /// The members of a value set, a value for each of its fields.
    pub fn value_set(&self, set: ValueSetId) -> &[Vec<KeyValue>] {
        self.value_sets[set].members()
    }

    /// Adds a member to a value set.
    ///
    /// # Errors
    /// `Duplicate`, `Full`, and what can be wrong with a key.
    pub fn insert_value_set_member(&mut self, set: ValueSetId, member: Vec<KeyValue>) -> Result<(), EntryError> {
        self.value_sets[set].insert(member)
    }

    /// Takes a member of a value set away.
    ///
    /// # Errors
    /// `NotFound`, and what can be wrong with a key.
    pub fn remove_value_set_member(&mut self, set: ValueSetId, member: Vec<KeyValue>) -> Result<(), EntryError> {
        self.value_sets[set].remove(member)
    }

    /// Takes all members of a value set away.
    pub fn clear_value_set(&mut self, set: ValueSetId) {
        self.value_sets[set].clear();
    }
}
