//! Drives a switch through a test, in virtual time.

use std::collections::VecDeque;
use std::sync::Arc;

use bits::Bits;
use engine::{CounterValue, EntryError, GroupMember, MeterConfig};
use ir::{CounterId, DigestId, MeterId, Program};
use source::Span;
use switch::{Device, Frame, MirrorSession, MulticastGroup, Notification, PortId, Replica, Time};
use v1model::{Config, LoadError, Switch};

use crate::plan::{Cell, EntryRef, Op, Test};
use crate::report::{Arrival, Expectation, Failure, Reading, Report, Sent, compare};
use crate::script::Relation;

/// How a test is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOptions {
    /// The seed of everything random in the program.
    pub seed: u64,
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions { seed: 1 }
    }
}

/// How long the first packet after a write to the switch waits, as with the runner for BMv2; `wait` waits so too.
const AFTER_WRITE_NS: u64 = 1_000_000_000;
/// How long other packets wait.
const BETWEEN_PACKETS_NS: u64 = 1_000_000;
/// How long queues have at the end to send what they hold.
const AT_THE_END_NS: u64 = 3_600_000_000_000;
/// How often the switch may be called for what it does by itself in one stretch of waiting.
const MAX_EVENTS: usize = 1_000_000;
/// Bytes that the switch may send in one test; all of them are kept to the end.
const MAX_SENT_BYTES: usize = 1 << 28;
/// Traces that are kept; the packets behind them are not traced.
const MAX_TRACES: usize = 1024;

impl Test {
    /// Runs the test on a switch with this program.
    ///
    /// # Errors
    /// If the program is not a v1model program.
    ///
    /// # Panics
    /// If `program` is not the one that the test was bound to.
    pub fn run(&self, program: &Arc<Program>, options: &RunOptions) -> Result<Report, LoadError> {
        let ports = (0..v1model::DROP_PORT).map(PortId).collect();
        // There is no control plane here that packets could go to: all ports are alike.
        let config = Config { ports, cpu_port: None, seed: options.seed, min_frame: 0, ..Config::default() };
        let mut run = Run {
            switch: Switch::new(program.clone(), config)?,
            program,
            now: Time::from_ns(AFTER_WRITE_NS),
            wrote: false,
            report: Report::default(),
            expected: Vec::new(),
            nodes: Vec::new(),
            groups: Vec::new(),
            digests: VecDeque::new(),
            sent_bytes: 0,
            inserted: Vec::new(),
        };
        for (at, op) in &self.ops {
            if let Err(refusal) = run.op(*at, op) {
                run.report.failures.push(Failure::Refused { at: *at, message: refusal });
            }
        }
        run.wait(AT_THE_END_NS);
        let Run { mut report, expected, .. } = run;
        compare(&mut report, expected, |port| self.strict || self.ports.contains(&port));
        Ok(report)
    }
}

/// A multicast node: a replication id and ports.
struct Node {
    rid: u16,
    ports: Vec<u32>,
}

struct Run<'a> {
    switch: Switch,
    program: &'a Program,
    now: Time,
    /// Whether something was written since the last packet.
    wrote: bool,
    report: Report,
    expected: Vec<Expectation>,
    nodes: Vec<Node>,
    /// Multicast groups and their nodes.
    groups: Vec<(u32, Vec<u32>)>,
    /// Digests that nobody asked for yet.
    digests: VecDeque<(DigestId, Vec<Bits>)>,
    /// Entries to take away again.
    inserted: Vec<EntryRef>,
    /// What left the switch so far, in bytes.
    sent_bytes: usize,
}

/// What the switch says where it refuses.
type Done = Result<(), String>;

fn refused(result: Result<(), EntryError>) -> Done {
    result.map_err(|error| error.to_string())
}

impl Run<'_> {
    fn op(&mut self, at: Span, op: &Op) -> Done {
        match op {
            Op::Packet { .. } if self.sent_bytes > MAX_SENT_BYTES => {
                return Err(format!("the test has made the switch send more than {MAX_SENT_BYTES} bytes"));
            }
            Op::Packet { port, data } => self.packet(at, *port, data),
            Op::Expect { port, pattern } => {
                let after = self.report.packets.len().checked_sub(1);
                self.expected.push(Expectation { at, port: *port, pattern: pattern.clone(), after });
            }
            Op::Wait => self.wait(AFTER_WRITE_NS),
            Op::CheckCounter { cell, check } => return self.check_counter(at, cell, *check),
            Op::CheckRegister { register, index, relation, value } => {
                let got = self.switch.objects().register(*register, *index).map_err(|error| error.to_string())?;
                if !relation.holds(got.to_big(), value.to_big()) {
                    let message = format!(
                        "`{}[{index}]` is {got:#x}, not {} {value:#x}",
                        self.program.registers[*register].name,
                        relation.sign()
                    );
                    self.report.failures.push(Failure::Check { at, message });
                }
            }
            Op::CheckDigest { digest, values } => self.check_digest(at, *digest, values),
            Op::CounterRead(cell) => {
                let CounterValue { packets, bytes } = self.counter(cell)?;
                self.reading(at, format!("{packets} packets, {bytes} bytes"));
            }
            Op::RegisterRead(register, index) => {
                let value = self.switch.objects().register(*register, *index).map_err(|error| error.to_string())?;
                let text = format!("{}[{index}] = {value:#x}", self.program.registers[*register].name);
                self.reading(at, text);
            }
            Op::MeterGet(cell) => {
                let text = match self.meter(cell)? {
                    Some(MeterConfig { cir, cbs, pir, pbs }) => {
                        format!("committed {cir}/s, burst {cbs}; peak {pir}/s, burst {pbs}")
                    }
                    None => "no rates".to_owned(),
                };
                self.reading(at, text);
            }
            Op::MirrorGet(session) => {
                let Some(found) = self.switch.mirror_sessions().get(*session) else {
                    return Err(format!("there is no mirror session {session}"));
                };
                let ports: Vec<String> = found.replicas.iter().map(|copy| format!("port {}", copy.port)).collect();
                let group = found.group.map(|group| format!("multicast group {group}"));
                let text = ports.into_iter().chain(group).collect::<Vec<_>>().join(", ");
                self.reading(at, format!("mirror session {session}: {text}"));
            }
            write => {
                self.wrote = true;
                return self.write(write);
            }
        }
        Ok(())
    }

    /// What changes the state of the switch.
    fn write(&mut self, op: &Op) -> Done {
        let now = self.now.as_ns();
        let objects = self.switch.objects_mut();
        objects.advance_clock(now);
        match op {
            Op::Insert { table, entry } => {
                refused(objects.insert(*table, entry.clone()))?;
                let (keys, priority) = (entry.keys.clone(), entry.priority);
                self.inserted.push(EntryRef { table: *table, keys, priority });
                Ok(())
            }
            Op::Default { table, call } => refused(objects.set_default_action(*table, call.clone())),
            Op::RemoveAll => {
                for EntryRef { table, keys, priority } in self.inserted.drain(..) {
                    // It may be gone, by its name.
                    let _ = objects.delete(table, &keys, priority);
                }
                Ok(())
            }
            Op::Remove(EntryRef { table, keys, priority }) => {
                refused(objects.delete(*table, keys, *priority).map(drop))
            }
            Op::CounterWrite(cell, value) => match cell {
                Cell::Array(counter, index) => refused(objects.set_counter(*counter, *index, *value)),
                Cell::Entry(entry) => {
                    refused(objects.set_entry_counter(entry.table, &entry.keys, entry.priority, *value))
                }
                Cell::Nowhere(handle) => Err(no_entry(*handle)),
            },
            Op::RegisterWrite(register, index, value) => {
                refused(objects.set_register(*register, *index, value.clone()))
            }
            Op::RegisterReset(register) => {
                refused(objects.fill_register(*register, Bits::zero(self.program.registers[*register].width)))
            }
            Op::MeterSet(cell, config) => match cell {
                Cell::Array(meter, index) => refused(objects.configure_meter(*meter, *index, Some(*config))),
                Cell::Entry(EntryRef { table, keys, priority }) => {
                    refused(objects.configure_entry_meter(*table, keys, *priority, Some(*config)))
                }
                Cell::Nowhere(handle) => Err(no_entry(*handle)),
            },
            Op::MeterSetAll(meter, config) => refused(objects.configure_meters(*meter, Some(*config))),
            Op::MemberCreate(profile, id, call) => refused(objects.insert_member(*profile, *id, call.clone())),
            Op::MemberGroupCreate(profile, id) => refused(objects.insert_group(*profile, *id, Vec::new(), 0)),
            Op::MemberJoin { profile, member, group } => {
                let members = objects.group(*profile, *group).ok_or(format!("there is no group {group}"))?;
                let mut members = members.to_vec();
                members.push(GroupMember { member: *member, weight: 1, watch_port: None });
                refused(objects.modify_group(*profile, *group, members))
            }
            Op::ValueSetAdd(set, member) => refused(objects.insert_value_set_member(*set, member.clone())),
            Op::ValueSetClear(set) => {
                objects.clear_value_set(*set);
                Ok(())
            }
            other => self.traffic(other),
        }
    }

    /// What changes the traffic manager.
    fn traffic(&mut self, op: &Op) -> Done {
        match op {
            Op::MirrorAdd { session, port } => {
                self.switch.set_mirror_session(*session, Some(MirrorSession::to_port(*port)));
            }
            Op::MirrorAddGroup { session, group } => {
                self.switch.set_mirror_session(*session, Some(MirrorSession::to_group(*group)));
            }
            Op::MirrorDelete(session) => {
                self.switch.set_mirror_session(*session, None);
            }
            Op::GroupCreate(group) => {
                if self.groups.iter().any(|(id, _)| id == group) {
                    return Err(format!("there is a multicast group {group} already"));
                }
                self.groups.push((*group, Vec::new()));
                return self.set_group(*group);
            }
            Op::NodeCreate { rid, ports } => self.nodes.push(Node { rid: *rid, ports: ports.clone() }),
            Op::NodeUpdate { node, ports } => {
                self.node(*node)?.ports = ports.clone();
                for (group, nodes) in self.groups.clone() {
                    if nodes.contains(node) {
                        self.set_group(group)?;
                    }
                }
            }
            Op::NodeAssociate { group, node } => {
                self.node(*node)?;
                let found = self.groups.iter_mut().find(|(id, _)| id == group);
                let (_, nodes) = found.ok_or(format!("there is no multicast group {group}"))?;
                nodes.push(*node);
                return self.set_group(*group);
            }
            Op::QueueRate { pps, port, queue } => {
                let rate = (*pps > 0).then_some(*pps);
                let ports = port.map_or(0..v1model::DROP_PORT, |port| port..port + 1);
                ports.for_each(|port| self.switch.set_queue_rate(PortId(port), *queue, rate));
            }
            Op::QueueDepth { packets, port, queue } => match port {
                Some(port) => self.switch.set_queue_depth(PortId(*port), *queue, *packets),
                None => self.switch.set_all_queue_depths(*packets),
            },
            Op::PortUp { port, up } => {
                self.switch.set_port_up(PortId(*port), *up);
            }
            other => unreachable!("{other:?} does not write to the switch"),
        }
        Ok(())
    }

    fn node(&mut self, node: u32) -> Result<&mut Node, String> {
        self.nodes.get_mut(node as usize).ok_or_else(|| format!("there is no multicast node {node}; the first is 0"))
    }

    /// Tells the switch of a group as it is now.
    fn set_group(&mut self, group: u32) -> Done {
        let nodes = self.groups.iter().find(|(id, _)| *id == group).map(|(_, nodes)| nodes.as_slice());
        let mut replicas = Vec::new();
        for node in nodes.unwrap_or_default() {
            let Node { rid, ports } = &self.nodes[*node as usize];
            // A node has a set of ports; BMv2 goes through it in order.
            let ports: std::collections::BTreeSet<u32> = ports.iter().copied().collect();
            replicas.extend(ports.into_iter().map(|port| Replica::new(port, *rid)));
        }
        let made = self.switch.set_multicast_group(group, Some(MulticastGroup { replicas }));
        if made { Ok(()) } else { Err(format!("multicast group {group} cannot be, or has too many copies")) }
    }

    fn packet(&mut self, at: Span, port: u32, data: &[u8]) {
        let pause = if self.wrote { AFTER_WRITE_NS } else { BETWEEN_PACKETS_NS };
        self.wrote = false;
        self.wait(pause);
        let index = self.report.packets.len();
        let frame = Frame { port: PortId(port), data: data.to_vec() };
        let mut out = Vec::new();
        let mut sent = Sent { at, port, data: data.to_vec(), time_ns: self.now.as_ns(), trace: None };
        if index < MAX_TRACES {
            sent.trace = Some(self.switch.trace(self.now, frame, &mut out));
        } else {
            self.switch.step(self.now, &mut vec![frame], &mut out);
        }
        self.report.packets.push(sent);
        self.take(out, Some(index));
    }

    /// Lets time pass, and the switch do what it does by itself meanwhile.
    fn wait(&mut self, ns: u64) {
        let until = self.now.after_ns(ns);
        for _ in 0..MAX_EVENTS {
            match self.switch.next_event() {
                Some(time) if time <= until => self.now = self.now.max(time),
                _ => break,
            }
            let mut out = Vec::new();
            self.switch.step(self.now, &mut Vec::new(), &mut out);
            self.take(out, None);
        }
        self.now = until;
    }

    fn take(&mut self, out: Vec<Frame>, cause: Option<usize>) {
        let time_ns = self.now.as_ns();
        self.sent_bytes += out.iter().map(|frame| frame.data.len() + 64).sum::<usize>();
        let arrivals = out.into_iter().map(|frame| Arrival { port: frame.port.0, data: frame.data, cause, time_ns });
        self.report.arrivals.extend(arrivals);
        for notification in self.switch.take_notifications() {
            if let Notification::Digest { digest, values, .. } = notification {
                self.digests.push_back((digest, values));
            }
        }
    }

    fn counter(&self, cell: &Cell<CounterId>) -> Result<CounterValue, String> {
        let objects = self.switch.objects();
        let value = match cell {
            Cell::Array(counter, index) => objects.counter(*counter, *index),
            Cell::Entry(entry) => objects.get(entry.table, &entry.keys, entry.priority).map(|it| it.counter),
            Cell::Nowhere(handle) => return Err(no_entry(*handle)),
        };
        value.map_err(|error| error.to_string())
    }

    fn meter(&self, cell: &Cell<MeterId>) -> Result<Option<MeterConfig>, String> {
        let objects = self.switch.objects();
        let config = match cell {
            Cell::Array(meter, index) => objects.meter_config(*meter, *index),
            Cell::Entry(entry) => objects.get(entry.table, &entry.keys, entry.priority).map(|it| it.meter.config()),
            Cell::Nowhere(handle) => return Err(no_entry(*handle)),
        };
        config.map_err(|error| error.to_string())
    }

    fn check_counter(&mut self, at: Span, cell: &Cell<CounterId>, check: Option<(bool, Relation, u64)>) -> Done {
        let value = self.counter(cell)?;
        let Some((in_bytes, relation, want)) = check else { return Ok(()) };
        let (got, unit) = if in_bytes { (value.bytes, "bytes") } else { (value.packets, "packets") };
        if !relation.holds(got, want) {
            let message = format!("the counter has {got} {unit}, not {} {want}", relation.sign());
            self.report.failures.push(Failure::Check { at, message });
        }
        Ok(())
    }

    fn check_digest(&mut self, at: Span, digest: DigestId, values: &[Bits]) {
        let name = &self.program.digests[digest].name;
        let listed = |values: &[Bits]| values.iter().map(|v| format!("{v:#x}")).collect::<Vec<_>>().join(" ");
        let message = match self.digests.pop_front() {
            None => format!("no digest was sent that was not asked for before; `{name}` was to be"),
            Some((other, _)) if other != digest => {
                format!("the digest `{}` was sent, not `{name}`", self.program.digests[other].name)
            }
            Some((_, got)) if got != values => {
                format!("the digest `{name}` has the values {}, not {}", listed(&got), listed(values))
            }
            Some(_) => return,
        };
        self.report.failures.push(Failure::Check { at, message });
    }

    fn reading(&mut self, at: Span, text: String) {
        self.report.readings.push(Reading { at, text });
    }
}

fn no_entry(handle: u64) -> String {
    format!("there is no entry {handle}; the first is 0")
}
