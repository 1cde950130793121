//! Compiles programs to machine code, and runs them.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cranelift_codegen::Context;
use cranelift_codegen::ir::{AbiParam, Signature, types};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, default_libcall_names};
use engine::{Ending, Now, Objects, RECORD_NO_ACTION};
use ir::{FieldListItem, LocId, Program, SlotId, TableId};

use crate::calls;
use crate::emit::ProgramFacts;
use crate::generate::{BatchFunctions, CopyFunction, ProgramSource, UnitFunctions};
use crate::host::Host;
use crate::layout::{FrameLayout, word};
use crate::packet::{Packet, PacketTemplate, SlotSet};
use crate::scout::{PrefetchLayout, RESULTS, Row};
use crate::{Plan, Probe, Step, Unsupported, code, walk};

/// Optimisation goal of the code generator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Speed {
    /// Short compile time.
    Compile,
    /// Fast code.
    #[default]
    Run,
}

/// Number of instructions and blocks from which the compile time of steps matters more than registers.
const LARGE: usize = 1500;

impl Speed {
    /// Whether code of steps is generated in the way that saves compile time: this is the goal, or there is much of it.
    pub fn saves_compile_time(self, program: &Program, steps: &[Step]) -> bool {
        self == Speed::Compile || walk::instructions(program, steps) > LARGE
    }
}

/// The way in which a unit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitOutcome {
    /// All steps completed; the last body ended like this.
    Done(Ending),
    /// The step with this index ended the processing of the packet.
    Failed(usize, Ending),
    /// The step with this index stopped the unit.
    Stopped(usize),
}

pub(crate) type Code = unsafe extern "C" fn(*mut u64) -> u64;
/// Code for copies of a unit. Arguments: the frame and the row of the copy.
pub(crate) type CopyCode = unsafe extern "C" fn(*mut u64, *mut Row) -> u64;
/// Batch loop of a unit. Arguments: the frame, the rows and the prefetch memory of a batch, the row of the first packet
/// and the row after the last. Returns the row at which it stopped, or the row after the last packet.
pub(crate) type BatchCode = unsafe extern "C" fn(*mut u64, *mut Row, *mut u64, *mut Row, *mut Row) -> *mut Row;
/// Scout of a unit. Arguments: the frame, the rows and the prefetch memory of a batch, and the number of packets.
pub(crate) type ScoutCode = unsafe extern "C" fn(*mut u64, *mut Row, *mut u64, usize) -> u64;

/// The code that runs a fresh unit on batches.
#[derive(Debug)]
pub(crate) struct BatchLoop {
    pub code: BatchCode,
    /// Key-prefetch pass; `None` if no table is prefetched.
    pub scout: Option<ScoutCode>,
    /// Key-prefetch pass that follows earlier results, present if a key depends on one.
    pub follow: Option<ScoutCode>,
    pub prefetch: PrefetchLayout,
}

/// The code that runs a unit on copies of a packet.
#[derive(Debug)]
pub(crate) struct CopyUnit {
    pub code: CopyCode,
    /// Words of the frame that the code may change and read.
    pub words: Vec<Range<usize>>,
}

/// Maximum size in bytes of a table, records included, that stays in near caches regardless of other data. Looking up
/// packet by packet in such a table is cheaper than a key-prefetch pass.
const NEAR_BYTES: usize = 1 << 20;
/// Maximum number of IR nodes that are compiled.
const MAX_NODES: usize = 400_000;

/// A program in machine code.
pub struct NativeProgram {
    /// Code for single packets; `None` for units that run on batches only.
    units: Vec<Option<Code>>,
    /// Batch loops, by unit.
    loops: Vec<Option<BatchLoop>>,
    /// Code for copies, by unit.
    copies: Vec<Option<CopyUnit>>,
    /// Whether each unit is fresh.
    fresh: Vec<bool>,
    template: Arc<PacketTemplate>,
    near_bytes: usize,
    /// Owner of the executable memory. Taken by `drop`.
    module: Option<JITModule>,
}

// SAFETY: the code is immutable from here on, and nothing of the module but the memory of the code is used.
unsafe impl Send for NativeProgram {}
// SAFETY: as above; running takes `&self` and writes only to the packet and the objects.
unsafe impl Sync for NativeProgram {}

impl std::fmt::Debug for NativeProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NativeProgram").field("units", &self.units.len()).finish_non_exhaustive()
    }
}

pub(crate) fn machine(error: impl std::fmt::Display) -> Unsupported {
    Unsupported::Machine(error.to_string())
}

/// Set by [`verify_code`].
static VERIFIES_CODE: AtomicBool = AtomicBool::new(false);

/// Checks all generated code with Cranelift's verifier from now on, in this process. For tests and fuzzers of the code
/// generator, since it lengthens every compilation.
pub fn verify_code() {
    VERIFIES_CODE.store(true, Ordering::Relaxed);
}

fn module(speed: Speed) -> Result<JITModule, Unsupported> {
    let mut flags = settings::builder();
    let level = match speed {
        Speed::Compile => "none",
        Speed::Run => "speed",
    };
    let wanted = [
        ("opt_level", level),
        ("is_pic", "false"),
        ("use_colocated_libcalls", "false"),
        ("enable_verifier", if VERIFIES_CODE.load(Ordering::Relaxed) { "true" } else { "false" }),
        // Packet contents never decide where execution goes beyond checked bounds.
        ("enable_heap_access_spectre_mitigation", "false"),
        ("enable_table_access_spectre_mitigation", "false"),
    ];
    for (name, value) in wanted {
        flags.set(name, value).map_err(machine)?;
    }
    let isa = cranelift_native::builder().map_err(machine)?;
    let isa = isa.finish(settings::Flags::new(flags)).map_err(machine)?;
    let mut builder = JITBuilder::with_isa(isa, default_libcall_names());
    for call in calls::all() {
        builder.symbol(call.name, call.address);
    }
    Ok(JITModule::new(builder))
}

/// Declares the functions of [`calls`].
pub(crate) fn declare(module: &mut JITModule) -> Result<HashMap<&'static str, FuncId>, Unsupported> {
    let mut ids = HashMap::new();
    for call in calls::all() {
        let mut signature: Signature = module.make_signature();
        signature.params.extend((0..call.params).map(|_| AbiParam::new(types::I64)));
        if call.returns {
            signature.returns.push(AbiParam::new(types::I64));
        }
        let id = module.declare_function(call.name, Linkage::Import, &signature).map_err(machine)?;
        ids.insert(call.name, id);
    }
    Ok(ids)
}

/// Returns the slots that field lists preserve.
fn kept(program: &Program) -> Vec<SlotId> {
    let kept = program.field_lists.values().flatten();
    kept.filter_map(|kept| if let FieldListItem::Slot(slot) = kept { Some(*slot) } else { None }).collect()
}

/// Estimates the amount of code that a program will become, in IR nodes.
fn nodes(program: &Program) -> usize {
    let mut count = 0;
    for body in program.bodies.values() {
        crate::walk::body(program, body, &mut |_| count += 1);
        count += body.blocks.values().map(|block| block.instrs.len() + 1).sum::<usize>();
    }
    count
}

impl NativeProgram {
    /// Compiles the units of a plan.
    ///
    /// # Errors
    /// Returns an error if the program is too large or the machine is not supported.
    pub fn new(program: &Arc<Program>, plan: &Plan, speed: Speed) -> Result<NativeProgram, Unsupported> {
        Self::make(program, plan, speed, None, &AtomicBool::new(false))
    }

    /// Compiles like [`NativeProgram::new`], unless `is_cancelled` becomes true meanwhile.
    ///
    /// # Errors
    /// As [`NativeProgram::new`], and [`Unsupported::Cancelled`], at the latest when the function is complete that is
    /// being compiled.
    pub fn cancellable(
        program: &Arc<Program>,
        plan: &Plan,
        speed: Speed,
        is_cancelled: &AtomicBool,
    ) -> Result<NativeProgram, Unsupported> {
        Self::make(program, plan, speed, None, is_cancelled)
    }

    /// Compiles like [`NativeProgram::new`], with code that calls `probe` whenever a part of it has ended.
    ///
    /// # Errors
    /// As [`NativeProgram::new`].
    pub fn probed(
        program: &Arc<Program>,
        plan: &Plan,
        speed: Speed,
        probe: Probe,
    ) -> Result<NativeProgram, Unsupported> {
        Self::make(program, plan, speed, Some(probe), &AtomicBool::new(false))
    }

    fn make(
        program: &Arc<Program>,
        plan: &Plan,
        speed: Speed,
        probe: Option<Probe>,
        is_cancelled: &AtomicBool,
    ) -> Result<NativeProgram, Unsupported> {
        let actions = program.tables.values().map(|table| table.actions.len()).max().unwrap_or(0);
        if nodes(program) > MAX_NODES || actions as u64 >= RECORD_NO_ACTION {
            return Err(Unsupported::TooLarge);
        }
        let is_word = |slot: &SlotId| program.slots[*slot].width <= 64;
        assert!(plan.given.iter().all(is_word), "slots that are given have up to 64 bits");
        let results = plan.units.iter().filter_map(|unit| unit.results.as_ref());
        assert!(results.map(Vec::len).all(|count| count <= RESULTS), "there is room for the results");
        assert!(plan.units.iter().all(|unit| unit.steps.len() < 1 << 16), "there is room for the number of a step");
        let has_scratch = plan.units.iter().any(|unit| speed.saves_compile_time(program, &unit.steps));
        let layout = FrameLayout::new(program, &plan.given, &kept(program), has_scratch)?;
        let program_facts = ProgramFacts::new(program, &layout, plan);
        let mut module = module(speed)?;
        // From here on, an error must free the code generated so far.
        let source = ProgramSource { program, plan, layout: &layout, facts: &program_facts, speed, probe };
        let (mut units, mut loops, mut copies) = (Vec::new(), Vec::new(), Vec::new());
        let result = source.generate(&mut module, is_cancelled).map(|functions| {
            for UnitFunctions { single, batch, copy } in functions {
                let address = |id| module.get_finalized_function(id);
                // SAFETY: the address is that of a function with this signature, which `generate` has just compiled.
                units.push(single.map(|id| unsafe { std::mem::transmute::<*const u8, Code>(address(id)) }));
                loops.push(batch.map(|BatchFunctions { code, scout, follow, prefetch }| {
                    // SAFETY: as above.
                    let code = unsafe { std::mem::transmute::<*const u8, BatchCode>(address(code)) };
                    // SAFETY: as above.
                    let to_scout = |id| unsafe { std::mem::transmute::<*const u8, ScoutCode>(address(id)) };
                    BatchLoop { code, scout: scout.map(to_scout), follow: follow.map(to_scout), prefetch }
                }));
                copies.push(copy.map(|CopyFunction { code, words }| {
                    // SAFETY: as above.
                    let code = unsafe { std::mem::transmute::<*const u8, CopyCode>(address(code)) };
                    CopyUnit { code, words }
                }));
            }
        });
        let template = Arc::new(PacketTemplate {
            program: program.clone(),
            no_error: program_facts.no_error,
            preserved_headers: program_facts.preserved_headers.iter().copied().collect(),
            layout,
        });
        let fresh = plan.units.iter().map(|unit| unit.fresh).collect();
        let compiled =
            NativeProgram { units, loops, copies, fresh, template, near_bytes: NEAR_BYTES, module: Some(module) };
        result.map(|()| compiled)
    }

    /// Sets the size in bytes up to which a table counts as near, so that batches search it inline. Several tables are
    /// near if together they fit in a quarter of this size; otherwise each table that fits in a 64th of it is near. The
    /// value affects timing only. With 0, all tables are looked up ahead of the packets, except arrays where there are
    /// several tables.
    #[must_use]
    pub fn with_near_bytes(mut self, near_bytes: usize) -> NativeProgram {
        self.near_bytes = near_bytes;
        self
    }

    /// Creates a packet in the state before the parser.
    pub fn packet(&self, data: Vec<u8>) -> Packet {
        Packet::new(&self.template, data)
    }

    /// Returns slots as a set for [`Packet::clear_slots`].
    pub fn slot_set(&self, slots: &[SlotId]) -> SlotSet {
        SlotSet::new(&self.template.layout, slots)
    }

    /// Returns the compiled program.
    pub fn program(&self) -> &Arc<Program> {
        &self.template.program
    }

    /// Runs a unit on a packet that this program has created.
    ///
    /// # Panics
    /// Panics if there is no such unit or it [runs on batches only](crate::Unit::is_batched_only), the packet belongs
    /// to another program, or the unit is not fresh and none has run since the packet was reset.
    #[inline]
    pub fn run(&self, unit: usize, packet: &mut Packet, objects: &mut Objects, now: Now) -> UnitOutcome {
        objects.advance_clock(now.ns);
        assert!(Arc::ptr_eq(&self.template, packet.template()), "the packet was made by this program");
        assert!(packet.primed || self.is_fresh(unit), "a fresh unit comes first");
        packet.primed = true;
        let base = packet.data.as_mut_ptr();
        // SAFETY: the packet is its data from `start` on, which is borrowed exclusively here.
        unsafe { self.run_at(unit, packet, base, objects, now) }
    }

    /// Runs a unit on a packet in the buffer at `base`.
    ///
    /// # Safety
    /// `packet` belongs to this program, and its frame says where the packet lies: in a buffer that begins at `base`,
    /// which nothing else accesses during the call.
    #[inline]
    pub(crate) unsafe fn run_at(
        &self,
        unit: usize,
        packet: &mut Packet,
        base: *mut u8,
        objects: &mut Objects,
        now: Now,
    ) -> UnitOutcome {
        // SAFETY: the packet is borrowed exclusively, and only its frame is used below.
        let mut host = unsafe { Host::new(&self.template, packet, objects, now.ns) };
        let code = self.units[unit].expect("the unit runs on single packets");
        let frame = &mut packet.frame;
        frame[word::HOST] = &raw mut host as u64;
        frame[word::BUFFER] = base as u64;
        frame[word::NOW_US] = now.ns / 1000;
        // SAFETY: the code was generated for a validated program and frames of this layout. It writes to the frame, to
        // the packet within the length in the frame, and to the objects that the host lends. Host, frame and data
        // outlive the call and are borrowed exclusively here, by the caller's promise.
        let ending = unsafe { code(frame.as_mut_ptr()) };
        outcome(ending, frame[word::STEP] as usize, || frame[word::BLAME] as u32)
    }

    pub(crate) fn near_bytes(&self) -> usize {
        self.near_bytes
    }

    pub(crate) fn template(&self) -> &Arc<PacketTemplate> {
        &self.template
    }

    pub(crate) fn is_fresh(&self, unit: usize) -> bool {
        self.fresh[unit]
    }

    /// Returns the code for copies of a unit, if it runs on them.
    pub(crate) fn copy_unit(&self, unit: usize) -> Option<&CopyUnit> {
        self.copies[unit].as_ref()
    }

    /// Returns the batch code of a unit, if it can run on batches.
    pub(crate) fn batches(&self, unit: usize) -> Option<&BatchLoop> {
        self.loops[unit].as_ref()
    }
}

/// Decodes a return code, with the step and the blamed location or table.
#[inline(always)]
pub(crate) fn outcome(ending: u64, step: usize, blame: impl Fn() -> u32) -> UnitOutcome {
    match ending {
        code::RETURN => UnitOutcome::Done(Ending::Return),
        code::STOPPED => UnitOutcome::Stopped(step),
        _ => rare_outcome(ending, step, blame()),
    }
}

#[cold]
#[inline(never)]
fn rare_outcome(ending: u64, step: usize, blame: u32) -> UnitOutcome {
    match ending {
        code::EXIT => UnitOutcome::Done(Ending::Exit),
        code::REJECT => UnitOutcome::Done(Ending::Reject),
        code::OUT_OF_FUEL => UnitOutcome::Failed(step, Ending::OutOfFuel(LocId::from_u32(blame))),
        code::ROW_REFUSED => UnitOutcome::Failed(step, Ending::RowRefused),
        code::ASSERT_FAILED => UnitOutcome::Failed(step, Ending::AssertFailed(LocId::from_u32(blame))),
        _ => {
            assert_eq!(ending, code::PENDING, "code ends in one of these ways");
            UnitOutcome::Failed(step, Ending::Pending(TableId::from_u32(blame)))
        }
    }
}

/// Declares a function with this many word parameters, whose code is built in the context.
pub(crate) fn function(
    module: &mut JITModule,
    context: &mut Context,
    name: String,
    params: usize,
) -> Result<FuncId, Unsupported> {
    let mut signature = module.make_signature();
    signature.params.extend((0..params).map(|_| AbiParam::new(types::I64)));
    signature.returns.push(AbiParam::new(types::I64));
    let id = module.declare_function(&name, Linkage::Local, &signature).map_err(machine)?;
    context.func.signature = signature;
    Ok(id)
}

pub(crate) fn define(module: &mut JITModule, id: FuncId, context: &mut Context) -> Result<(), Unsupported> {
    module.define_function(id, context).map_err(|error| Unsupported::Machine(format!("{error:?}")))?;
    module.clear_context(context);
    Ok(())
}

impl Drop for NativeProgram {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: only `run` executes the code, and it borrows `self`.
            unsafe { module.free_memory() };
        }
    }
}
