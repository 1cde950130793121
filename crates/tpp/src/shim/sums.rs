//! Adds up the words of collected programs by hop.

use std::collections::HashMap;

use wire::tpp::{HEADER_LEN, INSTRUCTION_LEN, MAX_INSTRUCTIONS, Packet, WordSize};

use super::CollectedProgram;
use crate::asm::TinyProgram;
use crate::map::MemoryMap;

/// Maximum number of layouts that are kept. Switches decide on hop, stack pointer and status, and so on their number.
pub(super) const LAYOUTS: usize = 1024;

/// All of a program that decides on the places of its words: the header without checksum and payload, and the
/// instructions.
pub(super) type LayoutKey = [u8; 8 + MAX_INSTRUCTIONS * INSTRUCTION_LEN];

/// Place and name of a word in memory.
#[derive(Clone, Debug)]
struct WordPlace {
    /// Index of the sum.
    sum: usize,
    /// Offset in packet memory, in bytes.
    offset: usize,
    /// Whether a word of ones is one that no switch wrote.
    may_be_absent: bool,
}

/// The values of a word at a hop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordSum {
    /// Application of the programs.
    pub application: u16,
    /// Number of switches before this one.
    pub hop: usize,
    /// Name of the word.
    pub name: String,
    /// Number of values; 0 if every switch lacked the statistic.
    pub count: u64,
    /// The least value.
    pub least: u32,
    /// The greatest value.
    pub most: u32,
    /// Sum of the values.
    pub sum: u64,
}

/// The sums of words, by application, hop and name. Only the programs of rules are added, so their number is bounded.
#[derive(Debug, Default)]
pub struct WordSums {
    sums: Vec<WordSum>,
    layouts: HashMap<LayoutKey, Vec<WordPlace>>,
    /// Programs that no switch executed.
    pub not_executed: u64,
    /// Programs whose words have no hop.
    pub unnamed: u64,
}

impl WordSums {
    /// Adds the words of a program.
    pub fn add(&mut self, collected: &CollectedProgram, map: &MemoryMap) {
        let Ok(packet) = Packet::new_checked(&collected.bytes[..]) else { return };
        if packet.hop() <= 0 {
            self.not_executed += 1;
            return;
        }
        let key = layout_key(&collected.bytes, packet.instruction_count());
        if !self.layouts.contains_key(&key) {
            if self.layouts.len() == LAYOUTS {
                self.layouts.clear();
            }
            let layout = self.layout(&collected.program(), map);
            self.layouts.insert(key, layout);
        }
        let layout = &self.layouts[&key];
        self.unnamed += u64::from(layout.is_empty());
        let (memory, size) = (packet.memory(), packet.word_size());
        for place in layout {
            let Some(value) = value_at(memory, place.offset, size, place.may_be_absent) else { continue };
            let sum = &mut self.sums[place.sum];
            (sum.least, sum.most) = (sum.least.min(value), sum.most.max(value));
            (sum.count, sum.sum) = (sum.count + 1, sum.sum.saturating_add(value.into()));
        }
    }

    /// Returns the places of a program's words, and adds sums for those that are new.
    fn layout(&mut self, program: &TinyProgram, map: &MemoryMap) -> Vec<WordPlace> {
        let mut layout = Vec::new();
        for HopWord { hop, name, offset, may_be_absent } in hop_words(program, map) {
            let sum = self.sum_of(program.repr.application, hop, name);
            layout.push(WordPlace { sum, offset, may_be_absent });
        }
        layout
    }

    /// Returns the index of a sum.
    fn sum_of(&mut self, application: u16, hop: usize, name: String) -> usize {
        let is = |sum: &WordSum| (sum.application, sum.hop) == (application, hop) && sum.name == name;
        self.sums.iter().position(is).unwrap_or_else(|| {
            self.sums.push(WordSum { application, hop, name, count: 0, least: u32::MAX, most: 0, sum: 0 });
            self.sums.len() - 1
        })
    }

    /// Returns the sums by application and hop, in the order of the program.
    pub fn ordered(&self) -> Vec<&WordSum> {
        let mut sums: Vec<&WordSum> = self.sums.iter().collect();
        sums.sort_by_key(|sum| (sum.application, sum.hop));
        sums
    }
}

/// A word of a program at a hop.
pub(super) struct HopWord {
    /// Number of switches before.
    pub hop: usize,
    /// Name of the word.
    pub name: String,
    /// Offset in packet memory, in bytes.
    pub offset: usize,
    /// Whether a word of ones is one that no switch wrote.
    pub may_be_absent: bool,
}

/// Returns the words of a program by hop. Words of ones show which of them count as absent.
pub(super) fn hop_words(program: &TinyProgram, map: &MemoryMap) -> Vec<HopWord> {
    let mut marked = program.clone();
    marked.memory.fill(0xff);
    let mut found = Vec::new();
    let hops = program.places_by_hop(map).into_iter().zip(marked.words_or_absent(map));
    for (hop, (words, marks)) in hops.enumerate() {
        for ((name, offset), (_, mark)) in words.into_iter().zip(marks) {
            found.push(HopWord { hop, name, offset, may_be_absent: mark.is_none() });
        }
    }
    found
}

/// Returns the value of a word in memory; `None` if no switch wrote it.
pub(super) fn value_at(memory: &[u8], offset: usize, size: WordSize, may_be_absent: bool) -> Option<u32> {
    let (value, absent) = match (memory.get(offset..).unwrap_or_default(), size) {
        ([a, b, c, d, ..], WordSize::Bits32) => (u32::from_be_bytes([*a, *b, *c, *d]), u32::MAX),
        ([a, b, ..], WordSize::Bits16) => (u16::from_be_bytes([*a, *b]).into(), 0xffff),
        _ => return None,
    };
    (!may_be_absent || value != absent).then_some(value)
}

pub(super) fn layout_key(bytes: &[u8], instructions: usize) -> LayoutKey {
    let mut key = [0; size_of::<LayoutKey>()];
    key[..6].copy_from_slice(&bytes[..6]);
    let rest = &bytes[HEADER_LEN - 2..HEADER_LEN + instructions * INSTRUCTION_LEN];
    key[6..6 + rest.len()].copy_from_slice(rest);
    key
}

#[cfg(test)]
mod tests {
    use diagnostics::{Diagnostics, SourceMap};
    use rng::SplitMix64;

    use super::*;
    use crate::asm::assemble;
    use crate::tcpu::{AccessRights, SparseMemory, Tcpu};

    fn assembled(text: &str) -> TinyProgram {
        let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let program = assemble(&mut sources, "test", text, &MemoryMap::new(), &mut diagnostics);
        let mut program = program.expect("it has no mistakes");
        program.mark_absent();
        program
    }

    /// Returns the bytes of a program after switches with these numbers executed it. They have no queues.
    fn execute(program: &TinyProgram, switches: &[u64]) -> Vec<u8> {
        let (map, mut bytes) = (MemoryMap::new(), program.packet(&[]));
        for switch in switches {
            let mut memory = SparseMemory::new();
            memory.fixed(map.find("Switch:ID").expect("it exists").address, *switch);
            Tcpu::execute(&mut bytes, &mut memory, &AccessRights::all());
        }
        bytes
    }

    /// Adds programs, and asserts that the sums are those of their decoded words. Returns the sums.
    #[track_caller]
    fn assert_sums(text: &str, programs: impl IntoIterator<Item = Vec<u8>>) -> WordSums {
        let (map, mut sums) = (MemoryMap::new(), WordSums::default());
        let mut expected: Vec<(usize, String, u64, u64)> = Vec::new();
        for bytes in programs {
            let collected = CollectedProgram { flow: None, bytes };
            sums.add(&collected, &map);
            let program = collected.program();
            if program.repr.hop <= 0 {
                continue;
            }
            let hops = program.words_or_absent(&map).into_iter().enumerate();
            for (hop, (name, value)) in hops.flat_map(|(hop, words)| words.into_iter().map(move |word| (hop, word))) {
                let is = |row: &&mut (usize, String, u64, u64)| row.0 == hop && row.1 == name;
                if expected.iter_mut().find(is).is_none() {
                    expected.push((hop, name.clone(), 0, 0));
                }
                let row = expected.iter_mut().find(is).expect("it was added");
                (row.2, row.3) = (row.2 + u64::from(value.is_some()), row.3 + u64::from(value.unwrap_or(0)));
            }
        }
        expected.sort_by_key(|row| row.0);
        let found: Vec<_> = sums.ordered().iter().map(|sum| (sum.hop, sum.name.clone(), sum.count, sum.sum)).collect();
        assert_eq!(found, expected, "{text}");
        assert!(found.iter().any(|row| row.2 > 0), "{text}");
        sums
    }

    const TEXTS: [&str; 5] = [
        "PUSH [Switch:ID]\nPUSH [Queue:QueueOccupancy]",
        ".word 16\n.hops 4\nPUSH [Queue:QueueOccupancy]\nPUSH [Switch:ID]",
        ".mode hop\n.hops 3\nLOAD [Switch:ID], [Packet:hop[1]]\nPUSH [Queue:QueueOccupancy]",
        ".memory 9, 9\n.sp 8\nPUSH [Switch:ID]\nMAX [Switch:ID], [Packet:0]",
        // The words of this stack are not aligned.
        ".sp 2\n.bytes 26\nPUSH [Switch:ID]\nPUSH [Queue:QueueOccupancy]",
    ];

    #[test]
    fn sums_are_those_of_the_decoded_words() {
        for text in TEXTS {
            let program = assembled(text);
            let switches = [&[7, 9][..], &[8], &[1, 2, 3], &[0xffff, 0xffff_ffff], &[7, 1]];
            assert_sums(text, switches.map(|switches| execute(&program, switches)));
        }
    }

    #[test]
    fn what_switches_may_change_cannot_make_sums_wrong() {
        let mut random = SplitMix64::new(11);
        for text in TEXTS {
            let original = assembled(text).packet(&[]);
            let memory = original.len() - Packet::new_checked(&original[..]).expect("a program").memory_len();
            let programs: Vec<_> = (0..3000)
                .map(|_| {
                    let mut bytes = original.clone();
                    let small = random.below(2) == 0;
                    let mut byte = |end| random.below(if small { end } else { 256 }) as u8;
                    (bytes[1], bytes[4], bytes[5]) = (byte(256) << 4, byte(4), byte(16));
                    bytes[memory..].iter_mut().for_each(|to| *to = [byte(256), 0, 1, 0xff][usize::from(byte(256) % 4)]);
                    bytes
                })
                .collect();
            let sums = assert_sums(text, programs);
            assert!(sums.not_executed > 0 && sums.ordered().len() > 1, "{text}");
        }
    }

    #[test]
    fn programs_without_words_are_counted() {
        let (map, mut sums) = (MemoryMap::new(), WordSums::default());
        let pushes = assembled("PUSH [Switch:ID]");
        let other = assembled("CEXEC [Switch:ID], 0xffffffff, 4\nPUSH [Switch:ID]");
        for bytes in [execute(&pushes, &[]), execute(&other, &[4, 5])] {
            sums.add(&CollectedProgram { flow: None, bytes }, &map);
        }
        assert_eq!((sums.not_executed, sums.unnamed, sums.ordered().len()), (1, 1, 0));
    }
}
