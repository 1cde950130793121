//! The text of a restriction inside an annotation of a P4Info, and where it stands.
//!
//! A P4Info has annotations as strings (`@entry_restriction("a == 1;" "b == 2")`), in which the strings of the program
//! are quoted as they were written. Their contents, joined by line ends, are the restriction. Findings are shown in the
//! program where its text can be found in the source map, else in a file made of the restriction alone.

use diagnostics::{FileId, SourceMap, Span};

use crate::lex::At;

/// A restriction's text, and which stretches of it stand where in the annotation's strings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Restriction {
    pub(crate) text: String,
    literals: Vec<Literal>,
}

/// One string of the annotation.
#[derive(Clone, Debug)]
struct Literal {
    /// As it was written, with its quotes.
    written: String,
    /// Where in the restriction's text it begins, and where in `written` each stretch without an escape begins.
    runs: Vec<(usize, usize)>,
}

/// What stands in the parentheses of the annotation `@name(…)`.
pub(crate) fn body<'a>(annotation: &'a str, name: &str) -> Option<&'a str> {
    let rest = annotation.trim().strip_prefix('@')?.strip_prefix(name)?.trim();
    if rest.is_empty() {
        return Some("");
    }
    rest.strip_prefix('(')?.strip_suffix(')')
}

/// The strings in `body`, as one text; `None` if there is anything else in it, or nothing.
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

/// Where the findings of a restriction are shown.
pub(crate) enum Places {
    /// In the program: where each string begins.
    Program(Vec<(FileId, usize)>),
    /// In a file of its own.
    Own(FileId),
}

impl Restriction {
    /// Finds the place of the restriction in the files of `map`. If it does not stand there, or not only once, a file
    /// called `name` is added.
    pub(crate) fn places(&self, map: &mut SourceMap, name: &str) -> Places {
        let found: Option<Vec<_>> = self.literals.iter().map(|literal| only_place(map, &literal.written)).collect();
        match found {
            Some(places) => Places::Program(places),
            None => Places::Own(map.add(name, self.text.as_str())),
        }
    }

    /// The span of `at`, which is a stretch of the text.
    pub(crate) fn span(&self, at: At, places: &Places) -> Span {
        match places {
            Places::Own(file) => Span::new(*file, offset(at.start), offset(at.end.max(at.start))),
            Places::Program(places) => {
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

/// Files of a source map are shorter than 4 GiB.
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Where `text` stands in the files of `map`, if that is one place.
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
        let shown = |start, end| map.text(restriction.span(At { start, end }, &places)).to_owned();
        assert_eq!([shown(0, 1), shown(3, 4), shown(5, 6)], ["a", "b", "c"]);
    }

    #[test]
    fn what_is_no_string_is_no_restriction() {
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
        assert_eq!(map.position(restriction.span(At { start: 0, end: 4 }, &places)).file, "own");
    }
}
