//! Generates the code of aggregates that rules bring: it computes any function of any field by up to two others.
//!
//! The entry of a slot's table (`link_3`) says what the slot computes: the function, the window, and the numbers of the
//! fields. A slot without an entry costs one lookup. Its cells are those of [`state`](super::state), with every part
//! that some aggregate needs, and the identity of the values: a cell that another aggregate has filled is empty.

use subscribe::{Aggregate, AggregateWindow, FieldId, Function, MAX_LINKED_KEY_FIELDS, SlotIdentity, SlotUse, Window};

use super::stages::table;
use super::state::{AggregateSlot, NOW, cell, divide, is_over_after, place_table, value_var};
use super::text::{Text, identifier};
use super::{ProgramInputs, ProgramOptions, amount};
use crate::format::{FormatField, Notation, ProgramFormat};

/// Width in bits of a stored sum, minimum, maximum, or moving average: 64, and the fraction of the longest average.
const AMOUNT_WIDTH: u32 = 96;

/// Returns the name of the table whose entry says what a slot computes. Its action has the prefix `to_`.
pub(crate) fn link_table(slot: u16) -> String {
    format!("link_{slot}")
}

/// Parameters of a link and their widths in bits, in order.
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

/// Returns the number of a function in the program; 0 is none.
fn number(function: Function) -> usize {
    1 + Function::ALL.iter().position(|(_, other)| *other == function).expect("all functions are listed")
}

/// Returns the parameters of the link to an aggregate: names, widths, and values. Fields have numbers from 1 on.
pub(crate) fn link(of: &SlotUse, aggregate: &Aggregate) -> Vec<(String, u32, u128)> {
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
        number(aggregate.function) as u128,
        micros.into(),
        packets.into(),
        matches!(aggregate.window, AggregateWindow::Previous(_)).into(),
        shift.into(),
        field(aggregate.field.as_ref()),
        field(aggregate.by.first()),
        field(aggregate.by.get(1)),
        u128::from(of.identity.state) << 32 | u128::from(of.identity.incarnation),
    ];
    PARAMETERS.iter().zip(values).map(|((name, width), value)| ((*name).to_owned(), *width, value)).collect()
}

/// Returns the aggregate and the identity that the parameters of a link hold; `None` if they are not those of an
/// aggregate.
pub(crate) fn linked_use(slot: u16, param: impl Fn(&str) -> Option<u128>) -> Option<SlotUse> {
    let small = |name: &str| param(name).and_then(|value| u16::try_from(value).ok());
    let field = |name: &str| small(name).map(|number| number.checked_sub(1).map(FieldId));
    let (_, function) = Function::ALL.get(usize::from(small("function")?).checked_sub(1)?)?;
    let length = match (param("length")?, param("packets")?) {
        (0, 0) => None,
        (0, packets) => Some(Window::Packets(packets.try_into().ok()?)),
        (micros, 0) => Some(Window::Micros(micros.try_into().ok()?)),
        _ => return None,
    };
    let window = match (length, param("previous")?, u32::from(small("shift")?)) {
        (None, 0, shift) if *function == Function::Ewma => AggregateWindow::Decaying { shift },
        (None, 0, 0) => AggregateWindow::All,
        (Some(length), 0, 0) => AggregateWindow::Tumbling(length),
        (Some(length), 1, 0) => AggregateWindow::Previous(length),
        _ => return None,
    };
    let by = [field("key_0")?, field("key_1")?].into_iter().flatten().collect();
    let aggregate = Aggregate { function: *function, field: field("field")?, by, window };
    let identity = param("identity")?;
    let identity = SlotIdentity { state: (identity >> 32) as u32, incarnation: identity as u32 };
    Some(SlotUse { slot, aggregate: Some(aggregate), identity })
}

/// Returns the width in bits of a part of a key: that of the widest field.
pub(crate) fn key_width(format: &ProgramFormat) -> u32 {
    format.fields.iter().map(|field| field.width).max().unwrap_or(1)
}

/// Returns the fields that may be aggregated, with their numbers.
fn inputs_of(format: &ProgramFormat) -> impl Iterator<Item = (usize, &FormatField)> {
    format.fields.iter().enumerate().filter(|(_, field)| field.notation == Notation::Number)
}

/// Returns the width in bits of averages: that of the widest field, at most 64; `None` if no field is a number.
pub(super) fn average_width(format: &ProgramFormat) -> Option<u32> {
    inputs_of(format).map(|(_, field)| field.width.min(64)).max()
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
pub(super) fn linked(slot: u16, part: &str) -> String {
    var(slot, &format!("link_{part}"))
}

fn var(slot: u16, part: &str) -> String {
    AggregateSlot::var_of(slot, part)
}

fn register(slot: u16, part: &str) -> String {
    AggregateSlot::register_of(slot, part)
}

/// Writes the registers and variables of a slot, and its table.
pub(super) fn declare(text: &mut Text, inputs: &ProgramInputs<'_>, slot: u16, cells: u32) {
    text.line("");
    text.line(format!("// Slot {slot}: an aggregate that rules bring."));
    for (part, width) in parts(inputs.format) {
        text.line(format!("register<bit<{width}>>({cells}) {};", register(slot, &part)));
        text.line(format!("bit<{width}> {} = 0;", var(slot, &part)));
    }
    for part in key_parts() {
        text.line(format!("bit<{}> {} = 0;", key_width(inputs.format), linked(slot, &format!("{part}_value"))));
    }
    for part in ["is_over", "is_void"] {
        text.line(format!("bit<1> {} = 0;", var(slot, part)));
    }
    for part in ["added", "given"] {
        text.line(format!("bit<{AMOUNT_WIDTH}> {} = 0;", var(slot, part)));
    }
    for (name, width) in PARAMETERS {
        text.line(format!("bit<{width}> {} = 0;", linked(slot, name)));
    }
    let list: Vec<String> = PARAMETERS.iter().map(|(name, width)| format!("bit<{width}> {name}")).collect();
    let name = link_table(slot);
    text.block(format!("action to_{name}({})", list.join(", ")), |text| {
        for (name, _) in PARAMETERS {
            text.line(format!("{} = {name};", linked(slot, name)));
        }
    });
    text.line(format!("bit<16> {} = {slot};", linked(slot, "slot")));
    let keys = [format!("{}: exact @name(\"slot\");", linked(slot, "slot"))];
    let options = ProgramOptions { table_size: 1, ..*inputs.options };
    table(text, &name, &keys, &format!("to_{name};"), &options);
}

/// Writes code that sets a variable to the value of the field with the number in another one. Without a field, it is 0.
fn select<'f>(
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
    text.line(format!("{} = 0;", linked(slot, "function")));
    text.block(format!("if ({}.apply().hit)", link_table(slot)), |text| {
        let parts: Vec<String> = key_parts().map(|part| linked(slot, &format!("{part}_value"))).collect();
        for (part, to) in key_parts().zip(&parts) {
            let value = |_, field: &FormatField| {
                let value = format!("{}_value", identifier(&field.name));
                if field.width == width { value } else { format!("(bit<{width}>){value}") }
            };
            select(text, inputs.format.fields.iter().enumerate(), &linked(slot, &part), to, value);
        }
        let (place, cell) = (place_table(computed), cell(computed));
        text.block(format!("if (!{place}.apply().hit)"), |text| {
            text.line(format!("hash({cell}, HashAlgorithm.crc32, 32w{keys}, {{ {} }}, 32w{keys});", parts.join(", ")));
        });
    });
}

/// Writes code that reads a slot's cell.
pub(super) fn read(text: &mut Text, inputs: &ProgramInputs<'_>, slot: u16, computed: usize) {
    text.block(format!("if ({} != 0)", linked(slot, "function")), |text| read_linked(text, inputs, slot, computed));
}

fn read_linked(text: &mut Text, inputs: &ProgramInputs<'_>, slot: u16, computed: usize) {
    for (part, _) in parts(inputs.format) {
        text.line(format!("{}.read({}, {});", register(slot, &part), var(slot, &part), cell(computed)));
    }
    let [end, count, is_over_var, is_void] = ["end", "count", "is_over", "is_void"].map(|part| var(slot, part));
    let [length, packets, previous] = ["length", "packets", "previous"].map(|part| linked(slot, part));
    text.choice(
        format!("{length} != 0"),
        |text| text.line(format!("{is_over_var} = ({} ? 1w1 : 1w0);", is_over_after(&end, &length))),
        |text| {
            let over = format!("{count} == 0 || ({packets} != 0 && {count} >= {packets})");
            text.line(format!("{is_over_var} = ({over} ? 1w1 : 1w0);"));
        },
    );
    let identity = format!("{} != {}", var(slot, "identity"), linked(slot, "identity"));
    let others: Vec<String> =
        key_parts().map(|part| format!("{} != {}", var(slot, &part), linked(slot, &format!("{part}_value")))).collect();
    let evicts = var(slot, "evicts");
    text.line(format!("{evicts} = 0;"));
    text.line(format!("{is_void} = 0;"));
    text.line(format!("if ({identity}) {{"));
    text.indented(|text| text.line(format!("{is_void} = 1;")));
    text.line(format!("}} else if ({}) {{", others.join(" || ")));
    text.indented(|text| {
        text.line(format!("{is_void} = 1;"));
        // Nothing is lost with a window that is over, unless it is the one that tests read.
        text.block(format!("if ({count} != 0 && ({is_over_var} == 0 || {previous} == 1))"), |text| {
            text.line(format!("{evicts} = 1;"));
        });
    });
    text.line("}");
    text.line(format!("if ({is_void} == 1) {{"));
    text.indented(|text| {
        text.line(format!("{} = 0;", var(slot, "previous_count")));
        text.line(format!("{} = 0;", var(slot, "previous_amount")));
    });
    text.line(format!("}} else if ({is_over_var} == 1 && {previous} == 1) {{"));
    text.indented(|text| {
        text.line(format!("{} = {count};", var(slot, "previous_count")));
        text.line(format!("{} = {}[63:0];", var(slot, "previous_amount"), var(slot, "amount")));
    });
    text.line("}");
    text.block(format!("if ({is_void} == 1 || {is_over_var} == 1)"), |text| {
        text.line(format!("{end} = {NOW} + {length};"));
        text.line(format!("{count} = 0;"));
        let is_min = format!("{} == {}", linked(slot, "function"), number(Function::Min));
        text.line(format!("{} = ({is_min} ? {AMOUNT_WIDTH}w{:#x} : 0);", var(slot, "amount"), u64::MAX));
    });
}

/// Writes code that sets the lookup key of a slot's stage: the aggregate, or `none` if it has no value.
pub(super) fn value(text: &mut Text, inputs: &ProgramInputs<'_>, slot: u16, none: u128, width: u32) {
    let (value, function) = (value_var(slot), linked(slot, "function"));
    let [count, amount] = ["seen_count", "seen_amount"].map(|part| var(slot, part));
    let (wide, shift) = (var(slot, "amount"), linked(slot, "shift"));
    text.line(format!("bit<64> {count} = {};", var(slot, "count")));
    text.line(format!("bit<64> {amount} = {wide}[63:0];"));
    text.block(format!("if ({} == 1)", linked(slot, "previous")), |text| {
        text.line(format!("{count} = {};", var(slot, "previous_count")));
        text.line(format!("{amount} = {};", var(slot, "previous_amount")));
    });
    text.line(format!("{value} = {none:#x};"));
    let is = |of: Function| format!("{function} == {}", number(of));
    text.line(format!("if ({}) {{", is(Function::Count)));
    text.indented(|text| text.line(format!("{value} = (bit<{width}>){count};")));
    text.line(format!("}} else if ({}) {{", is(Function::Sum)));
    text.indented(|text| text.line(format!("{value} = (bit<{width}>){amount};")));
    text.line(format!("}} else if ({count} != 0) {{"));
    text.indented(|text| {
        text.line(format!("{value} = (bit<{width}>){amount};"));
        if let Some(of_average) = average_width(inputs.format) {
            text.block(format!("if ({})", is(Function::Avg)), |text| {
                divide(text, &amount, &count, of_average);
                text.line(format!("{value} = (bit<{width}>)quotient;"));
            });
        }
        text.block(format!("if ({})", is(Function::Ewma)), |text| {
            text.line(format!("{value} = (bit<{width}>)(({wide} + ({AMOUNT_WIDTH}w1 << {shift})) >> ({shift} + 1));"));
        });
    });
    text.line("}");
}

/// Writes code that counts a message in a slot.
pub(super) fn count(text: &mut Text, inputs: &ProgramInputs<'_>, slot: u16, computed: usize) {
    let cell = cell(computed);
    let [count, of, added, given] = ["count", "amount", "added", "given"].map(|part| var(slot, part));
    let (function, shift) = (linked(slot, "function"), linked(slot, "shift"));
    let value = |at: usize, _: &FormatField| format!("(bit<{AMOUNT_WIDTH}>){}", amount(inputs, FieldId(at as u16)));
    select(text, inputs_of(inputs.format), &linked(slot, "field"), &added, value);
    let is = |of: Function| format!("{function} == {}", number(of));
    let cases = [
        (is(Function::Min), format!("{of} = {added} < {of} ? {added} : {of};")),
        (is(Function::Max), format!("{of} = {added} > {of} ? {added} : {of};")),
        (
            format!("{} || {}", is(Function::Sum), is(Function::Avg)),
            format!("{of} = (bit<{AMOUNT_WIDTH}>)({of}[63:0] |+| {added}[63:0]);"),
        ),
    ];
    for (at, (condition, result)) in cases.into_iter().enumerate() {
        let head = if at == 0 { "if" } else { "} else if" };
        text.line(format!("{head} ({condition}) {{"));
        text.indented(|text| text.line(result));
    }
    text.line(format!("}} else if ({}) {{", is(Function::Ewma)));
    text.indented(|text| {
        text.line(format!("{given} = {added} << ({shift} + 1);"));
        for (head, result) in [
            (format!("if ({count} == 0) {{"), given.clone()),
            (format!("}} else if ({given} >= {of}) {{"), format!("{of} + (({given} - {of}) >> {shift})")),
            ("} else {".to_owned(), format!("{of} - (({of} - {given}) >> {shift})")),
        ] {
            text.line(head);
            text.indented(|text| text.line(format!("{of} = {result};")));
        }
        text.line("}");
    });
    text.line("}");
    text.line(format!("{count} = {count} |+| 1;"));
    text.line(format!("{} = {};", var(slot, "identity"), linked(slot, "identity")));
    for part in key_parts() {
        text.line(format!("{} = {};", var(slot, &part), linked(slot, &format!("{part}_value"))));
    }
    for (part, _) in parts(inputs.format) {
        text.line(format!("{}.write({cell}, {});", register(slot, &part), var(slot, &part)));
    }
}
