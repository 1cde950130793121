//! Reads and writes program files (`.tpl`): a compiled program in one file, without its source.
//!
//! ```text
//!   offset  bytes
//!        0      8   89 "TPL" 0d 0a 1a 0a: no text begins with it, and a transfer that changes line ends shows
//!        8      4   format version; every version of the format begins with these twelve bytes
//!       12     32   SHA-256 of everything after
//!       44          four parts, each with its length in front:
//!                     the version of Triplane that built it      UTF-8
//!                     the name of the source                     UTF-8
//!                     P4Info (P4Runtime specification 1.5)       protobuf's wire format
//!                     the program                                the text form of `ir`
//! ```
//!
//! All numbers are little-endian and 4 bytes long. The IR has everything that a switch needs: the architecture's
//! blocks by role, field lists, annotations, and the source position of every instruction, entry and table, which
//! traces and drop sites name. P4Info has everything that only a control plane needs: ids, types, documentation,
//! restrictions. The same program gives the same bytes.
//!
//! A second form is JSON ([`json`]), for tools that expect a compiler to write JSON.
//!
//! [`ProgramFile::parse`] assumes a hostile file: sizes are bounded before anything is read, the IR passes its parser
//! and its validator, and the two halves are checked against each other ([`agree`]). The hash finds damage; it proves
//! no origin.

mod agree;
mod disagreement;
mod json;
mod types;

use std::fmt;

use diagnostics::{Diagnostics, SourceMap};
use ir::Program;
use p4runtime_proto::config::P4Info;
use p4runtime_proto::footprint;
use sha2::{Digest, Sha256};

use crate::CompiledProgram;

pub use agree::agree;
pub use disagreement::{DifferentPart, Disagreement, WidthOf};
pub use types::TooManyParts;

/// Version of the format that is written, and the only one that is read. It changes whenever an older file would be
/// refused or mean something else, for example when the text form of the IR changes.
pub const FORMAT: u32 = 2;

/// Maximum size of a file, in bytes.
pub const MAX_FILE_BYTES: u64 = 48 << 20;

/// First bytes of every file.
const MAGIC: [u8; 8] = *b"\x89TPL\r\n\x1a\n";
/// Number of those bytes that identify a file that may be damaged.
const MARK: usize = 4;
/// Offset of the first part.
const PARTS: usize = 44;
/// Maximum length of each of the two texts in front, in bytes.
const MAX_NAME_BYTES: usize = 4 << 10;
/// Maximum length of the P4Info, and of the program, in bytes.
const MAX_PART_BYTES: usize = 16 << 20;
/// Maximum size of the decoded P4Info, in bytes. Two bytes of a part may become hundreds.
const MAX_P4INFO_MEMORY: u64 = 256 << 20;

/// A compiled program in its file form.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramFile {
    /// The version of Triplane that compiled it.
    pub made_by: String,
    /// The name of the source, as the compiler got it.
    pub source: String,
    /// The program. Its IR is valid and agrees with its P4Info.
    pub program: CompiledProgram,
}

/// A file that is not a program file that can be run here. The sentences follow the file's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramFileError {
    /// It is something else.
    #[error("is not a compiled program")]
    Other,
    /// It is of another version of the format.
    #[error(
        "has version {0} of the compiled format, but this Triplane ({here}) reads version {FORMAT}; rebuild it from \
         its P4 source: `triplane build`",
        here = env!("CARGO_PKG_VERSION")
    )]
    Format(u32),
    /// It is cut off or was changed.
    #[error("is damaged ({0}); copy it again, or rebuild it from its P4 source: `triplane build`")]
    Damaged(&'static str),
    /// It is whole, and what is in it makes no sense.
    #[error("contains no program that can be run: {0}; rebuild it from its P4 source: `triplane build`")]
    Content(#[from] ContentError),
}

/// The part of a program file that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    /// The file is too large.
    #[error("it has more than {MAX_FILE_BYTES} bytes")]
    FileTooLarge,
    /// A part is missing.
    #[error("{0} is missing")]
    Missing(FilePart),
    /// A part is too large.
    #[error("{part} has more than {limit} bytes")]
    PartTooLarge {
        /// The part.
        part: FilePart,
        /// Maximum number of bytes.
        limit: usize,
    },
    /// A part is cut off.
    #[error("{0} is incomplete")]
    Cut(FilePart),
    /// A part is not UTF-8.
    #[error("{0} is not valid UTF-8")]
    NotText(FilePart),
    /// Bytes follow the last part.
    #[error("there is data after its end")]
    Trailing,
    /// The P4Info cannot be decoded, with the decoder's reason.
    #[error("{0}")]
    P4Info(String),
    /// The IR has a mistake: the first diagnostic, with its position.
    #[error("{0}")]
    Ir(String),
    /// The IR breaks a rule: the message of the first violation.
    #[error("{0}")]
    Violation(String),
    /// The program and its P4Info describe different objects.
    #[error(transparent)]
    Disagreement(#[from] Disagreement),
}

/// A part of a program file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilePart {
    /// The version of Triplane that built it.
    Version,
    /// The name of the source.
    Source,
    /// The P4Info.
    P4Info,
    /// The program.
    Program,
}

impl FilePart {
    /// Returns the maximum length in bytes.
    fn limit(self) -> usize {
        match self {
            FilePart::Version | FilePart::Source => MAX_NAME_BYTES,
            FilePart::P4Info | FilePart::Program => MAX_PART_BYTES,
        }
    }
}

impl fmt::Display for FilePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FilePart::Version => "the version",
            FilePart::Source => "the name of the source",
            FilePart::P4Info => "the P4Info",
            FilePart::Program => "the program",
        })
    }
}

/// A program that is too large for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part} has {bytes} bytes, and the compiled form takes {}", part.limit())]
pub struct TooLargeToEmit {
    /// The part that is too large.
    pub part: FilePart,
    /// Its length in bytes.
    pub bytes: usize,
}

/// Whether bytes are meant to be a program file, in either form, damaged or not.
pub fn is_program_file(bytes: &[u8]) -> bool {
    is_binary_form(bytes) || json::is_json_form(bytes)
}

/// Whether bytes are meant to be the binary form of a program file.
fn is_binary_form(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC[..MARK])
}

impl ProgramFile {
    /// Returns the file of a program that this version of Triplane compiled from the source called `source`.
    pub fn new(source: &str, program: CompiledProgram) -> ProgramFile {
        ProgramFile { made_by: env!("CARGO_PKG_VERSION").to_owned(), source: source.to_owned(), program }
    }

    /// Returns the bytes of the file.
    ///
    /// # Errors
    /// The part that is larger than [`ProgramFile::parse`] would accept.
    pub fn emit(&self) -> Result<Vec<u8>, TooLargeToEmit> {
        let (info, program) = (p4runtime_proto::to_bytes(&self.program.p4info), self.program.ir.to_string());
        let mut parts = Vec::with_capacity(16 + info.len() + program.len());
        let all: [(FilePart, &[u8]); 4] = [
            (FilePart::Version, self.made_by.as_bytes()),
            (FilePart::Source, self.source.as_bytes()),
            (FilePart::P4Info, &info),
            (FilePart::Program, program.as_bytes()),
        ];
        for (part, bytes) in all {
            match u32::try_from(bytes.len()) {
                Ok(length) if bytes.len() <= part.limit() => parts.extend(length.to_le_bytes()),
                _ => return Err(TooLargeToEmit { part, bytes: bytes.len() }),
            }
            parts.extend(bytes);
        }
        Ok([&MAGIC[..], &FORMAT.to_le_bytes(), &Sha256::digest(&parts), &parts].concat())
    }

    /// Returns the JSON form of the file: a JSON object with its bytes in base64.
    ///
    /// # Errors
    /// As [`ProgramFile::emit`].
    pub fn emit_json(&self) -> Result<Vec<u8>, TooLargeToEmit> {
        Ok(json::emit(&self.made_by, &self.source, &self.emit()?))
    }

    /// Parses the bytes of a file, in either form.
    ///
    /// # Errors
    /// The reason why the file cannot be run here.
    pub fn parse(bytes: &[u8]) -> Result<ProgramFile, ProgramFileError> {
        if json::is_json_form(bytes) { Self::parse_binary(&json::parse(bytes)?) } else { Self::parse_binary(bytes) }
    }

    /// Parses the binary form.
    fn parse_binary(bytes: &[u8]) -> Result<ProgramFile, ProgramFileError> {
        if !is_binary_form(bytes) {
            return Err(ProgramFileError::Other);
        }
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(ContentError::FileTooLarge.into());
        }
        let rest = bytes.strip_prefix(&MAGIC).ok_or(if bytes.len() < MAGIC.len() {
            ProgramFileError::Damaged("it is truncated")
        } else {
            ProgramFileError::Damaged("its line endings were changed, as in a text file")
        })?;
        let cut = || ProgramFileError::Damaged("it is truncated");
        let (format, rest) = rest.split_first_chunk().ok_or_else(cut)?;
        match u32::from_le_bytes(*format) {
            FORMAT => {}
            other => return Err(ProgramFileError::Format(other)),
        }
        let (hash, parts) = rest.split_first_chunk::<32>().ok_or_else(cut)?;
        if Sha256::digest(parts)[..] != hash[..] {
            return Err(ProgramFileError::Damaged("its checksum does not match"));
        }
        Ok(Self::parse_parts(parts)?)
    }

    /// Returns the memory that [`ProgramFile::parse`] takes for the P4Info of these bytes, in bytes; 0 if it decodes
    /// none. Callers with a memory budget reserve it first.
    pub fn p4info_memory(bytes: &[u8]) -> u64 {
        let decoded = if json::is_json_form(bytes) { json::parse(bytes).ok() } else { None };
        let bytes = decoded.as_deref().unwrap_or(bytes);
        let info = || {
            let mut rest = bytes.get(PARTS..).filter(|_| is_binary_form(bytes))?;
            next_part(&mut rest, FilePart::Version).ok()?;
            next_part(&mut rest, FilePart::Source).ok()?;
            next_part(&mut rest, FilePart::P4Info).ok()
        };
        let memory = info().map_or(0, |info| footprint::bytes_of::<P4Info>(info, MAX_P4INFO_MEMORY));
        if memory <= MAX_P4INFO_MEMORY { memory } else { 0 }
    }

    /// Parses the bytes after the hash. Anybody can compute a hash that fits.
    fn parse_parts(mut rest: &[u8]) -> Result<ProgramFile, ContentError> {
        let made_by = text(FilePart::Version, next_part(&mut rest, FilePart::Version)?)?;
        let source = text(FilePart::Source, next_part(&mut rest, FilePart::Source)?)?;
        let info = next_part(&mut rest, FilePart::P4Info)?;
        let program = text(FilePart::Program, next_part(&mut rest, FilePart::Program)?)?;
        if !rest.is_empty() {
            return Err(ContentError::Trailing);
        }
        let info: P4Info = p4runtime_proto::from_bytes(info, MAX_P4INFO_MEMORY)
            .map_err(|error| ContentError::P4Info(error.to_string()))?;
        let ir = parse_ir(&program)?;
        agree(&ir, &info)?;
        Ok(ProgramFile { made_by, source, program: CompiledProgram { ir, p4info: info } })
    }
}

/// Removes the next part from the front.
fn next_part<'a>(rest: &mut &'a [u8], part: FilePart) -> Result<&'a [u8], ContentError> {
    let (length, tail) = rest.split_first_chunk().ok_or(ContentError::Missing(part))?;
    let (length, limit) = (u32::from_le_bytes(*length) as usize, part.limit());
    if length > limit {
        return Err(ContentError::PartTooLarge { part, limit });
    }
    let (bytes, tail) = tail.split_at_checked(length).ok_or(ContentError::Cut(part))?;
    *rest = tail;
    Ok(bytes)
}

fn text(part: FilePart, bytes: &[u8]) -> Result<String, ContentError> {
    String::from_utf8(bytes.to_vec()).map_err(|_| ContentError::NotText(part))
}

fn parse_ir(text: &str) -> Result<Program, ContentError> {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let file = map.add("line", text);
    let Some(program) = ir::parse(&map, file, &mut diagnostics) else {
        let first = diagnostics.iter().next();
        let first = first.map(|finding| format!("{}: {}", map.position(finding.primary.span), finding.message));
        return Err(ContentError::Ir(first.unwrap_or_default()));
    };
    match ir::validate(&program) {
        Ok(()) => Ok(program),
        Err(violations) => {
            Err(ContentError::Violation(violations.first().map(|first| first.message.clone()).unwrap_or_default()))
        }
    }
}
