//! Prints encoded instructions, in the notation of the verifier's log.

use std::fmt::Write;

use crate::asm::EXCHANGE;

/// The parts of an encoded instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    pub code: u8,
    pub destination: usize,
    pub source: usize,
    pub offset: i16,
    pub immediate: i32,
}

impl Parts {
    pub fn of(word: u64) -> Parts {
        Parts {
            code: word as u8,
            destination: (word >> 8) as usize & 15,
            source: (word >> 12) as usize & 15,
            offset: (word >> 16) as i16,
            immediate: (word >> 32) as i32,
        }
    }
}

/// Returns one line for each instruction, with its number. Words that are no instruction print as such.
pub fn disassemble(words: &[u64]) -> String {
    let mut text = String::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let parts = Parts::of(*word);
        let next = words.get(at + 1).copied();
        let line = line(at, parts, next).unwrap_or_else(|| format!("no instruction: {word:#018x}"));
        // Writing to a string cannot fail.
        _ = writeln!(text, "{at}: {line}");
        at += if parts.code == 0x18 { 2 } else { 1 };
    }
    text
}

fn line(at: usize, parts: Parts, next: Option<u64>) -> Option<String> {
    let Parts { code, destination: to, source: from, offset, immediate } = parts;
    let operand = if code & 8 != 0 { format!("r{from}") } else { immediate.to_string() };
    let goto = |distance: i64| at as i64 + 1 + distance;
    Some(match code {
        0x18 => {
            let high = Parts::of(next?).immediate;
            match from {
                0 => format!("r{to} = {:#x}", u64::from(high as u32) << 32 | u64::from(immediate as u32)),
                1 => format!("r{to} = map {immediate}"),
                2 => format!("r{to} = map {immediate} + {high}"),
                _ => return None,
            }
        }
        0x85 => format!("call {immediate}"),
        0x95 => "exit".to_owned(),
        0x05 => format!("goto {}", goto(offset.into())),
        0x06 => format!("gotol {}", goto(immediate.into())),
        0xdc => format!("r{to} = be{immediate} r{to}"),
        0xdb if immediate == EXCHANGE => format!("r{from} = xchg(*(u64 *)(r{to} {offset:+}), r{from})"),
        0xdb if immediate == 0 => format!("lock *(u64 *)(r{to} {offset:+}) += r{from}"),
        _ => match code & 7 {
            1 => format!("r{to} = *({} *)(r{from} {offset:+})", size(code)?),
            2 => format!("*({} *)(r{to} {offset:+}) = {immediate}", size(code)?),
            3 => format!("*({} *)(r{to} {offset:+}) = r{from}", size(code)?),
            4 | 7 => {
                let letter = if code & 7 == 4 { 'w' } else { 'r' };
                let operand = if code & 8 != 0 { format!("{letter}{from}") } else { operand };
                match code & 0xf0 {
                    0x80 => format!("{letter}{to} = -{letter}{to}"),
                    operation => format!("{letter}{to} {} {operand}", operator(operation)?),
                }
            }
            5 => format!("if r{to} {} {operand} goto {}", relation(code & 0xf0)?, goto(offset.into())),
            _ => return None,
        },
    })
}

fn size(code: u8) -> Option<&'static str> {
    // Mode 0x60 is an access to memory.
    (code & 0xe0 == 0x60).then(|| ["u32", "u16", "u8", "u64"][usize::from(code >> 3 & 3)])
}

fn operator(code: u8) -> Option<&'static str> {
    let all = ["+=", "-=", "*=", "/=", "|=", "&=", "<<=", ">>=", "", "%=", "^=", "=", "s>>="];
    all.get(usize::from(code >> 4)).copied()
}

fn relation(code: u8) -> Option<&'static str> {
    let all = ["", "==", ">", ">=", "&", "!=", "s>", "s>=", "", "", "<", "<=", "s<", "s<="];
    all.get(usize::from(code >> 4)).copied().filter(|word| !word.is_empty())
}
