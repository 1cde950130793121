//! Emits executions of meters.
//!
//! A packet needs the colour at once, but it may still be handed over, and the switch would meter it again. So it
//! computes the new state and writes it at the commit. Until then it has the meter's lock, which the workers of the
//! switch take, too. A packet in the kernel may not wait for a thread that has no processor, so it tries a number of
//! times and is handed over then.

use engine::{Colour, meter_word};
use ir::{Expr, LValue, MeterId, TableId, Unit};

use super::scratch::ScratchWord;
use super::{Emitter, HandOverReason, R0, R1, R2, R3, R4};
use crate::asm::{AccessSize, Alu, Cond, Instruction, Label, MapRef, Reg};
use crate::layout::MeterCells;

/// Tokens of one packet or byte.
const TOKENS: i32 = 1_000_000_000;
const CELL_BYTES: i32 = meter_word::COUNT as i32 * 8;

/// A place of the code that executes a meter.
pub(super) struct MeterSite {
    cells: MeterCells,
    /// The word with the number of the cell plus 1 while the packet has its lock, else 0. It is 0 between packets.
    cell: ScratchWord,
    committed: ScratchWord,
    peak: ScratchWord,
    filled: ScratchWord,
}

/// Returns the offset of a word of a cell.
fn at(word: usize) -> i16 {
    word as i16 * 8
}

impl Emitter<'_> {
    pub(super) fn meter_problem(&self, meter: MeterId, index: &Expr, place: &LValue) -> Option<HandOverReason> {
        let is_refused = !self.layout.meters.contains_key(&meter);
        is_refused
            .then_some(HandOverReason::LargeMeter)
            .or_else(|| self.expr_problem(index))
            .or_else(|| if self.is_needed(place) { self.place_problem(place) } else { None })
    }

    /// Executes a meter of an array, and writes the colour: green beyond the end.
    pub(super) fn meter_execute(&mut self, meter: MeterId, index: &Expr, place: &LValue) {
        let (cells, green, end) = (self.layout.meters[&meter], self.code.label(), self.code.label());
        self.eval(index, 0);
        self.jump_if_number(Cond::Ge, R1, cells.count.into(), green);
        self.execute_cell(cells, self.program.meters[meter].unit, None);
        self.jump(end);
        self.bind(green);
        self.alu(Alu::Mov, R1, Colour::Green as i32);
        self.bind(end);
        self.write_colour(place);
    }

    /// Writes the colour that the last lookup of a table with a direct meter gave, or green.
    pub(super) fn direct_meter_read(&mut self, meter: MeterId, place: &LValue) {
        let colour = self.colour_word(meter);
        self.load_word(R1, colour);
        self.write_colour(place);
    }

    fn write_colour(&mut self, place: &LValue) {
        if self.is_needed(place) {
            self.truncate(R1, self.place_width(place));
            self.write(place);
        }
    }

    /// Returns the word with the colour of a direct meter.
    fn colour_word(&mut self, meter: MeterId) -> ScratchWord {
        if let Some(word) = self.colours.get(&meter) {
            return *word;
        }
        let word = self.scratch.pending_word();
        self.colours.insert(meter, word);
        word
    }

    /// Executes the direct meter of the entry with the record that a lookup found, and keeps the colour.
    pub(super) fn execute_direct_meter(&mut self, table: TableId, record: ScratchWord) {
        let layout = self.layout.tables[&table];
        let (Some(cells), Some(meter)) = (layout.meter, self.program.tables[table].meter) else { return };
        let (colour, generation) = (self.colour_word(meter), self.spill());
        let [miss, end] = [(); 2].map(|()| self.code.label());
        self.load_word(R1, record);
        self.jump_if(Cond::Eq, R1, 0, miss);
        self.jump_if_number(Cond::Gt, R1, layout.capacity.into(), self.abort);
        // The last two words of the record have the number of the cell plus 1, and the generation of the entry.
        self.alu(Alu::Mul, R1, (layout.record_words * 8) as i32);
        self.load_table_address(R2, layout.records);
        self.alu(Alu::Add, R2, R1);
        let last = (layout.record_words as i16 - 2) * 8;
        self.push(Instruction::Load(AccessSize::B8, R0, R2, last + 8));
        self.store_word(generation, R0);
        self.push(Instruction::Load(AccessSize::B8, R1, R2, last));
        // The entry has a number for which there is no room, as the table has less than it requests.
        self.jump_if(Cond::Eq, R1, 0, self.slow);
        self.alu(Alu::Sub, R1, 1);
        self.jump_if_number(Cond::Ge, R1, cells.count.into(), self.abort);
        self.execute_cell(cells, self.program.meters[meter].unit, Some(generation));
        self.store_word(colour, R1);
        self.jump(end);
        self.bind(miss);
        self.store_imm(colour, Colour::Green as i32);
        self.bind(end);
        self.give_back(1);
    }

    /// Executes the meter of the cell with the number in r1, which has a bound, and loads the colour to r1. The packet
    /// is green if the cell belongs to an entry with another generation.
    fn execute_cell(&mut self, cells: MeterCells, unit: Unit, generation: Option<ScratchWord>) {
        let [cell, committed, peak, filled] = [(); 4].map(|()| self.scratch.pending_word());
        let number = self.spill();
        let [green, released, end] = [(); 3].map(|()| self.code.label());
        self.mov(R0, R1);
        self.alu(Alu::Add, R0, 1);
        self.store_word(number, R0);
        // A packet that executes a meter twice would wait for itself.
        let sites = self.meter_sites.iter().filter(|site| site.cells == cells);
        let earlier: Vec<ScratchWord> = sites.map(|site| site.cell).collect();
        for earlier in earlier {
            self.load_word(R3, earlier);
            self.hand_over_if(Cond::Eq, R3, R0, HandOverReason::Meter);
        }
        self.load_cell_address(cells, R1);
        self.jump_unless_used(generation, green);
        self.lock(at(meter_word::LOCK), HandOverReason::Meter);
        self.load_word(R1, number);
        self.store_word(cell, R1);
        self.jump_unless_used(generation, released);
        self.push(Instruction::Load(AccessSize::B8, R0, R2, at(meter_word::FLAGS)));
        self.alu(Alu::And, R0, meter_word::IS_NARROW as i32);
        self.hand_over_if(Cond::Eq, R0, 0, HandOverReason::Meter);
        self.load_elapsed(filled);
        self.fill_bucket(meter_word::PEAK, meter_word::PEAK_TOKENS, meter_word::PEAK_FILL_TIME, peak);
        let [rates, tokens, time] =
            [meter_word::COMMITTED, meter_word::COMMITTED_TOKENS, meter_word::COMMITTED_FILL_TIME];
        self.fill_bucket(rates, tokens, time, committed);
        self.alu(Alu::Mov, R4, 1);
        if unit != Unit::Packets {
            self.load_word(R4, ScratchWord::LENGTH);
        }
        self.alu(Alu::Mul, R4, TOKENS);
        for (colour, bucket) in [(Colour::Red as i32, peak), (Colour::Yellow as i32, committed)] {
            self.alu(Alu::Mov, R1, colour);
            self.load_word(R0, bucket);
            self.jump_if(Cond::Lt, R0, R4, end);
            self.alu(Alu::Sub, R0, R4);
            self.store_word(bucket, R0);
        }
        self.jump(green);
        // The configuration was removed before the packet had the lock.
        self.bind(released);
        self.store_imm(cell, 0);
        self.unlock(at(meter_word::LOCK));
        self.bind(green);
        self.alu(Alu::Mov, R1, Colour::Green as i32);
        self.bind(end);
        self.give_back(1);
        self.meter_sites.push(MeterSite { cells, cell, committed, peak, filled });
    }

    /// Jumps if the meter at r2 has no configuration, or belongs to an entry with another generation. Overwrites r0 and
    /// r1.
    fn jump_unless_used(&mut self, generation: Option<ScratchWord>, otherwise: Label) {
        if let Some(generation) = generation {
            self.load_word(R1, generation);
            self.push(Instruction::Load(AccessSize::B8, R0, R2, at(meter_word::ROUND)));
            self.jump_if(Cond::Ne, R0, R1, otherwise);
        }
        self.push(Instruction::Load(AccessSize::B8, R0, R2, at(meter_word::FLAGS)));
        self.jump_if(Cond::Eq, R0, 0, otherwise);
    }

    /// Loads the time since the last packet to r1: 0 if there was none, or the clock went back.
    fn load_elapsed(&mut self, filled: ScratchWord) {
        let [has_started, is_later] = [(); 2].map(|()| self.code.label());
        self.load_word(R1, ScratchWord::TIME_NS);
        self.push(Instruction::Load(AccessSize::B8, R3, R2, at(meter_word::FILLED)));
        self.push(Instruction::Load(AccessSize::B8, R0, R2, at(meter_word::FLAGS)));
        self.alu(Alu::And, R0, meter_word::HAS_STARTED as i32);
        self.jump_if(Cond::Ne, R0, 0, has_started);
        self.mov(R3, R1);
        self.bind(has_started);
        self.jump_if(Cond::Ge, R1, R3, is_later);
        self.mov(R1, R3);
        self.bind(is_later);
        self.store_word(filled, R1);
        self.alu(Alu::Sub, R1, R3);
    }

    /// Fills a bucket for the time in r1. Overwrites r0, r3 and r4.
    fn fill_bucket(&mut self, rate: usize, tokens: usize, fill_time: usize, to: ScratchWord) {
        let is_full = self.code.label();
        self.push(Instruction::Load(AccessSize::B8, R3, R2, at(rate + 1)));
        self.alu(Alu::Mul, R3, TOKENS);
        self.push(Instruction::Load(AccessSize::B8, R0, R2, at(fill_time)));
        self.jump_if(Cond::Ge, R1, R0, is_full);
        // Less than the size of the bucket is added to no more than that, so 64 bits are enough.
        self.push(Instruction::Load(AccessSize::B8, R0, R2, at(rate)));
        self.alu(Alu::Mul, R0, R1);
        self.push(Instruction::Load(AccessSize::B8, R4, R2, at(tokens)));
        self.alu(Alu::Add, R0, R4);
        self.jump_if(Cond::Ge, R0, R3, is_full);
        self.mov(R3, R0);
        self.bind(is_full);
        self.store_word(to, R3);
    }

    /// Emits the new states of the meters that the packet has executed, and releases them.
    pub(super) fn write_meters(&mut self) {
        for number in 0..self.meter_sites.len() {
            let MeterSite { committed, peak, filled, .. } = self.meter_sites[number];
            self.end_site(number, |emitter| {
                for (word, from) in [
                    (meter_word::COMMITTED_TOKENS, committed),
                    (meter_word::PEAK_TOKENS, peak),
                    (meter_word::FILLED, filled),
                ] {
                    emitter.load_word(R0, from);
                    emitter.push(Instruction::Store(AccessSize::B8, R2, at(word), R0));
                }
                let flags = meter_word::IS_CONFIGURED | meter_word::HAS_STARTED | meter_word::IS_NARROW;
                emitter.push(Instruction::StoreImm(AccessSize::B8, R2, at(meter_word::FLAGS), flags as i32));
            });
        }
    }

    /// Releases the meters that the packet has executed, and leaves them as they were.
    pub(super) fn release_meters(&mut self) {
        for number in 0..self.meter_sites.len() {
            self.end_site(number, |_| {});
        }
    }

    /// Emits what a packet does with a meter that it has executed, at r2, before it releases it.
    fn end_site(&mut self, number: usize, last: impl FnOnce(&mut Self)) {
        let MeterSite { cells, cell, .. } = self.meter_sites[number];
        let is_none = self.code.label();
        self.load_pending_index(cell, cells.count, is_none);
        self.load_cell_address(cells, R1);
        last(self);
        self.store_imm(cell, 0);
        self.unlock(at(meter_word::LOCK));
        self.bind(is_none);
    }

    /// Loads the address of a cell to r2. Its number has a bound; it is overwritten.
    fn load_cell_address(&mut self, cells: MeterCells, number: Reg) {
        self.push(Instruction::LoadAddress(R2, MapRef::Region, cells.first));
        self.alu(Alu::Mul, number, CELL_BYTES);
        self.alu(Alu::Add, R2, number);
    }
}
