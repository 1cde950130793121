//! The tables of the stages.

use subscribe::{Key, Stage, StageKey, Wide, state};

use super::text::{Text, identifier};
use super::{Options, Written, counters, state as memory};
use crate::format::{Format, HeaderId};

/// The state as a key.
pub(super) const STATE_KEY: &str = "meta.subscription.state: exact @name(\"state\");";

/// Where the tables of stages lead: to a state, or at once to where the message goes.
const LEADS_TO: &str = "to_state; to_port; to_group;";

/// The table that knows which headers are valid, and no state.
pub(crate) const VALIDITY: &str = "validity";

/// The variable that says whether one of some headers is valid.
pub(crate) fn validity(format: &Format, any: &[HeaderId]) -> String {
    let names: Vec<String> = any.iter().map(|header| identifier(&format.headers[header.0].name)).collect();
    format!("{}_valid", names.join("_or_"))
}

/// The table of a field's codes. Of prefixes it has another name: entries of one kind are not to be taken for those of another.
pub(crate) fn codes_table(column: &str, kind: Wide) -> String {
    match kind {
        Wide::Range => name(column, "codes"),
        kind => name(column, &format!("codes_{}", wide_name(kind))),
    }
}

/// The action that gives a value its code.
pub(crate) fn to_code(column: &str) -> String {
    name(column, "to_code")
}

/// The variable for a value's code.
fn code(column: &str) -> String {
    name(column, "code")
}

/// What belongs to a column.
fn name(column: &str, part: &str) -> String {
    format!("{}_{part}", identifier(column))
}

/// A table of a stage's, by the stage's place: programs and entries made with different orders have no such table in common, so that
/// neither runs with the other's.
pub(crate) fn part_name(column: &str, part: &str, stage: usize) -> String {
    format!("{}_{stage}", name(column, part))
}

/// The name of a match kind, which is that of its part of a stage too.
pub(crate) fn wide_name(wide: Wide) -> &'static str {
    match wide {
        Wide::Range => "range",
        Wide::Lpm => "lpm",
        Wide::Ternary => "ternary",
    }
}

/// The tables of a stage that match values, in the order in which they are asked.
fn matching(stage: &Stage) -> impl Iterator<Item = &'static str> {
    [stage.exact.then_some("exact"), stage.wide.map(wide_name)].into_iter().flatten()
}

/// Every table of a stage, with the match kind of what it looks up: values, or nothing but the state.
pub(super) fn tables(stage: &Stage, number: usize, format: &subscribe::Format) -> Vec<(String, Option<&'static str>)> {
    let StageKey::Column(key) = &stage.column else { return vec![(VALIDITY.to_owned(), Some("ternary"))] };
    let column = key.name(format);
    let codes = stage.codes.map(|_| (codes_table(&column, stage.code_table), Some(wide_name(stage.code_table))));
    let values = matching(stage).map(|part| (part_name(&column, part, number), Some(part)));
    codes.into_iter().chain(values).chain([(part_name(&column, "rest", number), None)]).collect()
}

pub(super) fn table(text: &mut Text, name: &str, keys: &[String], actions: &str, options: &Options) {
    text.line("");
    text.block(format!("table {name}"), |text| {
        match keys {
            [key] => text.line(format!("key = {{ {key} }}")),
            _ => text.block("key =", |text| keys.iter().for_each(|key| text.line(key))),
        }
        text.line(format!("actions = {{ {actions} NoAction; }}"));
        text.line("default_action = NoAction;");
        text.line(format!("size = {};", options.table_size));
    });
}

/// The tables of all stages.
pub(super) fn declare(text: &mut Text, written: &Written<'_>) {
    for (number, stage) in written.stages.iter().enumerate() {
        let StageKey::Column(key) = &stage.column else {
            let names = written.rules.headers.iter().map(|any| validity(written.format, any));
            let keys: Vec<String> = names.map(|name| format!("{name}: ternary @name(\"{name}\");")).collect();
            table(text, VALIDITY, &keys, LEADS_TO, written.options);
            continue;
        };
        let column = key.name(&written.rules.format);
        if let Some(bits) = stage.codes {
            codes(text, written, &column, *key, bits, stage.code_table);
        }
        let looked_up = if stage.codes.is_some() { code(&column) } else { value(written, *key) };
        let named = |part: &str| part_name(&column, part, number);
        let mut part = |part: &str| {
            let value = format!("{looked_up}: {part} @name(\"value\");");
            table(text, &named(part), &[STATE_KEY.to_owned(), value], LEADS_TO, written.options);
        };
        matching(stage).for_each(&mut part);
        table(text, &named("rest"), &[STATE_KEY.to_owned()], LEADS_TO, written.options);
    }
}

/// What maps a field's values onto its codes. A value without an entry has code 0.
fn codes(text: &mut Text, written: &Written<'_>, column: &str, key: Key, bits: u32, kind: Wide) {
    let (variable, action) = (code(column), to_code(column));
    text.line("");
    text.line(format!("bit<{bits}> {variable} = 0;"));
    text.line(format!("action {action}(bit<{bits}> code) {{ {variable} = code; }}"));
    let value = format!("{}: {} @name(\"value\");", value(written, key), wide_name(kind));
    // Each code is one range, but may be many prefixes.
    let most = if kind == Wide::Range { 1u32.checked_shl(bits).unwrap_or(u32::MAX) } else { u32::MAX };
    let options = Options { table_size: written.options.table_size.min(most), ..*written.options };
    table(text, &codes_table(column, kind), &[value], &format!("{action};"), &options);
}

/// Whether the state is one that a stage asks, or a leaf: its highest bits say so.
pub(super) fn is_asked(tag: u32) -> String {
    format!("meta.subscription.state[31:{}] == {tag}", state::NUMBER_BITS)
}

/// Whether the state is a leaf.
pub(super) fn is_leaf(written: &Written<'_>) -> String {
    match written.remembers() {
        true => format!("meta.subscription.state[31:{}] >= {}", state::NUMBER_BITS, state::REMEMBERED),
        false => is_asked(state::LEAF),
    }
}

/// The first stage that asks for what the program remembers of messages before; the number of stages if none does.
fn first_remembered(written: &Written<'_>) -> usize {
    let remembers = |stage: &Stage| matches!(stage.column, StageKey::Column(Key::Counter(_) | Key::Slot(_)));
    written.stages.iter().position(remembers).unwrap_or(written.stages.len())
}

/// Takes the state through the stages that ask for what is in the message.
pub(super) fn apply(text: &mut Text, written: &Written<'_>) {
    (0..first_remembered(written)).for_each(|number| stage(text, written, number));
}

/// Takes the state through the stages behind these, and writes with `count` what is done for messages that are remembered. All
/// of it is one step for other packets: a message tests what those before it left, and none between counts for less.
pub(super) fn remember(text: &mut Text, written: &Written<'_>, count: impl FnOnce(&mut Text)) {
    let first = first_remembered(written);
    text.block(format!("if ({})", is_between(first)), |text| {
        memory::find(text, written);
        text.block("@atomic", |text| {
            let first_slot =
                written.stages.iter().position(|stage| matches!(stage.column, StageKey::Column(Key::Slot(_))));
            for number in first..written.stages.len() {
                match first_slot {
                    Some(slot) if slot == number && slot == first => memory::look(text, written),
                    Some(slot) if slot == number => {
                        text.block(format!("if ({})", is_between(slot)), |text| memory::look(text, written));
                    }
                    _ => {}
                }
                stage(text, written, number);
            }
            count(text);
        });
    });
}

/// Whether the state is one that a stage asks from this one on, or a leaf whose messages are remembered.
fn is_between(first: usize) -> String {
    let tag = format!("meta.subscription.state[31:{}]", state::NUMBER_BITS);
    format!("{tag} >= {} && {tag} != {}", state::stage_tag(first), state::LEAF)
}

/// The tables of a stage, for states that ask it.
fn stage(text: &mut Text, written: &Written<'_>, number: usize) {
    let stage = &written.stages[number];
    let StageKey::Column(key) = &stage.column else { return text.line(format!("{VALIDITY}.apply();")) };
    let column = key.name(&written.rules.format);
    let tables: Vec<String> = matching(stage).map(|part| part_name(&column, part, number)).collect();
    let rest = format!("{}.apply();", part_name(&column, "rest", number));
    let missed = |table: &String| format!("if (!{table}.apply().hit) {{ ");
    let opened: String = tables.iter().map(missed).collect();
    text.block(format!("if ({})", is_asked(state::stage_tag(number))), |text| {
        remembered(text, written, *key);
        if stage.codes.is_some() {
            text.line(format!("{} = 0;", code(&column)));
            text.line(format!("{}.apply();", codes_table(&column, stage.code_table)));
        }
        text.line(format!("{opened}{rest}{}", " }".repeat(tables.len())));
    });
}

/// Reads what the program remembers of messages before, where a stage asks that.
fn remembered(text: &mut Text, written: &Written<'_>, key: Key) {
    match key {
        Key::Counter(id) => counters::read(text, &written.format.counters[usize::from(id.0)]),
        Key::Slot(slot) => memory::value(text, written, slot),
        Key::Valid(_) | Key::Field(_) => {}
    }
}

fn value(written: &Written<'_>, key: Key) -> String {
    match key {
        Key::Field(id) => format!("{}_value", identifier(&written.format.fields[usize::from(id.0)].name)),
        Key::Counter(id) => format!("{}_value", written.format.counters[usize::from(id.0)].name),
        Key::Slot(slot) => memory::value_var(slot),
        Key::Valid(_) => unreachable!("validity is a stage of its own"),
    }
}
