//! Triplane's compiled form of a program: what a switch and its controllers need of it, in one file without the source.
//!
//! ```text
//!   offset  bytes
//!        0      8   89 "TPL" 0d 0a 1a 0a: no text begins so, and a transfer that changes line ends is noticed
//!        8      4   format version; every version of the format begins with these twelve bytes
//!       12     32   SHA-256 of everything behind
//!       44          four parts, each with its length in front:
//!                     the version of Triplane that built it      UTF-8
//!                     the name of the source                     UTF-8
//!                     P4Info (P4Runtime specification 1.5)       protobuf's wire format
//!                     the program                                the text form of `ir`
//! ```
//!
//! All numbers are little-endian and 4 bytes long. A switch needs no more than the IR says: the architecture's blocks by
//! their role, field lists, annotations, and the place in the source of every instruction, entry and table, which traces
//! and drop sites are told by. What only a control plane has to know (ids, types, documentation, restrictions) is in
//! P4Info. The same program gives the same bytes.
//!
//! [`Compiled::read`] takes a file for hostile: sizes are bounded before anything is read, the IR passes its reader and its
//! validator, and the two halves are held against each other ([`agree`]). The hash finds damage; it proves no origin.
//!
//! The crate knows no architecture, no compiler and no files.

#![forbid(unsafe_code)]

mod agree;
mod types;

use diagnostics::{Diagnostics, SourceMap};
use ir::Program;
use p4runtime_proto::config::P4Info;
use sha2::{Digest, Sha256};

pub use agree::agree;

/// The version of the format that is written, and the only one that is read. It changes whenever a file written before
/// would be read otherwise, or not at all: with the text form of the IR, for one.
pub const FORMAT: u32 = 2;

/// The largest file that is read, in bytes.
pub const MAX_FILE_BYTES: u64 = 48 << 20;

/// What a file begins with.
const MAGIC: [u8; 8] = *b"\x89TPL\r\n\x1a\n";
/// Of that, what is enough to say what a file was meant to be.
const MARK: usize = 4;
/// The longest of the two texts in front, in bytes.
const MAX_NAME_BYTES: usize = 4 << 10;
/// The longest P4Info and the longest program, in bytes.
const MAX_PART_BYTES: usize = 16 << 20;

/// A program that was compiled, with its description for control planes.
#[derive(Clone, Debug, PartialEq)]
pub struct Compiled {
    /// The version of Triplane that compiled it.
    pub made_by: String,
    /// The name of the source, as it was given to the compiler.
    pub source: String,
    /// What control planes know of the program.
    pub info: P4Info,
    /// The program; it is valid and agrees with `info`.
    pub program: Program,
}

/// Why bytes are no compiled program that can be run here. The sentences go behind the file's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
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

/// Whether bytes are meant to be a compiled program, damaged or not.
pub fn is_compiled(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC[..MARK])
}

impl Compiled {
    /// A program that was compiled by this version of Triplane, from the source called `source`.
    pub fn new(source: &str, program: Program, info: P4Info) -> Compiled {
        Compiled { made_by: env!("CARGO_PKG_VERSION").to_owned(), source: source.to_owned(), info, program }
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// What is larger than [`Compiled::read`] would take, in words.
    pub fn to_bytes(&self) -> Result<Vec<u8>, String> {
        let (info, program) = (p4runtime_proto::to_bytes(&self.info), self.program.to_string());
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

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// Why they are no program that can be run here.
    pub fn read(bytes: &[u8]) -> Result<Compiled, Unreadable> {
        if !is_compiled(bytes) {
            return Err(Unreadable::Other);
        }
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(Unreadable::Content(format!("it has more than {MAX_FILE_BYTES} bytes")));
        }
        let rest = bytes.strip_prefix(&MAGIC).ok_or(match bytes.len() < MAGIC.len() {
            true => Unreadable::Damaged("it is cut off"),
            false => Unreadable::Damaged("its line ends were changed, as if it were text"),
        })?;
        let cut = || Unreadable::Damaged("it is cut off");
        let (format, rest) = rest.split_first_chunk().ok_or_else(cut)?;
        match u32::from_le_bytes(*format) {
            FORMAT => {}
            other => return Err(Unreadable::Format(other)),
        }
        let (hash, parts) = rest.split_first_chunk::<32>().ok_or_else(cut)?;
        if Sha256::digest(parts)[..] != hash[..] {
            return Err(Unreadable::Damaged("its content is not what was written"));
        }
        Self::read_parts(parts)
    }

    /// Reads what is behind the hash, which anybody can make fit.
    fn read_parts(mut rest: &[u8]) -> Result<Compiled, Unreadable> {
        let mut part = |what: &str, limit: usize| {
            let wrong = |why: &str| Unreadable::Content(format!("{what} {why}"));
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
            return Err(Unreadable::Content("something follows behind its end".to_owned()));
        }
        let info: P4Info = p4runtime_proto::from_bytes(info).map_err(|error| Unreadable::Content(error.to_string()))?;
        let program = read_program(&program)?;
        agree(&program, &info).map_err(Unreadable::Content)?;
        Ok(Compiled { made_by, source, info, program })
    }
}

fn text(what: &str, bytes: &[u8]) -> Result<String, Unreadable> {
    String::from_utf8(bytes.to_vec()).map_err(|_| Unreadable::Content(format!("{what} is no text (UTF-8)")))
}

fn read_program(text: &str) -> Result<Program, Unreadable> {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let file = map.add("line", text);
    let Some(program) = ir::parse(&map, file, &mut diagnostics) else {
        let first = diagnostics.iter().next();
        let first = first.map(|finding| format!("{}: {}", map.position(finding.primary.span), finding.message));
        return Err(Unreadable::Content(first.unwrap_or_default()));
    };
    match ir::validate(&program) {
        Ok(()) => Ok(program),
        Err(violations) => {
            Err(Unreadable::Content(violations.first().map(|first| first.message.clone()).unwrap_or_default()))
        }
    }
}
