//! Reads registers, meters, value sets, queues, and the parameters of the custom CRCs.

use diagnostics::names;
use ir::{Algorithm, Expr, Key, Unit};
use jsonc_parser::ast::{Object, Value};

use crate::json::{FileReader, member};
use crate::table::key_values;
use crate::{CrcSettings, Entries, MeterRates, QueueConfig, value};

pub(crate) fn read_register(reader: &mut FileReader<'_>, item: &Value<'_>, entries: &mut Entries) {
    let what = "a register entry";
    let Some(object) = reader.object(item, what) else { return };
    reader.only_members(object, what, &["register", "index", "value"]);
    let Some(name) = reader.string(object, "register", what) else { return };
    let registers = &reader.program.registers;
    let candidates: Vec<_> = registers.iter().map(|(id, register)| (id, register.name.as_str())).collect();
    let Some(id) = reader.named("unknown-register", "register", name, &candidates) else { return };
    let register = &registers[id];
    let index = match member(object, "index") {
        Some(_) => index(reader, object, register.size, &register.name),
        None => {
            let span = reader.span(object);
            reader.error("entries-format", span, format!("{what} requires a member `index`"));
            None
        }
    };
    let Some(given) = member(object, "value") else {
        let span = reader.span(object);
        reader.error("entries-format", span, format!("{what} requires a member `value`"));
        return;
    };
    let value = value::read(reader, given, register.width, &|| format!("an element of `{}`", register.name));
    if let (Some(index), Some(value)) = (index, value) {
        entries.registers.push((id, index, value));
    }
}

/// Reads the member `index`, for an array of `size` elements.
fn index(reader: &mut FileReader<'_>, object: &Object<'_>, size: u64, name: &str) -> Option<u64> {
    let Some(last) = size.checked_sub(1) else {
        let span = reader.span(object);
        reader.error("entries-value", span, format!("`{name}` has no elements"));
        return None;
    };
    reader.number(object, "index", last)
}

/// Reads the rates of a meter: those members of `object` that P4Runtime's `MeterConfig` has.
pub(crate) fn rates(reader: &mut FileReader<'_>, object: &Object<'_>, what: &str) -> Option<MeterRates> {
    let span = reader.span(object);
    let mut number = |name: &str| {
        if member(object, name).is_none() {
            reader.error("entries-format", span, format!("{what} requires a member `{name}`"));
        }
        reader.number(object, name, i64::MAX as u64)
    };
    let (cir, cburst) = (number("cir"), number("cburst"));
    let (pir, pburst) = (number("pir"), number("pburst"));
    let rates = MeterRates { cir: cir?, cburst: cburst?, pir: pir?, pburst: pburst? };
    if rates.pir < rates.cir {
        reader.error("entries-value", span, "the peak rate `pir` is lower than the committed rate `cir`");
        return None;
    }
    Some(rates)
}

pub(crate) fn read_meter(reader: &mut FileReader<'_>, item: &Value<'_>, entries: &mut Entries) {
    let what = "a meter entry";
    let Some(object) = reader.object(item, what) else { return };
    reader.only_members(object, what, &["meter", "index", "cir", "cburst", "pir", "pburst"]);
    let Some(name) = reader.string(object, "meter", what) else { return };
    let meters = &reader.program.meters;
    let candidates: Vec<_> = meters.iter().map(|(id, meter)| (id, meter.name.as_str())).collect();
    let Some(id) = reader.named("unknown-meter", "meter", name, &candidates) else { return };
    let meter = &meters[id];
    let Some(size) = meter.size else {
        let message = format!("`{}` is a direct meter: set its rates with `meter_config` in the entries", meter.name);
        return reader.error("entries-format", name.1, message);
    };
    let unit = if meter.unit == Unit::Bytes { "bytes" } else { "packets" };
    let element = match member(object, "index") {
        Some(_) => match index(reader, object, size, &meter.name) {
            Some(index) => Some(index),
            None => return,
        },
        None => None,
    };
    let Some(rates) = rates(reader, object, &format!("{what} (in {unit} and {unit} per second)")) else { return };
    entries.meters.push((id, element, rates));
}

pub(crate) fn read_value_set(reader: &mut FileReader<'_>, item: &Value<'_>, entries: &mut Entries) {
    let what = "a member of a value set";
    let Some(object) = reader.object(item, what) else { return };
    reader.only_members(object, what, &["value_set", "match"]);
    let Some(name) = reader.string(object, "value_set", what) else { return };
    let sets = &reader.program.value_sets;
    let candidates: Vec<_> = sets.iter().map(|(id, set)| (id, set.name.as_str())).collect();
    let Some(id) = reader.named("unknown-value-set", "value set", name, &candidates) else { return };
    let set = &sets[id];
    let key = |(name, width, kind): &(String, u32, ir::MatchKind)| Key {
        name: name.clone(),
        expr: Expr::Const(bits::Bits::zero(*width)),
        width: *width,
        kind: *kind,
        signed: false,
        annotations: Vec::new(),
    };
    let fields: Vec<Key> = set.fields.iter().map(key).collect();
    let fields: Vec<&Key> = fields.iter().collect();
    let listed = || names::listed(set.fields.iter().map(|(name, ..)| name.as_str()));
    let names = (|| format!("value set `{}`", set.name), || format!("`{}` has the fields {}", set.name, listed()));
    let span = reader.span(object);
    let member = key_values(reader, object, &fields, &names, span);
    let Some(member) = member else { return };
    if let Some((.., earlier)) = entries.value_sets.iter().find(|(set, other, _)| *set == id && *other == member) {
        return reader.twice(span, format!("`{}` already has this member", set.name), *earlier);
    }
    entries.value_sets.push((id, member, span));
}

pub(crate) fn read_queue(reader: &mut FileReader<'_>, item: &Value<'_>, entries: &mut Entries) {
    let what = "a queue entry";
    let Some(object) = reader.object(item, what) else { return };
    reader.only_members(object, what, &["port", "priority", "rate_pps", "depth"]);
    let span = reader.span(object);
    if member(object, "port").is_none() {
        return reader.error("entries-format", span, format!("{what} requires a member `port`"));
    }
    if member(object, "rate_pps").is_none() && member(object, "depth").is_none() {
        return reader.error("entries-format", span, format!("{what} requires a `rate_pps`, a `depth`, or both"));
    }
    let Some(port) = reader.number(object, "port", reader.max_port.into()) else { return };
    let priority = reader.number(object, "priority", 7).map(|priority| priority as u32);
    let rate_pps = reader.number(object, "rate_pps", 1_000_000_000);
    if rate_pps == Some(0) {
        reader.error("entries-value", span, "`rate_pps` must be at least 1; omit it for an unlimited rate");
    }
    let depth = reader.number(object, "depth", 1 << 20).map(|depth| depth as u32);
    entries.queues.push(QueueConfig { port: port as u32, priority, rate_pps, depth });
}

pub(crate) fn read_crc(reader: &mut FileReader<'_>, item: &Value<'_>, entries: &mut Entries) {
    let what = "a CRC entry";
    let members = ["algorithm", "polynomial", "initial", "final_xor", "reflect_in", "reflect_out"];
    let Some(object) = reader.object(item, what) else { return };
    reader.only_members(object, what, &members);
    let Some((name, span)) = reader.string(object, "algorithm", what) else { return };
    let (algorithm, width) = match name {
        "crc16_custom" => (Algorithm::Crc16Custom, 16),
        "crc32_custom" => (Algorithm::Crc32Custom, 32),
        _ => {
            let message = "only `crc16_custom` and `crc32_custom` have parameters";
            return reader.error("entries-value", span, message);
        }
    };
    let mut number = |name: &str| match member(object, name) {
        Some(given) => value::read(reader, given, width, &|| format!("`{name}`")).map(|bits| bits.low_u64() as u32),
        None => {
            let span = reader.span(object);
            reader.error("entries-format", span, format!("{what} requires a member `{name}`"));
            None
        }
    };
    let (polynomial, initial, final_xor) = (number("polynomial"), number("initial"), number("final_xor"));
    let mut flag = |name: &str| match member(object, name) {
        Some(Value::BooleanLit(flag)) => Some(flag.value),
        other => {
            let span = other.map_or(reader.span(object), |other| reader.span(other));
            reader.error("entries-format", span, format!("`{name}` of {what} must be `true` or `false`"));
            None
        }
    };
    let (reflect_in, reflect_out) = (flag("reflect_in"), flag("reflect_out"));
    let (Some(polynomial), Some(initial), Some(final_xor)) = (polynomial, initial, final_xor) else { return };
    let (Some(reflect_in), Some(reflect_out)) = (reflect_in, reflect_out) else { return };
    if entries.crcs.iter().any(|crc| crc.algorithm == algorithm) {
        return reader.error("entries-duplicate", span, format!("duplicate `{name}`"));
    }
    entries.crcs.push(CrcSettings { algorithm, polynomial, initial, reflect_in, reflect_out, final_xor });
}
