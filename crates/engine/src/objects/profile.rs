//! Stores action profiles: members that entries share, and groups of members with selection by hash.

use std::collections::{BTreeMap, BTreeSet};

use ir::{ActionId, Algorithm};

use super::{ActionCall, EntryError};

/// A member of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMember {
    /// Id of the member.
    pub member: u32,
    /// Weight; at least 1.
    pub weight: u32,
    /// Port that must be up for the member to be chosen.
    pub watch_port: Option<u32>,
}

#[derive(Clone, Debug)]
struct SelectorMember {
    call: ActionCall,
    users: u32,
}

#[derive(Clone, Debug)]
struct SelectorGroup {
    /// ProfileMembers in the order of their ids, so that the choice does not depend on the order of writes.
    members: Vec<GroupMember>,
    max_size: u32,
    users: u32,
}

/// The state of a profile.
#[derive(Clone, Debug)]
pub(crate) struct ProfileMembers {
    pub(crate) selector: Option<Algorithm>,
    /// Actions that entries of every table of the profile may use.
    pub(crate) actions: Vec<ActionId>,
    capacity: u64,
    members: BTreeMap<u32, SelectorMember>,
    groups: BTreeMap<u32, SelectorGroup>,
}

/// A change of the number of entries and groups that use a member or a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UseChange {
    Begins,
    Ends,
}

impl UseChange {
    fn apply(self, users: u32) -> u32 {
        match self {
            UseChange::Begins => users + 1,
            UseChange::Ends => users - 1,
        }
    }
}

/// A choice with a share of the hash values.
pub(crate) trait Share {
    fn weight(&self) -> u32;
    fn watch_port(&self) -> Option<u32>;
}

impl Share for GroupMember {
    fn weight(&self) -> u32 {
        self.weight
    }
    fn watch_port(&self) -> Option<u32> {
        self.watch_port
    }
}

impl Share for super::WeightedCall {
    fn weight(&self) -> u32 {
        self.weight
    }
    fn watch_port(&self) -> Option<u32> {
        self.watch_port
    }
}

/// Chooses by the hash modulo the sum of the weights of the choices whose port is up, counted off from the first; with
/// weights of 1 this is the hash modulo their number, as in BMv2. Returns `None` if every port is down.
pub(crate) fn choose<'a, T: Share>(all: &'a [T], hash: u64, down: &BTreeSet<u32>) -> Option<&'a T> {
    let up = || all.iter().filter(|share| share.watch_port().is_none_or(|port| !down.contains(&port)));
    let total: u64 = up().map(|share| u64::from(share.weight())).sum();
    let mut left = hash.checked_rem(total)?;
    for share in up() {
        let weight = u64::from(share.weight());
        if left < weight {
            return Some(share);
        }
        left -= weight;
    }
    None
}

/// Checks that weights are at least 1 and that their sum fits into 32 bits.
pub(crate) fn check_weights<T: Share>(all: &[T]) -> Result<(), EntryError> {
    let total: u64 = all.iter().map(|share| u64::from(share.weight())).sum();
    if all.iter().any(|share| share.weight() == 0) || total > u64::from(u32::MAX) {
        Err(EntryError::BadWeight)
    } else {
        Ok(())
    }
}

impl ProfileMembers {
    pub(crate) fn new(profile: &ir::Profile, actions: Vec<ActionId>) -> Self {
        ProfileMembers {
            selector: profile.selector,
            actions,
            capacity: profile.size.max(1024),
            members: BTreeMap::new(),
            groups: BTreeMap::new(),
        }
    }

    pub(crate) fn member(&self, id: u32) -> Option<&ActionCall> {
        self.members.get(&id).map(|member| &member.call)
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = (u32, &ActionCall)> {
        self.members.iter().map(|(id, member)| (*id, &member.call))
    }

    pub(crate) fn group(&self, id: u32) -> Option<&[GroupMember]> {
        self.groups.get(&id).map(|group| group.members.as_slice())
    }

    pub(crate) fn groups(&self) -> impl Iterator<Item = (u32, &[GroupMember], u32)> {
        self.groups.iter().map(|(id, group)| (*id, group.members.as_slice(), group.max_size))
    }

    /// Checks that a member with this id may be added.
    pub(crate) fn may_insert_member(&self, id: u32) -> Result<(), EntryError> {
        if self.members.contains_key(&id) {
            return Err(EntryError::Duplicate);
        }
        if self.members.len() as u64 >= self.capacity {
            return Err(EntryError::Full(self.capacity));
        }
        Ok(())
    }

    pub(crate) fn insert_member(&mut self, id: u32, call: ActionCall) {
        self.members.insert(id, SelectorMember { call, users: 0 });
    }

    pub(crate) fn modify_member(&mut self, id: u32, call: ActionCall) {
        self.members.get_mut(&id).expect("it was checked").call = call;
    }

    /// Checks that a member exists and that nothing refers to it.
    pub(crate) fn may_delete_member(&self, id: u32) -> Result<(), EntryError> {
        match self.members.get(&id).ok_or(EntryError::NotFound)?.users {
            0 => Ok(()),
            users => Err(EntryError::InUse(users)),
        }
    }

    pub(crate) fn delete_member(&mut self, id: u32) {
        self.members.remove(&id);
    }

    /// Checks the members of a group and sorts them by id. A `max_size` of 0 means no limit.
    fn checked(&self, mut members: Vec<GroupMember>, max_size: u32) -> Result<Vec<GroupMember>, EntryError> {
        if self.selector.is_none() {
            return Err(EntryError::NoSelector);
        }
        check_weights(&members)?;
        if max_size > 0 && members.len() > max_size as usize {
            return Err(EntryError::GroupTooLarge { max: max_size, got: members.len() });
        }
        if let Some(unknown) = members.iter().find(|member| !self.members.contains_key(&member.member)) {
            return Err(EntryError::NoSuchMember(unknown.member));
        }
        members.sort_by_key(|member| member.member);
        if members.windows(2).any(|pair| pair[0].member == pair[1].member) {
            return Err(EntryError::Duplicate);
        }
        Ok(members)
    }

    /// Returns the checked members of a group that may be added.
    pub(crate) fn new_group(
        &self,
        id: u32,
        members: Vec<GroupMember>,
        max_size: u32,
    ) -> Result<Vec<GroupMember>, EntryError> {
        let members = self.checked(members, max_size)?;
        if self.groups.contains_key(&id) {
            return Err(EntryError::Duplicate);
        }
        if self.groups.len() as u64 >= self.capacity {
            return Err(EntryError::Full(self.capacity));
        }
        Ok(members)
    }

    pub(crate) fn insert_group(&mut self, id: u32, members: Vec<GroupMember>, max_size: u32) {
        members.iter().for_each(|member| self.count_member(member.member, UseChange::Begins));
        self.groups.insert(id, SelectorGroup { members, max_size, users: 0 });
    }

    /// Returns the checked members that may replace those of a group.
    pub(crate) fn other_members(&self, id: u32, members: Vec<GroupMember>) -> Result<Vec<GroupMember>, EntryError> {
        let max_size = self.groups.get(&id).ok_or(EntryError::NotFound)?.max_size;
        self.checked(members, max_size)
    }

    pub(crate) fn modify_group(&mut self, id: u32, members: Vec<GroupMember>) {
        members.iter().for_each(|member| self.count_member(member.member, UseChange::Begins));
        let group = self.groups.get_mut(&id).expect("it was checked");
        let before = std::mem::replace(&mut group.members, members);
        before.iter().for_each(|member| self.count_member(member.member, UseChange::Ends));
    }

    /// Checks that a group exists and that no entry refers to it.
    pub(crate) fn may_delete_group(&self, id: u32) -> Result<(), EntryError> {
        match self.groups.get(&id).ok_or(EntryError::NotFound)?.users {
            0 => Ok(()),
            users => Err(EntryError::InUse(users)),
        }
    }

    pub(crate) fn delete_group(&mut self, id: u32) {
        let group = self.groups.remove(&id).expect("it was checked");
        group.members.iter().for_each(|member| self.count_member(member.member, UseChange::Ends));
    }

    /// Increments or decrements the use count of a member.
    pub(crate) fn count_member(&mut self, id: u32, change: UseChange) {
        let users = &mut self.members.get_mut(&id).expect("members in use exist").users;
        *users = change.apply(*users);
    }

    /// Increments or decrements the use count of a group.
    pub(crate) fn count_group(&mut self, id: u32, change: UseChange) {
        let users = &mut self.groups.get_mut(&id).expect("groups in use exist").users;
        *users = change.apply(*users);
    }
}
