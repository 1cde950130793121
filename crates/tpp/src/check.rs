//! Analyses programs before they are installed (paper, sections 4.1 and 4.3): exact read and write sets, the worst
//! case, instructions that are never executed, accesses that a policy forbids, and hops that memory has room for.

use diagnostics::{Diagnostic, Severity, Span};
use wire::tpp::{ALL_ONES, Addressing, HEADER_LEN, INSTRUCTION_LEN, Instruction, Operation};

use crate::asm::TinyProgram;
use crate::map::{Access, MapEntry, MemoryMap};
use crate::tcpu::{AccessRights, OWN_FIELDS};

/// A location that a program accesses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessRecord {
    /// Its address.
    pub address: u32,
    /// Its name; `None` if the map does not have it.
    pub entry: Option<MapEntry>,
    /// Indexes of the instructions that access it.
    pub instructions: Vec<usize>,
}

/// The addresses of indirect loads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndirectSet {
    /// There is no indirect load, or packet memory has the addresses, and nothing changes them.
    Known,
    /// An address is computed by the program, so only the switch can check it.
    Unknown,
}

/// Largest cost of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorstCase {
    /// Bytes that the program adds to a packet.
    pub bytes: usize,
    /// Reads of switch memory at a hop.
    pub reads: u32,
    /// Unconditional writes of switch memory at a hop.
    pub writes: u32,
    /// Conditional stores at a hop.
    pub swaps: u32,
    /// Number of hops that memory has room for; `None` if it is enough for any number.
    pub hops: Option<u32>,
}

/// A finding of the analysis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckFinding {
    /// Error: the program must not be installed. Warning: it does something that is probably not intended.
    pub severity: Severity,
    /// Short name of this kind of finding.
    pub code: &'static str,
    /// Index of the instruction; `None` for the program.
    pub instruction: Option<usize>,
    /// One sentence.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
}

impl CheckFinding {
    /// Returns the finding as a diagnostic of a source file.
    pub fn diagnostic(&self, program: &TinyProgram, whole: Span) -> Diagnostic {
        let span = self.instruction.and_then(|index| program.spans.get(index)).copied().unwrap_or(whole);
        let mut diagnostic = Diagnostic::warning(self.code, span, self.message.clone());
        diagnostic.severity = self.severity;
        match &self.help {
            Some(help) => diagnostic.help(help.clone()),
            None => diagnostic,
        }
    }
}

/// Result of the analysis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckReport {
    /// The exact read set, ordered by address. It excludes the program's own fields.
    pub reads: Vec<AccessRecord>,
    /// The exact write set, ordered by address.
    pub writes: Vec<AccessRecord>,
    /// Whether the read set includes all indirect loads.
    pub indirect: IndirectSet,
    /// The worst case.
    pub worst: WorstCase,
    /// Findings, in the order of the instructions.
    pub findings: Vec<CheckFinding>,
}

impl CheckReport {
    /// Whether the program may be installed.
    pub fn is_permitted(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity != Severity::Error)
    }
}

/// Analyses a program for an application with these rights.
pub fn check(program: &TinyProgram, map: &MemoryMap, rights: &AccessRights) -> CheckReport {
    let mut analysis = Analysis {
        program,
        map,
        word: program.repr.word_size.bytes(),
        report: CheckReport {
            reads: Vec::new(),
            writes: Vec::new(),
            indirect: IndirectSet::Known,
            worst: WorstCase {
                bytes: HEADER_LEN + program.instructions.len() * INSTRUCTION_LEN + program.memory.len(),
                ..WorstCase::default()
            },
            findings: Vec::new(),
        },
    };
    analysis.report.worst.hops = analysis.hops();
    analysis.instructions();
    analysis.room();
    analysis.rights(rights);
    analysis.report.findings.sort_by_key(|finding| finding.instruction.unwrap_or(usize::MAX));
    analysis.report
}

struct Analysis<'a> {
    program: &'a TinyProgram,
    map: &'a MemoryMap,
    /// Size of a word in bytes.
    word: usize,
    report: CheckReport,
}

impl Analysis<'_> {
    fn find(&mut self, severity: Severity, code: &'static str, at: Option<usize>, message: String, help: &str) {
        let help = Some(help.to_owned()).filter(|help| !help.is_empty());
        self.report.findings.push(CheckFinding { severity, code, instruction: at, message, help });
    }

    fn name(&self, address: u32) -> String {
        self.map.locate(address).map_or_else(|| format!("{address:#06x}"), |entry| entry.name)
    }

    /// Analyses the instructions in order, up to one that always ends the program.
    fn instructions(&mut self) {
        for (index, instruction) in self.program.instructions.iter().enumerate() {
            self.operands(index, *instruction);
            self.accesses(index, *instruction);
            let Some(reason) = self.never_passes(*instruction) else { continue };
            let left = self.program.instructions.len() - index - 1;
            let message = format!("this `CEXEC` never matches: {reason}");
            let help =
                if left > 0 { format!("{left} instructions behind it are never executed") } else { String::new() };
            self.find(Severity::Warning, "unreachable", Some(index), message, &help);
            return;
        }
    }

    fn accesses(&mut self, index: usize, instruction: Instruction) {
        let Instruction { operation, address, .. } = instruction;
        let worst = &mut self.report.worst;
        match operation {
            Operation::Store | Operation::Pop => worst.writes += 1,
            Operation::Cstore => worst.swaps += 1,
            _ => worst.reads += 1,
        }
        if operation == Operation::LoadIndirect {
            return self.indirect(index, instruction);
        }
        let address = u32::from(address);
        let entry = self.map.locate(address);
        if entry.is_none() {
            let message = format!("no switch with this map has the address {address:#06x}");
            self.find(Severity::Warning, "unknown-address", Some(index), message, "the instruction is skipped there");
        }
        let is_own = (address.wrapping_sub(OWN_FIELDS.into()) as usize) < 2 * crate::tcpu::OWN_FIELD_COUNT;
        if !matches!(operation, Operation::Store | Operation::Pop) && !is_own {
            record(&mut self.report.reads, address, entry.clone(), index);
        }
        if operation.is_write() {
            if entry.as_ref().is_some_and(|entry| entry.access == Access::Read) {
                let message = format!("`{}` is read-only", self.name(address));
                self.find(Severity::Error, "read-only", Some(index), message, "");
            }
            record(&mut self.report.writes, address, entry, index);
        }
    }

    /// Records the addresses of an indirect load, if packet memory has them.
    fn indirect(&mut self, index: usize, instruction: Instruction) {
        match self.constant(instruction.second) {
            Some(addresses) => {
                for address in addresses {
                    let entry = self.map.locate(address);
                    record(&mut self.report.reads, address, entry, index);
                }
            }
            None => {
                self.report.indirect = IndirectSet::Unknown;
                let message = "the address of this load changes in the network".to_owned();
                let help = "only the switch can check it: it skips loads that the application may not execute";
                self.find(Severity::Warning, "unknown-indirect", Some(index), message, help);
            }
        }
    }

    /// Checks that operands are within packet memory.
    fn operands(&mut self, index: usize, instruction: Instruction) {
        let Instruction { operation, first, second, .. } = instruction;
        let wide = 4;
        let used: &[(u8, usize)] = &match operation {
            Operation::Push | Operation::Pop => vec![],
            Operation::Cexec if first == ALL_ONES => vec![(second, wide)],
            Operation::Cexec => vec![(first, wide), (second, wide)],
            Operation::Cstore => vec![(first, self.word), (second, self.word)],
            Operation::LoadIndirect => vec![(first, self.word), (second, wide)],
            _ => vec![(first, self.word)],
        };
        let block = self.block();
        if let Some((word, _)) = used.iter().find(|(word, len)| usize::from(*word) * self.word + len > block) {
            let message = format!("word {word} is not in packet memory, which has {block} bytes a program or hop");
            let help = "the instruction is never executed; make `.size` or `.bytes` larger";
            self.find(Severity::Error, "outside-memory", Some(index), message, help);
        }
        if operation == Operation::Cstore && first == second {
            let message = "`old` and `new` are the same word, so this `CSTORE` never changes anything".to_owned();
            self.find(Severity::Warning, "same-word", Some(index), message, "");
        }
        if operation.is_write() && self.program.repr.is_read_only {
            let message = format!("this `{}` is never executed: the program forbids writes", operation.name());
            self.find(Severity::Warning, "never-written", Some(index), message, "remove `.readonly`");
        }
    }

    /// Returns the bytes that operands can name.
    fn block(&self) -> usize {
        match self.program.repr.addressing {
            Addressing::Hop { len } if len > 0 => len,
            _ => self.program.memory.len(),
        }
    }

    /// Returns the reason for which a `CEXEC` never matches.
    fn never_passes(&self, instruction: Instruction) -> Option<String> {
        if instruction.operation != Operation::Cexec {
            return None;
        }
        let values = self.constant(instruction.second)?;
        let masks = match instruction.first {
            ALL_ONES => vec![u32::MAX; values.len()],
            mask => self.constant(mask)?,
        };
        let width = self.map.locate(instruction.address.into()).map_or(32, |entry| entry.width.min(32));
        let possible = if width == 32 { u32::MAX } else { (1 << width) - 1 };
        let pairs: Vec<(u32, u32)> = values.into_iter().zip(masks).collect();
        let (value, mask) = *pairs.first()?;
        if pairs.iter().any(|(value, mask)| value & !(mask & possible) == 0) {
            return None;
        }
        Some(if value & !mask != 0 {
            format!("the value {value:#x} has bits outside the mask {mask:#x}")
        } else {
            format!("the value {value:#x} has more than {width} bits")
        })
    }

    /// Returns the 32-bit constants at a word, for all hops; `None` if the program changes them.
    fn constant(&self, word: u8) -> Option<Vec<u32>> {
        let start = usize::from(word) * self.word;
        let range = start..start + 4;
        let (block, is_shared) = match self.program.repr.addressing {
            Addressing::Hop { len } if len > 0 => (len, false),
            _ => (self.program.memory.len(), true),
        };
        let touches = |other: usize| other < range.end && other + self.word > range.start;
        let changes = |(index, instruction): (usize, &Instruction)| match instruction.operation {
            Operation::Load | Operation::Min | Operation::Max | Operation::LoadIndirect | Operation::Cstore => {
                // An indirect load may overwrite its address in its own block: it has used the address by then.
                let is_last = !is_shared && index + 1 == self.program.instructions.len();
                touches(usize::from(instruction.first) * self.word) && !is_last
            }
            Operation::Push => match self.program.repr.addressing {
                Addressing::Stack { pointer } => range.end > pointer,
                Addressing::Hop { .. } => {
                    let before = self.program.instructions[..index].iter();
                    let depth = before.filter(|other| other.operation == Operation::Push).count();
                    touches(depth * self.word)
                }
            },
            _ => false,
        };
        if self.program.instructions.iter().enumerate().any(changes) {
            return None;
        }
        let blocks = if block == 0 { &[][..] } else { &self.program.memory[..] };
        let words = blocks.chunks_exact(block.max(1)).filter_map(|block| block.get(range.clone()));
        Some(words.map(|bytes| bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte))).collect())
    }

    /// Returns the lowest and the highest depth of the stack within a hop, and its depth at the end, in words.
    fn depths(&self) -> (i64, i64, i64) {
        let (mut low, mut high, mut depth) = (0, 0, 0);
        for instruction in &self.program.instructions {
            depth += match instruction.operation {
                Operation::Push => 1,
                Operation::Pop => -1,
                _ => 0,
            };
            (low, high) = (depth.min(low), depth.max(high));
        }
        (low, high, depth)
    }

    /// Returns the number of hops that memory has room for.
    fn hops(&self) -> Option<u32> {
        let (word, memory) = (self.word as i64, self.program.memory.len() as i64);
        let (_, high, depth) = self.depths();
        let hops = match self.program.repr.addressing {
            Addressing::Hop { len: 0 } => return None,
            Addressing::Hop { len } => memory / len as i64,
            Addressing::Stack { pointer } => {
                let free = memory - pointer as i64 - high * word;
                match depth {
                    _ if free < 0 => 0,
                    1.. => free / (depth * word) + 1,
                    _ => return None,
                }
            }
        };
        Some(hops.min(i64::from(i8::MAX) + 1) as u32)
    }

    /// Compares memory with the stack and with the hops that the source requests.
    fn room(&mut self) {
        let (low, high, _) = self.depths();
        let (bottom, room) = match self.program.repr.addressing {
            Addressing::Stack { pointer } => (pointer as i64, self.program.memory.len() as i64 - pointer as i64),
            Addressing::Hop { .. } => (0, self.block() as i64),
        };
        if low * self.word as i64 + bottom < 0 {
            let message = "a `POP` finds the stack empty at the first hop".to_owned();
            self.find(Severity::Warning, "stack-empty", None, message, "`PUSH` first, or set `.sp` and `.memory`");
        }
        if high * self.word as i64 > room {
            let message =
                format!("the stack needs {} bytes at the first hop, and {room} are available", high * self.word as i64);
            self.find(Severity::Error, "outside-memory", None, message, "make `.size` or `.bytes` larger");
        }
        if let Some(hops) = self.report.worst.hops.filter(|hops| *hops < self.program.hops) {
            let message = format!("memory is full after {hops} hops, and the program asks for {}", self.program.hops);
            self.find(Severity::Warning, "memory-full", None, message, "make `.bytes` larger, or leave it out");
        }
    }

    /// Compares the accesses with the rights.
    fn rights(&mut self, rights: &AccessRights) {
        let forbidden = |records: &[AccessRecord], set: &crate::tcpu::AddressSet| -> Vec<(u32, usize)> {
            let wrong = records.iter().filter(|record| !set.contains(record.address));
            wrong.flat_map(|record| record.instructions.iter().map(|index| (record.address, *index))).collect()
        };
        let help = "the policy lists what each application may read and write";
        for (address, index) in forbidden(&self.report.reads, &rights.reads) {
            let message = format!("the application may not read `{}`", self.name(address));
            self.find(Severity::Error, "forbidden-read", Some(index), message, help);
        }
        for (address, index) in forbidden(&self.report.writes, &rights.writes) {
            let message = format!("the application may not write `{}`", self.name(address));
            self.find(Severity::Error, "forbidden-write", Some(index), message, help);
        }
        if !rights.writes_enabled && !self.report.writes.is_empty() {
            let index = self.report.writes[0].instructions.first().copied();
            let message = "writes are disabled in this network".to_owned();
            self.find(Severity::Error, "writes-disabled", index, message, "");
        }
    }
}

fn record(records: &mut Vec<AccessRecord>, address: u32, entry: Option<MapEntry>, index: usize) {
    match records.binary_search_by_key(&address, |record| record.address) {
        Ok(at) if records[at].instructions.last() != Some(&index) => records[at].instructions.push(index),
        Ok(_) => {}
        Err(at) => records.insert(at, AccessRecord { address, entry, instructions: vec![index] }),
    }
}

/// Returns the guards of hops from `first` to `last`, at most 127: masks and values for a `CEXEC` of
/// `PacketMetadata:TPP-Hop`, one for each program. A guard matches an aligned range whose length is a power of two, so
/// hops 3 to 5 take two. One program is enough where the first hop number is negative (`.hop -3`) and memory ends after
/// the last hop.
pub fn hop_guards(first: u8, last: u8) -> Vec<(u32, u32)> {
    let (mut first, end) = (u32::from(first), u32::from(last.min(127)) + 1);
    let mut guards = Vec::new();
    while first < end {
        let aligned = if first == 0 { 128 } else { 1 << first.trailing_zeros() };
        let fitting = 1 << (end - first).ilog2();
        let len: u32 = aligned.min(fitting);
        guards.push((0xff & !(len - 1), first));
        first += len;
    }
    guards
}
