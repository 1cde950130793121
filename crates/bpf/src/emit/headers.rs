//! Adds, removes and moves headers.
//!
//! The deparser notes where each header that it emits begins in the outgoing packet. If all are where they were, and
//! are all bytes that the parser consumed, the commit stores the fields that were written. Otherwise it begins with
//! `bpf_xdp_adjust_head`, the last act that can fail, and then writes every header anew: the fields in scratch memory,
//! and the others from copies that were made before.

use std::collections::BTreeMap;

use ir::{HeaderId, LocId, SlotId};

use super::packet::{Bytes, field_start};
use super::scratch::ScratchWord;
use super::{CONTEXT, Emitter, HandOverReason, R0, R1, R2, R3, TABLES};
use crate::asm::{AccessSize, Alu, Cond, Instruction, Label, Reg};
use crate::uapi;

/// Bit of [`ScratchWord::OUT`]: a header was emitted at another place than that at which it was extracted.
pub(super) const MOVED: i32 = 1 << 30;
/// Maximum number of bytes of headers that a packet leaves with, if they are moved.
const MAX_EMITTED_BYTES: i32 = 1000;
/// Pointer to the end of the stack.
const STACK: Reg = Reg(10);

/// A place in the code at which a header is emitted.
#[derive(Clone, Copy, Debug)]
pub(super) struct EmitSite {
    /// The place of the header in the outgoing packet plus 1; 0 if it was not emitted here.
    pub place: ScratchWord,
    pub header: HeaderId,
    pub loc: LocId,
}

/// The bits of a header that one access stores.
struct HeaderPiece {
    at: u32,
    size: AccessSize,
    /// The fields in scratch memory, and by how many bits they are shifted to the left.
    fields: Vec<(ScratchWord, i32)>,
    /// The bits of all other fields.
    others: u64,
    /// The word with these bits.
    saved: Option<ScratchWord>,
}

impl HeaderPiece {
    /// Whether the bits are copied as they are in the packet.
    fn is_copy(&self) -> bool {
        self.fields.is_empty() || self.size == AccessSize::B1
    }
}

impl Emitter<'_> {
    /// Stores the size of the valid headers after the parser, if egress needs it.
    pub(super) fn measure_headers(&mut self) {
        let is_needed = self.pipeline.steps.iter().any(|step| match step {
            engine::Step::PresentLengthTo(slot) => self.read_slot(*slot).is_some(),
            _ => false,
        });
        if is_needed && self.usage.changes_validity {
            let word = self.scratch.pending_word();
            self.load_header_bits();
            self.store_word(word, R1);
            self.measured = Some(word);
        }
    }

    /// Writes to a slot the length of the packet with its present headers, if the slot is read.
    pub(super) fn present_length_to(&mut self, slot: SlotId) {
        let (Some(measured), Some(word)) = (self.measured, self.read_slot(slot)) else {
            return self.copy_word(slot, ScratchWord::LENGTH);
        };
        let is_positive = self.code.label();
        self.load_header_bits();
        self.alu(Alu::Rsh, R1, 3);
        self.load_word(R2, measured);
        self.alu(Alu::Rsh, R2, 3);
        self.alu(Alu::Sub, R1, R2);
        self.load_word(R2, ScratchWord::LENGTH);
        self.alu(Alu::Add, R1, R2);
        self.jump_if(Cond::SGe, R1, 0, is_positive);
        self.alu(Alu::Mov, R1, 0);
        self.bind(is_positive);
        self.truncate(R1, self.program.slots[slot].width);
        self.store_word(word, R1);
    }

    /// Loads the size of the valid headers in bits to r1, without branches, which the verifier would follow.
    fn load_header_bits(&mut self) {
        self.alu(Alu::Mov, R1, 0);
        let headers: Vec<_> = self.scratch.headers.iter().map(|(header, (valid, _))| (*header, *valid)).collect();
        for (header, valid) in headers {
            // Those of a body alone do not count.
            if !self.program.headers[header].local {
                self.load_word(R0, valid);
                self.alu(Alu::Mul, R0, self.program.layout(header).fixed_bits() as i32);
                self.alu(Alu::Add, R1, R0);
            }
        }
    }

    /// Returns the word with the length of the outgoing packet.
    pub(super) fn sent_length(&self) -> ScratchWord {
        if self.usage.moves_headers { ScratchWord::SENT_LENGTH } else { ScratchWord::LENGTH }
    }

    /// Computes the length of the outgoing packet.
    pub(super) fn measure_outgoing(&mut self) {
        let is_in_place = self.code.label();
        self.load_word(R3, ScratchWord::LENGTH);
        self.jump_if_in_place(is_in_place);
        self.alu(Alu::And, R1, MOVED - 1);
        self.loc = self.emits.last().map_or(self.loc, |site| site.loc);
        self.hand_over_if(Cond::Gt, R1, MAX_EMITTED_BYTES + 1, HandOverReason::HeaderLayout);
        self.alu(Alu::Add, R3, R1);
        self.alu(Alu::Sub, R3, R2);
        self.bind(is_in_place);
        self.store_word(ScratchWord::SENT_LENGTH, R3);
    }

    /// Jumps if the outgoing headers are the incoming ones, in place. Loads [`ScratchWord::OUT`] to r1 and
    /// [`ScratchWord::CURSOR`] to r2.
    pub(super) fn jump_if_in_place(&mut self, to: Label) {
        self.load_word(R1, ScratchWord::OUT);
        self.load_word(R2, ScratchWord::CURSOR);
        self.jump_if(Cond::Eq, R1, R2, to);
    }

    /// Gives the packet its outgoing length, and writes all headers.
    pub(super) fn move_headers(&mut self) {
        self.spilled = 0;
        let sites = std::mem::take(&mut self.emits);
        let mut headers = BTreeMap::new();
        for site in &sites {
            headers.entry(site.header).or_insert_with(|| self.pieces(site.header));
        }
        headers.iter().for_each(|(header, pieces)| self.save(*header, pieces));
        // The call overwrites r1 to r5.
        self.push(Instruction::Store(AccessSize::B8, STACK, -8, TABLES));
        self.load_word(R2, ScratchWord::LENGTH);
        self.load_word(R1, ScratchWord::SENT_LENGTH);
        self.alu(Alu::Sub, R2, R1);
        self.mov(R1, CONTEXT);
        self.push(Instruction::Call(uapi::ADJUST_HEAD));
        self.loc = sites.last().map_or(self.loc, |site| site.loc);
        self.hand_over_if(Cond::Ne, R0, 0, HandOverReason::HeaderLayout);
        self.push(Instruction::Load(AccessSize::B8, TABLES, STACK, -8));
        self.load_packet();
        sites.iter().for_each(|site| self.write_header(site, &headers[&site.header]));
        self.spilled = 0;
    }

    /// Returns the pieces of a header, with words for the bits that are not in scratch memory.
    fn pieces(&mut self, header: HeaderId) -> Vec<HeaderPiece> {
        let ty = self.program.layout(header);
        let accesses = Bytes { first: 0, count: ty.fixed_bits() / 8, tail: 0 }.accesses();
        let mut pieces = Vec::new();
        for (at, size) in accesses {
            let (begin, end) = (at * 8, (at + size.bytes()) * 8);
            let mut piece = HeaderPiece { at, size, fields: Vec::new(), others: 0, saved: None };
            for (number, field) in ty.fields.iter().enumerate() {
                let first = field_start(ty, number as u32);
                let last = first + field.width;
                let (low, high) = (first.max(begin), last.min(end));
                if low >= high {
                    continue;
                }
                match self.scratch.fields.get(&(header, number as u32)) {
                    Some(word) => piece.fields.push((*word, end as i32 - last as i32)),
                    None => piece.others |= u64::MAX >> (64 - (high - low)) << (end - high),
                }
            }
            piece.saved = (piece.others != 0).then(|| self.spill());
            pieces.push(piece);
        }
        pieces
    }

    /// Copies the bits of a header that are not in scratch memory from the packet. They are 0 if it was never
    /// extracted.
    fn save(&mut self, header: HeaderId, pieces: &[HeaderPiece]) {
        if pieces.iter().all(|piece| piece.saved.is_none()) {
            return;
        }
        let (end, is_new) = (self.code.label(), self.code.label());
        self.point_at_header(header, [end, is_new, self.slow]);
        for piece in pieces {
            let Some(word) = piece.saved else { continue };
            self.push(Instruction::Load(piece.size, R1, R2, piece.at as i16));
            if !piece.fields.is_empty() {
                self.swap(piece);
                self.number(R0, piece.others);
                self.alu(Alu::And, R1, R0);
            }
            self.store_word(word, R1);
        }
        self.jump(end);
        self.bind(is_new);
        pieces.iter().filter_map(|piece| piece.saved).for_each(|word| self.store_imm(word, 0));
        self.bind(end);
    }

    /// Writes a header to the outgoing packet, if it was emitted here.
    fn write_header(&mut self, site: &EmitSite, pieces: &[HeaderPiece]) {
        let is_not_sent = self.code.label();
        self.load_word(R0, site.place);
        self.jump_if(Cond::Eq, R0, 0, is_not_sent);
        self.point_at(self.program.layout(site.header).fixed_bits() / 8, self.abort);
        for piece in pieces {
            match piece.saved {
                Some(word) => self.load_word(R1, word),
                None => self.alu(Alu::Mov, R1, 0),
            }
            for (word, shift) in &piece.fields {
                self.load_word(R0, *word);
                match shift {
                    0 => {}
                    1.. => self.alu(Alu::Lsh, R0, *shift),
                    _ => self.alu(Alu::Rsh, R0, -shift),
                }
                self.alu(Alu::Or, R1, R0);
            }
            self.swap(piece);
            self.push(Instruction::Store(piece.size, R2, piece.at as i16, R1));
        }
        self.bind(is_not_sent);
    }

    /// Converts the bits of a piece in r1 between the orders of the packet and of numbers.
    fn swap(&mut self, piece: &HeaderPiece) {
        if !piece.is_copy() {
            self.push(Instruction::BigEndian(R1, 8 * piece.size.bytes() as u8));
        }
    }
}
