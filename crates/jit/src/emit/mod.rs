//! Generates code: from a unit of IR bodies, one function of machine code.
//!
//! Slots, header addresses, validity masks and the cursor are Cranelift variables while a unit runs. They are loaded on
//! entry and stored on exit as far as they are used outside the unit, which [`UnitState`] decides. A unit with many
//! headers holds their addresses in the frame instead. The facts about all of these at a program point are in
//! [`facts::Facts`], and [`versions`] specialises code for them.

mod arithmetic;
mod batch;
mod body;
mod chain;
mod checksum;
pub(crate) mod cold_calls;
mod deparse;
mod effects;
mod expr;
mod facts;
mod front;
mod header;
mod incremental_checksum;
mod inline_lookup;
pub(crate) mod lookup;
mod memory;
mod parse;
mod prefetched;
mod probe;
mod program_facts;
mod rows;
mod scout;
mod state;
mod table;
mod value;
mod versions;
mod words;
mod writes;

use std::collections::HashMap;

use cranelift_codegen::ir::{AliasRegionData, Block, FuncRef, InstBuilder, MemFlagsData, Value, types};
use cranelift_frontend::{FunctionBuilder, Variable};
use cranelift_jit::JITModule;
use cranelift_module::{FuncId, Module};
use ir::{HeaderId, Program, SlotId, TableId};

pub(crate) use program_facts::ProgramFacts;
pub(crate) use state::{UnitState, is_variable};

use state::SlotPlace;
use value::Num;
use words::Word;

use crate::layout::{FrameLayout, word};
use crate::scout::{PrefetchLayout, STEP};
use crate::{Step, code};

/// Alias regions and flags of memory accesses.
#[derive(Clone, Copy)]
struct Flags {
    /// Words on the stack.
    stack: MemFlagsData,
    /// The packet, homes of headers, zeros and sink.
    packet: MemFlagsData,
    /// Scratch words.
    scratch: MemFlagsData,
    /// All other words of the frame.
    frame: MemFlagsData,
    /// Records of tables.
    record: MemFlagsData,
    /// Elements of resilient arrays, their directories, and the states of rows.
    cell: MemFlagsData,
}

/// Functions of [`crate::calls`] that read the packet's address or length from the frame.
const LOOKS_AT_PACKET: [&str; 5] = ["apply_prefetched", "count", "meter", "extract", "look_ahead"];

/// The context for generating the code of one unit.
pub(crate) struct Emit<'a, 'f> {
    b: FunctionBuilder<'f>,
    program: &'a Program,
    layout: &'a FrameLayout,
    program_facts: &'a ProgramFacts,
    state: &'a UnitState,
    module: &'a mut JITModule,
    ids: &'a HashMap<&'static str, FuncId>,
    refs: HashMap<&'static str, FuncRef>,
    flags: Flags,
    frame: Value,
    /// Address of the packet, and its length in bytes.
    packet: Value,
    length: Value,
    slots: HashMap<SlotId, SlotPlace>,
    /// The headers whose addresses are facts, with the variable of each; `None` if the frame holds it instead.
    places: HashMap<HeaderId, Option<Variable>>,
    widths: HashMap<HeaderId, Variable>,
    masks: Vec<Variable>,
    cursor: Variable,
    error: Variable,
    ending: Variable,
    /// Remaining fuel of the current step, and of each step that counts fuel.
    fuel: Option<Variable>,
    fuels: HashMap<usize, Option<Variable>>,
    /// Facts at the current program point.
    facts: facts::Facts,
    /// Specialised versions of each program point.
    versions: versions::Versions,
    /// Index of the body that is being generated.
    scope: usize,
    /// First word of the last record of each table whose hits the program queries.
    heads: HashMap<TableId, Variable>,
    /// The deparser's spans of bytes: the current one and the list of earlier ones.
    spans: Option<deparse::EmittedSpans>,
    /// The deparser's headers, if they are assembled at its end.
    deferred_headers: Option<Vec<HeaderId>>,
    /// Tracked checksums.
    sums: Vec<incremental_checksum::TrackedSum>,
    /// Deferred writes.
    deferred: writes::DeferredWrites,
    /// The block that stores the state and returns.
    finish: Block,
    /// The steps of the unit, and the index of the current one.
    steps: &'a [Step],
    step: usize,
    /// Layout of the prefetch memory; without tables in code for single packets.
    prefetch: &'a PrefetchLayout,
    /// Lookups that are functions of their own, in code for batches.
    lookups: &'a lookup::LookupFunctions,
    lookup_refs: HashMap<TableId, FuncRef>,
    /// The key, in such a function.
    lookup_key: Option<Vec<Word>>,
    /// The batch, in code that runs a unit on a batch.
    lane: Option<batch::Lane>,
    /// Whether the code uses resilient arrays inline.
    uses_arrays: bool,
    /// Whether packets whose outputs wait stay in the batch.
    waits_inline: bool,
    /// The batch, in its scout.
    scouting: Option<scout::ScoutState>,
    /// The probe that the code calls.
    probed: Option<probe::UnitProbe>,
}

impl<'a, 'f> Emit<'a, 'f> {
    #[allow(clippy::too_many_arguments, reason = "the complete input of code generation")]
    pub(crate) fn new(
        mut b: FunctionBuilder<'f>,
        program: &'a Program,
        layout: &'a FrameLayout,
        program_facts: &'a ProgramFacts,
        state: &'a UnitState,
        steps: &'a [Step],
        prefetch: &'a PrefetchLayout,
        lookups: &'a lookup::LookupFunctions,
        module: &'a mut JITModule,
        ids: &'a HashMap<&'static str, FuncId>,
    ) -> Self {
        let mut flags = |number: u32, description: &'static str| {
            let region = AliasRegionData { user_id: number, description: description.into() };
            let region = b.func.dfg.alias_regions.insert(region);
            MemFlagsData::trusted().with_aligned().with_alias_region(Some(region))
        };
        let flags = Flags {
            stack: flags(0, "stack"),
            packet: {
                let region = flags(1, "packet").alias_region();
                MemFlagsData::new().with_notrap().with_alias_region(region)
            },
            frame: flags(2, "frame"),
            record: flags(3, "record"),
            scratch: flags(4, "scratch"),
            cell: flags(5, "cell"),
        };
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        let frame = b.block_params(entry)[0];
        let finish = b.create_block();
        let mut word = || b.declare_var(types::I64);
        let (cursor, error, ending) = (word(), word(), word());
        Emit {
            b,
            program,
            layout,
            program_facts,
            state,
            module,
            ids,
            refs: HashMap::new(),
            flags,
            frame,
            // Set when the packet's address is loaded.
            packet: frame,
            length: frame,
            slots: HashMap::new(),
            places: HashMap::new(),
            widths: HashMap::new(),
            masks: Vec::new(),
            cursor,
            error,
            ending,
            fuel: None,
            fuels: HashMap::new(),
            facts: facts::Facts::default(),
            versions: versions::Versions::new(program, steps, false, state.is_large),
            scope: 0,
            heads: HashMap::new(),
            spans: None,
            deferred_headers: None,
            sums: Vec::new(),
            deferred: None,
            finish,
            steps,
            step: 0,
            prefetch,
            lookups,
            lookup_refs: HashMap::new(),
            lookup_key: None,
            lane: None,
            uses_arrays: false,
            waits_inline: false,
            scouting: None,
            probed: None,
        }
    }

    /// Generates the function that runs the unit on one packet.
    pub(crate) fn unit(mut self, number: usize) {
        self.packet = self.frame_load(word::PACKET as u32);
        self.length = self.frame_load(word::LENGTH as u32);
        self.all_steps(number);
        let finish = self.finish;
        self.b.switch_to_block(finish);
        self.facts = facts::Facts::default();
        self.leave();
        let ending = self.ending();
        let ending = self.value(ending);
        self.b.ins().return_(&[ending]);
        self.seal();
    }

    /// Generates everything between a packet's arrival and the end of the unit.
    fn all_steps(&mut self, number: usize) {
        self.probe(crate::ProbedPart::Before(number));
        self.enter();
        self.enter_sums();
        self.steps_from(0);
        self.all_points();
    }

    /// Allows specialisation for each path through the parser.
    fn specialise(&mut self) {
        self.facts.is_special = true;
        self.versions = versions::Versions::new(self.program, self.steps, true, self.state.is_large);
    }

    /// Generates the steps from an index on; the current block is terminated.
    fn steps_from(&mut self, from: usize) {
        let end = if self.scouting.is_some() { self.prefetch.steps } else { self.steps.len() };
        for index in from..end {
            self.step = index;
            let step = &self.steps[index];
            match step {
                Step::Run(body) if self.scouting.is_none() => {
                    self.probe_body(Some(*body));
                    return self.top_body(index, *body);
                }
                Step::Run(body) if self.leads_to_prefetched(*body) => return self.top_body(index, *body),
                Step::ErrorTo(_) | Step::LengthTo(_) | Step::Copy(..) | Step::Set(..) | Step::TimeTo(_) => {
                    self.one_step(step);
                }
                _ if self.scouting.is_some() => {}
                step if self.one_step(step) => {}
                _ => return,
            }
        }
        self.probe_rest();
        if let Some(lane) = self.lane {
            return self.end_steps(lane);
        }
        if self.scouting.is_none() {
            self.store_step(end);
        }
        let finish = self.finish;
        self.b.ins().jump(finish, &[]);
    }

    /// Generates the code after the body of a step; the current block is terminated.
    fn after_step(&mut self, step: usize) {
        self.at_step(step);
        self.end_emitting(step);
        self.steps_from(step + 1);
    }

    /// Makes a step that runs a body the current one.
    fn at_step(&mut self, step: usize) {
        self.step = step;
        self.fuel = self.fuels.get(&step).copied().flatten();
        if let (Some(probed), Step::Run(body)) = (&mut self.probed, &self.steps[step]) {
            probed.body = Some(*body);
        }
    }

    fn seal(mut self) {
        self.b.seal_all_blocks();
        let config = self.module.target_config();
        self.b.finalize(config);
    }

    /// Generates a step that runs no body. Returns whether any packet continues after it.
    fn one_step(&mut self, step: &Step) -> bool {
        match step {
            Step::Run(_) => unreachable!("bodies are points of their own"),
            Step::ErrorTo(slot) => {
                let error = self.error();
                // There are fewer than 2^32 errors.
                let width = self.program.slots[*slot].width;
                let error = Num { width: width.clamp(32, 64), words: vec![error] };
                let error = self.resize(&error, width);
                self.set_slot(*slot, &error);
            }
            Step::LengthTo(slot) => self.set_number(*slot, Word::Value(self.length)),
            Step::Measure => self.measure(),
            Step::PresentLengthTo(slot) => self.set_present_length(*slot),
            Step::DropIf(slot, number) => {
                self.probe_body(None);
                let slot = self.slot(*slot);
                let number = Num::number(*number, slot.width);
                let equal = self.equal(&slot, &number);
                return match self.lane {
                    Some(lane) => self.drop_if(lane, equal),
                    None => self.stop_if(equal),
                };
            }
            Step::StopUnless(slot, number) => {
                self.probe_body(None);
                let slot = self.slot(*slot);
                let number = Num::number(*number, slot.width);
                let differs = self.unequal(&slot, &number);
                return self.stop_if(differs);
            }
            Step::Copy(to, from) => {
                let value = self.slot(*from);
                let value = self.resize(&value, self.program.slots[*to].width);
                self.set_slot(*to, &value);
            }
            Step::Set(slot, number) => {
                let value = Num::number(*number, self.program.slots[*slot].width);
                self.set_slot(*slot, &value);
            }
            Step::TimeTo(slot) => {
                let now = self.frame_load(word::NOW_US as u32);
                self.set_number(*slot, Word::Value(now));
            }
            Step::Keep(index, slot) => self.keep_result(*index, *slot),
            Step::InputTo(index, slot) => {
                let lane = self.lane.expect("only copies have inputs");
                let input = self.input(lane, *index);
                self.set_number(*slot, Word::Value(input));
            }
            // No request can be pending here.
            Step::StopIfRequested | Step::StopUnlessWaiting(_) if self.state.fresh && !self.state.makes_requests => {
                self.probe_body(None);
            }
            Step::StopIfRequested | Step::StopUnlessWaiting(_) => {
                self.probe_body(None);
                let asked = self.frame_load(word::REQUESTS as u32);
                if let (Step::StopUnlessWaiting(may_wait), Some(lane)) = (step, self.lane) {
                    self.stop_unless_waiting(lane, asked, *may_wait);
                    return true;
                }
                return self.stop_if(Word::Value(asked));
            }
        }
        true
    }

    /// Ends the unit at this step if a word is not 0. Returns whether it may be 0.
    fn stop_if(&mut self, condition: Word) -> bool {
        match condition {
            Word::Const(0) => return true,
            Word::Const(_) => {
                self.end_unit(code::STOPPED, 0);
                return false;
            }
            Word::Value(_) => {}
        }
        let (stop, on) = (self.b.create_block(), self.b.create_block());
        self.branch(condition, stop, on);
        self.cold_block(stop, |emit| emit.end_unit(code::STOPPED, 0));
        self.b.switch_to_block(on);
        true
    }

    /// Ends the unit, with a location or table to blame.
    fn end_unit(&mut self, ending: u64, blame: u32) {
        if self.scouting.is_some() {
            let finish = self.finish;
            self.b.ins().jump(finish, &[]);
            return;
        }
        let blame = self.number(u64::from(blame));
        self.frame_store(word::BLAME as u32, blame);
        let ending = match self.lane {
            Some(_) => ending | (self.step as u64) << STEP,
            None => {
                self.store_step(self.step);
                ending
            }
        };
        self.set_ending(ending);
        let finish = self.finish;
        self.b.ins().jump(finish, &[]);
    }

    fn store_step(&mut self, step: usize) {
        let step = self.number(step as u64);
        self.frame_store(word::STEP as u32, step);
    }

    fn number(&mut self, number: u64) -> Value {
        self.b.ins().iconst(types::I64, number as i64)
    }

    /// Calls one of [`cold_calls::NAMES`] with all registers preserved, so that a rare call does not slow down the path
    /// that does not take it. Returns the function's result.
    fn call_cold(&mut self, name: &'static str, args: &[Value]) -> Value {
        self.store_packet_words();
        let function = self.function(cold_calls::name(name));
        self.b.ins().call(function, args);
        self.frame_load(word::RESULT as u32)
    }

    /// Calls a function of [`crate::calls`].
    fn call(&mut self, name: &'static str, args: &[Value]) -> Option<Value> {
        if LOOKS_AT_PACKET.contains(&name) {
            self.store_packet_words();
        }
        let function = self.function(name);
        let call = self.b.ins().call(function, args);
        self.b.inst_results(call).first().copied()
    }

    fn function(&mut self, name: &'static str) -> FuncRef {
        let (module, func) = (&mut *self.module, &mut *self.b.func);
        *self.refs.entry(name).or_insert_with(|| module.declare_func_in_func(self.ids[name], func))
    }
}
