//! Lowers `packet_in` and `packet_out` (sections 13.8 and 16.1), which belong to the language.

use diagnostics::Span;
use ir::{BodyKind, Expr, HeaderRef, LValue, Op};
use p4::ast::StructKind;
use p4::typed::{self, Arg, Call, ExprKind, Type};

use crate::arch::Object;
use crate::lowering::Lowering;
use crate::storage::{Store, resolve};
use crate::value::Val;
use ir::fold;

impl<'a> Lowering<'a> {
    /// Lowers a method of a packet; returns `None` for other objects.
    pub(crate) fn packet_method(
        &mut self,
        object: &Object,
        method: &str,
        type_args: &[Type],
        call: &Call,
        ret: &Type,
    ) -> Option<Val> {
        let (args, span) = (&call.args[..], call.span);
        let in_parser = self.body.kind == BodyKind::Parser;
        match (object, method) {
            (Object::PacketIn, "length") => return Some(Val::Bits(Expr::PacketLength)),
            (Object::PacketIn, _) if !in_parser => {
                self.unsupported(span, "a packet can be read only in a parser");
                return Some(self.default_value(ret));
            }
            (Object::PacketIn, "extract") => self.extract(args, span),
            (Object::PacketIn, "lookahead") => return Some(self.lookahead(type_args.first()?, span)),
            (Object::PacketIn, "advance") => {
                if let Some(Arg::Expr(amount)) = args.first() {
                    let amount = self.scalar(amount);
                    self.emit(Op::Advance(amount));
                }
            }
            (Object::PacketOut, "emit") => {
                if let Some(Arg::Expr(what)) = args.first() {
                    if self.body.kind != BodyKind::Control {
                        self.unsupported(span, "`emit` is available only in controls");
                        return Some(Val::Absent);
                    }
                    let val = self.value(what);
                    self.emit_all(val, &what.ty);
                }
            }
            (Object::PacketIn | Object::PacketOut, other) => {
                self.unsupported(span, format!("packets have no method `{other}` here"));
            }
            _ => return None,
        }
        Some(Val::Absent)
    }

    /// ```text
    /// extract(hdr.vlan.next)     verify hdr.vlan.$next < 4, StackOutOfBounds
    ///                            extract hdr.vlan[hdr.vlan.$next]
    ///                            hdr.vlan.$next = hdr.vlan.$next + 1
    /// ```
    fn extract(&mut self, args: &[Arg], span: Span) {
        if self.extract_next_member(args, span) {
            return;
        }
        let (lval, stack) = match args.first() {
            Some(Arg::Expr(e)) => {
                let stack = match &e.kind {
                    ExprKind::Next(stack) => Some(stack),
                    ExprKind::Field(base, _) => match &base.kind {
                        ExprKind::Next(stack) => Some(stack),
                        _ => None,
                    },
                    _ => None,
                };
                (self.stable_lvalue(e), stack)
            }
            Some(Arg::DontCare(ty)) => (crate::lvalue::Lval::whole(self.temp_store(ty), ty.clone()), None),
            _ => return,
        };
        let Some(header) = lval.store.as_header().cloned() else {
            if !self.failed {
                self.unsupported(span, "only headers can be extracted");
            }
            return;
        };
        let size = match args.get(1) {
            Some(Arg::Expr(size)) => Some(self.scalar(size)),
            _ => None,
        };
        let Some(size) = self.extract_size(&header, size, span) else { return };
        self.emit(Op::Extract(header, size));
        if let Store::Member(members, index) = &lval.store {
            self.invalidate_others(members, *index);
        }
        self.finish(&lval);
        if let Some(stack) = stack {
            let stack = self.lvalue(stack);
            if let Some((next, _)) = self.next_of(&stack.store) {
                self.step_next(next);
            }
        }
    }

    /// Extracts a member of the next element of a stack of header unions in place. The alternative, copying the whole
    /// element to a nameable location and back, would copy all its members for each one extracted. Returns `false` if
    /// `args` have another form.
    ///
    /// ```text
    /// extract(hdr.messages.next.trade)     verify hdr.messages.$next < 2, StackOutOfBounds
    ///                                      switch hdr.messages.$next {
    ///                                        0 -> extract hdr.messages[0].trade; set_invalid hdr.messages[0].order
    ///                                        1 -> extract hdr.messages[1].trade; set_invalid hdr.messages[1].order
    ///                                      }
    ///                                      hdr.messages.$next = hdr.messages.$next + 1
    /// ```
    fn extract_next_member(&mut self, args: &[Arg], span: Span) -> bool {
        let Some(Arg::Expr(typed::Expr { kind: ExprKind::Field(element, member), .. })) = args.first() else {
            return false;
        };
        let ExprKind::Next(stack) = &element.kind else { return false };
        let Some(store) = self.named_store(stack).cloned() else { return false };
        let Store::Array(elements, Some(_)) = &store else { return false };
        let member_of = |element: &Store| match element {
            Store::Union(members) => members.get(*member).cloned(),
            _ => None,
        };
        let Some(first) = elements.first().and_then(member_of) else { return false };
        let Some((next, _)) = self.verify_next(&store) else { return false };
        let size = match args.get(1) {
            Some(Arg::Expr(size)) => Some(self.scalar(size)),
            _ => None,
        };
        let Some(size) = self.extract_size(&first, size, span) else { return true };
        let size = size.map(|size| self.keep(size));
        self.each_element(&Expr::Slot(next), elements, |cx, element| {
            let (Store::Union(members), Some(header)) = (element, member_of(element)) else { return };
            cx.emit(Op::Extract(header, size.clone()));
            cx.invalidate_others(members, *member);
        });
        self.step_next(next);
        true
    }

    /// Returns the size operand for the extraction of a header: none if the header has no `varbit` field. Returns
    /// `None` if a required size is missing, which is reported.
    fn extract_size(&mut self, header: &HeaderRef, size: Option<Expr>, span: Span) -> Option<Option<Expr>> {
        let varbit = self.ir.header_types[self.layout_of(header)].varbit_field().is_some();
        if varbit && size.is_none() {
            self.unsupported(span, "a header with a varbit field needs a second argument: the field's size");
            return None;
        }
        Some(size.filter(|_| varbit))
    }

    /// Increments a stack's next index.
    fn step_next(&mut self, next: ir::SlotId) {
        let one = fold::constant(1, 32);
        self.set(LValue::Slot(next), fold::binary(ir::BinaryOp::Add, Expr::Slot(next), one));
    }

    fn lookahead(&mut self, ty: &Type, span: Span) -> Val {
        if let Some(width) = self.scalar_width(ty) {
            let slot = self.temp(width);
            self.emit(Op::Lookahead { dst: LValue::Slot(slot), skip: 0 });
            return Val::Bits(Expr::Slot(slot));
        }
        let store = self.temp_store(ty);
        let mut skip = 0;
        self.lookahead_into(&store, ty, &mut skip, span);
        store.read()
    }

    fn lookahead_into(&mut self, store: &Store, ty: &Type, skip: &mut u32, span: Span) {
        if let (Some(width), Some(place)) = (self.scalar_width(ty), store.as_lvalue()) {
            self.emit(Op::Lookahead { dst: place, skip: *skip });
            *skip += width;
            return;
        }
        let fields = self.fields_of(ty);
        match (store, self.struct_kind(ty)) {
            (Store::Header(header), Some((id, StructKind::Header))) => {
                self.emit(Op::SetValid(header.clone()));
                for (store, (_, ty)) in self.header_fields(header, id).iter().zip(&fields) {
                    self.lookahead_into(store, ty, skip, span);
                }
            }
            (Store::Fields(parts), _) if parts.len() == fields.len() && !parts.is_empty() => {
                for (part, (_, ty)) in parts.iter().zip(&fields) {
                    self.lookahead_into(part, ty, skip, span);
                }
            }
            (Store::Stack(_) | Store::Array(..), _) => {
                let stores: Vec<Store> = match store {
                    Store::Stack(stack) => {
                        (0..self.ir.stacks[*stack].size).map(|i| Store::Header(self.element(*stack, i))).collect()
                    }
                    Store::Array(elements, _) => elements.clone(),
                    _ => Vec::new(),
                };
                let element = self.element_type(ty);
                stores.iter().for_each(|store| self.lookahead_into(store, &element, skip, span));
            }
            _ => self.unsupported(span, "`lookahead` needs a type of fixed size"),
        }
    }

    /// Emits every header of a value, in order.
    fn emit_all(&mut self, val: Val, ty: &Type) {
        match val {
            Val::Header(header) => self.emit(Op::Emit(header)),
            Val::Union(members) => members.into_iter().for_each(|header| self.emit(Op::Emit(header))),
            Val::Stack(stack) => {
                for i in 0..self.ir.stacks[stack].size {
                    let element: HeaderRef = self.element(stack, i);
                    self.emit(Op::Emit(element));
                }
            }
            Val::Array(parts, _) => {
                if let Type::Stack(element, _) = resolve(self.program, ty).clone() {
                    parts.into_iter().for_each(|part| self.emit_all(part, &element));
                }
            }
            Val::Literal(_) => {
                if let Some(header) = self.as_header(val, ty) {
                    self.emit(Op::Emit(header));
                }
            }
            Val::Fields(parts) => {
                let fields = self.fields_of(ty);
                for (part, (_, ty)) in parts.into_iter().zip(fields) {
                    self.emit_all(part, &ty);
                }
            }
            _ => {}
        }
    }

    /// Evaluates an expression that must be the receiver of a method of a header, union or stack.
    pub(crate) fn receiver(&mut self, e: &typed::Expr) -> crate::lvalue::Lval {
        self.stable_lvalue(e)
    }
}
