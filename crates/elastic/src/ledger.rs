//! Holds every entry of a table in the switch, by number. It is the source from which remote memory is rebuilt.

use hashbrown::HashTable;

use crate::cell::CellSecret;
use crate::placement::EntryId;

/// The entries of a table: keys and records of fixed widths, without an allocation for each.
#[derive(Debug)]
pub struct EntryLedger {
    secret: CellSecret,
    key_bytes: usize,
    entry_bytes: usize,
    bytes: Vec<u8>,
    free: Vec<u32>,
    index: HashTable<u32>,
}

impl EntryLedger {
    /// Creates an empty ledger for keys and records of these widths.
    pub fn new(secret: CellSecret, key_bytes: usize, record_bytes: usize) -> EntryLedger {
        let entry_bytes = key_bytes + record_bytes;
        EntryLedger { secret, key_bytes, entry_bytes, bytes: Vec::new(), free: Vec::new(), index: HashTable::new() }
    }

    /// Returns the number of entries that can be found by their keys.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether no entry can be found.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Returns the key of an entry followed by its record.
    pub fn entry(&self, id: EntryId) -> &[u8] {
        let start = id.0 as usize * self.entry_bytes;
        &self.bytes[start..start + self.entry_bytes]
    }

    /// Returns the key of an entry.
    pub fn key(&self, id: EntryId) -> &[u8] {
        &self.entry(id)[..self.key_bytes]
    }

    /// Returns the record of an entry.
    pub fn record(&self, id: EntryId) -> &[u8] {
        &self.entry(id)[self.key_bytes..]
    }

    /// Finds an entry. `hash` is that of the key.
    pub fn find(&self, hash: u64, key: &[u8]) -> Option<EntryId> {
        self.index.find(hash, |id| self.key(EntryId(*id)) == key).map(|id| EntryId(*id))
    }

    /// Adds an entry whose key is new.
    pub fn add(&mut self, hash: u64, key: &[u8], record: &[u8]) -> EntryId {
        let id = self.free.pop().unwrap_or_else(|| {
            let id = (self.bytes.len() / self.entry_bytes) as u32;
            self.bytes.resize(self.bytes.len() + self.entry_bytes, 0);
            id
        });
        let start = id as usize * self.entry_bytes;
        self.bytes[start..start + self.key_bytes].copy_from_slice(key);
        self.bytes[start + self.key_bytes..start + self.entry_bytes].copy_from_slice(record);
        let (secret, bytes) = (self.secret, &self.bytes);
        let (entry_bytes, key_bytes) = (self.entry_bytes, self.key_bytes);
        self.index.insert_unique(hash, id, |id| {
            let start = *id as usize * entry_bytes;
            secret.key_hash(&bytes[start..start + key_bytes])
        });
        EntryId(id)
    }

    /// Replaces the record of an entry.
    pub fn set_record(&mut self, id: EntryId, record: &[u8]) {
        let start = id.0 as usize * self.entry_bytes + self.key_bytes;
        self.bytes[start..start + record.len()].copy_from_slice(record);
    }

    /// Hides an entry from lookups by key. Its number stays in use until [`EntryLedger::release`].
    pub fn unlink(&mut self, hash: u64, id: EntryId) {
        if let Ok(found) = self.index.find_entry(hash, |other| *other == id.0) {
            found.remove();
        }
    }

    /// Frees the number of an unlinked entry.
    pub fn release(&mut self, id: EntryId) {
        self.free.push(id.0);
    }
}
