//! Records: the result of a lookup for compiled code, with the action and its arguments as words, ready to be loaded.
//!
//! ```text
//! bits 0..14    index of the action in the table's list, all ones for none
//! bit 14        set if the action comes from a profile
//! bit 15        set for a hit
//! bits 16..     the arguments in order, as [`record_places`] returns
//! ```

use std::sync::Arc;

use bits::Bits;
use ir::{MatchKind, MeterId, TableId};
use smallvec::SmallVec;

use super::row_tables::JudgedMiss;
use super::{ActionCall, ActionSpec, Colour, Objects};
use crate::tables::{Handle, Lookup};

/// Bit of a record's first word that is set for a hit.
pub const RECORD_HIT: u64 = 1 << 15;
/// Bit that is set if the entry's action comes from a profile; compiled code never sees it.
const RECORD_INDIRECT: u64 = 1 << 14;
/// Mask of the action index.
pub const RECORD_ACTION: u64 = (1 << 14) - 1;
/// Action index of a hit that runs no action, or of an action whose index exceeds the field.
pub const RECORD_NO_ACTION: u64 = RECORD_ACTION;

/// Maximum size in words of records that stay in near caches: 64 KiB.
const NEAR_WORDS: usize = 1 << 13;

/// Returns the position of each argument of an action in its records: word and lowest bit. Arguments of up to 64 bits
/// share words where they fit; wider ones begin a word and continue in the following ones.
pub fn record_places(widths: &[u32]) -> Vec<(usize, u32)> {
    let mut next = 16u64;
    let place = |width: &u32| {
        if next % 64 + u64::from(*width) > 64 {
            next = next.next_multiple_of(64);
        }
        let at = ((next / 64) as usize, (next % 64) as u32);
        next += u64::from(*width);
        at
    };
    widths.iter().map(place).collect()
}

/// The records of one table: the default action's, then one for each handle.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records {
    stride: usize,
    words: Vec<u64>,
    /// Widths of the parameters of each action.
    params: Arc<[Box<[u32]>]>,
}

/// Returns the number of words of a record with arguments of these widths.
fn words_of(widths: &[u32]) -> usize {
    let last = record_places(widths).into_iter().zip(widths).next_back();
    last.map_or(1, |((word, bit), width)| (word + (bit + width).div_ceil(64) as usize).max(1))
}

fn write(record: &mut [u64], head: u64, args: &[Bits]) {
    record.fill(0);
    record[0] = head;
    let widths: SmallVec<[u32; 8]> = args.iter().map(Bits::width).collect();
    for (arg, (word, bit)) in args.iter().zip(record_places(&widths)) {
        for index in 0..(arg.width() as usize).div_ceil(64) {
            record[word + index] |= arg.word(index) << bit;
        }
    }
}

impl Records {
    pub(crate) fn new(params: &[&[u32]]) -> Self {
        let stride = params.iter().map(|widths| words_of(widths)).max().unwrap_or(1);
        Records { stride, words: vec![0; stride], params: params.iter().map(|widths| Box::from(*widths)).collect() }
    }

    /// Whether records can hold the action with this index in the table's list.
    pub(crate) fn can_hold(index: usize) -> bool {
        (index as u64) < RECORD_NO_ACTION
    }

    pub(crate) fn set_default(&mut self, index: usize, call: &ActionCall) {
        write(&mut self.words[..self.stride], index as u64, &call.args);
    }

    /// Writes the record of an entry; `index` is the index of a direct action in the table's list.
    pub(crate) fn set(&mut self, handle: Handle, spec: &ActionSpec, index: usize) {
        let start = (handle.0 as usize + 1) * self.stride;
        if self.words.len() < start + self.stride {
            let missing = start + self.stride - self.words.len();
            tables::reserve_gently(&mut self.words, missing);
            self.words.resize(start + self.stride, 0);
        }
        let record = &mut self.words[start..start + self.stride];
        match spec {
            ActionSpec::Direct(call) => write(record, RECORD_HIT | index as u64, &call.args),
            _ => write(record, RECORD_HIT | RECORD_INDIRECT, &[]),
        }
    }

    /// Returns the record of an entry with this action, whose index in the table's list is `index`.
    pub(crate) fn of(&self, call: &ActionCall, index: usize) -> SmallVec<[u64; 4]> {
        let mut record = SmallVec::from_elem(0, self.stride);
        write(&mut record, RECORD_HIT | index as u64, &call.args);
        record
    }

    /// Returns the action of an entry, as its index in the table's list, and its arguments.
    pub(crate) fn call(&self, handle: Handle) -> (usize, Vec<Bits>) {
        let record = self.get(Some(handle));
        let index = (record[0] & RECORD_ACTION) as usize;
        let widths = &self.params[index];
        let arg = |((word, bit), width): ((usize, u32), &u32)| match width {
            0 => Bits::zero(0),
            1..=64 => Bits::new(u128::from(record[word] >> bit), *width),
            _ => Bits::from_words(&record[word..][..width.div_ceil(64) as usize], *width),
        };
        (index, record_places(widths).into_iter().zip(widths).map(arg).collect())
    }

    /// Allocates memory for one record.
    pub(crate) fn blank(&self) -> Vec<u64> {
        vec![0; self.stride]
    }

    /// Returns the total size in bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.words[..])
    }

    /// Whether all records fit in near caches, where prefetching only costs time.
    #[inline]
    pub(crate) fn are_near(&self) -> bool {
        self.words.len() < NEAR_WORDS
    }

    #[inline]
    pub(crate) fn get(&self, handle: Option<Handle>) -> &[u64] {
        let start = handle.map_or(0, |handle| (handle.0 as usize + 1) * self.stride);
        &self.words[start..start + self.stride]
    }
}

/// Result of a lookup: the record to run, and the packet's colour from the table's direct meter.
pub type Applied<'a> = (&'a [u64], Option<(MeterId, Colour)>);

impl Objects {
    /// Returns the packing of a table's key, selectors included, for [`Objects::apply_words`].
    pub fn key_words(table: &ir::Table) -> crate::tables::KeyWords {
        crate::tables::KeyWords::new(table.keys.iter().map(|key| (key.width, key.kind)))
    }

    /// Looks up a packed key, counts and meters a hit, and returns the record to run; `None` if the result is pending,
    /// or the pass may not use the key's row.
    /// A direct meter's colour is `Green` on a miss.
    #[inline]
    pub fn apply_words(
        &mut self,
        id: TableId,
        table: &ir::Table,
        key: &[u64],
        bytes: u64,
        now_ns: u64,
    ) -> Option<Applied<'_>> {
        let control = self.side.control();
        let state = &control.tables[id];
        let found = match state.backend.lookup_words(&key[..state.words.matched.min(key.len())]) {
            Some(found) => found,
            None => {
                let values = state.words.unpack(key);
                let matched = table.keys.iter().zip(values).filter(|(key, _)| key.kind != MatchKind::Selector);
                let matched: SmallVec<[Bits; 4]> = matched.map(|(_, value)| value).collect();
                state.backend.lookup(&matched)
            }
        };
        let handle = match found {
            Lookup::Hit(handle) => Some(handle),
            Lookup::Miss if self.judges_misses(id) => {
                let key = state.words.unpack(key);
                match self.judge_miss(id, &key) {
                    JudgedMiss::Refused => return None,
                    JudgedMiss::Answered(row) => return Some((self.answer_record(row), None)),
                    JudgedMiss::Miss => None,
                }
            }
            Lookup::Miss => None,
            Lookup::Pending => return None,
        };
        if let (Some(handle), true) = (handle, self.is_recording()) {
            self.record_undo_of_hit(id, handle);
        }
        if let Some(handle) = handle {
            self.note_use(id, handle, now_ns);
        }
        let state = &self.side.control().tables[id];
        let mut colour = state.meter.map(|meter| (meter, Colour::Green));
        if let (Some(handle), true) = (handle, state.records_hits) {
            let hit = self.record_hit(id, state, handle, bytes, now_ns);
            colour = colour.zip(hit).map(|((meter, _), colour)| (meter, colour));
        }
        let record = state.records.get(handle);
        if state.profile.is_some() && record[0] & RECORD_INDIRECT != 0 {
            // An action from a profile has no record of its own: this scratch record is valid for the duration of one
            // action.
            let mut record = std::mem::take(&mut self.chosen[id]);
            let chosen = self.choose(id, table, handle, &state.words.unpack(key)).call;
            let (head, args) = chosen.as_ref().map_or((RECORD_NO_ACTION, [].as_slice()), |call| {
                let index = state.action_index(call.action).expect("entries are checked against the table's actions");
                (index as u64, call.args.as_slice())
            });
            write(&mut record, RECORD_HIT | head, args);
            self.chosen[id] = record;
            return Some((&self.chosen[id], colour));
        }
        Some((record, colour))
    }
}
