//! The interpreter: the definition of the IR's meaning, written to be read. One function evaluates an expression
//! ([`eval`]), one executes an instruction ([`Execution::instr`]), one evaluates a terminator.

mod apply;
mod effects;
mod eval;
mod parse;

pub use apply::NO_ACTION;

use ir::{BlockId, BodyId, Instr, LocId, Op, Program, TableId, Terminator};

use crate::{BitString, Event, Objects, PacketState, Watch};

/// Maximum number of blocks that one run of a body executes, including those of the actions it applies. Operations that
/// grow the packet state consume fuel as well, so no loop exhausts memory: one block for each request, and for
/// each 128 bytes emitted.
pub const FUEL_BLOCKS: u32 = 100_000;

/// The time at which a body runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now {
    /// Nanoseconds since an epoch that the caller chooses.
    pub ns: u64,
}

/// The way in which a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// At its end; a parser accepted.
    Return,
    /// By `exit`.
    Exit,
    /// The parser rejected the packet; [`PacketState::parser_error`] has the error.
    Reject,
    /// After [`FUEL_BLOCKS`] blocks: the packet did not terminate a loop of the program. The location is the last
    /// block's.
    OutOfFuel(LocId),
    /// An assertion of the program failed at this location.
    AssertFailed(LocId),
    /// The result of a table lookup is pending. The effects before the lookup remain; the caller runs the body again on
    /// a copy of the packet made before.
    Pending(TableId),
    /// The packet may not use a row of `@resilient` state: see [`Objects::take_refusal`]. The caller undoes the
    /// pass ([`Objects::undo_pass`]).
    RowRefused,
}

/// The executor that defines the meaning of programs.
pub struct Interpreter;

impl Interpreter {
    /// Runs a body on a packet. An action's body can be run, too, once its arguments are in their slots.
    pub fn run<W: Watch + ?Sized>(
        program: &Program,
        objects: &mut Objects,
        body: BodyId,
        state: &mut PacketState,
        now: Now,
        watch: &mut W,
    ) -> Ending {
        objects.advance_clock(now.ns);
        let covered = BitString::new();
        let mut run = Execution { program, objects, state, now, watch, fuel_blocks: FUEL_BLOCKS, covered };
        let ended = run.body(body);
        objects.end_all_atomics();
        match ended {
            Ok(()) => Ending::Return,
            Err(ending) => ending,
        }
    }
}

/// One run of a body. Every step that can end it returns `Err` with the ending.
struct Execution<'a, W: ?Sized> {
    program: &'a Program,
    objects: &'a mut Objects,
    state: &'a mut PacketState,
    now: Now,
    watch: &'a mut W,
    fuel_blocks: u32,
    /// Input of a checksum or hash; kept to reuse its memory.
    covered: BitString,
}

/// Reports an event to the observer; the event is constructed only if the observer wants events.
macro_rules! report {
    ($run:expr, $event:expr) => {
        if $run.watch.wants_events() {
            $run.watch.event($run.program, $event);
        }
    };
}
use report;

impl<W: Watch + ?Sized> Execution<'_, W> {
    fn body(&mut self, id: BodyId) -> Result<(), Ending> {
        report!(self, Event::BodyBegins { body: id });
        let result = self.blocks(id);
        report!(self, Event::BodyEnds { body: id, ending: result.err().unwrap_or(Ending::Return) });
        result
    }

    fn blocks(&mut self, id: BodyId) -> Result<(), Ending> {
        let program = self.program;
        let body = &program.bodies[id];
        let mut at = BlockId::from_u32(0);
        loop {
            let block = &body.blocks[at];
            self.spend(1, block.loc)?;
            if block.is_state {
                report!(self, Event::State { body: id, block: at });
            }
            for instr in &block.instrs {
                self.instr(instr)?;
            }
            match self.terminator(&block.terminator, block.loc)? {
                Some(next) => at = next,
                None => return Ok(()),
            }
        }
    }

    fn spend(&mut self, blocks: u32, loc: LocId) -> Result<(), Ending> {
        self.fuel_blocks = self.fuel_blocks.checked_sub(blocks).ok_or(Ending::OutOfFuel(loc))?;
        Ok(())
    }

    /// Returns the next block of the body; `None` at its end.
    fn terminator(&mut self, terminator: &Terminator, loc: LocId) -> Result<Option<BlockId>, Ending> {
        match terminator {
            Terminator::Goto(block) => Ok(Some(*block)),
            Terminator::Branch { condition, then, otherwise } => {
                let condition = self.eval(condition).is_true();
                let target = if condition { *then } else { *otherwise };
                report!(self, Event::Branched { condition, target, loc });
                Ok(Some(target))
            }
            Terminator::Switch { subject, cases, default } => {
                let subject = self.eval(subject);
                let case = cases.iter().find(|(value, _)| *value == subject);
                let target = case.map_or(*default, |(_, block)| *block);
                report!(self, Event::Switched { subject: &subject, target, loc });
                Ok(Some(target))
            }
            Terminator::Select { keys, cases } => self.select(keys, cases, loc).map(Some),
            Terminator::Return => Ok(None),
            Terminator::Reject => Err(Ending::Reject),
            Terminator::Exit => Err(Ending::Exit),
        }
    }

    fn instr(&mut self, instr: &Instr) -> Result<(), Ending> {
        let loc = instr.loc;
        match &instr.op {
            Op::Assign(place, value) => {
                let value = self.eval(value);
                self.write(place, value, loc);
            }
            Op::CopyHeader(to, from) => self.copy_header(to, from, loc),
            Op::CopyVarbit(to, to_field, from, from_field) => {
                self.copy_varbit((to, *to_field), (from, *from_field), loc)
            }
            Op::SetValid(header) => self.set_validity(header, true, loc),
            Op::SetInvalid(header) => self.set_validity(header, false, loc),

            Op::Extract(header, varbit_width) => self.extract(header, varbit_width.as_ref(), loc)?,
            Op::Lookahead { dst, skip } => self.lookahead(dst, *skip, loc)?,
            Op::Advance(width) => self.advance(width, loc)?,
            Op::Verify(condition, error) => self.verify(condition, error, loc)?,

            Op::Emit(header) => self.emit(header, loc)?,
            Op::Apply { table, hit, action } => self.apply(*table, *hit, *action, loc)?,

            Op::RegisterRead(place, register, index) => self.register_read(place, *register, index, loc)?,
            Op::RegisterWrite(register, index, value) => self.register_write(*register, index, value, loc)?,
            Op::Count(counter, index) => self.count(*counter, index, loc),
            Op::MeterExecute(meter, index, place) => self.meter_execute(*meter, index, place, loc),
            Op::DirectMeterRead(meter, place) => {
                let colour = self.state.colours[*meter];
                self.write_colour(place, colour, loc);
            }

            Op::BeginAtomic => self.objects.begin_atomic(),
            Op::EndAtomic => self.objects.end_atomic(),

            Op::Compute(place, algorithm, data) => self.compute(place, *algorithm, data, loc),
            Op::Random(place, low, high) => {
                let (low, high) = (self.eval(low), self.eval(high));
                let value = self.objects.random_between(&low, &high);
                self.write(place, value, loc);
            }
            Op::Request(request) => self.request(request, loc)?,
            Op::Log(text, values) => self.log(text, values, loc),
            Op::Assert(condition) => {
                if !self.eval(condition).is_true() {
                    return Err(Ending::AssertFailed(loc));
                }
            }
        }
        Ok(())
    }
}
