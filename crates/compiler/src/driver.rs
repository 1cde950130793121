//! Runs the steps of a compilation in order. The crate's documentation has the rules.

use diagnostics::{Diagnostics, SourceMap};
use p4::lex::Token;
use p4::typed::{self, Type};
use p4runtime_proto::config::P4Info;

use crate::{Architecture, Source, missing_include};

/// Codes of errors after which the declarations of an included file are missing.
const LACKS_FILE: [&str; 2] = ["include-not-found", "include-unreadable"];

/// A valid program: its pipeline IR for switches, and its P4Info for control planes.
#[derive(Clone, Debug, PartialEq)]
pub struct CompiledProgram {
    /// The pipeline IR.
    pub ir: ir::Program,
    /// The P4Info.
    pub p4info: P4Info,
}

/// Compiles a source for an architecture; `None` if an error was reported.
pub fn compile(
    source: &Source<'_>,
    architecture: &dyn Architecture,
    map: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Option<CompiledProgram> {
    let program = check(source, architecture, map, diagnostics)?;
    compile_checked(&program, architecture, map, diagnostics)
}

/// Preprocesses a source. Mistakes are reported; the tokens that could be read are the result all the same.
pub fn tokenize(
    source: &Source<'_>,
    architecture: &dyn Architecture,
    map: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Vec<Token> {
    let options = source.options(architecture);
    p4::tokenize(map, source.name, source.text, &options, source.loader, diagnostics)
}

/// Preprocesses, parses and checks a source; `None` if an error was reported.
pub fn check(
    source: &Source<'_>,
    architecture: &dyn Architecture,
    map: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Option<typed::Program> {
    let errors_before = diagnostics.error_count();
    let tokens = tokenize(source, architecture, map, diagnostics);
    let ast = p4::parse_tokens(map, &tokens, diagnostics);
    if diagnostics.iter().any(|finding| LACKS_FILE.contains(&finding.code)) {
        return None;
    }
    let program = p4::check(&ast, map, diagnostics);
    architecture.check_declarations(&ast, diagnostics);
    missing_include::suggest(architecture, map, diagnostics);
    program.filter(|_| diagnostics.error_count() == errors_before)
}

/// Preprocesses, parses, checks and lowers a source; `None` if an error was reported. A result does not mean that the
/// program is valid: P4Info and restrictions may have mistakes.
pub fn lower(
    source: &Source<'_>,
    architecture: &dyn Architecture,
    map: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Option<ir::Program> {
    let program = check(source, architecture, map, diagnostics)?;
    lower::lower(&program, architecture, map, diagnostics)
}

/// Lowers and describes a checked program; `None` if an error was reported.
pub fn compile_checked(
    program: &typed::Program,
    architecture: &dyn Architecture,
    map: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Option<CompiledProgram> {
    let errors_before = diagnostics.error_count();
    let ir = lower::lower(program, architecture, map, diagnostics);
    if !is_for(program, architecture) {
        return None;
    }
    let errors_lowered = diagnostics.error_count();
    let p4info = p4info::p4info(program, architecture, map, diagnostics);
    if diagnostics.error_count() == errors_lowered {
        check_restrictions(&p4info, map, diagnostics);
    }
    let ir = ir.filter(|_| diagnostics.error_count() == errors_before)?;
    Some(CompiledProgram { ir, p4info })
}

/// Whether a program's `main` is an instance of the architecture's package. Libraries have none.
pub fn is_for(program: &typed::Program, architecture: &dyn Architecture) -> bool {
    let main = program.main.map(|main| &program.instances[main].ty);
    matches!(main, Some(Type::Package(id)) if *program.packages[*id].name == *architecture.package())
}

/// Checks `@entry_restriction`, `@action_restriction` and `@refers_to`. Mistakes are reported at their place in the
/// program if `map` has it, else in a file that is added to `map`.
pub fn check_restrictions(p4info: &P4Info, map: &mut SourceMap, diagnostics: &mut Diagnostics) {
    p4_constraints::Checker::new(p4info, map, diagnostics);
    p4_constraints::References::new(p4info, map, diagnostics);
}

/// Compiles a source that is known to be valid: in tests and benchmarks, and for programs that ship with Triplane.
///
/// # Panics
/// If the program is not valid, with the rendered diagnostics.
pub fn expect_program(source: &Source<'_>, architecture: &dyn Architecture) -> CompiledProgram {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let program = compile(source, architecture, &mut map, &mut diagnostics);
    program.unwrap_or_else(|| panic!("{} is not valid:\n{}", source.name, diagnostics.render(&map, false)))
}
