//! Reads table entries and default actions.

use std::collections::HashMap;

use bits::Bits;
use diagnostics::names::{self, Endings};
use diagnostics::{Diagnostic, Span};
use ir::{ActionId, Key, KeyValue, MatchKind, Program, Table, TableId};
use jsonc_parser::ast::{Object, Value};

use crate::json::{FileReader, member};
use crate::value::Term;
use crate::{ActionInvocation, Entries, EntryAction, TableEntrySpec, arrays, profiles, value};

const MEMBERS: &[&str] = &[
    "table",
    "match",
    "default_action",
    "action_name",
    "action_params",
    "priority",
    "member_id",
    "group_id",
    "one_shot",
    "idle_timeout_ns",
    "meter_config",
];

/// Term for an element of `table_entries` in messages.
pub(crate) const TABLE_ENTRY: &str = "a table entry";

/// Reads one element of `table_entries`.
pub(crate) fn read(reader: &mut FileReader<'_>, item: &Value<'_>, entries: &mut Entries) {
    let Some(object) = reader.object(item, TABLE_ENTRY) else { return };
    reader.only_members(object, TABLE_ENTRY, MEMBERS);
    let program = reader.program;
    let Some(name) = reader.string(object, "table", TABLE_ENTRY) else { return };
    let candidates: Vec<_> = program.tables.iter().map(|(id, table)| (id, table.name.as_str())).collect();
    let Some(table_id) = reader.named("unknown-table", "table", name, &candidates) else { return };
    let span = reader.span(object);
    match member(object, "default_action") {
        Some(Value::BooleanLit(flag)) if flag.value => default(reader, object, table_id, span, entries),
        Some(other) if !matches!(other, Value::BooleanLit(_)) => {
            let span = reader.span(other);
            reader.error("entries-format", span, "`default_action` must be `true` or `false`");
        }
        _ => entry(reader, object, table_id, span, entries),
    }
}

fn default(reader: &mut FileReader<'_>, object: &Object<'_>, id: TableId, span: Span, entries: &mut Entries) {
    let table = &reader.program.tables[id];
    if let Some(given) = member(object, "match") {
        let empty = matches!(given, Value::Object(object) if object.properties.is_empty());
        let span = reader.span(given);
        if !empty {
            reader.error("entries-format", span, "a default action cannot have a `match`: it runs on a table miss");
        }
    }
    if table.const_default {
        reader.error("const-table", span, format!("the default action of `{}` is const in the program", table.name));
    }
    let actions: Vec<ActionId> = table.actions.iter().map(|entry| entry.action).collect();
    let Some(call) = action(reader, object, table, &actions, TABLE_ENTRY) else { return };
    if table.actions.iter().any(|entry| entry.action == call.action && entry.table_only) {
        let name = &reader.program.actions[call.action].name;
        reader.error("entries-action", span, format!("`{name}` is @tableonly: it cannot be the default action"));
    }
    for name in ["priority", "member_id", "group_id", "one_shot", "idle_timeout_ns", "meter_config"] {
        if let Some(given) = member(object, name) {
            let span = reader.span(given);
            reader.error("entries-format", span, format!("a default action cannot have a `{name}`"));
        }
    }
    if let Some((_, _, first)) = entries.defaults.iter().find(|(table, ..)| *table == id) {
        let message = format!("duplicate default action for `{}`", table.name);
        let diagnostic = Diagnostic::error("entries-duplicate", span, message).also(*first, "first defined here");
        reader.diagnostics.push(diagnostic);
    }
    entries.defaults.push((id, call, span));
}

fn entry(reader: &mut FileReader<'_>, object: &Object<'_>, id: TableId, span: Span, entries: &mut Entries) {
    let program = reader.program;
    let table = &program.tables[id];
    if table.const_entries {
        reader.error("const-table", span, format!("the entries of `{}` are const in the program", table.name));
    }
    let keys = keys(reader, object, table, span);
    let priority = priority(reader, object, table, span);
    let target = match table.profile {
        Some(profile) => profiles::target(reader, object, table, profile, entries),
        None => direct(reader, object, table, span),
    };
    let idle_timeout_ns = reader.number(object, "idle_timeout_ns", i64::MAX as u64).unwrap_or(0);
    if idle_timeout_ns > 0 && !table.idle_timeout {
        let message = format!("entries of `{}` cannot time out: the table does not set `support_timeout`", table.name);
        reader.error("entries-timeout", span, message);
    }
    let meter = meter(reader, object, table);
    let (Some(keys), Some(target), Some(priority)) = (keys, target, priority) else { return };
    entries.tables.push(TableEntrySpec { table: id, keys, priority, target, idle_timeout_ns, meter, span });
}

/// Reads the action of an entry of a table without a profile.
fn direct(reader: &mut FileReader<'_>, object: &Object<'_>, table: &Table, span: Span) -> Option<EntryAction> {
    for name in ["member_id", "group_id", "one_shot"] {
        if let Some(given) = member(object, name) {
            let span = reader.span(given);
            reader.error("entries-action", span, format!("`{}` has no action profile", table.name));
            return None;
        }
    }
    let actions: Vec<ActionId> = table.actions.iter().map(|entry| entry.action).collect();
    let call = action(reader, object, table, &actions, TABLE_ENTRY)?;
    if table.actions.iter().any(|entry| entry.action == call.action && entry.default_only) {
        let name = &reader.program.actions[call.action].name;
        reader.error("entries-action", span, format!("`{name}` is @defaultonly: entries cannot use it"));
    }
    Some(EntryAction::Action(call))
}

/// Reads the rates of an entry's direct meter.
fn meter(reader: &mut FileReader<'_>, object: &Object<'_>, table: &Table) -> Option<crate::MeterRates> {
    let what = "`meter_config`";
    let given = member(object, "meter_config")?;
    let object = reader.object(given, what)?;
    reader.only_members(object, what, &["cir", "cburst", "pir", "pburst"]);
    if table.meter.is_none() {
        let span = reader.span(object);
        reader.error("unknown-meter", span, format!("`{}` has no direct meter", table.name));
    }
    arrays::rates(reader, object, what)
}

/// Describes `table` with its keys and actions, for a diagnostic about one of them.
fn describe(program: &Program, table: &Table) -> String {
    let keys = table.keys.iter().map(|key| format!("{} ({}, {} bits)", key.name, key.kind, key.width));
    let actions = table.actions.iter().map(|entry| {
        let action = &program.actions[entry.action];
        let params =
            action.params.iter().map(|param| format!("{}: {} bits", param.name, program.slots[param.slot].width));
        format!("{}({})", action.name, params.collect::<Vec<_>>().join(", "))
    });
    format!(
        "`{}` has\n  keys     {}\n  actions  {}",
        table.name,
        keys.collect::<Vec<_>>().join("\n           "),
        actions.collect::<Vec<_>>().join("\n           ")
    )
}

/// Returns the actions that entries of a table may use.
pub(crate) fn actions_of(table: &Table) -> Vec<ActionId> {
    table.actions.iter().filter(|entry| !entry.default_only).map(|entry| entry.action).collect()
}

/// Reads the members `action_name` and `action_params` of `object`, which must name one of these actions of a table.
/// Messages call the object `what`.
pub(crate) fn action(
    reader: &mut FileReader<'_>,
    object: &Object<'_>,
    table: &Table,
    actions: &[ActionId],
    what: &str,
) -> Option<ActionInvocation> {
    let program = reader.program;
    let (name, span) = reader.string(object, "action_name", what)?;
    let candidates: Vec<_> = actions.iter().map(|action| (*action, program.actions[*action].name.as_str())).collect();
    let Ok(id) = names::find(name, &candidates, Endings::BehindDot) else {
        let message = format!("table `{}` has no action `{name}`", table.name);
        reader.diagnostics.push(Diagnostic::error("unknown-action", span, message).help(describe(program, table)));
        return None;
    };
    let action = &program.actions[id];
    let given = match member(object, "action_params") {
        Some(given) => Some(reader.object(given, "`action_params`")?),
        None => None,
    };
    for property in given.map_or(&[][..], |given| &given.properties) {
        if !action.params.iter().any(|param| param.name == property.name.as_str()) {
            let span = reader.span(&property.name);
            let message = format!("action `{}` has no parameter `{}`", action.name, property.name.as_str());
            reader
                .diagnostics
                .push(Diagnostic::error("unknown-parameter", span, message).help(describe(program, table)));
        }
    }
    let mut args = Vec::new();
    for param in &action.params {
        let what = || format!("parameter `{}` of `{}`", param.name, action.name);
        match given.and_then(|given| member(given, &param.name)) {
            Some(found) => args.extend(value::read(reader, found, program.slots[param.slot].width, &what)),
            None => {
                let span = given.map_or(span, |given| reader.span(given));
                let diagnostic = Diagnostic::error("missing-parameter", span, format!("{} is missing", what()));
                reader.diagnostics.push(diagnostic.help(describe(program, table)));
            }
        }
    }
    (args.len() == action.params.len()).then_some(ActionInvocation { action: id, args })
}

/// Whether entries of the table need a priority.
fn by_priority(table: &Table) -> bool {
    table.keys.iter().any(|key| matches!(key.kind, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional))
}

fn priority(reader: &mut FileReader<'_>, object: &Object<'_>, table: &Table, span: Span) -> Option<i32> {
    let given = reader.number(object, "priority", i32::MAX as u64);
    match (by_priority(table), given) {
        (true, Some(priority)) if priority > 0 => Some(priority as i32),
        (false, Some(priority)) if priority > 0 => {
            let at = member(object, "priority").map_or(span, |value| reader.span(value));
            let message = format!("`{}` has only exact and lpm keys: its entries cannot have a priority", table.name);
            reader.error("entries-priority", at, message);
            None
        }
        (true, _) => {
            let message = format!("an entry of `{}` requires a `priority` of at least 1; the largest wins", table.name);
            reader.error("entries-priority", span, message);
            None
        }
        (false, _) => Some(0),
    }
}

fn keys(reader: &mut FileReader<'_>, object: &Object<'_>, table: &Table, span: Span) -> Option<Vec<KeyValue>> {
    let matched: Vec<&Key> = table.keys.iter().filter(|key| key.kind != MatchKind::Selector).collect();
    let program = reader.program;
    let names = (|| format!("table `{}`", table.name), || describe(program, table));
    key_values(reader, object, &matched, &names, span)
}

/// Reads the member `match` of `object`: a value for each of these keys. `names` return the term for the owner of the
/// keys in messages, and the help text of a diagnostic about one of them.
pub(crate) fn key_values(
    reader: &mut FileReader<'_>,
    object: &Object<'_>,
    matched: &[&Key],
    names: &(impl Fn() -> String, impl Fn() -> String),
    span: Span,
) -> Option<Vec<KeyValue>> {
    let (what, described) = names;
    let given = match member(object, "match") {
        Some(given) => Some(reader.object(given, "`match`")?),
        None => None,
    };
    let mut ok = true;
    let candidates: Vec<_> = matched.iter().map(|key| key.name.as_str()).enumerate().collect();
    let mut found: Vec<Option<&Value<'_>>> = vec![None; matched.len()];
    for property in given.map_or(&[][..], |given| &given.properties) {
        let name = property.name.as_str();
        let at = reader.span(&property.name);
        match names::find(name, &candidates, Endings::BehindDot).ok() {
            None => {
                let message = format!("{} has no key `{name}`", what());
                reader.diagnostics.push(Diagnostic::error("unknown-key", at, message).help(described()));
                ok = false;
            }
            Some(index) if found[index].is_some() => {
                reader.error("entries-format", at, format!("duplicate key `{name}`"));
                ok = false;
            }
            Some(index) => found[index] = Some(&property.value),
        }
    }
    let mut keys = Vec::new();
    for (key, value) in matched.iter().zip(found) {
        let value = match value {
            Some(value) => key_value(reader, key, value),
            None => anything(key).or_else(|| {
                let message = format!("key `{}` is missing: an exact key has no wildcard", key.name);
                let at = given.map_or(span, |given| reader.span(given));
                reader.diagnostics.push(Diagnostic::error("missing-key", at, message).help(described()));
                None
            }),
        };
        ok &= value.is_some();
        keys.extend(value);
    }
    ok.then_some(keys)
}

/// Returns the value of an omitted element.
fn anything(key: &Key) -> Option<KeyValue> {
    let zero = || Bits::zero(key.width);
    match key.kind {
        MatchKind::Exact | MatchKind::Selector => None,
        MatchKind::Lpm => Some(KeyValue::Lpm(zero(), 0)),
        MatchKind::Ternary => Some(KeyValue::Ternary(zero(), zero())),
        MatchKind::Range if key.signed => {
            let lowest = Bits::new(1, key.width).shl(key.width.saturating_sub(1));
            Some(KeyValue::Range(lowest.clone(), lowest.not()))
        }
        MatchKind::Range => Some(KeyValue::Range(zero(), Bits::ones(key.width))),
        MatchKind::Optional => Some(KeyValue::Any),
    }
}

fn key_value(reader: &mut FileReader<'_>, key: &Key, given: &Value<'_>) -> Option<KeyValue> {
    let what = || format!("key `{}`", key.name);
    let span = reader.span(given);
    match key.kind {
        MatchKind::Exact | MatchKind::Optional | MatchKind::Selector => {
            value::read(reader, given, key.width, &what).map(KeyValue::Exact)
        }
        MatchKind::Lpm => {
            let (value, length) = pair(reader, given, "/", "an lpm key must be `[value, prefix length]`")?;
            let written = value.text().to_owned();
            let value = side(reader, value, key.width, &what, span)?;
            let length = side(reader, length, 32, &|| "a prefix length".to_owned(), span)?.low_u64();
            if length > u64::from(key.width) {
                let message =
                    format!("{} is lpm, {} bits wide; its prefix length cannot be {length}", what(), key.width);
                reader.error("entries-value", span, message);
                return None;
            }
            let masked = value.and(&prefix_mask(length as u32, key.width));
            if masked != value {
                let message =
                    format!("{} has bits set beyond its prefix of {length} bits, which are never compared", what());
                let help = format!("write {}, or a longer prefix", value::in_notation_of(&written, &masked));
                reader.diagnostics.push(Diagnostic::warning("bits-beyond-prefix", span, message).help(help));
            }
            Some(KeyValue::Lpm(masked, length as u32))
        }
        MatchKind::Ternary => {
            let (value, mask) = pair(reader, given, "&&&", "a ternary key must be `[value, mask]`")?;
            let value = side(reader, value, key.width, &what, span)?;
            let mask = side(reader, mask, key.width, &what, span)?;
            Some(KeyValue::Ternary(value.and(&mask), mask))
        }
        MatchKind::Range => {
            let (low, high) = pair(reader, given, "..", "a range key must be `[low, high]`")?;
            let low = side(reader, low, key.width, &what, span)?;
            let high = side(reader, high, key.width, &what, span)?;
            let order = if key.signed { low.signed_cmp(&high) } else { low.unsigned_cmp(&high) };
            if order.is_gt() {
                reader.error(
                    "entries-value",
                    span,
                    format!("{}: the range is empty: its low end is above its high end", what()),
                );
                return None;
            }
            Some(KeyValue::Range(low, high))
        }
    }
}

/// One half of a two-part key value: a JSON value, or text cut out of a string.
enum PairHalf<'v, 't> {
    Json(&'v Value<'t>),
    Text(String),
}

impl PairHalf<'_, '_> {
    /// Returns the text as it was written; empty for a JSON value that is neither a number nor a string.
    fn text(&self) -> &str {
        match self {
            PairHalf::Json(Value::StringLit(text)) => &text.value,
            PairHalf::Json(Value::NumberLit(number)) => number.value,
            PairHalf::Json(_) => "",
            PairHalf::Text(text) => text,
        }
    }
}

/// Reads the two parts of `[a, b]` or `"a<separator>b"`.
fn pair<'v, 't>(
    reader: &mut FileReader<'_>,
    given: &'v Value<'t>,
    separator: &str,
    form: &str,
) -> Option<(PairHalf<'v, 't>, PairHalf<'v, 't>)> {
    match given {
        Value::Array(array) if array.elements.len() == 2 => {
            return Some((PairHalf::Json(&array.elements[0]), PairHalf::Json(&array.elements[1])));
        }
        Value::StringLit(text) => {
            if let Some((left, right)) = text.value.split_once(separator) {
                return Some((PairHalf::Text(left.trim().to_owned()), PairHalf::Text(right.trim().to_owned())));
            }
        }
        _ => {}
    }
    let span = reader.span(given);
    reader.error("entries-value", span, format!("{form} or \"a {separator} b\""));
    None
}

fn side(reader: &mut FileReader<'_>, side: PairHalf<'_, '_>, width: u32, what: Term<'_>, span: Span) -> Option<Bits> {
    match side {
        PairHalf::Json(given) => value::read(reader, given, width, what),
        PairHalf::Text(text) => match value::text(&text, width) {
            Ok(bits) => Some(bits),
            Err(reason) => {
                reader.error("entries-value", span, format!("{} is {width} bits wide: {reason}", what()));
                None
            }
        },
    }
}

fn prefix_mask(length: u32, width: u32) -> Bits {
    Bits::ones(width).shl(width - length)
}

/// Reports entries whose table, keys and priority equal those of an earlier one, in the file or in the program.
pub(crate) fn refuse_duplicates(reader: &mut FileReader<'_>, entries: &Entries) {
    let mut seen: HashMap<(TableId, &[KeyValue], i32), Span> = HashMap::new();
    for entry in &entries.tables {
        let (table, span) = (&entry.table, &entry.span);
        if let Some(first) = seen.insert((*table, &entry.keys, entry.priority), *span) {
            let name = &reader.program.tables[*table].name;
            let message = format!("duplicate entry of `{name}`: the same match occurs earlier in the file");
            let diagnostic = Diagnostic::error("entries-duplicate", *span, message).also(first, "first defined here");
            reader.diagnostics.push(diagnostic);
        }
        let own = &reader.program.tables[*table].entries;
        if own.iter().any(|other| other.keys == entry.keys && other.priority == entry.priority) {
            let name = &reader.program.tables[*table].name;
            let message = format!("the program already defines an entry of `{name}` with the same match");
            reader.error("entries-duplicate", *span, message);
        }
    }
}
