//! Renders messages, their deliveries and the reasons, as JSON.

use serde_json::{Map, Value, json};
use subscribe::{ColumnKey, Delivery, Explanation, HeaderId, Message, MessageFormat, ValueKind, Verdict, show_value};
use subscribe_p4::RuleFormat;

use super::load::{Compiled, Loaded};

/// Maximum width of a JSON number, in bits. Wider numbers are strings: JSON readers would round them.
const EXACT_BITS: u32 = 53;

/// Returns a message as JSON: its headers, its fields, and the state from earlier messages if there is any and it is
/// not 0.
pub fn message(message: &Message, rules: &RuleFormat) -> Value {
    let format = &rules.format;
    // Headers that stand for several have names that users cannot write.
    let headers = (0..).map(HeaderId).zip(&rules.headers).filter(|(id, of)| of.len() == 1 && message.is_valid(*id));
    let headers: Vec<&str> = headers.map(|(id, _)| format.get_header(id).name.as_str()).collect();
    let fields = format.fields().iter().zip(&message.fields);
    let there = fields.filter(|(field, _)| field.header.is_none_or(|header| message.is_valid(header)));
    let fields: Map<String, Value> =
        there.map(|(field, number)| (field.name.clone(), value(*number, field.kind, field.width))).collect();
    let counters =
        (0..).map(subscribe::CounterId).zip(&message.counters).map(|(id, value)| (ColumnKey::Counter(id), *value));
    let slots = (0..).zip(&message.slots).filter_map(|(slot, value)| Some((ColumnKey::Slot(slot), (*value)?)));
    let before: Map<String, Value> = counters
        .chain(slots)
        .filter(|(key, value)| *value != 0 || matches!(key, ColumnKey::Slot(slot) if format.no_value(*slot).is_some()))
        .map(|(key, number)| (key.name(format), value(number, ValueKind::Unsigned, 64)))
        .collect();
    json!({ "headers": headers, "fields": fields, "before": before })
}

/// Returns a value as rules write it; text has no quotes.
fn value(number: u128, kind: ValueKind, width: u32) -> Value {
    match (kind, u64::try_from(number)) {
        (ValueKind::Unsigned, Ok(number)) if width <= EXACT_BITS || number >> EXACT_BITS == 0 => number.into(),
        _ => show_value(number, kind, width).trim_matches('"').into(),
    }
}

/// Returns a delivery as JSON.
pub fn delivery(of: &Delivery, format: &MessageFormat) -> Value {
    let calls = of.calls.iter().map(|(id, arguments)| {
        let declared = format.get_action(*id);
        let named = declared.parameters.iter().zip(arguments);
        let arguments: Map<String, Value> = named
            .map(|(parameter, number)| (parameter.name.clone(), value(*number, ValueKind::Unsigned, parameter.width)))
            .collect();
        json!({ "action": declared.name, "arguments": arguments })
    });
    let updates =
        of.updates.iter().map(|update| subscribe::RuleAction::Update(update.clone()).shown(format).to_string());
    let counts = of.slots.iter().map(|slot| ColumnKey::Slot(*slot).name(format));
    json!({
        "ports": of.ports,
        "to_controller": of.to_controller,
        "drop": of.drop,
        "calls": calls.collect::<Vec<_>>(),
        "updates": updates.collect::<Vec<_>>(),
        "counts_for": counts.collect::<Vec<_>>(),
    })
}

/// Returns the destinations of a message as JSON, with the reasons.
pub fn explanation(of: &Message, why: &Explanation, compiled: &Compiled, loaded: &Loaded) -> Value {
    let verdicts = |all: &[Verdict]| all.iter().filter_map(|of| verdict(of, compiled, loaded)).collect::<Vec<_>>();
    json!({
        "message": message(of, &loaded.rules),
        "delivery": delivery(&why.delivery, &loaded.rules.format),
        "matching": verdicts(&why.matching),
        "not_matching": verdicts(&why.others),
        "more_not_matching": why.failed - why.others.len(),
    })
}

fn verdict(of: &Verdict, compiled: &Compiled, loaded: &Loaded) -> Option<Value> {
    let rule = compiled.subscriptions.rule(of.rule)?;
    let place = loaded.map().position(rule.span);
    let because = of.because.iter().map(|decided| json!({ "test": decided.test, "saw": decided.saw }));
    Some(json!({
        "rule": rule.name,
        "file": place.file,
        "line": place.line,
        "because": because.collect::<Vec<_>>(),
    }))
}
