//! Looks up many keys at once for compiled code.

use ir::TableId;

use super::{Applied, Colour, Objects};
use crate::tables::{Handle, InlineLookup, MISS};

fn handle(found: u32) -> Option<Handle> {
    (found != MISS).then_some(Handle(found))
}

impl Objects {
    /// Looks up packed keys, one after the other, for packets that will reach the table later. Results are handles, or
    /// [`MISS`]. Counts nothing. Returns false, without results, if the table does not support batches.
    ///
    /// The results are valid until the control plane changes the table or a worker pins a new version.
    pub fn find_batch(&self, id: TableId, keys: &[u64], found: &mut [u32]) -> bool {
        self.control().tables[id].backend.lookup_batch(keys, found)
    }

    /// Describes inline lookups in a table, if it supports them, and returns the number of bytes that they touch,
    /// including the records of the results. The description is valid as long as results of [`Objects::find_batch`]
    /// are.
    #[inline]
    pub fn inline_lookup(&self, id: TableId) -> Option<(InlineLookup<'_>, usize)> {
        let state = &self.control().tables[id];
        let inline_lookup = state.backend.inline_lookup()?;
        Some((inline_lookup, inline_lookup.bytes() + state.records.bytes()))
    }

    /// Prefetches the records of handles that [`Objects::find_batch`] found, unless all records are in near caches
    /// anyway.
    #[inline]
    pub fn ask_for_records(&self, id: TableId, found: &[u32]) {
        let records = &self.control().tables[id].records;
        if !records.are_near() {
            found.iter().for_each(|found| tables::prefetch(records.get(handle(*found)), 0));
        }
    }

    /// Returns the record of a table's default action. The records of its entries follow it, in the order of their
    /// handles.
    #[inline]
    pub fn default_record(&self, id: TableId) -> &[u64] {
        self.control().tables[id].records.get(None)
    }

    /// Counts and meters a hit found by [`Objects::find_batch`] in a table without a profile, and returns the record to
    /// run, like [`Objects::apply_words`].
    #[inline]
    pub fn apply_found(&mut self, id: TableId, found: u32, bytes: u64, now_ns: u64) -> Applied<'_> {
        if let (Some(handle), true) = (handle(found), self.is_recording()) {
            self.record_undo_of_hit(id, handle);
        }
        if let Some(handle) = handle(found) {
            self.note_use(id, handle, now_ns);
        }
        let state = &self.control().tables[id];
        let mut colour = state.meter.map(|meter| (meter, Colour::Green));
        if let (Some(handle), true) = (handle(found), state.records_hits) {
            let hit = self.record_hit(id, state, handle, bytes, now_ns);
            colour = colour.zip(hit).map(|((meter, _), colour)| (meter, colour));
        }
        (state.records.get(handle(found)), colour)
    }
}
