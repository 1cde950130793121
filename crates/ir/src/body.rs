//! Defines bodies: control-flow graphs of basic blocks, each a sequence of instructions with a terminator.

use cranelift_entity::PrimaryMap;

use crate::*;

/// A parser, a control or an action. Execution begins at `block0`.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// Name: `MyParser`, `MyIngress`, `MyIngress.ipv4_forward`.
    pub name: String,
    /// Kind of the body, which restricts the instructions it may contain.
    pub kind: BodyKind,
    /// Basic blocks; all are reachable from `block0`.
    pub blocks: PrimaryMap<BlockId, Block>,
}

/// Kind of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyKind {
    /// May extract, look ahead, advance, verify and reject.
    Parser,
    /// May apply tables and emit.
    Control,
    /// Run by a table; may not apply tables.
    Action,
}

/// A basic block.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Human-readable label; for the first block of a parser state, the state's name.
    pub name: String,
    /// Whether this is the first block of a parser state.
    pub is_state: bool,
    /// Instructions in order.
    pub instrs: Vec<Instr>,
    /// Transfer of control at the end of the block.
    pub terminator: Terminator,
    /// Source position of the terminator.
    pub loc: LocId,
}

/// An instruction and its source position.
#[derive(Clone, Debug, PartialEq)]
pub struct Instr {
    /// The operation.
    pub op: Op,
    /// Source position.
    pub loc: LocId,
}

/// The operation of an instruction.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// `dst = value`; equal widths.
    Assign(LValue, Expr),
    /// Copies validity, fields and the varbit field's width: destination, source; equal layouts.
    CopyHeader(HeaderRef, HeaderRef),
    /// Copies a varbit field: destination header and field, source header and field.
    CopyVarbit(HeaderRef, u32, HeaderRef, u32),
    /// Makes a header valid; its fields keep their values.
    SetValid(HeaderRef),
    /// Makes a header invalid.
    SetInvalid(HeaderRef),

    /// Parser: extracts a header from the packet and makes it valid. Raises `PacketTooShort` if the packet has too few
    /// bytes left. The expression, present for layouts with a varbit field, is that field's width in bits (itself 32
    /// bits wide). A width above the field's maximum raises `HeaderTooShort`; one that makes the header's length not a
    /// whole number of bytes raises `ParserInvalidArgument`.
    Extract(HeaderRef, Option<Expr>),
    /// Parser: reads bits of the packet, starting `skip` bits after the cursor, without moving the cursor. Raises
    /// `PacketTooShort` if fewer bits are left than `skip` plus the destination's width.
    Lookahead {
        /// Destination; its width is the number of bits read.
        dst: LValue,
        /// Number of bits to skip.
        skip: u32,
    },
    /// Parser: skips this number of bits (32 bits wide). Raises `PacketTooShort` if fewer are left.
    Advance(Expr),
    /// Parser: raises an error unless a condition holds: condition, error (an index into [`Program::errors`], 32 bits).
    Verify(Expr, Expr),

    /// Control: appends a header to the outgoing packet, if it is valid.
    Emit(HeaderRef),
    /// Control: looks up a table and runs the selected action. Afterwards `hit` (1 bit) and `action` (32 bits, an index
    /// into the table's actions) are set if present.
    Apply {
        /// The table.
        table: TableId,
        /// Set to 1 on a hit, to 0 on a miss.
        hit: Option<SlotId>,
        /// Set to the index of the action that ran.
        action: Option<SlotId>,
    },

    /// Reads an element of a register array; 0 out of bounds. Destination, register, index.
    RegisterRead(LValue, RegisterId, Expr),
    /// Writes an element of a register array; no effect out of bounds. Register, index, value.
    RegisterWrite(RegisterId, Expr, Expr),
    /// Counts the packet at an index; no effect out of bounds.
    Count(CounterId, Expr),
    /// Meters the packet at an index: 0 green, 1 yellow, 2 red; green out of bounds. Meter, index, result.
    MeterExecute(MeterId, Expr, LValue),
    /// Reads the colour that the packet's table lookup assigned, for direct meters.
    DirectMeterRead(MeterId, LValue),

    /// Begins an atomic section: until the matching [`Op::EndAtomic`], no other packet is in an atomic section of the
    /// program, on any core. Sections may nest; only the outermost pair takes effect. All open sections end
    /// when the executor returns, whether it ran one body, several in sequence, or a batch of packets.
    BeginAtomic,
    /// Ends the section begun by [`Op::BeginAtomic`]; no effect outside a section.
    EndAtomic,

    /// Computes the algorithm's result over the data, most significant bits first. The result is zero-extended or
    /// truncated (low bits kept) to the width of the destination.
    Compute(LValue, Algorithm, Vec<HashInput>),
    /// Draws a random number from `low` to `high`, both inclusive: destination, low, high, all of equal width.
    Random(LValue, Expr, Expr),

    /// Requests an operation that the architecture performs after the body has ended.
    Request(Request),
    /// Logs a message with its `{}` placeholders replaced by the values.
    Log(String, Vec<Expr>),
    /// Asserts a condition. If it is false, the failure is logged and the packet is dropped.
    Assert(Expr),
}

/// An operation that a program requests from its architecture.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Copies the packet to a mirror session (32 bits), as it was received (`ingress`) or in its current state (in
    /// egress), preserving a field list.
    Clone {
        /// Whether this is an ingress-to-egress (I2E) clone; otherwise it is an egress-to-egress (E2E) clone.
        ingress: bool,
        /// Session id, 32 bits.
        session: Expr,
        /// Field list to preserve.
        keep: Option<u32>,
    },
    /// Sends the packet through ingress again, as it was received, preserving a field list.
    Resubmit(Option<u32>),
    /// Sends the packet through the whole pipeline again, as deparsed at the end of egress, preserving a field list.
    Recirculate(Option<u32>),
    /// Truncates the packet to this number of bytes (32 bits).
    Truncate(Expr),
    /// Sends a message to the control plane: the digest and a value for each of its fields.
    Digest(DigestId, Vec<Expr>),
}

/// Checksum and hash algorithms. Each result has the stated width; that of `Identity` is as wide as the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// The Internet checksum of RFC 1071, 16 bits. Data is padded with zeros to whole 16-bit words.
    Csum16,
    /// CRC-16/ARC (polynomial 0x8005, reflected), 16 bits.
    Crc16,
    /// CRC-16 whose parameters the control plane may set, the same as `Crc16` until then.
    Crc16Custom,
    /// CRC-32 (IEEE 802.3), 32 bits.
    Crc32,
    /// CRC-32 whose parameters the control plane may set, the same as `Crc32` until then.
    Crc32Custom,
    /// XOR of 16-bit words, 16 bits.
    Xor16,
    /// The data itself.
    Identity,
}

/// Transfer of control at the end of a block.
#[derive(Clone, Debug, PartialEq)]
pub enum Terminator {
    /// Jumps to a block.
    Goto(BlockId),
    /// Jumps to one of two blocks, depending on a 1-bit condition.
    Branch {
        /// The condition.
        condition: Expr,
        /// Taken when it is set.
        then: BlockId,
        /// Taken when it is clear.
        otherwise: BlockId,
    },
    /// Jumps to the block of the case that is equal to the subject.
    Switch {
        /// The value to compare.
        subject: Expr,
        /// Distinct values and their blocks.
        cases: Vec<(bits::Bits, BlockId)>,
        /// Taken if no value is equal.
        default: BlockId,
    },
    /// Parser: jumps to the target of the first case that matches; raises `NoMatch` if none does.
    Select {
        /// The values to match.
        keys: Vec<Expr>,
        /// Cases in order.
        cases: Vec<SelectCase>,
    },
    /// Ends the body; a parser accepts.
    Return,
    /// Parser: rejects the packet; the error keeps its value.
    Reject,
    /// Ends the body and, from an action, also the body that applied the table.
    Exit,
}

/// A case of [`Terminator::Select`]. The matches cover the keys from left to right: a value set of n fields covers n
/// keys, every other match covers one.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectCase {
    /// Matches that must all succeed.
    pub matches: Vec<Match>,
    /// Block to jump to.
    pub target: BlockId,
}

/// A match of one key, or of several for a value set.
#[derive(Clone, Debug, PartialEq)]
pub enum Match {
    /// Matches anything.
    Any,
    /// Matches this value.
    Value(Expr),
    /// Ternary match: value, mask.
    Mask(Expr, Expr),
    /// Matches from low to high, both inclusive, compared as unsigned numbers.
    Range(Expr, Expr),
    /// Matches from low to high, both inclusive, compared as signed numbers.
    RangeSigned(Expr, Expr),
    /// Matches a member of a value set.
    ValueSet(ValueSetId),
}
