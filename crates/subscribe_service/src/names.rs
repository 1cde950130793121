//! From the generated program's names to a switch's P4Runtime, by what the switch says of its program.

use std::collections::HashMap;

use p4runtime_proto::config::P4Info;
use p4runtime_proto::v1::entity::Entity as Kind;
use p4runtime_proto::v1::packet_replication_engine_entry::Type as Replication;
use p4runtime_proto::v1::replica::PortKind;
use p4runtime_proto::v1::{self, field_match::FieldMatchType as Match};
use subscribe_p4::entries::{Entity, Matched, TableEntry};

/// A table's or an action's id, and the ids of its fields or parameters.
type Named = HashMap<String, (u32, HashMap<String, u32>)>;

/// The ids of names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    tables: Named,
    actions: Named,
}

/// What a program lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing(pub String);

impl Names {
    pub fn new(info: &P4Info) -> Names {
        let of = |preamble: &Option<p4runtime_proto::config::Preamble>| {
            preamble.as_ref().map(|preamble| (preamble.name.clone(), preamble.id)).unwrap_or_default()
        };
        let tables = info.tables.iter().map(|table| {
            let (name, id) = of(&table.preamble);
            (name, (id, table.match_fields.iter().map(|field| (field.name.clone(), field.id)).collect()))
        });
        let actions = info.actions.iter().map(|action| {
            let (name, id) = of(&action.preamble);
            (name, (id, action.params.iter().map(|param| (param.name.clone(), param.id)).collect()))
        });
        Names { tables: tables.collect(), actions: actions.collect() }
    }

    /// The name of a table.
    pub fn table(&self, id: u32) -> &str {
        called(&self.tables, id).map_or("", |(name, _)| name)
    }

    /// The name of a table's field.
    pub fn field(&self, table: u32, id: u32) -> &str {
        called(&self.tables, table).map_or("", |(_, fields)| part(fields, id))
    }

    /// The name of an action.
    pub fn action(&self, id: u32) -> &str {
        called(&self.actions, id).map_or("", |(name, _)| name)
    }

    /// The name of an action's parameter.
    pub fn param(&self, action: u32, id: u32) -> &str {
        called(&self.actions, action).map_or("", |(_, params)| part(params, id))
    }

    /// The tables of the rules, by id.
    pub fn tables(&self) -> Vec<u32> {
        let ours = self.tables.iter().filter(|(name, _)| name.starts_with("Subscriptions."));
        let mut ids: Vec<u32> = ours.map(|(_, (id, _))| *id).collect();
        ids.sort_unstable();
        ids
    }

    /// Whether an entry is one that messages begin with: it matches no state, or state 0.
    pub fn is_entrance(&self, entry: &v1::TableEntry) -> bool {
        let named = self.tables.values().find(|(id, _)| *id == entry.table_id);
        let Some(state) = named.and_then(|(_, fields)| fields.get("state")) else { return true };
        let of_state = entry.r#match.iter().find(|field| field.field_id == *state);
        let value = of_state.and_then(|field| match &field.field_match_type {
            Some(Match::Exact(exact)) => Some(&exact.value),
            _ => None,
        });
        value.is_none_or(|bytes| bytes.iter().all(|byte| *byte == 0))
    }

    /// As the switch is told.
    ///
    /// # Errors
    /// What the program lacks.
    pub fn encode(&self, entity: &Entity) -> Result<v1::Entity, Missing> {
        let kind = match entity {
            Entity::Table(entry) => Kind::TableEntry(self.entry(entry)?),
            Entity::Group(id, ports) => {
                let replicas = ports.iter().map(|port| replica(*port)).collect();
                replication(Replication::MulticastGroupEntry(v1::MulticastGroupEntry {
                    multicast_group_id: *id,
                    replicas,
                    ..Default::default()
                }))
            }
            Entity::Session(id, port) => replication(Replication::CloneSessionEntry(v1::CloneSessionEntry {
                session_id: *id,
                replicas: vec![replica(*port)],
                ..Default::default()
            })),
        };
        Ok(v1::Entity { entity: Some(kind) })
    }

    /// What a switch was told, if it is what this service tells. Widths are not told, and are those of any value.
    pub fn decode(&self, entity: &v1::Entity) -> Option<Entity> {
        match entity.entity.as_ref()? {
            Kind::TableEntry(entry) => self.decode_entry(entry).map(Entity::Table),
            Kind::PacketReplicationEngineEntry(entry) => match entry.r#type.as_ref()? {
                Replication::MulticastGroupEntry(group) => {
                    let ports = group.replicas.iter().map(port).collect::<Option<_>>()?;
                    Some(Entity::Group(group.multicast_group_id, ports))
                }
                Replication::CloneSessionEntry(session) => {
                    let port = session.replicas.first().map_or(Some(0), port)?;
                    Some(Entity::Session(session.session_id, port))
                }
            },
            _ => None,
        }
    }

    fn decode_entry(&self, entry: &v1::TableEntry) -> Option<TableEntry> {
        const ANY_WIDTH: u32 = 128;
        let (table, fields) = called(&self.tables, entry.table_id)?;
        let mut keys = Vec::new();
        for field in &entry.r#match {
            let matched = match field.field_match_type.as_ref()? {
                Match::Exact(of) => Matched::Exact(value(&of.value)?),
                Match::Lpm(of) => Matched::Lpm(value(&of.value)?, u32::try_from(of.prefix_len).ok()?),
                Match::Ternary(of) => Matched::Ternary(value(&of.value)?, value(&of.mask)?),
                Match::Range(of) => Matched::Range(value(&of.low)?, value(&of.high)?),
                _ => return None,
            };
            keys.push((part(fields, field.field_id).to_owned(), ANY_WIDTH, matched));
        }
        let v1::table_action::Type::Action(action) = entry.action.as_ref()?.r#type.as_ref()? else { return None };
        let (name, names) = called(&self.actions, action.action_id)?;
        let param =
            |param: &v1::action::Param| Some((part(names, param.param_id).to_owned(), ANY_WIDTH, value(&param.value)?));
        Some(TableEntry {
            table: table.to_owned(),
            keys,
            priority: u32::try_from(entry.priority).ok().filter(|priority| *priority > 0),
            action: name.to_owned(),
            params: action.params.iter().map(param).collect::<Option<_>>()?,
        })
    }

    fn entry(&self, entry: &TableEntry) -> Result<v1::TableEntry, Missing> {
        let missing = |what: &str| Missing(format!("no {what} of `{}`", entry.table));
        let (table_id, fields) = self.tables.get(&entry.table).ok_or_else(|| missing("table"))?;
        let mut matches = Vec::new();
        for (name, width, matched) in &entry.keys {
            let field_id = *fields.get(name).ok_or_else(|| missing(name))?;
            let ones = subscribe::max_of(*width);
            let bytes = |value: u128| number(value);
            // What matches anything is left out (specification 9.1.1).
            let field_match_type = match matched {
                Matched::Exact(value) => Match::Exact(v1::field_match::Exact { value: bytes(*value) }),
                Matched::Lpm(_, 0) | Matched::Ternary(_, 0) => continue,
                Matched::Range(0, last) if *last == ones => continue,
                Matched::Lpm(value, length) => {
                    Match::Lpm(v1::field_match::Lpm { value: bytes(*value), prefix_len: *length as i32 })
                }
                Matched::Range(first, last) => {
                    Match::Range(v1::field_match::Range { low: bytes(*first), high: bytes(*last) })
                }
                Matched::Ternary(value, mask) => {
                    Match::Ternary(v1::field_match::Ternary { value: bytes(*value), mask: bytes(*mask) })
                }
            };
            matches.push(v1::FieldMatch { field_id, field_match_type: Some(field_match_type) });
        }
        let (action_id, params) = self.actions.get(&entry.action).ok_or_else(|| missing(&entry.action))?;
        let param = |(name, _, value): &(String, u32, u128)| {
            let param_id = *params.get(name).ok_or_else(|| missing(name))?;
            Ok(v1::action::Param { param_id, value: number(*value) })
        };
        let params = entry.params.iter().map(param).collect::<Result<_, Missing>>()?;
        let action = v1::table_action::Type::Action(v1::Action { action_id: *action_id, params });
        Ok(v1::TableEntry {
            table_id: *table_id,
            r#match: matches,
            action: Some(v1::TableAction { r#type: Some(action) }),
            priority: entry.priority.unwrap_or(0) as i32,
            ..Default::default()
        })
    }
}

fn called(named: &Named, id: u32) -> Option<(&str, &HashMap<String, u32>)> {
    named.iter().find(|(_, (known, _))| *known == id).map(|(name, (_, parts))| (name.as_str(), parts))
}

fn part(parts: &HashMap<String, u32>, id: u32) -> &str {
    parts.iter().find(|(_, known)| **known == id).map_or("", |(name, _)| name)
}

fn replication(of: Replication) -> Kind {
    Kind::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry { r#type: Some(of) })
}

/// Older switches know the number only.
#[allow(deprecated, reason = "switches of P4Runtime before 1.4 know no other")]
fn replica(port: u32) -> v1::Replica {
    v1::Replica { port_kind: Some(PortKind::EgressPort(port)), instance: 1, ..Default::default() }
}

/// A replica's port, in the form that this service writes.
#[allow(deprecated, reason = "switches of P4Runtime before 1.4 know no other")]
fn port(replica: &v1::Replica) -> Option<u32> {
    match &replica.port_kind {
        Some(PortKind::EgressPort(port)) => Some(*port),
        _ => None,
    }
}

/// The number that bytes are, if it is none that is too large for any field.
fn value(bytes: &[u8]) -> Option<u128> {
    let of = bytes.iter().position(|byte| *byte != 0).map_or(&bytes[bytes.len()..], |first| &bytes[first..]);
    (of.len() <= 16).then(|| of.iter().fold(0, |number, byte| number << 8 | u128::from(*byte)))
}

/// Big-endian, as short as it can be.
fn number(value: u128) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let zeros = bytes.iter().take(15).take_while(|byte| **byte == 0).count();
    bytes[zeros..].to_vec()
}
