//! Emits a unit as a loop over the packets of a batch.
//!
//! The per-call setup is done once for all packets. For a packet that completes, only its row is written: address,
//! ending and the unit's results. The frame is filled in only when it will be read: the loop stops after a packet that
//! did not complete, that has requests, or that leaves from outside its buffer. It can be entered again with the next
//! packet.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};
use cranelift_frontend::Variable;
use ir::SlotId;

use super::Emit;
use super::facts::Facts;
use super::words::Word;
use crate::calls::waiting;
use crate::layout::word;
use crate::packet::out;
use crate::scout::{ERROR, Row, SPECIAL, STEP};
use crate::{MayWait, Step, code};

/// Distance between rows in bytes.
pub(super) const ROW: i64 = size_of::<Row>() as i64;

/// The batch on which code runs a unit, and the current packet.
#[derive(Clone, Copy)]
pub(super) struct Lane {
    /// Rows and prefetch memory of the batch: see [`crate::scout`].
    rows: Value,
    pub prefetch: Value,
    /// Address of the packet's row.
    row: Value,
    /// Form of the outgoing packet.
    pub out: Variable,
    /// Target block after a packet that needs no more work.
    next: Block,
}

impl Emit<'_, '_> {
    /// Generates the loop: a function of the frame, the rows and the prefetch memory of the batch, and the addresses of
    /// the first packet's row and of the row after the last, which is larger. It returns the address of the row at
    /// which it stopped, or of the row after the last.
    pub(crate) fn batch(mut self, number: usize) {
        let entry = self.b.current_block().expect("a function begins with a block");
        let [rows, prefetch, first, end] = [1, 2, 3, 4].map(|at| self.b.block_params(entry)[at]);
        let (head, next) = (self.b.create_block(), self.b.create_block());
        // Homes are cleared between packets, after the packet that wrote to them.
        self.clear_homes();
        self.restore_places(true);
        // Nothing else is carried from packet to packet: a spilled value would make the next packet wait for a store.
        let row = self.b.append_block_param(head, types::I64);
        self.b.ins().jump(head, &[first.into()]);
        self.b.switch_to_block(head);
        let lane = Lane { rows, prefetch, row, out: self.b.declare_var(types::I64), next };
        self.lane = Some(lane);
        self.uses_arrays = true;
        self.waits_inline = self.uses_no_rows_in_egress();
        self.packet = self.row_load(lane, offset_of!(Row, packet));
        self.length = self.row_load(lane, offset_of!(Row, length));
        let nothing = self.number(out::EMITTED);
        self.b.def_var(lane.out, nothing);
        if self.program_facts.has_rows {
            self.begin_pass();
        }
        self.specialise();
        self.all_steps(number);
        self.b.switch_to_block(next);
        self.end_pass(lane);
        let next_row = self.b.ins().iadd_imm_s(row, ROW);
        let more = self.b.ins().icmp(IntCC::UnsignedLessThan, next_row, end);
        let done = self.b.create_block();
        self.b.ins().brif(more, head, &[next_row.into()], done, &[]);
        self.b.switch_to_block(done);
        self.b.ins().return_(&[end]);
        let finish = self.finish;
        self.b.switch_to_block(finish);
        self.facts = Facts::default();
        self.fill_row(lane);
        self.leave();
        let out = self.b.use_var(lane.out);
        self.frame_store(word::OUT as u32, out);
        self.store_packet_words();
        self.b.ins().return_(&[lane.row]);
        self.b.set_cold_block(finish);
        self.seal();
    }

    /// Generates the function that runs the unit on a copy of the packet: a function of the frame and the copy's row.
    /// The frame keeps the packet's state, as far as [`crate::copies`] does not put it back, unless the copy stops with
    /// requests.
    pub(crate) fn copy(mut self, number: usize) {
        let entry = self.b.current_block().expect("a function begins with a block");
        let row = self.b.block_params(entry)[1];
        let next = self.b.create_block();
        let lane = Lane { rows: row, prefetch: row, row, out: self.b.declare_var(types::I64), next };
        self.lane = Some(lane);
        self.packet = self.frame_load(word::PACKET as u32);
        self.length = self.frame_load(word::LENGTH as u32);
        let nothing = self.number(out::EMITTED);
        self.b.def_var(lane.out, nothing);
        self.all_steps(number);
        let finish = self.finish;
        self.b.switch_to_block(finish);
        self.facts = Facts::default();
        self.fill_row(lane);
        if self.state.makes_requests {
            let asked = self.frame_load(word::REQUESTS as u32);
            let stopped = self.b.create_block();
            self.b.ins().brif(asked, stopped, &[], next, &[]);
            self.cold_block(stopped, |emit| {
                emit.call("save_frame", &[emit.frame]);
                emit.leave();
                emit.b.ins().jump(next, &[]);
            });
        } else {
            self.b.ins().jump(next, &[]);
        }
        self.b.switch_to_block(next);
        let zero = self.number(0);
        self.b.ins().return_(&[zero]);
        self.seal();
    }

    /// Ends the packet after its last step. Assembling the outgoing packet needs the complete state.
    pub(super) fn end_steps(&mut self, lane: Lane) {
        let deparses = |step: &Step| matches!(step, Step::Run(body) if self.program_facts.deparser == Some(*body));
        let finish = self.finish;
        if !self.steps.iter().any(deparses) {
            self.b.ins().jump(finish, &[]);
            return;
        }
        if !self.facts.is_placed {
            let out = self.b.use_var(lane.out);
            let replaced = self.w_cmp(IntCC::Equal, Word::Value(out), Word::Const(out::REPLACED));
            let on = self.b.create_block();
            self.branch(replaced, finish, on);
            self.b.switch_to_block(on);
        }
        self.end_packet(lane);
    }

    /// Ends the packet at this step if a word is not 0. Returns whether it may be 0.
    pub(super) fn drop_if(&mut self, lane: Lane, condition: Word) -> bool {
        if let Word::Const(0) = condition {
            return true;
        }
        let (stop, on) = (self.b.create_block(), self.b.create_block());
        self.branch(condition, stop, on);
        self.b.switch_to_block(stop);
        let known = self.facts.clone();
        self.set_ending(code::STOPPED | (self.step as u64) << STEP);
        let nothing = self.number(out::EMITTED);
        self.b.def_var(lane.out, nothing);
        self.end_packet(lane);
        self.facts = known;
        self.b.switch_to_block(on);
        matches!(condition, Word::Value(_))
    }

    /// Stops at this step if the packet has requests, unless they may wait: then they are set aside with the slots that
    /// field lists preserve.
    pub(super) fn stop_unless_waiting(&mut self, lane: Lane, asked: Value, may_wait: MayWait) {
        let (has_requests, on) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(asked, has_requests, &[], on, &[]);
        self.cold_block(has_requests, |emit| {
            let first = emit.layout.inputs.0;
            let room = emit.scratch_words((emit.layout.inputs.1 - first) as usize);
            for slot in &emit.program_facts.kept_slots {
                let value = emit.slot(*slot);
                emit.put_words(&value, room, (emit.layout.slot(*slot) - first) as usize);
            }
            let number = emit.lane_number(lane);
            let number = emit.w_shl(Word::Value(number), waiting::PACKET);
            let place = emit.w_or(number, Word::Const(waiting::flags(may_wait) | emit.step as u64));
            let place = emit.value(place);
            let verdict = emit.call("set_aside", &[emit.frame, room, place]).expect("the function returns a word");
            let (ends, stops) = (emit.b.create_block(), emit.b.create_block());
            let goes_on = emit.b.ins().icmp_imm_u(IntCC::Equal, verdict, waiting::GOES_ON as i64);
            let other = emit.b.create_block();
            emit.b.ins().brif(goes_on, on, &[], other, &[]);
            emit.b.switch_to_block(other);
            let is_stop = emit.b.ins().icmp_imm_u(IntCC::Equal, verdict, waiting::STOPS as i64);
            emit.b.ins().brif(is_stop, stops, &[], ends, &[]);
            emit.b.switch_to_block(stops);
            emit.end_unit(code::STOPPED, 0);
            emit.b.switch_to_block(ends);
            emit.set_ending(code::STOPPED | (emit.step as u64) << STEP);
            let nothing = emit.number(out::EMITTED);
            emit.b.def_var(lane.out, nothing);
            emit.end_packet(lane);
        });
        self.b.switch_to_block(on);
    }

    /// Ends the packet without storing its state, unless it has requests, and continues with the next one.
    fn end_packet(&mut self, lane: Lane) {
        if self.state.makes_requests {
            let asked = self.frame_load(word::REQUESTS as u32);
            let (finish, on) = (self.finish, self.b.create_block());
            self.b.ins().brif(asked, finish, &[], on, &[]);
            self.b.switch_to_block(on);
        }
        self.fill_row(lane);
        if self.state.fresh {
            self.clear_own_homes();
            self.restore_places(false);
        }
        self.b.ins().jump(lane.next, &[]);
    }

    /// Writes the packet's row.
    fn fill_row(&mut self, lane: Lane) {
        let (ending, error) = (self.ending(), self.error());
        let error = self.w_shl(error, ERROR);
        let ended = self.w_or(ending, error);
        let ended = if self.facts.is_special { self.w_or(ended, Word::Const(SPECIAL)) } else { ended };
        let (out, ended) = (self.b.use_var(lane.out), self.value(ended));
        self.row_store(lane, offset_of!(Row, out), out);
        self.row_store(lane, offset_of!(Row, ended), ended);
        for index in 0..self.prefetch.results.len() {
            let is_kept = |step: &Step| matches!(step, Step::Keep(kept, _) if *kept == index);
            if !self.steps.iter().any(is_kept) {
                self.keep_result(index, self.prefetch.results[index]);
            }
        }
    }

    /// Makes the present value of a slot a result.
    pub(super) fn keep_result(&mut self, index: usize, slot: SlotId) {
        let result = self.slot(slot);
        let result = if result.width == 0 { Word::Const(0) } else { result.low() };
        let result = self.value(result);
        match self.lane {
            Some(lane) => self.row_store(lane, offset_of!(Row, results) + index * 8, result),
            None => self.frame_store((word::RESULTS + index) as u32, result),
        }
    }

    /// Returns an input of a copy, which is where a result will be.
    pub(super) fn input(&mut self, lane: Lane, index: usize) -> Value {
        self.row_load(lane, offset_of!(Row, results) + index * 8)
    }

    /// Returns the index of the packet in the batch.
    pub(super) fn lane_number(&mut self, lane: Lane) -> Value {
        let behind = self.b.ins().isub(lane.row, lane.rows);
        self.b.ins().ushr_imm_u(behind, i64::from(ROW.trailing_zeros()))
    }

    pub(super) fn row_load(&mut self, lane: Lane, offset: usize) -> Value {
        self.b.ins().load(types::I64, self.flags.record, lane.row, offset as i32)
    }

    fn row_store(&mut self, lane: Lane, offset: usize, value: Value) {
        self.b.ins().store(self.flags.record, value, lane.row, offset as i32);
    }

    /// Stores the packet's address, length and buffer in the frame, for functions that read them there.
    pub(super) fn store_packet_words(&mut self) {
        if self.lane.is_some() {
            self.frame_store(word::PACKET as u32, self.packet);
            self.frame_store(word::LENGTH as u32, self.length);
        }
    }
}
