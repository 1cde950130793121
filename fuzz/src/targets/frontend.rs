//! P4 text through everything that reads it: preprocessor, parser, checker, compiler, and the IR's own validator.

use compiler::Architecture;
use diagnostics::{Diagnostics, SourceMap};
use v1model::V1Model;

use super::{FuzzTarget, Reached};
use crate::random::Random;
use crate::{corpus, program, worker};

/// The result of compiling a program.
pub struct Compiled {
    /// The IR, if there was no mistake.
    pub program: Option<::ir::Program>,
    /// Findings of all stages.
    pub diagnostics: Diagnostics,
    /// The program's text.
    pub map: SourceMap,
    /// The last stage that was reached: 0 for syntax, 1 for types, 2 for the compiler, 3 for all of it.
    pub stage: u32,
}

/// Compiles a program, and checks what each stage promises about findings.
pub fn compile(text: &str) -> Compiled {
    // Files that are included come with the input or not at all: an input means the same on every machine.
    let options =
        p4::PreprocessorOptions { builtin: V1Model.includes().to_vec(), ..p4::PreprocessorOptions::default() };
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let ast = p4::parse(&mut map, "fuzz.p4", text, &options, &p4::NoFiles, &mut diagnostics);
    let syntax = diagnostics.error_count();
    // Programs with syntax errors are checked, too: the checker must cope with the result of the parser's recovery.
    let typed = p4::check(&ast, &map, &mut diagnostics);
    let types = diagnostics.error_count();
    assert!(typed.is_some() || types > 0, "the checker gave no program and no reason");
    let typed = typed.filter(|_| types == 0);
    let program = typed.and_then(|typed| {
        let program = compiler::compile_checked(&typed, &V1Model, &mut map, &mut diagnostics);
        assert_eq!(program.is_some(), !diagnostics.has_errors(), "a program and an error, or no program and no reason");
        program.map(|compiled| compiled.ir)
    });
    let stage = match (syntax, types, &program) {
        (1.., _, _) => 0,
        (_, 1.., _) => 1,
        (_, _, None) => 2,
        _ => 3,
    };
    Compiled { program, diagnostics, map, stage }
}

/// The program that this text is, if it is one and nothing goes wrong on the way. For targets that want to have
/// programs; what goes wrong is the business of this one.
pub fn program(text: &str) -> Option<::ir::Program> {
    std::panic::catch_unwind(|| compile(text).program).ok().flatten()
}

/// P4 text.
pub struct Frontend {
    inputs: Vec<Vec<u8>>,
}

impl Frontend {
    pub fn new() -> Frontend {
        Frontend { inputs: corpus::contents(".p4") }
    }
}

impl FuzzTarget for Frontend {
    fn seeds(&self) -> Vec<Vec<u8>> {
        self.inputs.clone()
    }

    fn generate(&mut self, random: &mut Random) -> Vec<u8> {
        match random.below(4) {
            0 => program::generate(random.next()).into_bytes(),
            1 => {
                let (one, other) = (program::generate(random.next()), program::generate(random.next()));
                crate::mutate::any(one.as_bytes(), other.as_bytes(), random)
            }
            _ => worker::mutated(&self.inputs, random),
        }
    }

    fn run(&mut self, input: &[u8]) -> Vec<u64> {
        let mut reached = Reached::default();
        let compiled = compile(&String::from_utf8_lossy(input));
        reached.add(compiled.stage);
        reached.findings(&compiled.map, &compiled.diagnostics);
        if let Some(program) = compiled.program {
            let broken = ::ir::validate(&program).err().unwrap_or_default();
            assert!(broken.is_empty(), "the compiler broke rules of the IR: {broken:#?}");
            let text = program.to_string();
            reached.instructions(&text);
            super::ir::reads_back(&text, &program);
        }
        reached.list()
    }

    fn keep(&mut self, input: Vec<u8>) {
        worker::remember(&mut self.inputs, input);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_generated_programs_are_right() {
        let mut wrong = String::new();
        let right = (0..100).filter(|seed| {
            let compiled = compile(&program::generate(*seed));
            if compiled.program.is_none() {
                let shown = compiled.diagnostics.render(&compiled.map, false);
                let first: Vec<&str> = shown.lines().take(8).collect();
                wrong += &format!("seed {seed}\n{}\n\n", first.join("\n"));
            }
            compiled.program.is_some()
        });
        let right = right.count();
        assert!(right >= 90, "{right} of 100 compile; these do not:\n{wrong}");
    }
}
