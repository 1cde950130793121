//! Lays out the region: the memory that a compiled program and the switch share.
//!
//! ```text
//! scratch memory of each processor | order of hand-overs | lock | clock | gate | port states | counts by port
//! | counts of drops and parser errors | counter arrays | tables of CRCs | registers | meters | tables
//! | the same tables again
//! tables: states, direct counters, times of hits, records, words of the lookup, calls and groups of action profiles,
//! value sets
//! ```
//!
//! All offsets are in bytes; those of tables begin at the first of the two copies. A count of packets and bytes takes
//! two words.
//!
//! The gate says which copy of the tables packets use, see [`crate::RegionWriter`]: [`GATE_OPEN`] and the offset of the
//! copy. While the bit is not set, all packets are handed over.

mod profile;
mod value_set;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use engine::meter_word;
use engine::tables::KeyShape;
use ir::{
    CounterId, Entry, Key, KeyValue, LocId, MatchKind, MeterId, ProfileId, Program, RegisterId, Table, TableId,
    ValueSetId,
};
use tables::flat::{FlatExact, FlatPrefixes, FlatRules, MAX_ELEMENTS, RuleElement};

use crate::KernelOptions;
use crate::emit::{CRC_TABLE_WORDS, Crc, HandOverReason};
use crate::split::pieces;
use crate::usage::Usage;
pub(crate) use profile::{FlatGroups, FlatProfile, GROUP, NO_BLOCK};
pub(crate) use value_set::{FlatSet, MAX_MEMBERS, TOO_MANY, set_keys};

/// Granularity of the region's size in bytes.
pub const PAGE_BYTES: u32 = 4096;
/// Maximum size of the region in bytes. The verifier refuses offsets of 2^29.
const MAX_BYTES: u32 = 1 << 28;
/// Maximum number of words of scratch memory: offsets of instructions have 16 bits.
pub(crate) const MAX_SCRATCH_WORDS: u32 = 4000;
/// Number of entries of a table that requests no size.
const DEFAULT_ENTRIES: u64 = 1024;
/// Maximum number of elements of a key.
const MAX_KEYS: usize = MAX_ELEMENTS;

/// Number of receive queues of a port whose hand-overs are numbered apart. Queues with the same remainder share
/// numbers.
pub const ORDERED_QUEUES: u32 = 16;
/// Number of buckets of flows, a power of two.
pub(crate) const FLOW_BUCKETS: u32 = 4096;
/// Bytes of a processor's counts of a port.
pub(crate) const PORT_COUNT_BYTES: u32 = 32;
/// Offset of the packets and bytes that were received among the counts of a port.
pub(crate) const RECEIVED: u32 = 0;
/// Offset of the packets and bytes that were sent among the counts of a port.
pub(crate) const SENT: u32 = 16;

/// Bit of the gate: packets may run.
pub(crate) const GATE_OPEN: u64 = 1;

/// The reason why a program cannot run in the kernel at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// It needs more memory than a region may have.
    #[error("its tables and counters need more than the 256 MiB that may be shared with the kernel")]
    Memory,
    /// It has more code or storage than the kernel accepts. The place is where the limit was reached.
    #[error("it needs more code than the kernel accepts")]
    Code(LocId),
    /// Its state lies elsewhere: in stores, or in the memory of servers.
    #[error("its `@resilient` or `@elastic` state lies outside the switch")]
    Elsewhere,
}

/// The search structure of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableSearch {
    /// A table without a key: always the default action.
    None,
    Exact(FlatExact),
    Prefixes(FlatPrefixes),
    Rules(FlatRules),
    /// A few constant entries, which the code compares one by one: see [`chain`].
    Chain,
}

/// Maximum number of entries of a chain.
const MAX_CHAIN: usize = 8;

/// Returns the entries of a table in the order in which a key is compared with them, if they are few and constant: by
/// priority, then by the length of the prefix, then as in the program. Their records have the numbers from 1 on.
pub(crate) fn chain(table: &Table) -> Option<Vec<&Entry>> {
    if !table.const_entries || table.records_hits() || table.profile.is_some() || table.entries.len() > MAX_CHAIN {
        return None;
    }
    let length = |key: &KeyValue| if let KeyValue::Lpm(_, length) = key { *length } else { 0 };
    // A table has at most one prefix, perhaps in pieces.
    let prefix = |entry: &Entry| entry.keys.iter().map(length).sum::<u32>();
    let mut entries: Vec<&Entry> = table.entries.iter().collect();
    entries.sort_by_key(|entry| Reverse((entry.priority, prefix(entry))));
    Some(entries)
}

/// A table of the region: its search structure, and the offsets of its parts in the first copy, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlatTable {
    pub search: TableSearch,
    /// Maximum number of entries. Record 0 is that of the default action.
    pub capacity: u32,
    pub records: u32,
    /// Number of words of a record: the index of its action plus 1, and the arguments. In a table with a profile, the
    /// only word is the number of a call or group: see [`FlatProfile`].
    pub record_words: u32,
    /// The table's profile, and the number of the call that is its default action.
    pub profile: Option<(ProfileId, u32)>,
    pub words: u32,
    /// A word that is not 0 while the search lacks entries for which there is no room. Packets that apply the table are
    /// handed over then. Tables without a search and chains do not use it.
    pub state: u32,
    /// Counts of packets and bytes by record, for a table that records hits.
    pub counts: Option<u32>,
    /// Times of the last hits by record in nanoseconds, for a table whose entries age.
    pub uses: Option<u32>,
    /// The direct meters of entries, by their number in the switch. The last two words of a record are that number plus
    /// 1, or 0 if there is no room for it, and the generation of the entry.
    pub meter: Option<MeterCells>,
}

impl FlatTable {
    /// Whether entries with the same action and arguments have the same record: if no words by record are the entry's
    /// own.
    pub(crate) fn shares_records(&self) -> bool {
        let is_alone = self.counts.is_some() || self.uses.is_some() || self.meter.is_some() || self.profile.is_some();
        !is_alone && matches!(self.search, TableSearch::Exact(_) | TableSearch::Prefixes(_))
    }
}

/// Cells of meters, [`meter_word::COUNT`] words each. They lie in front of the tables, as they have one copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MeterCells {
    /// Offset of the first one in bytes.
    pub first: u32,
    pub count: u32,
}

/// Offsets of the parts of a region in bytes, and their sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionLayout {
    pub(crate) options: KernelOptions,
    /// Bytes of a processor: its scratch memory, and its counts by port. A power of two.
    pub(crate) cpu_bytes: u32,
    /// Offset of the counts by port in the memory of a processor, [`PORT_COUNT_BYTES`] for each: [`RECEIVED`] and
    /// [`SENT`]. Only the processor writes them, so they take no atomic additions.
    pub(crate) port_counts: u32,
    /// The sums of these counts over the processors that have been collected, likewise by port.
    pub(crate) collected: u32,
    /// Number of the last hand-over of each queue of each port.
    pub(crate) handed: u32,
    /// Number of the last hand-over that the switch is done with, likewise.
    pub(crate) done: u32,
    /// For each bucket of flows, the queue and the number of its last hand-over.
    pub(crate) buckets: u32,
    /// Time of the kernel's clock at the start of the run in nanoseconds, or 0 if it is not known.
    pub(crate) clock_origin: u32,
    /// The lock of `@atomic` sections, if there are any, on a cache line of its own.
    pub(crate) atomic_lock: Option<u32>,
    pub(crate) gate: u32,
    pub(crate) port_states: u32,
    /// Packets that were counted as sent, but whose device was gone.
    pub(crate) unsent: u32,
    /// Packets by port that were dropped, as the switch was too far behind for those before them.
    pub(crate) crowded: u32,
    /// Two counts for each location of the program: of drops by ingress, and by egress.
    pub(crate) drops: u32,
    pub(crate) loc_count: u32,
    pub(crate) errors: u32,
    pub(crate) error_count: u32,
    pub(crate) counters: BTreeMap<CounterId, (u32, u32)>,
    pub(crate) crc_tables: BTreeMap<Crc, u32>,
    /// The first byte and the number of elements of register arrays.
    pub(crate) registers: BTreeMap<RegisterId, (u32, u32)>,
    pub(crate) meters: BTreeMap<MeterId, MeterCells>,
    pub(crate) tables: BTreeMap<TableId, FlatTable>,
    pub(crate) profiles: BTreeMap<ProfileId, FlatProfile>,
    pub(crate) value_sets: BTreeMap<ValueSetId, FlatSet>,
    /// Tables that are not in the region.
    pub(crate) refused: BTreeMap<TableId, HandOverReason>,
    /// The first copy of the tables.
    pub(crate) tables_begin: u32,
    /// Size of a copy of the tables in bytes.
    pub(crate) copy_bytes: u32,
    bytes: u32,
}

/// Returns the elements of a table's key that are matched: all but selectors.
pub(crate) fn matched_keys(table: &Table) -> Vec<&Key> {
    table.keys.iter().filter(|key| key.kind != MatchKind::Selector).collect()
}

/// Returns the number of entries for which a table gets room: as many as it requests, but no more than `limit` beside
/// those of the program.
fn room(table: &Table, limit: u64) -> u64 {
    table.size.unwrap_or(DEFAULT_ENTRIES).min(limit).max(table.entries.len() as u64)
}

/// Returns the search structure for a table, or the reason why there is none.
fn search(program: &Program, table: &Table, capacity: u32) -> Result<TableSearch, HandOverReason> {
    let keys = matched_keys(table);
    let is_narrow = keys.iter().all(|key| program.width(&key.expr).is_some_and(|width| width <= 64));
    match &keys[..] {
        [] if table.keys.is_empty() => Ok(TableSearch::None),
        // Only the pieces of a value are several prefixes.
        keys if is_narrow && has_trie(prefix_width(keys)) => {
            let width = prefix_width(keys);
            FlatPrefixes::new(width, capacity).map(TableSearch::Prefixes).ok_or(HandOverReason::TableSize)
        }
        keys if is_narrow && keys.len() <= MAX_KEYS && keys.iter().all(|key| key.kind == MatchKind::Exact) => {
            let widths: Vec<u32> = keys.iter().map(|key| key.width).collect();
            Ok(TableSearch::Exact(FlatExact::new(&widths, capacity)))
        }
        _ if is_narrow && chain(table).is_some() => Ok(TableSearch::Chain),
        keys if is_narrow && keys.len() <= MAX_KEYS => Ok(TableSearch::Rules(FlatRules::new(
            &rule_elements(keys.iter().map(|key| KeyShape::from(*key))),
            capacity,
        ))),
        _ => Err(HandOverReason::TableKey),
    }
}

/// Returns the width of a key that is one prefix, perhaps in pieces; 0 for other keys.
fn prefix_width(keys: &[&Key]) -> u32 {
    let is_prefix = keys.iter().all(|key| key.kind == MatchKind::Lpm);
    if is_prefix { keys.iter().map(|key| key.width).sum() } else { 0 }
}

fn has_trie(width: u32) -> bool {
    FlatPrefixes::new(width, 1).is_some()
}

/// Returns how the pairs of a rule match the elements of a key, split or not. The bounds of signed ranges are moved by
/// [`sign_mask`].
pub(crate) fn rule_elements(keys: impl IntoIterator<Item = KeyShape>) -> Vec<RuleElement> {
    let element = |key: KeyShape| match key.kind {
        MatchKind::Range => RuleElement::Range,
        _ => RuleElement::Ternary,
    };
    keys.into_iter().flat_map(|key| pieces(key.width).map(move |_| element(key))).collect()
}

/// Returns the sign bit of a signed range key, by XOR with which signed numbers compare as unsigned ones; 0 for other
/// keys.
pub(crate) fn sign_mask(key: KeyShape) -> u64 {
    if key.signed && key.kind == MatchKind::Range && key.width > 0 { 1 << (key.width - 1) } else { 0 }
}

/// Hands out the bytes of a region: the next one, and the end.
struct Allocator(u64, u32);

impl Allocator {
    fn take(&mut self, words: u64) -> Result<u32, Unsupported> {
        let first = self.0;
        self.0 = self.0.saturating_add(words.saturating_mul(8));
        if self.0 > self.1.into() { Err(Unsupported::Memory) } else { Ok(first as u32) }
    }

    fn words_left(&self) -> u64 {
        u64::from(self.1).saturating_sub(self.0) / 8
    }
}

impl MeterCells {
    /// Takes room for meters; `None` if there is none.
    fn take(count: u64, bytes: &mut Allocator) -> Option<MeterCells> {
        let (count, words) = (u32::try_from(count).ok()?, count.checked_mul(meter_word::COUNT as u64)?);
        let fits = count > 0 && words.checked_mul(8)?.checked_add(bytes.0)? <= u64::from(MAX_BYTES / 2);
        if fits { Some(MeterCells { first: bytes.take(words).ok()?, count }) } else { None }
    }
}

impl RegionLayout {
    /// Lays out the region so that as many tables as possible have room. If they request more than there is, the
    /// largest ones get less.
    pub(crate) fn new(
        program: &Program,
        usage: &Usage,
        options: KernelOptions,
        scratch_words: u32,
    ) -> Result<RegionLayout, Unsupported> {
        let without_room = |layout: &Result<RegionLayout, Unsupported>| match layout {
            Ok(layout) => layout.refused.values().filter(|reason| **reason == HandOverReason::TableSize).count(),
            Err(_) => usize::MAX,
        };
        let mut limit = u64::from(MAX_BYTES);
        let mut best = RegionLayout::limited(program, usage, options, scratch_words, limit);
        while without_room(&best) > 0 && limit > DEFAULT_ENTRIES {
            limit /= 2;
            let layout = RegionLayout::limited(program, usage, options, scratch_words, limit);
            if without_room(&layout) < without_room(&best) {
                best = layout;
            }
        }
        best
    }

    /// Does the same with room for no more than `limit` entries of a table.
    fn limited(
        program: &Program,
        usage: &Usage,
        options: KernelOptions,
        scratch_words: u32,
        limit: u64,
    ) -> Result<RegionLayout, Unsupported> {
        let mut bytes = Allocator(0, MAX_BYTES);
        let port_counts = (scratch_words * 8).next_multiple_of(64);
        let port_count_bytes = options.ports.checked_mul(PORT_COUNT_BYTES).ok_or(Unsupported::Memory)?;
        let cpu_bytes = port_counts.checked_add(port_count_bytes).and_then(u32::checked_next_power_of_two);
        let cpu_bytes = cpu_bytes.ok_or(Unsupported::Memory)?;
        bytes.take(u64::from(options.cpus) * u64::from(cpu_bytes / 8))?;
        let ports = u64::from(options.ports);
        let queues = ports * u64::from(ORDERED_QUEUES);
        let (handed, done) = (bytes.take(queues)?, bytes.take(queues)?);
        let buckets = bytes.take(FLOW_BUCKETS.into())?;
        let atomic_lock = if usage.has_atomic { Some(bytes.take(16)? + 64) } else { None };
        let clock_origin = bytes.take(1)?;
        let gate = bytes.take(1)?;
        let port_states = bytes.take(ports)?;
        let collected = bytes.take(u64::from(port_count_bytes / 8))?;
        let (unsent, crowded) = (bytes.take(2 * ports)?, bytes.take(2 * ports)?);
        let loc_count = program.locs.len().max(1) as u32;
        let drops = bytes.take(2 * u64::from(loc_count))?;
        let error_count = program.errors.len() as u32;
        let errors = bytes.take(error_count.into())?;
        let mut counters = BTreeMap::new();
        for (id, counter) in &program.counters {
            // An array that does not fit is not in the region; counting in it is handed over.
            let Some(size) = counter.size.and_then(|size| u32::try_from(size).ok()) else { continue };
            if u64::from(size) * 16 + bytes.0 <= u64::from(MAX_BYTES / 2) {
                counters.insert(id, (bytes.take(2 * u64::from(size))?, size));
            }
        }
        let mut crc_tables = BTreeMap::new();
        for crc in &usage.crcs {
            crc_tables.insert(*crc, bytes.take(CRC_TABLE_WORDS.into())?);
        }
        let mut registers = BTreeMap::new();
        for id in &usage.registers {
            // Reading and writing an array that does not fit is handed over.
            let register = &program.registers[*id];
            let Ok(size) = u32::try_from(register.size) else { continue };
            let fits = u64::from(size) * 8 + bytes.0 <= u64::from(MAX_BYTES / 2);
            if (1..=64).contains(&register.width) && size > 0 && fits {
                registers.insert(*id, (bytes.take(size.into())?, size));
            }
        }
        // Executing meters that do not fit is handed over.
        let mut meters = BTreeMap::new();
        for id in &usage.meters {
            let cells = program.meters[*id].size.and_then(|size| MeterCells::take(size, &mut bytes));
            meters.extend(cells.map(|cells| (*id, cells)));
        }
        let mut direct_meters = BTreeMap::new();
        for id in &usage.tables {
            let table = &program.tables[*id];
            if table.meter.is_some() && table.profile.is_none() {
                let cells = MeterCells::take(room(table, limit), &mut bytes);
                direct_meters.extend(cells.map(|cells| (*id, cells)));
            }
        }
        let (mut tables, mut refused) = (BTreeMap::new(), BTreeMap::new());
        let tables_begin = bytes.0 as u32;
        bytes.1 = (MAX_BYTES + tables_begin) / 2;
        let states = bytes.take(usage.tables.len() as u64)?;
        let mut profiles = BTreeMap::new();
        for id in program.profiles.keys().filter(|id| profile::tables_of(program, usage, *id).next().is_some()) {
            if let Some(layout) = FlatProfile::new(program, usage, (id, limit), &mut bytes)? {
                profiles.insert(id, layout);
            }
        }
        let mut value_sets = BTreeMap::new();
        for id in &usage.value_sets {
            value_sets.extend(FlatSet::new(&program.value_sets[*id], &mut bytes)?.map(|layout| (*id, layout)));
        }
        for (state, id) in (states..).step_by(8).zip(&usage.tables) {
            // The default actions of a profile's tables have the numbers from 1 on.
            let default = |profile| 1 + profile::tables_of(program, usage, profile).take_while(|of| of != id).count();
            let profile = program.tables[*id].profile.map(|profile| (profile, default(profile) as u32));
            if profile.is_some_and(|(profile, _)| !profiles.contains_key(&profile)) {
                refused.insert(*id, HandOverReason::TableSize);
                continue;
            }
            let meter = direct_meters.get(id).copied();
            if program.tables[*id].meter.is_some() && meter.is_none() {
                let reason = if profile.is_some() { HandOverReason::ProfileMeter } else { HandOverReason::TableSize };
                refused.insert(*id, reason);
                continue;
            }
            match Self::table(program, (&program.tables[*id], limit), (state, profile, meter), &mut bytes)? {
                Ok(layout) => _ = tables.insert(*id, layout),
                Err(reason) => _ = refused.insert(*id, reason),
            }
        }
        let copy_bytes = bytes.0 as u32 - tables_begin;
        // The address of tables is loaded even if there are none, so it lies in the region.
        let bytes = (bytes.0 as u32 + copy_bytes + 8).next_multiple_of(PAGE_BYTES);
        Ok(RegionLayout {
            options,
            cpu_bytes,
            port_counts,
            collected,
            handed,
            done,
            buckets,
            clock_origin,
            atomic_lock,
            gate,
            port_states,
            unsent,
            crowded,
            drops,
            loc_count,
            errors,
            error_count,
            counters,
            crc_tables,
            registers,
            meters,
            tables,
            profiles,
            value_sets,
            refused,
            tables_begin,
            copy_bytes,
            bytes,
        })
    }

    /// Returns the layout of a table, or the reason why it has none.
    fn table(
        program: &Program,
        (table, limit): (&Table, u64),
        (state, profile, meter): (u32, Option<(ProfileId, u32)>, Option<MeterCells>),
        bytes: &mut Allocator,
    ) -> Result<Result<FlatTable, HandOverReason>, Unsupported> {
        // About as many of the smallest records and slots, 28 bytes in each copy, fill a region.
        let capacity = u32::try_from(room(table, limit)).unwrap_or(u32::MAX).min(MAX_BYTES / 64 + 1);
        let search = match search(program, table, capacity) {
            Ok(search) if capacity <= MAX_BYTES / 64 => search,
            Ok(_) => return Ok(Err(HandOverReason::TableSize)),
            Err(reason) => return Ok(Err(reason)),
        };
        let capacity = if let TableSearch::Rules(shape) = &search { shape.capacity() } else { capacity };
        let params = table.actions.iter().map(|action| program.actions[action.action].params.len());
        let record_words = if profile.is_some() { 1 } else { 1 + params.max().unwrap_or(0) as u32 };
        let record_words = record_words + if meter.is_some() { 2 } else { 0 };
        let words = match search {
            TableSearch::None | TableSearch::Chain => 0,
            TableSearch::Exact(shape) => shape.words(),
            TableSearch::Prefixes(shape) => shape.words(),
            TableSearch::Rules(shape) => shape.words(),
        };
        if record_words > MAX_SCRATCH_WORDS {
            return Ok(Err(HandOverReason::TableSize));
        }
        let records = (u64::from(capacity) + 1) * u64::from(record_words);
        let counts = if table.records_hits() { 2 * (u64::from(capacity) + 1) } else { 0 };
        let uses = if table.idle_timeout { u64::from(capacity) + 1 } else { 0 };
        if (records + words as u64 + counts + uses) * 8 + bytes.0 > u64::from(bytes.1) {
            return Ok(Err(HandOverReason::TableSize));
        }
        let counts = table.records_hits().then(|| bytes.take(counts)).transpose()?;
        let uses = table.idle_timeout.then(|| bytes.take(uses)).transpose()?;
        let (records, words) = (bytes.take(records)?, bytes.take(words as u64)?);
        Ok(Ok(FlatTable { search, capacity, records, record_words, profile, words, state, counts, uses, meter }))
    }

    /// Returns the size of the region in bytes.
    pub fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Returns the size of the memory of all processors, which lies at the start of the region, in bytes.
    pub fn processor_bytes(&self) -> u32 {
        self.cpu_bytes * self.options.cpus
    }

    /// Returns the number of bytes in front of the gate: the clock, the counts by port of each processor, and what
    /// packets change before their commit, such as the lock.
    pub fn private_bytes(&self) -> u32 {
        self.gate
    }

    /// Returns the indices of two words for a queue of a port: the number of its last hand-over, and of the last one
    /// that the switch is done with.
    pub fn order_words(&self, port: u32, queue: u32) -> Option<[usize; 2]> {
        let at = port * ORDERED_QUEUES + queue % ORDERED_QUEUES;
        (port < self.options.ports).then(|| [self.handed, self.done].map(|first| (first / 8 + at) as usize))
    }

    /// Returns the register arrays of the region, each with the index of its first word.
    pub fn registers(&self) -> impl Iterator<Item = (RegisterId, usize)> {
        self.registers.iter().map(|(id, (first, _))| (*id, *first as usize / 8))
    }

    /// Returns the meter arrays of the region, each with the index of its first word.
    pub fn meters(&self) -> impl Iterator<Item = (MeterId, usize)> {
        self.meters.iter().map(|(id, cells)| (*id, cells.first as usize / 8))
    }

    /// Returns the tables with direct meters in the region, each with the index of the first word and the number of
    /// meters.
    pub fn direct_meters(&self) -> impl Iterator<Item = (TableId, usize, usize)> {
        let meters = self.tables.iter().filter_map(|(id, table)| Some((*id, table.meter?)));
        meters.map(|(id, cells)| (id, cells.first as usize / 8, cells.count as usize))
    }

    /// Returns the index of the word that is the lock of `@atomic` sections, if the program has any.
    pub fn atomic_lock(&self) -> Option<usize> {
        self.atomic_lock.map(|lock| lock as usize / 8)
    }

    /// Returns the number of ports that the region has states and counts for.
    pub fn ports(&self) -> u32 {
        self.options.ports
    }
}
