//! Table lookups for executors: choice of the entry and of the action.

use bits::Bits;
use ir::{MatchKind, ProfileId, TableId};
use smallvec::SmallVec;

use super::{ActionCall, ActionSpec, Colour, Objects, TableState, choose};
use crate::BitString;
use crate::tables::{Handle, Lookup};

/// The result of a lookup.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chosen<'a> {
    /// Action; `None` if the entry's group has no member whose port is up.
    pub(crate) call: Option<&'a ActionCall>,
    /// The member of the table's profile that provided the action.
    pub(crate) member: Option<(ProfileId, u32)>,
}

impl Objects {
    /// Finds the entry for a key, which has all the table's elements, selectors included.
    pub(crate) fn look_up(&self, id: TableId, table: &ir::Table, key: &[Bits]) -> Lookup {
        let state = &self.control().tables[id];
        if !state.has_selectors {
            return state.backend.lookup(key);
        }
        let matched = table.keys.iter().zip(key).filter(|(key, _)| key.kind != MatchKind::Selector);
        let matched: SmallVec<[Bits; 4]> = matched.map(|(_, value)| value.clone()).collect();
        state.backend.lookup(&matched)
    }

    /// Counts and meters a hit with the entry's own counter and meter. Returns the colour, if the table has a meter.
    pub(crate) fn hit(&self, id: TableId, handle: Handle, bytes: u64, now_ns: u64) -> Option<Colour> {
        let state = &self.control().tables[id];
        if !state.records_hits {
            return None;
        }
        self.note_hit(id, state, handle, bytes, now_ns)
    }

    /// Counts and meters a hit in a table that records hits.
    #[inline]
    pub(crate) fn note_hit(
        &self,
        id: TableId,
        state: &TableState,
        handle: Handle,
        bytes: u64,
        now_ns: u64,
    ) -> Option<Colour> {
        let generation = u64::from(state.stored(handle).generation);
        self.tally.hit(id, handle, generation, bytes, now_ns);
        state.meter.map(|_| self.shared.direct[id].execute_direct(handle.0, generation, bytes, now_ns, self.several))
    }

    /// Returns the action to run for an entry, or for a miss.
    pub(crate) fn choose(&self, id: TableId, table: &ir::Table, entry: Option<Handle>, key: &[Bits]) -> Chosen<'_> {
        let state = &self.control().tables[id];
        let Some(entry) = entry else { return Chosen { call: Some(&state.default), member: None } };
        let in_profile = || {
            let id = state.profile.expect("entries with members belong to tables with profiles");
            (id, &self.control().profiles[id])
        };
        match &state.stored(entry).entry.action {
            ActionSpec::Direct(call) => Chosen { call: Some(call), member: None },
            ActionSpec::Member(member) => {
                let (id, profile) = in_profile();
                Chosen { call: profile.member(*member), member: Some((id, *member)) }
            }
            ActionSpec::Group(group) => {
                let (id, profile) = in_profile();
                let members = profile.group(*group).unwrap_or_default();
                let member = choose(members, self.selector_hash(id, table, key), &self.control().down);
                let member = member.map(|member| member.member);
                Chosen {
                    call: member.and_then(|member| profile.member(member)),
                    member: member.map(|member| (id, member)),
                }
            }
            ActionSpec::OneShot(calls) => {
                let (id, _) = in_profile();
                let chosen = choose(calls, self.selector_hash(id, table, key), &self.control().down);
                Chosen { call: chosen.map(|weighted| &weighted.call), member: None }
            }
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
