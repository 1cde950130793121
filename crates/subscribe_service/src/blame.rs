//! What a switch refused, as people are told: the entry, and the rules that it is for.

use p4runtime_proto::v1;
use p4runtime_proto::v1::entity::Entity as Kind;
use p4runtime_proto::v1::field_match::FieldMatchType as Match;
use p4runtime_proto::v1::packet_replication_engine_entry::Type as Replication;
use p4runtime_proto::v1::replica::PortKind;
use p4runtime_proto::v1::table_action::Type as ActionType;

use crate::names::Names;
use crate::trouble::Refusal;

/// Something that a switch refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// What, and why.
    pub told: String,
    /// The ports to which it would have delivered.
    pub ports: Vec<u32>,
}

impl Refused {
    /// What a refusal is about, in the program's names.
    pub fn new(refusal: &Refusal, names: &Names) -> Refused {
        let kind = refusal.update.as_ref().and_then(|update| update.entity.as_ref()?.entity.as_ref());
        let (what, ports) = match kind {
            Some(Kind::TableEntry(entry)) => entry_of(entry, names),
            Some(Kind::PacketReplicationEngineEntry(entry)) => copies(entry),
            _ => (String::new(), Vec::new()),
        };
        // Of several ports the switch may say which.
        let named: Vec<u32> = ports.iter().copied().filter(|port| is_named(*port, &refusal.why)).collect();
        let ports = if named.is_empty() { ports } else { named };
        // Some switches begin with what it is about, too.
        let repeats = |head: &str| !head.is_empty() && what.trim_start().starts_with(head);
        let rest = refusal.why.split_once(": ").filter(|(head, _)| repeats(head));
        let why = rest.map_or(&*refusal.why, |(_, rest)| rest);
        Refused { told: format!("the switch refused{what}: {why}"), ports }
    }
}

/// Whether a text speaks of `port 77`.
fn is_named(port: u32, text: &str) -> bool {
    let (text, name) = (text.to_lowercase(), format!("port {port}"));
    text.match_indices(&name).any(|(at, _)| !text[at + name.len()..].starts_with(|next: char| next.is_ascii_digit()))
}

/// Groups of ports, and the sessions that send to one.
fn copies(entry: &v1::PacketReplicationEngineEntry) -> (String, Vec<u32>) {
    let (what, replicas) = match &entry.r#type {
        Some(Replication::MulticastGroupEntry(group)) => {
            (format!(" multicast group {}", group.multicast_group_id), &group.replicas)
        }
        Some(Replication::CloneSessionEntry(session)) => {
            (format!(" mirror session {}", session.session_id), &session.replicas)
        }
        None => return (String::new(), Vec::new()),
    };
    let ports: Vec<u32> = replicas.iter().filter_map(port).collect();
    let list: Vec<String> = ports.iter().take(MOST).map(u32::to_string).collect();
    let more = if ports.len() > MOST { ", ..." } else { "" };
    (format!("{what}, for the ports {}{more}", list.join(", ")), ports)
}

/// Parts of a list that are told.
const MOST: usize = 16;

#[allow(deprecated, reason = "switches of P4Runtime before 1.4 know no other")]
fn port(replica: &v1::Replica) -> Option<u32> {
    match &replica.port_kind {
        Some(PortKind::EgressPort(port)) => Some(*port),
        _ => None,
    }
}

fn entry_of(entry: &v1::TableEntry, names: &Names) -> (String, Vec<u32>) {
    let matches: Vec<String> =
        entry.r#match.iter().take(MOST).map(|field| matched(entry.table_id, field, names)).collect();
    let mut text = format!(" an entry of `{}` ({})", names.table(entry.table_id), matches.join(", "));
    let mut ports = Vec::new();
    if let Some(ActionType::Action(action)) = entry.action.as_ref().and_then(|action| action.r#type.as_ref()) {
        let params: Vec<String> = action
            .params
            .iter()
            .map(|param| format!("{}={}", names.param(action.action_id, param.param_id), number(&param.value)))
            .collect();
        let name = names.action(action.action_id);
        text = format!("{text} -> `{name}({})`", params.join(", "));
        if name == "Subscriptions.to_port" {
            ports.extend(action.params.iter().filter_map(|param| u32::try_from(number(&param.value)).ok()));
        }
    }
    (text, ports)
}

fn matched(table: u32, field: &v1::FieldMatch, names: &Names) -> String {
    let name = names.field(table, field.field_id);
    match &field.field_match_type {
        Some(Match::Exact(of)) => format!("{name}={}", number(&of.value)),
        Some(Match::Lpm(of)) => format!("{name}={:#x}/{}", number(&of.value), of.prefix_len),
        Some(Match::Ternary(of)) => format!("{name}={:#x}&&&{:#x}", number(&of.value), number(&of.mask)),
        Some(Match::Range(of)) => format!("{name}={}..{}", number(&of.low), number(&of.high)),
        _ => name.to_owned(),
    }
}

fn number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

#[cfg(test)]
mod tests {
    use p4runtime_proto::config::action::Param;
    use p4runtime_proto::config::{Action, MatchField, P4Info, Preamble, Table};
    use subscribe_p4::entries::{Entity, Matched, TableEntry};

    use super::*;

    #[test]
    fn entries_and_groups_are_told_in_the_program_s_names() {
        let preamble =
            |id, name: &str| Some(Preamble { id, name: format!("Subscriptions.{name}"), ..Preamble::default() });
        let field = |id, name: &str| MatchField { id, name: name.to_owned(), ..MatchField::default() };
        let fields = vec![field(1, "state"), field(2, "value")];
        let table = Table { preamble: preamble(7, "price_range_6"), match_fields: fields, ..Table::default() };
        let params = vec![Param { id: 1, name: "port".to_owned(), ..Param::default() }];
        let action = Action { preamble: preamble(9, "to_port"), params };
        let names = Names::new(&P4Info { tables: vec![table], actions: vec![action], ..P4Info::default() });
        let entry = TableEntry {
            table: "Subscriptions.price_range_6".to_owned(),
            keys: vec![("state".to_owned(), 32, Matched::Exact(300)), ("value".to_owned(), 32, Matched::Range(5, 700))],
            priority: Some(1),
            action: "Subscriptions.to_port".to_owned(),
            params: vec![("port".to_owned(), 9, 77)],
        };
        let told = |entity: &Entity| {
            let update = v1::Update { r#type: 1, entity: Some(names.encode(entity).expect("it is there")) };
            let refusal =
                Refusal { why: "there is no room".to_owned(), update: Some(Box::new(update)), ..Refusal::default() };
            Refused::new(&refusal, &names)
        };
        let expected = "the switch refused an entry of `Subscriptions.price_range_6` (state=300, value=5..700) -> \
                        `Subscriptions.to_port(port=77)`: there is no room";
        assert_eq!(told(&Entity::Table(entry)), Refused { told: expected.to_owned(), ports: vec![77] });
        let expected = "the switch refused multicast group 3, for the ports 2, 77: there is no room";
        assert_eq!(told(&Entity::Group(3, vec![2, 77])), Refused { told: expected.to_owned(), ports: vec![2, 77] });
        let refusal = Refusal { why: "multicast group 3: no".to_owned(), ..Refusal::default() };
        assert_eq!(Refused::new(&refusal, &names).told, "the switch refused: multicast group 3: no");
        let of_port = |why: &str| {
            let group = names.encode(&Entity::Group(3, vec![2, 7, 77])).expect("it is there");
            let update = Some(Box::new(v1::Update { r#type: 1, entity: Some(group) }));
            Refused::new(&Refusal { why: why.to_owned(), update, ..Refusal::default() }, &names).ports
        };
        assert_eq!(of_port("there is no port 77; there are 1, 2"), [77]);
        assert_eq!(of_port("Port 7 is down"), [7]);
        assert_eq!(of_port("port 770 of 2"), [2, 7, 77]);
        let refusal = Refusal { why: "no".to_owned(), ..Refusal::default() };
        assert_eq!(Refused::new(&refusal, &names).told, "the switch refused: no");
    }
}
