//! Keeps checked table entries as bytes between the check of a file and its application.
//!
//! An entry takes a few tens of bytes, which is less than a table needs for it. It begins with what must differ from
//! other entries; so entries with equal bytes there are duplicates.
//!
//! ```text
//! table, priority, each key element │ action, idle timeout, meter │ start and length of the text
//! ```
//!
//! Numbers have seven bits a byte, the lowest first. A value is its width, the number of its bytes without leading
//! zeros, and these bytes.

use std::hash::BuildHasher;

use bits::Bits;
use cranelift_entity::SecondaryMap;
use diagnostics::{FileId, Span};
use ir::{ActionId, KeyValue, TableId};

use crate::{ActionInvocation, EntryAction, MeterRates, TableEntrySpec, WeightedAction};

/// Number of bytes of a chunk; an entry is in one chunk.
const CHUNK: usize = 1 << 18;

/// Entries of a file, in its order.
#[derive(Debug, Default)]
pub(crate) struct CheckedEntries {
    chunks: Vec<Vec<u8>>,
    /// Number of entries of each table.
    counts: SecondaryMap<TableId, usize>,
    len: usize,
    /// Start of the text of the last entry in the last chunk.
    last_start: u32,
    scratch: Vec<u8>,
}

impl CheckedEntries {
    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of entries of each table.
    pub(crate) fn counts(&self) -> &SecondaryMap<TableId, usize> {
        &self.counts
    }

    /// Adds an entry, whose text follows those of the entries before. Returns a hash of its table, key and priority.
    pub(crate) fn push(&mut self, entry: &TableEntrySpec) -> u64 {
        self.len += 1;
        self.counts[entry.table] += 1;
        self.scratch.clear();
        let mut writer = PackedWriter(&mut self.scratch);
        writer.identity(entry.table, &entry.keys, entry.priority);
        let hash = hash(writer.0);
        writer.content(entry);
        let has_room = |chunk: &&mut Vec<u8>| chunk.capacity() - chunk.len() >= self.scratch.len() + 2 * MAX_NUMBER;
        let chunk = match self.chunks.last_mut().filter(has_room) {
            Some(chunk) => chunk,
            None => {
                self.last_start = 0;
                let size = CHUNK.max(self.scratch.len() + 2 * MAX_NUMBER);
                self.chunks.push_mut(Vec::with_capacity(size))
            }
        };
        chunk.extend_from_slice(&self.scratch);
        let mut writer = PackedWriter(chunk);
        writer.number(u64::from(entry.span.start.wrapping_sub(self.last_start)));
        writer.number(u64::from(entry.span.end.wrapping_sub(entry.span.start)));
        self.last_start = entry.span.start;
        hash
    }

    /// Visits the entries.
    pub(crate) fn for_each(&self, file: FileId, mut visit: impl FnMut(TableEntrySpec)) {
        self.chunks.iter().for_each(|chunk| read_chunk(chunk, file, &mut visit));
    }

    /// Visits the entries and releases their memory step by step.
    pub(crate) fn drain(self, file: FileId, mut visit: impl FnMut(TableEntrySpec)) {
        self.chunks.into_iter().for_each(|chunk| read_chunk(&chunk, file, &mut visit));
    }
}

/// Returns the hash that [`CheckedEntries::push`] returns for an entry with this table, key and priority.
pub(crate) fn hash_of(table: TableId, keys: &[KeyValue], priority: i32) -> u64 {
    let mut bytes = Vec::new();
    PackedWriter(&mut bytes).identity(table, keys, priority);
    hash(&bytes)
}

fn hash(bytes: &[u8]) -> u64 {
    foldhash::quality::FixedState::with_seed(0).hash_one(bytes)
}

fn read_chunk(chunk: &[u8], file: FileId, visit: &mut impl FnMut(TableEntrySpec)) {
    let mut reader = PackedReader { bytes: chunk, file, last_start: 0 };
    while !reader.bytes.is_empty() {
        visit(reader.entry());
    }
}

/// Maximum number of bytes of a number.
const MAX_NUMBER: usize = 10;

/// Kinds of key values.
const EXACT: u8 = 0;
const LPM: u8 = 1;
const TERNARY: u8 = 2;
const RANGE: u8 = 3;
const ANY: u8 = 4;

/// Kinds of actions.
const ACTION: u8 = 0;
const MEMBER: u8 = 1;
const GROUP: u8 = 2;
const ONE_SHOT: u8 = 3;

struct PackedWriter<'a>(&'a mut Vec<u8>);

impl PackedWriter<'_> {
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn value(&mut self, value: &Bits) {
        self.number(u64::from(value.width()));
        if value.width() <= 128 {
            let number = value.low_u128();
            let len = (128 - number.leading_zeros()).div_ceil(8) as usize;
            self.0.push(len as u8);
            self.0.extend_from_slice(&number.to_be_bytes()[16 - len..]);
        } else {
            let bytes = value.to_be_bytes();
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            self.number((bytes.len() - zeros) as u64);
            self.0.extend_from_slice(&bytes[zeros..]);
        }
    }

    fn pair(&mut self, kind: u8, one: &Bits, other: &Bits) {
        self.0.push(kind);
        self.value(one);
        self.value(other);
    }

    /// Writes the parts of an entry that two entries must not share.
    fn identity(&mut self, table: TableId, keys: &[KeyValue], priority: i32) {
        self.number(u64::from(table.as_u32()));
        self.number(priority as u64);
        self.number(keys.len() as u64);
        for key in keys {
            match key {
                KeyValue::Exact(value) => {
                    self.0.push(EXACT);
                    self.value(value);
                }
                KeyValue::Lpm(value, length) => {
                    self.0.push(LPM);
                    self.value(value);
                    self.number(u64::from(*length));
                }
                KeyValue::Ternary(value, mask) => self.pair(TERNARY, value, mask),
                KeyValue::Range(low, high) => self.pair(RANGE, low, high),
                KeyValue::Any => self.0.push(ANY),
            }
        }
    }

    /// Writes the other parts of an entry, except its position.
    fn content(&mut self, entry: &TableEntrySpec) {
        match &entry.target {
            EntryAction::Action(call) => {
                self.0.push(ACTION);
                self.call(call);
            }
            EntryAction::Member(id) => {
                self.0.push(MEMBER);
                self.number(u64::from(*id));
            }
            EntryAction::Group(id) => {
                self.0.push(GROUP);
                self.number(u64::from(*id));
            }
            EntryAction::OneShot(shares) => {
                self.0.push(ONE_SHOT);
                self.number(shares.len() as u64);
                for share in shares {
                    self.call(&share.call);
                    self.number(u64::from(share.weight));
                    self.number(share.watch_port.map_or(0, |port| u64::from(port) + 1));
                }
            }
        }
        self.number(entry.idle_timeout_ns);
        self.0.push(u8::from(entry.meter.is_some()));
        if let Some(meter) = entry.meter {
            [meter.cir, meter.cburst, meter.pir, meter.pburst].into_iter().for_each(|rate| self.number(rate));
        }
    }

    fn call(&mut self, call: &ActionInvocation) {
        self.number(u64::from(call.action.as_u32()));
        self.number(call.args.len() as u64);
        call.args.iter().for_each(|arg| self.value(arg));
    }
}

struct PackedReader<'a> {
    bytes: &'a [u8],
    file: FileId,
    last_start: u32,
}

impl PackedReader<'_> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.bytes.split_first().expect("an entry is in one chunk");
        self.bytes = rest;
        *first
    }

    fn number(&mut self) -> u64 {
        let mut number = 0;
        let mut shift = 0;
        loop {
            let byte = self.byte();
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return number;
            }
            shift += 7;
        }
    }

    fn value(&mut self) -> Bits {
        let width = self.number() as u32;
        let len = self.number() as usize;
        let (value, rest) = self.bytes.split_at(len);
        self.bytes = rest;
        Bits::from_be_bytes(value, width)
    }

    fn key(&mut self) -> KeyValue {
        match self.byte() {
            EXACT => KeyValue::Exact(self.value()),
            LPM => KeyValue::Lpm(self.value(), self.number() as u32),
            TERNARY => KeyValue::Ternary(self.value(), self.value()),
            RANGE => KeyValue::Range(self.value(), self.value()),
            _ => KeyValue::Any,
        }
    }

    fn call(&mut self) -> ActionInvocation {
        let action = ActionId::from_u32(self.number() as u32);
        let count = self.number();
        ActionInvocation { action, args: (0..count).map(|_| self.value()).collect() }
    }

    fn target(&mut self) -> EntryAction {
        match self.byte() {
            ACTION => EntryAction::Action(self.call()),
            MEMBER => EntryAction::Member(self.number() as u32),
            GROUP => EntryAction::Group(self.number() as u32),
            _ => {
                let count = self.number();
                let share = |_| {
                    let (call, weight) = (self.call(), self.number() as u32);
                    WeightedAction { call, weight, watch_port: self.number().checked_sub(1).map(|port| port as u32) }
                };
                EntryAction::OneShot((0..count).map(share).collect())
            }
        }
    }

    fn entry(&mut self) -> TableEntrySpec {
        let table = TableId::from_u32(self.number() as u32);
        let priority = self.number() as i32;
        let count = self.number();
        let keys = (0..count).map(|_| self.key()).collect();
        let target = self.target();
        let idle_timeout_ns = self.number();
        let meter = (self.byte() != 0).then(|| {
            let [cir, cburst, pir, pburst] = std::array::from_fn(|_| self.number());
            MeterRates { cir, cburst, pir, pburst }
        });
        let start = self.last_start.wrapping_add(self.number() as u32);
        let end = start.wrapping_add(self.number() as u32);
        self.last_start = start;
        TableEntrySpec { table, keys, priority, target, idle_timeout_ns, meter, span: Span::new(self.file, start, end) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(random: &mut rng::SplitMix64) -> Bits {
        let width = random.pick(&[(1, 0), (1, 1), (1, 9), (1, 32), (1, 64), (1, 128), (1, 129), (1, 200), (1, 4000)]);
        let words: Vec<u64> = (0..64).map(|_| random.next_u64()).collect();
        let value = Bits::from_words(&words, width);
        if random.percent(50) { value.shr(random.below(u64::from(width) + 1) as u32) } else { value }
    }

    fn call(random: &mut rng::SplitMix64) -> ActionInvocation {
        let args = (0..random.below(4)).map(|_| value(random)).collect();
        ActionInvocation { action: ActionId::from_u32(random.below(300) as u32), args }
    }

    fn entry(random: &mut rng::SplitMix64, start: u32) -> TableEntrySpec {
        let key = |random: &mut rng::SplitMix64| match random.below(5) {
            0 => KeyValue::Exact(value(random)),
            1 => KeyValue::Lpm(value(random), random.below(1 << 16) as u32),
            2 => KeyValue::Ternary(value(random), value(random)),
            3 => KeyValue::Range(value(random), value(random)),
            _ => KeyValue::Any,
        };
        let id = random.next_u64() as u32;
        let share = |random: &mut rng::SplitMix64| WeightedAction {
            call: call(random),
            weight: id,
            watch_port: [None, Some(0), Some(u32::MAX)][random.below(3) as usize],
        };
        let rates = MeterRates { cir: random.next_u64() >> 1, cburst: 0, pir: u64::MAX, pburst: 1 };
        TableEntrySpec {
            table: TableId::from_u32(random.below(200) as u32),
            keys: (0..random.below(6)).map(|_| key(random)).collect(),
            priority: [0, 1, i32::MAX][random.below(3) as usize],
            target: match random.below(4) {
                0 => EntryAction::Action(call(random)),
                1 => EntryAction::Member(id),
                2 => EntryAction::Group(id),
                _ => EntryAction::OneShot((0..random.below(4)).map(|_| share(random)).collect()),
            },
            idle_timeout_ns: [0, i64::MAX as u64][random.below(2) as usize],
            meter: random.percent(30).then_some(rates),
            span: Span::new(FileId(3), start, start + random.below(1000) as u32),
        }
    }

    #[test]
    fn entries_come_out_as_they_went_in() {
        let mut random = rng::SplitMix64::new(1);
        let (mut packed, mut start) = (CheckedEntries::default(), 0);
        let (mut entries, mut hashes) = (Vec::new(), Vec::new());
        for _ in 0..5000 {
            start += random.below(100_000) as u32;
            entries.push(entry(&mut random, start));
            hashes.push(packed.push(entries.last().expect("one was added")));
        }
        assert_eq!(packed.len(), entries.len());
        assert!(packed.chunks.len() > 2, "there are several chunks");
        assert!(hashes.into_iter().eq(entries.iter().map(|it| hash_of(it.table, &it.keys, it.priority))));
        let (mut read, mut drained) = (Vec::new(), Vec::new());
        packed.for_each(FileId(3), |entry| read.push(entry));
        packed.drain(FileId(3), |entry| drained.push(entry));
        assert!(read == entries && drained == entries);
    }

    #[test]
    fn an_entry_larger_than_a_chunk_has_its_own() {
        let mut random = rng::SplitMix64::new(2);
        let mut entry = entry(&mut random, 7);
        let args = (0..200).map(|_| Bits::ones(bits::MAX_WIDTH)).collect();
        entry.target = EntryAction::Action(ActionInvocation { action: ActionId::from_u32(1), args });
        let mut packed = CheckedEntries::default();
        for _ in 0..3 {
            packed.push(&entry);
        }
        let mut count = 0;
        packed.drain(entry.span.file, |other| {
            assert_eq!(other, entry);
            count += 1;
        });
        assert_eq!(count, 3);
    }
}
