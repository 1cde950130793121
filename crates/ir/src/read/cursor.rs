//! The token cursor, and the elements that all declarations share: names, numbers, references, source positions.

use std::collections::HashMap;
use std::fmt::Display;

use bits::Bits;
use cranelift_entity::{EntityRef, PrimaryMap};
use diagnostics::{Diagnostic, Diagnostics, FileId, SourcePosition, Span};

use super::lex::{TextToken, TokenKind, unquoted};
use crate::text::{Index, KEYWORDS, NameIndex};
use crate::*;

/// Maximum number of digits of a number; enough for any value of the maximum width.
const MAX_DIGITS: usize = 20_000;

/// Reads the tokens of one file into a program. Every reading method returns `None` after reporting an error.
pub(super) struct TextReader<'s, 'd> {
    pub(super) file: FileId,
    pub(super) text: &'s str,
    pub(super) tokens: Vec<TextToken>,
    /// Index of the next token.
    pub(super) at: usize,
    /// Index after the last token of the declaration being read.
    pub(super) end: usize,
    pub(super) diagnostics: &'d mut Diagnostics,
    pub(super) program: Program,
    pub(super) names: NameIndex,
    pub(super) locs: HashMap<SourcePosition, LocId>,
    /// Whether the text lists its source positions, so no others may be added.
    pub(super) positions_listed: bool,
    /// Number of expressions that enclose the next one.
    pub(super) nesting: usize,
}

impl<'s> TextReader<'s, '_> {
    pub(super) fn peek(&self) -> TokenKind {
        self.token(self.at).kind
    }

    fn token(&self, at: usize) -> TextToken {
        if at < self.end {
            return self.tokens[at];
        }
        let last = self.tokens[..self.end].last().map_or(0, |token| token.end);
        TextToken { kind: TokenKind::End, first: true, start: last, end: last }
    }

    pub(super) fn span_of(&self, at: usize) -> Span {
        let token = self.token(at);
        Span::new(self.file, token.start, token.end)
    }

    pub(super) fn span(&self) -> Span {
        self.span_of(self.at)
    }

    pub(super) fn text_of(&self, at: usize) -> &'s str {
        let token = self.token(at);
        &self.text[token.start as usize..token.end as usize]
    }

    /// Whether the token `ahead` of the next is this word or punctuation.
    pub(super) fn is_ahead(&self, ahead: usize, text: &str) -> bool {
        let at = self.at + ahead;
        matches!(self.token(at).kind, TokenKind::Word | TokenKind::Punct) && self.text_of(at) == text
    }

    pub(super) fn is(&self, text: &str) -> bool {
        self.is_ahead(0, text)
    }

    /// Consumes the next token if it is this word or punctuation.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let found = self.is(text);
        self.at += usize::from(found);
        found
    }

    pub(super) fn error<T>(&mut self, span: Span, message: impl Into<String>) -> Option<T> {
        self.diagnostics.push(Diagnostic::error("ir-syntax", span, message));
        None
    }

    pub(super) fn error_with<T>(&mut self, span: Span, message: String, help: &str) -> Option<T> {
        self.diagnostics.push(Diagnostic::error("ir-syntax", span, message).help(help));
        None
    }

    /// Reports that the next token is not the expected one.
    pub(super) fn expected<T>(&mut self, what: &str) -> Option<T> {
        let found = match self.peek() {
            TokenKind::End => "the end".to_owned(),
            _ => {
                let text = self.text_of(self.at);
                let shown: String = text.chars().take(40).collect();
                format!("`{shown}{}`", if shown.len() < text.len() { "..." } else { "" })
            }
        };
        self.error(self.span(), format!("expected {what}, found {found}"))
    }

    pub(super) fn expect(&mut self, text: &str) -> Option<()> {
        if self.take(text) { Some(()) } else { self.expected(&format!("`{text}`")) }
    }

    /// Skips, from the token after `start` at least, to the next token that is the first of its line or a closing
    /// brace. Used after an error in the construct that began at `start`.
    pub(super) fn skip_line(&mut self, start: usize) {
        self.at = self.at.max(start + 1);
        while self.at < self.end && !self.token(self.at).first && !self.is("}") {
            self.at += 1;
        }
    }

    /// Returns the next token as a keyword, if it can be one.
    pub(super) fn keyword(&self) -> &'s str {
        match self.peek() {
            TokenKind::Word => {
                Some(self.text_of(self.at)).filter(|word| KEYWORDS.binary_search(word).is_ok()).unwrap_or("")
            }
            _ => "",
        }
    }

    /// Reads a name where no keyword can occur.
    pub(super) fn label(&mut self, what: &str) -> Option<String> {
        let name = match self.peek() {
            TokenKind::Word => self.text_of(self.at).to_owned(),
            TokenKind::Quoted => match unquoted(self.text_of(self.at)) {
                Some(name) => name,
                None => return self.error(self.span(), "invalid escape in this string"),
            },
            _ => return self.expected(what),
        };
        self.at += 1;
        Some(name)
    }

    /// Reads a name; a name that equals a keyword is quoted.
    pub(super) fn name(&mut self, what: &str) -> Option<String> {
        let word = self.keyword();
        if !word.is_empty() {
            let message = format!("expected {what}, found the keyword `{word}`");
            return self.error_with(self.span(), message, "quote a name that is also a keyword");
        }
        let span = self.span();
        let name = self.label(what)?;
        // Twice the limit for programs, since the reader joins the names of a header and a field.
        if name.len() > 2 * MAX_NAME + 1 {
            return self.error(span, format!("a name is at most {MAX_NAME} bytes long"));
        }
        Some(name)
    }

    /// Reads quoted text.
    pub(super) fn quoted(&mut self, what: &str) -> Option<String> {
        if self.peek() == TokenKind::Quoted { self.label(what) } else { self.expected(what) }
    }

    /// Reads the name in a declaration. Its number, if written, must be the next one.
    pub(super) fn declared<K: EntityRef + Display>(&mut self, next: K, what: &str) -> Option<String> {
        let nameless = self.peek() == TokenKind::Nameless;
        let name = if nameless { String::new() } else { self.name(&format!("the name of a {what}"))? };
        if nameless || self.peek() == TokenKind::Tag {
            if self.text_of(self.at)[1..] != next.to_string() {
                return self.error(self.span(), format!("expected {next}: numbers follow the order of declaration"));
            }
            self.at += 1;
        }
        Some(name)
    }

    /// Reads the number after a `#`, if one comes next: after a name, or in place of one.
    pub(super) fn tag<K: EntityRef + Display>(&mut self, nameless: bool, len: usize) -> Option<Option<K>> {
        if self.peek() != (if nameless { TokenKind::Nameless } else { TokenKind::Tag }) {
            return Some(None);
        }
        let text = &self.text_of(self.at)[1..];
        let digits = text.trim_start_matches(|c: char| !c.is_ascii_digit());
        let found = digits.parse().ok().filter(|at| *at < len).map(K::new).filter(|id| id.to_string() == text);
        if found.is_none() {
            return self.error(self.span(), format!("there is no `{text}`: {len} of its kind are declared"));
        }
        self.at += 1;
        Some(found)
    }

    /// Reads a reference to an entity of one kind.
    pub(super) fn reference<K: EntityRef + Display, V>(
        &mut self,
        what: &str,
        index: impl Fn(&NameIndex) -> &Index<K>,
        map: impl Fn(&Program) -> &PrimaryMap<K, V>,
        name_of: impl Fn(&V) -> &String,
    ) -> Option<K> {
        let start = self.at;
        let name = if self.peek() == TokenKind::Nameless { None } else { Some(self.name(&format!("a {what}"))?) };
        let id = self.tag(name.is_none(), map(&self.program).len())?;
        match (name, id) {
            (None, Some(id)) => Some(id),
            (Some(name), Some(id)) => {
                let real = name_of(&map(&self.program)[id]);
                if *real == name {
                    return Some(id);
                }
                let message = format!("{id} is called {real:?}");
                self.error(self.span_of(start), message)
            }
            (Some(name), None) => match index(&self.names).get(&name) {
                Some(id) => Some(*id),
                None => self.error(self.span_of(start), format!("there is no {what} called {name:?}")),
            },
            (None, None) => self.expected(&format!("a {what}")),
        }
    }

    /// Reads a decimal number within the range of `N`.
    pub(super) fn number<N: std::str::FromStr>(&mut self, what: &str) -> Option<N> {
        if self.peek() != TokenKind::Number {
            return self.expected(what);
        }
        match self.text_of(self.at).parse() {
            Ok(number) => {
                self.at += 1;
                Some(number)
            }
            Err(_) => self.error(self.span(), format!("this cannot be {what}")),
        }
    }

    /// Reads a constant: `0x2a:8`.
    pub(super) fn constant(&mut self) -> Option<Bits> {
        let start = self.span();
        if self.peek() != TokenKind::Number {
            return self.expected("a constant such as `0x2a:8`");
        }
        let value = self.text_of(self.at);
        self.at += 1;
        if !self.take(":") {
            return self.error_with(start, "a constant without a width".into(), "write `value:width`, such as `42:8`");
        }
        let span = start.to(self.span());
        let width: u32 = self.number("the width of a constant")?;
        if width > bits::MAX_WIDTH {
            return self.error(span, format!("a value has at most {} bits", bits::MAX_WIDTH));
        }
        if value.len() > MAX_DIGITS {
            return self.error(span, format!("a number has at most {MAX_DIGITS} digits"));
        }
        match Bits::parse(&format!("{value}:{width}")) {
            Some(value) => Some(value),
            None => self.error(span, format!("this is not a number of {width} bits")),
        }
    }

    /// Reads zero or more annotations.
    pub(super) fn annotations(&mut self) -> Option<Vec<Annotation>> {
        let mut annotations = Vec::new();
        while self.take("@") {
            let name = self.label("the name of an annotation")?;
            let mut text = String::new();
            if self.take("(") {
                text = self.quoted("the annotation's text as a quoted string")?;
                self.expect(")")?;
            }
            annotations.push(Annotation { name, text });
        }
        Some(annotations)
    }

    /// Reads the position in the P4 source, if one comes next.
    pub(super) fn loc(&mut self) -> Option<LocId> {
        if self.peek() != TokenKind::Position {
            return Some(LocId::new(0));
        }
        let span = self.span();
        let Some((position, number)) = parse_position(self.text_of(self.at)) else { return self.bad_position() };
        self.at += 1;
        if let Some(number) = number {
            let id = (number < self.program.locs.len()).then(|| LocId::new(number));
            return match id.filter(|id| self.program.locs[*id] == position) {
                Some(id) => Some(id),
                None => self.error(span, format!("loc{number} is not this position")),
            };
        }
        if let Some(id) = self.locs.get(&position) {
            return Some(*id);
        }
        if self.positions_listed {
            return self.error(span, "this position is not in the list of positions");
        }
        let id = self.program.locs.push(position.clone());
        self.locs.insert(position, id);
        Some(id)
    }

    pub(super) fn bad_position<T>(&mut self) -> Option<T> {
        let help = "a position is written `; file:line:column`; comments begin with `//`";
        self.error_with(self.span(), "this is not a source position".into(), help)
    }
}

/// Parses a position token: the position, and its number if it has one.
pub(super) fn parse_position(token: &str) -> Option<(SourcePosition, Option<usize>)> {
    let text = token.strip_prefix(';')?.trim();
    // A quoted file name may contain any character, so it is split off first.
    let (file, rest) = match text.strip_prefix('"') {
        Some(quoted) => {
            let mut escaped = false;
            let end = quoted.find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            })?;
            (unquoted(&text[..end + 2])?, quoted[end + 1..].strip_prefix(':')?)
        }
        None => {
            let numbers = text.find(" #loc").unwrap_or(text.len());
            let (before, _) = text[..numbers].rsplit_once(':')?;
            let (file, line) = before.rsplit_once(':')?;
            (file.to_owned(), &text[before.len() - line.len()..])
        }
    };
    let (rest, number) = match rest.split_once(" #loc") {
        Some((rest, number)) => (rest, Some(number.parse().ok()?)),
        None => (rest, None),
    };
    let (line, column) = rest.split_once(':')?;
    Some((SourcePosition { file, line: line.parse().ok()?, column: column.parse().ok()? }, number))
}
