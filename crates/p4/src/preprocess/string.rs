//! Strings of several lines: directives and macros inside them.
//!
//! Production programs choose parts of an annotation with `#if`. That works because `cpp` does not know such strings:
//! a line with one quote ends in a string without a closing quote, and the lines after it are ordinary lines. Hence,
//! in a string of several lines:
//!
//! ```text
//! @entry_restriction("            the rest of the first line is text
//!     ether_type != IPV4;         later lines: macros are replaced, except in comments and in single quotes
//! #ifdef WITH_TTL                 directives are processed; an empty line replaces each of them
//!     ttl > 0;                    a line of an inactive branch becomes empty, and a quote in it closes nothing
//! #endif
//! ")
//! ```
//!
//! A string on one line is not affected. Neither is a line that begins with `#` and is not a directive.

use diagnostics::{Diagnostic, Span};

use super::{PpToken, Preprocessor};
use crate::lex::{RawKind, Scanner, StringLine, TokenKind, unescape, word_length};

/// Number of bytes of an expansion that count as one token towards the limit of the output of macros.
const BYTES_PER_TOKEN: usize = 8;

impl Preprocessor<'_> {
    /// Reads a string of several lines again, now with its directives and macros. `first` is its first line.
    pub(super) fn long_string(&mut self, string: PpToken, first: String) -> PpToken {
        let height = self.files.len();
        let (mut text, mut end) = (first, None);
        while let Some(file) = self.files.last_mut().filter(|_| end.is_none() && !self.stopped) {
            let skipped = file.conditionals.last().is_some_and(|branch| !branch.active);
            match file.scanner.string_line(skipped) {
                StringLine::Directive => {
                    let hash = file.scanner.next(&mut self.words, skipped);
                    self.directive(hash.span);
                    text.push('\n');
                }
                StringLine::Text(..) if skipped => text.push('\n'),
                StringLine::Text(line, span) => text += &self.expanded_text(&line, span),
                StringLine::Last(line, span) => {
                    // A directive before this line may have left it set.
                    file.at_line_start = false;
                    text += &self.expanded_text(&line, span);
                    end = Some(span);
                }
                StringLine::End if self.files.len() > height => self.close_file(),
                StringLine::End => {
                    let message = "every closing quote of this string is in an inactive branch of an `#if`";
                    let span = Span::new(string.span.file, string.span.start, string.span.start + 1);
                    let diagnostic = Diagnostic::error("unterminated-string", span, message);
                    self.diagnostics.push(diagnostic.help("end it with `\"` after the `#endif`"));
                    break;
                }
            }
        }
        let opening = string.span;
        let span = match end {
            Some(end) if end.file == opening.file => Span::new(opening.file, opening.start, end.end),
            _ => opening,
        };
        let kind = TokenKind::String(unescape(&text).into());
        PpToken { spaced: string.spaced, ..PpToken::new(kind, span) }
    }

    /// Replaces the macros in a line of a string. The text may have escapes, and keeps them.
    fn expanded_text(&mut self, line: &str, span: Span) -> String {
        let mut out = String::with_capacity(line.len());
        let mut rest = line;
        // After a call whose parentheses are not balanced on this line no call is looked for.
        let mut calls = true;
        while let Some(c) = rest.chars().next() {
            let length = match c {
                'a'..='z' | 'A'..='Z' | '_' => {
                    let name = &rest[..word_length(rest)];
                    let used = self.macros.get(name).map(|found| match found.params {
                        None => Some(name.len()),
                        Some(_) if calls => call_length(rest, name.len(), &mut calls),
                        Some(_) => None,
                    });
                    if let Some(Some(length)) = used {
                        out += &self.expanded_use(&rest[..length], span);
                        rest = &rest[length..];
                        continue;
                    }
                    name.len()
                }
                '0'..='9' => word_length(rest),
                '\\' => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
                '/' if rest.starts_with("//") => rest.len(),
                '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
                '\'' => rest[1..].find('\'').map_or(rest.len(), |end| end + 2),
                _ => c.len_utf8(),
            };
            out += &rest[..length];
            rest = &rest[length..];
        }
        out
    }

    /// Expands `text`, which is a macro's name, with its arguments if it takes any.
    fn expanded_use(&mut self, text: &str, span: Span) -> String {
        let mut scanner = Scanner::new(span.file, text.into());
        let mut tokens = Vec::new();
        loop {
            let raw = scanner.next(&mut self.words, false);
            let RawKind::Token(kind) = raw.kind else { break };
            // The spelling of a number is looked up in its file, in which `text` has another offset.
            let written = &text[raw.span.start as usize..raw.span.end as usize];
            let made = matches!(kind, TokenKind::Int(_)).then(|| written.into());
            tokens.push(PpToken { spaced: raw.spaced, made, ..PpToken::new(kind, span) });
        }
        let mut out = String::new();
        for (at, tok) in self.expand_list(&tokens).iter().enumerate() {
            if at > 0 && tok.spaced {
                out.push(' ');
            }
            let spelling = self.spelling(tok);
            self.spend(spelling.len() / BYTES_PER_TOKEN, span);
            if self.stopped {
                break;
            }
            match tok.kind {
                TokenKind::String(_) => out += &spelling.replace('\\', "\\\\").replace('"', "\\\""),
                _ => out += &spelling,
            }
        }
        out
    }
}

/// Returns the length of the call that `text` begins with: a name of `name` bytes and arguments in parentheses. Clears
/// `balanced` if the closing parenthesis is missing.
fn call_length(text: &str, name: usize, balanced: &mut bool) -> Option<usize> {
    let after = text[name..].trim_start_matches([' ', '\t']);
    if !after.starts_with('(') {
        return None;
    }
    let open = text.len() - after.len();
    let mut depth = 0usize;
    for (at, byte) in after.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 1 => return Some(open + at + 1),
            b')' => depth -= 1,
            _ => {}
        }
    }
    *balanced = false;
    None
}
