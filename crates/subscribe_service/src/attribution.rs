//! Describes rejected updates in the names of the program.

use p4runtime_proto::v1;
use p4runtime_proto::v1::entity::Entity as Kind;
use p4runtime_proto::v1::field_match::FieldMatchType as Match;
use p4runtime_proto::v1::packet_replication_engine_entry::Type as Replication;
use p4runtime_proto::v1::replica::PortKind;
use p4runtime_proto::v1::table_action::Type as ActionType;

use crate::program_names::{ProgramNames, decode_number};
use crate::switch_error::SwitchRejection;

/// Maximum number of fields or ports in a description.
const MAX_LISTED: usize = 16;

/// An update that a switch rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RejectedUpdate {
    /// The entity and the reason, as a sentence.
    pub description: String,
    /// The ports that the entity delivers to.
    pub ports: Vec<u32>,
}

impl RejectedUpdate {
    /// Describes a rejection.
    pub fn new(rejection: &SwitchRejection, names: &ProgramNames) -> RejectedUpdate {
        let kind = rejection.update.as_ref().and_then(|update| update.entity.as_ref()?.entity.as_ref());
        let (entity, ports) = match kind {
            Some(Kind::TableEntry(entry)) => describe_entry(entry, names),
            Some(Kind::PacketReplicationEngineEntry(entry)) => describe_replication(entry),
            _ => (String::new(), Vec::new()),
        };
        // The message may name one port of several.
        let named: Vec<u32> = ports.iter().copied().filter(|port| is_named(*port, &rejection.reason)).collect();
        let ports = if named.is_empty() { ports } else { named };
        // Some switches begin their message with the name of the entity.
        let repeats = |head: &str| !head.is_empty() && entity.trim_start().starts_with(head);
        let rest = rejection.reason.split_once(": ").filter(|(head, _)| repeats(head));
        let reason = rest.map_or(&*rejection.reason, |(_, rest)| rest);
        RejectedUpdate { description: format!("the switch rejected{entity}: {reason}"), ports }
    }
}

/// Whether a text names `port 77`.
fn is_named(port: u32, text: &str) -> bool {
    let (text, name) = (text.to_lowercase(), format!("port {port}"));
    text.match_indices(&name).any(|(at, _)| !text[at + name.len()..].starts_with(|next: char| next.is_ascii_digit()))
}

/// Describes a multicast group or a clone session, and returns its ports.
fn describe_replication(entry: &v1::PacketReplicationEngineEntry) -> (String, Vec<u32>) {
    let (name, replicas) = match &entry.r#type {
        Some(Replication::MulticastGroupEntry(group)) => {
            (format!(" multicast group {}", group.multicast_group_id), &group.replicas)
        }
        Some(Replication::CloneSessionEntry(session)) => {
            (format!(" mirror session {}", session.session_id), &session.replicas)
        }
        None => return (String::new(), Vec::new()),
    };
    let ports: Vec<u32> = replicas.iter().filter_map(port).collect();
    let list: Vec<String> = ports.iter().take(MAX_LISTED).map(u32::to_string).collect();
    let more = if ports.len() > MAX_LISTED { ", ..." } else { "" };
    (format!("{name}, for ports {}{more}", list.join(", ")), ports)
}

#[allow(deprecated, reason = "switches of P4Runtime before 1.4 know no other")]
fn port(replica: &v1::Replica) -> Option<u32> {
    match &replica.port_kind {
        Some(PortKind::EgressPort(port)) => Some(*port),
        _ => None,
    }
}

/// Describes a table entry, and returns the port that its action delivers to.
fn describe_entry(entry: &v1::TableEntry, names: &ProgramNames) -> (String, Vec<u32>) {
    let fields = entry.r#match.iter().take(MAX_LISTED);
    let matches: Vec<String> = fields.map(|field| describe_match(entry.table_id, field, names)).collect();
    let mut text = format!(" an entry of `{}` ({})", names.table(entry.table_id), matches.join(", "));
    let mut ports = Vec::new();
    if let Some(ActionType::Action(action)) = entry.action.as_ref().and_then(|action| action.r#type.as_ref()) {
        let params: Vec<String> = action
            .params
            .iter()
            .map(|param| format!("{}={}", names.param(action.action_id, param.param_id), decode_number(&param.value)))
            .collect();
        let name = names.action(action.action_id);
        text = format!("{text} -> `{name}({})`", params.join(", "));
        if name == "Subscriptions.to_port" {
            ports.extend(action.params.iter().filter_map(|param| u32::try_from(decode_number(&param.value)).ok()));
        }
    }
    (text, ports)
}

fn describe_match(table: u32, field: &v1::FieldMatch, names: &ProgramNames) -> String {
    let name = names.field(table, field.field_id);
    let number = decode_number;
    match &field.field_match_type {
        Some(Match::Exact(exact)) => format!("{name}={}", number(&exact.value)),
        Some(Match::Lpm(lpm)) => format!("{name}={:#x}/{}", number(&lpm.value), lpm.prefix_len),
        Some(Match::Ternary(ternary)) => {
            format!("{name}={:#x}&&&{:#x}", number(&ternary.value), number(&ternary.mask))
        }
        Some(Match::Range(range)) => format!("{name}={}..{}", number(&range.low), number(&range.high)),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use p4runtime_proto::config::action::Param;
    use p4runtime_proto::config::{Action, MatchField, P4Info, Preamble, Table};
    use subscribe_p4::entries::{Entity, Matched, ProgramEntry};

    use super::*;

    #[test]
    fn entries_and_groups_are_described_in_the_program_s_names() {
        let preamble =
            |id, name: &str| Some(Preamble { id, name: format!("Subscriptions.{name}"), ..Preamble::default() });
        let field = |id, name: &str| MatchField { id, name: name.to_owned(), ..MatchField::default() };
        let fields = vec![field(1, "state"), field(2, "value")];
        let table = Table { preamble: preamble(7, "price_range_6"), match_fields: fields, ..Table::default() };
        let params = vec![Param { id: 1, name: "port".to_owned(), ..Param::default() }];
        let action = Action { preamble: preamble(9, "to_port"), params };
        let names = ProgramNames::new(&P4Info { tables: vec![table], actions: vec![action], ..P4Info::default() });
        let entry = ProgramEntry {
            table: "Subscriptions.price_range_6".to_owned(),
            keys: vec![("state".to_owned(), 32, Matched::Exact(300)), ("value".to_owned(), 32, Matched::Range(5, 700))],
            priority: Some(1),
            action: "Subscriptions.to_port".to_owned(),
            params: vec![("port".to_owned(), 9, 77)],
        };
        let rejected = |reason: &str, entity: Option<&Entity>| {
            let update = entity.map(|entity| {
                let entity = names.encode(entity).expect("the program has it");
                Box::new(v1::Update { r#type: 1, entity: Some(entity) })
            });
            RejectedUpdate::new(&SwitchRejection { reason: reason.to_owned(), update }, &names)
        };
        let no_room = |entity: &Entity| rejected("there is no room", Some(entity));
        let expected = "the switch rejected an entry of `Subscriptions.price_range_6` (state=300, value=5..700) -> \
                        `Subscriptions.to_port(port=77)`: there is no room";
        let expected = RejectedUpdate { description: expected.to_owned(), ports: vec![77] };
        assert_eq!(no_room(&Entity::Table(entry)), expected);
        let expected = "the switch rejected multicast group 3, for ports 2, 77: there is no room";
        let expected = RejectedUpdate { description: expected.to_owned(), ports: vec![2, 77] };
        assert_eq!(no_room(&Entity::Group(3, vec![2, 77])), expected);
        let without_update = rejected("multicast group 3: no", None);
        assert_eq!(without_update.description, "the switch rejected: multicast group 3: no");
        let ports = |reason: &str| rejected(reason, Some(&Entity::Group(3, vec![2, 7, 77]))).ports;
        assert_eq!(ports("there is no port 77; there are 1, 2"), [77]);
        assert_eq!(ports("Port 7 is down"), [7]);
        assert_eq!(ports("port 770 of 2"), [2, 7, 77]);
        assert_eq!(rejected("no", None).description, "the switch rejected: no");
    }
}
