//! The log of a store's file, which keeps transactions short.
//!
//! ```text
//!   batch ──> log: one append ──┬─> later entries, in memory by key
//!                               └─> earlier entries, in memory by key ── a slice a commit ──> entries
//! ```
//!
//! Random rows are on different pages, and a transaction that changed all of these would write 4 KiB for each row. So a
//! batch is appended to the log, and the newest values of keys reach the table of entries later, in the order of keys:
//! then many of them share a page. Each transaction moves a slice, so that none is long. The parts of the log
//! alternate: the earlier one is removed when all its keys are moved. The contents of the file are the table of entries
//! with the log applied to it.

use std::collections::BTreeMap;

use redb::{ReadableTable, Table, TableDefinition};
use resilient::store::EntryChange;

/// Batches by their numbers.
pub(crate) const LOG: TableDefinition<u64, &[u8]> = TableDefinition::new("log");

/// Size at which a part of the log is moved: bytes of batches, and their number. In unit tests it is small, so that
/// parts are moved all the time.
const PART_BYTES: usize = 32 << 20;
const PART_BATCHES: u64 = if cfg!(test) { 3 } else { 4096 };
/// Minimum number of keys that a transaction moves.
const MIN_SLICE: usize = if cfg!(test) { 4 } else { 64 };

/// The length that stands for a removed entry.
const REMOVED: u32 = u32::MAX;

type EntryTable<'t> = Table<'t, &'static [u8], &'static [u8]>;
type LogTable<'t> = Table<'t, u64, &'static [u8]>;

/// The newest values of keys; `None` removes an entry.
pub(crate) type LoggedEntries = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// The log in memory.
#[derive(Debug, Default)]
pub(crate) struct CommitLog {
    /// Number of the next batch.
    next: u64,
    earlier: LoggedEntries,
    later: LoggedEntries,
    /// Number of the first batch of the later part, and bytes of its batches.
    later_first: u64,
    later_bytes: usize,
}

impl CommitLog {
    /// Appends changes that remove no ranges, and moves a slice of the earlier part.
    pub fn append(
        &mut self,
        changes: Vec<EntryChange>,
        log: &mut LogTable<'_>,
        entries: &mut EntryTable<'_>,
    ) -> Result<(), redb::Error> {
        let slice = MIN_SLICE.max(2 * changes.len());
        let mut bytes = Vec::new();
        for change in changes {
            let (key, value) = match change {
                EntryChange::Put(key, value) => (key, Some(value)),
                EntryChange::Remove(key) | EntryChange::RemoveAll(key) => (key, None),
            };
            write_entry(&mut bytes, &key, value.as_deref());
            self.later.insert(key, value);
        }
        log.insert(self.next, bytes.as_slice())?;
        self.next += 1;
        self.later_bytes += bytes.len();
        if self.earlier.is_empty() {
            let is_long = self.later_bytes > PART_BYTES || self.next - self.later_first > PART_BATCHES;
            if is_long {
                self.earlier = std::mem::take(&mut self.later);
                (self.later_first, self.later_bytes) = (self.next, 0);
            }
            return Ok(());
        }
        for _ in 0..slice {
            let Some((key, value)) = self.earlier.pop_first() else { break };
            set_entry(entries, &key, value.as_deref())?;
        }
        if self.earlier.is_empty() {
            log.retain_in(..self.later_first, |_, _| false)?;
        }
        Ok(())
    }
}

/// Moves all of the log into the entries. Returns false if a batch is malformed.
pub(crate) fn empty_log(log: &mut LogTable<'_>, entries: &mut EntryTable<'_>) -> Result<bool, redb::Error> {
    let mut newest = LoggedEntries::new();
    for batch in log.iter()? {
        let (_, bytes) = batch?;
        if read_entries(bytes.value(), &mut newest).is_none() {
            return Ok(false);
        }
    }
    for (key, value) in &newest {
        set_entry(entries, key, value.as_deref())?;
    }
    log.retain(|_, _| false)?;
    Ok(true)
}

pub(crate) fn set_entry(
    entries: &mut EntryTable<'_>,
    key: &[u8],
    value: Option<&[u8]>,
) -> Result<(), redb::StorageError> {
    match value {
        Some(value) => entries.insert(key, value).map(drop),
        None => entries.remove(key).map(drop),
    }
}

/// Appends the length of the key in 8 bits, the key, the length of the value in 32 bits, and the value.
fn write_entry(bytes: &mut Vec<u8>, key: &[u8], value: Option<&[u8]>) {
    bytes.push(key.len() as u8);
    bytes.extend(key);
    bytes.extend(value.map_or(REMOVED, |value| value.len() as u32).to_be_bytes());
    bytes.extend(value.unwrap_or_default());
}

fn read_entries(mut bytes: &[u8], newest: &mut LoggedEntries) -> Option<()> {
    while let Some((length, rest)) = bytes.split_first() {
        let (key, rest) = rest.split_at_checked(usize::from(*length))?;
        let (length, rest) = rest.split_first_chunk()?;
        let length = u32::from_be_bytes(*length);
        let (value, rest) = rest.split_at_checked(if length == REMOVED { 0 } else { length as usize })?;
        newest.insert(key.to_vec(), (length != REMOVED).then(|| value.to_vec()));
        bytes = rest;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_change_of_a_key_counts_and_torn_batches_are_refused() {
        let mut bytes = Vec::new();
        write_entry(&mut bytes, b"a", Some(b"1"));
        write_entry(&mut bytes, b"b", Some(b""));
        write_entry(&mut bytes, b"a", None);
        let mut newest = LoggedEntries::new();
        assert_eq!(read_entries(&bytes, &mut newest), Some(()));
        assert_eq!(newest, BTreeMap::from([(b"a".to_vec(), None), (b"b".to_vec(), Some(Vec::new()))]));
        let whole = [0, 7, 13, 19];
        let torn = (0..bytes.len()).filter(|length| !whole.contains(length));
        torn.for_each(|length| assert_eq!(read_entries(&bytes[..length], &mut LoggedEntries::new()), None, "{length}"));
    }
}
