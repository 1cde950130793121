//! Translates members and groups of action profiles (specification 9.2).

use std::collections::BTreeSet;

use engine::GroupMember;
use p4runtime_proto::bytestring;
use p4runtime_proto::v1;
use v1::action_profile_action::WatchKind as SetWatch;
use v1::action_profile_group::member::WatchKind;

use super::{EntityTranslator, PlannedUpdate, UpdateKind};
use crate::schema::ProfileSchema;
use crate::shadow::ShadowChange;
use crate::status::Refusal;
use crate::switch_ops::Op;

#[expect(deprecated, reason = "clients of P4Runtime 1.0 number the port")]
pub(super) fn set_watch(watch: &SetWatch) -> WatchKind {
    match watch {
        SetWatch::Watch(port) => WatchKind::Watch(*port),
        SetWatch::WatchPort(port) => WatchKind::WatchPort(port.clone()),
    }
}

#[expect(deprecated, reason = "clients of P4Runtime 1.0 number the port")]
pub(super) fn watch_of_set(watch: WatchKind) -> SetWatch {
    match watch {
        WatchKind::Watch(port) => SetWatch::Watch(port),
        WatchKind::WatchPort(port) => SetWatch::WatchPort(port),
    }
}

/// Parses the weight of a member.
pub(super) fn weight(profile: &ProfileSchema, weight: i32) -> Result<u32, Refusal> {
    match (profile.weights_disallowed, weight) {
        (true, 0) => Ok(1),
        (true, weight) => Err(Refusal::invalid(format!("its members have no weights, but {weight} is given"))),
        (false, weight) if weight > 0 => Ok(weight as u32),
        (false, weight) => Err(Refusal::invalid(format!("a weight must be at least 1, but {weight} is given"))),
    }
}

/// Checks the weights of a group's members against its maximum size.
pub(super) fn check_sizes(
    profile: &ProfileSchema,
    weights: impl Iterator<Item = i32> + Clone,
    max_size: i32,
) -> Result<(), Refusal> {
    let size = if profile.counts_members || profile.weights_disallowed {
        weights.clone().count() as i64
    } else {
        weights.clone().map(i64::from).sum()
    };
    if max_size > 0 && size > i64::from(max_size) {
        let what = if profile.counts_members { "number of members" } else { "sum of weights" };
        return Err(Refusal::invalid(format!("the {what} is {size}; the limit is {max_size}")));
    }
    let heaviest = weights.max().unwrap_or(0);
    if profile.max_member_weight > 0 && heaviest > profile.max_member_weight {
        return Err(Refusal::invalid(format!(
            "a member has the weight {heaviest}; the limit is {}",
            profile.max_member_weight
        )));
    }
    Ok(())
}

impl EntityTranslator<'_> {
    /// Records that the profile is used with members.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if entries of the profile use one-shot sets.
    pub(super) fn use_members(&mut self, profile: &ProfileSchema) -> Result<(), Refusal> {
        if self.shadow.has_sets(profile.id) || self.overlay.with_sets.contains(&profile.id) {
            return Err(Refusal::invalid(format!(
                "the action profile {} is in use with one-shot action sets and cannot have members and groups at the same time",
                profile.name
            )));
        }
        self.overlay.with_members.insert(profile.id);
        Ok(())
    }

    /// Records that the profile is used with one-shot sets.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the profile has members.
    pub(super) fn use_sets(&mut self, profile: &ProfileSchema) -> Result<(), Refusal> {
        if self.shadow.has_members(profile.id) || self.overlay.with_members.contains(&profile.id) {
            return Err(Refusal::invalid(format!(
                "the action profile {} has members or groups and cannot be used with one-shot action sets at the same time",
                profile.name
            )));
        }
        self.overlay.with_sets.insert(profile.id);
        Ok(())
    }

    pub(super) fn member(
        &mut self,
        kind: UpdateKind,
        member: &v1::ActionProfileMember,
    ) -> Result<PlannedUpdate, Refusal> {
        let schema = self.schema;
        let profile = schema.profile(member.action_profile_id)?;
        let id = member.member_id;
        let subject = format!("action profile {}, member {id}", profile.name);
        let about = |refusal: Refusal| refusal.about(&subject);
        if id == 0 {
            return Err(about(Refusal::invalid("0 is not a valid member id")));
        }
        let key = (profile.id, id);
        if kind == UpdateKind::Delete {
            return Ok(PlannedUpdate {
                op: Op::DeleteMember(profile.ir, id),
                change: ShadowChange::DropMember(key),
                subject,
            });
        }
        self.use_members(profile).map_err(about)?;
        let action = member.action.as_ref().ok_or_else(|| about(Refusal::invalid("its action is missing")))?;
        let (call, action) = self.call(action, &profile.actions, "the profile").map_err(about)?;
        let op = match kind {
            UpdateKind::Insert => Op::InsertMember(profile.ir, id, call),
            _ => Op::ModifyMember(profile.ir, id, call),
        };
        Ok(PlannedUpdate { op, change: ShadowChange::PutMember(key, Box::new(action)), subject })
    }

    pub(super) fn group(&mut self, kind: UpdateKind, group: &v1::ActionProfileGroup) -> Result<PlannedUpdate, Refusal> {
        let schema = self.schema;
        let profile = schema.profile(group.action_profile_id)?;
        let id = group.group_id;
        let subject = format!("action profile {}, group {id}", profile.name);
        let (op, change) = self.group_in(kind, profile, group).map_err(|refusal| refusal.about(&subject))?;
        Ok(PlannedUpdate { op, change, subject })
    }

    fn group_in(
        &mut self,
        kind: UpdateKind,
        profile: &ProfileSchema,
        group: &v1::ActionProfileGroup,
    ) -> Result<(Op, ShadowChange), Refusal> {
        let id = group.group_id;
        if !profile.selector {
            return Err(Refusal::invalid("the profile has no selector and therefore no groups"));
        }
        if id == 0 {
            return Err(Refusal::invalid("0 is not a valid group id"));
        }
        let key = (profile.id, id);
        if kind == UpdateKind::Delete {
            return Ok((Op::DeleteGroup(profile.ir, id), ShadowChange::DropGroup(key)));
        }
        self.use_members(profile)?;
        self.check_max_size(kind, profile, group)?;
        let limit = if group.max_size > 0 { group.max_size } else { profile.max_group_size };
        check_sizes(profile, group.members.iter().map(|member| member.weight), limit)?;
        let mut members = Vec::new();
        let mut kept = Vec::new();
        let mut seen = BTreeSet::new();
        for member in &group.members {
            if !seen.insert(member.member_id) {
                return Err(Refusal::invalid(format!(
                    "member {} is given twice; use its weight instead",
                    member.member_id
                )));
            }
            let (watch_port, watch_kind) = self.watch(member.watch_kind.clone())?;
            let weight = weight(profile, member.weight)?;
            members.push(GroupMember { member: member.member_id, weight, watch_port });
            let (member_id, weight) = (member.member_id, member.weight);
            kept.push(v1::action_profile_group::Member { member_id, weight, watch_kind });
        }
        kept.sort_by_key(|member| member.member_id);
        let group = v1::ActionProfileGroup { members: kept, ..group.clone() };
        let op = match kind {
            // Sizes are checked here, by the selector's own measure.
            UpdateKind::Insert => Op::InsertGroup(profile.ir, id, members, 0),
            _ => Op::ModifyGroup(profile.ir, id, members),
        };
        Ok((op, ShadowChange::PutGroup(key, Box::new(group))))
    }

    /// Checks the rules for `max_size` (specification 9.2.2).
    fn check_max_size(
        &self,
        kind: UpdateKind,
        profile: &ProfileSchema,
        group: &v1::ActionProfileGroup,
    ) -> Result<(), Refusal> {
        let (max_size, most) = (group.max_size, profile.max_group_size);
        if max_size < 0 {
            return Err(Refusal::invalid(format!("max_size is {max_size}; it must be at least 0")));
        }
        if most > 0 && !(1..=most).contains(&max_size) {
            return Err(Refusal::invalid(format!("max_size is {max_size}; it must be between 1 and {most}")));
        }
        let before = self.shadow.group((profile.id, group.group_id)).map(|before| before.max_size);
        match before {
            Some(before) if kind == UpdateKind::Modify && before != max_size => {
                Err(Refusal::invalid(format!("max_size is {before} and cannot be changed to {max_size}")))
            }
            _ => Ok(()),
        }
    }

    /// Parses the port that a member watches. Also returns it in canonical form.
    #[expect(deprecated, reason = "clients of P4Runtime 1.0 number the port")]
    pub(super) fn watch(&self, watch: Option<WatchKind>) -> Result<(Option<u32>, Option<WatchKind>), Refusal> {
        let (port, kept) = match watch {
            None | Some(WatchKind::Watch(0)) => return Ok((None, watch)),
            Some(WatchKind::WatchPort(bytes)) if bytes.is_empty() => return Ok((None, None)),
            Some(WatchKind::Watch(port)) => (u32::try_from(port).unwrap_or(u32::MAX), WatchKind::Watch(port)),
            Some(WatchKind::WatchPort(bytes)) => {
                let port = bytestring::parse_u32(&bytes)
                    .map_err(|error| Refusal::invalid(error.to_string()).about("watch_port"))?;
                (port, WatchKind::WatchPort(bytestring::shortest(&bytes)))
            }
        };
        self.known_port(port).map_err(|refusal| refusal.about("watch_port"))?;
        Ok((Some(port), Some(kept)))
    }
}
