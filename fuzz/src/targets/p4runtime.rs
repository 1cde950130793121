//! Calls of controllers, as scripts of messages: the server executes or refuses each request, and its state is what it
//! reports. The properties that must hold are in `p4runtime_server::testing`.

use std::sync::{Arc, OnceLock};

use ::p4runtime_server::testing::{EVERY, P4Info, TestTarget, script};
use ::switch::BuildError;
use compiler::{Architecture, Source};
use ir::Program;
use v1model::{Config, Executor, Switch, V1Model};

use super::{Reached, Target};
use crate::random::Random;
use crate::{mutate, worker};

/// The interpreter of v1model.
struct V1ModelTarget;

impl TestTarget for V1ModelTarget {
    type Switch = Switch;

    fn architecture() -> &'static dyn Architecture {
        &V1Model
    }

    fn every() -> (Arc<Program>, P4Info) {
        static COMPILED: OnceLock<(Arc<Program>, P4Info)> = OnceLock::new();
        let compile = || {
            let compiled = compiler::expect_program(&Source::without_files("every.p4", EVERY), &V1Model);
            (Arc::new(compiled.ir), compiled.p4info)
        };
        COMPILED.get_or_init(compile).clone()
    }

    fn build(program: Arc<Program>) -> Result<Switch, BuildError> {
        let config = Config { executor: Executor::Interpreter, ..Config::with_ports(4) };
        Ok(Switch::new(program, config)?)
    }
}

/// Scripts of calls.
pub struct Calls {
    /// Scripts that reached something.
    inputs: Vec<Vec<u8>>,
}

impl Calls {
    pub fn new() -> Calls {
        Calls { inputs: (1..=50).map(script::generate::<V1ModelTarget>).collect() }
    }
}

impl Target for Calls {
    fn seeds(&self) -> Vec<Vec<u8>> {
        self.inputs.clone()
    }

    fn generate(&mut self, random: &mut Random) -> Vec<u8> {
        if random.one_in(3) {
            return script::generate::<V1ModelTarget>(random.next());
        }
        let mut input = random.pick(&self.inputs).clone();
        if random.one_in(4) {
            // The calls of one after those of another.
            input.extend(random.pick(&self.inputs));
        }
        for _ in 0..=random.below(6) {
            mutate::bytes(&mut input, random);
        }
        input
    }

    fn run(&mut self, input: &[u8]) -> Vec<u64> {
        let mut reached = Reached::default();
        script::run::<V1ModelTarget>(input).into_iter().for_each(|what| reached.add(what));
        reached.list()
    }

    fn keep(&mut self, input: Vec<u8>) {
        worker::remember(&mut self.inputs, input);
    }
}
