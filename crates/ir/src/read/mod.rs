//! The reader: the text form back to a program.
//!
//! A file is a list of declarations; their order matters only within a kind, where it gives the numbers. So the reader
//! first finds where each begins and ends, then reads those first that others refer to. It checks that the text is
//! well formed and that what it names exists; everything else is [`validate`](crate::validate())'s.

mod code;
mod cursor;
mod expr;
mod lex;
mod objects;
mod storage;

use std::collections::HashMap;

use cranelift_entity::{EntityRef, PrimaryMap};
use diagnostics::{Diagnostics, FileId, SourceMap, Span};

use self::cursor::{Reader, source_place};
use self::lex::Kind;
use crate::print::nowhere;
use crate::text::Names;
use crate::*;

/// The longest text in bytes.
const MAX_TEXT: usize = 1 << 24;

/// The words that begin a declaration.
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

/// Reads a file in the text form. What is wrong with it goes to `diagnostics`; any error gives `None`.
///
/// What is read is well formed, but not valid before [`validate`](crate::validate()) says so.
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
    program.locs.push(nowhere());
    let mut reader = Reader {
        file,
        text: &text,
        tokens,
        at: 0,
        end,
        diagnostics,
        program,
        names: Names::default(),
        locs: HashMap::from([(nowhere(), LocId::new(0))]),
        places_listed: false,
        nesting: 0,
    };
    reader.file_items();
    let program = std::mem::take(&mut reader.program);
    (diagnostics.error_count() == before).then_some(program)
}

/// A declaration: its first word, and its tokens with that word.
#[derive(Clone, Copy)]
struct Item<'s> {
    word: &'s str,
    start: usize,
    end: usize,
}

impl<'s> Reader<'s, '_> {
    /// Reads every declaration.
    fn file_items(&mut self) {
        let items = self.split();
        match items.iter().filter(|item| item.word == "program").count() {
            1 => {}
            count => {
                let span = Span::new(self.file, 0, 0);
                self.error::<()>(span, format!("a file has one line `program NAME`, this one has {count}"));
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

        // These refer to each other, so their names come first.
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

    /// Finds the declarations. A word begins one if it is the first of its line, outside of braces.
    fn split(&mut self) -> Vec<Item<'s>> {
        let mut items: Vec<Item<'s>> = Vec::new();
        let mut depth = 0usize;
        for at in 0..self.tokens.len() {
            let (token, text) = (self.tokens[at], self.text_of(at));
            if depth == 0 && token.first && token.kind == Kind::Word && DECLARATIONS.contains(&text) {
                if let Some(last) = items.last_mut() {
                    last.end = at;
                }
                items.push(Item { word: text, start: at, end: self.tokens.len() });
            } else if items.is_empty() {
                let help = "a file begins with `program NAME`";
                self.error_with::<()>(self.span_of(at), "a declaration is expected here".to_owned(), help);
                return items;
            }
            match (token.kind, text) {
                (Kind::Punct, "{") => depth += 1,
                (Kind::Punct, "}") => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        items
    }

    /// Reads the declarations that begin with one of `words`.
    fn each(&mut self, items: &[Item<'s>], words: &[&str], mut read: impl FnMut(&mut Self, Item<'s>) -> Option<()>) {
        for item in items.iter().filter(|item| words.contains(&item.word)) {
            self.within(item.start + 1, item.end, |reader| {
                read(reader, *item)?;
                Some(())
            });
        }
    }

    /// Reads a stretch of tokens and complains about what is left of it.
    fn within(&mut self, at: usize, end: usize, read: impl FnOnce(&mut Self) -> Option<()>) {
        (self.at, self.end) = (at, end);
        if read(self).is_some() && self.at < self.end {
            self.expected::<()>("the end of the declaration");
        }
    }

    /// `program`, `errors` and `places`.
    fn preamble(&mut self, item: Item<'s>) -> Option<()> {
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
                if std::mem::replace(&mut self.places_listed, true) {
                    return self.error(self.span_of(item.start), "places are listed once");
                }
                self.expect("{")?;
                let mut locs = PrimaryMap::new();
                self.locs.clear();
                while !self.take("}") {
                    if self.peek() != Kind::Place {
                        return self.expected("a place: `; file:line:column`");
                    }
                    let Some((place, None)) = source_place(self.text_of(self.at)) else { return self.bad_place() };
                    self.at += 1;
                    let id = locs.push(place.clone());
                    self.locs.entry(place).or_insert(id);
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
                kept.push(Kept::Slot(self.slot()?));
            } else if self.take("header") {
                kept.push(Kept::Header(self.header_id()?));
            } else {
                return self.expected("`slot` or `header` and what is kept");
            }
        }
        if self.program.field_lists.insert(number, kept).is_some() {
            return self.error(span, format!("field list {number} is given twice"));
        }
        Some(())
    }

    fn role(&mut self) -> Option<()> {
        let span = self.span();
        let role = self.label("a block of the architecture")?;
        self.expect(":")?;
        let body = self.reference("body", |names| &names.bodies, |program| &program.bodies, |body| &body.name)?;
        if self.program.blocks.insert(role, body).is_some() {
            return self.error(span, "this block of the architecture is given twice");
        }
        Some(())
    }
}
