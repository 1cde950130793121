//! Checks mutated programs: whatever the parser returns, the checker does not panic, and accepted programs keep its
//! invariants. `P4_FUZZ_ROUNDS` sets the number of rounds; a failing round's seed is printed and replays with
//! `P4_FUZZ_SEED`. `P4_FUZZ_PROGRAMS` names a directory of further programs to mutate.

use crate::guarantees;
use diagnostics::{Diagnostics, SourceMap};
use p4::{DiskLoader, PreprocessorOptions};
use rng::SplitMix64;

/// A generator of mutations.
struct Random(SplitMix64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0.below(limit.max(1) as u64) as usize
    }
}

const PROGRAMS: [&str; 9] = [
    include_str!("../../testdata/diagnostics/check/names.p4"),
    include_str!("../../testdata/diagnostics/check/types.p4"),
    include_str!("../../testdata/diagnostics/check/expressions.p4"),
    include_str!("../../testdata/diagnostics/check/calls.p4"),
    include_str!("../../testdata/diagnostics/check/tables.p4"),
    include_str!("../../testdata/diagnostics/check/parsers.p4"),
    include_str!("../../testdata/diagnostics/check/instances.p4"),
    include_str!("../../testdata/diagnostics/check/statements.p4"),
    include_str!("../../testdata/diagnostics/check/constants.p4"),
];

const PIECES: [&str; 30] = [
    "1",
    "-1",
    "0",
    "65536",
    "70000",
    "8w255",
    "8s127",
    "(1 << 60000)",
    "true",
    "{ 1 }",
    "{ a = 1 }",
    "{}",
    "{#}",
    "...",
    "_",
    "this",
    "error.NoError",
    "\"s\"",
    "x",
    "hdr",
    "(bit<8>)",
    "bit<8>",
    "int",
    "h_t[2]",
    "tuple<bit<8>>",
    "==",
    "++",
    "<<",
    "/",
    "&&&",
];

/// Splits a program into words, numbers, signs and blanks.
fn pieces(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut start = 0;
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut last: Option<char> = None;
    for (at, c) in text.char_indices() {
        if last.is_some_and(|last| !(is_word(last) && is_word(c))) {
            out.push(&text[start..at]);
            start = at;
        }
        last = Some(c);
    }
    out.push(&text[start..]);
    out
}

fn mutated(random: &mut Random, programs: &[String]) -> String {
    let first = &programs[random.below(programs.len())];
    let second = &programs[random.below(programs.len())];
    let mut text = pieces(first);
    let other = pieces(second);
    for _ in 0..1 + random.below(6) {
        let (at, from) = (random.below(text.len()), random.below(text.len()));
        match random.below(6) {
            0 => text[at] = text[from],
            1 => text.swap(at, from),
            2 => text[at] = PIECES[random.below(PIECES.len())],
            3 => text[at] = other[random.below(other.len())],
            4 => {
                text.remove(at);
            }
            _ => {
                let end = (from + random.below(40)).min(text.len());
                let copied: Vec<&str> = text[from..end].to_vec();
                text.splice(at..at, copied);
            }
        }
        if text.is_empty() {
            break;
        }
    }
    text.concat()
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("a number"))
}

#[test]
fn nothing_panics_and_promises_are_kept() {
    let mut programs: Vec<String> = PROGRAMS.iter().map(|text| (*text).to_owned()).collect();
    if let Some(directory) = std::env::var_os("P4_FUZZ_PROGRAMS") {
        for entry in std::fs::read_dir(directory).expect("the directory can be read") {
            let bytes = std::fs::read(entry.expect("the entry can be read").path()).unwrap_or_default();
            programs.push(String::from_utf8_lossy(&bytes).into_owned());
        }
    }
    let only = variable("P4_FUZZ_SEED");
    let rounds = variable("P4_FUZZ_ROUNDS").unwrap_or(400);
    let include_dirs = std::env::var_os("P4_INCLUDE").map_or_else(Vec::new, |v| std::env::split_paths(&v).collect());
    let options = PreprocessorOptions { include_dirs, ..PreprocessorOptions::default() };
    for round in 0..rounds {
        let seed = only.unwrap_or(round + 1);
        let mut random = Random(SplitMix64::new(seed));
        let text = mutated(&mut random, &programs);
        let outcome = std::panic::catch_unwind(|| {
            let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
            let program = p4::parse(&mut map, "fuzz.p4", &text, &options, &DiskLoader, &mut diagnostics);
            match p4::check(&program, &map, &mut diagnostics) {
                Some(typed) => guarantees::broken(&typed),
                None => {
                    assert!(diagnostics.has_errors(), "refused without a word");
                    Vec::new()
                }
            }
        });
        match outcome {
            Ok(broken) => assert!(broken.is_empty(), "P4_FUZZ_SEED={seed} replays this: {broken:?}\n{text}"),
            Err(_) => panic!("P4_FUZZ_SEED={seed} replays this:\n{text}"),
        }
        if only.is_some() {
            break;
        }
    }
}
