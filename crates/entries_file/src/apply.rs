//! Applies a checked entries file to a switch.

use std::collections::BTreeMap;
use std::sync::Arc;

use cranelift_entity::SecondaryMap;
use diagnostics::{Diagnostic, Diagnostics, Span};
use engine::{ActionCall, ActionSpec, CrcParams, EntryError, GroupMember, MeterConfig, TableEntry, WeightedCall};
use ir::{Algorithm, ProfileId, Program, TableId, ValueSetId};
use switch::{MirrorSession, MulticastGroup, PortId, SwitchControl};

use crate::{ActionInvocation, CrcSettings, Entries, EntryAction, MeterRates, Replica, TableEntrySpec, WeightedAction};

/// Applies a file to a switch. An entry that the switch rejects, for example because it has an equal entry, is reported
/// at its position in the file; the others are applied. A full table is reported once, at the first entry that does not
/// fit. A caller that must not run with a part of a file discards the switch.
pub fn apply(switch: &mut dyn SwitchControl, entries: &Entries, diagnostics: &mut Diagnostics) {
    let mut applier = Applier::new(switch, diagnostics);
    applier.profiles(entries);
    let mut counts = SecondaryMap::new();
    entries.tables.iter().for_each(|entry| counts[entry.table] += 1);
    applier.begin_load(&counts);
    entries.tables.iter().for_each(|entry| applier.entry(entry.clone()));
    applier.rest(entries);
}

/// Applies the parts of a file: first profiles, then table entries, then the rest.
pub(crate) struct Applier<'a> {
    switch: &'a mut dyn SwitchControl,
    program: Arc<Program>,
    diagnostics: &'a mut Diagnostics,
    /// Tables that are being loaded.
    loading: Vec<TableId>,
    full: BTreeMap<Container, Overflow>,
}

/// Minimum number of entries of a file for which a table prepares itself.
const MANY: usize = 1024;

/// An object of the program that holds a limited number of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Container {
    Table(TableId),
    Profile(ProfileId),
    ValueSet(ValueSetId),
}

impl Container {
    fn name(self, program: &Program) -> &str {
        match self {
            Container::Table(id) => &program.tables[id].name,
            Container::Profile(id) => &program.profiles[id].name,
            Container::ValueSet(id) => &program.value_sets[id].name,
        }
    }
}

/// The entries that a full object has no room for.
struct Overflow {
    /// Number of entries that it holds.
    size: u64,
    /// Number of entries that do not fit.
    rejected: u64,
    /// The first one.
    first: Span,
}

impl Overflow {
    fn diagnostic(&self, container: Container, program: &Program) -> Diagnostic {
        let (name, wanted) = (container.name(program), self.size.saturating_add(self.rejected));
        let entries = if self.rejected == 1 { "entry of the file does" } else { "entries of the file do" };
        let message = format!("`{name}` is full: its size is {}; {} {entries} not fit", self.size, self.rejected);
        let fix = match container {
            Container::Table(id) if program.tables[id].size.is_none() => {
                format!("the table has no `size` property, which means {}: add `size = {wanted};`", self.size)
            }
            Container::Table(_) => format!("set the `size` property of the table to `size = {wanted};` or more"),
            Container::Profile(_) => format!("declare the action profile or selector with a size of at least {wanted}"),
            Container::ValueSet(_) => format!("declare it as `value_set<...>({wanted})` or larger"),
        };
        Diagnostic::error("entries-refused", self.first, message).help(fix)
    }
}

impl<'a> Applier<'a> {
    pub(crate) fn new(switch: &'a mut dyn SwitchControl, diagnostics: &'a mut Diagnostics) -> Self {
        let program = switch.program().clone();
        Applier { switch, program, diagnostics, loading: Vec::new(), full: BTreeMap::new() }
    }

    /// Reports an entry that the switch rejects, or counts it if there is no room.
    fn report(&mut self, result: Result<(), EntryError>, container: Container, span: Span) {
        match result {
            Ok(()) => {}
            Err(EntryError::Full(size)) => {
                self.full.entry(container).or_insert(Overflow { size, rejected: 0, first: span }).rejected += 1;
            }
            Err(error) => {
                let message = format!("`{}` rejected this entry: {error}", container.name(&self.program));
                self.diagnostics.push(Diagnostic::error("entries-refused", span, message));
            }
        }
    }

    /// Applies action profiles.
    pub(crate) fn profiles(&mut self, entries: &Entries) {
        for member in &entries.members {
            let result = self.switch.objects_mut().insert_member(member.profile, member.id, call(&member.call));
            self.report(result, Container::Profile(member.profile), member.span);
        }
        for group in &entries.member_groups {
            let one =
                |&(member, weight, watch_port): &(u32, u32, Option<u32>)| GroupMember { member, weight, watch_port };
            let members = group.members.iter().map(one).collect();
            // A maximum size of 0 means no limit.
            let result = self.switch.objects_mut().insert_group(group.profile, group.id, members, 0);
            self.report(result, Container::Profile(group.profile), group.span);
        }
    }

    /// Announces the table entries, by the number of those of each table.
    pub(crate) fn begin_load(&mut self, counts: &SecondaryMap<TableId, usize>) {
        for (table, count) in counts.iter().filter(|(_, count)| **count >= MANY) {
            self.switch.objects_mut().begin_load(table, *count);
            self.loading.push(table);
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
        self.report(result, Container::Table(table), span);
    }

    /// Applies everything that comes after table entries, and reports what is full.
    pub(crate) fn rest(mut self, entries: &Entries) {
        self.loading.iter().for_each(|table| self.switch.objects_mut().finish_load(*table));
        self.objects(entries);
        for (container, overflow) in &self.full {
            self.diagnostics.push(overflow.diagnostic(*container, &self.program));
        }
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
            self.report(result, Container::Table(*table), *span);
        }
        for (set, member, span) in &entries.value_sets {
            let result = self.switch.objects_mut().insert_value_set_member(*set, member.clone());
            self.report(result, Container::ValueSet(*set), *span);
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
