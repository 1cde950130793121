//! Generates the code of linked slots, which compute aggregates that rules choose.
//!
//! The entry of a slot's table (`link_3`) selects the function, the window, and the numbers of the input and key
//! fields. A slot without an entry costs one lookup. A cell has the parts of all aggregates of [`state`](super::state),
//! and the identity of its values: a cell that was filled for another aggregate reads as empty.

use subscribe::{Aggregate, AggregateWindow, FieldId, Function, MAX_LINKED_KEY_FIELDS, SlotIdentity, SlotUse, Window};

use super::stages::table;
use super::state::{NOW, cell, divide, is_over_after, move_towards, place_table, slot_register, slot_var, value_var};
use super::text::{Text, identifier};
use super::{ProgramInputs, ProgramOptions, amount};
use crate::format::{FormatField, Notation, ProgramFormat};

/// Width in bits of a stored sum, minimum, maximum, or moving average: 64, and the fraction of the longest average.
const AMOUNT_WIDTH: u32 = 96;

/// Returns the name of the table whose entry links a slot to an aggregate. The name of its action has the prefix `to_`.
pub(crate) fn link_table(slot: impl std::fmt::Display) -> String {
    format!("link_{slot}")
}

/// Parameters of a link and their widths in bits.
const PARAMETERS: [(&str, u32); 9] = [
    ("function", 4),
    ("length", 48),
    ("packets", 64),
    ("previous", 1),
    ("shift", 8),
    ("field", 16),
    ("key_0", 16),
    ("key_1", 16),
    ("identity", 64),
];

/// Returns the code of a function in links; 0 stands for none.
fn function_code(function: Function) -> usize {
    1 + Function::ALL.iter().position(|(_, other)| *other == function).expect("all functions are listed")
}

/// Returns the parameters of the link to an aggregate: names, widths in bits, and values. Fields have numbers from 1.
pub(crate) fn link_params(of: &SlotUse, aggregate: &Aggregate) -> Vec<(String, u32, u128)> {
    let field = |id: Option<&FieldId>| id.map_or(0, |id| u128::from(id.0) + 1);
    let (micros, packets) = match aggregate.window.length() {
        Some(Window::Micros(length)) => (length, 0),
        Some(Window::Packets(length)) => (0, length),
        None => (0, 0),
    };
    let shift = match aggregate.window {
        AggregateWindow::Decaying { shift } => shift,
        _ => 0,
    };
    let values = [
        function_code(aggregate.function) as u128,
        micros.into(),
        packets.into(),
        matches!(aggregate.window, AggregateWindow::Previous(_)).into(),
        shift.into(),
        field(aggregate.field.as_ref()),
        field(aggregate.by.first()),
        field(aggregate.by.get(1)),
        u128::from(of.identity.state_hash) << 32 | u128::from(of.identity.generation),
    ];
    PARAMETERS.iter().zip(values).map(|((name, width), value)| ((*name).to_owned(), *width, value)).collect()
}

/// Returns the slot's use according to the parameters of its link; `None` if no rule can have such an aggregate.
pub(crate) fn parse_link(slot: u16, param: impl Fn(&str) -> Option<u128>) -> Option<SlotUse> {
    let small = |name: &str| param(name).and_then(|value| u16::try_from(value).ok());
    let field = |name: &str| small(name).map(|number| number.checked_sub(1).map(FieldId));
    let (_, function) = *Function::ALL.get(usize::from(small("function")?).checked_sub(1)?)?;
    let length = match (param("length")?, param("packets")?) {
        (0, 0) => None,
        (0, packets) => Some(Window::Packets(packets.try_into().ok()?)),
        (micros, 0) => Some(Window::Micros(micros.try_into().ok()?)),
        _ => return None,
    };
    let window = match (function, length, param("previous")?, u32::from(small("shift")?)) {
        (Function::Ewma, None, 0, shift @ 0..=AggregateWindow::MAX_SHIFT) => AggregateWindow::Decaying { shift },
        (Function::Ewma, ..) => return None,
        (_, None, 0, 0) => AggregateWindow::All,
        (_, Some(length), 0, 0) => AggregateWindow::Tumbling(length),
        (_, Some(length), 1, 0) => AggregateWindow::Previous(length),
        _ => return None,
    };
    let by = match [field("key_0")?, field("key_1")?] {
        [None, None] => Vec::new(),
        [Some(only), None] => vec![only],
        [Some(first), Some(second)] if first < second => vec![first, second],
        _ => return None,
    };
    let aggregate = Aggregate { function, field: field("field")?, by, window };
    let has_input = aggregate.field.is_some() || function == Function::Count;
    let identity = param("identity")?;
    let identity = SlotIdentity { state_hash: (identity >> 32) as u32, generation: identity as u32 };
    (has_input && aggregate.is_linkable()).then_some(SlotUse { slot, aggregate: Some(aggregate), identity })
}

/// Returns the width in bits of a part of a key: that of the widest field.
pub(crate) fn key_width(format: &ProgramFormat) -> u32 {
    format.fields.iter().map(|field| field.width).max().unwrap_or(1)
}

/// Returns the numeric fields with their indices: other fields have no sum, average, minimum or maximum.
fn numeric_fields(format: &ProgramFormat) -> impl Iterator<Item = (usize, &FormatField)> {
    format.fields.iter().enumerate().filter(|(_, field)| field.notation == Notation::Number)
}

/// Returns the width in bits of averages: that of the widest numeric field, at most 64; `None` if there is none.
pub(super) fn average_width(format: &ProgramFormat) -> Option<u32> {
    numeric_fields(format).map(|(_, field)| field.width.min(64)).max()
}

/// Returns the names of the parts of a key.
pub(crate) fn key_parts() -> impl Iterator<Item = String> {
    (0..MAX_LINKED_KEY_FIELDS).map(|part| format!("key_{part}"))
}

/// Returns the parts of a cell and their widths in bits; those of the key come last.
pub(super) fn parts(format: &ProgramFormat) -> Vec<(String, u32)> {
    let fixed = [("identity", 64), ("end", 48), ("count", 64), ("amount", AMOUNT_WIDTH)];
    let previous = [("previous_count", 64), ("previous_amount", 64)];
    let fixed = fixed.into_iter().chain(previous).map(|(name, width)| (name.to_owned(), width));
    fixed.chain(key_parts().map(|part| (part, key_width(format)))).collect()
}

/// Returns the name of the variable for a parameter of a slot's link, or for the value of a part of its key.
pub(super) fn link_var(slot: u16, name: &str) -> String {
    slot_var(slot, &format!("link_{name}"))
}

/// Writes the registers, the variables and the table of a slot.
pub(super) fn declare(text: &mut Text, inputs: &ProgramInputs<'_>, slot: u16, cells: u32) {
    text.line("");
    text.line(format!("// Slot {slot}: linked to an aggregate by an entry."));
    for (part, width) in parts(inputs.format) {
        text.line(format!("register<bit<{width}>>({cells}) {};", slot_register(slot, &part)));
        text.line(format!("bit<{width}> {} = 0;", slot_var(slot, &part)));
    }
    for part in key_parts() {
        text.line(format!("bit<{}> {} = 0;", key_width(inputs.format), link_var(slot, &format!("{part}_value"))));
    }
    for part in ["is_over", "is_stale"] {
        text.line(format!("bit<1> {} = 0;", slot_var(slot, part)));
    }
    for part in ["input", "scaled"] {
        text.line(format!("bit<{AMOUNT_WIDTH}> {} = 0;", slot_var(slot, part)));
    }
    for (name, width) in PARAMETERS {
        text.line(format!("bit<{width}> {} = 0;", link_var(slot, name)));
    }
    let list: Vec<String> = PARAMETERS.iter().map(|(name, width)| format!("bit<{width}> {name}")).collect();
    let name = link_table(slot);
    text.block(format!("action to_{name}({})", list.join(", ")), |text| {
        for (name, _) in PARAMETERS {
            text.line(format!("{} = {name};", link_var(slot, name)));
        }
    });
    text.line(format!("bit<16> {} = {slot};", link_var(slot, "slot")));
    let keys = [format!("{}: exact @name(\"slot\");", link_var(slot, "slot"))];
    let options = ProgramOptions { table_size: 1, ..*inputs.options };
    table(text, &name, &keys, &format!("to_{name};"), &options);
}

/// Writes code that sets `to` to the value of the field whose number is in the variable `number`; 0 if the number is 0.
fn select_field<'f>(
    text: &mut Text,
    fields: impl Iterator<Item = (usize, &'f FormatField)>,
    number: &str,
    to: &str,
    value: impl Fn(usize, &FormatField) -> String,
) {
    text.line(format!("{to} = 0;"));
    for (at, field) in fields {
        text.line(format!("if ({number} == {}) {{ {to} = {}; }}", at + 1, value(at, field)));
    }
}

/// Writes code that reads a slot's link and finds the cell of the message's key. A key that no rule names has a cell
/// by its hash, in the second half of the registers.
pub(super) fn locate(text: &mut Text, inputs: &ProgramInputs<'_>, slot: u16, computed: usize, keys: u32) {
    let width = key_width(inputs.format);
    text.line(format!("{} = 0;", link_var(slot, "function")));
    text.block(format!("if ({}.apply().hit)", link_table(slot)), |text| {
        let parts: Vec<String> = key_parts().map(|part| link_var(slot, &format!("{part}_value"))).collect();
        for (part, to) in key_parts().zip(&parts) {
            let value = |_, field: &FormatField| {
                let value = format!("{}_value", identifier(&field.name));
                if field.width == width { value } else { format!("(bit<{width}>){value}") }
            };
            select_field(text, inputs.format.fields.iter().enumerate(), &link_var(slot, &part), to, value);
        }
        let (place, cell) = (place_table(computed), cell(computed));
        text.block(format!("if (!{place}.apply().hit)"), |text| {
            text.line(format!("hash({cell}, HashAlgorithm.crc32, 32w{keys}, {{ {} }}, 32w{keys});", parts.join(", ")));
        });
    });
}

/// Writes code that reads a slot's cell, and restarts it if its window is over or its values are stale.
pub(super) fn read(text: &mut Text, inputs: &ProgramInputs<'_>, slot: u16, computed: usize) {
    text.block(format!("if ({} != 0)", link_var(slot, "function")), |text| {
        for (part, _) in parts(inputs.format) {
            text.line(format!("{}.read({}, {});", slot_register(slot, &part), slot_var(slot, &part), cell(computed)));
        }
        check_window(text, slot);
        check_identity(text, slot);
        restart(text, slot);
    });
}

/// Writes code that sets `is_over` if the slot's window is over.
fn check_window(text: &mut Text, slot: u16) {
    let [end, count, is_over] = ["end", "count", "is_over"].map(|part| slot_var(slot, part));
    let [length, packets] = ["length", "packets"].map(|name| link_var(slot, name));
    let is_time_over = is_over_after(&end, &length);
    let is_count_over = format!("{count} == 0 || ({packets} != 0 && {count} >= {packets})");
    text.choice(
        format!("{length} != 0"),
        |text| text.line(format!("{is_over} = ({is_time_over} ? 1w1 : 1w0);")),
        |text| text.line(format!("{is_over} = ({is_count_over} ? 1w1 : 1w0);")),
    );
}

/// Writes code that sets `is_stale` if the cell has values of another aggregate or key, and `evicts` if another key
/// loses values that tests could still read.
fn check_identity(text: &mut Text, slot: u16) {
    let [count, is_over, is_stale, evicts] =
        ["count", "is_over", "is_stale", "evicts"].map(|part| slot_var(slot, part));
    let previous = link_var(slot, "previous");
    let differ = |part: &str, wanted: &str| format!("{} != {}", slot_var(slot, part), link_var(slot, wanted));
    let keys: Vec<String> = key_parts().map(|part| differ(&part, &format!("{part}_value"))).collect();
    text.line(format!("{evicts} = 0;"));
    text.line(format!("{is_stale} = 0;"));
    text.line(format!("if ({}) {{", differ("identity", "identity")));
    text.indented(|text| text.line(format!("{is_stale} = 1;")));
    text.line(format!("}} else if ({}) {{", keys.join(" || ")));
    text.indented(|text| {
        text.line(format!("{is_stale} = 1;"));
        text.block(format!("if ({count} != 0 && ({is_over} == 0 || {previous} == 1))"), |text| {
            text.line(format!("{evicts} = 1;"));
        });
    });
    text.line("}");
}

/// Writes code that begins a window if the last one is over or stale, and keeps a complete one for tests of it.
fn restart(text: &mut Text, slot: u16) {
    let [end, count, amount, is_over, is_stale, previous_count, previous_amount] =
        ["end", "count", "amount", "is_over", "is_stale", "previous_count", "previous_amount"]
            .map(|part| slot_var(slot, part));
    let [length, previous, function] = ["length", "previous", "function"].map(|name| link_var(slot, name));
    text.line(format!("if ({is_stale} == 1) {{"));
    text.indented(|text| {
        text.line(format!("{previous_count} = 0;"));
        text.line(format!("{previous_amount} = 0;"));
    });
    text.line(format!("}} else if ({is_over} == 1 && {previous} == 1) {{"));
    text.indented(|text| {
        text.line(format!("{previous_count} = {count};"));
        text.line(format!("{previous_amount} = {amount}[63:0];"));
    });
    text.line("}");
    text.block(format!("if ({is_stale} == 1 || {is_over} == 1)"), |text| {
        text.line(format!("{end} = {NOW} + {length};"));
        text.line(format!("{count} = 0;"));
        let is_min = format!("{function} == {}", function_code(Function::Min));
        text.line(format!("{amount} = ({is_min} ? {AMOUNT_WIDTH}w{:#x} : 0);", u64::MAX));
    });
}

/// Writes code that sets the lookup key of a slot's stage: the aggregate, or `none` if it has no value.
pub(super) fn value(text: &mut Text, inputs: &ProgramInputs<'_>, slot: u16, none: u128, width: u32) {
    let [current, shift] = [slot_var(slot, "amount"), link_var(slot, "shift")];
    let [value, count, amount] = [value_var(slot), slot_var(slot, "seen_count"), slot_var(slot, "seen_amount")];
    text.line(format!("bit<64> {count} = {};", slot_var(slot, "count")));
    text.line(format!("bit<64> {amount} = {current}[63:0];"));
    text.block(format!("if ({} == 1)", link_var(slot, "previous")), |text| {
        text.line(format!("{count} = {};", slot_var(slot, "previous_count")));
        text.line(format!("{amount} = {};", slot_var(slot, "previous_amount")));
    });
    text.line(format!("{value} = {none:#x};"));
    let set = |result: &str| format!("{value} = (bit<{width}>){result};");
    text.cases([
        (is_function(slot, Function::Count), set(&count)),
        (is_function(slot, Function::Sum), set(&amount)),
        (format!("{count} != 0"), set(&amount)),
    ]);
    let has_value = |function: Function| format!("if ({} && {count} != 0)", is_function(slot, function));
    if let Some(of_average) = average_width(inputs.format) {
        text.block(has_value(Function::Avg), |text| {
            divide(text, &amount, &count, of_average);
            text.line(set("quotient"));
        });
    }
    text.block(has_value(Function::Ewma), |text| {
        text.line(set(&format!("(({current} + ({AMOUNT_WIDTH}w1 << {shift})) >> ({shift} + 1))")));
    });
}

/// Returns the condition that a slot's link has this function.
fn is_function(slot: u16, function: Function) -> String {
    format!("{} == {}", link_var(slot, "function"), function_code(function))
}

/// Writes code that counts a message in a slot.
pub(super) fn count(text: &mut Text, inputs: &ProgramInputs<'_>, slot: u16, computed: usize) {
    let [count, total, input, scaled] = ["count", "amount", "input", "scaled"].map(|part| slot_var(slot, part));
    let shift = link_var(slot, "shift");
    let value = |at: usize, _: &FormatField| format!("(bit<{AMOUNT_WIDTH}>){}", amount(inputs, FieldId(at as u16)));
    select_field(text, numeric_fields(inputs.format), &link_var(slot, "field"), &input, value);
    let [is_sum, is_avg] = [Function::Sum, Function::Avg].map(|function| is_function(slot, function));
    text.cases([
        (is_function(slot, Function::Min), format!("{total} = {input} < {total} ? {input} : {total};")),
        (is_function(slot, Function::Max), format!("{total} = {input} > {total} ? {input} : {total};")),
        (format!("{is_sum} || {is_avg}"), format!("{total} = (bit<{AMOUNT_WIDTH}>)({total}[63:0] |+| {input}[63:0]);")),
    ]);
    text.block(format!("if ({})", is_function(slot, Function::Ewma)), |text| {
        text.line(format!("{scaled} = {input} << ({shift} + 1);"));
        move_towards(text, [&total, &scaled, &count], &shift);
    });
    text.line(format!("{count} = {count} |+| 1;"));
    text.line(format!("{} = {};", slot_var(slot, "identity"), link_var(slot, "identity")));
    for part in key_parts() {
        text.line(format!("{} = {};", slot_var(slot, &part), link_var(slot, &format!("{part}_value"))));
    }
    for (part, _) in parts(inputs.format) {
        text.line(format!("{}.write({}, {});", slot_register(slot, &part), cell(computed), slot_var(slot, &part)));
    }
}
