//! Writes entries in the format of `--entries` files.

use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::{Map, Value, json};
use subscribe_p4::entries::{Entity, Matched, ProgramEntry, Update};

/// Writes the entries that these updates write to an empty switch. No table entry and no session may be updated twice,
/// and deletions are ignored; a later update of a group replaces an earlier one.
///
/// # Errors
/// Errors of `out`.
pub fn write(updates: &[Update], out: &mut dyn Write) -> io::Result<()> {
    let written = || {
        updates.iter().filter_map(|update| match update {
            Update::Insert(entity) | Update::Modify(entity) => Some(entity),
            Update::Delete(_) => None,
        })
    };
    let mut last = HashMap::new();
    for (number, entity) in written().enumerate() {
        if let Entity::Group(id, _) = entity {
            last.insert(*id, number);
        }
    }
    let replicas = |ports: &[u32]| -> Vec<Value> {
        ports.iter().map(|port| json!({ "egress_port": port, "instance": 1 })).collect()
    };
    let groups = written().enumerate().filter_map(|(number, entity)| match entity {
        // Groups without ports are omitted: a missing group makes no copies either.
        Entity::Group(id, ports) if last[id] == number && !ports.is_empty() => {
            Some(json!({ "multicast_group_id": id, "replicas": replicas(ports) }))
        }
        _ => None,
    });
    let sessions = written().filter_map(|entity| match entity {
        Entity::Session(id, port) => Some(json!({ "clone_session_id": id, "replicas": replicas(&[*port]) })),
        _ => None,
    });
    let tables = written().filter_map(|entity| match entity {
        Entity::Table(entry) => Some(table(entry)),
        _ => None,
    });
    out.write_all(b"{\n")?;
    section(out, "multicast_group_entries", groups)?;
    out.write_all(b",\n")?;
    section(out, "clone_session_entries", sessions)?;
    out.write_all(b",\n")?;
    section(out, "table_entries", tables)?;
    out.write_all(b"\n}\n")
}

/// Writes a list with one value per line: long files stay readable and diffable.
fn section(out: &mut dyn Write, name: &str, values: impl Iterator<Item = Value>) -> io::Result<()> {
    write!(out, "  \"{name}\": [")?;
    let mut before = "\n";
    for value in values {
        write!(out, "{before}    {value}")?;
        before = ",\n";
    }
    // A list without values has an empty line.
    out.write_all(if before == "\n" { b"\n\n  ]" } else { b"\n  ]" })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_update_of_a_group_counts_and_groups_without_ports_are_omitted() {
        let group = |id, ports: &[u32]| Entity::Group(id, ports.to_vec());
        let updates = [
            Update::Insert(group(1, &[5])),
            Update::Insert(group(2, &[6])),
            Update::Insert(group(3, &[7])),
            Update::Modify(group(1, &[8, 9])),
            Update::Modify(group(2, &[])),
            Update::Delete(group(3, &[7])),
            Update::Insert(Entity::Session(4, 10)),
        ];
        let mut text = Vec::new();
        write(&updates, &mut text).unwrap();
        let replica = |port: u32| json!({ "egress_port": port, "instance": 1 });
        let expected = json!({
            "multicast_group_entries": [
                { "multicast_group_id": 3, "replicas": [replica(7)] },
                { "multicast_group_id": 1, "replicas": [replica(8), replica(9)] },
            ],
            "clone_session_entries": [{ "clone_session_id": 4, "replicas": [replica(10)] }],
            "table_entries": [],
        });
        assert_eq!(serde_json::from_slice::<Value>(&text).unwrap(), expected);
    }
}
