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

/// Returns the name of the table that holds the second terms of a counter's updates, keyed by leaf state.
pub(crate) fn combine_table(counter: &str) -> String {
    format!("combine_{counter}")
}

/// Returns the name of the action that updates a counter by the value of another one.
pub(crate) fn with_counter(counter: &str) -> String {
    format!("{counter}_operand")
}

/// Returns the name of the action that multiplies the operand by the value of a field or counter, or subtracts it.
pub(crate) fn combined_with(name: &str, is_product: bool) -> String {
    format!("{}_{}", identifier(name), if is_product { "times" } else { "minus" })
}

/// The bit of a function number that says that the operand has a second term.
pub(crate) const COMBINES: u128 = 8;

/// Returns the name of the variable for a counter's value before the message.
fn before(inputs: &ProgramInputs<'_>, counter: &Counter) -> String {
    let part = if inputs.format.counters.len() > 1 { "before" } else { "value" };
    format!("{}_{part}", counter.name)
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
        if format.counters.len() > 1 {
            text.line(format!("bit<64> {} = 0;", before(inputs, counter)));
        }
    }
    text.line("");
    text.line("// 1: set, 2: add, 3: subtract, 4: minimum, 5: maximum; plus 8 if the operand has a second term");
    text.line("bit<4> updates = 0;");
    text.line("bit<64> operand = 0;");
    text.line("bit<128> product = 0;");
    text.block("action by_number(bit<4> function, bit<64> number)", |text| {
        text.line("updates = function;");
        text.line("operand = number;");
    });
    let mut actions = "by_number;".to_owned();
    let mut combining = String::new();
    for is_product in [true, false] {
        let action = combined_with("number", is_product);
        combining += &format!(" {action};");
        text.block(format!("action {action}(bit<64> number)"), |text| combine(text, is_product, "number"));
    }
    for (number, field) in format.fields.iter().enumerate() {
        let id = subscribe::FieldId(number as u16);
        let action = with_field(&field.name);
        actions += &format!(" {action};");
        text.block(format!("action {action}(bit<4> function)"), |text| {
            let there = there(inputs, id);
            // A field of an invalid header updates nothing.
            text.line(format!("updates = function & ({there} ++ {there} ++ {there} ++ {there});"));
            text.line(format!("operand = {};", amount(inputs, id)));
        });
        for is_product in [true, false] {
            let action = combined_with(&field.name, is_product);
            combining += &format!(" {action};");
            text.block(format!("action {action}()"), |text| {
                let there = there(inputs, id);
                text.line(format!("updates = updates & ({there} ++ {there} ++ {there} ++ {there});"));
                combine(text, is_product, &amount(inputs, id));
            });
        }
    }
    for counter in &format.counters {
        let (action, value) = (with_counter(&counter.name), before(inputs, counter));
        actions += &format!(" {action};");
        text.block(format!("action {action}(bit<4> function)"), |text| {
            text.line("updates = function;");
            text.line(format!("operand = {value};"));
        });
        for is_product in [true, false] {
            let action = combined_with(&counter.name, is_product);
            combining += &format!(" {action};");
            text.block(format!("action {action}()"), |text| combine(text, is_product, &value));
        }
    }
    for counter in &format.counters {
        table(text, &update_table(&counter.name), &[STATE_KEY.to_owned()], &actions, inputs.options);
        table(text, &combine_table(&counter.name), &[STATE_KEY.to_owned()], combining.trim_start(), inputs.options);
    }
}

/// Returns the bit that says whether a field is there.
fn there(inputs: &ProgramInputs<'_>, field: subscribe::FieldId) -> String {
    let header = inputs.rules.format.get(field).header.expect("all fields lie in headers");
    validity(inputs.format, &inputs.rules.headers[usize::from(header.0)])
}

/// Writes code that combines the operand with a second term.
fn combine(text: &mut Text, is_product: bool, term: &str) {
    if !is_product {
        return text.line(format!("operand = operand |-| {term};"));
    }
    text.line(format!("product = (bit<128>)operand * (bit<128>){term};"));
    text.line("operand = product[127:64] == 0 ? product[63:0] : 0xffffffffffffffff;");
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
    let counters = &inputs.format.counters;
    // Operands are values before the message.
    for counter in counters {
        read(text, counter);
        if counters.len() > 1 {
            text.line(format!("{} = {}_value;", before(inputs, counter), counter.name));
        }
    }
    for counter in counters {
        text.line("updates = 0;");
        text.line(format!("{}.apply();", update_table(&counter.name)));
        text.block("if (updates[3:3] == 1)", |text| {
            text.line("updates[3:3] = 0;");
            text.line(format!("{}.apply();", combine_table(&counter.name)));
        });
        text.block("if (updates != 0)", |text| update(text, counter));
    }
}

fn update(text: &mut Text, counter: &Counter) {
    let value = format!("{}_value", counter.name);
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
