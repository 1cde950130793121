//! Keeps the order of a flow whose packets take both paths.
//!
//! Each hand-over has a number, by port and receive queue, and stamps the bucket of its flow with it. The driver of the
//! port says how far the switch has come. Until then, packets of the bucket are handed over as well, and so they do not
//! overtake. The number lies in front of the frame (`data_meta`), with a mark.
//!
//! A flow that is faster than the switch would never return to the kernel, as each of its packets follows another. So
//! if the switch has [`MAX_FOLLOWED`] packets of the queue before it, a packet that would follow runs all the same. If
//! the program hands it over, it goes to the switch. If not, it only follows: it is dropped instead of its commit, and
//! the bucket is *closed*: its packets are dropped until the switch is done with the last one, as most of them would be
//! at a full ring. Then the flow is one of the kernel again.
//!
//! A flow that the program always hands over is never closed. If the switch has [`MAX_WAITING`] packets before it, one
//! is dropped, as it would fill the ring, and take the place of flows that seldom need the switch.
//!
//! ```text
//! bucket: | 48..64 queue plus 1 | 47 closed | 0..47 number |
//! ```

use tables::flat::HASH_MULTIPLIER;

use super::scratch::ScratchWord;
use super::{CONTEXT, Emitter, PACKET, PACKET_END, PORT_RECEIVES, R0, R1, R2, R3, R4, network};
use crate::asm::{AccessSize, Alu, Cond, Instruction, Label, MapRef, Reg};
use crate::layout::{FLOW_BUCKETS, ORDERED_QUEUES};
use crate::uapi;

/// The upper bits of the word in front of a frame that is handed over. The lower ones are its number.
pub const HAND_OVER_MARK: u64 = 0x7ef1 << NUMBER_BITS;
/// Position of the mark, and of the queue in a bucket.
const NUMBER_BITS: u32 = 48;
/// Position of the bit of a closed bucket.
const CLOSED_BIT: u32 = 47;
/// Number of packets of a queue that wait for the switch when those that only follow them begin to be dropped: an
/// eighth of a socket's ring, unless the memory for frames is short.
pub const MAX_FOLLOWED: u32 = 256;
/// Number of packets of a queue that wait for the switch when all others of their flows begin to be dropped. The rest
/// of the ring is for flows without packets there.
pub const MAX_WAITING: u32 = 512;

impl Emitter<'_> {
    /// Hands over packets from ports that are down, and from those that the region does not have.
    pub(super) fn hand_over_from_closed_ports(&mut self) {
        self.push(Instruction::LoadPort(R1));
        self.jump_if(Cond::Ge, R1, self.layout.options.ports as i32, self.slow);
        self.alu(Alu::Lsh, R1, 3);
        self.push(Instruction::LoadAddress(R2, MapRef::Region, self.layout.port_states));
        self.alu(Alu::Add, R2, R1);
        self.push(Instruction::Load(AccessSize::B8, R1, R2, 0));
        self.push(Instruction::Alu32(Alu::Rsh, R1, PORT_RECEIVES.trailing_zeros().cast_signed().into()));
        self.jump_if(Cond::Eq, R1, 0, self.slow);
    }

    /// Hands over packets whose flow has packets that the switch is not done with.
    pub(super) fn hand_over_overtaking(&mut self) {
        let end = self.code.label();
        // r3 = the number that the switch has come to, r4 = the queue
        self.load_queue(R4, self.slow);
        self.load_by_queue(R1, self.layout.handed);
        self.load_by_queue(R3, self.layout.done);
        self.jump_if(Cond::Eq, R1, R3, end);
        self.load_bucket();
        let (is_other, is_dropped) = (self.code.label(), self.code.label());
        self.store_word(ScratchWord::BUCKET, R1);
        self.push(Instruction::Load(AccessSize::B8, R1, R2, 0));
        self.mov(R0, R1);
        self.alu(Alu::Rsh, R0, NUMBER_BITS as i32);
        self.alu(Alu::Sub, R0, 1);
        self.jump_if(Cond::Ne, R0, R4, is_other);
        self.mov(R0, R1);
        self.truncate(R0, CLOSED_BIT);
        self.jump_if(Cond::Le, R0, R3, is_other);
        self.alu(Alu::Rsh, R1, CLOSED_BIT as i32);
        self.alu(Alu::And, R1, 1);
        self.jump_if(Cond::Ne, R1, 0, is_dropped);
        self.load_by_queue(R1, self.layout.handed);
        self.alu(Alu::Sub, R1, R3);
        self.jump_if(Cond::Lt, R1, MAX_FOLLOWED as i32, self.slow);
        self.jump_if(Cond::Ge, R1, MAX_WAITING as i32, is_dropped);
        self.store_imm(ScratchWord::IS_CROWDED, 1);
        self.jump(is_other);
        self.bind(is_dropped);
        self.drop_follower();
        self.bind(is_other);
        // The checks of the bucket must not make the paths differ.
        self.load_packet();
        self.bind(end);
    }

    /// Drops a crowded packet that the program does not hand over, and closes its bucket.
    pub(super) fn drop_if_crowded(&mut self) {
        let end = self.code.label();
        self.load_word(R1, ScratchWord::IS_CROWDED);
        self.jump_if(Cond::Eq, R1, 0, end);
        self.clear_crowded();
        self.release_meters();
        self.release_lock();
        // A packet that the program drops overtakes none. Another queue may have stamped the bucket meanwhile.
        let is_counted = self.code.label();
        self.load_word(R1, ScratchWord::VERDICT);
        self.jump_if(Cond::Ne, R1, 0, is_counted);
        self.load_queue(R4, is_counted);
        self.alu(Alu::Add, R4, 1);
        self.load_word(R1, ScratchWord::BUCKET);
        // The verifier does not know what the word has.
        self.alu(Alu::And, R1, ((FLOW_BUCKETS - 1) << 3) as i32);
        self.push(Instruction::LoadAddress(R2, MapRef::Region, self.layout.buckets));
        self.alu(Alu::Add, R2, R1);
        self.push(Instruction::Load(AccessSize::B8, R1, R2, 0));
        self.mov(R0, R1);
        self.alu(Alu::Rsh, R0, NUMBER_BITS as i32);
        self.jump_if(Cond::Ne, R0, R4, is_counted);
        self.number(R0, 1 << CLOSED_BIT);
        self.alu(Alu::Or, R1, R0);
        self.push(Instruction::Store(AccessSize::B8, R2, 0, R1));
        self.bind(is_counted);
        self.load_word(R4, ScratchWord::LENGTH);
        self.count_crowded();
        self.bind(end);
    }

    /// Clears the mark of a crowded packet.
    pub(super) fn clear_crowded(&mut self) {
        self.store_imm(ScratchWord::IS_CROWDED, 0);
    }

    /// Drops and counts a packet of a closed bucket, or one with too many before it.
    fn drop_follower(&mut self) {
        self.mov(R4, PACKET_END);
        self.alu(Alu::Sub, R4, PACKET);
        self.count_crowded();
    }

    /// Counts a packet of r4 bytes as dropped behind others of its flow, and ends the run.
    fn count_crowded(&mut self) {
        let is_unknown = self.code.label();
        self.push(Instruction::LoadPort(R1));
        self.jump_if(Cond::Ge, R1, self.layout.options.ports as i32, is_unknown);
        self.add_at(R1, self.layout.crowded);
        self.bind(is_unknown);
        self.leave_epoch();
        self.alu(Alu::Mov, R0, uapi::XDP_DROP);
        self.push(Instruction::Exit);
    }

    /// Numbers a packet that is handed over, and stamps its bucket.
    pub(super) fn number_hand_over(&mut self) {
        let end = self.code.label();
        self.load_packet();
        self.alu(Alu::Mov, R3, 0);
        self.load_queue(R4, end);
        self.address_by_queue(R2, self.layout.handed);
        self.alu(Alu::Mov, R3, 1);
        self.push(Instruction::AtomicFetchAdd(R2, 0, R3));
        self.alu(Alu::Add, R3, 1);
        self.load_bucket();
        self.alu(Alu::Add, R4, 1);
        self.alu(Alu::Lsh, R4, NUMBER_BITS as i32);
        self.alu(Alu::Or, R4, R3);
        self.push(Instruction::Store(AccessSize::B8, R2, 0, R4));
        self.bind(end);
        // Nothing else is needed from here on, except the scratch memory for the epoch.
        self.mov(PACKET, R3);
    }

    /// Writes the number of the hand-over in front of the frame, if the driver has room there. The number is in the
    /// register [`PACKET`].
    pub(super) fn mark_frame(&mut self) {
        let end = self.code.label();
        self.mov(R1, CONTEXT);
        self.alu(Alu::Mov, R2, -8);
        self.push(Instruction::Call(uapi::ADJUST_META));
        self.jump_if(Cond::Ne, R0, 0, end);
        self.push(Instruction::Load(AccessSize::B4, R1, CONTEXT, uapi::XDP_MD_DATA_META));
        self.push(Instruction::Load(AccessSize::B4, R2, CONTEXT, uapi::XDP_MD_DATA));
        self.mov(R3, R1);
        self.alu(Alu::Add, R3, 8);
        self.jump_if(Cond::Gt, R3, R2, end);
        self.number(R0, HAND_OVER_MARK);
        self.alu(Alu::Or, R0, PACKET);
        self.push(Instruction::Store(AccessSize::B8, R1, 0, R0));
        self.bind(end);
    }

    /// Loads the number of the queue, counted over all ports. Jumps if the region does not have the port.
    fn load_queue(&mut self, to: Reg, otherwise: Label) {
        self.push(Instruction::LoadPort(to));
        self.jump_if(Cond::Ge, to, self.layout.options.ports as i32, otherwise);
        self.alu(Alu::Lsh, to, ORDERED_QUEUES.trailing_zeros() as i32);
        self.push(Instruction::Load(AccessSize::B4, R0, CONTEXT, uapi::XDP_MD_RX_QUEUE_INDEX));
        self.alu(Alu::And, R0, ORDERED_QUEUES as i32 - 1);
        self.alu(Alu::Or, to, R0);
    }

    /// Loads the address of the word of the queue in r4.
    fn address_by_queue(&mut self, to: Reg, first: u32) {
        self.mov(R0, R4);
        self.alu(Alu::Lsh, R0, 3);
        self.push(Instruction::LoadAddress(to, MapRef::Region, first));
        self.alu(Alu::Add, to, R0);
    }

    fn load_by_queue(&mut self, to: Reg, first: u32) {
        self.address_by_queue(to, first);
        self.push(Instruction::Load(AccessSize::B8, to, to, 0));
    }

    /// Loads the offset of the bucket of the packet's flow in bytes to r1, and its address to r2. A flow has the same
    /// addresses of link and network; behind VLAN tags, only those of the link count. Keeps r3 and r4.
    fn load_bucket(&mut self) {
        let (end, is_ipv6) = (self.code.label(), self.code.label());
        self.alu(Alu::Mov, R1, 0);
        self.check_bytes(PACKET, 14, end);
        self.add_to_hash([0, 4, 8].into_iter());
        self.push(Instruction::Load(AccessSize::B2, R0, PACKET, 12));
        self.jump_if(Cond::Eq, R0, network(0x86dd), is_ipv6);
        self.jump_if(Cond::Ne, R0, network(0x0800), end);
        self.check_bytes(PACKET, 34, end);
        self.add_to_hash([26, 30].into_iter());
        self.jump(end);
        self.bind(is_ipv6);
        self.check_bytes(PACKET, 54, end);
        self.add_to_hash((22..54).step_by(4));
        self.bind(end);
        self.alu(Alu::Rsh, R1, 64 - FLOW_BUCKETS.trailing_zeros() as i32);
        self.alu(Alu::Lsh, R1, 3);
        self.push(Instruction::LoadAddress(R2, MapRef::Region, self.layout.buckets));
        self.alu(Alu::Add, R2, R1);
    }

    /// Adds words of the packet to the hash in r1.
    fn add_to_hash(&mut self, offsets: impl Iterator<Item = i16>) {
        for offset in offsets {
            self.push(Instruction::Load(AccessSize::B4, R0, PACKET, offset));
            self.alu(Alu::Xor, R1, R0);
            self.push(Instruction::Load64(R0, HASH_MULTIPLIER));
            self.alu(Alu::Mul, R1, R0);
        }
    }
}
