//! Encodes instructions (paper, table 1 and section 3.4.3).

/// The mask operand of a `CEXEC` that compares all bits.
pub const ALL_ONES: u8 = 0x3f;

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// An operation. The numbers are this project's. 0 is not an operation, so zeros are not a program.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Operation {
            $($(#[$doc])* $name = $number,)*
        }

        impl Operation {
            /// All operations, by number.
            pub const ALL: &[Operation] = &[$(Operation::$name,)*];

            /// Returns the operation with this number.
            #[inline]
            pub fn new(number: u8) -> Option<Operation> {
                match number {
                    $($number => Some(Operation::$name),)*
                    _ => None,
                }
            }

            /// Returns the name in assembly language.
            pub fn name(self) -> &'static str {
                match self {
                    $(Operation::$name => $text,)*
                }
            }
        }
    };
}

operations! {
    /// Copies a switch word to the packet word at the first operand.
    Load = 1, "LOAD";
    /// Copies the packet word at the first operand to a switch word.
    Store = 2, "STORE";
    /// Copies a switch word to the packet word at the stack pointer, and moves the pointer up.
    Push = 3, "PUSH";
    /// Moves the stack pointer down, and copies the packet word there to a switch word.
    Pop = 4, "POP";
    /// Sets a switch word to the packet word at the second operand if it equals the one at the first operand.
    Cstore = 5, "CSTORE";
    /// Ends the program unless the switch word, masked with the first operand, equals the second operand.
    Cexec = 6, "CEXEC";
    /// Copies the switch word, whose 32-bit address is at the second operand, to the packet word at the first.
    LoadIndirect = 7, "LOADI";
    /// Lowers the packet word at the first operand to a switch word. Not in the paper.
    Min = 8, "MIN";
    /// Raises the packet word at the first operand to a switch word. Not in the paper.
    Max = 9, "MAX";
}

impl Operation {
    /// Whether an operation has this number.
    #[inline]
    pub(crate) fn is_known(number: u8) -> bool {
        (1..=9).contains(&number)
    }

    /// Whether the operation can change a switch word.
    #[inline]
    pub fn is_write(self) -> bool {
        matches!(self, Operation::Store | Operation::Pop | Operation::Cstore)
    }

    /// Whether the operation may end the program at a switch.
    pub fn may_end(self) -> bool {
        matches!(self, Operation::Cexec | Operation::Cstore)
    }

    /// Whether the operation moves the stack pointer.
    pub fn is_stack(self) -> bool {
        matches!(self, Operation::Push | Operation::Pop)
    }
}

/// An instruction: operation 4 bits, address 16, two operands of 6, in this order from the highest bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// The operation.
    pub operation: Operation,
    /// Address of a word of the switch. Without meaning in `LOADI`.
    pub address: u16,
    /// First operand: index of a word of packet memory, at most 63. `LOAD`, `STORE`, `LOADI`, `MIN`, `MAX`: the word;
    /// `CSTORE`: the expected value; `CEXEC`: the 32-bit mask, or [`ALL_ONES`].
    pub first: u8,
    /// Second operand, at most 63. `CSTORE`: the new value; `CEXEC`: the 32-bit value; `LOADI`: the 32-bit address.
    pub second: u8,
}

impl Instruction {
    /// Creates an instruction with operands of 6 bits; higher bits are cut off.
    pub fn new(operation: Operation, address: u16, first: u8, second: u8) -> Instruction {
        Instruction { operation, address, first: first & 0x3f, second: second & 0x3f }
    }

    /// Decodes an instruction; `None` if the operation is unknown.
    #[inline]
    pub fn unpack(bits: u32) -> Option<Instruction> {
        let operation = Operation::new((bits >> 28) as u8)?;
        let operand = |shift: u32| (bits >> shift & 0x3f) as u8;
        Some(Instruction { operation, address: (bits >> 12) as u16, first: operand(6), second: operand(0) })
    }

    /// Encodes the instruction.
    pub fn pack(self) -> u32 {
        let operands = u32::from(self.first & 0x3f) << 6 | u32::from(self.second & 0x3f);
        (self.operation as u32) << 28 | u32::from(self.address) << 12 | operands
    }
}
