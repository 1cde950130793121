//! Suggests the `#include` of the architecture's file to programs that lack it.

use std::collections::BTreeSet;
use std::sync::Arc;

use diagnostics::{Diagnostic, Diagnostics, SourceMap};
use p4::ast::{Decl, DeclKind};

use crate::{Architecture, Source};

/// Code of the diagnostics of names that are not declared.
const UNKNOWN: &str = "unknown-name";

/// Suggests an `#include` for each unknown name that is declared in a file of the architecture.
pub(crate) fn suggest(architecture: &dyn Architecture, map: &SourceMap, diagnostics: &mut Diagnostics) {
    // A name that is declared too late has the declaration as its second place.
    let is_unknown = |finding: &Diagnostic| finding.code == UNKNOWN && finding.secondary.is_empty();
    if !diagnostics.iter().any(is_unknown) {
        return;
    }
    // A program may bring a file of its own with this name.
    let is_included =
        |file: &str| map.names().any(|name| name.trim_matches(['<', '>']).rsplit('/').next() == Some(file));
    for (file, _) in architecture.includes().iter().filter(|(file, _)| !is_included(file)) {
        let names = declared_in(file, architecture);
        diagnostics.set_help(UNKNOWN, |finding| {
            let is_its = is_unknown(finding) && names.contains(map.text(finding.primary.span));
            is_its.then(|| format!("it is declared in `{file}`: write `#include <{file}>`"))
        });
    }
}

/// Returns the names that a file of the architecture declares itself, without those of the files that it includes.
fn declared_in(file: &str, architecture: &dyn Architecture) -> BTreeSet<Arc<str>> {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let text = format!("#include <{file}>\n");
    let source = Source::without_files("a program", &text);
    let program =
        p4::parse(&mut map, source.name, source.text, &source.options(architecture), source.loader, &mut diagnostics);
    let own = program.decls.iter().filter(|decl| map.file(decl.span.file).name() == format!("<{file}>"));
    own.flat_map(names).collect()
}

fn names(decl: &Decl) -> Vec<Arc<str>> {
    match &decl.kind {
        DeclKind::MatchKinds(kinds) => kinds.iter().map(|(_, kind)| kind.name.clone()).collect(),
        _ => decl.name().map(|name| name.name.clone()).into_iter().collect(),
    }
}
