//! Binds a script to a program: names become ids, numbers become values of the right width. Handles, which the
//! switch counts from 0, are predicted here.

mod call;
mod lookup;

use std::collections::{BTreeMap, BTreeSet};

use diagnostics::{Diagnostic, Diagnostics, Span};
use engine::{ActionSpec, GroupMember, MeterConfig, TableEntry};
use ir::{ActionId, KeyValue, MatchKind, ProfileId, Program, TableId};

use crate::keys::unmentioned;
use crate::plan::{EntryRef, Op, Test};
use crate::script::{ActionCallText, CommandKind, ElementRef, EntryTarget, MeterRate, Script, Word, WrittenValue};
use lookup::find_key;

/// The largest port that every test has. Larger ones, which a program with wide ports has, exist if the script names
/// them.
const MAX_CONNECTED: u32 = v1model::DROP_PORT - 1;

/// Binds a script to the program under test. Returns `None` after an error; all errors are in `diagnostics` then.
pub fn bind(script: &Script, program: &Program, diagnostics: &mut Diagnostics) -> Option<Test> {
    let before = diagnostics.error_count();
    let mut binder =
        Binder { program, diagnostics, entries: Vec::new(), ids: BTreeMap::new(), handles: BTreeMap::new() };
    let max_port = u32::from(v1model::max_port(program));
    for (_, span) in script.ports.iter().filter(|(port, _)| *port > max_port) {
        let message = format!("ports are numbered 0 to {max_port}");
        binder.diagnostics.push(Diagnostic::error("stf-value", *span, message));
    }
    let connected = (0..=max_port.min(MAX_CONNECTED)).chain(script.ports.iter().map(|(port, _)| *port)).collect();
    let mut test = Test { ops: Vec::new(), connected, ports: BTreeSet::new(), strict: false };
    for command in &script.commands {
        match &command.kind {
            CommandKind::Packet { port, .. } | CommandKind::Expect { port, .. } => {
                test.ports.insert(*port);
            }
            CommandKind::NoPacket => test.strict = true,
            _ => {}
        }
        if let Some(op) = binder.op(&command.kind) {
            test.ops.push((command.span, op));
        }
    }
    (diagnostics.error_count() == before).then_some(test)
}

struct Binder<'a> {
    program: &'a Program,
    diagnostics: &'a mut Diagnostics,
    /// The entries so far.
    entries: Vec<EntryRef>,
    /// The entries that have a name.
    ids: BTreeMap<String, EntryRef>,
    /// The next numbers of members and groups of each profile.
    handles: BTreeMap<ProfileId, (u32, u32)>,
}

impl Binder<'_> {
    fn op(&mut self, what: &CommandKind) -> Option<Op> {
        let program = self.program;
        Some(match what {
            CommandKind::Packet { port, data } => Op::Packet { port: *port, data: data.clone() },
            CommandKind::Expect { port, pattern } => Op::Expect { port: *port, pattern: pattern.clone() },
            CommandKind::NoPacket => return None,
            CommandKind::Wait => Op::Wait,
            CommandKind::Add { table, priority, keys, target, id } => {
                let table = self.table(table)?;
                return self.entry(table, *priority, keys, target, id.as_ref());
            }
            CommandKind::SetDefault { table, call } => {
                let table = self.table(table)?;
                Op::Default { table, call: self.call(call, &self.actions_of(table), &self.program.tables[table].name)? }
            }
            CommandKind::RemoveAll => Op::RemoveAll,
            CommandKind::Remove { id } => Op::Remove(self.named_entry(id)?),
            CommandKind::CheckCounter { name, element, check } => {
                Op::CheckCounter { cell: self.counter(name, element)?, check: *check }
            }
            CommandKind::CheckRegister { name, index, relation, value } => {
                let register = self.register(name)?;
                let value = self.value(value, program.registers[register].width)?;
                Op::CheckRegister { register, index: *index, relation: *relation, value }
            }
            CommandKind::CheckDigest { name, values } => return self.check_digest(name, values),
            CommandKind::CheckIdle { entries } => {
                let named = |name: &Word| Some((name.text.clone(), self.named_entry(name)?));
                Op::CheckIdle(entries.iter().map(named).collect::<Option<_>>()?)
            }
            CommandKind::TimeoutSet { entry, ms } => return self.timeout_set(entry, *ms),
            CommandKind::MirrorAdd { session, port } => Op::MirrorAdd { session: *session, port: *port },
            CommandKind::MirrorAddGroup { session, group } => Op::MirrorAddGroup { session: *session, group: *group },
            CommandKind::MirrorDelete { session } => Op::MirrorDelete(*session),
            CommandKind::MirrorGet { session } => Op::MirrorGet(*session),
            CommandKind::GroupCreate { group } => Op::GroupCreate(*group),
            CommandKind::NodeCreate { rid, targets } => Op::NodeCreate { rid: *rid, targets: targets.clone() },
            CommandKind::NodeUpdate { node, targets } => Op::NodeUpdate { node: *node, targets: targets.clone() },
            CommandKind::LagMembers { lag, ports } => Op::LagMembers { lag: *lag, ports: ports.clone() },
            CommandKind::NodeAssociate { group, node } => Op::NodeAssociate { group: *group, node: *node },
            CommandKind::CounterRead { name, index } => {
                Op::CounterRead(self.counter(name, &ElementRef::Index(*index))?)
            }
            CommandKind::CounterWrite { name, index, packets, bytes } => {
                let value = engine::CounterValue { packets: *packets, bytes: *bytes };
                Op::CounterWrite(self.counter(name, &ElementRef::Index(*index))?, value)
            }
            CommandKind::RegisterRead { name, index } => Op::RegisterRead(self.register(name)?, *index),
            CommandKind::RegisterWrite { name, index, value } => {
                let register = self.register(name)?;
                Op::RegisterWrite(register, *index, self.value(value, program.registers[register].width)?)
            }
            CommandKind::RegisterReset { name } => Op::RegisterReset(self.register(name)?),
            CommandKind::MeterGet { name, index } => {
                let meter = self.meter(name)?;
                Op::MeterGet(self.meter_cell(meter, *index))
            }
            CommandKind::MeterSet { name, index, rates } => {
                let meter = self.meter(name)?;
                let config = meter_config(rates);
                match index {
                    Some(index) => Op::MeterSet(self.meter_cell(meter, *index), config),
                    None => Op::MeterSetAll(meter, config),
                }
            }
            CommandKind::MemberCreate { profile, member, call } => return self.member_create(profile, *member, call),
            CommandKind::MemberGroupCreate { profile, group, members } => {
                let profile = self.profile(profile)?;
                let (_, groups) = self.handles.entry(profile).or_default();
                let members = members.iter().map(|member| GroupMember { member: *member, weight: 1, watch_port: None });
                Op::MemberGroupCreate(profile, number(groups, *group), members.collect())
            }
            CommandKind::MemberJoin { profile, member, group, weight, watch_port } => {
                let member = GroupMember { member: *member, weight: *weight, watch_port: *watch_port };
                Op::MemberJoin { profile: self.profile(profile)?, group: *group, member }
            }
            CommandKind::ValueSetAdd { name, values } => return self.value_set_add(name, values),
            CommandKind::ValueSetClear { name } => Op::ValueSetClear(self.value_set(name)?),
            CommandKind::QueueRate { pps, port, queue } => Op::QueueRate { pps: *pps, port: *port, queue: *queue },
            CommandKind::QueueDepth { packets, port, queue } => {
                Op::QueueDepth { packets: *packets, port: *port, queue: *queue }
            }
            CommandKind::PortUp { port, up } => Op::PortUp { port: *port, up: *up },
            CommandKind::CrcSet(params) => Op::CrcSet(*params),
        })
    }

    fn check_digest(&mut self, name: &Word, values: &[Word]) -> Option<Op> {
        let program = self.program;
        let all: Vec<_> = program.digests.iter().map(|(id, digest)| (id, digest.name.as_str())).collect();
        let digest = self.find(name, "digest", &all)?;
        let fields = &program.digests[digest].fields;
        if fields.len() != values.len() {
            let message = format!("the digest has {} fields, but {} values are given", fields.len(), values.len());
            return self.error("stf-value", name.span, message);
        }
        let values = fields.iter().zip(values).map(|((_, width), value)| self.value(value, *width));
        Some(Op::CheckDigest { digest, values: values.collect::<Option<_>>()? })
    }

    fn timeout_set(&mut self, name: &Word, ms: u64) -> Option<Op> {
        let entry = self.named_entry(name)?;
        let table = &self.program.tables[entry.table];
        if !table.idle_timeout {
            let message = format!("entries of `{}` do not time out", table.name);
            let help = "only tables with `support_timeout = true` support timeouts";
            self.diagnostics.push(Diagnostic::error("stf-value", name.span, message).help(help));
            return None;
        }
        Some(Op::TimeoutSet { entry, ns: ms.saturating_mul(1_000_000) })
    }

    fn member_create(&mut self, profile: &Word, member: Option<u32>, call: &ActionCallText) -> Option<Op> {
        let program = self.program;
        let profile = self.profile(profile)?;
        let mut actions = Vec::new();
        for (id, _) in program.tables.iter().filter(|(_, table)| table.profile == Some(profile)) {
            actions.extend(self.actions_of(id));
        }
        // Tables of one profile may share actions; a name denotes one all the same.
        actions.sort();
        actions.dedup();
        let call = self.call(call, &actions, &program.profiles[profile].name)?;
        let (members, _) = self.handles.entry(profile).or_default();
        Some(Op::MemberCreate(profile, number(members, member), call))
    }

    fn value_set_add(&mut self, name: &Word, values: &[WrittenValue]) -> Option<Op> {
        let set = self.value_set(name)?;
        let fields = &self.program.value_sets[set].fields;
        if fields.len() != values.len() {
            let message = format!("a member has {} fields, but {} values are given", fields.len(), values.len());
            return self.error("stf-value", name.span, message);
        }
        let values = fields.iter().zip(values).map(|((_, width, kind), value)| self.key(value, *kind, *width));
        Some(Op::ValueSetAdd(set, values.collect::<Option<_>>()?))
    }

    fn actions_of(&self, table: TableId) -> Vec<ActionId> {
        self.program.tables[table].actions.iter().map(|action| action.action).collect()
    }

    fn entry(
        &mut self,
        id: TableId,
        priority: Option<(u32, Span)>,
        keys: &[(Word, WrittenValue)],
        target: &EntryTarget,
        name: Option<&Word>,
    ) -> Option<Op> {
        let table = &self.program.tables[id];
        let matched: Vec<&ir::Key> = table.keys.iter().filter(|key| key.kind != MatchKind::Selector).collect();
        let mut values: Vec<KeyValue> = matched.iter().map(|key| unmentioned(key.kind, key.width)).collect();
        for (name, written) in keys {
            let names: Vec<&str> = matched.iter().map(|key| key.name.as_str()).collect();
            let Some(at) = find_key(&name.text, &names) else {
                let message = format!("`{}` has no key `{}`", table.name, name.text);
                let all: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                let help =
                    if all.is_empty() { "it has no keys".to_owned() } else { format!("it has {}", all.join(", ")) };
                self.diagnostics.push(Diagnostic::error("stf-unknown", name.span, message).help(help));
                return None;
            };
            values[at] = self.key(written, matched[at].kind, matched[at].width)?;
        }
        let action = match target {
            EntryTarget::Action(call) => {
                let call = self.call(call, &self.actions_of(id), &table.name)?;
                match table.profile.map(|profile| self.program.profiles[profile].selector.is_some()) {
                    // With a selector this would be a group with this one action, which the runner cannot express.
                    Some(true) => ActionSpec::OneShot(vec![engine::WeightedCall { call, weight: 1, watch_port: None }]),
                    _ => ActionSpec::Direct(call),
                }
            }
            EntryTarget::Member(member) => ActionSpec::Member(*member),
            EntryTarget::Group(group) => ActionSpec::Group(*group),
        };
        let by_priority =
            |key: &&ir::Key| matches!(key.kind, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional);
        // The switch counts priorities from 1, scripts from 0.
        let priority = match (matched.iter().any(by_priority), priority) {
            (true, Some((priority, span))) => match i32::try_from(priority).ok().and_then(|p| p.checked_add(1)) {
                Some(priority) => priority,
                None => return self.error("stf-value", span, format!("the priority {priority} is too large")),
            },
            (true, None) => 1,
            (false, _) => 0,
        };
        let entry = EntryRef { table: id, keys: values.clone(), priority };
        if let Some(name) = name {
            self.ids.insert(name.text.clone(), entry.clone());
        }
        self.entries.push(entry);
        let entry = TableEntry { keys: values, priority, action, metadata: Vec::new(), idle_timeout_ns: 0 };
        Some(Op::Insert { table: id, entry })
    }
}

/// Returns the number that a script gives a member or group, or the next one.
fn number(next: &mut u32, given: Option<u32>) -> u32 {
    let number = given.unwrap_or(*next);
    *next = (*next).max(number.saturating_add(1));
    number
}

fn meter_config(rates: &[MeterRate; 2]) -> MeterConfig {
    // Units per microsecond to units per second. A rate that is too large counts as the maximum.
    let per_second = |rate: &MeterRate| (rate.per_us * 1e6).round() as u64;
    MeterConfig { cir: per_second(&rates[0]), cbs: rates[0].burst, pir: per_second(&rates[1]), pbs: rates[1].burst }
}
