//! Reads directives: the settings of a program.

use diagnostics::{Diagnostic, Diagnostics, Span, names};
use wire::tpp::{MAX_LEN, Status, WordSize};

use super::syntax::{Spanned, Statement};
use crate::map::parse_number;

/// Names of the directives.
const NAMES: [&str; 14] = [
    "word",
    "mode",
    "hops",
    "size",
    "sp",
    "hop",
    "app",
    "reflect",
    "readonly",
    "encapsulated",
    "status",
    "bytes",
    "memory",
    "data",
];

/// Words of packet memory that the source gives.
#[derive(Clone, Debug)]
pub(super) struct Preset {
    /// The hop; `None` for all hops, or for the start of the memory in stack mode.
    pub hop: Option<u32>,
    pub values: Vec<u32>,
    pub span: Span,
}

/// The settings of a program.
#[derive(Clone, Debug)]
pub(super) struct ProgramSettings {
    pub word_size: WordSize,
    pub is_hop_mode: bool,
    pub hops: Option<u32>,
    /// Length of the block of a hop in bytes.
    pub size: Option<usize>,
    /// First stack pointer in bytes.
    pub pointer: Option<usize>,
    pub hop: i8,
    pub application: u16,
    pub is_reflective: bool,
    pub is_read_only: bool,
    pub encapsulated: u16,
    pub status: Status,
    /// Length of the memory in bytes.
    pub bytes: Option<usize>,
    pub presets: Vec<Preset>,
    /// Bytes from the start of the memory.
    pub data: Vec<u8>,
}

impl ProgramSettings {
    /// Collects the settings of all directives.
    pub fn collect(statements: &[Statement<'_>], diagnostics: &mut Diagnostics) -> ProgramSettings {
        let mut settings = ProgramSettings {
            word_size: WordSize::Bits32,
            is_hop_mode: false,
            hops: None,
            size: None,
            pointer: None,
            hop: 0,
            application: 0,
            is_reflective: false,
            is_read_only: false,
            encapsulated: 0,
            status: Status::NONE,
            bytes: None,
            presets: Vec::new(),
            data: Vec::new(),
        };
        for statement in statements {
            if let Statement::Directive { name, rest } = statement
                && let Err(diagnostic) = settings.directive(*name, *rest)
            {
                diagnostics.push(*diagnostic);
            }
        }
        settings
    }

    fn directive(&mut self, name: Spanned<&str>, rest: Spanned<&str>) -> Result<(), Box<Diagnostic>> {
        let even = |what: &str| {
            let allowed = format!("an even number of bytes up to {MAX_LEN}");
            number(rest, name.1, MAX_LEN as u32, &allowed).and_then(|bytes| match bytes % 2 {
                0 => Ok(Some(bytes as usize)),
                _ => Err(wrong(rest.1, format!("`.{what}` takes {allowed}"))),
            })
        };
        match name.0 {
            "word" => {
                self.word_size = match rest.0 {
                    "16" => WordSize::Bits16,
                    "32" => WordSize::Bits32,
                    _ => return Err(wrong(place(rest, name), "words have 16 or 32 bits".to_owned())),
                }
            }
            "mode" => {
                self.is_hop_mode = match rest.0 {
                    "stack" => false,
                    "hop" => true,
                    _ => return Err(wrong(place(rest, name), "the mode is `stack` or `hop`".to_owned())),
                }
            }
            "hops" => self.hops = Some(number(rest, name.1, 127, "a number of hops up to 127")?),
            "size" => self.size = even("size")?,
            "sp" => self.pointer = even("sp")?,
            "bytes" => self.bytes = even("bytes")?,
            "hop" => {
                self.hop = rest
                    .0
                    .parse()
                    .map_err(|_| wrong(place(rest, name), "the first hop is a number from -128 to 127".to_owned()))?;
            }
            "app" => self.application = number(rest, name.1, 0xffff, "a handle up to 65535")? as u16,
            "encapsulated" => self.encapsulated = number(rest, name.1, 0xffff, "an EtherType")? as u16,
            "reflect" if rest.0.is_empty() => self.is_reflective = true,
            "readonly" if rest.0.is_empty() => self.is_read_only = true,
            "reflect" | "readonly" => return Err(wrong(rest.1, format!("`.{}` takes no value", name.0))),
            "status" => self.status = status(rest)?,
            "memory" => self.presets.push(self.preset(rest, name.1)?),
            "data" => self.data.extend(hexadecimal(rest)?),
            other => {
                let help = match names::nearest(other, NAMES) {
                    Some(near) => format!("did you mean `.{near}`?"),
                    None => format!("the directives are {}", names::listed(NAMES.into_iter())),
                };
                let message = format!("there is no directive `.{other}`");
                return Err(Box::new(Diagnostic::error("unknown-directive", name.1, message).help(help)));
            }
        }
        Ok(())
    }

    /// Parses `1, 2`, `all: 1, 2` or `hop 3: 1, 2`.
    fn preset(&self, rest: Spanned<&str>, name: Span) -> Result<Preset, Box<Diagnostic>> {
        let span = if rest.0.is_empty() { name } else { rest.1 };
        let help = "`.memory 1, 2` sets the first words, `.memory hop 3: 1, 2` those of a hop, and `.memory all: 1, 2` \
                    those of every hop";
        let error = |message: &str| Box::new(Diagnostic::error("invalid-memory", span, message.to_owned()).help(help));
        let (hop, list) = match rest.0.split_once(':') {
            None => (None, rest.0),
            Some((left, list)) => match left.trim().strip_prefix("hop") {
                Some(number) => (Some(parse_number(number.trim()).ok_or_else(|| error("this is no hop"))?), list),
                None if left.trim() == "all" => (None, list),
                None => return Err(error("this is not a part of packet memory")),
            },
        };
        let values: Option<Vec<u32>> = list.split(',').map(|value| parse_number(value.trim())).collect();
        let values = values.ok_or_else(|| error("packet memory consists of numbers up to 0xffffffff"))?;
        Ok(Preset { hop, values, span })
    }
}

fn place(rest: Spanned<&str>, name: Spanned<&str>) -> Span {
    if rest.0.is_empty() { name.1 } else { rest.1 }
}

fn wrong(span: Span, message: String) -> Box<Diagnostic> {
    Box::new(Diagnostic::error("invalid-value", span, message))
}

fn number(rest: Spanned<&str>, name: Span, last: u32, allowed: &str) -> Result<u32, Box<Diagnostic>> {
    let span = if rest.0.is_empty() { name } else { rest.1 };
    let number = parse_number(rest.0).filter(|number| *number <= last);
    number.ok_or_else(|| wrong(span, format!("this is not {allowed}")))
}

fn status(rest: Spanned<&str>) -> Result<Status, Box<Diagnostic>> {
    let mut status = Status::NONE;
    for name in rest.0.split(',').map(str::trim) {
        status |= match name {
            "done" => Status::DONE,
            "absent" => Status::ABSENT,
            "suppressed" => Status::SUPPRESSED,
            "full" => Status::FULL,
            _ => return Err(wrong(rest.1, "the status is of `done`, `absent`, `suppressed`, `full`".to_owned())),
        };
    }
    Ok(status)
}

fn hexadecimal(rest: Spanned<&str>) -> Result<Vec<u8>, Box<Diagnostic>> {
    let error = || wrong(rest.1, "`.data` takes pairs of hexadecimal digits".to_owned());
    let digits: Vec<u8> = rest.0.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let digit = |byte: u8| char::from(byte).to_digit(16).ok_or_else(error);
    if !digits.len().is_multiple_of(2) {
        return Err(error());
    }
    digits.chunks(2).map(|pair| Ok((digit(pair[0])? << 4 | digit(pair[1])?) as u8)).collect()
}
