//! From checked entries to a switch that has them.

use engine::{ActionCall, EntryError, TableEntry};
use entries::{Entries, Replica};
use source::{Diagnostic, Diagnostics, Span};
use switch::{MirrorSession, MulticastGroup};
use v1model::Switch;

/// Gives a fresh switch everything a file asks for. What the switch refuses all the same (a table that is full) becomes
/// a finding at its place.
pub fn apply(switch: &mut Switch, entries: &Entries, diagnostics: &mut Diagnostics) {
    let program = switch.program().clone();
    let mut refused = |span: Span, table: ir::TableId, error: EntryError| {
        let message = format!("`{}` refuses this: {error}", program.tables[table].name);
        diagnostics.push(Diagnostic::error("entries-refused", span, message));
    };
    let objects = switch.objects_mut();
    for (table, entry, span) in &entries.tables {
        let action = program.tables[*table].actions[entry.action as usize].action;
        let written = TableEntry::new(entry.keys.clone(), entry.priority, action, entry.args.clone());
        if let Err(error) = objects.insert(*table, written) {
            refused(*span, *table, error);
        }
    }
    for (table, action, args, span) in &entries.defaults {
        let action = program.tables[*table].actions[*action as usize].action;
        if let Err(error) = objects.set_default_action(*table, ActionCall { action, args: args.clone() }) {
            refused(*span, *table, error);
        }
    }
    for (register, index, value) in &entries.registers {
        let result = objects.set_register(*register, *index, value.clone());
        assert!(result.is_ok(), "the entries reader checked index and width");
    }
    for group in &entries.groups {
        let made = switch.set_multicast_group(group.id, Some(MulticastGroup { replicas: replicas(&group.replicas) }));
        assert!(made, "the entries reader checked the group");
    }
    for mirror in &entries.mirrors {
        let session = MirrorSession { replicas: replicas(&mirror.replicas), group: None, max_bytes: mirror.truncate };
        let made = switch.set_mirror_session(mirror.id, Some(session));
        assert!(made, "the entries reader checked the session");
    }
}

fn replicas(replicas: &[Replica]) -> Vec<switch::Replica> {
    replicas.iter().map(|replica| switch::Replica::new(replica.port, replica.instance as u16)).collect()
}
