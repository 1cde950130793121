//! IR text: what reads and validates prints and reads back as the same program, and runs whatever packet comes.

use std::sync::Arc;

use source::{Diagnostics, SourceMap};

use super::{Reached, Target, frontend, packets};
use crate::random::Random;
use crate::{corpus, program, worker};

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
pub struct Ir {
    inputs: Vec<Vec<u8>>,
}

impl Ir {
    pub fn new() -> Ir {
        let mut inputs = corpus::contents(".ir");
        let sources = corpus::contents(".p4").into_iter().map(|text| String::from_utf8_lossy(&text).into_owned());
        for text in sources.chain((0..20).map(program::generate)) {
            if let Some(program) = frontend::program(&text) {
                inputs.push(program.to_string().into_bytes());
            }
        }
        Ir { inputs }
    }
}

impl Target for Ir {
    fn seeds(&self) -> Vec<Vec<u8>> {
        self.inputs.clone()
    }

    fn generate(&mut self, random: &mut Random) -> Vec<u8> {
        worker::mutated(&self.inputs, random)
    }

    fn run(&mut self, input: &[u8]) -> Vec<u64> {
        let mut reached = Reached::default();
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let text = String::from_utf8_lossy(input);
        let file = map.add("fuzz.ir", text.as_ref());
        let program = ::ir::parse(&map, file, &mut diagnostics);
        assert_eq!(
            program.is_none(),
            diagnostics.has_errors(),
            "a program is given if and only if there is no mistake"
        );
        reached.findings(&map, &diagnostics);
        let Some(program) = program else { return reached.list() };
        let printed = program.to_string();
        reads_back(&printed, &program);
        match ::ir::validate(&program) {
            Ok(()) => {
                reached.instructions(&printed);
                let program = Arc::new(program);
                let mut random = Random::new(printed.len() as u64);
                if let Some(mut run) = packets::Run::new(program, 1) {
                    run.entries(&mut random, 8);
                    for size in [0, 1, 14, 64, 200] {
                        let data = random.bytes(size);
                        run.packet(size as u32 % 4, data);
                    }
                }
            }
            Err(violations) => {
                for violation in violations {
                    reached.add(format!("{:?}", violation.rule));
                }
            }
        }
        reached.list()
    }

    fn keep(&mut self, input: Vec<u8>) {
        worker::remember(&mut self.inputs, input);
    }
}
