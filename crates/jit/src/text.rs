//! Programs for unit tests, from the text of the IR.

use diagnostics::{Diagnostics, SourceMap};
use ir::Program;

/// The program of a text.
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
