//! Random programs print and read back unchanged; random texts are rejected or read without a panic.

use crate::generate::{self, Random};
use diagnostics::{Diagnostics, SourceMap};
use ir::Program;

/// Reads a text. A failure must have a diagnostic that says why and can be rendered.
fn read(text: &str) -> Result<Program, String> {
    let mut map = SourceMap::new();
    let file = map.add("test.ir", text);
    let mut diagnostics = Diagnostics::new();
    match ir::parse(&map, file, &mut diagnostics) {
        Some(program) => Ok(program),
        None => {
            assert!(diagnostics.has_errors(), "refused without a word: {text}");
            Err(diagnostics.render(&map, false))
        }
    }
}

#[test]
fn random_programs_are_valid_and_read_back() {
    for seed in 0..400 {
        let program = generate::program(seed);
        if let Err(violations) = ir::validate(&program) {
            panic!("seed {seed}: {}\n{program}", violations[0]);
        }
        let text = program.to_string();
        let again = read(&text).unwrap_or_else(|findings| panic!("seed {seed}: {findings}"));
        if again != program {
            let printed = again.to_string();
            let line = text.lines().zip(printed.lines()).find(|(a, b)| a != b);
            panic!("seed {seed} reads back differently: {line:?}\n{text}");
        }
    }
}

#[test]
fn single_parts_print_without_a_panic() {
    let program = generate::program(7);
    for body in program.bodies.values() {
        for (id, block) in &body.blocks {
            for instr in &block.instrs {
                assert!(!program.display_op(&instr.op).to_string().is_empty());
            }
            assert!(!program.display_terminator(body, &block.terminator).to_string().is_empty());
            assert!(!program.display_block(body, id).to_string().is_empty());
        }
    }
    // The parts of another program, too: its ids are invalid here.
    let empty = Program::default();
    for body in program.bodies.values() {
        for instr in body.blocks.values().flat_map(|block| &block.instrs) {
            assert!(!empty.display_op(&instr.op).to_string().is_empty());
        }
    }
}

/// Mutates text as an interrupted or careless editor might.
fn mutate(random: &mut Random, text: &str, other: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..1 + random.below(2) {
        let start = random.below(bytes.len());
        let end = (start + 1 + random.below(12)).min(bytes.len());
        match random.below(6) {
            0 => drop(bytes.drain(start..end)),
            1 if random.chance(10) => bytes.truncate(start),
            1 => bytes.insert(start, *random.pick(b"0123456789axs_")),
            2 => {
                let piece = bytes[start..end].to_vec();
                let at = random.below(bytes.len());
                bytes.splice(at..at, piece);
            }
            3 => {
                let piece = &other.as_bytes()[random.below(other.len())..];
                let piece = piece[..piece.len().min(random.below(60))].to_vec();
                bytes.splice(start..start, piece);
            }
            4 => bytes[start..end].fill(*random.pick(b"(){}[]#.;\"~-0x:9 \n")),
            _ => {
                if let Some(byte) = bytes.get_mut(start) {
                    *byte = random.next() as u8;
                }
            }
        }
        if bytes.is_empty() {
            bytes.push(b' ');
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads, validates and prints a text; a program that was read prints and reads back, valid or not.
fn try_out(text: &str) -> bool {
    let Ok(program) = read(text) else { return false };
    let _ = ir::validate(&program);
    let printed = program.to_string();
    // Ids are in range in a program that was read, except those that only the validator checks.
    match read(&printed) {
        Ok(again) => assert!(again == program, "reads back differently:\n{printed}"),
        Err(findings) => panic!("{findings}\nprinted from\n{text}"),
    }
    true
}

#[test]
fn mutated_programs_do_not_panic() {
    let corpus: Vec<String> = (0..20)
        .map(|seed| generate::program(seed).to_string())
        .chain([
            include_str!("../../testdata/basic.ir").to_owned(),
            include_str!("../../testdata/everything.ir").to_owned(),
        ])
        .collect();
    let mut random = Random::new(1);
    let mut read = 0;
    for _ in 0..4000 {
        let (text, other) = (random.pick(&corpus).clone(), random.pick(&corpus).clone());
        read += usize::from(try_out(&mutate(&mut random, &text, &other)));
    }
    assert!(read > 50, "too few mutations can still be read to test what comes behind the reader: {read}");
}

#[test]
fn mutated_lines_do_not_panic() {
    let corpus = [include_str!("../../testdata/basic.ir"), include_str!("../../testdata/everything.ir")];
    let mut random = Random::new(2);
    for _ in 0..3000 {
        let mut lines: Vec<&str> = random.pick(&corpus).lines().collect();
        for _ in 0..1 + random.below(3) {
            let (a, b) = (random.below(lines.len()), random.below(lines.len()));
            match random.below(3) {
                0 => drop(lines.remove(a)),
                1 => lines.swap(a, b),
                _ => lines.insert(a, lines[b]),
            }
        }
        try_out(&lines.join("\n"));
    }
}

#[test]
fn random_bytes_and_tokens_do_not_panic() {
    let mut random = Random::new(3);
    for _ in 0..3000 {
        let bytes: Vec<u8> = (0..random.below(300)).map(|_| random.next() as u8).collect();
        try_out(&String::from_utf8_lossy(&bytes));
    }
    let words: Vec<&str> = include_str!("../../testdata/everything.ir").split_whitespace().collect();
    for _ in 0..3000 {
        let mut text = "program v1model\nheader_type t { f: 8 }\nheader h: t\n".to_owned();
        for _ in 0..random.below(100) {
            text.push_str(words[random.below(words.len())]);
            text.push(*random.pick(&[' ', ' ', '\n']));
        }
        try_out(&text);
    }
}

#[test]
fn unbounded_nesting_and_repetition_is_refused() {
    let many = 200_000;
    let body =
        |instr: String| format!("program p\nmetadata x: 8\ncontrol C {{\n  block b:\n    {instr}\n    return\n}}\n");
    for bomb in [
        format!("x = {}x", "(".repeat(many)),
        format!("x = {}x", "~".repeat(many)),
        format!("x = x{}", "[7:0]".repeat(many)),
        format!("x = {}x", "zext(".repeat(many)),
        format!("x = {}x", "choose(x, x, ".repeat(many)),
        format!("x = {}", "x.".repeat(many)),
        format!("x = {}:65536", "9".repeat(many)),
        "x = 0x1:4294967295".to_owned(),
        format!("x = x {}", "+ x ".repeat(many)),
        format!("log \"{}", "\\".repeat(many)),
        "{".repeat(many),
    ] {
        assert!(read(&body(bomb)).is_err());
    }
    let text = format!("program p\n{}", "metadata x: 8\n".repeat(100_000));
    assert!(ir::validate(&read(&text).unwrap()).is_err());
    let headers = "header h: t\n".repeat(50_000);
    let stacks = "stack s: 50000 from h next n\n".repeat(50_000);
    let text = format!("program p\nheader_type t {{ }}\nmetadata n: 32\n{headers}{stacks}");
    assert!(ir::validate(&read(&text).unwrap()).is_err());
}
