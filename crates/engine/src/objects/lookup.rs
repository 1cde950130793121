//! Looks up tables for executors: finds the entry of a key, and selects the action of an entry or a miss.

use std::borrow::Cow;

use bits::Bits;
use ir::{MatchKind, ProfileId, TableId};
use smallvec::SmallVec;

use super::entry_store::StoredAction;
use super::rows::Undo;
use super::{ActionCall, ActionSpec, Colour, Objects, TableState, choose};
use crate::BitString;
use crate::tables::{Handle, Lookup};

/// The action that a lookup selects, and the member that provided it.
#[derive(Clone, Debug)]
pub(crate) struct SelectedAction<'a> {
    /// Action; `None` if no usable member exists: the member is unknown, or no member of the group or one-shot list has
    /// a port that is up.
    pub(crate) call: Option<Cow<'a, ActionCall>>,
    /// The member of the table's profile that provided the action.
    pub(crate) member: Option<(ProfileId, u32)>,
}

impl Objects {
    /// Finds the entry for a key. `key` has a value for each key element, selector elements included.
    pub(crate) fn look_up(&self, id: TableId, table: &ir::Table, key: &[Bits]) -> Lookup {
        let state = &self.control().tables[id];
        if !state.has_selectors {
            return state.backend.lookup(key);
        }
        let matched = table.keys.iter().zip(key).filter(|(key, _)| key.kind != MatchKind::Selector);
        let matched: SmallVec<[Bits; 4]> = matched.map(|(_, value)| value.clone()).collect();
        state.backend.lookup(&matched)
    }

    /// Updates the table's direct counter and direct meter for a hit, if it records hits. Returns the colour, if the
    /// table has a meter.
    pub(crate) fn record_hit_if_needed(
        &mut self,
        id: TableId,
        handle: Handle,
        bytes: u64,
        now_ns: u64,
    ) -> Option<Colour> {
        self.note_use(id, handle, now_ns);
        if !self.control().tables[id].records_hits {
            return None;
        }
        if self.is_recording() {
            self.record_undo_of_hit(id, handle);
        }
        self.record_hit(id, &self.control().tables[id], handle, bytes, now_ns)
    }

    /// Records what undoes a hit, if the table records hits.
    pub(super) fn record_undo_of_hit(&mut self, id: TableId, handle: Handle) {
        let state = &self.control().tables[id];
        if !state.records_hits {
            return;
        }
        let generation = u64::from(state.entries.generation(handle));
        let hits = self.tally.hits(id, handle, generation).unwrap_or_default();
        let meter = state.meter.and_then(|_| self.shared.direct[id].state(u64::from(handle.0), self.several));
        self.record(Undo::Hit(id, handle, generation, hits));
        meter.into_iter().for_each(|meter| self.record(Undo::DirectMeter(id, handle.0, meter)));
    }

    /// Updates the direct counter and direct meter for a hit in a table that records hits.
    #[inline]
    pub(crate) fn record_hit(
        &self,
        id: TableId,
        state: &TableState,
        handle: Handle,
        bytes: u64,
        now_ns: u64,
    ) -> Option<Colour> {
        // The generation distinguishes the entry from earlier ones with the same handle.
        let generation = u64::from(state.entries.generation(handle));
        self.tally.hit(id, handle, generation, bytes, now_ns);
        state.meter.map(|_| self.shared.direct[id].execute_direct(handle.0, generation, bytes, now_ns, self.several))
    }

    /// Returns the action to run for an entry, or for a miss.
    pub(crate) fn choose(
        &self,
        id: TableId,
        table: &ir::Table,
        entry: Option<Handle>,
        key: &[Bits],
    ) -> SelectedAction<'_> {
        let state = &self.control().tables[id];
        let Some(entry) = entry else {
            return SelectedAction { call: Some(Cow::Borrowed(&state.default)), member: None };
        };
        let in_profile = || {
            let id = state.profile.expect("entries with members belong to tables with profiles");
            (id, &self.control().profiles[id])
        };
        match state.entries.action(entry) {
            StoredAction::InRecord => {
                SelectedAction { call: Some(Cow::Owned(state.recorded_call(entry))), member: None }
            }
            StoredAction::Member(member) => {
                let (id, profile) = in_profile();
                SelectedAction { call: profile.member(member).map(Cow::Borrowed), member: Some((id, member)) }
            }
            StoredAction::Group(group) => {
                let (id, profile) = in_profile();
                let members = profile.group(group).unwrap_or_default();
                let member = choose(members, self.selector_hash(id, table, key), &self.control().down);
                let member = member.map(|member| member.member);
                SelectedAction {
                    call: member.and_then(|member| profile.member(member)).map(Cow::Borrowed),
                    member: member.map(|member| (id, member)),
                }
            }
            StoredAction::Other(ActionSpec::OneShot(calls)) => {
                let (id, _) = in_profile();
                let chosen = choose(calls, self.selector_hash(id, table, key), &self.control().down);
                SelectedAction { call: chosen.map(|weighted| Cow::Borrowed(&weighted.call)), member: None }
            }
            StoredAction::Other(ActionSpec::Direct(call)) => {
                SelectedAction { call: Some(Cow::Borrowed(call)), member: None }
            }
            StoredAction::Other(other) => unreachable!("{other:?} is stored as a reference"),
        }
    }

    /// Returns the hash of the selector elements of the key, concatenated bit by bit. As in BMv2, its whole width is
    /// used, regardless of the width that the program declares for the selector.
    fn selector_hash(&self, profile: ProfileId, table: &ir::Table, key: &[Bits]) -> u64 {
        let Some(algorithm) = self.control().profiles[profile].selector else { return 0 };
        let mut data = BitString::new();
        let selectors = table.keys.iter().zip(key).filter(|(key, _)| key.kind == MatchKind::Selector);
        selectors.for_each(|(_, value)| data.push(value));
        self.control().algorithms.compute(algorithm, &data).low_u64()
    }
}
