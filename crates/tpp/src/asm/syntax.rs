//! Splits assembly text into statements: one directive or instruction a line, with places.

use diagnostics::{Diagnostic, Diagnostics, FileId, Span};

use crate::map::parse_number;

/// An operand of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TextOperand<'t> {
    /// `[Queue:QueueOccupancy]` or `[0xb000]`.
    Switch(&'t str),
    /// `[Packet:hop[2]]` or `[Packet:2]`.
    Packet(u32),
    /// `[[Packet:hop[2]]]`.
    Indirect(u32),
    /// A number.
    Number(u32),
}

/// A piece of text and its place.
pub(super) type Spanned<T> = (T, Span);

/// A line of assembly.
#[derive(Clone, Debug)]
pub(super) enum Statement<'t> {
    /// `.word 16`: the name without the dot, and the rest of the line.
    Directive { name: Spanned<&'t str>, rest: Spanned<&'t str> },
    /// An instruction.
    Instruction { mnemonic: Spanned<&'t str>, operands: Vec<Spanned<TextOperand<'t>>> },
}

/// Parses a text. Lines with mistakes are reported and left out.
pub(super) fn statements<'t>(file: FileId, text: &'t str, diagnostics: &mut Diagnostics) -> Vec<Statement<'t>> {
    let mut statements = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let code = line.split('#').next().unwrap_or_default();
        let code = code.split("//").next().unwrap_or_default();
        let piece = Piece { file, text: code, start }.trimmed();
        if !piece.text.is_empty() {
            statements.extend(statement(piece, diagnostics));
        }
        start += line.len();
    }
    statements
}

/// A part of the text.
#[derive(Clone, Copy)]
struct Piece<'t> {
    file: FileId,
    text: &'t str,
    start: usize,
}

impl<'t> Piece<'t> {
    fn part(self, from: usize, to: usize) -> Piece<'t> {
        Piece { text: &self.text[from..to], start: self.start + from, ..self }
    }

    fn trimmed(self) -> Piece<'t> {
        let from = self.text.len() - self.text.trim_start().len();
        let part = self.part(from, self.text.len());
        part.part(0, part.text.trim_end().len())
    }

    fn span(self) -> Span {
        Span::new(self.file, self.start as u32, (self.start + self.text.len()) as u32)
    }

    /// Splits before the first character that matches.
    fn split(self, fits: impl Fn(char) -> bool) -> (Piece<'t>, Piece<'t>) {
        let at = self.text.find(fits).unwrap_or(self.text.len());
        (self.part(0, at), self.part(at, self.text.len()).trimmed())
    }

    fn spanned(self) -> Spanned<&'t str> {
        (self.text, self.span())
    }
}

fn statement<'t>(line: Piece<'t>, diagnostics: &mut Diagnostics) -> Option<Statement<'t>> {
    let (first, rest) = line.split(char::is_whitespace);
    if first.text.starts_with('.') {
        let name = first.part(1, first.text.len());
        return Some(Statement::Directive { name: (name.text, first.span()), rest: rest.spanned() });
    }
    let mut operands = Vec::new();
    let mut is_right = true;
    let mut left = rest;
    while !left.text.is_empty() {
        let (operand, behind) = left.split(|c| c == ',');
        match parse_operand(operand.trimmed()) {
            Ok(parsed) => operands.push((parsed, operand.trimmed().span())),
            Err(diagnostic) => {
                diagnostics.push(*diagnostic);
                is_right = false;
            }
        }
        if behind.text.is_empty() {
            break;
        }
        left = behind.part(1, behind.text.len()).trimmed();
        if left.text.is_empty() {
            let message = "an operand is missing after the comma";
            diagnostics.push(Diagnostic::error("missing-operand", behind.span(), message));
            is_right = false;
        }
    }
    is_right.then_some(Statement::Instruction { mnemonic: first.spanned(), operands })
}

fn parse_operand(piece: Piece<'_>) -> Result<TextOperand<'_>, Box<Diagnostic>> {
    let bracketed = |text: &'_ str| text.starts_with('[') && text.ends_with(']') && text.len() >= 2;
    if let Some(number) = parse_number(piece.text) {
        return Ok(TextOperand::Number(number));
    }
    let wrong = |message: &str| {
        let help = "operands are `[Namespace:Statistic]`, `[Packet:hop[1]]`, `[Packet:1]`, `[[Packet:hop[1]]]` and \
                    numbers up to 0xffffffff";
        Err(Box::new(Diagnostic::error("invalid-operand", piece.span(), message.to_owned()).help(help)))
    };
    if !bracketed(piece.text) {
        return wrong("this is neither an address in brackets nor a number");
    }
    let inner = piece.part(1, piece.text.len() - 1).trimmed();
    if bracketed(inner.text) {
        let word = packet_word(inner.text[1..inner.text.len() - 1].trim());
        return word
            .map_or_else(|| wrong("an indirect address is in packet memory"), |word| Ok(TextOperand::Indirect(word)));
    }
    if inner.text.to_ascii_lowercase().starts_with("packet:") {
        return packet_word(inner.text).map_or_else(
            || wrong("packet memory has words from 0 to 63: `[Packet:hop[1]]` or `[Packet:1]`"),
            |word| Ok(TextOperand::Packet(word)),
        );
    }
    Ok(TextOperand::Switch(inner.text))
}

/// Returns the index of `Packet:hop[2]` or `Packet:2`.
fn packet_word(text: &str) -> Option<u32> {
    let lower = text.to_ascii_lowercase();
    let word = lower.strip_prefix("packet:")?.trim();
    let number = match word.strip_prefix("hop[") {
        Some(rest) => rest.strip_suffix(']')?,
        None => word,
    };
    parse_number(number).filter(|word| *word <= 63)
}
