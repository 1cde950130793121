//! Encodes instructions of the kernel's virtual machine, and resolves labels.
//!
//! An instruction is eight bytes: `code u8, destination u4, source u4, offset i16, immediate i32`. A 64-bit immediate
//! takes two of them. Source: RFC 9669, and Documentation/bpf/standardization in the Linux tree.

use std::fmt;

/// A register: r0 to r10.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reg(pub u8);

impl fmt::Debug for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

/// An operation of the arithmetic unit, with its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Alu {
    /// `destination += operand`
    Add = 0x00,
    /// `destination -= operand`
    Sub = 0x10,
    /// `destination *= operand`
    Mul = 0x20,
    /// `destination /= operand`, unsigned; 0 for a zero divisor.
    Div = 0x30,
    /// `destination |= operand`
    Or = 0x40,
    /// `destination &= operand`
    And = 0x50,
    /// `destination <<= operand`; the kernel masks the amount.
    Lsh = 0x60,
    /// `destination >>= operand`, unsigned; the kernel masks the amount.
    Rsh = 0x70,
    /// `destination = -destination`
    Neg = 0x80,
    /// `destination %= operand`, unsigned; unchanged for a zero divisor.
    Mod = 0x90,
    /// `destination ^= operand`
    Xor = 0xa0,
    /// `destination = operand`
    Mov = 0xb0,
    /// `destination >>= operand`, signed; the kernel masks the amount.
    Arsh = 0xc0,
}

/// The condition of a jump, with its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cond {
    /// Equal.
    Eq = 0x10,
    /// Unsigned greater.
    Gt = 0x20,
    /// Unsigned greater or equal.
    Ge = 0x30,
    /// Not equal.
    Ne = 0x50,
    /// Signed greater.
    SGt = 0x60,
    /// Signed greater or equal.
    SGe = 0x70,
    /// Unsigned less.
    Lt = 0xa0,
    /// Unsigned less or equal.
    Le = 0xb0,
    /// Signed less.
    SLt = 0xc0,
    /// Signed less or equal.
    SLe = 0xd0,
}

impl Cond {
    /// Returns the opposite condition.
    pub fn inverse(self) -> Cond {
        match self {
            Cond::Eq => Cond::Ne,
            Cond::Ne => Cond::Eq,
            Cond::Gt => Cond::Le,
            Cond::Le => Cond::Gt,
            Cond::Ge => Cond::Lt,
            Cond::Lt => Cond::Ge,
            Cond::SGt => Cond::SLe,
            Cond::SLe => Cond::SGt,
            Cond::SGe => Cond::SLt,
            Cond::SLt => Cond::SGe,
        }
    }
}

/// The number of bytes of a memory access, with its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum AccessSize {
    /// Four bytes.
    B4 = 0x00,
    /// Two bytes.
    B2 = 0x08,
    /// One byte.
    B1 = 0x10,
    /// Eight bytes.
    B8 = 0x18,
}

impl AccessSize {
    /// Returns the number of bytes.
    pub fn bytes(self) -> u32 {
        match self {
            AccessSize::B1 => 1,
            AccessSize::B2 => 2,
            AccessSize::B4 => 4,
            AccessSize::B8 => 8,
        }
    }
}

/// The second operand of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AluOperand {
    /// A register.
    Reg(Reg),
    /// A number, which is sign-extended to 64 bits.
    Imm(i32),
}

impl From<Reg> for AluOperand {
    fn from(reg: Reg) -> AluOperand {
        AluOperand::Reg(reg)
    }
}

impl From<i32> for AluOperand {
    fn from(number: i32) -> AluOperand {
        AluOperand::Imm(number)
    }
}

/// A place in the code that jumps refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(u32);

/// A map that the loader creates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MapRef {
    /// The region: an array with one element.
    Region,
    /// The devices of ports.
    Devices,
    /// The sockets of receive queues.
    Sockets,
}

/// The file descriptors of the maps, and the number of the port for which a program is loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// Descriptor of [`MapRef::Region`].
    pub region: i32,
    /// Descriptor of [`MapRef::Devices`].
    pub devices: i32,
    /// Descriptor of [`MapRef::Sockets`].
    pub sockets: i32,
    /// Number of the port.
    pub port: u32,
    /// Whether packets to the port may come from a local stack, which leaves their checksums to a card: behind a veth
    /// or a TAP device.
    pub has_local_senders: bool,
}

impl Links {
    fn descriptor(&self, map: MapRef) -> i32 {
        match map {
            MapRef::Region => self.region,
            MapRef::Devices => self.devices,
            MapRef::Sockets => self.sockets,
        }
    }
}

/// An instruction, or a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// An operation on 64 bits.
    Alu64(Alu, Reg, AluOperand),
    /// An operation on the low 32 bits, which clears the others.
    Alu32(Alu, Reg, AluOperand),
    /// Converts the low 16, 32 or 64 bits between host and network byte order, and clears the others.
    BigEndian(Reg, u8),
    /// Loads a 64-bit number. Takes the room of two instructions.
    Load64(Reg, u64),
    /// Loads the number of the port.
    LoadPort(Reg),
    /// Loads a pointer to a map.
    LoadMap(Reg, MapRef),
    /// Loads the address of a byte in the element of a map.
    LoadAddress(Reg, MapRef, u32),
    /// `destination = *(source + offset)`
    Load(AccessSize, Reg, Reg, i16),
    /// `*(destination + offset) = source`
    Store(AccessSize, Reg, i16, Reg),
    /// `*(destination + offset) = immediate`
    StoreImm(AccessSize, Reg, i16, i32),
    /// `*(destination + offset) += source`, atomically, on 64 bits.
    AtomicAdd(Reg, i16, Reg),
    /// The same, which also loads the word as it was before into the source, and is a full barrier (Linux 5.12).
    AtomicFetchAdd(Reg, i16, Reg),
    /// Exchanges `*(destination + offset)` and the source, 64 bits, with a full barrier (Linux 5.12).
    AtomicExchange(Reg, i16, Reg),
    /// Loads 1 if local stacks send to the port of the program, else 0.
    LoadHasLocalSenders(Reg),
    /// Jumps.
    Jump(Label),
    /// Jumps under a condition on 64 bits.
    JumpIf(Cond, Reg, AluOperand, Label),
    /// Calls the kernel function with this number.
    Call(i32),
    /// Returns r0.
    Exit,
    /// Binds a label to the next instruction.
    Bind(Label),
}

impl Instruction {
    /// Returns the number of instructions of the virtual machine, if jumps are short.
    fn slots(&self) -> usize {
        match self {
            Instruction::Load64(..) | Instruction::LoadMap(..) | Instruction::LoadAddress(..) => 2,
            Instruction::Bind(_) => 0,
            _ => 1,
        }
    }
}

/// Code cannot be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AsmError {
    /// A jump is longer than 32,767 instructions, and the kernel has no long jumps.
    #[error("a jump is longer than 32,767 instructions, which needs Linux 6.6")]
    LongJump,
    /// A label is not bound.
    #[error("a label is not bound to an instruction")]
    Unbound,
}

/// Which jumps are long, and the positions of instructions and labels.
type Placement = (Vec<bool>, Vec<usize>, Vec<Option<usize>>);

/// A sequence of instructions with labels.
#[derive(Clone, Debug, Default)]
pub struct Assembly {
    instructions: Vec<Instruction>,
    /// For each instruction, the mark that was set when it was appended.
    marks: Vec<u32>,
    mark: u32,
    labels: u32,
}

impl Assembly {
    /// Returns a new label.
    pub fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    /// Appends an instruction.
    pub fn push(&mut self, instruction: Instruction) {
        self.instructions.push(instruction);
        self.marks.push(self.mark);
    }

    /// Sets the mark of the instructions that follow.
    pub fn set_mark(&mut self, mark: u32) {
        self.mark = mark;
    }

    /// Returns the number of instructions, labels included.
    pub fn len(&self) -> usize {
        self.instructions.len()
    }

    /// Whether there are no instructions.
    pub fn is_empty(&self) -> bool {
        self.instructions.is_empty()
    }

    /// Removes the instructions that no path reaches, which the kernel refuses, and jumps to the next instruction.
    /// Returns which of the instructions stay.
    pub fn prune(&mut self) -> Vec<bool> {
        let mut labels = vec![None; self.labels as usize];
        for (at, instruction) in self.instructions.iter().enumerate() {
            if let Instruction::Bind(label) = instruction {
                labels[label.0 as usize] = Some(at);
            }
        }
        let mut kept = vec![false; self.instructions.len()];
        let mut ways = vec![0];
        while let Some(mut at) = ways.pop() {
            while at < kept.len() && !kept[at] {
                kept[at] = true;
                match self.instructions[at] {
                    Instruction::Exit => break,
                    Instruction::Jump(to) => match labels[to.0 as usize] {
                        Some(target) => at = target,
                        None => break,
                    },
                    Instruction::JumpIf(_, _, _, to) => {
                        ways.extend(labels[to.0 as usize]);
                        at += 1;
                    }
                    _ => at += 1,
                }
            }
        }
        let all = std::mem::take(&mut self.instructions).into_iter().zip(std::mem::take(&mut self.marks));
        let reached: Vec<(Instruction, u32)> = all.zip(&kept).filter(|(_, kept)| **kept).map(|(one, _)| one).collect();
        for (at, (instruction, mark)) in reached.iter().enumerate() {
            let mut binds = reached[at + 1..].iter().map_while(|(next, _)| match next {
                Instruction::Bind(label) => Some(label),
                _ => None,
            });
            let is_idle = matches!(instruction, Instruction::Jump(to) if binds.any(|label| label == to));
            if !is_idle {
                self.instructions.push(*instruction);
                self.marks.push(*mark);
            }
        }
        kept
    }

    /// Whether a label is bound to an instruction.
    pub fn is_bound(&self, label: Label) -> bool {
        self.instructions.contains(&Instruction::Bind(label))
    }

    /// Encodes the code. Jumps too long for 16 bits become long jumps (`gotol`, Linux 6.6) if `has_long_jumps`.
    ///
    /// # Errors
    /// [`AsmError`].
    pub fn assemble(&self, links: &Links, has_long_jumps: bool) -> Result<Vec<u64>, AsmError> {
        let (is_long, starts, labels) = self.place(has_long_jumps)?;
        Ok(self.encode(links, &is_long, &starts, &labels))
    }

    /// Returns the mark of the instruction at a position of the encoded code. Jumps are long as in
    /// [`Assembly::assemble`].
    pub fn mark_at(&self, position: usize, has_long_jumps: bool) -> Option<u32> {
        let (_, starts, _) = self.place(has_long_jumps).ok()?;
        // A label has the position of the next instruction, which is the last one that begins there.
        let next = starts.partition_point(|start| *start <= position);
        self.marks.get(next.checked_sub(1)?).copied()
    }

    /// Chooses the jumps that are long. Returns them with the positions of instructions and labels.
    fn place(&self, has_long_jumps: bool) -> Result<Placement, AsmError> {
        let mut is_long = vec![false; self.instructions.len()];
        // Longer jumps move others further apart, until none has to become longer.
        loop {
            let (starts, labels) = self.positions(&is_long);
            let mut has_changed = false;
            for (number, instruction) in self.instructions.iter().enumerate() {
                let (Instruction::Jump(to) | Instruction::JumpIf(_, _, _, to)) = instruction else { continue };
                let target = labels[to.0 as usize].ok_or(AsmError::Unbound)?;
                let distance = target as i64 - starts[number] as i64 - 1;
                if !is_long[number] && i16::try_from(distance).is_err() {
                    (is_long[number], has_changed) = (true, true);
                }
            }
            if has_changed && !has_long_jumps {
                return Err(AsmError::LongJump);
            }
            if !has_changed {
                return Ok((is_long, starts, labels));
            }
        }
    }

    /// Returns the position of each instruction and of each label.
    fn positions(&self, is_long: &[bool]) -> (Vec<usize>, Vec<Option<usize>>) {
        let (mut starts, mut labels) = (Vec::with_capacity(is_long.len()), vec![None; self.labels as usize]);
        let mut at = 0;
        for (instruction, is_long) in self.instructions.iter().zip(is_long) {
            starts.push(at);
            if let Instruction::Bind(label) = instruction {
                labels[label.0 as usize] = Some(at);
            }
            // A long conditional jump is the inverse one around a long jump.
            let is_conditional = matches!(instruction, Instruction::JumpIf(..));
            at += instruction.slots() + usize::from(*is_long && is_conditional);
        }
        (starts, labels)
    }

    fn encode(&self, links: &Links, is_long: &[bool], starts: &[usize], labels: &[Option<usize>]) -> Vec<u64> {
        let mut words = Vec::new();
        for (number, instruction) in self.instructions.iter().enumerate() {
            let distance =
                |to: &Label, from: usize| (labels[to.0 as usize].unwrap_or(from) as i64 - from as i64) as i32;
            let next = starts[number] + 1;
            match instruction {
                Instruction::Jump(to) if is_long[number] => words.push(word(0x06, 0, 0, 0, distance(to, next))),
                Instruction::JumpIf(cond, reg, operand, to) if is_long[number] => {
                    words.push(jump_if(cond.inverse(), *reg, *operand, 1));
                    words.push(word(0x06, 0, 0, 0, distance(to, next + 1)));
                }
                Instruction::Jump(to) => words.push(word(0x05, 0, 0, distance(to, next) as i16, 0)),
                Instruction::JumpIf(cond, reg, operand, to) => {
                    words.push(jump_if(*cond, *reg, *operand, distance(to, next) as i16));
                }
                other => encode_simple(other, links, &mut words),
            }
        }
        words
    }
}

/// Encodes an instruction that is no jump.
fn encode_simple(instruction: &Instruction, links: &Links, words: &mut Vec<u64>) {
    let mut wide = |reg: Reg, source: u8, low: i32, high: i32| {
        words.extend([word(0x18, reg.0, source, 0, low), word(0, 0, 0, 0, high)]);
    };
    let one = match *instruction {
        Instruction::Load64(reg, number) => return wide(reg, 0, number as i32, (number >> 32) as i32),
        Instruction::LoadMap(reg, map) => return wide(reg, 1, links.descriptor(map), 0),
        Instruction::LoadAddress(reg, map, offset) => return wide(reg, 2, links.descriptor(map), offset as i32),
        Instruction::LoadPort(reg) => operation(0x04, Alu::Mov, reg, AluOperand::Imm(links.port as i32)),
        Instruction::Alu64(alu, reg, operand) => operation(0x07, alu, reg, operand),
        Instruction::Alu32(alu, reg, operand) => operation(0x04, alu, reg, operand),
        Instruction::BigEndian(reg, bits) => word(0xdc, reg.0, 0, 0, bits.into()),
        Instruction::Load(size, to, from, offset) => word(0x61 | size as u8, to.0, from.0, offset, 0),
        Instruction::Store(size, to, offset, from) => word(0x63 | size as u8, to.0, from.0, offset, 0),
        Instruction::StoreImm(size, to, offset, number) => word(0x62 | size as u8, to.0, 0, offset, number),
        Instruction::AtomicAdd(to, offset, from) => word(0xdb, to.0, from.0, offset, 0),
        Instruction::AtomicFetchAdd(to, offset, from) => word(0xdb, to.0, from.0, offset, FETCH),
        Instruction::AtomicExchange(to, offset, from) => word(0xdb, to.0, from.0, offset, EXCHANGE),
        Instruction::LoadHasLocalSenders(reg) => {
            operation(0x04, Alu::Mov, reg, AluOperand::Imm(links.has_local_senders.into()))
        }
        Instruction::Call(number) => word(0x85, 0, 0, 0, number),
        Instruction::Exit => word(0x95, 0, 0, 0, 0),
        Instruction::Bind(_) | Instruction::Jump(_) | Instruction::JumpIf(..) => return,
    };
    words.push(one);
}

/// Immediate of an atomic addition that fetches: `BPF_FETCH`.
pub(crate) const FETCH: i32 = 1;
/// Immediate of an atomic exchange: `BPF_XCHG`.
pub(crate) const EXCHANGE: i32 = 0xe1;

fn word(code: u8, destination: u8, source: u8, offset: i16, immediate: i32) -> u64 {
    let registers = u64::from(destination | source << 4);
    u64::from(code) | registers << 8 | u64::from(offset as u16) << 16 | u64::from(immediate as u32) << 32
}

fn operation(class: u8, alu: Alu, reg: Reg, operand: AluOperand) -> u64 {
    match operand {
        AluOperand::Reg(source) => word(class | 0x08 | alu as u8, reg.0, source.0, 0, 0),
        AluOperand::Imm(number) => word(class | alu as u8, reg.0, 0, 0, number),
    }
}

fn jump_if(cond: Cond, reg: Reg, operand: AluOperand, offset: i16) -> u64 {
    match operand {
        AluOperand::Reg(source) => word(0x05 | 0x08 | cond as u8, reg.0, source.0, offset, 0),
        AluOperand::Imm(number) => word(0x05 | cond as u8, reg.0, 0, offset, number),
    }
}
