//! Decides whether a program may be executed again when its echo was lost (paper, section 4.4; a repeated `STORE` runs
//! twice).

use diagnostics::Severity;
use wire::tpp::{ALL_ONES, Addressing, Instruction, Operation};

use super::bonds::{feeds, is_stable};
use super::plan::ExecutionOptions;
use crate::asm::TinyProgram;
use crate::check::CheckFinding;
use crate::map::{Namespace, row_of};
use crate::tcpu::OWN_FIELDS;

const CODE: &str = "unsafe-retry";

/// Returns a finding for each store that a second execution could repeat.
///
/// A `CSTORE` whose values are constants may be repeated: it stores nothing the second time. A store behind it is then
/// not reached. All other stores may not.
pub(super) fn unsafe_retries(source: &TinyProgram, options: &ExecutionOptions) -> Vec<CheckFinding> {
    if options.tries <= 1 || source.repr.is_read_only {
        return Vec::new();
    }
    let all = &source.instructions;
    let word = source.repr.word_size.bytes();
    let mut findings = Vec::new();
    let mut find = |at: usize, message: String, help: &str| {
        findings.push(CheckFinding {
            severity: Severity::Error,
            code: CODE,
            instruction: Some(at),
            message,
            help: Some(help.to_owned()),
        });
    };
    let mut is_guarded = false;
    for (at, instruction) in all.iter().enumerate() {
        let compares = |it: &&Instruction| it.operation == Operation::Cstore && it.address == instruction.address;
        match instruction.operation {
            operation if operation.is_write() && all[..at].iter().any(|it| compares(&it)) => find(
                at,
                "this writes the word that an earlier `CSTORE` compares, so a retry may find the old value again"
                    .to_owned(),
                "write another word, or send the program once",
            ),
            Operation::Store | Operation::Pop if !is_guarded => find(
                at,
                format!(
                    "a retry would execute this `{}` again if only its echo was lost",
                    instruction.operation.name()
                ),
                "write a word that shows the store, such as a version, with `CSTORE` before it; or send the program once",
            ),
            Operation::Cstore => {
                let is_computed = all.iter().enumerate().any(|(other, it)| other != at && feeds(it, instruction, word));
                if is_computed {
                    find(
                        at,
                        "the values of this `CSTORE` are computed at the switch, so a retry would store again"
                            .to_owned(),
                        "read the word with another program first, and send its value as a constant",
                    );
                } else if source.repr.is_reflective {
                    find(
                        at,
                        "a retry of this `CSTORE` fails at the switch that stored, which does not send it back then"
                            .to_owned(),
                        "execute the program without reflection, or send the program once",
                    );
                } else if shares_memory(source) && !runs_once(source, options, at) {
                    find(
                        at,
                        "all switches share `old` in this mode, so a retry would compare with what another one had"
                            .to_owned(),
                        "use `.mode hop`, or execute the program on one switch, or with `CEXEC [Switch:ID]` before it",
                    );
                } else {
                    is_guarded |= blocks(source).all(|block| {
                        let at = |operand: u8| usize::from(operand) * word..(usize::from(operand) + 1) * word;
                        block.get(at(instruction.first)) != block.get(at(instruction.second))
                    });
                }
            }
            _ => {}
        }
    }
    findings
}

/// Whether all switches use the same words for operands.
pub(super) fn shares_memory(source: &TinyProgram) -> bool {
    matches!(source.repr.addressing, Addressing::Stack { .. } | Addressing::Hop { len: 0 })
}

/// Returns the memory of each hop, or the whole memory if all share it.
pub(super) fn blocks(source: &TinyProgram) -> impl Iterator<Item = &[u8]> {
    let len = match source.repr.addressing {
        Addressing::Hop { len } if len > 0 => len,
        _ => source.memory.len().max(1),
    };
    source.memory.chunks(len)
}

/// Whether at most one switch reaches an instruction.
pub(super) fn runs_once(source: &TinyProgram, options: &ExecutionOptions, at: usize) -> bool {
    options.switch.is_some() || source.instructions[..at].iter().any(|it| selects_one(source, it))
}

/// Whether a `CEXEC` passes at one switch at most: it compares the whole number of the switch, or of the hop.
fn selects_one(source: &TinyProgram, it: &Instruction) -> bool {
    let word = source.repr.word_size.bytes();
    if !is_stable(it, &source.instructions, word) {
        return false;
    }
    let mask = match it.first {
        ALL_ONES => Some(u32::MAX),
        operand => {
            let bytes = source.memory.get(usize::from(operand) * word..);
            bytes.and_then(|bytes| bytes.first_chunk()).map(|bytes| u32::from_be_bytes(*bytes))
        }
    };
    let needed = match it.address {
        id if id == row_of(Namespace::Switch, "ID").address() => u32::MAX,
        OWN_FIELDS => 0xff,
        _ => return false,
    };
    mask.is_some_and(|mask| mask & needed == needed)
}
