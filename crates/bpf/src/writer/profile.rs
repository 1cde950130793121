//! Writes the calls and groups of action profiles: see `layout/profile.rs`.
//!
//! Members have calls of their own. Equal calls that entries name themselves are one call, so that many entries with
//! the same few next hops take little room.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicU64;

use engine::{ActionCall, ActionSpec, ChangedEntry, GroupMember, Objects, WeightedCall};
use ir::{ProfileId, TableId};
use tables::flat::{ChoiceWriter, MAX_CHOICES};

use crate::layout::{FlatProfile, GROUP, NO_BLOCK};
use crate::region::store;
use crate::split::words_of;

/// Maximum number of groups without room that an update tries again, and of entries that it tries in vain.
pub(super) const MAX_RETRIES: usize = 64;

/// The owner of a group: the control plane, by the group's id, or an entry, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum GroupOwner {
    Named(u32),
    Entry(TableId, u32),
}

/// A group as it was written.
#[derive(Clone, Debug, Default)]
struct WrittenGroup {
    number: u32,
    /// The block of its choices, if it has one.
    block: Option<u64>,
    /// Ports on which its choices depend.
    watched: BTreeSet<u32>,
}

/// A choice of a group that is written: its weight, the port that it watches, and the number of its call.
type Choice = (u32, Option<u32>, u32);

/// Numbers that are in use or free.
#[derive(Clone, Debug)]
pub(super) struct Numbers {
    next: u32,
    end: u32,
    free: Vec<u32>,
}

impl Numbers {
    pub(super) fn new(first: u32, end: u32) -> Numbers {
        Numbers { next: first, end, free: Vec::new() }
    }

    /// Gives a number back.
    pub(super) fn free(&mut self, number: u32) {
        self.free.push(number);
    }

    pub(super) fn take(&mut self) -> Option<u32> {
        self.free.pop().or_else(|| {
            let number = (self.next < self.end).then_some(self.next);
            self.next += u32::from(number.is_some());
            number
        })
    }
}

/// The writer's own record of a profile in one copy.
#[derive(Clone, Debug)]
pub(super) struct CopiedProfile {
    /// Numbers of members' calls by their ids.
    members: BTreeMap<u32, u32>,
    member_numbers: Numbers,
    groups: BTreeMap<GroupOwner, WrittenGroup>,
    group_numbers: Numbers,
    choices: Option<ChoiceWriter>,
    /// Numbers of other calls by their words, and how many entries hold them.
    others: BTreeMap<Vec<u64>, (u32, u32)>,
    other_numbers: Numbers,
    /// The calls that an entry holds.
    held: BTreeMap<(TableId, u32), Vec<Vec<u64>>>,
    /// Groups for which there was no room.
    refused: BTreeSet<GroupOwner>,
    /// Whether there is more room since they were refused.
    has_freed: bool,
    /// The last one that was tried again.
    retried: Option<GroupOwner>,
}

impl CopiedProfile {
    pub(super) fn new(layout: &FlatProfile) -> CopiedProfile {
        CopiedProfile {
            members: BTreeMap::new(),
            member_numbers: Numbers::new(layout.members, layout.others),
            groups: BTreeMap::new(),
            group_numbers: Numbers::new(0, layout.groups.map_or(0, |groups| groups.count)),
            choices: layout.groups.map(|groups| ChoiceWriter::new(groups.shape)),
            others: BTreeMap::new(),
            other_numbers: Numbers::new(layout.others, layout.call_count),
            held: BTreeMap::new(),
            refused: BTreeSet::new(),
            has_freed: false,
            retried: None,
        }
    }

    /// Returns the groups that depend on one of these ports.
    fn watching(&self, ports: &BTreeSet<u32>) -> impl Iterator<Item = GroupOwner> {
        self.groups.iter().filter(|(_, group)| !group.watched.is_disjoint(ports)).map(|(owner, _)| *owner)
    }
}

/// A profile of one copy in a region.
#[derive(Clone, Copy)]
pub(super) struct ProfileView<'r> {
    pub id: ProfileId,
    pub layout: &'r FlatProfile,
    pub region: &'r [AtomicU64],
    /// Offset of the copy in bytes.
    pub base: u32,
    pub objects: &'r Objects,
}

/// Returns the words of a call.
fn words(call: &ActionCall) -> Vec<u64> {
    [u64::from(call.action.as_u32()) + 1].into_iter().chain(call.args.iter().flat_map(words_of)).collect()
}

impl ProfileView<'_> {
    /// Writes a call.
    pub(super) fn write_call(&self, number: u32, call: &ActionCall) {
        self.write_words(number, &words(call));
    }

    fn write_words(&self, number: u32, words: &[u64]) {
        let first = (self.layout.calls + self.base) / 8 + number * self.layout.call_words;
        (first..).zip(words).for_each(|(at, word)| store(self.region, at, *word));
    }

    /// Applies the changes of members and groups that the copy has missed; `None` if there is no room. The entries that
    /// are no more have been removed.
    pub(super) fn catch_up(&self, copied: &mut CopiedProfile, missed: &BTreeSet<ChangedEntry>) -> Option<()> {
        let (mut members, mut groups, mut ports) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        for change in missed {
            match change {
                ChangedEntry::Member(profile, id) if *profile == self.id => members.push(*id),
                ChangedEntry::Group(profile, id) if *profile == self.id => _ = groups.insert(GroupOwner::Named(*id)),
                ChangedEntry::Port(port) => _ = ports.insert(*port),
                _ => {}
            }
        }
        // Removals come first: they make room for insertions.
        for owner in &groups {
            if let GroupOwner::Named(id) = owner
                && self.objects.group(self.id, *id).is_none()
            {
                self.remove_group(copied, *owner);
            }
        }
        for id in &members {
            if self.objects.member(self.id, *id).is_none() {
                copied.member_numbers.free.extend(copied.members.remove(id));
            }
        }
        members.into_iter().try_for_each(|id| self.write_member(copied, id))?;
        groups.extend(copied.watching(&ports));
        groups.into_iter().try_for_each(|owner| self.write_group(copied, owner))
    }

    /// Writes the groups for which there was no room, if there is more of it now.
    pub(super) fn retry(&self, copied: &mut CopiedProfile) -> Option<()> {
        if std::mem::take(&mut copied.has_freed) {
            let last = copied.retried;
            let is_later = |owner: &&GroupOwner| last.is_none_or(|last| **owner > last);
            let (later, earlier): (Vec<GroupOwner>, Vec<GroupOwner>) = copied.refused.iter().partition(is_later);
            let some: Vec<GroupOwner> = later.into_iter().chain(earlier).take(MAX_RETRIES).collect();
            copied.retried = some.last().copied();
            some.into_iter().try_for_each(|owner| self.write_group(copied, owner))?;
            // An update takes bounded time, so others wait for the next one.
            copied.has_freed = copied.refused.len() > MAX_RETRIES;
        }
        Some(())
    }

    /// Writes a member, if it exists; `None` if there is no room.
    fn write_member(&self, copied: &mut CopiedProfile, id: u32) -> Option<()> {
        let Some(call) = self.objects.member(self.id, id) else { return Some(()) };
        let number = match copied.members.get(&id) {
            Some(number) => *number,
            None => copied.member_numbers.take()?,
        };
        copied.members.insert(id, number);
        self.write_call(number, call);
        Some(())
    }

    fn remove_group(&self, copied: &mut CopiedProfile, owner: GroupOwner) {
        copied.refused.remove(&owner);
        let Some(group) = copied.groups.remove(&owner) else { return };
        copied.group_numbers.free.push(group.number);
        self.free_block(copied, group.block);
    }

    fn free_block(&self, copied: &mut CopiedProfile, block: Option<u64>) {
        if let (Some(block), Some(choices)) = (block, &mut copied.choices) {
            choices.remove(block);
            copied.has_freed = true;
        }
    }

    /// Removes what an entry names itself.
    pub(super) fn release(&self, copied: &mut CopiedProfile, entry: (TableId, u32)) {
        self.remove_group(copied, GroupOwner::Entry(entry.0, entry.1));
        self.release_calls(copied, entry);
    }

    fn release_calls(&self, copied: &mut CopiedProfile, entry: (TableId, u32)) {
        for words in copied.held.remove(&entry).unwrap_or_default() {
            let Some((number, users)) = copied.others.get_mut(&words) else { continue };
            *users -= 1;
            if *users == 0 {
                copied.other_numbers.free.push(*number);
                copied.others.remove(&words);
                copied.has_freed = true;
            }
        }
    }

    /// Returns the number of a call that an entry names itself; `None` if there is no room.
    fn hold(&self, copied: &mut CopiedProfile, entry: (TableId, u32), call: &ActionCall) -> Option<u32> {
        let words = words(call);
        let number = match copied.others.get_mut(&words) {
            Some((number, users)) => {
                *users += 1;
                *number
            }
            None => {
                let number = copied.other_numbers.take()?;
                self.write_words(number, &words);
                copied.others.insert(words.clone(), (number, 1));
                number
            }
        };
        copied.held.entry(entry).or_default().push(words);
        Some(number)
    }

    /// Brings a group up to date. One that is no more, or is no longer the entry's, stays as it is.
    fn write_group(&self, copied: &mut CopiedProfile, owner: GroupOwner) -> Option<()> {
        match owner {
            GroupOwner::Named(id) => {
                let Some(members) = self.objects.group(self.id, id) else { return Some(()) };
                let choice = |member: &GroupMember| {
                    Some((member.weight, member.watch_port, *copied.members.get(&member.member)?))
                };
                let choices: Option<Vec<Choice>> = members.iter().map(choice).collect();
                self.write_choices(copied, owner, choices).map(drop)
            }
            GroupOwner::Entry(table, number) => match self.objects.entry_numbered(table, number) {
                Some((entry, _)) if matches!(entry.action, ActionSpec::OneShot(_)) => {
                    self.reference(copied, (table, number), &entry.action).map(drop)
                }
                _ => Some(()),
            },
        }
    }

    /// Writes a group, and returns its number; `None` if there is no room for groups. Packets to a group of too many
    /// choices, or without room for them (or for their calls: no `choices`), are handed over.
    fn write_choices(
        &self,
        copied: &mut CopiedProfile,
        owner: GroupOwner,
        choices: Option<Vec<Choice>>,
    ) -> Option<u32> {
        let groups = self.layout.groups?;
        let mut group = match copied.groups.remove(&owner) {
            Some(group) => group,
            None => WrittenGroup { number: copied.group_numbers.take()?, ..WrittenGroup::default() },
        };
        self.free_block(copied, group.block.take());
        group.watched = choices.iter().flatten().filter_map(|(_, port, _)| *port).collect();
        let is_up = |(_, port, _): &&Choice| port.is_none_or(|port| self.objects.is_port_up(port));
        let first = (groups.choices + self.base) as usize / 8;
        let memory = &self.region[first..first + groups.shape.words()];
        let up: Option<Vec<(u32, u32)>> =
            choices.map(|all| all.iter().filter(is_up).map(|(weight, _, number)| (*weight, *number)).collect());
        let block = match (&up, &mut copied.choices) {
            (Some(up), _) if up.is_empty() => 0,
            (Some(up), Some(writer)) => {
                group.block = writer.insert(memory, up).ok();
                group.block.unwrap_or(NO_BLOCK)
            }
            _ => NO_BLOCK,
        };
        store(self.region, (groups.blocks + self.base) / 8 + group.number, block);
        // More room does not help a group of too many choices.
        let is_too_large = up.is_some_and(|up| up.len() > MAX_CHOICES);
        match block == NO_BLOCK && !is_too_large {
            true => copied.refused.insert(owner),
            false => copied.refused.remove(&owner),
        };
        let number = group.number;
        copied.groups.insert(owner, group);
        Some(number)
    }

    /// Returns the number of the call or group of an entry, which is written if the entry names it itself; `None` if
    /// there is no room.
    pub(super) fn reference(
        &self,
        copied: &mut CopiedProfile,
        entry: (TableId, u32),
        action: &ActionSpec,
    ) -> Option<u32> {
        let owner = GroupOwner::Entry(entry.0, entry.1);
        self.release_calls(copied, entry);
        if let ActionSpec::OneShot(calls) = action {
            let choice = |one: &WeightedCall| Some((one.weight, one.watch_port, self.hold(copied, entry, &one.call)?));
            let choices: Option<Vec<Choice>> = calls.iter().map(choice).collect();
            if choices.is_none() {
                self.release_calls(copied, entry);
            }
            return Some(GROUP | self.write_choices(copied, owner, choices)?);
        }
        self.remove_group(copied, owner);
        match action {
            ActionSpec::Direct(call) => self.hold(copied, entry, call),
            ActionSpec::Member(id) => copied.members.get(id).copied(),
            ActionSpec::Group(id) => Some(GROUP | copied.groups.get(&GroupOwner::Named(*id))?.number),
            ActionSpec::OneShot(_) => None,
        }
    }
}
