//! Multicast groups, mirror sessions and registers.

use jsonc_parser::ast::{Object, Value};

use crate::json::{Reader, member};
use crate::{Entries, Group, Mirror, Replica, names, value};

/// The most copies one group or session may make of a packet.
const MAX_REPLICAS: usize = 4096;

fn replicas(reader: &mut Reader<'_>, object: &Object<'_>, what: &str) -> Vec<Replica> {
    let mut replicas = Vec::new();
    let list = reader.list(object, "replicas");
    if list.is_empty() || list.len() > MAX_REPLICAS {
        let span = reader.span(object);
        reader.error("entries-format", span, format!("{what} needs 1 to {MAX_REPLICAS} `replicas`"));
        return replicas;
    }
    for item in list {
        let Some(replica) = reader.object(item, "a replica") else { continue };
        reader.only_members(replica, "a replica", &["egress_port", "instance"]);
        let instance = reader.number(replica, "instance", u64::from(u16::MAX)).unwrap_or(0) as u32;
        match reader.number(replica, "egress_port", 511) {
            Some(port) => replicas.push(Replica { port: port as u32, instance }),
            None if member(replica, "egress_port").is_none() => {
                let span = reader.span(replica);
                reader.error("entries-format", span, "a replica needs a member `egress_port`");
            }
            None => {}
        }
    }
    replicas
}

/// An id member from 1 to `max`.
fn id(reader: &mut Reader<'_>, object: &Object<'_>, name: &str, max: u64, what: &str) -> Option<u32> {
    let span = member(object, name).map_or(reader.span(object), |value| reader.span(value));
    match reader.number(object, name, max) {
        Some(0) => reader.error("entries-value", span, format!("`{name}` begins at 1")),
        Some(id) => return Some(id as u32),
        None if member(object, name).is_none() => {
            reader.error("entries-format", span, format!("{what} needs a member `{name}`"));
        }
        None => {}
    }
    None
}

pub(crate) fn read_group(reader: &mut Reader<'_>, item: &Value<'_>, entries: &mut Entries) {
    let what = "a multicast group";
    let Some(object) = reader.object(item, what) else { return };
    reader.only_members(object, what, &["multicast_group_id", "replicas"]);
    let replicas = replicas(reader, object, what);
    let Some(id) = id(reader, object, "multicast_group_id", u64::from(u16::MAX), what) else { return };
    if entries.groups.iter().any(|group| group.id == id) {
        let span = reader.span(object);
        reader.error("entries-duplicate", span, format!("multicast group {id} stands here for the second time"));
    }
    entries.groups.push(Group { id, replicas });
}

pub(crate) fn read_mirror(reader: &mut Reader<'_>, item: &Value<'_>, entries: &mut Entries) {
    let what = "a clone session";
    let Some(object) = reader.object(item, what) else { return };
    reader.only_members(object, what, &["clone_session_id", "replicas", "packet_length_bytes"]);
    let replicas = replicas(reader, object, what);
    let truncate = reader.number(object, "packet_length_bytes", u64::from(u16::MAX)).filter(|bytes| *bytes > 0);
    let Some(id) = id(reader, object, "clone_session_id", 32767, what) else { return };
    if entries.mirrors.iter().any(|mirror| mirror.id == id) {
        let span = reader.span(object);
        reader.error("entries-duplicate", span, format!("clone session {id} stands here for the second time"));
    }
    entries.mirrors.push(Mirror { id, replicas, truncate: truncate.map(|bytes| bytes as u32) });
}

pub(crate) fn read_register(reader: &mut Reader<'_>, item: &Value<'_>, entries: &mut Entries) {
    let what = "a register entry";
    let Some(object) = reader.object(item, what) else { return };
    reader.only_members(object, what, &["register", "index", "value"]);
    let Some((name, span)) = reader.string(object, "register", what) else { return };
    let registers = &reader.program.registers;
    let candidates: Vec<_> = registers.iter().map(|(id, register)| (id, register.name.as_str())).collect();
    let Some(id) = names::find(name, &candidates) else {
        let known = names::listed(candidates.iter().map(|(_, name)| *name));
        reader.error("unknown-register", span, format!("the program has no register `{name}`; it has {known}"));
        return;
    };
    let register = &registers[id];
    let index = reader.number(object, "index", register.size.saturating_sub(1));
    let Some(given) = member(object, "value") else {
        let span = reader.span(object);
        reader.error("entries-format", span, format!("{what} needs a member `value`"));
        return;
    };
    let value = value::read(reader, given, register.width, &format!("an element of `{}`", register.name));
    if let (Some(index), Some(value)) = (index, value) {
        entries.registers.push((id, index, value));
    }
}
