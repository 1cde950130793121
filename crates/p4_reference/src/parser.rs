//! Evaluates parsers (chapter 13).

use p4::typed::{Expr, Keyset, ParserId, SelectCase, Transition, TransitionTarget, Type};

use crate::control_plane::KeyMatch;
use crate::evaluator::{BlockEvaluator, Evaluated, Stop, unsupported};
use crate::expr::equal;
use crate::number::Number;
use crate::table::fits;
use crate::value::{Value, is_signed};

impl BlockEvaluator<'_> {
    /// Runs a parser whose parameters are bound, from `start` to `accept` (section 13.3). `reject` is a [`Stop`].
    pub(crate) fn run_parser(&mut self, id: ParserId) -> Evaluated<()> {
        let parser = &self.program.parsers[id];
        self.locals(&parser.locals)?;
        let mut state = parser.start;
        loop {
            self.step()?;
            let now = &parser.states[state];
            self.block(&now.body)?;
            let target = match &now.transition {
                Transition::Direct(target, _) => *target,
                Transition::Select { exprs, cases, .. } => self.select(exprs, cases)?,
            };
            match target {
                TransitionTarget::State(next) => state = next,
                TransitionTarget::Accept => return Ok(()),
                TransitionTarget::Reject => return Err(self.reject("NoError")),
            }
        }
    }

    /// `select` (section 13.6): the values first, then the cases in order.
    fn select(&mut self, exprs: &[Expr], cases: &[SelectCase]) -> Evaluated<TransitionTarget> {
        let values = exprs.iter().map(|e| self.eval(e)).collect::<Evaluated<Vec<Value>>>()?;
        for case in cases {
            if self.case_matches(case, exprs, &values)? {
                return Ok(case.target);
            }
        }
        Err(self.reject("NoMatch"))
    }

    fn case_matches(&mut self, case: &SelectCase, exprs: &[Expr], values: &[Value]) -> Evaluated<bool> {
        match &case.keys[..] {
            [Keyset::Any(_)] => return Ok(true),
            [Keyset::ValueSet(set, _)] => {
                let decl = &self.program.value_sets[*set];
                let scope = self.scope.ok_or_else(|| unsupported("a value set outside a parser"))?;
                let name = self.instances.full_name(self.program, &decl.name, scope);
                return self.in_value_set(&name, values, exprs);
            }
            _ => {}
        }
        for ((keyset, e), value) in case.keys.iter().zip(exprs).zip(values) {
            if !self.in_keyset(keyset, value, &e.ty)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a value is in a set (section 8.15).
    fn in_keyset(&mut self, keyset: &Keyset, value: &Value, ty: &Type) -> Evaluated<bool> {
        let signed = is_signed(self.program, ty);
        Ok(match keyset {
            Keyset::Any(_) => true,
            Keyset::Value(e) => {
                let member = self.eval(e)?;
                let member = self.convert(member, &e.ty, ty)?;
                equal(value, &member)?
            }
            Keyset::Mask(bits, mask) => {
                let (bits, mask) = (self.member(bits, ty)?, self.member(mask, ty)?);
                let value = self.as_number(value.clone(), ty)?;
                fits(&KeyMatch::Masked(bits.bits, mask.bits), &value, signed)
            }
            Keyset::Range(low, high) => {
                let (low, high) = (self.member(low, ty)?, self.member(high, ty)?);
                let value = self.as_number(value.clone(), ty)?;
                fits(&KeyMatch::Range(low.bits, high.bits), &value, signed)
            }
            Keyset::ValueSet(..) => return Err(unsupported("a value set among other keysets")),
        })
    }

    fn member(&mut self, e: &Expr, ty: &Type) -> Evaluated<Number> {
        let value = self.eval(e)?;
        let value = self.convert(value, &e.ty, ty)?;
        self.as_number(value, ty)
    }

    /// Whether the control plane has put the values into a value set (section 13.11).
    fn in_value_set(&mut self, name: &str, values: &[Value], exprs: &[Expr]) -> Evaluated<bool> {
        let mut scalars = Vec::new();
        for (value, e) in values.iter().zip(exprs) {
            let mut parts = Vec::new();
            value.scalars(&mut |scalar| parts.push(scalar.clone()));
            for part in parts {
                scalars.push(self.as_number(part, &e.ty)?);
            }
        }
        let members = self.control_plane.value_sets.get(name);
        self.budget.step((members.map_or(0, Vec::len) * (1 + scalars.len())) as u64)?;
        let matches = |member: &Vec<KeyMatch>| {
            member.len() == scalars.len() && member.iter().zip(&scalars).all(|(key, value)| fits(key, value, false))
        };
        Ok(members.is_some_and(|members| members.iter().any(matches)))
    }

    /// `verify` (section 13.7)
    pub(crate) fn verify(&mut self, holds: bool, error: Value) -> Evaluated<Value> {
        match error {
            _ if holds => Ok(Value::Void),
            Value::Error(index) => Err(Stop::Reject(index)),
            _ => Err(unsupported("verify with this error")),
        }
    }
}
