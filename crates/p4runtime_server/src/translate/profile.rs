//! Members and groups of action profiles (specification 9.2).

use std::collections::BTreeSet;

use engine::GroupMember;
use p4runtime_proto::v1;
use v1::action_profile_action::WatchKind as SetWatch;
use v1::action_profile_group::member::WatchKind;

use super::{Kind, Planned, Translator};
use crate::bytestring;
use crate::mirror::Change;
use crate::op::Op;
use crate::schema::Profile;
use crate::status::{Code, Refusal};

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

/// A weight as the switch takes it.
pub(super) fn weight(profile: &Profile, weight: i32) -> Result<u32, Refusal> {
    match (profile.weights_disallowed, weight) {
        (true, 0) => Ok(1),
        (true, weight) => Err(Refusal::invalid(format!("its members have no weights; {weight} is given"))),
        (false, weight) if weight > 0 => Ok(weight as u32),
        (false, weight) => Err(Refusal::invalid(format!("a weight is at least 1; {weight} is given"))),
    }
}

/// Holds the members of a group, by their weights, against its largest size.
pub(super) fn check_sizes(
    profile: &Profile,
    weights: impl Iterator<Item = i32> + Clone,
    max_size: i32,
) -> Result<(), Refusal> {
    let size = match profile.counts_members || profile.weights_disallowed {
        true => weights.clone().count() as i64,
        false => weights.clone().map(i64::from).sum(),
    };
    if max_size > 0 && size > i64::from(max_size) {
        let what = if profile.counts_members { "members" } else { "weights in sum" };
        return Err(Refusal::invalid(format!("it has {size} {what}, and may have {max_size}")));
    }
    let heaviest = weights.max().unwrap_or(0);
    if profile.max_member_weight > 0 && heaviest > profile.max_member_weight {
        return Err(Refusal::invalid(format!(
            "a member has the weight {heaviest}, and may have {}",
            profile.max_member_weight
        )));
    }
    Ok(())
}

impl Translator<'_> {
    /// # Errors
    /// `INVALID_ARGUMENT` if entries of the profile use one-shot sets.
    pub(super) fn use_members(&mut self, profile: &Profile) -> Result<(), Refusal> {
        if self.mirror.has_sets(profile.id) || self.overlay.with_sets.contains(&profile.id) {
            return Err(Refusal::invalid(format!(
                "the action profile {} is used with one-shot action sets, and cannot have members and groups meanwhile",
                profile.name
            )));
        }
        self.overlay.with_members.insert(profile.id);
        Ok(())
    }

    /// # Errors
    /// `INVALID_ARGUMENT` if the profile has members.
    pub(super) fn use_sets(&mut self, profile: &Profile) -> Result<(), Refusal> {
        if self.mirror.has_members(profile.id) || self.overlay.with_members.contains(&profile.id) {
            return Err(Refusal::invalid(format!(
                "the action profile {} has members or groups, and cannot be used with one-shot action sets meanwhile",
                profile.name
            )));
        }
        self.overlay.with_sets.insert(profile.id);
        Ok(())
    }

    pub(super) fn member(&mut self, kind: Kind, member: &v1::ActionProfileMember) -> Result<Planned, Refusal> {
        let schema = self.schema;
        let profile = schema.profile(member.action_profile_id)?;
        let id = member.member_id;
        let subject = format!("action profile {}, member {id}", profile.name);
        let about = |refusal: Refusal| refusal.about(&subject);
        if id == 0 {
            return Err(about(Refusal::invalid("0 is no id of a member")));
        }
        let key = (profile.id, id);
        if kind == Kind::Delete {
            return Ok(Planned { op: Op::DeleteMember(profile.ir, id), change: Change::DropMember(key), subject });
        }
        self.use_members(profile).map_err(about)?;
        let action = member.action.as_ref().ok_or_else(|| about(Refusal::invalid("its action is missing")))?;
        let (call, action) = self.call(action, &profile.actions, "the profile").map_err(about)?;
        let op = match kind {
            Kind::Insert => Op::InsertMember(profile.ir, id, call),
            _ => Op::ModifyMember(profile.ir, id, call),
        };
        Ok(Planned { op, change: Change::PutMember(key, Box::new(action)), subject })
    }

    pub(super) fn group(&mut self, kind: Kind, group: &v1::ActionProfileGroup) -> Result<Planned, Refusal> {
        let schema = self.schema;
        let profile = schema.profile(group.action_profile_id)?;
        let id = group.group_id;
        let subject = format!("action profile {}, group {id}", profile.name);
        let (op, change) = self.group_in(kind, profile, group).map_err(|refusal| refusal.about(&subject))?;
        Ok(Planned { op, change, subject })
    }

    fn group_in(
        &mut self,
        kind: Kind,
        profile: &Profile,
        group: &v1::ActionProfileGroup,
    ) -> Result<(Op, Change), Refusal> {
        let id = group.group_id;
        if !profile.selector {
            return Err(Refusal::invalid("the profile has no selector and so no groups"));
        }
        if id == 0 {
            return Err(Refusal::invalid("0 is no id of a group"));
        }
        let key = (profile.id, id);
        if kind == Kind::Delete {
            return Ok((Op::DeleteGroup(profile.ir, id), Change::DropGroup(key)));
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
                    "member {} is given twice; its weight says how often it counts",
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
            // Sizes are held here, by the selector's own measure.
            Kind::Insert => Op::InsertGroup(profile.ir, id, members, 0),
            _ => Op::ModifyGroup(profile.ir, id, members),
        };
        Ok((op, Change::PutGroup(key, Box::new(group))))
    }

    /// The rules on `max_size` (specification 9.2.2).
    fn check_max_size(&self, kind: Kind, profile: &Profile, group: &v1::ActionProfileGroup) -> Result<(), Refusal> {
        let (max_size, most) = (group.max_size, profile.max_group_size);
        if max_size < 0 {
            return Err(Refusal::invalid(format!("max_size is {max_size}; it is at least 0")));
        }
        if most > 0 && !(1..=most).contains(&max_size) {
            return Err(Refusal::invalid(format!("max_size is {max_size}; it has to be between 1 and {most}")));
        }
        let before = self.mirror.group((profile.id, group.group_id)).map(|before| before.max_size);
        match before {
            Some(before) if kind == Kind::Modify && before != max_size => {
                Err(Refusal::invalid(format!("max_size cannot be changed; it is {before}, and {max_size} is given")))
            }
            _ => Ok(()),
        }
    }

    /// The port that a member watches, and the same in canonical form.
    #[expect(deprecated, reason = "clients of P4Runtime 1.0 number the port")]
    pub(super) fn watch(&self, watch: Option<WatchKind>) -> Result<(Option<u32>, Option<WatchKind>), Refusal> {
        let (port, kept) = match watch {
            None | Some(WatchKind::Watch(0)) => return Ok((None, watch)),
            Some(WatchKind::WatchPort(bytes)) if bytes.is_empty() => return Ok((None, None)),
            Some(WatchKind::Watch(port)) => (u32::try_from(port).unwrap_or(u32::MAX), WatchKind::Watch(port)),
            Some(WatchKind::WatchPort(bytes)) => {
                let port = bytestring::parse_u32(&bytes)
                    .map_err(|refusal| Refusal::new(Code::InvalidArgument, refusal.message).about("watch_port"))?;
                (port, WatchKind::WatchPort(bytestring::shortest(&bytes)))
            }
        };
        self.known_port(port).map_err(|refusal| refusal.about("watch_port"))?;
        Ok((Some(port), Some(kept)))
    }
}
