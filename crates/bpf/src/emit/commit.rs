//! Emits the ends of a packet: hand-over, commit, drop and redirect.

use std::collections::BTreeMap;

use ir::HeaderId;

use super::packet::{MAX_PARSED_BYTES, PLACE_MASK};
use super::scratch::ScratchWord;
use super::{CONTEXT, Emitter, HandOverReason, PACKET, R0, R1, R2, R3, R4, SCRATCH};
use crate::asm::{AccessSize, Alu, Cond, Instruction, Label, MapRef, Reg};
use crate::layout::{PORT_COUNT_BYTES, RECEIVED, SENT};
use crate::uapi;

/// The state of a port in the region: the index of its device plus 1, [`PORT_RECEIVES`], and above 32 bits the maximum
/// length of a frame, which is 0 if packets to the port are handed over.
pub(crate) const PORT_LENGTH_SHIFT: i32 = 32;
/// Bit of the state of a port: packets that it receives run in the kernel.
pub(crate) const PORT_RECEIVES: u64 = 1 << 31;

impl Emitter<'_> {
    /// Ends the first phase of a packet that passed all steps. The checks here are the last that can hand over.
    pub(super) fn leave(&mut self) {
        if self.usage.moves_headers {
            self.measure_outgoing();
        } else if !self.usage.keeps_headers {
            // The outgoing headers are the incoming ones, in place.
            self.load_word(R1, ScratchWord::OUT);
            self.load_word(R2, ScratchWord::CURSOR);
            self.hand_over_if(Cond::Ne, R1, R2, HandOverReason::HeaderLayout);
        }
        self.load_word(R1, ScratchWord::PORT);
        self.jump_if(Cond::Ge, R1, self.layout.options.ports as i32, self.slow);
        self.alu(Alu::Lsh, R1, 3);
        self.push(Instruction::LoadAddress(R2, MapRef::Region, self.layout.port_states));
        self.alu(Alu::Add, R2, R1);
        self.push(Instruction::Load(AccessSize::B8, R1, R2, 0));
        self.alu(Alu::Mov, R2, R1);
        self.alu(Alu::Rsh, R2, PORT_LENGTH_SHIFT);
        self.load_word(R3, self.sent_length());
        self.jump_if(Cond::Gt, R3, R2, self.slow);
        self.push(Instruction::Alu32(Alu::And, R1, i32::MAX.into()));
        self.push(Instruction::Alu32(Alu::Sub, R1, 1.into()));
        self.store_word(ScratchWord::DEVICE, R1);
        self.jump(self.forward);
    }

    /// Emits the second phase, and the other ends.
    pub(super) fn commit(&mut self) {
        self.bind(self.drop);
        let effects = self.code.label();
        self.jump(effects);
        self.bind(self.forward);
        if self.usage.moves_headers {
            let is_in_place = self.code.label();
            self.jump_if_in_place(is_in_place);
            self.move_headers();
            self.jump(effects);
            self.bind(is_in_place);
        }
        self.store_fields();
        self.jump(effects);
        self.bind(effects);
        self.drop_if_crowded();
        // r4 = the length as received, for all counts but those of the outgoing packet
        self.load_word(R4, ScratchWord::LENGTH);
        self.count_received();
        self.count_pending();
        self.write_registers();
        self.write_meters();
        self.release_lock();
        self.count_error();
        let is_dropped = self.code.label();
        self.load_word(R1, ScratchWord::VERDICT);
        self.jump_if(Cond::Ne, R1, 0, is_dropped);
        self.send();
        self.bind(is_dropped);
        self.count_drop();
        self.leave_epoch();
        self.alu(Alu::Mov, R0, uapi::XDP_DROP);
        self.push(Instruction::Exit);
        self.bind(self.abort);
        self.clear_crowded();
        self.release_meters();
        self.release_lock();
        self.leave_epoch();
        self.alu(Alu::Mov, R0, uapi::XDP_ABORTED);
        self.push(Instruction::Exit);
        self.bind(self.slow);
        self.clear_crowded();
        self.release_meters();
        self.release_lock();
        self.number_hand_over();
        self.leave_epoch();
        self.mark_frame();
        self.redirect_to_socket();
    }

    /// Sends the packet as it was received to the socket of its queue, or to the kernel's stack if there is none.
    pub(super) fn redirect_to_socket(&mut self) {
        self.push(Instruction::Load(AccessSize::B4, R2, CONTEXT, uapi::XDP_MD_RX_QUEUE_INDEX));
        self.push(Instruction::LoadMap(R1, MapRef::Sockets));
        self.alu(Alu::Mov, R3, uapi::XDP_PASS);
        self.push(Instruction::Call(uapi::REDIRECT_MAP));
        self.push(Instruction::Exit);
    }

    /// Stores the fields that the program may have changed.
    fn store_fields(&mut self) {
        let mut written: BTreeMap<HeaderId, Vec<u32>> = BTreeMap::new();
        for (header, field) in &self.usage.fields_written {
            if self.scratch.fields.contains_key(&(*header, *field)) && self.scratch.headers.contains_key(header) {
                written.entry(*header).or_default().push(*field);
            }
        }
        for (header, fields) in written {
            // A header that no parser extracts is not in the packet.
            if self.program.layout(header).fixed_bits() / 8 > MAX_PARSED_BYTES {
                continue;
            }
            let is_not_sent = self.code.label();
            // A valid header that was never extracted is not emitted, or headers would be moved. All others are
            // emitted, as the emitted headers are all bytes that the parser consumed.
            self.point_at_header(header, [is_not_sent, is_not_sent, self.abort]);
            for field in fields {
                let word = self.scratch.fields[&(header, field)];
                self.load_word(R1, word);
                self.store_field(R2, header, field);
            }
            self.bind(is_not_sent);
        }
    }

    /// Loads the address of a header where it was extracted to r2. Jumps to the first label if it is not valid, to the
    /// second if it was never extracted, and to the third if the packet has no room for it.
    pub(super) fn point_at_header(&mut self, header: HeaderId, [invalid, new, outside]: [Label; 3]) {
        let (valid, place) = self.scratch.headers[&header];
        self.load_word(R0, valid);
        self.jump_if(Cond::Eq, R0, 0, invalid);
        self.load_word(R0, place);
        self.jump_if(Cond::Eq, R0, 0, new);
        self.point_at(self.program.layout(header).fixed_bits() / 8, outside);
    }

    /// Loads the address of a place, which r0 has plus 1, to r2. Jumps unless the packet has this many bytes there: the
    /// verifier does not know what the parser has checked.
    pub(super) fn point_at(&mut self, bytes: u32, otherwise: Label) {
        self.alu(Alu::Sub, R0, 1);
        self.alu(Alu::And, R0, PLACE_MASK);
        self.alu(Alu::Mov, R2, PACKET);
        self.alu(Alu::Add, R2, R0);
        self.check_bytes(R2, bytes as i32, otherwise);
    }

    /// Adds a packet of r4 bytes to the two words at a register.
    fn add_packet(&mut self, at: Reg) {
        self.alu(Alu::Mov, R0, 1);
        self.push(Instruction::AtomicAdd(at, 0, R0));
        self.push(Instruction::AtomicAdd(at, 8, R4));
    }

    fn count_received(&mut self) {
        let end = self.code.label();
        self.push(Instruction::LoadPort(R1));
        self.jump_if(Cond::Ge, R1, self.layout.options.ports as i32, end);
        self.count_at_port(RECEIVED);
        self.bind(end);
    }

    /// Adds a packet of r4 bytes to a count of the port in r1, which has a bound. The count is the processor's own.
    fn count_at_port(&mut self, offset: u32) {
        self.alu(Alu::Lsh, R1, PORT_COUNT_BYTES.trailing_zeros() as i32);
        self.mov(R2, SCRATCH);
        self.alu(Alu::Add, R2, (self.layout.port_counts + offset) as i32);
        self.alu(Alu::Add, R2, R1);
        self.push(Instruction::Load(AccessSize::B8, R0, R2, 0));
        self.alu(Alu::Add, R0, 1);
        self.push(Instruction::Store(AccessSize::B8, R2, 0, R0));
        self.push(Instruction::Load(AccessSize::B8, R0, R2, 8));
        self.alu(Alu::Add, R0, R4);
        self.push(Instruction::Store(AccessSize::B8, R2, 8, R0));
    }

    /// Adds a packet to the count with the index in a register, which has a bound.
    pub(super) fn add_at(&mut self, index: Reg, first: u32) {
        self.push(Instruction::LoadAddress(R2, MapRef::Region, first));
        self.add_packet_at(index);
    }

    /// Adds a packet to the count with the index in a register, which has a bound. The counts begin at r2.
    fn add_packet_at(&mut self, index: Reg) {
        self.alu(Alu::Lsh, index, 4);
        self.alu(Alu::Add, R2, index);
        self.add_packet(R2);
    }

    /// Loads the index in a pending word to r1. Jumps to `none` if there is none, or it is not below `size`.
    pub(super) fn load_pending_index(&mut self, word: ScratchWord, size: u32, none: Label) {
        self.load_word(R1, word);
        self.jump_if(Cond::Eq, R1, 0, none);
        self.alu(Alu::Sub, R1, 1);
        self.jump_if_number(Cond::Ge, R1, size.into(), none);
    }

    fn count_pending(&mut self) {
        for (word, counter) in std::mem::take(&mut self.counts) {
            let (first, size) = self.layout.counters[&counter];
            let is_none = self.code.label();
            self.load_pending_index(word, size, is_none);
            self.add_at(R1, first);
            self.bind(is_none);
        }
        for (word, table) in std::mem::take(&mut self.hits) {
            let layout = self.layout.tables[&table];
            let Some(first) = layout.counts else { continue };
            let is_none = self.code.label();
            self.load_word(R1, word);
            self.jump_if(Cond::Eq, R1, 0, is_none);
            self.jump_if_number(Cond::Gt, R1, layout.capacity.into(), is_none);
            if let Some(uses) = layout.uses {
                // A reader that sees the count sees the time, too.
                self.load_table_address(R2, uses);
                self.mov(R3, R1);
                self.alu(Alu::Lsh, R3, 3);
                self.alu(Alu::Add, R2, R3);
                self.load_word(R0, ScratchWord::TIME_NS);
                self.push(Instruction::Store(AccessSize::B8, R2, 0, R0));
            }
            self.load_table_address(R2, first);
            self.add_packet_at(R1);
            self.bind(is_none);
        }
    }

    fn count_error(&mut self) {
        let end = self.code.label();
        let no_error = self.error_named("NoError");
        self.load_word(R1, ScratchWord::ERROR);
        self.jump_if(Cond::Eq, R1, no_error as i32, end);
        self.jump_if(Cond::Ge, R1, self.layout.error_count as i32, end);
        self.alu(Alu::Lsh, R1, 3);
        self.push(Instruction::LoadAddress(R2, MapRef::Region, self.layout.errors));
        self.alu(Alu::Add, R2, R1);
        self.alu(Alu::Mov, R0, 1);
        self.push(Instruction::AtomicAdd(R2, 0, R0));
        self.bind(end);
    }

    /// Counts a drop at its place; places that the program does not have are the unknown one.
    fn count_drop(&mut self) {
        let (is_known, loc_count) = (self.code.label(), self.layout.loc_count);
        self.alu(Alu::Mov, R1, 0);
        if let Some(word) = self.pipeline.drop_site.and_then(|slot| self.read_slot(slot)) {
            self.load_word(R1, word);
        }
        self.jump_if_number(Cond::Lt, R1, loc_count.into(), is_known);
        self.alu(Alu::Mov, R1, 0);
        self.bind(is_known);
        let is_by_ingress = self.code.label();
        self.push(Instruction::LoadAddress(R2, MapRef::Region, self.layout.drops));
        self.load_word(R3, ScratchWord::VERDICT);
        self.jump_if(Cond::Eq, R3, 1, is_by_ingress);
        self.alu(Alu::Add, R1, loc_count as i32);
        self.bind(is_by_ingress);
        self.alu(Alu::Lsh, R1, 3);
        self.alu(Alu::Add, R2, R1);
        self.alu(Alu::Mov, R0, 1);
        self.push(Instruction::AtomicAdd(R2, 0, R0));
    }

    /// Counts a packet that leaves, and redirects it.
    fn send(&mut self) {
        self.load_word(R1, ScratchWord::PORT);
        self.jump_if(Cond::Ge, R1, self.layout.options.ports as i32, self.abort);
        if self.usage.moves_headers {
            self.load_word(R4, ScratchWord::SENT_LENGTH);
        }
        self.count_at_port(SENT);
        self.load_word(R2, ScratchWord::DEVICE);
        self.leave_epoch();
        self.push(Instruction::LoadMap(R1, MapRef::Devices));
        self.alu(Alu::Mov, R3, uapi::XDP_ABORTED);
        self.push(Instruction::Call(uapi::REDIRECT_MAP));
        // The device has gone, and the kernel has emptied its place.
        let is_redirected = self.code.label();
        self.jump_if(Cond::Eq, R0, uapi::XDP_REDIRECT, is_redirected);
        self.load_word(R1, ScratchWord::PORT);
        self.jump_if(Cond::Ge, R1, self.layout.options.ports as i32, is_redirected);
        self.load_word(R4, self.sent_length());
        self.add_at(R1, self.layout.unsent);
        self.alu(Alu::Mov, R0, uapi::XDP_ABORTED);
        self.bind(is_redirected);
        self.push(Instruction::Exit);
    }
}
