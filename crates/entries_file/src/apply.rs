//! Applies a checked entries file to a switch.

use diagnostics::{Diagnostic, Diagnostics, Span};
use engine::{ActionCall, ActionSpec, CrcParams, EntryError, GroupMember, MeterConfig, TableEntry, WeightedCall};
use ir::Algorithm;
use switch::{MirrorSession, MulticastGroup, PortId, SwitchControl};

use crate::{ActionInvocation, CrcSettings, Entries, EntryAction, MeterRates, Replica, WeightedAction};

/// Applies a file to a switch. An entry that the switch rejects, for example because a table is full or has an equal
/// entry, is reported at its position in the file; the others are applied. A caller that must not run with a part of a
/// file discards the switch.
pub fn apply(switch: &mut dyn SwitchControl, entries: &Entries, diagnostics: &mut Diagnostics) {
    apply_objects(switch, entries, diagnostics);
    for group in &entries.groups {
        let accepted =
            switch.set_multicast_group(group.id, Some(MulticastGroup { replicas: replicas(&group.replicas) }));
        assert!(accepted, "the entries reader validated the group");
    }
    for mirror in &entries.mirrors {
        let replicas = replicas(&mirror.replicas);
        let session = MirrorSession { replicas, group: mirror.group, max_bytes: mirror.truncate, ..Default::default() };
        let accepted = switch.set_mirror_session(mirror.id, Some(session));
        assert!(accepted, "the entries reader validated the session");
    }
    for queue in &entries.queues {
        let (port, priority) = (PortId(queue.port), queue.priority.map(|priority| priority as usize));
        if let Some(rate) = queue.rate_pps {
            switch.set_queue_rate(port, priority, Some(rate));
        }
        if let Some(depth) = queue.depth {
            switch.set_queue_depth(port, priority, depth as usize);
        }
    }
}

/// Applies entries, action profiles, value sets, registers, meters and CRC parameters.
fn apply_objects(switch: &mut dyn SwitchControl, entries: &Entries, diagnostics: &mut Diagnostics) {
    let program = switch.program().clone();
    let mut report = |result: Result<(), EntryError>, name: &str, span: Span| {
        if let Err(error) = result {
            diagnostics.push(Diagnostic::error(
                "entries-refused",
                span,
                format!("`{name}` rejected this entry: {error}"),
            ));
        }
    };
    let objects = switch.objects_mut();
    for member in &entries.members {
        let result = objects.insert_member(member.profile, member.id, call(&member.call));
        report(result, &program.profiles[member.profile].name, member.span);
    }
    for group in &entries.member_groups {
        let one = |&(member, weight, watch_port): &(u32, u32, Option<u32>)| GroupMember { member, weight, watch_port };
        // A maximum size of 0 means no limit.
        let result = objects.insert_group(group.profile, group.id, group.members.iter().map(one).collect(), 0);
        report(result, &program.profiles[group.profile].name, group.span);
    }
    for entry in &entries.tables {
        let written = TableEntry {
            keys: entry.keys.clone(),
            priority: entry.priority,
            action: spec(&entry.target),
            metadata: Vec::new(),
            idle_timeout_ns: entry.idle_timeout_ns,
        };
        let mut result = objects.insert(entry.table, written);
        if let (Ok(()), Some(meter)) = (&result, entry.meter) {
            result = objects.configure_entry_meter(entry.table, &entry.keys, entry.priority, Some(rates(meter)));
        }
        report(result, &program.tables[entry.table].name, entry.span);
    }
    for (table, default, span) in &entries.defaults {
        report(objects.set_default_action(*table, call(default)), &program.tables[*table].name, *span);
    }
    for (set, member, span) in &entries.value_sets {
        report(objects.insert_value_set_member(*set, member.clone()), &program.value_sets[*set].name, *span);
    }
    for (register, index, value) in &entries.registers {
        let result = objects.set_register(*register, *index, value.clone());
        assert!(result.is_ok(), "the entries reader validated index and width");
    }
    for (meter, index, given) in &entries.meters {
        let result = match index {
            Some(index) => objects.configure_meter(*meter, *index, Some(rates(*given))),
            None => objects.configure_meters(*meter, Some(rates(*given))),
        };
        assert!(result.is_ok(), "the entries reader validated index and rates");
    }
    for crc in &entries.crcs {
        let CrcSettings { polynomial, initial: init, reflect_in, reflect_out, final_xor: xor_out, .. } = *crc;
        let params = |width| CrcParams { width, polynomial, init, reflect_in, reflect_out, xor_out };
        match crc.algorithm {
            Algorithm::Crc16Custom => objects.set_crc16_custom(params(16)),
            Algorithm::Crc32Custom => objects.set_crc32_custom(params(32)),
            other => unreachable!("the entries reader gives no parameters to {other:?}"),
        }
    }
}

fn call(call: &ActionInvocation) -> ActionCall {
    ActionCall { action: call.action, args: call.args.clone() }
}

fn spec(target: &EntryAction) -> ActionSpec {
    match target {
        EntryAction::Action(action) => ActionSpec::Direct(call(action)),
        EntryAction::Member(id) => ActionSpec::Member(*id),
        EntryAction::Group(id) => ActionSpec::Group(*id),
        EntryAction::OneShot(shares) => {
            let weighted = |share: &WeightedAction| WeightedCall {
                call: call(&share.call),
                weight: share.weight,
                watch_port: share.watch_port,
            };
            ActionSpec::OneShot(shares.iter().map(weighted).collect())
        }
    }
}

fn rates(rates: MeterRates) -> MeterConfig {
    MeterConfig { cir: rates.cir, cbs: rates.cburst, pir: rates.pir, pbs: rates.pburst }
}

fn replicas(replicas: &[Replica]) -> Vec<switch::Replica> {
    let copy = |replica: &Replica| {
        let backups = replica.backups.iter().copied();
        switch::Replica::new(replica.port, replica.instance as u16).with_backups(backups)
    };
    replicas.iter().map(copy).collect()
}
