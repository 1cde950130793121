//! Binds a written entry to a table of the program.

use diagnostics::{Diagnostic, Diagnostics, Span};
use p4runtime_proto::config::match_field::MatchType;
use p4runtime_proto::config::{Action, MatchField, P4Info, Table};
use p4runtime_proto::v1::field_match::{self, FieldMatchType};
use p4runtime_proto::v1::{self, table_action::Type as ActionType};

use super::text::{Call, EntryText, Note, Word};
use super::{names, value};

/// A change of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Inserts it.
    Insert,
    /// Replaces its action.
    Modify,
    /// Deletes it.
    Delete,
}

/// Binds an entry to `table`. Returns `None` and reports diagnostics if it has mistakes. `end` is the position where a
/// missing part would be.
pub fn bind(
    info: &P4Info,
    table: &Table,
    written: &EntryText,
    change: Change,
    end: Span,
    diagnostics: &mut Diagnostics,
) -> Option<v1::TableEntry> {
    let mut binder = Binder { info, table, diagnostics };
    let mut entry = v1::TableEntry {
        table_id: names::id(&table.preamble),
        is_default_action: written.default.is_some(),
        ..Default::default()
    };
    let mut seen: Vec<(u32, Span)> = Vec::new();
    for (name, value) in &written.settings {
        binder.setting(&mut entry, name, value, &mut seen);
    }
    if entry.is_default_action {
        if let Some((name, _)) = written.settings.first() {
            binder.error("entry-default", name.span, "a default action takes no key", "omit the key or `default`");
        }
    } else {
        binder.complete(&entry, &seen, end);
    }
    match (&*written.choices, change) {
        ([(call, notes)], _) if notes.is_empty() => entry.action = binder.action(call),
        (choices @ [_, ..], _) => entry.action = binder.action_set(choices),
        ([], Change::Delete) => {}
        // Without an action the program's own default action is restored.
        ([], Change::Modify) if entry.is_default_action => {}
        ([], _) => {
            let actions = names::actions(info, table);
            let listed = diagnostics::names::listed(actions.iter().map(|(_, name)| *name));
            binder.error("entry-action", end, "the entry has no action", format!("add `-> ACTION(...)`: {listed}"));
        }
    }
    (!diagnostics.has_errors()).then_some(entry)
}

/// Binds the key of an entry of `table`. Returns `None` and reports diagnostics if it has mistakes.
pub fn bind_key(
    info: &P4Info,
    table: &Table,
    settings: &[(Word, Word)],
    end: Span,
    diagnostics: &mut Diagnostics,
) -> Option<v1::TableEntry> {
    let written = EntryText { settings: settings.to_vec(), ..EntryText::default() };
    bind(info, table, &written, Change::Delete, end, diagnostics)
}

/// Binds an action that entries of `table` may have. Returns `None` and reports diagnostics if it has mistakes.
pub fn bind_call(info: &P4Info, table: &Table, call: &Call, diagnostics: &mut Diagnostics) -> Option<v1::Action> {
    let mut binder = Binder { info, table, diagnostics };
    let action = binder.look_up(call)?;
    binder.call(action, call).filter(|_| !diagnostics.has_errors())
}

struct Binder<'a> {
    info: &'a P4Info,
    table: &'a Table,
    diagnostics: &'a mut Diagnostics,
}

impl<'a> Binder<'a> {
    fn error(&mut self, code: &'static str, span: Span, what: impl Into<String>, help: impl Into<String>) {
        self.diagnostics.push(Diagnostic::error(code, span, what).help(help));
    }

    /// A key field or an option.
    fn setting(&mut self, entry: &mut v1::TableEntry, name: &Word, value: &Word, seen: &mut Vec<(u32, Span)>) {
        let fields: Vec<_> = self.table.match_fields.iter().map(|field| (field, &*field.name)).collect();
        match names::look("key field", &name.text, &fields) {
            Ok(field) => {
                if let Some((_, first)) = seen.iter().find(|(id, _)| *id == field.id) {
                    let twice = Diagnostic::error("entry-twice", name.span, format!("`{}` is given twice", field.name));
                    return self.diagnostics.push(twice.also(*first, "first here"));
                }
                seen.push((field.id, name.span));
                match matched(field, &value.text) {
                    Ok(kind) => entry
                        .r#match
                        .extend(kind.map(|kind| v1::FieldMatch { field_id: field.id, field_match_type: Some(kind) })),
                    Err(why) => self.error(
                        "entry-value",
                        value.span,
                        format!("`{}` is {}: {why}", field.name, described(field)),
                        form(field),
                    ),
                }
            }
            Err(_) if name.text == "priority" => match value.text.parse() {
                Ok(priority) if priority > 0 => entry.priority = priority,
                _ => self.error(
                    "entry-value",
                    value.span,
                    "a priority is a number, at least 1",
                    "the largest priority wins",
                ),
            },
            Err(_) if name.text == "timeout" => {
                match value.text.strip_suffix('s').unwrap_or(&value.text).parse::<f64>() {
                    // 0 means no timeout. A shorter time than a nanosecond is a mistake, not 0.
                    Ok(seconds) if seconds == 0.0 || (1e-9..=9e9).contains(&seconds) => {
                        entry.idle_timeout_ns = (seconds * 1e9).round() as i64;
                    }
                    _ => self.error(
                        "entry-value",
                        value.span,
                        "a timeout is a number of seconds from 1e-9 to 9e9",
                        "timeout=30",
                    ),
                }
            }
            Err((what, help)) => self.error("entry-name", name.span, what, help),
        }
    }

    /// Checks that nothing is missing.
    fn complete(&mut self, entry: &v1::TableEntry, seen: &[(u32, Span)], end: Span) {
        let table = self.table;
        let missing = |field: &&MatchField| {
            names::match_type(field) == MatchType::Exact && !seen.iter().any(|(id, _)| *id == field.id)
        };
        for field in table.match_fields.iter().filter(missing) {
            let what = format!("`{}` is {} and must be given", field.name, described(field));
            self.error("entry-missing", end, what, form(field));
        }
        if table.match_fields.is_empty() {
            let what = format!("`{}` has no key and therefore no entries", names::name(&table.preamble));
            self.error("entry-key", end, what, "write `default -> ACTION(...)` to modify its default action");
        } else if names::needs_priority(table) && entry.priority == 0 {
            let what = format!("entries of `{}` may overlap and need a priority", names::name(&table.preamble));
            self.error("entry-priority", end, what, "add priority=10; the largest wins");
        }
    }

    fn action(&mut self, call: &Call) -> Option<v1::TableAction> {
        let actions = names::actions(self.info, self.table);
        let has_profile = self.table.implementation_id != 0;
        let kind = match &*call.name.text {
            which @ ("member" | "group") if has_profile && !actions.iter().any(|(_, name)| *name == which) => {
                let id = match &*call.arguments {
                    [(None, word)] => word.text.parse().ok(),
                    _ => None,
                };
                match id {
                    Some(id) if which == "member" => ActionType::ActionProfileMemberId(id),
                    Some(id) => ActionType::ActionProfileGroupId(id),
                    None => {
                        let what = format!("`{which}` takes an id");
                        self.error("entry-action", call.name.span, what, format!("write {which}(1)"));
                        return None;
                    }
                }
            }
            _ => {
                let action = self.look_up(call)?;
                let action = self.call(action, call)?;
                if !has_profile {
                    ActionType::Action(action)
                } else if self.has_selector() {
                    one_shot(vec![v1::ActionProfileAction { action: Some(action), weight: 1, ..Default::default() }])
                } else {
                    let what = format!(
                        "entries of `{}` take members of its action profile",
                        names::name(&self.table.preamble)
                    );
                    let remedy = "write member(ID), and insert the member first";
                    self.error("entry-action", call.name.span, what, remedy);
                    return None;
                }
            }
        };
        Some(v1::TableAction { r#type: Some(kind) })
    }

    /// Binds several actions. The selector of the action profile chooses one for each packet.
    fn action_set(&mut self, choices: &[(Call, Vec<Note>)]) -> Option<v1::TableAction> {
        let (call, _) = choices.first()?;
        if !self.has_selector() {
            let what =
                format!("`{}` has no action selector; its entries have one action", names::name(&self.table.preamble));
            self.error("entry-action", call.name.span, what, "omit `|`, `weight` and `watch`");
            return None;
        }
        let mut all = Vec::new();
        for (call, notes) in choices {
            let action = self.look_up(call).and_then(|action| self.call(action, call));
            let mut one = v1::ActionProfileAction { action, weight: 1, ..Default::default() };
            for (name, value) in notes {
                match (&*name.text, value.text.parse::<u32>()) {
                    ("weight", Ok(weight)) if i32::try_from(weight).is_ok() => one.weight = weight as i32,
                    ("watch", Ok(port)) => {
                        let port = super::replication::port_bytes(port);
                        one.watch_kind = Some(v1::action_profile_action::WatchKind::WatchPort(port));
                    }
                    (what, _) => self.error("entry-value", value.span, format!("`{what}` takes a number"), "weight 2"),
                }
            }
            all.push(one);
        }
        Some(v1::TableAction { r#type: Some(one_shot(all)) })
    }

    /// Whether entries may have several actions.
    fn has_selector(&self) -> bool {
        let profiles = self.info.action_profiles.iter();
        let mut own = profiles.filter(|profile| names::id(&profile.preamble) == self.table.implementation_id);
        own.any(|profile| profile.with_selector)
    }

    /// Binds one action with its arguments.
    fn look_up(&mut self, call: &Call) -> Option<&'a Action> {
        let actions = names::actions(self.info, self.table);
        match names::look("action", &call.name.text, &actions) {
            Ok(action) => Some(action),
            Err((what, help)) => {
                let what = format!("{what} in `{}`", names::name(&self.table.preamble));
                self.error("entry-name", call.name.span, what, help);
                None
            }
        }
    }

    fn call(&mut self, action: &Action, call: &Call) -> Option<v1::Action> {
        let parameters: Vec<_> = action.params.iter().map(|param| (param, &*param.name)).collect();
        let mut params: Vec<v1::action::Param> = Vec::new();
        let before = self.diagnostics.error_count();
        for (at, (name, word)) in call.arguments.iter().enumerate() {
            let param = match name {
                Some(name) => names::look("parameter", &name.text, &parameters),
                None => parameters
                    .get(at)
                    .map(|(param, _)| *param)
                    .ok_or_else(|| ("too many arguments".to_owned(), signature(action))),
            };
            let param = match param {
                Ok(param) => param,
                Err((what, help)) => {
                    self.error("entry-name", name.as_ref().map_or(word.span, |name| name.span), what, help);
                    continue;
                }
            };
            if params.iter().any(|given| given.param_id == param.id) {
                let what = format!("`{}` is given twice", param.name);
                self.error("entry-twice", word.span, what, signature(action));
                continue;
            }
            match value::parse(&word.text, param.bitwidth) {
                Ok(value) => params.push(v1::action::Param { param_id: param.id, value }),
                Err(why) => {
                    let what = format!("`{}` is {}: {why}", param.name, wide(param.bitwidth));
                    self.error("entry-value", word.span, what, signature(action));
                }
            }
        }
        let errors = self.diagnostics.error_count() - before;
        let missing: Vec<_> =
            action.params.iter().filter(|p| !params.iter().any(|given| given.param_id == p.id)).collect();
        if errors == 0 && !missing.is_empty() {
            let what = format!("missing: {}", diagnostics::names::listed(missing.iter().map(|param| &*param.name)));
            self.error("entry-missing", call.name.span, what, signature(action));
        }
        Some(v1::Action { action_id: names::id(&action.preamble), params })
    }
}

fn one_shot(all: Vec<v1::ActionProfileAction>) -> ActionType {
    ActionType::ActionProfileActionSet(v1::ActionProfileActionSet { action_profile_actions: all, ..Default::default() })
}

/// Parses the value of a field. Returns `None` for a value that matches everything.
pub fn matched(field: &MatchField, text: &str) -> Result<Option<FieldMatchType>, String> {
    let one = |text: &str| value::parse(text, field.bitwidth);
    let width = u32::try_from(field.bitwidth).unwrap_or(0);
    let length = |text: &str| {
        let length = text.parse::<u32>().ok().filter(|length| *length <= width);
        length.ok_or_else(|| format!("`{text}` is not a prefix length from 0 to {width}"))
    };
    let any = text == "*";
    let zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    Ok(match names::match_type(field) {
        MatchType::Exact => Some(FieldMatchType::Exact(field_match::Exact { value: one(text)? })),
        MatchType::Lpm | MatchType::Ternary | MatchType::Range | MatchType::Optional if any => None,
        MatchType::Lpm => {
            let (value, length) = match text.split_once('/') {
                Some((value, prefix)) => (one(value)?, length(prefix)?),
                None => (one(text)?, width),
            };
            (length > 0).then_some(FieldMatchType::Lpm(field_match::Lpm { value, prefix_len: length as i32 }))
        }
        MatchType::Ternary => {
            let (value, mask) = match (text.split_once("&&&"), text.split_once('/')) {
                (Some((value, mask)), _) => (one(value)?, one(mask)?),
                (None, Some((value, prefix))) => (one(value)?, value::prefix_mask(length(prefix)?, width)),
                (None, None) => (one(text)?, value::prefix_mask(width, width)),
            };
            (!zero(&mask)).then_some(FieldMatchType::Ternary(field_match::Ternary { value, mask }))
        }
        MatchType::Range => {
            let (low, high) = match text.split_once("..") {
                Some((low, high)) => (one(low)?, one(high)?),
                None => (one(text)?, one(text)?),
            };
            let is_all = zero(&low) && high == value::prefix_mask(width, width);
            (!is_all).then_some(FieldMatchType::Range(field_match::Range { low, high }))
        }
        MatchType::Optional => Some(FieldMatchType::Optional(field_match::Optional { value: one(text)? })),
        MatchType::Unspecified => return Err("its match kind is not supported here".to_owned()),
    })
}

fn wide(bitwidth: i32) -> String {
    match bitwidth {
        width if width > 0 => format!("{width} bits wide"),
        _ => "a string".to_owned(),
    }
}

/// `lpm, 32 bits wide`
pub fn described(field: &MatchField) -> String {
    format!("{}, {}", names::match_type(field).as_str_name().to_ascii_lowercase(), wide(field.bitwidth))
}

/// Returns the syntax of a field.
pub fn form(field: &MatchField) -> String {
    let name = &field.name;
    match names::match_type(field) {
        MatchType::Lpm => format!("write {name}=VALUE/LENGTH"),
        MatchType::Ternary => format!("write {name}=VALUE&&&MASK"),
        MatchType::Range => format!("write {name}=LOW..HIGH"),
        _ => format!("write {name}=VALUE"),
    }
}

/// `forward(mac: 48 bits wide, port: 9 bits wide)`
fn signature(action: &Action) -> String {
    let params: Vec<_> =
        action.params.iter().map(|param| format!("{}: {}", param.name, wide(param.bitwidth))).collect();
    format!("the action is {}({})", names::name(&action.preamble), params.join(", "))
}
