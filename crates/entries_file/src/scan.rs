//! Scans JSON for the extents of its parts, in a window of the input.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

/// Number of bytes that are read at once.
const PIECE: usize = 1 << 16;
/// Maximum length of an element of an array in bytes.
const MAX_ELEMENT: usize = 1 << 20;
/// Maximum nesting depth of an element.
const MAX_DEPTH: u32 = 60;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The reason why a scan ended early.
#[derive(Debug)]
pub(crate) enum ScanError {
    Io(io::Error),
    /// A form that scans do not understand, which may be an error.
    Unusual,
    /// A syntax error behind this position, at which an element of the array begins.
    Syntax {
        from: usize,
    },
}

impl From<io::Error> for ScanError {
    fn from(error: io::Error) -> Self {
        ScanError::Io(error)
    }
}

/// A file without the elements of one array.
pub(crate) struct Outline {
    /// The text without the elements; up to the start of the array if that has no end.
    pub text: Vec<u8>,
    /// Position of the first byte in the array; 0 if there is no array.
    pub start: usize,
    /// Position of the bracket that ends the array, if it does.
    pub end: Option<usize>,
}

/// An input that can be read several times.
pub trait SeekableInput: Read + Seek {}

impl<R: Read + Seek> SeekableInput for R {}

/// A window that moves over an input. Positions count from the start of the text, after a byte order mark.
pub(crate) struct ByteScanner<'a> {
    input: Box<dyn SeekableInput + 'a>,
    /// Length of the byte order mark.
    mark: usize,
    buffer: Vec<u8>,
    /// Position of the first byte of the buffer.
    base: usize,
    /// Position of the first byte that must stay in the buffer.
    kept: usize,
    /// Index in the buffer of the next byte.
    at: usize,
    /// Position at which the latest element began.
    latest: Option<usize>,
}

impl<'a> ByteScanner<'a> {
    pub(crate) fn new(mut input: Box<dyn SeekableInput + 'a>) -> io::Result<Self> {
        let mut start = Vec::new();
        input.seek(SeekFrom::Start(0))?;
        input.by_ref().take(BYTE_ORDER_MARK.len() as u64).read_to_end(&mut start)?;
        let mark = if start == BYTE_ORDER_MARK { start.len() } else { 0 };
        let mut scanner = ByteScanner { input, mark, buffer: Vec::new(), base: 0, kept: 0, at: 0, latest: None };
        scanner.seek(0)?;
        Ok(scanner)
    }

    /// Continues at another position.
    pub(crate) fn seek(&mut self, position: usize) -> io::Result<()> {
        self.input.seek(SeekFrom::Start((self.mark + position) as u64))?;
        self.buffer.clear();
        (self.base, self.kept, self.at, self.latest) = (position, position, 0, None);
        Ok(())
    }

    /// Returns the text from a position to the end of the input.
    pub(crate) fn read_from(&mut self, position: usize) -> io::Result<Vec<u8>> {
        self.seek(position)?;
        let mut rest = Vec::new();
        self.input.by_ref().take(crate::MAX_FILE_BYTES).read_to_end(&mut rest)?;
        Ok(rest)
    }

    fn position(&self) -> usize {
        self.base + self.at
    }

    /// Returns bytes of the window.
    pub(crate) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.buffer[range.start - self.base..range.end - self.base]
    }

    /// Reads a piece of the input; false at its end.
    fn read_more(&mut self) -> io::Result<bool> {
        let unused = self.kept - self.base;
        self.buffer.drain(..unused);
        self.base += unused;
        self.at -= unused;
        let before = self.buffer.len();
        self.buffer.resize(before + PIECE, 0);
        let read = loop {
            match self.input.read(&mut self.buffer[before..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.buffer.truncate(before + *read.as_ref().unwrap_or(&0));
        Ok(read? > 0)
    }

    #[inline]
    fn peek(&mut self) -> Result<Option<u8>, ScanError> {
        if self.at == self.buffer.len() && !self.read_more()? {
            return Ok(None);
        }
        Ok(Some(self.buffer[self.at]))
    }

    /// Returns the next byte, of an input that must not end here.
    #[inline]
    fn next(&mut self) -> Result<u8, ScanError> {
        let byte = self.peek()?.ok_or(ScanError::Unusual)?;
        self.at += 1;
        Ok(byte)
    }

    /// Skips white space and comments.
    fn skip_blank(&mut self) -> Result<(), ScanError> {
        while let Some(byte) = self.peek()? {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => self.at += 1,
                b'/' => self.skip_comment()?,
                _ => break,
            }
        }
        Ok(())
    }

    fn skip_comment(&mut self) -> Result<(), ScanError> {
        self.at += 1;
        match self.next()? {
            b'/' => {
                while self.peek()?.is_some_and(|byte| !matches!(byte, b'\n' | b'\r')) {
                    self.at += 1;
                }
            }
            b'*' => {
                let mut before = 0;
                loop {
                    let byte = self.next()?;
                    if (before, byte) == (b'*', b'/') {
                        break;
                    }
                    before = byte;
                }
            }
            _ => return Err(ScanError::Unusual),
        }
        Ok(())
    }

    /// Skips the rest of a string, after its first quotation mark.
    fn skip_string(&mut self) -> Result<(), ScanError> {
        loop {
            let rest = &self.buffer[self.at..];
            match rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | b'\n')) {
                None => {
                    self.at = self.buffer.len();
                    if self.peek()?.is_none() {
                        return Err(ScanError::Unusual);
                    }
                }
                Some(skipped) => {
                    self.at += skipped + 1;
                    match self.buffer[self.at - 1] {
                        b'"' => return Ok(()),
                        b'\\' => _ = self.next()?,
                        _ => return Err(ScanError::Unusual),
                    }
                }
            }
        }
    }

    /// Skips the rest of an object or array, after its first bracket. With `moving`, the window does not keep it.
    fn skip_brackets(&mut self, open: u8, moving: bool) -> Result<(), ScanError> {
        // The brackets that are open: a bit for each, which is 1 for `[`, and a 1 above them.
        let mut stack = 0b10 | u64::from(open == b'[');
        loop {
            if moving {
                self.kept = self.position();
            }
            let rest = &self.buffer[self.at..];
            let Some(skipped) = rest.iter().position(|byte| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']' | b'/'))
            else {
                self.at = self.buffer.len();
                if moving {
                    self.kept = self.position();
                }
                if self.peek()?.is_none() {
                    return Err(ScanError::Unusual);
                }
                continue;
            };
            self.at += skipped;
            match self.buffer[self.at] {
                b'/' => self.skip_comment()?,
                byte => {
                    self.at += 1;
                    match byte {
                        b'"' => self.skip_string()?,
                        b'{' | b'[' if stack >> MAX_DEPTH != 0 => return Err(ScanError::Unusual),
                        b'{' | b'[' => stack = stack << 1 | u64::from(byte == b'['),
                        _ if (byte == b']') != (stack & 1 != 0) => return Err(ScanError::Unusual),
                        _ => {
                            stack >>= 1;
                            if stack == 1 {
                                return Ok(());
                            }
                        }
                    }
                }
            }
        }
    }

    /// Skips any value.
    fn skip_value(&mut self) -> Result<(), ScanError> {
        match self.next()? {
            b'"' => self.skip_string(),
            open @ (b'{' | b'[') => self.skip_brackets(open, false),
            _ => {
                while self.peek()?.is_some_and(|byte| !matches!(byte, b',' | b'}' | b']' | b'/' | b'\n' | b' ')) {
                    self.at += 1;
                }
                Ok(())
            }
        }
    }

    /// Reads the file, which is an object, except the elements of its member `array`.
    pub(crate) fn outline(&mut self, array: &str) -> Result<Outline, ScanError> {
        self.seek(0)?;
        let mut outline = Outline { text: Vec::new(), start: 0, end: Some(0) };
        self.skip_blank()?;
        if self.next()? != b'{' {
            return Err(ScanError::Unusual);
        }
        loop {
            self.skip_blank()?;
            let name = match self.next()? {
                b'}' => break,
                b'"' => self.position(),
                _ => return Err(ScanError::Unusual),
            };
            self.skip_string()?;
            let is_array = self.bytes(name..self.position() - 1) == array.as_bytes();
            self.skip_blank()?;
            if self.next()? != b':' {
                return Err(ScanError::Unusual);
            }
            self.skip_blank()?;
            if is_array && outline.start == 0 && self.peek()? == Some(b'[') {
                self.at += 1;
                outline.text.extend_from_slice(self.bytes(self.kept..self.position()));
                outline.start = self.position();
                match self.skip_brackets(b'[', true) {
                    Ok(()) => {
                        outline.end = Some(self.position() - 1);
                        self.kept = self.position() - 1;
                    }
                    Err(ScanError::Unusual) => return Ok(Outline { end: None, ..outline }),
                    Err(error) => return Err(error),
                }
            } else {
                self.skip_value()?;
            }
            self.skip_blank()?;
            match self.peek()? {
                Some(b',') => self.at += 1,
                Some(b'}') => {}
                _ => return Err(ScanError::Unusual),
            }
        }
        while self.read_more()? {}
        outline.text.extend_from_slice(&self.buffer[self.kept - self.base..]);
        self.buffer = Vec::new();
        Ok(outline)
    }

    /// Returns the position of the next element of an array whose elements are objects, or `None` at its end. `within`
    /// are the positions of all of them; the scanner is at the first one or after another. The element is in the
    /// window until the next call.
    pub(crate) fn next_element(&mut self, within: &Range<usize>) -> Result<Option<Range<usize>>, ScanError> {
        let Some(start) = self.next_start(within)? else { return Ok(None) };
        self.finish_element(start).map(Some)
    }

    /// Moves to the next element like [`ByteScanner::next_element`], and returns the position of its first byte, which
    /// is in the window. The scanner is at this byte.
    pub(crate) fn next_start(&mut self, within: &Range<usize>) -> Result<Option<usize>, ScanError> {
        if within.is_empty() {
            return Ok(None);
        }
        let before = self.position();
        self.kept = before;
        self.skip_blank()?;
        if let Some(from) = self.latest
            && self.position() < within.end
        {
            if self.peek()? != Some(b',') {
                return Err(ScanError::Syntax { from });
            }
            self.at += 1;
            self.skip_blank()?;
        }
        let start = self.position();
        // Comments are text, too.
        std::str::from_utf8(self.bytes(before..start)).map_err(|_| ScanError::Unusual)?;
        if start >= within.end {
            return Ok(None);
        }
        self.kept = start;
        if self.peek()? != Some(b'{') {
            return Err(ScanError::Unusual);
        }
        self.latest = Some(start);
        Ok(Some(start))
    }

    /// Returns the bytes of the window from the scanner's place on.
    pub(crate) fn window(&self) -> &[u8] {
        &self.buffer[self.at..]
    }

    /// Skips bytes of the window.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.at += bytes;
        debug_assert!(self.at <= self.buffer.len(), "they are in the window");
    }

    /// Skips the element that begins at `start`, where the scanner is, and returns its position.
    pub(crate) fn finish_element(&mut self, start: usize) -> Result<Range<usize>, ScanError> {
        self.at += 1;
        match self.skip_brackets(b'{', false) {
            Ok(()) if self.position() - start <= MAX_ELEMENT => Ok(start..self.position()),
            Ok(()) => Err(ScanError::Unusual),
            Err(ScanError::Unusual) => Err(ScanError::Syntax { from: start }),
            Err(error) => Err(error),
        }
    }
}
