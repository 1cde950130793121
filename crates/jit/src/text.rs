//! Parses IR programs for unit tests.

use diagnostics::{Diagnostics, SourceMap};
use ir::Program;

/// Parses a program from the text form of the IR.
pub(crate) fn program(text: &str) -> Program {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let file = map.add("test.ir", text);
    let program = ir::parse(&map, file, &mut diagnostics);
    let program = program.unwrap_or_else(|| panic!("{}\n{text}", diagnostics.render(&map, false)));
    if let Err(violations) = ir::validate(&program) {
        panic!("{}\n{text}", violations[0]);
    }
    program
}
