//! Aggregates: what the program remembers from message to message, by key.
//!
//! A slot of an aggregate is a few registers of the same length; a key has one cell of each. Keys that rules name have
//! their cells by a table (`place_0`), other keys by a hash, behind those. A cell knows whose it is: a key that finds
//! another's begins anew there.
//!
//! ```text
//! find:   place: which cell, by the key's fields
//! look:   read the slots' cells ──> window over, or another key's? then as if nothing was counted ──> tables
//! act:    leaf's state ──> counts: which slots ──> add the message, write the cells
//! ```
//!
//! From the look on it is one step (`@atomic`), whatever number of threads a switch has.
//!
//! Averages are divided by hand, bit by bit: P4 has no division of what is not known before.

use subscribe::{Aggregate, Function, Window};

use super::stages::{STATE_KEY, table};
use super::text::{Text, identifier};
use super::{Written, amount};
use crate::format::Field;

/// The table that says which slots a leaf's messages count for.
pub(crate) const COUNTS: &str = "counts";

/// The time of a pass, in microseconds.
pub(super) const NOW: &str = "meta.subscription.now";

/// Whether the program has windows that are over at some time.
pub(super) fn has_clock(format: &subscribe::Format) -> bool {
    let is_time = |window: &Window| matches!(window, Window::Micros(_));
    format.computed().iter().any(|computed| is_time(&computed.aggregate.window))
        || format.counters().iter().any(|counter| counter.window.as_ref().is_some_and(is_time))
}

/// Takes the time of a pass. BMv2 stamps a packet when it comes in, and not when it goes round: there its time stays that of
/// its arrival.
pub(super) fn take_time(text: &mut Text, written: &Written<'_>) {
    const STAMP: &str = "standard_metadata.ingress_global_timestamp";
    if !has_clock(&written.rules.format) {
        return;
    }
    let take = |text: &mut Text| text.line(format!("{NOW} = {STAMP};"));
    match written.format.messages {
        Some(_) => text.block(format!("if ({STAMP} != 0)"), take),
        None => take(text),
    }
}

/// By how much a packet's time may lie before a window's begin (12 days): workers' clocks differ, and captures are merged.
const EARLY: u64 = 1 << 40;

/// Whether no window is open that would end at `end`; 0 if there never was one. The clock has 48 bits and goes round: what is left
/// of a window is its length at most, whatever the clock says.
pub(super) fn is_over(end: &str, length: u64) -> String {
    format!("{end} == 0 || {end} - {NOW} - 1 >= {}", length + EARLY)
}

/// The table of the places of an aggregate's keys.
pub(crate) fn place_table(computed: usize) -> String {
    format!("place_{computed}")
}

/// The variable for the cell of a message's key.
fn cell(computed: usize) -> String {
    format!("cell_{computed}")
}

/// A slot: its number, what it computes, and which of the declared aggregates that is.
struct Slot<'a> {
    number: u16,
    computed: usize,
    of: &'a Aggregate,
}

/// The part of a cell that is a field of its key.
fn of(field: &str) -> String {
    format!("of_{field}")
}

fn slots<'a>(written: &Written<'a>) -> Vec<Slot<'a>> {
    let format = &written.rules.format;
    let of = |number: u16| {
        let computed = format.computed_in(number).expect("all slots compute something");
        Slot { number, computed, of: &format.computed()[computed].aggregate }
    };
    (0..format.slots).map(of).collect()
}

impl Slot<'_> {
    fn has_count(&self) -> bool {
        matches!(self.of.function, Function::Count | Function::Avg) || matches!(self.of.window, Window::Packets(_))
    }

    fn has_amount(&self) -> bool {
        self.of.function != Function::Count
    }

    /// What a cell has besides its key: names of registers, and widths.
    fn parts(&self) -> Vec<(&'static str, u32)> {
        let end = matches!(self.of.window, Window::Micros(_)).then_some(("end", 48));
        let count = self.has_count().then_some(("count", 64));
        let amount = self.has_amount().then_some(("amount", 64));
        [end, count, amount].into_iter().flatten().collect()
    }

    /// The fields of the key: their names as identifiers, and widths. In registers and variables they begin with `of_`, for a
    /// field may be called `count`.
    fn key(&self, written: &Written<'_>) -> Vec<(String, u32)> {
        key_fields(written, self.of).map(|field| (identifier(&field.name), field.width)).collect()
    }

    fn var(&self, part: &str) -> String {
        format!("slot_{}_{part}", self.number)
    }

    fn register(&self, part: &str) -> String {
        format!("slot_{}_kept_{part}", self.number)
    }
}

/// The fields of an aggregate's key.
fn key_fields<'w>(written: &'w Written<'_>, of: &'w Aggregate) -> impl Iterator<Item = &'w Field> {
    of.by.iter().map(|id| &written.format.fields[usize::from(id.0)])
}

/// The variable for what a slot's tables look up.
pub(super) fn value_var(slot: u16) -> String {
    format!("slot_{slot}_value")
}

/// Whether the program computes anything.
fn is_any(written: &Written<'_>) -> bool {
    written.rules.format.slots > 0
}

/// Registers, variables, actions and tables.
pub(super) fn declare(text: &mut Text, written: &Written<'_>) {
    if is_any(written) {
        registers(text, written);
        tables(text, written);
    }
}

/// Places for keys that rules name, and as many for others.
fn cells_a_register(of: &Aggregate, keys: u32) -> u32 {
    if of.by.is_empty() { 1 } else { 2 * keys }
}

/// How many cells the registers of one slot have together.
pub(crate) fn cells(of: &Aggregate, keys: u32) -> u64 {
    let slot = Slot { number: 0, computed: 0, of };
    let evictions = u64::from(!of.by.is_empty());
    let registers = (slot.parts().len() + of.by.len()) as u64;
    registers * u64::from(cells_a_register(of, keys)) + evictions
}

fn registers(text: &mut Text, written: &Written<'_>) {
    let format = &written.rules.format;
    for slot in slots(written) {
        let computed = &format.computed()[slot.computed];
        let key = slot.key(written);
        let cells = cells_a_register(slot.of, computed.keys);
        text.line("");
        text.line(format!("// Slot {}: {}.", slot.number, slot.of.shown(format)));
        let parts = slot.parts().into_iter().map(|(part, width)| (part.to_owned(), width));
        for (part, width) in parts.chain(key.iter().map(|(name, width)| (of(name), *width))) {
            text.line(format!("register<bit<{width}>>({cells}) {};", slot.register(&part)));
            text.line(format!("bit<{width}> {} = 0;", slot.var(&part)));
        }
        if !key.is_empty() {
            text.line(format!(
                "register<bit<64>>(1) {};    // how often a key lost its cell to another before its window was over",
                slot.register("evictions")
            ));
            text.line(format!("bit<64> {} = 0;", slot.var("evictions")));
            text.line(format!("bit<1> {} = 0;", slot.var("evicts")));
        }
        text.line(format!("bit<64> {} = 0;", value_var(slot.number)));
    }
}

fn tables(text: &mut Text, written: &Written<'_>) {
    let format = &written.rules.format;
    text.line("");
    for computed in 0..format.computed().len() {
        text.line(format!("bit<32> {} = 0;", cell(computed)));
    }
    text.line(format!("bit<{}> counted = 0;", format.slots));
    for (number, _) in format.computed().iter().enumerate().filter(|(_, computed)| !computed.aggregate.by.is_empty()) {
        text.line(format!("action to_{}(bit<32> index) {{ {} = index; }}", place_table(number), cell(number)));
    }
    text.line(format!("action count_for(bit<{}> slots) {{ counted = slots; }}", format.slots));
    averages(text, written);
    for (number, computed) in format.computed().iter().enumerate() {
        let key = |field: &Field| format!("{}_value: exact @name(\"{}\");", identifier(&field.name), field.name);
        let keys: Vec<String> = key_fields(written, &computed.aggregate).map(key).collect();
        if !keys.is_empty() {
            let place = place_table(number);
            table(text, &place, &keys, &format!("to_{place};"), written.options);
        }
    }
    table(text, COUNTS, &[STATE_KEY.to_owned()], "count_for;", written.options);
}

/// Divisions, for each width of what is averaged.
fn averages(text: &mut Text, written: &Written<'_>) {
    let mut widths: Vec<u32> = slots(written)
        .iter()
        .filter(|slot| slot.of.function == Function::Avg)
        .map(|slot| width(written, slot))
        .collect();
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

/// The width of the values that an aggregate is of; wider ones count as the largest of 64 bits.
fn width(written: &Written<'_>, slot: &Slot<'_>) -> u32 {
    slot.of.field.map_or(64, |id| written.format.fields[usize::from(id.0)].width.min(64))
}

/// Finds the cells of a message's keys.
pub(super) fn find(text: &mut Text, written: &Written<'_>) {
    for (number, computed) in written.rules.format.computed().iter().enumerate() {
        let fields = key_fields(written, &computed.aggregate);
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

/// Before the stages of slots: reads these cells, if one of the stages asks for them or anything is counted of the message, in
/// a slot or a counter.
pub(super) fn look(text: &mut Text, written: &Written<'_>) {
    slots(written).iter().for_each(|slot| read(text, written, slot));
}

fn read(text: &mut Text, written: &Written<'_>, slot: &Slot<'_>) {
    let key = slot.key(written);
    let parts = slot.parts().into_iter().map(|(part, _)| part.to_owned());
    for part in parts.chain(key.iter().map(|(name, _)| of(name))) {
        text.line(format!("{}.read({}, {});", slot.register(&part), slot.var(&part), cell(slot.computed)));
    }
    let (end, count) = (slot.var("end"), slot.var("count"));
    let over = match slot.of.window {
        Window::Micros(length) => is_over(&end, length),
        Window::Packets(length) => format!("{count} == 0 || {count} >= {length}"),
    };
    let others: Vec<String> = key.iter().map(|(name, _)| format!("{} != {name}_value", slot.var(&of(name)))).collect();
    let anew = |text: &mut Text| {
        if let Window::Micros(length) = slot.of.window {
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
    if others.is_empty() {
        text.block(format!("if ({over})"), anew);
        return;
    }
    let evicts = slot.var("evicts");
    text.line(format!("{evicts} = 0;"));
    text.line(format!("if ({over}) {{"));
    text.indented(anew);
    text.line(format!("}} else if ({}) {{", others.join(" || ")));
    text.indented(|text| {
        anew(text);
        text.line(format!("{evicts} = 1;"));
    });
    text.line("}");
}

/// In the stage of a slot: what its tables look up.
pub(super) fn value(text: &mut Text, written: &Written<'_>, number: u16) {
    let slot = &slots(written)[usize::from(number)];
    let (value, count) = (value_var(number), slot.var("count"));
    match slot.of.function {
        Function::Count => text.line(format!("{value} = {count};")),
        Function::Sum | Function::Min | Function::Max => text.line(format!("{value} = {};", slot.var("amount"))),
        Function::Avg => {
            text.line(format!("{value} = 0;"));
            text.block(format!("if ({count} != 0)"), |text| {
                text.line(format!("dividend = {};", slot.var("amount")));
                text.line(format!("divisor = {count};"));
                text.line(format!("divide_{}();", width(written, slot)));
                text.line(format!("{value} = quotient;"));
            });
        }
    }
}

/// Counts a message whose delivery is known.
pub(super) fn act(text: &mut Text, written: &Written<'_>) {
    if !is_any(written) {
        return;
    }
    text.line("counted = 0;");
    text.line(format!("{COUNTS}.apply();"));
    for slot in slots(written) {
        let number = slot.number;
        text.block(format!("if (counted[{number}:{number}] == 1)"), |text| count(text, written, &slot));
    }
}

fn count(text: &mut Text, written: &Written<'_>, slot: &Slot<'_>) {
    let cell = cell(slot.computed);
    let key = slot.key(written);
    if slot.has_count() {
        text.line(format!("{0} = {0} |+| 1;", slot.var("count")));
    }
    if let Some(field) = slot.of.field.filter(|_| slot.has_amount()) {
        let (of, value) = (slot.var("amount"), amount(written, field));
        match slot.of.function {
            Function::Min => text.line(format!("{of} = {value} < {of} ? {value} : {of};")),
            Function::Max => text.line(format!("{of} = {value} > {of} ? {value} : {of};")),
            _ => text.line(format!("{of} = {of} |+| {value};")),
        }
    }
    for (part, _) in slot.parts() {
        text.line(format!("{}.write({cell}, {});", slot.register(part), slot.var(part)));
    }
    for (name, _) in &key {
        text.line(format!("{}.write({cell}, {name}_value);", slot.register(&of(name))));
    }
    if !key.is_empty() {
        let (register, evictions) = (slot.register("evictions"), slot.var("evictions"));
        text.block(format!("if ({} == 1)", slot.var("evicts")), |text| {
            text.line(format!("{register}.read({evictions}, 0);"));
            text.line(format!("{register}.write(0, {evictions} + 1);"));
        });
    }
}
