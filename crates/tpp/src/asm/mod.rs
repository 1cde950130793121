//! Assembles programs.
//!
//! ```text
//! .word 16                       # 16 or 32 bits a word; 32 by default
//! .mode stack                    # or hop
//! .hops 5                        # memory for five hops
//! PUSH [Switch:ID]
//! PUSH [PacketMetadata:OutputPort]
//! PUSH [Queue:QueueOccupancy]
//! ```
//!
//! An instruction names switch memory as [`MemoryMap`] does, and packet memory as `[Packet:hop[1]]` in hop mode and
//! `[Packet:1]` in stack mode. Operands of `CEXEC` and `CSTORE` may be numbers: the assembler places them in packet
//! memory. A `LOAD` from another port or from a register without direct addresses becomes an indirect one, whose
//! address is placed in packet memory, too.

mod absent;
mod directive;
mod disassemble;
mod layout;
mod syntax;

use std::collections::BTreeSet;

use diagnostics::{Diagnostic, Diagnostics, SourceMap, Span, names};
use wire::tpp::{
    ALL_ONES, Addressing, HEADER_LEN, INSTRUCTION_LEN, Instruction, MAX_INSTRUCTIONS, MAX_LEN, Operation, Packet, Repr,
};

pub use disassemble::disassemble;

use crate::map::{Access, MapEntry, MemoryMap, NoEntry, parse_number};
use directive::ProgramSettings;
use layout::Constants;
use syntax::{Spanned, Statement, TextOperand};

/// An assembled or disassembled program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TinyProgram {
    /// The header.
    pub repr: Repr,
    /// The instructions.
    pub instructions: Vec<Instruction>,
    /// Initial packet memory.
    pub memory: Vec<u8>,
    /// Number of hops that the source requests; 0 if it does not set one.
    pub hops: u32,
    /// Places of the instructions in the source; empty without a source.
    pub spans: Vec<Span>,
}

impl TinyProgram {
    /// Decodes a program.
    pub fn decode<T: AsRef<[u8]>>(packet: &Packet<T>) -> TinyProgram {
        TinyProgram {
            repr: Repr::parse(packet),
            instructions: packet.instructions().collect(),
            memory: packet.memory().to_vec(),
            hops: 0,
            spans: Vec::new(),
        }
    }

    /// Whether the program fits into a packet.
    pub fn fits(&self) -> bool {
        let count = self.instructions.len();
        let pointer = match self.repr.addressing {
            Addressing::Stack { pointer } => pointer,
            Addressing::Hop { len } => len,
        };
        let len = HEADER_LEN + count * INSTRUCTION_LEN + self.memory.len();
        count <= MAX_INSTRUCTIONS && len <= MAX_LEN && pointer <= MAX_LEN
    }

    /// Returns the packet with this program and a payload.
    ///
    /// # Panics
    /// If it does not [fit](Self::fits).
    pub fn packet(&self, payload: &[u8]) -> Vec<u8> {
        self.repr.packet(&self.instructions, &self.memory, payload)
    }
}

/// Maximum number of instructions of a large program, which [`executor`](crate::executor) splits.
pub const MAX_LARGE_INSTRUCTIONS: usize = 64;

/// Maximum length of the memory of a large program in bytes: 64 words for each of 127 hops, and constants.
const MAX_LARGE_MEMORY: usize = 1 << 15;

/// The number of instructions and the bytes of packet memory that a program may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProgramLimit {
    /// A program fits into a packet.
    Packet,
    /// A program may take several packets.
    Large,
}

impl ProgramLimit {
    fn instructions(self) -> usize {
        match self {
            ProgramLimit::Packet => MAX_INSTRUCTIONS,
            ProgramLimit::Large => MAX_LARGE_INSTRUCTIONS,
        }
    }

    /// Returns the memory of a program with this number of instructions, in bytes.
    fn memory(self, instructions: usize) -> usize {
        match self {
            ProgramLimit::Packet => MAX_LEN - HEADER_LEN - instructions * INSTRUCTION_LEN,
            ProgramLimit::Large => MAX_LARGE_MEMORY,
        }
    }
}

/// Assembles a text. Returns a program unless there is an error; there may be warnings.
pub fn assemble(
    sources: &mut SourceMap,
    name: &str,
    text: &str,
    map: &MemoryMap,
    diagnostics: &mut Diagnostics,
) -> Option<TinyProgram> {
    assemble_within(ProgramLimit::Packet, sources, (name, text), map, diagnostics)
}

/// Assembles a text whose program may be too large for a packet: at most [`MAX_LARGE_INSTRUCTIONS`], and memory for at
/// most 127 hops. Only an [`ExecutionPlan`](crate::executor::ExecutionPlan) makes packets of it.
pub fn assemble_large(
    sources: &mut SourceMap,
    name: &str,
    text: &str,
    map: &MemoryMap,
    diagnostics: &mut Diagnostics,
) -> Option<TinyProgram> {
    assemble_within(ProgramLimit::Large, sources, (name, text), map, diagnostics)
}

fn assemble_within(
    limit: ProgramLimit,
    sources: &mut SourceMap,
    (name, text): (&str, &str),
    map: &MemoryMap,
    diagnostics: &mut Diagnostics,
) -> Option<TinyProgram> {
    let errors = diagnostics.error_count();
    let file = sources.add(name, text);
    let whole = Span::new(file, 0, 0);
    let statements = syntax::statements(file, text, diagnostics);
    let settings = ProgramSettings::collect(&statements, diagnostics);
    let constants = Constants::begin(&settings, &statements);
    let mut assembler =
        Assembler { limit, map, settings, constants, instructions: Vec::new(), spans: Vec::new(), diagnostics };
    for statement in &statements {
        if let Statement::Instruction { mnemonic, operands } = statement {
            assembler.instruction(*mnemonic, operands);
        }
    }
    assembler.check_limit();
    assembler.warn_of_cut_values();
    let program = assembler.finish(whole);
    program.filter(|_| diagnostics.error_count() == errors)
}

struct Assembler<'a> {
    limit: ProgramLimit,
    map: &'a MemoryMap,
    settings: ProgramSettings,
    constants: Constants,
    instructions: Vec<Instruction>,
    spans: Vec<Span>,
    diagnostics: &'a mut Diagnostics,
}

/// Two or three operands, by the form of the instruction.
const FORMS: [(Operation, &str); 9] = [
    (Operation::Load, "LOAD [switch], [packet]"),
    (Operation::Store, "STORE [switch], [packet]"),
    (Operation::Push, "PUSH [switch]"),
    (Operation::Pop, "POP [switch]"),
    (Operation::Cstore, "CSTORE [switch], old, new"),
    (Operation::Cexec, "CEXEC [switch], mask, value` or `CEXEC [switch], value"),
    (Operation::LoadIndirect, "LOAD [[packet]], [packet]"),
    (Operation::Min, "MIN [switch], [packet]"),
    (Operation::Max, "MAX [switch], [packet]"),
];

impl Assembler<'_> {
    fn instruction(&mut self, mnemonic: Spanned<&str>, operands: &[Spanned<TextOperand<'_>>]) {
        let span = operands.last().map_or(mnemonic.1, |(_, last)| mnemonic.1.to(*last));
        let assembled = match mnemonic.0.to_ascii_uppercase().as_str() {
            "RAW" => self.raw(mnemonic.1, operands),
            name => match Operation::ALL.iter().find(|operation| operation.name() == name) {
                Some(operation) => self.operation(*operation, mnemonic.1, operands),
                None => self.unknown(mnemonic),
            },
        };
        // An invalid instruction counts, too, so that a sixth one is still reported.
        self.instructions.push(assembled.unwrap_or(Instruction::new(Operation::Push, 0, 0, 0)));
        self.spans.push(span);
    }

    fn unknown(&mut self, mnemonic: Spanned<&str>) -> Option<Instruction> {
        let all = Operation::ALL.iter().map(|operation| operation.name());
        let upper = mnemonic.0.to_ascii_uppercase();
        let help = match names::nearest(&upper, all.clone()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the instructions are {}", names::listed(all)),
        };
        let message = format!("there is no instruction `{}`", mnemonic.0);
        self.diagnostics.push(Diagnostic::error("unknown-instruction", mnemonic.1, message).help(help));
        None
    }

    /// Assembles `RAW 0x30000000`: an instruction by its bits.
    fn raw(&mut self, span: Span, operands: &[Spanned<TextOperand<'_>>]) -> Option<Instruction> {
        let instruction = match operands {
            [(TextOperand::Number(bits), _)] => Instruction::unpack(*bits),
            _ => None,
        };
        if instruction.is_none() {
            let message = "`RAW` takes the 32 bits of an instruction with a known operation";
            self.diagnostics.push(Diagnostic::error("wrong-operands", span, message));
        }
        instruction
    }

    fn operation(
        &mut self,
        operation: Operation,
        span: Span,
        operands: &[Spanned<TextOperand<'_>>],
    ) -> Option<Instruction> {
        use TextOperand::{Indirect, Packet, Switch};
        match (operation, operands) {
            (Operation::Load | Operation::LoadIndirect, [(Indirect(address), _), (Packet(word), _)]) => {
                Some(Instruction::new(Operation::LoadIndirect, 0, *word as u8, *address as u8))
            }
            (Operation::Load, [(Switch(name), place), (Packet(word), _)]) => {
                let entry = self.location(name, *place)?;
                if entry.is_direct() {
                    return Some(Instruction::new(operation, entry.address as u16, *word as u8, 0));
                }
                let address = self.constants.wide(entry.address, *place, self.diagnostics)?;
                Some(Instruction::new(Operation::LoadIndirect, 0, *word as u8, address))
            }
            (Operation::Store | Operation::Min | Operation::Max, [(Switch(name), place), (Packet(word), _)]) => {
                let address = self.direct(operation, name, *place)?;
                Some(Instruction::new(operation, address, *word as u8, 0))
            }
            (Operation::Push | Operation::Pop, [(Switch(name), place)]) => {
                let address = self.direct(operation, name, *place)?;
                Some(Instruction::new(operation, address, 0, 0))
            }
            (Operation::Cstore, [(Switch(name), place), old, new]) => {
                let address = self.direct(operation, name, *place)?;
                self.check_width(address, [old, new])?;
                let (old, new) = (self.value(old, false)?, self.value(new, false)?);
                Some(Instruction::new(operation, address, old, new))
            }
            (Operation::Cexec, [(Switch(name), place), value]) => {
                let address = self.direct(operation, name, *place)?;
                Some(Instruction::new(operation, address, ALL_ONES, self.value(value, true)?))
            }
            (Operation::Cexec, [(Switch(name), place), mask, value]) => {
                let address = self.direct(operation, name, *place)?;
                let mask = match mask.0 {
                    TextOperand::Number(u32::MAX) => ALL_ONES,
                    Packet(word) if word == u32::from(ALL_ONES) => return self.reserved_word(mask.1),
                    _ => self.value(mask, true)?,
                };
                Some(Instruction::new(operation, address, mask, self.value(value, true)?))
            }
            _ => {
                let form = FORMS.iter().find(|(other, _)| *other == operation).map_or("", |(_, form)| form);
                let message = format!("`{}` does not take these operands", operation.name());
                let help = format!("write `{form}`");
                self.diagnostics.push(Diagnostic::error("wrong-operands", span, message).help(help));
                None
            }
        }
    }

    /// Returns the word of an operand that is in packet memory, or that is placed there.
    fn value(&mut self, operand: &Spanned<TextOperand<'_>>, is_wide: bool) -> Option<u8> {
        match operand.0 {
            TextOperand::Packet(word) => Some(word as u8),
            TextOperand::Number(number) if is_wide => self.constants.wide(number, operand.1, self.diagnostics),
            TextOperand::Number(number) => self.constants.narrow(number, operand.1, self.diagnostics),
            _ => {
                let message = "this operand is a number or a word of packet memory";
                self.diagnostics.push(Diagnostic::error("wrong-operands", operand.1, message));
                None
            }
        }
    }

    /// Reports values that a location never has: a `CSTORE` of one would look as if somebody else had stored.
    fn check_width(&mut self, address: u16, values: [&Spanned<TextOperand<'_>>; 2]) -> Option<()> {
        let Some(entry) = self.map.locate(address.into()).filter(|entry| entry.width < u32::BITS) else {
            return Some(());
        };
        let is_wide = |value: u32| value >> entry.width != 0;
        let wrong = values.into_iter().find(|(value, _)| matches!(value, TextOperand::Number(it) if is_wide(*it)));
        let Some((_, span)) = wrong else { return Some(()) };
        let (name, bits) = (&entry.name, entry.width);
        let message = format!("`{name}` has {bits} bits, and never has this value");
        let help = format!("the largest value is {}", (1u32 << bits) - 1);
        self.diagnostics.push(Diagnostic::error("wide-value", *span, message).help(help));
        None
    }

    fn reserved_word(&mut self, span: Span) -> Option<Instruction> {
        let message = "word 63 cannot be a mask: its number means all bits";
        self.diagnostics.push(Diagnostic::error("wrong-operands", span, message));
        None
    }

    /// Returns the location of an operand.
    fn location(&mut self, name: &str, span: Span) -> Option<MapEntry> {
        let found = match parse_number(name) {
            Some(address) => self.map.locate(address).ok_or(NoEntry::NoColon).or_else(|_| unnamed(address)),
            None => self.map.find(name),
        };
        match found {
            Ok(entry) => Some(entry),
            Err(error) => {
                let diagnostic = Diagnostic::error("unknown-name", span, error.to_string());
                self.diagnostics.push(match error.help() {
                    Some(help) => diagnostic.help(help),
                    None => diagnostic,
                });
                None
            }
        }
    }

    /// Returns the direct address of an operand that an operation reads or writes.
    fn direct(&mut self, operation: Operation, name: &str, span: Span) -> Option<u16> {
        let entry = self.location(name, span)?;
        if !entry.is_direct() {
            let message = format!("`{}` needs an indirect address, and only `LOAD` has those", entry.name);
            let help = "name the packet's own port or queue, or `LOAD` the value";
            self.diagnostics.push(Diagnostic::error("indirect-address", span, message).help(help));
            return None;
        }
        if operation.is_write() && entry.access == Access::Read && parse_number(name).is_none() {
            let message = format!("`{}` is read-only", entry.name);
            let help = "programs write `Link:AppSpecific_k`, `Switch:AppSpecific_k` and registers of at most 32 bits";
            self.diagnostics.push(Diagnostic::error("read-only", span, message).help(help));
            return None;
        }
        Some(entry.address as u16)
    }

    /// Reports the first instruction beyond the limit.
    fn check_limit(&mut self) {
        let limit = self.limit.instructions();
        let Some(span) = self.spans.get(limit) else { return };
        let message = format!("a program has at most {limit} instructions");
        let (label, help) = match self.limit {
            ProgramLimit::Packet => (
                "the sixth",
                "`triplane tpp run` splits it; or split it into several programs, each guarded by `CEXEC` or with \
                 another first hop (`.hop -3`)",
            ),
            ProgramLimit::Large => ("the first of them that is too many", "split it into several programs"),
        };
        let diagnostic = Diagnostic::error("too-many-instructions", *span, message).label(label).help(help);
        self.diagnostics.push(diagnostic);
    }

    /// Warns of values that do not fit into a word and whose high half is not read.
    fn warn_of_cut_values(&mut self) {
        let bits = self.settings.word_size.bits();
        let reads = |it: &&Instruction| matches!(it.operation, Operation::Load | Operation::Push);
        let read: BTreeSet<u16> = self.instructions.iter().filter(reads).map(|it| it.address).collect();
        for (instruction, span) in self.instructions.iter().zip(&self.spans).filter(|(it, _)| reads(it)) {
            let Some(entry) = self.map.locate(instruction.address.into()) else { continue };
            if entry.is_high() || entry.width <= bits || read.contains(&(instruction.address | 1)) {
                continue;
            }
            let message = format!("`{}` has {} bits, and a word keeps the low {bits}", entry.name, entry.width);
            let wider = if bits == 16 { ", or use `.word 32`" } else { "" };
            let help = format!("compare values modulo 2^{bits}, read `{}.High` in the same program{wider}", entry.name);
            self.diagnostics.push(Diagnostic::warning("cut-value", *span, message).help(help));
        }
    }

    fn finish(self, whole: Span) -> Option<TinyProgram> {
        let Assembler { limit, settings, constants, instructions, spans, diagnostics, .. } = self;
        let instructions: Vec<_> = instructions.into_iter().take(limit.instructions()).collect();
        let available = limit.memory(instructions.len());
        let (addressing, memory) = constants.finish(&settings, &instructions, available, whole, diagnostics)?;
        let repr = Repr {
            word_size: settings.word_size,
            addressing,
            hop: settings.hop,
            is_reflective: settings.is_reflective,
            is_read_only: settings.is_read_only,
            status: settings.status,
            encapsulated: settings.encapsulated,
            application: settings.application,
        };
        let hops = settings.hops.unwrap_or(if settings.bytes.is_none() { layout::DEFAULT_HOPS } else { 0 });
        Some(TinyProgram { repr, instructions, memory, hops, spans })
    }
}

/// Returns a location that is addressed by its number and that the map does not know.
fn unnamed(address: u32) -> Result<MapEntry, NoEntry> {
    use crate::map::{Kind, Unit};
    let (name, access) = (format!("{address:#06x}"), Access::ReadWrite);
    Ok(MapEntry { address, name, width: 32, unit: Unit::None, kind: Kind::Gauge, access })
}
