//! Writes entries in the format of `--entries` files.

use serde_json::{Map, Value, json};
use subscribe_p4::entries::{Entity, Matched, ProgramEntry, Update};

/// Formats the entries that these updates write to an empty switch. No table entry and no session may be updated twice,
/// and deletions are ignored; a later update of a group replaces an earlier one.
pub fn text(updates: &[Update]) -> String {
    let mut groups: Vec<(u32, Vec<u32>)> = Vec::new();
    let (mut tables, mut sessions) = (Vec::new(), Vec::new());
    for update in updates {
        match update {
            Update::Insert(Entity::Table(entry)) | Update::Modify(Entity::Table(entry)) => tables.push(table(entry)),
            Update::Insert(Entity::Session(id, port)) | Update::Modify(Entity::Session(id, port)) => {
                sessions.push(json!({ "clone_session_id": id, "replicas": [{ "egress_port": port, "instance": 1 }] }));
            }
            Update::Insert(Entity::Group(id, ports)) | Update::Modify(Entity::Group(id, ports)) => {
                groups.retain(|(known, _)| known != id);
                groups.push((*id, ports.clone()));
            }
            Update::Delete(_) => {}
        }
    }
    let replicas = |ports: &[u32]| -> Vec<Value> {
        ports.iter().map(|port| json!({ "egress_port": port, "instance": 1 })).collect()
    };
    // Groups without ports are omitted: a missing group makes no copies either.
    let groups = groups.iter().filter(|(_, ports)| !ports.is_empty());
    let groups = groups.map(|(id, ports)| json!({ "multicast_group_id": id, "replicas": replicas(ports) }));
    // One entry per line: long files stay readable and diffable.
    let section = |name: &str, values: Vec<Value>| {
        let lines: Vec<String> = values.iter().map(|value| format!("    {value}")).collect();
        format!("  \"{name}\": [\n{}\n  ]", lines.join(",\n"))
    };
    let sections = [
        section("multicast_group_entries", groups.collect()),
        section("clone_session_entries", sessions),
        section("table_entries", tables),
    ];
    format!("{{\n{}\n}}\n", sections.join(",\n"))
}

fn table(entry: &ProgramEntry) -> Value {
    let matches: Map<String, Value> = entry
        .keys
        .iter()
        .map(|(name, width, matched)| {
            let number = |value: u128| number(value, *width);
            let value = match matched {
                Matched::Exact(value) => number(*value),
                Matched::Lpm(value, length) => json!([number(*value), length]),
                Matched::Range(first, last) => json!([number(*first), number(*last)]),
                Matched::Ternary(value, mask) => json!([number(*value), number(*mask)]),
            };
            (name.clone(), value)
        })
        .collect();
    let params: Map<String, Value> =
        entry.params.iter().map(|(name, width, value)| (name.clone(), number(*value, *width))).collect();
    let mut out =
        json!({ "table": entry.table, "match": matches, "action_name": entry.action, "action_params": params });
    if let (Some(priority), Some(out)) = (entry.priority, out.as_object_mut()) {
        out.insert("priority".to_owned(), priority.into());
    }
    out
}

/// Returns a JSON number, or a hexadecimal string if the field is wider than 53 bits, which many JSON readers would
/// round.
fn number(value: u128, width: u32) -> Value {
    match u64::try_from(value) {
        Ok(value) if width <= 53 => value.into(),
        _ => format!("{value:#x}").into(),
    }
}
