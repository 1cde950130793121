//! Lays out the memory of the packets of a plan.

use std::ops::Range;

use wire::tpp::{ALL_ONES, Addressing, HEADER_LEN, INSTRUCTION_LEN, Instruction, MAX_LEN, Operation};

use crate::asm::TinyProgram;

/// The memory of the packets of a group of instructions.
///
/// ```text
/// stack mode                     constants | guard | witness | stack of each hop
/// hop mode                       words | witness             for each hop
/// hop mode, for one switch       words | guard | witness     once
/// ```
pub(super) struct PacketLayout<'a> {
    source: &'a TinyProgram,
    /// Size of a word in bytes.
    word: usize,
    /// Length of the source's memory in bytes that all of these packets have, or all blocks of them.
    pub own: usize,
    /// Place and value of the number of the only switch.
    guard: Option<(usize, u32)>,
    /// Place of the witness.
    witness: Option<usize>,
    /// Length of what is not a stack: `own`, guard and witness.
    fixed: usize,
    /// Memory for each hop; 0 if all share it.
    pub per_hop: usize,
    /// Number of `PUSH`es before the group, and of its own.
    pub pushes: Range<usize>,
}

impl<'a> PacketLayout<'a> {
    /// Lays out the memory of the instructions in `range`. With the number of a switch, only that executes them.
    pub fn new(source: &'a TinyProgram, range: &Range<usize>, switch: Option<u32>, has_witness: bool) -> Self {
        let word = source.repr.word_size.bytes();
        let before = pushes(&source.instructions[..range.start]);
        let pushes = before..before + pushes(&source.instructions[range.clone()]);
        let own = match source.repr.addressing {
            Addressing::Stack { pointer } => pointer,
            Addressing::Hop { len: 0 } => source.memory.len(),
            Addressing::Hop { len } => len,
        };
        let guard = switch.map(|switch| (own.next_multiple_of(word), switch));
        let after = guard.map_or(own.next_multiple_of(word), |(at, _)| at + 4);
        let witness = has_witness.then_some(after);
        let fixed = match (guard, witness) {
            (None, None) => own,
            (_, None) => after,
            (_, Some(at)) => at + word,
        };
        let per_hop = match source.repr.addressing {
            Addressing::Stack { .. } => pushes.len() * word,
            Addressing::Hop { len } if len > 0 && guard.is_none() => fixed,
            Addressing::Hop { .. } => 0,
        };
        PacketLayout { source, word, own, guard, witness, fixed, per_hop, pushes }
    }

    fn is_stack(&self) -> bool {
        matches!(self.source.repr.addressing, Addressing::Stack { .. })
    }

    /// Returns the length of the memory for one hop in bytes.
    pub fn one_hop_len(&self) -> usize {
        if self.is_stack() { self.fixed + self.per_hop } else { self.fixed }
    }

    /// Returns the number of hops that a packet with this number of instructions has room for; 0 if it has none, or if
    /// operands cannot name guard and witness.
    pub fn hops(&self, instructions: usize) -> usize {
        let room = MAX_LEN - HEADER_LEN - instructions * INSTRUCTION_LEN;
        let last = self.witness.or(self.guard.map(|(at, _)| at)).map_or(0, |at| at / self.word);
        let shared = if self.is_stack() { self.fixed } else { 0 };
        match self.per_hop {
            _ if self.one_hop_len() > room || last >= usize::from(ALL_ONES) => 0,
            0 => usize::MAX,
            per_hop => (room - shared) / per_hop,
        }
    }

    /// Returns the word of the number of the switch.
    pub fn guard(&self) -> Option<u8> {
        self.guard.map(|(at, _)| (at / self.word) as u8)
    }

    /// Returns the word of the witness.
    pub fn witness(&self) -> Option<u8> {
        self.witness.map(|at| (at / self.word) as u8)
    }

    /// Returns the addressing of the packets.
    pub fn addressing(&self) -> Addressing {
        if self.is_stack() { Addressing::Stack { pointer: self.fixed } } else { Addressing::Hop { len: self.per_hop } }
    }

    /// Returns the memory of the packet for some hops, as the source presets it.
    pub fn memory(&self, hops: &Range<usize>) -> Vec<u8> {
        let mut memory = Vec::with_capacity(MAX_LEN);
        if self.is_stack() {
            self.append_fixed(&mut memory, 0);
            let all = pushes(&self.source.instructions);
            for word in hops.clone().flat_map(|hop| self.pushes.clone().map(move |push| hop * all + push)) {
                self.append(&mut memory, self.own + word * self.word, self.word);
            }
        } else if self.per_hop == 0 {
            self.append_fixed(&mut memory, 0);
        } else {
            hops.clone().for_each(|hop| self.append_fixed(&mut memory, hop * self.own));
        }
        memory
    }

    /// Appends bytes of the source; zeros where it has none.
    fn append(&self, memory: &mut Vec<u8>, from: usize, len: usize) {
        let end = memory.len() + len;
        let bytes = self.source.memory.get(from..).unwrap_or_default();
        memory.extend(bytes.iter().take(len));
        memory.resize(end, 0);
    }

    /// Appends what is not a stack.
    fn append_fixed(&self, memory: &mut Vec<u8>, from: usize) {
        let start = memory.len();
        self.append(memory, from, self.own);
        memory.resize(start + self.fixed, 0);
        if let Some((at, switch)) = self.guard {
            memory[start + at..start + at + 4].copy_from_slice(&switch.to_be_bytes());
        }
        if let Some(at) = self.witness {
            memory[start + at..start + at + self.word].fill(0xff);
        }
    }
}

/// Returns the number of `PUSH`es among some instructions.
pub(super) fn pushes(instructions: &[Instruction]) -> usize {
    instructions.iter().filter(|it| it.operation == Operation::Push).count()
}
