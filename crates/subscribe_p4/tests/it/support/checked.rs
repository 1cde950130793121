//! P4 text as a checked program.

use diagnostics::{Diagnostics, SourceMap};

/// A program for v1model that must be right.
pub fn checked(name: &str, text: &str) -> (p4::typed::Program, SourceMap) {
    let builtin = lower::Architecture::includes(&v1model::description::V1Model).to_vec();
    let options = p4::Options { builtin, ..p4::Options::default() };
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let ast = p4::parse(&mut map, name, text, &options, &p4::DiskLoader, &mut diagnostics);
    let typed = p4::check(&ast, &map, &mut diagnostics);
    (typed.unwrap_or_else(|| panic!("{}", diagnostics.render(&map, false))), map)
}
