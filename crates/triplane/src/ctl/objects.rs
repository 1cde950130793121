//! Reads counters and registers, and the types of their values.

use diagnostics::{Diagnostic, Diagnostics, Span};
use p4runtime_proto::config::{
    P4DataTypeSpec, P4Info, Register, Table, p4_bitstring_like_type_spec::TypeSpec as BitsType,
    p4_data_type_spec::TypeSpec,
};
use p4runtime_proto::v1::entity::Entity as Kind;
use p4runtime_proto::v1::{self, p4_data::Data};
use serde_json::{Value, json};

use super::text::Setting;
use super::{SwitchConnection, names, show, value};
use crate::output::{Failure, counted};

/// Formats a value of any type.
pub fn data(info: &P4Info, name: &str, of: Option<&P4DataTypeSpec>, data: &v1::P4Data) -> String {
    let spec = of.and_then(|of| of.type_spec.as_ref());
    match (&data.data, spec) {
        (Some(Data::Bitstring(bytes)), Some(TypeSpec::Bitstring(bits))) => match &bits.type_spec {
            Some(BitsType::Bit(bit)) => value::show(name, bit.bitwidth, bytes),
            Some(BitsType::Int(int)) => value::show_signed(int.bitwidth, bytes),
            Some(BitsType::Varbit(_)) | None => p4runtime_proto::bytestring::hex(bytes),
        },
        (Some(Data::Bitstring(bytes)), _) => p4runtime_proto::bytestring::hex(bytes),
        (Some(Data::Bool(value)), _) => value.to_string(),
        (Some(Data::Enum(name) | Data::Error(name)), _) => name.clone(),
        (Some(Data::Struct(members) | Data::Tuple(members)), spec) => {
            let known = match (spec, &info.type_info) {
                (Some(TypeSpec::Struct(named)), Some(types)) => types.structs.get(&named.name),
                _ => None,
            };
            let member = |(at, value): (usize, &v1::P4Data)| match known.and_then(|known| known.members.get(at)) {
                Some(member) => {
                    format!("{}={}", member.name, self::data(info, &member.name, member.type_spec.as_ref(), value))
                }
                None => self::data(info, name, None, value),
            };
            members.members.iter().enumerate().map(member).collect::<Vec<_>>().join(", ")
        }
        (Some(_), _) => "(value of an unsupported type)".to_owned(),
        (None, _) => "nothing".to_owned(),
    }
}

/// Binds a value of any type: a single value, or one for each member of a struct, by name or in order. Reports
/// diagnostics for mistakes.
pub fn parse(
    info: &P4Info,
    of: Option<&P4DataTypeSpec>,
    written: &[Setting],
    end: Span,
    diagnostics: &mut Diagnostics,
) -> Option<v1::P4Data> {
    let spec = of.and_then(|of| of.type_spec.as_ref());
    let mut wrong = |span: Span, what: String, help: String| {
        diagnostics.push(Diagnostic::error("entry-value", span, what).help(help));
    };
    let members = match (spec, &info.type_info) {
        (Some(TypeSpec::Struct(named)), Some(types)) => types.structs.get(&named.name).map(|known| &known.members),
        _ => None,
    };
    let Some(members) = members else {
        return match written {
            [(None, word)] => match one(spec, &word.text) {
                Ok(data) => Some(data),
                Err(why) => {
                    wrong(word.span, why, "write a number, true, or the name of a value".to_owned());
                    None
                }
            },
            _ => {
                let span = written.get(1).map_or(end, |(_, word)| word.span);
                wrong(span, "a cell has one value".to_owned(), "write INDEX VALUE".to_owned());
                None
            }
        };
    };
    let names: Vec<_> = members.iter().enumerate().map(|(at, member)| (at, &*member.name)).collect();
    let mut values: Vec<Option<v1::P4Data>> = vec![None; members.len()];
    for (at, (name, word)) in written.iter().enumerate() {
        let found = match name {
            Some(name) => names::look("member", &name.text, &names),
            None if at < members.len() => Ok(at),
            None => Err((format!("the value has only {} members", members.len()), "remove this one".to_owned())),
        };
        let value = found.and_then(|at| {
            let spec = members[at].type_spec.as_ref().and_then(|of| of.type_spec.as_ref());
            let help = format!("write {}=VALUE", members[at].name);
            one(spec, &word.text).map(|data| (at, data)).map_err(|why| (format!("`{}`: {why}", members[at].name), help))
        });
        match value {
            Ok((at, data)) => values[at] = Some(data),
            Err((what, help)) => wrong(name.as_ref().unwrap_or(word).span, what, help),
        }
    }
    let missing: Vec<_> =
        values.iter().zip(members).filter(|(value, _)| value.is_none()).map(|(_, m)| &*m.name).collect();
    if !missing.is_empty() {
        wrong(
            end,
            format!("missing: {}", diagnostics::names::listed(missing.into_iter())),
            "write NAME=VALUE".to_owned(),
        );
        return None;
    }
    let members = values.into_iter().flatten().collect();
    Some(v1::P4Data { data: Some(Data::Struct(v1::P4StructLike { members })) })
}

/// Parses a value without members.
fn one(spec: Option<&TypeSpec>, text: &str) -> Result<v1::P4Data, String> {
    let data = match spec {
        Some(TypeSpec::Bool(_)) => match text {
            "true" | "1" => Data::Bool(true),
            "false" | "0" => Data::Bool(false),
            _ => return Err(format!("`{text}` is neither true nor false")),
        },
        Some(TypeSpec::Enum(_)) => Data::Enum(text.to_owned()),
        Some(TypeSpec::Error(_)) => Data::Error(text.to_owned()),
        Some(TypeSpec::Bitstring(bits)) => match bits.type_spec.as_ref() {
            Some(BitsType::Bit(bit)) => Data::Bitstring(value::parse(text, bit.bitwidth)?),
            Some(BitsType::Int(int)) => Data::Bitstring(value::parse_signed(text, int.bitwidth)?),
            _ => return Err("values of this type cannot be written".to_owned()),
        },
        _ => return Err("values of this type cannot be written here".to_owned()),
    };
    Ok(v1::P4Data { data: Some(data) })
}

/// Whether a value is 0 in all its members.
fn is_zero(data: &v1::P4Data) -> bool {
    match &data.data {
        Some(Data::Bitstring(bytes)) => bytes.iter().all(|byte| *byte == 0),
        Some(Data::Bool(value)) => !value,
        Some(Data::Struct(members) | Data::Tuple(members)) => members.members.iter().all(is_zero),
        _ => false,
    }
}

impl SwitchConnection<'_> {
    /// `counters`
    pub fn counters(&self, wanted: Option<&str>) -> Result<(), Failure> {
        let arrays: Vec<_> = self.info.counters.iter().map(|of| (of, names::name(&of.preamble))).collect();
        let direct = self.info.direct_counters.iter().filter_map(|of| {
            let table = self.info.tables.iter().find(|table| names::id(&table.preamble) == of.direct_table_id)?;
            Some((table, names::name(&of.preamble)))
        });
        let direct: Vec<_> = direct.collect();
        // A direct counter can be named by its table as well.
        let names_of = |(table, name): &(&'_ Table, &'_ str)| [*name, names::name(&table.preamble)].map(str::to_owned);
        let all: Vec<(usize, String)> = (arrays.iter().map(|(_, name)| vec![(*name).to_owned()]))
            .chain(direct.iter().map(|of| names_of(of).to_vec()))
            .enumerate()
            .flat_map(|(at, names)| names.into_iter().map(move |name| (at, name)))
            .collect();
        let all: Vec<(usize, &str)> = all.iter().map(|(at, name)| (*at, &**name)).collect();
        let only = wanted.map(|wanted| names::look_up("counter", wanted, &all)).transpose()?;
        let is_wanted = |at: usize| only.is_none_or(|only| only == at);
        let (mut lines, mut objects) = (Vec::new(), Vec::new());
        let mut add = |name: &str, place: String, data: Option<v1::CounterData>| {
            let v1::CounterData { packet_count, byte_count } = data.unwrap_or_default();
            if packet_count != 0 || byte_count != 0 || self.json {
                objects.push(json!({ "counter": name, "of": place, "packets": packet_count, "bytes": byte_count }));
                lines.push((format!("{name}[{place}]"), packet_count, byte_count));
            }
        };
        for (_, (counter, name)) in arrays.iter().enumerate().filter(|(at, _)| is_wanted(*at)) {
            let counter_id = names::id(&counter.preamble);
            let of = vec![Kind::CounterEntry(v1::CounterEntry { counter_id, ..Default::default() })];
            self.read_object(of, wanted.is_none(), |entity| {
                if let Kind::CounterEntry(entry) = entity {
                    add(name, entry.index.map_or(String::new(), |index| index.index.to_string()), entry.data);
                }
                Ok(())
            })?;
        }
        for (_, (table, name)) in direct.iter().enumerate().filter(|(at, _)| is_wanted(arrays.len() + at)) {
            let of = v1::TableEntry { table_id: names::id(&table.preamble), ..Default::default() };
            let of = v1::DirectCounterEntry { table_entry: Some(of), ..Default::default() };
            self.read_object(vec![Kind::DirectCounterEntry(of)], wanted.is_none(), |entity| {
                if let Kind::DirectCounterEntry(v1::DirectCounterEntry { table_entry: Some(entry), data }) = entity {
                    add(name, show::key(table, &entry), data);
                }
                Ok(())
            })?;
        }
        if self.json {
            return self.print_json(&objects.into());
        }
        if lines.is_empty() && self.denied.get() == 0 {
            let why = if all.is_empty() { "the program has no counters" } else { "all counters are 0" };
            self.output.note(why);
        }
        let width = lines.iter().map(|(name, ..)| name.chars().count()).max().unwrap_or(0);
        let line = |(name, packets, bytes): &(String, i64, i64)| {
            format!("{name:width$}  {packets:>10} packets  {bytes:>12} bytes\n")
        };
        self.output.print(&lines.iter().map(line).collect::<String>())
    }

    /// `registers`
    pub fn registers(&self, wanted: Option<&str>, index: Option<i64>) -> Result<(), Failure> {
        let all: Vec<_> = self.info.registers.iter().map(|of| (of, names::name(&of.preamble))).collect();
        if let Some(wanted) = wanted {
            let cells = self.cells(names::look_up("register", wanted, &all)?, index, false)?;
            return cells.map_or(Ok(()), |cells| self.print_json(&cells));
        }
        if all.is_empty() && !self.json {
            self.output.note("the program has no registers");
        }
        let mut objects = Vec::new();
        for (register, _) in all {
            objects.extend(self.cells(register, None, true)?);
        }
        if self.json { self.print_json(&json!(objects)) } else { Ok(()) }
    }

    /// Prints the cells of one array, or collects them for JSON. `is_listed` is that of [`Self::read_object`].
    fn cells(&self, register: &Register, index: Option<i64>, is_listed: bool) -> Result<Option<Value>, Failure> {
        let name = names::name(&register.preamble);
        let entry = v1::RegisterEntry {
            register_id: names::id(&register.preamble),
            index: index.map(|index| v1::Index { index }),
            ..Default::default()
        };
        let (mut objects, mut zeros, mut shown) = (Vec::new(), 0u64, 0u64);
        let wanted = if index.is_some() { 1 } else { u64::try_from(register.size).unwrap_or(0) };
        let mut found_cells = 0u64;
        let was_read = self.read_object(vec![Kind::RegisterEntry(entry)], is_listed, |entity| {
            let Kind::RegisterEntry(v1::RegisterEntry { index: Some(at), data: Some(found), .. }) = entity else {
                return Ok(());
            };
            found_cells += 1;
            if is_zero(&found) && index.is_none() && !self.json {
                zeros += 1;
                return Ok(());
            }
            let text = data(&self.info, name, register.type_spec.as_ref(), &found);
            shown += 1;
            if self.json {
                objects.push(json!({ "index": at.index, "value": text }))
            } else {
                self.output.print(&format!("{name}[{}]  {text}\n", at.index))?
            }
            Ok(())
        })?;
        if !was_read {
            return Ok(None);
        }
        if self.json {
            return Ok(Some(json!({ "register": name, "cells": objects })));
        }
        if found_cells < wanted {
            let cells = counted(wanted as usize, "cell", "cells");
            self.output.note(&format!(
                "{name}: the switch returned {found_cells} of {cells}; of resilient state, it has its own rows only"
            ));
        }
        if zeros > 0 {
            let rest = match (shown, zeros) {
                (0, 1) => "1 cell is 0".to_owned(),
                (0, zeros) => format!("{zeros} cells are 0"),
                (_, 1) => "1 other is 0".to_owned(),
                (_, zeros) => format!("{zeros} others are 0"),
            };
            self.output.note(&format!("{name}: {rest}"));
        }
        Ok(None)
    }
}
