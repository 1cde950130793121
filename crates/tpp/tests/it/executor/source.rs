//! Random programs of any size, and what an execution by one imaginary packet of any size would leave in them.

use std::fmt::Write;

use diagnostics::{Diagnostics, SourceMap};
use rng::SplitMix64;
use tpp::executor::{ExecutedProgram, ExecutionOptions, StoreVerdict};
use tpp::{MemoryMap, TinyProgram};
use wire::tpp::{ALL_ONES, Addressing, Operation, WordSize};

use super::network::{CLOCK, FIRST_WORD, WORDS, fixed};

/// Assembles a program of any size.
pub fn assembled(text: &str) -> TinyProgram {
    let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let program = tpp::assemble_large(&mut sources, "large.tpp", text, &MemoryMap::new(), &mut diagnostics);
    program.unwrap_or_else(|| panic!("{}\n{text}", diagnostics.render(&sources, false)))
}

/// Returns the text of a random program. `number` makes the values that it stores its own.
pub fn random_text(rng: &mut SplitMix64, number: usize, switches: u64) -> String {
    let is_hop_mode = rng.percent(60);
    let mut text = String::new();
    let word = if rng.percent(70) { 32 } else { 16 };
    let _ = writeln!(text, ".word {word}");
    // No store returns a word to an old value.
    text += if is_hop_mode { ".mode hop\n" } else { ".memory 3000\n" };
    let count = rng.pick(&[(3, 1), (3, 4), (2, 5), (3, 7), (3, 12), (1, 25)]);
    let most = if count > 8 { 9 } else { 30 };
    let _ = writeln!(text, ".hops {}", 1 + rng.below(most));
    // Each address once, so that packets differ.
    let first = rng.below(32) as usize;
    let address = |at: usize| format!("{:#06x}", 0x3000 + 2 * ((first + at) % 32));
    let mut lines: Vec<String> = (0..count)
        .map(|at| match is_hop_mode {
            // Words 0 and 1 are those of a clock.
            true if rng.percent(15) => format!("MAX [{}], [Packet:hop[{}]]", address(at), 2 + at),
            true => format!("LOAD [{}], [Packet:hop[{}]]", address(at), 2 + at),
            false => format!("PUSH [{}]", address(at)),
        })
        .collect();
    if rng.percent(40) {
        let halves = match is_hop_mode {
            true => ["LOAD [Switch:Clock], [Packet:hop[0]]", "LOAD [Switch:Clock.High], [Packet:hop[1]]"],
            false => ["PUSH [Switch:Clock]", "PUSH [Switch:Clock.High]"],
        };
        let at = rng.below(lines.len() as u64 + 1) as usize;
        let distance = rng.pick(&[(5, 0), (2, 1), (1, 2)]).min(lines.len() - at);
        lines.insert(at, halves[0].to_owned());
        lines.insert(at + 1 + distance, halves[1].to_owned());
    }
    if is_hop_mode && rng.percent(25) {
        let at = rng.below(lines.len() as u64 + 1) as usize;
        lines.insert(at, format!("CEXEC [Switch:ID], {}", 1 + rng.below(switches)));
    }
    if rng.percent(30) {
        let at = lines.len() - rng.below(3).min(lines.len() as u64) as usize;
        let address = FIRST_WORD + 2 * rng.below(WORDS.into()) as u16;
        let new = if rng.percent(60) { 1000 + number as u32 } else { 7 };
        let old = rng.pick(&[(4, 0), (1, 9)]);
        lines.insert(at, format!("CSTORE [{address:#06x}], {old}, {new}"));
        if rng.percent(20) {
            let other = FIRST_WORD + 2 * rng.below(WORDS.into()) as u16;
            lines.push(format!("STORE [{other:#06x}], [Packet:{}]", if is_hop_mode { "hop[2]" } else { "0" }));
        }
    } else if rng.percent(10) {
        let place = if is_hop_mode { "hop[2]" } else { "0" };
        let at = rng.below(lines.len() as u64 + 1) as usize;
        lines.insert(at, format!("STORE [{:#06x}], [Packet:{place}]", FIRST_WORD));
    }
    lines.into_iter().for_each(|line| text += &(line + "\n"));
    text
}

/// Whether a program has a store that a second execution would repeat.
pub fn stores_twice(source: &TinyProgram) -> bool {
    let guard = source.instructions.iter().position(|it| it.operation == Operation::Cstore);
    let is_guarded = |at: usize| {
        guard.is_some_and(|guard| guard < at && source.instructions[guard].address != source.instructions[at].address)
    };
    let mut instructions = source.instructions.iter().enumerate();
    instructions.any(|(at, it)| it.operation == Operation::Store && !is_guarded(at))
}

/// Compares the words of an execution with those that the switches have. `path` has the numbers of the switches.
///
/// # Errors
/// Returns the first difference.
pub fn compare(
    source: &TinyProgram,
    options: &ExecutionOptions,
    path: &[u32],
    found: &ExecutedProgram,
) -> Result<(), &'static str> {
    let place = options.switch.map(|id| path.iter().position(|switch| *switch == id));
    let executing: Vec<u32> = match place {
        None => path.to_vec(),
        Some(None) => Vec::new(),
        Some(Some(at)) => vec![path[at]],
    };
    let ended = found.stores.iter().any(|store| {
        !matches!(store.verdict, StoreVerdict::Stored | StoreVerdict::NotReached) && options.switch.is_some()
    });
    let is_placed = place.flatten().map(|at| at as u8) == found.place;
    let has_guard = source.instructions.iter().any(|it| it.operation == Operation::Cexec);
    if options.switch.is_some() && !is_placed && !(found.place.is_none() && (ended || has_guard)) {
        return Err("place");
    }
    if options.switch.is_none() && !options.reflects && found.program.repr.hop != path.len() as i8 {
        return Err("hops");
    }
    if found.stores.iter().any(|store| store.verdict == StoreVerdict::Unclear) {
        // All switches share its words.
        return Ok(());
    }
    let mut truth = Truth::new(source, &found.program);
    // A switch that ends a reflective program does not send it back.
    let ends = source.instructions.iter().any(|it| it.operation.may_end());
    let most = match options.switch {
        None if options.reflects && !ends => 1,
        None => found.program.repr.hop.max(0) as usize,
        Some(_) => 1,
    };
    let executing = &executing[..executing.len().min(most)];
    executing.iter().enumerate().for_each(|(hop, switch)| truth.execute(hop, *switch, found));
    truth.compare(&found.program)
}

/// The words of a program as they should be.
struct Truth<'a> {
    source: &'a TinyProgram,
    size: usize,
    memory: Vec<u8>,
    /// Bytes that are not compared.
    unknown: Vec<bool>,
    pointer: usize,
    /// Places of the halves of a clock.
    halves: Vec<(usize, usize)>,
}

impl<'a> Truth<'a> {
    fn new(source: &'a TinyProgram, found: &TinyProgram) -> Truth<'a> {
        let size = source.repr.word_size.bytes();
        // A program for one switch has the memory of one hop.
        let memory = source.memory[..found.memory.len().min(source.memory.len())].to_vec();
        let pointer = match source.repr.addressing {
            Addressing::Stack { pointer } => pointer,
            Addressing::Hop { .. } => 0,
        };
        let unknown = vec![false; memory.len()];
        Truth { source, size, memory, unknown, pointer, halves: Vec::new() }
    }

    fn value(&self, at: usize) -> Option<u32> {
        let bytes = self.memory.get(at..at + self.size)?;
        Some(bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)))
    }

    fn put(&mut self, at: usize, value: u64) {
        if let Some(bytes) = self.memory.get_mut(at..at + self.size) {
            bytes.copy_from_slice(&value.to_be_bytes()[8 - self.size..]);
        }
    }

    fn execute(&mut self, hop: usize, switch: u32, found: &ExecutedProgram) {
        let (block, is_stack) = match self.source.repr.addressing {
            Addressing::Stack { .. } => (0, true),
            Addressing::Hop { len } => (hop * len, false),
        };
        if !is_stack && self.memory.len() <= block {
            return;
        }
        let (mut low, mut high) = (None, None);
        for (index, it) in self.source.instructions.iter().enumerate() {
            let mut at = block + usize::from(it.first) * self.size;
            let bits = 8 * self.size as u32;
            match it.operation {
                Operation::Cexec => {
                    let value = self.memory[block + usize::from(it.second) * self.size..].first_chunk();
                    assert_eq!(it.first, ALL_ONES);
                    if value.map(|value| u32::from_be_bytes(*value)) != Some(switch) {
                        break;
                    }
                }
                Operation::Cstore => {
                    self.unknown[at..at + self.size].fill(true);
                    let hop = (!is_stack && found.stores.iter().any(|store| store.hop.is_some())).then_some(hop);
                    let store = found.stores.iter().find(|store| (store.instruction, store.hop) == (index, hop));
                    if store.is_none_or(|store| store.verdict != StoreVerdict::Stored) {
                        break;
                    }
                }
                Operation::Load | Operation::Push => {
                    if it.operation == Operation::Push {
                        at = self.pointer;
                        if at + self.size > self.memory.len() {
                            continue;
                        }
                        self.pointer += self.size;
                    }
                    if it.address & !1 == CLOCK {
                        *(if it.address & 1 == 0 { &mut low } else { &mut high }) = Some(at);
                        self.unknown[at..at + self.size].fill(true);
                        continue;
                    }
                    let value = fixed(switch, (it.address & !1).into()).expect("it never changes");
                    self.put(at, if it.address & 1 == 0 { value } else { value >> bits });
                }
                Operation::Max => {
                    let value = fixed(switch, it.address.into()).expect("it never changes");
                    let largest = if self.source.repr.word_size == WordSize::Bits16 { 0xffff } else { u32::MAX };
                    let value = value.min(largest.into()) as u32;
                    let value = value.max(self.value(at).expect("it is there"));
                    self.put(at, value.into());
                }
                _ => {}
            }
        }
        self.halves.extend(low.zip(high).filter(|_| self.size == 4));
    }

    fn compare(&self, found: &TinyProgram) -> Result<(), &'static str> {
        if found.memory.len() != self.memory.len() {
            return Err("length");
        }
        let bytes = found.memory.iter().zip(&self.memory).zip(&self.unknown);
        if bytes.into_iter().any(|((found, expected), is_unknown)| found != expected && !is_unknown) {
            return Err("words");
        }
        let word = |at: usize| &found.memory[at..at + self.size];
        if self.halves.iter().any(|(low, high)| word(*low) != word(*high)) {
            return Err("halves");
        }
        Ok(())
    }
}
