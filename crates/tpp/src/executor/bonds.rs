//! Finds the instructions of a program that must travel in the same packet.

use std::ops::Range;

use wire::tpp::{ALL_ONES, Instruction, Operation};

use super::mutant::{ExecutorMutant, ExecutorMutation};
use crate::map::{Namespace, row_of};
use crate::tcpu::OWN_FIELDS;

/// The reason for which two instructions travel in the same packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bond {
    /// A failure of the first ends the second.
    Ends,
    /// Both access the same word of packet memory, and one writes it.
    Word,
    /// Both access the same word of the switch, and one writes it; or one may access any word.
    Location,
    /// Both read a half of the same value.
    Halves,
    /// Both move the stack pointer, and one of them down.
    Stack,
}

impl Bond {
    /// Returns a clause that explains the bond.
    pub fn reason(self) -> &'static str {
        match self {
            Bond::Ends => "its failure ends the instructions behind it",
            Bond::Word => "another instruction uses the same word of packet memory",
            Bond::Location => "another instruction may access the same word of the switch, and one of them writes it",
            Bond::Halves => "another instruction reads the other half of the same value",
            Bond::Stack => "a `POP` takes what others push",
        }
    }
}

/// A sequence of instructions that travel in one packet.
#[derive(Clone, Debug)]
pub(super) struct BoundGroup {
    pub range: Range<usize>,
    /// An instruction that is bound to a later one of the group, and the reason; `None` for a single instruction.
    pub bond: Option<(usize, Bond)>,
}

/// Returns the places of the words that an instruction reads in packet memory, in bytes.
fn reads(it: &Instruction, word: usize) -> Vec<Range<usize>> {
    let at = |operand: u8, len: usize| usize::from(operand) * word..usize::from(operand) * word + len;
    match it.operation {
        Operation::Store | Operation::Min | Operation::Max => vec![at(it.first, word)],
        Operation::Cstore => vec![at(it.first, word), at(it.second, word)],
        Operation::Cexec if it.first == ALL_ONES => vec![at(it.second, 4)],
        Operation::Cexec => vec![at(it.first, 4), at(it.second, 4)],
        Operation::LoadIndirect => vec![at(it.second, 4)],
        Operation::Load | Operation::Push | Operation::Pop => Vec::new(),
    }
}

/// Returns the word that an instruction writes in packet memory, other than the stack.
pub(super) fn written(it: &Instruction) -> Option<usize> {
    let writes = matches!(
        it.operation,
        Operation::Load | Operation::LoadIndirect | Operation::Min | Operation::Max | Operation::Cstore
    );
    writes.then_some(usize::from(it.first))
}

/// Whether an instruction writes one of the words that another one reads.
pub(super) fn feeds(writer: &Instruction, reader: &Instruction, word: usize) -> bool {
    let Some(at) = written(writer) else { return false };
    let there = at * word..(at + 1) * word;
    reads(reader, word).iter().any(|read| read.start < there.end && there.start < read.end)
}

/// Whether a `CEXEC` has the same result in each packet: it compares what a switch never changes with constants.
pub(super) fn is_stable(cexec: &Instruction, all: &[Instruction], word: usize) -> bool {
    let constant = ["ID", "VendorID"].map(|name| row_of(Namespace::Switch, name).address());
    cexec.operation == Operation::Cexec
        && (constant.contains(&cexec.address) || cexec.address == OWN_FIELDS)
        && !all.iter().any(|other| feeds(other, cexec, word))
}

/// Returns the bond between an instruction and a later one.
fn bond(
    a: &Instruction,
    b: &Instruction,
    all: &[Instruction],
    word: usize,
    mutation: ExecutorMutation,
) -> Option<Bond> {
    let ends = match a.operation {
        Operation::Cstore => !mutation.is(ExecutorMutant::CstoreSplit),
        Operation::Cexec => !is_stable(a, all, word),
        _ => false,
    };
    if ends {
        return Some(Bond::Ends);
    }
    let same_word = written(a).is_some() && written(a) == written(b);
    if same_word || feeds(a, b, word) || feeds(b, a, word) {
        return Some(Bond::Word);
    }
    let is_any = |it: &Instruction| it.operation == Operation::LoadIndirect;
    let (any_write, any_indirect) = (a.operation.is_write() || b.operation.is_write(), is_any(a) || is_any(b));
    let same_location = !any_indirect && a.address & !1 == b.address & !1;
    if any_write && (any_indirect || same_location) {
        return Some(Bond::Location);
    }
    let moves = a.operation.is_stack() && b.operation.is_stack();
    (moves && all.iter().any(|it| it.operation == Operation::Pop)).then_some(Bond::Stack)
}

/// Returns the index of the instruction that reads the other half of the same value, for each second one of a pair. A
/// half belongs to the nearest one before it.
fn earlier_halves(all: &[Instruction]) -> Vec<Option<usize>> {
    let mut is_paired = vec![false; all.len()];
    let mut halves = vec![None; all.len()];
    for (at, it) in all.iter().enumerate().filter(|(_, it)| it.operation != Operation::LoadIndirect) {
        let is_other =
            |other: &Instruction| other.operation != Operation::LoadIndirect && other.address == it.address ^ 1;
        let earlier = (0..at).rev().find(|other| !is_paired[*other] && is_other(&all[*other]));
        if let Some(earlier) = earlier {
            (is_paired[earlier], is_paired[at], halves[at]) = (true, true, Some(earlier));
        }
    }
    halves
}

/// Returns the smallest groups of successive instructions that may travel in different packets.
pub(super) fn bound_groups(all: &[Instruction], word: usize, mutation: ExecutorMutation) -> Vec<BoundGroup> {
    let halves = earlier_halves(all);
    let mut groups: Vec<BoundGroup> = Vec::new();
    for (at, instruction) in all.iter().enumerate() {
        let mut group = BoundGroup { range: at..at + 1, bond: None };
        for (before, earlier) in all[..at].iter().enumerate() {
            let half =
                (halves[at] == Some(before) && !mutation.is(ExecutorMutant::HalvesSplit)).then_some(Bond::Halves);
            let Some(bond) = bond(earlier, instruction, all, word, mutation).or(half) else { continue };
            // Everything from the earlier instruction on is one group.
            while groups.last().is_some_and(|last| last.range.end > before) {
                let last = groups.pop().expect("it is there");
                group.range.start = last.range.start;
                group.bond = last.bond.or(group.bond);
            }
            group.bond = group.bond.or(Some((before, bond)));
        }
        groups.push(group);
    }
    groups
}
