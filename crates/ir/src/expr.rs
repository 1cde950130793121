//! Expressions: values computed without any effect.

use bits::Bits;

use crate::*;

/// An expression. Its width follows from its parts; the validator checks the rules given with each.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A constant.
    Const(Bits),
    /// The value of a slot.
    Slot(SlotId),
    /// A fixed field of a header. An invalid header's fields read as they were last written, 0 before that.
    Field(HeaderRef, u32),
    /// Whether a header is valid, 1 bit.
    Valid(HeaderRef),
    /// The current width in bits of a header's variable field, 32 bits.
    VarbitWidth(HeaderRef, u32),
    /// Whether two variable fields are equal in width and value, 1 bit.
    VarbitEq(Box<(HeaderRef, u32, HeaderRef, u32)>),
    /// The length of the whole packet in bytes, 32 bits.
    PacketLength,
    /// `op a`; the width of `a`.
    Unary(UnaryOp, Box<Expr>),
    /// `op a b`; the rules stand with [`BinaryOp`].
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// Bits `high` to `low` of a value, both included.
    Slice(Box<Expr>, u32, u32),
    /// The left value followed by the right one; the sum of the widths.
    Concat(Box<Expr>, Box<Expr>),
    /// Zero-extended to a greater or equal width.
    ZeroExtend(Box<Expr>, u32),
    /// Sign-extended to a greater or equal width.
    SignExtend(Box<Expr>, u32),
    /// The second if the first (1 bit) is set, else the third; equal widths.
    Choose(Box<Expr>, Box<Expr>, Box<Expr>),
}

/// Which header.
#[derive(Clone, Debug, PartialEq)]
pub enum HeaderRef {
    /// This one.
    Header(HeaderId),
    /// The element of a stack with this index. Beyond the end, reads give an invalid header of zeros and writes go
    /// nowhere.
    Element(StackId, Box<Expr>),
}

/// Operators on one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// Every bit inverted.
    Not,
    /// Two's complement negation.
    Neg,
}

/// Operators on two values. Unless said otherwise both have one width, which is the result's.
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

/// Where a value goes.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// A slot.
    Slot(SlotId),
    /// A fixed field of a header; writing does not make the header valid.
    Field(HeaderRef, u32),
}

/// A piece of the data that a checksum or hash covers.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// A value; widths need not be whole bytes, pieces are concatenated bit by bit.
    Value(Expr),
    /// A variable field with its current width.
    Varbit(HeaderRef, u32),
    /// The bytes of the packet that the parser did not extract.
    Payload,
}
