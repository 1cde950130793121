//! Runs `triplane ctl set`: writes new values for objects that always exist.

use diagnostics::{Diagnostic, Diagnostics};
use p4runtime_proto::config::{Counter, Meter, Register, Table, ValueSet};
use p4runtime_proto::v1::entity::Entity as Kind;
use p4runtime_proto::v1::{self, CounterData, MeterConfig};
use serde_json::json;

use super::args::SetArgs;
use super::entry::{self, Change};
use super::show::RenderedEntry;
use super::text::{self, Setting, Word};
use super::{SwitchConnection, meters, names, objects, show};
use crate::output::Failure;

/// An object whose values can be set.
#[derive(Clone, Copy)]
enum Settable<'a> {
    Register(&'a Register),
    Counter(&'a Counter),
    Meter(&'a Meter),
    ValueSet(&'a ValueSet),
    /// A table, by its direct counter or meter.
    Table(&'a Table),
}

impl SwitchConnection<'_> {
    /// `set`
    pub fn set(&self, args: &SetArgs) -> Result<(), Failure> {
        let info = &self.info;
        let mut all: Vec<(Settable<'_>, &str)> = Vec::new();
        all.extend(info.registers.iter().map(|it| (Settable::Register(it), names::name(&it.preamble))));
        all.extend(info.counters.iter().map(|it| (Settable::Counter(it), names::name(&it.preamble))));
        all.extend(info.meters.iter().map(|it| (Settable::Meter(it), names::name(&it.preamble))));
        all.extend(info.value_sets.iter().map(|it| (Settable::ValueSet(it), names::name(&it.preamble))));
        for (table, name) in names::tables(info) {
            let of_table = |of: u32| of == names::id(&table.preamble);
            let counters = info.direct_counters.iter().filter(|it| of_table(it.direct_table_id)).map(|it| &it.preamble);
            let meters = info.direct_meters.iter().filter(|it| of_table(it.direct_table_id)).map(|it| &it.preamble);
            let mut of_table = counters.chain(meters).peekable();
            all.extend(of_table.peek().is_some().then_some((Settable::Table(table), name)));
            all.extend(of_table.map(|preamble| (Settable::Table(table), names::name(preamble))));
        }
        match names::look_up("register, counter, meter or value set", &args.name, &all)? {
            Settable::ValueSet(set) => self.set_value_set(set, &args.value.join(" ")),
            Settable::Table(table) => self.set_direct(table, &args.value.join(" ")),
            Settable::Register(register) => self.set_register(register, &args.value),
            Settable::Counter(counter) => {
                let (index, line) = cell(&args.value)?;
                let name = names::name(&counter.preamble);
                let data = self.read_line(&line, "a valid list of counts", |file, _, diagnostics| {
                    counts(text::parse_settings(file, &line, diagnostics)?, diagnostics)
                })?;
                let counter_id = names::id(&counter.preamble);
                let described = described(name, index.as_ref(), &shown_counts(&data));
                let json = json!({ "counter": name, "of": index.as_ref().map(|it| it.index),
                    "packets": data.packet_count, "bytes": data.byte_count });
                let entry = v1::CounterEntry { counter_id, index, data: Some(data) };
                self.write(Change::Modify, Kind::CounterEntry(entry), &described, json)
            }
            Settable::Meter(meter) => {
                let (index, line) = cell(&args.value)?;
                let name = names::name(&meter.preamble);
                let config = self.read_line(&line, "a valid list of rates", |file, _, diagnostics| {
                    rates(text::parse_settings(file, &line, diagnostics)?, diagnostics)
                })?;
                let shown = config.as_ref().map_or("none".to_owned(), meters::shown);
                let described = described(name, index.as_ref(), &shown);
                let json = json!({ "meter": name, "of": index.as_ref().map(|it| it.index), "config": shown });
                let meter_id = names::id(&meter.preamble);
                let entry = v1::MeterEntry { meter_id, index, config, counter_data: None };
                self.write(Change::Modify, Kind::MeterEntry(entry), &described, json)
            }
        }
    }

    fn set_register(&self, register: &Register, words: &[String]) -> Result<(), Failure> {
        let (index, line) = cell(words)?;
        let name = names::name(&register.preamble);
        let spec = register.type_spec.as_ref();
        let data = self.read_line(&line, &format!("a valid value of `{name}`"), |file, end, diagnostics| {
            let written = text::parse_settings(file, &line, diagnostics)?;
            objects::parse(&self.info, spec, &written, end, diagnostics)
        })?;
        let shown = objects::data(&self.info, name, spec, &data);
        let described = described(name, index.as_ref(), &shown);
        let json = json!({ "register": name, "index": index.as_ref().map(|it| it.index), "value": shown });
        let entry = v1::RegisterEntry { register_id: names::id(&register.preamble), index, data: Some(data) };
        self.write(Change::Modify, Kind::RegisterEntry(entry), &described, json)
    }

    /// Sets the direct counter or meter of an entry: the key, then the counts or rates.
    fn set_direct(&self, table: &Table, line: &str) -> Result<(), Failure> {
        const COUNTS: [&str; 2] = ["packets", "bytes"];
        const RATES: [&str; 5] = ["cir", "cburst", "pir", "pburst", "none"];
        let name = names::name(&table.preamble);
        let (entry, kind) = self.read_line(
            line,
            &format!("a valid entry of `{name}` with counts or rates"),
            |file, end, diagnostics| {
                let written = text::parse_settings(file, line, diagnostics)?;
                let word = |(name, value): &Setting| name.as_ref().unwrap_or(value).text.clone();
                let is_field = |of: &Setting| table.match_fields.iter().any(|field| field.name == word(of));
                let (mut key, mut rest) = (Vec::new(), Vec::new());
                for setting in written {
                    let is_value = [&COUNTS[..], &RATES].concat().contains(&&*word(&setting)) && !is_field(&setting);
                    match (is_value, setting) {
                        (true, setting) => rest.push(setting),
                        (false, (Some(name), value)) => key.push((name, value)),
                        (false, (None, value)) => {
                            let what = format!("`{}` has no value", value.text);
                            diagnostics
                                .push(Diagnostic::error("entry-syntax", value.span, what).help("write KEY=VALUE"));
                        }
                    }
                }
                let entry = entry::bind_key(&self.info, table, &key, end, diagnostics)?;
                let counts_first = rest.first().is_none_or(|first| COUNTS.contains(&&*word(first)));
                if rest.is_empty() {
                    let missing = Diagnostic::error("entry-missing", end, "the values to set are missing");
                    diagnostics
                        .push(missing.help("write packets=0 or bytes=0, or cir=, cburst=, pir= and pburst=, or none"));
                    return None;
                }
                let kind = if counts_first { Ok(counts(rest, diagnostics)?) } else { Err(rates(rest, diagnostics)?) };
                Some((entry, kind))
            },
        )?;
        let key = show::key(table, &entry);
        let (entity, shown) = match kind {
            Ok(data) => {
                let entry = v1::DirectCounterEntry { table_entry: Some(entry), data: Some(data) };
                (Kind::DirectCounterEntry(entry), shown_counts(&data))
            }
            Err(config) => {
                let entry = v1::DirectMeterEntry { table_entry: Some(entry), config, counter_data: None };
                (Kind::DirectMeterEntry(entry), config.as_ref().map_or("none".to_owned(), meters::shown))
            }
        };
        let json = json!({ "table": name, "of": key, "value": shown });
        self.write(Change::Modify, entity, &set_to(&format!("{name}[{key}]"), &shown), json)
    }
}

fn shown_counts(data: &CounterData) -> String {
    format!("packets={} bytes={}", data.packet_count, data.byte_count)
}

/// Describes a change: `flows[3]  12`.
fn described(name: &str, index: Option<&v1::Index>, value: &str) -> RenderedEntry {
    set_to(&format!("{name}[{}]", index.map_or("all".to_owned(), |index| index.index.to_string())), value)
}

/// An object and its new value, as they are printed.
pub fn set_to(what: &str, value: &str) -> RenderedEntry {
    RenderedEntry { what: format!("{what}  {value}"), value: String::new() }
}

/// Parses the index of a cell, or `None` for all cells, and returns the remaining words.
fn cell(words: &[String]) -> Result<(Option<v1::Index>, String), Failure> {
    let [first, rest @ ..] = words else { return Err(Failure::Usage("write INDEX and VALUE".to_owned())) };
    let index = match first.as_str() {
        "all" => None,
        text => match text.parse() {
            Ok(index) => Some(v1::Index { index }),
            Err(_) => {
                return Err(Failure::Usage(format!(
                    "`{text}` is not a cell: write its index, or `all`, and then the value"
                )));
            }
        },
    };
    if rest.is_empty() {
        Err(Failure::Usage(format!("the value of cell {first} is missing: write INDEX and VALUE")))
    } else {
        Ok((index, rest.join(" ")))
    }
}

fn amount(value: &Word, diagnostics: &mut Diagnostics) -> i64 {
    value.text.parse().ok().filter(|number| *number >= 0).unwrap_or_else(|| {
        let what = format!("`{}` is not a non-negative number", value.text);
        diagnostics.push(Diagnostic::error("entry-value", value.span, what));
        0
    })
}

fn unknown(word: &Word, help: &str, diagnostics: &mut Diagnostics) {
    let what = format!("unexpected `{}`", word.text);
    diagnostics.push(Diagnostic::error("entry-name", word.span, what).help(help));
}

fn counts(written: Vec<Setting>, diagnostics: &mut Diagnostics) -> Option<CounterData> {
    let mut data = CounterData::default();
    for (name, value) in written {
        match name.as_ref().map(|name| &*name.text) {
            Some("packets") => data.packet_count = amount(&value, diagnostics),
            Some("bytes") => data.byte_count = amount(&value, diagnostics),
            _ => unknown(name.as_ref().unwrap_or(&value), "write packets=N or bytes=N", diagnostics),
        }
    }
    (!diagnostics.has_errors()).then_some(data)
}

/// Parses rates. Returns `Some(None)` for the word `none`.
fn rates(written: Vec<Setting>, diagnostics: &mut Diagnostics) -> Option<Option<MeterConfig>> {
    let mut config = Some(MeterConfig::default());
    for (name, value) in written {
        match (name.as_ref().map(|name| &*name.text), &mut config) {
            (None, _) if value.text == "none" => config = None,
            (Some("cir"), Some(config)) => config.cir = amount(&value, diagnostics),
            (Some("cburst"), Some(config)) => config.cburst = amount(&value, diagnostics),
            (Some("pir"), Some(config)) => config.pir = amount(&value, diagnostics),
            (Some("pburst"), Some(config)) => config.pburst = amount(&value, diagnostics),
            _ => {
                let help = "write cir=N cburst=N pir=N pburst=N, with rates per second, or none";
                unknown(name.as_ref().unwrap_or(&value), help, diagnostics);
            }
        }
    }
    (!diagnostics.has_errors()).then_some(config)
}
