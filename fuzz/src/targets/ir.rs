//! IR text: what reads and validates prints and reads back as the same program, and runs whatever packet comes.

use std::sync::Arc;

use diagnostics::{Diagnostics, FileId, SourceMap};

use super::text::{Format, Texts};
use super::{Reached, frontend, packets};
use crate::random::Random;
use crate::{corpus, program};

/// A program's printed form reads back as the same program.
pub fn reads_back(text: &str, program: &::ir::Program) {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let file = map.add("printed.ir", text);
    let again = ::ir::parse(&map, file, &mut diagnostics);
    let Some(again) = again else {
        panic!("a printed program does not read back:\n{}", diagnostics.render(&map, false));
    };
    assert_eq!(again.to_string(), text, "a printed program reads back as one that prints differently");
    assert!(&again == program, "a printed program reads back as another one that prints the same:\n{text}");
}

/// IR text.
pub struct Ir;

/// Mutations of the repository's IR, and of what its programs and generated ones compile to.
pub fn target() -> Texts<Ir> {
    let mut inputs = corpus::contents(".ir");
    let sources = corpus::contents(".p4").into_iter().map(|text| String::from_utf8_lossy(&text).into_owned());
    for text in sources.chain((0..20).map(program::generate)) {
        if let Some(program) = frontend::program(&text) {
            inputs.push(program.to_string().into_bytes());
        }
    }
    Texts::new(Ir, inputs)
}

impl Format for Ir {
    type Value = ::ir::Program;

    fn file_name(&self) -> &'static str {
        "fuzz.ir"
    }

    fn read(&self, map: &SourceMap, file: FileId, diagnostics: &mut Diagnostics) -> Option<::ir::Program> {
        ::ir::parse(map, file, diagnostics)
    }

    fn hold(&self, program: ::ir::Program, reached: &mut Reached) {
        let printed = program.to_string();
        reads_back(&printed, &program);
        if let Err(violations) = ::ir::validate(&program) {
            violations.iter().for_each(|violation| reached.add(format!("{:?}", violation.rule)));
            return;
        }
        reached.instructions(&printed);
        let mut random = Random::new(printed.len() as u64);
        if let Some(mut run) = packets::Run::new(Arc::new(program), 1) {
            run.entries(&mut random, 8);
            for size in [0, 1, 14, 64, 200] {
                let data = random.bytes(size);
                run.packet(size as u32 % 4, data);
            }
        }
    }
}
