//! Shows which words of a program no switch wrote: memory that only switches write begins with ones.

use wire::tpp::{Addressing, Operation, Status, WordSize};

use super::TinyProgram;
use crate::map::MemoryMap;

impl TinyProgram {
    /// Sets the words that only a `PUSH` or `LOAD` accesses to ones, unless the source presets them. A statistic that a
    /// switch lacks leaves its word unchanged, so [`TinyProgram::words_or_absent`] shows it.
    pub fn mark_absent(&mut self) {
        let word = self.repr.word_size.bytes();
        let marked = self.markable();
        let first = match self.repr.addressing {
            Addressing::Stack { pointer } => pointer,
            Addressing::Hop { .. } => 0,
        };
        let words = self.memory.get_mut(first..).unwrap_or_default().chunks_exact_mut(word);
        let words =
            words.zip(marked.iter().cycle()).filter(|(word, is_marked)| **is_marked && **word == *vec![0; word.len()]);
        words.for_each(|(word, _)| word.fill(0xff));
    }

    /// Returns the words of [`TinyProgram::words_by_hop`] of a program that was marked before it was sent; `None` for
    /// words that no switch wrote.
    pub fn words_or_absent(&self, map: &MemoryMap) -> Vec<Vec<(String, Option<u32>)>> {
        let marked = self.markable();
        let hop = |words: Vec<(String, u32)>| {
            let words = words.into_iter().enumerate();
            let marked = |at: usize| marked.get(at).copied().unwrap_or(false);
            words
                .map(|(at, (name, value))| (name, Some(value).filter(|_| !(marked(at) && self.is_absent(value)))))
                .collect()
        };
        self.words_by_hop(map).into_iter().map(hop).collect()
    }

    /// Returns the words of [`TinyProgram::unnamed_words`] of a marked program, likewise.
    pub fn unnamed_or_absent(&self) -> Option<Vec<Option<u32>>> {
        let is_marked = self.markable().contains(&true);
        let word = |value| Some(value).filter(|value| !(is_marked && self.is_absent(*value)));
        Some(self.unnamed_words()?.into_iter().map(word).collect())
    }

    /// Whether a word has its mark, in a program that lacked a statistic somewhere, or may have ended before it.
    fn is_absent(&self, value: u32) -> bool {
        let mark = if self.repr.word_size == WordSize::Bits16 { 0xffff } else { u32::MAX };
        let may_end = self.instructions.iter().any(|it| it.operation.may_end());
        (self.repr.status.contains(Status::ABSENT) || may_end) && value == mark
    }

    /// Returns which words of each hop switches write and no instruction reads.
    fn markable(&self) -> Vec<bool> {
        let word = self.repr.word_size.bytes();
        let pushes = self.instructions.iter().filter(|it| it.operation == Operation::Push).count();
        let pops = self.instructions.iter().any(|it| it.operation == Operation::Pop);
        match self.repr.addressing {
            _ if pops => Vec::new(),
            Addressing::Stack { .. } if self.names_stack() => Vec::new(),
            Addressing::Stack { .. } => vec![true; pushes],
            // All hops share this memory.
            Addressing::Hop { len: 0 } => Vec::new(),
            Addressing::Hop { len } => (0..len / word).map(|at| self.is_only_written(at, pushes)).collect(),
        }
    }

    /// Whether an operand may lie in the stack: where it begins is only known before the program is executed.
    fn names_stack(&self) -> bool {
        let Addressing::Stack { pointer } = self.repr.addressing else { return false };
        pointer < self.constants_len()
    }

    /// Whether only a `PUSH` or `LOAD` accesses this word of a block, of `pushes` that begin at its first word.
    fn is_only_written(&self, word: usize, pushes: usize) -> bool {
        let wide = 4 / self.repr.word_size.bytes();
        let is = |operand: u8, words: usize| (usize::from(operand)..usize::from(operand) + words).contains(&word);
        let is_read = self.instructions.iter().any(|it| match it.operation {
            Operation::Push | Operation::Pop | Operation::Load => false,
            Operation::LoadIndirect => is(it.second, wide),
            Operation::Cexec => is(it.first, wide) || is(it.second, wide),
            Operation::Cstore => is(it.first, 1) || is(it.second, 1),
            Operation::Store | Operation::Min | Operation::Max => is(it.first, 1),
        });
        let is_loaded = self.instructions.iter().any(|it| {
            matches!(it.operation, Operation::Load | Operation::LoadIndirect) && usize::from(it.first) == word
        });
        !is_read && (word < pushes || is_loaded)
    }
}
