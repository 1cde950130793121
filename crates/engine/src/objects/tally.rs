//! Counts for one worker: hits of entries and elements of counter arrays.
//!
//! Only the owning worker writes a tally, so counting costs no more than an addition; readers add up the tallies of all
//! workers. Elements are atomic only to allow concurrent reads: a plain load and a plain store on every machine.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use cranelift_entity::PrimaryMap;
use ir::{CounterId, TableId};

use super::CounterValue;
use super::paged::Paged;
use crate::tables::Handle;

/// The counts of one worker.
#[derive(Debug)]
pub(crate) struct Tally {
    counters: PrimaryMap<CounterId, Paged<Count>>,
    hits: PrimaryMap<TableId, Paged<Hits>>,
}

/// Packets and bytes.
#[derive(Debug, Default)]
struct Count {
    packets: AtomicU64,
    bytes: AtomicU64,
}

/// The hits of an entry.
#[derive(Debug, Default)]
struct Hits {
    /// Generation of the entry among all that have had this handle. A worker that is a version behind may still hit a
    /// removed entry, which must not count for its successor.
    generation: AtomicU64,
    count: Count,
    last_ns: AtomicU64,
}

impl Count {
    #[inline]
    fn add(&self, bytes: u64) {
        self.packets.store(self.packets.load(Relaxed).wrapping_add(1), Relaxed);
        self.bytes.store(self.bytes.load(Relaxed).wrapping_add(bytes), Relaxed);
    }

    fn value(&self) -> CounterValue {
        CounterValue { packets: self.packets.load(Relaxed), bytes: self.bytes.load(Relaxed) }
    }

    fn set(&self, value: CounterValue) {
        self.packets.store(value.packets, Relaxed);
        self.bytes.store(value.bytes, Relaxed);
    }
}

impl Tally {
    /// Creates counts for the given numbers of counter arrays and tables.
    pub(crate) fn new(counters: usize, tables: usize) -> Self {
        Tally {
            counters: (0..counters).map(|_| Paged::new()).collect(),
            hits: (0..tables).map(|_| Paged::new()).collect(),
        }
    }

    /// Counts a packet with an element of an array; the index is inside the array.
    #[inline]
    pub(crate) fn count(&self, counter: CounterId, index: u64, bytes: u64) {
        self.counters[counter].at(index).add(bytes);
    }

    pub(crate) fn counter(&self, counter: CounterId, index: u64) -> CounterValue {
        self.counters[counter].get(index).map(Count::value).unwrap_or_default()
    }

    pub(crate) fn set_counter(&self, counter: CounterId, index: u64, value: CounterValue) {
        self.counters[counter].at(index).set(value);
    }

    /// Returns the hits of an entry for writing.
    #[inline]
    fn of_entry(&self, table: TableId, handle: Handle, generation: u64) -> &Hits {
        let hits = self.hits[table].at(u64::from(handle.0));
        if hits.generation.load(Relaxed) != generation {
            hits.count.set(CounterValue::default());
            hits.last_ns.store(0, Relaxed);
            hits.generation.store(generation, std::sync::atomic::Ordering::Release);
        }
        hits
    }

    #[inline]
    pub(crate) fn hit(&self, table: TableId, handle: Handle, generation: u64, bytes: u64, now_ns: u64) {
        let hits = self.of_entry(table, handle, generation);
        hits.count.add(bytes);
        hits.last_ns.store(now_ns, Relaxed);
    }

    pub(crate) fn set_hits(&self, table: TableId, handle: Handle, generation: u64, value: CounterValue) {
        self.of_entry(table, handle, generation).count.set(value);
    }

    /// Restores what [`Tally::hits`] returned.
    pub(crate) fn restore_hits(&self, table: TableId, handle: Handle, generation: u64, hits: (CounterValue, u64)) {
        let entry = self.of_entry(table, handle, generation);
        entry.count.set(hits.0);
        entry.last_ns.store(hits.1, Relaxed);
    }

    /// Returns the count of an entry, and the time of its last hit, if any.
    pub(crate) fn hits(&self, table: TableId, handle: Handle, generation: u64) -> Option<(CounterValue, u64)> {
        let hits = self.hits[table].get(u64::from(handle.0))?;
        let same = hits.generation.load(std::sync::atomic::Ordering::Acquire) == generation;
        same.then(|| (hits.count.value(), hits.last_ns.load(Relaxed)))
    }
}
