//! Generates the P4 code of counters (`@query_counter`): a register each, and a second one for a window; read before a
//! rule tests the counter, and updated as rules specify.

use subscribe::Window;

use super::stages::{STATE_KEY, table, validity};
use super::state::{NOW, is_over};
use super::text::{Text, identifier};
use super::{ProgramInputs, amount};
use crate::format::Counter;

/// Returns the name of the table that holds the updates of a counter, keyed by leaf state.
pub(crate) fn update_table(counter: &str) -> String {
    format!("update_{counter}")
}

/// Returns the name of the action that updates a counter by the value of a field.
pub(crate) fn with_field(field: &str) -> String {
    format!("with_{}", identifier(field))
}

/// Returns the name and width of the state that a counter's window needs, if any.
fn window_state(counter: &Counter) -> Option<(String, u32)> {
    match counter.window? {
        Window::Micros(_) => Some((format!("{}_end", counter.name), 48)),
        Window::Packets(_) => Some((format!("{}_count", counter.name), 64)),
    }
}

/// Writes the declarations of registers, variables, actions and tables.
pub(super) fn declare(text: &mut Text, inputs: &ProgramInputs<'_>) {
    let format = inputs.format;
    if format.counters.is_empty() {
        return;
    }
    for counter in &format.counters {
        let value = (format!("{}_value", counter.name), 64);
        text.line("");
        for (name, width) in [Some(value), window_state(counter)].into_iter().flatten() {
            text.line(format!("register<bit<{width}>>(1) kept_{name};"));
            text.line(format!("bit<{width}> {name} = 0;"));
        }
    }
    text.line("");
    text.line("bit<3> updates = 0;     // 1: set, 2: add, 3: subtract, 4: minimum, 5: maximum");
    text.line("bit<64> operand = 0;");
    text.block("action by_number(bit<3> function, bit<64> number)", |text| {
        text.line("updates = function;");
        text.line("operand = number;");
    });
    let mut actions = "by_number;".to_owned();
    for (number, field) in format.fields.iter().enumerate() {
        let id = subscribe::FieldId(number as u16);
        let action = with_field(&field.name);
        actions += &format!(" {action};");
        text.block(format!("action {action}(bit<3> function)"), |text| {
            let header = inputs.rules.format.get(id).header.expect("all fields lie in headers");
            let there = validity(format, &inputs.rules.headers[usize::from(header.0)]);
            // A field of an invalid header updates nothing.
            text.line(format!("updates = function & ({there} ++ {there} ++ {there});"));
            text.line(format!("operand = {};", amount(inputs, id)));
        });
    }
    for counter in &format.counters {
        table(text, &update_table(&counter.name), &[STATE_KEY.to_owned()], &actions, inputs.options);
    }
}

/// Writes code that reads the current value of a counter.
pub(super) fn read(text: &mut Text, counter: &Counter) {
    let value = format!("{}_value", counter.name);
    text.line(format!("kept_{value}.read({value}, 0);"));
    let Some((beside, _)) = window_state(counter) else { return };
    text.line(format!("kept_{beside}.read({beside}, 0);"));
    match counter.window {
        Some(Window::Micros(length)) => text.block(format!("if ({})", is_over(&beside, length)), |text| {
            text.line(format!("{beside} = {NOW} + {length};"));
            text.line(format!("{value} = 0;"));
        }),
        Some(Window::Packets(length)) => text.block(format!("if ({beside} >= {length})"), |text| {
            text.line(format!("{beside} = 0;"));
            text.line(format!("{value} = 0;"));
        }),
        None => {}
    }
}

/// Writes code that updates counters according to a message's leaf.
pub(super) fn update_counters(text: &mut Text, inputs: &ProgramInputs<'_>) {
    for counter in &inputs.format.counters {
        text.line("updates = 0;");
        text.line(format!("{}.apply();", update_table(&counter.name)));
        text.block("if (updates != 0)", |text| update(text, counter));
    }
}

fn update(text: &mut Text, counter: &Counter) {
    let value = format!("{}_value", counter.name);
    read(text, counter);
    let functions = [
        "operand".to_owned(),
        format!("{value} |+| operand"),
        format!("{value} |-| operand"),
        format!("operand < {value} ? operand : {value}"),
        format!("operand > {value} ? operand : {value}"),
    ];
    for (number, result) in (1..).zip(functions) {
        let head = if number == 1 { "if" } else { "} else if" };
        text.line(format!("{head} (updates == {number}) {{"));
        text.indented(|text| text.line(format!("{value} = {result};")));
    }
    text.line("}");
    text.line(format!("kept_{value}.write(0, {value});"));
    if let Some((beside, _)) = window_state(counter) {
        if let Some(Window::Packets(_)) = counter.window {
            text.line(format!("{beside} = {beside} + 1;"));
        }
        text.line(format!("kept_{beside}.write(0, {beside});"));
    }
}
