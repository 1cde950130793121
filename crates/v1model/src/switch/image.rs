//! Prepares programs once for any number of switches.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

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
    /// Whether each switch has its program compiled while it interprets packets.
    pub(super) is_deferred: bool,
}

impl Image {
    /// Prepares a program for switches with this executor.
    ///
    /// # Errors
    /// If the program is not a v1model program, or the executor refuses it.
    pub fn new(program: Arc<Program>, executor: Executor) -> Result<Image, LoadError> {
        Self::make(program, executor, None)
    }

    /// Prepares a program whose switches run at once: under [`Executor::Auto`] they interpret packets until
    /// [`Switch::install`](super::Switch::install) brings the machine code. Other executors are prepared as by
    /// [`Image::new`].
    ///
    /// # Errors
    /// As [`Image::new`].
    pub fn deferred(program: Arc<Program>, executor: Executor) -> Result<Image, LoadError> {
        if executor != Executor::Auto {
            return Self::new(program, executor);
        }
        let layout = Layout::new(&program)?;
        Ok(Image { program, layout, machine: None, unfit: None, executor, is_deferred: true })
    }

    pub(super) fn make(
        program: Arc<Program>,
        executor: Executor,
        probe: Option<jit::Probe>,
    ) -> Result<Image, LoadError> {
        let layout = Layout::new(&program)?;
        let compile = || Machine::new(&program, &layout, probe, &AtomicBool::new(false));
        let (machine, unfit) = match executor {
            Executor::Interpreter => (None, None),
            Executor::Jit => {
                let made = compile();
                (Some(made.map_err(|unsupported| LoadError::Program(unsupported.to_string()))?), None)
            }
            Executor::Auto => match compile() {
                Ok(machine) => (Some(machine), None),
                Err(unsupported) => (None, Some(unsupported.to_string().into())),
            },
        };
        Ok(Image { program, layout, machine: machine.map(Arc::new), unfit, executor, is_deferred: false })
    }

    /// Whether the image was made for this configuration.
    pub(super) fn suits(&self, config: &Config) -> bool {
        self.executor == config.executor
    }
}
