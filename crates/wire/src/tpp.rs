//! Parses and emits tiny packet programs (Jeyakumar et al., *Millions of Little Minions*, SIGCOMM 2014, sections 3.3
//! and 3.4): a header, up to five instructions, packet memory, and an optional payload.
//!
//! ```text
//! bits   0 version 4 | wide 1 | hop mode 1 | reflect 1 | no writes 1
//!        8 done 1 | absent 1 | suppressed 1 | full 1 | zero 4
//!       16 length 8 | memory length 8               both in units of 2 bytes
//!       32 hop number 8, signed | SP 8 (stack mode) or per-hop length 8 (hop mode), in units of 2 bytes
//!       48 checksum 16 | encapsulated protocol 16, an EtherType; 0 for none | application handle 16
//!       96 instructions, 32 bits each: operation 4 | address 16 | first operand 6 | second operand 6
//! ```
//!
//! The paper names the fields but does not give their positions, so the layout is this project's. The checksum
//! is the Internet checksum of header, instructions and memory. As long as it is correct, these bytes add up to zero,
//! so a UDP checksum that covers the program remains correct when a switch changes the memory.
//!
//! A *transparent* program is between the Ethernet header and any packet, under the EtherType [`ETHERTYPE`]. A
//! *standalone* one is the payload of a UDP datagram to [`UDP_PORT`]. [`find`] locates both in a frame.

mod instruction;
mod place;

pub use instruction::{ALL_ONES, Instruction, Operation};
pub(crate) use place::after_tags;
pub use place::{
    Carriage, ProgramPlace, count_tags, find, find_echo, first_datagram, may_carry, place_among_tags, reflect,
};

use std::fmt;

use crate::field::{get16, put16, require};
use crate::{Malformed, checksum};

/// EtherType of a transparent program (paper, section 3.3).
pub const ETHERTYPE: u16 = 0x6666;
/// UDP destination port of a standalone program; echoes have it as their source port.
pub const UDP_PORT: u16 = 0x6666;
/// Version of this layout.
pub const VERSION: u8 = 1;
/// Size of the header in bytes.
pub const HEADER_LEN: usize = 12;
/// Maximum number of instructions (paper, section 2.1).
pub const MAX_INSTRUCTIONS: usize = 5;
/// Size of an instruction in bytes.
pub const INSTRUCTION_LEN: usize = 4;
/// Maximum length of header, instructions and memory in bytes.
pub const MAX_LEN: usize = 0xff * UNIT;

/// Bytes in a unit of the length fields.
const UNIT: usize = 2;
const FORMAT: &str = "TPP";

/// Size of a word of packet memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WordSize {
    /// 2 bytes.
    Bits16,
    /// 4 bytes.
    Bits32,
}

impl WordSize {
    /// Returns the size in bytes.
    #[inline]
    pub fn bytes(self) -> usize {
        match self {
            WordSize::Bits16 => 2,
            WordSize::Bits32 => 4,
        }
    }

    /// Returns the size in bits.
    pub fn bits(self) -> u32 {
        self.bytes() as u32 * 8
    }
}

/// Addressing of packet memory (paper, section 3.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Addressing {
    /// `PUSH` and `POP` move a stack pointer through all of the memory; operands are words from its start.
    Stack {
        /// Stack pointer in bytes, even, at most 510.
        pointer: usize,
    },
    /// Each hop has a block of its own; operands are words from the start of the block.
    Hop {
        /// Length of a block in bytes, even, at most 510. With 0 all hops share the memory.
        len: usize,
    },
}

/// Status bits that switches set in the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Status(pub u8);

impl Status {
    /// Nothing happened.
    pub const NONE: Status = Status(0);
    /// The program is done: it was reflected or echoed. No switch executes or reflects it.
    pub const DONE: Status = Status(0x80);
    /// An instruction was not executed, because its switch memory does not exist or may not be read.
    pub const ABSENT: Status = Status(0x40);
    /// A write was not executed, because writes are disabled or not permitted there.
    pub const SUPPRESSED: Status = Status(0x20);
    /// An instruction was not executed, because its operand is outside packet memory.
    pub const FULL: Status = Status(0x10);

    /// Whether all of `other` are set.
    #[inline]
    pub fn contains(self, other: Status) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitOrAssign for Status {
    #[inline]
    fn bitor_assign(&mut self, other: Status) {
        self.0 |= other.0;
    }
}

impl fmt::Display for Status {
    /// `done,full`, or nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [
            (Status::DONE, "done"),
            (Status::ABSENT, "absent"),
            (Status::SUPPRESSED, "suppressed"),
            (Status::FULL, "full"),
        ];
        let names: Vec<_> = all.iter().filter(|(flag, _)| self.contains(*flag)).map(|(_, name)| *name).collect();
        f.write_str(&names.join(","))
    }
}

/// A program with complete header, instructions and memory, whose instructions are known.
#[derive(Clone, Copy, Debug)]
pub struct Packet<T> {
    bytes: T,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// Checks version, lengths and instructions. Bytes after the memory are payload.
    ///
    /// The hop number, the stack pointer and the checksum are not checked here: the processor checks them.
    ///
    /// # Errors
    /// Returns an error if a length is wrong or a value is unknown.
    #[inline]
    pub fn new_checked(bytes: T) -> Result<Self, Malformed> {
        let all = bytes.as_ref();
        require(FORMAT, all, HEADER_LEN)?;
        let field = |field, value: u8| Err(Malformed::Field { format: FORMAT, field, value: value.into() });
        if all[0] >> 4 != VERSION {
            return field("version", all[0] >> 4);
        }
        if all[1] & 0x0f != 0 {
            return field("reserved bits", all[1] & 0x0f);
        }
        let (len, memory) = (usize::from(all[2]) * UNIT, usize::from(all[3]) * UNIT);
        let Some(code) = len.checked_sub(HEADER_LEN + memory) else { return field("length", all[2]) };
        if !code.is_multiple_of(INSTRUCTION_LEN) || code > MAX_INSTRUCTIONS * INSTRUCTION_LEN {
            return field("length of the instructions", code as u8);
        }
        require(FORMAT, all, len)?;
        for at in (HEADER_LEN..HEADER_LEN + code).step_by(INSTRUCTION_LEN) {
            if !Operation::is_known(all[at] >> 4) {
                return field("operation", all[at] >> 4);
            }
        }
        Ok(Packet { bytes })
    }

    #[inline]
    fn all(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// Returns the bytes of the header.
    #[inline]
    pub fn header(&self) -> &[u8; HEADER_LEN] {
        self.all().first_chunk().expect("the length was checked")
    }

    /// Returns the length of header, instructions and memory in bytes.
    #[inline]
    pub fn length(&self) -> usize {
        usize::from(self.all()[2]) * UNIT
    }

    /// Returns the length of the memory in bytes.
    #[inline]
    pub fn memory_len(&self) -> usize {
        usize::from(self.all()[3]) * UNIT
    }

    /// Returns the number of instructions.
    #[inline]
    pub fn instruction_count(&self) -> usize {
        (self.length() - self.memory_len() - HEADER_LEN) / INSTRUCTION_LEN
    }

    /// Returns the size of a word of the memory.
    #[inline]
    pub fn word_size(&self) -> WordSize {
        if self.all()[0] & 8 == 0 { WordSize::Bits16 } else { WordSize::Bits32 }
    }

    /// Returns the addressing of the memory.
    #[inline]
    pub fn addressing(&self) -> Addressing {
        let value = usize::from(self.all()[5]) * UNIT;
        if self.all()[0] & 4 == 0 { Addressing::Stack { pointer: value } } else { Addressing::Hop { len: value } }
    }

    /// Whether the first switch that executes all instructions sends the packet back (paper, section 4.4).
    #[inline]
    pub fn is_reflective(&self) -> bool {
        self.all()[0] & 2 != 0
    }

    /// Whether no switch may execute writes of this packet.
    #[inline]
    pub fn is_read_only(&self) -> bool {
        self.all()[0] & 1 != 0
    }

    /// Returns the status bits that switches set.
    #[inline]
    pub fn status(&self) -> Status {
        Status(self.all()[1])
    }

    /// Returns the hop number: the number of switches passed. A program with a negative number waits.
    #[inline]
    pub fn hop(&self) -> i8 {
        self.all()[4] as i8
    }

    /// Returns the checksum.
    #[inline]
    pub fn checksum(&self) -> u16 {
        get16(self.all(), 6)
    }

    /// Whether the checksum is correct.
    #[inline]
    pub fn is_checksum_right(&self) -> bool {
        is_zero_sum(&self.all()[..self.length()])
    }

    /// Returns the EtherType of the payload; 0 if there is none, or in a standalone program.
    pub fn encapsulated(&self) -> u16 {
        get16(self.all(), 8)
    }

    /// Returns the handle of the application.
    #[inline]
    pub fn application(&self) -> u16 {
        get16(self.all(), 10)
    }

    /// Returns the instruction at an index.
    ///
    /// # Panics
    /// Panics if the index is not below [`instruction_count`](Self::instruction_count).
    #[inline]
    pub fn instruction(&self, index: usize) -> Instruction {
        assert!(index < self.instruction_count(), "the index is below the number of instructions");
        let at = HEADER_LEN + index * INSTRUCTION_LEN;
        Instruction::unpack(crate::field::get32(self.all(), at)).expect("operations were checked")
    }

    /// Returns the instructions.
    pub fn instructions(&self) -> impl Iterator<Item = Instruction> {
        (0..self.instruction_count()).map(|index| self.instruction(index))
    }

    /// Returns the memory.
    #[inline]
    pub fn memory(&self) -> &[u8] {
        let len = self.length();
        &self.all()[len - self.memory_len()..len]
    }

    /// Returns the bytes after the memory.
    pub fn payload(&self) -> &[u8] {
        &self.all()[self.length()..]
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Packet<T> {
    /// Returns the mutable memory. Call [`fill_checksum`](Self::fill_checksum) after the last change.
    #[inline]
    pub fn memory_mut(&mut self) -> &mut [u8] {
        let (len, memory) = (self.length(), self.memory_len());
        &mut self.bytes.as_mut()[len - memory..len]
    }

    /// Returns the instructions' bytes, and the mutable memory.
    #[inline]
    pub fn parts_mut(&mut self) -> (&[u8], &mut [u8]) {
        let (len, memory) = (self.length(), self.memory_len());
        let (head, memory) = self.bytes.as_mut()[..len].split_at_mut(len - memory);
        (&head[HEADER_LEN..], memory)
    }

    /// Sets the hop number.
    #[inline]
    pub fn set_hop(&mut self, hop: i8) {
        self.bytes.as_mut()[4] = hop as u8;
    }

    /// Sets the stack pointer in bytes, in stack mode.
    ///
    /// # Panics
    /// Panics if it is odd or above 510.
    #[inline]
    pub fn set_stack_pointer(&mut self, pointer: usize) {
        self.bytes.as_mut()[5] = units("the stack pointer", pointer);
    }

    /// Adds status bits to those that switches set.
    #[inline]
    pub fn add_status(&mut self, status: Status) {
        self.bytes.as_mut()[1] |= status.0 & 0xf0;
    }

    /// Removes status bits from a program. A correct checksum remains correct.
    pub fn clear_status(&mut self, status: Status) {
        let old = get16(self.all(), 0);
        let new = old & !u16::from(status.0 & 0xf0);
        put16(self.bytes.as_mut(), 0, new);
        self.set_checksum(checksum::update(self.checksum(), old, new));
    }

    /// Sets the checksum.
    #[inline]
    pub fn set_checksum(&mut self, checksum: u16) {
        put16(self.bytes.as_mut(), 6, checksum);
    }

    /// Computes the checksum over header, instructions and memory, and sets it.
    pub fn fill_checksum(&mut self) {
        self.set_checksum(0);
        let len = self.length();
        self.set_checksum(checksum::checksum(&self.all()[..len]));
    }
}

/// Whether bytes, their checksum included, add up to zero as 16-bit words (RFC 1071). The byte order does not matter
/// for this test, so words of 8 bytes are added in native order.
#[inline]
fn is_zero_sum(bytes: &[u8]) -> bool {
    let mut words = bytes.chunks_exact(8);
    let mut sum = 0u64;
    for word in &mut words {
        let word = u64::from_ne_bytes([word[0], word[1], word[2], word[3], word[4], word[5], word[6], word[7]]);
        sum += (word & 0xffff_ffff) + (word >> 32);
    }
    for pair in words.remainder().chunks_exact(2) {
        sum += u64::from(u16::from_ne_bytes([pair[0], pair[1]]));
    }
    checksum::fold(sum) == 0xffff
}

/// Converts a length to units of the wire.
#[inline]
fn units(name: &str, bytes: usize) -> u8 {
    assert!(bytes.is_multiple_of(UNIT) && bytes <= MAX_LEN, "{name} is even and at most {MAX_LEN} bytes, not {bytes}");
    (bytes / UNIT) as u8
}

/// The header without its lengths and its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Size of a word of the memory.
    pub word_size: WordSize,
    /// Addressing of the memory.
    pub addressing: Addressing,
    /// Hop number. A negative one makes a program wait for that number of switches.
    pub hop: i8,
    /// Whether the first switch that executes all instructions sends the packet back.
    pub is_reflective: bool,
    /// Whether no switch may execute writes.
    pub is_read_only: bool,
    /// Status bits that switches set.
    pub status: Status,
    /// EtherType of the payload; 0 for none.
    pub encapsulated: u16,
    /// Handle of the application.
    pub application: u16,
}

impl Repr {
    /// Creates the header of a new program without payload.
    pub fn new(word_size: WordSize, addressing: Addressing, application: u16) -> Repr {
        Repr {
            word_size,
            addressing,
            hop: 0,
            is_reflective: false,
            is_read_only: false,
            status: Status::NONE,
            encapsulated: 0,
            application,
        }
    }

    /// Parses the header.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Repr {
        Repr {
            word_size: packet.word_size(),
            addressing: packet.addressing(),
            hop: packet.hop(),
            is_reflective: packet.is_reflective(),
            is_read_only: packet.is_read_only(),
            status: packet.status(),
            encapsulated: packet.encapsulated(),
            application: packet.application(),
        }
    }

    /// Returns the packet with these parts.
    ///
    /// # Panics
    /// Panics if there are more than [`MAX_INSTRUCTIONS`], if the memory has an odd length, or if all but the payload
    /// is longer than [`MAX_LEN`].
    pub fn packet(&self, instructions: &[Instruction], memory: &[u8], payload: &[u8]) -> Vec<u8> {
        assert!(instructions.len() <= MAX_INSTRUCTIONS, "a program has at most {MAX_INSTRUCTIONS} instructions");
        let len = HEADER_LEN + instructions.len() * INSTRUCTION_LEN + memory.len();
        let mut bytes = Vec::with_capacity(len + payload.len());
        let (mode, cursor) = match self.addressing {
            Addressing::Stack { pointer } => (0, units("the stack pointer", pointer)),
            Addressing::Hop { len } => (4, units("the per-hop length", len)),
        };
        let wide = u8::from(self.word_size == WordSize::Bits32) * 8;
        let flags = mode | wide | u8::from(self.is_reflective) << 1 | u8::from(self.is_read_only);
        let lengths = [units("a program", len), units("the memory", memory.len())];
        bytes.extend([
            (VERSION << 4) | flags,
            self.status.0 & 0xf0,
            lengths[0],
            lengths[1],
            self.hop as u8,
            cursor,
            0,
            0,
        ]);
        bytes.extend(self.encapsulated.to_be_bytes());
        bytes.extend(self.application.to_be_bytes());
        instructions.iter().for_each(|instruction| bytes.extend(instruction.pack().to_be_bytes()));
        bytes.extend(memory);
        bytes.extend(payload);
        Packet { bytes: &mut bytes[..] }.fill_checksum();
        bytes
    }
}

#[cfg(test)]
mod tests;
