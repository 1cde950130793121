//! Executes programs in place.

use wire::tpp::{
    ALL_ONES, Addressing, HEADER_LEN, INSTRUCTION_LEN, Instruction, MAX_INSTRUCTIONS, Operation, Packet, Status,
    WordSize,
};

use super::{
    AccessRights, Execution, OWN_FIELD_COUNT, OWN_FIELDS, ProgramVerdict, SwitchMemory, half, max_of, may_be_same,
    own_field,
};
use crate::mutant::{Errors, Mutant, NoErrors};

/// The processor of a switch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tcpu;

impl Tcpu {
    /// Executes the program at the start of `bytes` at one hop. The payload after it is not touched, and no length
    /// changes. Never panics.
    ///
    /// A UDP checksum that covers a standalone program remains correct.
    #[inline]
    pub fn execute<M: SwitchMemory>(bytes: &mut [u8], memory: &mut M, rights: &AccessRights) -> Execution {
        execute(bytes, memory, rights, NoErrors)
    }

    /// Executes a program with an error.
    #[cfg(feature = "testing")]
    pub fn execute_with<M: SwitchMemory>(
        mutant: Mutant,
        bytes: &mut [u8],
        memory: &mut M,
        rights: &AccessRights,
    ) -> Execution {
        execute(bytes, memory, rights, mutant)
    }
}

fn execute<M: SwitchMemory, E: Errors>(
    bytes: &mut [u8],
    memory: &mut M,
    rights: &AccessRights,
    errors: E,
) -> Execution {
    let packet = match Packet::new_checked(&mut *bytes) {
        Ok(packet) => packet,
        Err(malformed) => return Execution::none(ProgramVerdict::Malformed(malformed)),
    };
    if packet.status().contains(Status::DONE) && !errors.is(Mutant::DoneExecuted) {
        return Execution::none(ProgramVerdict::Done);
    }
    if !packet.is_checksum_right() && !errors.is(Mutant::ChecksumIgnored) {
        return Execution::none(ProgramVerdict::WrongChecksum);
    }
    match packet.word_size() {
        WordSize::Bits16 => execute_checked::<M, E, false>(packet, memory, rights, errors),
        WordSize::Bits32 => execute_checked::<M, E, true>(packet, memory, rights, errors),
    }
}

/// Executes a program that is complete and not done.
#[inline]
fn execute_checked<M: SwitchMemory, E: Errors, const WIDE: bool>(
    mut packet: Packet<&mut [u8]>,
    memory: &mut M,
    rights: &AccessRights,
    errors: E,
) -> Execution {
    let addressing = packet.addressing();
    let mut run = ProgramRun::<M, E, WIDE> {
        header: *packet.header(),
        hop: packet.hop(),
        start: 0,
        end: packet.memory_len(),
        pointer: 0,
        bottom: 0,
        status: Status::NONE,
        delta: 0,
        values: [(0, 0); MAX_INSTRUCTIONS],
        value_count: 0,
        repeats: true,
        reads_all: rights.reads.is_all(),
        may_write: (rights.writes_enabled || errors.is(Mutant::WritesNotDisabled))
            && (!packet.is_read_only() || errors.is(Mutant::ReadOnlyIgnored)),
        memory,
        rights,
        errors,
    };
    let (code, packet_memory) = packet.parts_mut();
    run.repeats = repeats(code);
    let mut execution = run.run(code, packet_memory, addressing);
    if packet.is_reflective() && run.reflects(execution.verdict) {
        execution.reflect = true;
        if !errors.is(Mutant::ReflectedTwice) {
            run.status |= Status::DONE;
        }
    }
    run.finish(&mut packet, addressing, execution.verdict);
    execution
}

/// The state of an execution.
struct ProgramRun<'a, M, E, const WIDE: bool> {
    /// The header before the execution.
    header: [u8; HEADER_LEN],
    hop: i8,
    /// The part of packet memory that operands can access.
    start: usize,
    end: usize,
    /// Stack pointer as an offset in packet memory, and its lowest value.
    pointer: usize,
    bottom: usize,
    /// Facts to be added to the header.
    status: Status,
    /// Sum of the changes of 16-bit words that the checksum covers.
    delta: u64,
    /// Locations that were read.
    values: [(u32, u64); MAX_INSTRUCTIONS],
    value_count: usize,
    /// Whether the program may read a location twice, so that values have to be kept.
    repeats: bool,
    /// Whether everything may be read.
    reads_all: bool,
    may_write: bool,
    memory: &'a mut M,
    rights: &'a AccessRights,
    errors: E,
}

/// The reason for which an instruction had no effect.
enum Stop {
    Skip(Status),
    End(Status),
}

const FULL: Stop = Stop::Skip(Status::FULL);
const ABSENT: Stop = Stop::Skip(Status::ABSENT);
const SUPPRESSED: Stop = Stop::Skip(Status::SUPPRESSED);

impl<M: SwitchMemory, E: Errors, const WIDE: bool> ProgramRun<'_, M, E, WIDE> {
    const WORD: WordSize = if WIDE { WordSize::Bits32 } else { WordSize::Bits16 };
    const LEN: usize = if WIDE { 4 } else { 2 };
    const BITS: u32 = if WIDE { 32 } else { 16 };

    #[inline(always)]
    fn is(&self, mutant: Mutant) -> bool {
        self.errors.is(mutant)
    }

    #[inline]
    fn run(&mut self, code: &[u8], packet_memory: &mut [u8], addressing: Addressing) -> Execution {
        if self.hop < 0 && !self.is(Mutant::HopNumberUnsigned) {
            return Execution::none(ProgramVerdict::Waiting);
        }
        if !self.find_block(addressing) {
            self.status |= Status::FULL;
            return Execution::none(ProgramVerdict::Ended);
        }
        let (mut executed, mut left) = (0, code.len() / INSTRUCTION_LEN);
        for bits in code.chunks_exact(INSTRUCTION_LEN) {
            left -= 1;
            let Some(instruction) = Instruction::unpack(get32(bits, 0)) else { continue };
            match self.step(instruction, packet_memory) {
                Ok(()) => executed += 1,
                Err(Stop::Skip(status)) => self.status |= status,
                Err(Stop::End(status)) => {
                    self.status |= status;
                    if self.is(Mutant::FailedCexecMovesPointer) {
                        self.pointer += Self::LEN * left;
                    }
                    return Execution { verdict: ProgramVerdict::Ended, executed, reflect: false };
                }
            }
        }
        Execution { verdict: ProgramVerdict::Completed, executed, reflect: false }
    }

    /// Whether a reflective packet is sent back after an execution with this outcome.
    #[inline]
    fn reflects(&self, verdict: ProgramVerdict) -> bool {
        verdict == ProgramVerdict::Completed || verdict == ProgramVerdict::Ended && self.is(Mutant::EndedReflected)
    }

    /// Finds the part of packet memory that belongs to this hop. Returns false if it does not exist.
    #[inline]
    fn find_block(&mut self, addressing: Addressing) -> bool {
        match addressing {
            Addressing::Stack { pointer } => self.pointer = pointer,
            Addressing::Hop { len: 0 } => {}
            Addressing::Hop { len } => {
                let unit = if self.is(Mutant::HopLengthInWords) { Self::LEN } else { 1 };
                let start = usize::from(self.hop as u8) * len * unit;
                let end = start + len;
                if end > self.end {
                    return false;
                }
                (self.start, self.pointer, self.bottom) = (start, start, start);
                if !self.is(Mutant::OperandsLeaveBlock) {
                    self.end = end;
                }
            }
        }
        true
    }

    #[inline(always)]
    fn step(&mut self, instruction: Instruction, packet: &mut [u8]) -> Result<(), Stop> {
        let Instruction { operation, address, first, second } = instruction;
        let wide = u32::from(address);
        match operation {
            Operation::Load => {
                let at = self.operand(first)?;
                self.load(wide, at, packet, false)
            }
            Operation::Push => {
                let at = self.pointer;
                if at + Self::LEN > self.end {
                    if self.is(Mutant::PushBeyondMemoryMoves) {
                        self.pointer += Self::LEN;
                    }
                    return Err(FULL);
                }
                let loaded = self.load(wide, at, packet, false);
                if loaded.is_ok() || !self.is(Mutant::PushOfAbsentStays) {
                    self.pointer += Self::LEN;
                }
                loaded
            }
            Operation::Store => {
                let at = self.operand(first)?;
                self.store(address, at, packet)
            }
            Operation::Pop => {
                let bottom = if self.is(Mutant::PopBelowStack) { 0 } else { self.bottom };
                if self.pointer > self.end || self.pointer < bottom + Self::LEN {
                    return Err(FULL);
                }
                self.pointer -= Self::LEN;
                self.store(address, self.pointer, packet)
            }
            Operation::Cexec => self.cexec(wide, first, second, packet),
            Operation::Cstore => self.cstore(address, first, second, packet),
            Operation::LoadIndirect => {
                let (at, address_at) = (self.operand(first)?, self.wide_operand(second)?);
                let unchecked = self.is(Mutant::IndirectUnchecked);
                self.load(get32(packet, address_at), at, packet, unchecked)
            }
            Operation::Min | Operation::Max => {
                let at = self.operand(first)?;
                self.extreme(operation == Operation::Min, wide, at, packet)
            }
        }
    }

    #[inline(always)]
    fn load(&mut self, address: u32, at: usize, packet: &mut [u8], unchecked: bool) -> Result<(), Stop> {
        let value = match self.read(address, unchecked) {
            None if self.is(Mutant::AbsentIsZero) => 0,
            None => return Err(ABSENT),
            Some(value) if self.is(Mutant::CounterSaturates) && address & 1 == 0 => value.min(max_of(Self::WORD)),
            Some(value) => value,
        };
        self.put(packet, at, half(value, address, Self::BITS));
        Ok(())
    }

    fn extreme(&mut self, is_min: bool, address: u32, at: usize, packet: &mut [u8]) -> Result<(), Stop> {
        let value = self.read(address, false).ok_or(ABSENT)?;
        let value = if address & 1 == 0 { value } else { value >> Self::BITS };
        let value =
            if self.is(Mutant::MaxOfLowBits) { value & max_of(Self::WORD) } else { value.min(max_of(Self::WORD)) };
        let (old, value) = (Self::get(packet, at), value as u32);
        self.put(packet, at, if is_min { old.min(value) } else { old.max(value) });
        Ok(())
    }

    #[inline]
    fn store(&mut self, address: u16, at: usize, packet: &[u8]) -> Result<(), Stop> {
        if !self.may_write(address) {
            return Err(SUPPRESSED);
        }
        let value = Self::get(packet, at);
        if !is_word(address) {
            return Err(ABSENT);
        }
        self.memory.write(address, value).ok_or(ABSENT)?;
        self.forget(address);
        Ok(())
    }

    fn cexec(&mut self, address: u32, mask: u8, value: u8, packet: &[u8]) -> Result<(), Stop> {
        let value_at = self.wide_operand(value).map_err(Stop::ended)?;
        let mask = match mask {
            ALL_ONES => u32::MAX,
            mask => get32(packet, self.wide_operand(mask).map_err(Stop::ended)?),
        };
        let mask = if self.is(Mutant::MaskIgnored) { u32::MAX } else { mask };
        let found = match self.read(address, false) {
            None if self.is(Mutant::CexecOfAbsentPasses) => return Ok(()),
            None => return Err(Stop::End(Status::ABSENT)),
            Some(found) => half(found, address, 32),
        };
        let wanted = get32(packet, value_at);
        let differ = if self.is(Mutant::CexecOfWords) {
            (found & mask ^ wanted) & max_of(Self::WORD) as u32 != 0
        } else {
            found & mask != wanted
        };
        if differ { Err(Stop::End(Status::NONE)) } else { Ok(()) }
    }

    fn cstore(&mut self, address: u16, old: u8, new: u8, packet: &mut [u8]) -> Result<(), Stop> {
        let old_at = self.operand(old).map_err(Stop::ended)?;
        let new_at = self.operand(new).map_err(Stop::ended)?;
        let (old, new) = (Self::get(packet, old_at), Self::get(packet, new_at));
        if !self.may_write(address) || !self.may_read(address.into()) {
            if !self.is(Mutant::DisabledCstoreLooksStored) {
                self.put(packet, old_at, !old);
            }
            return Err(if self.is(Mutant::DisabledCstoreGoesOn) { SUPPRESSED } else { Stop::End(Status::SUPPRESSED) });
        }
        let swapped = if is_word(address) { self.exchange(address, old, new) } else { None };
        let Some(prior) = swapped else {
            self.put(packet, old_at, !old);
            return Err(Stop::End(Status::ABSENT));
        };
        self.forget(address);
        if prior == old {
            return Ok(());
        }
        let shown = half(prior.into(), 0, Self::BITS);
        let shown = if shown == old && !self.is(Mutant::FailedCstoreLooksStored) { !old } else { shown };
        if !self.is(Mutant::FailedCstoreSilent) {
            self.put(packet, old_at, shown);
        }
        Err(if self.is(Mutant::FailedCstoreGoesOn) { Stop::Skip(Status::NONE) } else { Stop::End(Status::NONE) })
    }

    #[inline]
    fn exchange(&mut self, address: u16, old: u32, new: u32) -> Option<u32> {
        if self.is(Mutant::CstoreUnconditional) {
            self.memory.write(address, new)?;
            return Some(old);
        }
        self.memory.swap(address, old, new)
    }

    #[inline]
    fn may_write(&self, address: u16) -> bool {
        self.may_write && (self.rights.writes.contains(address.into()) || self.is(Mutant::WritesUnchecked))
    }

    /// Returns the complete value of the location at an address.
    #[inline(always)]
    fn read(&mut self, address: u32, unchecked: bool) -> Option<u64> {
        let location = address & !1;
        let own = location.wrapping_sub(OWN_FIELDS.into()) as usize / 2;
        if own < OWN_FIELD_COUNT {
            return Some(own_field(&self.header, own).into());
        }
        if !self.may_read(address) && !unchecked {
            return None;
        }
        if !self.repeats {
            return self.memory.read(location);
        }
        if let Some(value) = self.known(location) {
            return Some(value);
        }
        let value = self.memory.read(location)?;
        if let Some(free) = self.values.get_mut(self.value_count) {
            *free = (location, value);
            self.value_count += 1;
        }
        Some(value)
    }

    #[inline(always)]
    fn may_read(&self, address: u32) -> bool {
        self.reads_all || self.rights.reads.contains(address) || self.is(Mutant::ReadsUnchecked)
    }

    /// Returns the value of a location that was read before.
    #[cold]
    fn known(&self, location: u32) -> Option<u64> {
        let known = self.values[..self.value_count].iter().find(|(other, _)| *other == location);
        known.filter(|_| !self.is(Mutant::HighHalfReadAgain)).map(|(_, value)| *value)
    }

    /// Forgets the value of a location that was written.
    #[inline]
    fn forget(&mut self, address: u16) {
        for (location, _) in &mut self.values[..self.value_count] {
            if may_be_same(*location, address) {
                // An odd number matches no location.
                *location = 1;
            }
        }
    }

    /// Returns the offset of an operand of one word.
    #[inline]
    fn operand(&self, index: u8) -> Result<usize, Stop> {
        let at = self.start + usize::from(index) * Self::LEN;
        if at + Self::LEN <= self.end { Ok(at) } else { Err(FULL) }
    }

    /// Returns the offset of an operand of 32 bits.
    #[inline]
    fn wide_operand(&self, index: u8) -> Result<usize, Stop> {
        let at = self.start + usize::from(index) * Self::LEN;
        if at + 4 <= self.end { Ok(at) } else { Err(FULL) }
    }

    #[inline(always)]
    fn get(packet: &[u8], at: usize) -> u32 {
        if WIDE { get32(packet, at) } else { get16(packet, at).into() }
    }

    #[inline(always)]
    fn put(&mut self, packet: &mut [u8], at: usize, value: u32) {
        let old = Self::get(packet, at);
        if WIDE {
            packet[at..at + 4].copy_from_slice(&value.to_be_bytes());
            self.changed(old, value);
        } else {
            packet[at..at + 2].copy_from_slice(&(value as u16).to_be_bytes());
            self.changed(old, value & 0xffff);
        }
    }

    /// Records that bytes at an even offset changed.
    #[inline]
    fn changed(&mut self, old: u32, new: u32) {
        self.delta += u64::from(new) + if self.is(Mutant::ChecksumAddsOnly) { 0 } else { u64::from(!old) };
    }

    /// Writes the header.
    #[inline]
    fn finish(mut self, packet: &mut Packet<&mut [u8]>, addressing: Addressing, verdict: ProgramVerdict) {
        let wraps = self.is(Mutant::HopNumberWraps);
        let next = if wraps { self.hop.wrapping_add(1) } else { self.hop.saturating_add(1) };
        let stays = verdict == ProgramVerdict::Waiting && self.is(Mutant::WaitingNotCounted);
        let old = header_words(packet);
        packet.set_hop(if stays { self.hop } else { next });
        packet.add_status(self.status);
        if let (Addressing::Stack { .. }, ProgramVerdict::Completed | ProgramVerdict::Ended) = (addressing, verdict) {
            packet.set_stack_pointer(self.pointer.min(wire::tpp::MAX_LEN));
        }
        let new = header_words(packet);
        self.changed(old, new);
        let checksum = packet.checksum();
        let sum = u64::from(!checksum) + self.delta;
        let folded = if self.is(Mutant::ChecksumWithoutCarry) { sum as u16 } else { wire::checksum::fold(sum) };
        if !self.is(Mutant::ChecksumStays) {
            packet.set_checksum(!folded);
        }
    }
}

impl Stop {
    /// Returns the same reason for an instruction whose failure ends the program.
    fn ended(self) -> Stop {
        match self {
            Stop::Skip(status) | Stop::End(status) => Stop::End(status),
        }
    }
}

/// Whether a program may read a location twice: two instructions have addresses that are equal modulo 64 locations, or
/// an address is in packet memory.
#[inline]
fn repeats(code: &[u8]) -> bool {
    let mut seen = 0u64;
    code.chunks_exact(INSTRUCTION_LEN).any(|bits| {
        let bits = get32(bits, 0);
        let location = 1 << (bits >> 13 & 63);
        let is_seen = seen & location != 0;
        seen |= location;
        is_seen || bits >> 28 == Operation::LoadIndirect as u32
    })
}

/// Returns the bytes of the header that an execution changes: status, hop number, stack pointer, each in the half of
/// the 16-bit word that it has in the header.
#[inline]
fn header_words(packet: &Packet<&mut [u8]>) -> u32 {
    let header = packet.header();
    u32::from(header[1]) << 16 | u32::from(header[4]) << 8 | u32::from(header[5])
}

#[inline(always)]
fn get32(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_be_bytes(word)
}

#[inline(always)]
fn get16(bytes: &[u8], at: usize) -> u16 {
    let mut word = [0; 2];
    word.copy_from_slice(&bytes[at..at + 2]);
    u16::from_be_bytes(word)
}

/// Whether an address is neither that of a high half nor of the program's own fields.
#[inline]
fn is_word(address: u16) -> bool {
    address & 1 == 0 && usize::from(address.wrapping_sub(OWN_FIELDS)) >= 2 * OWN_FIELD_COUNT
}
