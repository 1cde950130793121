//! Prepares programs once for any number of switches.

use std::sync::Arc;

use ir::Program;

use super::config::{Config, Executor};
use super::layout::{Layout, LoadError};
use super::state::Machine;

/// A v1model program that is ready to run: checked and, if the executor needs it, compiled. Switches of one image
/// ([`super::Switch::from_image`]) have their own state and share the machine code. Clones are the same image.
#[derive(Clone, Debug)]
pub struct Image {
    pub(super) program: Arc<Program>,
    pub(super) layout: Layout,
    pub(super) machine: Option<Arc<Machine>>,
    /// The reason why there is no machine code although the interpreter was not requested.
    pub(super) unfit: Option<Arc<str>>,
    executor: Executor,
}

impl Image {
    /// Prepares a program for switches with this executor.
    ///
    /// # Errors
    /// If the program is not a v1model program, or the executor refuses it.
    pub fn new(program: Arc<Program>, executor: Executor) -> Result<Image, LoadError> {
        Self::make(program, executor, None)
    }

    pub(super) fn make(
        program: Arc<Program>,
        executor: Executor,
        probe: Option<jit::Probe>,
    ) -> Result<Image, LoadError> {
        let layout = Layout::new(&program)?;
        let (machine, unfit) = match executor {
            Executor::Interpreter => (None, None),
            Executor::Jit => {
                let made = Machine::new(&program, &layout, probe);
                (Some(made.map_err(|unsupported| LoadError::Program(unsupported.to_string()))?), None)
            }
            Executor::Auto => match Machine::new(&program, &layout, probe) {
                Ok(machine) => (Some(machine), None),
                Err(unsupported) => (None, Some(unsupported.to_string().into())),
            },
        };
        Ok(Image { program, layout, machine: machine.map(Arc::new), unfit, executor })
    }

    /// Whether the image was made for this configuration.
    pub(super) fn suits(&self, config: &Config) -> bool {
        self.executor == config.executor
    }
}
