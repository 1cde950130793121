//! Counters, registers, clone sessions and multicast groups, and the types of what they hold.

use p4runtime_proto::config::{
    P4DataTypeSpec, P4Info, Table, p4_bitstring_like_type_spec::TypeSpec as BitsType, p4_data_type_spec::TypeSpec,
};
use p4runtime_proto::v1::entity::Entity as Kind;
use p4runtime_proto::v1::packet_replication_engine_entry::Type as Replication;
use p4runtime_proto::v1::{self, p4_data::Data};
use serde_json::{Value, json};

use super::{Live, names, show, value};
use crate::output::Failure;

/// A value of any type as people read it.
pub fn data(info: &P4Info, name: &str, of: Option<&P4DataTypeSpec>, data: &v1::P4Data) -> String {
    let spec = of.and_then(|of| of.type_spec.as_ref());
    match (&data.data, spec) {
        (Some(Data::Bitstring(bytes)), spec) => match width(spec) {
            Some(width) => value::show(name, width, bytes),
            None => p4runtime::bytestring::hex(bytes),
        },
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
        (Some(_), _) => "a value of a type that is not shown".to_owned(),
        (None, _) => "nothing".to_owned(),
    }
}

fn width(spec: Option<&TypeSpec>) -> Option<i32> {
    match spec {
        Some(TypeSpec::Bitstring(bits)) => match bits.type_spec.as_ref()? {
            BitsType::Bit(bit) => Some(bit.bitwidth),
            BitsType::Int(int) => Some(int.bitwidth),
            BitsType::Varbit(_) => None,
        },
        _ => None,
    }
}

/// Whether there is nothing to see.
fn is_zero(data: &v1::P4Data) -> bool {
    match &data.data {
        Some(Data::Bitstring(bytes)) => bytes.iter().all(|byte| *byte == 0),
        Some(Data::Bool(value)) => !value,
        Some(Data::Struct(members) | Data::Tuple(members)) => members.members.iter().all(is_zero),
        _ => false,
    }
}

impl Live<'_> {
    /// `counters`
    pub fn counters(&self, wanted: Option<&str>) -> Result<(), Failure> {
        let arrays: Vec<_> = self.info.counters.iter().map(|of| (of, names::name(&of.preamble))).collect();
        let direct = self.info.direct_counters.iter().filter_map(|of| {
            let table = self.info.tables.iter().find(|table| names::id(&table.preamble) == of.direct_table_id)?;
            Some((table, names::name(&of.preamble)))
        });
        let direct: Vec<_> = direct.collect();
        // A direct counter goes by its table's name, too.
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
            self.client.read(
                vec![Kind::CounterEntry(v1::CounterEntry { counter_id, ..Default::default() })],
                |entity| {
                    if let Kind::CounterEntry(entry) = entity {
                        add(name, entry.index.map_or(String::new(), |index| index.index.to_string()), entry.data);
                    }
                    Ok(())
                },
            )?;
        }
        for (_, (table, name)) in direct.iter().enumerate().filter(|(at, _)| is_wanted(arrays.len() + at)) {
            let of = v1::TableEntry { table_id: names::id(&table.preamble), ..Default::default() };
            let wanted = v1::DirectCounterEntry { table_entry: Some(of), ..Default::default() };
            self.client.read(vec![Kind::DirectCounterEntry(wanted)], |entity| {
                if let Kind::DirectCounterEntry(v1::DirectCounterEntry { table_entry: Some(entry), data }) = entity {
                    let key = show::entry(&self.info, table, &entry);
                    add(name, key.split(" -> ").next().unwrap_or_default().to_owned(), data);
                }
                Ok(())
            })?;
        }
        if self.json {
            return self.print_json(&objects.into());
        }
        if lines.is_empty() {
            let why = if all.is_empty() { "the program has no counters" } else { "nothing was counted yet" };
            self.output.note(why);
        }
        let width = lines.iter().map(|(name, ..)| name.chars().count()).max().unwrap_or(0);
        let line = |(name, packets, bytes): &(String, i64, i64)| {
            format!("{name:width$}  {packets:>10} packets  {bytes:>12} bytes\n")
        };
        self.output.print(&lines.iter().map(line).collect::<String>())
    }

    /// `registers`
    pub fn registers(&self, wanted: &str, index: Option<i64>) -> Result<(), Failure> {
        let all: Vec<_> = self.info.registers.iter().map(|of| (of, names::name(&of.preamble))).collect();
        let register = names::look_up("register", wanted, &all)?;
        let name = names::name(&register.preamble);
        let entry = v1::RegisterEntry {
            register_id: names::id(&register.preamble),
            index: index.map(|index| v1::Index { index }),
            ..Default::default()
        };
        let (mut objects, mut zeros, mut shown) = (Vec::new(), 0u64, 0u64);
        self.client.read(vec![Kind::RegisterEntry(entry)], |entity| {
            let Kind::RegisterEntry(v1::RegisterEntry { index: Some(at), data: Some(found), .. }) = entity else {
                return Ok(());
            };
            if is_zero(&found) && index.is_none() && !self.json {
                zeros += 1;
                return Ok(());
            }
            let text = data(&self.info, name, register.type_spec.as_ref(), &found);
            shown += 1;
            match self.json {
                true => objects.push(json!({ "index": at.index, "value": text })),
                false => self.output.print(&format!("{name}[{}]  {text}\n", at.index))?,
            }
            Ok(())
        })?;
        if self.json {
            return self.print_json(&json!({ "register": name, "cells": objects }));
        }
        if zeros > 0 {
            let others = if shown > 0 { "others" } else { "cells" };
            self.output.note(&format!("{zeros} {others} are 0"));
        }
        Ok(())
    }

    /// `sessions`
    pub fn sessions(&self) -> Result<(), Failure> {
        let wanted = [
            Replication::CloneSessionEntry(v1::CloneSessionEntry::default()),
            Replication::MulticastGroupEntry(v1::MulticastGroupEntry::default()),
        ];
        let wanted = wanted
            .map(|kind| Kind::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry { r#type: Some(kind) }));
        let (mut text, mut objects): (String, Vec<Value>) = Default::default();
        self.client.read(wanted.into(), |entity| {
            let Kind::PacketReplicationEngineEntry(entry) = entity else { return Ok(()) };
            match entry.r#type {
                Some(Replication::CloneSessionEntry(session)) => {
                    let id = session.session_id;
                    let cut = match session.packet_length_bytes {
                        0 => String::new(),
                        bytes => format!(", the first {bytes} bytes"),
                    };
                    let class = session.class_of_service;
                    text += &format!("clone session {id}: {}, class {class}{cut}\n", replicas(&session.replicas));
                    objects.push(json!({ "clone_session": id, "replicas": replicas_json(&session.replicas),
                        "class_of_service": class, "packet_length_bytes": session.packet_length_bytes }));
                }
                Some(Replication::MulticastGroupEntry(group)) => {
                    let id = group.multicast_group_id;
                    text += &format!("multicast group {id}: {}\n", replicas(&group.replicas));
                    objects.push(json!({ "multicast_group": id, "replicas": replicas_json(&group.replicas) }));
                }
                None => {}
            }
            Ok(())
        })?;
        if self.json {
            return self.print_json(&objects.into());
        }
        if text.is_empty() {
            self.output.note("there are no clone sessions and no multicast groups");
        }
        self.output.print(&text)
    }
}

fn port(replica: &v1::Replica) -> String {
    #[allow(deprecated, reason = "controllers still write ports in the older form, and get them back so")]
    match &replica.port_kind {
        Some(v1::replica::PortKind::EgressPort(port)) => port.to_string(),
        Some(v1::replica::PortKind::Port(bytes)) => match p4runtime::bytestring::parse_u32(bytes) {
            Ok(port) => port.to_string(),
            Err(_) => p4runtime::bytestring::hex(bytes),
        },
        None => "none".to_owned(),
    }
}

/// `ports 1, 2 (instance 7)`
fn replicas(all: &[v1::Replica]) -> String {
    let one = |replica: &v1::Replica| match replica.instance {
        0 => port(replica),
        instance => format!("{} (instance {instance})", port(replica)),
    };
    match all {
        [] => "no ports".to_owned(),
        [only] => format!("port {}", one(only)),
        all => format!("ports {}", all.iter().map(one).collect::<Vec<_>>().join(", ")),
    }
}

fn replicas_json(all: &[v1::Replica]) -> Value {
    all.iter().map(|replica| json!({ "port": port(replica), "instance": replica.instance })).collect()
}
