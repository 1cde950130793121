//! P4 text as a checked program.

use compiler::Source;
use diagnostics::{Diagnostics, SourceMap};
use v1model::V1Model;

/// Checks a v1model program, which must be valid.
pub fn checked(name: &str, text: &str) -> (p4::typed::Program, SourceMap) {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let typed = compiler::check(&Source::new(name, text), &V1Model, &mut map, &mut diagnostics);
    (typed.unwrap_or_else(|| panic!("{}", diagnostics.render(&map, false))), map)
}
