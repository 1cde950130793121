//! Plans the packets that execute a program: guards for one switch, groups of instructions, ranges of hops.

use std::ops::Range;

use diagnostics::Severity;
use wire::tpp::{ALL_ONES, Addressing, Instruction, MAX_INSTRUCTIONS, Operation};

use super::bonds::{Bond, BoundGroup, bound_groups, is_stable};
use super::mutant::{ExecutorMutant, ExecutorMutation};
use super::packets::{PacketLayout, pushes};
use super::retry;
use crate::asm::TinyProgram;
use crate::check::CheckFinding;
use crate::map::{Namespace, row_of};
use crate::tcpu::{OWN_FIELD_COUNT, OWN_FIELDS};

/// The way in which a program is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutionOptions {
    /// Number of the only switch that executes the program; `None` for all on the path.
    pub switch: Option<u32>,
    /// Whether the first switch that reaches the end of the program sends it back.
    pub reflects: bool,
    /// Maximum number of times that each packet is sent.
    pub tries: u32,
    /// Whether nobody else stores the new values of this program's `CSTORE`s. Then a word that has the new value shows
    /// that an earlier try stored it.
    pub owns_values: bool,
}

impl Default for ExecutionOptions {
    fn default() -> ExecutionOptions {
        ExecutionOptions { switch: None, reflects: false, tries: 3, owns_values: false }
    }
}

/// The packets that execute a program, and the places of their words in it.
#[derive(Clone, Debug)]
pub struct ExecutionPlan {
    /// The program with memory for the hops that execute it; of any size.
    pub(super) shape: TinyProgram,
    pub(super) options: ExecutionOptions,
    pub(super) parts: Vec<ProgramPart>,
    pub(super) mutation: ExecutorMutation,
}

/// One packet of a plan.
#[derive(Clone, Debug)]
pub(super) struct ProgramPart {
    /// The program that is sent.
    pub program: TinyProgram,
    /// The instructions of the source, in order, and their number in the program that is sent.
    pub instructions: Range<usize>,
    /// Number of instructions before them: guards.
    pub guards: usize,
    /// Hops of the source that it has memory for.
    pub hops: Range<usize>,
    /// Whether it is the last range of hops of its instructions.
    pub is_last: bool,
    /// Number of `PUSH`es before its instructions, and of its own.
    pub pushes: Range<usize>,
    /// Length of the memory of a hop in bytes; 0 if all share it.
    pub block: usize,
    /// The word that the last instruction fills with the hop number, as a proof that it was reached.
    pub witness: Option<usize>,
    /// Whether the packet is the source, word by word.
    pub is_whole: bool,
}

/// A group of instructions that travel in one packet, and the guards of the source that have to be repeated before it.
struct PlanGroup {
    range: Range<usize>,
    guards: Vec<usize>,
}

impl ExecutionPlan {
    /// Plans the execution of a program, which may be [large](crate::assemble_large).
    ///
    /// # Errors
    /// Returns what cannot be split or retried, with the instruction and the remedy.
    pub fn new(source: &TinyProgram, options: &ExecutionOptions) -> Result<ExecutionPlan, Vec<CheckFinding>> {
        ExecutionPlan::with_mutation(source, options, ExecutorMutation::default())
    }

    /// Plans an execution with an error.
    #[doc(hidden)]
    pub fn with_mutation(
        source: &TinyProgram,
        options: &ExecutionOptions,
        mutation: ExecutorMutation,
    ) -> Result<ExecutionPlan, Vec<CheckFinding>> {
        let mut source = source.clone();
        source.repr.is_reflective |= options.reflects && !mutation.is(ExecutorMutant::MarkLeftOut);
        let mut planner =
            Planner { word: source.repr.word_size.bytes(), options, findings: Vec::new(), mutation, source };
        if !mutation.is(ExecutorMutant::StoreRetried) {
            planner.findings = retry::unsafe_retries(&planner.source, options);
        }
        let parts = planner.parts();
        let Planner { source, findings, .. } = planner;
        if findings.is_empty() {
            Ok(ExecutionPlan { shape: shape(source, options), options: *options, parts, mutation })
        } else {
            Err(findings)
        }
    }

    /// Returns the number of packets, without retries.
    pub fn packets(&self) -> usize {
        self.parts.len()
    }

    /// Returns the number of the only switch that executes the program.
    pub fn switch(&self) -> Option<u32> {
        self.options.switch
    }
}

/// Returns a program with memory for the hops that execute it: one if it is for one switch.
fn shape(mut source: TinyProgram, options: &ExecutionOptions) -> TinyProgram {
    if options.switch.is_some() {
        let len = match source.repr.addressing {
            Addressing::Stack { pointer } => pointer + pushes(&source.instructions) * source.repr.word_size.bytes(),
            Addressing::Hop { len: 0 } => source.memory.len(),
            Addressing::Hop { len } => len,
        };
        source.memory.truncate(len);
        source.hops = 1;
    }
    source
}

/// Returns the instructions of a packet: its guards, those of a group, and the one that fills the witness.
fn instructions(all: &[Instruction], group: &PlanGroup, layout: &PacketLayout<'_>) -> Vec<Instruction> {
    let id = row_of(Namespace::Switch, "ID").address();
    let guard = layout.guard().map(|word| Instruction::new(Operation::Cexec, id, ALL_ONES, word));
    let witness = layout.witness().map(|word| Instruction::new(Operation::Load, OWN_FIELDS, word, 0));
    let guards = guard.into_iter().chain(group.guards.iter().map(|at| all[*at]));
    guards.chain(all[group.range.clone()].iter().copied()).chain(witness).collect()
}

struct Planner<'a> {
    source: TinyProgram,
    options: &'a ExecutionOptions,
    /// Size of a word in bytes.
    word: usize,
    findings: Vec<CheckFinding>,
    mutation: ExecutorMutation,
}

impl Planner<'_> {
    fn find(&mut self, code: &'static str, instruction: Option<usize>, message: String, help: &str) {
        let help = Some(help.to_owned());
        self.findings.push(CheckFinding { severity: Severity::Error, code, instruction, message, help });
    }

    fn parts(&mut self) -> Vec<ProgramPart> {
        let count = self.source.instructions.len();
        let fits = !self.is_targeted() && self.source.fits();
        if fits && self.needs_witness() && !self.has_stack_operands() && count < MAX_INSTRUCTIONS {
            let group = PlanGroup { range: 0..count, guards: Vec::new() };
            // Without room for the witness, the program is sent as it is.
            if PacketLayout::new(&self.source, &group.range, None, true).hops(count + 1) >= self.hops() {
                return self.ranges(&self.source.instructions.clone(), &group, true, true);
            }
        }
        if fits {
            return vec![self.unchanged()];
        }
        self.split()
    }

    /// Whether a `CEXEC` may end the program before a `CSTORE`, so that an unchanged `old` shows nothing.
    fn needs_witness(&self) -> bool {
        let mut rest = self.source.instructions.iter().skip_while(|it| it.operation != Operation::Cexec);
        rest.any(|it| it.operation == Operation::Cstore)
    }

    /// Whether operands may be words of the stack.
    fn has_stack_operands(&self) -> bool {
        let Addressing::Stack { pointer } = self.source.repr.addressing else { return false };
        pointer < self.source.constants_len()
    }

    /// Returns the packet that is the source as it is.
    fn unchanged(&self) -> ProgramPart {
        let block = match self.source.repr.addressing {
            Addressing::Hop { len } => len,
            Addressing::Stack { .. } => 0,
        };
        ProgramPart {
            program: self.source.clone(),
            instructions: 0..self.source.instructions.len(),
            guards: 0,
            hops: 0..self.hops(),
            is_last: true,
            pushes: 0..pushes(&self.source.instructions),
            block,
            witness: None,
            is_whole: true,
        }
    }

    /// Returns the number of hops that the source has memory for.
    fn hops(&self) -> usize {
        let memory = self.source.memory.len();
        match self.source.repr.addressing {
            Addressing::Hop { len: 0 } => 1,
            Addressing::Hop { len } => (memory / len).max(1),
            Addressing::Stack { pointer } => {
                let hop = pushes(&self.source.instructions) * self.word;
                if hop == 0 { 1 } else { memory.saturating_sub(pointer).div_ceil(hop).max(1) }
            }
        }
    }

    /// Splits the program into groups of instructions, and these into ranges of hops.
    fn split(&mut self) -> Vec<ProgramPart> {
        let Some(instructions) = self.placed() else { return Vec::new() };
        let groups = self.groups(&instructions);
        if !self.findings.is_empty() {
            return Vec::new();
        }
        let is_only = groups.len() == 1;
        let parts: Vec<ProgramPart> =
            groups.iter().flat_map(|group| self.ranges(&instructions, group, is_only, self.is_targeted())).collect();
        self.check_split(&parts, groups.len());
        parts
    }

    fn is_targeted(&self) -> bool {
        self.options.switch.is_some()
    }

    /// Returns the instructions with the words of `PUSH` and `POP` in hop mode: the places are known (paper, section
    /// 3.5), and the stack of a later packet would begin at the first word again.
    fn placed(&mut self) -> Option<Vec<Instruction>> {
        let instructions = self.source.instructions.clone();
        if let Addressing::Stack { .. } = self.source.repr.addressing {
            return Some(instructions);
        }
        let mut depth = 0u8;
        let mut placed = Vec::with_capacity(instructions.len());
        for (at, it) in instructions.into_iter().enumerate() {
            placed.push(match it.operation {
                Operation::Push if depth < 0x40 => {
                    depth += 1;
                    Instruction::new(Operation::Load, it.address, depth - 1, 0)
                }
                Operation::Pop if depth > 0 => {
                    depth -= 1;
                    Instruction::new(Operation::Store, it.address, depth, 0)
                }
                Operation::Push | Operation::Pop => {
                    let message = "the stack of a hop has no word here".to_owned();
                    self.find("unsplittable", Some(at), message, "use `LOAD` and `STORE` with words of the hop");
                    return None;
                }
                _ => it,
            });
        }
        Some(placed)
    }

    /// Returns groups of instructions that fit into a packet.
    fn groups(&mut self, all: &[Instruction]) -> Vec<PlanGroup> {
        if self.has_stack_operands() {
            let message = "an operand of this program is a word of the stack, whose place is another in each packet";
            self.find("unsplittable", None, message.to_owned(), "use `.mode hop`, or a larger `.sp`");
            return Vec::new();
        }
        if all.is_empty() {
            return vec![PlanGroup { range: 0..0, guards: Vec::new() }];
        }
        let mut groups: Vec<PlanGroup> = Vec::new();
        for BoundGroup { range, bond } in bound_groups(all, self.word, self.mutation) {
            let guards: Vec<usize> = (0..range.start)
                .filter(|at| is_stable(&all[*at], all, self.word))
                .filter(|_| !self.mutation.is(ExecutorMutant::CexecNotRepeated))
                .collect();
            let own = usize::from(self.is_targeted());
            if let Some(last) = groups.last_mut()
                && last.range.len() + range.len() + last.guards.len() + 2 * own <= MAX_INSTRUCTIONS
            {
                last.range.end = range.end;
                continue;
            }
            let room = MAX_INSTRUCTIONS.saturating_sub(guards.len() + 2 * own);
            if range.len() > room {
                self.find_unsplittable(&range, bond, room);
            }
            groups.push(PlanGroup { range, guards });
        }
        groups
    }

    fn find_unsplittable(&mut self, range: &Range<usize>, bond: Option<(usize, Bond)>, room: usize) {
        let (at, reason) = match bond {
            Some((at, bond)) => (at, bond.reason()),
            None => (range.start, "it needs its guards in the same packet"),
        };
        let message =
            format!("{} instructions belong together, and a packet has room for {room}: {reason}", range.len());
        let own = if self.is_targeted() { ", and a program for one switch takes two of its own" } else { "" };
        let help = format!(
            "a packet has {MAX_INSTRUCTIONS} instructions{own}; move instructions that do not depend on this one before \
             it, or send them as another program"
        );
        self.find("unsplittable", Some(at), message, &help);
    }

    /// Returns the packets of a group: one for each range of hops that memory has room for.
    fn ranges(&mut self, all: &[Instruction], group: &PlanGroup, is_only: bool, has_witness: bool) -> Vec<ProgramPart> {
        let source = self.source.clone();
        let switch = self.options.switch.filter(|_| !self.mutation.is(ExecutorMutant::GuardLeftOut));
        let layout = PacketLayout::new(&source, &group.range, switch, has_witness);
        let instructions = instructions(all, group, &layout);
        let hops = if self.is_targeted() { 1 } else { self.hops() };
        let fitting = layout.hops(instructions.len()).min(hops);
        if fitting == 0 {
            let message = format!("{} bytes of memory do not fit into a packet", layout.one_hop_len());
            self.find("too-long", Some(group.range.start), message, "use fewer words, or words of 16 bits");
            return Vec::new();
        }
        let mut parts = Vec::new();
        for first in (0..hops).step_by(fitting) {
            let range = first..(first + fitting).min(hops);
            let mut repr = source.repr;
            repr.addressing = layout.addressing();
            repr.hop = self.first_hop(first);
            parts.push(ProgramPart {
                program: TinyProgram {
                    repr,
                    instructions: instructions.clone(),
                    memory: layout.memory(&range),
                    hops: range.len() as u32,
                    spans: Vec::new(),
                },
                instructions: group.range.clone(),
                guards: usize::from(switch.is_some()) + group.guards.len(),
                is_last: range.end == hops,
                is_whole: is_only && range == (0..hops),
                hops: range,
                pushes: layout.pushes.clone(),
                block: layout.own,
                witness: layout.witness().map(usize::from),
            });
        }
        parts
    }

    /// Returns the hop number with which a packet for the hops from `first` on is sent.
    fn first_hop(&mut self, first: usize) -> i8 {
        let source = i64::from(self.source.repr.hop);
        let hop = source - first as i64;
        let is_stack = matches!(self.source.repr.addressing, Addressing::Stack { .. });
        // A stack begins at the first switch that executes the program, whatever its number is.
        if hop < i8::MIN.into() || is_stack && first > 0 && source > 0 {
            let message = "the hops of this program do not fit into one packet, and begin at another one".to_owned();
            self.find("unsplittable", None, message, "leave `.hop` out, or use fewer hops");
        }
        hop.clamp(i8::MIN.into(), i8::MAX.into()) as i8
    }

    /// Refuses programs whose words or effects would be others in several packets.
    fn check_split(&mut self, parts: &[ProgramPart], groups: usize) {
        let all = self.source.instructions.clone();
        let application = row_of(Namespace::PacketMetadata, "TPP-Application").address();
        let is_stack = matches!(self.source.repr.addressing, Addressing::Stack { .. });
        let has_ranges = parts.len() > groups;
        if self.is_targeted() {
            self.check_blocks();
        }
        if parts.len() <= 1 {
            return;
        }
        for (at, it) in all.iter().enumerate() {
            let own = usize::from(it.address).wrapping_sub(OWN_FIELDS.into()) / 2;
            let reads_own = own < OWN_FIELD_COUNT && it.operation != Operation::LoadIndirect;
            // The hop number of a later range begins anew, and the others are those of each packet.
            let is_application = it.address & !1 == application;
            if reads_own && !is_application && (own != 0 || has_ranges) {
                let message = "this field differs in each packet of the program".to_owned();
                self.find("unsplittable", Some(at), message, "read it with a program that fits into one packet");
            }
            if is_stack && it.operation.may_end() && all[at..].iter().any(|it| it.operation == Operation::Push) {
                let message = format!("a `{}` before a `PUSH` hides the hop of its word", it.operation.name());
                self.find("unsplittable", Some(at), message, "use `.mode hop`");
            }
            if is_stack && has_ranges && it.operation.is_write() {
                let message =
                    format!("this `{}` would be executed by several packets of the program", it.operation.name());
                self.find("unsplittable", Some(at), message, "use `.mode hop`, in which each hop has its packet");
            }
        }
        let end = all.iter().position(|it| it.operation.may_end());
        if self.source.repr.is_reflective && !self.is_targeted() && end.is_some() {
            let message = "the packets of this program would be sent back by different switches".to_owned();
            self.find("unsplittable", end, message, "execute it on one switch");
        }
        if self.source.repr.is_reflective && has_ranges {
            let message = "a program that a switch sends back has memory for too many hops".to_owned();
            self.find("unsplittable", None, message, "use `.hops 1`, as one switch executes it");
        }
    }

    /// Refuses a program for one switch whose hops have different memory.
    fn check_blocks(&mut self) {
        let Addressing::Hop { len: len @ 1.. } = self.source.repr.addressing else { return };
        let mut blocks = self.source.memory.chunks_exact(len);
        let first = blocks.next();
        if blocks.any(|block| Some(block) != first) {
            let message = "the hops of this program begin with different words".to_owned();
            let help = "a program for one switch has one block: use `.memory all`, or `.hops 1`";
            self.find("unsplittable", None, message, help);
        }
    }
}
