//! Reads action profiles: members, groups of members, and the references to them in entries of their tables.

use ir::{ProfileId, Table};
use jsonc_parser::ast::{Object, Value};

use crate::json::{FileReader, member};
use crate::table::{TABLE_ENTRY, action, actions_of};
use crate::{ActionInvocation, Entries, EntryAction, ProfileGroup, ProfileMember, WeightedAction};

/// Maximum number of members of one group, and of actions of one one-shot group.
const MAX_MEMBERS: usize = 4096;

fn profile(reader: &mut FileReader<'_>, object: &Object<'_>, what: &str) -> Option<ProfileId> {
    let name = reader.string(object, "action_profile", what)?;
    let profiles = &reader.program.profiles;
    let candidates: Vec<_> = profiles.iter().map(|(id, profile)| (id, profile.name.as_str())).collect();
    reader.named("unknown-action-profile", "action profile", name, &candidates)
}

/// Reads a required number.
fn id(reader: &mut FileReader<'_>, object: &Object<'_>, name: &str, what: &str) -> Option<u32> {
    if member(object, name).is_none() {
        let span = reader.span(object);
        reader.error("entries-format", span, format!("{what} requires a member `{name}`"));
    }
    reader.number(object, name, u64::from(u32::MAX)).map(|id| id as u32)
}

/// Reads the optional members `weight` and `watch_port`.
fn share(reader: &mut FileReader<'_>, object: &Object<'_>) -> Option<(u32, Option<u32>)> {
    let weight = match member(object, "weight") {
        Some(given) => {
            let span = reader.span(given);
            match reader.number(object, "weight", i32::MAX as u64)? {
                0 => {
                    reader.error("entries-value", span, "`weight` must be at least 1");
                    return None;
                }
                weight => weight as u32,
            }
        }
        None => 1,
    };
    Some((weight, reader.number(object, "watch_port", reader.max_port.into()).map(|port| port as u32)))
}

pub(crate) fn read_member(reader: &mut FileReader<'_>, item: &Value<'_>, entries: &mut Entries) {
    let what = "a member of an action profile";
    let Some(object) = reader.object(item, what) else { return };
    reader.only_members(object, what, &["action_profile", "member_id", "action_name", "action_params"]);
    let Some(profile) = profile(reader, object, what) else { return };
    let id = id(reader, object, "member_id", what);
    let program = reader.program;
    let tables: Vec<&Table> = program.tables.values().filter(|table| table.profile == Some(profile)).collect();
    let Some((first, others)) = tables.split_first() else {
        let span = reader.span(object);
        let message = format!("no table of the program uses `{}`", program.profiles[profile].name);
        return reader.error("entries-action", span, message);
    };
    let mut actions = actions_of(first);
    // Every table of the profile may run the member, so only actions common to all of them are allowed.
    actions.retain(|action| others.iter().all(|table| actions_of(table).contains(action)));
    let call = action(reader, object, first, &actions, what);
    let (Some(id), Some(call)) = (id, call) else { return };
    let span = reader.span(object);
    if let Some(earlier) = entries.members.iter().find(|member| member.profile == profile && member.id == id) {
        let message = format!("`{}` already has a member {id}", program.profiles[profile].name);
        return reader.twice(span, message, earlier.span);
    }
    entries.members.push(ProfileMember { profile, id, call, span });
}

pub(crate) fn read_group(reader: &mut FileReader<'_>, item: &Value<'_>, entries: &mut Entries) {
    let what = "a group of an action profile";
    let Some(object) = reader.object(item, what) else { return };
    reader.only_members(object, what, &["action_profile", "group_id", "members"]);
    let Some(profile) = profile(reader, object, what) else { return };
    let span = reader.span(object);
    let name = reader.program.profiles[profile].name.as_str();
    if reader.program.profiles[profile].selector.is_none() {
        return reader.error("entries-group", span, format!("`{name}` has no selector and therefore no groups"));
    }
    let id = id(reader, object, "group_id", what);
    let list = reader.list(object, "members");
    if list.len() > MAX_MEMBERS {
        return reader.error("entries-format", span, format!("a group has at most {MAX_MEMBERS} members"));
    }
    let mut members: Vec<(u32, u32, Option<u32>)> = Vec::new();
    for item in list {
        let what = "a member of a group";
        let Some(object) = reader.object(item, what) else { continue };
        reader.only_members(object, what, &["member_id", "weight", "watch_port"]);
        let (id, share) = (self::id(reader, object, "member_id", what), share(reader, object));
        let (Some(id), Some((weight, port))) = (id, share) else { continue };
        let span = reader.span(object);
        if !entries.members.iter().any(|member| member.profile == profile && member.id == id) {
            let message = format!("`{name}` has no member {id}; define it in `action_profile_members`");
            reader.error("unknown-member", span, message);
        } else if members.iter().any(|(other, ..)| *other == id) {
            reader.error("entries-duplicate", span, format!("duplicate member {id}"));
        } else {
            members.push((id, weight, port));
        }
    }
    let Some(id) = id else { return };
    if let Some(earlier) = entries.member_groups.iter().find(|group| group.profile == profile && group.id == id) {
        return reader.twice(span, format!("`{name}` already has a group {id}"), earlier.span);
    }
    entries.member_groups.push(ProfileGroup { profile, id, members, span });
}

/// Reads the action of an entry of a table with this profile.
pub(crate) fn target(
    reader: &mut FileReader<'_>,
    object: &Object<'_>,
    table: &Table,
    profile: ProfileId,
    entries: &Entries,
) -> Option<EntryAction> {
    let span = reader.span(object);
    let name = reader.program.profiles[profile].name.as_str();
    let grouped = reader.program.profiles[profile].selector.is_some();
    let given: Vec<&str> =
        ["member_id", "group_id", "one_shot"].into_iter().filter(|name| member(object, name).is_some()).collect();
    let [given] = given[..] else {
        let forms = if grouped { "one of `member_id`, `group_id` or `one_shot`" } else { "a `member_id`" };
        let message = format!("`{}` takes its actions from `{name}`: an entry requires {forms}", table.name);
        reader.error("entries-action", span, message);
        return None;
    };
    if let Some(value) = member(object, "action_name") {
        let span = reader.span(value);
        reader.error("entries-action", span, format!("an entry with `{given}` cannot have an `action_name`"));
    }
    if given != "member_id" && !grouped {
        reader.error("entries-group", span, format!("`{name}` has no selector and therefore no groups"));
        return None;
    }
    match given {
        "member_id" => {
            let id = id(reader, object, given, TABLE_ENTRY)?;
            if !entries.members.iter().any(|member| member.profile == profile && member.id == id) {
                reader.error("unknown-member", span, format!("`{name}` has no member {id}"));
            }
            Some(EntryAction::Member(id))
        }
        "group_id" => {
            let id = id(reader, object, given, TABLE_ENTRY)?;
            if !entries.member_groups.iter().any(|group| group.profile == profile && group.id == id) {
                reader.error("unknown-group", span, format!("`{name}` has no group {id}"));
            }
            Some(EntryAction::Group(id))
        }
        _ => one_shot(reader, object, table).map(EntryAction::OneShot),
    }
}

fn one_shot(reader: &mut FileReader<'_>, object: &Object<'_>, table: &Table) -> Option<Vec<WeightedAction>> {
    let list = reader.list(object, "one_shot");
    if list.is_empty() || list.len() > MAX_MEMBERS {
        let span = reader.span(object);
        reader.error("entries-format", span, format!("`one_shot` requires 1 to {MAX_MEMBERS} actions"));
        return None;
    }
    let mut shares = Vec::new();
    for item in list {
        let what = "an action of `one_shot`";
        let Some(object) = reader.object(item, what) else { continue };
        reader.only_members(object, what, &["action_name", "action_params", "weight", "watch_port"]);
        let call: Option<ActionInvocation> = action(reader, object, table, &actions_of(table), what);
        let share = share(reader, object);
        if let (Some(call), Some((weight, watch_port))) = (call, share) {
            shares.push(WeightedAction { call, weight, watch_port });
        }
    }
    (shares.len() == list.len()).then_some(shares)
}
