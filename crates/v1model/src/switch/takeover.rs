//! Replaces the interpreter by machine code while the switch runs.
//!
//! Packets that wait in a queue at that moment, and packets that are traced, stay in the interpreter to their end: each
//! packet knows its executor, and both work on the same objects.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ir::Program;
use jit::Unsupported;
use switch::{CompileJob, CompiledCode, Takeover};

use super::Switch;
use super::in_place::InPlace;
use super::layout::Layout;
use super::state::Machine;

/// The outcome of a compilation, with the program that it is for.
struct CompiledProgram {
    program: Arc<Program>,
    machine: Result<Machine, Unsupported>,
}

/// Returns the job that compiles a program.
pub(super) fn compile_job(program: &Arc<Program>, layout: &Layout) -> CompileJob {
    let (program, layout) = (Arc::clone(program), layout.clone());
    CompileJob::new(move |is_cancelled: &AtomicBool| {
        let machine = Machine::new(&program, &layout, None, is_cancelled);
        CompiledCode::new(CompiledProgram { program, machine })
    })
}

impl Switch {
    /// Returns the compilation of the program, once, if packets are interpreted until it is done: see
    /// [`Image::deferred`](super::Image::deferred).
    pub fn take_compile_job(&mut self) -> Option<CompileJob> {
        self.compile_job.take()
    }

    /// Continues with the result of the job, between two batches. Tables, registers, counters, meters, queues and the
    /// packets in them stay as they are. Workers follow their owner from their next batch on.
    pub fn install(&mut self, code: CompiledCode) -> Takeover {
        let Some(CompiledProgram { program, machine }) = code.into_inner() else { return Takeover::OtherProgram };
        if !Arc::ptr_eq(&program, &self.program) {
            return Takeover::OtherProgram;
        }
        match machine {
            Ok(machine) => {
                self.run_machine(Arc::new(machine));
                self.besides_changed();
                Takeover::Compiled
            }
            Err(unsupported) => {
                let reason = unsupported.to_string();
                self.unfit = Some(reason.as_str().into());
                Takeover::Interpreted(reason)
            }
        }
    }

    /// Runs the packets that arrive from now on as machine code.
    pub(super) fn run_machine(&mut self, machine: Arc<Machine>) {
        self.in_place = Some(Box::new(InPlace::new(&machine)));
        self.machine = Some(machine);
        // Their state is that of the interpreter.
        self.spare.clear();
    }
}
