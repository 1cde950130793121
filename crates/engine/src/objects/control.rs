//! Holds the state that the control plane writes and packets only read: one version of it, and the changes that lead to
//! the next.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cranelift_entity::PrimaryMap;
use ir::{KeyValue, ProfileId, TableId, ValueSetId};
use tables::publish::Absorb;

use super::profile::UseChange;
use super::{ActionCall, ActionSpec, GroupMember, TableEntry, TableState, profile, value_set};
use crate::algorithm::Algorithms;
use crate::tables::{Backend, Handle};

/// A version. A worker sees the same version from the start of a batch to its end.
#[derive(Clone, Debug)]
pub(crate) struct ControlState {
    pub(crate) tables: PrimaryMap<TableId, TableState>,
    pub(crate) profiles: PrimaryMap<ProfileId, profile::ProfileMembers>,
    pub(crate) value_sets: PrimaryMap<ValueSetId, value_set::ValueSetMembers>,
    /// Ports that are down, for groups that watch them.
    pub(crate) down: BTreeSet<u32>,
    pub(crate) algorithms: Algorithms,
    /// State that the architecture attaches.
    pub(crate) attached: Attached,
    pub(crate) revision: Revision,
    /// Number of changes other than of entries. Wraps around.
    pub(crate) other_changes: u32,
}

/// A number that identifies one copy of a version until it is changed: addresses of its memory are valid as long as the
/// number is the same.
pub(crate) struct Revision(pub(crate) u64);

impl Revision {
    /// Creates a number that has never been used.
    pub(crate) fn new() -> Revision {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Revision(LAST.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// Prints no number, as it is not part of the control plane's state.
impl std::fmt::Debug for Revision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Revision")
    }
}

impl Clone for Revision {
    fn clone(&self) -> Revision {
        Revision::new()
    }
}

/// State that an architecture publishes together with tables.
#[derive(Clone)]
pub(crate) struct Attached(pub(crate) Arc<dyn Any + Send + Sync>);

impl std::fmt::Debug for Attached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Attached")
    }
}

/// A request that has been checked.
#[derive(Debug)]
pub(crate) enum ControlChange {
    /// An entry, whether it is constant, and the time it was written.
    Add(TableId, Box<TableEntry>, bool, u64),
    /// The replacement of an entry with the same key, and the time it was written.
    Replace(TableId, Handle, Box<TableEntry>, u64),
    Take(TableId, Handle),
    /// The start of a load, and its approximate number of entries.
    BeginLoad(TableId, usize),
    FinishLoad(TableId),
    Default(TableId, ActionCall),
    Backend(TableId, Box<dyn Backend>),
    InsertMember(ProfileId, u32, ActionCall),
    ModifyMember(ProfileId, u32, ActionCall),
    DeleteMember(ProfileId, u32),
    /// Group, its members, and its maximum size.
    InsertGroup(ProfileId, u32, Vec<GroupMember>, u32),
    ModifyGroup(ProfileId, u32, Vec<GroupMember>),
    DeleteGroup(ProfileId, u32),
    AddToSet(ValueSetId, Vec<KeyValue>),
    TakeFromSet(ValueSetId, usize),
    ClearSet(ValueSetId),
    /// A port, and whether it is up.
    Port(u32, bool),
    Algorithms(Box<Algorithms>),
    Attach(Attached),
}

impl ControlChange {
    /// Whether packets can notice the change and no table counts it. Tables count changes of their entries.
    fn is_other(&self) -> bool {
        use ControlChange::{Add, Backend, BeginLoad, FinishLoad, Replace, Take};
        !matches!(self, Add(..) | Replace(..) | Take(..) | BeginLoad(..) | FinishLoad(_) | Backend(..))
    }
}

impl Absorb<ControlChange> for ControlState {
    fn absorb(&mut self, change: &ControlChange) {
        self.revision = Revision::new();
        self.other_changes = self.other_changes.wrapping_add(u32::from(change.is_other()));
        match change {
            ControlChange::Add(table, entry, constant, now_ns) => {
                self.count_uses(*table, &entry.action, UseChange::Begins);
                self.tables[*table].add(entry, *constant, *now_ns);
            }
            ControlChange::Replace(table, handle, entry, now_ns) => {
                self.count_uses(*table, &entry.action, UseChange::Begins);
                let before = self.tables[*table].replace(*handle, entry, *now_ns);
                self.count_uses(*table, &before, UseChange::Ends);
            }
            ControlChange::Take(table, handle) => {
                let before = self.tables[*table].take(*handle);
                self.count_uses(*table, &before, UseChange::Ends);
            }
            ControlChange::BeginLoad(table, more) => self.tables[*table].backend.begin_load(*more),
            ControlChange::FinishLoad(table) => self.tables[*table].backend.finish_load(),
            ControlChange::Default(table, call) => self.tables[*table].set_default(call.clone()),
            ControlChange::Backend(table, backend) => self.tables[*table].move_to(backend.copy()),
            ControlChange::InsertMember(id, member, call) => self.profiles[*id].insert_member(*member, call.clone()),
            ControlChange::ModifyMember(id, member, call) => self.profiles[*id].modify_member(*member, call.clone()),
            ControlChange::DeleteMember(id, member) => self.profiles[*id].delete_member(*member),
            ControlChange::InsertGroup(id, group, members, max) => {
                self.profiles[*id].insert_group(*group, members.clone(), *max);
            }
            ControlChange::ModifyGroup(id, group, members) => self.profiles[*id].modify_group(*group, members.clone()),
            ControlChange::DeleteGroup(id, group) => self.profiles[*id].delete_group(*group),
            ControlChange::AddToSet(set, member) => self.value_sets[*set].add(member.clone()),
            ControlChange::TakeFromSet(set, at) => self.value_sets[*set].take(*at),
            ControlChange::ClearSet(set) => self.value_sets[*set].clear(),
            ControlChange::Port(port, true) => _ = self.down.remove(port),
            ControlChange::Port(port, false) => _ = self.down.insert(*port),
            ControlChange::Algorithms(algorithms) => self.algorithms = (**algorithms).clone(),
            ControlChange::Attach(attached) => self.attached = attached.clone(),
        }
    }
}

impl ControlState {
    /// Increments or decrements the use counts of everything an entry refers to.
    fn count_uses(&mut self, table: TableId, spec: &ActionSpec, change: UseChange) {
        let profile = self.tables[table].profile.map(|profile| &mut self.profiles[profile]);
        match (spec, profile) {
            (ActionSpec::Member(id), Some(profile)) => profile.count_member(*id, change),
            (ActionSpec::Group(id), Some(profile)) => profile.count_group(*id, change),
            _ => {}
        }
    }
}
