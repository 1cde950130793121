//! Keeps the state of an evaluation (variables, the current instance, the packet) and defines early exits.

use std::collections::HashMap;

use num_bigint::BigInt;
use p4::typed::{Expr, ExprKind, Program, Type, VarId};

use crate::budget::PacketBudget;
use crate::control_plane::ControlPlane;
use crate::instance::{Instances, Object};
use crate::number::Number;
use crate::packet::PacketBits;
use crate::v1model::Effects;
use crate::value::Value;

/// Maximum nesting depth of statements and expressions, those of called functions included.
const MAX_DEPTH: u32 = 1000;

/// The reason why a computation ended early.
#[derive(Clone, Debug, PartialEq)]
pub enum Stop {
    /// `exit` (section 12.5)
    Exit,
    /// `return` (section 12.4) with the value, if there is one.
    Return(Value),
    /// `break` (section 12.8)
    Break,
    /// `continue` (section 12.8)
    Continue,
    /// Transition to `reject` with this error (section 13.3).
    Reject(usize),
    /// `assert` or `assume` is false (v1model).
    AssertFailed,
    /// The rest depends on a value that neither the specification nor the project defines.
    Unspecified(String),
    /// The evaluator does not model this.
    Unsupported(String),
    /// The computation is too long, takes too much memory or nests too deep.
    TooLong,
}

/// The result of a computation.
pub type Evaluated<T> = Result<T, Stop>;

/// The evaluation of one block for one packet.
pub struct BlockEvaluator<'p> {
    pub(crate) program: &'p Program,
    pub(crate) instances: &'p Instances,
    pub(crate) control_plane: &'p mut ControlPlane,
    /// Variables and parameters. Nothing in P4 is recursive, so one value per declaration suffices.
    pub(crate) env: HashMap<VarId, Value>,
    /// The instance whose code runs.
    pub(crate) scope: Option<usize>,
    pub(crate) packet: PacketBits,
    pub(crate) effects: Effects,
    pub(crate) in_parser: bool,
    pub(crate) budget: &'p mut PacketBudget,
    depth: u32,
}

impl<'p> BlockEvaluator<'p> {
    /// Prepares an evaluation.
    pub fn new(
        program: &'p Program,
        instances: &'p Instances,
        control_plane: &'p mut ControlPlane,
        budget: &'p mut PacketBudget,
        data: &[u8],
    ) -> BlockEvaluator<'p> {
        BlockEvaluator {
            program,
            instances,
            control_plane,
            env: HashMap::new(),
            scope: None,
            packet: PacketBits::new(data),
            effects: Effects::default(),
            in_parser: false,
            budget,
            depth: 0,
        }
    }

    /// Counts a step of the computation.
    pub(crate) fn step(&mut self) -> Evaluated<()> {
        self.budget.step(1)
    }

    /// Evaluates a part one level deeper.
    pub(crate) fn nested<T>(&mut self, run: impl FnOnce(&mut Self) -> Evaluated<T>) -> Evaluated<T> {
        if self.depth == MAX_DEPTH {
            return Err(Stop::TooLong);
        }
        self.depth += 1;
        let result = run(self);
        self.depth -= 1;
        result
    }

    /// Returns the [`Stop`] for a parser error of `core.p4`. A program whose own `core.p4` lacks it is not modelled.
    pub(crate) fn reject(&self, name: &str) -> Stop {
        match self.program.errors.iter().position(|known| &**known == name) {
            Some(error) => Stop::Reject(error),
            None => unsupported(&format!("`error.{name}`, which the program does not declare")),
        }
    }

    /// Runs code inside an instance, whose constructor parameters are bound.
    pub(crate) fn within<T>(&mut self, instance: usize, run: impl FnOnce(&mut Self) -> Evaluated<T>) -> Evaluated<T> {
        let outer = self.scope.replace(instance);
        self.env.extend(self.instances.list[instance].statics.iter().cloned());
        let result = run(self);
        self.scope = outer;
        result
    }

    /// Returns the instance that an expression denotes.
    pub(crate) fn object(&mut self, e: &Expr) -> Evaluated<Object> {
        let value = match &e.kind {
            ExprKind::Instance(id) => match self.instances.lookup(*id, self.scope) {
                Some(index) => Value::Object(Object::Instance(index)),
                None => Value::Void,
            },
            _ => self.eval(e)?,
        };
        match value {
            Value::Object(object) => Ok(object),
            _ => Err(unsupported("an unknown object")),
        }
    }

    /// Evaluates a condition.
    pub(crate) fn condition(&mut self, e: &Expr) -> Evaluated<bool> {
        match self.eval(e)? {
            Value::Bool(value) => Ok(value),
            Value::Unspecified => Err(unspecified("a condition")),
            other => Err(unsupported(&format!("a condition that is {other:?}"))),
        }
    }

    /// Evaluates an expression to a number of its type; an `int` takes the width of `e`'s type, or 32
    /// bits if it has none.
    pub(crate) fn number(&mut self, e: &Expr) -> Evaluated<Number> {
        let value = self.eval(e)?;
        self.as_number(value, &e.ty)
    }

    /// Returns a scalar of type `ty` as a number.
    pub(crate) fn as_number(&self, value: Value, ty: &Type) -> Evaluated<Number> {
        match value {
            Value::Number(number) => Ok(number),
            Value::Bool(value) => Ok(Number::new(value.into(), 1)),
            Value::Error(index) => Ok(Number::new(index as u64, 32)),
            Value::Integer(value) => {
                Ok(Number::wrap(&value, crate::value::number_width(self.program, ty).unwrap_or(32)))
            }
            Value::Unspecified => Err(unspecified("a number")),
            other => Err(unsupported(&format!("a number that is {other:?}"))),
        }
    }

    /// Evaluates an expression to a mathematical integer, with the signedness of its type.
    pub(crate) fn integer(&mut self, e: &Expr) -> Evaluated<BigInt> {
        match self.eval(e)? {
            Value::Integer(value) => Ok(value),
            value => Ok(self.as_number(value, &e.ty)?.value(crate::value::is_signed(self.program, &e.ty))),
        }
    }
}

/// Returns the [`Stop`] for a result that depends on an undefined value.
pub(crate) fn unspecified(what: &str) -> Stop {
    Stop::Unspecified(what.to_owned())
}

/// Returns the [`Stop`] for a construct that is not modelled.
pub(crate) fn unsupported(what: &str) -> Stop {
    Stop::Unsupported(what.to_owned())
}
