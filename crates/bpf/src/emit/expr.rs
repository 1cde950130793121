//! Emits expressions. A value has at most 64 bits and is zero-extended in its register.

use ir::{BinaryOp, Expr, HeaderRef, UnaryOp};

use super::body::relation;
use super::scratch::ScratchWord;
use super::{Emitter, HandOverReason, R0};
use crate::asm::{Alu, Cond, Reg};

/// The last register for values. Deeper operands are spilled.
const LAST: u8 = 4;

impl Emitter<'_> {
    /// Returns the width of an expression in bits.
    pub(super) fn width(&self, expr: &Expr) -> u32 {
        self.program.width(expr).unwrap_or(u32::MAX)
    }

    /// Returns the reason why an expression hands over; `None` if it can be emitted.
    pub(super) fn expr_problem(&self, expr: &Expr) -> Option<HandOverReason> {
        if !(1..=64).contains(&self.width(expr)) {
            return Some(HandOverReason::WideValue);
        }
        match expr {
            Expr::Const(_) | Expr::PacketLength | Expr::Slot(_) => None,
            Expr::Field(HeaderRef::Header(header), field) => self.field_problem(*header, *field),
            Expr::Valid(HeaderRef::Header(_)) => None,
            Expr::Field(..) | Expr::Valid(_) => Some(HandOverReason::Stack),
            Expr::VarbitWidth(..) | Expr::VarbitEq(_) => Some(HandOverReason::Varbit),
            Expr::Unary(_, a) | Expr::ZeroExtend(a, _) | Expr::SignExtend(a, _) | Expr::Slice(a, ..) => {
                self.expr_problem(a)
            }
            Expr::Binary(op, a, b) => match op {
                // The overflow of a signed number of 64 bits is not seen in 64 bits.
                BinaryOp::AddSatSigned | BinaryOp::SubSatSigned if self.width(a) == 64 => {
                    Some(HandOverReason::Saturation)
                }
                _ => self.expr_problem(a).or_else(|| self.expr_problem(b)),
            },
            Expr::Concat(a, b) => self.expr_problem(a).or_else(|| self.expr_problem(b)),
            Expr::Choose(a, b, c) => [a, b, c].into_iter().find_map(|part| self.expr_problem(part)),
        }
    }

    /// Evaluates an expression without problems into the register `r1 + depth`. Keeps the registers from r1 to there.
    pub(super) fn eval(&mut self, expr: &Expr, depth: u8) {
        let to = Reg(1 + depth);
        match expr {
            Expr::Const(value) => self.number(to, value.low_u64()),
            Expr::PacketLength => self.load_word(to, ScratchWord::LENGTH),
            Expr::Slot(slot) => match self.read_slot(*slot) {
                Some(word) => self.load_word(to, word),
                None => self.alu(Alu::Mov, to, 0),
            },
            Expr::Field(HeaderRef::Header(header), field) => {
                let word = self.scratch.fields[&(*header, *field)];
                self.load_word(to, word);
            }
            Expr::Valid(HeaderRef::Header(header)) => self.load_word(to, self.scratch.headers[header].0),
            Expr::Unary(op, a) => {
                self.eval(a, depth);
                match op {
                    UnaryOp::Not => self.alu(Alu::Xor, to, -1),
                    UnaryOp::Neg => self.alu(Alu::Neg, to, 0),
                }
                self.truncate(to, self.width(a));
            }
            Expr::Binary(op, a, b) => self.binary(*op, a, b, depth),
            Expr::Slice(a, high, low) => {
                self.eval(a, depth);
                if *low > 0 {
                    self.alu(Alu::Rsh, to, *low as i32);
                }
                if high + 1 < self.width(a) {
                    self.truncate(to, high - low + 1);
                }
            }
            Expr::Concat(a, b) => {
                let low_bits = self.width(b);
                let from = self.operands(a, b, depth);
                self.alu(Alu::Lsh, to, low_bits as i32);
                self.alu(Alu::Or, to, from);
            }
            Expr::ZeroExtend(a, _) => self.eval(a, depth),
            Expr::SignExtend(a, width) => {
                self.eval(a, depth);
                self.sign_extend(to, self.width(a));
                self.truncate(to, *width);
            }
            Expr::Choose(condition, then, otherwise) => self.choose(condition, then, otherwise, depth),
            Expr::Field(..) | Expr::Valid(_) | Expr::VarbitWidth(..) | Expr::VarbitEq(_) => {
                unreachable!("these have a problem")
            }
        }
    }

    /// Evaluates two operands: the first to the register of `depth`, the second to the register that is returned, the
    /// next one or r0.
    pub(super) fn operands(&mut self, a: &Expr, b: &Expr, depth: u8) -> Reg {
        let to = Reg(1 + depth);
        self.eval(a, depth);
        if to.0 < LAST {
            self.eval(b, depth + 1);
            return Reg(2 + depth);
        }
        let first = self.spill();
        self.store_word(first, to);
        self.eval(b, depth);
        self.alu(Alu::Mov, R0, to);
        self.load_word(to, first);
        self.give_back(1);
        R0
    }

    /// Evaluates two operands to r1 and r2, sign-extended for signed comparisons.
    pub(super) fn eval_two(&mut self, a: &Expr, b: &Expr, is_signed: bool) {
        let from = self.operands(a, b, 0);
        if is_signed {
            self.sign_extend(Reg(1), self.width(a));
            self.sign_extend(from, self.width(b));
        }
    }

    /// Copies the sign bit of a value of `width` bits to all bits above it.
    pub(super) fn sign_extend(&mut self, reg: Reg, width: u32) {
        if (1..64).contains(&width) {
            self.alu(Alu::Lsh, reg, 64 - width as i32);
            self.alu(Alu::Arsh, reg, 64 - width as i32);
        }
    }

    fn binary(&mut self, op: BinaryOp, a: &Expr, b: &Expr, depth: u8) {
        let (to, width) = (Reg(1 + depth), self.width(a));
        let from = self.operands(a, b, depth);
        if let Some((cond, is_signed)) = relation(op) {
            if is_signed {
                self.sign_extend(to, width);
                self.sign_extend(from, width);
            }
            return self.compare(cond, to, from);
        }
        match op {
            BinaryOp::Add => self.alu(Alu::Add, to, from),
            BinaryOp::Sub => self.alu(Alu::Sub, to, from),
            BinaryOp::Mul => self.alu(Alu::Mul, to, from),
            BinaryOp::And => return self.alu(Alu::And, to, from),
            BinaryOp::Or => return self.alu(Alu::Or, to, from),
            BinaryOp::Xor => return self.alu(Alu::Xor, to, from),
            // The kernel's quotient by 0 is 0, too.
            BinaryOp::Div => return self.alu(Alu::Div, to, from),
            BinaryOp::Rem => return self.remainder(to, from),
            BinaryOp::Shl | BinaryOp::Shr | BinaryOp::ShrSigned => self.shift(op, to, from, width),
            BinaryOp::AddSat => return self.add_saturating(to, from, width),
            BinaryOp::SubSat => return self.subtract_saturating(to, from),
            BinaryOp::AddSatSigned => self.saturate_signed(Alu::Add, to, from, width),
            BinaryOp::SubSatSigned => self.saturate_signed(Alu::Sub, to, from, width),
            _ => unreachable!("comparisons are above"),
        }
        self.truncate(to, width);
    }

    /// The unsigned sum, at most the largest number.
    fn add_saturating(&mut self, to: Reg, from: Reg, width: u32) {
        let fits = self.code.label();
        let largest = u64::MAX >> (64 - width);
        self.alu(Alu::Add, to, from);
        if width == 64 {
            // A sum that wrapped is less than each operand.
            self.jump_if(Cond::Ge, to, from, fits);
        } else {
            self.jump_if_number(Cond::Le, to, largest, fits);
        }
        self.number(to, largest);
        self.bind(fits);
    }

    /// The unsigned difference, at least 0.
    fn subtract_saturating(&mut self, to: Reg, from: Reg) {
        let fits = self.code.label();
        self.jump_if(Cond::Ge, to, from, fits);
        self.alu(Alu::Mov, to, from);
        self.bind(fits);
        self.alu(Alu::Sub, to, from);
    }

    /// The signed sum or difference of numbers of less than 64 bits, between the least and the largest number.
    fn saturate_signed(&mut self, alu: Alu, to: Reg, from: Reg, width: u32) {
        let largest = (1i64 << (width - 1)) - 1;
        self.sign_extend(to, width);
        self.sign_extend(from, width);
        self.alu(alu, to, from);
        for (cond, bound) in [(Cond::SLe, largest), (Cond::SGe, -largest - 1)] {
            let fits = self.code.label();
            self.jump_if_number(cond, to, bound as u64, fits);
            self.number(to, bound as u64);
            self.bind(fits);
        }
    }

    /// Sets a register to the result of a comparison.
    fn compare(&mut self, cond: Cond, to: Reg, from: Reg) {
        let (holds, end) = (self.code.label(), self.code.label());
        self.jump_if(cond, to, from, holds);
        self.alu(Alu::Mov, to, 0);
        self.jump(end);
        self.bind(holds);
        self.alu(Alu::Mov, to, 1);
        self.bind(end);
    }

    /// Emits an unsigned remainder, which is 0 for a divisor of 0; the kernel's is the dividend.
    fn remainder(&mut self, to: Reg, from: Reg) {
        let is_not_zero = self.code.label();
        self.jump_if(Cond::Ne, from, 0, is_not_zero);
        self.alu(Alu::Mov, to, 0);
        self.bind(is_not_zero);
        self.alu(Alu::Mod, to, from);
    }

    /// The kernel masks the amount of a shift. A shift by the width or more leaves only zeros or copies of the sign.
    fn shift(&mut self, op: BinaryOp, to: Reg, from: Reg, width: u32) {
        let (is_short, end) = (self.code.label(), self.code.label());
        let is_signed = op == BinaryOp::ShrSigned;
        if is_signed {
            self.sign_extend(to, width);
        }
        self.jump_if(Cond::Lt, from, width as i32, is_short);
        if is_signed {
            self.alu(Alu::Arsh, to, 63);
        } else {
            self.alu(Alu::Mov, to, 0);
        }
        self.jump(end);
        self.bind(is_short);
        let alu = match op {
            BinaryOp::Shl => Alu::Lsh,
            BinaryOp::Shr => Alu::Rsh,
            _ => Alu::Arsh,
        };
        self.alu(alu, to, from);
        self.bind(end);
    }

    fn choose(&mut self, condition: &Expr, then: &Expr, otherwise: &Expr, depth: u8) {
        let (is_false, end) = (self.code.label(), self.code.label());
        self.eval(condition, depth);
        self.jump_if(Cond::Eq, Reg(1 + depth), 0, is_false);
        self.eval(then, depth);
        self.jump(end);
        self.bind(is_false);
        self.eval(otherwise, depth);
        self.bind(end);
    }
}
