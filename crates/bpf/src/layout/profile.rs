//! Lays out action profiles.
//!
//! ```text
//! record of a table ─> number of a call ──────────────────────────────────> record of the call: action, arguments
//!                   └> number of a group ─> block of its choices ─ hash ─┘
//! ```
//!
//! The numbers of calls are those of default actions first, then those of members, and then those of calls that entries
//! name themselves. 0 stands for no action: that of a group none of whose members has a port that is up.

use ir::{Algorithm, ProfileId, Program, TableId};
use tables::flat::FlatChoices;

use super::{Allocator, Unsupported, room};
use crate::usage::Usage;

/// Least number of members and of groups that the switch accepts.
const MIN_MEMBERS: u64 = 1024;
/// Number of words for choices that are reserved for each group, and for each entry.
const CHOICES_OF: [u64; 2] = [8, 4];

/// Bit of a record that refers to a group. Numbers of calls and groups are less.
pub(crate) const GROUP: u32 = 1 << 29;

/// Takes the place of a group's block if it has too many choices, or there is no room for them.
pub(crate) const NO_BLOCK: u64 = u32::MAX as u64;

/// The calls and groups of an action profile. Offsets are those of the first copy, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlatProfile {
    pub calls: u32,
    /// Number of words of a call: the id of its action plus 1, and the arguments.
    pub call_words: u32,
    /// Number of the first member.
    pub members: u32,
    /// Number of the first call that entries name themselves.
    pub others: u32,
    /// Number of calls, that of no action included.
    pub call_count: u32,
    /// The groups, if the profile has a selector.
    pub groups: Option<FlatGroups>,
}

/// The groups of a profile: those of the control plane, and those that entries name themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlatGroups {
    pub algorithm: Algorithm,
    /// A word for each group: the name of the block of its choices, 0 for none, or [`tables::flat::UNSEARCHABLE`].
    pub blocks: u32,
    pub count: u32,
    pub shape: FlatChoices,
    pub choices: u32,
}

/// Returns the tables of a profile that the pipeline applies.
pub(super) fn tables_of(program: &Program, usage: &Usage, profile: ProfileId) -> impl Iterator<Item = TableId> {
    usage.tables.iter().copied().filter(move |table| program.tables[*table].profile == Some(profile))
}

impl FlatProfile {
    /// Returns the layout of a profile whose tables have no more than `limit` entries each; `None` if there is no room.
    pub(super) fn new(
        program: &Program,
        usage: &Usage,
        (id, limit): (ProfileId, u64),
        bytes: &mut Allocator,
    ) -> Result<Option<FlatProfile>, Unsupported> {
        let profile = &program.profiles[id];
        let tables = || tables_of(program, usage, id).map(|table| &program.tables[table]);
        let entries = tables().map(|table| room(table, limit)).fold(0, u64::saturating_add);
        let members = profile.size.max(MIN_MEMBERS);
        let first_member = 1 + tables().count() as u64;
        let calls = first_member.saturating_add(members).saturating_add(entries);
        let params =
            tables().flat_map(|table| &table.actions).map(|action| program.actions[action.action].params.len());
        let call_words = 1 + params.max().unwrap_or(0) as u64;
        let count = members.saturating_add(entries);
        if calls.saturating_mul(call_words).saturating_add(count) > bytes.words_left() {
            return Ok(None);
        }
        let shape = FlatChoices::new((members * CHOICES_OF[0] + entries * CHOICES_OF[1]) as usize);
        if calls * call_words + count + shape.words() as u64 > bytes.words_left() {
            return Ok(None);
        }
        let groups = match profile.selector {
            None => None,
            Some(algorithm) => Some(FlatGroups {
                algorithm,
                blocks: bytes.take(count)?,
                count: count as u32,
                shape,
                choices: bytes.take(shape.words() as u64)?,
            }),
        };
        Ok(Some(FlatProfile {
            calls: bytes.take(calls * call_words)?,
            call_words: call_words as u32,
            members: first_member as u32,
            others: (first_member + members) as u32,
            call_count: calls as u32,
            groups,
        }))
    }
}
