//! Reads the state that the P4 program keeps on behalf of rules: `@query_counter` and `@query_aggregate`.

use diagnostics::{Diagnostic, Diagnostics, SourceMap};
use p4::typed::{Annotation, StructDecl};
use subscribe::Window;

use super::annotation::words;
use super::taken_names::TakenNames;
use crate::format::{Aggregate, Counter, ProgramFormat};
use crate::write::identifier;

/// Default number of keys per aggregate that rules can name.
const KEYS: u32 = 1024;
/// Maximum number of keys of an aggregate.
const MAX_KEYS: u32 = 1 << 20;
/// Maximum number of slots of all aggregates in total. A slot is the state of an aggregate under one condition.
const MAX_SLOTS: usize = 64;
/// Maximum number of cells of all aggregates' registers. Triplane runs programs with 64 M cells in total
/// (`ir`'s limits); the rest is left to the program's own registers.
const MAX_CELLS: u64 = 48 << 20;
/// Time windows must be shorter than this, in microseconds: half the period of the switch's 48-bit clock.
const WINDOW_LIMIT_US: u64 = 1 << 47;

/// Reads `@query_counter(name, window)` and `@query_aggregate("avg(price) by stock over 1s", keys, slots)` of the
/// headers struct.
pub(super) fn read(format: &mut ProgramFormat, all: &StructDecl, diagnostics: &mut Diagnostics) {
    let mut taken = TakenNames::by(format, diagnostics);
    for annotation in all.annotations.iter() {
        let found = match &*annotation.name {
            "query_counter" => counter(format, &mut taken, annotation).map(|counter| format.counters.push(counter)),
            "query_aggregate" => aggregate(format, annotation).map(|aggregate| format.aggregates.push(aggregate)),
            _ => Ok(()),
        };
        found.unwrap_or_else(|wrong| diagnostics.push(*wrong));
    }
}

fn counter(
    format: &ProgramFormat,
    taken: &mut TakenNames,
    annotation: &Annotation,
) -> Result<Counter, Box<Diagnostic>> {
    let wrong = |message: String| {
        let error = Diagnostic::error("query-counter", annotation.span, message);
        Box::new(error
            .help("write `@query_counter(volume)`, or with a window `@query_counter(volume, \"100ms\")`; a number is microseconds"))
    };
    let words = words(annotation).unwrap_or_default();
    let (name, window) = match &words[..] {
        [name] => (name, None),
        [name, window] => (name, Some(window)),
        [name, window, _] => {
            let message = "a counter has one value: `@query_counter` takes no number of cells".to_owned();
            let help = format!("write `@query_counter({name}, {window})`; aggregates have a value for each key");
            let error = Diagnostic::error("query-counter", annotation.span, message);
            return Err(Box::new(error.help(help)));
        }
        _ => return Err(wrong("`@query_counter` takes a name and optionally a window".to_owned())),
    };
    let starts_like_a_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !starts_like_a_name || identifier(name) != *name {
        return Err(wrong(format!("`{name}` is not a valid name for a counter")));
    }
    let fields = format.fields.iter().map(|field| &field.name);
    if fields.chain(format.counters.iter().map(|counter| &counter.name)).any(|other| identifier(other) == *name) {
        return Err(wrong(format!("a field or another counter has the name `{name}`")));
    }
    taken.counter(name, format).map_err(wrong)?;
    let window = window.map(|text| match text.parse() {
        Ok(micros) => Some(Window::Micros(micros)),
        Err(_) => subscribe::window(text),
    });
    match window {
        Some(None | Some(Window::Micros(0 | WINDOW_LIMIT_US..))) => {
            Err(wrong(format!("`{}` is not a valid window", words[1])))
        }
        window => Ok(Counter { name: name.clone(), window: window.flatten() }),
    }
}

fn aggregate(format: &ProgramFormat, annotation: &Annotation) -> Result<Aggregate, Box<Diagnostic>> {
    let error = |message: String, help: String| {
        let error = Diagnostic::error("query-aggregate", annotation.span, message);
        Box::new(if help.is_empty() { error } else { error.help(help) })
    };
    let wrong = |message: String| error(message, String::new());
    let example = "write `@query_aggregate(\"avg(price) by stock over 1s\")`; optionally followed by the maximum \
                   number of keys and the number of slots (distinct conditions in use at once): `@query_aggregate(\"…\", 4096, 2)`";
    let words = words(annotation).unwrap_or_default();
    let (text, numbers) =
        words.split_first().ok_or_else(|| error("an aggregate is missing".to_owned(), example.to_owned()))?;
    let numbers: Vec<u32> = numbers.iter().map_while(|number| number.parse().ok()).collect();
    if words.len() > 3 || numbers.len() + 1 != words.len() || numbers.contains(&0) {
        let message = "`@query_aggregate` takes an aggregate in quotes and up to two positive integers".to_owned();
        return Err(error(message, example.to_owned()));
    }
    let Ok(rules) = crate::rule_format(format) else { return Err(wrong("field names clash".to_owned())) };
    let (mut map, mut findings) = (SourceMap::new(), Diagnostics::new());
    let Some(aggregate) = subscribe::aggregate(&mut map, text, &rules.format, &mut findings) else {
        let (message, help) = match findings.iter().next() {
            Some(first) => (first.message.clone(), first.help.clone()),
            None => ("this is not an aggregate".to_owned(), None),
        };
        return Err(error(format!("`{text}`: {message}"), help.unwrap_or_else(|| example.to_owned())));
    };
    if matches!(aggregate.window.length(), Some(Window::Micros(WINDOW_LIMIT_US..))) {
        return Err(wrong(format!("a window must be shorter than {WINDOW_LIMIT_US} microseconds")));
    }
    if format.aggregates.iter().any(|other| other.computes == aggregate) {
        return Err(wrong(format!("`{text}` is declared twice")));
    }
    let keys = if aggregate.by.is_empty() { 1 } else { numbers.first().copied().unwrap_or(KEYS) };
    let slots = numbers.get(1).map_or(1, |slots| *slots as usize);
    if keys > MAX_KEYS {
        return Err(wrong(format!("rules can name at most {MAX_KEYS} keys")));
    }
    let before: usize = format.aggregates.iter().map(|other| usize::from(other.slots)).sum();
    if before + slots > MAX_SLOTS {
        return Err(wrong(format!("the aggregates of a program can have at most {MAX_SLOTS} slots in total")));
    }
    let cells = |of: &subscribe::Aggregate, keys: u32, slots: usize| crate::write::cells(of, keys) * slots as u64;
    let before: u64 = format.aggregates.iter().map(|of| cells(&of.computes, of.keys, of.slots.into())).sum();
    let own = cells(&aggregate, keys, slots);
    if before + own > MAX_CELLS {
        let message = format!(
            "the registers of this aggregate would have {own} cells, and those before it have {before}: the maximum is {MAX_CELLS}"
        );
        return Err(error(message, "reduce the number of keys or slots".to_owned()));
    }
    Ok(Aggregate { computes: aggregate, keys, slots: slots as u16 })
}
