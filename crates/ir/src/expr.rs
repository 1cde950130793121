//! Defines expressions: values computed without side effects.

use bits::Bits;

use crate::*;

/// An expression. Its width follows from its operands; the validator checks the rules stated for each variant.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A constant.
    Const(Bits),
    /// The value of a slot.
    Slot(SlotId),
    /// A fixed field of a header. The fields of an invalid header read as their last written value, or 0 if never
    /// written.
    Field(HeaderRef, u32),
    /// Whether a header is valid, 1 bit.
    Valid(HeaderRef),
    /// The current width in bits of a header's varbit field, 32 bits.
    VarbitWidth(HeaderRef, u32),
    /// Whether two varbit fields are equal in width and value, 1 bit.
    VarbitEq(Box<(HeaderRef, u32, HeaderRef, u32)>),
    /// The length of the whole packet in bytes, 32 bits.
    PacketLength,
    /// `op a`; the width of `a`.
    Unary(UnaryOp, Box<Expr>),
    /// `op a b`; [`BinaryOp`] states the rules.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// Bits `high` down to `low` of a value, both inclusive.
    Slice(Box<Expr>, u32, u32),
    /// The left value followed by the right one; the width is the sum of their widths.
    Concat(Box<Expr>, Box<Expr>),
    /// Zero-extended to an equal or greater width.
    ZeroExtend(Box<Expr>, u32),
    /// Sign-extended to an equal or greater width.
    SignExtend(Box<Expr>, u32),
    /// The second operand if the first (1 bit) is set, else the third; the second and third have equal widths.
    Choose(Box<Expr>, Box<Expr>, Box<Expr>),
}

/// A reference to a header instance.
#[derive(Clone, Debug, PartialEq)]
pub enum HeaderRef {
    /// This header instance.
    Header(HeaderId),
    /// The element of a stack at an index. Out of bounds, reads yield an invalid header of zeros and writes have no
    /// effect.
    Element(StackId, Box<Expr>),
}

/// Unary operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// Every bit inverted.
    Not,
    /// Two's complement negation.
    Neg,
}

/// Binary operators. Unless stated otherwise, both operands have the same width, which is also the width of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// Wrapping sum.
    Add,
    /// Wrapping difference.
    Sub,
    /// Wrapping product.
    Mul,
    /// Unsigned quotient; 0 for a zero divisor.
    Div,
    /// Unsigned remainder; 0 for a zero divisor.
    Rem,
    /// Unsigned saturating sum.
    AddSat,
    /// Unsigned saturating difference.
    SubSat,
    /// Signed saturating sum.
    AddSatSigned,
    /// Signed saturating difference.
    SubSatSigned,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Shift left; the right side has any width and is unsigned.
    Shl,
    /// Logical shift right; the right side has any width and is unsigned.
    Shr,
    /// Arithmetic shift right; the right side has any width and is unsigned.
    ShrSigned,
    /// Equal, 1 bit.
    Eq,
    /// Not equal, 1 bit.
    Ne,
    /// Unsigned less, 1 bit.
    Lt,
    /// Unsigned less or equal, 1 bit.
    Le,
    /// Signed less, 1 bit.
    LtSigned,
    /// Signed less or equal, 1 bit.
    LeSigned,
}

/// Destination of an assignment.
#[derive(Clone, Debug, PartialEq)]
pub enum LValue {
    /// A slot.
    Slot(SlotId),
    /// A fixed field of a header; writing to it does not make the header valid.
    Field(HeaderRef, u32),
}

/// A piece of the data that a checksum or hash covers.
#[derive(Clone, Debug, PartialEq)]
pub enum HashInput {
    /// A value. Its width need not be a whole number of bytes; pieces are concatenated bit by bit.
    Value(Expr),
    /// A varbit field with its current width.
    Varbit(HeaderRef, u32),
    /// The bytes of the packet that the parser did not extract.
    Payload,
}
