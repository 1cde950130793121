//! Implements the control plane's operations on action profiles.

use ir::ProfileId;

use super::control::ControlChange;
use super::{ActionCall, EntryError, GroupMember, Objects};

impl Objects {
    /// Adds a member to a profile.
    ///
    /// # Errors
    /// `Duplicate`, `Full`, `ActionNotInProfile`, and all errors of arguments.
    pub fn insert_member(&mut self, profile: ProfileId, id: u32, call: ActionCall) -> Result<(), EntryError> {
        self.check_member(profile, &call)?;
        self.control().profiles[profile].may_insert_member(id)?;
        self.change(ControlChange::InsertMember(profile, id, call));
        Ok(())
    }

    /// Sets another action of a member; entries and groups follow.
    ///
    /// # Errors
    /// As [`Objects::insert_member`], and `NotFound`.
    pub fn modify_member(&mut self, profile: ProfileId, id: u32, call: ActionCall) -> Result<(), EntryError> {
        self.check_member(profile, &call)?;
        self.control().profiles[profile].member(id).ok_or(EntryError::NotFound)?;
        self.change(ControlChange::ModifyMember(profile, id, call));
        Ok(())
    }

    /// Removes a member.
    ///
    /// # Errors
    /// `NotFound`; `InUse` while an entry or group refers to it.
    pub fn delete_member(&mut self, profile: ProfileId, id: u32) -> Result<(), EntryError> {
        self.control().profiles[profile].may_delete_member(id)?;
        self.change(ControlChange::DeleteMember(profile, id));
        Ok(())
    }

    /// Returns the action of a member.
    pub fn member(&self, profile: ProfileId, id: u32) -> Option<&ActionCall> {
        self.control().profiles[profile].member(id)
    }

    /// Returns all members, in the order of their ids.
    pub fn members(&self, profile: ProfileId) -> impl Iterator<Item = (u32, &ActionCall)> {
        self.control().profiles[profile].members()
    }

    /// Adds a group; a `max_size` of 0 means no limit.
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
        self.change(ControlChange::InsertGroup(profile, id, members, max_size));
        Ok(())
    }

    /// Replaces the members of a group.
    ///
    /// # Errors
    /// As [`Objects::insert_group`], and `NotFound`.
    pub fn modify_group(&mut self, profile: ProfileId, id: u32, members: Vec<GroupMember>) -> Result<(), EntryError> {
        let members = self.control().profiles[profile].other_members(id, members)?;
        self.change(ControlChange::ModifyGroup(profile, id, members));
        Ok(())
    }

    /// Removes a group.
    ///
    /// # Errors
    /// `NotFound`; `InUse` while an entry refers to it.
    pub fn delete_group(&mut self, profile: ProfileId, id: u32) -> Result<(), EntryError> {
        self.control().profiles[profile].may_delete_group(id)?;
        self.change(ControlChange::DeleteGroup(profile, id));
        Ok(())
    }

    /// Returns the members of a group, in the order of their ids.
    pub fn group(&self, profile: ProfileId, id: u32) -> Option<&[GroupMember]> {
        self.control().profiles[profile].group(id)
    }

    /// Returns all groups: id, members, maximum size.
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
