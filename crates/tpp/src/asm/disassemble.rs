//! Writes a program as text that assembles to the same bytes.

use std::fmt::Write;

use wire::tpp::{ALL_ONES, Addressing, Instruction, Operation, Status, WordSize};

use super::TinyProgram;
use crate::map::MemoryMap;

/// Returns the text of a program, with the words of its memory as comments. The text assembles to the same bytes with
/// any map of the same switch.
pub fn disassemble(program: &TinyProgram, map: &MemoryMap) -> String {
    let repr = &program.repr;
    let mut text = format!(".word {}\n", repr.word_size.bits());
    let _ = match repr.addressing {
        Addressing::Stack { pointer } => write!(text, ".mode stack\n.sp {pointer}\n"),
        Addressing::Hop { len } => write!(text, ".mode hop\n.size {len}\n"),
    };
    let mut setting = |is_set: bool, line: String| {
        if is_set {
            text += &line;
            text.push('\n');
        }
    };
    setting(repr.hop != 0, format!(".hop {}", repr.hop));
    setting(repr.application != 0, format!(".app {}", repr.application));
    setting(repr.encapsulated != 0, format!(".encapsulated {:#06x}", repr.encapsulated));
    setting(repr.is_reflective, ".reflect".to_owned());
    setting(repr.is_read_only, ".readonly".to_owned());
    setting(repr.status != Status::NONE, format!(".status {}", repr.status));
    for instruction in &program.instructions {
        let _ = writeln!(text, "{}", instruction_text(*instruction, repr.addressing, map));
    }
    let _ = writeln!(text, ".bytes {}", program.memory.len());
    for line in program.memory.chunks(16) {
        let digits: String = line.iter().map(|byte| format!("{byte:02x}")).collect();
        let _ = writeln!(text, ".data {digits}");
    }
    text
}

/// Returns the text of an instruction. If it has bits without a meaning, it is `RAW`.
pub(crate) fn instruction_text(instruction: Instruction, addressing: Addressing, map: &MemoryMap) -> String {
    let Instruction { operation, address, first, second } = instruction;
    let packet = |word: u8| match addressing {
        Addressing::Stack { .. } => format!("[Packet:{word}]"),
        Addressing::Hop { .. } => format!("[Packet:hop[{word}]]"),
    };
    let name = map.locate(address.into()).filter(|entry| map.find(&entry.name).as_ref() == Ok(entry));
    // A read-only name cannot be the operand of a write.
    let name = name.filter(|entry| !operation.is_write() || entry.access == crate::map::Access::ReadWrite);
    let switch = name.map_or_else(|| format!("[{address:#06x}]"), |entry| format!("[{}]", entry.name));
    let is_canonical = match operation {
        Operation::Push | Operation::Pop => (first, second) == (0, 0),
        Operation::LoadIndirect => address == 0,
        Operation::Cstore | Operation::Cexec => true,
        _ => second == 0,
    };
    if !is_canonical {
        return format!("RAW {:#010x}", instruction.pack());
    }
    let mnemonic = operation.name();
    match operation {
        Operation::Push | Operation::Pop => format!("{mnemonic} {switch}"),
        Operation::LoadIndirect => format!("LOAD [{}], {}", packet(second), packet(first)),
        Operation::Cexec if first == ALL_ONES => format!("{mnemonic} {switch}, {}", packet(second)),
        Operation::Cstore | Operation::Cexec => {
            format!("{mnemonic} {switch}, {}, {}", packet(first), packet(second))
        }
        _ => format!("{mnemonic} {switch}, {}", packet(first)),
    }
}

impl TinyProgram {
    /// Returns the words of packet memory with their hops and names, as far as the instructions name them: one line for
    /// each hop that was passed, or for all of them if the program has not been executed; none while it waits for a
    /// hop. The words of [`TinyProgram::unnamed_words`] are not among them.
    pub fn words_by_hop(&self, map: &MemoryMap) -> Vec<Vec<(String, u32)>> {
        let word = self.repr.word_size.bytes();
        let value_at = |offset: usize| value(&self.memory[offset..offset + word], self.repr.word_size);
        let hop = |places: Vec<(String, usize)>| {
            places.into_iter().map(|(name, offset)| (name, value_at(offset))).collect::<Vec<_>>()
        };
        self.places_by_hop(map).into_iter().map(hop).collect()
    }

    /// Returns the names of the words of [`TinyProgram::words_by_hop`] and their offsets in packet memory, in bytes.
    /// All of these words lie in the memory. They need not be aligned, as a stack may begin at any even offset.
    pub(crate) fn places_by_hop(&self, map: &MemoryMap) -> Vec<Vec<(String, usize)>> {
        if self.repr.hop < 0 || self.unnamed_words().is_some() {
            return Vec::new();
        }
        let word = self.repr.word_size.bytes();
        let name = |address: u16| map.locate(address.into()).map_or(format!("{address:#06x}"), |entry| entry.name);
        let pushes: Vec<_> =
            self.instructions.iter().filter(|instruction| instruction.operation == Operation::Push).collect();
        let (first, names): (usize, Vec<String>) = match self.repr.addressing {
            Addressing::Stack { pointer } => {
                let passed = usize::try_from(self.repr.hop).unwrap_or(0) * pushes.len() * word;
                let names = pushes.iter().map(|push| name(push.address)).collect();
                (pointer.saturating_sub(passed).max(self.constants_len()), names)
            }
            Addressing::Hop { len } => {
                let len = if len == 0 { self.memory.len() } else { len };
                let mut names: Vec<_> = (0..len / word).map(|index| format!("word {index}")).collect();
                for (index, push) in pushes.iter().enumerate() {
                    names.get_mut(index).into_iter().for_each(|slot| *slot = name(push.address));
                }
                for instruction in &self.instructions {
                    let text = match instruction.operation {
                        Operation::Load | Operation::Min | Operation::Max => name(instruction.address),
                        Operation::LoadIndirect => "indirect".to_owned(),
                        _ => continue,
                    };
                    names.get_mut(usize::from(instruction.first)).into_iter().for_each(|slot| *slot = text.clone());
                }
                (0, names)
            }
        };
        if names.is_empty() {
            return Vec::new();
        }
        let end = match self.repr.addressing {
            Addressing::Stack { pointer } if self.repr.hop > 0 => pointer.min(self.memory.len()),
            _ => self.memory.len(),
        };
        let passed = if self.repr.hop > 0 { self.repr.hop as usize } else { usize::MAX };
        let (first, hop_len) = (first.min(end), names.len() * word);
        let hops = (first..end).step_by(hop_len).take((end - first) / hop_len).take(passed);
        hops.map(|start| names.iter().cloned().zip((start..).step_by(word)).collect()).collect()
    }
}

impl TinyProgram {
    /// Returns the words of the stack, oldest first, if nothing shows at which hop each one was pushed: a `CEXEC` or
    /// `CSTORE` may end the program between the pushes of a hop.
    pub fn unnamed_words(&self) -> Option<Vec<u32>> {
        let Addressing::Stack { pointer } = self.repr.addressing else { return None };
        let mut rest = self.instructions.iter().skip_while(|it| !it.operation.may_end()).map(|it| it.operation);
        if self.repr.hop <= 0 || !rest.any(|operation| operation == Operation::Push) {
            return None;
        }
        let stack = self.memory.get(self.constants_len()..pointer.min(self.memory.len())).unwrap_or_default();
        Some(stack.chunks_exact(self.repr.word_size.bytes()).map(|bytes| value(bytes, self.repr.word_size)).collect())
    }

    /// Returns the length of the memory that operands name, in bytes: in stack mode the stack begins after it.
    pub(crate) fn constants_len(&self) -> usize {
        let word = self.repr.word_size.bytes();
        let end = |operand: u8, len: usize| usize::from(operand) * word + len;
        let ends = self.instructions.iter().map(|instruction| {
            let Instruction { operation, first, second, .. } = *instruction;
            match operation {
                Operation::Push | Operation::Pop => 0,
                Operation::Cexec if first == ALL_ONES => end(second, 4),
                Operation::Cexec => end(first, 4).max(end(second, 4)),
                Operation::Cstore => end(first, word).max(end(second, word)),
                Operation::LoadIndirect => end(first, word).max(end(second, 4)),
                _ => end(first, word),
            }
        });
        ends.max().unwrap_or(0)
    }
}

fn value(bytes: &[u8], word_size: WordSize) -> u32 {
    match (word_size, bytes) {
        (WordSize::Bits16, [a, b]) => u16::from_be_bytes([*a, *b]).into(),
        (WordSize::Bits32, [a, b, c, d]) => u32::from_be_bytes([*a, *b, *c, *d]),
        _ => 0,
    }
}
