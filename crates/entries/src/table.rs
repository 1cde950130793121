//! Table entries and default actions.

use std::collections::HashMap;

use bits::Bits;
use ir::{Entry, Key, KeyValue, LocId, MatchKind, Program, Table, TableId};
use jsonc_parser::ast::{Object, Value};
use source::{Diagnostic, Span};

use crate::json::{Reader, member};
use crate::{Entries, names, value};

const MEMBERS: &[&str] = &["table", "match", "default_action", "action_name", "action_params", "priority"];

/// Reads one element of `table_entries`.
pub(crate) fn read(reader: &mut Reader<'_>, item: &Value<'_>, entries: &mut Entries) {
    let Some(object) = reader.object(item, "a table entry") else { return };
    reader.only_members(object, "a table entry", MEMBERS);
    let program = reader.program;
    let Some((table_name, table_span)) = reader.string(object, "table", "a table entry") else { return };
    let candidates: Vec<_> = program.tables.iter().map(|(id, table)| (id, table.name.as_str())).collect();
    let Some(table_id) = names::find(table_name, &candidates) else {
        let message = format!("the program has no table `{table_name}`");
        let mut diagnostic = Diagnostic::error("unknown-table", table_span, message);
        diagnostic = diagnostic.help(match names::nearest(table_name, candidates.iter().map(|(_, name)| *name)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("its tables are {}", names::listed(candidates.iter().map(|(_, name)| *name))),
        });
        reader.diagnostics.push(diagnostic);
        return;
    };
    let table = &program.tables[table_id];
    let span = reader.span(object);
    let action = action(reader, object, table);
    match member(object, "default_action") {
        Some(Value::BooleanLit(flag)) if flag.value => default(reader, object, table_id, action, span, entries),
        Some(other) if !matches!(other, Value::BooleanLit(_)) => {
            let span = reader.span(other);
            reader.error("entries-format", span, "`default_action` is `true` or `false`");
        }
        _ => entry(reader, object, table_id, action, span, entries),
    }
}

fn default(
    reader: &mut Reader<'_>,
    object: &Object<'_>,
    id: TableId,
    action: Option<(u32, Vec<Bits>)>,
    span: Span,
    entries: &mut Entries,
) {
    let table = &reader.program.tables[id];
    if let Some(given) = member(object, "match") {
        let empty = matches!(given, Value::Object(object) if object.properties.is_empty());
        let span = reader.span(given);
        if !empty {
            reader.error("entries-format", span, "a default action has no `match`: it is what a miss runs");
        }
    }
    if table.const_default {
        reader.error("const-table", span, format!("the default action of `{}` is const in the program", table.name));
    }
    let Some((action, args)) = action else { return };
    if table.actions[action as usize].table_only {
        let name = &reader.program.actions[table.actions[action as usize].action].name;
        reader.error("entries-action", span, format!("`{name}` is @tableonly: it cannot be the default action"));
    }
    if let Some((_, _, _, first)) = entries.defaults.iter().find(|(table, ..)| *table == id) {
        let message = format!("`{}` gets its default action for the second time", table.name);
        let diagnostic = Diagnostic::error("entries-duplicate", span, message).also(*first, "the first time");
        reader.diagnostics.push(diagnostic);
    }
    entries.defaults.push((id, action, args, span));
}

fn entry(
    reader: &mut Reader<'_>,
    object: &Object<'_>,
    id: TableId,
    action: Option<(u32, Vec<Bits>)>,
    span: Span,
    entries: &mut Entries,
) {
    let program = reader.program;
    let table = &program.tables[id];
    if table.const_entries {
        reader.error("const-table", span, format!("the entries of `{}` are const in the program", table.name));
    }
    let keys = keys(reader, object, table, span);
    let priority = priority(reader, object, table, span);
    let (Some(keys), Some((action, args)), Some(priority)) = (keys, action, priority) else { return };
    if table.actions[action as usize].default_only {
        let name = &program.actions[table.actions[action as usize].action].name;
        reader.error("entries-action", span, format!("`{name}` is @defaultonly: entries cannot use it"));
    }
    entries.tables.push((id, Entry { keys, priority, action, args, loc: LocId::from_u32(0) }, span));
}

/// `table` with its keys and actions, for people who got one of them wrong.
fn describe(program: &Program, table: &Table) -> String {
    let keys = table.keys.iter().map(|key| format!("{} ({}, {} bits)", key.name, kind_name(key.kind), key.width));
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

fn kind_name(kind: MatchKind) -> &'static str {
    match kind {
        MatchKind::Exact => "exact",
        MatchKind::Lpm => "lpm",
        MatchKind::Ternary => "ternary",
        MatchKind::Range => "range",
        MatchKind::Optional => "optional",
        MatchKind::Selector => "selector",
    }
}

fn action(reader: &mut Reader<'_>, object: &Object<'_>, table: &Table) -> Option<(u32, Vec<Bits>)> {
    let program = reader.program;
    let (name, span) = reader.string(object, "action_name", "a table entry")?;
    let named = |entry: &ir::TableAction| program.actions[entry.action].name.as_str();
    let candidates: Vec<_> = table.actions.iter().map(named).enumerate().collect();
    let Some(index) = names::find(name, &candidates) else {
        let message = format!("table `{}` has no action `{name}`", table.name);
        reader.diagnostics.push(Diagnostic::error("unknown-action", span, message).help(describe(program, table)));
        return None;
    };
    let action = &program.actions[table.actions[index].action];
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
        let what = format!("parameter `{}` of `{}`", param.name, action.name);
        match given.and_then(|given| member(given, &param.name)) {
            Some(found) => args.extend(value::read(reader, found, program.slots[param.slot].width, &what)),
            None => {
                let span = given.map_or(span, |given| reader.span(given));
                let diagnostic = Diagnostic::error("missing-parameter", span, format!("{what} is missing"));
                reader.diagnostics.push(diagnostic.help(describe(program, table)));
            }
        }
    }
    (args.len() == action.params.len()).then_some((index as u32, args))
}

/// Whether entries of the table need a priority.
fn by_priority(table: &Table) -> bool {
    table.keys.iter().any(|key| matches!(key.kind, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional))
}

fn priority(reader: &mut Reader<'_>, object: &Object<'_>, table: &Table, span: Span) -> Option<i32> {
    let given = reader.number(object, "priority", i32::MAX as u64);
    match (by_priority(table), given) {
        (true, Some(priority)) if priority > 0 => Some(priority as i32),
        (false, Some(priority)) if priority > 0 => {
            let at = member(object, "priority").map_or(span, |value| reader.span(value));
            let message = format!("`{}` has only exact and lpm keys: its entries have no priority", table.name);
            reader.error("entries-priority", at, message);
            None
        }
        (true, _) => {
            let message = format!("an entry of `{}` needs a `priority` of at least 1; a larger one wins", table.name);
            reader.error("entries-priority", span, message);
            None
        }
        (false, _) => Some(0),
    }
}

fn keys(reader: &mut Reader<'_>, object: &Object<'_>, table: &Table, span: Span) -> Option<Vec<KeyValue>> {
    let program = reader.program;
    let given = match member(object, "match") {
        Some(given) => Some(reader.object(given, "`match`")?),
        None => None,
    };
    let mut ok = true;
    let matched = || table.keys.iter().filter(|key| key.kind != MatchKind::Selector);
    let candidates: Vec<_> = matched().map(|key| key.name.as_str()).enumerate().collect();
    let mut found: Vec<Option<&Value<'_>>> = vec![None; matched().count()];
    for property in given.map_or(&[][..], |given| &given.properties) {
        let name = property.name.as_str();
        let at = reader.span(&property.name);
        match names::find(name, &candidates) {
            None => {
                let message = format!("table `{}` has no key `{name}`", table.name);
                reader.diagnostics.push(Diagnostic::error("unknown-key", at, message).help(describe(program, table)));
                ok = false;
            }
            Some(index) if found[index].is_some() => {
                reader.error("entries-format", at, format!("`{name}` stands here for the second time"));
                ok = false;
            }
            Some(index) => found[index] = Some(&property.value),
        }
    }
    let mut keys = Vec::new();
    for (key, value) in matched().zip(found) {
        let value = match value {
            Some(value) => key_value(reader, key, value),
            None => anything(key).or_else(|| {
                let message = format!("key `{}` is missing: an exact key has no wildcard", key.name);
                let at = given.map_or(span, |given| reader.span(given));
                reader.diagnostics.push(Diagnostic::error("missing-key", at, message).help(describe(program, table)));
                None
            }),
        };
        ok &= value.is_some();
        keys.extend(value);
    }
    ok.then_some(keys)
}

/// What an element that is left out means.
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

fn key_value(reader: &mut Reader<'_>, key: &Key, given: &Value<'_>) -> Option<KeyValue> {
    let what = format!("key `{}`", key.name);
    let span = reader.span(given);
    match key.kind {
        MatchKind::Exact | MatchKind::Optional | MatchKind::Selector => {
            value::read(reader, given, key.width, &what).map(KeyValue::Exact)
        }
        MatchKind::Lpm => {
            let (value, length) = pair(reader, given, "/", "an lpm key is `[value, prefix length]`")?;
            let value = side(reader, value, key.width, &what, span)?;
            let length = side(reader, length, 32, "a prefix length", span)?.low_u64();
            if length > u64::from(key.width) {
                let message = format!("{what} is lpm, {} bits wide; its prefix cannot have {length}", key.width);
                reader.error("entries-value", span, message);
                return None;
            }
            let masked = value.and(&prefix_mask(length as u32, key.width));
            if masked != value {
                let message = format!("{what} has bits behind its prefix of {length}, which would never be compared");
                let help = format!("write {:#x}, or a longer prefix", masked);
                reader.diagnostics.push(Diagnostic::warning("bits-behind-prefix", span, message).help(help));
            }
            Some(KeyValue::Lpm(masked, length as u32))
        }
        MatchKind::Ternary => {
            let (value, mask) = pair(reader, given, "&&&", "a ternary key is `[value, mask]`")?;
            let value = side(reader, value, key.width, &what, span)?;
            let mask = side(reader, mask, key.width, &what, span)?;
            Some(KeyValue::Ternary(value.and(&mask), mask))
        }
        MatchKind::Range => {
            let (low, high) = pair(reader, given, "..", "a range key is `[low, high]`")?;
            let low = side(reader, low, key.width, &what, span)?;
            let high = side(reader, high, key.width, &what, span)?;
            let order = if key.signed { low.signed_cmp(&high) } else { low.unsigned_cmp(&high) };
            if order.is_gt() {
                reader.error("entries-value", span, format!("{what}: the range is empty, its low end is the higher"));
                return None;
            }
            Some(KeyValue::Range(low, high))
        }
    }
}

/// A half of a two-part key value: a JSON value, or text cut out of a string.
enum Side<'v, 't> {
    Json(&'v Value<'t>),
    Text(String),
}

/// The two parts of `[a, b]` or `"a<separator>b"`.
fn pair<'v, 't>(
    reader: &mut Reader<'_>,
    given: &'v Value<'t>,
    separator: &str,
    form: &str,
) -> Option<(Side<'v, 't>, Side<'v, 't>)> {
    match given {
        Value::Array(array) if array.elements.len() == 2 => {
            return Some((Side::Json(&array.elements[0]), Side::Json(&array.elements[1])));
        }
        Value::StringLit(text) => {
            if let Some((left, right)) = text.value.split_once(separator) {
                return Some((Side::Text(left.trim().to_owned()), Side::Text(right.trim().to_owned())));
            }
        }
        _ => {}
    }
    let span = reader.span(given);
    reader.error("entries-value", span, format!("{form} or \"a {separator} b\""));
    None
}

fn side(reader: &mut Reader<'_>, side: Side<'_, '_>, width: u32, what: &str, span: Span) -> Option<Bits> {
    match side {
        Side::Json(given) => value::read(reader, given, width, what),
        Side::Text(text) => match value::text(&text, width) {
            Ok(bits) => Some(bits),
            Err(reason) => {
                reader.error("entries-value", span, format!("{what} is {width} bits wide: {reason}"));
                None
            }
        },
    }
}

fn prefix_mask(length: u32, width: u32) -> Bits {
    Bits::ones(width).shl(width - length)
}

/// Reports entries whose table, keys and priority are those of an earlier one, in the file or in the program.
pub(crate) fn refuse_duplicates(reader: &mut Reader<'_>, entries: &Entries) {
    let mut seen: HashMap<(TableId, &[KeyValue], i32), Span> = HashMap::new();
    for (table, entry, span) in &entries.tables {
        if let Some(first) = seen.insert((*table, &entry.keys, entry.priority), *span) {
            let name = &reader.program.tables[*table].name;
            let message = format!("an entry of `{name}` with the same match stands earlier in the file");
            let diagnostic = Diagnostic::error("entries-duplicate", *span, message).also(first, "the earlier one");
            reader.diagnostics.push(diagnostic);
        }
        let own = &reader.program.tables[*table].entries;
        if own.iter().any(|other| other.keys == entry.keys && other.priority == entry.priority) {
            let name = &reader.program.tables[*table].name;
            let message = format!("the program itself gives `{name}` an entry with the same match");
            reader.error("entries-duplicate", *span, message);
        }
    }
}
