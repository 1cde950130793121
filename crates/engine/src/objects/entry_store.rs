//! Stores the entries of a table compactly: as records of a few bytes, from which entries are made on request.
//!
//! ```text
//! part      flags │ time of the write │ priority │ idle timeout │ member or group │ elements of the key
//! bytes       1             8              4            8                4           as their widths need
//! ```
//!
//! A table has only those of the parts that its entries can have. What almost no entry has is in a map beside the
//! records. The action of an entry and its arguments are in the records for packets ([`super::records`]).
//!
//! Records lie in pages. Versions of a table share a page until one of them changes it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bits::Bits;
use ir::{KeyValue, MatchKind};

use super::{ActionSpec, TableEntry};
use crate::tables::{Handle, KeyShape, needs_priority};

/// Number of records in a page.
const PAGE: usize = 64;

/// Flags of a record: the handle has an entry.
const PRESENT: u8 = 1;
/// The program declares the entry constant.
const CONSTANT: u8 = 1 << 1;
/// The action is a member of the table's profile.
const MEMBER: u8 = 1 << 2;
/// The action is a group of the table's profile.
const GROUP: u8 = 1 << 3;
/// There are parts in the map.
const EXTENDED: u8 = 1 << 4;

/// Offset of the time at which the entry was written.
const WRITTEN: usize = 1;

/// The parts of an entry that almost none has.
#[derive(Clone, Debug, Default, PartialEq)]
struct EntryExtension {
    /// A one-shot group, or an action that records for packets cannot express.
    action: Option<ActionSpec>,
    metadata: Vec<u8>,
    /// A timeout, in tables whose records have no part for it.
    idle_timeout_ns: u64,
}

/// The positions of parts in a record; `None` for a part that records do not have.
#[derive(Debug)]
struct RecordLayout {
    priority: Option<usize>,
    idle_timeout: Option<usize>,
    reference: Option<usize>,
    /// Each key element, with its offset.
    keys: Vec<(KeyShape, usize)>,
    /// Number of bytes.
    size: usize,
}

/// The action of an entry, as far as the store has it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StoredAction<'a> {
    /// It is in the table's record for packets.
    InRecord,
    /// A member of the table's profile.
    Member(u32),
    /// A group of the table's profile.
    Group(u32),
    /// Any other.
    Other(&'a ActionSpec),
}

/// The entries of one table.
#[derive(Clone)]
pub(crate) struct EntryStore {
    layout: Arc<RecordLayout>,
    pages: Vec<Arc<[u8]>>,
    /// Number of entries that have had each handle; a worker's counts belong to one of them.
    generations: Vec<u32>,
    /// Handles available for reuse.
    free: Vec<Handle>,
    extensions: BTreeMap<Handle, EntryExtension>,
    /// Number of changes: entries added, replaced and removed. It wraps around.
    version: u32,
}

/// Returns the number of bytes of a value.
fn bytes(width: u32) -> usize {
    (width as usize).div_ceil(8)
}

/// Returns the number of bytes of a prefix length.
fn length_bytes(width: u32) -> usize {
    if width < 256 { 1 } else { 4 }
}

impl RecordLayout {
    fn new(shape: &[KeyShape], has_timeouts: bool, has_profile: bool) -> Self {
        let mut size = WRITTEN + 8;
        let mut place = |is_present: bool, bytes: usize| {
            let at = size;
            size += if is_present { bytes } else { 0 };
            is_present.then_some(at)
        };
        let priority = place(needs_priority(shape), 4);
        let idle_timeout = place(has_timeouts, 8);
        let reference = place(has_profile, 4);
        let keys = shape.iter().map(|key| {
            let value = bytes(key.width);
            let all = match key.kind {
                MatchKind::Exact | MatchKind::Selector => value,
                MatchKind::Lpm => value + length_bytes(key.width),
                MatchKind::Ternary | MatchKind::Range => 2 * value,
                MatchKind::Optional => 1 + value,
            };
            (*key, place(true, all).expect("it is present"))
        });
        let keys = keys.collect();
        RecordLayout { priority, idle_timeout, reference, keys, size }
    }

    fn put_keys(&self, record: &mut [u8], keys: &[KeyValue]) {
        for ((shape, at), key) in self.keys.iter().zip(keys) {
            let value_bytes = bytes(shape.width);
            let (first, second) = record[*at..].split_at_mut(value_bytes);
            match key {
                KeyValue::Exact(value) if shape.kind == MatchKind::Optional => {
                    record[*at] = 1;
                    put(&mut record[at + 1..][..value_bytes], value);
                }
                KeyValue::Exact(value) => put(first, value),
                KeyValue::Lpm(value, length) => {
                    put(first, value);
                    let count = length_bytes(shape.width);
                    second[..count].copy_from_slice(&length.to_be_bytes()[4 - count..]);
                }
                KeyValue::Ternary(one, other) | KeyValue::Range(one, other) => {
                    put(first, one);
                    put(&mut second[..value_bytes], other);
                }
                KeyValue::Any => record[*at..][..1 + value_bytes].fill(0),
            }
        }
    }

    fn keys(&self, record: &[u8]) -> Vec<KeyValue> {
        let value = |(shape, at): &(KeyShape, usize)| {
            let value_bytes = bytes(shape.width);
            let part = |at: usize| Bits::from_be_bytes(&record[at..][..value_bytes], shape.width);
            let second = at + value_bytes;
            match shape.kind {
                MatchKind::Exact | MatchKind::Selector => KeyValue::Exact(part(*at)),
                MatchKind::Lpm => {
                    let length = &record[second..][..length_bytes(shape.width)];
                    let length = length.iter().fold(0, |length, byte| length << 8 | u32::from(*byte));
                    KeyValue::Lpm(part(*at), length)
                }
                MatchKind::Ternary => KeyValue::Ternary(part(*at), part(second)),
                MatchKind::Range => KeyValue::Range(part(*at), part(second)),
                MatchKind::Optional if record[*at] == 0 => KeyValue::Any,
                MatchKind::Optional => KeyValue::Exact(part(at + 1)),
            }
        };
        self.keys.iter().map(value).collect()
    }
}

/// Stores a value, most significant byte first.
fn put(place: &mut [u8], value: &Bits) {
    if place.len() <= 16 {
        place.copy_from_slice(&value.low_u128().to_be_bytes()[16 - place.len()..]);
    } else {
        place.copy_from_slice(&value.to_be_bytes());
    }
}

fn u32_at(record: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(record[at..][..4].try_into().expect("four bytes"))
}

fn u64_at(record: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(record[at..][..8].try_into().expect("eight bytes"))
}

impl EntryStore {
    /// Creates the store of a table with these key elements.
    pub(crate) fn new(shape: &[KeyShape], has_timeouts: bool, has_profile: bool) -> Self {
        EntryStore {
            layout: Arc::new(RecordLayout::new(shape, has_timeouts, has_profile)),
            pages: Vec::new(),
            generations: Vec::new(),
            free: Vec::new(),
            extensions: BTreeMap::new(),
            version: 0,
        }
    }

    /// Returns the number of changes so far.
    pub(crate) fn version(&self) -> u32 {
        self.version
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        self.generations.len() - self.free.len()
    }

    /// Returns the exclusive upper bound of handles.
    #[inline]
    pub(crate) fn handle_count(&self) -> usize {
        self.generations.len()
    }

    fn record(&self, handle: Handle) -> &[u8] {
        let (page, at) = (handle.0 as usize / PAGE, handle.0 as usize % PAGE);
        &self.pages[page][at * self.layout.size..][..self.layout.size]
    }

    fn record_mut(&mut self, handle: Handle) -> &mut [u8] {
        let (page, at) = (handle.0 as usize / PAGE, handle.0 as usize % PAGE);
        let size = self.layout.size;
        &mut Arc::make_mut(&mut self.pages[page])[at * size..][..size]
    }

    /// Returns the handles that have an entry.
    pub(crate) fn handles(&self) -> impl Iterator<Item = Handle> {
        let handles = (0..self.generations.len() as u32).map(Handle);
        handles.filter(move |handle| self.record(*handle)[0] & PRESENT != 0)
    }

    /// Whether a handle has an entry.
    pub(crate) fn has(&self, handle: Handle) -> bool {
        (handle.0 as usize) < self.generations.len() && self.record(handle)[0] & PRESENT != 0
    }

    /// Returns the number of entries that have had a handle, including its present one.
    #[inline]
    pub(crate) fn generation(&self, handle: Handle) -> u32 {
        self.generations[handle.0 as usize]
    }

    /// Whether the program declares an entry constant.
    pub(crate) fn is_constant(&self, handle: Handle) -> bool {
        self.record(handle)[0] & CONSTANT != 0
    }

    pub(crate) fn written_ns(&self, handle: Handle) -> u64 {
        u64_at(self.record(handle), WRITTEN)
    }

    /// Returns the timeout of an entry, or 0.
    pub(crate) fn idle_timeout_ns(&self, handle: Handle) -> u64 {
        match self.layout.idle_timeout {
            Some(at) => u64_at(self.record(handle), at),
            None => self.extension(handle).map_or(0, |extension| extension.idle_timeout_ns),
        }
    }

    /// Returns the handles of entries that have a timeout.
    pub(crate) fn aging(&self) -> impl Iterator<Item = Handle> {
        let possible = self.layout.idle_timeout.is_some() || !self.extensions.is_empty();
        let all = possible.then(|| self.handles()).into_iter().flatten();
        all.filter(move |handle| self.idle_timeout_ns(*handle) > 0)
    }

    pub(crate) fn keys(&self, handle: Handle) -> Vec<KeyValue> {
        self.layout.keys(self.record(handle))
    }

    /// Returns the priority of an entry; 0 in a table whose entries have none.
    pub(crate) fn priority(&self, handle: Handle) -> i32 {
        self.layout.priority.map_or(0, |at| u32_at(self.record(handle), at) as i32)
    }

    pub(crate) fn metadata(&self, handle: Handle) -> Vec<u8> {
        self.extension(handle).map(|extension| extension.metadata.clone()).unwrap_or_default()
    }

    pub(crate) fn action(&self, handle: Handle) -> StoredAction<'_> {
        let record = self.record(handle);
        let reference = || u32_at(record, self.layout.reference.expect("tables with a profile have this part"));
        match record[0] & (MEMBER | GROUP) {
            MEMBER => return StoredAction::Member(reference()),
            GROUP => return StoredAction::Group(reference()),
            _ => {}
        }
        let other = self.extension(handle).and_then(|extension| extension.action.as_ref());
        other.map_or(StoredAction::InRecord, StoredAction::Other)
    }

    fn extension(&self, handle: Handle) -> Option<&EntryExtension> {
        if self.record(handle)[0] & EXTENDED == 0 { None } else { self.extensions.get(&handle) }
    }

    /// Returns the handle that the next entry will have.
    pub(crate) fn next_handle(&self) -> Handle {
        self.free.last().copied().unwrap_or(Handle(self.generations.len() as u32))
    }

    /// Allocates the handle of a new entry and stores the entry. `in_record` says whether the table's record for
    /// packets holds its action.
    pub(crate) fn add(&mut self, entry: &TableEntry, in_record: bool, constant: bool, written_ns: u64) -> Handle {
        self.version = self.version.wrapping_add(1);
        let handle = self.free.pop().unwrap_or_else(|| {
            let handle = Handle(self.generations.len() as u32);
            tables::reserve_gently(&mut self.generations, 1);
            self.generations.push(0);
            if handle.0 as usize / PAGE == self.pages.len() {
                tables::reserve_gently(&mut self.pages, 1);
                self.pages.push(vec![0; PAGE * self.layout.size].into());
            }
            handle
        });
        let generation = &mut self.generations[handle.0 as usize];
        *generation = generation.wrapping_add(1);
        self.write(handle, entry, in_record, constant, written_ns);
        handle
    }

    /// Replaces an entry by another with the same key and priority.
    pub(crate) fn replace(&mut self, handle: Handle, entry: &TableEntry, in_record: bool, written_ns: u64) {
        self.version = self.version.wrapping_add(1);
        let constant = self.is_constant(handle);
        self.write(handle, entry, in_record, constant, written_ns);
    }

    fn write(&mut self, handle: Handle, entry: &TableEntry, in_record: bool, constant: bool, written_ns: u64) {
        let layout = Arc::clone(&self.layout);
        let (kind, reference) = match &entry.action {
            ActionSpec::Member(id) => (MEMBER, Some(*id)),
            ActionSpec::Group(id) => (GROUP, Some(*id)),
            ActionSpec::Direct(_) | ActionSpec::OneShot(_) => (0, None),
        };
        let extension = EntryExtension {
            action: (!in_record && reference.is_none()).then(|| entry.action.clone()),
            metadata: entry.metadata.clone(),
            idle_timeout_ns: if layout.idle_timeout.is_none() { entry.idle_timeout_ns } else { 0 },
        };
        let is_extended = extension != EntryExtension::default();
        let record = self.record_mut(handle);
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        record[0] = PRESENT | kind | flag(constant, CONSTANT) | flag(is_extended, EXTENDED);
        record[WRITTEN..][..8].copy_from_slice(&written_ns.to_be_bytes());
        let mut number = |at: Option<usize>, bytes: &[u8]| {
            if let Some(at) = at {
                record[at..][..bytes.len()].copy_from_slice(bytes);
            }
        };
        number(layout.priority, &entry.priority.to_be_bytes());
        number(layout.idle_timeout, &entry.idle_timeout_ns.to_be_bytes());
        number(layout.reference, &reference.unwrap_or(0).to_be_bytes());
        layout.put_keys(record, &entry.keys);
        if is_extended {
            self.extensions.insert(handle, extension);
        } else if !self.extensions.is_empty() {
            self.extensions.remove(&handle);
        }
    }

    /// Removes an entry.
    pub(crate) fn take(&mut self, handle: Handle) {
        self.version = self.version.wrapping_add(1);
        self.extensions.remove(&handle);
        self.record_mut(handle).fill(0);
        self.free.push(handle);
    }
}

/// Shows the entries, not their encoding: equal stores look equal.
impl fmt::Debug for EntryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |handle: Handle| {
            let record = self.record(handle);
            let parts = (record[0], self.written_ns(handle), self.priority(handle), self.idle_timeout_ns(handle));
            (handle, self.generation(handle), parts, self.keys(handle), self.action(handle), self.metadata(handle))
        };
        f.debug_struct("EntryStore")
            .field("entries", &self.handles().map(shown).collect::<Vec<_>>())
            .field("free", &self.free.iter().map(|handle| (handle, self.generation(*handle))).collect::<Vec<_>>())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::{ActionCall, WeightedCall};

    fn shape(width: u32, kind: MatchKind) -> KeyShape {
        KeyShape { width, kind, signed: false }
    }

    /// Returns the parts of a stored entry, with the action if the store has it.
    fn stored(store: &EntryStore, handle: Handle) -> TableEntry {
        let action = match store.action(handle) {
            StoredAction::InRecord => ActionSpec::Member(u32::MAX),
            StoredAction::Member(id) => ActionSpec::Member(id),
            StoredAction::Group(id) => ActionSpec::Group(id),
            StoredAction::Other(spec) => spec.clone(),
        };
        TableEntry {
            keys: store.keys(handle),
            priority: store.priority(handle),
            action,
            metadata: store.metadata(handle),
            idle_timeout_ns: store.idle_timeout_ns(handle),
        }
    }

    #[test]
    fn every_part_of_an_entry_comes_back() {
        use MatchKind::*;
        let kinds = [Exact, Lpm, Ternary, Range, Optional];
        for width in [0, 1, 7, 9, 64, 127, 128, 129, 255, 256, 300] {
            let shapes = kinds.map(|kind| shape(width, kind));
            for (has_timeouts, has_profile) in [(false, false), (true, false), (false, true), (true, true)] {
                let mut store = EntryStore::new(&shapes, has_timeouts, has_profile);
                let ones = Bits::ones(width);
                let half = ones.shr(width / 2);
                let keys = |value: Bits, any: bool| {
                    let optional = if any { KeyValue::Any } else { KeyValue::Exact(value.clone()) };
                    vec![
                        KeyValue::Exact(value.clone()),
                        KeyValue::Lpm(value.clone(), width),
                        KeyValue::Ternary(value.clone(), ones.clone()),
                        KeyValue::Range(value.clone(), ones.clone()),
                        optional,
                    ]
                };
                let call = ActionCall { action: ir::ActionId::from_u32(3), args: vec![half.clone()] };
                let one_shot =
                    ActionSpec::OneShot(vec![WeightedCall { call: call.clone(), weight: 2, watch_port: Some(1) }]);
                let mut actions = vec![ActionSpec::Direct(call), one_shot];
                if has_profile {
                    actions.extend([ActionSpec::Member(7), ActionSpec::Group(u32::MAX - 1)]);
                }
                let mut all = Vec::new();
                for (number, action) in actions.iter().cycle().take(300).enumerate() {
                    let value = if number % 2 == 0 { half.clone() } else { Bits::zero(width) };
                    let entry = TableEntry {
                        keys: keys(value, number % 3 == 0),
                        priority: number as i32 + 1,
                        action: action.clone(),
                        metadata: vec![1; number % 2],
                        idle_timeout_ns: if number % 5 == 0 { u64::MAX - 1 } else { 0 },
                    };
                    all.push((store.add(&entry, false, number % 7 == 0, number as u64), entry));
                }
                let before = store.clone();
                for (number, (handle, entry)) in all.iter().enumerate() {
                    assert_eq!(stored(&store, *handle), *entry);
                    assert_eq!(
                        (store.is_constant(*handle), store.written_ns(*handle)),
                        (number % 7 == 0, number as u64)
                    );
                }
                let (aging, wanted): (Vec<_>, Vec<_>) = (store.aging().collect(), all.iter().step_by(5).collect());
                assert_eq!(aging, wanted.iter().map(|(handle, _)| *handle).collect::<Vec<_>>());
                // Handles are reused with another generation, and copies are independent.
                let (last, entry) = all.pop().unwrap();
                store.take(last);
                assert_eq!((store.len(), store.handles().count()), (299, 299));
                store.replace(all[0].0, &TableEntry { action: actions[1].clone(), ..all[0].1.clone() }, false, 9);
                assert!(store.is_constant(all[0].0), "it stays constant");
                assert_eq!(store.add(&entry, true, false, 5), last);
                assert_eq!(store.generation(last), 2);
                assert_eq!(stored(&before, all[0].0), all[0].1);
                assert_eq!((before.generation(last), before.written_ns(last)), (1, 299));
            }
        }
    }
}
