//! What the control plane writes and packets only read: one version of it, and the changes that lead to the next.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cranelift_entity::PrimaryMap;
use ir::{KeyValue, ProfileId, TableId, ValueSetId};
use tables::publish::Absorb;

use super::{ActionCall, ActionSpec, GroupMember, TableEntry, TableState, profile, value_set};
use crate::algorithm::Algorithms;
use crate::tables::{Backend, Handle};

/// A version. Workers see one from the begin of a batch to its end.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    pub(crate) tables: PrimaryMap<TableId, TableState>,
    pub(crate) profiles: PrimaryMap<ProfileId, profile::Members>,
    pub(crate) value_sets: PrimaryMap<ValueSetId, value_set::Members>,
    /// Ports that are down, for the groups that watch them.
    pub(crate) down: BTreeSet<u32>,
    pub(crate) algorithms: Algorithms,
    /// What an architecture keeps besides.
    pub(crate) attached: Attached,
    pub(crate) revision: Revision,
}

/// A number that only this copy of a version has, and only until it is changed: memory that it was seen to have is
/// where it was as long as the number is the same.
pub(crate) struct Revision(pub(crate) u64);

impl Revision {
    /// Another one than there ever was.
    pub(crate) fn new() -> Revision {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Revision(LAST.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// It is no part of what the control plane wrote.
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

/// What an architecture publishes together with tables.
#[derive(Clone)]
pub(crate) struct Attached(pub(crate) Arc<dyn Any + Send + Sync>);

impl std::fmt::Debug for Attached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Attached")
    }
}

/// A request that has been checked.
#[derive(Debug)]
pub(crate) enum Change {
    /// An entry, whether it is the program's own, and when it was written.
    Add(TableId, Arc<TableEntry>, bool, u64),
    /// Another entry in the place of one with its key, and when it was written.
    Replace(TableId, Handle, Arc<TableEntry>, u64),
    Take(TableId, Handle),
    Default(TableId, ActionCall),
    Backend(TableId, Box<dyn Backend>),
    InsertMember(ProfileId, u32, ActionCall),
    ModifyMember(ProfileId, u32, ActionCall),
    DeleteMember(ProfileId, u32),
    /// Group, its members, its largest size.
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

impl Absorb<Change> for Control {
    fn absorb(&mut self, change: &Change) {
        self.revision = Revision::new();
        match change {
            Change::Add(table, entry, constant, now_ns) => {
                self.use_action(*table, &entry.action, true);
                self.tables[*table].add(entry.clone(), *constant, *now_ns);
            }
            Change::Replace(table, handle, entry, now_ns) => {
                self.use_action(*table, &entry.action, true);
                let before = self.tables[*table].replace(*handle, entry.clone(), *now_ns);
                self.use_action(*table, &before.action, false);
            }
            Change::Take(table, handle) => {
                let before = self.tables[*table].take(*handle);
                self.use_action(*table, &before.action, false);
            }
            Change::Default(table, call) => self.tables[*table].set_default(call.clone()),
            Change::Backend(table, backend) => self.tables[*table].move_to(backend.copy()),
            Change::InsertMember(id, member, call) => self.profiles[*id].insert_member(*member, call.clone()),
            Change::ModifyMember(id, member, call) => self.profiles[*id].modify_member(*member, call.clone()),
            Change::DeleteMember(id, member) => self.profiles[*id].delete_member(*member),
            Change::InsertGroup(id, group, members, max) => {
                self.profiles[*id].insert_group(*group, members.clone(), *max);
            }
            Change::ModifyGroup(id, group, members) => self.profiles[*id].modify_group(*group, members.clone()),
            Change::DeleteGroup(id, group) => self.profiles[*id].delete_group(*group),
            Change::AddToSet(set, member) => self.value_sets[*set].add(member.clone()),
            Change::TakeFromSet(set, at) => self.value_sets[*set].take(*at),
            Change::ClearSet(set) => self.value_sets[*set].clear(),
            Change::Port(port, true) => _ = self.down.remove(port),
            Change::Port(port, false) => _ = self.down.insert(*port),
            Change::Algorithms(algorithms) => self.algorithms = (**algorithms).clone(),
            Change::Attach(attached) => self.attached = attached.clone(),
        }
    }
}

impl Control {
    /// Counts what an entry refers to as used once more, or once less.
    fn use_action(&mut self, table: TableId, spec: &ActionSpec, more: bool) {
        let profile = self.tables[table].profile.map(|profile| &mut self.profiles[profile]);
        match (spec, profile) {
            (ActionSpec::Member(id), Some(profile)) => profile.use_member(*id, more),
            (ActionSpec::Group(id), Some(profile)) => profile.use_group(*id, more),
            _ => {}
        }
    }
}
