//! Random expressions and l-values of a given width.

use ir::*;

use super::Generator;

const SAME: &[BinaryOp] = &[
    BinaryOp::Add,
    BinaryOp::Sub,
    BinaryOp::Mul,
    BinaryOp::Div,
    BinaryOp::Rem,
    BinaryOp::AddSat,
    BinaryOp::SubSat,
    BinaryOp::AddSatSigned,
    BinaryOp::SubSatSigned,
    BinaryOp::And,
    BinaryOp::Or,
    BinaryOp::Xor,
];
const SHIFTS: &[BinaryOp] = &[BinaryOp::Shl, BinaryOp::Shr, BinaryOp::ShrSigned];
const COMPARISONS: &[BinaryOp] =
    &[BinaryOp::Eq, BinaryOp::Ne, BinaryOp::Lt, BinaryOp::Le, BinaryOp::LtSigned, BinaryOp::LeSigned];

impl Generator {
    /// Generates an expression of a given width, nested about `depth` deep at most.
    pub(super) fn expr(&mut self, width: u32, depth: usize) -> Expr {
        if depth == 0 || self.random.chance(3) {
            return self.leaf(width, depth);
        }
        let next = depth - 1;
        match self.random.below(8) {
            0 => {
                let op = *self.random.pick(&[UnaryOp::Not, UnaryOp::Neg]);
                Expr::Unary(op, Box::new(self.expr(width, next)))
            }
            1 => {
                let by = self.width();
                let (left, right) = (self.expr(width, next), self.expr(by, next));
                Expr::Binary(*self.random.pick(SHIFTS), Box::new(left), Box::new(right))
            }
            2 if width > 0 => {
                let (above, below) = (self.random.below(5) as u32, self.random.below(5) as u32);
                let value = self.expr(width + above + below, next);
                Expr::Slice(Box::new(value), below + width - 1, below)
            }
            3 if width > 1 => {
                let left = 1 + self.random.below(width as usize - 1) as u32;
                let (left, right) = (self.expr(left, next), self.expr(width - left, next));
                Expr::Concat(Box::new(left), Box::new(right))
            }
            4 => {
                let from = self.random.below(width as usize + 1) as u32;
                let value = Box::new(self.expr(from, next));
                if self.random.chance(2) { Expr::ZeroExtend(value, width) } else { Expr::SignExtend(value, width) }
            }
            5 => {
                let (condition, yes, no) = (self.expr(1, next), self.expr(width, next), self.expr(width, next));
                Expr::Choose(Box::new(condition), Box::new(yes), Box::new(no))
            }
            6 if width == 1 => {
                let of = self.width();
                let (left, right) = (self.expr(of, next), self.expr(of, next));
                Expr::Binary(*self.random.pick(COMPARISONS), Box::new(left), Box::new(right))
            }
            _ => {
                let (left, right) = (self.expr(width, next), self.expr(width, next));
                Expr::Binary(*self.random.pick(SAME), Box::new(left), Box::new(right))
            }
        }
    }

    fn leaf(&mut self, width: u32, depth: usize) -> Expr {
        if width == 1 && self.random.chance(4) {
            return Expr::Valid(self.header(depth));
        }
        if width == 32 && self.random.chance(4) {
            return match self.varbit(depth) {
                Some((header, field)) => Expr::VarbitWidth(header, field),
                None => Expr::PacketLength,
            };
        }
        if width == 1
            && self.random.chance(4)
            && let (Some(one), Some(other)) = (self.varbit(depth), self.varbit(depth))
        {
            return Expr::VarbitEq(Box::new((one.0, one.1, other.0, other.1)));
        }
        match if self.random.chance(3) { None } else { self.lvalue_of(width, depth) } {
            Some(LValue::Slot(slot)) => Expr::Slot(slot),
            Some(LValue::Field(header, field)) => Expr::Field(header, field),
            None => Expr::Const(self.bits(width)),
        }
    }

    /// Picks a header or an element of a stack.
    pub(super) fn header(&mut self, depth: usize) -> HeaderRef {
        let stacks = self.program.stacks.len();
        if stacks > 0 && self.random.chance(3) {
            let stack = StackId::from_u32(self.random.below(stacks) as u32);
            let width = self.width();
            return HeaderRef::Element(stack, Box::new(self.expr(width, depth.saturating_sub(1))));
        }
        HeaderRef::Header(HeaderId::from_u32(self.random.below(self.program.headers.len()) as u32))
    }

    pub(super) fn layout(&self, header: &HeaderRef) -> &HeaderType {
        self.program.layout_of(header).expect("the header exists")
    }

    /// Picks a varbit field.
    pub(super) fn varbit(&mut self, depth: usize) -> Option<(HeaderRef, u32)> {
        for _ in 0..5 {
            let header = self.header(depth);
            if let Some(field) = self.layout(&header).varbit_field() {
                return Some((header, field as u32));
            }
        }
        None
    }

    /// Picks a slot or fixed field of a given width.
    pub(super) fn lvalue_of(&mut self, width: u32, depth: usize) -> Option<LValue> {
        for _ in 0..10 {
            let dst = self.lvalue(depth);
            if self.program.lvalue_width(&dst) == Some(width) {
                return Some(dst);
            }
        }
        None
    }

    /// Picks a slot or fixed field.
    pub(super) fn lvalue(&mut self, depth: usize) -> LValue {
        if self.random.chance(2) {
            let header = self.header(depth);
            let fields = &self.layout(&header).fields;
            let fixed: Vec<_> = (0..fields.len()).filter(|at| !fields[*at].varbit).collect();
            if !fixed.is_empty() {
                return LValue::Field(header, *self.random.pick(&fixed) as u32);
            }
        }
        loop {
            let id = SlotId::from_u32(self.random.below(self.program.slots.len()) as u32);
            if self.program.slots[id].kind != SlotKind::Argument || self.arguments.contains(&id) {
                return LValue::Slot(id);
            }
        }
    }
}
