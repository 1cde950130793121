//! Runs the commands that only read the switch: checks, and reads for people.

use bits::Bits;
use diagnostics::Span;
use engine::{CounterValue, MeterConfig};
use ir::{CounterId, DigestId, MeterId};

use super::{CommandRefusal, OpResult, TestRun};
use crate::plan::{Cell, EntryRef, Op};
use crate::report::{Failure, Reading};
use crate::script::Relation;

impl TestRun<'_> {
    /// Performs a command that reads.
    pub(super) fn look(&mut self, at: Span, op: &Op) -> OpResult {
        match op {
            Op::CheckCounter { cell, check } => return self.check_counter(at, cell, *check),
            Op::CheckRegister { register, index, relation, value } => {
                let got = self.switch.objects().register(*register, *index)?;
                if !relation.holds(got.to_big(), value.to_big()) {
                    let message = format!(
                        "`{}[{index}]` is {got:#x}, not {} {value:#x}",
                        self.program.registers[*register].name,
                        relation.symbol()
                    );
                    self.report.failures.push(Failure::Check { at, message });
                }
            }
            Op::CheckDigest { digest, values } => self.check_digest(at, *digest, values),
            Op::CheckIdle(entries) => self.check_idle(at, entries),
            Op::CounterRead(cell) => {
                let CounterValue { packets, bytes } = self.counter(cell)?;
                self.reading(at, format!("{packets} packets, {bytes} bytes"));
            }
            Op::RegisterRead(register, index) => {
                let value = self.switch.objects().register(*register, *index)?;
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
                    return Err(CommandRefusal::NoMirrorSession(*session));
                };
                let ports: Vec<String> = found.replicas.iter().map(|copy| format!("port {}", copy.port)).collect();
                let group = found.group.map(|group| format!("multicast group {group}"));
                let text = ports.into_iter().chain(group).collect::<Vec<_>>().join(", ");
                self.reading(at, format!("mirror session {session}: {text}"));
            }
            other => unreachable!("{other:?} does not look"),
        }
        Ok(())
    }

    fn counter(&self, cell: &Cell<CounterId>) -> Result<CounterValue, CommandRefusal> {
        let objects = self.switch.objects();
        let value = match cell {
            Cell::Array(counter, index) => objects.counter(*counter, *index),
            Cell::Entry(entry) => objects.get(entry.table, &entry.keys, entry.priority).map(|it| it.counter),
            Cell::Nowhere(handle) => return Err(CommandRefusal::NoEntry(*handle)),
        };
        Ok(value?)
    }

    fn meter(&self, cell: &Cell<MeterId>) -> Result<Option<MeterConfig>, CommandRefusal> {
        let objects = self.switch.objects();
        let config = match cell {
            Cell::Array(meter, index) => objects.meter_config(*meter, *index),
            Cell::Entry(entry) => objects.get(entry.table, &entry.keys, entry.priority).map(|it| it.meter_config),
            Cell::Nowhere(handle) => return Err(CommandRefusal::NoEntry(*handle)),
        };
        Ok(config?)
    }

    fn check_counter(&mut self, at: Span, cell: &Cell<CounterId>, check: Option<(bool, Relation, u64)>) -> OpResult {
        let value = self.counter(cell)?;
        let Some((in_bytes, relation, want)) = check else { return Ok(()) };
        let (got, unit) = if in_bytes { (value.bytes, "bytes") } else { (value.packets, "packets") };
        if !relation.holds(got, want) {
            let message = format!("the counter has {got} {unit}, not {} {want}", relation.symbol());
            self.report.failures.push(Failure::Check { at, message });
        }
        Ok(())
    }

    fn check_digest(&mut self, at: Span, digest: DigestId, values: &[Bits]) {
        let name = &self.program.digests[digest].name;
        let listed = |values: &[Bits]| values.iter().map(|v| format!("{v:#x}")).collect::<Vec<_>>().join(" ");
        let message = match self.digests.pop_front() {
            None => format!("no further digest was sent; expected `{name}`"),
            Some((other, _)) if other != digest => {
                format!("the digest `{}` was sent, expected `{name}`", self.program.digests[other].name)
            }
            Some((_, got)) if got != values => {
                format!("the digest `{name}` has the values {}, expected {}", listed(&got), listed(values))
            }
            Some(_) => return,
        };
        self.report.failures.push(Failure::Check { at, message });
    }

    fn reading(&mut self, at: Span, text: String) {
        self.report.readings.push(Reading { at, text });
    }

    /// Checks that the entries reported as idle since the last such check are these, in any order.
    fn check_idle(&mut self, at: Span, wanted: &[(String, EntryRef)]) {
        let mut told = std::mem::take(&mut self.idle);
        for (name, entry) in wanted {
            match told.iter().position(|other| other == entry) {
                Some(found) => drop(told.remove(found)),
                None => self.fail(at, format!("the entry `{name}` was not reported as idle")),
            }
        }
        for entry in told {
            let table = &self.program.tables[entry.table].name;
            self.fail(at, format!("an entry of `{table}` was reported as idle that is not listed here"));
        }
    }

    fn fail(&mut self, at: Span, message: String) {
        self.report.failures.push(Failure::Check { at, message });
    }
}
