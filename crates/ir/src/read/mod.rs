//! Reader: converts the text form back to a program.
//!
//! A file is a list of declarations. Their order matters only within a kind, where it determines the numbers. The
//! reader therefore first finds the boundaries of each declaration, then reads declarations before those that refer to
//! them. It checks that the text is well formed and that references resolve; [`validate`](crate::validate()) checks
//! everything else.

mod code;
mod cursor;
mod expr;
mod lex;
mod objects;
mod storage;

use std::collections::HashMap;

use cranelift_entity::{EntityRef, PrimaryMap};
use diagnostics::{Diagnostics, FileId, SourceMap, Span};

use self::cursor::{TextReader, parse_position};
use self::lex::TokenKind;
use crate::print::unknown_position;
use crate::text::NameIndex;
use crate::*;

/// Maximum length of the text in bytes.
const MAX_TEXT: usize = 1 << 24;

/// Words that begin a declaration.
const DECLARATIONS: &[&str] = &[
    "action",
    "action_body",
    "argument",
    "control",
    "counter",
    "digest",
    "errors",
    "field_list",
    "header",
    "header_type",
    "local",
    "metadata",
    "meter",
    "parser",
    "places",
    "profile",
    "program",
    "register",
    "role",
    "stack",
    "table",
    "value_set",
];

/// Reads a file in the text form. Adds errors to `diagnostics`; any error makes it return `None`.
///
/// The returned program is well formed; [`validate`](crate::validate()) decides whether it is valid.
pub fn parse(map: &SourceMap, file: FileId, diagnostics: &mut Diagnostics) -> Option<Program> {
    if !map.contains(file) {
        return None;
    }
    let text = map.file(file).text().clone();
    if text.len() > MAX_TEXT {
        let message = format!("a program's text has at most {MAX_TEXT} bytes");
        diagnostics.push(diagnostics::Diagnostic::error("ir-syntax", Span::new(file, 0, 0), message));
        return None;
    }
    let before = diagnostics.error_count();
    let tokens = lex::tokens(file, &text, diagnostics);
    let end = tokens.len();
    let mut program = Program::default();
    program.locs.push(unknown_position());
    let mut reader = TextReader {
        file,
        text: &text,
        tokens,
        at: 0,
        end,
        diagnostics,
        program,
        names: NameIndex::default(),
        locs: HashMap::from([(unknown_position(), LocId::new(0))]),
        positions_listed: false,
        nesting: 0,
    };
    reader.file_declarations();
    let program = std::mem::take(&mut reader.program);
    (diagnostics.error_count() == before).then_some(program)
}

/// A declaration: its first word, and its tokens including that word.
#[derive(Clone, Copy)]
struct Declaration<'s> {
    word: &'s str,
    start: usize,
    end: usize,
}

impl<'s> TextReader<'s, '_> {
    /// Reads every declaration.
    fn file_declarations(&mut self) {
        let items = self.split();
        match items.iter().filter(|item| item.word == "program").count() {
            1 => {}
            count => {
                let span = Span::new(self.file, 0, 0);
                self.error::<()>(span, format!("expected one line `program NAME`, found {count}"));
            }
        }
        let all = self.end;
        self.each(&items, &["program", "errors", "places"], Self::preamble);
        self.each(&items, &["header_type"], |reader, _| reader.header_type());
        self.each(&items, &["header"], |reader, _| reader.header_instance());
        self.each(&items, &["metadata", "local", "argument"], Self::slot_declaration);
        self.each(&items, &["stack"], |reader, _| reader.stack());
        self.each(&items, &["register"], |reader, _| reader.register());
        self.each(&items, &["counter"], |reader, _| reader.counter());
        self.each(&items, &["meter"], |reader, _| reader.meter());
        self.each(&items, &["profile"], |reader, _| reader.profile());
        self.each(&items, &["value_set"], |reader, _| reader.value_set());
        self.each(&items, &["digest"], |reader, _| reader.digest());

        // These refer to each other, so their names are read first.
        let mut actions = Vec::new();
        self.each(&items, &["action"], |reader, _| reader.action_name(&mut actions));
        let mut tables = Vec::new();
        self.each(&items, &["table"], |reader, _| reader.table_name(&mut tables));
        let mut bodies = Vec::new();
        self.each(&items, &["parser", "control", "action_body"], |reader, item| reader.body_name(item, &mut bodies));
        self.each(&items, &["field_list"], |reader, _| reader.field_list());
        self.each(&items, &["role"], |reader, _| reader.role());
        for (id, at, end) in actions {
            self.within(at, end, |reader| reader.action(id));
        }
        for (id, at, end) in tables {
            self.within(at, end, |reader| reader.table(id));
        }
        for (id, at, end) in bodies {
            self.within(at, end, |reader| reader.body(id));
        }
        self.end = all;
    }

    /// Splits the file into declarations. A declaration begins with a word that is the first of its line, outside of
    /// braces.
    fn split(&mut self) -> Vec<Declaration<'s>> {
        let mut items: Vec<Declaration<'s>> = Vec::new();
        let mut depth = 0usize;
        for at in 0..self.tokens.len() {
            let (token, text) = (self.tokens[at], self.text_of(at));
            if depth == 0 && token.first && token.kind == TokenKind::Word && DECLARATIONS.contains(&text) {
                if let Some(last) = items.last_mut() {
                    last.end = at;
                }
                items.push(Declaration { word: text, start: at, end: self.tokens.len() });
            } else if items.is_empty() {
                let help = "a file must start with `program NAME`";
                self.error_with::<()>(self.span_of(at), "expected a declaration".to_owned(), help);
                return items;
            }
            match (token.kind, text) {
                (TokenKind::Punct, "{") => depth += 1,
                (TokenKind::Punct, "}") => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        items
    }

    /// Reads the declarations that begin with one of `words`.
    fn each(
        &mut self,
        items: &[Declaration<'s>],
        words: &[&str],
        mut read: impl FnMut(&mut Self, Declaration<'s>) -> Option<()>,
    ) {
        for item in items.iter().filter(|item| words.contains(&item.word)) {
            self.within(item.start + 1, item.end, |reader| {
                read(reader, *item)?;
                Some(())
            });
        }
    }

    /// Reads a range of tokens and reports the tokens that `read` leaves over.
    fn within(&mut self, at: usize, end: usize, read: impl FnOnce(&mut Self) -> Option<()>) {
        (self.at, self.end) = (at, end);
        if read(self).is_some() && self.at < self.end {
            self.expected::<()>("the end of the declaration");
        }
    }

    /// Reads `program`, `errors` and `places`.
    fn preamble(&mut self, item: Declaration<'s>) -> Option<()> {
        match item.word {
            "program" => self.program.arch = self.name("the name of an architecture")?,
            "errors" => {
                self.expect("{")?;
                while !self.take("}") {
                    let error = self.name("the name of an error")?;
                    self.program.errors.push(error);
                }
            }
            _ => {
                if std::mem::replace(&mut self.positions_listed, true) {
                    return self.error(self.span_of(item.start), "duplicate list of positions");
                }
                self.expect("{")?;
                let mut locs = PrimaryMap::new();
                self.locs.clear();
                while !self.take("}") {
                    if self.peek() != TokenKind::Position {
                        return self.expected("a position: `; file:line:column`");
                    }
                    let Some((position, None)) = parse_position(self.text_of(self.at)) else {
                        return self.bad_position();
                    };
                    self.at += 1;
                    let id = locs.push(position.clone());
                    self.locs.entry(position).or_insert(id);
                }
                self.program.locs = locs;
            }
        }
        Some(())
    }

    fn field_list(&mut self) -> Option<()> {
        let span = self.span();
        let number = self.number("the number of a field list")?;
        self.expect("{")?;
        let mut kept = Vec::new();
        while !self.take("}") {
            if self.take("slot") {
                kept.push(FieldListItem::Slot(self.slot()?));
            } else if self.take("header") {
                kept.push(FieldListItem::Header(self.header_id()?));
            } else {
                return self.expected("`slot` or `header`, and its name");
            }
        }
        if self.program.field_lists.insert(number, kept).is_some() {
            return self.error(span, format!("duplicate field list {number}"));
        }
        Some(())
    }

    fn role(&mut self) -> Option<()> {
        let span = self.span();
        let role = self.label("a block of the architecture")?;
        self.expect(":")?;
        let body = self.reference("body", |names| &names.bodies, |program| &program.bodies, |body| &body.name)?;
        if self.program.blocks.insert(role, body).is_some() {
            return self.error(span, "duplicate block of the architecture");
        }
        Some(())
    }
}
