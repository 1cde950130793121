//! Executes programs in the simplest way: decodes everything, executes one instruction after another, encodes
//! everything.

use wire::tpp::{ALL_ONES, Addressing, Instruction, Operation, Packet, Repr, Status, WordSize};

use super::{AccessRights, Execution, OWN_FIELDS, ProgramVerdict, SwitchMemory, half, max_of};

/// Executes the program at the start of `bytes` at one hop. See [`Tcpu::execute`](super::Tcpu::execute).
pub fn execute<M: SwitchMemory>(bytes: &mut Vec<u8>, memory: &mut M, rights: &AccessRights) -> Execution {
    let packet = match Packet::new_checked(&bytes[..]) {
        Ok(packet) => packet,
        Err(malformed) => return Execution::none(ProgramVerdict::Malformed(malformed)),
    };
    if packet.status().contains(Status::DONE) {
        return Execution::none(ProgramVerdict::Done);
    }
    if !packet.is_checksum_right() {
        return Execution::none(ProgramVerdict::WrongChecksum);
    }
    let mut machine = Machine {
        repr: Repr::parse(&packet),
        own: own_fields(&packet),
        packet_memory: packet.memory().to_vec(),
        block: 0..packet.memory_len(),
        pointer: 0,
        bottom: 0,
        values: Vec::new(),
        memory,
        rights,
    };
    let instructions: Vec<_> = packet.instructions().collect();
    let execution = machine.run(&instructions);
    machine.repr.hop = machine.repr.hop.saturating_add(1);
    *bytes = machine.repr.packet(&instructions, &machine.packet_memory, packet.payload());
    execution
}

/// Returns the program's own fields, as the map lists them.
fn own_fields(packet: &Packet<&[u8]>) -> [u32; super::OWN_FIELD_COUNT] {
    let (pointer, block) = match packet.addressing() {
        Addressing::Stack { pointer } => (pointer, 0),
        Addressing::Hop { len } => (0, len),
    };
    [
        u32::from(packet.hop() as u8),
        pointer as u32,
        packet.length() as u32,
        packet.memory_len() as u32,
        block as u32,
        packet.application().into(),
        packet.status().0.into(),
    ]
}

struct Machine<'a, M> {
    repr: Repr,
    own: [u32; super::OWN_FIELD_COUNT],
    packet_memory: Vec<u8>,
    /// The part of packet memory that operands can access.
    block: std::ops::Range<usize>,
    pointer: usize,
    /// The lowest stack pointer.
    bottom: usize,
    /// Locations that were read.
    values: Vec<(u32, u64)>,
    memory: &'a mut M,
    rights: &'a AccessRights,
}

/// Effect of one instruction.
enum StepEffect {
    Executed,
    Skipped(Status),
    End(Status),
}

impl<M: SwitchMemory> Machine<'_, M> {
    fn run(&mut self, instructions: &[Instruction]) -> Execution {
        if self.repr.hop < 0 {
            return Execution::none(ProgramVerdict::Waiting);
        }
        match self.repr.addressing {
            Addressing::Stack { pointer } => self.pointer = pointer,
            Addressing::Hop { len: 0 } => {}
            Addressing::Hop { len } => {
                let start = self.repr.hop as usize * len;
                self.block = start..start + len;
                (self.pointer, self.bottom) = (start, start);
            }
        }
        if self.block.end > self.packet_memory.len() {
            self.repr.status |= Status::FULL;
            return Execution::none(ProgramVerdict::Ended);
        }
        let (mut executed, mut verdict) = (0, ProgramVerdict::Completed);
        for instruction in instructions {
            match self.step(*instruction) {
                StepEffect::Executed => executed += 1,
                StepEffect::Skipped(status) => self.repr.status |= status,
                StepEffect::End(status) => {
                    self.repr.status |= status;
                    verdict = ProgramVerdict::Ended;
                    break;
                }
            }
        }
        if let Addressing::Stack { pointer } = &mut self.repr.addressing {
            *pointer = self.pointer;
        }
        let reflect = self.repr.is_reflective && verdict == ProgramVerdict::Completed;
        if reflect {
            self.repr.status |= Status::DONE;
        }
        Execution { verdict, executed, reflect }
    }

    fn step(&mut self, instruction: Instruction) -> StepEffect {
        let Instruction { operation, address, first, second } = instruction;
        let address = u32::from(address);
        match operation {
            Operation::Load => self.load(address, self.operand(first)),
            Operation::Min | Operation::Max => self.extreme(operation, address, self.operand(first)),
            Operation::Store => self.store(address, self.operand(first)),
            Operation::Push => {
                let at = self.pointer;
                if at + self.word() > self.block.end {
                    return StepEffect::Skipped(Status::FULL);
                }
                self.pointer += self.word();
                self.load(address, Some(at))
            }
            Operation::Pop => {
                if self.pointer > self.block.end || self.pointer < self.bottom + self.word() {
                    return StepEffect::Skipped(Status::FULL);
                }
                self.pointer -= self.word();
                self.store(address, Some(self.pointer))
            }
            Operation::LoadIndirect => {
                let (Some(at), Some(address_at)) = (self.operand(first), self.wide_operand(second)) else {
                    return StepEffect::Skipped(Status::FULL);
                };
                self.load(self.get(address_at, 4), Some(at))
            }
            Operation::Cexec => self.cexec(address, first, second),
            Operation::Cstore => self.cstore(address, first, second),
        }
    }

    fn load(&mut self, address: u32, at: Option<usize>) -> StepEffect {
        let Some(at) = at else { return StepEffect::Skipped(Status::FULL) };
        let Some(value) = self.read(address) else { return StepEffect::Skipped(Status::ABSENT) };
        self.put(at, half(value, address, self.repr.word_size.bits()));
        StepEffect::Executed
    }

    fn extreme(&mut self, operation: Operation, address: u32, at: Option<usize>) -> StepEffect {
        let Some(at) = at else { return StepEffect::Skipped(Status::FULL) };
        let Some(value) = self.read(address) else { return StepEffect::Skipped(Status::ABSENT) };
        let value = if address & 1 == 0 { value } else { value >> self.repr.word_size.bits() };
        let value = value.min(max_of(self.repr.word_size)) as u32;
        let old = self.get(at, self.word());
        self.put(at, if operation == Operation::Min { old.min(value) } else { old.max(value) });
        StepEffect::Executed
    }

    fn store(&mut self, address: u32, at: Option<usize>) -> StepEffect {
        let Some(at) = at else { return StepEffect::Skipped(Status::FULL) };
        if !self.may_write(address) {
            return StepEffect::Skipped(Status::SUPPRESSED);
        }
        let value = self.get(at, self.word());
        if !is_word(address) || self.memory.write(address as u16, value).is_none() {
            return StepEffect::Skipped(Status::ABSENT);
        }
        self.forget(address);
        StepEffect::Executed
    }

    fn cexec(&mut self, address: u32, mask: u8, value: u8) -> StepEffect {
        let mask_at = self.wide_operand(mask);
        let Some(value_at) = self.wide_operand(value) else { return StepEffect::End(Status::FULL) };
        let mask = match (mask, mask_at) {
            (ALL_ONES, _) => u32::MAX,
            (_, Some(at)) => self.get(at, 4),
            (_, None) => return StepEffect::End(Status::FULL),
        };
        let Some(found) = self.read(address) else { return StepEffect::End(Status::ABSENT) };
        let matches = half(found, address, 32) & mask == self.get(value_at, 4);
        if matches { StepEffect::Executed } else { StepEffect::End(Status::NONE) }
    }

    fn cstore(&mut self, address: u32, old: u8, new: u8) -> StepEffect {
        let (Some(old_at), Some(new_at)) = (self.operand(old), self.operand(new)) else {
            return StepEffect::End(Status::FULL);
        };
        let (old, new) = (self.get(old_at, self.word()), self.get(new_at, self.word()));
        if !self.may_write(address) || !self.rights.reads.contains(address) {
            self.put(old_at, !old);
            return StepEffect::End(Status::SUPPRESSED);
        }
        let prior = if is_word(address) { self.memory.swap(address as u16, old, new) } else { None };
        let Some(prior) = prior else {
            self.put(old_at, !old);
            return StepEffect::End(Status::ABSENT);
        };
        self.forget(address);
        if prior == old {
            return StepEffect::Executed;
        }
        let shown = half(prior.into(), 0, self.repr.word_size.bits());
        self.put(old_at, if shown == old { !old } else { shown });
        StepEffect::End(Status::NONE)
    }

    /// Returns the complete value of the location at an address.
    fn read(&mut self, address: u32) -> Option<u64> {
        let location = address & !1;
        let own = location.wrapping_sub(OWN_FIELDS.into()) as usize / 2;
        if let Some(value) = self.own.get(own) {
            return Some((*value).into());
        }
        if !self.rights.reads.contains(address) {
            return None;
        }
        if let Some((_, value)) = self.values.iter().find(|(other, _)| *other == location) {
            return Some(*value);
        }
        let value = self.memory.read(location)?;
        self.values.push((location, value));
        Some(value)
    }

    /// Forgets the value of a location that was written. A register has a second address, for indirect loads.
    fn forget(&mut self, address: u32) {
        let is_register = (0x8000..0xb000).contains(&address);
        self.values.retain(|(other, _)| *other != address && !(is_register && other >> 28 == 2));
    }

    fn may_write(&self, address: u32) -> bool {
        self.rights.writes_enabled && !self.repr.is_read_only && self.rights.writes.contains(address)
    }

    fn word(&self) -> usize {
        self.repr.word_size.bytes()
    }

    /// Returns the offset of an operand of one word.
    fn operand(&self, index: u8) -> Option<usize> {
        let at = self.block.start + usize::from(index) * self.word();
        (at + self.word() <= self.block.end).then_some(at)
    }

    /// Returns the offset of an operand of 32 bits.
    fn wide_operand(&self, index: u8) -> Option<usize> {
        let at = self.block.start + usize::from(index) * self.word();
        (at + 4 <= self.block.end).then_some(at)
    }

    fn get(&self, at: usize, bytes: usize) -> u32 {
        self.packet_memory[at..at + bytes].iter().fold(0, |value, byte| value << 8 | u32::from(*byte))
    }

    fn put(&mut self, at: usize, value: u32) {
        let bytes = value.to_be_bytes();
        let len = self.repr.word_size.bytes();
        self.packet_memory[at..at + len].copy_from_slice(match self.repr.word_size {
            WordSize::Bits16 => &bytes[2..],
            WordSize::Bits32 => &bytes,
        });
    }
}

/// Whether an address is neither that of a high half nor of the program's own fields.
fn is_word(address: u32) -> bool {
    let own = u32::from(OWN_FIELDS)..u32::from(OWN_FIELDS) + 2 * super::OWN_FIELD_COUNT as u32;
    address & 1 == 0 && !own.contains(&address)
}
