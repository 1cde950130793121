//! A program in machine code, and running it.

use std::collections::HashMap;
use std::sync::Arc;

use cranelift_codegen::Context;
use cranelift_codegen::ir::{AbiParam, Signature, types};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, default_libcall_names};
use engine::{Ending, Now, Objects, RECORD_NO_ACTION};
use ir::{FieldListItem, LocId, Program, SlotId, TableId};

use crate::calls::{self, Host};
use crate::emit::{Emit, Facts, State, aside};
use crate::layout::{Layout, word};
use crate::packet::{Packet, Shape};
use crate::scout::{Notes, RESULTS, Row};
use crate::{Plan, Probe, Unsupported, code};

/// What the code generator strives for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Speed {
    /// To be done soon.
    Compile,
    /// To make fast code.
    #[default]
    Run,
}

/// How a unit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All its steps were done; the last body ended so.
    Done(Ending),
    /// The step with this number ended the packet's way.
    Failed(usize, Ending),
    /// The step with this number stopped the unit.
    Stopped(usize),
}

pub(crate) type Code = unsafe extern "C" fn(*mut u64) -> u64;
/// A unit as a loop, which gets the frame, the rows and notes of a batch, and the rows of the first packet and behind the
/// last. It returns the row that it stopped at, or the one behind the last.
pub(crate) type BatchCode = unsafe extern "C" fn(*mut u64, *mut Row, *mut u64, *mut Row, *mut Row) -> *mut Row;
/// A scout, which gets the frame, the rows and notes of a batch, and the number of its packets.
pub(crate) type ScoutCode = unsafe extern "C" fn(*mut u64, *mut Row, *mut u64, usize) -> u64;

/// What runs a fresh unit on batches.
#[derive(Debug)]
pub(crate) struct Loop {
    pub code: BatchCode,
    /// There is none where no table is noted.
    pub scout: Option<ScoutCode>,
    /// The scout that follows what was found, where a key depends on that.
    pub follow: Option<ScoutCode>,
    pub notes: Notes,
}

/// A table that takes at most so many bytes with its records is in near caches, whatever else is there: looking up in
/// it packet by packet is cheaper than going ahead of the packets.
const NEAR_BYTES: usize = 1 << 20;
/// More IR than this is not compiled.
const MAX_NODES: usize = 400_000;

/// A program in machine code.
pub struct Compiled {
    units: Vec<Code>,
    /// The loops of units that run on batches.
    loops: Vec<Option<Loop>>,
    /// Whether each is fresh.
    fresh: Vec<bool>,
    shape: Arc<Shape>,
    near_bytes: usize,
    /// Where the code lives. Taken by `drop`.
    module: Option<JITModule>,
}

// SAFETY: the code is not written any more, and nothing of the module but the memory of the code is used.
unsafe impl Send for Compiled {}
// SAFETY: as above; running takes `&self` and writes to the packet and objects alone.
unsafe impl Sync for Compiled {}

impl std::fmt::Debug for Compiled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compiled").field("units", &self.units.len()).finish_non_exhaustive()
    }
}

pub(crate) fn machine(error: impl std::fmt::Display) -> Unsupported {
    Unsupported::Machine(error.to_string())
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
        ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }),
        // What packets hold never decides where code goes beyond what was checked.
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
fn declare(module: &mut JITModule) -> Result<HashMap<&'static str, FuncId>, Unsupported> {
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

/// The slots that field lists keep.
fn kept(program: &Program) -> Vec<SlotId> {
    let kept = program.field_lists.values().flatten();
    kept.filter_map(|kept| if let FieldListItem::Slot(slot) = kept { Some(*slot) } else { None }).collect()
}

/// A measure of how much code a program will become.
fn nodes(program: &Program) -> usize {
    let mut count = 0;
    for body in program.bodies.values() {
        crate::walk::body(program, body, &mut |_| count += 1);
        count += body.blocks.values().map(|block| block.instrs.len() + 1).sum::<usize>();
    }
    count
}

impl Compiled {
    /// Compiles the units of a plan.
    ///
    /// # Errors
    /// If the program is too large, or no code can be made on this machine.
    pub fn new(program: &Arc<Program>, plan: &Plan, speed: Speed) -> Result<Compiled, Unsupported> {
        Self::make(program, plan, speed, None)
    }

    /// The same as code that calls `probe` whenever a part of it has ended.
    ///
    /// # Errors
    /// As [`Compiled::new`].
    pub fn probed(program: &Arc<Program>, plan: &Plan, speed: Speed, probe: Probe) -> Result<Compiled, Unsupported> {
        Self::make(program, plan, speed, Some(probe))
    }

    fn make(program: &Arc<Program>, plan: &Plan, speed: Speed, probe: Option<Probe>) -> Result<Compiled, Unsupported> {
        let actions = program.tables.values().map(|table| table.actions.len()).max().unwrap_or(0);
        if nodes(program) > MAX_NODES || actions as u64 >= RECORD_NO_ACTION {
            return Err(Unsupported::TooLarge);
        }
        let is_word = |slot: &SlotId| program.slots[*slot].width <= 64;
        assert!(plan.given.iter().all(is_word), "slots that are given have up to 64 bits");
        let results = plan.units.iter().filter_map(|unit| unit.results.as_ref());
        assert!(results.map(Vec::len).all(|count| count <= RESULTS), "there is room for the results");
        assert!(plan.units.iter().all(|unit| unit.steps.len() < 1 << 16), "there is room for the number of a step");
        let layout = Layout::new(program, &plan.given, &kept(program))?;
        let facts = Facts::new(program, &layout, plan);
        let mut module = module(speed)?;
        let (mut units, mut loops) = (Vec::new(), Vec::new());
        // From here on an error must free the code that is there already.
        let result = (|| {
            let mut ids = declare(&mut module)?;
            let mut names = Vec::new();
            let mut context = module.make_context();
            let mut builder = FunctionBuilderContext::new();
            aside::make(&mut module, &mut context, &mut builder, &mut ids)?;
            let alone = Notes::default();
            for (index, unit) in plan.units.iter().enumerate() {
                let state = State::new(program, &facts, plan, index);
                let mut make = |name: &str, params: usize, notes: &Notes, generate: &dyn Fn(Emit<'_, '_>)| {
                    let id = function(&mut module, &mut context, format!("{name}{index}"), params)?;
                    let b = FunctionBuilder::new(&mut context.func, &mut builder);
                    let emit = Emit::new(b, program, &layout, &facts, &state, &unit.steps, notes, &mut module, &ids);
                    generate(emit);
                    define(&mut module, id, &mut context)?;
                    Ok::<FuncId, Unsupported>(id)
                };
                let id = make("unit", 1, &alone, &|emit| emit.with_probe(probe).unit(index))?;
                let mut batched = None;
                if unit.fresh && unit.results.is_some() {
                    // Who measures tables wants each lookup where it belongs.
                    let notes = Notes::new(program, &layout, unit, probe.is_none());
                    let id = make("batch", 5, &notes, &|emit| emit.with_probe(probe).batch(index))?;
                    let (mut scout, mut follow) = (None, None);
                    if !notes.tables.is_empty() {
                        scout = Some(make("scout", 4, &notes, &|emit| emit.scout(false))?);
                    }
                    if notes.rounds > 0 {
                        follow = Some(make("follow", 4, &notes, &|emit| emit.scout(true))?);
                    }
                    batched = Some((id, [scout, follow], notes));
                }
                names.push((id, batched));
            }
            module.finalize_definitions().map_err(machine)?;
            for (id, batched) in names {
                let address = |id| module.get_finalized_function(id);
                // SAFETY: the address is that of a function with this signature, which `make` has just made.
                units.push(unsafe { std::mem::transmute::<*const u8, Code>(address(id)) });
                loops.push(batched.map(|(id, scouts, notes)| {
                    // SAFETY: as above.
                    let code = unsafe { std::mem::transmute::<*const u8, BatchCode>(address(id)) };
                    // SAFETY: as above.
                    let scout = |id| unsafe { std::mem::transmute::<*const u8, ScoutCode>(address(id)) };
                    let [scout, follow] = scouts.map(|id: Option<FuncId>| id.map(scout));
                    Loop { code, scout, follow, notes }
                }));
            }
            Ok(())
        })();
        let shape = Arc::new(Shape {
            program: program.clone(),
            no_error: facts.no_error,
            kept_headers: facts.kept_headers.iter().copied().collect(),
            layout,
        });
        let fresh = plan.units.iter().map(|unit| unit.fresh).collect();
        let compiled = Compiled { units, loops, fresh, shape, near_bytes: NEAR_BYTES, module: Some(module) };
        result.map(|()| compiled)
    }

    /// The same, for which a table that takes at most so many bytes is near: batches look keys up in it where it is.
    /// Several are near together in a quarter of that, else each alone in a 64th. It makes no difference but to time; 0
    /// has tables asked ahead of the packets, except for arrays where there are several tables.
    #[must_use]
    pub fn with_near_bytes(mut self, near_bytes: usize) -> Compiled {
        self.near_bytes = near_bytes;
        self
    }

    /// A packet before the parser.
    pub fn packet(&self, data: Vec<u8>) -> Packet {
        Packet::new(&self.shape, data)
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.shape.program
    }

    /// Runs a unit on a packet, which this program has made.
    ///
    /// # Panics
    /// If there is no such unit, the packet is another program's, or the unit is not fresh and none has run since the
    /// packet was restarted.
    #[inline]
    pub fn run(&self, unit: usize, packet: &mut Packet, objects: &mut Objects, now: Now) -> Outcome {
        objects.advance_clock(now.ns);
        assert!(Arc::ptr_eq(&self.shape, packet.shape()), "the packet was made by this program");
        assert!(packet.primed || self.is_fresh(unit), "a fresh unit comes first");
        packet.primed = true;
        let base = packet.data.as_mut_ptr();
        // SAFETY: the packet is its data from `start` on, which is borrowed exclusively here.
        unsafe { self.run_at(unit, packet, base, objects, now) }
    }

    /// Runs a unit on a packet that lies in the buffer at `base`.
    ///
    /// # Safety
    /// `packet` is this program's and its frame says where the packet lies: in a buffer that begins at `base`, which
    /// nobody else touches meanwhile.
    #[inline]
    pub(crate) unsafe fn run_at(
        &self,
        unit: usize,
        packet: &mut Packet,
        base: *mut u8,
        objects: &mut Objects,
        now: Now,
    ) -> Outcome {
        // SAFETY: the packet is borrowed exclusively, and nothing of it but the frame is used below.
        let mut host = unsafe { Host::new(&self.shape, packet, objects, now.ns) };
        let frame = &mut packet.frame;
        frame[word::HOST] = &raw mut host as u64;
        frame[word::BUFFER] = base as u64;
        // SAFETY: the code was generated for a validated program and frames of this layout. It writes to the frame, to
        // the packet within the length in the frame, and to what the host lends; host, frame and data outlive the call
        // and are borrowed exclusively here, by what the caller promises.
        let ending = unsafe { self.units[unit](frame.as_mut_ptr()) };
        outcome(ending, frame[word::STEP] as usize, || frame[word::BLAME] as u32)
    }

    pub(crate) fn near_bytes(&self) -> usize {
        self.near_bytes
    }

    pub(crate) fn shape(&self) -> &Arc<Shape> {
        &self.shape
    }

    pub(crate) fn is_fresh(&self, unit: usize) -> bool {
        self.fresh[unit]
    }

    /// What runs a unit on batches, if that can be.
    pub(crate) fn batches(&self, unit: usize) -> Option<&Loop> {
        self.loops[unit].as_ref()
    }
}

/// How a unit ended: by a number, at a step, and with something to blame.
#[inline(always)]
pub(crate) fn outcome(ending: u64, step: usize, blame: impl Fn() -> u32) -> Outcome {
    match ending {
        code::RETURN => Outcome::Done(Ending::Return),
        code::STOPPED => Outcome::Stopped(step),
        _ => rare_outcome(ending, step, blame()),
    }
}

#[cold]
#[inline(never)]
fn rare_outcome(ending: u64, step: usize, blame: u32) -> Outcome {
    match ending {
        code::EXIT => Outcome::Done(Ending::Exit),
        code::REJECT => Outcome::Done(Ending::Reject),
        code::OUT_OF_FUEL => Outcome::Failed(step, Ending::OutOfFuel(LocId::from_u32(blame))),
        code::ASSERT_FAILED => Outcome::Failed(step, Ending::AssertFailed(LocId::from_u32(blame))),
        _ => {
            assert_eq!(ending, code::PENDING, "code ends in one of these ways");
            Outcome::Failed(step, Ending::Pending(TableId::from_u32(blame)))
        }
    }
}

/// Declares a function of so many words, whose code is made in the context.
fn function(module: &mut JITModule, context: &mut Context, name: String, params: usize) -> Result<FuncId, Unsupported> {
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

impl Drop for Compiled {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: the code is only run by `run`, which borrows `self`.
            unsafe { module.free_memory() };
        }
    }
}
