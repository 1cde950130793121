//! Program files (`.tpl`): a compiled program in one file, without its source.
//!
//! ```text
//!   offset  bytes
//!        0      8   89 "TPL" 0d 0a 1a 0a: no text begins with it, and a transfer that changes line ends shows
//!        8      4   format version; every version of the format begins with these twelve bytes
//!       12     32   SHA-256 of everything behind
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
//! [`ProgramFile::parse`] assumes a hostile file: sizes are bounded before anything is read, the IR passes its parser
//! and its validator, and the two halves are checked against each other ([`agree`]). The hash finds damage; it proves
//! no origin.

mod agree;
mod types;

use diagnostics::{Diagnostics, SourceMap};
use ir::Program;
use p4runtime_proto::config::P4Info;
use sha2::{Digest, Sha256};

use crate::CompiledProgram;

pub use agree::agree;

/// Version of the format that is written, and the only one that is read. It changes whenever an older file would be
/// refused or mean something else, for example when the text form of the IR changes.
pub const FORMAT: u32 = 2;

/// Maximum size of a file, in bytes.
pub const MAX_FILE_BYTES: u64 = 48 << 20;

/// First bytes of every file.
const MAGIC: [u8; 8] = *b"\x89TPL\r\n\x1a\n";
/// Number of those bytes that identify a file that may be damaged.
const MARK: usize = 4;
/// Maximum length of each of the two texts in front, in bytes.
const MAX_NAME_BYTES: usize = 4 << 10;
/// Maximum length of the P4Info, and of the program, in bytes.
const MAX_PART_BYTES: usize = 16 << 20;

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

/// A file that is no program file that can be run here. The sentences go behind the file's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramFileError {
    /// It is something else.
    #[error("is no compiled program")]
    Other,
    /// It is of another version of the format.
    #[error(
        "is in version {0} of the compiled form, and this Triplane ({here}) reads version {FORMAT}; build it again from its \
         P4 source: `triplane build`",
        here = env!("CARGO_PKG_VERSION")
    )]
    Format(u32),
    /// It is cut off or was changed.
    #[error("is damaged ({0}); copy it again, or build it again from its P4 source: `triplane build`")]
    Damaged(&'static str),
    /// It is whole, and what is in it makes no sense.
    #[error("holds no program that can be run: {0}; build it again from its P4 source: `triplane build`")]
    Content(String),
}

/// Whether bytes are meant to be a program file, damaged or not.
pub fn is_program_file(bytes: &[u8]) -> bool {
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
    /// The part that is larger than [`ProgramFile::parse`] would accept, as a sentence.
    pub fn emit(&self) -> Result<Vec<u8>, String> {
        let (info, program) = (p4runtime_proto::to_bytes(&self.program.p4info), self.program.ir.to_string());
        let mut parts = Vec::with_capacity(16 + info.len() + program.len());
        let all: [(&str, &[u8], usize); 4] = [
            ("the version", self.made_by.as_bytes(), MAX_NAME_BYTES),
            ("the name of the source", self.source.as_bytes(), MAX_NAME_BYTES),
            ("the P4Info", &info, MAX_PART_BYTES),
            ("the program", program.as_bytes(), MAX_PART_BYTES),
        ];
        for (what, bytes, limit) in all {
            match u32::try_from(bytes.len()) {
                Ok(length) if bytes.len() <= limit => parts.extend(length.to_le_bytes()),
                _ => return Err(format!("{what} has {} bytes, and the compiled form takes {limit}", bytes.len())),
            }
            parts.extend(bytes);
        }
        Ok([&MAGIC[..], &FORMAT.to_le_bytes(), &Sha256::digest(&parts), &parts].concat())
    }

    /// Parses the bytes of a file.
    ///
    /// # Errors
    /// The reason why the file cannot be run here.
    pub fn parse(bytes: &[u8]) -> Result<ProgramFile, ProgramFileError> {
        if !is_program_file(bytes) {
            return Err(ProgramFileError::Other);
        }
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(ProgramFileError::Content(format!("it has more than {MAX_FILE_BYTES} bytes")));
        }
        let rest = bytes.strip_prefix(&MAGIC).ok_or(match bytes.len() < MAGIC.len() {
            true => ProgramFileError::Damaged("it is cut off"),
            false => ProgramFileError::Damaged("its line ends were changed, as if it were text"),
        })?;
        let cut = || ProgramFileError::Damaged("it is cut off");
        let (format, rest) = rest.split_first_chunk().ok_or_else(cut)?;
        match u32::from_le_bytes(*format) {
            FORMAT => {}
            other => return Err(ProgramFileError::Format(other)),
        }
        let (hash, parts) = rest.split_first_chunk::<32>().ok_or_else(cut)?;
        if Sha256::digest(parts)[..] != hash[..] {
            return Err(ProgramFileError::Damaged("its content is not what was written"));
        }
        Self::parse_parts(parts)
    }

    /// Parses the bytes behind the hash. Anybody can compute a hash that fits.
    fn parse_parts(mut rest: &[u8]) -> Result<ProgramFile, ProgramFileError> {
        let mut part = |what: &str, limit: usize| {
            let wrong = |why: &str| ProgramFileError::Content(format!("{what} {why}"));
            let (length, behind) = rest.split_first_chunk().ok_or_else(|| wrong("is missing"))?;
            let length = u32::from_le_bytes(*length) as usize;
            if length > limit {
                return Err(wrong(&format!("has more than {limit} bytes")));
            }
            let (bytes, behind) = behind.split_at_checked(length).ok_or_else(|| wrong("is not all there"))?;
            rest = behind;
            Ok(bytes)
        };
        let made_by = text("the version", part("the version", MAX_NAME_BYTES)?)?;
        let source = text("the name of the source", part("the name of the source", MAX_NAME_BYTES)?)?;
        let info = part("the P4Info", MAX_PART_BYTES)?;
        let program = text("the program", part("the program", MAX_PART_BYTES)?)?;
        if !rest.is_empty() {
            return Err(ProgramFileError::Content("something follows behind its end".to_owned()));
        }
        let info: P4Info =
            p4runtime_proto::from_bytes(info).map_err(|error| ProgramFileError::Content(error.to_string()))?;
        let ir = parse_ir(&program)?;
        agree(&ir, &info).map_err(ProgramFileError::Content)?;
        Ok(ProgramFile { made_by, source, program: CompiledProgram { ir, p4info: info } })
    }
}

fn text(what: &str, bytes: &[u8]) -> Result<String, ProgramFileError> {
    String::from_utf8(bytes.to_vec()).map_err(|_| ProgramFileError::Content(format!("{what} is no text (UTF-8)")))
}

fn parse_ir(text: &str) -> Result<Program, ProgramFileError> {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let file = map.add("line", text);
    let Some(program) = ir::parse(&map, file, &mut diagnostics) else {
        let first = diagnostics.iter().next();
        let first = first.map(|finding| format!("{}: {}", map.position(finding.primary.span), finding.message));
        return Err(ProgramFileError::Content(first.unwrap_or_default()));
    };
    match ir::validate(&program) {
        Ok(()) => Ok(program),
        Err(violations) => {
            Err(ProgramFileError::Content(violations.first().map(|first| first.message.clone()).unwrap_or_default()))
        }
    }
}
