//! Reads a file as a stream: its entries one at a time, in memory that does not grow with their number.
//!
//! A file is scanned three times. The first scan finds the array `table_entries` and sets the rest of the file aside,
//! which is small and is read as a whole. The second scan checks each entry. The third, [`EntryStream::apply`], gives
//! the entries to a switch; it happens only if nothing in the file is wrong.
//!
//! The scans understand an object with arrays of objects, comments included. Of other files nothing is reported: the
//! caller reads them as a whole, with [`crate::parse`], which accepts and reports the same.

use std::collections::HashSet;
use std::hash::BuildHasher;
use std::io;
use std::ops::Range;

use diagnostics::{Diagnostic, Diagnostics, FileId, Span};
use ir::Program;
use jsonc_parser::ast::Value;
use switch::SwitchControl;

use crate::apply::Applier;
use crate::element;
use crate::json::{self, Cut, FileReader, Part};
use crate::scan::{ByteScanner, ScanError, SeekableInput};
use crate::{Entries, TableEntrySpec, table};

/// Name of the array that is streamed.
const ARRAY: &str = "table_entries";

/// The result of checking a file as a stream.
pub enum StreamCheck<'a> {
    /// There is no error; warnings are possible.
    Entries(Box<EntryStream<'a>>),
    /// There are errors.
    Mistakes,
    /// The form of the file is unusual; it must be read as a whole. Nothing was reported.
    Unusual,
}

/// A file without errors, ready to be applied.
pub struct EntryStream<'a> {
    scanner: ByteScanner<'a>,
    file: FileId,
    max_port: u32,
    /// The positions of the elements of `table_entries`.
    elements: Range<usize>,
    /// Number of table entries.
    count: usize,
    /// Everything else in the file.
    rest: Entries,
}

/// Checks a file against `program` and the architecture's largest port number, like [`crate::parse`]. Positions in
/// diagnostics count from the start of the text, after a byte order mark.
///
/// # Errors
/// If the input cannot be read.
pub fn check_stream<'a>(
    input: Box<dyn SeekableInput + 'a>,
    file: FileId,
    program: &Program,
    max_port: u32,
    diagnostics: &mut Diagnostics,
) -> io::Result<StreamCheck<'a>> {
    let mut scanner = ByteScanner::new(input)?;
    let mut found = Diagnostics::new();
    let mut check = FileCheck { scanner: &mut scanner, file, program, max_port, found: &mut found };
    let checked = match check.run() {
        Ok(checked) => checked,
        Err(ScanError::Io(error)) => return Err(error),
        Err(ScanError::Unusual | ScanError::Syntax { .. }) => return Ok(StreamCheck::Unusual),
    };
    let has_errors = found.has_errors();
    diagnostics.append(found);
    Ok(match checked {
        Some((elements, count, rest)) if !has_errors => {
            StreamCheck::Entries(Box::new(EntryStream { scanner, file, max_port, elements, count, rest }))
        }
        _ => StreamCheck::Mistakes,
    })
}

struct FileCheck<'a, 'i> {
    scanner: &'a mut ByteScanner<'i>,
    file: FileId,
    program: &'a Program,
    max_port: u32,
    found: &'a mut Diagnostics,
}

impl FileCheck<'_, '_> {
    /// Returns the positions of the elements of `table_entries`, the number of entries among them, and the rest of the
    /// file; or `None` if a syntax error was reported.
    fn run(&mut self) -> Result<Option<(Range<usize>, usize, Entries)>, ScanError> {
        let mut outline = self.scanner.outline(ARRAY)?;
        let Some(end) = outline.end else {
            // A bracket is missing or wrong. The element in which it is comes first, if the text before has no error.
            outline.text.extend(b"]}");
            let before = std::str::from_utf8(&outline.text).map_err(|_| ScanError::Unusual)?;
            json::parse(before).map_err(|_| ScanError::Unusual)?;
            return self.report_first_syntax_error(&(outline.start..usize::MAX)).map(|()| None);
        };
        let elements = outline.start..end;
        let text = std::str::from_utf8(&outline.text).map_err(|_| ScanError::Unusual)?;
        let parsed = json::parse(text).map_err(|_| ScanError::Unusual)?;
        let Some(Value::Object(root)) = &parsed else { return Err(ScanError::Unusual) };
        let cut = Some(Cut { at: elements.start, len: elements.len() });
        let mut entries = Entries::default();
        json::read_part(&mut self.reader(0, cut), root, Part::BeforeTables, &mut entries);
        let (count, repeated) = match self.check_entries(&elements, &mut entries) {
            Ok(checked) => checked,
            Err(ScanError::Syntax { from }) => {
                *self.found = Diagnostics::new();
                return self.report_syntax_error(from).map(|()| None);
            }
            Err(other) => return Err(other),
        };
        json::read_part(&mut self.reader(0, cut), root, Part::AfterTables, &mut entries);
        if !repeated.is_empty() {
            self.report_duplicates(&elements, &repeated, &entries)?;
        }
        Ok(Some((elements, count, entries)))
    }

    /// Returns the reader of a part of the file.
    fn reader(&mut self, base: usize, cut: Option<Cut>) -> FileReader<'_> {
        let (program, diagnostics) = (self.program, &mut *self.found);
        FileReader { program, diagnostics, max_port: self.max_port, file: self.file, base, cut }
    }

    /// Visits the elements of the array. Each is read into `entries`, and taken out again.
    fn for_each(
        &mut self,
        elements: &Range<usize>,
        entries: &mut Entries,
        mut visit: impl FnMut(&Program, TableEntrySpec),
    ) -> Result<(), ScanError> {
        self.scanner.seek(elements.start)?;
        while let Some(element) = self.scanner.next_element(elements)? {
            let text = std::str::from_utf8(self.scanner.bytes(element.clone())).map_err(|_| ScanError::Unusual)?;
            let value = element::parse(text).ok_or(ScanError::Syntax { from: element.start })?;
            let (program, diagnostics) = (self.program, &mut *self.found);
            let (max_port, file) = (self.max_port, self.file);
            let mut reader = FileReader { program, diagnostics, max_port, file, base: element.start, cut: None };
            table::read(&mut reader, &value, entries);
            if let Some(entry) = entries.tables.pop() {
                visit(program, entry);
            }
        }
        Ok(())
    }

    /// Checks the entries. Returns their number, and the hashes of those that may be duplicates.
    fn check_entries(
        &mut self,
        elements: &Range<usize>,
        entries: &mut Entries,
    ) -> Result<(usize, HashSet<u64>), ScanError> {
        let mut hashes = Vec::new();
        let mut repeated = HashSet::new();
        self.for_each(elements, entries, |program, entry| {
            let hash = hash_of(&entry);
            hashes.push(hash);
            let own = &program.tables[entry.table].entries;
            if own.iter().any(|own| own.keys == entry.keys && own.priority == entry.priority) {
                repeated.insert(hash);
            }
        })?;
        hashes.sort_unstable();
        repeated.extend(hashes.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]));
        Ok((hashes.len(), repeated))
    }

    /// Reports those of the entries with these hashes that are duplicates.
    fn report_duplicates(
        &mut self,
        elements: &Range<usize>,
        repeated: &HashSet<u64>,
        entries: &Entries,
    ) -> Result<(), ScanError> {
        let mut scratch = Entries { members: entries.members.clone(), ..Entries::default() };
        scratch.member_groups.clone_from(&entries.member_groups);
        let (mut suspects, mut found) = (Entries::default(), Diagnostics::new());
        std::mem::swap(self.found, &mut found);
        let result = self.for_each(elements, &mut scratch, |_, entry| {
            if repeated.contains(&hash_of(&entry)) {
                suspects.tables.push(entry);
            }
        });
        // What was found a second time is known.
        *self.found = found;
        table::refuse_duplicates(&mut self.reader(0, None), &suspects);
        result
    }

    /// Reports the first syntax error in an array.
    fn report_first_syntax_error(&mut self, elements: &Range<usize>) -> Result<(), ScanError> {
        self.scanner.seek(elements.start)?;
        let from = loop {
            match self.scanner.next_element(elements) {
                Ok(Some(element)) => {
                    let text = self.scanner.bytes(element.clone());
                    let text = std::str::from_utf8(text).map_err(|_| ScanError::Unusual)?;
                    if element::parse(text).is_none() {
                        break element.start;
                    }
                }
                Ok(None) => return Err(ScanError::Unusual),
                Err(ScanError::Syntax { from }) => break from,
                Err(error) => return Err(error),
            }
        };
        self.report_syntax_error(from)
    }

    /// Reports the syntax error in an array from the position of an element on, before which there is none.
    fn report_syntax_error(&mut self, from: usize) -> Result<(), ScanError> {
        let head = format!("{{\"{ARRAY}\":[");
        let mut text = head.clone().into_bytes();
        text.extend(self.scanner.read_from(from)?);
        let text = String::from_utf8(text).map_err(|_| ScanError::Unusual)?;
        match json::parse(&text) {
            Err(error) if error.range().start >= head.len() => {
                let place = |at: usize| (at - head.len() + from) as u32;
                let span = Span::new(self.file, place(error.range().start), place(error.range().end));
                self.found.push(json::syntax_error(span, &error));
                Ok(())
            }
            _ => Err(ScanError::Unusual),
        }
    }
}

/// Returns a hash that equal entries share.
fn hash_of(entry: &TableEntrySpec) -> u64 {
    foldhash::quality::FixedState::with_seed(0).hash_one((entry.table, &entry.keys, entry.priority))
}

impl EntryStream<'_> {
    /// Returns the number of table entries.
    pub fn table_entries(&self) -> usize {
        self.count
    }

    /// Applies the file to a switch, like [`crate::apply`].
    ///
    /// # Errors
    /// If the input cannot be read any more. The switch then has a part of the file.
    pub fn apply(mut self, switch: &mut dyn SwitchControl, diagnostics: &mut Diagnostics) -> io::Result<()> {
        let program = switch.program().clone();
        let mut applier = Applier::new(switch, diagnostics);
        applier.profiles(&self.rest);
        let mut scratch = Entries { members: self.rest.members.clone(), ..Entries::default() };
        scratch.member_groups.clone_from(&self.rest.member_groups);
        let (mut found, mut count) = (Diagnostics::new(), 0);
        let (file, max_port) = (self.file, self.max_port);
        let mut check = FileCheck { scanner: &mut self.scanner, file, program: &program, max_port, found: &mut found };
        let result = check.for_each(&self.elements, &mut scratch, |_, entry| {
            count += 1;
            applier.entry(entry);
        });
        applier.rest(&self.rest);
        match result {
            Err(ScanError::Io(error)) => return Err(error),
            Ok(()) if count == self.count && !found.has_errors() => {}
            _ => {
                let message = "the file changed while it was read";
                diagnostics.push(Diagnostic::error("entries-changed", Span::new(file, 0, 0), message));
            }
        }
        Ok(())
    }
}
