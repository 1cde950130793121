//! What a lookup gives to compiled code: the action and its arguments as words, ready to be loaded.
//!
//! ```text
//! bits 0..14    index of the action in the table's list, all ones for none
//! bit 14        set if a profile has to be asked for the action
//! bit 15        set for a hit
//! bits 16..     the arguments in order, as [`record_places`] says
//! ```

use bits::Bits;
use ir::{MatchKind, MeterId, TableId};
use smallvec::SmallVec;

use super::{ActionCall, ActionSpec, Colour, Objects, Side};
use crate::tables::{Handle, Lookup};

/// The bit of a record's first word that says that an entry was hit.
pub const RECORD_HIT: u64 = 1 << 15;
/// The bit that says that the entry's action is to be had from a profile; compiled code never sees it.
const RECORD_INDIRECT: u64 = 1 << 14;
/// The bits of the action index.
pub const RECORD_ACTION: u64 = (1 << 14) - 1;
/// The action index of a hit that runs no action, or of an action beyond the largest number that there is room for.
pub const RECORD_NO_ACTION: u64 = RECORD_ACTION;

/// Fewer words than this are in near caches: 64 KiB.
const NEAR_WORDS: usize = 1 << 13;

/// Where the arguments of an action lie in its records: word and lowest bit of each. Arguments of up to 64 bits share
/// words where they fit, wider ones begin a word and go on in those that follow.
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
}

/// Words of a record with arguments of these widths.
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
        Records { stride, words: vec![0; stride] }
    }

    pub(crate) fn set_default(&mut self, index: usize, call: &ActionCall) {
        write(&mut self.words[..self.stride], index as u64, &call.args);
    }

    /// Notes what an entry does; `index` gives the place of an action in the table's list.
    pub(crate) fn set(&mut self, handle: Handle, spec: &ActionSpec, index: impl Fn(&ActionCall) -> usize) {
        let start = (handle.0 as usize + 1) * self.stride;
        if self.words.len() < start + self.stride {
            self.words.resize(start + self.stride, 0);
        }
        let record = &mut self.words[start..start + self.stride];
        match spec {
            ActionSpec::Direct(call) => write(record, RECORD_HIT | index(call) as u64, &call.args),
            _ => write(record, RECORD_HIT | RECORD_INDIRECT, &[]),
        }
    }

    /// Memory for one record.
    pub(crate) fn blank(&self) -> Vec<u64> {
        vec![0; self.stride]
    }

    /// How many bytes they take.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.words[..])
    }

    /// Whether they are few enough to be in near caches, where asking for memory early only costs.
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

/// What a lookup gives: the record of what is to run, and the colour that the table's direct meter gave the packet.
pub type Applied<'a> = (&'a [u64], Option<(MeterId, Colour)>);

impl Objects {
    /// The words of the key of a table, selectors included: what [`Objects::apply_words`] takes.
    pub fn key_words(table: &ir::Table) -> crate::tables::KeyWords {
        crate::tables::KeyWords::new(table.keys.iter().map(|key| (key.width, key.kind)))
    }

    /// Looks a key up that is given in words, counts and meters a hit, and gives the record of what is to run; `None`
    /// if the table does not answer yet. A direct meter's colour is `Green` on a miss.
    #[inline]
    pub fn apply_words(
        &mut self,
        id: TableId,
        table: &ir::Table,
        key: &[u64],
        bytes: u64,
        now_ns: u64,
    ) -> Option<Applied<'_>> {
        let control = match &self.side {
            Side::Owner(writer) => writer.latest(),
            Side::Worker(reader) => reader.pinned(),
        };
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
            Lookup::Miss => None,
            Lookup::Pending => return None,
        };
        let mut colour = state.meter.map(|meter| (meter, Colour::Green));
        if let (Some(handle), true) = (handle, state.records_hits) {
            let hit = self.note_hit(id, state, handle, bytes, now_ns);
            colour = colour.zip(hit).map(|((meter, _), colour)| (meter, colour));
        }
        let record = state.records.get(handle);
        if state.profile.is_some() && record[0] & RECORD_INDIRECT != 0 {
            // What a profile chooses has no record of its own: this one is lent for the length of one action.
            let mut record = std::mem::take(&mut self.chosen[id]);
            let chosen = self.choose(id, table, handle, &state.words.unpack(key)).call;
            let (head, args) = chosen.map_or((RECORD_NO_ACTION, [].as_slice()), |call| {
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
