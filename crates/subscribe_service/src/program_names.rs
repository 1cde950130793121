//! Translation between entities of a generated program, by name, and entities of P4Runtime, by id.

use std::collections::HashMap;

use p4runtime_client::names;
use p4runtime_proto::config::P4Info;
use p4runtime_proto::v1::entity::Entity as Kind;
use p4runtime_proto::v1::packet_replication_engine_entry::Type as Replication;
use p4runtime_proto::v1::replica::PortKind;
use p4runtime_proto::v1::{self, field_match::FieldMatchType as Match};
use subscribe_p4::entries::{Entity, Matched, ProgramEntry};

/// The ids that a switch's P4Info gives to the tables, actions, fields and parameters of a program.
#[derive(Clone, Debug, Default)]
pub struct ProgramNames {
    tables: HashMap<String, NamedObject>,
    actions: HashMap<String, NamedObject>,
}

/// A table with its fields, or an action with its parameters.
#[derive(Clone, Debug)]
struct NamedObject {
    id: u32,
    members: HashMap<String, Member>,
}

/// A field or a parameter.
#[derive(Clone, Copy, Debug)]
struct Member {
    id: u32,
    width_bits: u32,
}

/// An object that the switch's program does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the switch's program has no {object} of `{table}`")]
pub struct MissingObject {
    /// Name of the field, action or parameter, or the word `table`.
    pub object: String,
    /// Name of the table.
    pub table: String,
}

impl ProgramNames {
    /// Collects the names of a program.
    pub fn new(info: &P4Info) -> ProgramNames {
        let member = |name: &String, id: u32, bitwidth: i32| {
            (name.clone(), Member { id, width_bits: u32::try_from(bitwidth).unwrap_or(0) })
        };
        let tables = info.tables.iter().map(|table| {
            let members =
                table.match_fields.iter().map(|field| member(&field.name, field.id, field.bitwidth)).collect();
            (names::name(&table.preamble).to_owned(), NamedObject { id: names::id(&table.preamble), members })
        });
        let actions = info.actions.iter().map(|action| {
            let members = action.params.iter().map(|param| member(&param.name, param.id, param.bitwidth)).collect();
            (names::name(&action.preamble).to_owned(), NamedObject { id: names::id(&action.preamble), members })
        });
        ProgramNames { tables: tables.collect(), actions: actions.collect() }
    }

    /// Returns the name of a table, or an empty text.
    pub(crate) fn table(&self, id: u32) -> &str {
        find_object(&self.tables, id).map_or("", |(name, _)| name)
    }

    /// Returns the name of a table's field, or an empty text.
    pub(crate) fn field(&self, table: u32, id: u32) -> &str {
        find_object(&self.tables, table).and_then(|(_, table)| table.member(id)).map_or("", |(name, _)| name)
    }

    /// Returns the name of an action, or an empty text.
    pub(crate) fn action(&self, id: u32) -> &str {
        find_object(&self.actions, id).map_or("", |(name, _)| name)
    }

    /// Returns the name of an action's parameter, or an empty text.
    pub(crate) fn param(&self, action: u32, id: u32) -> &str {
        find_object(&self.actions, action).and_then(|(_, action)| action.member(id)).map_or("", |(name, _)| name)
    }

    /// Returns the ids of the tables that hold rules, in ascending order. The tables of the format's own controls
    /// (`Subscriptions.Route.routes`) are not among them.
    pub(crate) fn tables(&self) -> Vec<u32> {
        let of_rules = self.tables.iter().filter(|(name, _)| subscribe_p4::is_rule_table(name));
        let mut ids: Vec<u32> = of_rules.map(|(_, table)| table.id).collect();
        ids.sort_unstable();
        ids
    }

    /// Whether a message can reach an entry without any other entry: the entry matches no state, or state 0.
    pub(crate) fn is_entrance(&self, entry: &v1::TableEntry) -> bool {
        let table = self.tables.values().find(|table| table.id == entry.table_id);
        let Some(state) = table.and_then(|table| table.members.get("state")) else { return true };
        let matched = entry.r#match.iter().find(|field| field.field_id == state.id);
        let value = matched.and_then(|field| match &field.field_match_type {
            Some(Match::Exact(exact)) => Some(&exact.value),
            _ => None,
        });
        value.is_none_or(|bytes| bytes.iter().all(|byte| *byte == 0))
    }

    /// Translates an entity for the switch.
    ///
    /// # Errors
    /// If the program does not have an object of the entity.
    pub fn encode(&self, entity: &Entity) -> Result<v1::Entity, MissingObject> {
        let kind = match entity {
            Entity::Table(entry) => Kind::TableEntry(self.encode_entry(entry)?),
            Entity::Group(id, ports) => {
                let replicas = ports.iter().map(|port| encode_replica(*port)).collect();
                replication(Replication::MulticastGroupEntry(v1::MulticastGroupEntry {
                    multicast_group_id: *id,
                    replicas,
                    ..Default::default()
                }))
            }
            Entity::Session(id, port) => replication(Replication::CloneSessionEntry(v1::CloneSessionEntry {
                session_id: *id,
                replicas: vec![encode_replica(*port)],
                ..Default::default()
            })),
        };
        Ok(v1::Entity { entity: Some(kind) })
    }

    /// Translates an entity of the switch. Returns `None` for an entity that no generated program has: one with an
    /// unknown id, a value wider than its field or than 128 bits, no action, or a replica without a port.
    pub fn decode(&self, entity: &v1::Entity) -> Option<Entity> {
        match entity.entity.as_ref()? {
            Kind::TableEntry(entry) => self.decode_entry(entry).map(Entity::Table),
            Kind::PacketReplicationEngineEntry(entry) => match entry.r#type.as_ref()? {
                Replication::MulticastGroupEntry(group) => {
                    let ports = group.replicas.iter().map(decode_port).collect::<Option<_>>()?;
                    Some(Entity::Group(group.multicast_group_id, ports))
                }
                Replication::CloneSessionEntry(session) => {
                    let port = session.replicas.first().map_or(Some(0), decode_port)?;
                    Some(Entity::Session(session.session_id, port))
                }
            },
            _ => None,
        }
    }

    fn decode_entry(&self, entry: &v1::TableEntry) -> Option<ProgramEntry> {
        let (table_name, table) = find_object(&self.tables, entry.table_id)?;
        let mut keys = Vec::new();
        for field in &entry.r#match {
            let (name, member) = table.member(field.field_id)?;
            let value = |bytes: &[u8]| member.value(bytes);
            let matched = match field.field_match_type.as_ref()? {
                Match::Exact(exact) => Matched::Exact(value(&exact.value)?),
                Match::Optional(optional) => Matched::Exact(value(&optional.value)?),
                Match::Lpm(lpm) => Matched::Lpm(value(&lpm.value)?, u32::try_from(lpm.prefix_len).ok()?),
                Match::Ternary(ternary) => Matched::Ternary(value(&ternary.value)?, value(&ternary.mask)?),
                Match::Range(range) => Matched::Range(value(&range.low)?, value(&range.high)?),
                Match::Other(_) => return None,
            };
            keys.push((name.to_owned(), member.width_bits, matched));
        }
        let v1::table_action::Type::Action(call) = entry.action.as_ref()?.r#type.as_ref()? else { return None };
        let (action_name, action) = find_object(&self.actions, call.action_id)?;
        let mut params = Vec::new();
        for param in &call.params {
            let (name, member) = action.member(param.param_id)?;
            params.push((name.to_owned(), member.width_bits, member.value(&param.value)?));
        }
        Some(ProgramEntry {
            table: table_name.to_owned(),
            keys,
            priority: u32::try_from(entry.priority).ok().filter(|priority| *priority > 0),
            action: action_name.to_owned(),
            params,
        })
    }

    fn encode_entry(&self, entry: &ProgramEntry) -> Result<v1::TableEntry, MissingObject> {
        let missing = |object: &str| MissingObject { object: object.to_owned(), table: entry.table.clone() };
        let table = self.tables.get(&entry.table).ok_or_else(|| missing("table"))?;
        let mut matches = Vec::new();
        for (name, width, matched) in &entry.keys {
            let field_id = table.members.get(name).ok_or_else(|| missing(name))?.id;
            let ones = subscribe::max_of(*width);
            let bytes = |value: u128| encode_value(value);
            // A field that matches any value is left out (specification 9.1.1).
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
        let action = self.actions.get(&entry.action).ok_or_else(|| missing(&entry.action))?;
        let mut params = Vec::new();
        for (name, _, value) in &entry.params {
            let param_id = action.members.get(name).ok_or_else(|| missing(name))?.id;
            params.push(v1::action::Param { param_id, value: encode_value(*value) });
        }
        let call = v1::table_action::Type::Action(v1::Action { action_id: action.id, params });
        Ok(v1::TableEntry {
            table_id: table.id,
            r#match: matches,
            action: Some(v1::TableAction { r#type: Some(call) }),
            priority: entry.priority.unwrap_or(0) as i32,
            ..Default::default()
        })
    }
}

impl NamedObject {
    fn member(&self, id: u32) -> Option<(&str, Member)> {
        self.members.iter().find(|(_, member)| member.id == id).map(|(name, member)| (name.as_str(), *member))
    }
}

impl Member {
    /// Returns the number in a byte string, if it fits the member. A width of 0 is unknown, and any number of 128 bits
    /// fits.
    fn value(self, bytes: &[u8]) -> Option<u128> {
        let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
        let significant = &bytes[start..];
        if significant.len() > 16 {
            return None;
        }
        let number = decode_number(significant);
        let fits = self.width_bits == 0 || self.width_bits >= 128 || number >> self.width_bits == 0;
        fits.then_some(number)
    }
}

fn find_object(objects: &HashMap<String, NamedObject>, id: u32) -> Option<(&str, &NamedObject)> {
    objects.iter().find(|(_, object)| object.id == id).map(|(name, object)| (name.as_str(), object))
}

fn replication(kind: Replication) -> Kind {
    Kind::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry { r#type: Some(kind) })
}

/// Emits a replica with the port as a number, the only form that switches before P4Runtime 1.4 have.
#[allow(deprecated, reason = "switches of P4Runtime before 1.4 know no other")]
fn encode_replica(port: u32) -> v1::Replica {
    v1::Replica { port_kind: Some(PortKind::EgressPort(port)), instance: 1, ..Default::default() }
}

/// Returns a replica's port, in either form.
#[allow(deprecated, reason = "switches of P4Runtime before 1.4 know no other")]
fn decode_port(replica: &v1::Replica) -> Option<u32> {
    match replica.port_kind.as_ref()? {
        PortKind::EgressPort(port) => Some(*port),
        PortKind::Port(bytes) => {
            let value = Member { id: 0, width_bits: 32 }.value(bytes)?;
            u32::try_from(value).ok()
        }
    }
}

/// Returns the number in a byte string of at most 16 bytes.
pub(crate) fn decode_number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// Emits a number in big-endian order, in as few bytes as possible, but at least one.
fn encode_value(value: u128) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let zeros = bytes.iter().take(15).take_while(|byte| **byte == 0).count();
    bytes[zeros..].to_vec()
}

#[cfg(test)]
mod tests {
    use p4runtime_proto::config::action::Param;
    use p4runtime_proto::config::{Action, MatchField, Preamble, Table};

    use super::*;

    fn names() -> ProgramNames {
        let preamble = |id, name: &str| Some(Preamble { id, name: name.to_owned(), ..Preamble::default() });
        let field =
            |id, name: &str, bitwidth| MatchField { id, name: name.to_owned(), bitwidth, ..MatchField::default() };
        let match_fields = vec![field(1, "state", 32), field(2, "value", 16)];
        let table = Table { preamble: preamble(7, "Subscriptions.price"), match_fields, ..Table::default() };
        let params = vec![Param { id: 1, name: "port".to_owned(), bitwidth: 9, ..Param::default() }];
        let action = Action { preamble: preamble(9, "Subscriptions.to_port"), params };
        ProgramNames::new(&P4Info { tables: vec![table], actions: vec![action], ..P4Info::default() })
    }

    fn entry(value: Matched) -> Entity {
        Entity::Table(ProgramEntry {
            table: "Subscriptions.price".to_owned(),
            keys: vec![("state".to_owned(), 32, Matched::Exact(300)), ("value".to_owned(), 16, value)],
            priority: Some(1),
            action: "Subscriptions.to_port".to_owned(),
            params: vec![("port".to_owned(), 9, 77)],
        })
    }

    #[test]
    fn entities_are_the_same_after_both_translations() {
        let names = names();
        let tables = [Matched::Exact(5), Matched::Lpm(0x500, 8), Matched::Ternary(4, 6), Matched::Range(5, 700)];
        let all = tables.map(entry).into_iter().chain([Entity::Group(3, vec![2, 77]), Entity::Session(5, 4)]);
        for entity in all {
            let encoded = names.encode(&entity).expect("the program has it all");
            assert_eq!(names.decode(&encoded), Some(entity));
        }
    }

    #[test]
    fn entities_of_another_program_are_recognized() {
        let names = names();
        let mut unknown = names.encode(&entry(Matched::Exact(5))).expect("the program has it all");
        let wide = names.encode(&entry(Matched::Exact(1 << 16))).expect("widths are not checked here");
        assert_eq!(names.decode(&wide), None, "the field has 16 bits");
        if let Some(Kind::TableEntry(entry)) = &mut unknown.entity {
            entry.r#match[0].field_id = 5;
        }
        assert_eq!(names.decode(&unknown), None);
        let missing = names.encode(&Entity::Table(ProgramEntry {
            table: "Subscriptions.stock".to_owned(),
            keys: Vec::new(),
            priority: None,
            action: "Subscriptions.to_port".to_owned(),
            params: Vec::new(),
        }));
        let expected = MissingObject { object: "table".to_owned(), table: "Subscriptions.stock".to_owned() };
        assert_eq!(missing, Err(expected));
    }

    #[test]
    fn a_port_has_two_forms() {
        let replica = |kind| v1::Replica { port_kind: Some(kind), ..Default::default() };
        assert_eq!(decode_port(&replica(PortKind::Port(vec![0, 1, 2]))), Some(258));
        assert_eq!(decode_port(&replica(PortKind::Port(vec![1, 0, 0, 0, 0]))), None);
        #[allow(deprecated, reason = "the older form")]
        let older = replica(PortKind::EgressPort(7));
        assert_eq!(decode_port(&older), Some(7));
        assert_eq!(decode_port(&v1::Replica::default()), None);
    }
}
