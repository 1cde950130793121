//! Puts the words of a plan's packets together in the order of its source.

use wire::tpp::{Addressing, Instruction, Operation, Status, WordSize};

use super::bonds::written;
use super::mutant::ExecutorMutant;
use super::packets::pushes;
use super::plan::{ExecutionPlan, ProgramPart};
use super::retry;
use crate::asm::TinyProgram;

/// What the switches did with a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutedProgram {
    /// The program in the shape of its source, with the words of the switches. A program for one switch has memory for
    /// one hop, and the hop number 1 if the switch executed some of it, else 0. It may be too large for a packet.
    pub program: TinyProgram,
    /// Place of the switch that executed a program for one switch, from 0; `None` if no packet reached the end of the
    /// program there. Of other programs `None`.
    pub place: Option<u8>,
    /// Longest time between sending a packet and the arrival of its echo, in nanoseconds.
    pub rtt_ns: u64,
    /// Number of packets that were sent, with retries.
    pub sent: u32,
    /// Whether the packets passed different numbers of switches, so words may be of different paths.
    pub paths_differ: bool,
    /// Outcomes of the `CSTORE`s, in the order of the instructions and hops.
    pub stores: Vec<StoreOutcome>,
}

/// The outcome of a `CSTORE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreOutcome {
    /// Index of the instruction in the source.
    pub instruction: usize,
    /// Hop that executed it, from 0; `None` if all share its words.
    pub hop: Option<usize>,
    /// What happened.
    pub verdict: StoreVerdict,
}

/// What a `CSTORE` did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreVerdict {
    /// The word had the old value, and this request stored the new one.
    Stored,
    /// The word has the new value, and only the caller stores it: in an earlier try or request.
    StoredEarlier,
    /// The word has the new value. Somebody else may have stored the same value, or an earlier request.
    HasNewValue {
        /// Whether an earlier try of this request may have stored it.
        may_have_stored: bool,
    },
    /// The word has the value of somebody else.
    Other {
        /// The value.
        found: u32,
        /// Whether an earlier try may have stored the new value before the other one did.
        may_have_stored: bool,
    },
    /// The switch does not permit it.
    Denied,
    /// The switch does not have the word.
    Absent,
    /// The program ended before it.
    NotReached,
    /// The words do not show whether it stored or was not reached.
    Unclear,
}

impl StoreVerdict {
    /// Whether the switch certainly executed the `CSTORE`.
    pub fn is_reached(self) -> bool {
        !matches!(self, StoreVerdict::NotReached | StoreVerdict::Unclear)
    }
}

/// An echo of a packet of a plan.
#[derive(Clone, Debug)]
pub(super) struct PartEcho {
    pub program: TinyProgram,
    pub rtt_ns: u64,
    /// Number of times that the packet was sent.
    pub sent: u32,
}

impl PartEcho {
    /// Returns the number of switches that it passed.
    fn passed(&self, part: &ProgramPart) -> i64 {
        i64::from(self.program.repr.hop) - i64::from(part.program.repr.hop)
    }

    /// Returns the hops of the packet that executed it, as far as it has memory for them.
    fn hops(&self, part: &ProgramPart) -> std::ops::Range<usize> {
        let [first, end] =
            [part.program.repr.hop, self.program.repr.hop].map(|hop| usize::from(hop.max(0).unsigned_abs()));
        match part.program.repr.addressing {
            Addressing::Stack { .. } => 0..end.saturating_sub(first).min(part.hops.len()),
            Addressing::Hop { .. } => first.min(end)..end.min(part.hops.len()),
        }
    }
}

/// Returns a word of packet memory; `None` if it is not there.
fn word_at(memory: &[u8], at: usize, size: WordSize) -> Option<u32> {
    let bytes = memory.get(at..at + size.bytes())?;
    Some(bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)))
}

impl ExecutionPlan {
    /// Returns what the switches did, from the echoes of all packets.
    pub(super) fn executed(&self, echoes: &[PartEcho]) -> ExecutedProgram {
        let mut merge = Merge { plan: self, size: self.shape.repr.word_size, result: self.shape.clone() };
        for (part, echo) in self.parts.iter().zip(echoes) {
            merge.part(part, echo);
        }
        let passed = self.parts.iter().zip(echoes).map(|(part, echo)| echo.passed(part));
        let (least, most) = (passed.clone().min().unwrap_or(0), passed.max().unwrap_or(0));
        let stores = merge.stores(echoes);
        let place = self.options.switch.and_then(|_| merge.place(echoes));
        let is_executed = place.is_some() || stores.iter().any(|store| store.verdict.is_reached());
        merge.header(echoes, least, self.options.switch.map(|_| is_executed));
        ExecutedProgram {
            program: merge.result,
            place,
            rtt_ns: echoes.iter().map(|echo| echo.rtt_ns).max().unwrap_or(0),
            sent: echoes.iter().map(|echo| echo.sent).sum(),
            paths_differ: least != most,
            stores,
        }
    }
}

struct Merge<'a> {
    plan: &'a ExecutionPlan,
    size: WordSize,
    /// The source with the words so far.
    result: TinyProgram,
}

impl Merge<'_> {
    /// Copies a word of an echo into the result.
    fn copy(&mut self, echo: &TinyProgram, from: usize, to: usize) {
        let len = self.size.bytes();
        if let (Some(from), Some(to)) = (echo.memory.get(from..from + len), self.result.memory.get_mut(to..to + len)) {
            to.copy_from_slice(from);
        }
    }

    /// Copies the words that a packet's instructions wrote.
    fn part(&mut self, part: &ProgramPart, echo: &PartEcho) {
        let len = self.size.bytes();
        let is_first = part.hops.start == 0;
        let mutation = self.plan.mutation;
        let sent = &part.program.instructions[part.guards..part.guards + part.instructions.len()];
        let words: Vec<usize> = sent.iter().filter_map(written).collect();
        match part.program.repr.addressing {
            Addressing::Stack { pointer } => {
                let Addressing::Stack { pointer: start } = self.result.repr.addressing else { return };
                if is_first {
                    words.iter().for_each(|word| self.copy(&echo.program, word * len, word * len));
                }
                if part.is_whole {
                    let moved = part.program.memory.len().saturating_sub(pointer);
                    (0..moved).step_by(len).for_each(|at| self.copy(&echo.program, pointer + at, start + at));
                    return;
                }
                let all = pushes(&self.plan.shape.instructions);
                for hop in echo.hops(part) {
                    for push in 0..part.pushes.len() {
                        let before = if mutation.is(ExecutorMutant::WordsOfFirstGroup) { 0 } else { part.pushes.start };
                        let from = pointer + (hop * part.pushes.len() + push) * len;
                        let to = ((self.first_hop(part) + hop) * all + before + push) * len;
                        self.copy(&echo.program, from, start + to);
                    }
                }
            }
            Addressing::Hop { len: 0 } => {
                words.iter().for_each(|word| self.copy(&echo.program, word * len, word * len))
            }
            Addressing::Hop { len: block } if part.is_whole => {
                for hop in echo.hops(part) {
                    let (from, to) = (hop * block, (self.first_hop(part) + hop) * part.block);
                    (0..part.block).step_by(len).for_each(|at| self.copy(&echo.program, from + at, to + at));
                }
            }
            Addressing::Hop { len: block } => {
                for hop in echo.hops(part) {
                    let (from, to) = (hop * block, (self.first_hop(part) + hop) * part.block);
                    words.iter().for_each(|word| self.copy(&echo.program, from + word * len, to + word * len));
                }
            }
        }
    }

    /// Returns the hop of the source at which a packet's memory begins.
    fn first_hop(&self, part: &ProgramPart) -> usize {
        if self.plan.mutation.is(ExecutorMutant::WordsOfFirstHops) { 0 } else { part.hops.start }
    }

    /// Sets status, hop number and stack pointer. `of_one` says whether the only switch executed the program; it is
    /// `None` if all switches on the path may.
    fn header(&mut self, echoes: &[PartEcho], passed: i64, of_one: Option<bool>) {
        let repr = &mut self.result.repr;
        for (part, echo) in self.plan.parts.iter().zip(echoes) {
            let status = echo.program.repr.status;
            // Memory of all but the last range of hops ends before the path does.
            repr.status |= if part.is_last { status } else { Status(status.0 & !Status::FULL.0) };
        }
        let source_hop = i64::from(repr.hop);
        let hop = (source_hop + passed).clamp(i8::MIN.into(), i8::MAX.into()) as i8;
        repr.hop = of_one.map_or(hop, i8::from);
        let Addressing::Stack { pointer } = &mut repr.addressing else { return };
        if let [part] = &self.plan.parts[..]
            && let Addressing::Stack { pointer: start } = part.program.repr.addressing
            && let Some(PartEcho { program, .. }) = echoes.first()
            && let Addressing::Stack { pointer: end } = program.repr.addressing
        {
            *pointer = (*pointer + end).saturating_sub(start);
            return;
        }
        let passed = (i64::from(repr.hop).max(0) - source_hop.max(0)).max(0) as usize;
        let executed = of_one.map_or(passed, usize::from);
        let pushes = pushes(&self.plan.shape.instructions);
        *pointer = (*pointer + executed * pushes * self.size.bytes()).min(self.result.memory.len());
    }

    /// Returns the place on the path of the switch that executed all packets of a program for one switch.
    fn place(&self, echoes: &[PartEcho]) -> Option<u8> {
        let mut place = None;
        for (part, echo) in self.plan.parts.iter().zip(echoes) {
            if self.plan.mutation.is(ExecutorMutant::EchoIsProof) {
                return Some(0);
            }
            let hop = self.witness(part, echo, 0)?;
            place = Some(hop.wrapping_sub(part.program.repr.hop as u32) as u8);
        }
        place
    }

    /// Returns the hop number in the witness of a block; `None` if it is not set.
    fn witness(&self, part: &ProgramPart, echo: &PartEcho, block: usize) -> Option<u32> {
        let start = match part.program.repr.addressing {
            Addressing::Hop { len } => len * block,
            Addressing::Stack { .. } => 0,
        };
        let word = word_at(&echo.program.memory, start + part.witness? * self.size.bytes(), self.size)?;
        (word <= 0xff).then_some(word)
    }

    /// Returns the outcomes of all `CSTORE`s.
    fn stores(&self, echoes: &[PartEcho]) -> Vec<StoreOutcome> {
        let mut stores = Vec::new();
        for (part, echo) in self.plan.parts.iter().zip(echoes) {
            let sent = &part.program.instructions;
            for (at, it) in sent.iter().enumerate().filter(|(_, it)| it.operation == Operation::Cstore) {
                let instruction = part.instructions.start + at - part.guards;
                match part.program.repr.addressing {
                    Addressing::Hop { len } if len > 0 => stores.extend(echo.hops(part).map(|hop| StoreOutcome {
                        instruction,
                        hop: Some(part.hops.start + hop),
                        verdict: self.verdict(part, echo, at, it, (hop, hop * len)),
                    })),
                    _ => stores.push(StoreOutcome {
                        instruction,
                        hop: None,
                        verdict: self.verdict(part, echo, at, it, (0, 0)),
                    }),
                }
            }
        }
        stores.sort_by_key(|store| (store.instruction, store.hop));
        stores
    }

    /// Returns the outcome of the `CSTORE` with index `at` of a packet, in a block.
    fn verdict(
        &self,
        part: &ProgramPart,
        echo: &PartEcho,
        at: usize,
        it: &Instruction,
        (block, start): (usize, usize),
    ) -> StoreVerdict {
        let word =
            |memory: &[u8], operand: u8| word_at(memory, start + usize::from(operand) * self.size.bytes(), self.size);
        let (sent, came) = (&part.program, &echo.program);
        let (Some(old), Some(new), Some(found)) =
            (word(&sent.memory, it.first), word(&sent.memory, it.second), word(&came.memory, it.first))
        else {
            return StoreVerdict::Unclear;
        };
        let is_shared = retry::shares_memory(sent) && !retry::runs_once(sent, &self.plan.options, at);
        if is_shared {
            return StoreVerdict::Unclear;
        }
        if found == old {
            return self.unchanged(part, echo, at, block, start);
        }
        let inverted = if self.size == WordSize::Bits16 { !old & 0xffff } else { !old };
        let mutation = self.plan.mutation;
        let is_retried = echo.sent > 1;
        match came.repr.status {
            status if found == inverted && status.contains(Status::SUPPRESSED) => StoreVerdict::Denied,
            status if found == inverted && status.contains(Status::ABSENT) => StoreVerdict::Absent,
            _ if mutation.is(ExecutorMutant::AnothersIsMine) && is_retried => StoreVerdict::StoredEarlier,
            _ if found == new && !mutation.is(ExecutorMutant::MineIsAnothers) => {
                let is_own = self.plan.options.owns_values || mutation.is(ExecutorMutant::SharedIsMine);
                if is_own {
                    StoreVerdict::StoredEarlier
                } else {
                    StoreVerdict::HasNewValue { may_have_stored: is_retried }
                }
            }
            _ => {
                let may_have_stored = is_retried && !mutation.is(ExecutorMutant::FailureIsProof);
                StoreVerdict::Other { found, may_have_stored }
            }
        }
    }

    /// Returns the outcome of a `CSTORE` whose `old` did not change: it stored, or was not reached.
    fn unchanged(&self, part: &ProgramPart, echo: &PartEcho, at: usize, block: usize, start: usize) -> StoreVerdict {
        let all = &part.program.instructions;
        let is_conditional = |range: &[Instruction]| range.iter().any(|it| it.operation == Operation::Cexec);
        if !is_conditional(&all[..at]) {
            return StoreVerdict::Stored;
        }
        let len = self.size.bytes();
        let failed = |it: &Instruction| {
            let at = start + usize::from(it.first) * len;
            it.operation == Operation::Cstore
                && word_at(&part.program.memory, at, self.size) != word_at(&echo.program.memory, at, self.size)
        };
        let is_reached = part.witness.is_some() && self.witness(part, echo, block).is_some();
        if is_reached || all[at + 1..].iter().any(failed) {
            StoreVerdict::Stored
        } else if part.witness.is_none() || is_conditional(&all[at + 1..]) {
            StoreVerdict::Unclear
        } else {
            StoreVerdict::NotReached
        }
    }
}
