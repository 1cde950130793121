//! Reads the state that the P4 program keeps on behalf of rules: `@query_counter` and `@query_aggregate`.

use diagnostics::{Diagnostic, Diagnostics, SourceMap};
use p4::typed::{Annotation, StructDecl};
use subscribe::{WINDOW_LIMIT_US, Window};

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
/// The declaration of linked slots.
const ANY: &str = "any";

/// Reads `@query_counter(name, window)` and `@query_aggregate("avg(price) by stock over 1s", keys, slots)` of the
/// headers struct.
pub(super) fn read(format: &mut ProgramFormat, all: &StructDecl, diagnostics: &mut Diagnostics) {
    let mut taken = TakenNames::by(format, diagnostics);
    for annotation in all.annotations.iter() {
        let found = match &*annotation.name {
            "query_counter" => counter(format, &mut taken, annotation).map(|counter| format.counters.push(counter)),
            "query_aggregate" => aggregates(format, annotation).map(|declared| format.aggregates.extend(declared)),
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

/// Returns an error about an aggregate; without `help`, what is written says enough.
fn aggregate_error(annotation: &Annotation, message: String, help: Option<String>) -> Box<Diagnostic> {
    let error = Diagnostic::error("query-aggregate", annotation.span, message);
    Box::new(match help {
        Some(help) => error.help(help),
        None => error,
    })
}

/// Help with the forms of a declaration.
const EXAMPLE: &str = "write `@query_aggregate(\"avg(price) by stock over 1s\")`, or `@query_aggregate(\"any\")` for \
                       any that a rule uses; optionally followed by the maximum number of keys, and the number of \
                       states (distinct conditions in use at once; with `any`, of aggregates and conditions): \
                       `@query_aggregate(\"…\", 4096, 2)`";

/// Reads a declaration. Linked slots become one aggregate each, since each has keys of its own.
fn aggregates(format: &ProgramFormat, annotation: &Annotation) -> Result<Vec<Aggregate>, Box<Diagnostic>> {
    let wrong = |message: String| aggregate_error(annotation, message, None);
    let with_example = |message: &str| aggregate_error(annotation, message.to_owned(), Some(EXAMPLE.to_owned()));
    let words = words(annotation).unwrap_or_default();
    let (text, numbers) = words.split_first().ok_or_else(|| with_example("an aggregate is missing"))?;
    let numbers: Vec<u32> = numbers.iter().map_while(|number| number.parse().ok()).collect();
    if words.len() > 3 || numbers.len() + 1 != words.len() || numbers.contains(&0) {
        return Err(with_example("`@query_aggregate` takes an aggregate in quotes and up to two positive integers"));
    }
    let computes = match text.as_str() {
        ANY => None,
        text => Some(declared(format, annotation, text)?),
    };
    if format.aggregates.iter().any(|other| other.computes == computes) {
        return Err(wrong(format!("`{text}` is declared twice")));
    }
    if computes.is_none() && format.fields.is_empty() {
        return Err(wrong("there is no field that rules could aggregate".to_owned()));
    }
    let has_key = computes.as_ref().is_none_or(|aggregate| !aggregate.by.is_empty());
    let keys = if has_key { numbers.first().copied().unwrap_or(KEYS) } else { 1 };
    let slots = numbers.get(1).map_or(1, |slots| *slots as usize);
    if keys > MAX_KEYS {
        return Err(wrong(format!("rules can name at most {MAX_KEYS} keys")));
    }
    let before: usize = format.aggregates.iter().map(|other| usize::from(other.slots)).sum();
    if before + slots > MAX_SLOTS {
        return Err(wrong(format!("the aggregates of a program can have at most {MAX_SLOTS} slots in total")));
    }
    let cells = |of: &Option<subscribe::Aggregate>, keys: u32, slots: usize| {
        crate::write::cells(format, of.as_ref(), keys) * slots as u64
    };
    let before: u64 = format.aggregates.iter().map(|of| cells(&of.computes, of.keys, of.slots.into())).sum();
    let own = cells(&computes, keys, slots);
    if before + own > MAX_CELLS {
        let message = format!(
            "the registers of this aggregate would have {own} cells, and those before it have {before}: the maximum is {MAX_CELLS}"
        );
        return Err(aggregate_error(annotation, message, Some("reduce the number of keys or slots".to_owned())));
    }
    Ok(match computes {
        Some(_) => vec![Aggregate { computes, keys, slots: slots as u16 }],
        None => vec![Aggregate { computes, keys, slots: 1 }; slots],
    })
}

/// Parses an aggregate of a declaration.
fn declared(
    format: &ProgramFormat,
    annotation: &Annotation,
    text: &str,
) -> Result<subscribe::Aggregate, Box<Diagnostic>> {
    let wrong = |message: String, help| aggregate_error(annotation, message, help);
    let Ok(rules) = crate::rule_format(format) else { return Err(wrong("field names clash".to_owned(), None)) };
    let (mut map, mut findings) = (SourceMap::new(), Diagnostics::new());
    let Some(aggregate) = subscribe::aggregate(&mut map, text, &rules.format, &mut findings) else {
        let (message, help) = match findings.iter().next() {
            Some(first) => (first.message.clone(), first.help.clone()),
            None => ("this is not an aggregate".to_owned(), None),
        };
        return Err(wrong(format!("`{text}`: {message}"), Some(help.unwrap_or_else(|| EXAMPLE.to_owned()))));
    };
    match aggregate.window.length() {
        Some(Window::Micros(WINDOW_LIMIT_US..)) => {
            Err(wrong(format!("a window must be shorter than {WINDOW_LIMIT_US} microseconds"), None))
        }
        _ => Ok(aggregate),
    }
}
