//! Parses the values of a comparison.

use diagnostics::{Diagnostic, Span};

use super::{RuleParser, RuleResult};
use crate::format::{NameError, Subject, ValueKind, max_of};
use crate::ranges::Ranges;
use crate::syntax::lex::RuleToken;
use crate::syntax::value::{Constant, expected};

impl RuleParser<'_> {
    pub(super) fn kind(&self, subject: Subject) -> (ValueKind, u32) {
        match subject {
            Subject::Field(id) => (self.format.get(id).kind, self.format.get(id).width),
            _ => (ValueKind::Unsigned, self.format.width(subject)),
        }
    }

    /// Parses a constant; a word is text.
    pub(super) fn constant(&mut self, what: &str) -> RuleResult<(Constant, Span)> {
        match self.next.token.clone() {
            RuleToken::Constant(constant) => Ok((constant, self.take().span)),
            RuleToken::Word(word) => Ok((Constant::Text(word.to_owned()), self.take().span)),
            RuleToken::Odd(_) => {
                let error =
                    self.unexpected(what).help("write a number as `42`, `0x2a` or `0b101010`; put a string in quotes");
                self.fail(error)
            }
            RuleToken::Sign("-") => {
                let error = self.unexpected(what).help("a field cannot be negative");
                self.fail(error)
            }
            _ => {
                let error = self.unexpected(what);
                self.fail(error)
            }
        }
    }

    /// Converts a constant to a value of a subject.
    pub(super) fn fitting(&mut self, subject: Subject, constant: &Constant, span: Span) -> RuleResult<u128> {
        let (kind, width) = self.kind(subject);
        constant.value(kind, width).or_else(|why| {
            let is_name =
                matches!(constant, Constant::Text(name) if !matches!(self.format.subject(name), Err(NameError::Unknown)));
            let what: String = self.lexer.text_at(span).unwrap_or("this").chars().take(60).collect();
            let mut error = Diagnostic::error("rule-type", span, format!("`{what}` {why}"));
            if is_name {
                error = error.help("a field is compared with constants, not with other fields");
            } else if let (Constant::Text(_), ValueKind::Unsigned) = (constant, kind) {
                let is_field = matches!(subject, Subject::Field(_)) && width.is_multiple_of(8);
                error.help = no_text(is_field, !what.starts_with('"'));
            }
            self.fail(error)
        })
    }

    pub(super) fn value(&mut self, subject: Subject) -> RuleResult<(u128, Span)> {
        let (kind, width) = self.kind(subject);
        let word = self.next.token.clone();
        let (constant, span) = self.constant(&expected(kind, width))?;
        let value = self.fitting(subject, &constant, span)?;
        if let (RuleToken::Word(word), ValueKind::Text(_)) = (word, kind) {
            self.report_field(word, span);
        }
        Ok((value, span))
    }

    /// Warns about a word that is taken as text although a field has this name.
    fn report_field(&mut self, word: &str, span: Span) {
        let what = match self.format.subject(word) {
            Ok(Subject::Counter(_)) => "counter",
            Ok(_) | Err(NameError::Ambiguous(..)) => "field",
            Err(NameError::Unknown) => return,
        };
        let message = format!("`{word}` is a string here, not the {what} of this name");
        let help =
            format!("put it in quotes if a string is intended (`\"{word}\"`); fields are compared with constants only");
        self.diagnostics.push(Diagnostic::warning("word-is-text", span, message).help(help));
    }

    /// Parses a value, a range or a prefix.
    pub(super) fn element(&mut self, subject: Subject) -> RuleResult<Ranges> {
        self.count(self.next.span)?;
        let (first, span) = self.value(subject)?;
        if self.accept("..") {
            self.stretches.0 = true;
            let (last, end) = self.value(subject)?;
            if first > last {
                let error = Diagnostic::error("rule-type", span.to(end), "empty range: its end is below its start");
                return self.fail(error.help("ranges include both ends: `10..20`"));
            }
            return Ok(Ranges::span(first, last));
        }
        if self.accept("/") {
            self.stretches.1 = true;
            return self.prefix(subject, first, span);
        }
        Ok(Ranges::span(first, first))
    }

    fn prefix(&mut self, subject: Subject, value: u128, start: Span) -> RuleResult<Ranges> {
        let (kind, width) = self.kind(subject);
        if let ValueKind::Text(_) = kind {
            let error = Diagnostic::error("rule-type", self.end, "a string has no bit prefixes");
            return self.fail(error);
        }
        let length = match self.next.token {
            RuleToken::Constant(Constant::Number(length)) if length <= u128::from(width) => length as u32,
            _ => {
                let error = self.unexpected("a prefix length").help(format!("the field has {width} bits"));
                return self.fail(error);
            }
        };
        self.take();
        let below = max_of(width).checked_shr(length).unwrap_or(0);
        let below = if length == 0 { max_of(width) } else { below };
        if value & below != 0 {
            let span = start.to(self.end);
            let error = Diagnostic::error("rule-type", span, format!("bits are set beyond the {length}-bit prefix"));
            let clean = crate::syntax::value::show(value & !below, kind, width);
            return self.fail(error.help(format!("write `{clean}/{length}`, or `in` a range")));
        }
        Ok(Ranges::span(value, value | below))
    }

    /// Parses the operand of `in`.
    pub(super) fn elements(&mut self, subject: Subject) -> RuleResult<Ranges> {
        let close = match self.next.token {
            RuleToken::Sign("{") => "}",
            RuleToken::Sign("(") => ")",
            RuleToken::Sign("[") => "]",
            _ => return self.element(subject),
        };
        let start = self.take().span;
        let (mut list, mut texts) = (Vec::new(), Vec::new());
        while !self.is(close) {
            let element = self.next.span;
            list.extend_from_slice(self.element(subject)?.list());
            texts.push(self.lexer.text_at(element.to(self.end)).unwrap_or_default());
            if !self.accept(",") {
                break;
            }
        }
        self.expect(close, "the set is not closed")?;
        let is_text = matches!(self.kind(subject).0, ValueKind::Text(_));
        if let ("]", [first, last], false) = (close, &texts[..], is_text || self.stretches != (false, false)) {
            let help = format!("write `{first}..{last}` for the range, `{{{first}, {last}}}` for the two values");
            let span = start.to(self.end);
            let error = Diagnostic::error("rule-syntax", span, "this may mean a range or a set of two values");
            return self.fail(error.help(help));
        }
        Ok(Ranges::of(list))
    }
}

/// Returns a hint for text that is compared with a number; `is_name` if it is not in quotes.
fn no_text(is_field: bool, is_name: bool) -> Option<String> {
    let name = "enumerators and constants of the program are not known here: write the number";
    let text = "if the field holds text, mark it `@format(TEXT)` in the format";
    let hints = [(is_name, name), (is_field, text)].into_iter().filter(|(applies, _)| *applies);
    let hints: Vec<&str> = hints.map(|(_, hint)| hint).collect();
    (!hints.is_empty()).then(|| hints.join("; "))
}
