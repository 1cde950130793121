//! Splits expressions.

use bits::Bits;
use ir::fold::{binary, choose, concat, constant, unary};
use ir::{BinaryOp, Expr, HeaderRef, LValue, UnaryOp, fold};

use super::{MAX_PARTS, MAX_SPLIT, Splitter, WORD, WordPiece, pieces, read, too_wide};

impl Splitter<'_> {
    /// Returns the expression of a value of at most 64 bits, without wide values in it.
    pub(super) fn narrow(&self, expr: &Expr) -> Expr {
        self.begin();
        let width = self.width(expr);
        if width > WORD { too_wide() } else { self.narrowed(expr).unwrap_or_else(too_wide) }
    }

    /// Returns an expression for each piece of a value, most significant first.
    pub(super) fn parts(&self, expr: &Expr) -> Vec<Expr> {
        self.begin();
        pieces(self.width(expr)).map(|piece| self.piece(expr, piece)).collect()
    }

    /// Begins the pieces of an expression.
    pub(super) fn begin(&self) {
        self.left.set(MAX_PARTS);
    }

    /// Returns the expression of a piece of the value that was begun.
    pub(super) fn piece(&self, expr: &Expr, piece: WordPiece) -> Expr {
        let is_split = piece.width <= WORD && self.width(expr) <= MAX_SPLIT;
        let part = is_split.then(|| self.part(expr, piece.low, piece.width)).flatten();
        part.unwrap_or_else(too_wide)
    }

    /// Takes one of the expressions that may be made.
    fn take(&self) -> Option<()> {
        self.left.set(self.left.get().checked_sub(1)?);
        self.all_left.set(self.all_left.get().checked_sub(1)?);
        Some(())
    }

    fn narrowed(&self, expr: &Expr) -> Option<Expr> {
        let same = |a: &Expr| self.narrowed(a).map(Box::new);
        Some(match expr {
            Expr::Field(header @ HeaderRef::Header(_), field) => {
                self.stored(&LValue::Field(header.clone(), *field), 0, self.width(expr))?
            }
            Expr::Const(_)
            | Expr::Slot(_)
            | Expr::Field(..)
            | Expr::Valid(_)
            | Expr::VarbitWidth(..)
            | Expr::VarbitEq(_)
            | Expr::PacketLength => expr.clone(),
            Expr::Unary(op, a) => Expr::Unary(*op, same(a)?),
            Expr::Binary(op, a, b) => match op {
                BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::LtSigned | BinaryOp::LeSigned
                    if self.width(a) > WORD =>
                {
                    self.compare(*op, a, b)?
                }
                BinaryOp::Shl | BinaryOp::Shr | BinaryOp::ShrSigned if self.width(b) > WORD => {
                    binary(*op, self.narrowed(a)?, Expr::Const(Bits::new(self.amount(b)?.into(), 32)))
                }
                _ => Expr::Binary(*op, same(a)?, same(b)?),
            },
            Expr::Slice(a, high, low) if self.width(a) > WORD => self.part(a, *low, high - low + 1)?,
            Expr::Slice(a, high, low) => Expr::Slice(same(a)?, *high, *low),
            Expr::Concat(a, b) => Expr::Concat(same(a)?, same(b)?),
            Expr::ZeroExtend(a, width) => Expr::ZeroExtend(same(a)?, *width),
            Expr::SignExtend(a, width) => Expr::SignExtend(same(a)?, *width),
            Expr::Choose(a, b, c) => Expr::Choose(same(a)?, same(b)?, same(c)?),
        })
    }

    /// Returns the amount of a shift, or 2^32 - 1 for a larger one; `None` if it is computed.
    fn amount(&self, expr: &Expr) -> Option<u32> {
        let Expr::Const(amount) = expr else { return None };
        Some(amount.to_u64().and_then(|amount| u32::try_from(amount).ok()).unwrap_or(u32::MAX))
    }

    /// Returns the expression of `width` bits of a value, 1 to 64, that have `low` bits behind them.
    fn part(&self, expr: &Expr, low: u32, width: u32) -> Option<Expr> {
        let whole = self.width(expr);
        match expr {
            Expr::Const(value) => return Some(Expr::Const(WordPiece { low, width }.of(value))),
            _ if whole <= WORD => return Some(bits_of(self.narrowed(expr)?, whole, low, width)),
            _ if whole > MAX_SPLIT => return None,
            _ => self.take()?,
        }
        match expr {
            Expr::Slot(slot) => return self.stored(&LValue::Slot(*slot), low, width),
            Expr::Field(header, field) => return self.stored(&LValue::Field(header.clone(), *field), low, width),
            _ => {}
        }
        Some(match expr {
            Expr::Unary(UnaryOp::Not, a) => unary(UnaryOp::Not, self.part(a, low, width)?),
            Expr::Unary(UnaryOp::Neg, a) => self.sum(BinaryOp::Sub, &constant(0, whole), a, low, width)?,
            Expr::Binary(op, a, b) => match op {
                BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => {
                    binary(*op, self.part(a, low, width)?, self.part(b, low, width)?)
                }
                BinaryOp::Add | BinaryOp::Sub => self.sum(*op, a, b, low, width)?,
                BinaryOp::Shl => self.followed_by_zeros(a, self.amount(b)?, low, width)?,
                BinaryOp::Shr => self.extended(a, false, low.saturating_add(self.amount(b)?), width)?,
                BinaryOp::ShrSigned => self.extended(a, true, low.saturating_add(self.amount(b)?), width)?,
                _ => return None,
            },
            Expr::Slice(a, _, from) => self.part(a, from + low, width)?,
            Expr::Concat(a, b) => {
                let behind = self.width(b);
                if low >= behind {
                    self.part(a, low - behind, width)?
                } else if low + width <= behind {
                    self.part(b, low, width)?
                } else {
                    concat(self.part(a, 0, low + width - behind)?, self.part(b, low, behind - low)?)
                }
            }
            Expr::ZeroExtend(a, _) => self.extended(a, false, low, width)?,
            Expr::SignExtend(a, _) => self.extended(a, true, low, width)?,
            Expr::Choose(condition, a, b) => {
                choose(self.narrowed(condition)?, self.part(a, low, width)?, self.part(b, low, width)?)
            }
            _ => return None,
        })
    }

    /// Returns some bits of a slot or field.
    fn stored(&self, place: &LValue, low: u32, width: u32) -> Option<Expr> {
        let overlapping = self.place_parts(place)?.into_iter().filter_map(|(part, piece)| {
            let (from, to) = (piece.low.max(low), (piece.low + piece.width).min(low + width));
            (from < to).then(|| bits_of(read(part), piece.width, from - piece.low, to - from))
        });
        overlapping.reduce(concat)
    }

    /// Returns some bits of a value that is extended by zeros or its sign.
    fn extended(&self, value: &Expr, is_signed: bool, low: u32, width: u32) -> Option<Expr> {
        let whole = self.width(value);
        if whole == 0 {
            return None;
        }
        if low.saturating_add(width) <= whole {
            return self.part(value, low, width);
        }
        if low >= whole {
            let sign = || self.part(value, whole - 1, 1);
            return if is_signed { Some(Expr::SignExtend(Box::new(sign()?), width)) } else { Some(constant(0, width)) };
        }
        let part = Box::new(self.part(value, low, whole - low)?);
        Some(if is_signed { Expr::SignExtend(part, width) } else { Expr::ZeroExtend(part, width) })
    }

    /// Returns some bits of a value behind which there are `zeros`.
    fn followed_by_zeros(&self, value: &Expr, zeros: u32, low: u32, width: u32) -> Option<Expr> {
        if low + width <= zeros {
            Some(constant(0, width))
        } else if low >= zeros {
            self.part(value, low - zeros, width)
        } else {
            Some(concat(self.part(value, 0, low + width - zeros)?, constant(0, zeros - low)))
        }
    }

    /// Returns some bits of a sum or difference.
    fn sum(&self, op: BinaryOp, a: &Expr, b: &Expr, low: u32, width: u32) -> Option<Expr> {
        let sum = binary(op, self.part(a, low, width)?, self.part(b, low, width)?);
        if low == 0 {
            return Some(sum);
        }
        Some(binary(op, sum, Expr::ZeroExtend(Box::new(self.carry(op, a, b, low)?), width)))
    }

    /// Returns the carry of a sum, or the borrow of a difference, from the last `low` bits to the others.
    fn carry(&self, op: BinaryOp, a: &Expr, b: &Expr, low: u32) -> Option<Expr> {
        self.take()?;
        let width = low.min(WORD);
        let from = low - width;
        let (x, y) = (self.part(a, from, width)?, self.part(b, from, width)?);
        // A sum that wrapped is less than each operand. If it is all ones, the carry of the bits behind it passes.
        let (sets, passes) = if op == BinaryOp::Add {
            let sum = binary(BinaryOp::Add, x.clone(), y);
            (binary(BinaryOp::Lt, sum.clone(), x), binary(BinaryOp::Eq, sum, Expr::Const(Bits::ones(width))))
        } else {
            (binary(BinaryOp::Lt, x.clone(), y.clone()), binary(BinaryOp::Eq, x, y))
        };
        if from == 0 {
            return Some(sets);
        }
        Some(binary(BinaryOp::Or, sets, binary(BinaryOp::And, passes, self.carry(op, a, b, from)?)))
    }

    /// Returns a comparison of wide values.
    fn compare(&self, op: BinaryOp, a: &Expr, b: &Expr) -> Option<Expr> {
        let mut result = None;
        let signed = matches!(op, BinaryOp::LtSigned | BinaryOp::LeSigned);
        let top = pieces(self.width(a)).next();
        // From the least significant piece on.
        for piece in pieces(self.width(a)).rev() {
            let (x, y) = (self.part(a, piece.low, piece.width)?, self.part(b, piece.low, piece.width)?);
            let less = if signed && Some(piece) == top { BinaryOp::LtSigned } else { BinaryOp::Lt };
            result = Some(match (op, result) {
                (BinaryOp::Eq | BinaryOp::Ne, None) => binary(op, x, y),
                (BinaryOp::Eq, Some(others)) => binary(BinaryOp::And, binary(op, x, y), others),
                (BinaryOp::Ne, Some(others)) => binary(BinaryOp::Or, binary(op, x, y), others),
                (BinaryOp::Le | BinaryOp::LeSigned, None) => binary(BinaryOp::Le, x, y),
                (_, None) => binary(BinaryOp::Lt, x, y),
                (_, Some(others)) => {
                    let is_equal = binary(BinaryOp::Eq, x.clone(), y.clone());
                    binary(BinaryOp::Or, binary(less, x, y), binary(BinaryOp::And, is_equal, others))
                }
            });
        }
        result
    }
}

/// Returns some bits of a value of `whole` bits.
pub(super) fn bits_of(value: Expr, whole: u32, low: u32, width: u32) -> Expr {
    fold::slice(value, whole, low + width - 1, low)
}
