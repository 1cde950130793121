//! Stores source files and resolves positions in them.

use std::sync::Arc;

/// Id of a file of a [`SourceMap`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// Bytes `start..end` of a file. The default span is the empty span at the start of the first file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// The file the bytes belong to.
    pub file: FileId,
    /// Byte offset of the first byte.
    pub start: u32,
    /// Byte offset after the last byte.
    pub end: u32,
}

impl Span {
    /// Creates the span of bytes `start..end` of `file`.
    pub fn new(file: FileId, start: u32, end: u32) -> Self {
        Span { file, start, end }
    }

    /// Returns the smallest span that covers both. If the spans are in two files, returns `self` (a macro may
    /// join tokens of several files).
    pub fn to(self, other: Span) -> Span {
        if self.file != other.file {
            return self;
        }
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Returns the empty span directly after this one.
    pub fn after(self) -> Span {
        Span { start: self.end, ..self }
    }
}

/// A position as shown to users: file name, line and column. Line and column count from 1, the column in
/// characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourcePosition {
    /// Name of the file as the user specified it, or as a line marker renamed it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl std::fmt::Display for SourcePosition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A line marker (`# 12 "other.p4"` or `#line`). From the 0-based physical line `physical` on, lines are
/// numbered from the 1-based `line` of `file`.
#[derive(Clone, Debug)]
struct LineMarker {
    physical: u32,
    line: u32,
    file: Arc<str>,
}

/// A file: its name, its text and the offsets of its lines.
#[derive(Clone, Debug)]
pub struct SourceFile {
    name: Arc<str>,
    text: Arc<str>,
    line_starts: Vec<u32>,
    markers: Vec<LineMarker>,
}

impl SourceFile {
    /// Returns the name as the user specified it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the text.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Returns the 0-based physical line that contains byte `offset`.
    pub fn line_of(&self, offset: u32) -> usize {
        self.line_starts.partition_point(|start| *start <= offset).saturating_sub(1)
    }

    /// Returns the offset of physical line `line` (0-based), or the end of the text for lines after the last.
    pub(crate) fn line_start(&self, line: usize) -> usize {
        self.line_starts.get(line).map_or(self.text.len(), |start| *start as usize)
    }

    /// Returns physical line `line` (0-based) without its line terminator.
    pub fn line_text(&self, line: usize) -> &str {
        self.text[self.line_start(line)..self.line_start(line + 1)].trim_end_matches(['\n', '\r'])
    }

    fn position(&self, offset: u32) -> SourcePosition {
        let line = self.line_of(offset);
        let start = self.line_starts[line] as usize;
        let mut upto = (offset as usize).min(self.text.len());
        while !self.text.is_char_boundary(upto) {
            upto -= 1;
        }
        let column = self.text[start..upto.max(start)].chars().count() as u32 + 1;
        let marker = self.markers.iter().rev().find(|marker| marker.physical as usize <= line);
        match marker {
            Some(marker) => SourcePosition {
                file: marker.file.to_string(),
                line: marker.line.saturating_add(line as u32 - marker.physical),
                column,
            },
            None => SourcePosition { file: self.name.to_string(), line: line as u32 + 1, column },
        }
    }
}

/// Returns the offsets at which lines begin.
fn line_starts(name: &str, text: &str) -> Vec<u32> {
    assert!(u32::try_from(text.len()).is_ok(), "{name} is too long for a source map");
    let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
    std::iter::once(0).chain(ends.map(|(at, _)| at as u32 + 1)).collect()
}

/// All files of one compilation.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
}

impl SourceMap {
    /// Creates a map without files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file. Text beyond 4 GiB cannot be addressed; callers limit what they read.
    ///
    /// # Panics
    /// If `text` is longer than `u32::MAX` bytes.
    pub fn add(&mut self, name: &str, text: impl Into<Arc<str>>) -> FileId {
        let text = text.into();
        let line_starts = line_starts(name, &text);
        self.files.push(SourceFile { name: name.into(), text, line_starts, markers: Vec::new() });
        FileId(self.files.len() as u32 - 1)
    }

    /// Replaces the text of a file without line markers: a large file is added without its text, which is needed only
    /// if there is a diagnostic to show.
    ///
    /// # Panics
    /// As [`SourceMap::add`], and if the id belongs to another map.
    pub fn set_text(&mut self, id: FileId, text: impl Into<Arc<str>>) {
        let file = &mut self.files[id.0 as usize];
        file.text = text.into();
        file.line_starts = line_starts(&file.name, &file.text);
    }

    /// Records a line marker: the line after the one that contains `offset` becomes line `line` of `file_name`.
    pub fn mark_line(&mut self, file: FileId, offset: u32, line: u32, file_name: &str) {
        let source = &mut self.files[file.0 as usize];
        let physical = source.line_of(offset) as u32 + 1;
        source.markers.push(LineMarker { physical, line, file: file_name.into() });
    }

    /// Returns the file with this id.
    ///
    /// # Panics
    /// If the id belongs to another map.
    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id.0 as usize]
    }

    /// Whether the map contains a file with this id.
    pub fn contains(&self, id: FileId) -> bool {
        (id.0 as usize) < self.files.len()
    }

    /// Iterates over the names of the files, as they were added.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| &*file.name)
    }

    /// Returns the text of a file from a position on. `None` if no file has this name, or if line markers renumber its
    /// lines.
    pub fn text_from(&self, position: &SourcePosition) -> Option<&str> {
        let file = self.files.iter().find(|file| *file.name == position.file && file.markers.is_empty())?;
        let start = *file.line_starts.get(position.line.checked_sub(1)? as usize)? as usize;
        let (column, _) = file.text[start..].char_indices().nth(position.column.checked_sub(1)? as usize)?;
        Some(&file.text[start + column..])
    }

    /// Returns the position at which `span` begins.
    pub fn position(&self, span: Span) -> SourcePosition {
        self.file(span.file).position(span.start)
    }

    /// Returns the text that `span` covers.
    pub fn text(&self, span: Span) -> &str {
        self.file(span.file).text.get(span.start as usize..span.end as usize).unwrap_or("")
    }
}
