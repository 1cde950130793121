//! Places constants in packet memory, and computes how much memory a program needs.

use diagnostics::{Diagnostic, Diagnostics, Span};
use wire::tpp::{Addressing, Instruction, Operation, WordSize};

use super::directive::ProgramSettings;
use super::syntax::{Statement, TextOperand};

/// Default number of hops that a program has memory for, as in section 2.1.
pub(super) const DEFAULT_HOPS: u32 = 5;
/// Highest word that an operand can name. [`ALL_ONES`](wire::tpp::ALL_ONES) is above it.
const MAX_WORD: usize = 62;

/// Constants in packet memory: in stack mode once, before the stack; in hop mode in the block of each hop.
pub(super) struct Constants {
    word_size: WordSize,
    /// Number of words before the constants.
    first: usize,
    words: Vec<u32>,
}

impl Constants {
    /// Begins after all words that the source names, pushes or presets.
    pub fn begin(settings: &ProgramSettings, statements: &[Statement<'_>]) -> Constants {
        let mut first = 0;
        let mut pushes = 0;
        for statement in statements {
            let Statement::Instruction { mnemonic, operands } = statement else { continue };
            pushes += usize::from(mnemonic.0.eq_ignore_ascii_case("PUSH"));
            let is_wide = mnemonic.0.eq_ignore_ascii_case("CEXEC");
            for (operand, _) in operands {
                let (word, wide) = match operand {
                    TextOperand::Packet(word) => (*word, is_wide),
                    TextOperand::Indirect(word) => (*word, true),
                    _ => continue,
                };
                let words = if wide { 4 / settings.word_size.bytes() } else { 1 };
                first = first.max(word as usize + words);
            }
        }
        let preset = settings.presets.iter().map(|preset| preset.values.len()).max().unwrap_or(0);
        first = first.max(preset);
        if settings.is_hop_mode {
            first = first.max(pushes);
        }
        // Raw bytes are the complete memory.
        first =
            first.max(settings.data.len().div_ceil(settings.word_size.bytes()) * usize::from(!settings.is_hop_mode));
        Constants { word_size: settings.word_size, first, words: Vec::new() }
    }

    /// Places a number of one word. Returns its word.
    pub fn narrow(&mut self, number: u32, span: Span, diagnostics: &mut Diagnostics) -> Option<u8> {
        if self.word_size == WordSize::Bits16 && number > 0xffff {
            let message = "the number does not fit into a word of 16 bits";
            diagnostics.push(Diagnostic::error("too-large", span, message).help("use `.word 32`"));
            return None;
        }
        self.place(&[number], span, diagnostics)
    }

    /// Places a number of 32 bits. Returns its first word.
    pub fn wide(&mut self, number: u32, span: Span, diagnostics: &mut Diagnostics) -> Option<u8> {
        match self.word_size {
            WordSize::Bits16 => self.place(&[number >> 16, number & 0xffff], span, diagnostics),
            WordSize::Bits32 => self.place(&[number], span, diagnostics),
        }
    }

    /// Places words that have no place yet.
    fn place(&mut self, words: &[u32], span: Span, diagnostics: &mut Diagnostics) -> Option<u8> {
        let found = self.words.windows(words.len()).position(|there| there == words);
        let at = self.first + found.unwrap_or(self.words.len());
        if at + words.len() - 1 > MAX_WORD {
            let message = format!("there is no room for this number: operands name words up to {MAX_WORD}");
            diagnostics.push(Diagnostic::error("no-room", span, message));
            return None;
        }
        if found.is_none() {
            self.words.extend(words);
        }
        Some(at as u8)
    }

    /// Returns the addressing and the initial memory, of at most `available` bytes.
    pub fn finish(
        self,
        settings: &ProgramSettings,
        instructions: &[Instruction],
        available: usize,
        whole: Span,
        diagnostics: &mut Diagnostics,
    ) -> Option<(Addressing, Vec<u8>)> {
        let word = self.word_size.bytes();
        let end = (self.first + self.words.len()) * word;
        let hops = settings.hops.unwrap_or(DEFAULT_HOPS) as usize;
        let (addressing, needed) = if settings.is_hop_mode {
            let len = settings.size.unwrap_or(end);
            (Addressing::Hop { len }, len * hops)
        } else {
            let pointer = settings.pointer.unwrap_or(end);
            (Addressing::Stack { pointer }, (pointer + stack_len(instructions, hops) * word).max(end))
        };
        let len = settings.bytes.unwrap_or(needed.max(settings.data.len()));
        if len > available || !len.is_multiple_of(2) {
            let message = format!("the program needs {len} bytes of packet memory, and {available} are available");
            let help = "use fewer hops (`.hops`), 16-bit words, or several programs for ranges of hops (`.hop -5`)";
            diagnostics.push(Diagnostic::error("too-long", whole, message).help(help));
            return None;
        }
        let mut memory = vec![0; len];
        let copied = settings.data.len().min(len);
        memory[..copied].copy_from_slice(&settings.data[..copied]);
        self.fill(settings, addressing, &mut memory, diagnostics);
        Some((addressing, memory))
    }

    /// Writes presets and constants.
    fn fill(
        &self,
        settings: &ProgramSettings,
        addressing: Addressing,
        memory: &mut [u8],
        diagnostics: &mut Diagnostics,
    ) {
        let (block, blocks) = match addressing {
            Addressing::Hop { len } if len > 0 => (len, memory.len() / len),
            _ => (memory.len(), 1),
        };
        for preset in &settings.presets {
            let chosen = match preset.hop {
                Some(hop) => hop as usize..(hop as usize).saturating_add(1),
                None => 0..blocks,
            };
            let fits = preset.hop.is_none_or(|hop| (hop as usize) < blocks);
            let largest = if self.word_size == WordSize::Bits16 { 0xffff } else { u32::MAX };
            if !fits || preset.values.len() * self.word_size.bytes() > block {
                let message = "packet memory has no room for these words";
                diagnostics.push(Diagnostic::error("invalid-memory", preset.span, message));
                continue;
            }
            if preset.values.iter().any(|value| *value > largest) {
                let message = "a number does not fit into a word of 16 bits";
                diagnostics.push(Diagnostic::error("too-large", preset.span, message).help("use `.word 32`"));
            }
            for block_number in chosen {
                preset.values.iter().enumerate().for_each(|(word, value)| {
                    self.put(memory, block_number * block, word, *value);
                });
            }
        }
        for block_number in 0..blocks {
            for (word, value) in self.words.iter().enumerate() {
                self.put(memory, block_number * block, self.first + word, *value);
            }
        }
    }

    fn put(&self, memory: &mut [u8], start: usize, word: usize, value: u32) {
        let len = self.word_size.bytes();
        let at = start + word * len;
        if let Some(bytes) = memory.get_mut(at..at + len) {
            bytes.copy_from_slice(&value.to_be_bytes()[4 - len..]);
        }
    }
}

/// Returns the number of words that a stack needs for a number of hops.
fn stack_len(instructions: &[Instruction], hops: usize) -> usize {
    let (mut depth, mut peak) = (0i64, 0i64);
    for instruction in instructions {
        match instruction.operation {
            Operation::Push => depth += 1,
            Operation::Pop => depth -= 1,
            _ => {}
        }
        peak = peak.max(depth);
    }
    let before_last = depth.max(0) * (hops as i64 - 1).max(0);
    if hops == 0 { 0 } else { (before_last + peak) as usize }
}
