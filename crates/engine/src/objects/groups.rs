//! The control plane's requests to action profiles.

use ir::ProfileId;

use super::control::Change;
use super::{ActionCall, EntryError, GroupMember, Objects};

impl Objects {
    /// Adds a member to a profile.
    ///
    /// # Errors
    /// `Duplicate`, `Full`, `ActionNotInProfile`, and what can be wrong
    /// with arguments.
    pub fn insert_member(&mut self, profile: ProfileId, id: u32, call: ActionCall) -> Result<(), EntryError> {
        self.check_member(profile, &call)?;
        self.control().profiles[profile].may_insert_member(id)?;
        self.change(Change::InsertMember(profile, id, call));
        Ok(())
    }

    /// Gives a member another action; entries and groups follow.
    ///
    /// # Errors
    /// As [`Objects::insert_member`], and `NotFound`.
    pub fn modify_member(&mut self, profile: ProfileId, id: u32, call: ActionCall) -> Result<(), EntryError> {
        self.check_member(profile, &call)?;
        self.control().profiles[profile].member(id).ok_or(EntryError::NotFound)?;
        self.change(Change::ModifyMember(profile, id, call));
        Ok(())
    }

    /// Takes a member away.
    ///
    /// # Errors
    /// `NotFound`; `InUse` while an entry or group refers to it.
    pub fn delete_member(&mut self, profile: ProfileId, id: u32) -> Result<(), EntryError> {
        self.control().profiles[profile].may_delete_member(id)?;
        self.change(Change::DeleteMember(profile, id));
        Ok(())
    }

    /// A member.
    pub fn member(&self, profile: ProfileId, id: u32) -> Option<&ActionCall> {
        self.control().profiles[profile].member(id)
    }

    /// All members, in the order of their ids.
    pub fn members(&self, profile: ProfileId) -> impl Iterator<Item = (u32, &ActionCall)> {
        self.control().profiles[profile].members()
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
        let members = self.control().profiles[profile].new_group(id, members, max_size)?;
        self.change(Change::InsertGroup(profile, id, members, max_size));
        Ok(())
    }

    /// Gives a group other members.
    ///
    /// # Errors
    /// As [`Objects::insert_group`], and `NotFound`.
    pub fn modify_group(&mut self, profile: ProfileId, id: u32, members: Vec<GroupMember>) -> Result<(), EntryError> {
        let members = self.control().profiles[profile].other_members(id, members)?;
        self.change(Change::ModifyGroup(profile, id, members));
        Ok(())
    }

    /// Takes a group away.
    ///
    /// # Errors
    /// `NotFound`; `InUse` while an entry refers to it.
    pub fn delete_group(&mut self, profile: ProfileId, id: u32) -> Result<(), EntryError> {
        self.control().profiles[profile].may_delete_group(id)?;
        self.change(Change::DeleteGroup(profile, id));
        Ok(())
    }

    /// The members of a group, in the order of their ids.
    pub fn group(&self, profile: ProfileId, id: u32) -> Option<&[GroupMember]> {
        self.control().profiles[profile].group(id)
    }

    /// All groups: id, members, largest size.
    pub fn groups(&self, profile: ProfileId) -> impl Iterator<Item = (u32, &[GroupMember], u32)> {
        self.control().profiles[profile].groups()
    }

    fn check_member(&self, profile: ProfileId, call: &ActionCall) -> Result<(), EntryError> {
        if !self.control().profiles[profile].actions.contains(&call.action) {
            return Err(EntryError::ActionNotInProfile { profile, action: call.action });
        }
        self.check_args(call)
    }
}
