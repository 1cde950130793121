//! Warns about programs that are correct but unlikely to be what their author meant.
//!
//! The pass reads a checked program, changes nothing and reports no error. Every kind of warning has a code, by which
//! it can be disabled:
//!
//! | code | what |
//! |---|---|
//! | `uninitialized` | a variable or `out` parameter is read, and surely or possibly has no value yet |
//! | `uninitialized-out` | an `out` parameter never gets a value |
//! | `invalid-header` | a field of a header that is surely invalid is read or written |
//! | `constant-comparison` | a comparison whose outcome the operands' types and constants decide |
//! | `missing-default` | a `select` without `default` whose cases leave values out |
//! | `unreachable` | a `select` case or a table entry after others that match everything it matches |
//! | `deprecated` | a call of what its declaration calls deprecated |
//!
//! Files that ship with the compiler are exempt. Where the pass is not certain, it reports nothing: users disable a
//! warning for good after one false positive.

mod compare;
mod cover;
mod exhaustive;
mod flow;
mod state;
mod walk;

use diagnostics::{Diagnostic, Diagnostics, SourceMap, Span};

use crate::typed::Program;

/// Maximum number of steps. A step is a statement, or work on the states of a few parts of variables. Programs that
/// need more (nested loops, many parser states, branches among very many variables) are abandoned.
const MAX_STEPS: u32 = 2_000_000;

/// Reports likely mistakes in a checked program.
pub(crate) fn lint(program: &Program, map: &SourceMap, diagnostics: &mut Diagnostics) {
    let mut findings = Warnings { map, list: Vec::new() };
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
struct Warnings<'a> {
    map: &'a SourceMap,
    list: Vec<Diagnostic>,
}

impl Warnings<'_> {
    fn push(&mut self, diagnostic: Diagnostic) {
        if !is_shipped(self.map, diagnostic.primary.span) {
            self.list.push(diagnostic);
        }
    }
}
