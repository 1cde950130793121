//! Hands over packets of a local stack whose TCP or UDP checksum is left to a card (`CHECKSUM_PARTIAL`).
//!
//! The checksum field of such a packet holds the sum of the pseudo-header, as the switch's ports know (`ports::xdp`). A
//! complete packet has this value by chance, once in 65,536; it is handed over, and the switch processes it correctly.
//! So the code here only has to find every packet that the ports would find. It overwrites r0 to r4.

use super::{Emitter, PACKET, R0, R1, R2, R3, R4, network};
use crate::asm::{AccessSize, Alu, Cond, Instruction, Label, Reg};

/// Maximum number of VLAN tags that are skipped. Packets with more are handed over.
const MAX_TAGS: u32 = 2;

const TCP: i32 = 6;
const UDP: i32 = 17;

impl Emitter<'_> {
    /// Hands over packets with partial checksums, if the port has local senders. Offsets of r2 are those of an
    /// Ethernet header without tags.
    pub(super) fn hand_over_partial_checksums(&mut self) {
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
        self.alu(Alu::Add, R2, 40);
    }

    /// Hands over if the checksum field equals the folded sum of r1 and the protocol in r3.
    fn compare_checksum(&mut self, end: Label) {
        let (is_tcp, has_field) = (self.code.label(), self.code.label());
        self.jump_if(Cond::Eq, R3, TCP, is_tcp);
        self.jump_if(Cond::Ne, R3, UDP, end);
        self.check_bytes(R2, 14 + 8, end);
        self.load_half(R4, 14 + 6);
        self.jump(has_field);
        self.bind(is_tcp);
        self.check_bytes(R2, 14 + 18, end);
        self.load_half(R4, 14 + 16);
        self.bind(has_field);
        // The protocol is the second byte of its word.
        self.alu(Alu::Lsh, R3, if cfg!(target_endian = "little") { 8 } else { 0 });
        self.alu(Alu::Add, R1, R3);
        for _ in 0..3 {
            self.mov(R0, R1);
            self.alu(Alu::Rsh, R0, 16);
            self.alu(Alu::And, R1, 0xffff);
            self.alu(Alu::Add, R1, R0);
        }
        self.jump_if(Cond::Eq, R1, R4, self.slow);
    }
}
