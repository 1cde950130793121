//! Explains the delivery of messages.

use std::fmt::Write;

use diagnostics::{Diagnostics, SourceMap};
use serde_json::json;
use subscribe::{
    Aggregate, ColumnKey, Constant, Explanation, FieldId, HeaderId, Memory, Message, SlotUse, Subject, Verdict,
    show_value,
};
use subscribe_p4::RuleFormat;

use super::args::ExplainArgs;
use super::json;
use super::load::{Compiled, Loaded};
use super::packet::Reader;
use super::replication::options_without_program;
use crate::output::{Failure, Output};
use crate::packet_source::PacketSource;

/// Explains which rules a message, or each message of a packet, matches and why.
pub fn explain(args: &ExplainArgs, output: &Output) -> Result<(), Failure> {
    let mut loaded = Loaded::format(&args.rules.format, output)?;
    if let Some(packet) = &args.packet {
        return packets(args, packet, loaded, output);
    }
    let mut message = message(&loaded.rules, &args.message).map_err(Failure::Usage)?;
    let compiled = compile(args, &mut loaded, output)?;
    // There was no message before this one, except for the state that the command line sets.
    let mut memory = Memory::new(&loaded.rules.format);
    memory.assign(&compiled.subscriptions.slots());
    memory.fill(&loaded.rules.format, &mut message, 0);
    for part in &args.state {
        state(&mut message, &compiled, part).map_err(Failure::Usage)?;
    }
    let why = compiled.subscriptions.explain(&message, args.others);
    if args.json {
        output.print(&format!("{}\n", json::explanation(&message, &why, &compiled, &loaded)))
    } else {
        output.print(&explained(&why, &compiled, &loaded))
    }
}

/// Compiles the rules. From then on, the format names their aggregates in place of slots.
fn compile(args: &ExplainArgs, loaded: &mut Loaded, output: &Output) -> Result<Compiled, Failure> {
    let compiled = loaded.compile(&args.rules.rules, &options_without_program(), output)?;
    loaded.rules.format = loaded.rules.format.with_links(&compiled.subscriptions.links());
    Ok(compiled)
}

/// Formats the destinations of a message, and the reasons.
fn explained(explanation: &Explanation, compiled: &Compiled, loaded: &Loaded) -> String {
    let delivery = &explanation.delivery;
    let mut text = format!("{}\n", delivery.shown(&loaded.rules.format));
    let is_undelivered = delivery.ports.is_empty() && !delivery.to_controller && delivery.calls.is_empty();
    if let (None, Some(fallback), true) = (&loaded.format.messages, &loaded.format.parts.fallback, is_undelivered) {
        let why = if delivery.drop { "`drop` delivers nothing" } else { "no rule delivers it" };
        let _ = writeln!(text, "{why}: `{fallback}` decides");
    }
    for verdict in &explanation.matching {
        rule(&mut text, verdict, compiled, loaded, "matches");
    }
    for verdict in &explanation.others {
        rule(&mut text, verdict, compiled, loaded, "does not match");
    }
    let more = explanation.failed - explanation.others.len();
    if more > 0 {
        let _ = writeln!(text, "\n{more} more do not match (--others {} shows all)", explanation.failed);
    }
    text
}

/// Explains each message of the packets.
fn packets(args: &ExplainArgs, packet: &str, mut loaded: Loaded, output: &Output) -> Result<(), Failure> {
    let mut packets = PacketSource::open(packet)?;
    let compiled = compile(args, &mut loaded, output)?;
    let mut reader = Reader::new(&loaded, output)?;
    let format = &loaded.rules.format;
    let mut memory = Memory::new(format);
    memory.assign(&compiled.subscriptions.slots());
    let mut start_ns = None;
    let mut number = 0;
    while args.count.is_none_or(|count| number < count)
        && let Some((time_ns, data)) = packets.next()?
    {
        number += 1;
        let micros = time_ns.saturating_sub(*start_ns.get_or_insert(time_ns)) / 1000;
        let read = reader.read(&data, &loaded);
        let mut text = String::new();
        let mut lines = Vec::new();
        if matches!(packets, PacketSource::Capture { .. }) {
            let _ = writeln!(text, "{}", output.bold(&format!("packet {number}")));
        }
        let count = read.messages.len();
        for (at, mut message) in (1..).zip(read.messages) {
            memory.fill(format, &mut message, micros);
            for part in &args.state {
                state(&mut message, &compiled, part).map_err(Failure::Usage)?;
            }
            if loaded.format.messages.is_some() {
                let _ = writeln!(text, "{}", output.bold(&format!("message {at} of {count}")));
            }
            let why = compiled.subscriptions.explain(&message, args.others);
            if args.json {
                lines.push(json::explanation(&message, &why, &compiled, &loaded))
            } else {
                let shown = explained(&why, &compiled, &loaded);
                let _ = writeln!(text, "{}\n{shown}", show(&message, &loaded.rules, false));
            }
            memory.update(format, &message, &why.delivery, micros);
        }
        if args.json {
            let line = json!({ "packet": number, "messages": lines, "end": read.end });
            output.print(&format!("{line}\n"))?;
            continue;
        }
        if let Some(end) = read.end {
            let _ = writeln!(text, "{end}\n");
        }
        output.print(&text)?;
    }
    match number {
        0 if args.count != Some(0) => Err(Failure::Input(format!("{packet} contains no packets"))),
        _ => Ok(()),
    }
}

fn rule(text: &mut String, verdict: &Verdict, compiled: &Compiled, loaded: &Loaded, what: &str) {
    let Some(rule) = compiled.subscriptions.rule(verdict.rule) else { return };
    let _ = writeln!(text, "\n{} {what}", rule.label(loaded.map()));
    for decided in &verdict.because {
        let _ = writeln!(text, "  {:40}  {}", decided.test, decided.saw);
    }
}

/// Formats the fields of a message, the headers without a field of their own if `with_headers`, and the state from
/// earlier messages.
pub fn show(message: &Message, rules: &RuleFormat, with_headers: bool) -> String {
    let format = &rules.format;
    let fields = format.fields().iter().zip(&message.fields);
    let there = fields.filter(|(field, _)| field.header.is_none_or(|header| message.is_valid(header)));
    let mut shown: Vec<String> =
        there.map(|(field, value)| format!("{}={}", field.name, show_value(*value, field.kind, field.width))).collect();
    // Headers that no field implies.
    let own = |header: HeaderId| format.fields().iter().any(|field| field.header == Some(header));
    let headers = (0..).map(HeaderId).zip(&rules.headers).filter(|(_, of)| with_headers && of.len() == 1);
    let there = headers.map(|(id, _)| id).filter(|id| message.is_valid(*id) && !own(*id));
    shown.extend(there.map(|id| format.get_header(id).name.clone()));
    let counters = format.counters().iter().zip(&message.counters).filter(|(_, value)| **value != 0);
    shown.extend(counters.map(|(counter, value)| format!("{}={value}", counter.name)));
    for (slot, value) in (0..).zip(&message.slots) {
        let Some(value) = value.filter(|value| *value != 0 || format.no_value(slot).is_some()) else { continue };
        let computed = format.computed_in(slot).map(|at| &format.computed()[at]);
        let declared = format.declared_in(slot).map(|aggregate| aggregate.shown(format));
        shown.push(match (declared, computed) {
            // The states of an aggregate with several are distinguished by their slot numbers.
            (Some(declared), Some(computed)) if computed.slots > 1 => format!("slot {slot}: {declared}={value}"),
            (Some(declared), _) => format!("{declared}={value}"),
            (None, _) => format!("slot {slot}={value}"),
        });
    }
    if shown.is_empty() { "(none of the fields)".to_owned() } else { shown.join(", ") }
}

/// Sets the state from earlier messages, as the command line gives it.
fn state(message: &mut Message, compiled: &Compiled, part: &str) -> Result<(), String> {
    let all = &compiled.subscriptions;
    let format = all.format();
    let (name, value) = part
        .rsplit_once('=')
        .ok_or_else(|| format!("`{part}` has no value: write AGGREGATE=VALUE or COUNTER=VALUE"))?;
    let (name, value) = (name.trim(), value.trim());
    let value: u128 = value.parse::<u64>().map_err(|_| format!("`{value}` is not a 64-bit number"))?.into();
    if let Ok(Subject::Counter(id)) = format.subject(name) {
        message.put(format, ColumnKey::Counter(id), value);
        return Ok(());
    }
    let (mut map, mut findings) = (SourceMap::new(), Diagnostics::new());
    let Some(asked) = subscribe::aggregate(&mut map, name, format, &mut findings) else {
        let why =
            findings.iter().next().map_or("this is neither an aggregate nor a counter", |finding| &finding.message);
        return Err(format!("`{name}`: {why}"));
    };
    let used = all.slots();
    // If no window is given, an aggregate with any window fits.
    let any_window = !name.split(|c: char| !c.is_alphanumeric()).any(|word| word == "over");
    let is_asked = |of: &Aggregate| {
        let window = if any_window { of.window } else { asked.window };
        *of == Aggregate { window, ..asked.clone() }
    };
    let of = |slot: &&SlotUse| slot.aggregate.as_ref().is_some_and(is_asked);
    if !used.iter().any(|slot| of(&slot)) {
        let mut known: Vec<String> =
            used.iter().filter_map(|slot| Some(slot.aggregate.as_ref()?.shown(format).to_string())).collect();
        known.dedup();
        let known = if known.is_empty() {
            "none".to_owned()
        } else {
            diagnostics::names::listed(known.iter().map(String::as_str))
        };
        return Err(format!("no rule tests `{}`; the aggregates that rules test: {known}", asked.shown(format)));
    }
    for slot in used.iter().filter(of) {
        if format.no_value(slot.slot).is_some_and(|none| value >= none) {
            return Err(format!("`{name}` is at most {}", format.no_value(slot.slot).unwrap_or_default() - 1));
        }
        message.put(format, ColumnKey::Slot(slot.slot), value);
    }
    Ok(())
}

/// Parses a message as the command line gives it.
fn message(rules: &RuleFormat, parts: &[String]) -> Result<Message, String> {
    let format = &rules.format;
    let mut message = Message::empty(format);
    let mut given: Vec<(FieldId, &String)> = Vec::new();
    for part in parts {
        let Some((name, value)) = part.split_once('=') else {
            let header = format
                .header_named(part.trim())
                .map_err(|_| format!("`{part}` is not a header; write fields as FIELD=VALUE"))?;
            message.valid[usize::from(header.0)] = true;
            continue;
        };
        let found = format.subject(name.trim());
        if matches!(found, Ok(Subject::Counter(_))) || name.contains('(') {
            return Err(format!("`{}` is state from earlier messages: write `--state '{}'`", name.trim(), part.trim()));
        }
        let Ok(Subject::Field(id)) = found else {
            let names = diagnostics::names::listed(format.fields().iter().map(|field| field.name.as_str()));
            return Err(format!("there is no field `{}`; the fields are {names}", name.trim()));
        };
        let field = format.get(id);
        let value = value.trim();
        // Text needs no quotes on the command line.
        let value = subscribe::constant(value).unwrap_or_else(|| Constant::Text(value.to_owned()));
        let number = value.value(field.kind, field.width).map_err(|why| format!("`{part}`: the value {why}"))?;
        if let Some((_, before)) = given.iter().find(|(before, _)| *before == id) {
            return Err(format!(
                "`{}` is given twice: `{before}` and `{part}`; a message has one value for it",
                field.name
            ));
        }
        given.push((id, part));
        message.set(format, id, number);
    }
    // A header that stands for several is valid if one of them is.
    for (at, of) in rules.headers.iter().enumerate().filter(|(_, of)| of.len() > 1) {
        message.valid[at] |= of.iter().any(|header| message.valid[header.0]);
    }
    Ok(message)
}
