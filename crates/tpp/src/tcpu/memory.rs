//! Defines what a TCPU accesses in a switch.

use std::collections::BTreeMap;

/// The memory of a switch, as one packet sees it. All accesses follow those of the switch itself for this packet
/// (paper, section 3.1). Addresses are those of [`MemoryMap`](crate::MemoryMap), with bit 0 clear.
pub trait SwitchMemory {
    /// Returns the value of a location; `None` if it does not exist. Addresses from 0x10000 come from indirect loads.
    fn read(&mut self, address: u32) -> Option<u64>;

    /// Sets a word; `None` if it does not exist or is read-only.
    fn write(&mut self, address: u16, value: u32) -> Option<()>;

    /// Sets a word to `new` if it is `old`, atomically. Returns the prior value; `None` if the word does not exist or
    /// is read-only.
    fn swap(&mut self, address: u16, old: u32, new: u32) -> Option<u32>;
}

/// A memory made of single locations, for tests and tools. Every read of a counter advances it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SparseMemory {
    locations: BTreeMap<u32, Location>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Location {
    Fixed(u64),
    Counter(u64),
    Word(u32),
}

impl SparseMemory {
    /// A memory without locations.
    pub fn new() -> SparseMemory {
        SparseMemory::default()
    }

    /// Adds a read-only location.
    pub fn fixed(&mut self, address: u32, value: u64) {
        self.locations.insert(address, Location::Fixed(value));
    }

    /// Adds a read-only location that is one higher at each read.
    pub fn counter(&mut self, address: u32, value: u64) {
        self.locations.insert(address, Location::Counter(value));
    }

    /// Adds a word that can be written.
    pub fn word(&mut self, address: u16, value: u32) {
        self.locations.insert(address.into(), Location::Word(value));
    }

    /// Returns a value without changing the memory.
    pub fn value(&self, address: u32) -> Option<u64> {
        self.locations.get(&address).map(|location| match location {
            Location::Fixed(value) | Location::Counter(value) => *value,
            Location::Word(value) => (*value).into(),
        })
    }
}

impl SwitchMemory for SparseMemory {
    fn read(&mut self, address: u32) -> Option<u64> {
        Some(match self.locations.get_mut(&address)? {
            Location::Fixed(value) => *value,
            Location::Word(value) => (*value).into(),
            Location::Counter(value) => {
                *value = value.wrapping_add(1);
                *value
            }
        })
    }

    fn write(&mut self, address: u16, value: u32) -> Option<()> {
        match self.locations.get_mut(&address.into()) {
            Some(Location::Word(word)) => *word = value,
            _ => return None,
        }
        Some(())
    }

    fn swap(&mut self, address: u16, old: u32, new: u32) -> Option<u32> {
        let Some(Location::Word(word)) = self.locations.get_mut(&address.into()) else { return None };
        let prior = *word;
        if prior == old {
            *word = new;
        }
        Some(prior)
    }
}
