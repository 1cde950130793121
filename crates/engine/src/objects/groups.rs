//! The control plane's requests to action profiles.

use ir::ProfileId;

use super::{ActionCall, EntryError, GroupMember, Objects};

impl Objects {
    /// Adds a member to a profile.
    ///
    /// # Errors
    /// `Duplicate`, `Full`, `ActionNotInProfile`, and what can be wrong
    /// with arguments.
    pub fn insert_member(&mut self, profile: ProfileId, id: u32, call: ActionCall) -> Result<(), EntryError> {
        self.check_member(profile, &call)?;
        self.profiles[profile].insert_member(id, call)
    }

    /// Gives a member another action; entries and groups follow.
    ///
    /// # Errors
    /// As [`Objects::insert_member`], and `NotFound`.
    pub fn modify_member(&mut self, profile: ProfileId, id: u32, call: ActionCall) -> Result<(), EntryError> {
        self.check_member(profile, &call)?;
        self.profiles[profile].modify_member(id, call)
    }

    /// Takes a member away.
    ///
    /// # Errors
    /// `NotFound`; `InUse` while an entry or group refers to it.
    pub fn delete_member(&mut self, profile: ProfileId, id: u32) -> Result<(), EntryError> {
        self.profiles[profile].delete_member(id)
    }

    /// A member.
    pub fn member(&self, profile: ProfileId, id: u32) -> Option<&ActionCall> {
        self.profiles[profile].member(id)
    }

    /// All members, in the order of their ids.
    pub fn members(&self, profile: ProfileId) -> impl Iterator<Item = (u32, &ActionCall)> {
        self.profiles[profile].members()
    }

    /// Adds a group; a `max_size` of 0 is no limit.
    ///
    /// # Errors
    /// `NoSelector`, `Duplicate` (the group, or one of its members twice), `Full`, `NoSuchMember`, `BadWeight`,
    /// `GroupTooLarge`.
    pub fn insert_group(
        &mut self,
        profile: ProfileId,
        id: u32,
        members: Vec<GroupMember>,
        max_size: u32,
    ) -> Result<(), EntryError> {
        self.profiles[profile].insert_group(id, members, max_size)
    }

    /// Gives a group other members.
    ///
    /// # Errors
    /// As [`Objects::insert_group`], and `NotFound`.
    pub fn modify_group(&mut self, profile: ProfileId, id: u32, members: Vec<GroupMember>) -> Result<(), EntryError> {
        self.profiles[profile].modify_group(id, members)
    }

    /// Takes a group away.
    ///
    /// # Errors
    /// `NotFound`; `InUse` while an entry refers to it.
    pub fn delete_group(&mut self, profile: ProfileId, id: u32) -> Result<(), EntryError> {
        self.profiles[profile].delete_group(id)
    }

    /// The members of a group, in the order of their ids.
    pub fn group(&self, profile: ProfileId, id: u32) -> Option<&[GroupMember]> {
        self.profiles[profile].group(id)
    }

    /// All groups: id, members, largest size.
    pub fn groups(&self, profile: ProfileId) -> impl Iterator<Item = (u32, &[GroupMember], u32)> {
        self.profiles[profile].groups()
    }

    fn check_member(&self, profile: ProfileId, call: &ActionCall) -> Result<(), EntryError> {
        if !self.profiles[profile].actions.contains(&call.action) {
            return Err(EntryError::ActionNotInProfile { profile, action: call.action });
        }
        self.check_args(call)
    }
}
