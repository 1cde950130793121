//! What compiled code asks tables for several packets at once.

use ir::TableId;

use super::{Applied, Colour, Objects};
use crate::tables::{Handle, InPlace, MISS};

fn handle(found: u32) -> Option<Handle> {
    (found != MISS).then_some(Handle(found))
}

impl Objects {
    /// Looks up keys in words that lie one after the other, for packets that come to the table later: handles, [`MISS`]
    /// where there is no entry. Counts nothing. False, and nothing found, if the table cannot answer many at once.
    ///
    /// What is found holds until the control plane changes the table, or a worker takes a new version of it.
    pub fn find_batch(&self, id: TableId, keys: &[u64], found: &mut [u32]) -> bool {
        self.control().tables[id].backend.lookup_batch(keys, found)
    }

    /// How the keys of a table are looked up in place, if there is a way, and how many bytes that touches with the
    /// records of what is found. It holds as what [`Objects::find_batch`] finds does.
    #[inline]
    pub fn in_place(&self, id: TableId) -> Option<(InPlace<'_>, usize)> {
        let state = &self.control().tables[id];
        let in_place = state.backend.in_place()?;
        Some((in_place, in_place.bytes() + state.records.bytes()))
    }

    /// Asks for the memory of the records of what runs for handles that [`Objects::find_batch`] found, where that is
    /// not in near caches anyway.
    #[inline]
    pub fn ask_for_records(&self, id: TableId, found: &[u32]) {
        let records = &self.control().tables[id].records;
        if !records.are_near() {
            found.iter().for_each(|found| tables::prefetch(records.get(handle(*found)), 0));
        }
    }

    /// The record of a table's default action. Those of its entries lie behind it, in the order of their handles.
    #[inline]
    pub fn default_record(&self, id: TableId) -> &[u64] {
        self.control().tables[id].records.get(None)
    }

    /// Counts and meters a hit of what [`Objects::find_batch`] found in a table without a profile, and gives the record
    /// of what is to run; otherwise as [`Objects::apply_words`].
    #[inline]
    pub fn apply_found(&mut self, id: TableId, found: u32, bytes: u64, now_ns: u64) -> Applied<'_> {
        let state = &self.control().tables[id];
        let mut colour = state.meter.map(|meter| (meter, Colour::Green));
        if let (Some(handle), true) = (handle(found), state.records_hits) {
            let hit = self.note_hit(id, state, handle, bytes, now_ns);
            colour = colour.zip(hit).map(|((meter, _), colour)| (meter, colour));
        }
        (state.records.get(handle(found)), colour)
    }
}
