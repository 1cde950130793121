//! Port states and counts of a region.

use std::sync::atomic::{AtomicU64, Ordering};

use engine::{CounterValue, EntryHandle};
use ir::{CounterId, LocId, TableId};

use crate::emit::{PORT_LENGTH_SHIFT, PORT_RECEIVES};
use crate::layout::{FlatTable, ORDERED_QUEUES, PORT_COUNT_BYTES, RECEIVED, RegionLayout, SENT};

/// The state of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortState {
    /// Packets to the port are handed over.
    Slow,
    /// Packets leave by a device.
    Fast {
        /// Index of the device in its map.
        device: u32,
        /// Maximum length of a frame in bytes.
        max_frame: u32,
    },
}

/// Sets the state of a port, and whether packets that it receives run in the kernel. Ports beyond
/// [`RegionLayout::ports`] are always slow.
///
/// # Panics
/// If the region is smaller than [`RegionLayout::bytes`].
pub fn set_port(layout: &RegionLayout, region: &[AtomicU64], port: u32, state: PortState, receives: bool) {
    if port >= layout.ports() {
        return;
    }
    let word = match state {
        PortState::Slow => 0,
        PortState::Fast { device, max_frame } => (u64::from(max_frame) << PORT_LENGTH_SHIFT) | (u64::from(device) + 1),
    };
    store(region, layout.port_states / 8 + port, word | if receives { PORT_RECEIVES } else { 0 });
}

/// Sets the time of the kernel's monotonic clock at the start of the run, in nanoseconds. Until then, packets of
/// programs that read the time are handed over.
///
/// # Panics
/// If the region is smaller than [`RegionLayout::bytes`].
pub fn set_clock_origin(layout: &RegionLayout, region: &[AtomicU64], origin_ns: u64) {
    store(region, layout.clock_origin / 8, origin_ns);
}

/// Notes that the switch is done with all packets that were handed over so far.
///
/// # Panics
/// If the region is smaller than [`RegionLayout::bytes`].
pub fn finish_hand_overs(layout: &RegionLayout, region: &[AtomicU64]) {
    for port in 0..layout.ports() {
        for [handed, done] in (0..ORDERED_QUEUES).filter_map(|queue| layout.order_words(port, queue)) {
            region[done].store(region[handed].load(Ordering::Acquire), Ordering::Release);
        }
    }
}

/// The counts of a region, as the commits of packets left them.
#[derive(Clone, Copy)]
pub struct RegionCounts<'r> {
    layout: &'r RegionLayout,
    region: &'r [AtomicU64],
}

impl<'r> RegionCounts<'r> {
    /// Reads the counts of a region of at least [`RegionLayout::bytes`].
    pub fn new(layout: &'r RegionLayout, region: &'r [AtomicU64]) -> RegionCounts<'r> {
        RegionCounts { layout, region }
    }

    fn pair(&self, first: u32, index: u32) -> CounterValue {
        let at = first / 8 + 2 * index;
        CounterValue { packets: load(self.region, at), bytes: load(self.region, at + 1) }
    }

    /// Returns the packets that were received by a port and not handed over.
    pub fn received(&self, port: u32) -> CounterValue {
        self.at_port(port, RECEIVED)
    }

    /// Returns the packets that left by a port.
    pub fn sent(&self, port: u32) -> CounterValue {
        self.at_port(port, SENT)
    }

    fn at_port(&self, port: u32, offset: u32) -> CounterValue {
        if port >= self.layout.ports() {
            return CounterValue::default();
        }
        let count = PortCount { layout: self.layout, region: self.region, at: port * PORT_COUNT_BYTES + offset };
        count.growth(count.sum())
    }

    /// Returns the number of packets dropped by ingress (false) or egress (true) at each place of the program with
    /// drops.
    pub fn drops(&self) -> impl Iterator<Item = (bool, LocId, u64)> + use<'r> {
        let (region, loc_count, first) = (self.region, self.layout.loc_count, self.layout.drops / 8);
        let all = (0..2 * loc_count).map(move |at| (at / loc_count != 0, at % loc_count, load(region, first + at)));
        all.filter(|(_, _, count)| *count > 0).map(|(is_egress, at, count)| (is_egress, LocId::from_u32(at), count))
    }

    /// Returns the number of packets with a parser error.
    pub fn errors(&self, error: u32) -> u64 {
        if error < self.layout.error_count { load(self.region, self.layout.errors / 8 + error) } else { 0 }
    }

    /// Returns an element of a counter array; `None` if the region does not have it.
    pub fn counter(&self, counter: CounterId, index: u32) -> Option<CounterValue> {
        let (first, size) = *self.layout.counters.get(&counter)?;
        (index < size).then(|| self.pair(first, index))
    }

    /// Returns the packets that hit a record of a table with a direct counter: that of the default action, 0, or of an
    /// entry with this number less 1.
    pub fn hits(&self, table: TableId, record: u32) -> Option<CounterValue> {
        let table = self.layout.tables.get(&table)?;
        let first = table.counts.filter(|_| record <= table.capacity)?;
        let copies = [first, first + self.layout.copy_bytes].map(|first| self.pair(first, record));
        let sum = |part: fn(&CounterValue) -> u64| copies.iter().map(part).fold(0, u64::wrapping_add);
        Some(CounterValue { packets: sum(|count| count.packets), bytes: sum(|count| count.bytes) })
    }
}

/// The receiver of counts that [`crate::RegionWriter::collect_counts`] takes out of a region. It ignores what it does
/// not implement.
pub trait CountSink {
    /// Packets that a port received, which were forwarded or dropped in the kernel.
    fn received(&mut self, _port: u32, _count: CounterValue) {}
    /// Packets that left by a port.
    fn sent(&mut self, _port: u32, _count: CounterValue) {}
    /// Packets among those that left by a port that were lost, as its device was gone.
    fn unsent(&mut self, _port: u32, _count: CounterValue) {}
    /// Packets from a port that were dropped without effects, as the switch was behind with packets of their flow.
    fn crowded(&mut self, _port: u32, _count: CounterValue) {}
    /// Packets that ingress, or egress, dropped at a place of the program.
    fn dropped(&mut self, _is_by_egress: bool, _place: LocId, _packets: u64) {}
    /// Packets whose parser ended with an error.
    fn parser_errors(&mut self, _packets: u64) {}
    /// Packets that an element of a counter array counted.
    fn counted(&mut self, _counter: CounterId, _index: u32, _count: CounterValue) {}
    /// Packets that hit an entry.
    fn hit(&mut self, _table: TableId, _entry: EntryHandle, _hits: EntryHits) {}
}

/// Hits of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryHits {
    /// Their number, and their bytes.
    pub count: CounterValue,
    /// Time of the last one in nanoseconds since the start of the run, if the entries of the table age; else 0.
    pub last_ns: u64,
}

/// Takes the hits of the entry with a record, if there are any. `base` is the offset of the copy in bytes.
pub(crate) fn take_hits(region: &[AtomicU64], table: &FlatTable, base: u32, record: u32) -> Option<EntryHits> {
    let count = take_pair(region, table.counts? + base, record)?;
    let last_ns = table.uses.map_or(0, |uses| load(region, (uses + base) / 8 + record));
    Some(EntryHits { count, last_ns })
}

/// Takes all counts but the hits of entries out of a region.
pub(crate) fn take_counts(layout: &RegionLayout, region: &[AtomicU64], sink: &mut dyn CountSink) {
    for port in 0..layout.ports() {
        let count = |offset| PortCount { layout, region, at: port * PORT_COUNT_BYTES + offset };
        if let Some(count) = count(RECEIVED).take() {
            sink.received(port, count);
        }
        if let Some(count) = count(SENT).take() {
            sink.sent(port, count);
        }
        if let Some(count) = take_pair(region, layout.unsent, port) {
            sink.unsent(port, count);
        }
        if let Some(count) = take_pair(region, layout.crowded, port) {
            sink.crowded(port, count);
        }
    }
    for at in 0..2 * layout.loc_count {
        let packets = take(region, layout.drops / 8 + at);
        if packets > 0 {
            sink.dropped(at / layout.loc_count != 0, LocId::from_u32(at % layout.loc_count), packets);
        }
    }
    let errors: u64 = (0..layout.error_count).map(|error| take(region, layout.errors / 8 + error)).sum();
    if errors > 0 {
        sink.parser_errors(errors);
    }
    for (counter, (first, size)) in &layout.counters {
        for index in 0..*size {
            if let Some(count) = take_pair(region, *first, index) {
                sink.counted(*counter, index, count);
            }
        }
    }
}

/// A count of a port. Each processor has its own words, which are never reset.
struct PortCount<'r> {
    layout: &'r RegionLayout,
    region: &'r [AtomicU64],
    /// Its offset among the counts of all ports.
    at: u32,
}

impl PortCount<'_> {
    fn pair(&self, first: u32) -> CounterValue {
        let at = (first + self.at) / 8;
        CounterValue { packets: load(self.region, at), bytes: load(self.region, at + 1) }
    }

    /// Returns the sum over the processors.
    fn sum(&self) -> CounterValue {
        let pairs =
            (0..self.layout.options.cpus).map(|cpu| self.pair(cpu * self.layout.cpu_bytes + self.layout.port_counts));
        pairs.fold(CounterValue::default(), |sum, pair| CounterValue {
            packets: sum.packets.wrapping_add(pair.packets),
            bytes: sum.bytes.wrapping_add(pair.bytes),
        })
    }

    /// Returns what a sum has more than the part that was collected.
    fn growth(&self, sum: CounterValue) -> CounterValue {
        let collected = self.pair(self.layout.collected);
        CounterValue {
            packets: sum.packets.wrapping_sub(collected.packets),
            bytes: sum.bytes.wrapping_sub(collected.bytes),
        }
    }

    /// Collects what the count has grown by, if it has.
    fn take(&self) -> Option<CounterValue> {
        let sum = self.sum();
        let growth = self.growth(sum);
        let at = (self.layout.collected + self.at) / 8;
        store(self.region, at, sum.packets);
        store(self.region, at + 1, sum.bytes);
        (growth != CounterValue::default()).then_some(growth)
    }
}

/// Takes a count of packets and bytes, if it is not 0.
pub(crate) fn take_pair(region: &[AtomicU64], first: u32, index: u32) -> Option<CounterValue> {
    let at = first / 8 + 2 * index;
    let count = CounterValue { packets: take(region, at), bytes: take(region, at + 1) };
    (count != CounterValue::default()).then_some(count)
}

/// Takes a word, and leaves 0.
fn take(region: &[AtomicU64], at: u32) -> u64 {
    // Most words are 0, and a load is cheaper than an atomic exchange.
    if load(region, at) == 0 { 0 } else { region[at as usize].swap(0, Ordering::Relaxed) }
}

pub(crate) fn load(region: &[AtomicU64], at: u32) -> u64 {
    region[at as usize].load(Ordering::Relaxed)
}

pub(crate) fn store(region: &[AtomicU64], at: u32, value: u64) {
    region[at as usize].store(value, Ordering::Relaxed);
}
