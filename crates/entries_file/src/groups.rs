//! Reads multicast groups and mirror sessions.

use jsonc_parser::ast::{Object, Value};

use crate::json::{FileReader, member};
use crate::{Entries, MAX_REPLICAS, MirrorSession, MulticastGroup, Replica};

fn replicas(reader: &mut FileReader<'_>, object: &Object<'_>, what: &str, may_be_none: bool) -> Vec<Replica> {
    let mut replicas = Vec::new();
    let list = reader.list(object, "replicas");
    if (list.is_empty() && !may_be_none) || list.len() > MAX_REPLICAS {
        let span = reader.span(object);
        reader.error("entries-format", span, format!("{what} requires 1 to {MAX_REPLICAS} `replicas`"));
        return replicas;
    }
    for item in list {
        let Some(replica) = reader.object(item, "a replica") else { continue };
        reader.only_members(replica, "a replica", &["egress_port", "instance", "backup_ports"]);
        let instance = reader.number(replica, "instance", u64::from(u16::MAX)).unwrap_or(0) as u32;
        match reader.number(replica, "egress_port", reader.max_port.into()) {
            Some(port) => replicas.push(Replica { port: port as u32, instance, backups: backups(reader, replica) }),
            None if member(replica, "egress_port").is_none() => {
                let span = reader.span(replica);
                reader.error("entries-format", span, "a replica requires a member `egress_port`");
            }
            None => {}
        }
    }
    replicas
}

/// Reads a replica's backup ports.
fn backups(reader: &mut FileReader<'_>, object: &Object<'_>) -> Vec<u32> {
    const MAX_BACKUPS: usize = 16;
    let list = reader.list(object, "backup_ports");
    let max_port = reader.max_port;
    let port = |value: &Value<'_>| match value {
        Value::NumberLit(number) => number.value.parse::<u32>().ok().filter(|port| *port <= max_port),
        _ => None,
    };
    let ports: Vec<u32> = list.iter().filter_map(port).collect();
    if ports.len() != list.len() || list.len() > MAX_BACKUPS {
        let span = reader.span(object);
        let message = format!("`backup_ports` must be a list of at most {MAX_BACKUPS} ports from 0 to {max_port}");
        reader.error("entries-value", span, message);
    }
    ports
}

/// Reads an id member from 1 to `max`.
fn id(reader: &mut FileReader<'_>, object: &Object<'_>, name: &str, max: u64, what: &str) -> Option<u32> {
    let span = member(object, name).map_or(reader.span(object), |value| reader.span(value));
    match reader.number(object, name, max) {
        Some(0) => reader.error("entries-value", span, format!("`{name}` must be at least 1")),
        Some(id) => return Some(id as u32),
        None if member(object, name).is_none() => {
            reader.error("entries-format", span, format!("{what} requires a member `{name}`"));
        }
        None => {}
    }
    None
}

pub(crate) fn read_group(reader: &mut FileReader<'_>, item: &Value<'_>, entries: &mut Entries) {
    let what = "a multicast group";
    let Some(object) = reader.object(item, what) else { return };
    reader.only_members(object, what, &["multicast_group_id", "replicas"]);
    let replicas = replicas(reader, object, what, false);
    let Some(id) = id(reader, object, "multicast_group_id", u64::from(u16::MAX), what) else { return };
    if entries.groups.iter().any(|group| group.id == id) {
        let span = reader.span(object);
        reader.error("entries-duplicate", span, format!("duplicate multicast group {id}"));
    }
    entries.groups.push(MulticastGroup { id, replicas });
}

pub(crate) fn read_mirror(reader: &mut FileReader<'_>, item: &Value<'_>, entries: &mut Entries) {
    let what = "a clone session";
    let Some(object) = reader.object(item, what) else { return };
    reader.only_members(object, what, &["clone_session_id", "replicas", "multicast_group_id", "packet_length_bytes"]);
    let replicas = replicas(reader, object, what, member(object, "multicast_group_id").is_some());
    let group = reader.number(object, "multicast_group_id", u64::from(u16::MAX)).map(|group| group as u32);
    let truncate = reader.number(object, "packet_length_bytes", u64::from(u16::MAX)).filter(|bytes| *bytes > 0);
    let Some(id) = id(reader, object, "clone_session_id", 32767, what) else { return };
    if entries.mirrors.iter().any(|mirror| mirror.id == id) {
        let span = reader.span(object);
        reader.error("entries-duplicate", span, format!("duplicate clone session {id}"));
    }
    entries.mirrors.push(MirrorSession { id, replicas, group, truncate: truncate.map(|bytes| bytes as u32) });
}
