//! The text form: a program that was read prints unchanged, and errors are reported.

use crate::golden;
use diagnostics::{Diagnostics, SourceMap};
use ir::Program;
use testing::golden::assert_golden;

/// Reads a text; returns the rendered diagnostics if it cannot be read.
fn read(text: &str) -> Result<Program, String> {
    let mut map = SourceMap::new();
    let file = map.add("test.ir", text);
    let mut diagnostics = Diagnostics::new();
    ir::parse(&map, file, &mut diagnostics).ok_or_else(|| diagnostics.render(&map, false))
}

#[test]
fn hand_written_programs_print_as_they_are_written() {
    let mut count = 0;
    for path in golden::files("ir") {
        let text = std::fs::read_to_string(&path).unwrap();
        let program = read(&text).unwrap_or_else(|findings| panic!("{findings}"));
        ir::validate(&program)
            .unwrap_or_else(|violations| panic!("{}: {}", path.display(), golden::lines(&violations)));
        let printed = program.to_string();
        assert_golden(&path, &printed);
        assert_eq!(read(&printed).unwrap_or_else(|findings| panic!("{findings}")), program, "{}", path.display());
        count += 1;
    }
    assert!(count >= 2, "the hand-written programs are missing");
}

#[test]
fn findings_of_the_reader() {
    golden::sections("errors.txt", |_, text| match read(text) {
        Ok(program) => format!("no finding\n{program}"),
        Err(findings) => findings,
    });
}

#[test]
fn every_rule_has_a_text_that_breaks_just_it() {
    let mut seen = Vec::new();
    golden::sections("violations.txt", |name, text| {
        let program = read(text).unwrap_or_else(|findings| panic!("{name}: {findings}"));
        let violations = ir::validate(&program).expect_err(name);
        for violation in &violations {
            assert_eq!(violation.rule.code(), name, "{violation}");
            seen.push(violation.rule);
        }
        golden::lines(&violations)
    });
    // The reader never makes an id out of range except by a stack's size or a field list, nor can text nest too deep
    // for the reader; `rules` makes such programs by hand.
    let missing: Vec<_> = ir::Rule::ALL.iter().filter(|rule| !seen.contains(rule)).collect();
    assert!(missing.iter().all(|rule| **rule == ir::Rule::ExprDepth), "no text breaks {missing:?}");
}
