//! Executes a test on a switch, in virtual time.

mod checks;
mod refusal;
mod traffic;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bits::Bits;
use diagnostics::Span;
use engine::{EntryError, TableEntry};
use ir::{DigestId, Program};
use switch::{Device, Egress, Frame, HeadroomBuf, Notification, PortId, Time};
use v1model::{Config, LoadError, Switch};

use crate::plan::{Cell, EntryRef, Op, Test};
use crate::report::{Arrival, Expectation, Failure, Report, Sent, compare};
pub use refusal::CommandRefusal;
use traffic::MulticastNode;

/// Options of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOptions {
    /// Seed of the program's random numbers.
    pub seed: u64,
    /// The path of packets through the switch. It affects only what is reported about them.
    pub path: PacketPath,
}

/// A path of packets through the switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacketPath {
    /// Interpreted, with traces.
    #[default]
    Traced,
    /// By `step`, as in a simulated network.
    HandedOver,
    /// In place, as on live ports.
    InPlace,
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions { seed: 1, path: PacketPath::default() }
    }
}

/// A switch as a script leaves it.
pub struct PreparedTest {
    /// The switch.
    pub switch: Switch,
    /// The script's packets with the ports on which they arrive.
    pub packets: Vec<(u32, Vec<u8>)>,
}

/// Delay of the first packet after a write to the switch, as with the runner for BMv2, and of `wait`.
const AFTER_WRITE_NS: u64 = 1_000_000_000;
/// Delay of other packets.
const BETWEEN_PACKETS_NS: u64 = 1_000_000;
/// Time at the end for queues to empty.
const AT_THE_END_NS: u64 = 3_600_000_000_000;
/// Maximum number of timed events of the switch during one delay.
const MAX_EVENTS: usize = 1_000_000;
/// Maximum number of bytes that the switch may send in one test. All of them are kept to the end.
const MAX_SENT_BYTES: usize = 1 << 28;
/// Headroom of frames processed in place, in bytes.
const ROOM: usize = 64;
/// Maximum number of traces. Later packets are not traced.
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
        let mut run = TestRun::new(self, program, options)?;
        for (at, op) in &self.ops {
            if let Err(refusal) = run.op(*at, op) {
                run.report.failures.push(Failure::Refused { at: *at, refusal });
            }
        }
        run.wait(AT_THE_END_NS);
        let counted = run.switch.registry().iter().filter(|(_, value)| *value > 0);
        run.report.counted = counted.map(|(name, value)| (name.to_owned(), value)).collect();
        let TestRun { mut report, expected, .. } = run;
        compare(&mut report, expected, |port| self.strict || self.ports.contains(&port));
        Ok(report)
    }

    /// Returns a switch in the state that the script gives it, and the script's packets, for measurements. No packet
    /// has been sent. Commands that remove entries are left out.
    ///
    /// # Errors
    /// If the program is not a v1model program.
    ///
    /// # Panics
    /// If `program` is not the one that the test was bound to.
    pub fn prepare(&self, program: &Arc<Program>) -> Result<PreparedTest, LoadError> {
        let mut run = TestRun::new(self, program, &RunOptions::default())?;
        let mut packets = Vec::new();
        for (at, op) in &self.ops {
            match op {
                Op::Packet { port, data } => packets.push((*port, data.clone())),
                Op::Remove(_) | Op::RemoveAll => {}
                // A command that the switch refuses changes nothing; a run reports it.
                op => drop(run.op(*at, op)),
            }
        }
        Ok(PreparedTest { switch: run.switch, packets })
    }
}

struct TestRun<'a> {
    switch: Switch,
    program: &'a Program,
    path: PacketPath,
    now: Time,
    /// Whether the switch was written to since the last packet.
    wrote: bool,
    report: Report,
    expected: Vec<Expectation>,
    nodes: Vec<MulticastNode>,
    /// The ports of link aggregation groups, in order.
    lags: BTreeMap<u32, Vec<u32>>,
    /// Multicast groups and their nodes.
    groups: Vec<(u32, Vec<u32>)>,
    /// Digests that have not been checked.
    digests: VecDeque<(DigestId, Vec<Bits>)>,
    /// Entries reported as idle that have not been checked.
    idle: Vec<EntryRef>,
    /// Entries to remove.
    inserted: Vec<EntryRef>,
    /// Number of bytes sent so far.
    sent_bytes: usize,
}

/// The result of an operation.
type OpResult = Result<(), CommandRefusal>;

fn refused(result: Result<(), EntryError>) -> OpResult {
    Ok(result?)
}

impl<'a> TestRun<'a> {
    fn new(test: &Test, program: &'a Arc<Program>, options: &RunOptions) -> Result<TestRun<'a>, LoadError> {
        let ports = test.connected.iter().copied().map(PortId).collect();
        let config = Config { ports, seed: options.seed, min_frame: 0, ..Config::default() };
        Ok(TestRun {
            switch: Switch::new(program.clone(), config)?,
            program,
            path: options.path,
            now: Time::from_ns(AFTER_WRITE_NS),
            wrote: false,
            report: Report::default(),
            expected: Vec::new(),
            nodes: Vec::new(),
            groups: Vec::new(),
            lags: BTreeMap::new(),
            digests: VecDeque::new(),
            idle: Vec::new(),
            sent_bytes: 0,
            inserted: Vec::new(),
        })
    }

    fn op(&mut self, at: Span, op: &Op) -> OpResult {
        match op {
            Op::Packet { .. } if self.sent_bytes > MAX_SENT_BYTES => {
                return Err(CommandRefusal::TooManyBytes { max: MAX_SENT_BYTES });
            }
            Op::Packet { port, data } => self.packet(at, *port, data),
            Op::Expect { port, pattern } => {
                let after = self.report.packets.len().checked_sub(1);
                self.expected.push(Expectation { at, port: *port, pattern: pattern.clone(), after });
            }
            Op::Wait => self.wait(AFTER_WRITE_NS),
            Op::CheckCounter { .. }
            | Op::CheckRegister { .. }
            | Op::CheckDigest { .. }
            | Op::CheckIdle(_)
            | Op::CounterRead(_)
            | Op::RegisterRead(..)
            | Op::MeterGet(_)
            | Op::MirrorGet(_) => return self.look(at, op),
            write => {
                self.wrote = true;
                return self.write(write);
            }
        }
        Ok(())
    }

    /// Performs an operation that changes the state of the switch.
    fn write(&mut self, op: &Op) -> OpResult {
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
                    // The entry may have been removed, by its name.
                    let _ = objects.delete(table, &keys, priority);
                }
                Ok(())
            }
            Op::Remove(EntryRef { table, keys, priority }) => {
                refused(objects.delete(*table, keys, *priority).map(drop))
            }
            Op::TimeoutSet { entry: EntryRef { table, keys, priority }, ns } => {
                let installed = objects.get(*table, keys, *priority)?;
                let entry = TableEntry { idle_timeout_ns: *ns, ..installed.entry };
                refused(objects.modify(*table, entry))
            }
            Op::CounterWrite(cell, value) => match cell {
                Cell::Array(counter, index) => refused(objects.set_counter(*counter, *index, *value)),
                Cell::Entry(entry) => {
                    refused(objects.set_entry_counter(entry.table, &entry.keys, entry.priority, *value))
                }
                Cell::Nowhere(handle) => Err(CommandRefusal::NoEntry(*handle)),
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
                Cell::Nowhere(handle) => Err(CommandRefusal::NoEntry(*handle)),
            },
            Op::MeterSetAll(meter, config) => refused(objects.configure_meters(*meter, Some(*config))),
            Op::MemberCreate(profile, id, call) => refused(objects.insert_member(*profile, *id, call.clone())),
            Op::MemberGroupCreate(profile, id, members) => {
                refused(objects.insert_group(*profile, *id, members.clone(), 0))
            }
            Op::MemberJoin { profile, group, member } => {
                let members = objects.group(*profile, *group).ok_or(CommandRefusal::NoGroup(*group))?;
                let mut members = members.to_vec();
                members.push(member.clone());
                refused(objects.modify_group(*profile, *group, members))
            }
            Op::ValueSetAdd(set, member) => refused(objects.insert_value_set_member(*set, member.clone())),
            Op::ValueSetClear(set) => {
                objects.clear_value_set(*set);
                Ok(())
            }
            Op::CrcSet(params) => {
                match params.width {
                    16 => objects.set_crc16_custom(*params),
                    _ => objects.set_crc32_custom(*params),
                }
                Ok(())
            }
            other => self.traffic_manager(other),
        }
    }

    fn packet(&mut self, at: Span, port: u32, data: &[u8]) {
        let pause = if self.wrote { AFTER_WRITE_NS } else { BETWEEN_PACKETS_NS };
        self.wrote = false;
        self.wait(pause);
        let index = self.report.packets.len();
        let frame = Frame { port: PortId(port), data: data.to_vec() };
        let mut out = Vec::new();
        let mut sent = Sent { at, port, data: data.to_vec(), time_ns: self.now.as_ns(), trace: None };
        match self.path {
            PacketPath::Traced if index < MAX_TRACES => sent.trace = Some(self.switch.trace(self.now, frame, &mut out)),
            PacketPath::Traced | PacketPath::HandedOver => self.switch.step(self.now, &mut vec![frame], &mut out),
            PacketPath::InPlace => self.lend(frame, &mut out),
        }
        self.report.packets.push(sent);
        self.take(out, Some(index));
    }

    /// Processes a frame in place.
    fn lend(&mut self, Frame { port, data }: Frame, out: &mut Vec<Frame>) {
        let (mut batch, mut departed) = ([HeadroomBuf::new(&data, ROOM)], Vec::new());
        self.switch.step_in_place(self.now, port, &mut batch, &mut departed);
        out.extend(departed.into_iter().map(|departed| match departed {
            Egress::InPlace { index: number, port } => Frame { port, data: batch[number].bytes().to_vec() },
            Egress::Owned(frame) => frame,
        }));
    }

    /// Advances the time and lets the switch handle its timed events.
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
            match notification {
                Notification::Digest { digest, values, .. } => self.digests.push_back((digest, values)),
                Notification::PacketIn { port, data, .. } => {
                    self.sent_bytes += data.len() + 64;
                    self.report.arrivals.push(Arrival { port: port.0, data, cause, time_ns });
                }
                Notification::IdleTimeout { table, entry, .. } => {
                    self.idle.push(EntryRef { table, keys: entry.keys, priority: entry.priority });
                }
                // No packet test makes its switch a node of INT.
                Notification::IntReport { .. } => {}
            }
        }
    }
}
