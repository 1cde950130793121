//! No script makes parsing, binding or running panic: every script here and in the project's `testdata/stf`, with
//! bytes changed, removed, doubled and exchanged.

use std::path::{Path, PathBuf};

use crate::support;
use diagnostics::{Diagnostics, SourceMap};
use rng::SplitMix64;

/// A reproducible generator.
struct Numbers(SplitMix64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0.below(end.max(1) as u64) as usize
    }
}

/// Fragments with a meaning in scripts.
const PIECES: [&str; 24] = [
    "*",
    "$",
    "#",
    "\"",
    "(",
    ")",
    ":",
    "/",
    "&&&",
    "..",
    "->",
    "=",
    "-",
    "0x",
    "0b",
    "0xffffffffffffffffffffffff",
    "\n",
    " ",
    "é",
    "packet 0 00\n",
    "wait\n",
    "remove all\n",
    "no_packet\n",
    "99999999999999999999",
];

fn mutated(text: &str, numbers: &mut Numbers) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..=numbers.below(6) {
        let at = numbers.below(chars.len());
        let to = (at + numbers.below(12)).min(chars.len());
        match numbers.below(4) {
            0 => drop(chars.drain(at..to)),
            1 => {
                let part: Vec<char> = chars[at..to].to_vec();
                chars.splice(at..at, part);
            }
            2 => {
                let piece = PIECES[numbers.below(PIECES.len())];
                chars.splice(at..at, piece.chars());
            }
            _ => {
                let other = numbers.below(chars.len());
                if at < chars.len() && other < chars.len() {
                    chars.swap(at, other);
                }
            }
        }
    }
    chars.into_iter().collect()
}

#[test]
fn no_script_panics() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/stf is two levels deep");
    let program = support::program(&folder.join("switch.p4"), &mut SourceMap::new()).expect("it compiles");
    let everything = support::program(&root.join("testdata/stf/meters.p4"), &mut SourceMap::new());
    let everything = everything.expect("it compiles");
    let scripts = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).expect("a folder");
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
        paths.retain(|path| path.extension().is_some_and(|it| it == "stf"));
        paths.sort();
        paths
    };
    let mut numbers = Numbers(SplitMix64::new(1));
    let mut run = 0;
    for path in scripts(&folder).into_iter().chain(scripts(&root.join("testdata/stf"))) {
        let text = std::fs::read_to_string(&path).expect("a script");
        for round in 0..40 {
            let text = mutated(&text, &mut numbers);
            let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
            let file = map.add("script.stf", text);
            let script = stf::parse(&map, file, &mut diagnostics);
            let program = if round % 2 == 0 { &program } else { &everything };
            let test = script.and_then(|script| stf::bind(&script, program, &mut diagnostics));
            if let Some(test) = test {
                let report = test.run(program, &stf::RunOptions::default()).expect("a v1model program");
                report.render(&map);
                report.to_json(&map, true);
                run += 1;
            }
            diagnostics.render(&map, false);
        }
    }
    assert!(run > 100, "only {run} scripts could be run");
}
