//! Extracts the text of a restriction from an annotation of a P4Info, and locates it in the program.
//!
//! A P4Info has annotations as strings (`@entry_restriction("a == 1;" "b == 2")`) that quote the strings of the program
//! as written. Their contents, joined by newlines, are the restriction. A finding is shown in the program if the text
//! is found in the source map, else in a file made of the restriction alone.

use diagnostics::{FileId, SourceMap, Span};

use crate::lex::TextRange;

/// Text of a restriction, and a mapping of its parts to the annotation's strings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Restriction {
    pub(crate) text: String,
    literals: Vec<Literal>,
}

/// One string of the annotation.
#[derive(Clone, Debug)]
struct Literal {
    /// The string as written, with its quotes.
    written: String,
    /// For each part without an escape: its offset in the restriction's text and its offset in `written`.
    runs: Vec<(usize, usize)>,
}

/// Returns the text in the parentheses of the annotation `@name(…)`.
pub(crate) fn body<'a>(annotation: &'a str, name: &str) -> Option<&'a str> {
    let rest = annotation.trim().strip_prefix('@')?.strip_prefix(name)?.trim();
    if rest.is_empty() {
        return Some("");
    }
    rest.strip_prefix('(')?.strip_suffix(')')
}

/// Joins the strings in `body` to one text. Returns `None` if there is anything else in it, or nothing.
pub(crate) fn strings(body: &str) -> Option<Restriction> {
    let mut out = Restriction::default();
    let mut rest = body.trim_start();
    while !rest.is_empty() {
        let inner = rest.strip_prefix('"')?;
        if !out.literals.is_empty() {
            out.text.push('\n');
        }
        let mut runs = vec![(out.text.len(), 1)];
        let mut chars = inner.char_indices();
        let length = loop {
            match chars.next()? {
                (at, '"') => break at,
                (_, '\\') => {
                    let (at, escaped) = chars.next()?;
                    out.text.push(if escaped == 'n' { '\n' } else { escaped });
                    runs.push((out.text.len(), at + escaped.len_utf8() + 1));
                }
                (_, plain) => out.text.push(plain),
            }
        };
        out.literals.push(Literal { written: rest[..length + 2].to_owned(), runs });
        rest = inner[length + 1..].trim_start();
    }
    (!out.literals.is_empty()).then_some(out)
}

/// The file in which the findings of a restriction are shown.
pub(crate) enum TextOrigin {
    /// The program: file and offset of each string.
    Program(Vec<(FileId, usize)>),
    /// A file of its own.
    Own(FileId),
}

impl Restriction {
    /// Locates the restriction in the files of `map`. If it is not found there, or found more than once, adds a file
    /// named `name`.
    pub(crate) fn places(&self, map: &mut SourceMap, name: &str) -> TextOrigin {
        let found: Option<Vec<_>> = self.literals.iter().map(|literal| only_place(map, &literal.written)).collect();
        match found {
            Some(places) => TextOrigin::Program(places),
            None => TextOrigin::Own(map.add(name, self.text.as_str())),
        }
    }

    /// Returns the source span of `range`, a range of the restriction's text.
    pub(crate) fn span(&self, at: TextRange, places: &TextOrigin) -> Span {
        match places {
            TextOrigin::Own(file) => Span::new(*file, offset(at.start), offset(at.end.max(at.start))),
            TextOrigin::Program(places) => {
                let (file, start) = self.place(at.start, places);
                let (_, end) = self.place(at.end.saturating_sub(1).max(at.start), places);
                Span::new(file, start, if at.end > at.start { end + 1 } else { end })
            }
        }
    }

    fn place(&self, at: usize, places: &[(FileId, usize)]) -> (FileId, u32) {
        let literal = self.literals.iter().rposition(|literal| literal.runs[0].0 <= at).unwrap_or(0);
        let runs = &self.literals[literal].runs;
        let run = runs.iter().rev().find(|run| run.0 <= at).unwrap_or(&runs[0]);
        let (file, start) = places[literal];
        (file, offset(start + run.1 + (at - run.0)))
    }
}

/// Converts an offset; files of a source map are shorter than 4 GiB.
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Returns the position of `text` in the files of `map`, if it occurs exactly once.
fn only_place(map: &SourceMap, text: &str) -> Option<(FileId, usize)> {
    let ids = (0..).map(FileId).take_while(|id| map.contains(*id));
    let mut places = ids.flat_map(|id| {
        let starts: Vec<_> = map.file(id).text().match_indices(text).take(2).map(|(start, _)| (id, start)).collect();
        starts
    });
    let first = places.next()?;
    places.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_joined_and_keep_their_places() {
        let body = body(r#"@entry_restriction("a \"b" "c")"#, "entry_restriction").unwrap();
        let restriction = strings(body).unwrap();
        assert_eq!(restriction.text, "a \"b\nc");
        let mut map = SourceMap::new();
        map.add("p.p4", r#"@entry_restriction("a \"b"   "c")"#);
        let places = restriction.places(&mut map, "own");
        let shown = |start, end| map.text(restriction.span(TextRange { start, end }, &places)).to_owned();
        assert_eq!([shown(0, 1), shown(3, 4), shown(5, 6)], ["a", "b", "c"]);
    }

    #[test]
    fn malformed_strings_are_no_restrictions() {
        for wrong in ["", "a == 1", "\"a", "\"a\" b", "\"a\\"] {
            assert!(strings(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_text_that_stands_twice_gets_a_file_of_its_own() {
        let restriction = strings("\"true\"").unwrap();
        let mut map = SourceMap::new();
        map.add("p.p4", "\"true\" \"true\"");
        let places = restriction.places(&mut map, "own");
        assert_eq!(map.position(restriction.span(TextRange { start: 0, end: 4 }, &places)).file, "own");
    }
}
