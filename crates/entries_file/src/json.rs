//! The JSON layer: values with their positions, and the members that a file may have.

use diagnostics::names::{self, Endings, NoName};
use diagnostics::{Diagnostic, Diagnostics, FileId, Span};
use ir::Program;
use jsonc_parser::ParseOptions;
use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::errors::ParseError;
use smallvec::SmallVec;

use crate::{Entries, arrays, groups, profiles, table};

/// Members that direct other tools in loading the file; ignored here.
const IGNORED: &[&str] = &["target", "p4info", "bmv2_json"];

/// Reads one element of a section.
type Section = fn(&mut FileReader<'_>, &Value<'_>, &mut Entries);

/// The sections in reading order: sections come before those that refer to them.
const BEFORE_TABLES: &[(&str, Section)] =
    &[("action_profile_members", profiles::read_member), ("action_profile_groups", profiles::read_group)];
const TABLES: (&str, Section) = ("table_entries", table::read);
const AFTER_TABLES: &[(&str, Section)] = &[
    ("value_set_entries", arrays::read_value_set),
    ("multicast_group_entries", groups::read_group),
    ("clone_session_entries", groups::read_mirror),
    ("register_entries", arrays::read_register),
    ("meter_entries", arrays::read_meter),
    ("queue_entries", arrays::read_queue),
    ("crc_entries", arrays::read_crc),
];

/// Context of all reading functions: the program, the diagnostics and the file.
pub(crate) struct FileReader<'a> {
    pub program: &'a Program,
    pub diagnostics: &'a mut Diagnostics,
    /// Maximum number of a port.
    pub max_port: u32,
    pub file: FileId,
    /// Position in the file of the text that is read.
    pub base: usize,
    /// A piece of the file that the text lacks.
    pub cut: Option<Cut>,
}

/// A piece that was left out of a text, inside a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// Position of the piece.
    pub at: usize,
    /// Its length.
    pub len: usize,
}

/// The extensions of JSON in entries files: comments, trailing commas and hexadecimal numbers.
const JSON: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_loose_object_property_names: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: true,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

pub(crate) fn read(
    text: &str,
    file: FileId,
    program: &Program,
    max_port: u32,
    diagnostics: &mut Diagnostics,
) -> Entries {
    let mut entries = Entries::default();
    let mut reader = FileReader { program, diagnostics, max_port, file, base: 0, cut: None };
    let parsed = match parse(text) {
        Ok(parsed) => parsed,
        Err(error) => {
            let range = error.range();
            let span = Span::new(file, range.start as u32, range.end as u32);
            reader.diagnostics.push(syntax_error(span, &error));
            return entries;
        }
    };
    let Some(Value::Object(root)) = &parsed else {
        let span = parsed.as_ref().map_or(Span::new(file, 0, 0), |value| reader.span(value));
        reader.error("entries-format", span, "an entries file must be a JSON object with a member `table_entries`");
        return entries;
    };
    read_part(&mut reader, root, Part::BeforeTables, &mut entries);
    read_section(&mut reader, root, TABLES, &mut entries);
    read_part(&mut reader, root, Part::AfterTables, &mut entries);
    table::refuse_duplicates(&mut reader, &entries);
    entries
}

/// Parses JSON.
pub(crate) fn parse(text: &str) -> Result<Option<Value<'_>>, ParseError> {
    jsonc_parser::parse_to_ast(text, &Default::default(), &JSON).map(|parsed| parsed.value)
}

/// Returns the diagnostic of a syntax error.
pub(crate) fn syntax_error(span: Span, error: &ParseError) -> Diagnostic {
    Diagnostic::error("json", span, format!("invalid JSON: {}", error.kind()))
}

/// The sections of a file apart from table entries, by the time at which they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Those that table entries refer to; and the names of all.
    BeforeTables,
    /// The others.
    AfterTables,
}

/// Reads a part of a file.
pub(crate) fn read_part(reader: &mut FileReader<'_>, root: &Object<'_>, part: Part, entries: &mut Entries) {
    let sections = match part {
        Part::BeforeTables => {
            let all = BEFORE_TABLES.iter().chain([&TABLES]).chain(AFTER_TABLES);
            let known: Vec<&str> = all.map(|(name, _)| name).chain(IGNORED).copied().collect();
            reader.only_members(root, "an entries file", &known);
            BEFORE_TABLES
        }
        Part::AfterTables => AFTER_TABLES,
    };
    sections.iter().for_each(|section| read_section(reader, root, *section, entries));
}

fn read_section(reader: &mut FileReader<'_>, root: &Object<'_>, section: (&str, Section), entries: &mut Entries) {
    let (name, read) = section;
    for item in reader.list(root, name) {
        read(reader, item, entries);
    }
}

impl<'a> FileReader<'a> {
    /// Returns the span of a value.
    pub fn span(&self, ranged: &impl Ranged) -> Span {
        let range = ranged.range();
        let cut = |at: usize| self.cut.map_or(0, |cut| if at > cut.at { cut.len } else { 0 });
        let place = |at: usize| (at + self.base + cut(at)) as u32;
        Span::new(self.file, place(range.start), place(range.end))
    }

    /// Reports an error.
    pub fn error(&mut self, code: &'static str, span: Span, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic::error(code, span, message));
    }

    /// Reports that something is already defined.
    pub fn twice(&mut self, span: Span, message: impl Into<String>, earlier: Span) {
        self.diagnostics
            .push(Diagnostic::error("entries-duplicate", span, message).also(earlier, "first defined here"));
    }

    /// Returns the value as an object, or reports that `what` should be one.
    pub fn object<'v, 't>(&mut self, value: &'v Value<'t>, what: &str) -> Option<&'v Object<'t>> {
        match value {
            Value::Object(object) => Some(object),
            other => {
                let span = self.span(other);
                self.error("entries-format", span, format!("{what} must be a JSON object `{{ ... }}`"));
                None
            }
        }
    }

    /// Resolves a name to one of the program's `kind`s; reports a name with no match or more than one, and a name that
    /// the program gives several of them.
    pub fn named<T: Copy>(
        &mut self,
        code: &'static str,
        kind: &str,
        name: (&str, Span),
        all: &[(T, &str)],
    ) -> Option<T> {
        let (name, span) = name;
        let shares = |given: &str| given == name || given.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
        let is_shared = || all.iter().any(|(_, other)| names::shared(other).is_some_and(shares));
        let (message, help) = match names::find(name, all, Endings::BehindDot) {
            Ok(_) if names::shared(name).is_some() || is_shared() => (
                format!("the program gives more than one {kind} the name `{}`", names::shared(name).unwrap_or(name)),
                "give them different names in the program, with `@name`".to_owned(),
            ),
            Ok(found) => return Some(found),
            Err(NoName::Ambiguous(one, other)) => (
                format!("`{name}` is ambiguous: it is a suffix of more than one {kind}"),
                format!("write `{one}` or `{other}`"),
            ),
            Err(NoName::Unknown) => {
                let candidates = || all.iter().map(|(_, name)| *name);
                let help = match names::nearest(name, candidates()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("it has {}", names::listed(candidates())),
                };
                (format!("the program has no {kind} `{name}`"), help)
            }
        };
        self.diagnostics.push(Diagnostic::error(code, span, message).help(help));
        None
    }

    /// Returns the elements of an array member; none if it is absent.
    pub fn list<'v, 't>(&mut self, object: &'v Object<'t>, name: &str) -> &'v [Value<'t>] {
        match member(object, name) {
            None => &[],
            Some(Value::Array(array)) => &array.elements,
            Some(other) => {
                let span = self.span(other);
                self.error("entries-format", span, format!("`{name}` must be a JSON array `[ ... ]`"));
                &[]
            }
        }
    }

    /// Returns a string member; reports a missing member and one of another type.
    pub fn string<'v>(&mut self, object: &'v Object<'_>, name: &str, what: &str) -> Option<(&'v str, Span)> {
        match member(object, name) {
            Some(Value::StringLit(text)) => Some((text.value.as_ref(), self.span(text))),
            Some(other) => {
                let span = self.span(other);
                self.error("entries-format", span, format!("`{name}` must be a string"));
                None
            }
            None => {
                let span = self.span(object);
                self.error("entries-format", span, format!("{what} requires a member `{name}`"));
                None
            }
        }
    }

    /// Returns an unsigned number member no larger than `max`; an absent one is `None` and not an error.
    pub fn number(&mut self, object: &Object<'_>, name: &str, max: u64) -> Option<u64> {
        let value = member(object, name)?;
        let span = self.span(value);
        let number = match value {
            Value::NumberLit(number) => number.value.parse::<u64>().ok().filter(|number| *number <= max),
            _ => None,
        };
        if number.is_none() {
            self.error("entries-value", span, format!("`{name}` must be an integer from 0 to {max}"));
        }
        number
    }

    /// Reports members with names other than `known`, and repeated ones.
    pub fn only_members(&mut self, object: &Object<'_>, what: &str, known: &[&str]) {
        let mut seen = SmallVec::<[&str; 16]>::new();
        for property in &object.properties {
            let name = property.name.as_str();
            let span = self.span(&property.name);
            if !known.contains(&name) {
                let mut diagnostic =
                    Diagnostic::error("entries-format", span, format!("{what} has no member `{name}`"));
                diagnostic = diagnostic.help(match names::nearest(name, known.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("the members are {}", names::listed(known.iter().copied())),
                });
                self.diagnostics.push(diagnostic);
            } else if seen.contains(&name) {
                self.error("entries-format", span, format!("duplicate member `{name}`"));
            } else {
                seen.push(name);
            }
        }
    }
}

/// Returns the member of an object with this name.
pub(crate) fn member<'v, 't>(object: &'v Object<'t>, name: &str) -> Option<&'v Value<'t>> {
    object.properties.iter().find(|property| property.name.as_str() == name).map(|property| &property.value)
}
