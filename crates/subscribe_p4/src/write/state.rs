//! Generates the code of aggregates: state between messages, by key.
//!
//! A slot of an aggregate consists of a few registers of equal length; a key has one cell in each. Keys that rules name
//! get their cells from a table (`place_0`), other keys by a hash, in the second half of the registers. A cell stores
//! its key; a key that finds another key's cell restarts there.
//!
//! ```text
//! find:   place: the cell, by the key's fields
//! look:   read the slots' cells ──> window over, or another key's? then reset ──> tables
//! act:    leaf's state ──> counts: the slots ──> add the message, write the cells
//! ```
//!
//! From `look` on it is one atomic step (`@atomic`), regardless of the number of threads of a switch.
//!
//! Averages use a bit-by-bit division, because P4 has no division of run-time values. Moving averages need shifts only.
//!
//! An average, a minimum or a maximum over no messages has no value. Tables then match the number after the largest
//! value ([`no_value`](subscribe::MessageFormat::no_value)), for which no test holds.

use subscribe::{Aggregate, AggregateWindow, ColumnKey, Function, Window};

use super::linked;
use super::stages::{STATE_KEY, table};
use super::text::{Text, identifier};
use super::{ProgramInputs, amount};
use crate::format::{FormatField, ProgramFormat};

/// Name of the table that maps a leaf to the slots that its messages count for.
pub(crate) const COUNTS: &str = "counts";

/// Time of a pass, in microseconds.
pub(super) const NOW: &str = "meta.subscription.now";

/// Whether the program has time windows.
pub(super) fn has_clock(format: &subscribe::MessageFormat) -> bool {
    let is_time = |length: Option<Window>| matches!(length, Some(Window::Micros(_)));
    // The windows of linked aggregates are unknown.
    let needs_clock = |aggregate: &Option<Aggregate>| aggregate.as_ref().is_none_or(|of| is_time(of.window.length()));
    format.computed().iter().any(|computed| needs_clock(&computed.aggregate))
        || format.counters().iter().any(|counter| is_time(counter.window))
}

/// Writes code that reads the time of a pass. BMv2 stamps a packet on arrival only; there a recirculated packet keeps
/// its arrival time.
pub(super) fn take_time(text: &mut Text, inputs: &ProgramInputs<'_>) {
    const STAMP: &str = "standard_metadata.ingress_global_timestamp";
    if !has_clock(&inputs.rules.format) {
        return;
    }
    let take = |text: &mut Text| text.line(format!("{NOW} = {STAMP};"));
    match inputs.format.messages {
        Some(_) => text.block(format!("if ({STAMP} != 0)"), take),
        None => take(text),
    }
}

/// Maximum number of microseconds (12 days) that a packet's time may precede a window's begin: workers' clocks differ,
/// and captures are merged.
const EARLY: u64 = 1 << 40;

/// Returns the condition that no window is open that would end at `end`; 0 if there never was one. The clock has 48
/// bits and wraps around; the remaining time of a window never exceeds its length.
pub(super) fn is_over(end: &str, length: u64) -> String {
    is_beyond(end, &format!("{}", length + EARLY))
}

/// Returns the same condition for a window whose length is a variable.
pub(super) fn is_over_after(end: &str, length: &str) -> String {
    is_beyond(end, &format!("{length} + {EARLY}"))
}

fn is_beyond(end: &str, limit: &str) -> String {
    format!("{end} == 0 || {end} - {NOW} - 1 >= {limit}")
}

/// Returns the name of the table that maps an aggregate's keys to cells.
pub(crate) fn place_table(computed: usize) -> String {
    format!("place_{computed}")
}

/// Returns the name of the variable for the cell of a message's key.
pub(super) fn cell(computed: usize) -> String {
    format!("cell_{computed}")
}

/// A slot of a declared aggregate: its number, its aggregate, and the index of the aggregate's declaration.
struct AggregateSlot<'a> {
    number: u16,
    computed: usize,
    of: &'a Aggregate,
    /// Width of the aggregate's input in bits; wider values saturate at 64 bits.
    width: u32,
}

/// Returns the name of the part of a cell that stores a key field.
fn of(field: &str) -> String {
    format!("of_{field}")
}

/// A slot of a program.
enum ProgramSlot<'a> {
    Declared(AggregateSlot<'a>),
    /// A linked slot: its number, and the index of its declaration.
    Linked(u16, usize),
}

impl<'a> ProgramSlot<'a> {
    fn new(inputs: &ProgramInputs<'a>, number: u16) -> ProgramSlot<'a> {
        let format = &inputs.rules.format;
        let computed = format.computed_in(number).expect("all slots compute something");
        let Some(of) = &format.computed()[computed].aggregate else { return ProgramSlot::Linked(number, computed) };
        let width = of.field.map_or(64, |id| inputs.format.fields[usize::from(id.0)].width.min(64));
        ProgramSlot::Declared(AggregateSlot { number, computed, of, width })
    }
}

fn all_slots<'a>(inputs: &ProgramInputs<'a>) -> Vec<ProgramSlot<'a>> {
    (0..inputs.rules.format.slots).map(|number| ProgramSlot::new(inputs, number)).collect()
}

impl AggregateSlot<'_> {
    /// Whether cells count their messages: for functions of the number, to tell an empty window from others, and to
    /// find the end of a window. The end of a time window shows that it is empty, too, which suffices for a sum.
    fn has_count(&self) -> bool {
        self.of.function != Function::Sum || !matches!(self.of.window, AggregateWindow::Tumbling(Window::Micros(_)))
    }

    fn has_amount(&self) -> bool {
        self.of.function != Function::Count
    }

    /// Returns the parts of a cell that the last complete window has, too, and their names for that window.
    fn previous_parts(&self) -> Vec<(&'static str, &'static str)> {
        if !matches!(self.of.window, AggregateWindow::Previous(_)) {
            return Vec::new();
        }
        let count = (self.of.function != Function::Sum).then_some(("count", "previous_count"));
        let amount = self.has_amount().then_some(("amount", "previous_amount"));
        [count, amount].into_iter().flatten().collect()
    }

    /// Returns the names and widths of a cell's parts besides its key.
    fn parts(&self) -> Vec<(&'static str, u32)> {
        let end = matches!(self.of.window.length(), Some(Window::Micros(_))).then_some(("end", 48));
        let count = self.has_count().then_some(("count", 64));
        let amount = self.has_amount().then_some(("amount", self.amount_width()));
        let previous = self.previous_parts().into_iter().map(|(_, previous)| (previous, 64));
        [end, count, amount].into_iter().flatten().chain(previous).collect()
    }

    /// Returns the width in bits of a sum, a minimum, a maximum, or a moving average with its fraction.
    fn amount_width(&self) -> u32 {
        match self.of.function {
            Function::Ewma => self.width + self.of.window.fraction_bits(),
            _ => 64,
        }
    }

    /// Returns the names, as identifiers, and widths of the key fields. Registers and variables prefix them with `of_`,
    /// because a field may be called `count`.
    fn key(&self, inputs: &ProgramInputs<'_>) -> Vec<(String, u32)> {
        key_fields(inputs, self.of).map(|field| (identifier(&field.name), field.width)).collect()
    }

    fn var(&self, part: &str) -> String {
        slot_var(self.number, part)
    }

    fn register(&self, part: &str) -> String {
        slot_register(self.number, part)
    }
}

/// Returns the name of the variable for a part of a slot's cell.
pub(super) fn slot_var(slot: u16, part: &str) -> String {
    format!("slot_{slot}_{part}")
}

/// Returns the name of the register for a part of a slot's cells.
pub(super) fn slot_register(slot: u16, part: &str) -> String {
    format!("slot_{slot}_kept_{part}")
}

/// Returns the fields of an aggregate's key.
fn key_fields<'w>(inputs: &'w ProgramInputs<'_>, of: &'w Aggregate) -> impl Iterator<Item = &'w FormatField> {
    of.by.iter().map(|id| &inputs.format.fields[usize::from(id.0)])
}

/// Returns the name of the variable that a slot's tables match.
pub(super) fn value_var(slot: u16) -> String {
    format!("slot_{slot}_value")
}

/// Whether the program computes any aggregate.
fn is_any(inputs: &ProgramInputs<'_>) -> bool {
    inputs.rules.format.slots > 0
}

/// Writes registers, variables, actions and tables.
pub(super) fn declare(text: &mut Text, inputs: &ProgramInputs<'_>) {
    if is_any(inputs) {
        registers(text, inputs);
        tables(text, inputs);
    }
}

/// Returns the number of cells per register: one per key that rules can name, and the same number for other keys.
fn cells_a_register(of: Option<&Aggregate>, keys: u32) -> u32 {
    if of.is_some_and(|of| of.by.is_empty()) { 1 } else { 2 * keys }
}

/// Returns the total number of cells in the registers of one slot.
pub(crate) fn cells(format: &ProgramFormat, of: Option<&Aggregate>, keys: u32) -> u64 {
    let Some(of) = of else {
        return linked::parts(format).len() as u64 * u64::from(cells_a_register(None, keys)) + 1;
    };
    let slot = AggregateSlot { number: 0, computed: 0, of, width: 64 };
    let evictions = u64::from(!of.by.is_empty());
    let registers = (slot.parts().len() + of.by.len()) as u64;
    registers * u64::from(cells_a_register(Some(of), keys)) + evictions
}

fn registers(text: &mut Text, inputs: &ProgramInputs<'_>) {
    let format = &inputs.rules.format;
    for slot in all_slots(inputs) {
        let slot = match slot {
            ProgramSlot::Declared(slot) => slot,
            ProgramSlot::Linked(number, computed) => {
                linked::declare(text, inputs, number, cells_a_register(None, format.computed()[computed].keys));
                evictions(text, number);
                text.line(format!("bit<{}> {} = 0;", key_width(inputs, number), value_var(number)));
                continue;
            }
        };
        let computed = &format.computed()[slot.computed];
        let key = slot.key(inputs);
        let cells = cells_a_register(Some(slot.of), computed.keys);
        text.line("");
        text.line(format!("// Slot {}: {}.", slot.number, slot.of.shown(format)));
        let parts = slot.parts().into_iter().map(|(part, width)| (part.to_owned(), width));
        for (part, width) in parts.chain(key.iter().map(|(name, width)| (of(name), *width))) {
            text.line(format!("register<bit<{width}>>({cells}) {};", slot.register(&part)));
            text.line(format!("bit<{width}> {} = 0;", slot.var(&part)));
        }
        if !key.is_empty() {
            evictions(text, slot.number);
        }
        if slot.of.function == Function::Ewma {
            text.line(format!("bit<{}> {} = 0;", slot.amount_width(), slot.var("given")));
        }
        text.line(format!("bit<{}> {} = 0;", key_width(inputs, slot.number), value_var(slot.number)));
    }
}

/// Writes the counter of a slot's evictions.
fn evictions(text: &mut Text, slot: u16) {
    text.line(format!(
        "register<bit<64>>(1) {};    // number of keys that lost their cell before the end of their window",
        slot_register(slot, "evictions")
    ));
    text.line(format!("bit<64> {} = 0;", slot_var(slot, "evictions")));
    text.line(format!("bit<1> {} = 0;", slot_var(slot, "evicts")));
}

/// Writes code that counts an eviction.
fn count_eviction(text: &mut Text, slot: u16) {
    let (register, evictions) = (slot_register(slot, "evictions"), slot_var(slot, "evictions"));
    text.block(format!("if ({} == 1)", slot_var(slot, "evicts")), |text| {
        text.line(format!("{register}.read({evictions}, 0);"));
        text.line(format!("{register}.write(0, {evictions} + 1);"));
    });
}

fn tables(text: &mut Text, inputs: &ProgramInputs<'_>) {
    let format = &inputs.rules.format;
    text.line("");
    for computed in 0..format.computed().len() {
        text.line(format!("bit<32> {} = 0;", cell(computed)));
    }
    text.line(format!("bit<{}> counted = 0;", format.slots));
    let has_key = |aggregate: &Option<Aggregate>| aggregate.as_ref().is_none_or(|of| !of.by.is_empty());
    for (number, _) in format.computed().iter().enumerate().filter(|(_, computed)| has_key(&computed.aggregate)) {
        text.line(format!("action to_{}(bit<32> index) {{ {} = index; }}", place_table(number), cell(number)));
    }
    text.line(format!("action count_for(bit<{}> slots) {{ counted = slots; }}", format.slots));
    averages(text, inputs);
    for (number, computed) in format.computed().iter().enumerate() {
        let key = |field: &FormatField| format!("{}_value: exact @name(\"{}\");", identifier(&field.name), field.name);
        let keys: Vec<String> = match &computed.aggregate {
            Some(of) => key_fields(inputs, of).map(key).collect(),
            None => {
                let slot = format.slots_of(number).start;
                let key = |part: String| {
                    format!("{}: exact @name(\"{part}\");", linked::link_var(slot, &format!("{part}_value")))
                };
                linked::key_parts().map(key).collect()
            }
        };
        if !keys.is_empty() {
            let place = place_table(number);
            table(text, &place, &keys, &format!("to_{place};"), inputs.options);
        }
    }
    table(text, COUNTS, &[STATE_KEY.to_owned()], "count_for;", inputs.options);
}

/// Writes division actions, one for each width of averaged values.
fn averages(text: &mut Text, inputs: &ProgramInputs<'_>) {
    let width = |slot: &ProgramSlot<'_>| match slot {
        ProgramSlot::Declared(slot) => (slot.of.function == Function::Avg).then_some(slot.width),
        ProgramSlot::Linked(..) => linked::average_width(inputs.format),
    };
    let mut widths: Vec<u32> = all_slots(inputs).iter().filter_map(width).collect();
    widths.sort_unstable();
    widths.dedup();
    if widths.is_empty() {
        return;
    }
    text.line("");
    for name in ["dividend", "divisor", "quotient"] {
        text.line(format!("bit<64> {name} = 0;"));
    }
    for width in widths {
        text.block(format!("action divide_{width}()"), |text| {
            text.line("quotient = 0;");
            for bit in (0..width).rev() {
                let fits = format!("(dividend >> {bit}) >= divisor");
                text.line(format!("quotient = {fits} ? quotient + 64w{:#x} : quotient;", 1u64 << bit));
                text.line(format!("dividend = {fits} ? dividend - (divisor << {bit}) : dividend;"));
            }
        });
    }
}

/// Writes a division. The variable `quotient` gets the result, which has at most `width` bits.
pub(super) fn divide(text: &mut Text, dividend: &str, divisor: &str, width: u32) {
    text.line(format!("dividend = {dividend};"));
    text.line(format!("divisor = {divisor};"));
    text.line(format!("divide_{width}();"));
}

/// Returns the width of a slot's key in the tables.
fn key_width(inputs: &ProgramInputs<'_>, slot: u16) -> u32 {
    ColumnKey::Slot(slot).width(&inputs.rules.format)
}

/// Writes code that finds the cells of a message's keys.
pub(super) fn locate_cells(text: &mut Text, inputs: &ProgramInputs<'_>) {
    for (number, computed) in inputs.rules.format.computed().iter().enumerate() {
        let Some(of) = &computed.aggregate else {
            linked::locate(text, inputs, inputs.rules.format.slots_of(number).start, number, computed.keys);
            continue;
        };
        let fields = key_fields(inputs, of);
        let key: Vec<String> = fields.map(|field| format!("{}_value", identifier(&field.name))).collect();
        if !key.is_empty() {
            let (place, cell, keys) = (place_table(number), cell(number), computed.keys);
            text.block(format!("if (!{place}.apply().hit)"), |text| {
                let key = key.join(", ");
                text.line(format!("hash({cell}, HashAlgorithm.crc32, 32w{keys}, {{ {key} }}, 32w{keys});"));
            });
        }
    }
}

/// Writes code that reads the slots' cells before the stages of slots. It runs if one of these stages tests them, or if
/// the message is counted in a slot or a counter.
pub(super) fn read_cells(text: &mut Text, inputs: &ProgramInputs<'_>) {
    for slot in all_slots(inputs) {
        match slot {
            ProgramSlot::Declared(slot) => read(text, inputs, &slot),
            ProgramSlot::Linked(number, computed) => linked::read(text, inputs, number, computed),
        }
    }
}

fn read(text: &mut Text, inputs: &ProgramInputs<'_>, slot: &AggregateSlot<'_>) {
    let key = slot.key(inputs);
    let parts = slot.parts().into_iter().map(|(part, _)| part.to_owned());
    for part in parts.chain(key.iter().map(|(name, _)| of(name))) {
        text.line(format!("{}.read({}, {});", slot.register(&part), slot.var(&part), cell(slot.computed)));
    }
    let (end, count) = (slot.var("end"), slot.var("count"));
    let over = match slot.of.window.length() {
        Some(Window::Micros(length)) => is_over(&end, length),
        Some(Window::Packets(length)) => format!("{count} == 0 || {count} >= {length}"),
        None => format!("{count} == 0"),
    };
    let anew = |text: &mut Text| {
        if let Some(Window::Micros(length)) = slot.of.window.length() {
            text.line(format!("{end} = {NOW} + {length};"));
        }
        if slot.has_count() {
            text.line(format!("{count} = 0;"));
        }
        if slot.has_amount() {
            let none = if slot.of.function == Function::Min { "0xffffffffffffffff" } else { "0" };
            text.line(format!("{} = {none};", slot.var("amount")));
        }
    };
    let complete = |text: &mut Text| {
        for (part, previous) in slot.previous_parts() {
            text.line(format!("{} = {};", slot.var(previous), slot.var(part)));
        }
        anew(text);
    };
    let others: Vec<String> = key.iter().map(|(name, _)| format!("{} != {name}_value", slot.var(&of(name)))).collect();
    if others.is_empty() {
        text.block(format!("if ({over})"), complete);
        return;
    }
    // Nothing is lost with a window that is over, unless it is the one that tests read.
    let is_unused = if slot.previous_parts().is_empty() { over.clone() } else { format!("{count} == 0") };
    let evicts = slot.var("evicts");
    text.line(format!("{evicts} = 0;"));
    text.line(format!("if ({}) {{", others.join(" || ")));
    text.indented(|text| {
        text.line(format!("if (!({is_unused})) {{ {evicts} = 1; }}"));
        for (_, previous) in slot.previous_parts() {
            text.line(format!("{} = 0;", slot.var(previous)));
        }
        anew(text);
    });
    text.line(format!("}} else if ({over}) {{"));
    text.indented(complete);
    text.line("}");
}

/// Writes code that sets the lookup key of a slot's stage.
pub(super) fn value(text: &mut Text, inputs: &ProgramInputs<'_>, number: u16) {
    let width = key_width(inputs, number);
    let slot = match ProgramSlot::new(inputs, number) {
        ProgramSlot::Declared(slot) => slot,
        ProgramSlot::Linked(..) => {
            let none = inputs.rules.format.no_value(number).expect("an average has no value at first");
            return linked::value(text, inputs, number, none, width);
        }
    };
    let value = value_var(number);
    let is_previous = matches!(slot.of.window, AggregateWindow::Previous(_));
    let part = |part: &str| slot.var(&if is_previous { format!("previous_{part}") } else { part.to_owned() });
    let (count, amount) = (part("count"), part("amount"));
    let some = |text: &mut Text| match slot.of.function {
        Function::Count => text.line(format!("{value} = {count};")),
        Function::Sum => text.line(format!("{value} = {amount};")),
        Function::Min | Function::Max => text.line(format!("{value} = (bit<{width}>){amount};")),
        Function::Avg => {
            divide(text, &amount, &count, slot.width);
            text.line(format!("{value} = (bit<{width}>)quotient;"));
        }
        Function::Ewma => {
            let bits = slot.of.window.fraction_bits();
            text.line(format!("{value} = (bit<{width}>)(({amount} + {:#x}) >> {bits});", 1u64 << bits >> 1));
        }
    };
    match inputs.rules.format.no_value(number) {
        None => some(text),
        Some(none) => {
            text.line(format!("{value} = {none:#x};"));
            text.block(format!("if ({count} != 0)"), some);
        }
    }
}

/// Writes code that counts a message whose delivery is known.
pub(super) fn act(text: &mut Text, inputs: &ProgramInputs<'_>) {
    if !is_any(inputs) {
        return;
    }
    text.line("counted = 0;");
    text.line(format!("{COUNTS}.apply();"));
    for (number, slot) in all_slots(inputs).into_iter().enumerate() {
        text.block(format!("if (counted[{number}:{number}] == 1)"), |text| match slot {
            ProgramSlot::Declared(slot) => count(text, inputs, &slot),
            ProgramSlot::Linked(number, computed) => {
                linked::count(text, inputs, number, computed);
                count_eviction(text, number);
            }
        });
    }
}

fn count(text: &mut Text, inputs: &ProgramInputs<'_>, slot: &AggregateSlot<'_>) {
    let cell = cell(slot.computed);
    let key = slot.key(inputs);
    if slot.of.function == Function::Ewma {
        move_average(text, inputs, slot);
    }
    if slot.has_count() {
        text.line(format!("{0} = {0} |+| 1;", slot.var("count")));
    }
    if let Some(field) = slot.of.field.filter(|_| slot.has_amount()) {
        let (of, value) = (slot.var("amount"), amount(inputs, field));
        match slot.of.function {
            Function::Min => text.line(format!("{of} = {value} < {of} ? {value} : {of};")),
            Function::Max => text.line(format!("{of} = {value} > {of} ? {value} : {of};")),
            Function::Sum | Function::Avg => text.line(format!("{of} = {of} |+| {value};")),
            Function::Count | Function::Ewma => {}
        }
    }
    for (part, _) in slot.parts() {
        text.line(format!("{}.write({cell}, {});", slot.register(part), slot.var(part)));
    }
    for (name, _) in &key {
        text.line(format!("{}.write({cell}, {name}_value);", slot.register(&of(name))));
    }
    if !key.is_empty() {
        count_eviction(text, slot.number);
    }
}

/// Writes code that moves an average towards a message's value. The first message sets it.
fn move_average(text: &mut Text, inputs: &ProgramInputs<'_>, slot: &AggregateSlot<'_>) {
    let (AggregateWindow::Decaying { shift }, Some(field)) = (slot.of.window, slot.of.field) else { return };
    let (count, of, given) = (slot.var("count"), slot.var("amount"), slot.var("given"));
    let (width, bits) = (slot.amount_width(), slot.of.window.fraction_bits());
    text.line(format!("{given} = (bit<{width}>){} << {bits};", amount(inputs, field)));
    move_towards(text, [&of, &given, &count], shift);
}

/// Writes code that moves an average towards a value, by `1 / 2^shift` of the difference; the shift is a number or a
/// variable. Over no messages, the value becomes the average.
pub(super) fn move_towards(text: &mut Text, [average, value, count]: [&str; 3], shift: impl std::fmt::Display) {
    text.line(format!("if ({count} == 0) {{"));
    text.indented(|text| text.line(format!("{average} = {value};")));
    text.line(format!("}} else if ({value} >= {average}) {{"));
    text.indented(|text| text.line(format!("{average} = {average} + (({value} - {average}) >> {shift});")));
    text.line("} else {");
    text.indented(|text| text.line(format!("{average} = {average} - (({average} - {value}) >> {shift});")));
    text.line("}");
}
