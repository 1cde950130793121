//! Applies a checked entries file to a switch.

use std::sync::Arc;

use diagnostics::{Diagnostic, Diagnostics, Span};
use engine::{ActionCall, ActionSpec, CrcParams, EntryError, GroupMember, MeterConfig, TableEntry, WeightedCall};
use ir::{Algorithm, Program};
use switch::{MirrorSession, MulticastGroup, PortId, SwitchControl};

use crate::{ActionInvocation, CrcSettings, Entries, EntryAction, MeterRates, Replica, TableEntrySpec, WeightedAction};

/// Applies a file to a switch. An entry that the switch rejects, for example because a table is full or has an equal
/// entry, is reported at its position in the file; the others are applied. A caller that must not run with a part of a
/// file discards the switch.
pub fn apply(switch: &mut dyn SwitchControl, entries: &Entries, diagnostics: &mut Diagnostics) {
    let mut applier = Applier::new(switch, diagnostics);
    applier.profiles(entries);
    entries.tables.iter().for_each(|entry| applier.entry(entry.clone()));
    applier.rest(entries);
}

/// Applies the parts of a file: first profiles, then table entries, then the rest.
pub(crate) struct Applier<'a> {
    switch: &'a mut dyn SwitchControl,
    program: Arc<Program>,
    diagnostics: &'a mut Diagnostics,
}

impl<'a> Applier<'a> {
    pub(crate) fn new(switch: &'a mut dyn SwitchControl, diagnostics: &'a mut Diagnostics) -> Self {
        let program = switch.program().clone();
        Applier { switch, program, diagnostics }
    }

    /// Reports what the switch rejects.
    fn report(&mut self, result: Result<(), EntryError>, name: impl Fn(&Program) -> &str, span: Span) {
        if let Err(error) = result {
            let message = format!("`{}` rejected this entry: {error}", name(&self.program));
            self.diagnostics.push(Diagnostic::error("entries-refused", span, message));
        }
    }

    /// Applies action profiles.
    pub(crate) fn profiles(&mut self, entries: &Entries) {
        for member in &entries.members {
            let result = self.switch.objects_mut().insert_member(member.profile, member.id, call(&member.call));
            self.report(result, |program| &program.profiles[member.profile].name, member.span);
        }
        for group in &entries.member_groups {
            let one =
                |&(member, weight, watch_port): &(u32, u32, Option<u32>)| GroupMember { member, weight, watch_port };
            let members = group.members.iter().map(one).collect();
            // A maximum size of 0 means no limit.
            let result = self.switch.objects_mut().insert_group(group.profile, group.id, members, 0);
            self.report(result, |program| &program.profiles[group.profile].name, group.span);
        }
    }

    /// Applies a table entry.
    pub(crate) fn entry(&mut self, entry: TableEntrySpec) {
        let TableEntrySpec { table, keys, priority, target, idle_timeout_ns, meter, span } = entry;
        let metered = meter.map(|meter| (keys.clone(), rates(meter)));
        let written = TableEntry { keys, priority, action: spec(target), metadata: Vec::new(), idle_timeout_ns };
        let objects = self.switch.objects_mut();
        let mut result = objects.insert(table, written);
        if let (Ok(()), Some((keys, rates))) = (&result, metered) {
            result = objects.configure_entry_meter(table, &keys, priority, Some(rates));
        }
        self.report(result, |program| &program.tables[table].name, span);
    }

    /// Applies everything that comes after table entries.
    pub(crate) fn rest(&mut self, entries: &Entries) {
        self.objects(entries);
        let switch = &mut *self.switch;
        for group in &entries.groups {
            let accepted =
                switch.set_multicast_group(group.id, Some(MulticastGroup { replicas: replicas(&group.replicas) }));
            assert!(accepted, "the entries reader validated the group");
        }
        for mirror in &entries.mirrors {
            let replicas = replicas(&mirror.replicas);
            let session =
                MirrorSession { replicas, group: mirror.group, max_bytes: mirror.truncate, ..Default::default() };
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

    /// Applies default actions, value sets, registers, meters and CRC parameters.
    fn objects(&mut self, entries: &Entries) {
        for (table, default, span) in &entries.defaults {
            let result = self.switch.objects_mut().set_default_action(*table, call(default));
            self.report(result, |program| &program.tables[*table].name, *span);
        }
        for (set, member, span) in &entries.value_sets {
            let result = self.switch.objects_mut().insert_value_set_member(*set, member.clone());
            self.report(result, |program| &program.value_sets[*set].name, *span);
        }
        let objects = self.switch.objects_mut();
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
}

fn call(call: &ActionInvocation) -> ActionCall {
    ActionCall { action: call.action, args: call.args.clone() }
}

fn spec(target: EntryAction) -> ActionSpec {
    match target {
        EntryAction::Action(ActionInvocation { action, args }) => ActionSpec::Direct(ActionCall { action, args }),
        EntryAction::Member(id) => ActionSpec::Member(id),
        EntryAction::Group(id) => ActionSpec::Group(id),
        EntryAction::OneShot(shares) => {
            let weighted = |share: WeightedAction| WeightedCall {
                call: call(&share.call),
                weight: share.weight,
                watch_port: share.watch_port,
            };
            ActionSpec::OneShot(shares.into_iter().map(weighted).collect())
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
