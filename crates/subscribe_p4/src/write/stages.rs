//! Generates the P4 tables of each stage of the rules' decision diagram, and the code that applies them.

use subscribe::{ColumnKey, Stage, StageKey, Wide, state};

use super::text::{Text, identifier};
use super::{ProgramInputs, ProgramOptions, counters, state as aggregate_state};
use crate::format::{HeaderId, ProgramFormat};

/// The state as a table key.
pub(super) const STATE_KEY: &str = "meta.subscription.state: exact @name(\"state\");";

/// Returns the actions of the leaf table: to one port, or to several.
pub(super) fn delivery_actions(options: &ProgramOptions) -> &'static str {
    if options.bitmap.is_some() { "to_port; to_ports;" } else { "to_port; to_group;" }
}

/// Returns the actions of stage tables: to the next state, or directly to the destination.
fn stage_actions(options: &ProgramOptions) -> String {
    format!("to_state; {}", delivery_actions(options))
}

/// Name of the table that matches header validity, independent of the state.
pub(crate) const VALIDITY: &str = "validity";

/// Returns the name of the variable that holds whether any of the given headers is valid.
pub(crate) fn validity(format: &ProgramFormat, any: &[HeaderId]) -> String {
    let names: Vec<String> = any.iter().map(|header| identifier(&format.headers[header.0].name)).collect();
    format!("{}_valid", names.join("_or_"))
}

/// Returns the name of a field's code table. It depends on the match kind, so entries for one kind are never
/// installed in a table of another.
pub(crate) fn codes_table(column: &str, kind: Wide) -> String {
    match kind {
        Wide::Range => name(column, "codes"),
        kind => name(column, &format!("codes_{}", match_kind_name(kind))),
    }
}

/// Returns the name of the action that sets a value's code.
pub(crate) fn to_code(column: &str) -> String {
    name(column, "to_code")
}

/// Returns the name of the variable for a value's code.
fn code(column: &str) -> String {
    name(column, "code")
}

/// Returns a name derived from a column.
fn name(column: &str, part: &str) -> String {
    format!("{}_{part}", identifier(column))
}

/// Returns the name of a stage's table, which contains the stage number. Programs and entries generated with
/// different column orders therefore have no such table in common, and cannot be combined by mistake.
pub(crate) fn part_name(column: &str, part: &str, stage: usize) -> String {
    format!("{}_{stage}", name(column, part))
}

/// Returns the name of a match kind, which is also the suffix of its table.
pub(crate) fn match_kind_name(wide: Wide) -> &'static str {
    match wide {
        Wide::Range => "range",
        Wide::Lpm => "lpm",
        Wide::Ternary => "ternary",
    }
}

/// Returns the suffixes of a stage's tables that match values, in lookup order.
fn matching(stage: &Stage) -> impl Iterator<Item = &'static str> {
    [stage.exact.then_some("exact"), stage.wide.map(match_kind_name)].into_iter().flatten()
}

/// Returns the tables of a stage with the match kind of their value key; `None` for a table that matches the state
/// alone.
pub(super) fn tables(
    stage: &Stage,
    number: usize,
    format: &subscribe::MessageFormat,
) -> Vec<(String, Option<&'static str>)> {
    let StageKey::Column(key) = &stage.column else { return vec![(VALIDITY.to_owned(), Some("ternary"))] };
    let column = key.name(format);
    let codes = stage.codes.map(|_| (codes_table(&column, stage.code_table), Some(match_kind_name(stage.code_table))));
    let values = matching(stage).map(|part| (part_name(&column, part, number), Some(part)));
    codes.into_iter().chain(values).chain([(part_name(&column, "rest", number), None)]).collect()
}

pub(super) fn table(text: &mut Text, name: &str, keys: &[String], actions: &str, options: &ProgramOptions) {
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

/// Writes the tables of all stages.
pub(super) fn declare(text: &mut Text, inputs: &ProgramInputs<'_>) {
    for (number, stage) in inputs.stages.iter().enumerate() {
        let StageKey::Column(key) = &stage.column else {
            let names = inputs.rules.headers.iter().map(|any| validity(inputs.format, any));
            let keys: Vec<String> = names.map(|name| format!("{name}: ternary @name(\"{name}\");")).collect();
            table(text, VALIDITY, &keys, &stage_actions(inputs.options), inputs.options);
            continue;
        };
        let column = key.name(&inputs.rules.format);
        if let Some(bits) = stage.codes {
            codes(text, inputs, &column, *key, bits, stage.code_table);
        }
        let looked_up = if stage.codes.is_some() { code(&column) } else { value(inputs, *key) };
        let named = |part: &str| part_name(&column, part, number);
        let mut part = |part: &str| {
            let value = format!("{looked_up}: {part} @name(\"value\");");
            let actions = stage_actions(inputs.options);
            table(text, &named(part), &[STATE_KEY.to_owned(), value], &actions, inputs.options);
        };
        matching(stage).for_each(&mut part);
        table(text, &named("rest"), &[STATE_KEY.to_owned()], &stage_actions(inputs.options), inputs.options);
    }
}

/// Writes the code table of a field. A value without an entry has code 0.
fn codes(text: &mut Text, inputs: &ProgramInputs<'_>, column: &str, key: ColumnKey, bits: u32, kind: Wide) {
    let (variable, action) = (code(column), to_code(column));
    text.line("");
    text.line(format!("bit<{bits}> {variable} = 0;"));
    text.line(format!("action {action}(bit<{bits}> code) {{ {variable} = code; }}"));
    let value = format!("{}: {} @name(\"value\");", value(inputs, key), match_kind_name(kind));
    // A code stands for one range, which may take several prefixes.
    let max_entries = if kind == Wide::Range { 1u32.checked_shl(bits).unwrap_or(u32::MAX) } else { u32::MAX };
    let options = ProgramOptions { table_size: inputs.options.table_size.min(max_entries), ..*inputs.options };
    table(text, &codes_table(column, kind), &[value], &format!("{action};"), &options);
}

/// Returns the condition that the state has this tag.
pub(super) fn has_tag(tag: u32) -> String {
    format!("meta.subscription.state[31:{}] == {tag}", state::NUMBER_BITS)
}

/// Returns the condition that the state is a leaf.
pub(super) fn is_leaf(inputs: &ProgramInputs<'_>) -> String {
    if inputs.is_stateful() {
        format!("meta.subscription.state[31:{}] >= {}", state::NUMBER_BITS, state::STATEFUL_LEAF)
    } else {
        has_tag(state::LEAF)
    }
}

/// Returns the first stage that tests a counter or an aggregate, or the number of stages if there is none.
fn first_stateful_stage(inputs: &ProgramInputs<'_>) -> usize {
    let is_stateful =
        |stage: &Stage| matches!(stage.column, StageKey::Column(ColumnKey::Counter(_) | ColumnKey::Slot(_)));
    inputs.stages.iter().position(is_stateful).unwrap_or(inputs.stages.len())
}

/// Writes code that passes the state through the stages that test the message itself.
pub(super) fn apply(text: &mut Text, inputs: &ProgramInputs<'_>) {
    (0..first_stateful_stage(inputs)).for_each(|number| stage(text, inputs, number));
}

/// Writes code that passes the state through the remaining stages, followed by the state updates that `count` writes.
/// The stages and the updates form one atomic block: a message reads the results of all messages before it, and no
/// update is lost. The cells of the message's keys are located before the block.
pub(super) fn apply_stateful(text: &mut Text, inputs: &ProgramInputs<'_>, count: impl FnOnce(&mut Text)) {
    let first = first_stateful_stage(inputs);
    text.block(format!("if ({})", is_at_or_after(first)), |text| {
        aggregate_state::locate_cells(text, inputs);
        text.block("@atomic", |text| {
            let first_slot =
                inputs.stages.iter().position(|stage| matches!(stage.column, StageKey::Column(ColumnKey::Slot(_))));
            for number in first..inputs.stages.len() {
                match first_slot {
                    Some(slot) if slot == number && slot == first => aggregate_state::read_cells(text, inputs),
                    Some(slot) if slot == number => {
                        text.block(format!("if ({})", is_at_or_after(slot)), |text| {
                            aggregate_state::read_cells(text, inputs)
                        });
                    }
                    _ => {}
                }
                stage(text, inputs, number);
            }
            count(text);
        });
    });
}

/// Returns the condition that the state belongs to this stage or a later one, or is a leaf with state updates.
fn is_at_or_after(first: usize) -> String {
    let tag = format!("meta.subscription.state[31:{}]", state::NUMBER_BITS);
    format!("{tag} >= {} && {tag} != {}", state::stage_tag(first), state::LEAF)
}

/// Writes the application of a stage's tables, guarded by the stage's tag.
fn stage(text: &mut Text, inputs: &ProgramInputs<'_>, number: usize) {
    let stage = &inputs.stages[number];
    let StageKey::Column(key) = &stage.column else { return text.line(format!("{VALIDITY}.apply();")) };
    let column = key.name(&inputs.rules.format);
    let tables: Vec<String> = matching(stage).map(|part| part_name(&column, part, number)).collect();
    let rest = format!("{}.apply();", part_name(&column, "rest", number));
    let missed = |table: &String| format!("if (!{table}.apply().hit) {{ ");
    let opened: String = tables.iter().map(missed).collect();
    text.block(format!("if ({})", has_tag(state::stage_tag(number))), |text| {
        read_stateful(text, inputs, *key);
        if stage.codes.is_some() {
            text.line(format!("{} = 0;", code(&column)));
            text.line(format!("{}.apply();", codes_table(&column, stage.code_table)));
        }
        text.line(format!("{opened}{rest}{}", " }".repeat(tables.len())));
    });
}

/// Writes code that reads the counter or aggregate that a stage tests.
fn read_stateful(text: &mut Text, inputs: &ProgramInputs<'_>, key: ColumnKey) {
    match key {
        ColumnKey::Counter(id) => counters::read(text, &inputs.format.counters[usize::from(id.0)]),
        ColumnKey::Slot(slot) => aggregate_state::value(text, inputs, slot),
        ColumnKey::Valid(_) | ColumnKey::Field(_) => {}
    }
}

fn value(inputs: &ProgramInputs<'_>, key: ColumnKey) -> String {
    match key {
        ColumnKey::Field(id) => format!("{}_value", identifier(&inputs.format.fields[usize::from(id.0)].name)),
        ColumnKey::Counter(id) => format!("{}_value", inputs.format.counters[usize::from(id.0)].name),
        ColumnKey::Slot(slot) => aggregate_state::value_var(slot),
        ColumnKey::Valid(_) => unreachable!("validity is a stage of its own"),
    }
}
