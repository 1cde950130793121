//! Code: bodies of blocks, each a straight line of instructions with a terminator.

use cranelift_entity::PrimaryMap;

use crate::*;

/// A parser, a control or an action. Evaluation begins at `block0`.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// Name: `MyParser`, `MyIngress`, `MyIngress.ipv4_forward`.
    pub name: String,
    /// What it may contain.
    pub kind: BodyKind,
    /// Blocks; all are reachable from `block0`.
    pub blocks: PrimaryMap<BlockId, Block>,
}

/// What a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyKind {
    /// May extract, look ahead, advance, verify and reject.
    Parser,
    /// May apply tables and emit.
    Control,
    /// What a table runs; may not apply tables.
    Action,
}

/// A straight line.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// A label for people; for the first block of a parser state, the state's name.
    pub name: String,
    /// Whether this is the first block of a parser state.
    pub is_state: bool,
    /// Instructions in order.
    pub instrs: Vec<Instr>,
    /// Where it goes.
    pub terminator: Terminator,
    /// Where in the source the terminator comes from.
    pub loc: LocId,
}

/// An instruction and the place in the source that it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Instr {
    /// What is done.
    pub op: Op,
    /// Where it comes from.
    pub loc: LocId,
}

/// What instructions do.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// `dst = value`; equal widths.
    Assign(Place, Expr),
    /// Copies validity, fields and variable width; equal layouts.
    CopyHeader(HeaderRef, HeaderRef),
    /// Copies a variable field: destination, source.
    CopyVarbit(HeaderRef, u32, HeaderRef, u32),
    /// Makes a header valid; its fields keep their values.
    SetValid(HeaderRef),
    /// Makes a header invalid.
    SetInvalid(HeaderRef),

    /// Parser: takes a header off the packet and makes it valid. With too few bytes, raises `PacketTooShort`. The
    /// expression gives the variable field's width in bits (32 bits wide), for layouts that have one; a width that
    /// is too large raises `HeaderTooShort`, one that leaves the header without whole bytes `ParserInvalidArgument`.
    Extract(HeaderRef, Option<Expr>),
    /// Parser: reads the next bits of the packet, beginning `skip` bits on, and leaves them there. Fewer bits than
    /// `skip` and the destination's width raise `PacketTooShort`.
    Lookahead {
        /// Where to; its width is what is read.
        dst: Place,
        /// Bits to skip.
        skip: u32,
    },
    /// Parser: skips so many bits (32 bits wide); too few raise `PacketTooShort`.
    Advance(Expr),
    /// Parser: raises the error (an index into [`Program::errors`], 32 bits) unless the condition holds.
    Verify(Expr, Expr),

    /// Control: appends a header to the outgoing packet, if it is valid.
    Emit(HeaderRef),
    /// Control: looks a table up and runs the action. Afterwards `hit` (1 bit) and `action` (32 bits, an index into
    /// the table's actions) are set if given.
    Apply {
        /// The table.
        table: TableId,
        /// 1 for a hit.
        hit: Option<SlotId>,
        /// Which action ran.
        action: Option<SlotId>,
    },

    /// Reads element `index` of a register array; 0 beyond the end.
    RegisterRead(Place, RegisterId, Expr),
    /// Writes `value` to element `index` of a register array; nothing beyond the end. Register, index, value.
    RegisterWrite(RegisterId, Expr, Expr),
    /// Counts the packet at an index; nothing beyond the end.
    Count(CounterId, Expr),
    /// Meters the packet at an index: 0 green, 1 yellow, 2 red; green beyond the end. Meter, index, result.
    MeterExecute(MeterId, Expr, Place),
    /// The colour that the packet's table lookup gave it, for direct meters.
    DirectMeterRead(MeterId, Place),

    /// From here to [`Op::EndAtomic`] no other packet is between two such instructions of the program, on whatever
    /// core. Pairs may lie within each other, of which the outermost counts; the end of the executor's call (for a body,
    /// some in a row, or a batch of packets) ends all.
    BeginAtomic,
    /// The end of what [`Op::BeginAtomic`] began; nothing where nothing was begun.
    EndAtomic,

    /// The algorithm's result over the data, most significant bits first: zero-extended or truncated (low bits kept)
    /// to the width of the place.
    Compute(Place, Algorithm, Vec<Data>),
    /// A random number from `low` to `high`, both included: place, low, high, all of one width.
    Random(Place, Expr, Expr),

    /// Asks the architecture for something that happens when the body around has ended.
    Request(Request),
    /// Reports a value to whoever watches: the message with `{}` where the values go.
    Log(String, Vec<Expr>),
    /// A condition the program relies on; a false one is reported and drops the packet.
    Assert(Expr),
}

/// What a program asks of the architecture around it.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// A copy to a mirror session (32 bits), as it came in (`from_ingress` in ingress) or as it is now (in egress),
    /// keeping a field list.
    Clone {
        /// Whether the ingress-to-egress kind was asked for.
        ingress: bool,
        /// Session id, 32 bits.
        session: Expr,
        /// Field list to keep.
        keep: Option<u32>,
    },
    /// Through ingress once more, as it came in, keeping a field list.
    Resubmit(Option<u32>),
    /// Through the whole pipeline once more, as it leaves, keeping a field list.
    Recirculate(Option<u32>),
    /// Only the first so many bytes (32 bits) leave.
    Truncate(Expr),
    /// A message to the control plane: the digest, and a value for each of its fields.
    Digest(DigestId, Vec<Expr>),
}

/// Checksum and hash algorithms. Results have the width stated.
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
    /// Exclusive or of 16-bit words, 16 bits.
    Xor16,
    /// The data itself.
    Identity,
}

/// How a block ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Terminator {
    /// On to a block.
    Goto(BlockId),
    /// One of two blocks, by a 1-bit condition.
    Branch {
        /// The condition.
        condition: Expr,
        /// Taken when it is set.
        then: BlockId,
        /// Taken when it is clear.
        otherwise: BlockId,
    },
    /// The first case with this value.
    Switch {
        /// What is compared.
        subject: Expr,
        /// Values, all different, and blocks.
        cases: Vec<(bits::Bits, BlockId)>,
        /// Taken when no value is equal.
        default: BlockId,
    },
    /// Parser: the first case that matches; none raises `NoMatch`.
    Select {
        /// What is compared.
        keys: Vec<Expr>,
        /// Cases in order.
        cases: Vec<SelectCase>,
    },
    /// The body ends; for a parser: accept.
    Return,
    /// Parser: the packet is refused; the error stays what it is.
    Reject,
    /// The body ends, and so does the body that applied the table, if this is an action.
    Exit,
}

/// A case of [`Terminator::Select`]. The matches cover the keys from left to right: a value set of n fields covers n
/// keys, every other match one.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectCase {
    /// What must hold.
    pub matches: Vec<Match>,
    /// Where it goes.
    pub target: BlockId,
}

/// What a value is held against.
#[derive(Clone, Debug, PartialEq)]
pub enum Match {
    /// Anything.
    Any,
    /// This value.
    Value(Expr),
    /// Equal under a mask: value, mask.
    Mask(Expr, Expr),
    /// Low to high, both included, unsigned.
    Range(Expr, Expr),
    /// Low to high, both included, signed.
    RangeSigned(Expr, Expr),
    /// A member of a value set.
    ValueSet(ValueSetId),
}
