//! Emits expressions and places.

use ir::{Expr, LValue};

use super::Emit;
use super::value::Num;
use super::words::Word;

impl Emit<'_, '_> {
    pub(super) fn expr(&mut self, expr: &Expr) -> Num {
        match expr {
            Expr::Const(value) => Num::known(value),
            Expr::Slot(slot) => self.slot(*slot),
            Expr::Field(header, field) => self.read_field(header, *field),
            Expr::Valid(header) => {
                let resolved = self.resolve(header);
                Num::word(self.valid(resolved), 1)
            }
            Expr::VarbitWidth(header, _) => {
                let resolved = self.resolve(header);
                Num::word(self.varbit_width(resolved), 32)
            }
            Expr::VarbitEq(both) => {
                let (a, b) = (self.resolve(&both.0), self.resolve(&both.2));
                let (a_width, b_width) = (self.varbit_width(a), self.varbit_width(b));
                let (a_at, b_at) = (self.varbit_place(a), self.varbit_place(b));
                let same = self.w_cmp(cranelift_codegen::ir::condcodes::IntCC::Equal, a_width, b_width);
                // For unequal widths, no bits are compared: neither field need have as many as the other.
                let compared = self.w_choose(same, a_width, Word::Const(0));
                let compared = self.value(compared);
                let equal = self.call("varbit_eq", &[a_at, b_at, compared]).expect("the function returns a word");
                Num::word(self.w_and(same, Word::Value(equal)), 1)
            }
            Expr::PacketLength => {
                let length = Num::word(Word::Value(self.length), 64);
                self.resize(&length, 32)
            }
            Expr::Unary(op, a) => {
                let a = self.expr(a);
                self.unary(*op, &a)
            }
            Expr::Binary(op, a, b) => {
                let (a, b) = (self.expr(a), self.expr(b));
                self.binary(*op, &a, &b)
            }
            Expr::Slice(a, high, low) => {
                let a = self.expr(a);
                self.slice(&a, *low, high - low + 1)
            }
            Expr::Concat(a, b) => {
                let (a, b) = (self.expr(a), self.expr(b));
                self.concat(&a, &b)
            }
            Expr::ZeroExtend(a, width) => {
                let a = self.expr(a);
                self.resize(&a, *width)
            }
            Expr::SignExtend(a, width) => {
                let a = self.expr(a);
                self.sign_extend(&a, *width)
            }
            Expr::Choose(condition, then, otherwise) => {
                let condition = self.expr(condition);
                let condition = self.truth(&condition);
                let (then, otherwise) = (self.expr(then), self.expr(otherwise));
                self.choose(condition, &then, &otherwise)
            }
        }
    }

    /// Evaluates an expression of one bit to a word, for branches.
    pub(super) fn condition(&mut self, expr: &Expr) -> Word {
        let num = self.expr(expr);
        self.truth(&num)
    }

    pub(super) fn write(&mut self, place: &LValue, num: &Num) {
        match place {
            LValue::Slot(slot) => self.set_slot(*slot, num),
            LValue::Field(header, field) => self.write_field(header, *field, num),
        }
    }

    pub(super) fn lvalue_width(&self, place: &LValue) -> u32 {
        self.program.lvalue_width(place).expect("the validator checks places")
    }
}
