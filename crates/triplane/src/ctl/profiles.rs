//! Lists and changes members and groups of action profiles.

use diagnostics::{Diagnostic, Diagnostics, Span};
use p4runtime_proto::config::{ActionProfile, Table};
use p4runtime_proto::v1::action_profile_group::{Member, member::WatchKind};
use p4runtime_proto::v1::entity::Entity as Kind;
use p4runtime_proto::v1::{ActionProfileGroup, ActionProfileMember};
use serde_json::{Value, json};

use super::entry::{self, Change};
use super::replication::{number, port_bytes};
use super::show::RenderedEntry;
use super::text::{self, Listing, ProfileItem};
use super::{SwitchConnection, names, show};
use crate::output::Failure;

impl SwitchConnection<'_> {
    /// Returns every action profile with its name.
    pub fn all_profiles(&self) -> Vec<(&ActionProfile, &str)> {
        self.info.action_profiles.iter().map(|profile| (profile, names::name(&profile.preamble))).collect()
    }

    /// `profiles`
    pub fn profiles(&self, wanted: Option<&str>) -> Result<(), Failure> {
        let all = self.all_profiles();
        let profiles = match wanted {
            Some(name) => vec![names::look_up("action profile", name, &all)?],
            None => all.into_iter().map(|(profile, _)| profile).collect(),
        };
        if profiles.is_empty() && !self.json {
            self.output.note("the program has no action profiles");
        }
        let (is_listed, mut objects) = (wanted.is_none(), Vec::new());
        for profile in profiles {
            let (action_profile_id, name) = (names::id(&profile.preamble), names::name(&profile.preamble));
            let members = ActionProfileMember { action_profile_id, ..Default::default() };
            let groups = ActionProfileGroup { action_profile_id, ..Default::default() };
            let mut wanted = vec![Kind::ActionProfileMember(members)];
            wanted.extend(profile.with_selector.then_some(Kind::ActionProfileGroup(groups)));
            let mut is_named = self.json;
            let mut print_name = || match std::mem::replace(&mut is_named, true) {
                true => Ok(()),
                false => self.output.print(&format!("{}\n", self.output.bold(name))),
            };
            let was_read = self.read_object(wanted, is_listed, |entity| {
                print_name()?;
                if self.json {
                    objects.extend(self.item_json(name, &entity));
                    Ok(())
                } else {
                    self.output.print(&format!("  {}\n", self.render_item(&entity)))
                }
            })?;
            if was_read {
                print_name()?;
            }
        }
        if self.json { self.print_json(&objects.into()) } else { Ok(()) }
    }

    /// `insert`, `modify` and `delete` of a member or a group.
    pub fn change_profile_entry(&self, change: Change, profile: &ActionProfile, line: &str) -> Result<(), Failure> {
        let name = names::name(&profile.preamble);
        let entity =
            self.read_line(line, &format!("a valid member or group of `{name}`"), |file, end, diagnostics| {
                match text::parse_profile_item(file, line, diagnostics)? {
                    ProfileItem::Member { id, call } => {
                        let member_id = take(number(&id, "member id"), diagnostics)?;
                        let mut member = ActionProfileMember {
                            action_profile_id: names::id(&profile.preamble),
                            member_id,
                            action: None,
                        };
                        if let Some(call) = call {
                            member.action =
                                Some(entry::bind_call(&self.info, self.table_of(profile)?, &call, diagnostics)?);
                        } else if change != Change::Delete {
                            let missing = Diagnostic::error("entry-action", end, "the member has no action");
                            diagnostics.push(missing.help("add `-> ACTION(...)`"));
                        }
                        Some(Kind::ActionProfileMember(member))
                    }
                    ProfileItem::Group(written) if !profile.with_selector => {
                        let message = format!("`{name}` has no selector and therefore no groups");
                        diagnostics.push(Diagnostic::error("entry-group", written.id.span, message));
                        None
                    }
                    ProfileItem::Group(written) => {
                        let mut group = take(group(&written), diagnostics)?;
                        group.action_profile_id = names::id(&profile.preamble);
                        Some(Kind::ActionProfileGroup(group))
                    }
                }
            })?;
        let item = self.render_item(&entity);
        let described = RenderedEntry { what: format!("{name} {}", item.what), ..item };
        let json = self.item_json(name, &entity).unwrap_or_default();
        self.write(change, entity, &described, json)
    }

    /// Returns a table whose entries use a profile. Its actions are those of the members.
    fn table_of(&self, profile: &ActionProfile) -> Option<&Table> {
        let id = names::id(&profile.preamble);
        self.info.tables.iter().find(|table| table.implementation_id == id)
    }

    /// Formats a member or a group: `member 1 -> forward(port=1)`, `group 7 -> 1, 2 weight 3`.
    fn render_item(&self, entity: &Kind) -> RenderedEntry {
        let (what, value) = match entity {
            Kind::ActionProfileMember(member) => {
                let action = member.action.as_ref().map(|action| show::written(&self.info, action));
                (format!("member {}", member.member_id), action.unwrap_or_default())
            }
            Kind::ActionProfileGroup(group) => {
                let mut parts: Vec<String> = group.members.iter().map(shown_member).collect();
                parts.extend((group.max_size != 0).then(|| format!("max_size={}", group.max_size)));
                (format!("group {}", group.group_id), parts.join(", "))
            }
            _ => Default::default(),
        };
        RenderedEntry { what, value }
    }

    fn item_json(&self, name: &str, entity: &Kind) -> Option<Value> {
        match entity {
            Kind::ActionProfileMember(member) => {
                let action = member.action.as_ref().map(|action| show::written(&self.info, action));
                Some(json!({ "profile": name, "member": member.member_id, "action": action }))
            }
            Kind::ActionProfileGroup(group) => {
                let one = |it: &Member| json!({ "member": it.member_id, "weight": it.weight, "watch": watched(it) });
                let members: Value = group.members.iter().map(one).collect();
                Some(json!({ "profile": name, "group": group.group_id, "members": members,
                    "max_size": group.max_size }))
            }
            _ => None,
        }
    }
}

fn take<T>(result: Result<T, Box<Diagnostic>>, diagnostics: &mut Diagnostics) -> Option<T> {
    result.map_err(|diagnostic| diagnostics.push(*diagnostic)).ok()
}

fn group(written: &Listing) -> Result<ActionProfileGroup, Box<Diagnostic>> {
    let wrong = |span: Span, what: String| {
        let diagnostic = Diagnostic::error("entry-value", span, what);
        Box::new(diagnostic.help("the syntax is ID -> MEMBER weight N watch PORT, ..., max_size=N"))
    };
    let small = |word: &text::Word| {
        let number = number(word, "number")?;
        i32::try_from(number).map_err(|_| wrong(word.span, format!("{number} is too large")))
    };
    let mut group = ActionProfileGroup { group_id: number(&written.id, "group id")?, ..Default::default() };
    for (name, value) in &written.settings {
        match &*name.text {
            "max_size" => group.max_size = small(value)?,
            other => return Err(wrong(name.span, format!("a group has no `{other}`"))),
        }
    }
    for (id, notes) in &written.items {
        let mut member = Member { member_id: number(id, "member id")?, weight: 1, ..Default::default() };
        for (name, value) in notes {
            match &*name.text {
                "weight" => member.weight = small(value)?,
                "watch" => member.watch_kind = Some(WatchKind::WatchPort(port_bytes(number(value, "port")?))),
                other => return Err(wrong(name.span, format!("a group's member has no `{other}`"))),
            }
        }
        group.members.push(member);
    }
    Ok(group)
}

fn watched(member: &Member) -> Option<String> {
    #[allow(deprecated, reason = "controllers still write ports in the older form, and get them back so")]
    match member.watch_kind.as_ref()? {
        WatchKind::Watch(port) => Some(port.to_string()),
        WatchKind::WatchPort(bytes) => Some(show::port(bytes)),
    }
}

fn shown_member(member: &Member) -> String {
    let mut text = member.member_id.to_string();
    if member.weight != 1 {
        text += &format!(" weight {}", member.weight);
    }
    if let Some(port) = watched(member) {
        text += &format!(" watch {port}");
    }
    text
}
