//! Calls (sections 6.8 and 8.20): copy-in, the body, copy-out.

use p4::ast::{Direction, StructKind};
use p4::typed::{Arg, Builtin, Call, Callee, Expr, Param, Type};

use crate::evaluator::{BlockEvaluator, Evaluated, Stop, unspecified, unsupported};
use crate::instance::Object;
use crate::place::PlacePath;
use crate::value::{Initial, Value, initial, struct_kind};

/// An evaluated argument: steps 1 to 4 of the algorithm in section 6.8.
#[derive(Clone, Debug)]
pub(crate) struct Passed {
    /// The saved value; none for `out`.
    pub(crate) value: Option<Value>,
    /// The saved l-value of an `out` or `inout` argument; none if the result is discarded.
    pub(crate) place: Option<PlacePath>,
}

impl BlockEvaluator<'_> {
    /// Evaluates a call. The result is [`Value::Void`] if it has none.
    pub(crate) fn call(&mut self, call: &Call, ty: &Type) -> Evaluated<Value> {
        self.step()?;
        match &call.callee {
            Callee::Function(id) => {
                let function = &self.program.functions[*id];
                let passed = self.pass(&directions(&function.params), &call.args, &call.order)?;
                self.invoke(&function.params, passed, &call.order, |cx| cx.block(&function.body))
            }
            Callee::Action(id) => {
                let action = &self.program.actions[*id];
                let passed = self.pass(&directions(&action.params), &call.args, &call.order)?;
                self.invoke(&action.params, passed, &call.order, |cx| cx.block(&action.body))
            }
            Callee::Table(_) => self.apply_table(call).map(|_| Value::Void),
            Callee::Apply(target) => match self.object(target)? {
                Object::Instance(index) => self.apply(index, call),
                _ => Err(unsupported("`apply` of this")),
            },
            Callee::ExternFn(id, type_args) => {
                let decl = &self.program.extern_fns[*id];
                let directions: Vec<Direction> = decl.params.iter().map(|(_, direction)| *direction).collect();
                let passed = self.pass(&directions, &call.args, &call.order)?;
                self.extern_function(&decl.name, call, type_args, passed)
            }
            Callee::Method { object, of, method, type_args } => {
                let method = &self.program.externs[*of].methods[*method];
                let object = self.object(object)?;
                let directions: Vec<Direction> = method.params.iter().map(|(_, direction)| *direction).collect();
                let passed = self.pass(&directions, &call.args, &call.order)?;
                self.extern_method(object, &method.name, call, type_args, passed, ty)
            }
            Callee::Builtin(builtin, base) => self.builtin(*builtin, base),
        }
    }

    /// Evaluates the arguments in the order in which the call states them.
    pub(crate) fn pass(&mut self, directions: &[Direction], args: &[Arg], order: &[usize]) -> Evaluated<Vec<Passed>> {
        let mut passed = vec![Passed { value: None, place: None }; args.len()];
        for index in order {
            let direction = directions.get(*index).copied().unwrap_or(Direction::In);
            passed[*index] = self.pass_one(direction, &args[*index])?;
        }
        Ok(passed)
    }

    fn pass_one(&mut self, direction: Direction, arg: &Arg) -> Evaluated<Passed> {
        Ok(match (direction, arg) {
            (Direction::Out, Arg::Expr(e)) => Passed { value: None, place: Some(self.place(e)?) },
            (Direction::InOut, Arg::Expr(e)) => {
                let place = self.place(e)?;
                Passed { value: Some(self.read(&place)?), place: Some(place) }
            }
            (_, Arg::Expr(e)) => Passed { value: Some(self.eval(e)?), place: None },
            (_, Arg::DontCare(_)) => Passed { value: None, place: None },
            (_, Arg::Absent) => Passed { value: Some(Value::Void), place: None },
        })
    }

    /// Runs a callee on evaluated arguments: steps 5 and 6 of section 6.8. `exit` copies out, too (section 12.5), and
    /// so does the end of a sub-parser by `reject`, which the specification leaves open. There it is `Unspecified` for
    /// arguments that alias others or are parts of a number or union. Catches `return`.
    pub(crate) fn invoke(
        &mut self,
        params: &[Param],
        passed: Vec<Passed>,
        order: &[usize],
        body: impl FnOnce(&mut Self) -> Evaluated<()>,
    ) -> Evaluated<Value> {
        for (param, passed) in params.iter().zip(&passed) {
            let ty = &self.program.vars[param.var].ty;
            let value = match &passed.value {
                Some(value) => value.clone(),
                None => initial(self.program, ty, Initial::Out),
            };
            self.budget.copy(&value)?;
            self.env.insert(param.var, value);
        }
        let result = body(self);
        if matches!(&result, Err(Stop::Reject(_))) && self.has_partial_places(&passed) {
            return Err(unspecified("the copy-out of a sub-parser that rejects"));
        }
        if matches!(&result, Ok(()) | Err(Stop::Return(_) | Stop::Exit | Stop::Reject(_))) {
            for index in order {
                if let (Some(place), Some(param)) = (&passed[*index].place, params.get(*index)) {
                    let value = self.env.get(&param.var).cloned().unwrap_or(Value::Unspecified);
                    self.budget.copy(&value)?;
                    self.write(place, value)?;
                }
            }
        }
        match result {
            Ok(()) => Ok(Value::Void),
            Err(Stop::Return(value)) => Ok(value),
            Err(stop) => Err(stop),
        }
    }

    /// Whether an argument is a part of a number or union, or overlaps another one.
    fn has_partial_places(&self, passed: &[Passed]) -> bool {
        let places: Vec<&PlacePath> = passed.iter().filter_map(|passed| passed.place.as_ref()).collect();
        let overlaps_later = |at: usize| places[at + 1..].iter().any(|other| places[at].overlaps(other));
        places.iter().enumerate().any(|(at, place)| self.is_partial(place) || overlaps_later(at))
    }

    /// Applies a parser (section 13.10) or control (section 14.4).
    fn apply(&mut self, index: usize, call: &Call) -> Evaluated<Value> {
        match self.instances.list[index].ty {
            Type::Parser(id) => {
                let params = &self.program.parsers[id].params;
                let passed = self.pass(&directions(params), &call.args, &call.order)?;
                self.within(index, |cx| cx.invoke(params, passed, &call.order, |cx| cx.run_parser(id)))
            }
            Type::Control(id) => {
                let params = &self.program.controls[id].params;
                let passed = self.pass(&directions(params), &call.args, &call.order)?;
                self.within(index, |cx| cx.invoke(params, passed, &call.order, |cx| cx.run_control(id)))
            }
            _ => Err(unsupported("`apply` of this")),
        }
    }

    /// Methods of headers (section 8.17), stacks (section 8.18) and unions (section 8.19).
    fn builtin(&mut self, builtin: Builtin, base: &Expr) -> Evaluated<Value> {
        match builtin {
            Builtin::IsValid => Ok(Value::Bool(self.eval(base)?.is_valid())),
            Builtin::SetValid | Builtin::SetInvalid => {
                let place = self.place(base)?;
                let is_union = matches!(struct_kind(self.program, &base.ty), Some((_, StructKind::Union)));
                self.update(&place, |value| value.set_valid(builtin == Builtin::SetValid && !is_union))?;
                Ok(Value::Void)
            }
            Builtin::PushFront(count) | Builtin::PopFront(count) => {
                let place = self.place(base)?;
                let push = matches!(builtin, Builtin::PushFront(_));
                self.update(&place, |value| shift(value, count as usize, push))?;
                Ok(Value::Void)
            }
            Builtin::Size => Err(unsupported("a size that is not known at compile time")),
        }
    }
}

/// Returns the directions of parameters.
pub(crate) fn directions(params: &[Param]) -> Vec<Direction> {
    params.iter().map(|param| param.direction).collect()
}

/// `push_front` and `pop_front`, as the pseudocode in section 8.18 has them.
fn shift(stack: &mut Value, count: usize, push: bool) {
    let Value::Stack { elements, next } = stack else { return };
    let size = elements.len();
    if push {
        for i in (0..size).rev() {
            if i >= count {
                elements[i] = elements[i - count].clone();
            } else {
                elements[i].set_valid(false);
            }
        }
        *next = (*next as usize + count).min(size) as u32;
    } else {
        for i in 0..size {
            if i + count < size {
                elements[i] = elements[i + count].clone();
            } else {
                elements[i].set_valid(false);
            }
        }
        *next = (*next as usize).saturating_sub(count) as u32;
    }
}
