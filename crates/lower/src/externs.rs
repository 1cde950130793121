//! Calls of externs. Arguments are evaluated here; the architecture defines the meaning of the call (the language does
//! for `packet_in`, `packet_out`, `verify` and `static_assert`).

use std::sync::Arc;

use diagnostics::Diagnostic;
use ir::{LValue, Op};
use p4::ast::Direction;
use p4::typed::{self, Arg, Call, Type};

use crate::arch::{ExternArg, ExternCall};
use crate::call::{PassedArg, PassedPlace};
use crate::lowering::Lowering;
use crate::value::Val;
use ir::fold;

impl<'a> Lowering<'a> {
    fn extern_args(&mut self, params: &[(Arc<str>, Direction)], args: &[Arg], order: &[usize]) -> Vec<ExternArg> {
        let types: Vec<(Direction, Type)> = params
            .iter()
            .zip(args)
            .map(|((_, direction), arg)| {
                let ty = match arg {
                    Arg::Expr(e) => e.ty.clone(),
                    Arg::DontCare(ty) => ty.clone(),
                    Arg::Absent => Type::Void,
                };
                (*direction, ty)
            })
            .collect();
        let passed = self.pass(&types, args, order);
        let mut out = Vec::new();
        for (((name, direction), (_, ty)), passed) in params.iter().zip(types).zip(passed) {
            let (val, lval) = match passed {
                PassedArg::Val(val) => (val, None),
                PassedArg::LValue(PassedPlace { lval, saved, .. }) if *direction == Direction::InOut => {
                    (saved.unwrap_or_else(|| lval.read(self)), Some(lval))
                }
                PassedArg::LValue(place) => (Val::Absent, Some(place.lval)),
            };
            out.push(ExternArg { name: name.clone(), direction: *direction, ty, val, lval, pending: None });
        }
        out
    }

    /// Returns the destination to which an extern writes the result of an `out` or `inout` argument, and its width in
    /// bits. The result reaches the argument when the call is finished.
    pub fn out_lvalue(&mut self, arg: &mut ExternArg) -> (LValue, u32) {
        let width = match &arg.lval {
            Some(lval) => self.scalar_width(&lval.value_ty()).unwrap_or(0),
            None => self.scalar_width(&arg.ty).unwrap_or(0),
        };
        if let Some(place) = arg.lval.as_ref().and_then(crate::lvalue::Lval::as_lvalue) {
            return (place, width);
        }
        let slot = self.temp(width);
        arg.pending = Some(slot);
        (LValue::Slot(slot), width)
    }

    /// Writes a whole value to an `out` or `inout` argument.
    pub fn write_out(&mut self, arg: &ExternArg, val: Val) {
        if let Some(lval) = arg.lval.clone() {
            self.write(&lval, val);
        }
    }

    fn extern_done(&mut self, args: Vec<ExternArg>) {
        for arg in args {
            if let (Some(slot), Some(lval)) = (arg.pending, &arg.lval) {
                self.write(lval, Val::Bits(ir::Expr::Slot(slot)));
            }
        }
    }

    pub(crate) fn call_extern_fn(&mut self, id: typed::ExternFnId, type_args: &[Type], call: &Call, ret: &Type) -> Val {
        let (decl, span) = (&self.program.extern_fns[id], call.span);
        let args = self.extern_args(&decl.params, &call.args, &call.order);
        let mut call = ExternCall { name: &decl.name, receiver_type: None, type_args, args, ret, span };
        let arch = self.arch;
        let val = match call.name {
            "verify" => self.verify_call(&call),
            "static_assert" => self.static_assert(&call),
            _ => arch.extern_fn(self, &mut call),
        };
        self.extern_done(call.args);
        val
    }

    fn verify_call(&mut self, call: &ExternCall<'_>) -> Val {
        let [check, error] = &call.args[..] else { return Val::Absent };
        if self.body.kind != ir::BodyKind::Parser {
            self.unsupported(call.span, "`verify` is available only in parsers");
            return Val::Absent;
        }
        let check_bits = self.bits(check.val.clone(), &check.ty);
        let error_bits = self.bits(error.val.clone(), &error.ty);
        if fold::as_const(&check_bits).is_none_or(|bits| !bits.is_true()) {
            self.emit(Op::Verify(check_bits, error_bits));
        }
        Val::Absent
    }

    fn static_assert(&mut self, call: &ExternCall<'_>) -> Val {
        match call.args.first().and_then(|arg| arg.val.as_const()) {
            Some(bits) if bits.is_true() => {}
            Some(_) => {
                let message = match call.args.get(1).map(|arg| &arg.val) {
                    Some(Val::Text(text)) => text.to_string(),
                    _ => "static assertion failed".to_owned(),
                };
                self.error(Diagnostic::error("static-assert", call.span, message));
            }
            None => self.unsupported(call.span, "the condition is not known at compile time"),
        }
        Val::Bits(fold::bool(true))
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of one typed call")]
    pub(crate) fn call_method(
        &mut self,
        object: &typed::Expr,
        of: typed::ExternId,
        method: usize,
        type_args: &[Type],
        call: &Call,
        ret: &Type,
    ) -> Val {
        let (decl, span) = (&self.program.externs[of], call.span);
        let method = &decl.methods[method];
        let Val::Object(object) = self.value(object) else {
            self.unsupported(span, "the object of this call is not known at compile time");
            return self.default_value(ret);
        };
        if let Some(val) = self.packet_method(&object, &method.name, type_args, call, ret) {
            return val;
        }
        let args = self.extern_args(&method.params, &call.args, &call.order);
        let mut call = ExternCall { name: &method.name, receiver_type: Some(decl), type_args, args, ret, span };
        let arch = self.arch;
        let val = arch.extern_method(self, &object, &mut call);
        self.extern_done(call.args);
        val
    }
}
