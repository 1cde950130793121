//! A unit as a loop over the packets of a batch.
//!
//! What is the same for all packets is set up once, and of a packet that comes to its end only its row is written:
//! where it lies, how it ended, and the unit's results. What else a unit leaves in the frame is left there when
//! somebody will look at it: the loop stops behind a packet that did not come to its end, that asked for something, or
//! that leaves from elsewhere than its buffer, and can be entered again with the next one.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};
use cranelift_frontend::Variable;

use super::Emit;
use super::known::Known;
use super::words::Word;
use crate::layout::word;
use crate::packet::out;
use crate::scout::{ERROR, Row, SPECIAL, STEP};
use crate::{Step, code};

/// Bytes from one row to the next.
pub(super) const ROW: i64 = size_of::<Row>() as i64;

/// The batch that code runs a unit on, and which packet it is at.
#[derive(Clone, Copy)]
pub(super) struct Lane {
    /// The rows and the notes of the batch: see [`crate::scout`].
    rows: Value,
    pub notes: Value,
    /// The address of the packet's row.
    row: Value,
    /// How the outgoing packet is made.
    pub out: Variable,
    /// Where the code goes from a packet that somebody has done with.
    next: Block,
}

impl Emit<'_, '_> {
    /// Generates the loop: a function of the frame, the rows and notes of the batch, and the addresses of the rows of the
    /// first packet and behind the last, of which the first is smaller. It returns the address of the row that it stopped
    /// at, or of the one behind the last.
    pub(crate) fn batch(mut self, number: usize) {
        let entry = self.b.current_block().expect("a function begins with a block");
        let [rows, notes, first, end] = [1, 2, 3, 4].map(|at| self.b.block_params(entry)[at]);
        let (head, next) = (self.b.create_block(), self.b.create_block());
        // From one packet to the next, homes are cleared behind the one that wrote to them.
        self.clear_homes();
        // Nothing else goes from packet to packet: what code keeps in memory for want of registers, the next one waits for.
        let row = self.b.append_block_param(head, types::I64);
        self.b.ins().jump(head, &[first.into()]);
        self.b.switch_to_block(head);
        let lane = Lane { rows, notes, row, out: self.b.declare_var(types::I64), next };
        self.lane = Some(lane);
        self.packet = self.row_load(lane, offset_of!(Row, packet));
        self.length = self.row_load(lane, offset_of!(Row, length));
        let nothing = self.number(out::EMITTED);
        self.b.def_var(lane.out, nothing);
        self.specialise();
        self.all_steps(number);
        self.b.switch_to_block(next);
        let next_row = self.b.ins().iadd_imm_s(row, ROW);
        let more = self.b.ins().icmp(IntCC::UnsignedLessThan, next_row, end);
        let done = self.b.create_block();
        self.b.ins().brif(more, head, &[next_row.into()], done, &[]);
        self.b.switch_to_block(done);
        self.b.ins().return_(&[end]);
        let finish = self.finish;
        self.b.switch_to_block(finish);
        self.known = Known::default();
        self.fill_row(lane);
        self.leave();
        let out = self.b.use_var(lane.out);
        self.frame_store(word::OUT as u32, out);
        self.tell_packet();
        self.b.ins().return_(&[lane.row]);
        self.b.set_cold_block(finish);
        self.seal();
    }

    /// All steps are done. Whoever has to put the packet together needs all of it.
    pub(super) fn done(&mut self, lane: Lane) {
        let deparses = |step: &Step| matches!(step, Step::Run(body) if self.facts.deparser == Some(*body));
        let finish = self.finish;
        if !self.steps.iter().any(deparses) {
            self.b.ins().jump(finish, &[]);
            return;
        }
        if !self.known.is_placed {
            let out = self.b.use_var(lane.out);
            let replaced = self.w_cmp(IntCC::Equal, Word::Value(out), Word::Known(out::REPLACED));
            let on = self.b.create_block();
            self.branch(replaced, finish, on);
            self.b.switch_to_block(on);
        }
        self.light(lane);
    }

    /// Ends the packet's way at this step if a word is not 0. Returns whether it may be 0.
    pub(super) fn drop_if(&mut self, lane: Lane, condition: Word) -> bool {
        if let Word::Known(0) = condition {
            return true;
        }
        let (stop, on) = (self.b.create_block(), self.b.create_block());
        self.branch(condition, stop, on);
        self.b.switch_to_block(stop);
        let known = self.known.clone();
        self.set_ending(code::STOPPED | (self.step as u64) << STEP);
        let nothing = self.number(out::EMITTED);
        self.b.def_var(lane.out, nothing);
        self.light(lane);
        self.known = known;
        self.b.switch_to_block(on);
        matches!(condition, Word::Value(_))
    }

    /// The packet's way has ended, and the next one's begins.
    fn light(&mut self, lane: Lane) {
        if self.state.asks {
            let asked = self.frame_load(word::ASKED as u32);
            let (finish, on) = (self.finish, self.b.create_block());
            self.b.ins().brif(asked, finish, &[], on, &[]);
            self.b.switch_to_block(on);
        }
        self.fill_row(lane);
        self.clear_own_homes();
        self.b.ins().jump(lane.next, &[]);
    }

    /// Writes what is kept of every packet.
    fn fill_row(&mut self, lane: Lane) {
        let (ending, error) = (self.ending(), self.error());
        let error = self.w_shl(error, ERROR);
        let ended = self.w_or(ending, error);
        let ended = if self.known.is_special { self.w_or(ended, Word::Known(SPECIAL)) } else { ended };
        let (out, ended) = (self.b.use_var(lane.out), self.value(ended));
        self.row_store(lane, offset_of!(Row, out), out);
        self.row_store(lane, offset_of!(Row, ended), ended);
        for index in 0..self.notes.results.len() {
            let result = self.slot(self.notes.results[index]);
            let result = if result.width == 0 { Word::Known(0) } else { result.low() };
            let result = self.value(result);
            self.row_store(lane, offset_of!(Row, results) + index * 8, result);
        }
    }

    /// The number of the packet in the batch.
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

    /// Puts into the frame where the packet lies, for those who look there.
    pub(super) fn tell_packet(&mut self) {
        if self.lane.is_some() {
            self.frame_store(word::PACKET as u32, self.packet);
            self.frame_store(word::LENGTH as u32, self.length);
        }
    }
}
