//! Warnings: programs that are correct, and yet hardly what their author meant.
//!
//! The pass looks at a checked program, changes nothing and reports no error. Every kind has a code of its own, by
//! which it can be turned off:
//!
//! | code | what |
//! |---|---|
//! | `uninitialized` | a variable or `out` parameter is read, and surely or possibly has no value yet |
//! | `uninitialized-out` | an `out` parameter never gets a value |
//! | `invalid-header` | a field of a header that is surely invalid is read or written |
//! | `constant-comparison` | a comparison whose outcome the operands' types and constants decide |
//! | `missing-default` | a `select` without `default` whose cases leave values out |
//! | `unreachable` | a `select` case or a table entry behind others that match everything it matches |
//! | `deprecated` | a call of what its declaration calls deprecated |
//!
//! What is in files that ship with the compiler is not looked at. Where the pass is not sure, it is silent: a warning
//! that is wrong once is turned off for good.

mod compare;
mod cover;
mod exhaustive;
mod flow;
mod state;
mod walk;

use diagnostics::{Diagnostic, Diagnostics, SourceMap, Span};

use crate::typed::Program;

/// How many steps are taken, each a statement, or work on what is known of a few parts of variables; programs that need
/// more (nested loops, many parser states, branches among very many variables) are given up on.
const MAX_STEPS: u32 = 2_000_000;

/// Reports what looks like a mistake in a checked program.
pub(crate) fn lint(program: &Program, map: &SourceMap, diagnostics: &mut Diagnostics) {
    let mut findings = Findings { map, list: Vec::new() };
    walk::walk(program, &mut findings);
    flow::program(program, &mut findings);
    for finding in findings.list {
        diagnostics.push(finding);
    }
}

/// Whether a file ships with the compiler.
pub(crate) fn is_shipped(map: &SourceMap, span: Span) -> bool {
    !map.contains(span.file) || map.file(span.file).name().starts_with('<')
}

/// The warnings so far.
struct Findings<'a> {
    map: &'a SourceMap,
    list: Vec<Diagnostic>,
}

impl Findings<'_> {
    fn push(&mut self, diagnostic: Diagnostic) {
        if !is_shipped(self.map, diagnostic.primary.span) {
            self.list.push(diagnostic);
        }
    }
}
