//! An IPv4 router at XDP, written by hand, whose tables are those of compiled programs: `tables::flat`.
//!
//! ```text
//! if the frame has no IPv4 header of 20 bytes, or a wrong checksum: drop
//! if time to live <= 1: drop
//! record = routes[destination]                          the longest prefix, in a trie
//! if there is none, or it does not forward: drop
//! time to live -= 1; checksum += 0x0100, with end-around carry
//! destination MAC address = record.mac
//! source MAC address = source[record.port], if there is one        a hash table
//! count by port received, routed and sent, or by reason the drop
//! return bpf_redirect_map(devices, record.port)
//! ```
//!
//! It needs no scratch memory, no second copy of the tables that a writer could change, no states of ports, and no
//! order beside a slow path. All values stay in registers.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use bpf::asm::{AccessSize, Alu, AluOperand, Assembly, Cond, Instruction, Label, Links, MapRef, Reg};
use bpf::uapi;
use ports::{KernelProgram, KernelRegion, RedirectMap};
use tables::flat::{
    FlatExact, FlatPrefixes, HASH_MULTIPLIER, HOME_MULTIPLIER, LEAF_BITS, LENGTH_BITS, LENGTH_SHIFT, NODE_BITS,
    NODE_WORDS, NUMBER_BITS, PROBES, PrefixWriter, TARGET_BITS,
};

use crate::{PORTS, Route};

const R0: Reg = Reg(0);
const R1: Reg = Reg(1);
const R2: Reg = Reg(2);
const R3: Reg = Reg(3);
const R4: Reg = Reg(4);
const R5: Reg = Reg(5);
/// The record of the route.
const RECORD: Reg = Reg(6);
/// The offset of the processor's counts.
const COUNTS: Reg = Reg(6);
const PACKET: Reg = Reg(7);
/// Length of the packet in bytes.
const LENGTH: Reg = Reg(8);
/// The port by which the packet leaves.
const PORT: Reg = Reg(9);

/// Maximum number of processors with counts of their own, and the bytes of each one's.
const CPUS: u32 = 64;
const CPU_BYTES: u32 = 512;
/// Numbers of entries that the tables have room for: those of `examples/router`.
const ROUTES: u32 = 1024;
const SOURCES: u32 = 512;
/// Words of a record of a route, action, MAC address and port, and of one of a source, action and MAC address.
const ROUTE_WORDS: u32 = 3;
const SOURCE_WORDS: u32 = 2;
/// The action of an entry that is not the default action.
const ACTS: i32 = 1;

/// Offsets in the frame.
const ETHER_TYPE: i16 = 12;
const IPV4: i16 = 14;
const TIME_TO_LIVE: i16 = 22;
const CHECKSUM: i16 = 24;
const DESTINATION: i16 = 30;
const HEADERS: i32 = 34;

/// The reasons of drops, each with a count.
#[derive(Clone, Copy)]
enum Drop {
    Malformed,
    NotIpv4,
    Expired,
    NoRoute,
}

/// The counts of packets and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// Words that all processors share, as those of compiled programs: atomic additions.
    Shared,
    /// Words of each processor, which somebody has to add up: ordinary additions.
    PerCpu,
    /// None.
    None,
}

/// A router in the kernel.
pub struct HandWritten {
    pub program: KernelProgram,
    /// Its instructions.
    pub code: Vec<u64>,
    /// Kept as the program uses them.
    _region: KernelRegion,
    _targets: [RedirectMap; 2],
}

/// Offsets in the region, in bytes.
struct Memory {
    received: u32,
    routed: u32,
    sent: u32,
    drops: u32,
    prefixes: u32,
    records: u32,
    hash: u32,
    source_records: u32,
    bytes: u32,
}

impl Memory {
    fn new(prefixes: &FlatPrefixes, exact: &FlatExact) -> Memory {
        let mut next = 0;
        let mut take = |words: u32| {
            next += words * 8;
            next - words * 8
        };
        let counts = take(CPUS * CPU_BYTES / 8);
        let of_ports = |number| counts + number * PORTS * 16;
        Memory {
            received: of_ports(0),
            routed: of_ports(1),
            sent: of_ports(2),
            drops: of_ports(3),
            prefixes: take(prefixes.words() as u32),
            records: take((ROUTES + 1) * ROUTE_WORDS),
            hash: take(exact.words() as u32),
            source_records: take((SOURCES + 1) * SOURCE_WORDS),
            bytes: take(0).next_multiple_of(bpf::PAGE_BYTES),
        }
    }
}

impl HandWritten {
    /// Loads the router for port 0, with these routes, and a source address for each port.
    pub fn load(routes: &[Route], sources: &[u64], counting: Counting) -> io::Result<HandWritten> {
        let prefixes = FlatPrefixes::new(32, ROUTES).expect("a shape");
        let exact = FlatExact::new(&[9], SOURCES);
        let memory = Memory::new(&prefixes, &exact);
        let region = KernelRegion::new(memory.bytes)?;
        let slice = |first: u32, words: usize| &region.words()[first as usize / 8..][..words];
        let write = |first: u32, record: &[u64]| {
            let to = slice(first, record.len()).iter();
            to.zip(record).for_each(|(word, value): (&AtomicU64, _)| word.store(*value, Ordering::Relaxed));
        };
        let (trie, mut writer) = (slice(memory.prefixes, prefixes.words()), PrefixWriter::new(prefixes));
        for (number, route) in (1..).zip(routes) {
            writer.insert(trie, route.prefix.into(), route.length, number).expect("there is room");
            let record = [ACTS as u64, route.mac, route.port.into()];
            write(memory.records + number * ROUTE_WORDS * 8, &record);
        }
        for ((number, port), mac) in (1..).zip(0u64..).zip(sources) {
            exact.insert(slice(memory.hash, exact.words()), &[port], number).expect("there is room");
            write(memory.source_records + number * SOURCE_WORDS * 8, &[ACTS as u64, *mac]);
        }
        let (devices, sockets) = (crate::shared::devices(PORTS)?, RedirectMap::sockets(1)?);
        let links = Links { region: region.descriptor(), devices: devices.descriptor(), ..Links::default() };
        let code = Writer { code: Assembly::default(), memory, prefixes, exact, counting }.program();
        let code = code.assemble(&links, false).expect("it is short");
        Ok(HandWritten { program: crate::shared::load(&code)?, code, _region: region, _targets: [devices, sockets] })
    }
}

/// Writes the program.
struct Writer {
    code: Assembly,
    memory: Memory,
    prefixes: FlatPrefixes,
    exact: FlatExact,
    counting: Counting,
}

impl Writer {
    fn program(mut self) -> Assembly {
        let [malformed, not_ipv4, expired, no_route] = [(); 4].map(|()| self.code.label());
        self.load(AccessSize::B4, PACKET, R1, uapi::XDP_MD_DATA);
        self.load(AccessSize::B4, R2, R1, uapi::XDP_MD_DATA_END);
        self.alu(Alu::Mov, LENGTH, R2);
        self.alu(Alu::Sub, LENGTH, PACKET);
        self.alu(Alu::Mov, R3, PACKET);
        self.alu(Alu::Add, R3, HEADERS);
        self.jump_if(Cond::Gt, R3, R2, malformed);
        self.load(AccessSize::B2, R1, PACKET, ETHER_TYPE);
        self.jump_if(Cond::Ne, R1, i32::from(0x0800_u16.to_be()), not_ipv4);
        self.load(AccessSize::B1, R1, PACKET, IPV4);
        self.jump_if(Cond::Ne, R1, 0x45, malformed);
        self.verify(malformed);
        self.load(AccessSize::B1, R1, PACKET, TIME_TO_LIVE);
        self.jump_if(Cond::Lt, R1, 2, expired);
        self.find_route(no_route);
        self.change();
        self.set_source();
        self.find_counts();
        self.count(None, self.memory.received);
        self.count(Some(PORT), self.memory.routed);
        self.count(Some(PORT), self.memory.sent);
        self.push(Instruction::LoadMap(R1, MapRef::Devices));
        self.alu(Alu::Mov, R2, PORT);
        self.alu(Alu::Mov, R3, uapi::XDP_ABORTED);
        self.push(Instruction::Call(uapi::REDIRECT_MAP));
        self.push(Instruction::Exit);
        let ends = [
            (malformed, Drop::Malformed),
            (not_ipv4, Drop::NotIpv4),
            (expired, Drop::Expired),
            (no_route, Drop::NoRoute),
        ];
        for (label, reason) in ends {
            self.push(Instruction::Bind(label));
            self.drop(reason);
        }
        self.code
    }

    /// Adds up the header: the sum of its 16-bit words with end-around carry is 0xffff.
    fn verify(&mut self, malformed: Label) {
        self.load(AccessSize::B4, R1, PACKET, IPV4);
        for offset in (IPV4 + 4..IPV4 + 20).step_by(4) {
            self.load(AccessSize::B4, R2, PACKET, offset);
            self.alu(Alu::Add, R1, R2);
        }
        self.alu(Alu::Mov, R2, R1);
        self.alu(Alu::Rsh, R2, 32);
        self.push(Instruction::Alu32(Alu::Mov, R1, R1.into()));
        self.alu(Alu::Add, R1, R2);
        for _ in 0..2 {
            self.alu(Alu::Mov, R2, R1);
            self.alu(Alu::Rsh, R2, 16);
            self.alu(Alu::And, R1, 0xffff);
            self.alu(Alu::Add, R1, R2);
        }
        self.jump_if(Cond::Ne, R1, 0xffff, malformed);
    }

    /// Finds the longest prefix of the destination (`FlatPrefixes::lookup`), and loads its port. The number is in r5,
    /// and the word of the node in r4.
    fn find_route(&mut self, no_route: Label) {
        let [leaf, end] = [(); 2].map(|()| self.code.label());
        let children = self.memory.prefixes + (self.prefixes.first_child() * 8) as u32;
        let (node_bytes, mask) = ((NODE_WORDS * 8) as u32, (1 << TARGET_BITS) - 1);
        let mut left = 32 - self.prefixes.root_bits() as i32;
        assert_eq!(self.prefixes.short_words(), 0, "the table is small");
        self.load(AccessSize::B4, R3, PACKET, DESTINATION);
        self.push(Instruction::BigEndian(R3, 32));
        self.alu(Alu::Mov, R1, R3);
        self.alu(Alu::Rsh, R1, left);
        self.alu(Alu::Lsh, R1, 3);
        self.push(Instruction::LoadAddress(R2, MapRef::Region, self.memory.prefixes));
        self.alu(Alu::Add, R2, R1);
        self.alu(Alu::Mov, R5, 0);
        let mut leaves = Vec::new();
        loop {
            let has_none = self.code.label();
            self.load(AccessSize::B8, R4, R2, 0);
            self.alu(Alu::Mov, R0, R4);
            self.alu(Alu::And, R0, mask);
            self.jump_if(Cond::Eq, R0, 0, has_none);
            self.alu(Alu::Mov, R5, R0);
            self.push(Instruction::Bind(has_none));
            if left == 0 {
                break;
            }
            self.alu(Alu::Mov, R1, R4);
            self.alu(Alu::Rsh, R1, TARGET_BITS as i32);
            self.alu(Alu::And, R1, mask);
            self.jump_if(Cond::Eq, R1, 0, end);
            self.alu(Alu::Rsh, R4, LENGTH_SHIFT as i32);
            self.alu(Alu::Mov, R0, R4);
            self.alu(Alu::And, R0, (1 << LENGTH_BITS) - 1);
            let is_leaf = self.code.label();
            self.jump_if(Cond::Ne, R0, 0, is_leaf);
            leaves.push((is_leaf, left));
            left -= NODE_BITS as i32;
            self.jump_if(Cond::Gt, R1, self.prefixes.children() as i32, end);
            self.alu(Alu::Lsh, R1, node_bytes.trailing_zeros() as i32);
            // Children have the numbers from 1 on.
            self.push(Instruction::LoadAddress(R2, MapRef::Region, children - node_bytes));
            self.alu(Alu::Add, R2, R1);
            self.alu(Alu::Mov, R1, R3);
            self.alu(Alu::Rsh, R1, left);
            self.alu(Alu::And, R1, NODE_WORDS as i32 - 1);
            self.alu(Alu::Lsh, R1, 3);
            self.alu(Alu::Add, R2, R1);
        }
        self.push(Instruction::Jump(end));
        for (is_leaf, left) in leaves {
            self.push(Instruction::Bind(is_leaf));
            self.alu(Alu::Mov, R2, R3);
            let behind = left - LEAF_BITS as i32;
            self.alu(if behind < 0 { Alu::Lsh } else { Alu::Rsh }, R2, behind.abs());
            self.push(Instruction::Jump(leaf));
        }
        self.push(Instruction::Bind(leaf));
        // The bits of the leaf that are in use have to be those of the destination.
        self.alu(Alu::And, R2, (1 << LEAF_BITS) - 1);
        self.alu(Alu::Rsh, R4, LENGTH_BITS as i32);
        self.alu(Alu::Xor, R4, R2);
        self.alu(Alu::Sub, R0, 1);
        self.alu(Alu::Rsh, R4, R0);
        self.jump_if(Cond::Ne, R4, 0, end);
        self.alu(Alu::Mov, R5, R1);
        self.push(Instruction::Bind(end));
        self.jump_if(Cond::Gt, R5, ROUTES as i32, no_route);
        self.alu(Alu::Mul, R5, (ROUTE_WORDS * 8) as i32);
        self.push(Instruction::LoadAddress(RECORD, MapRef::Region, self.memory.records));
        self.alu(Alu::Add, RECORD, R5);
        self.load(AccessSize::B8, R1, RECORD, 0);
        self.jump_if(Cond::Ne, R1, ACTS, no_route);
        self.load(AccessSize::B8, PORT, RECORD, 16);
        self.jump_if(Cond::Ge, PORT, PORTS as i32, no_route);
    }

    /// Writes the destination's address, and decreases the time to live (RFC 1624, equation 3).
    fn change(&mut self) {
        self.load(AccessSize::B8, R1, RECORD, 8);
        self.store_mac(0);
        self.load(AccessSize::B1, R1, PACKET, TIME_TO_LIVE);
        self.alu(Alu::Sub, R1, 1);
        self.push(Instruction::Store(AccessSize::B1, PACKET, TIME_TO_LIVE, R1));
        let has_no_carry = self.code.label();
        self.load(AccessSize::B2, R1, PACKET, CHECKSUM);
        self.alu(Alu::Add, R1, i32::from(0x0100_u16.to_be()));
        self.jump_if(Cond::Lt, R1, 0xffff, has_no_carry);
        self.alu(Alu::Add, R1, 1);
        self.push(Instruction::Bind(has_no_carry));
        self.push(Instruction::Store(AccessSize::B2, PACKET, CHECKSUM, R1));
    }

    /// Writes the address of the port, if it has one (`FlatExact::lookup`).
    fn set_source(&mut self) {
        let [again, found, end] = [(); 3].map(|()| self.code.label());
        let slot_bytes = self.exact.slot_words() * 8;
        self.push(Instruction::Load64(R0, HASH_MULTIPLIER));
        self.alu(Alu::Mov, R1, PORT);
        self.alu(Alu::Mul, R1, R0);
        self.alu(Alu::Mov, R0, R1);
        self.alu(Alu::Rsh, R0, 32);
        self.alu(Alu::Xor, R1, R0);
        self.push(Instruction::Load64(R0, HOME_MULTIPLIER));
        self.alu(Alu::Mul, R1, R0);
        self.alu(Alu::Rsh, R1, 32);
        self.alu(Alu::Mul, R1, self.exact.home_slots() as i32);
        self.alu(Alu::Rsh, R1, 32);
        self.alu(Alu::Mul, R1, slot_bytes as i32);
        self.push(Instruction::LoadAddress(R2, MapRef::Region, self.memory.hash));
        self.alu(Alu::Add, R2, R1);
        self.alu(Alu::Mov, R3, PROBES as i32);
        self.push(Instruction::Bind(again));
        self.load(AccessSize::B8, R4, R2, 0);
        self.jump_if(Cond::Eq, R4, 0, end);
        self.alu(Alu::Mov, R0, R4);
        self.alu(Alu::Rsh, R0, NUMBER_BITS as i32);
        self.jump_if(Cond::Eq, R0, PORT, found);
        self.alu(Alu::Add, R2, slot_bytes as i32);
        self.alu(Alu::Sub, R3, 1);
        self.jump_if(Cond::Ne, R3, 0, again);
        self.push(Instruction::Jump(end));
        self.push(Instruction::Bind(found));
        self.push(Instruction::Alu32(Alu::Mov, R4, R4.into()));
        self.jump_if(Cond::Gt, R4, SOURCES as i32, end);
        self.alu(Alu::Mul, R4, (SOURCE_WORDS * 8) as i32);
        self.push(Instruction::LoadAddress(R2, MapRef::Region, self.memory.source_records));
        self.alu(Alu::Add, R2, R4);
        self.load(AccessSize::B8, R1, R2, 0);
        self.jump_if(Cond::Ne, R1, ACTS, end);
        self.load(AccessSize::B8, R1, R2, 8);
        self.store_mac(6);
        self.push(Instruction::Bind(end));
    }

    /// Stores the address in r1 in the frame.
    fn store_mac(&mut self, at: i16) {
        self.alu(Alu::Lsh, R1, 16);
        self.push(Instruction::BigEndian(R1, 64));
        self.push(Instruction::Store(AccessSize::B4, PACKET, at, R1));
        self.alu(Alu::Rsh, R1, 32);
        self.push(Instruction::Store(AccessSize::B2, PACKET, at + 4, R1));
    }

    /// Loads the offset of the processor's counts to r6, whose record is not needed any more.
    fn find_counts(&mut self) {
        if self.counting == Counting::PerCpu {
            let is_known = self.code.label();
            self.push(Instruction::Call(uapi::GET_SMP_PROCESSOR_ID));
            self.jump_if(Cond::Lt, R0, CPUS as i32, is_known);
            self.alu(Alu::Mov, R0, 0);
            self.push(Instruction::Bind(is_known));
            self.alu(Alu::Lsh, R0, CPU_BYTES.trailing_zeros() as i32);
            self.alu(Alu::Mov, COUNTS, R0);
        }
    }

    /// Counts the packet and its bytes for port 0, or the one in a register.
    fn count(&mut self, port: Option<Reg>, first: u32) {
        self.push(Instruction::LoadAddress(R2, MapRef::Region, first));
        if let Some(port) = port {
            self.alu(Alu::Mov, R1, port);
            self.alu(Alu::Lsh, R1, 4);
            self.alu(Alu::Add, R2, R1);
        }
        self.alu(Alu::Mov, R0, 1);
        self.add(0, R0);
        self.add(8, LENGTH);
    }

    /// Adds a register to the word at r2.
    fn add(&mut self, offset: i16, more: Reg) {
        match self.counting {
            Counting::Shared => self.push(Instruction::AtomicAdd(R2, offset, more)),
            Counting::PerCpu => {
                if offset == 0 {
                    self.alu(Alu::Add, R2, COUNTS);
                }
                self.load(AccessSize::B8, R1, R2, offset);
                self.alu(Alu::Add, R1, more);
                self.push(Instruction::Store(AccessSize::B8, R2, offset, R1));
            }
            Counting::None => {}
        }
    }

    fn drop(&mut self, reason: Drop) {
        self.find_counts();
        self.count(None, self.memory.received);
        self.push(Instruction::LoadAddress(R2, MapRef::Region, self.memory.drops + reason as u32 * 8));
        self.alu(Alu::Mov, R0, 1);
        self.add(0, R0);
        self.alu(Alu::Mov, R0, uapi::XDP_DROP);
        self.push(Instruction::Exit);
    }

    fn push(&mut self, instruction: Instruction) {
        self.code.push(instruction);
    }

    fn alu(&mut self, alu: Alu, reg: Reg, operand: impl Into<AluOperand>) {
        self.push(Instruction::Alu64(alu, reg, operand.into()));
    }

    fn load(&mut self, size: AccessSize, to: Reg, from: Reg, offset: i16) {
        self.push(Instruction::Load(size, to, from, offset));
    }

    fn jump_if(&mut self, cond: Cond, reg: Reg, operand: impl Into<AluOperand>, to: Label) {
        self.push(Instruction::JumpIf(cond, reg, operand.into(), to));
    }
}
