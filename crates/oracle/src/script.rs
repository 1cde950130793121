//! Runs packet tests (STF) on the reference evaluator: its packets must be those of the switch, packet by packet.

use std::collections::BTreeMap;
use std::sync::Arc;

use diagnostics::names::shared;
use ir::Program;
use p4_reference::{CrcParameters, MirrorSession, Reference, Replica, Stop};
use stf::{NodeTargets, Op, Relation, RunOptions, Test};

use crate::compare::Verdict;
use crate::traffic;

/// Runs a packet test on the switch and on the evaluator and compares the packets that each received one causes.
pub fn run_script(typed: &p4::typed::Program, program: &Arc<Program>, test: &Test) -> Verdict {
    let report = match test.run(program, &RunOptions::default()) {
        Ok(report) => report,
        Err(error) => return Verdict::Refused(error.to_string()),
    };
    let Some(reference) = Reference::new(typed) else {
        return Verdict::Unsupported("`main` is not a V1Switch".to_owned());
    };
    if program.tables.values().any(|table| shared(&table.name).is_some()) {
        return Verdict::Unsupported("tables that share a name".to_owned());
    }
    let mut run = ScriptRun { reference, program, nodes: Vec::new(), groups: BTreeMap::new() };
    let mut sent = report.packets.iter().enumerate();
    let mut packets = 0;
    for op in test.ops() {
        let Op::Packet { port, data } = op else {
            match run.write(op) {
                Ok(()) => continue,
                Err(verdict) => return verdict,
            }
        };
        let Some((index, received)) = sent.next() else { break };
        let outcome = match run.reference.packet(*port, data, received.time_ns / 1000) {
            Ok(outcome) => outcome,
            Err(Stop::Unsupported(what)) => return Verdict::Unsupported(what),
            Err(Stop::Unspecified(_) | Stop::TooLong) => return Verdict::Agrees { packets, unspecified: true },
            Err(stop) => return Verdict::Differs(format!("packet {index}: the evaluation ends with {stop:?}")),
        };
        let mut want: Vec<(u32, Vec<u8>)> = outcome.sent.into_iter().map(|sent| (sent.port, sent.data)).collect();
        let caused = report.arrivals.iter().filter(|arrival| arrival.cause == Some(index));
        let mut got: Vec<(u32, Vec<u8>)> = caused.map(|arrival| (arrival.port, arrival.data.clone())).collect();
        want.sort();
        got.sort();
        if want != got {
            return Verdict::Differs(format!(
                "packet {index} {data:02x?}:\nreference {want:02x?}\nswitch    {got:02x?}"
            ));
        }
        packets += 1;
    }
    Verdict::Agrees { packets, unspecified: false }
}

struct ScriptRun<'a> {
    reference: Reference<'a>,
    program: &'a Program,
    nodes: Vec<(u16, NodeTargets)>,
    groups: BTreeMap<u32, Vec<u32>>,
}

impl ScriptRun<'_> {
    /// Performs an operation other than a packet.
    fn write(&mut self, op: &Op) -> Result<(), Verdict> {
        let program = self.program;
        let unsupported = |what: &str| Err(Verdict::Unsupported(what.to_owned()));
        let state = &mut self.reference.control_plane;
        match op {
            Op::Insert { table, entry } => {
                let Some(new) = traffic::reference_entry(program, entry) else { return unsupported("action profiles") };
                let entries = &mut state.tables.entry(program.tables[*table].name.clone()).or_default().entries;
                if !entries.iter().any(|old| old.keys == new.keys && old.priority == new.priority) {
                    entries.push(new);
                }
            }
            Op::Default { table, call } => {
                let name = program.tables[*table].name.clone();
                state.tables.entry(name).or_default().default = Some(traffic::action_call(program, call));
            }
            Op::RemoveAll => state.tables.values_mut().for_each(|table| table.entries.clear()),
            Op::Remove(entry) => {
                let keys: Vec<_> = entry.keys.iter().map(traffic::key_match).collect();
                let table = state.tables.entry(program.tables[entry.table].name.clone()).or_default();
                table.entries.retain(|old| old.keys != keys || old.priority != i64::from(entry.priority));
            }
            Op::ValueSetAdd(set, member) => {
                let member = member.iter().map(traffic::key_match).collect();
                state.value_sets.entry(program.value_sets[*set].name.clone()).or_default().push(member);
            }
            Op::ValueSetClear(set) => {
                state.value_sets.remove(&program.value_sets[*set].name);
            }
            Op::RegisterWrite(..) | Op::RegisterReset(_) => return unsupported("registers that the script writes"),
            Op::CheckRegister { register, index, relation: Relation::Equal, value } => {
                let name = &program.registers[*register].name;
                let got = self.reference.register(name, *index).map_or_else(Default::default, |number| number.bits);
                if got != value.to_big() {
                    return Err(Verdict::Differs(format!("{name}[{index}] is {got} in the reference")));
                }
            }
            Op::CrcSet(params) => {
                let custom = CrcParameters {
                    width: params.width,
                    polynomial: params.polynomial,
                    initial: params.init,
                    final_xor: params.xor_out,
                    reflect_in: params.reflect_in,
                    reflect_out: params.reflect_out,
                };
                state.custom_crcs[usize::from(params.width != 16)] = Some(custom);
            }
            Op::MirrorAdd { session, port } => {
                let session_of = MirrorSession { replicas: vec![(*port, 0)], ..MirrorSession::default() };
                self.reference.traffic.mirrors.insert(*session, session_of);
            }
            Op::MirrorAddGroup { session, group } => {
                let session_of = MirrorSession { group: Some(*group), ..MirrorSession::default() };
                self.reference.traffic.mirrors.insert(*session, session_of);
            }
            Op::MirrorDelete(session) => {
                self.reference.traffic.mirrors.remove(session);
            }
            Op::GroupCreate(group) => {
                self.groups.entry(*group).or_default();
            }
            Op::NodeCreate { rid, targets } => self.nodes.push((*rid, targets.clone())),
            Op::NodeUpdate { node, targets } => {
                if let Some(known) = self.nodes.get_mut(*node as usize) {
                    known.1 = targets.clone();
                }
                self.set_groups();
            }
            Op::NodeAssociate { group, node } => {
                self.groups.entry(*group).or_default().push(*node);
                self.set_groups();
            }
            Op::LagMembers { .. } => return unsupported("link aggregation groups"),
            Op::PortUp { .. } => return unsupported("the state of ports"),
            Op::QueueRate { .. } | Op::QueueDepth { .. } => return unsupported("queues"),
            Op::MeterSet(..) | Op::MeterSetAll(..) => return unsupported("meters"),
            // Reads, counters, digests and time-outs change no packet.
            _ => {}
        }
        Ok(())
    }

    fn set_groups(&mut self) {
        for (group, nodes) in &self.groups {
            let mut replicas: Vec<Replica> = Vec::new();
            for (rid, targets) in nodes.iter().filter_map(|node| self.nodes.get(*node as usize)) {
                let mut ports: Vec<u32> = targets.replicas.iter().map(|copy| copy.port).collect();
                ports.sort_unstable();
                ports.dedup();
                replicas.extend(ports.into_iter().map(|port| (port, u64::from(*rid))));
            }
            self.reference.traffic.groups.insert(*group, replicas);
        }
    }
}
