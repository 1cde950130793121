//! Machine code that is compiled while a switch already runs.
//!
//! ```text
//!   switch:  take_compile_job ──> interprets ──────────────────────> install ──> runs machine code
//!   driver:        └──> another thread: job.run(is_cancelled) ──> code ┘ between two batches
//! ```
//!
//! A switch starts no thread. Its driver takes the job, runs it in a thread of its own, and gives the result back.

use std::any::Any;
use std::fmt;
use std::sync::atomic::AtomicBool;

type Compile = dyn FnOnce(&AtomicBool) -> CompiledCode + Send + Sync;

/// The compilation of a switch's program. It needs nothing of the switch.
pub struct CompileJob(Box<Compile>);

impl CompileJob {
    /// Creates a job. `compile` may give up when its argument becomes true: nobody needs the code any more.
    pub fn new(compile: impl FnOnce(&AtomicBool) -> CompiledCode + Send + Sync + 'static) -> CompileJob {
        CompileJob(Box::new(compile))
    }

    /// Compiles. The result goes to [`PacketSwitch::install`](crate::PacketSwitch::install).
    pub fn run(self, is_cancelled: &AtomicBool) -> CompiledCode {
        (self.0)(is_cancelled)
    }
}

impl fmt::Debug for CompileJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CompileJob")
    }
}

/// The result of a [`CompileJob`], which only a switch of the same type can use.
pub struct CompiledCode(Box<dyn Any + Send>);

impl CompiledCode {
    /// Wraps what a switch makes of its program.
    pub fn new(code: impl Any + Send) -> CompiledCode {
        CompiledCode(Box::new(code))
    }

    /// Returns what was wrapped; `None` if it is of another type.
    pub fn into_inner<T: Any>(self) -> Option<T> {
        self.0.downcast().ok().map(|code| *code)
    }
}

impl fmt::Debug for CompiledCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CompiledCode")
    }
}

/// The effect of [`PacketSwitch::install`](crate::PacketSwitch::install).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Takeover {
    /// Packets run as machine code from the next batch on.
    Compiled,
    /// The program cannot become machine code, for this reason. Packets are interpreted as before.
    Interpreted(String),
    /// The code is not of the program that runs. Nothing has changed.
    OtherProgram,
}
