//! From a unit of IR bodies to one function of machine code.
//!
//! Slots, places of headers, validity masks and the cursor are Cranelift variables while a unit runs: they are loaded at
//! its entry and stored at its exit as far as anyone else looks at them. [`State`] decides which those are.

mod batch;
mod body;
mod checksum;
mod deparse;
mod effects;
mod expr;
mod front;
mod header;
mod memory;
mod parse;
mod probe;
mod scout;
mod state;
mod sums;
mod table;
mod value;
mod writes;

use std::collections::HashMap;

use cranelift_codegen::ir::{AliasRegionData, Block, FuncRef, InstBuilder, MemFlagsData, Value, types};
use cranelift_frontend::{FunctionBuilder, Variable};
use cranelift_jit::JITModule;
use cranelift_module::{FuncId, Module};
use ir::{HeaderId, Program, SlotId};

pub(crate) use state::{Facts, State, is_variable};

use crate::layout::{Layout, word};
use crate::scout::Notes;
use crate::{Step, code};

/// Alias regions and flags of memory accesses.
#[derive(Clone, Copy)]
struct Flags {
    /// Words on the stack.
    stack: MemFlagsData,
    /// The packet, homes of headers, zeros and sink.
    packet: MemFlagsData,
    /// All other words of the frame.
    frame: MemFlagsData,
    /// Records of tables.
    record: MemFlagsData,
}

/// The functions of [`crate::calls`] that look at the packet's place or length in the frame.
const LOOKS_AT_PACKET: [&str; 7] = ["apply", "apply_noted", "count", "meter", "extract", "look_ahead", "assemble"];

/// Everything that is needed to generate the code of one unit.
pub(crate) struct Emit<'a, 'f> {
    b: FunctionBuilder<'f>,
    program: &'a Program,
    layout: &'a Layout,
    facts: &'a Facts,
    state: &'a State,
    module: &'a mut JITModule,
    ids: &'a HashMap<&'static str, FuncId>,
    refs: HashMap<&'static str, FuncRef>,
    flags: Flags,
    frame: Value,
    /// Where the packet lies, and how many bytes it has.
    packet: Value,
    length: Value,
    slots: HashMap<SlotId, Vec<Variable>>,
    places: HashMap<HeaderId, Variable>,
    widths: HashMap<HeaderId, Variable>,
    masks: Vec<Variable>,
    cursor: Variable,
    error: Variable,
    ending: Variable,
    fuel: Option<Variable>,
    /// What the deparser has put together: the run of bytes it is in, and how many lie before.
    run: Option<deparse::Runs>,
    /// The headers of the deparser, if they are put together at its end.
    fronted: Option<Vec<HeaderId>>,
    /// Checksums that are kept.
    sums: Vec<sums::Sum>,
    /// Writes that are held back.
    held: writes::Held,
    /// Where the code goes that stores the state and returns.
    finish: Block,
    /// The step that is being generated.
    step: usize,
    /// What batches keep of their packets; nothing of tables in code for packets that come alone.
    notes: &'a Notes,
    /// The batch, in code that runs a unit on one.
    lane: Option<batch::Lane>,
    /// The batch, in its scout.
    scouting: Option<scout::Scouting>,
    /// Whom the code tells where it is.
    probed: Option<probe::Probed>,
}

impl<'a, 'f> Emit<'a, 'f> {
    #[allow(clippy::too_many_arguments, reason = "everything that the code depends on")]
    pub(crate) fn new(
        mut b: FunctionBuilder<'f>,
        program: &'a Program,
        layout: &'a Layout,
        facts: &'a Facts,
        state: &'a State,
        notes: &'a Notes,
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
            facts,
            state,
            module,
            ids,
            refs: HashMap::new(),
            flags,
            frame,
            // Known when the packet is.
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
            run: None,
            fronted: None,
            sums: Vec::new(),
            held: None,
            finish,
            step: 0,
            notes,
            lane: None,
            scouting: None,
            probed: None,
        }
    }

    /// Generates the function that runs the unit on one packet.
    pub(crate) fn unit(mut self, number: usize, steps: &[Step]) {
        self.packet = self.frame_load(word::PACKET as u32);
        self.length = self.frame_load(word::LENGTH as u32);
        self.steps(number, steps);
        self.store_step(steps.len());
        let finish = self.finish;
        self.b.ins().jump(finish, &[]);
        self.b.switch_to_block(finish);
        self.leave();
        let ending = self.b.use_var(self.ending);
        self.b.ins().return_(&[ending]);
        self.seal();
    }

    /// Everything between a packet's arrival and the end of the unit.
    fn steps(&mut self, number: usize, steps: &[Step]) {
        self.probe(crate::Part::Before(number));
        self.enter();
        self.enter_sums(steps);
        for (index, step) in steps.iter().enumerate() {
            self.step = index;
            self.one_step(step);
        }
        self.probe_rest();
    }

    fn seal(mut self) {
        self.b.seal_all_blocks();
        let config = self.module.target_config();
        self.b.finalize(config);
    }

    fn one_step(&mut self, step: &Step) {
        match step {
            Step::Run(body) => {
                self.probe_body(Some(*body));
                self.top_body(*body);
            }
            Step::ErrorTo(slot) => {
                let error = self.b.use_var(self.error);
                // There are fewer than 2^32 errors.
                let width = self.program.slots[*slot].width;
                let error = value::Num { width: width.clamp(32, 64), words: vec![value::Word::Value(error)] };
                let error = self.resize(&error, width);
                self.set_slot(*slot, &error);
            }
            Step::LengthTo(slot) => {
                let length = value::Num { width: 64, words: vec![value::Word::Value(self.length)] };
                let length = self.resize(&length, self.program.slots[*slot].width);
                self.set_slot(*slot, &length);
            }
            Step::Measure => self.measure(),
            Step::DropIf(slot, number) => {
                self.probe_body(None);
                let slot = self.slot(*slot);
                let number = value::Num::number(*number, slot.width);
                let equal = self.equal(&slot, &number);
                match self.lane {
                    Some(lane) => self.drop_if(lane, equal),
                    None => self.stop_if(equal),
                }
            }
            Step::StopUnless(slot, number) => {
                self.probe_body(None);
                let slot = self.slot(*slot);
                let number = value::Num::number(*number, slot.width);
                let differs = self.unequal(&slot, &number);
                self.stop_if(differs);
            }
            Step::Copy(to, from) => {
                let value = self.slot(*from);
                let value = self.resize(&value, self.program.slots[*to].width);
                self.set_slot(*to, &value);
            }
            Step::Set(slot, number) => {
                let value = value::Num::number(*number, self.program.slots[*slot].width);
                self.set_slot(*slot, &value);
            }
            // Nobody has asked for anything then.
            Step::StopIfAsked if self.state.fresh && !self.state.asks => self.probe_body(None),
            Step::StopIfAsked => {
                self.probe_body(None);
                let asked = self.b.ins().load(types::I64, self.flags.frame, self.frame, word::ASKED as i32 * 8);
                self.stop_if(value::Word::Value(asked));
            }
        }
    }

    /// Ends the unit at this step if a word is not 0.
    fn stop_if(&mut self, condition: value::Word) {
        let (stop, on) = (self.b.create_block(), self.b.create_block());
        let condition = self.value(condition);
        self.b.ins().brif(condition, stop, &[], on, &[]);
        self.b.set_cold_block(stop);
        self.b.switch_to_block(stop);
        self.end_unit(code::STOPPED, 0);
        self.b.switch_to_block(on);
    }

    /// Ends the unit, with something to blame.
    fn end_unit(&mut self, ending: u64, blame: u32) {
        if self.scouting.is_some() {
            let finish = self.finish;
            self.b.ins().jump(finish, &[]);
            return;
        }
        let blame = self.number(u64::from(blame));
        self.b.ins().store(self.flags.frame, blame, self.frame, word::BLAME as i32 * 8);
        let ending = match self.lane {
            Some(_) => ending | (self.step as u64) << 8,
            None => {
                self.store_step(self.step);
                ending
            }
        };
        let ending = self.number(ending);
        self.b.def_var(self.ending, ending);
        let finish = self.finish;
        self.b.ins().jump(finish, &[]);
    }

    fn store_step(&mut self, step: usize) {
        let step = self.number(step as u64);
        self.b.ins().store(self.flags.frame, step, self.frame, word::STEP as i32 * 8);
    }

    fn number(&mut self, number: u64) -> Value {
        self.b.ins().iconst(types::I64, number as i64)
    }

    /// Calls a function of [`crate::calls`].
    fn call(&mut self, name: &'static str, args: &[Value]) -> Option<Value> {
        if LOOKS_AT_PACKET.contains(&name) {
            self.tell_packet();
        }
        let function = match self.refs.get(name) {
            Some(function) => *function,
            None => {
                let id = self.ids[name];
                let function = self.module.declare_func_in_func(id, self.b.func);
                self.refs.insert(name, function);
                function
            }
        };
        let call = self.b.ins().call(function, args);
        self.b.inst_results(call).first().copied()
    }
}
