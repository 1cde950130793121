//! Writes the records of tables: their actions and arguments.
//!
//! Entries with the same action and the same arguments share a record, unless they have words of their own beside it,
//! such as counts. Many routes have few next hops: their records stay in the first cache, so that a lookup waits for
//! the memory of its key alone.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::AtomicU64;

use engine::{ActionCall, ActionSpec, EntryHandle};
use ir::Program;

use super::TableView;
use super::profile::{CopiedProfile, Numbers, ProfileView};
use crate::layout::FlatTable;
use crate::region::{load, store};
use crate::split::words_of;

/// The numbers of a table's records in one copy.
#[derive(Clone, Debug)]
pub(super) struct Records {
    numbers: Numbers,
    /// Shared records by the hashes of their words. If two have the same hash, the later one is not shared.
    by_hash: HashMap<u64, u32>,
    /// The users of shared records, by their numbers.
    users: Vec<Users>,
}

/// The entries that share a record.
#[derive(Clone, Copy, Debug, Default)]
struct Users {
    /// Their number.
    count: u32,
    /// The hash of the record's words.
    hash: u64,
}

impl Records {
    pub(super) fn new(layout: &FlatTable) -> Records {
        Records::with_capacity(layout.capacity)
    }

    fn with_capacity(capacity: u32) -> Records {
        // Record 0 is that of the default action.
        let numbers = Numbers::new(1, capacity.saturating_add(1));
        Records { numbers, by_hash: HashMap::new(), users: Vec::new() }
    }

    /// Takes a record that is not shared.
    pub(super) fn take(&mut self) -> Option<u32> {
        self.numbers.take()
    }

    /// Gives back a record that is not shared.
    pub(super) fn free(&mut self, number: u32) {
        self.numbers.free(number);
    }

    /// Takes a record whose words have this hash, and says whether they are still to be written.
    fn share(&mut self, hash: u64, has_words: impl Fn(u32) -> bool) -> Option<(u32, bool)> {
        let present = self.by_hash.get(&hash).copied();
        if let Some(number) = present.filter(|number| has_words(*number)) {
            self.users[number as usize].count += 1;
            return Some((number, false));
        }
        let number = self.numbers.take()?;
        if present.is_none() {
            self.by_hash.insert(hash, number);
        }
        self.users.resize(self.users.len().max(number as usize + 1), Users::default());
        self.users[number as usize] = Users { count: 1, hash };
        Some((number, true))
    }

    /// Gives a shared record back.
    fn unshare(&mut self, number: u32) {
        let users = &mut self.users[number as usize];
        users.count -= 1;
        if users.count == 0 {
            if self.by_hash.get(&users.hash) == Some(&number) {
                self.by_hash.remove(&users.hash);
            }
            self.numbers.free(number);
        }
    }
}

fn hash_of(words: &[u64]) -> u64 {
    let mut hasher = DefaultHasher::new();
    words.hash(&mut hasher);
    hasher.finish()
}

impl<'r> TableView<'r> {
    fn record(&self, number: u32) -> &'r [AtomicU64] {
        let first = ((self.layout.records + self.base) / 8 + number * self.layout.record_words) as usize;
        &self.region[first..first + self.layout.record_words as usize]
    }

    fn words_at(&self, number: u32) -> impl Iterator<Item = u64> + use<'r> {
        let record = self.record(number);
        (0..record.len() as u32).map(|at| load(record, at))
    }

    /// Returns the words of a record with this action; `None` if the table does not have it.
    pub(super) fn record_words(&self, program: &Program, call: &ActionCall) -> Option<Vec<u64>> {
        let action = program.tables[self.id].actions.iter().position(|action| action.action == call.action)?;
        let mut words = vec![action as u64 + 1];
        words.extend(call.args.iter().flat_map(words_of));
        words.resize(self.layout.record_words as usize, 0);
        Some(words)
    }

    /// Takes a record with these words, instead of the one that an entry had. `None` if there is none, which happens to
    /// new entries only.
    pub(super) fn share_record(&self, records: &mut Records, before: Option<u32>, words: &[u64]) -> Option<u32> {
        // The record before is free then if no other entry has it.
        before.into_iter().for_each(|record| self.free_record(records, record));
        let (number, is_new) =
            records.share(hash_of(words), |number| self.words_at(number).eq(words.iter().copied()))?;
        if is_new {
            (0..).zip(words).for_each(|(at, word)| store(self.record(number), at, *word));
        }
        Some(number)
    }

    /// Gives back the record of an entry.
    pub(super) fn free_record(&self, records: &mut Records, number: u32) {
        if self.layout.shares_records() {
            records.unshare(number);
        } else {
            records.free(number);
        }
    }

    /// Writes the action of an entry to its record, which is not shared; `None` if there is no room.
    pub(super) fn write_action(
        &self,
        record: u32,
        (number, action): (u32, &ActionSpec),
        profile: Option<(ProfileView<'_>, &mut CopiedProfile)>,
        program: &Program,
    ) -> Option<()> {
        match (action, profile) {
            (action, Some((profile, copied))) => {
                self.write_reference(record, profile.reference(copied, (self.id, number), action)?);
                Some(())
            }
            (ActionSpec::Direct(call), None) => self.write_record(program, record, call),
            _ => None,
        }
    }

    /// Writes the default action; `None` if the table does not have it.
    pub(super) fn write_default(
        &self,
        program: &Program,
        call: &ActionCall,
        profile: Option<(ProfileView<'_>, u32)>,
    ) -> Option<()> {
        let Some((profile, number)) = profile else { return self.write_record(program, 0, call) };
        profile.write_call(number, call);
        self.write_reference(0, number);
        Some(())
    }

    /// Writes the record of a table with a profile.
    pub(super) fn write_reference(&self, number: u32, reference: u32) {
        store(self.region, (self.layout.records + self.base) / 8 + number, reference.into());
    }

    /// Writes the place of an entry's direct meter to its record, if the table has them.
    pub(super) fn write_meter(&self, record: u32, handle: EntryHandle) {
        let Some(cells) = self.layout.meter else { return };
        let last = (self.layout.records + self.base) / 8 + (record + 1) * self.layout.record_words - 2;
        store(self.region, last, if handle.number < cells.count { handle.number as u64 + 1 } else { 0 });
        store(self.region, last + 1, handle.generation.into());
    }

    /// Writes a record; `None` if the table does not have the action.
    pub(super) fn write_record(&self, program: &Program, number: u32, call: &ActionCall) -> Option<()> {
        let mut words = self.record_words(program, call)?;
        // The last ones belong to the meter.
        words.truncate(words.len() - if self.layout.meter.is_some() { 2 } else { 0 });
        (0..).zip(words).for_each(|(at, word)| store(self.record(number), at, word));
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_records_are_one_until_their_last_entry_goes() {
        let mut records = Records::with_capacity(2);
        let words = [0, 70, 80];
        let mut share = |hash, word| records.share(hash, |number| words[number as usize] == word);
        assert_eq!(share(7, 70), Some((1, true)));
        assert_eq!(share(7, 70), Some((1, false)));
        assert_eq!(share(8, 80), Some((2, true)));
        assert_eq!(share(9, 90), None, "there are two records");
        records.unshare(1);
        assert_eq!(records.share(9, |_| false), None, "an entry still has the first");
        records.unshare(1);
        assert_eq!(records.share(9, |_| false), Some((1, true)));
    }

    #[test]
    fn different_records_with_one_hash_are_apart() {
        let mut records = Records::with_capacity(3);
        let mut words = [0; 4];
        for (word, expected) in [(70, (1, true)), (80, (2, true)), (80, (3, true)), (70, (1, false))] {
            let (number, is_new) = records.share(7, |number| words[number as usize] == word).expect("there is room");
            words[number as usize] = word;
            assert_eq!((number, is_new), expected);
        }
        records.unshare(2);
        records.unshare(1);
        assert_eq!(records.share(7, |number| number == 1), Some((1, false)), "the second one was not that of the hash");
        records.unshare(1);
        records.unshare(1);
        assert_eq!(records.share(7, |_| panic!("no record has the hash")), Some((1, true)));
    }
}
