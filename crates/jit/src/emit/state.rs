//! The interface of a unit to the frame (loads on entry, stores on exit), and its state in between.

use std::collections::BTreeSet;
use std::ops::Range;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use cranelift_frontend::Variable;
use ir::{HeaderId, Op, Program, SlotId};

use super::Emit;
use super::facts::Spot;
use super::header::ResolvedHeader;
use super::program_facts::ProgramFacts;
use super::value::{Num, words_of};
use super::words::Word;
use crate::layout::{FrameLayout, HeaderLayout, Valid, word};
use crate::packet::joined;
use crate::walk::{self, Use};
use crate::{Plan, Step, liveness};

/// Maximum width in bits of slots that are variables; wider slots stay in the frame.
const MAX_VARIABLE_BITS: u32 = 256;
/// Maximum number of headers of a unit whose addresses are variables.
const MAX_PLACE_VARIABLES: usize = 32;

/// The place of a slot while a unit runs.
#[derive(Clone, Debug)]
pub(super) enum SlotPlace {
    /// One for each word.
    Variables(Vec<Variable>),
    /// The first of its words in the frame. As variables, slots that are live in most of a large unit would become
    /// parameters of most blocks, and allocating registers would take most of the compile time.
    Frame(u32),
}

/// The effect of one unit on the frame.
#[derive(Debug)]
pub(crate) struct UnitState {
    pub fresh: bool,
    pub slots: BTreeSet<SlotId>,
    pub headers: BTreeSet<HeaderId>,
    /// Whether the unit is so large that its compile time matters more than registers.
    pub is_large: bool,
    /// Slots in the frame: in scratch words, unless the unit only reads what is there.
    in_frame: BTreeSet<SlotId>,
    /// Slots that may be read before they are written, or after the unit.
    read_first: BTreeSet<SlotId>,
    /// Slots that are written.
    written: BTreeSet<SlotId>,
    /// Headers that are written, or whose homes are.
    written_headers: BTreeSet<HeaderId>,
    /// Whether the unit can make requests.
    pub makes_requests: bool,
    /// Slots and headers that are read after the unit.
    seen_slots: BTreeSet<SlotId>,
    seen_headers: BTreeSet<HeaderId>,
}

/// Everything that the steps of a unit use.
#[derive(Debug, Default)]
struct UsedItems {
    slots: BTreeSet<SlotId>,
    written: BTreeSet<SlotId>,
    headers: BTreeSet<HeaderId>,
    written_headers: BTreeSet<HeaderId>,
}

impl UsedItems {
    fn new(program: &Program, steps: &[Step]) -> UsedItems {
        let mut mentioned = UsedItems::default();
        let UsedItems { slots, written, headers, written_headers } = &mut mentioned;
        for step in steps {
            match step {
                Step::Run(body) => walk::whole_body(program, *body, &mut |used| match used {
                    Use::Read(slot) => _ = slots.insert(slot),
                    Use::Write(slot) => _ = written.insert(slot),
                    Use::Header(header) | Use::Validity(header) => headers.extend(walk::candidates(program, header)),
                    Use::HeaderWrite(header, _) | Use::Extract(header) => {
                        written_headers.extend(walk::candidates(program, header));
                    }
                    Use::Apply(_) => {}
                }),
                Step::Copy(to, from) => {
                    written.insert(*to);
                    slots.insert(*from);
                }
                Step::ErrorTo(slot)
                | Step::LengthTo(slot)
                | Step::PresentLengthTo(slot)
                | Step::TimeTo(slot)
                | Step::InputTo(_, slot)
                | Step::Set(slot, _) => _ = written.insert(*slot),
                Step::StopUnless(slot, _) | Step::DropIf(slot, _) | Step::Keep(_, slot) => _ = slots.insert(*slot),
                Step::Measure | Step::StopIfRequested | Step::StopUnlessWaiting(_) => {}
            }
        }
        slots.extend(written.iter().copied());
        headers.extend(written_headers.iter().copied());
        mentioned
    }
}

/// Whether the steps of a unit can make requests.
fn makes_requests(program: &Program, steps: &[Step]) -> bool {
    walk::bodies_of_steps(program, steps).any(|id| {
        let mut instrs = program.bodies[id].blocks.values().flat_map(|block| &block.instrs);
        instrs.any(|instr| match instr.op {
            Op::Request(_) => true,
            Op::RegisterRead(_, register, _) | Op::RegisterWrite(register, ..) => {
                program.registers[register].is_resilient()
            }
            _ => false,
        })
    })
}

impl UnitState {
    pub fn new(program: &Program, program_facts: &ProgramFacts, plan: &Plan, unit: usize, is_large: bool) -> UnitState {
        let UsedItems { mut slots, written, headers, written_headers } =
            UsedItems::new(program, &plan.units[unit].steps);
        slots.extend(plan.units[unit].results.iter().flatten());
        let mut seen_slots: BTreeSet<SlotId> =
            program_facts.visible.union(&program_facts.kept_slots).copied().collect();
        let mut seen_headers: BTreeSet<HeaderId> =
            program_facts.preserved_headers.union(&program_facts.written).copied().collect();
        if program_facts.all_visible {
            seen_slots.extend(program.slots.keys());
            seen_headers.extend(program.headers.keys());
        }
        let mut reached = BTreeSet::new();
        let mut todo = plan.units[unit].next.clone();
        while let Some(next) = todo.pop() {
            if !reached.insert(next) {
                continue;
            }
            todo.extend(&plan.units[next].next);
            let next = UsedItems::new(program, &plan.units[next].steps);
            seen_slots.extend(next.slots);
            seen_headers.extend(next.headers);
        }
        let makes_requests = makes_requests(program, &plan.units[unit].steps);
        let fresh = plan.units[unit].fresh;
        let mut in_frame = BTreeSet::new();
        if is_large {
            // Parameters of actions are live in the action only.
            let params = program.actions.values().flat_map(|action| &action.params);
            let params: BTreeSet<SlotId> = params.map(|param| param.slot).collect();
            in_frame.extend(slots.difference(&params).filter(|slot| is_variable(program, **slot)));
        }
        let mut read_first = seen_slots.clone();
        read_first.extend(plan.units[unit].results.iter().flatten());
        if is_large {
            read_first.extend(liveness::read_first(program, &plan.units[unit].steps));
        }
        UnitState {
            fresh,
            is_large,
            slots,
            in_frame,
            read_first,
            headers,
            written,
            written_headers,
            makes_requests,
            seen_slots,
            seen_headers,
        }
    }
}

impl UnitState {
    /// Returns the words of the frame that a run on a copy may change and another copy may read; `None` if the unit
    /// cannot run on copies.
    pub(crate) fn words_changed_by_copies(
        &self,
        program: &Program,
        layout: &FrameLayout,
        program_facts: &ProgramFacts,
    ) -> Option<Vec<Range<usize>>> {
        if self.fresh || program_facts.deparser.is_none() {
            return None;
        }
        let mut words = Vec::new();
        for slot in self.written.iter().filter(|slot| !is_variable(program, **slot)) {
            let begin = layout.slot(*slot) as usize;
            words.push(begin..begin + words_of(program.slots[*slot].width));
        }
        for header in &self.headers {
            let HeaderLayout { home, place, width, valid } = *layout.header(*header);
            let is_written = self.written_headers.contains(header);
            if is_written {
                let begin = home as usize / 8;
                words.push(begin..begin + layout.ty(program, *header).home_bytes as usize / 8);
            }
            let in_frame = [Some(place), width].into_iter().flatten();
            match valid {
                Valid::Word(valid) => words.extend(in_frame.chain([valid]).map(|at| at as usize..at as usize + 1)),
                Valid::Bit { .. } if is_written && self.headers.len() > MAX_PLACE_VARIABLES => {
                    words.extend(in_frame.map(|at| at as usize..at as usize + 1));
                }
                Valid::Bit { .. } => {}
            }
        }
        Some(joined(words))
    }
}

/// Whether a slot is held in variables while a unit runs.
pub(crate) fn is_variable(program: &Program, slot: SlotId) -> bool {
    program.slots[slot].width <= MAX_VARIABLE_BITS
}

impl Emit<'_, '_> {
    pub(super) fn frame_load(&mut self, word: u32) -> cranelift_codegen::ir::Value {
        self.b.ins().load(types::I64, self.flags.frame, self.frame, word as i32 * 8)
    }

    pub(super) fn frame_store(&mut self, word: u32, value: cranelift_codegen::ir::Value) {
        self.b.ins().store(self.flags.frame, value, self.frame, word as i32 * 8);
    }

    fn scratch_load(&mut self, word: u32) -> Value {
        self.b.ins().load(types::I64, self.flags.scratch, self.frame, word as i32 * 8)
    }

    fn scratch_store(&mut self, word: u32, value: Value) {
        self.b.ins().store(self.flags.scratch, value, self.frame, word as i32 * 8);
    }

    /// Returns the address of a header's home, its place before extraction.
    pub(super) fn home(&mut self, header: HeaderId) -> cranelift_codegen::ir::Value {
        let offset = self.number(u64::from(self.layout.header(header).home));
        self.b.ins().iadd(self.frame, offset)
    }

    pub(super) fn is_variable(&self, slot: SlotId) -> bool {
        is_variable(self.program, slot)
    }

    /// Whether a slot is loaded from the frame: set before the unit and not reset by it.
    fn is_taken(&self, slot: SlotId) -> bool {
        !self.state.fresh
            || self.program_facts.given.contains(&slot)
            || !self.is_new() && self.program_facts.kept_slots.contains(&slot)
    }

    /// Whether nothing has been preserved for the packet.
    fn is_new(&self) -> bool {
        self.scouting.is_some() || self.lane.is_some()
    }

    /// Loads the state from the frame, or initialises it.
    pub(super) fn enter(&mut self) {
        let state = self.state;
        let fresh = state.fresh;
        let zero = self.number(0);
        self.b.def_var(self.ending, zero);
        let takes_headers = !fresh || !self.is_new() && !self.program_facts.preserved_headers.is_empty();
        for index in 0..self.layout.masks.1 {
            let variable = self.b.declare_var(types::I64);
            self.masks.push(variable);
            if !takes_headers {
                self.facts.set_mask(index, u64::MAX, 0);
            }
            let value = if takes_headers { self.frame_load(self.layout.masks.0 + index) } else { zero };
            self.b.def_var(variable, value);
        }
        let (cursor, error) = if fresh {
            (Word::Const(0), Word::Const(self.program_facts.no_error))
        } else {
            let cursor = Word::Value(self.frame_load(word::CURSOR as u32));
            let cursor = if self.layout.byte_cursor { self.w_shr(cursor, 3) } else { cursor };
            (cursor, Word::Value(self.frame_load(word::ERROR as u32)))
        };
        self.set_cursor(cursor);
        self.set_error(error);
        for slot in &state.slots {
            self.enter_slot(*slot, !self.is_taken(*slot));
        }
        if fresh && !self.is_new() {
            self.clear_homes();
        }
        for header in &state.headers {
            self.enter_header(
                *header,
                fresh && (self.is_new() || !self.program_facts.preserved_headers.contains(header)),
            );
        }
    }

    fn enter_slot(&mut self, slot: SlotId, is_zero: bool) {
        let words = words_of(self.program.slots[slot].width);
        let at = self.layout.slot(slot);
        if !self.is_variable(slot) {
            if is_zero && self.scouting.is_none() {
                let zero = self.number(0);
                (0..words as u32).for_each(|index| self.frame_store(at + index, zero));
            }
            return;
        }
        if self.state.in_frame.contains(&slot) {
            if !is_zero && !self.state.written.contains(&slot) {
                self.slots.insert(slot, SlotPlace::Frame(at));
                return;
            }
            let scratch = at + self.layout.scratch;
            // Most of them need no zero, which would take each packet a store.
            let needs_value = !is_zero || self.state.read_first.contains(&slot);
            for index in 0..words as u32 * u32::from(needs_value) {
                let value = if is_zero { self.number(0) } else { self.frame_load(at + index) };
                self.scratch_store(scratch + index, value);
            }
            self.slots.insert(slot, SlotPlace::Frame(scratch));
            if is_zero {
                self.know_slot(slot, 0);
            }
            return;
        }
        let mut variables = Vec::new();
        for index in 0..words as u32 {
            let variable = self.b.declare_var(types::I64);
            let value = if is_zero { self.number(0) } else { self.frame_load(at + index) };
            self.b.def_var(variable, value);
            variables.push(variable);
        }
        if is_zero {
            self.know_slot(slot, 0);
        }
        self.slots.insert(slot, SlotPlace::Variables(variables));
    }

    /// Records a slot's value as a fact, if a branch depends on the slot.
    pub(super) fn know_slot(&mut self, slot: SlotId, value: u64) {
        if self.versions.is_tracked(slot) && self.is_variable(slot) {
            self.facts.slots.insert(slot, value);
        }
    }

    /// Zeros the homes that this packet may have written to.
    pub(super) fn clear_own_homes(&mut self) {
        for header in &self.program_facts.written {
            if !self.state.written_headers.contains(header) {
                continue;
            }
            let (bytes, home) = (self.layout.ty(self.program, *header).home_bytes, self.home(*header));
            if !self.program_facts.extracted.contains(header) || self.program_facts.written_early.contains(header) {
                self.zero_bytes(home, bytes);
                continue;
            }
            match self.facts.places.get(header) {
                Some(Spot::Home) => self.zero_bytes(home, bytes),
                Some(Spot::Packet(_)) => {}
                None => {
                    let place = self.place_to_read(ResolvedHeader::One(*header));
                    self.zero_home_if_there(place, home, bytes);
                }
            }
        }
    }

    /// Zeros the homes that the previous packet wrote to.
    pub(super) fn clear_homes(&mut self) {
        for header in self.program_facts.written.difference(&self.program_facts.preserved_headers) {
            let bytes = self.layout.ty(self.program, *header).home_bytes;
            let home = self.home(*header);
            if self.program_facts.written_early.contains(header) {
                self.zero_bytes(home, bytes);
                continue;
            }
            let place = self.frame_load(self.layout.header(*header).place);
            self.zero_home_if_there(place, home, bytes);
        }
    }

    /// Zeros a header's home if the header is there.
    fn zero_home_if_there(&mut self, place: Value, home: Value, bytes: u32) {
        let (clear, on) = (self.b.create_block(), self.b.create_block());
        let at_home = self.b.ins().icmp(IntCC::Equal, place, home);
        self.b.ins().brif(at_home, clear, &[], on, &[]);
        self.b.switch_to_block(clear);
        self.zero_bytes(home, bytes);
        self.b.ins().jump(on, &[]);
        self.b.switch_to_block(on);
    }

    /// Whether addresses and varbit widths of headers are in the frame: as variables, those of many headers would be
    /// live in the whole function, and allocating registers would take most of the compile time. A scout must not
    /// change the frame, and uses few of them.
    pub(super) fn has_places_in_frame(&self) -> bool {
        self.state.headers.len() > MAX_PLACE_VARIABLES && self.scouting.is_none()
    }

    fn store_home(&mut self, header: HeaderId) {
        let home = self.home(header);
        self.frame_store(self.layout.header(header).place, home);
    }

    /// Puts the addresses that are in the frame back to the headers' homes, and their widths to 0: all of them, or
    /// those that a packet may have changed.
    pub(super) fn restore_places(&mut self, all: bool) {
        if !self.has_places_in_frame() {
            return;
        }
        let state = self.state;
        for header in &state.headers {
            let is_fact = matches!(self.layout.header(*header).valid, Valid::Bit { .. });
            if is_fact && (all || self.facts.places.get(header) != Some(&Spot::Home)) {
                self.store_home(*header);
                if let Some(width) = self.layout.header(*header).width {
                    let zero = self.number(0);
                    self.frame_store(width, zero);
                }
            }
        }
    }

    fn enter_header(&mut self, header: HeaderId, is_new: bool) {
        let layout = *self.layout.header(header);
        if let Valid::Word(valid) = layout.valid {
            if is_new && self.scouting.is_none() {
                let (home, zero) = (self.home(header), self.number(0));
                self.frame_store(layout.place, home);
                self.frame_store(valid, zero);
                layout.width.into_iter().for_each(|width| self.frame_store(width, zero));
            }
            return;
        }
        if self.has_places_in_frame() {
            // The loop over a batch restores the homes at the end of each packet.
            if is_new && self.lane.is_none() {
                self.store_home(header);
            }
            self.places.insert(header, None);
        } else {
            let variable = self.b.declare_var(types::I64);
            let place = if is_new { self.home(header) } else { self.frame_load(layout.place) };
            self.b.def_var(variable, place);
            self.places.insert(header, Some(variable));
        }
        if is_new {
            self.facts.places.insert(header, Spot::Home);
        }
        if let Some(width) = layout.width {
            if self.has_places_in_frame() {
                // As for the addresses.
                if is_new && self.lane.is_none() {
                    let zero = self.number(0);
                    self.frame_store(width, zero);
                }
                return;
            }
            let variable = self.b.declare_var(types::I64);
            let value = if is_new { self.number(0) } else { self.frame_load(width) };
            self.b.def_var(variable, value);
            self.widths.insert(header, variable);
        }
    }

    /// Stores the state that is read outside the unit.
    pub(super) fn leave(&mut self) {
        let state = self.state;
        for index in 0..self.layout.masks.1 {
            let mask = self.mask(index);
            let mask = self.value(mask);
            self.frame_store(self.layout.masks.0 + index, mask);
        }
        let cursor = self.cursor();
        let cursor = if self.layout.byte_cursor { self.w_shl(cursor, 3) } else { cursor };
        let cursor = self.value(cursor);
        self.frame_store(word::CURSOR as u32, cursor);
        let error = self.error();
        let error = self.value(error);
        self.frame_store(word::ERROR as u32, error);
        for slot in &state.seen_slots {
            let at = self.layout.slot(*slot);
            match self.slots.get(slot).cloned() {
                // The frame holds its value already.
                Some(_) if self.is_taken(*slot) && !state.written.contains(slot) => {}
                Some(SlotPlace::Variables(variables)) => {
                    for (index, variable) in variables.into_iter().enumerate() {
                        let value = self.b.use_var(variable);
                        self.frame_store(at + index as u32, value);
                    }
                }
                Some(SlotPlace::Frame(scratch)) => {
                    for index in 0..words_of(self.program.slots[*slot].width) as u32 {
                        let value = self.scratch_load(scratch + index);
                        self.frame_store(at + index, value);
                    }
                }
                None if !state.slots.contains(slot) && !self.is_taken(*slot) => {
                    let zero = self.number(0);
                    let words = words_of(self.program.slots[*slot].width) as u32;
                    (0..words).for_each(|index| self.frame_store(at + index, zero));
                }
                None => {}
            }
        }
        for header in &state.seen_headers {
            let layout = *self.layout.header(*header);
            match self.places.get(header).copied() {
                Some(place) => {
                    if let Some(place) = place {
                        let place = self.b.use_var(place);
                        self.frame_store(layout.place, place);
                    }
                    if let Some(width) = self.widths.get(header).copied() {
                        let value = self.b.use_var(width);
                        self.frame_store(layout.width.expect("the type has a varbit field"), value);
                    }
                }
                None if state.fresh
                    && !state.headers.contains(header)
                    && (self.is_new() || !self.program_facts.preserved_headers.contains(header)) =>
                {
                    let (home, zero) = (self.home(*header), self.number(0));
                    self.frame_store(layout.place, home);
                    layout.width.into_iter().for_each(|width| self.frame_store(width, zero));
                    if let Valid::Word(valid) = layout.valid {
                        self.frame_store(valid, zero);
                    }
                }
                None => {}
            }
        }
    }

    /// Returns the value of a slot.
    pub(super) fn slot(&mut self, slot: SlotId) -> Num {
        let width = self.program.slots[slot].width;
        if let Some(value) = self.facts.slots.get(&slot) {
            return Num::number(*value, width);
        }
        match self.slots.get(&slot).cloned() {
            Some(SlotPlace::Variables(variables)) => {
                let words = variables.into_iter().map(|variable| Word::Value(self.b.use_var(variable)));
                Num { width, words: words.collect() }
            }
            Some(SlotPlace::Frame(scratch)) => {
                let words = (0..words_of(width) as u32).map(|index| Word::Value(self.scratch_load(scratch + index)));
                Num { width, words: words.collect() }
            }
            None => {
                let at = self.layout.slot(slot);
                let words = (0..words_of(width) as u32).map(|index| Word::Value(self.frame_load(at + index)));
                Num { width, words: words.collect() }
            }
        }
    }

    pub(super) fn set_slot(&mut self, slot: SlotId, num: &Num) {
        debug_assert_eq!(num.width, self.program.slots[slot].width);
        match &num.words[..] {
            [Word::Const(value)] => self.know_slot(slot, *value),
            _ => _ = self.facts.slots.remove(&slot),
        }
        match self.slots.get(&slot).cloned() {
            Some(SlotPlace::Variables(variables)) => {
                for (variable, word) in variables.into_iter().zip(&num.words) {
                    let value = self.value(*word);
                    self.b.def_var(variable, value);
                }
            }
            Some(SlotPlace::Frame(scratch)) => {
                for (index, word) in num.words.iter().enumerate() {
                    let value = self.value(*word);
                    self.scratch_store(scratch + index as u32, value);
                }
            }
            None => {
                let at = self.layout.slot(slot);
                for (index, word) in num.words.iter().enumerate() {
                    let value = self.value(*word);
                    self.frame_store(at + index as u32, value);
                }
            }
        }
    }
}
