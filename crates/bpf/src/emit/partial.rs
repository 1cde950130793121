//! Completes TCP and UDP checksums that a local stack leaves to a card (`CHECKSUM_PARTIAL`), as the switch's ports do
//! (`ports::xdp`).
//!
//! The checksum field of such a packet holds the sum of the pseudo-header. A complete packet has this value by chance,
//! once in 65,536; then its checksum is right as well, and it is left alone. The program sees the completed packet, and
//! so does the switch if the packet is handed over. The code here overwrites r0 to r4, and words of scratch memory that
//! are set later.

use super::scratch::ScratchWord;
use super::{Emitter, PACKET, R0, R1, R2, R3, R4, network};
use crate::asm::{AccessSize, Alu, Cond, Instruction, Label, Reg};

/// Maximum number of VLAN tags that are skipped. Packets with more are handed over.
const MAX_TAGS: u32 = 2;

/// Maximum number of bytes that a checksum covers. Longer packets are handed over.
const MAX_SEGMENT: i32 = 4096;
/// Number of bytes that are added up at once.
const CHUNK: i16 = 32;

const TCP: i32 = 6;
const UDP: i32 = 17;
/// Offsets of the checksums.
const TCP_FIELD: i16 = 16;
const UDP_FIELD: i16 = 6;

/// Bits that [`START`] can have: at most 68, as the header begins at byte 82 at most, behind options and two tags.
const MAX_START: i32 = 0xff;

/// The number of bytes of the transport header and its payload; then the offset of the last of them, less 14.
const SEGMENT: ScratchWord = ScratchWord::LENGTH;
/// The offset of the transport header, less 14.
const START: ScratchWord = ScratchWord::CURSOR;
/// The offset of the checksum in the transport header.
const FIELD: ScratchWord = ScratchWord::OUT;

impl Emitter<'_> {
    /// Completes partial checksums, if the port has local senders. Offsets of r2 are those of an Ethernet header
    /// without tags.
    pub(super) fn complete_checksum(&mut self) {
        let end = self.code.label();
        self.push(Instruction::LoadHasLocalSenders(R1));
        self.jump_if(Cond::Eq, R1, 0, end);
        self.mov(R2, PACKET);
        self.load_ether_type(end);
        for tag in 0..=MAX_TAGS {
            let (is_tagged, is_last) = (self.code.label(), self.code.label());
            self.jump_if(Cond::Eq, R4, network(0x8100), is_tagged);
            self.jump_if(Cond::Ne, R4, network(0x88a8), is_last);
            self.bind(is_tagged);
            if tag == MAX_TAGS {
                self.jump(self.slow);
            } else {
                self.alu(Alu::Add, R2, 4);
                self.load_ether_type(end);
            }
            self.bind(is_last);
        }
        let (is_ipv6, has_sum) = (self.code.label(), self.code.label());
        self.jump_if(Cond::Eq, R4, network(0x86dd), is_ipv6);
        self.jump_if(Cond::Ne, R4, network(0x0800), end);
        self.sum_ipv4(end);
        self.jump(has_sum);
        self.bind(is_ipv6);
        self.sum_ipv6(end);
        self.bind(has_sum);
        self.compare_checksum(end);
        self.add_up_segment();
        self.store_checksum(end);
        self.bind(end);
        // The checks above must not make the paths differ.
        self.load_packet();
    }

    fn load_half(&mut self, to: Reg, offset: i16) {
        self.push(Instruction::Load(AccessSize::B2, to, R2, offset));
    }

    fn load_byte(&mut self, to: Reg, offset: i16) {
        self.push(Instruction::Load(AccessSize::B1, to, R2, offset));
    }

    /// Loads the type of the payload to r4.
    fn load_ether_type(&mut self, otherwise: Label) {
        self.check_bytes(R2, 14, otherwise);
        self.load_half(R4, 12);
    }

    /// Jumps unless the version in the first byte of the network header is this one. Leaves the byte in r3.
    fn check_version(&mut self, version: i32, otherwise: Label) {
        self.load_byte(R3, 14);
        self.mov(R0, R3);
        self.alu(Alu::Rsh, R0, 4);
        self.jump_if(Cond::Ne, R0, version, otherwise);
    }

    /// Adds the words of the packet at these offsets to r1. Overwrites r4.
    fn add_words(&mut self, offsets: impl Iterator<Item = i16>) {
        self.alu(Alu::Mov, R1, 0);
        for offset in offsets {
            self.push(Instruction::Load(AccessSize::B4, R4, R2, offset));
            self.alu(Alu::Add, R1, R4);
        }
    }

    /// Leaves the sum of addresses and length in r1, and the protocol in r3. Moves r2 so that the transport header is
    /// at 14.
    fn sum_ipv4(&mut self, end: Label) {
        self.check_bytes(R2, 34, end);
        self.check_version(4, end);
        // Fragments are never partial.
        self.load_half(R4, 20);
        self.alu(Alu::And, R4, network(0x3fff));
        self.jump_if(Cond::Ne, R4, 0, end);
        self.add_words([26, 30].into_iter());
        // r3 = length of the header, r4 = length of the payload
        self.alu(Alu::And, R3, 15);
        self.alu(Alu::Lsh, R3, 2);
        self.load_half(R4, 16);
        self.push(Instruction::BigEndian(R4, 16));
        self.jump_if(Cond::Lt, R4, R3, end);
        self.alu(Alu::Sub, R4, R3);
        self.store_word(SEGMENT, R4);
        self.push(Instruction::BigEndian(R4, 16));
        self.alu(Alu::Add, R1, R4);
        self.load_byte(R4, 23);
        self.alu(Alu::Add, R2, R3);
        self.mov(R3, R4);
    }

    /// As [`Self::sum_ipv4`]. Packets with extension headers are handed over.
    fn sum_ipv6(&mut self, end: Label) {
        self.check_bytes(R2, 54, end);
        self.check_version(6, end);
        self.load_byte(R3, 20);
        for extension in [0, 43, 60] {
            self.jump_if(Cond::Eq, R3, extension, self.slow);
        }
        self.add_words((22..54).step_by(4));
        self.load_half(R4, 18);
        self.alu(Alu::Add, R1, R4);
        self.push(Instruction::BigEndian(R4, 16));
        self.store_word(SEGMENT, R4);
        self.alu(Alu::Add, R2, 40);
    }

    /// Jumps unless the checksum field equals the folded sum of r1 and the protocol in r3.
    fn compare_checksum(&mut self, end: Label) {
        let (is_tcp, has_field) = (self.code.label(), self.code.label());
        self.jump_if(Cond::Eq, R3, TCP, is_tcp);
        self.jump_if(Cond::Ne, R3, UDP, end);
        self.check_bytes(R2, 14 + 8, end);
        self.load_half(R4, 14 + UDP_FIELD);
        self.store_imm(FIELD, UDP_FIELD.into());
        self.jump(has_field);
        self.bind(is_tcp);
        self.check_bytes(R2, 14 + 18, end);
        self.load_half(R4, 14 + TCP_FIELD);
        self.store_imm(FIELD, TCP_FIELD.into());
        self.bind(has_field);
        // The protocol is the second byte of its word.
        self.alu(Alu::Lsh, R3, if cfg!(target_endian = "little") { 8 } else { 0 });
        self.alu(Alu::Add, R1, R3);
        self.fold(R1);
        self.jump_if(Cond::Ne, R1, R4, end);
    }

    /// Folds a sum of less than 2^48 to 16 bits. Overwrites r0.
    fn fold(&mut self, sum: Reg) {
        for _ in 0..3 {
            self.mov(R0, sum);
            self.alu(Alu::Rsh, R0, 16);
            self.alu(Alu::And, sum, 0xffff);
            self.alu(Alu::Add, sum, R0);
        }
    }

    /// Loads the address of a place, whose offset a word has, to r2. The verifier then knows no more than the bits that
    /// the offset can have.
    fn point_into_packet(&mut self, offset: ScratchWord, bits: i32) {
        self.load_word(R0, offset);
        self.alu(Alu::And, R0, bits);
        self.mov(R2, PACKET);
        self.alu(Alu::Add, R2, R0);
    }

    /// Stores the offset of r2 for [`Self::point_into_packet`].
    fn store_place(&mut self, to: ScratchWord) {
        self.alu(Alu::Sub, R2, PACKET);
        self.store_word(to, R2);
    }

    /// Adds up the segment in r1, in the machine's byte order. Hands over if the packet does not have all of it.
    fn add_up_segment(&mut self) {
        self.store_place(START);
        // Here and behind the chunks, all paths are one to the verifier.
        self.load_packet();
        self.load_word(R3, SEGMENT);
        self.jump_if(Cond::Gt, R3, MAX_SEGMENT, self.slow);
        // The segment ends before its checksum.
        self.load_word(R4, FIELD);
        self.alu(Alu::Add, R4, 2);
        self.jump_if(Cond::Lt, R3, R4, self.slow);
        self.point_into_packet(START, MAX_START);
        self.alu(Alu::Mov, R1, 0);
        self.add_up(CHUNK, AccessSize::B4, true);
        self.store_place(SEGMENT);
        self.point_into_packet(SEGMENT, 2 * MAX_SEGMENT - 1);
        self.add_up(4, AccessSize::B4, true);
        self.add_up(2, AccessSize::B2, false);
        self.add_up(1, AccessSize::B1, false);
        self.fold(R1);
    }

    /// Adds up words of the packet in r1, while r3 bytes are left or only once.
    fn add_up(&mut self, bytes: i16, word: AccessSize, repeats: bool) {
        let [again, end] = [(); 2].map(|()| self.code.label());
        self.bind(again);
        self.jump_if(Cond::Lt, R3, i32::from(bytes), end);
        self.check_bytes(R2, 14 + i32::from(bytes), self.slow);
        for offset in (0..bytes).step_by(word.bytes() as usize) {
            self.push(Instruction::Load(word, R4, R2, 14 + offset));
            if word == AccessSize::B1 && cfg!(target_endian = "big") {
                self.alu(Alu::Lsh, R4, 8);
            }
            self.alu(Alu::Add, R1, R4);
        }
        self.alu(Alu::Add, R2, i32::from(bytes));
        self.alu(Alu::Sub, R3, i32::from(bytes));
        if repeats {
            self.jump(again);
        }
        self.bind(end);
    }

    /// Stores the checksum of a segment with the sum in r1, which includes that of the pseudo-header in the field, and
    /// jumps. A checksum that is right already is left as it is.
    fn store_checksum(&mut self, end: Label) {
        let is_stored = self.code.label();
        self.point_into_packet(START, MAX_START);
        self.load_word(R3, FIELD);
        self.alu(Alu::And, R3, 31);
        self.alu(Alu::Add, R2, R3);
        self.check_bytes(R2, 14 + 2, self.slow);
        self.load_half(R4, 14);
        self.alu(Alu::Add, R4, R1);
        self.fold(R4);
        self.jump_if(Cond::Eq, R4, 0xffff, end);
        self.alu(Alu::Xor, R1, 0xffff);
        // In UDP, 0 stands for no checksum, and its other form replaces it.
        self.jump_if(Cond::Ne, R1, 0, is_stored);
        self.jump_if(Cond::Ne, R3, i32::from(UDP_FIELD), is_stored);
        self.alu(Alu::Mov, R1, 0xffff);
        self.bind(is_stored);
        self.push(Instruction::Store(AccessSize::B2, R2, 14, R1));
        self.jump(end);
    }
}
