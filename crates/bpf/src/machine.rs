//! Interprets encoded programs with checked memory: what the kernel does with the instructions that this crate emits.
//!
//! Every access outside the packet, the stack, the context or the region is a [`MachineFault`]. So is a read of a
//! register that was not written, a pointer to a map that is used as memory, an instruction that is never emitted, and
//! a program that does not end. The kernel's verifier proves that none of this happens; here it is found in the run.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::asm::{EXCHANGE, FETCH, Links, MapRef};
use crate::disassemble::Parts;
use crate::uapi;

/// Maximum number of instructions of a run.
const FUEL: u64 = 1 << 20;

const CONTEXT: u64 = 1 << 40;
const STACK: u64 = 2 << 40;
const PACKET: u64 = 3 << 40;
const REGION: u64 = 4 << 40;
const MAPS: u64 = 5 << 40;
/// Distance of the packet's addresses before and after its start moved, so that old pointers are found.
const MOVE: u64 = 1 << 32;
/// Number of bytes in front of a frame: those that the kernel reserves for XDP, less those that it needs for itself.
pub const HEADROOM: usize = 256 - 40;
/// Minimum number of bytes of a frame whose start moves.
const MIN_FRAME: usize = 14;
/// Content of the headroom.
const HEADROOM_BYTE: u8 = 0xa5;
const SPACE: u64 = !((1 << 40) - 1);
const STACK_BYTES: usize = 512;

/// What surrounds a run.
#[derive(Clone, Copy, Debug)]
pub struct Environment<'e> {
    /// The links with which the program was encoded.
    pub links: Links,
    /// The element of the map [`MapRef::Region`].
    pub region: &'e [AtomicU64],
    /// Number of entries of [`MapRef::Devices`]; all are in use.
    pub devices: u32,
    /// Number of entries of [`MapRef::Sockets`]; all are in use.
    pub sockets: u32,
    /// Number of the processor.
    pub cpu: u32,
    /// The time of the kernel's monotonic clock in nanoseconds.
    pub time_ns: u64,
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunOutcome {
    /// The verdict: `XDP_DROP` and so on.
    pub verdict: u32,
    /// The map and the index that the last redirect named.
    pub redirect: Option<(MapRef, u32)>,
    /// Number of instructions that ran.
    pub steps: u64,
    /// The word in front of the packet, if the program made room for it.
    pub meta: Option<u64>,
}

/// A run that the kernel would have refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MachineFault {
    /// An access outside all memory that the program may use.
    #[error("instruction {at} accesses {bytes} bytes at {address:#x}, outside the memory")]
    Memory {
        /// Number of the instruction.
        at: usize,
        /// The address.
        address: u64,
        /// Number of bytes.
        bytes: u32,
    },
    /// A register is read before it is written.
    #[error("instruction {at} reads r{register}, which has no value")]
    NoValue {
        /// Number of the instruction.
        at: usize,
        /// Number of the register.
        register: usize,
    },
    /// The instruction is never emitted, or there is none.
    #[error("there is no instruction at {at} that could run")]
    NoInstruction {
        /// Number of the instruction.
        at: usize,
    },
    /// The program did not end.
    #[error("the program does not end")]
    Endless,
}

struct MachineRun<'r> {
    environment: Environment<'r>,
    packet: &'r mut Vec<u8>,
    /// The address of the packet.
    start: u64,
    /// Number of bytes in front of the packet.
    room: usize,
    stack: [u8; STACK_BYTES],
    registers: [Option<u64>; 11],
    redirect: Option<(MapRef, u32)>,
    meta: Option<u64>,
    at: usize,
}

/// Runs an encoded XDP program on a packet.
///
/// # Errors
/// [`MachineFault`]. The packet and the region may have been changed.
pub fn run(program: &[u64], packet: &mut Vec<u8>, environment: Environment<'_>) -> Result<RunOutcome, MachineFault> {
    let mut registers = [None; 11];
    (registers[1], registers[10]) = (Some(CONTEXT), Some(STACK + STACK_BYTES as u64));
    let mut run = MachineRun {
        environment,
        packet,
        start: PACKET,
        room: HEADROOM,
        stack: [0; STACK_BYTES],
        registers,
        redirect: None,
        meta: None,
        at: 0,
    };
    for steps in 1..=FUEL {
        let word = *program.get(run.at).ok_or(MachineFault::NoInstruction { at: run.at })?;
        if let Some(verdict) = run.step(Parts::of(word), program)? {
            return Ok(RunOutcome { verdict, redirect: run.redirect, steps, meta: run.meta });
        }
    }
    Err(MachineFault::Endless)
}

impl MachineRun<'_> {
    fn get(&self, register: usize) -> Result<u64, MachineFault> {
        let value = self.registers.get(register).copied().flatten();
        value.ok_or(MachineFault::NoValue { at: self.at, register })
    }

    fn set(&mut self, register: usize, value: u64) -> Result<(), MachineFault> {
        // r10 is read only.
        if register >= 10 {
            return Err(MachineFault::NoInstruction { at: self.at });
        }
        self.registers[register] = Some(value);
        Ok(())
    }

    fn operand(&self, parts: Parts) -> Result<u64, MachineFault> {
        if parts.code & 8 != 0 { self.get(parts.source) } else { Ok(i64::from(parts.immediate) as u64) }
    }

    /// Runs one instruction. Returns the verdict at the end of the program.
    fn step(&mut self, parts: Parts, program: &[u64]) -> Result<Option<u32>, MachineFault> {
        let no_instruction = MachineFault::NoInstruction { at: self.at };
        let mut next = self.at + 1;
        match parts.code {
            0x18 => {
                let high = Parts::of(*program.get(next).ok_or(no_instruction)?).immediate;
                self.load_wide(parts, high)?;
                next += 1;
            }
            0x85 => self.call(parts.immediate)?,
            0x95 => return self.get(0).map(|verdict| Some(verdict as u32)),
            0x05 => next = target(next, parts.offset.into()),
            0x06 => next = target(next, parts.immediate.into()),
            0xdc => self.big_endian(parts)?,
            0xdb => self.atomic(parts)?,
            code => match code & 7 {
                1..=3 if code & 0xe0 == 0x60 => self.access(parts)?,
                4 | 7 => self.operate(parts)?,
                5 if self.holds(parts)? => next = target(next, parts.offset.into()),
                5 => {}
                _ => return Err(no_instruction),
            },
        }
        self.at = next;
        Ok(None)
    }

    fn load_wide(&mut self, parts: Parts, high: i32) -> Result<(), MachineFault> {
        let links = self.environment.links;
        let value = match parts.source {
            0 => u64::from(high as u32) << 32 | u64::from(parts.immediate as u32),
            1 if parts.immediate == links.devices => MAPS + 1,
            1 if parts.immediate == links.sockets => MAPS + 2,
            2 if parts.immediate == links.region => REGION + u64::from(high as u32),
            _ => return Err(MachineFault::NoInstruction { at: self.at }),
        };
        self.set(parts.destination, value)
    }

    fn call(&mut self, function: i32) -> Result<(), MachineFault> {
        let result = match function {
            uapi::GET_SMP_PROCESSOR_ID => self.environment.cpu.into(),
            uapi::KTIME_GET_NS => self.environment.time_ns,
            uapi::ADJUST_META if self.get(1)? == CONTEXT && self.get(2)? == (-8i64).cast_unsigned() => {
                self.meta = Some(0);
                0
            }
            uapi::ADJUST_HEAD if self.get(1)? == CONTEXT && self.meta.is_none() => self.adjust_head(self.get(2)?),
            uapi::REDIRECT_MAP => {
                let (map, key, flags) = (self.get(1)?, self.get(2)? as u32, self.get(3)?);
                let (map, entries) = match map {
                    map if map == MAPS + 1 => (MapRef::Devices, self.environment.devices),
                    map if map == MAPS + 2 => (MapRef::Sockets, self.environment.sockets),
                    address => return Err(MachineFault::Memory { at: self.at, address, bytes: 0 }),
                };
                self.redirect = (key < entries).then_some((map, key)).or(self.redirect);
                if key < entries { uapi::XDP_REDIRECT as u64 } else { flags & 3 }
            }
            _ => return Err(MachineFault::NoInstruction { at: self.at }),
        };
        self.registers[1..=5].fill(None);
        self.set(0, result)
    }

    /// Moves the start of the packet by a signed number of bytes, and returns 0; or returns an error and changes
    /// nothing. All pointers to the packet become invalid, as for the verifier.
    fn adjust_head(&mut self, by: u64) -> u64 {
        // The kernel takes 32 bits.
        let by = by as u32 as i32;
        let (amount, length) = (by.unsigned_abs() as usize, self.packet.len());
        let is_refused = if by < 0 { amount > self.room } else { amount > length };
        self.start += MOVE;
        if is_refused || length as i64 - i64::from(by) < MIN_FRAME as i64 {
            return (-22i64).cast_unsigned();
        }
        if by < 0 {
            self.packet.splice(0..0, std::iter::repeat_n(HEADROOM_BYTE, amount));
            self.room -= amount;
        } else {
            self.packet.drain(..amount);
            self.room += amount;
        }
        0
    }

    fn big_endian(&mut self, parts: Parts) -> Result<(), MachineFault> {
        let value = self.get(parts.destination)?;
        let swapped = match parts.immediate {
            16 => u64::from((value as u16).to_be()),
            32 => u64::from((value as u32).to_be()),
            64 => value.to_be(),
            _ => return Err(MachineFault::NoInstruction { at: self.at }),
        };
        self.set(parts.destination, swapped)
    }

    fn atomic(&mut self, parts: Parts) -> Result<(), MachineFault> {
        let address = self.get(parts.destination)?.wrapping_add_signed(parts.offset.into());
        let value = self.get(parts.source)?;
        // Only words of the region are shared.
        let word = self.region_word(address, 8)?;
        match parts.immediate {
            0 => _ = word.fetch_add(value, Ordering::SeqCst),
            FETCH => {
                let before = word.fetch_add(value, Ordering::SeqCst);
                self.set(parts.source, before)?;
            }
            EXCHANGE => {
                let before = word.swap(value, Ordering::SeqCst);
                self.set(parts.source, before)?;
            }
            _ => return Err(MachineFault::NoInstruction { at: self.at }),
        }
        Ok(())
    }

    fn access(&mut self, parts: Parts) -> Result<(), MachineFault> {
        let bytes = [4, 2, 1, 8][usize::from(parts.code >> 3 & 3)];
        let base = if parts.code & 7 == 1 { parts.source } else { parts.destination };
        let address = self.get(base)?.wrapping_add_signed(parts.offset.into());
        match parts.code & 7 {
            1 => {
                let value = self.load(address, bytes)?;
                self.set(parts.destination, value)
            }
            2 => self.store(address, bytes, i64::from(parts.immediate) as u64),
            _ => {
                let value = self.get(parts.source)?;
                self.store(address, bytes, value)
            }
        }
    }

    fn load(&self, address: u64, bytes: u32) -> Result<u64, MachineFault> {
        if address & SPACE == CONTEXT {
            // The kernel turns loads of these two 32-bit fields into loads of pointers.
            return match (address - CONTEXT, bytes) {
                (0, 4) => Ok(self.start),
                (4, 4) => Ok(self.start + self.packet.len() as u64),
                (8, 4) if self.meta.is_some() => Ok(self.start - 8),
                (16, 4) => Ok(0),
                _ => Err(MachineFault::Memory { at: self.at, address, bytes }),
            };
        }
        if address & SPACE == REGION {
            let word = self.region_word(address, bytes)?.load(Ordering::Relaxed);
            return Ok(word >> (address % 8 * 8) & (u64::MAX >> (64 - bytes * 8)));
        }
        let memory = if address & SPACE == STACK { &self.stack[..] } else { self.packet.as_slice() };
        let range = self.range(address, bytes, memory.len())?;
        let mut value = [0; 8];
        value[..bytes as usize].copy_from_slice(&memory[range]);
        Ok(u64::from_le_bytes(value))
    }

    fn store(&mut self, address: u64, bytes: u32, value: u64) -> Result<(), MachineFault> {
        if address & SPACE == REGION {
            let mask = u64::MAX >> (64 - bytes * 8);
            let (word, shift) = (self.region_word(address, bytes)?, address % 8 * 8);
            let others = word.load(Ordering::Relaxed) & !(mask << shift);
            word.store(others | (value & mask) << shift, Ordering::Relaxed);
            return Ok(());
        }
        let length = if address & SPACE == STACK { STACK_BYTES } else { self.packet.len() };
        if (address, bytes) == (self.start - 8, 8) && self.meta.is_some() {
            self.meta = Some(value);
            return Ok(());
        }
        let range = self.range(address, bytes, length)?;
        let memory = if address & SPACE == STACK { &mut self.stack[..] } else { self.packet.as_mut_slice() };
        memory[range].copy_from_slice(&value.to_le_bytes()[..bytes as usize]);
        Ok(())
    }

    /// Returns the place of an access to the stack or the packet.
    fn range(&self, address: u64, bytes: u32, length: usize) -> Result<std::ops::Range<usize>, MachineFault> {
        let fault = MachineFault::Memory { at: self.at, address, bytes };
        if address & SPACE != STACK && address & SPACE != PACKET {
            return Err(fault);
        }
        let start = if address & SPACE == STACK { STACK } else { self.start };
        let first = address.checked_sub(start).ok_or(fault)? as usize;
        let end = first + bytes as usize;
        if end > length { Err(fault) } else { Ok(first..end) }
    }

    /// Returns the word of an access to the region, which must be aligned.
    fn region_word(&self, address: u64, bytes: u32) -> Result<&AtomicU64, MachineFault> {
        let fault = MachineFault::Memory { at: self.at, address, bytes };
        if address & SPACE != REGION || !address.is_multiple_of(bytes.into()) {
            return Err(fault);
        }
        self.environment.region.get(((address - REGION) / 8) as usize).ok_or(fault)
    }

    fn operate(&mut self, parts: Parts) -> Result<(), MachineFault> {
        let is_wide = parts.code & 7 == 7;
        let operation = parts.code & 0xf0;
        let by = if operation == 0x80 { 0 } else { self.operand(parts)? };
        let before = if operation == 0xb0 { 0 } else { self.get(parts.destination)? };
        let result = match is_wide {
            true => operate(operation, before, by, 63),
            false if operation == 0xc0 => Some(u64::from((before as u32).cast_signed().wrapping_shr(by as u32) as u32)),
            false => operate(operation, before & 0xffff_ffff, by & 0xffff_ffff, 31).map(|low| low & 0xffff_ffff),
        };
        self.set(parts.destination, result.ok_or(MachineFault::NoInstruction { at: self.at })?)
    }

    fn holds(&self, parts: Parts) -> Result<bool, MachineFault> {
        let (a, b) = (self.get(parts.destination)?, self.operand(parts)?);
        let (signed_a, signed_b) = (a.cast_signed(), b.cast_signed());
        Ok(match parts.code & 0xf0 {
            0x10 => a == b,
            0x20 => a > b,
            0x30 => a >= b,
            0x50 => a != b,
            0x60 => signed_a > signed_b,
            0x70 => signed_a >= signed_b,
            0xa0 => a < b,
            0xb0 => a <= b,
            0xc0 => signed_a < signed_b,
            0xd0 => signed_a <= signed_b,
            _ => return Err(MachineFault::NoInstruction { at: self.at }),
        })
    }
}

fn target(next: usize, distance: i64) -> usize {
    next.wrapping_add_signed(distance as isize)
}

fn operate(operation: u8, a: u64, b: u64, shift_mask: u64) -> Option<u64> {
    let amount = (b & shift_mask) as u32;
    Some(match operation {
        0x00 => a.wrapping_add(b),
        0x10 => a.wrapping_sub(b),
        0x20 => a.wrapping_mul(b),
        0x30 => a.checked_div(b).unwrap_or(0),
        0x40 => a | b,
        0x50 => a & b,
        0x60 => a << amount,
        0x70 => a >> amount,
        0x80 => a.wrapping_neg(),
        0x90 => a.checked_rem(b).unwrap_or(a),
        0xa0 => a ^ b,
        0xb0 => b,
        0xc0 => (a.cast_signed() >> amount) as u64,
        _ => return None,
    })
}
