//! Reads a file as a stream: its entries one at a time, in less memory than the tables of a switch take for them.
//!
//! A file is scanned twice. The first scan finds the array `table_entries` and sets the rest of the file aside, which
//! is small and is read as a whole. The second scan checks each entry and packs it into some tens of bytes. If nothing
//! in the file is wrong, [`EntryStream::apply`] gives the packed entries to a switch, and releases them as it goes.
//!
//! The scans understand an object with arrays of objects, comments included. Of other files nothing is reported: the
//! caller reads them as a whole, with [`crate::parse`], which accepts and reports the same.

use std::collections::HashSet;
use std::io;
use std::ops::Range;

use diagnostics::{Diagnostics, FileId, Span};
use ir::Program;
use jsonc_parser::ast::{Object, Value};
use switch::SwitchControl;

use crate::apply::Applier;
use crate::element;
use crate::json::{self, Cut, FileReader, Part};
use crate::packed::{self, CheckedEntries};
use crate::scan::{ByteScanner, Outline, ScanError, SeekableInput};
use crate::{Entries, table};

/// Name of the array that is streamed.
const ARRAY: &str = "table_entries";

/// The result of checking a file as a stream.
pub enum StreamCheck {
    /// There is no error; warnings are possible.
    Entries(Box<EntryStream>),
    /// There are errors.
    Mistakes,
    /// The form of the file is unusual; it must be read as a whole. Nothing was reported.
    Unusual,
}

/// A file without errors, ready to be applied.
pub struct EntryStream {
    file: FileId,
    /// The elements of `table_entries`, except default actions.
    packed: CheckedEntries,
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
) -> io::Result<StreamCheck> {
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
        Some((packed, rest)) if !has_errors => StreamCheck::Entries(Box::new(EntryStream { file, packed, rest })),
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
    /// Returns the elements of `table_entries` and the rest of the file; or `None` if a syntax error was reported.
    fn run(&mut self) -> Result<Option<(CheckedEntries, Entries)>, ScanError> {
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
        if !is_streamed(root, &outline) {
            return Err(ScanError::Unusual);
        }
        let cut = Some(Cut { at: elements.start, len: elements.len() });
        let mut entries = Entries::default();
        json::read_part(&mut self.reader(0, cut), root, Part::BeforeTables, &mut entries);
        let (packed, repeated) = match self.check_entries(&elements, &mut entries) {
            Ok(checked) => checked,
            Err(ScanError::Syntax { from }) => {
                *self.found = Diagnostics::new();
                return self.report_syntax_error(from).map(|()| None);
            }
            Err(other) => return Err(other),
        };
        json::read_part(&mut self.reader(0, cut), root, Part::AfterTables, &mut entries);
        if !repeated.is_empty() {
            self.report_duplicates(&packed, &repeated);
        }
        Ok(Some((packed, entries)))
    }

    /// Returns the reader of a part of the file.
    fn reader(&mut self, base: usize, cut: Option<Cut>) -> FileReader<'_> {
        let (program, diagnostics) = (self.program, &mut *self.found);
        FileReader { program, diagnostics, max_port: self.max_port, file: self.file, base, cut }
    }

    /// Checks the elements of the array and packs the entries among them; default actions go to `entries`. Returns the
    /// hashes of entries that may be duplicates, too.
    fn check_entries(
        &mut self,
        elements: &Range<usize>,
        entries: &mut Entries,
    ) -> Result<(CheckedEntries, HashSet<u64>), ScanError> {
        let own: HashSet<u64> = own_entries(self.program);
        let mut packed = CheckedEntries::default();
        let (mut hashes, mut repeated) = (Vec::new(), HashSet::new());
        self.scanner.seek(elements.start)?;
        while let Some(start) = self.scanner.next_start(elements)? {
            self.read_element(start, entries)?;
            if let Some(entry) = entries.tables.pop() {
                let hash = packed.push(&entry);
                hashes.push(hash);
                if own.contains(&hash) {
                    repeated.insert(hash);
                }
            }
        }
        hashes.sort_unstable();
        repeated.extend(hashes.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]));
        Ok((packed, repeated))
    }

    /// Reads the element that begins at `start`, where the scanner is, and moves behind it.
    fn read_element(&mut self, start: usize, entries: &mut Entries) -> Result<(), ScanError> {
        let (program, max_port, file) = (self.program, self.max_port, self.file);
        let diagnostics = &mut *self.found;
        let mut reader = FileReader { program, diagnostics, max_port, file, base: start, cut: None };
        if let Some((value, len)) = element::plain(self.scanner.window()) {
            table::read(&mut reader, &value, entries);
            drop(value);
            self.scanner.advance(len);
            return Ok(());
        }
        let element = self.scanner.finish_element(start)?;
        let text = std::str::from_utf8(self.scanner.bytes(element)).map_err(|_| ScanError::Unusual)?;
        let value = element::parse(text).ok_or(ScanError::Syntax { from: start })?;
        table::read(&mut reader, &value, entries);
        Ok(())
    }

    /// Reports those of the entries with these hashes that are duplicates.
    fn report_duplicates(&mut self, packed: &CheckedEntries, repeated: &HashSet<u64>) {
        let mut suspects = Entries::default();
        packed.for_each(self.file, |entry| {
            if repeated.contains(&packed::hash_of(entry.table, &entry.keys, entry.priority)) {
                suspects.tables.push(entry);
            }
        });
        table::refuse_duplicates(&mut self.reader(0, None), &suspects);
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

/// Whether the outline has the only member of the file that is named `table_entries`: another one may have a value that
/// is no array, or a name that is written with escapes.
fn is_streamed(root: &Object<'_>, outline: &Outline) -> bool {
    let named = root.properties.iter().filter(|property| property.name.as_str() == ARRAY).count();
    named == usize::from(outline.start > 0)
}

/// Returns the hashes of the program's own entries.
fn own_entries(program: &Program) -> HashSet<u64> {
    let of_table = |(id, table): (ir::TableId, &ir::Table)| -> Vec<u64> {
        table.entries.iter().map(|own| packed::hash_of(id, &own.keys, own.priority)).collect()
    };
    program.tables.iter().flat_map(of_table).collect()
}

impl EntryStream {
    /// Returns the number of table entries.
    pub fn table_entries(&self) -> usize {
        self.packed.len()
    }

    /// Applies the file to a switch, like [`crate::apply`].
    pub fn apply(self, switch: &mut dyn SwitchControl, diagnostics: &mut Diagnostics) {
        let mut applier = Applier::new(switch, diagnostics);
        applier.profiles(&self.rest);
        applier.begin_load(self.packed.counts());
        self.packed.drain(self.file, |entry| applier.entry(entry));
        applier.rest(&self.rest);
    }

    /// Returns the content of the file, like [`crate::parse`], in the memory that its entries take unpacked.
    pub fn into_entries(self) -> Entries {
        let mut entries = self.rest;
        self.packed.drain(self.file, |entry| entries.tables.push(entry));
        entries
    }
}
