//! The switch on which random calls run, for the tests of this crate and for the fuzzer.

use std::sync::{Arc, OnceLock};

use compiler::{Architecture, Source};
use ir::Program;
use p4runtime_server::testing::{EVERY, P4Info, TestTarget};
use switch::BuildError;
use v1model::{Config, Executor, Switch, V1Model};

/// The interpreter of v1model.
pub struct V1ModelTarget;

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
